// SPDX-License-Identifier: Apache-2.0
#include "align/order_words_p.h"

#include "align/shift_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace muster::align {

namespace {

std::string placesText(std::uint64_t count)
{
    return count == 1 ? "one place" : fmt::format("{} places", count);
}

std::string rowsText(std::uint64_t count)
{
    return count == 1 ? "one row" : fmt::format("{} rows", count);
}

std::string countedRows(std::uint64_t count)
{
    return count == 1 ? "row" : fmt::format("{} rows", count);
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b)
{
    return a > b ? a - b : b - a;
}

/// References that a piece covers.
struct Stretch {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::size_t piece = 0;
};

std::vector<Stretch> stretchesOf(std::span<const Piece> pieces)
{
    std::vector<Stretch> stretches;
    for (std::size_t i = 0; i < pieces.size(); ++i)
        stretches.push_back({static_cast<std::int64_t>(pieces[i].first) + pieces[i].shift,
                             static_cast<std::int64_t>(pieces[i].end) + pieces[i].shift, i});
    return stretches;
}

/// Places in the order of references at which another piece stands; the stretches must tile the
/// references up to a few rows at the borders.
std::optional<std::vector<std::size_t>> movedPieces(std::vector<Stretch> sorted)
{
    constexpr std::int64_t slack = 24;
    std::ranges::sort(sorted, {}, &Stretch::first);
    std::vector<std::size_t> moved;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (sorted[i].piece != i)
            moved.push_back(i);
        if (i + 1 < sorted.size() && std::abs(sorted[i].end - sorted[i + 1].first) > slack)
            return std::nullopt;
    }
    return moved;
}

/// Two stretches that stand in each other's place, the rest in order.
bool nameExchange(OrderDiagnosis& made, std::span<const Piece> pieces)
{
    const auto moved = movedPieces(stretchesOf(pieces));
    if (!moved || moved->size() != 2)
        return false;
    const Piece& a = pieces[(*moved)[0]];
    const Piece& b = pieces[(*moved)[1]];
    made.disorder = Disorder::BlocksExchanged;
    made.place = a.first;
    made.count = std::max(a.end - a.first, b.end - b.first);
    made.sentence = fmt::format("rows {} to {} and rows {} to {} are exchanged", a.first, a.end - 1,
                                b.first, b.end - 1);
    return true;
}

std::string copiesText(const OrderDiagnosis& diagnosis)
{
    if (diagnosis.copies == 0)
        return {};
    return fmt::format("; {} of the rows {} of others, as a sampler that pads adds",
                       diagnosis.copies, diagnosis.copies == 1 ? "is a copy" : "are copies");
}

} // namespace

std::string_view word(Disorder disorder)
{
    switch (disorder) {
    case Disorder::None:
        return "none";
    case Disorder::Late:
        return "late";
    case Disorder::Early:
        return "early";
    case Disorder::RankMajor:
        return "rank-major";
    case Disorder::BatchMajor:
        return "batch-major";
    case Disorder::StepMajor:
        return "step-major";
    case Disorder::BlocksExchanged:
        return "blocks-exchanged";
    case Disorder::RanksExchanged:
        return "ranks-exchanged";
    case Disorder::PaddingAtEnd:
        return "padding-at-end";
    case Disorder::SamplerCopies:
        return "sampler-copies";
    case Disorder::PadsInFront:
        return "pads-in-front";
    case Disorder::Reversed:
        return "reversed";
    case Disorder::Sorted:
        return "sorted";
    case Disorder::Shuffled:
        return "shuffled";
    case Disorder::Pieces:
        return "pieces";
    }
    return "none";
}

OrderDiagnosis namePieces(std::span<const Piece> pieces, std::span<const Change> changes,
                          std::uint64_t rows)
{
    OrderDiagnosis made;
    made.pieces.assign(pieces.begin(), pieces.end());
    if (pieces.empty() || (pieces.size() == 1 && pieces.front().shift == 0))
        return made;
    if (pieces.size() == 1) {
        const std::int64_t shift = pieces.front().shift;
        made.disorder = shift < 0 ? Disorder::PadsInFront : Disorder::Early;
        made.count = static_cast<std::uint64_t>(std::abs(shift));
        return made;
    }
    const auto setPlace = [&](const Change& change) {
        made.place = change.place;
        made.placeLow = std::min(change.low, change.place);
        made.placeHigh = std::max(change.high, change.place);
    };
    if (pieces.size() == 2 && pieces.front().shift == 0) {
        const std::int64_t shift = pieces.back().shift;
        setPlace(changes.front());
        made.count = static_cast<std::uint64_t>(std::abs(shift));
        // The end of the file that is the start of the data set again.
        if (shift < 0 && pieces.back().first == made.count) {
            made.disorder = Disorder::PaddingAtEnd;
            made.count = rows - pieces.back().first;
            made.key = "first";
            return made;
        }
        made.disorder = shift < 0 ? Disorder::Late : Disorder::Early;
        return made;
    }
    if (nameExchange(made, pieces)) {
        made.placeLow = made.place;
        made.placeHigh = made.place;
        for (std::size_t i = 0; i < changes.size(); ++i) {
            if (pieces[i + 1].first == made.place) {
                made.placeLow = std::min(changes[i].low, made.place);
                made.placeHigh = std::max(changes[i].high, made.place);
            }
        }
        return made;
    }
    made.disorder = Disorder::Pieces;
    if (pieces.front().shift == 0)
        setPlace(changes.front());
    return made;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>>
exchangedRanks(std::span<const Piece> pieces, std::uint64_t references, std::uint64_t world)
{
    constexpr std::uint64_t slack = 24;
    const auto stretches = stretchesOf(pieces);
    const auto moved = movedPieces(stretches);
    if (!moved || moved->size() != 2)
        return std::nullopt;
    const auto rankOf = [&](const Stretch& one) -> std::optional<std::uint64_t> {
        for (std::uint64_t rank = 0; rank < world; ++rank) {
            if (distance(blockStart(references, world, rank),
                         static_cast<std::uint64_t>(std::max<std::int64_t>(0, one.first))) <=
                    slack &&
                distance(blockStart(references, world, rank + 1),
                         static_cast<std::uint64_t>(std::max<std::int64_t>(0, one.end))) <= slack)
                return rank;
        }
        return std::nullopt;
    };
    const auto a = rankOf(stretches[(*moved)[0]]);
    const auto b = rankOf(stretches[(*moved)[1]]);
    if (!a || !b || *a == *b)
        return std::nullopt;
    return std::pair{std::min(*a, *b), std::max(*a, *b)};
}

OrderDiagnosis nameExchangedRanks(std::span<const Piece> exact, std::uint64_t world,
                                  std::uint64_t a, std::uint64_t b)
{
    OrderDiagnosis made;
    made.disorder = Disorder::BlocksExchanged;
    made.pieces.assign(exact.begin(), exact.end());
    made.worldSize = world;
    made.rankA = a;
    made.rankB = b;
    made.place = made.placeLow = made.placeHigh = exact[a].first;
    made.count = std::max(exact[a].end - exact[a].first, exact[b].end - exact[b].first);
    made.sentence = fmt::format(
        "ranks {} and {} are exchanged: rows {} to {} and rows {} to {}, block shares of world "
        "size {}",
        a, b, exact[a].first, exact[a].end - 1, exact[b].first, exact[b].end - 1, world);
    return made;
}

void nameOrder(OrderDiagnosis& diagnosis, std::uint64_t rows, std::uint64_t references)
{
    const std::uint64_t k = diagnosis.count;
    const std::string range =
        diagnosis.placeLow < diagnosis.placeHigh
            ? fmt::format(" (between rows {} and {})", diagnosis.placeLow, diagnosis.placeHigh)
            : std::string();
    switch (diagnosis.disorder) {
    case Disorder::None:
        break;
    case Disorder::Late:
        diagnosis.sentence = fmt::format("from index {} on everything is {} late{}",
                                         diagnosis.place, placesText(k), range);
        diagnosis.cause =
            fmt::format("{} {} repeated or put in there", rowsText(k), k == 1 ? "was" : "were");
        break;
    case Disorder::Early:
        diagnosis.sentence = fmt::format("from index {} on everything is {} early{}",
                                         diagnosis.place, placesText(k), range);
        diagnosis.cause = fmt::format("{} {} dropped there", rowsText(k), k == 1 ? "was" : "were");
        break;
    case Disorder::RankMajor:
        diagnosis.sentence = fmt::format(
            "the file is rank-major: strided shares of world size {} one after the other{}{}",
            diagnosis.worldSize,
            diagnosis.key == "name" ? ", in the order of names (0, 1, 10, …)" : "",
            copiesText(diagnosis));
        diagnosis.cause = "every rank had each W-th sample, and the gather chained the ranks";
        break;
    case Disorder::BatchMajor:
        diagnosis.sentence =
            fmt::format("the file is rank-major: batches of {} dealt in turn to world size {}, one "
                        "rank after the other{}",
                        diagnosis.batch, diagnosis.worldSize, copiesText(diagnosis));
        diagnosis.cause = "ranks gathered once at the end instead of after every step";
        break;
    case Disorder::StepMajor:
        diagnosis.sentence =
            fmt::format("the file is in steps: strided shares of world size {} "
                        "gathered after every {} rows of each rank{}",
                        diagnosis.worldSize, diagnosis.batch, copiesText(diagnosis));
        diagnosis.cause = "a strided sampler with a gather after every batch";
        break;
    case Disorder::BlocksExchanged:
        diagnosis.cause = "parts of the file were joined in another order";
        break;
    case Disorder::RanksExchanged:
        diagnosis.sentence =
            fmt::format("ranks {} and {} are exchanged: of every {} rows (world size {}), row {} "
                        "and row {} stand in each other's place",
                        diagnosis.rankA, diagnosis.rankB, diagnosis.worldSize, diagnosis.worldSize,
                        diagnosis.rankA, diagnosis.rankB);
        diagnosis.cause = "the ranks' results were joined under the wrong rank";
        break;
    case Disorder::PaddingAtEnd:
        if (diagnosis.key == "first")
            diagnosis.sentence =
                rows > references
                    ? fmt::format("the last {} {} padding: {} of the first {}", countedRows(k),
                                  k == 1 ? "is" : "are", k == 1 ? "a copy" : "copies", k)
                    : fmt::format("the last {} {} padding: {} of the first {} instead of samples "
                                  "{} to {}",
                                  countedRows(k), k == 1 ? "is" : "are",
                                  k == 1 ? "a copy" : "copies", k, rows - k, rows - 1);
        else if (diagnosis.key == "last")
            diagnosis.sentence =
                fmt::format("the last {} {} padding: {} of the last sample {}", countedRows(k),
                            k == 1 ? "is" : "are", k == 1 ? "a copy" : "copies", references - 1);
        else
            diagnosis.sentence = fmt::format("the last {} {} beyond the {} references",
                                             countedRows(k), k == 1 ? "lies" : "lie", references);
        diagnosis.cause = "a sampler evened out the ranks, and nothing removed its copies";
        break;
    case Disorder::SamplerCopies:
        diagnosis.sentence = fmt::format(
            "the first {} stand twice, so from index {} on everything is up to {} late",
            k == 1 ? "sample" : fmt::format("{} samples", k), diagnosis.place, placesText(k));
        diagnosis.cause = "a sampler that pads repeats the first samples; sorted by index, the "
                          "copies come first";
        break;
    case Disorder::PadsInFront:
        diagnosis.sentence = fmt::format("{} {} in front, so everything is {} late from index 0 on",
                                         k == 1 ? "a row that is no sample"
                                                : fmt::format("{} rows that are no "
                                                              "samples",
                                                              k),
                                         k == 1 ? "stands" : "stand", placesText(k));
        diagnosis.cause = "padding marked −1 sorts to the front";
        break;
    case Disorder::Reversed:
        diagnosis.sentence = "the rows stand in reverse order";
        break;
    case Disorder::Sorted:
        diagnosis.sentence = fmt::format("the rows are sorted by {}", diagnosis.key);
        diagnosis.cause = "the order of the data set was not restored";
        break;
    case Disorder::Shuffled:
        diagnosis.sentence =
            "the rows are shuffled: many predictions are right at other references and hardly any "
            "in their place, without a pattern";
        diagnosis.cause = "a sampler that shuffles, and no index that was carried along";
        break;
    case Disorder::Pieces: {
        diagnosis.sentence =
            fmt::format("{} pieces stand at different places", diagnosis.pieces.size());
        std::size_t shown = 0;
        for (const Piece& piece : diagnosis.pieces) {
            if (shown == 4)
                break;
            diagnosis.sentence += fmt::format(
                "{} rows {} to {} are {}", shown == 0 ? ":" : ",", piece.first, piece.end - 1,
                piece.shift == 0
                    ? std::string("in place")
                    : fmt::format("{} {}",
                                  placesText(static_cast<std::uint64_t>(std::abs(piece.shift))),
                                  piece.shift < 0 ? "late" : "early"));
            ++shown;
        }
        if (diagnosis.pieces.size() > shown)
            diagnosis.sentence += ", and so on";
        break;
    }
    }
}

} // namespace muster::align
