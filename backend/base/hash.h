// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// A 128-bit content hash (XXH3-128). Detects change and mix-up, not attack.
struct Hash128 {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    constexpr auto operator<=>(const Hash128&) const = default;

    /// 32 lower-case hexadecimal digits, canonical (big endian) order as `xxhsum -H2` prints.
    [[nodiscard]] std::string hex() const;
    /// Reads what hex() wrote; nothing when it is not 32 hexadecimal digits.
    static bool parse(std::string_view text, Hash128& into);
};

/// Hash of the bytes; the hash of no bytes is that of XXH3-128.
[[nodiscard]] Hash128 hash128(std::span<const std::byte> bytes, std::uint64_t seed = 0);
[[nodiscard]] Hash128 hash128(std::string_view text, std::uint64_t seed = 0);

/// Hash of a sequence of fields. Each field is preceded by its length, so ("a","bc") and ("ab","c")
/// differ.
class Hasher final {
public:
    explicit Hasher(std::uint64_t seed = 0);
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;

    Hasher& add(std::string_view field);
    Hasher& add(std::span<const std::byte> field);
    Hasher& add(std::uint64_t number);
    Hasher& add(std::int64_t number) { return add(static_cast<std::uint64_t>(number)); }
    /// Adds the bit pattern of the number.
    Hasher& add(double number);
    Hasher& add(const Hash128& hash);
    [[nodiscard]] Hash128 result() const;

private:
    struct State;
    std::unique_ptr<State> m_state;
};

/// Hash of a whole file, read in blocks. Errors: NotFound, Io.
[[nodiscard]] Result<Hash128> hashFile(const std::filesystem::path& path);

/// A digest over (index, hash) pairs that does not depend on the order in which they are added:
/// the 128-bit sum (mod 2^128) of XXH3-128 over each pair, with the count. Removal of a pair,
/// change of an index or of a hash, and a repeated pair all change it.
class UnorderedDigest final {
public:
    void add(std::uint64_t index, const Hash128& hash);
    [[nodiscard]] Hash128 result() const;
    [[nodiscard]] std::uint64_t count() const { return m_count; }

private:
    Hash128 m_sum;
    std::uint64_t m_count = 0;
};

} // namespace muster
