// SPDX-License-Identifier: Apache-2.0
#include "metrics/intervals.h"

#include <QElapsedTimer>
#include <QtTest>

#include <cmath>
#include <limits>
#include <vector>

using namespace muster;
using namespace muster::metrics;

class TestIntervals : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theStreamIsPythons();
    void normalQuantilesAreAccurate();
    void normalIntervalOfHits();
    void bothNormalIntervalsAgree();
    void oneValueHasNoError();
    void wilsonAgainstPublishedValues();
    void bootstrapOfAConstantIsSharp();
    void bootstrapDependsOnOrderAndSeedOnly();
    void bootstrapErrorIsNotDividedByReplicates();
    void bootstrapRoundsDownToWholeChunks();
    void bootstrapOfTenThousandIsFast();
    void badConfidencesAreRefused();
};

void TestIntervals::theStreamIsPythons()
{
    // semantics.md 6.1, made by numpy's RandomState
    PythonRandom zero(0);
    QCOMPARE(zero.uniform(), 0.8444218515250481);
    QCOMPARE(zero.uniform(), 0.7579544029403025);
    QCOMPARE(zero.uniform(), 0.420571580830845);
    const auto choices = [](std::uint64_t seed) {
        PythonRandom random(seed);
        std::vector<std::size_t> drawn;
        for (int i = 0; i < 10; ++i)
            drawn.push_back(random.index(10));
        return drawn;
    };
    QCOMPARE(choices(0), (std::vector<std::size_t>{8, 7, 4, 2, 5, 4, 7, 3, 4, 5}));
    QCOMPARE(choices(1), (std::vector<std::size_t>{1, 8, 7, 2, 4, 4, 6, 7, 0, 0}));
    // Python 3.11: random.Random(2**40 + 5).random(), and the 2,000th draw of Random(3)
    QCOMPARE(PythonRandom((std::uint64_t{1} << 40U) + 5).uniform(), 0.5043802970418443);
    PythonRandom three(3);
    double last = 0.0;
    for (int i = 0; i < 2000; ++i)
        last = three.uniform();
    QCOMPARE(last, 0.25904136240093445);
}

void TestIntervals::normalQuantilesAreAccurate()
{
    QVERIFY(std::abs(normalQuantile(0.975) - 1.959963984540054) < 1e-14);
    QVERIFY(std::abs(normalQuantile(0.995) - 2.5758293035489004) < 1e-14);
    QVERIFY(std::abs(normalQuantile(0.5 + 1e-9) - 2.506628274631e-9) < 1e-15);
    QVERIFY(std::abs(normalQuantile(1e-300) + 37.0470962993612) < 1e-9);
    QCOMPARE(normalQuantile(0.5), 0.0);
    QCOMPARE(normalQuantile(0.025), -normalQuantile(0.975));
    QVERIFY(std::isinf(normalQuantile(1.0)));
}

void TestIntervals::normalIntervalOfHits()
{
    // semantics.md 6.1: 7 of 10 → 0.15275
    const std::vector<double> hits = {1, 1, 1, 1, 1, 1, 1, 0, 0, 0};
    const auto interval = normalInterval(hits);
    QVERIFY(interval);
    QVERIFY(std::abs(interval->value - 0.7) < 1e-15);
    QVERIFY(std::abs(interval->standardError - std::sqrt(0.7 * 0.3 / 9)) < 1e-15);
    QVERIFY(std::abs(interval->high - 0.7 - 1.959963984540054 * interval->standardError) < 1e-14);
}

void TestIntervals::bothNormalIntervalsAgree()
{
    std::vector<double> values;
    double sum = 0.0;
    double squares = 0.0;
    PythonRandom random(7);
    for (int i = 0; i < 1000; ++i) {
        values.push_back(random.uniform());
        sum += values.back();
        squares += values.back() * values.back();
    }
    const auto one = normalInterval(values);
    const auto other = normalInterval(1000, sum, squares);
    QVERIFY(one && other);
    QVERIFY(std::abs(one->standardError - other->standardError) < 1e-14);
    QVERIFY(std::abs(one->low - other->low) < 1e-12);
}

void TestIntervals::oneValueHasNoError()
{
    // C-021
    const std::vector<double> one = {0.5};
    for (const auto& result : {normalInterval(one), normalInterval(std::span<const double>()),
                               bootstrapMean(one), normalInterval(1, 0.5, 0.25)}) {
        QVERIFY(!result);
        QVERIFY(result.error().kind == Error::Kind::Undefined);
        QVERIFY(!result.error().message.empty());
    }
}

void TestIntervals::wilsonAgainstPublishedValues()
{
    // R. G. Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    const struct {
        std::uint64_t hits, n;
        double low, high;
    } rows[] = {{81, 263, 0.2553, 0.3662},
                {15, 148, 0.0624, 0.1605},
                {0, 20, 0.0, 0.1611},
                {1, 29, 0.0061, 0.1718}};
    for (const auto& row : rows) {
        const auto interval = wilsonInterval(row.hits, row.n);
        QVERIFY(interval);
        QVERIFY(std::abs(interval->low - row.low) < 5.1e-5);
        QVERIFY(std::abs(interval->high - row.high) < 5.1e-5);
    }
    QCOMPARE(wilsonInterval(20, 20)->high, 1.0);
    QVERIFY(!wilsonInterval(0, 0));
    QVERIFY(!wilsonInterval(2, 1));
}

void TestIntervals::bootstrapOfAConstantIsSharp()
{
    const std::vector<double> values(50, 0.25);
    const auto interval = bootstrapMean(values);
    QVERIFY(interval);
    QCOMPARE(interval->value, 0.25);
    QCOMPARE(interval->standardError, 0.0);
    QCOMPARE(interval->low, 0.25);
    QCOMPARE(interval->high, 0.25);
}

void TestIntervals::bootstrapDependsOnOrderAndSeedOnly()
{
    std::vector<double> values;
    for (int i = 0; i < 10; ++i)
        values.push_back(i * 0.1);
    const auto first = bootstrapMean(values, {.replicates = 2000});
    QCOMPARE(*first, *bootstrapMean(values, {.replicates = 2000}));
    QVERIFY(*first != *bootstrapMean(values, {.replicates = 2000, .seed = 1}));
    // Python 3.11, random.Random(i) for chunks 0 and 1, statistics of the 2,000 means.
    QVERIFY(std::abs(first->standardError - 0.09337507069295026) < 1e-15);
    std::swap(values[0], values[9]);
    QVERIFY(first->standardError !=
            bootstrapMean(values, {.replicates = 2000})->standardError); // T-61
}

void TestIntervals::bootstrapErrorIsNotDividedByReplicates()
{
    // T-62: against the closed form of the mean, s·sqrt((n−1)/n)/sqrt(n).
    std::vector<double> values;
    for (int i = 0; i < 100; ++i)
        values.push_back(i % 2);
    const double closed = 0.5 / 10;
    for (const std::uint64_t replicates : {2000U, 20000U}) {
        const auto interval = bootstrapMean(values, {.replicates = replicates});
        QVERIFY(std::abs(interval->standardError / closed - 1.0) < 0.05);
        QVERIFY(interval->low < interval->value && interval->value < interval->high);
    }
}

void TestIntervals::bootstrapRoundsDownToWholeChunks()
{
    const std::vector<double> values = {0.0, 1.0, 2.0};
    QCOMPARE(*bootstrapMean(values, {.replicates = 2999}),
             *bootstrapMean(values, {.replicates = 2000}));
    QVERIFY(bootstrapMean(values, {.replicates = 10}));
    QVERIFY(!bootstrapMean(values, {.replicates = 1}));
}

void TestIntervals::bootstrapOfTenThousandIsFast()
{
    // C-021: 10,000 scores, 1,000 replicates, under 5 s.
    std::vector<double> values(10000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>(i % 3) / 2;
    QElapsedTimer timer;
    timer.start();
    QVERIFY(bootstrapMean(values));
    QVERIFY(timer.elapsed() < 5000);
}

void TestIntervals::badConfidencesAreRefused()
{
    const std::vector<double> values = {0.0, 1.0};
    for (const double confidence : {0.0, 1.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
        QCOMPARE(normalInterval(values, confidence).error().code, std::string("E-METRICS-011"));
        QVERIFY(!wilsonInterval(1, 2, confidence));
        QVERIFY(!bootstrapMean(values, {.confidence = confidence}));
    }
}

QTEST_GUILESS_MAIN(TestIntervals)
#include "tst_intervals.moc"
