// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace muster::wire {

/// 32 secret random bytes. Never logged, never in arguments, journal or reports.
struct Key {
    std::array<std::byte, 32> bytes{};

    bool operator==(const Key&) const = default;
};

using Nonce = std::array<std::byte, 32>;

/// A fresh key, or nonce, from the kernel's random source.
[[nodiscard]] Key makeKey();
[[nodiscard]] Nonce makeNonce();

/// The key of one launch: HMAC-SHA-256(key, "muster launch 1" | group | generation). With it a rank
/// of an older generation cannot prove itself as one of a newer.
[[nodiscard]] Key deriveKey(const Key& runKey, std::uint32_t group, std::uint32_t generation);

/// Reads a key file: 64 hexadecimal digits and a line feed, a regular file of this user with mode
/// 0600. Errors: NotFound, Io; Invalid `E-WIRE-020` (mode, owner, kind or content; never shows the
/// content).
[[nodiscard]] Result<Key> readKeyFile(const std::filesystem::path& path);
/// Makes the file with mode 0600; it must not exist. Error: Io `E-WIRE-024`.
[[nodiscard]] Status writeKeyFile(const std::filesystem::path& path, const Key& key);

/// Who a rank says it is inside its proof; covered by the HMAC.
struct Claim {
    std::uint32_t group = 0;
    std::uint32_t generation = 0;
    std::uint32_t rank = 0;

    bool operator==(const Claim&) const = default;
};

/// The key that a claim must be proved with; nothing when nobody like that is expected (such as a
/// generation that is over).
using KeyLookup = std::function<std::optional<Key>(const Claim& claim)>;

/// The controller's half, one for each connection; no sockets inside.
///
/// Payloads are packed binary, so nothing of an unauthenticated peer meets a CBOR parser:
/// 1. challenge() → CHALLENGE, 32 bytes: the server's nonce.
/// 2. the peer's PROOF, 76 bytes: its nonce, u32 group, u32 generation, u32 rank,
///    HMAC-SHA-256(key, "muster rank 1" | server nonce | rank nonce | group | generation | rank).
/// 3. onProof() → PROOF, 32 bytes: HMAC-SHA-256(key, "muster controller 1" | rank nonce | server
///    nonce). From then on the peer is authenticated.
///
/// Every failure is the same error to the outside, `E-WIRE-021`, and leaves the handshake failed.
class ServerHandshake final {
public:
    explicit ServerHandshake(KeyLookup lookup, const Nonce& nonce = makeNonce());
    /// The same key for every claim.
    explicit ServerHandshake(const Key& key, const Nonce& nonce = makeNonce());

    [[nodiscard]] std::vector<std::byte> challenge() const;
    /// The payload of the answer. Compares in constant time. Errors: Protocol `E-WIRE-021`;
    /// `E-WIRE-022` when called twice.
    [[nodiscard]] Result<std::vector<std::byte>> onProof(std::span<const std::byte> payload);

    [[nodiscard]] bool isDone() const { return m_state == State::Done; }
    /// What the peer proved; valid when isDone().
    [[nodiscard]] const Claim& claim() const { return m_claim; }

private:
    enum class State { Waiting, Done, Failed };

    KeyLookup m_lookup;
    Nonce m_nonce;
    Claim m_claim;
    State m_state = State::Waiting;
};

/// The rank's half: onChallenge(), then onProof().
class RankHandshake final {
public:
    RankHandshake(const Key& key, const Claim& claim, const Nonce& nonce = makeNonce());

    /// The payload of this rank's PROOF. Errors: Protocol `E-WIRE-021` (wrong size), `E-WIRE-022`
    /// (called twice).
    [[nodiscard]] Result<std::vector<std::byte>> onChallenge(std::span<const std::byte> payload);
    /// Checks that the controller holds the key too. Errors: `E-WIRE-021`, `E-WIRE-022` (before
    /// onChallenge() or called twice).
    [[nodiscard]] Status onProof(std::span<const std::byte> payload);

    [[nodiscard]] bool isDone() const { return m_state == State::Done; }

private:
    enum class State { Start, Proved, Done, Failed };

    Key m_key;
    Claim m_claim;
    Nonce m_nonce;
    Nonce m_serverNonce{};
    State m_state = State::Start;
};

} // namespace muster::wire
