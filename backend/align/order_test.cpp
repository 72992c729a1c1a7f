// SPDX-License-Identifier: Apache-2.0
#include "align/order_test.h"

#include "align/likelihood_p.h"
#include "align/order_words_p.h"
#include "align/shift_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace muster::align {

namespace {

constexpr double alarmNats = 25.0; // an order other than the one at hand must be this much better
constexpr double testableNats = 12.0;
constexpr std::size_t probeRows = 600;
constexpr std::size_t earlyRows = 60;
constexpr std::size_t finalists = 24;
constexpr std::uint64_t mostWorlds = 512;
constexpr std::uint64_t mostCopies = 1024;

/// One order to test: a reference for each row, and how to say it.
struct Hypothesis {
    OrderDiagnosis said; // without referenceOf
    std::function<std::uint64_t(std::uint64_t)> referenceAt;
    double priorNats = 0.0; // what it costs to have been chosen among its kind
    double probe = 0.0;
    double total = 0.0;
};

std::function<std::uint64_t(std::uint64_t)> byPieces(std::vector<Piece> pieces)
{
    return [pieces = std::move(pieces)](std::uint64_t row) {
        const auto next =
            std::ranges::upper_bound(pieces, row, {}, [](const Piece& p) { return p.first; });
        const std::int64_t reference =
            static_cast<std::int64_t>(row) + (next == pieces.begin() ? 0 : (next - 1)->shift);
        return reference < 0 ? noReference : static_cast<std::uint64_t>(reference);
    };
}

/// Everything that is formed once for a file.
class Tester final {
public:
    Tester(const Agreement& agreement, std::span<const NamedOrder> orders)
        : m_agreement(agreement), m_orders(orders), m_scores(agreement, 0.5)
    {
        chooseProbes();
    }

    OrderDiagnosis run();

private:
    void chooseProbes();
    [[nodiscard]] double probe(const std::function<std::uint64_t(std::uint64_t)>& at) const;
    void consider(Hypothesis hypothesis);
    void considerDealings();
    void considerCopies();
    void considerExchangedRanks();
    void considerOthers();
    void considerPieces();
    void considerExchangedBlocks(const Hypothesis& pieces);
    [[nodiscard]] double total(const std::vector<std::uint64_t>& map) const;
    [[nodiscard]] std::vector<std::uint64_t>
    mapOf(const std::function<std::uint64_t(std::uint64_t)>& at) const;
    void finish(OrderDiagnosis& diagnosis) const;
    void nameExtraRows(OrderDiagnosis& diagnosis) const;
    [[nodiscard]] bool looksShuffled() const;

    const Agreement& m_agreement;
    std::span<const NamedOrder> m_orders;
    RowScores m_scores;
    std::vector<std::uint64_t> m_probes;
    double m_identityProbe = 0.0;
    std::vector<Hypothesis> m_finalists;
};

void Tester::chooseProbes()
{
    std::vector<std::uint64_t> rare;
    std::vector<std::uint64_t> other;
    for (std::uint64_t row = 0; row < m_agreement.rows(); ++row) {
        if (!m_scores.isTelling(row))
            continue;
        if (m_agreement.acceptors(row).size() <= rareAcceptors)
            rare.push_back(row);
        else
            other.push_back(row);
    }
    const auto& from = rare.size() >= 64 ? rare : other.size() > rare.size() ? other : rare;
    const std::size_t count = std::min(probeRows, from.size());
    // Evenly spaced, visited in large steps so that the first few are spread over the file.
    const std::size_t step = count > 7 && std::gcd(count, std::size_t{7}) == 1 ? count * 5 / 13 : 1;
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        m_probes.push_back(from[at * from.size() / count]);
        at = (at + (std::gcd(step, count) == 1 ? step : 1)) % count;
    }
    m_identityProbe = probe([](std::uint64_t row) { return row; });
}

double Tester::probe(const std::function<std::uint64_t(std::uint64_t)>& at) const
{
    double sum = 0.0;
    for (std::size_t i = 0; i < m_probes.size(); ++i) {
        sum += static_cast<double>(m_scores.at(m_probes[i], at(m_probes[i])));
        if (i == earlyRows && sum < -8.0)
            break;
    }
    return sum;
}

void Tester::consider(Hypothesis hypothesis)
{
    hypothesis.probe = probe(hypothesis.referenceAt);
    if (hypothesis.probe < 6.0)
        return;
    const auto place = std::ranges::upper_bound(m_finalists, hypothesis.probe, std::greater<>{},
                                                &Hypothesis::probe);
    if (static_cast<std::size_t>(place - m_finalists.begin()) >= finalists)
        return;
    m_finalists.insert(place, std::move(hypothesis));
    if (m_finalists.size() > finalists)
        m_finalists.pop_back();
}

void Tester::considerDealings()
{
    const std::uint64_t references = m_agreement.references();
    const std::uint64_t rows = m_agreement.rows();
    const auto test = [&](const Dealing& dealing, Disorder disorder, double prior) {
        if (dealing.isPadded && references % dealing.world == 0 &&
            dealing.kind == Dealing::Kind::Stride)
            return;
        const auto order = std::make_shared<DealtOrder>(references, dealing);
        Hypothesis made;
        made.referenceAt = [order](std::uint64_t row) {
            return row < order->size() ? order->at(row) : noReference;
        };
        made.said.disorder = disorder;
        made.said.worldSize = dealing.world;
        made.said.batch = dealing.kind == Dealing::Kind::Stride ? 0 : dealing.batch;
        made.said.key = dealing.isByName ? "name" : "";
        made.priorNats = prior + (rows == order->size() ? 0.0 : 2.0);
        consider(std::move(made));
    };
    for (std::uint64_t world = 2; world <= std::min(mostWorlds, references / 2); ++world) {
        for (const bool isPadded : {false, true}) {
            test({Dealing::Kind::Stride, world, 1, isPadded, false}, Disorder::RankMajor, 6.0);
            if (world > 10 && world <= 128)
                test({Dealing::Kind::Stride, world, 1, isPadded, true}, Disorder::RankMajor, 9.0);
        }
    }
    for (std::uint64_t world = 2; world <= std::min<std::uint64_t>(64, references / 2); ++world) {
        for (std::uint64_t batch = 2; batch <= 1024; batch += batch < 64 ? 1 : batch / 8) {
            if (world * batch >= references)
                break;
            for (const bool isPadded : {false, true})
                test({Dealing::Kind::Batches, world, batch, isPadded, false}, Disorder::BatchMajor,
                     10.0);
            test({Dealing::Kind::Steps, world, batch, true, false}, Disorder::StepMajor, 10.0);
        }
    }
}

void Tester::considerCopies()
{
    const std::uint64_t references = m_agreement.references();
    const std::uint64_t rows = m_agreement.rows();
    for (std::uint64_t k = 1; k <= std::min(mostCopies, references / 4); ++k) {
        Hypothesis twice;
        twice.said.disorder = Disorder::SamplerCopies;
        twice.said.count = k;
        twice.priorNats = 7.0;
        twice.referenceAt = [k](std::uint64_t row) { return row < 2 * k ? row / 2 : row - k; };
        consider(std::move(twice));
        Hypothesis front;
        front.said.disorder = Disorder::PadsInFront;
        front.said.count = k;
        front.priorNats = 7.0;
        front.referenceAt = [k](std::uint64_t row) { return row < k ? noReference : row - k; };
        consider(std::move(front));
    }
    // The last k rows are the first k again: the longest end of the file that is also its start.
    std::vector<std::uint64_t> border(rows, 0);
    for (std::uint64_t row = 1; row < rows; ++row) {
        std::uint64_t k = border[row - 1];
        while (k > 0 && m_agreement.prediction(row) != m_agreement.prediction(k))
            k = border[k - 1];
        border[row] = m_agreement.prediction(row) == m_agreement.prediction(k) ? k + 1 : 0;
    }
    if (rows < 2 || border.back() == 0 || rows > references)
        return;
    const std::uint64_t k = border.back();
    if (k > rows / 2)
        return;
    Hypothesis tail;
    tail.said.disorder = Disorder::PaddingAtEnd;
    tail.said.count = k;
    tail.said.key = "first";
    tail.priorNats = 4.0;
    tail.referenceAt = [k, rows](std::uint64_t row) {
        return row < rows - k ? row : row - (rows - k);
    };
    tail.probe = m_identityProbe;
    m_finalists.push_back(std::move(tail));
}

void Tester::considerExchangedRanks()
{
    constexpr std::uint64_t worlds = 64;
    constexpr std::uint64_t most = 20000;
    const std::uint64_t rows = m_agreement.rows();
    std::vector<float> votes(worlds * worlds * worlds, 0.0F);
    const std::uint64_t step = std::max<std::uint64_t>(1, rows / most);
    for (std::uint64_t row = 0; row < rows; row += step) {
        const auto who = m_agreement.acceptors(row);
        if (who.empty() || who.size() > rareAcceptors)
            continue;
        const float weight = 1.0F / static_cast<float>(who.size());
        for (const std::uint32_t reference : who) {
            const std::uint64_t distance = reference > row ? reference - row : row - reference;
            if (distance == 0 || distance >= worlds)
                continue;
            for (std::uint64_t world = distance + 1; world < worlds; ++world) {
                if (row / world == reference / world)
                    votes[(world * worlds + row % world) * worlds + reference % world] += weight;
            }
        }
    }
    for (std::uint64_t world = 2; world < std::min(worlds, rows / 4); ++world) {
        std::optional<std::pair<std::uint64_t, std::uint64_t>> best;
        float most2 = 2.0F;
        for (std::uint64_t a = 0; a < world; ++a) {
            for (std::uint64_t b = a + 1; b < world; ++b) {
                const float both = std::min(votes[(world * worlds + a) * worlds + b],
                                            votes[(world * worlds + b) * worlds + a]);
                if (both > most2) {
                    most2 = both;
                    best = {a, b};
                }
            }
        }
        if (!best)
            continue;
        const auto [a, b] = *best;
        Hypothesis made;
        made.said.disorder = Disorder::RanksExchanged;
        made.said.worldSize = world;
        made.said.rankA = a;
        made.said.rankB = b;
        made.priorNats = 10.0;
        made.referenceAt = [world = world, a = a, b = b, rows](std::uint64_t row) {
            const std::uint64_t rank = row % world;
            const std::uint64_t start = row - rank;
            if (start + b >= rows || (rank != a && rank != b))
                return row;
            return start + (rank == a ? b : a);
        };
        // Most rows stay where they are, so the probes say little: always a finalist.
        made.probe = probe(made.referenceAt);
        if (made.probe > m_identityProbe)
            consider(std::move(made));
    }
}

void Tester::considerOthers()
{
    const std::uint64_t references = m_agreement.references();
    Hypothesis reversed;
    reversed.said.disorder = Disorder::Reversed;
    reversed.priorNats = 3.0;
    const std::uint64_t last = references - 1;
    reversed.referenceAt = [last](std::uint64_t row) {
        return row <= last ? last - row : noReference;
    };
    consider(std::move(reversed));

    const auto addOrder = [&](const std::string& name,
                              std::shared_ptr<const std::vector<std::uint64_t>> order) {
        Hypothesis made;
        made.said.disorder = Disorder::Sorted;
        made.said.key = name;
        made.priorNats = 4.0;
        made.referenceAt = [order](std::uint64_t row) {
            return row < order->size() ? (*order)[row] : noReference;
        };
        consider(std::move(made));
    };
    if (references > 10)
        addOrder("index as text (0, 1, 10, 11, …)",
                 std::make_shared<const std::vector<std::uint64_t>>(orderByName(references)));
    for (const NamedOrder& order : m_orders)
        addOrder(order.name, std::make_shared<const std::vector<std::uint64_t>>(order.order));
}

std::vector<std::uint64_t>
Tester::mapOf(const std::function<std::uint64_t(std::uint64_t)>& at) const
{
    std::vector<std::uint64_t> map(m_agreement.rows());
    for (std::uint64_t row = 0; row < map.size(); ++row)
        map[row] = at(row);
    return map;
}

double Tester::total(const std::vector<std::uint64_t>& map) const
{
    std::vector<std::uint32_t> firstRow(m_agreement.references(), noAnswer);
    double sum = 0.0;
    for (std::uint64_t row = 0; row < map.size(); ++row) {
        const std::uint64_t reference = map[row];
        if (reference == noReference)
            continue;
        sum += static_cast<double>(m_scores.at(row, reference));
        if (reference >= firstRow.size())
            continue;
        std::uint32_t& first = firstRow[reference];
        if (first == noAnswer)
            first = static_cast<std::uint32_t>(row);
        else if (m_agreement.prediction(first) == m_agreement.prediction(row) &&
                 m_agreement.prediction(row) != noAnswer)
            sum -= std::log(m_agreement.share(row)); // a copy says the same
        else
            sum -= 4.0;
    }
    return sum;
}

void Tester::considerPieces()
{
    const auto shifts = candidateShifts(m_scores);
    auto pieces = mostLikelyPieces(m_scores, shifts);
    if (pieces.size() == 1 && pieces.front().shift == 0)
        return;
    Hypothesis made;
    std::vector<Change> changes;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i)
        changes.push_back(placeOfChange(m_scores, pieces[i], pieces[i + 1]));
    for (std::size_t i = 0; i < changes.size(); ++i) {
        // A piece that starts with the first sample again starts there.
        const auto again = static_cast<std::uint64_t>(-pieces[i + 1].shift);
        if (pieces[i + 1].shift < 0 && changes[i].low <= again && again <= changes[i].high)
            changes[i].place = again;
        const std::uint64_t place =
            std::clamp(changes[i].place, pieces[i].first + 1, pieces[i + 1].end - 1);
        pieces[i].end = place;
        pieces[i + 1].first = place;
    }
    made.said = namePieces(pieces, changes, m_agreement.rows());
    made.priorNats = changeCost(m_agreement.rows()) * static_cast<double>(changes.size()) + 4.0;
    made.referenceAt = byPieces(pieces);
    made.probe = probe(made.referenceAt);
    if (made.said.disorder == Disorder::BlocksExchanged)
        considerExchangedBlocks(made);
    m_finalists.push_back(std::move(made));
}

void Tester::considerExchangedBlocks(const Hypothesis& pieces)
{
    constexpr std::uint64_t mostBlocks = 64;
    const std::uint64_t references = m_agreement.references();
    for (std::uint64_t world = 2; world <= std::min(mostBlocks, references / 8); ++world) {
        const auto ranks = exchangedRanks(pieces.said.pieces, references, world);
        if (!ranks)
            continue;
        const auto [a, b] = *ranks;
        std::vector<Piece> exact;
        std::uint64_t row = 0;
        for (std::uint64_t rank = 0; rank < world; ++rank) {
            const std::uint64_t from = rank == a ? b : rank == b ? a : rank;
            const std::uint64_t first = blockStart(references, world, from);
            const std::uint64_t size = blockStart(references, world, from + 1) - first;
            exact.push_back({row, row + size,
                             static_cast<std::int64_t>(first) - static_cast<std::int64_t>(row)});
            row += size;
        }
        Hypothesis made;
        made.said = nameExchangedRanks(exact, world, a, b);
        // Equally simple; preferred unless the blocks fit clearly better.
        made.priorNats = pieces.priorNats - 16.0 + 0.05 * static_cast<double>(world);
        made.referenceAt = byPieces(exact);
        made.probe = probe(made.referenceAt);
        m_finalists.push_back(std::move(made));
    }
}

bool Tester::looksShuffled() const
{
    const std::uint64_t rows = m_agreement.rows();
    const std::uint64_t references = m_agreement.references();
    constexpr std::uint64_t near = 64;
    if (rows < 400 || references < 400)
        return false;
    std::uint64_t matched = 0;
    std::uint64_t inPlace = 0;
    double close = 0.0;
    double byChance = 0.0; // rows that agree in place when the order is random
    for (std::uint64_t row = 0; row < rows; ++row) {
        const auto who = m_agreement.acceptors(row);
        if (who.empty() || who.size() > rareAcceptors)
            continue;
        ++matched;
        inPlace += m_agreement.agrees(row, row) ? 1U : 0U;
        byChance += m_agreement.chance(row);
        for (const std::uint32_t reference : who)
            close += (reference > row ? reference - row : row - reference) <= near
                         ? 1.0 / static_cast<double>(who.size())
                         : 0.0;
    }
    const double expected = static_cast<double>(matched) *
                            std::min(1.0, (2.0 * near + 1.0) / static_cast<double>(references));
    // A poor model still agrees in place more often than a random order does.
    const double most = byChance + 4.0 * std::sqrt(byChance + 1.0);
    return matched >= 100 && matched >= rows / 4 && static_cast<double>(inPlace) <= most &&
           close < 1.5 * expected + 4.0 * std::sqrt(expected + 1.0);
}

void Tester::nameExtraRows(OrderDiagnosis& diagnosis) const
{
    const std::uint64_t rows = m_agreement.rows();
    const std::uint64_t references = m_agreement.references();
    if (diagnosis.disorder != Disorder::None || rows <= references || references == 0)
        return;
    const std::uint64_t k = rows - references;
    std::uint64_t front = 0;
    std::uint64_t last = 0;
    for (std::uint64_t t = 0; t < k; ++t) {
        front += m_agreement.prediction(references + t) == m_agreement.prediction(t % references)
                     ? 1U
                     : 0U;
        last += m_agreement.prediction(references + t) == m_agreement.prediction(references - 1)
                    ? 1U
                    : 0U;
    }
    diagnosis.disorder = Disorder::PaddingAtEnd;
    diagnosis.count = k;
    diagnosis.place = diagnosis.placeLow = diagnosis.placeHigh = references;
    diagnosis.key = front == k ? "first" : last == k ? "last" : "";
    for (std::uint64_t t = 0; t < k; ++t)
        diagnosis.referenceOf[references + t] = front == k  ? t % references
                                                : last == k ? references - 1
                                                            : noReference;
    diagnosis.confidence = 1.0;
}

void Tester::finish(OrderDiagnosis& diagnosis) const
{
    std::vector<bool> isSeen(m_agreement.references(), false);
    diagnosis.copies = 0;
    std::optional<std::uint64_t> firstOff;
    for (std::uint64_t row = 0; row < diagnosis.referenceOf.size(); ++row) {
        std::uint64_t& reference = diagnosis.referenceOf[row];
        if (reference >= isSeen.size()) {
            reference = noReference;
        } else {
            diagnosis.copies += isSeen[reference] ? 1U : 0U;
            isSeen[reference] = true;
            diagnosis.agreedAfter += m_agreement.agrees(row, reference) ? 1U : 0U;
        }
        if (reference != row && !firstOff)
            firstOff = row;
    }
    if (diagnosis.disorder != Disorder::None && diagnosis.pieces.empty() && firstOff &&
        diagnosis.disorder != Disorder::Shuffled)
        diagnosis.place = diagnosis.placeLow = diagnosis.placeHigh = *firstOff;
    nameOrder(diagnosis, m_agreement.rows(), m_agreement.references());
}

OrderDiagnosis Tester::run()
{
    OrderDiagnosis best;
    best.referenceOf = mapOf([](std::uint64_t row) { return row; });
    best.agreedBefore = m_agreement.agreeingInPlace();
    const double identity = total(best.referenceOf);
    double bestTotal = identity;
    double second = -1e300;
    if (m_agreement.references() > 1 && m_agreement.rows() > 1) {
        considerDealings();
        considerOthers();
        considerExchangedRanks();
        considerCopies();
        considerPieces();
        const auto isSame = [&](const std::vector<std::uint64_t>& a,
                                const std::vector<std::uint64_t>& b) {
            std::uint64_t differing = 0;
            for (std::size_t i = 0; i < a.size(); ++i)
                differing += a[i] != b[i] ? 1U : 0U;
            return differing * 200 <= a.size();
        };
        for (Hypothesis& one : m_finalists) {
            auto map = mapOf(one.referenceAt);
            if (one.said.disorder == Disorder::None)
                continue;
            one.total = total(map) - one.priorNats;
            if (one.total > bestTotal) {
                if (best.disorder != Disorder::None && !isSame(map, best.referenceOf))
                    second = std::max(second, bestTotal);
                bestTotal = one.total;
                const std::uint64_t before = best.agreedBefore;
                best = std::move(one.said);
                best.agreedBefore = before;
                best.referenceOf = std::move(map);
            } else if (!isSame(map, best.referenceOf)) {
                second = std::max(second, one.total);
            }
        }
    }
    second = best.disorder == Disorder::None ? second : std::max(second, identity);
    best.gainNats = bestTotal - identity;
    const bool isAlarm =
        best.disorder != Disorder::None && best.gainNats >= alarmNats && bestTotal >= testableNats;
    if (!isAlarm) {
        OrderDiagnosis none;
        none.agreedBefore = best.agreedBefore;
        none.referenceOf = mapOf([](std::uint64_t row) { return row; });
        best = std::move(none);
        bestTotal = identity;
    }
    best.isTestable = bestTotal >= testableNats;
    best.confidence = 1.0 / (1.0 + std::exp(std::clamp(second - bestTotal, -40.0, 40.0)));
    if (!best.isTestable) {
        best.confidence = 0.0;
        if (looksShuffled()) {
            best.disorder = Disorder::Shuffled;
            best.isTestable = true;
            best.confidence = 0.99;
            std::ranges::fill(best.referenceOf, noReference);
        } else {
            best.doubt = "the predictions agree with the references no better than by chance, in "
                         "this order or any other that was tried";
        }
    }
    nameExtraRows(best);
    finish(best);
    return best;
}

} // namespace

OrderDiagnosis testOrder(const Agreement& agreement, std::span<const NamedOrder> orders)
{
    return Tester(agreement, orders).run();
}

} // namespace muster::align
