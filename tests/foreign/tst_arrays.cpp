// SPDX-License-Identifier: Apache-2.0
// The files of tests/data/foreign were written by NumPy 2 and torch 2 (executes.pt: a pickle that
// would run a command).
#include "foreign/number_array.h"
#include "foreign/result_file.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>

using namespace muster;
using foreign::NumberArray;

namespace {

std::string bytesOf(const char* name)
{
    QFile file(QStringLiteral(MUSTER_TEST_DATA "/foreign/") + QLatin1String(name));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return file.readAll().toStdString();
}

} // namespace

class TestArrays : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void numbersAreRead()
    {
        const auto ints = foreign::readNpy("a", bytesOf("int32.npy"));
        QVERIFY(ints.has_value());
        QCOMPARE(ints->integers, (std::vector<std::int64_t>{3, -1, 2}));
        const auto reals = foreign::readNpy("a", bytesOf("float64.npy"));
        QVERIFY(reals.has_value());
        QCOMPARE(reals->reals, (std::vector<double>{1.0, 2.5}));
        const auto big = foreign::readNpy("a", bytesOf("big_endian.npy"));
        QVERIFY(big.has_value());
        QCOMPARE(big->integers, (std::vector<std::int64_t>{1, -2}));
        const auto bools = foreign::readNpy("a", bytesOf("bools.npy"));
        QVERIFY(bools.has_value());
        QCOMPARE(bools->integers, (std::vector<std::int64_t>{1, 0}));
        const auto fortran = foreign::readNpy("a", bytesOf("fortran.npy"));
        QVERIFY(fortran.has_value());
        QCOMPARE(fortran->integers, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
        QCOMPARE(fortran->shape, (std::vector<std::uint64_t>{2, 3}));
    }

    void textsAreRead()
    {
        const auto texts = foreign::readNpy("a", bytesOf("texts.npy"));
        QVERIFY(texts.has_value());
        QCOMPARE(texts->texts, (std::vector<std::string>{"Paris", "Z\xC3\xBCrich", ""}));
    }

    void objectsAreRefused()
    {
        const auto array = foreign::readNpy("a", bytesOf("objects.npy"));
        QVERIFY(!array);
        QCOMPARE(array.error().code, std::string("E-FOREIGN-007"));
        QVERIFY(array.error().message.find("pickle") != std::string::npos);
    }

    void everyCutOfAnArrayIsAnError()
    {
        const std::string whole = bytesOf("texts.npy");
        for (std::size_t size = 0; size < whole.size(); ++size)
            QVERIFY(!foreign::readNpy("a", std::string_view(whole).substr(0, size)));
    }

    void hugeShapesAreRefused()
    {
        std::string bytes = bytesOf("int32.npy");
        const std::size_t at = bytes.find("(3,)");
        QVERIFY(at != std::string::npos);
        bytes.replace(at, 18, "(99999999999, 99) ");
        QVERIFY(!foreign::readNpy("a", bytes));
    }

    void tensorsAreRead()
    {
        const auto arrays = foreign::readTorch("a", bytesOf("small.pt"));
        QVERIFY2(arrays.has_value(), arrays ? "" : arrays.error().message.c_str());
        QCOMPARE(arrays->size(), std::size_t{2});
        QCOMPARE((*arrays)[0].first, std::string("indices"));
        QCOMPARE((*arrays)[0].second.integers, (std::vector<std::int64_t>{0, 2, -1}));
        const auto strided = foreign::readTorch("a", bytesOf("strided.pt"));
        QVERIFY(strided.has_value());
        QCOMPARE((*strided)[0].second.integers, (std::vector<std::int64_t>{0, 3, 1, 4, 2, 5}));
        const auto brain = foreign::readTorch("a", bytesOf("bfloat16.pt"));
        QVERIFY(brain.has_value());
        QCOMPARE((*brain)[0].second.reals, (std::vector<double>{0.5, 1.5}));
    }

    void nothingOfAPickleIsExecuted()
    {
        const auto arrays = foreign::readTorch("a", bytesOf("executes.pt"));
        QVERIFY(!arrays);
        QCOMPARE(arrays.error().code, std::string("E-FOREIGN-008"));
        QVERIFY2(arrays.error().message.find("system") != std::string::npos,
                 arrays.error().message.c_str());
        QVERIFY(!std::filesystem::exists("/tmp/muster-was-executed"));
        QVERIFY(!foreign::readTorch("a", "\x80\x02}q\x01."));
    }

    void cutAndChangedTensorFilesDoNoHarm()
    {
        const std::string whole = bytesOf("small.pt");
        for (std::size_t size = 0; size < whole.size(); size += 7)
            static_cast<void>(foreign::readTorch("a", std::string_view(whole).substr(0, size)));
        for (std::size_t at = 0; at < whole.size(); ++at) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ 0x55);
            static_cast<void>(foreign::readTorch("a", changed));
        }
    }

    void arraysOfAGatherAreColumns()
    {
        QTemporaryDir folder;
        const QString from = QStringLiteral(MUSTER_TEST_DATA "/foreign/");
        QVERIFY(QFile::copy(from + "int32.npy", folder.filePath("gathered_indices.npy")));
        QVERIFY(QFile::copy(from + "texts.npy", folder.filePath("gathered_preds.npy")));
        const auto file = foreign::readResultFile(folder.path().toStdString());
        QVERIFY(file.has_value());
        QCOMPARE(file->rows.size(), std::size_t{3});
        QCOMPARE(file->rows[1].index, std::optional<std::int64_t>(-1));
        QCOMPARE(file->rows[0].text, std::string("Paris"));
        QVERIFY(QFile::copy(from + "bools.npy", folder.filePath("labels.npy")));
        QCOMPARE(foreign::readResultFile(folder.path().toStdString()).error().code,
                 std::string("E-FOREIGN-012"));
    }

    void theLargestValueOfARowIsThePrediction()
    {
        const auto file = foreign::readResultText("logits.npy", bytesOf("logits.npy"));
        QVERIFY(file.has_value());
        QCOMPARE(file->rows.size(), std::size_t{2});
        QCOMPARE(file->rows[0].text, std::string("1"));
        QCOMPARE(file->rows[1].text, std::string("0"));
    }
};

QTEST_GUILESS_MAIN(TestArrays)
#include "tst_arrays.moc"
