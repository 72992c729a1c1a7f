// SPDX-License-Identifier: Apache-2.0
#include "base/sums.h"

#include <QtTest>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using muster::compensatedSum;
using muster::ExactSum;
using muster::plainSum;

namespace {

double exactOf(const std::vector<double>& values)
{
    ExactSum sum;
    for (const double value : values)
        sum.add(value);
    return sum.result();
}

bool isSameBits(double a, double b)
{
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

constexpr double huge = std::numeric_limits<double>::max();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr double infinite = std::numeric_limits<double>::infinity();

} // namespace

class TestSums final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// Vectors: sum([0.1] * 10) of CPython 3.11 and 3.12, and math.fsum.
    void tenTenths()
    {
        const std::vector<double> tenths(10, 0.1);
        QVERIFY(isSameBits(plainSum(tenths), 0.9999999999999999));
        QVERIFY(isSameBits(compensatedSum(tenths), 1.0));
        QVERIFY(isSameBits(exactOf(tenths), 1.0));
    }

    void nothingSumsToZero()
    {
        QVERIFY(isSameBits(plainSum({}), 0.0));
        QVERIFY(isSameBits(compensatedSum({}), 0.0));
        QVERIFY(isSameBits(exactOf({}), 0.0));
    }

    void theCompensatedSumKeepsWhatIsSwallowed()
    {
        const std::vector<double> values{1.0, 1e100, 1.0, -1e100};
        QVERIFY(isSameBits(plainSum(values), 0.0));
        QVERIFY(isSameBits(compensatedSum(values), 2.0));
        QVERIFY(isSameBits(exactOf(values), 2.0));
    }

    void theExactSumIsCorrectlyRounded_data()
    {
        QTest::addColumn<QList<double>>("values");
        QTest::addColumn<double>("sum");
        const auto row = [](const char* name, const QList<double>& values, double sum) {
            QTest::newRow(name) << values << sum;
        };
        const double half = std::ldexp(1.0, -53); // half a unit in the last place of 1
        row("tie to even, down", {1.0, half}, 1.0);
        row("tie to even, up", {1.0 + 2 * half, half}, 1.0 + 4 * half);
        row("just above a tie", {1.0, half, tiny}, 1.0 + 2 * half);
        row("just below a tie", {1.0, half, -tiny}, 1.0);
        row("cancels", {huge, tiny, -huge}, tiny);
        row("subnormal", {tiny, tiny, tiny}, 3 * tiny);
        row("negative", {-1.0, -half, -tiny}, -1.0 - 2 * half);
        row("through infinity and back", {huge, huge, -huge}, huge);
        row("too large", {huge, huge}, infinite);
        row("infinity", {infinite, 1.0}, infinite);
    }

    void theExactSumIsCorrectlyRounded()
    {
        QFETCH(QList<double>, values);
        QFETCH(double, sum);
        std::vector<double> list(values.begin(), values.end());
        std::sort(list.begin(), list.end());
        do {
            QVERIFY(isSameBits(exactOf(list), sum));
        } while (std::next_permutation(list.begin(), list.end()));
    }

    void opposedInfinitiesAreNoNumber()
    {
        QVERIFY(std::isnan(exactOf({infinite, -infinite})));
        QVERIFY(std::isnan(exactOf({std::nan(""), 1.0})));
    }

    void theExactSumDependsOnNoOrderAndNoShares()
    {
        std::mt19937_64 random(7);
        std::vector<double> values(500);
        for (double& value : values)
            value = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())),
                               static_cast<int>(random() % 200) - 150);
        const double reference = exactOf(values);
        for (int round = 0; round < 20; ++round) {
            std::shuffle(values.begin(), values.end(), random);
            QVERIFY(isSameBits(exactOf(values), reference));
            for (const std::size_t shares : {1U, 2U, 3U, 8U}) {
                std::vector<ExactSum> parts(shares);
                for (std::size_t i = 0; i < values.size(); ++i)
                    parts[i % shares].add(values[i]);
                ExactSum total;
                for (const ExactSum& part : parts)
                    total.add(part);
                QVERIFY(isSameBits(total.result(), reference));
            }
        }
    }

    void theExactSumAgreesWithWiderNumbers()
    {
        // Sums of up to 1000 values of 53 bits within 2^1 of each other fit into 64 bits.
        if (std::numeric_limits<long double>::digits < 64)
            QSKIP("long double is not wider than double here");
        std::mt19937_64 random(11);
        for (int round = 0; round < 50; ++round) {
            ExactSum sum;
            long double wide = 0.0L;
            for (int i = 0; i < 1000; ++i) {
                const double value = 1.0 + std::ldexp(static_cast<double>(random() >> 12U), -52);
                sum.add(value);
                wide += value;
            }
            QVERIFY(isSameBits(sum.result(), static_cast<double>(wide)));
        }
    }
};

QTEST_GUILESS_MAIN(TestSums)
#include "tst_sums.moc"
