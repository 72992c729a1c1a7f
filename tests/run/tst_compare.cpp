// SPDX-License-Identifier: Apache-2.0
#include "run/compare.h"
#include "run/compare_text.h"

#include <nlohmann/json.hpp>

#include <QTest>
#include <QXmlStreamReader>

#include <cmath>

using namespace muster;
using namespace muster::run;

namespace {

/// What a made-up sample says.
struct Made {
    std::string prediction;
    double em = 0.0;
    double f1 = 0.0;
    std::uint64_t group = 0;
    double lossSum = 0.0;
    std::uint64_t tokens = 0;
    std::vector<float> losses;
    bool isComplete = true;
};

report::Metric metricOf(const char* key, const char* label, double value, const char* unit)
{
    report::Metric metric;
    metric.key = key;
    metric.label = label;
    metric.value = value;
    metric.unit = unit;
    return metric;
}

std::shared_ptr<report::RunResult> baseOf(const std::vector<Made>& samples, config::Task task)
{
    auto result = std::make_shared<report::RunResult>();
    result->runId = "run";
    result->task = task == config::Task::Qa ? "qa" : task == config::Task::Lm ? "lm" : "class";
    result->verdict = align::Verdict::Aligned;
    result->modelDigest = "model";
    result->dtype = "float32";
    result->dataDigest = hash128(std::string_view("data"));
    result->samples = samples.size();
    result->samplesDone = samples.size();
    result->forEachSample = [samples,
                             task](const std::function<void(const report::SampleRow&)>& visit) {
        for (std::size_t i = 0; i < samples.size(); ++i) {
            const Made& made = samples[i];
            report::SampleRow row;
            row.index = SampleIndex(i);
            const std::string id = "id" + std::to_string(i);
            const std::string group = "group " + std::to_string(made.group);
            row.id = id;
            row.hash = hash128(row.id);
            row.isComplete = made.isComplete;
            row.prediction = made.prediction;
            row.targets = {"right"};
            row.em = made.em;
            row.f1 = made.f1;
            if (task == config::Task::Qa)
                row.context = group;
            if (task == config::Task::Classification) {
                row.group = group;
                report::ClassFields fields;
                fields.references = {0};
                fields.probabilities = {std::exp(-made.lossSum), 1.0 - std::exp(-made.lossSum)};
                fields.loss = made.lossSum;
                row.classes = fields;
            }
            if (task == config::Task::Lm) {
                report::LmFields fields;
                fields.document = made.group;
                fields.lossSum = made.lossSum;
                fields.scored = made.tokens;
                fields.losses = made.losses;
                row.lm = fields;
            }
            visit(row);
        }
        return Status{};
    };
    return result;
}

ComparedRun runOf(const std::vector<Made>& samples, config::Task task, double ppl = 0.0)
{
    auto result = baseOf(samples, task);
    double em = 0.0;
    double f1 = 0.0;
    for (const Made& made : samples) {
        em += 100.0 * made.em / static_cast<double>(samples.size());
        f1 += 100.0 * made.f1 / static_cast<double>(samples.size());
    }
    if (task == config::Task::Qa)
        result->metrics = {metricOf("exact_match", "EM", em, "%"), metricOf("f1", "F1", f1, "%")};
    else if (task == config::Task::Lm)
        result->metrics = {metricOf("perplexity", "PPL", ppl, ""),
                           metricOf("loss", "loss", std::log(ppl), "")};
    else
        result->metrics = {metricOf("accuracy", "accuracy", em, "%"),
                           metricOf("macro_f1", "macro F1", em, "%")};
    config::RunConfig config;
    config.task = task;
    return *comparedOf(result, config, "folder");
}

/// `n` questions of which those listed are right.
std::vector<Made> answers(std::size_t n, std::size_t right, std::size_t from = 0)
{
    std::vector<Made> samples(n);
    for (std::size_t i = 0; i < n; ++i) {
        const bool isRight = i >= from && i < from + right;
        samples[i].prediction = isRight ? "right" : "wrong";
        samples[i].em = isRight ? 1.0 : 0.0;
        samples[i].f1 = isRight ? 1.0 : 0.25;
        samples[i].group = i;
    }
    return samples;
}

const MetricDifference& of(const PairComparison& pair, const char* key)
{
    for (const MetricDifference& one : pair.metrics)
        if (one.key == key)
            return one;
    qFatal("no such metric");
}

Comparison whole(const std::vector<ComparedRun>& runs)
{
    Comparison all;
    all.runs = runs;
    all.pairs.push_back(*comparePair(runs, 0, 1));
    return all;
}

} // namespace

class TestCompare : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatMayDiffer_data();
    void whatMayDiffer();
    void otherDataAreRefused();
    void anotherTokenizerCutsOtherWindows();
    void equalRunsAreEqual();
    void flipsAreCountedAndTested();
    void aDifferenceBeyondNoiseIsNamed();
    void questionsOnOneContextAreOneCluster();
    void missingSamplesAreLeftOut();
    void perplexitiesAreComparedByWindow();
    void tokensThatDifferAreCounted();
    void oneWindowHasNoInterval();
    void conditionsAreRead_data();
    void conditionsAreRead();
    void conditionsHoldByTheWholeInterval_data();
    void conditionsHoldByTheWholeInterval();
    void formatsEscape();
    void theDocumentIsStrictJson();
    void scalingIsAgainstTheFewestRanks();
};

void TestCompare::whatMayDiffer_data()
{
    QTest::addColumn<int>("task");
    QTest::addColumn<int>("change");
    QTest::addColumn<QString>("reason"); ///< empty: comparable
    const int qa = static_cast<int>(config::Task::Qa);
    const int lm = static_cast<int>(config::Task::Lm);
    QTest::newRow("nothing") << qa << 0 << QString();
    QTest::newRow("C-042 window") << lm << 1 << QString("window (lm.max_length)");
    QTest::newRow("C-042 stride") << lm << 2 << QString("stride (lm.stride)");
    QTest::newRow("C-042 protocol") << lm << 3 << QString("protocol (lm.protocol)");
    QTest::newRow("C-042 prefix") << lm << 4 << QString("prefix token (lm.bos)");
    QTest::newRow("C-042 truncation of questions") << qa << 5 << QString("window (qa.max_seq_len");
    QTest::newRow("C-025 abstentions") << qa << 6 << QString("abstention texts");
    QTest::newRow("C-027 normaliser") << qa << 7 << QString("normaliser (qa.normalizer)");
    QTest::newRow("windows of another task") << qa << 1 << QString();
    QTest::newRow("C-020 ranks, schedule, gather") << lm << 8 << QString();
    QTest::newRow("C-020 batch") << qa << 9 << QString();
    QTest::newRow("precision") << lm << 10 << QString();
    QTest::newRow("model") << qa << 11 << QString();
    QTest::newRow("intervals of the runs") << qa << 12 << QString();
    QTest::newRow("token losses kept") << lm << 13 << QString();
}

void TestCompare::whatMayDiffer()
{
    QFETCH(int, task);
    QFETCH(int, change);
    QFETCH(QString, reason);
    const auto kind = static_cast<config::Task>(task);
    std::vector<Made> samples = answers(8, 4);
    for (Made& one : samples)
        one.tokens = 4;
    std::vector<ComparedRun> runs{runOf(samples, kind, 2.0), runOf(samples, kind, 2.0)};
    config::RunConfig& config = runs[1].config;
    switch (change) {
    case 1:
        runs[0].config.lm.maxLength = 1024;
        config.lm.maxLength = 4096;
        break;
    case 2:
        config.lm.stride += 1;
        break;
    case 3:
        runs[0].config.lm.protocol = config::LmProtocol::HfDoc;
        config.lm.protocol = config::LmProtocol::LmEval;
        break;
    case 4:
        config.lm.bos = config::Switch::Off;
        break;
    case 5:
        config.qa.maxSeqLength += 1;
        break;
    case 6:
        config.qa.abstentions = {"none"};
        break;
    case 7:
        config.qa.normalizer = "zh-mixed/1";
        break;
    case 8:
        config.cluster.ranks = 7;
        config.plan.schedule = config::Schedule::Stride;
        config.cluster.gather = config::Gather::Collective;
        config.output = "/elsewhere";
        break;
    case 9:
        config.plan.unitTokens += 1024;
        break;
    case 10:
        config.model.dtype = config::Dtype::Bfloat16;
        break;
    case 11:
        config.model.path = "/other";
        break;
    case 12:
        config.metrics.confidence = 0.9;
        config.metrics.seed = 7;
        break;
    case 13:
        config.lm.tokenLosses = config::Switch::On;
        break;
    default:
        break;
    }
    const auto pair = comparePair(runs, 0, 1);
    QVERIFY(pair);
    QCOMPARE(pair->isComparable(), reason.isEmpty());
    const Comparison all = whole(runs);
    QCOMPARE(exitCodeOf(all), reason.isEmpty() ? 0 : 8);
    if (reason.isEmpty())
        return;
    QVERIFY2(QString::fromStdString(pair->reasons.front()).startsWith(reason),
             pair->reasons.front().c_str());
    // The figures are still shown, without a test.
    QVERIFY(!pair->metrics.empty());
    QVERIFY(pair->metrics.front().reading == Reading::NotTested);
    QVERIFY(conclusionOf(all).find("not comparable") != std::string::npos);
}

void TestCompare::otherDataAreRefused()
{
    std::vector<ComparedRun> runs{runOf(answers(8, 4), config::Task::Qa),
                                  runOf(answers(8, 4), config::Task::Qa)};
    auto other = baseOf(answers(8, 4), config::Task::Qa);
    other->dataDigest = hash128(std::string_view("other"));
    runs[1].result = other;
    QVERIFY(comparePair(runs, 0, 1)->reasons.front().starts_with("data: "));
    runs[1] = runOf(answers(8, 4), config::Task::Classification);
    QVERIFY(comparePair(runs, 0, 1)->reasons.front().starts_with("task: "));
    auto misaligned = baseOf(answers(8, 4), config::Task::Qa);
    misaligned->verdict = align::Verdict::Misaligned;
    runs[1] = *comparedOf(misaligned, runs[0].config, {});
    QVERIFY(!comparePair(runs, 0, 1)->isComparable());
}

void TestCompare::anotherTokenizerCutsOtherWindows()
{
    std::vector<Made> samples = answers(4, 2);
    for (Made& one : samples)
        one.tokens = 4;
    std::vector<ComparedRun> runs{runOf(samples, config::Task::Lm, 2.0)};
    samples[2].tokens = 5;
    runs.push_back(runOf(samples, config::Task::Lm, 2.0));
    const auto pair = comparePair(runs, 0, 1);
    QVERIFY(!pair->isComparable());
    QVERIFY(pair->reasons.front().starts_with("tokens: "));
}

void TestCompare::equalRunsAreEqual()
{
    for (const config::Task task :
         {config::Task::Qa, config::Task::Lm, config::Task::Classification}) {
        std::vector<Made> samples = answers(8, 4);
        for (Made& one : samples) {
            one.tokens = 4;
            one.lossSum = 0.5;
        }
        const std::vector<ComparedRun> runs{runOf(samples, task, 2.0), runOf(samples, task, 2.0)};
        Comparison all = whole(runs);
        for (const MetricDifference& one : all.pairs[0].metrics)
            QVERIFY2(one.reading == Reading::Equal, one.key.c_str());
        QCOMPARE(exitCodeOf(all), 0);
        all.preset = ComparePreset::Determinism;
        QVERIFY(conclusionOf(all).find("identical") != std::string::npos);
        QVERIFY(all.pairs[0].changes->indices.empty());
    }
}

void TestCompare::flipsAreCountedAndTested()
{
    // A has 0..9 right, B 2..17: 2 only in A, 8 only in B.
    const std::vector<ComparedRun> runs{runOf(answers(20, 10), config::Task::Qa),
                                        runOf(answers(20, 16, 2), config::Task::Qa)};
    const auto pair = comparePair(runs, 0, 1);
    QVERIFY(pair && pair->flips);
    QCOMPARE(pair->flips->table.onlyA, std::uint64_t{2});
    QCOMPARE(pair->flips->table.onlyB, std::uint64_t{8});
    QCOMPARE(pair->flips->table.bothRight, std::uint64_t{8});
    QCOMPARE(pair->flips->table.bothWrong, std::uint64_t{2});
    // scipy.stats.binomtest(2, 10).pvalue
    QVERIFY(std::abs(pair->flips->table.pValue - 0.109375) < 1e-12);
    const MetricDifference& em = of(*pair, "exact_match");
    QCOMPARE(em.pValue.value_or(0.0), pair->flips->table.pValue);
    QVERIFY(em.reading == Reading::WithinNoise);
    QVERIFY(std::abs(em.difference.value_or(0.0) - 30.0) < 1e-9);
    QCOMPARE(pair->flips->onlyA, (std::vector<std::uint64_t>{0, 1}));
    QCOMPARE(pair->changes->texts, std::uint64_t{10});
    QCOMPARE(pair->changes->scores, std::uint64_t{10});
    QVERIFY(conclusionOf(whole(runs)).find("within noise") != std::string::npos);
}

void TestCompare::aDifferenceBeyondNoiseIsNamed()
{
    const std::vector<ComparedRun> runs{runOf(answers(40, 30), config::Task::Classification),
                                        runOf(answers(40, 10), config::Task::Classification)};
    const auto pair = comparePair(runs, 0, 1);
    QVERIFY(of(*pair, "accuracy").reading == Reading::Worse);
    QVERIFY(of(*pair, "accuracy").high.value_or(0.0) < 0.0);
    QVERIFY(of(*pair, "accuracy").bootstrapHigh.value_or(0.0) < 0.0);
    QVERIFY(of(*pair, "macro_f1").reading == Reading::NotTested);
    QVERIFY(!of(*pair, "macro_f1").reason.empty());
    QCOMPARE(pair->flips->label, std::string("accuracy"));
}

void TestCompare::questionsOnOneContextAreOneCluster()
{
    std::vector<Made> a = answers(40, 20);
    std::vector<Made> b = answers(40, 28);
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i].group = b[i].group = i / 8;
    const std::vector<ComparedRun> runs{runOf(a, config::Task::Qa), runOf(b, config::Task::Qa)};
    const auto pair = comparePair(runs, 0, 1);
    const MetricDifference& em = of(*pair, "exact_match");
    QCOMPARE(em.clusters, std::uint64_t{5});
    // As if independent the exact test sees 8 flips of one kind; by contexts there are only two.
    QVERIFY(pair->flips->table.pValue < 0.01);
    QVERIFY(em.pValue.value_or(0.0) > 0.05);
    QVERIFY(em.reading == Reading::WithinNoise);
}

void TestCompare::missingSamplesAreLeftOut()
{
    std::vector<Made> partial = answers(20, 10);
    partial[3].isComplete = false;
    const std::vector<ComparedRun> runs{runOf(answers(20, 10), config::Task::Qa),
                                        runOf(partial, config::Task::Qa)};
    const auto pair = comparePair(runs, 0, 1);
    QCOMPARE(pair->shared, std::uint64_t{19});
    QVERIFY(!pair->notes.empty());
    QCOMPARE(of(*pair, "exact_match").samples, std::uint64_t{19});
}

void TestCompare::perplexitiesAreComparedByWindow()
{
    std::vector<Made> a(50);
    std::vector<Made> b(50);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i].tokens = b[i].tokens = 10;
        a[i].lossSum = 10.0 * (2.0 + 0.3 * std::sin(static_cast<double>(i)));
        b[i].lossSum = a[i].lossSum + 0.1 + 0.01 * std::cos(static_cast<double>(i));
        a[i].losses = b[i].losses = std::vector<float>(10, 2.0F);
        b[i].losses[0] = 2.5F;
    }
    double sumA = 0.0;
    double sumB = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sumA += a[i].lossSum;
        sumB += b[i].lossSum;
    }
    const std::vector<ComparedRun> runs{runOf(a, config::Task::Lm, std::exp(sumA / 500.0)),
                                        runOf(b, config::Task::Lm, std::exp(sumB / 500.0))};
    const auto pair = comparePair(runs, 0, 1);
    QVERIFY(pair && pair->isComparable());
    const MetricDifference& ppl = of(*pair, "perplexity");
    QVERIFY(ppl.ratio.has_value());
    QVERIFY(std::abs(ppl.ratio->value - std::exp((sumB - sumA) / 500.0)) < 1e-12);
    // A higher perplexity is worse, though the spread between windows is thirty times the
    // difference: it is paired.
    QVERIFY(ppl.reading == Reading::Worse);
    QVERIFY(ppl.low.value_or(0.0) > 0.0);
    QVERIFY(of(*pair, "loss").difference.value_or(0.0) > 0.0);
}

void TestCompare::tokensThatDifferAreCounted()
{
    std::vector<Made> a(4);
    for (Made& one : a) {
        one.tokens = 5;
        one.losses = {1.0F, 2.0F, 0.5F, 1.5F, 1.0F};
        one.lossSum = 6.0;
    }
    std::vector<Made> b = a;
    b[1].losses[2] = 0.75F;
    b[1].lossSum = 6.25;
    std::vector<ComparedRun> runs{runOf(a, config::Task::Lm, 2.0), runOf(b, config::Task::Lm, 2.1)};
    auto pair = comparePair(runs, 0, 1);
    QCOMPARE(pair->changes->tokens.value_or(0), std::uint64_t{20});
    QCOMPARE(pair->changes->tokenLosses, std::uint64_t{1});
    QCOMPARE(pair->changes->greatestTokenLoss, 0.25);
    QCOMPARE(pair->changes->losses, std::uint64_t{1});
    QCOMPARE(pair->changes->greatestAt.value_or(9), std::uint64_t{1});
    QVERIFY(std::abs(pair->changes->greatestLoss - 0.05) < 1e-12);
    QVERIFY(pair->changes->byTokens.has_value());
    // A run that kept no token losses has nothing to compare by token.
    for (Made& one : b)
        one.losses.clear();
    runs[1] = runOf(b, config::Task::Lm, 2.1);
    QVERIFY(!comparePair(runs, 0, 1)->changes->tokens.has_value());
}

void TestCompare::oneWindowHasNoInterval()
{
    // C-021: one value has no spread.
    std::vector<Made> a(1);
    a[0].tokens = 5;
    a[0].lossSum = 6.0;
    std::vector<Made> b = a;
    b[0].lossSum = 7.0;
    const std::vector<ComparedRun> runs{runOf(a, config::Task::Lm, 3.3),
                                        runOf(b, config::Task::Lm, 4.1)};
    const auto pair = comparePair(runs, 0, 1);
    QVERIFY(of(*pair, "perplexity").reading == Reading::NotTested);
    QVERIFY(!of(*pair, "perplexity").reason.empty());
    const auto one = comparePair(std::vector<ComparedRun>{runOf(answers(1, 1), config::Task::Qa),
                                                          runOf(answers(1, 0), config::Task::Qa)},
                                 0, 1);
    QVERIFY(of(*one, "f1").reading == Reading::NotTested);
    QVERIFY(!of(*one, "f1").low.has_value());
}

void TestCompare::conditionsAreRead_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("metric"); ///< empty: refused
    QTest::addColumn<double>("value");
    QTest::addColumn<double>("confidence"); ///< 0: none
    QTest::newRow("whole") << "em < -0.5pp @ 95%"
                           << "em" << -0.5 << 0.95;
    QTest::newRow("close") << "em<-0.5pp@95%"
                           << "em" << -0.5 << 0.95;
    QTest::newRow("plain") << "ppl > 0.1"
                           << "ppl" << 0.1 << 0.0;
    QTest::newRow("share") << "PPL >= +1 % @ 99.9 %"
                           << "ppl" << 1.0 << 0.999;
    QTest::newRow("label") << "macro F1 < 0"
                           << "macro f1" << 0.0 << 0.0;
    QTest::newRow("count") << "texts_changed > 0"
                           << "texts_changed" << 0.0 << 0.0;
    QTest::newRow("equal") << "em != 0"
                           << "em" << 0.0 << 0.0;
    for (const char* bad :
         {"", "em", "< 3", "em <", "em < x", "em < 1 @", "em < 1 @ 95", "em < 1 @ 0%",
          "em < 1 @ 100%", "em < 1 2", "em == 1 @ 95%", "em ! 1", "em < nan", "em < 1pp pp"})
        QTest::newRow(bad) << QString::fromLatin1(bad) << QString() << 0.0 << 0.0;
}

void TestCompare::conditionsAreRead()
{
    QFETCH(QString, text);
    QFETCH(QString, metric);
    QFETCH(double, value);
    QFETCH(double, confidence);
    const auto made = parseFailCondition(text.toStdString());
    QCOMPARE(made.has_value(), !metric.isEmpty());
    if (!made) {
        QCOMPARE(made.error().code, std::string("E-RUN-070"));
        return;
    }
    QCOMPARE(QString::fromStdString(made->metric), metric);
    QCOMPARE(made->value, value);
    QVERIFY(std::abs(made->confidence.value_or(0.0) - confidence) < 1e-12);
}

void TestCompare::conditionsHoldByTheWholeInterval_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("holds"); ///< −1: refused
    // B has 10 of 40 where A has 30: −50 points, 95 % interval about −66 to −34.
    QTest::newRow("far below") << "em < -0.5pp @ 95%" << 1;
    QTest::newRow("within the interval") << "em < -40pp @ 95%" << 0;
    QTest::newRow("the difference alone") << "em < -40pp" << 1;
    QTest::newRow("in percent of A") << "em < -60%" << 1;
    QTest::newRow("in percent of A, not met") << "em < -70%" << 0;
    QTest::newRow("other side") << "em > 0.5pp @ 95%" << 0;
    QTest::newRow("surer") << "em < -30pp @ 99.99%" << 0;
    QTest::newRow("texts") << "texts_changed > 19" << 1;
    QTest::newRow("scores") << "scores_changed > 20" << 0;
    QTest::newRow("no such metric") << "bleu < 0" << -1;
    QTest::newRow("a count with a confidence") << "texts_changed > 0 @ 95%" << -1;
}

void TestCompare::conditionsHoldByTheWholeInterval()
{
    QFETCH(QString, text);
    QFETCH(int, holds);
    const std::vector<ComparedRun> runs{runOf(answers(40, 30), config::Task::Qa),
                                        runOf(answers(40, 10), config::Task::Qa)};
    Comparison all = whole(runs);
    const auto condition = parseFailCondition(text.toStdString());
    QVERIFY(condition);
    auto outcome = checkCondition(*condition, runs, all.pairs[0]);
    QCOMPARE(outcome.has_value(), holds >= 0);
    if (!outcome) {
        QCOMPARE(outcome.error().code, std::string("E-RUN-071"));
        return;
    }
    QCOMPARE(outcome->holds, holds == 1);
    all.conditions.push_back(*outcome);
    QCOMPARE(exitCodeOf(all), holds == 1 ? 7 : 0);
}

void TestCompare::formatsEscape()
{
    std::vector<Made> a = answers(20, 10);
    std::vector<Made> b = answers(20, 12);
    b[0].prediction = "a|b_c, \"50 %\" & <more>\nnext";
    const std::vector<ComparedRun> runs{runOf(a, config::Task::Qa), runOf(b, config::Task::Qa)};
    Comparison all = whole(runs);
    const std::string markdown = textOf(all, CompareFormat::Markdown);
    QVERIFY(markdown.find("a\\|b\\_c") != std::string::npos);
    QVERIFY(markdown.find("\\<more>") != std::string::npos);
    const std::string latex = textOf(all, CompareFormat::Latex);
    QVERIFY(latex.find("a|b\\_c, \"50 \\%\" \\& <more> next") != std::string::npos);
    all.preset = ComparePreset::Determinism;
    const std::string csv = textOf(all, CompareFormat::Csv);
    QVERIFY(csv.find("\"a|b_c, \"\"50 %\"\" & <more> next\"") != std::string::npos);
    all.preset = ComparePreset::Metrics;
    QVERIFY(textOf(all, CompareFormat::Csv).starts_with("metric,A,B,"));
    const std::string text = textOf(all, CompareFormat::Text);
    QVERIFY(text.find("can be compared") < text.find("Metrics"));
    QVERIFY(
        QString::fromStdString(text).trimmed().endsWith(QString::fromStdString(conclusionOf(all))));
}

void TestCompare::theDocumentIsStrictJson()
{
    std::vector<Made> samples(3);
    for (Made& one : samples) {
        one.tokens = 2;
        one.lossSum = 2000.0;
    }
    // C-065: an infinite perplexity is null.
    const std::vector<ComparedRun> runs{
        runOf(samples, config::Task::Lm, std::numeric_limits<double>::infinity()),
        runOf(samples, config::Task::Lm, std::numeric_limits<double>::infinity())};
    const auto json = jsonOf(whole(runs));
    QVERIFY(json["comparable"].get<bool>());
    QVERIFY(json["pairs"][0]["metrics"][0]["a"].is_null());
    QVERIFY(json["pairs"][0]["kl_nats"].is_null());
    QCOMPARE(json["exit"].get<int>(), 0);
    QVERIFY(nlohmann::json::accept(json.dump()));
}

void TestCompare::scalingIsAgainstTheFewestRanks()
{
    std::vector<ComparedRun> runs;
    for (const auto& [ranks, seconds] :
         {std::pair<std::uint32_t, double>{4, 3.0}, {1, 10.0}, {2, 5.0}}) {
        auto result = baseOf(answers(100, 50), config::Task::Qa);
        result->ranks = ranks;
        result->sinceFirstUnitSeconds = seconds;
        for (std::uint32_t r = 0; r < ranks; ++r) {
            report::RankTiming timing;
            timing.rank = RankId(r);
            timing.realTokens = 1000 / ranks;
            timing.computeNs = 80;
            timing.waitNs = 15;
            timing.transferNs = 5;
            timing.elapsedNs = 100;
            result->timing.push_back(timing);
        }
        runs.push_back(*comparedOf(result, {}, {}));
    }
    const auto rows = scalingOf(runs);
    QCOMPARE(rows.size(), std::size_t{3});
    QCOMPARE(rows[0].ranks, 1U);
    QCOMPARE(rows[0].speedUp, 1.0);
    QCOMPARE(rows[1].speedUp, 2.0);
    QCOMPARE(rows[1].efficiency, 1.0);
    QVERIFY(std::abs(rows[2].speedUp - 10.0 / 3.0) < 1e-12);
    QVERIFY(std::abs(rows[2].efficiency - 10.0 / 12.0) < 1e-12);
    QVERIFY(std::abs(rows[2].waitShare - 0.15) < 1e-12);
    QVERIFY(std::abs(rows[2].transferShare - 0.05) < 1e-12);
    QCOMPARE(rows[2].imbalance, 1.0);
    const std::string svg = scalingSvg(rows, "a <model> & more");
    QXmlStreamReader reader(QString::fromStdString(svg));
    while (!reader.atEnd())
        reader.readNext();
    QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
    QVERIFY(scalingSvg({}, "nothing").find("</svg>") != std::string::npos);
}

QTEST_GUILESS_MAIN(TestCompare)
#include "tst_compare.moc"
