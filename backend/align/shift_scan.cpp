// SPDX-License-Identifier: Apache-2.0
#include "align/shift_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::align {

namespace {

constexpr std::uint64_t mostRows = std::uint64_t{1} << 17U;
constexpr double peakDeviations = 6.0;

std::string warningOf(const Agreement& agreement)
{
    if (agreement.rows() < 30)
        return fmt::format("{} rows are too few to test their order", agreement.rows());
    if (agreement.largestShare() > 0.6)
        return fmt::format("{:.0f} % of the predictions are the same answer: with nearly constant "
                           "answers the scan says little about the order",
                           100.0 * agreement.largestShare());
    if (agreement.meanChance() > 0.4)
        return fmt::format("a prediction is right at {:.0f} % of the references by chance: the "
                           "scan needs many rows to say something about the order",
                           100.0 * agreement.meanChance());
    return {};
}

std::uint64_t shareSize(std::uint64_t total, std::uint64_t world, Share share, std::uint64_t rank)
{
    if (share == Share::Block)
        return blockStart(total, world, rank + 1) - blockStart(total, world, rank);
    return total / world + (rank < total % world ? 1U : 0U);
}

std::uint64_t indexOf(std::uint64_t total, std::uint64_t world, Share share, std::uint64_t rank,
                      std::uint64_t local)
{
    return share == Share::Block ? blockStart(total, world, rank) + local : rank + local * world;
}

} // namespace

std::uint64_t blockStart(std::uint64_t total, std::uint64_t worldSize, std::uint64_t rank)
{
    return rank * (total / worldSize) + std::min(rank, total % worldSize);
}

ShiftScan shiftScan(const Agreement& agreement, std::int64_t k)
{
    ShiftScan scan;
    const auto total = static_cast<std::int64_t>(agreement.references());
    const std::uint64_t step = std::max<std::uint64_t>(1, agreement.rows() / mostRows);
    std::vector<double> rates;
    for (std::int64_t shift = -k; shift <= k; ++shift) {
        ShiftScore score;
        score.shift = shift;
        for (std::uint64_t row = 0; row < agreement.rows(); row += step) {
            const std::int64_t reference = static_cast<std::int64_t>(row) + shift;
            if (reference < 0 || reference >= total || agreement.prediction(row) == noAnswer)
                continue;
            ++score.rows;
            score.agreed += agreement.agrees(row, static_cast<std::uint64_t>(reference)) ? 1U : 0U;
        }
        if (score.rows > 0)
            score.rate = static_cast<double>(score.agreed) / static_cast<double>(score.rows);
        rates.push_back(score.rate);
        scan.scores.push_back(score);
    }
    // Background without what stands out: median and median deviation, then the mean of the rest.
    auto sorted = rates;
    std::ranges::sort(sorted);
    const double median = sorted[sorted.size() / 2];
    std::vector<double> distance;
    for (const double rate : rates)
        distance.push_back(std::abs(rate - median));
    std::ranges::sort(distance);
    const double limit = std::max(4.0 * 1.4826 * distance[distance.size() / 2], 1e-9);
    double sum = 0.0;
    double squares = 0.0;
    double count = 0.0;
    for (const double rate : rates) {
        if (std::abs(rate - median) > limit)
            continue;
        sum += rate;
        squares += rate * rate;
        count += 1.0;
    }
    scan.background = count > 0.0 ? sum / count : median;
    const double variance =
        count > 1.0 ? std::max(0.0, squares / count - scan.background * scan.background) : 0.0;
    double best = -1.0;
    for (ShiftScore& score : scan.scores) {
        if (score.rows == 0)
            continue;
        const double expected = std::max(scan.background, agreement.meanChance());
        const double counting =
            std::max(expected * (1.0 - expected), 1e-6) / static_cast<double>(score.rows);
        const double spread = std::sqrt(std::max(variance, counting));
        scan.spread = std::max(scan.spread, spread);
        score.z = (score.rate - scan.background) / spread;
        if (score.z > best || (score.z == best && score.shift == 0)) {
            best = score.z;
            scan.best = score.shift;
        }
    }
    scan.hasPeak = best >= peakDeviations;
    if (!scan.hasPeak)
        scan.best = 0;
    scan.warning = warningOf(agreement);
    return scan;
}

CrossMatrix crossMatrix(const Agreement& agreement, std::uint64_t worldSize, Share share)
{
    CrossMatrix matrix;
    matrix.worldSize = worldSize;
    matrix.share = share;
    matrix.rate.assign(worldSize * worldSize, 0.0);
    constexpr std::uint64_t most = 4096;
    for (std::uint64_t a = 0; a < worldSize; ++a) {
        for (std::uint64_t b = 0; b < worldSize; ++b) {
            const std::uint64_t size =
                std::min(shareSize(agreement.references(), worldSize, share, a),
                         shareSize(agreement.rows(), worldSize, share, b));
            const std::uint64_t step = std::max<std::uint64_t>(1, size / most);
            std::uint64_t seen = 0;
            std::uint64_t agreed = 0;
            for (std::uint64_t local = 0; local < size; local += step) {
                ++seen;
                agreed +=
                    agreement.agrees(indexOf(agreement.rows(), worldSize, share, b, local),
                                     indexOf(agreement.references(), worldSize, share, a, local))
                        ? 1U
                        : 0U;
            }
            matrix.rate[a * worldSize + b] =
                seen == 0 ? 0.0 : static_cast<double>(agreed) / static_cast<double>(seen);
        }
    }
    return matrix;
}

} // namespace muster::align
