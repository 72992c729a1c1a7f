// SPDX-License-Identifier: Apache-2.0
#include "metrics/answer_score.h"

#include <QtTest>

#include <string>

using namespace muster;
using namespace muster::metrics;

namespace {

QuestionScore scoreOne(SquadVersion version, Normalizer normalizer,
                       std::vector<std::string_view> golds, std::optional<std::string_view> text)
{
    AnswerScorer scorer(version, normalizer);
    if (!scorer.addQuestion("q", golds))
        return {};
    return scorer.score(0, text);
}

double f1En(std::string_view prediction, std::string_view gold)
{
    return tokenF1(normalize(Normalizer::SquadEn1, prediction),
                   normalize(Normalizer::SquadEn1, gold));
}

} // namespace

class TestAnswerScore : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void f1IsOverTokenMultisets();
    void longAnswersScoreLikeShortOnes();
    void nothingAgainstNothing_data();
    void nothingAgainstNothing();
    void emAndF1EachTakeTheirBestGold();
    void repeatedGoldsChangeNothing();
    void noGoldMeansUnanswerable();
    void theKeyIsTheIdNotTheText();
    void aMissingPredictionScoresZero();
    void unknownIdsAreAnError();
    void duplicateIdsAreAnError();
    void abstentionsCountAsNothing();
    void chineseIsAnExplicitChoice();
    void extendedModeIsNamedApart();
    void predictionsMayComeInAnyOrder();
};

void TestAnswerScore::f1IsOverTokenMultisets()
{
    // semantics.md 3.3
    QCOMPARE(f1En("the cat sat on the mat", "a cat sat"), 2 * 0.5 * 1.0 / 1.5);
    QCOMPARE(f1En("cat cat dog", "cat dog dog bird"), 2 * (2.0 / 3) * (2.0 / 4) / (2.0 / 3 + 0.5));
    QCOMPARE(f1En("cat", "dog"), 0.0);
    QCOMPARE(f1En("x", ""), 0.0);
    QCOMPARE(f1En("", ""), 1.0);
}

void TestAnswerScore::longAnswersScoreLikeShortOnes()
{
    // 63, 64, 65 and 200 tokens: both ways of counting give the same.
    for (const int tokens : {63, 64, 65, 200}) {
        std::string left;
        std::string right;
        for (int i = 0; i < tokens; ++i) {
            left += "w" + std::to_string(i % 7) + " ";
            right += "w" + std::to_string(i % 5) + " ";
        }
        int same = 0;
        for (int w = 0; w < 7; ++w) {
            int l = 0;
            int r = 0;
            for (int i = 0; i < tokens; ++i) {
                l += i % 7 == w ? 1 : 0;
                r += i % 5 == w ? 1 : 0;
            }
            same += std::min(l, r);
        }
        const double p = double(same) / tokens;
        QCOMPARE(f1En(left, right), (2 * p * p) / (p + p));
    }
}

void TestAnswerScore::nothingAgainstNothing_data()
{
    QTest::addColumn<int>("version");
    QTest::addColumn<QString>("normalizer");
    QTest::addColumn<double>("f1");
    QTest::addColumn<bool>("flagged");
    QTest::newRow("T-36 squad1") << 1 << "squad-en/1" << 0.0 << true;
    QTest::newRow("T-36 squad2") << 2 << "squad-en/1" << 1.0 << false;
    QTest::newRow("T-36 extended") << 1 << "squad-extended/1" << 1.0 << false;
}

void TestAnswerScore::nothingAgainstNothing()
{
    QFETCH(int, version);
    QFETCH(QString, normalizer);
    QFETCH(double, f1);
    QFETCH(bool, flagged);
    const auto score = scoreOne(version == 1 ? SquadVersion::V1 : SquadVersion::V2,
                                *normalizerByName(normalizer.toStdString()), {"the"}, "An.");
    QCOMPARE(score.em, 1.0);
    QCOMPARE(score.f1, f1);
    QCOMPARE(score.emWithoutF1, flagged);
    QVERIFY(score.answerable);
}

void TestAnswerScore::emAndF1EachTakeTheirBestGold()
{
    const auto cities = scoreOne(SquadVersion::V1, Normalizer::SquadEn1,
                                 {"New York City", "NYC", "NYC"}, "New York");
    QCOMPARE(cities.em, 0.0);
    QCOMPARE(cities.f1, 0.8);
    const auto twain =
        scoreOne(SquadVersion::V1, Normalizer::SquadEn1, {"Mark Twain"}, "not Mark Twain");
    QCOMPARE(twain.em, 0.0);
    QCOMPARE(twain.f1, 0.8);
    // EM from one gold, F1 from another: the trap of 1.1.
    const auto both = scoreOne(SquadVersion::V1, Normalizer::SquadEn1, {"the", "a cat"}, "an");
    QCOMPARE(both.em, 1.0);
    QCOMPARE(both.f1, 0.0);
}

void TestAnswerScore::repeatedGoldsChangeNothing()
{
    for (const auto version : {SquadVersion::V1, SquadVersion::V2})
        QCOMPARE(scoreOne(version, Normalizer::SquadEn1, {"a b", "c", "c", "A b."}, "b d"),
                 scoreOne(version, Normalizer::SquadEn1, {"c", "a b"}, "b d"));
}

void TestAnswerScore::noGoldMeansUnanswerable()
{
    for (const auto version : {SquadVersion::V1, SquadVersion::V2}) {
        const auto empty = scoreOne(version, Normalizer::SquadEn1, {}, "");
        QCOMPARE(empty.em, 1.0);
        QCOMPARE(empty.f1, 1.0);
        QVERIFY(!empty.answerable);
        QVERIFY(empty.predictedNothing);
        const auto paris = scoreOne(version, Normalizer::SquadEn1, {}, "Paris");
        QCOMPARE(paris.em, 0.0);
        QCOMPARE(paris.f1, 0.0);
    }
    // Golds made of articles only: answerable, scored against nothing (semantics.md 3.4).
    const auto article = scoreOne(SquadVersion::V2, Normalizer::SquadEn1, {"the"}, "");
    QVERIFY(article.answerable);
    QCOMPARE(article.f1, 1.0);
}

void TestAnswerScore::theKeyIsTheIdNotTheText()
{
    // C-030
    AnswerScorer scorer(SquadVersion::V1, Normalizer::SquadEn1);
    const std::string_view red[] = {"red"};
    const std::string_view blue[] = {"blue"};
    QVERIFY(scorer.addQuestion("q1", red));
    QVERIFY(scorer.addQuestion("q2", blue));
    QCOMPARE(scorer.score(0, "red").em, 1.0);
    QCOMPARE(scorer.score(1, "red").em, 0.0);
    QCOMPARE(scorer.id(1), std::string("q2"));
}

void TestAnswerScore::aMissingPredictionScoresZero()
{
    const auto score = scoreOne(SquadVersion::V2, Normalizer::SquadEn1, {}, std::nullopt);
    QVERIFY(score.missing);
    QCOMPARE(score.em, 0.0);
    QVERIFY(!score.predictedNothing);
}

void TestAnswerScore::unknownIdsAreAnError()
{
    AnswerScorer scorer(SquadVersion::V1, Normalizer::SquadEn1);
    QVERIFY(scorer.addQuestion("q1", {}));
    const Prediction predictions[] = {{"q1", ""}, {"zz", "x"}};
    const auto scores = scorer.scoreAll(predictions);
    QVERIFY(!scores);
    QCOMPARE(scores.error().code, std::string("E-METRICS-003"));
    QVERIFY(scores.error().message.find("zz") != std::string::npos);
}

void TestAnswerScore::duplicateIdsAreAnError()
{
    AnswerScorer scorer(SquadVersion::V1, Normalizer::SquadEn1);
    QVERIFY(scorer.addQuestion("q1", {}));
    const auto again = scorer.addQuestion("q1", {});
    QVERIFY(!again);
    QCOMPARE(again.error().code, std::string("E-METRICS-002"));
    QCOMPARE(scorer.size(), std::size_t{1});
    const Prediction twice[] = {{"q1", ""}, {"q1", "x"}};
    QCOMPARE(scorer.scoreAll(twice).error().code, std::string("E-METRICS-004"));
}

void TestAnswerScore::abstentionsCountAsNothing()
{
    // C-025
    const std::vector<std::string> list = {"unanswerable", "..."};
    AnswerScorer plain(SquadVersion::V2, Normalizer::SquadEn1);
    AnswerScorer set(SquadVersion::V2, Normalizer::SquadEn1, list);
    QVERIFY(plain.addQuestion("q", {}));
    QVERIFY(set.addQuestion("q", {}));
    QCOMPARE(plain.score(0, "Unanswerable ").em, 0.0);
    QVERIFY(plain.score(0, "Unanswerable ").looksLikeRefusal);
    QCOMPARE(set.score(0, "Unanswerable ").em, 1.0);
    QVERIFY(set.score(0, "Unanswerable ").predictedNothing);
    QVERIFY(!set.score(0, "Unanswerable ").looksLikeRefusal);
    QVERIFY(!set.score(0, "Paris").predictedNothing);
    QCOMPARE(set.abstentions(), list);
}

void TestAnswerScore::chineseIsAnExplicitChoice()
{
    // C-027
    const auto official = scoreOne(SquadVersion::V1, Normalizer::SquadEn1, {"北京"}, "北京大学");
    QCOMPARE(official.em, 0.0);
    QCOMPARE(official.f1, 0.0);
    const auto mixed = scoreOne(SquadVersion::V1, Normalizer::ZhMixed1, {"北京"}, "北京大学");
    QCOMPARE(mixed.em, 0.0);
    QVERIFY(std::abs(mixed.f1 - 2.0 / 3) < 1e-15);
}

void TestAnswerScore::extendedModeIsNamedApart()
{
    // C-028
    const auto em = [](Normalizer n, std::string_view gold, std::string_view prediction) {
        return scoreOne(SquadVersion::V1, n, {gold}, prediction).em;
    };
    QCOMPARE(em(Normalizer::SquadEn1, "1914–1918", "1914-1918"), 0.0);
    QCOMPARE(em(Normalizer::SquadEn1, "3.14", "314"), 1.0);
    QCOMPARE(em(Normalizer::SquadExtended1, "1914–1918", "1914-1918"), 1.0);
    QCOMPARE(em(Normalizer::SquadExtended1, "3.14", "314"), 0.0);
}

void TestAnswerScore::predictionsMayComeInAnyOrder()
{
    AnswerScorer scorer(SquadVersion::V1, Normalizer::SquadEn1);
    const std::string_view red[] = {"red"};
    QVERIFY(scorer.addQuestion("q1", red));
    QVERIFY(scorer.addQuestion("q2", red));
    QVERIFY(scorer.addQuestion("q3", red));
    const Prediction one[] = {{"q3", "red"}, {"q1", "blue"}};
    const Prediction other[] = {{"q1", "blue"}, {"q3", "red"}};
    const auto scores = scorer.scoreAll(one);
    QVERIFY(scores);
    QCOMPARE(*scores, *scorer.scoreAll(other));
    QCOMPARE((*scores)[2].em, 1.0);
    QVERIFY((*scores)[1].missing);
}

QTEST_GUILESS_MAIN(TestAnswerScore)
#include "tst_answer_score.moc"
