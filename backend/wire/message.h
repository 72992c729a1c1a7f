// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/frame.h"
#include "wire/unit.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Control messages. On the wire each is one CBOR map with text keys named as the fields here.
/// Unknown keys are skipped (a newer minor version may have more); missing keys and wrong types,
/// ranges or names are refused with the name of the field.
namespace muster::wire {

/// What a rank is doing right now.
enum class RankPhase : std::uint8_t {
    Starting = 0, ///< before Ready: no configuration yet
    Loading = 1,  ///< reading the model
    Waiting = 2,  ///< for a unit
    Computing = 3,
    Gathering = 4, ///< inside a collective call
    Finished = 5,  ///< everything delivered; waiting for the last acknowledgements
};

/// Rank → controller, the first message after the proof. Before MPI numbers are trusted they are
/// compared with what the launcher's variables say; the controller refuses a mismatch.
struct Hello {
    std::uint16_t protocol = protocolVersion;
    std::string version{}; ///< of the rank program, such as `0.1.0`
    std::uint32_t rank = 0;
    std::uint32_t world = 1;
    std::uint32_t localRank = 0; ///< among the ranks of this launch on this node
    std::uint32_t localSize = 1;
    std::uint32_t group = 0;
    std::uint32_t generation = 0;
    std::uint32_t connection = 0; ///< 0 for the first of this process, then counts reconnects
    std::string node{};           ///< host name
    std::int64_t pid = 0;
    std::uint64_t startTimeTicks = 0; ///< field 22 of /proc/self/stat
    std::string mpiLibrary{};         ///< one line, or `none` for a plain process
    std::string
        launcherFamily{}; ///< whose variables were found: `openmpi`, `pmi`, `slurm`, or empty
    std::optional<std::uint32_t> launcherRank{};  ///< what they say
    std::optional<std::uint32_t> launcherWorld{}; ///< what they say
    std::string binaryDigest{}; ///< XXH3-128 of the program's own file, 32 hexadecimal digits
    std::string architecture{}; ///< machine, such as `x86_64`
    std::string affinity{};     ///< CPU numbers this rank may use, such as `0-3,8`
    std::uint32_t cpus = 0;     ///< how many these are
    std::uint32_t cores = 0;    ///< physical cores among them
    /// Units that this process still holds: waiting, being computed, or not yet acknowledged. Their
    /// outputs will come without being asked for again. Empty at the first connection.
    std::vector<std::uint64_t> holding{};

    bool operator==(const Hello&) const = default;
};

enum class GatherMode : std::uint8_t { Stream = 0, Collective = 1, Nccl = 2 };
enum class PinMode : std::uint8_t { Off = 0, Core = 1 };

/// Controller → rank, the answer to Hello.
struct RankConfig {
    std::string modelPath{}; ///< Hugging Face directory on the rank's node, or `synthetic`
    UnitKind kind = UnitKind::Qa;
    /// `float32`, `bfloat16`, `float16`, `int8`, `int4`, `int8-dynamic`
    std::string precision = "float32";
    std::uint32_t groupSize = 128; ///< int4: weights that share one scale
    bool tokenLosses = false;      ///< LM: send the loss of each token too
    std::uint32_t threads = 1;
    std::uint32_t nBest = 20;
    std::string ties = "hf"; ///< `hf` or `bert`
    GatherMode gather = GatherMode::Stream;
    PinMode pin = PinMode::Core;
    std::uint32_t heartbeatMs = 1000;
    std::uint32_t graceMs = 30000;          ///< how long the rank lives without its controller
    std::uint64_t flushBytes = 256U << 10U; ///< stream: outputs leave at this size
    std::uint32_t flushMs = 200;            ///< stream: or at this age
    std::uint32_t roundUnits = 8;           ///< collective: most units a rank adds to one round
    std::uint32_t roundMs = 100;            ///< collective: longest time between two rounds
    std::string inject{};                   ///< fault to make, empty = none (eval/inject.h)
    std::string sharedWeightsKey{};         ///< names the node's shared weights; empty = not shared

    bool operator==(const RankConfig&) const = default;
};

/// Rank → controller: the model is loaded; units may come.
struct Ready {
    std::string modelDigest{}; ///< 32 hexadecimal digits
    std::string modelArchitecture{};
    std::string kernels{}; ///< CPU capability, threads, dtype, library versions
    std::uint64_t parameters = 0;
    std::uint64_t weightBytes = 0;
    std::uint32_t maxPositions = 0;
    std::uint32_t vocabulary = 0;
    std::uint32_t threads = 1;
    double loadMs = 0.0;
    std::string affinity{}; ///< after pinning
    std::uint32_t cpus = 0;

    bool operator==(const Ready&) const = default;
};

/// Controller → rank: go away, and why.
struct Refuse {
    std::string code{};
    std::string text{};

    bool operator==(const Refuse&) const = default;
};

/// Controller → rank: all outputs of this attempt of the unit are on disk (or not needed).
struct Ack {
    UnitId unit{};
    std::uint32_t attempt = 0;

    bool operator==(const Ack&) const = default;
};

/// Time of a rank by phase, nanoseconds; the five parts sum to elapsedNs. waitNs: for a unit, or
/// inside a collective before the last partner arrived; transferNs: bytes moving (DESIGN 8).
struct Times {
    std::int64_t computeNs = 0;
    std::int64_t waitNs = 0;
    std::int64_t transferNs = 0;
    std::int64_t loadNs = 0;
    std::int64_t otherNs = 0;
    std::int64_t elapsedNs = 0;

    bool operator==(const Times&) const = default;
};

/// Rank → controller, every RankConfig::heartbeatMs, also while it computes.
struct Heartbeat {
    RankPhase phase = RankPhase::Starting;
    std::optional<UnitId> unit{}; ///< being computed
    std::uint64_t doneUnits = 0;
    std::uint64_t rssBytes = 0;
    std::uint64_t memoryLimitBytes = 0; ///< of the control group; 0 = none
    std::uint64_t deviceBytes = 0;
    std::int64_t monotonicNs = 0;
    Times times{}; ///< so far

    bool operator==(const Heartbeat&) const = default;
};

/// Sums that ranks form beside the controller (invariant I6).
struct Sums {
    std::int64_t units = 0;
    std::int64_t items = 0;  ///< without pads
    std::int64_t errors = 0; ///< items with errorFlag
    std::int64_t realTokens = 0;
    std::int64_t padTokens = 0;
    std::int64_t scoredTokens = 0; ///< LM
    double lossSum = 0.0;          ///< LM, nats

    bool operator==(const Sums&) const = default;
};

/// Rank → controller at the end (before Bye).
struct Stats {
    Times times{};
    Sums own{};                  ///< of this rank
    std::optional<Sums> group{}; ///< over all ranks of the MPI world; sent by its rank 0
    std::uint64_t bytesOut = 0;
    std::uint64_t rounds = 0; ///< collective rounds

    bool operator==(const Stats&) const = default;
};

enum class LogLevel : std::uint8_t { Debug = 0, Info = 1, Warning = 2, Error = 3 };

/// Rank → controller: one event. No sample text, no secret.
struct Log {
    LogLevel level = LogLevel::Info;
    std::string text{}; ///< at most 200 bytes; encode() cuts longer ones at a character boundary

    bool operator==(const Log&) const = default;
};

enum class CancelMode : std::uint8_t {
    Drain = 0, ///< finish the unit in hand, deliver, say Stats and Bye
    Now = 1,   ///< leave at once
};

/// Controller → rank.
struct Cancel {
    std::string reason{};
    CancelMode mode = CancelMode::Drain;

    bool operator==(const Cancel&) const = default;
};

/// Controller → rank: no more units are coming for this rank. It finishes what it has, delivers,
/// waits for the acknowledgements, sends Stats and Bye.
struct Drain {
    bool operator==(const Drain&) const = default;
};

/// The last frame of a direction. The rank ends normally after it got the controller's Bye.
struct Bye {
    std::string reason{};

    bool operator==(const Bye&) const = default;
};

[[nodiscard]] std::vector<std::byte> encode(const Hello& message);
[[nodiscard]] std::vector<std::byte> encode(const RankConfig& message);
[[nodiscard]] std::vector<std::byte> encode(const Ready& message);
[[nodiscard]] std::vector<std::byte> encode(const Refuse& message);
[[nodiscard]] std::vector<std::byte> encode(const Ack& message);
[[nodiscard]] std::vector<std::byte> encode(const Heartbeat& message);
[[nodiscard]] std::vector<std::byte> encode(const Stats& message);
[[nodiscard]] std::vector<std::byte> encode(const Log& message);
[[nodiscard]] std::vector<std::byte> encode(const Cancel& message);
[[nodiscard]] std::vector<std::byte> encode(const Drain& message);
[[nodiscard]] std::vector<std::byte> encode(const Bye& message);

/// Largest control payload that decode() looks at.
inline constexpr std::size_t maxControlBytes = std::size_t{1} << 20U;

/// Reads a message: decode<Hello>(frame.payload).
///
/// Errors, all Kind::Protocol: `E-WIRE-030` the bytes are no CBOR map within the rules (definite
/// lengths, text keys without repetition, valid UTF-8, depth at most 4, no tags, no bytes after the
/// end, at most maxControlBytes); `E-WIRE-031` a field is missing, has another type or is out of
/// range, NaN or infinite: the message names it.
template <typename Message>
[[nodiscard]] Result<Message> decode(std::span<const std::byte> payload);

template <>
Result<Hello> decode<Hello>(std::span<const std::byte> payload);
template <>
Result<RankConfig> decode<RankConfig>(std::span<const std::byte> payload);
template <>
Result<Ready> decode<Ready>(std::span<const std::byte> payload);
template <>
Result<Refuse> decode<Refuse>(std::span<const std::byte> payload);
template <>
Result<Ack> decode<Ack>(std::span<const std::byte> payload);
template <>
Result<Heartbeat> decode<Heartbeat>(std::span<const std::byte> payload);
template <>
Result<Stats> decode<Stats>(std::span<const std::byte> payload);
template <>
Result<Log> decode<Log>(std::span<const std::byte> payload);
template <>
Result<Cancel> decode<Cancel>(std::span<const std::byte> payload);
template <>
Result<Drain> decode<Drain>(std::span<const std::byte> payload);
template <>
Result<Bye> decode<Bye>(std::span<const std::byte> payload);

} // namespace muster::wire
