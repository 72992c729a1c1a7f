// SPDX-License-Identifier: Apache-2.0
#include "run/qa_job.h"

#include "support/shared_data.h"

#include <QCryptographicHash>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>

using namespace muster;
using namespace muster::run;

namespace {

config::RunConfig demoConfig()
{
    config::RunConfig config;
    config.model.path = MUSTER_DEMO "/minilm-qa";
    config.data.files = {MUSTER_DEMO "/xquad.en.json"};
    return config;
}

/// SHA-256 over the ids of all items in order, joined, as little-endian int32.
QByteArray featureDigest(const plan::ItemTable& items)
{
    QCryptographicHash hash(QCryptographicHash::Sha256);
    for (std::uint64_t i = 0; i < items.size(); ++i) {
        const auto tokens = items.tokens(ItemIndex(i));
        hash.addData(QByteArray::fromRawData(
            static_cast<const char*>(static_cast<const void*>(tokens.data())),
            static_cast<qsizetype>(tokens.size_bytes())));
    }
    return hash.result().toHex();
}

const QaJob& qa(const Job& job)
{
    return dynamic_cast<const QaJob&>(job);
}

/// Outputs of every item, made up: the answer is the first context token.
wire::OutputBlock madeUpBlock(const Job& job, UnitId unit)
{
    wire::OutputBlock block;
    block.unit = unit;
    for (const std::uint64_t number : job.units()->items(unit)) {
        const QaItem& item = qa(job).qaItems()[static_cast<std::size_t>(number)];
        wire::QaOutput output;
        output.startPosition = {static_cast<std::uint16_t>(item.contextAt), 0};
        output.startLogit = {2.0F, 1.0F};
        output.endPosition = {static_cast<std::uint16_t>(item.contextAt), 0};
        output.endLogit = {3.0F, 1.0F};
        wire::Output one;
        one.item = ItemIndex(number);
        one.hash = job.itemHashes()[static_cast<std::size_t>(number)];
        one.payload = wire::encodeQa(output);
        block.outputs.push_back(std::move(one));
    }
    return block;
}

QStringList texts(const Job& base)
{
    QStringList found;
    const QaJob& job = qa(base);
    const auto summary = job.score([&](const data::Sample& sample, const QaSampleResult& result) {
        found += QString::fromStdString(sample.id + "=" + result.prediction.text);
    });
    if (!summary)
        found += QString::fromStdString(summary.error().text());
    return found;
}

} // namespace

class TestQaJob : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void featuresAreThoseOfTheGolden_data();
    void featuresAreThoseOfTheGolden();
    void theDemoHasItsFeatures();
    void theOrderOfArrivalDoesNotMatter();
    void aRunFileGivesTheSameJobBack();
    void missingOutputsScoreNothingAndAreCounted();
    void aQuestionThatLeavesNoRoomIsNamed();
    void fewerSamplesAreTheFirstOnes();
};

void TestQaJob::featuresAreThoseOfTheGolden_data()
{
    QTest::addColumn<QByteArray>("data");
    QTest::addColumn<quint64>("items");
    QTest::addColumn<quint64>("tokens");
    QTest::addColumn<QByteArray>("digest");
    // goldens/minilm-qa/metrics.json
    QTest::newRow("squad 1.1 dev, first file")
        << QByteArray("data/squad-v1.1-dev/dev-v1.1.json") << quint64{5103} << quint64{910342}
        << QByteArray("8b98a5004a1637b7194b15c587b496e65e983d9aa3f43a3a799f8caff7eae64e");
    QTest::newRow("squad 2.0 dev, part")
        << QByteArray("data/squad-v2.0-dev-part/dev-v2.0.json") << quint64{6284} << quint64{1166481}
        << QByteArray("1cd7a72fb25af101233872b2e709d53d2b03adb4a5e6210862398f58792ce187");
}

void TestQaJob::featuresAreThoseOfTheGolden()
{
    QFETCH(QByteArray, data);
    QFETCH(quint64, items);
    QFETCH(quint64, tokens);
    QFETCH(QByteArray, digest);
    const std::filesystem::path path = muster::test::sharedPath(data.constData());
    if (!std::filesystem::exists(path))
        QSKIP("shared test data are absent: set MUSTER_SHARED");
    config::RunConfig config = demoConfig();
    config.data.files = {path};
    const auto job = Job::prepare(config);
    QVERIFY2(job.has_value(), job ? "" : job.error().text().c_str());
    QCOMPARE((*job)->items()->size(), std::size_t{items});
    QCOMPARE((*job)->items()->totalTokens(), std::uint64_t{tokens});
    QCOMPARE(featureDigest(*(*job)->items()), digest);
}

void TestQaJob::theDemoHasItsFeatures()
{
    const auto job = Job::prepare(demoConfig());
    QVERIFY2(job.has_value(), job ? "" : job.error().text().c_str());
    QCOMPARE((*job)->samples(), std::size_t{1190});
    QCOMPARE((*job)->items()->size(), std::size_t{1219});
    QCOMPARE((*job)->items()->totalTokens(), std::uint64_t{219249});
    QCOMPARE(featureDigest(*(*job)->items()),
             QByteArray("d925bf725be3321372a208b3a0d5d3f472b7bafce3dca22ed50ec8f426212750"));
    QVERIFY((*job)->longestItem() <= 384);
}

void TestQaJob::theOrderOfArrivalDoesNotMatter()
{
    config::RunConfig config = demoConfig();
    config.data.limit = 60;
    auto forward = Job::prepare(config);
    auto backward = Job::prepare(config);
    QVERIFY(forward && backward);
    const std::uint64_t units = (*forward)->units()->size();
    for (std::uint64_t u = 0; u < units; ++u) {
        (*forward)->accept(madeUpBlock(**forward, UnitId(u)));
        (*backward)->accept(madeUpBlock(**backward, UnitId(units - 1 - u)));
        (*backward)->accept(
            madeUpBlock(**backward, UnitId(units - 1 - u))); // a second one is ignored
    }
    QCOMPARE((*forward)->completeSamples(), std::uint64_t{60});
    QCOMPARE(texts(**forward), texts(**backward));
    QCOMPARE((*forward)->soFar()[1].value, (*backward)->soFar()[1].value);
}

void TestQaJob::aRunFileGivesTheSameJobBack()
{
    QTemporaryDir folder;
    config::RunConfig config = demoConfig();
    config.data.limit = 40;
    auto job = Job::prepare(config);
    QVERIFY(job);
    auto file = store::RunFile::create(folder.filePath("run.muster").toStdString());
    QVERIFY(file);
    QVERIFY((*job)->save(*file, {}));
    auto loaded = Job::load(config, *file);
    QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
    QVERIFY((*loaded)->digests() == (*job)->digests());
    QVERIFY(std::ranges::equal((*loaded)->itemHashes(), (*job)->itemHashes()));
    for (std::uint64_t u = 0; u < (*job)->units()->size(); ++u) {
        const auto block = madeUpBlock(**job, UnitId(u));
        (*job)->accept(block);
        (*loaded)->accept(block);
    }
    QCOMPARE(texts(**loaded), texts(**job));
}

void TestQaJob::missingOutputsScoreNothingAndAreCounted()
{
    config::RunConfig config = demoConfig();
    config.data.limit = 10;
    auto job = Job::prepare(config);
    QVERIFY(job);
    const auto summary = qa(**job).score({});
    QVERIFY(summary);
    QCOMPARE(summary->complete, std::uint64_t{0});
    QCOMPARE(summary->totals.missing, std::uint64_t{10});
    QCOMPARE(summary->totals.all.exact, std::optional(0.0));
}

void TestQaJob::aQuestionThatLeavesNoRoomIsNamed()
{
    config::RunConfig config = demoConfig();
    config.qa.maxSeqLength = 16;
    config.qa.docStride = 4;
    const auto job = Job::prepare(config);
    QVERIFY(!job);
    QVERIFY(job.error().message.find("question ") != std::string::npos);
    QVERIFY(job.error().code.starts_with("E-TASK-"));
}

void TestQaJob::fewerSamplesAreTheFirstOnes()
{
    config::RunConfig config = demoConfig();
    const auto whole = Job::prepare(config);
    config.data.limit = 7;
    const auto part = Job::prepare(config);
    QVERIFY(whole && part);
    QCOMPARE((*part)->samples(), std::size_t{7});
    for (std::size_t i = 0; i < 7; ++i)
        QCOMPARE(qa(**part).dataset().samples[i].hash, qa(**whole).dataset().samples[i].hash);
}

QTEST_GUILESS_MAIN(TestQaJob)
#include "tst_qa_job.moc"
