// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::plan {

/// Fixed shares: the rank of each unit [units]. Sharding rules of semantics.md 1.10; none pads.
/// `ranks` ≥ 1; ranks without a unit are ordinary.
namespace share {
/// Near-equal contiguous blocks; the first U mod W ranks have one more (accelerate's formula, 1.3).
[[nodiscard]] std::vector<RankId> block(std::size_t units, std::uint32_t ranks);
/// Unit u goes to rank u mod W.
[[nodiscard]] std::vector<RankId> stride(std::size_t units, std::uint32_t ranks);
/// Longest first to the rank with the least predicted work so far (Graham's LPT rule; equal work:
/// the lower rank), so that the slowest has at most 4/3 of the best possible.
[[nodiscard]] std::vector<RankId> balanced(std::span<const double> costs, std::uint32_t ranks);
} // namespace share

/// Predicted imbalance: slowest rank's work over the mean of all ranks; 1 is perfect (C-068).
/// 1 when there is no work.
[[nodiscard]] double imbalance(std::span<const double> workOfRank);

/// Work of each rank [ranks].
[[nodiscard]] std::vector<double> workOf(std::span<const RankId> owner,
                                         std::span<const double> costs, std::uint32_t ranks);

/// One entry of another tool's index list; `pad` marks a copy that evens out the ranks.
struct ListEntry {
    SampleIndex sample;
    bool pad = false;
    bool operator==(const ListEntry&) const = default;
};

/// The exact index list of each rank, as another system would form it.
using RankLists = std::vector<std::vector<ListEntry>>;

/// Names accepted by compatLists(), in the order in which help shows them.
[[nodiscard]] std::span<const std::string_view> compatNames();

/// The lists of system `name` for `samples` samples on `ranks` ranks with `batch` samples per rank
/// and step (ignored where the system has no batch). Repeated samples are flagged. semantics.md 1.1
/// to 1.7:
///
/// | name | list of |
/// |---|---|
/// | `pt-distributed` | PyTorch DistributedSampler, shuffle off |
/// | `pt-distributed-drop-last` | the same with drop_last: samples are lost |
/// | `accelerate-split` | split_between_processes |
/// | `accelerate-split-padded` | the same with apply_padding |
/// | `accelerate-batch` | BatchSamplerShard, even_batches on |
/// | `accelerate-batch-uneven` | BatchSamplerShard, even_batches off |
/// | `hf-sequential` | transformers SequentialDistributedSampler without a batch size |
/// | `hf-shard` | transformers ShardSampler |
/// | `lm-eval` | lm-evaluation-harness' stripes |
/// | `lighteval` | lighteval's generation sampler: pads with the last sample |
///
/// Errors: Usage (`E-PLAN-001`) for an unknown name, Invalid (`E-PLAN-002`) where the system itself
/// fails on such numbers (T-06), saying so.
[[nodiscard]] Result<RankLists> compatLists(std::string_view name, std::uint64_t samples,
                                            std::uint32_t ranks, std::uint32_t batch);

/// Samples that stand in no list (drop_last), sorted.
[[nodiscard]] std::vector<SampleIndex> lostSamples(const RankLists& lists, std::uint64_t samples);

} // namespace muster::plan
