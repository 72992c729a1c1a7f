// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace muster::plan {

namespace share {

std::vector<RankId> block(std::size_t units, std::uint32_t ranks)
{
    std::vector<RankId> owner(units);
    const std::size_t each = units / ranks;
    const std::size_t more = units % ranks;
    std::size_t at = 0;
    for (std::uint32_t r = 0; r < ranks; ++r)
        for (std::size_t n = each + (r < more ? 1 : 0); n > 0; --n)
            owner[at++] = RankId(r);
    return owner;
}

std::vector<RankId> stride(std::size_t units, std::uint32_t ranks)
{
    std::vector<RankId> owner(units);
    for (std::size_t u = 0; u < units; ++u)
        owner[u] = RankId(static_cast<std::uint32_t>(u % ranks));
    return owner;
}

std::vector<RankId> balanced(std::span<const double> costs, std::uint32_t ranks)
{
    std::vector<std::size_t> order(costs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
    std::vector<double> work(ranks, 0.0);
    std::vector<RankId> owner(costs.size());
    for (const std::size_t unit : order) {
        const auto least = std::min_element(work.begin(), work.end()) - work.begin();
        owner[unit] = RankId(static_cast<std::uint32_t>(least));
        work[static_cast<std::size_t>(least)] += costs[unit];
    }
    return owner;
}

} // namespace share

double imbalance(std::span<const double> workOfRank)
{
    const double total = std::accumulate(workOfRank.begin(), workOfRank.end(), 0.0);
    if (workOfRank.empty() || total <= 0.0)
        return 1.0;
    const double most = *std::max_element(workOfRank.begin(), workOfRank.end());
    return most * static_cast<double>(workOfRank.size()) / total;
}

std::vector<double> workOf(std::span<const RankId> owner, std::span<const double> costs,
                           std::uint32_t ranks)
{
    std::vector<double> work(ranks, 0.0);
    for (std::size_t u = 0; u < owner.size(); ++u)
        work[owner[u].value] += costs[u];
    return work;
}

namespace {

std::uint64_t ceilDiv(std::uint64_t a, std::uint64_t b)
{
    return (a + b - 1) / b;
}

ListEntry real(std::uint64_t sample)
{
    return {SampleIndex(sample), false};
}

ListEntry padCopy(std::uint64_t sample)
{
    return {SampleIndex(sample), true};
}

RankLists ptDistributed(std::uint64_t n, std::uint32_t w, bool dropLast)
{
    RankLists lists(w);
    if (n == 0)
        return lists;
    std::uint64_t each = ceilDiv(n, w);
    if (dropLast && n % w != 0)
        each = n < w ? 0 : ceilDiv(n - w, w);
    for (std::uint32_t r = 0; r < w; ++r)
        for (std::uint64_t k = 0; k < each; ++k) {
            const std::uint64_t position = r + k * w;
            lists[r].push_back(position < n ? real(position) : padCopy(position % n));
        }
    return lists;
}

RankLists acSplit(std::uint64_t n, std::uint32_t w, bool padded)
{
    RankLists lists(w);
    const std::uint64_t each = n / w;
    const std::uint64_t more = n % w;
    for (std::uint32_t r = 0; r < w; ++r) {
        const std::uint64_t from = r * each + std::min<std::uint64_t>(r, more);
        for (std::uint64_t k = 0; k < each + (r < more ? 1 : 0); ++k)
            lists[r].push_back(real(from + k));
        // With one process the input is returned untouched; with no samples there is nothing to
        // repeat (T-05).
        if (padded && w > 1 && n > 0)
            while (lists[r].size() < ceilDiv(n, w))
                lists[r].push_back(padCopy(n - 1));
    }
    return lists;
}

RankLists acBatch(std::uint64_t n, std::uint32_t w, std::uint32_t b, bool even)
{
    RankLists lists(w);
    const std::uint64_t batches = ceilDiv(n, b);
    if (!even) {
        for (std::uint64_t k = 0; k < batches; ++k)
            for (std::uint64_t i = k * b; i < std::min<std::uint64_t>(n, (k + 1) * b); ++i)
                lists[k % w].push_back(real(i));
        return lists;
    }
    if (n == 0)
        return lists;
    // The end is filled up from the indices of the first W batches, in order, round and round.
    const std::uint64_t step = std::uint64_t{w} * b;
    const std::uint64_t filled = ceilDiv(n, step) * step;
    const std::uint64_t remembered = std::min(n, step);
    for (std::uint64_t position = 0; position < filled; ++position) {
        const auto rank = static_cast<std::size_t>(position / b % w);
        lists[rank].push_back(position < n ? real(position) : padCopy((position - n) % remembered));
    }
    return lists;
}

RankLists hfSequential(std::uint64_t n, std::uint32_t w)
{
    RankLists lists(w);
    const std::uint64_t each = ceilDiv(n, w);
    for (std::uint32_t r = 0; r < w; ++r)
        for (std::uint64_t k = 0; k < each; ++k) {
            const std::uint64_t position = r * each + k;
            lists[r].push_back(position < n ? real(position) : padCopy(position - n));
        }
    return lists;
}

RankLists hfShard(std::uint64_t n, std::uint32_t w, std::uint32_t b)
{
    RankLists lists(w);
    if (n == 0)
        return lists;
    const std::uint64_t step = std::uint64_t{w} * b;
    const std::uint64_t filled = ceilDiv(n, step) * step;
    for (std::uint64_t position = 0; position < filled; ++position)
        lists[static_cast<std::size_t>(position / b % w)].push_back(
            position < n ? real(position) : padCopy((position - n) % n));
    return lists;
}

RankLists stripes(std::uint64_t n, std::uint32_t w, bool padWithLast)
{
    RankLists lists(w);
    for (std::uint64_t i = 0; i < n; ++i)
        lists[static_cast<std::size_t>(i % w)].push_back(real(i));
    if (padWithLast && n > 0)
        for (auto& list : lists)
            while (list.size() < ceilDiv(n, w))
                list.push_back(padCopy(n - 1));
    return lists;
}

constexpr std::array<std::string_view, 10> names{"pt-distributed",   "pt-distributed-drop-last",
                                                 "accelerate-split", "accelerate-split-padded",
                                                 "accelerate-batch", "accelerate-batch-uneven",
                                                 "hf-sequential",    "hf-shard",
                                                 "lm-eval",          "lighteval"};

} // namespace

std::span<const std::string_view> compatNames()
{
    return names;
}

Result<RankLists> compatLists(std::string_view name, std::uint64_t samples, std::uint32_t ranks,
                              std::uint32_t batch)
{
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end())
        return fail(Error::Kind::Usage, "E-PLAN-001",
                    fmt::format("no compatibility list is called '{}'. There are: {}.", name,
                                fmt::join(names, ", ")));
    if (ranks == 0 || batch == 0)
        return fail(Error::Kind::Invalid, "E-PLAN-002",
                    "a compatibility list needs at least one rank and one sample per batch.");
    switch (known - names.begin()) {
    case 0:
        return ptDistributed(samples, ranks, false);
    case 1:
        return ptDistributed(samples, ranks, true);
    case 2:
        return acSplit(samples, ranks, false);
    case 3:
        return acSplit(samples, ranks, true);
    case 4:
        return acBatch(samples, ranks, batch, true);
    case 5:
        return acBatch(samples, ranks, batch, false);
    case 6:
        if (ceilDiv(samples, ranks) * ranks > 2 * samples)
            return fail(
                Error::Kind::Invalid, "E-PLAN-002",
                fmt::format("transformers' sequential sampler fails itself for {} samples on "
                            "{} ranks: it pads once from the front and asserts. Use fewer "
                            "ranks, or hf-shard.",
                            samples, ranks));
        return hfSequential(samples, ranks);
    case 7:
        return hfShard(samples, ranks, batch);
    case 8:
        return stripes(samples, ranks, false);
    default:
        return stripes(samples, ranks, true);
    }
}

std::vector<SampleIndex> lostSamples(const RankLists& lists, std::uint64_t samples)
{
    std::vector<bool> seen(static_cast<std::size_t>(samples), false);
    for (const auto& list : lists)
        for (const ListEntry& entry : list)
            seen[static_cast<std::size_t>(entry.sample.value)] = true;
    std::vector<SampleIndex> lost;
    for (std::size_t i = 0; i < seen.size(); ++i)
        if (!seen[i])
            lost.emplace_back(i);
    return lost;
}

} // namespace muster::plan
