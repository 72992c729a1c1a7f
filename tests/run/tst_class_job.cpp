// SPDX-License-Identifier: Apache-2.0
#include "run/class_job.h"

#include "support/shared_data.h"

#include <QCryptographicHash>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

using namespace muster;
using namespace muster::run;

namespace {

config::RunConfig sst2Config()
{
    config::RunConfig config;
    config.task = config::Task::Classification;
    config.model.path = muster::test::sharedPath("data/models/minilm-sst2");
    config.data.files = {muster::test::sharedPath("data/sst2/stsa.binary.test")};
    return config;
}

QJsonDocument json(const char* relative)
{
    QFile file(QString::fromStdString(muster::test::sharedPath(relative).string()));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    return QJsonDocument::fromJson(file.readAll());
}

/// The golden's logits as outputs of one unit.
wire::OutputBlock goldenBlock(const Job& job, UnitId unit, const QJsonArray& golden)
{
    wire::OutputBlock block;
    block.unit = unit;
    for (const std::uint64_t number : job.units()->items(unit)) {
        wire::ClassOutput output;
        const QJsonObject row = golden[static_cast<qsizetype>(number)].toObject();
        for (const auto& logit : row["logits"].toArray())
            output.logits.push_back(static_cast<float>(logit.toDouble()));
        wire::Output one;
        one.item = ItemIndex(number);
        one.hash = job.itemHashes()[static_cast<std::size_t>(number)];
        one.payload = wire::encodeClass(output);
        block.outputs.push_back(std::move(one));
    }
    return block;
}

double metric(const report::RunResult& result, const std::string& key)
{
    for (const report::Metric& one : result.metrics)
        if (one.key == key)
            return one.value.value_or(-1.0);
    return -2.0;
}

data::Table tableOf(std::vector<std::vector<std::string>> labels)
{
    data::Table table;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        data::TableRow row;
        row.index = SampleIndex(i);
        row.original = SampleIndex(i);
        row.id = std::to_string(i);
        row.labels = std::move(labels[i]);
        for (const std::string& label : row.labels)
            if (std::find(table.labelNames.begin(), table.labelNames.end(), label) ==
                table.labelNames.end())
                table.labelNames.push_back(label);
        table.rows.push_back(std::move(row));
    }
    return table;
}

} // namespace

class TestClassJob : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theIdsAndTheMetricsAreThoseOfTheGolden();
    void aRunFileGivesTheSameJobBack();
    void labelsThatTheModelLacksAreRefused();
    void labelsAreNamesOrNumbers();
    void labelsOfAModelAreReadFromItsConfiguration_data();
    void labelsOfAModelAreReadFromItsConfiguration();
    void thePairIsCutAtTheLongerText_data();
    void thePairIsCutAtTheLongerText();
};

void TestClassJob::theIdsAndTheMetricsAreThoseOfTheGolden()
{
    MUSTER_SHARED_OR_SKIP(folder, "goldens/minilm-sst2");
    auto job = Job::prepare(sst2Config());
    QVERIFY2(job.has_value(), job ? "" : job.error().text().c_str());
    QCOMPARE((*job)->samples(), std::size_t{1821});
    QCryptographicHash hash(QCryptographicHash::Sha256);
    for (std::uint64_t i = 0; i < (*job)->itemCount(); ++i) {
        const auto tokens = (*job)->items()->tokens(ItemIndex(i));
        hash.addData(QByteArray::fromRawData(
            static_cast<const char*>(static_cast<const void*>(tokens.data())),
            static_cast<qsizetype>(tokens.size_bytes())));
    }
    const QJsonObject expected =
        json("goldens/minilm-sst2/metrics.json").object()["sst2-test"].toObject();
    QCOMPARE(QString(hash.result().toHex()), expected["input_ids_sha256_int32"].toString());

    const QJsonArray golden = json("goldens/minilm-sst2/sst2-test.outputs.json").array();
    for (std::uint64_t u = 0; u < (*job)->units()->size(); ++u)
        (*job)->accept(goldenBlock(**job, UnitId(u), golden));
    std::uint64_t differing = 0;
    double furthest = 0.0;
    const Status visited = (*job)->forEachSample([&](const report::SampleRow& row) {
        const QJsonObject want = golden[static_cast<qsizetype>(row.index.value)].toObject();
        const bool isEqual =
            row.isComplete &&
            row.classes->predicted.front() ==
                static_cast<std::uint32_t>(want["predicted"].toInt()) &&
            row.classes->references.front() == static_cast<std::uint32_t>(want["label"].toInt());
        differing += isEqual ? 0U : 1U;
        for (std::size_t c = 0; c < row.classes->probabilities.size(); ++c)
            furthest = std::max(
                furthest,
                std::abs(row.classes->probabilities[c] -
                         want["probabilities"].toArray()[static_cast<qsizetype>(c)].toDouble()));
    });
    QVERIFY(visited);
    QCOMPARE(differing, std::uint64_t{0});
    QVERIFY2(furthest < 1e-6, qPrintable(QString::number(furthest)));
    report::RunResult result;
    QVERIFY((*job)->summarize(result, [](SampleIndex) {}));
    QCOMPARE(metric(result, "accuracy"), 100.0 * expected["accuracy"].toDouble());
    const auto isNear = [](double a, double b) { return std::abs(a - b) < 1e-10; };
    QVERIFY(isNear(metric(result, "f1"), 100.0 * expected["f1_binary"].toDouble()));
    QVERIFY(isNear(metric(result, "macro_f1"), 100.0 * expected["f1_macro"].toDouble()));
    QVERIFY(isNear(metric(result, "mcc"), expected["mcc"].toDouble()));
    QVERIFY(std::abs(metric(result, "log_loss") - expected["mean_cross_entropy"].toDouble()) <
            1e-6);
    QCOMPARE(result.confusion[1][1], std::uint64_t{827});
    QCOMPARE(result.confusion[0][1], std::uint64_t{113});
}

void TestClassJob::aRunFileGivesTheSameJobBack()
{
    MUSTER_SHARED_OR_SKIP(folder, "goldens/minilm-sst2");
    const QTemporaryDir scratch;
    config::RunConfig config = sst2Config();
    config.data.limit = 50;
    auto job = Job::prepare(config);
    QVERIFY2(job.has_value(), job ? "" : job.error().text().c_str());
    auto file = store::RunFile::create(scratch.filePath("run.muster").toStdString());
    QVERIFY(file);
    const Status saved = (*job)->save(*file, {});
    QVERIFY2(saved.has_value(), saved ? "" : saved.error().text().c_str());
    auto loaded = Job::load(config, *file);
    QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
    QVERIFY((*loaded)->digests() == (*job)->digests());
    QCOMPARE((*loaded)->samples(), std::size_t{50});
    const QJsonArray golden = json("goldens/minilm-sst2/sst2-test.outputs.json").array();
    for (std::uint64_t u = 0; u < (*job)->units()->size(); ++u) {
        const auto block = goldenBlock(**job, UnitId(u), golden);
        (*job)->accept(block);
        (*loaded)->accept(block);
    }
    QStringList first;
    QStringList second;
    QVERIFY((*job)->forEachSample([&](const report::SampleRow& row) {
        first += QString::fromStdString(row.prediction + std::string(row.context));
    }));
    QVERIFY((*loaded)->forEachSample([&](const report::SampleRow& row) {
        second += QString::fromStdString(row.prediction + std::string(row.context));
    }));
    QCOMPARE(second, first);
    QCOMPARE(second.size(), qsizetype{50});
}

void TestClassJob::labelsThatTheModelLacksAreRefused()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/ag-news/test.csv");
    config::RunConfig config = sst2Config();
    config.data.files = {folder};
    config.classification.textField = "3";
    config.classification.labelField = "1";
    const auto job = Job::prepare(config);
    QVERIFY(!job);
    QCOMPARE(job.error().code, std::string("E-RUN-061"));
    QVERIFY(job.error().message.find("row 1 ") != std::string::npos);
}

void TestClassJob::labelsAreNamesOrNumbers()
{
    const ModelLabels labels{{"negative", "positive"}, false};
    auto classes = classesOf(tableOf({{"positive"}, {"negative"}}), labels, 0);
    QVERIFY(classes);
    QCOMPARE((*classes)[0], std::vector<std::uint32_t>{1});
    classes = classesOf(tableOf({{"1"}, {"2"}}), labels, 1);
    QVERIFY(classes);
    QCOMPARE((*classes)[1], std::vector<std::uint32_t>{1});
    QVERIFY(!classesOf(tableOf({{"1"}, {"2"}}), labels, 0));
    QCOMPARE(classesOf(tableOf({{"positive"}, {"neutral"}}), labels, 0).error().code,
             std::string("E-RUN-061"));
    QCOMPARE(classesOf(tableOf({{"positive", "negative"}}), labels, 0).error().code,
             std::string("E-RUN-062"));
    const ModelLabels several{{"a", "b", "c"}, true};
    classes = classesOf(tableOf({{"c", "a", "c"}, {}}), several, 0);
    QVERIFY(classes);
    const std::vector<std::uint32_t> both{0, 2};
    QCOMPARE((*classes)[0], both);
    QVERIFY((*classes)[1].empty());
    // Classes that are called by numbers are names first.
    const ModelLabels numbered{{"1", "0"}, false};
    classes = classesOf(tableOf({{"1"}, {"0"}}), numbered, 0);
    QVERIFY(classes);
    QCOMPARE((*classes)[0], std::vector<std::uint32_t>{0});
}

void TestClassJob::labelsOfAModelAreReadFromItsConfiguration_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QStringList>("names"); ///< empty: an error
    QTest::newRow("names") << QByteArray(R"({"id2label": {"1": "b", "0": "a"}})")
                           << QStringList{"a", "b"};
    QTest::newRow("none") << QByteArray("{}") << QStringList{"LABEL_0", "LABEL_1"};
    QTest::newRow("number") << QByteArray(R"({"num_labels": 3})")
                            << QStringList{"LABEL_0", "LABEL_1", "LABEL_2"};
    QTest::newRow("a hole") << QByteArray(R"({"id2label": {"0": "a", "2": "b"}})") << QStringList();
    QTest::newRow("twice") << QByteArray(R"({"id2label": {"0": "a", "00": "b"}})") << QStringList();
    QTest::newRow("no text") << QByteArray(R"({"id2label": {"0": 1, "1": 2}})") << QStringList();
    QTest::newRow("regression") << QByteArray(R"({"problem_type": "regression"})") << QStringList();
    QTest::newRow("one output") << QByteArray(R"({"id2label": {"0": "LABEL_0"}})") << QStringList();
    QTest::newRow("no JSON") << QByteArray("{") << QStringList();
}

void TestClassJob::labelsOfAModelAreReadFromItsConfiguration()
{
    QFETCH(QByteArray, text);
    QFETCH(QStringList, names);
    const QTemporaryDir scratch;
    QFile file(scratch.filePath("config.json"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
    file.close();
    const auto labels = readModelLabels(scratch.path().toStdString());
    if (names.isEmpty()) {
        QVERIFY(!labels);
        QCOMPARE(labels.error().code, std::string("E-RUN-060"));
        return;
    }
    QVERIFY2(labels.has_value(), labels ? "" : labels.error().text().c_str());
    QStringList found;
    for (const std::string& name : labels->names)
        found += QString::fromStdString(name);
    QCOMPARE(found, names);
}

void TestClassJob::thePairIsCutAtTheLongerText_data()
{
    QTest::addColumn<quint64>("first");
    QTest::addColumn<quint64>("second");
    QTest::addColumn<quint64>("most");
    QTest::addColumn<quint64>("keptFirst");
    QTest::addColumn<quint64>("keptSecond");
    const auto row = [](quint64 a, quint64 b, quint64 most, quint64 x, quint64 y) {
        QTest::addRow("%llu and %llu to %llu", a, b, most) << a << b << most << x << y;
    };
    row(3, 4, 10, 3, 4);
    row(3, 20, 10, 3, 7);
    row(20, 3, 10, 7, 3);
    row(20, 30, 10, 5, 5);
    row(30, 20, 11, 6, 5);
    row(20, 30, 11, 5, 6);
    row(0, 30, 11, 0, 11);
}

void TestClassJob::thePairIsCutAtTheLongerText()
{
    QFETCH(quint64, first);
    QFETCH(quint64, second);
    QFETCH(quint64, most);
    QFETCH(quint64, keptFirst);
    QFETCH(quint64, keptSecond);
    const auto [a, b] = longestFirst(first, second, most);
    QCOMPARE(quint64{a}, keptFirst);
    QCOMPARE(quint64{b}, keptSecond);
}

QTEST_GUILESS_MAIN(TestClassJob)
#include "tst_class_job.moc"
