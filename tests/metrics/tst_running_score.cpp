// SPDX-License-Identifier: Apache-2.0
#include "metrics/running_score.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace muster;
using namespace muster::metrics;

namespace {

std::vector<QuestionScore> someScores()
{
    std::vector<QuestionScore> scores;
    for (int i = 0; i < 200; ++i) {
        QuestionScore score;
        score.em = i % 3 == 0 ? 1.0 : 0.0;
        score.f1 = i % 3 == 0 ? 1.0 : 1.0 / (1 + i % 7);
        scores.push_back(score);
    }
    return scores;
}

} // namespace

class TestRunningScore : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void beforeTheFirstQuestionThereIsNoValue();
    void oneQuestionHasAValueAndNoInterval();
    void theOrderOfArrivalDoesNotMatter();
    void intervalsAreInPercent();
};

void TestRunningScore::beforeTheFirstQuestionThereIsNoValue()
{
    const ScoreSoFar so = RunningScore().soFar();
    QCOMPARE(so.scored, std::uint64_t{0});
    QVERIFY(!so.exact && !so.f1 && !so.exactInterval && !so.f1Interval);
}

void TestRunningScore::oneQuestionHasAValueAndNoInterval()
{
    RunningScore running;
    running.add({.em = 1.0, .f1 = 1.0});
    const ScoreSoFar so = running.soFar();
    QCOMPARE(*so.exact, 100.0);
    QCOMPARE(*so.f1, 100.0);
    QVERIFY(!so.f1Interval); // C-021
}

void TestRunningScore::theOrderOfArrivalDoesNotMatter()
{
    auto scores = someScores();
    RunningScore forward;
    for (const auto& score : scores)
        forward.add(score);
    std::reverse(scores.begin(), scores.end());
    std::rotate(scores.begin(), scores.begin() + 37, scores.end());
    RunningScore parts[3];
    for (std::size_t i = 0; i < scores.size(); ++i)
        parts[i % 3].add(scores[i]);
    RunningScore merged;
    for (const auto& part : parts)
        merged.add(part);
    QCOMPARE(merged.soFar().f1, forward.soFar().f1);
    QCOMPARE(merged.soFar().exact, forward.soFar().exact);
    QCOMPARE(merged.soFar().f1Interval, forward.soFar().f1Interval);
    QCOMPARE(merged.soFar().scored, std::uint64_t{200});
}

void TestRunningScore::intervalsAreInPercent()
{
    RunningScore running;
    std::vector<double> f1;
    for (const auto& score : someScores()) {
        running.add(score);
        f1.push_back(score.f1);
    }
    const ScoreSoFar so = running.soFar();
    const auto expected = normalInterval(f1);
    QVERIFY(std::abs(so.f1Interval->low - 100.0 * expected->low) < 1e-9);
    QVERIFY(so.exactInterval->low < *so.exact && *so.exact < so.exactInterval->high);
}

QTEST_GUILESS_MAIN(TestRunningScore)
#include "tst_running_score.moc"
