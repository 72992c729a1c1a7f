// SPDX-License-Identifier: Apache-2.0
#include "metrics/squad.h"
#include "support/shared_data.h"

#include <QtTest>

#include <nlohmann/json.hpp>

#include <deque>
#include <fstream>

using namespace muster;
using namespace muster::metrics;

namespace {

using Json = nlohmann::json;

Json readJson(const std::filesystem::path& path)
{
    std::ifstream file(path);
    return Json::parse(file);
}

AnswerScorer scorerFor(const Json& set, SquadVersion version, Normalizer normalizer,
                       std::span<const std::string> abstentions = {})
{
    AnswerScorer scorer(version, normalizer, abstentions);
    for (const auto& article : set.at("data"))
        for (const auto& paragraph : article.at("paragraphs"))
            for (const auto& qa : paragraph.at("qas")) {
                std::vector<std::string_view> golds;
                for (const auto& answer : qa.at("answers"))
                    golds.push_back(answer.at("text").get_ref<const std::string&>());
                const auto added =
                    scorer.addQuestion(qa.at("id").get_ref<const std::string&>(), golds);
                Q_ASSERT(added);
            }
    return scorer;
}

std::vector<Prediction> predictionsOf(const Json& file)
{
    std::vector<Prediction> predictions;
    for (const auto& [id, text] : file.items())
        predictions.push_back({id, text.get_ref<const std::string&>()});
    return predictions;
}

QuestionScore made(bool answerable, double value, bool nothing = false)
{
    return {.em = value, .f1 = value, .answerable = answerable, .predictedNothing = nothing};
}

void compareSubset(const SubsetScore& ours, const Json& golden, const std::string& prefix)
{
    QCOMPARE(ours.total, golden.at(prefix + "total").get<std::uint64_t>());
    QVERIFY(*ours.exact == golden.at(prefix + "exact").get<double>());
    QVERIFY(*ours.f1 == golden.at(prefix + "f1").get<double>());
}

} // namespace

class TestSquad : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void goldenPredictionsGiveTheGoldenScoresOfV1_data();
    void goldenPredictionsGiveTheGoldenScoresOfV1();
    void goldenPredictionsGiveTheGoldenScoresOfV2_data();
    void goldenPredictionsGiveTheGoldenScoresOfV2();
    void casesFromTheField_data();
    void casesFromTheField();
    void bestThresholdWithTies();
    void answeringNothingMayBeBest();
    void averagePrecisionGroupsTies();
    void aThresholdTurnsAnswersIntoRefusals();
    void missingPredictionsFollowThePolicy();
    void sumModesDifferInTheLastBit();
    void integersAreAddedWithoutCompensation();
    void noAnswerScoresAreChecked();
    void nothingToScoreHasNoValue();
};

void TestSquad::goldenPredictionsGiveTheGoldenScoresOfV1_data()
{
    QTest::addColumn<QString>("set");
    QTest::addColumn<QString>("data");
    QTest::newRow("xquad-en") << "xquad-en"
                              << "data/xquad/xquad.en.json";
    QTest::newRow("squad-v1.1-dev") << "squad-v1.1-dev"
                                    << "data/squad-v1.1-dev/dev-v1.1.json";
}

void TestSquad::goldenPredictionsGiveTheGoldenScoresOfV1()
{
    QFETCH(QString, set);
    QFETCH(QString, data);
    MUSTER_SHARED_OR_SKIP(goldens, "goldens/minilm-qa");
    const Json metrics = readJson(goldens / "metrics.json").at(set.toStdString());
    const Json questions = readJson(test::sharedPath(data.toUtf8().constData()));
    const Json predictions = readJson(goldens / (set.toStdString() + ".predictions.json"));
    const AnswerScorer scorer = scorerFor(questions, SquadVersion::V1, Normalizer::SquadEn1);
    const auto given = predictionsOf(predictions);
    const auto scores = scorer.scoreAll(given);
    QVERIFY(scores);
    const auto totals = squadV1Totals(*scores);
    QVERIFY(totals);
    QCOMPARE(totals->all.total, metrics.at("n").get<std::uint64_t>());
    QVERIFY(*totals->all.exact == metrics.at("exact_match").get<double>());
    QVERIFY(*totals->all.f1 == metrics.at("f1").get<double>());
    QCOMPARE(totals->missing, std::uint64_t{0});
}

void TestSquad::goldenPredictionsGiveTheGoldenScoresOfV2_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("row");
    QTest::newRow("threshold 0") << "squad-v2.0-dev-part.predictions.json"
                                 << "";
    QTest::newRow("best non-null texts") << "squad-v2.0-dev-part.best_nonnull.json"
                                         << "with_best_nonnull_texts";
}

void TestSquad::goldenPredictionsGiveTheGoldenScoresOfV2()
{
    QFETCH(QString, file);
    QFETCH(QString, row);
    MUSTER_SHARED_OR_SKIP(goldens, "goldens/minilm-qa");
    Json metrics = readJson(goldens / "metrics.json").at("squad-v2.0-dev-part");
    if (!row.isEmpty())
        metrics =
            readJson(goldens / "metrics.json").at("squad-v2.0-dev-part").at(row.toStdString());
    const Json questions = readJson(test::sharedPath("data/squad-v2.0-dev-part/dev-v2.0.json"));
    const Json predictions = readJson(goldens / file.toStdString());
    const Json odds = readJson(goldens / "squad-v2.0-dev-part.null_odds.json");
    const AnswerScorer scorer = scorerFor(questions, SquadVersion::V2, Normalizer::SquadEn1);
    const auto scores = scorer.scoreAll(predictionsOf(predictions));
    QVERIFY(scores);
    std::vector<NoAnswerScore> noAnswer;
    // In data set order, which is the order of the golden file.
    for (std::size_t i = 0; i < scorer.size(); ++i)
        noAnswer.push_back({i, odds.at(scorer.id(i)).get<double>()});
    const auto totals = squadV2Totals(*scores, noAnswer);
    QVERIFY(totals);
    compareSubset(totals->all, metrics, "");
    compareSubset(totals->hasAnswer, metrics, "HasAns_");
    compareSubset(totals->noAnswer, metrics, "NoAns_");
    QVERIFY(totals->thresholds.has_value());
    QVERIFY(totals->thresholds->bestExact == metrics.at("best_exact").get<double>());
    QVERIFY(totals->thresholds->bestExactThreshold ==
            metrics.at("best_exact_thresh").get<double>());
    QVERIFY(totals->thresholds->bestF1 == metrics.at("best_f1").get<double>());
    QVERIFY(totals->thresholds->bestF1Threshold == metrics.at("best_f1_thresh").get<double>());
    QVERIFY(totals->thresholds->reachableExact.value <= totals->thresholds->bestExact);
    QVERIFY(totals->thresholds->reachableF1.value <= totals->thresholds->bestF1);
}

void TestSquad::casesFromTheField_data()
{
    QTest::addColumn<QString>("files");
    QTest::addColumn<bool>("v2");
    QTest::addColumn<QString>("normalizer");
    QTest::addColumn<QStringList>("abstentions");
    QTest::addColumn<QString>("expected"); // fields as JSON
    const auto row = [](const char* name, const char* files, bool v2, const char* expected,
                        const char* normalizer = "squad-en/1", const QStringList& list = {}) {
        QTest::newRow(name) << files << v2 << normalizer << list << QString::fromUtf8(expected);
    };
    row("C-022", "c022", false, R"({"exact": 75.0, "f1": 75.0, "total": 4, "missing": 1})");
    row("C-023 v2", "c023", true,
        R"({"exact": 50.0, "f1": 50.0, "HasAns_exact": 50.0, "NoAns_exact": 50.0,
            "HasAns_total": 2, "NoAns_total": 2})");
    row("C-023 v1", "c023", false,
        R"({"exact": 50.0, "f1": 50.0, "HasAns_exact": 50.0, "NoAns_exact": 50.0,
            "HasAns_total": 2, "NoAns_total": 2})");
    row("C-025 default", "c025", true, R"({"exact": 0.0, "hint": true})");
    row("C-025 with the list", "c025", true, R"({"exact": 100.0, "hint": false})", "squad-en/1",
        {"unanswerable"});
    row("C-026", "c026", true,
        R"({"exact": 100.0, "NoAns_total": 0, "NoAns_exact": null, "NoAns_f1": null})");
    row("C-027 official", "c027", false, R"({"exact": 0.0, "f1": 0.0})");
    row("C-027 by character", "c027", false, R"({"exact": 0.0, "f1": 66.66666666666667})",
        "zh-mixed/1");
    row("C-028 official", "c028", false, R"({"exact": 50.0})");
    row("C-028 extended", "c028", false, R"({"exact": 50.0})", "squad-extended/1");
    row("C-030", "c030", false, R"({"exact": 50.0})");
    row("C-031", "c031", false, R"({"exact": 0.0, "f1": 80.0})");
}

void TestSquad::casesFromTheField()
{
    QFETCH(QString, files);
    QFETCH(bool, v2);
    QFETCH(QString, normalizer);
    QFETCH(QStringList, abstentions);
    QFETCH(QString, expected);
    MUSTER_SHARED_OR_SKIP(inputs, "cases/inputs");
    const Json set = readJson(inputs / (files.toStdString() + "-squad.json"));
    const Json given = readJson(inputs / (files.toStdString() + "-predictions.json"));
    std::vector<std::string> list;
    for (const QString& text : abstentions)
        list.push_back(text.toStdString());
    const AnswerScorer scorer = scorerFor(set, v2 ? SquadVersion::V2 : SquadVersion::V1,
                                          *normalizerByName(normalizer.toStdString()), list);
    const auto scores = scorer.scoreAll(predictionsOf(given));
    QVERIFY(scores);
    const auto totals = v2 ? squadV2Totals(*scores) : squadV1Totals(*scores);
    QVERIFY(totals);
    const auto same = [](const std::optional<double>& ours, const Json& theirs) {
        if (theirs.is_null() || !ours)
            return theirs.is_null() && !ours;
        const double value = theirs.get<double>();
        return std::fabs(*ours - value) <= 1e-9 * std::fabs(value);
    };
    const Json wanted = Json::parse(expected.toStdString());
    for (const auto& [field, value] : wanted.items()) {
        const QByteArray name = QByteArray::fromStdString(field);
        if (field == "exact")
            QVERIFY2(same(totals->all.exact, value), name);
        else if (field == "f1")
            QVERIFY2(same(totals->all.f1, value), name);
        else if (field == "total")
            QCOMPARE(totals->all.total, value.get<std::uint64_t>());
        else if (field == "missing")
            QCOMPARE(totals->missing, value.get<std::uint64_t>());
        else if (field == "HasAns_total")
            QCOMPARE(totals->hasAnswer.total, value.get<std::uint64_t>());
        else if (field == "NoAns_total")
            QCOMPARE(totals->noAnswer.total, value.get<std::uint64_t>());
        else if (field == "HasAns_exact")
            QVERIFY2(same(totals->hasAnswer.exact, value), name);
        else if (field == "NoAns_exact")
            QVERIFY2(same(totals->noAnswer.exact, value), name);
        else if (field == "NoAns_f1")
            QVERIFY2(same(totals->noAnswer.f1, value), name);
        else if (field == "hint")
            QCOMPARE(!refusalHint(*totals).empty(), value.get<bool>());
        else
            QFAIL(name);
    }
}

void TestSquad::bestThresholdWithTies()
{
    // T-39, semantics.md 3.4: the toy of six questions in two orders.
    const std::vector<QuestionScore> scores = {made(true, 1), made(true, 1),  made(true, 1),
                                               made(true, 0), made(false, 0), made(false, 0)};
    const std::vector<NoAnswerScore> rightFirst = {{0, 0.2}, {1, 0.6}, {2, 0.6},
                                                   {3, 0.6}, {4, 0.6}, {5, 0.6}};
    const std::vector<NoAnswerScore> wrongFirst = {{4, 0.6}, {5, 0.6}, {0, 0.2},
                                                   {1, 0.6}, {2, 0.6}, {3, 0.6}};
    const auto one = squadV2Totals(scores, rightFirst);
    const auto other = squadV2Totals(scores, wrongFirst);
    QVERIFY(one && other);
    QCOMPARE(one->thresholds->bestExact, 100.0 * 5 / 6);
    QCOMPARE(one->thresholds->bestExactThreshold, 0.6);
    QCOMPARE(other->thresholds->bestExact, 50.0);
    QCOMPARE(other->thresholds->bestExactThreshold, 0.2);
    const BestScore reachable{50.0, 0.2};
    QCOMPARE(one->thresholds->reachableExact, reachable);
    QCOMPARE(other->thresholds->reachableExact, reachable);
    QCOMPARE(one->thresholds->reachableF1, reachable);
}

void TestSquad::answeringNothingMayBeBest()
{
    const std::vector<QuestionScore> scores = {made(false, 0), made(true, 0)};
    const std::vector<NoAnswerScore> noAnswer = {{0, -3.0}, {1, -2.0}};
    const auto totals = squadV2Totals(scores, noAnswer);
    QVERIFY(totals);
    QCOMPARE(totals->thresholds->bestExact, 50.0);
    QCOMPARE(totals->thresholds->bestExactThreshold, 0.0);
    QCOMPARE(totals->thresholds->reachableExact.value, 50.0);
    QVERIFY(!totals->thresholds->reachableExact.threshold);
}

void TestSquad::averagePrecisionGroupsTies()
{
    const std::vector<QuestionScore> scores = {made(true, 1), made(false, 0), made(true, 0),
                                               made(true, 1)};
    const std::vector<NoAnswerScore> noAnswer = {{0, 0.1}, {1, 0.2}, {2, 0.2}, {3, 0.9}};
    const auto totals = squadV2Totals(scores, noAnswer);
    QVERIFY(totals);
    // After 1: P 1, R 1/3. After 3: P 1/3, R 1/3. After 4: P 1/2, R 2/3.
    const double expected = 100.0 * (1.0 / 3 + 0.5 * (2.0 / 3 - 1.0 / 3));
    QVERIFY(std::fabs(*totals->thresholds->exactAveragePrecision - expected) < 1e-12);
    // Oracle: P 1, R 1/3; P 2/3, R 2/3; P 3/4, R 1.
    const double oracle = 100.0 * (1.0 / 3 + 2.0 / 9 + 0.25);
    QVERIFY(std::fabs(*totals->thresholds->oracleAveragePrecision - oracle) < 1e-12);
    const std::vector<QuestionScore> none = {made(false, 1, true)};
    const std::vector<NoAnswerScore> one = {{0, 0.5}};
    QVERIFY(!squadV2Totals(none, one)->thresholds->exactAveragePrecision);
}

void TestSquad::aThresholdTurnsAnswersIntoRefusals()
{
    const std::vector<QuestionScore> scores = {made(true, 1), made(false, 0), made(false, 0)};
    const std::vector<NoAnswerScore> noAnswer = {{0, 0.6}, {1, 0.6}, {2, 0.5}};
    const auto totals = squadV2Totals(scores, noAnswer, {.noAnswerThreshold = 0.5});
    QVERIFY(totals);
    QCOMPARE(*totals->hasAnswer.exact, 0.0);
    QCOMPARE(*totals->noAnswer.exact, 50.0); // strict: 0.5 is not refused
}

void TestSquad::missingPredictionsFollowThePolicy()
{
    std::vector<QuestionScore> scores = {made(true, 1), made(true, 1), made(true, 1)};
    scores.push_back({.missing = true});
    QCOMPARE(*squadV1Totals(scores)->all.exact, 75.0);
    QCOMPARE(*squadV2Totals(scores)->all.exact, 75.0);
    QCOMPARE(*squadV1Totals(scores, MissingPolicy::Skip)->all.exact, 100.0);
    QCOMPARE(squadV2Totals(scores, {}, {.missing = MissingPolicy::Skip})->all.total,
             std::uint64_t{3});
    const auto failed = squadV1Totals(scores, MissingPolicy::Fail);
    QVERIFY(!failed);
    QVERIFY(failed.error().kind == Error::Kind::Incomplete);
    // T-38: best values do not fail, and a missing unanswerable question is never right.
    scores[3].answerable = false;
    const std::vector<NoAnswerScore> noAnswer = {{0, 0.1}, {1, 0.2}, {2, 0.3}};
    const auto totals = squadV2Totals(scores, noAnswer);
    QVERIFY(totals);
    QCOMPARE(totals->thresholds->bestExact, 75.0);
    QCOMPARE(totals->noAnswer.total, std::uint64_t{1});
    QCOMPARE(*totals->noAnswer.exact, 0.0);
}

void TestSquad::sumModesDifferInTheLastBit()
{
    // T-40: ten times 0.1 is 0.9999999999999999 before Python 3.12 and 1.0 from it on.
    QuestionScore tenth = made(true, 0.0);
    tenth.f1 = 0.1;
    tenth.f1IsInteger = false;
    const std::vector<QuestionScore> scores(10, tenth);
    QCOMPARE(*squadV2Totals(scores)->all.f1, 100.0 * 0.9999999999999999 / 10);
    QCOMPARE(*squadV2Totals(scores, {}, {.sums = SumMode::Compensated})->all.f1, 100.0 * 1.0 / 10);
    QCOMPARE(*squadV1Totals(scores)->all.f1, 100.0 * 0.9999999999999999 / 10);
}

void TestSquad::integersAreAddedWithoutCompensation()
{
    // CPython 3.12 compensates floats only: after 2^-60 the integer 1 swallows it.
    QuestionScore tiny = made(true, 0.0);
    tiny.f1 = std::ldexp(1.0, -60);
    tiny.f1IsInteger = false;
    QuestionScore one = made(false, 1.0, true);
    one.f1IsInteger = true;
    QuestionScore minus = made(true, 0.0);
    minus.f1 = -1.0;
    minus.f1IsInteger = false;
    const std::vector<QuestionScore> scores = {tiny, one, minus};
    QCOMPARE(*squadV2Totals(scores, {}, {.sums = SumMode::Compensated})->all.f1, 0.0);
    one.f1IsInteger = false;
    const std::vector<QuestionScore> floats = {tiny, one, minus};
    QVERIFY(*squadV2Totals(floats, {}, {.sums = SumMode::Compensated})->all.f1 > 0.0);
}

void TestSquad::noAnswerScoresAreChecked()
{
    const std::vector<QuestionScore> scores = {made(true, 1), made(true, 0)};
    const auto code = [&](std::vector<NoAnswerScore> noAnswer) {
        const auto totals = squadV2Totals(scores, noAnswer);
        return totals ? std::string() : totals.error().code;
    };
    QCOMPARE(code({{0, 1.0}, {1, 2.0}}), std::string());
    for (const auto& bad : std::vector<std::vector<NoAnswerScore>>{
             {{0, 1.0}},
             {{0, 1.0}, {0, 1.0}},
             {{0, 1.0}, {2, 1.0}},
             {{0, 1.0}, {1, std::numeric_limits<double>::quiet_NaN()}}})
        QCOMPARE(code(bad), std::string("E-METRICS-006"));
}

void TestSquad::nothingToScoreHasNoValue()
{
    for (const auto& totals : {squadV1Totals({}), squadV2Totals({})}) {
        QVERIFY(totals);
        QCOMPARE(totals->all.total, std::uint64_t{0});
        QVERIFY(!totals->all.exact);
        QVERIFY(!totals->hasAnswer.f1);
    }
}

QTEST_GUILESS_MAIN(TestSquad)
#include "tst_squad.moc"
