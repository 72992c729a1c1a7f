// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace muster::wire {

/// Bits of Output::flags.
enum OutputFlag : std::uint32_t {
    padFlag =
        1U << 0U, ///< a filler row of a collective round or of a compatibility list; never scored
    errorFlag = 1U << 1U, ///< the item could not be computed; the payload is a text that says why
};

/// What comes back for one item.
struct Output {
    ItemIndex item;
    Hash128 hash; ///< itemHash() of what was computed
    std::uint32_t flags = 0;
    std::vector<std::byte> payload; ///< packed by kind, such as QaOutput

    bool operator==(const Output&) const = default;
};

/// The outputs of one unit, or a part of them when they do not fit into one frame.
struct OutputBlock {
    UnitId unit;
    RankId rank;
    std::uint32_t attempt = 0;
    std::uint64_t sequence = 0; ///< the rank's own counter of finished units, from 0
    std::uint32_t part = 0;     ///< 0..parts−1
    std::uint32_t parts = 1;
    std::int64_t startedNs = 0;   ///< computing began, rank's monotonic clock
    std::int64_t finishedNs = 0;  ///< computing ended
    std::uint64_t realTokens = 0; ///< of the whole unit
    std::uint64_t padTokens = 0;
    std::vector<Output> outputs;

    bool operator==(const OutputBlock&) const = default;
};

[[nodiscard]] std::vector<std::byte> encodeBlock(const OutputBlock& block);
/// Error: Protocol (`E-WIRE-011`).
[[nodiscard]] Result<OutputBlock> decodeBlock(std::span<const std::byte> payload);

/// Cuts a block into parts whose encoded form is at most `maxBytes` each (a frame's limit when
/// frame.h's maxFrameBytes is given), in order, with `part` and `parts` set. A block without
/// outputs is one part. Error: Invalid (`E-WIRE-013`) when one output alone is larger.
[[nodiscard]] Result<std::vector<OutputBlock>> splitBlock(OutputBlock block, std::size_t maxBytes);

/// The smallest set of numbers from which every QA metric can be computed: the k largest start and
/// end logits over the real tokens of the feature (all of them: special, question and context), in
/// the order of the tie mode, and the logits at position 0. k = min(n_best, tokens).
/// semantics.md 3.2; ties: `hf` higher index first, `bert` lower index first (T-35).
struct QaOutput {
    float nullStart = 0.0F; ///< start logit of position 0
    float nullEnd = 0.0F;
    std::vector<std::uint16_t> startPosition; ///< [k], descending logits
    std::vector<float> startLogit;            ///< [k]
    std::vector<std::uint16_t> endPosition;   ///< [k]
    std::vector<float> endLogit;              ///< [k]

    bool operator==(const QaOutput&) const = default;
};

[[nodiscard]] std::vector<std::byte> encodeQa(const QaOutput& output);
/// `tokens`: length of the item; positions must be below it and logits must not be NaN.
/// Error: Protocol (`E-WIRE-012`).
[[nodiscard]] Result<QaOutput> decodeQa(std::span<const std::byte> payload, std::uint32_t tokens);

/// What a language model's window comes to. Each token loss is −ln of the soft-max probability of
/// the target, formed in FP32; the sum runs in FP64 over rising positions.
struct LmOutput {
    double lossSum = 0.0;         ///< nats
    std::uint32_t scored = 0;     ///< targets
    std::uint32_t greedyHits = 0; ///< targets that were the arg-max (lowest index wins ties)
    std::vector<float> losses;    ///< of each target [scored], or empty when not asked for

    bool operator==(const LmOutput&) const = default;
};

[[nodiscard]] std::vector<std::byte> encodeLm(const LmOutput& output);
/// `targets`: how many positions of the item are scored. The count must be that, the sum finite,
/// and losses, when there are any, finite, `targets` of them, and with this very sum.
/// Error: Protocol (`E-WIRE-014`).
[[nodiscard]] Result<LmOutput> decodeLm(std::span<const std::byte> payload, std::uint32_t targets);

/// What encodeLm() put first: loss sum and targets, without a look at the rest; zeros for a payload
/// that is too short. For sums that are formed while outputs pass by.
struct LmHead {
    double lossSum = 0.0;
    std::uint32_t scored = 0;
};
[[nodiscard]] LmHead peekLm(std::span<const std::byte> payload);

/// Logits of all classes of one item, as the head gives them [classes].
struct ClassOutput {
    std::vector<float> logits;

    bool operator==(const ClassOutput&) const = default;
};

[[nodiscard]] std::vector<std::byte> encodeClass(const ClassOutput& output);
/// `classes`: size of the head; logits must be finite. Error: Protocol (`E-WIRE-015`).
[[nodiscard]] Result<ClassOutput> decodeClass(std::span<const std::byte> payload,
                                              std::uint32_t classes);

} // namespace muster::wire
