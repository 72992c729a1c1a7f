// SPDX-License-Identifier: Apache-2.0
#include "run/lm_job.h"

#include "config/settings.h"
#include "support/shared_data.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

using namespace muster;
using namespace muster::run;

namespace {

config::RunConfig lmConfig(const QTemporaryDir& scratch, const QByteArray& text)
{
    config::RunConfig config;
    config.task = config::Task::Lm;
    config.model.path = muster::test::sharedPath("data/models/stories260K-hf");
    const QString path = scratch.filePath("text.txt");
    QFile file(path);
    if (file.open(QIODevice::WriteOnly))
        file.write(text);
    config.data.files = {path.toStdString()};
    return config;
}

const LmJob& lm(const Job& job)
{
    return dynamic_cast<const LmJob&>(job);
}

/// Outputs made up: each target of window w has a loss of 1 + w/8.
wire::OutputBlock madeUpBlock(const Job& job, UnitId unit)
{
    wire::OutputBlock block;
    block.unit = unit;
    for (const std::uint64_t number : job.units()->items(unit)) {
        const std::uint32_t scored = lm(job).windows()[static_cast<std::size_t>(number)].scored();
        wire::LmOutput output;
        output.scored = scored;
        output.greedyHits = scored / 2;
        output.lossSum = static_cast<double>(scored) * (1.0 + static_cast<double>(number) / 8.0);
        wire::Output one;
        one.item = ItemIndex(number);
        one.hash = job.itemHashes()[static_cast<std::size_t>(number)];
        one.payload = wire::encodeLm(output);
        block.outputs.push_back(std::move(one));
    }
    return block;
}

const report::Metric* metric(const report::RunResult& result, const std::string& key)
{
    for (const report::Metric& one : result.metrics)
        if (one.key == key)
            return &one;
    return nullptr;
}

const QByteArray story =
    "Once upon a time, there was a little girl named Lily.\n\n"
    "She loved to play outside in the park.  One day, she saw a big red ball.\n";

} // namespace

class TestLmJob : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theConfigurationNamesTheProtocolsOfTheTask();
    void wordsAndBytesOfTheWindowsAreThoseOfTheText();
    void lossesBecomeOnePerplexity();
    void aRunFileGivesTheSameJobBack();
    void nothingToScoreIsAnError_data();
    void nothingToScoreIsAnError();
    void aWindowLongerThanTheModelIsAnError();
    void aWindowThatFailedIsNamedAndNotAveragedIn();
    void onlyTheFirstWindowsAreKeptWhenAsked();
};

void TestLmJob::theConfigurationNamesTheProtocolsOfTheTask()
{
    const config::Setting* setting = config::findSetting("lm.protocol");
    QVERIFY(setting != nullptr);
    const auto names = task::lmProtocolNames();
    QCOMPARE(setting->choices.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        QCOMPARE(std::string(setting->choices[i]), std::string(names[i]));
}

void TestLmJob::wordsAndBytesOfTheWindowsAreThoseOfTheText()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/models/stories260K-hf");
    const QTemporaryDir scratch;
    config::RunConfig config = lmConfig(scratch, story);
    config.lm.protocol = config::LmProtocol::LmEval;
    config.lm.maxLength = 8;
    const auto job = Job::prepare(config);
    QVERIFY2(job.has_value(), job ? "" : job.error().text().c_str());
    QVERIFY((*job)->samples() > 3);
    metrics::TextCounts sum;
    for (const LmJob::Window& window : lm(**job).windows()) {
        sum.words += window.words;
        sum.bytes += window.endByte - window.beginByte;
        sum.characters += window.characters;
    }
    const metrics::TextCounts whole = metrics::countText(std::string_view(story));
    QCOMPARE(sum.words, whole.words);
    QCOMPARE(sum.bytes, whole.bytes);
    QCOMPARE(sum.characters, whole.characters);
}

void TestLmJob::lossesBecomeOnePerplexity()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/models/stories260K-hf");
    const QTemporaryDir scratch;
    config::RunConfig config = lmConfig(scratch, story);
    config.lm.protocol = config::LmProtocol::NonOverlapping;
    config.lm.maxLength = 16;
    auto job = Job::prepare(config);
    QVERIFY2(job.has_value(), job ? "" : job.error().text().c_str());
    double loss = 0.0;
    double tokens = 0.0;
    for (std::uint64_t u = (*job)->units()->size(); u-- > 0;)
        (*job)->accept(madeUpBlock(**job, UnitId(u)));
    for (std::size_t i = 0; i < (*job)->samples(); ++i) {
        const double scored = lm(**job).windows()[i].scored();
        loss += scored * (1.0 + static_cast<double>(i) / 8.0);
        tokens += scored;
    }
    report::RunResult result;
    std::vector<std::uint64_t> order;
    QVERIFY(
        (*job)->summarize(result, [&order](SampleIndex index) { order.push_back(index.value); }));
    QCOMPARE(order.size(), (*job)->samples());
    QCOMPARE(result.samplesDone, std::uint64_t{(*job)->samples()});
    const report::Metric* ppl = metric(result, "perplexity");
    QVERIFY(ppl != nullptr && ppl->isHeadline);
    QCOMPARE(ppl->value.value_or(0.0), std::exp(loss / tokens));
    QCOMPARE(ppl->n, static_cast<std::uint64_t>(tokens));
    QVERIFY(!result.procedure.empty());
    QVERIFY(!result.ledger.empty());
    const auto soFar = (*job)->soFar();
    QCOMPARE(soFar.front().value.value_or(0.0), std::exp(loss / tokens));
    // A mean of the windows' perplexities is recognised.
    double mean = 0.0;
    for (std::size_t i = 0; i < (*job)->samples(); ++i)
        mean += std::exp(1.0 + static_cast<double>(i) / 8.0);
    mean /= static_cast<double>((*job)->samples());
    const auto matches = lm(**job).explain(mean, 1e-9);
    QVERIFY(matches);
    QVERIFY(matches->front().isMatch && !matches->front().entry.isRight);
}

void TestLmJob::aRunFileGivesTheSameJobBack()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/models/stories260K-hf");
    const QTemporaryDir scratch;
    config::RunConfig config = lmConfig(scratch, story + "\n" + story);
    config.lm.documents = config::Documents::BlankLines;
    config.lm.protocol = config::LmProtocol::HfFixed;
    config.lm.maxLength = 12;
    config.lm.stride = 5;
    auto job = Job::prepare(config);
    QVERIFY2(job.has_value(), job ? "" : job.error().text().c_str());
    auto file = store::RunFile::create(scratch.filePath("run.muster").toStdString());
    QVERIFY(file);
    const Status saved = (*job)->save(*file, {});
    QVERIFY2(saved.has_value(), saved ? "" : saved.error().text().c_str());
    auto loaded = Job::load(config, *file);
    QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
    QVERIFY((*loaded)->digests() == (*job)->digests());
    QCOMPARE(lm(**loaded).windows(), lm(**job).windows());
    QCOMPARE((*loaded)->longestItem(), (*job)->longestItem());
    for (std::uint64_t u = 0; u < (*job)->units()->size(); ++u) {
        const auto block = madeUpBlock(**job, UnitId(u));
        (*job)->accept(block);
        (*loaded)->accept(block);
    }
    report::RunResult first;
    report::RunResult second;
    QVERIFY((*job)->summarize(first, [](SampleIndex) {}));
    QVERIFY((*loaded)->summarize(second, [](SampleIndex) {}));
    QCOMPARE(second.procedure, first.procedure);
    QCOMPARE(metric(second, "perplexity")->value, metric(first, "perplexity")->value);
    QStringList rows;
    QStringList again;
    QVERIFY((*job)->forEachSample([&](const report::SampleRow& row) {
        rows += QString::fromStdString(std::string(row.id) + std::string(row.context));
    }));
    QVERIFY((*loaded)->forEachSample([&](const report::SampleRow& row) {
        again += QString::fromStdString(std::string(row.id) + std::string(row.context));
    }));
    QCOMPARE(again, rows);
}

void TestLmJob::nothingToScoreIsAnError_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("code");
    QTest::newRow("empty file") << QByteArray() << QByteArray("E-DATA-001");
    QTest::newRow("one token") << QByteArray("a") << QByteArray("E-RUN-005");
    QTest::newRow("broken UTF-8") << QByteArray("abc \xFF def") << QByteArray("E-DATA-002");
}

void TestLmJob::nothingToScoreIsAnError()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/models/stories260K-hf");
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, code);
    const QTemporaryDir scratch;
    config::RunConfig config = lmConfig(scratch, text);
    config.lm.bos = config::Switch::Off;
    if (text == "a")
        config.lm.protocol = config::LmProtocol::NonOverlapping;
    const auto job = Job::prepare(config);
    if (job)
        QSKIP("the tokenizer makes more than one token of it");
    QCOMPARE(QByteArray::fromStdString(job.error().code), code);
}

void TestLmJob::aWindowLongerThanTheModelIsAnError()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/models/stories260K-hf");
    const QTemporaryDir scratch;
    config::RunConfig config = lmConfig(scratch, story);
    config.lm.maxLength = 100000;
    const auto job = Job::prepare(config);
    QVERIFY(!job);
    QCOMPARE(job.error().code, std::string("E-RUN-006"));
}

void TestLmJob::aWindowThatFailedIsNamedAndNotAveragedIn()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/models/stories260K-hf");
    const QTemporaryDir scratch;
    config::RunConfig config = lmConfig(scratch, story);
    config.lm.maxLength = 16;
    config.lm.protocol = config::LmProtocol::NonOverlapping;
    auto job = Job::prepare(config);
    QVERIFY(job);
    for (std::uint64_t u = 0; u < (*job)->units()->size(); ++u) {
        wire::OutputBlock block = madeUpBlock(**job, UnitId(u));
        for (wire::Output& output : block.outputs)
            if (output.item.value == 1) {
                output.flags = wire::errorFlag;
                const std::string text = "the loss of position 3 is not a number";
                const auto bytes = std::as_bytes(std::span(text));
                output.payload.assign(bytes.begin(), bytes.end());
            }
        (*job)->accept(block);
    }
    report::RunResult result;
    QVERIFY((*job)->summarize(result, [](SampleIndex) {}));
    QCOMPARE(result.samplesDone, std::uint64_t{(*job)->samples() - 1});
    QVERIFY(std::isfinite(metric(result, "perplexity")->value.value_or(NAN)));
    QVERIFY(std::any_of(result.hints.begin(), result.hints.end(), [](const std::string& hint) {
        return hint.find("window 1 ") != std::string::npos &&
               hint.find("position 3") != std::string::npos;
    }));
}

void TestLmJob::onlyTheFirstWindowsAreKeptWhenAsked()
{
    MUSTER_SHARED_OR_SKIP(folder, "data/models/stories260K-hf");
    const QTemporaryDir scratch;
    config::RunConfig config = lmConfig(scratch, story);
    config.lm.maxLength = 8;
    config.lm.windows = 2;
    const auto job = Job::prepare(config);
    QVERIFY(job);
    QCOMPARE((*job)->samples(), std::size_t{2});
}

QTEST_GUILESS_MAIN(TestLmJob)
#include "tst_lm_job.moc"
