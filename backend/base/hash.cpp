// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/file.h"

#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <vector>

namespace muster {

namespace {

Hash128 fromXxh(XXH128_hash_t hash)
{
    return Hash128{hash.high64, hash.low64};
}

int hexDigit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

} // namespace

std::string Hash128::hex() const
{
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string text(32, '0');
    for (std::size_t i = 0; i < 16; ++i) {
        text[i] = digits[(high >> (60 - 4 * i)) & 15U];
        text[16 + i] = digits[(low >> (60 - 4 * i)) & 15U];
    }
    return text;
}

bool Hash128::parse(std::string_view text, Hash128& into)
{
    if (text.size() != 32)
        return false;
    std::array<std::uint64_t, 2> parts{};
    for (std::size_t i = 0; i < 32; ++i) {
        const int digit = hexDigit(text[i]);
        if (digit < 0)
            return false;
        parts[i / 16] = (parts[i / 16] << 4U) | static_cast<std::uint64_t>(digit);
    }
    into = Hash128{parts[0], parts[1]};
    return true;
}

Hash128 hash128(std::span<const std::byte> bytes, std::uint64_t seed)
{
    return fromXxh(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
}

Hash128 hash128(std::string_view text, std::uint64_t seed)
{
    return fromXxh(XXH3_128bits_withSeed(text.data(), text.size(), seed));
}

struct Hasher::State {
    XXH3_state_t* state = XXH3_createState();
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { XXH3_freeState(state); }
};

Hasher::Hasher(std::uint64_t seed) : m_state(std::make_unique<State>())
{
    XXH3_128bits_reset_withSeed(m_state->state, seed);
}

Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::add(std::string_view field)
{
    return add(std::as_bytes(std::span(field.data(), field.size())));
}

Hasher& Hasher::add(std::span<const std::byte> field)
{
    const std::uint64_t length = field.size();
    XXH3_128bits_update(m_state->state, &length, sizeof length);
    XXH3_128bits_update(m_state->state, field.data(), field.size());
    return *this;
}

Hasher& Hasher::add(std::uint64_t number)
{
    XXH3_128bits_update(m_state->state, &number, sizeof number);
    return *this;
}

Hasher& Hasher::add(double number)
{
    return add(std::bit_cast<std::uint64_t>(number));
}

Hasher& Hasher::add(const Hash128& hash)
{
    return add(hash.high).add(hash.low);
}

Hash128 Hasher::result() const
{
    return fromXxh(XXH3_128bits_digest(m_state->state));
}

Result<Hash128> hashFile(const std::filesystem::path& path)
{
    auto mapped = MappedFile::open(path);
    if (!mapped)
        return fail(mapped.error());
    return hash128(mapped->bytes());
}

void UnorderedDigest::add(std::uint64_t index, const Hash128& hash)
{
    const std::array<std::uint64_t, 3> pair{index, hash.high, hash.low};
    const Hash128 h = hash128(std::as_bytes(std::span(pair)));
    const std::uint64_t low = m_sum.low + h.low;
    m_sum.high += h.high + (low < h.low ? 1U : 0U);
    m_sum.low = low;
    ++m_count;
}

Hash128 UnorderedDigest::result() const
{
    const std::array<std::uint64_t, 3> all{m_count, m_sum.high, m_sum.low};
    return hash128(std::as_bytes(std::span(all)));
}

} // namespace muster
