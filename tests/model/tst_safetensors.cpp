// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoint.h"
#include "model/safetensors.h"

#include "model/tiny_model.h"

#include <QtTest>

using namespace muster;
using namespace muster::model;
using muster::test::pathOf;
using muster::test::safetensorsFile;
using muster::test::writeText;

namespace {

Result<SafetensorsHeader> parsed(const std::string& file)
{
    return parseSafetensors(std::as_bytes(std::span(file)), "model.safetensors");
}

const std::string oneTensor = R"({"a":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}})";

} // namespace

class TestSafetensors final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aGoodFileIsRead();
    void aHostileHeaderIsAnError_data();
    void aHostileHeaderIsAnError();
    void everyCutOfAGoodFileIsAnError();
    void shardsAreFound();
    void aHostileIndexIsAnError_data();
    void aHostileIndexIsAnError();
    void picklesAreNeverOpened();
    void namesInMessagesAreHarmless();
};

void TestSafetensors::aGoodFileIsRead()
{
    const auto header = parsed(safetensorsFile(
        R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
        R"("none":{"dtype":"BF16","shape":[0,7],"data_offsets":[12,12]},)"
        R"("a":{"shape":[2,3],"dtype":"F16","data_offsets":[0,12]}}   )",
        std::string(16, 'x')));
    QVERIFY2(header, header ? "" : header.error().text().c_str());
    QCOMPARE(header->tensors.size(), std::size_t{3});
    QVERIFY(header->tensors[0] ==
            (TensorEntry{.name = "a", .type = DType::F16, .shape = {2, 3}, .begin = 0, .end = 12}));
    QVERIFY(header->tensors[2].shape.empty());
}

void TestSafetensors::aHostileHeaderIsAnError_data()
{
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QString>("code");
    const auto row = [](const char* name, const std::string& file, const char* code) {
        QTest::newRow(name) << QByteArray::fromStdString(file) << code;
    };
    const auto entry = [](const std::string& body, std::size_t size) {
        return safetensorsFile("{\"a\":" + body + "}", std::string(size, 'x'));
    };
    const auto two = [](const std::string& a, const std::string& b, std::size_t size) {
        return safetensorsFile(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                                   R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                               std::string(size, 'x'));
    };
    row("empty", "", "E-MODEL-001");
    row("seven bytes", "1234567", "E-MODEL-001");
    row("header length 2^63", std::string("\0\0\0\0\0\0\0\x80{}", 10), "E-MODEL-001");
    row("header length 2^64-1", std::string(8, '\xFF') + "{}", "E-MODEL-001");
    row("header longer than the file", std::string("\x40\0\0\0\0\0\0\0{}", 10), "E-MODEL-001");
    row("no header", safetensorsFile("", ""), "E-MODEL-002");
    row("a list", safetensorsFile("[]", ""), "E-MODEL-002");
    row("cut JSON", safetensorsFile("{\"a\":", ""), "E-MODEL-002");
    row("words after the header", safetensorsFile("{} x", ""), "E-MODEL-002");
    row("not UTF-8", safetensorsFile("{\"\xFF\":1}", ""), "E-MODEL-002");
    row("deep nesting", safetensorsFile("{\"a\":" + std::string(100000, '['), ""), "E-MODEL-002");
    row("unknown type", entry(R"({"dtype":"F12","shape":[1],"data_offsets":[0,1]})", 1),
        "E-MODEL-003");
    row("shape product overflow",
        entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})", 4),
        "E-MODEL-003");
    row("shape product wraps to the size",
        entry(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})", 4),
        "E-MODEL-003");
    row("wrong size", entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4),
        "E-MODEL-003");
    row("negative extent", entry(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", 1),
        "E-MODEL-002");
    row("fraction", entry(R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})", 1),
        "E-MODEL-002");
    row("extent above 64 bits",
        entry(R"({"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]})", 1),
        "E-MODEL-002");
    row("three offsets", entry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,1]})", 1),
        "E-MODEL-002");
    row("no shape", entry(R"({"dtype":"U8","data_offsets":[0,1]})", 1), "E-MODEL-002");
    row("unknown field", entry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":[]})", 1),
        "E-MODEL-002");
    row("field twice", entry(R"({"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]})", 1),
        "E-MODEL-002");
    row("nested list", entry(R"({"dtype":"U8","shape":[[1]],"data_offsets":[0,1]})", 1),
        "E-MODEL-002");
    row("tensor is a number", entry("3", 0), "E-MODEL-002");
    row("offsets beyond the file", two("[0,4]", "[4,8]", 7), "E-MODEL-004");
    row("offsets backwards", two("[4,0]", "[4,8]", 8), "E-MODEL-004");
    row("offsets near 2^64", two("[0,4]", "[18446744073709551612,18446744073709551615]", 8),
        "E-MODEL-004");
    row("overlap", two("[0,4]", "[2,6]", 6), "E-MODEL-004");
    row("the same bytes twice", two("[0,4]", "[0,4]", 4), "E-MODEL-004");
    row("hole", two("[0,4]", "[5,9]", 9), "E-MODEL-004");
    row("hole at the start", two("[1,5]", "[5,9]", 9), "E-MODEL-004");
    row("bytes after the last tensor", two("[0,4]", "[4,8]", 9), "E-MODEL-004");
    row("name twice",
        safetensorsFile(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                        "xx"),
        "E-MODEL-005");
}

void TestSafetensors::aHostileHeaderIsAnError()
{
    QFETCH(QByteArray, file);
    QFETCH(QString, code);
    const auto header = parsed(file.toStdString());
    QVERIFY(!header);
    QCOMPARE(QString::fromStdString(header.error().code), code);
    QVERIFY(header.error().message.find("model.safetensors") != std::string::npos);
}

void TestSafetensors::everyCutOfAGoodFileIsAnError()
{
    const auto file = safetensorsFile(oneTensor, std::string(12, 'x'));
    QVERIFY(parsed(file));
    for (std::size_t size = 0; size < file.size(); ++size)
        QVERIFY(!parsed(file.substr(0, size)));
}

void TestSafetensors::shardsAreFound()
{
    const QTemporaryDir directory;
    const auto other = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    writeText(pathOf(directory) / "one.safetensors",
              safetensorsFile(oneTensor, std::string(12, 'x')));
    writeText(pathOf(directory) / "two.safetensors", safetensorsFile(other, "y"));
    writeText(pathOf(directory) / "model.safetensors.index.json",
              R"({"metadata":{},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
    const auto checkpoint = Checkpoint::open(pathOf(directory));
    QVERIFY2(checkpoint, checkpoint ? "" : checkpoint.error().text().c_str());
    QCOMPARE(checkpoint->tensors().size(), std::size_t{2});
    QVERIFY(checkpoint->tensors().find("b")->second.bytes[0] == std::byte{'y'});
}

void TestSafetensors::aHostileIndexIsAnError_data()
{
    QTest::addColumn<QByteArray>("index");
    QTest::addColumn<QString>("code");
    const auto row = [](const char* name, const QByteArray& index, const char* code) {
        QTest::newRow(name) << index << code;
    };
    row("no JSON", "{", "E-MODEL-012");
    row("no map", "{}", "E-MODEL-012");
    row("empty map", R"({"weight_map":{}})", "E-MODEL-012");
    row("parent folder", R"({"weight_map":{"a":"../one.safetensors"}})", "E-MODEL-012");
    row("absolute path", R"({"weight_map":{"a":"/etc/passwd"}})", "E-MODEL-012");
    row("zero byte", R"({"weight_map":{"a":"one.safetensors\u0000x"}})", "E-MODEL-012");
    row("the folder itself", R"({"weight_map":{"a":".."}})", "E-MODEL-012");
    row("a number", R"({"weight_map":{"a":3}})", "E-MODEL-012");
    row("missing shard", R"({"weight_map":{"a":"none.safetensors"}})", "E-MODEL-010");
    row("tensor not in the shard", R"({"weight_map":{"z":"one.safetensors"}})", "E-MODEL-012");
}

void TestSafetensors::aHostileIndexIsAnError()
{
    QFETCH(QByteArray, index);
    QFETCH(QString, code);
    const QTemporaryDir directory;
    writeText(pathOf(directory) / "one.safetensors",
              safetensorsFile(oneTensor, std::string(12, 'x')));
    writeText(pathOf(directory) / "model.safetensors.index.json", index.toStdString());
    const auto checkpoint = Checkpoint::open(pathOf(directory));
    QVERIFY(!checkpoint);
    QCOMPARE(QString::fromStdString(checkpoint.error().code), code);
}

void TestSafetensors::picklesAreNeverOpened()
{
    const QTemporaryDir directory;
    QCOMPARE(Checkpoint::open(pathOf(directory)).error().code, std::string("E-MODEL-010"));
    writeText(pathOf(directory) / "pytorch_model.bin", "PK");
    const auto error = Checkpoint::open(pathOf(directory)).error();
    QCOMPARE(error.code, std::string("E-MODEL-011"));
    QVERIFY(error.message.find("save_pretrained") != std::string::npos);
}

void TestSafetensors::namesInMessagesAreHarmless()
{
    QCOMPARE(inQuotes("a\n\x1B[31m"), std::string("\"a??[31m\""));
    QVERIFY(inQuotes(std::string(5000, 'x')).size() < 120);
}

QTEST_GUILESS_MAIN(TestSafetensors)
#include "tst_safetensors.moc"
