// SPDX-License-Identifier: Apache-2.0
#include "align/likelihood_p.h"

#include <algorithm>
#include <limits>

namespace muster::align {

namespace {

constexpr std::size_t mostShifts = 32;
constexpr std::int64_t nearShift = 64;
constexpr std::uint64_t parts = 32;

std::uint64_t shifted(std::uint64_t row, std::int64_t shift)
{
    return row + static_cast<std::uint64_t>(shift);
}

} // namespace

double changeCost(std::uint64_t rows)
{
    return 4.0 + std::log(static_cast<double>(std::max<std::uint64_t>(rows, 2)));
}

std::vector<std::int64_t> candidateShifts(const RowScores& scores)
{
    const Agreement& agreement = scores.agreement();
    const std::uint64_t rows = agreement.rows();
    const auto references = static_cast<std::int64_t>(agreement.references());
    struct Vote {
        std::int64_t shift;
        double weight;
    };
    std::vector<Vote> votes;

    std::vector<float> byShift(rows + agreement.references() + 1, 0.0F);
    for (std::uint64_t row = 0; row < rows; ++row) {
        const auto who = agreement.acceptors(row);
        if (who.empty() || who.size() > rareAcceptors)
            continue;
        const float weight = 1.0F / static_cast<float>(who.size());
        for (const std::uint32_t reference : who)
            byShift[reference + rows - row] += weight;
    }
    for (std::size_t i = 0; i < byShift.size(); ++i) {
        if (byShift[i] >= 4.0F)
            votes.push_back(
                {static_cast<std::int64_t>(i) - static_cast<std::int64_t>(rows), byShift[i]});
    }
    std::ranges::sort(votes, [](const Vote& a, const Vote& b) { return a.weight > b.weight; });

    std::vector<std::int64_t> shifts{0};
    const auto add = [&shifts](std::int64_t shift) {
        if (shifts.size() < mostShifts && std::ranges::find(shifts, shift) == shifts.end())
            shifts.push_back(shift);
    };
    for (const Vote& vote : votes) {
        if (shifts.size() >= mostShifts - 8)
            break;
        add(vote.shift);
    }
    // Near shifts that win a part of the file, for answers that are not rare.
    constexpr std::uint64_t mostInPart = 1024;
    for (std::uint64_t part = 0; part < parts; ++part) {
        const std::uint64_t first = rows * part / parts;
        const std::uint64_t end = std::min(rows * (part + 1) / parts, first + mostInPart);
        double best = 0.0;
        std::int64_t winner = 0;
        for (std::int64_t shift = -std::min(nearShift, references);
             shift <= std::min(nearShift, references); ++shift) {
            double sum = 0.0;
            for (std::uint64_t row = first; row < end; ++row)
                sum += static_cast<double>(scores.at(row, shifted(row, shift)));
            if (sum > best || (sum == best && shift == 0)) {
                best = sum;
                winner = shift;
            }
        }
        if (best > 8.0)
            add(winner);
    }
    return shifts;
}

std::vector<Piece> mostLikelyPieces(const RowScores& scores, std::span<const std::int64_t> shifts)
{
    const std::uint64_t rows = scores.agreement().rows();
    const std::size_t states = shifts.size() + 1; // the last: no shift at all
    const double cost = changeCost(rows);
    std::vector<double> value(states, -cost);
    value[0] = 0.0;
    std::vector<std::uint64_t> jumped(rows, 0); // bit s: state s came from best[row]
    std::vector<std::uint8_t> best(rows, 0);    // best state before the row
    for (std::uint64_t row = 0; row < rows; ++row) {
        const auto top = std::ranges::max_element(value);
        best[row] = static_cast<std::uint8_t>(top - value.begin());
        const double entered = *top - cost;
        for (std::size_t s = 0; s < states; ++s) {
            if (row > 0 && entered > value[s]) {
                value[s] = entered;
                jumped[row] |= std::uint64_t{1} << s;
            }
            value[s] += s < shifts.size()
                            ? static_cast<double>(scores.at(row, shifted(row, shifts[s])))
                            : -1e-4;
        }
    }
    std::vector<Piece> pieces;
    if (rows == 0)
        return pieces;
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
    auto state = static_cast<std::size_t>(std::ranges::max_element(value) - value.begin());
    std::uint64_t end = rows;
    for (std::uint64_t row = rows; row-- > 0;) {
        const bool isChange = ((jumped[row] >> state) & 1U) != 0;
        if (!isChange && row > 0)
            continue;
        const std::uint64_t first = isChange ? row : 0;
        pieces.push_back({first, end, state < shifts.size() ? shifts[state] : none});
        end = first;
        if (first == 0)
            break;
        state = best[row];
    }
    std::ranges::reverse(pieces);
    // A stretch without a shift belongs to what stands before it, at the front to what follows.
    std::vector<Piece> joined;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        Piece piece = pieces[i];
        if (piece.shift == none)
            piece.shift = joined.empty() ? (i + 1 < pieces.size() ? pieces[i + 1].shift : 0)
                                         : joined.back().shift;
        if (!joined.empty() && joined.back().shift == piece.shift)
            joined.back().end = piece.end;
        else
            joined.push_back(piece);
    }
    return joined;
}

Change placeOfChange(const RowScores& scores, const Piece& before, const Piece& after)
{
    // Gain of taking rows up to b for `before`, relative to the place found.
    constexpr double slack = 8.0;
    constexpr std::uint64_t reach = 512;
    const auto difference = [&](std::uint64_t row) {
        return static_cast<double>(scores.at(row, shifted(row, before.shift))) -
               static_cast<double>(scores.at(row, shifted(row, after.shift)));
    };
    const std::uint64_t found = after.first;
    const std::uint64_t first = std::max(before.first + 1, found > reach ? found - reach : 0);
    const std::uint64_t last = std::min(after.end - 1, found + reach);
    std::vector<double> gain(last - first + 1, 0.0);
    for (std::uint64_t b = found; b < last; ++b)
        gain[b + 1 - first] = gain[b - first] + difference(b);
    for (std::uint64_t b = found; b > first; --b)
        gain[b - 1 - first] = gain[b - first] - difference(b - 1);
    // Rows b … b+late−1 were put in. When they repeat the rows before them, they say where.
    const std::int64_t late = before.shift - after.shift;
    const Agreement& agreement = scores.agreement();
    for (std::uint64_t b = first; late > 0 && b <= last; ++b) {
        const auto k = static_cast<std::uint64_t>(late);
        if (b < k || b + k > agreement.rows())
            continue;
        double info = 0.0;
        std::uint64_t t = 0;
        for (; t < k; ++t) {
            const std::uint32_t one = agreement.prediction(b + t);
            if (one == noAnswer || one != agreement.prediction(b - k + t))
                break;
            info -= std::log(agreement.share(b + t));
        }
        if (t == k)
            gain[b - first] += std::min(info, 30.0);
    }
    const double most = *std::ranges::max_element(gain);
    Change change{found, found, found};
    bool isSet = false;
    for (std::uint64_t b = first; b <= last; ++b) {
        if (gain[b - first] < most - slack)
            continue;
        if (!isSet)
            change.low = b;
        change.high = b;
        if (!isSet || (gain[b - first] >= most && gain[change.place - first] < most))
            change.place = b;
        isSet = true;
    }
    return change;
}

} // namespace muster::align
