// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/added_tokens_p.h"
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::tokenizer {

/// What every kind of tokenizer knows beside its model.
struct Description {
    std::int64_t vocabularySize = 0;
    std::optional<std::int64_t> modelMaxLength;
    SpecialTokens specials;
    SingleTemplate single;
    PairTemplate pair;
    std::vector<AddedToken> addedTokens; ///< in the order of the file
};

/// Adds the parts of a description that change ids, in a fixed order.
void addToDigest(Hasher& hasher, const Description& description);

/// Adds a vocabulary, in the order of ids.
void addToDigest(Hasher& hasher, std::vector<std::pair<std::int32_t, std::string_view>> vocabulary);

/// Holds the description; the kinds of tokenizers derive from it.
class DescribedTokenizer : public Tokenizer {
public:
    explicit DescribedTokenizer(Description description) : m_description(std::move(description)) {}

    [[nodiscard]] std::int64_t vocabularySize() const final { return m_description.vocabularySize; }
    [[nodiscard]] std::optional<std::int64_t> modelMaxLength() const final
    {
        return m_description.modelMaxLength;
    }
    [[nodiscard]] const SpecialTokens& specials() const final { return m_description.specials; }
    [[nodiscard]] const SingleTemplate& singleTemplate() const final
    {
        return m_description.single;
    }
    [[nodiscard]] const PairTemplate& pairTemplate() const final { return m_description.pair; }
    [[nodiscard]] Hash128 digest() const final { return m_digest; }

protected:
    [[nodiscard]] const Description& description() const { return m_description; }
    void setDigest(const Hash128& digest) { m_digest = digest; }

private:
    Description m_description;
    Hash128 m_digest;
};

/// Writes tokens into an Encoding without a check for each of three vectors.
class TokenSink final {
public:
    /// \param expected  tokens for which room is made at once; more are possible
    TokenSink(Encoding& into, std::size_t expected) : m_into(into) { makeRoom(expected); }
    TokenSink(const TokenSink&) = delete;
    TokenSink& operator=(const TokenSink&) = delete;
    ~TokenSink()
    {
        m_into.ids.resize(m_count);
        m_into.begin.resize(m_count);
        m_into.end.resize(m_count);
    }

    void put(std::int32_t id, std::uint32_t begin, std::uint32_t end)
    {
        if (m_count == m_room)
            makeRoom(2 * m_room + 16);
        m_ids[m_count] = id;
        m_begin[m_count] = begin;
        m_end[m_count] = end;
        ++m_count;
    }
    [[nodiscard]] std::size_t count() const { return m_count; }
    /// Lets `each(begin, end)` change the offsets of the tokens from `first` on.
    template <typename Each>
    void place(std::size_t first, Each each)
    {
        for (std::size_t i = first; i < m_count; ++i)
            each(m_begin[i], m_end[i]);
    }
    /// Lets `each(i, id, begin, end)` change the offsets of all tokens.
    template <typename Each>
    void review(Each each)
    {
        for (std::size_t i = 0; i < m_count; ++i)
            each(i, m_ids[i], m_begin[i], m_end[i]);
    }
    /// Forgets the tokens from `count` on.
    void rewind(std::size_t count) { m_count = count; }

private:
    void makeRoom(std::size_t room)
    {
        m_into.ids.resize(room);
        m_into.begin.resize(room);
        m_into.end.resize(room);
        m_ids = m_into.ids.data();
        m_begin = m_into.begin.data();
        m_end = m_into.end.data();
        m_room = room;
    }

    Encoding& m_into;
    std::int32_t* m_ids = nullptr;
    std::uint32_t* m_begin = nullptr;
    std::uint32_t* m_end = nullptr;
    std::size_t m_count = 0;
    std::size_t m_room = 0;
};

/// Longest text in bytes: offsets have 32 bits.
constexpr std::size_t maxTextBytes = 0xFFFFFFFFU;

} // namespace muster::tokenizer
