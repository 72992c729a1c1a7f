// SPDX-License-Identifier: Apache-2.0
#include "metrics/paired.h"

#include "metrics/distributions.h"
#include "metrics/metric_vectors.h"

#include <QtTest>

#include <cmath>
#include <limits>

using namespace muster;
using namespace muster::metrics;
using muster::test::isClose;
using nlohmann::json;

namespace {

using Values = std::vector<double>;

/// Equal to a relative tolerance, for small probabilities.
bool isNear(double a, double b, double tolerance)
{
    return std::fabs(a - b) <= tolerance * std::max(std::fabs(a), std::fabs(b)) + 1e-300;
}

std::vector<LossRow> rowsOf(const Values& losses, std::uint64_t tokens, bool isOneDocument)
{
    std::vector<LossRow> rows;
    for (const double loss : losses)
        rows.push_back({rows.size(), isOneDocument ? 0 : rows.size(), loss, tokens, tokens});
    return rows;
}

} // namespace

class TestPaired : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void distributionsAreThoseOfScipy();
    void sameAsScipy_data();
    void sameAsScipy();
    void mcNemarCounts();
    void equalRunsDoNotDiffer();
    void aConstantDifferenceIsCertain();
    void bootstrapIsThatOfTheMean();
    void signFlipsAreExactOrRandom();
    void groupsWidenTheInterval();
    void perplexityRatioOfWindows();
    void perplexityRatioOfManyDocuments();
    void whatCannotBePairedIsRefused();
};

void TestPaired::distributionsAreThoseOfScipy()
{
    const json& vectors = muster::test::metricVectors()["distributions"];
    for (const json& row : vectors["student"])
        QVERIFY2(isNear(studentTwoSided(row[0].get<double>(), row[1].get<double>()),
                        row[2].get<double>(), 1e-11),
                 row.dump().c_str());
    for (const json& row : vectors["quantile"])
        QVERIFY2(isNear(studentQuantile(row[0].get<double>(), row[1].get<double>()),
                        row[2].get<double>(), 1e-10),
                 row.dump().c_str());
    for (const json& row : vectors["binomial"])
        QVERIFY2(
            isNear(fairBinomialAtMost(row[0].get<std::uint64_t>(), row[1].get<std::uint64_t>()),
                   row[2].get<double>(), 1e-10),
            row.dump().c_str());
    for (const json& row : vectors["beta"]) {
        const double x = row[2].get<double>();
        QVERIFY2(isNear(incompleteBeta(row[0].get<double>(), row[1].get<double>(), x, 1.0 - x),
                        row[3].get<double>(), 1e-10),
                 row.dump().c_str());
    }
    QCOMPARE(studentTwoSided(0.0, 5.0), 1.0);
    QCOMPARE(studentTwoSided(std::numeric_limits<double>::infinity(), 5.0), 0.0);
    QVERIFY(isClose(normalTwoSided(1.959963984540054), 0.05));
    QCOMPARE(incompleteBeta(2, 3, 0.0, 1.0), 0.0);
    QCOMPARE(incompleteBeta(2, 3, 1.0, 0.0), 1.0);
}

void TestPaired::sameAsScipy_data()
{
    QTest::addColumn<int>("number");
    const json& vectors = muster::test::metricVectors();
    for (int i = 0; i < static_cast<int>(vectors["paired"].size()); ++i)
        QTest::addRow("case %d", i) << i;
}

void TestPaired::sameAsScipy()
{
    QFETCH(int, number);
    const json& test = muster::test::metricVectors()["paired"][static_cast<std::size_t>(number)];
    const json& expected = test["expected"];
    const auto value = [&](const char* name) { return expected[name].get<double>(); };
    const auto a = test["a"].get<Values>();
    const auto b = test["b"].get<Values>();
    const auto student = pairedT(a, b);
    QVERIFY(student);
    QVERIFY(isClose(student->difference.value, value("difference")));
    QVERIFY(isClose(student->difference.low, value("low"), 1e-11));
    QVERIFY(isClose(student->difference.high, value("high"), 1e-11));
    QVERIFY(isNear(student->pValue, value("p"), 1e-10));
    const auto grouped = pairedTByGroup(a, b, test["groups"].get<std::vector<std::uint64_t>>());
    QVERIFY(grouped);
    QVERIFY(isClose(grouped->difference.standardError, value("group_error")));
    QVERIFY(isNear(grouped->pValue, value("group_p"), 1e-10));
    const auto flips = mcNemar(test["right_a"].get<std::vector<std::uint8_t>>(),
                               test["right_b"].get<std::vector<std::uint8_t>>());
    QVERIFY(flips);
    QVERIFY(isNear(flips->pValue, value("mcnemar"), 1e-11));
    if (!expected["sign_flip"].is_null())
        QVERIFY(isClose(signFlipTest(a, b)->pValue, value("sign_flip")));
    const auto ratio = perplexityRatioOfTokens(test["loss_a"].get<std::vector<float>>(),
                                               test["loss_b"].get<std::vector<float>>());
    QVERIFY(ratio);
    QVERIFY(isClose(ratio->lnRatio, value("ln_ratio")));
    QVERIFY(isClose(ratio->lnError, value("ln_error")));
    QVERIFY(isClose(ratio->correlation, value("correlation")));
    QVERIFY(isNear(ratio->pValue, value("ratio_p"), 1e-9));
    QVERIFY(isClose(ratio->ratio.value, std::exp(value("ln_ratio"))));
}

void TestPaired::mcNemarCounts()
{
    using Hits = std::vector<std::uint8_t>;
    const auto result = mcNemar(Hits{1, 1, 0, 0, 1}, Hits{1, 0, 1, 0, 0});
    QVERIFY(result);
    QCOMPARE(*result, (McNemar{1, 2, 1, 1, 1.0}));
    QVERIFY(isClose(mcNemarPValue(0, 6), 2.0 / 64));
    QCOMPARE(mcNemarPValue(0, 0), 1.0);
    QCOMPARE(mcNemarPValue(7, 7), 1.0);
    QCOMPARE(mcNemarPValue(3, 9), mcNemarPValue(9, 3));
    QCOMPARE(mcNemar({}, {})->pValue, 1.0);
}

void TestPaired::equalRunsDoNotDiffer()
{
    const Values a{1, 2, 3, 4};
    for (const auto& test : {pairedT(a, a), pairedBootstrap(a, a), signFlipTest(a, a)}) {
        QVERIFY(test);
        QCOMPARE(test->difference.value, 0.0);
        QCOMPARE(test->pValue, 1.0);
    }
    const auto ratio = perplexityRatio(rowsOf(a, 2, false), rowsOf(a, 2, false));
    QVERIFY(ratio);
    QCOMPARE(ratio->ratio, (Interval{1.0, 0.0, 1.0, 1.0}));
    QCOMPARE(ratio->pValue, 1.0);
    QVERIFY(isClose(ratio->correlation, 1.0));
}

void TestPaired::aConstantDifferenceIsCertain()
{
    const auto test = pairedT(Values{1, 2, 3}, Values{2, 3, 4});
    QVERIFY(test);
    QCOMPARE(test->difference, (Interval{1.0, 0.0, 1.0, 1.0}));
    QCOMPARE(test->pValue, 0.0);
}

void TestPaired::bootstrapIsThatOfTheMean()
{
    const Values a{3, 1, 4, 1, 5, 9, 2, 6};
    const Values b{2, 7, 1, 8, 2, 8, 1, 8};
    Values differences;
    for (std::size_t i = 0; i < a.size(); ++i)
        differences.push_back(b[i] - a[i]);
    const auto test = pairedBootstrap(a, b);
    const auto mean = bootstrapMean(differences);
    QVERIFY(test && mean);
    QVERIFY(isClose(test->difference.low, mean->low));
    QVERIFY(isClose(test->difference.standardError, mean->standardError));
    QVERIFY(test->pValue > 0.05 && test->pValue <= 1.0);
    QCOMPARE(*pairedBootstrap(a, b), *test);
    // A clear difference.
    Values better = a;
    for (std::size_t i = 0; i < a.size(); ++i)
        better[i] += 1.0 + 0.1 * static_cast<double>(i);
    QVERIFY(isClose(pairedBootstrap(a, better)->pValue, 2.0 / 1001));
}

void TestPaired::signFlipsAreExactOrRandom()
{
    // Five differences of one sign: 2 of 32 patterns are as far away.
    const auto exact = signFlipTest(Values{0, 0, 0, 0, 0, 1}, Values{1, 2, 3, 4, 5, 1});
    QVERIFY(exact);
    QVERIFY(isClose(exact->pValue, 2.0 / 32));
    Values a(60, 0.0);
    Values b;
    PythonRandom random(4);
    for (std::size_t i = 0; i < a.size(); ++i)
        b.push_back(random.uniform() - 0.35);
    const auto sampled = signFlipTest(a, b, {.replicates = 20000});
    const auto student = pairedT(a, b);
    QVERIFY(sampled && student);
    QVERIFY2(std::fabs(sampled->pValue - student->pValue) < 0.01,
             qPrintable(QStringLiteral("%1 %2").arg(sampled->pValue).arg(student->pValue)));
    QVERIFY(!signFlipTest(a, b, {.replicates = 0}));
}

void TestPaired::groupsWidenTheInterval()
{
    // Ten copies of each of six differences are six observations.
    const Values six{0.3, -0.1, 0.4, 0.2, -0.2, 0.5};
    Values a;
    Values b;
    std::vector<std::uint64_t> groups;
    for (std::size_t i = 0; i < 60; ++i) {
        a.push_back(0.0);
        b.push_back(six[i % 6]);
        groups.push_back(i % 6);
    }
    const auto grouped = pairedTByGroup(a, b, groups);
    const auto alone = pairedT(Values(6, 0.0), six);
    QVERIFY(grouped && alone);
    QVERIFY(isClose(grouped->difference.standardError, alone->difference.standardError));
    QVERIFY(isClose(grouped->pValue, alone->pValue));
    QCOMPARE(grouped->clusters, std::uint64_t{6});
    QVERIFY(pairedT(a, b)->difference.standardError < 0.5 * grouped->difference.standardError);
}

void TestPaired::perplexityRatioOfWindows()
{
    // Differences of sums 1, 2, 0 over 4 tokens each: mean 0.25, rests 0, 1, −1.
    const auto ratio = perplexityRatio(rowsOf({8, 9, 10}, 4, true), rowsOf({9, 11, 10}, 4, true));
    QVERIFY(ratio);
    const double error = std::sqrt(1.5 * 2.0) / 12.0;
    QVERIFY(isClose(ratio->lnRatio, 0.25));
    QVERIFY(isClose(ratio->lnError, error));
    QVERIFY(isClose(ratio->ratio.value, std::exp(0.25)));
    QVERIFY(isClose(ratio->ratio.low, std::exp(0.25 - 1.959963984540054 * error)));
    QVERIFY(isClose(ratio->pValue, normalTwoSided(0.25 / error)));
    QCOMPARE(ratio->tokens, std::uint64_t{12});
    QVERIFY(ratio->method.find("3 windows") != std::string::npos);
}

void TestPaired::perplexityRatioOfManyDocuments()
{
    // Pairing removes what both runs share: the interval is far narrower than each run's own.
    PythonRandom random(9);
    Values a;
    Values b;
    for (int i = 0; i < 200; ++i) {
        a.push_back(200.0 + 100.0 * random.uniform());
        b.push_back(a.back() + 1.0 + random.uniform());
    }
    const auto rowsA = rowsOf(a, 100, false);
    const auto ratio = perplexityRatio(rowsA, rowsOf(b, 100, false));
    QVERIFY(ratio);
    QVERIFY(ratio->ratio.low > 1.0);
    QVERIFY(ratio->pValue < 1e-10);
    QVERIFY(ratio->correlation > 0.99);
    const auto own = perplexityInterval(rowsA);
    QVERIFY(ratio->lnError < 0.1 * own->standardError / own->value);
}

void TestPaired::whatCannotBePairedIsRefused()
{
    const Values two{1, 2};
    const Values three{1, 2, 3};
    QCOMPARE(pairedT(two, three).error().code, std::string("E-METRICS-040"));
    QCOMPARE(pairedT(two, three).error().kind, Error::Kind::Incomparable);
    QVERIFY(!pairedBootstrap(two, three) && !signFlipTest(two, three));
    QVERIFY(!mcNemar(std::vector<std::uint8_t>{1}, {}));
    const std::vector<std::uint64_t> one{0, 0};
    QCOMPARE(pairedTByGroup(two, two, one).error().code, std::string("E-METRICS-010"));
    QCOMPARE(pairedTByGroup(two, two, std::vector<std::uint64_t>{1}).error().code,
             std::string("E-METRICS-040"));
    QCOMPARE(pairedT(Values{1}, Values{1}).error().code, std::string("E-METRICS-010"));
    QCOMPARE(pairedT(two, two, 0.0).error().code, std::string("E-METRICS-011"));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    QCOMPARE(pairedT(two, Values{1, nan}).error().code, std::string("E-METRICS-041"));
    // C-042: other windows.
    QCOMPARE(perplexityRatio(rowsOf(two, 4, true), rowsOf(two, 5, true)).error().code,
             std::string("E-METRICS-040"));
    QCOMPARE(perplexityRatio(rowsOf(two, 0, true), rowsOf(two, 0, true)).error().code,
             std::string("E-METRICS-020"));
    QCOMPARE(perplexityRatio(rowsOf({1}, 4, true), rowsOf({1}, 4, true)).error().code,
             std::string("E-METRICS-010"));
    QCOMPARE(perplexityRatio(rowsOf(two, 4, true), rowsOf({1, nan}, 4, true)).error().code,
             std::string("E-METRICS-041"));
    const std::vector<float> token{1.0F};
    QCOMPARE(perplexityRatioOfTokens(token, token).error().code, std::string("E-METRICS-010"));
}

QTEST_GUILESS_MAIN(TestPaired)
#include "tst_paired.moc"
