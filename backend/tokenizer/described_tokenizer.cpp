// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/described_tokenizer_p.h"

namespace muster::tokenizer {

namespace {

void addNumbers(Hasher& hasher, const std::vector<std::int32_t>& numbers)
{
    hasher.add(std::uint64_t{numbers.size()});
    for (const std::int32_t n : numbers)
        hasher.add(std::int64_t{n});
}

} // namespace

void addToDigest(Hasher& hasher, const Description& description)
{
    std::vector<AddedToken> added = description.addedTokens;
    std::ranges::stable_sort(added, {}, &AddedToken::id);
    hasher.add(std::uint64_t{added.size()});
    for (const AddedToken& token : added) {
        const unsigned flags = (token.isSingleWord ? 1U : 0U) | (token.stripsLeft ? 2U : 0U) |
                               (token.stripsRight ? 4U : 0U) | (token.isNormalized ? 8U : 0U);
        hasher.add(token.content).add(std::int64_t{token.id}).add(std::uint64_t{flags});
    }
    addNumbers(hasher, description.single.prefix);
    addNumbers(hasher, description.single.suffix);
    const PairTemplate& pair = description.pair;
    for (const auto* column : {&pair.prefix, &pair.middle, &pair.suffix, &pair.prefixSegments,
                               &pair.middleSegments, &pair.suffixSegments})
        addNumbers(hasher, *column);
    hasher.add(std::int64_t{pair.questionSegment}).add(std::int64_t{pair.contextSegment});
}

void addToDigest(Hasher& hasher, std::vector<std::pair<std::int32_t, std::string_view>> vocabulary)
{
    if (!std::ranges::is_sorted(vocabulary))
        std::ranges::sort(vocabulary);
    std::string block;
    std::size_t bytes = 0;
    for (const auto& [id, token] : vocabulary)
        bytes += token.size() + 16;
    block.reserve(bytes);
    for (const auto& [id, token] : vocabulary) {
        char head[16];
        for (unsigned i = 0; i < 8; ++i) {
            head[i] = static_cast<char>(static_cast<std::uint64_t>(id) >> (8 * i) & 0xFFU);
            head[8 + i] = static_cast<char>(std::uint64_t{token.size()} >> (8 * i) & 0xFFU);
        }
        block.append(head, sizeof head);
        block.append(token);
    }
    hasher.add(block);
}

} // namespace muster::tokenizer
