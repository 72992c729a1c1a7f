// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/agreement.h"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::align {

/// Agreement when row i is taken for reference i + shift.
struct ShiftScore {
    std::int64_t shift = 0;
    std::uint64_t rows = 0;   ///< rows that meet a reference at this shift and were looked at
    std::uint64_t agreed = 0; ///< of these, rows whose prediction is right there
    double rate = 0.0;        ///< agreed / rows, 0..1; 0 without rows
    double z = 0.0;           ///< standard deviations above the background
};

/// Predictions against references shifted by −k … +k (ux.md A4). A file in order has one peak, at
/// 0; a peak elsewhere or none means that the order is wrong, or that the predictions are.
struct ShiftScan {
    std::vector<ShiftScore> scores; ///< by rising shift
    std::int64_t best = 0;          ///< shift with the largest z; 0 when nothing stands out
    double background = 0.0;        ///< mean rate of the shifts that do not stand out
    double spread = 0.0;            ///< their standard deviation, at least that of counting
    bool hasPeak = false;           ///< the best shift stands at least 6 deviations out
    std::string warning;            ///< why the scan says little; empty when it says enough
};

/// Scans −k … +k. At most 2^17 evenly spaced rows are looked at, so the time does not grow beyond
/// k times that. `warning` is set where answers are nearly constant (the most frequent one in more
/// than 60 % of the rows, or agreement by chance above 40 %) or rows are fewer than 30.
[[nodiscard]] ShiftScan shiftScan(const Agreement& agreement, std::int64_t k);

/// How the samples of a data set were dealt to ranks.
enum class Share {
    Block, ///< contiguous shares, the first N mod W one larger (semantics.md 1.3)
    Stride ///< rank r has r, r + W, … (semantics.md 1.2)
};

/// Agreement of the predictions of rank b with the references of rank a, place by place of their
/// shares: rate[a · W + b], 0..1. A file in order gives a diagonal; a large value beside it means
/// exchanged shares (ux.md A5).
struct CrossMatrix {
    std::uint64_t worldSize = 0;
    Share share = Share::Block;
    std::vector<double> rate; ///< [W · W]
};

/// `worldSize` from 1 to 256. At most 4,096 rows of each pair are looked at.
[[nodiscard]] CrossMatrix crossMatrix(const Agreement& agreement, std::uint64_t worldSize,
                                      Share share);

/// First index of the block share of `rank` (semantics.md 1.3); N for rank = W.
[[nodiscard]] std::uint64_t blockStart(std::uint64_t total, std::uint64_t worldSize,
                                       std::uint64_t rank);

} // namespace muster::align
