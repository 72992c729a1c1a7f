// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/piece_table_p.h"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace muster::tokenizer {

/// A piece of a word while it is merged. What `size` counts is the caller's choice.
struct MergeSymbol {
    std::int32_t id = 0;
    std::uint32_t size = 0;
};

/// Buffers for merging long words; kept between words.
struct MergeSpace {
    struct Link {
        std::int32_t previous = -1;
        std::int32_t next = -1;
        std::uint32_t rank = 0; ///< of the merge with the next symbol
        std::int32_t merged = 0;
    };
    struct Waiting {
        std::uint32_t rank;
        std::uint32_t place;
        bool operator<(const Waiting& other) const // for a heap with the least on top
        {
            return rank != other.rank ? rank > other.rank : place > other.place;
        }
    };
    std::vector<Link> links;
    std::vector<Waiting> heap;
};

/// The merges of a byte-pair encoding: which pair becomes what, and which goes first. Built once,
/// then constant.
class MergeTable final {
public:
    static constexpr std::uint32_t noRank = 0xFFFFFFFFU;
    struct Merge {
        std::uint64_t pair = free; ///< left << 32 | right
        std::uint32_t rank = noRank;
        std::int32_t id = 0;
    };

    explicit MergeTable(std::size_t expected = 0);

    /// The last merge given for a pair counts. Pairs of equal rank are merged from the left.
    void set(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged);
    [[nodiscard]] const Merge& find(std::int32_t left, std::int32_t right) const
    {
        const std::uint64_t pair = pairOf(left, right);
        for (std::size_t at = mix(pair);; at = (at + 1) & m_mask) {
            if (m_slots[at].pair == pair || m_slots[at].pair == free)
                return m_slots[at];
        }
    }
    /// Merges until no merge is left, always the one of the lowest rank and, among equals, the
    /// leftmost; returns the number of symbols that are left at the front. O(n log n) for n
    /// symbols.
    [[nodiscard]] std::size_t mergeAll(std::span<MergeSymbol> symbols, MergeSpace& space) const;

private:
    static constexpr std::uint64_t free = ~std::uint64_t{0};
    static constexpr std::size_t smallWord = 64;

    [[nodiscard]] static constexpr std::uint64_t pairOf(std::int32_t left, std::int32_t right)
    {
        return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U |
               static_cast<std::uint32_t>(right);
    }
    [[nodiscard]] std::size_t mix(std::uint64_t pair) const
    {
        pair *= 0x9E3779B97F4A7C15ULL;
        pair ^= pair >> 32U;
        pair *= 0xD6E8FEB86659FD93ULL;
        return static_cast<std::size_t>(pair >> m_shift);
    }
    void grow();
    [[nodiscard]] std::size_t mergeSmall(std::span<MergeSymbol> symbols) const;
    [[nodiscard]] std::size_t mergeLarge(std::span<MergeSymbol> symbols, MergeSpace& space) const;

    std::vector<Merge> m_slots;
    std::size_t m_used = 0;
    std::size_t m_mask = 0;
    unsigned m_shift = 0;
};

/// Remembers the tokens of short words. It only saves time: what it says is what the model says.
class WordCache final {
public:
    static constexpr std::size_t maxTokens = 6;
    struct Entry {
        std::uint64_t low = 0;
        std::uint64_t high = 0;
        std::uint8_t size = 0; ///< of the word in bytes; 0: free
        std::uint8_t count = 0;
        std::uint8_t sizes[maxTokens] = {}; ///< of the tokens in bytes of the word
        std::int32_t ids[maxTokens] = {};

        [[nodiscard]] bool holds(const Packed& word, std::size_t wordSize) const
        {
            return low == word.low && high == word.high && size == wordSize;
        }
    };

    WordCache() : m_entries(entryCount) {}
    /// The place of a word of 1..16 bytes, which may hold another word.
    [[nodiscard]] Entry& place(const Packed& word, std::size_t size)
    {
        std::uint64_t h = (word.low ^ size) * 0x9E3779B97F4A7C15ULL;
        h ^= std::rotl(word.high * 0xC2B2AE3D27D4EB4FULL, 29);
        h ^= h >> 32U;
        h *= 0xD6E8FEB86659FD93ULL;
        return m_entries[h >> (64U - entryBits)];
    }

private:
    static constexpr unsigned entryBits = 14;
    static constexpr std::size_t entryCount = std::size_t{1} << entryBits;
    std::vector<Entry> m_entries;
};

/// What one thread needs while it encodes.
struct EncodeSpace {
    WordCache cache;
    MergeSpace merging;
    std::vector<MergeSymbol> symbols;
    struct PathNode { ///< of the best path through a word
        double score = 0;
        std::uint32_t from = 0;
        std::int32_t id = -1;
    };
    std::vector<PathNode> path;
};

/// Hands out spaces, so that each call has its own and the next one finds it warm.
class SpacePool final {
public:
    /// A borrowed space; goes back when the object ends.
    class Loan final {
    public:
        explicit Loan(SpacePool& pool) : m_pool(pool), m_space(pool.take()) {}
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;
        ~Loan() { m_pool.give(std::move(m_space)); }
        [[nodiscard]] EncodeSpace& operator*() const { return *m_space; }

    private:
        SpacePool& m_pool;
        std::unique_ptr<EncodeSpace> m_space;
    };

private:
    [[nodiscard]] std::unique_ptr<EncodeSpace> take();
    void give(std::unique_ptr<EncodeSpace> space);

    std::mutex m_mutex;
    std::vector<std::unique_ptr<EncodeSpace>> m_free;
};

} // namespace muster::tokenizer
