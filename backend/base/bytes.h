// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster {

static_assert(std::endian::native == std::endian::little, "packed forms are little endian");

/// Reads packed little-endian values from untrusted bytes. A read past the end sets failed(),
/// yields zeros, and every later read fails too: check once, after the last read. Never allocates
/// more than the bytes at hand can fill.
class ByteReader final {
public:
    explicit ByteReader(std::span<const std::byte> bytes) : m_bytes(bytes) {}

    template <typename T>
    requires std::is_arithmetic_v<T> T get()
    {
        T value{};
        const auto from = take(sizeof(T));
        if (from.size() == sizeof(T))
            std::memcpy(&value, from.data(), sizeof(T));
        return value;
    }

    Hash128 getHash()
    {
        Hash128 hash;
        hash.high = get<std::uint64_t>();
        hash.low = get<std::uint64_t>();
        return hash;
    }

    /// `count` packed values; fails, without allocating, when they are not there.
    template <typename T>
    requires std::is_arithmetic_v<T> std::vector<T> getArray(std::uint64_t count)
    {
        if (m_failed || count > remaining() / sizeof(T)) {
            m_failed = true;
            return {};
        }
        const auto from = take(static_cast<std::size_t>(count) * sizeof(T));
        std::vector<T> values(static_cast<std::size_t>(count));
        if (!values.empty())
            std::memcpy(values.data(), from.data(), from.size());
        return values;
    }

    /// The next `size` bytes, borrowed; empty and failed() when there are fewer.
    std::span<const std::byte> take(std::uint64_t size)
    {
        if (m_failed || size > remaining()) {
            m_failed = true;
            return {};
        }
        const auto part = m_bytes.subspan(m_at, static_cast<std::size_t>(size));
        m_at += static_cast<std::size_t>(size);
        return part;
    }

    /// A text that is preceded by its 32-bit length, borrowed.
    std::string_view getText()
    {
        const auto part = take(get<std::uint32_t>());
        return {static_cast<const char*>(static_cast<const void*>(part.data())), part.size()};
    }

    [[nodiscard]] std::size_t remaining() const { return m_bytes.size() - m_at; }
    [[nodiscard]] std::size_t position() const { return m_at; }
    [[nodiscard]] bool failed() const { return m_failed; }
    /// Everything was read and nothing failed.
    [[nodiscard]] bool finished() const { return !m_failed && remaining() == 0; }

private:
    std::span<const std::byte> m_bytes;
    std::size_t m_at = 0;
    bool m_failed = false;
};

/// Appends packed little-endian values.
class ByteWriter final {
public:
    template <typename T>
    requires std::is_arithmetic_v<T>
    void put(T value) { append(&value, sizeof(T)); }

    void putHash(const Hash128& hash)
    {
        put(hash.high);
        put(hash.low);
    }

    template <typename T>
    requires std::is_arithmetic_v<T>
    void putArray(std::span<const T> values) { append(values.data(), values.size_bytes()); }

    void putBytes(std::span<const std::byte> bytes) { append(bytes.data(), bytes.size()); }

    /// The text, preceded by its 32-bit length.
    void putText(std::string_view text)
    {
        put(static_cast<std::uint32_t>(text.size()));
        append(text.data(), text.size());
    }

    /// Overwrites a value that was put at `position` before.
    template <typename T>
    requires std::is_arithmetic_v<T>
    void putAt(std::size_t position, T value)
    {
        std::memcpy(m_bytes.data() + position, &value, sizeof(T));
    }

    void reserve(std::size_t size) { m_bytes.reserve(size); }
    [[nodiscard]] std::size_t size() const { return m_bytes.size(); }
    [[nodiscard]] std::span<const std::byte> bytes() const { return m_bytes; }
    [[nodiscard]] std::vector<std::byte> take() { return std::exchange(m_bytes, {}); }

private:
    void append(const void* data, std::size_t size)
    {
        const auto* from = static_cast<const std::byte*>(data);
        m_bytes.insert(m_bytes.end(), from, from + size);
    }
    std::vector<std::byte> m_bytes;
};

} // namespace muster
