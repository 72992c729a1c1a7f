// SPDX-License-Identifier: Apache-2.0
#include "wire/cbor_check_p.h"

#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace muster::wire {

namespace {

constexpr std::size_t maxDepth = 4;
constexpr std::size_t maxKeys = 64;

enum Major : unsigned { Unsigned, Negative, Bytes, Text, Array, Map, Tag, Simple };

/// One array or map that is being read.
struct Level {
    bool isMap = false;
    std::uint64_t left = 0; ///< values, or keys and values, to come
    std::vector<std::string_view> keys;
};

} // namespace

const char* cborProblem(std::span<const std::byte> bytes)
{
    std::array<Level, maxDepth> levels;
    std::size_t depth = 0;
    std::size_t at = 0;
    bool isFirst = true;
    while (isFirst || depth > 0) {
        const bool isKey = depth > 0 && levels[depth - 1].isMap && levels[depth - 1].left % 2 == 0;
        if (at >= bytes.size())
            return "it is cut off";
        const auto initial = std::to_integer<unsigned>(bytes[at++]);
        const unsigned major = initial >> 5U;
        const unsigned info = initial & 0x1FU;
        if (info == 31)
            return "a length is not stated";
        if (info > 27)
            return "a reserved form is used";
        std::uint64_t value = info;
        const std::size_t extra = info < 24 ? 0 : std::size_t{1} << (info - 24U);
        if (extra > 0) {
            if (bytes.size() - at < extra)
                return "it is cut off";
            value = 0;
            for (std::size_t i = 0; i < extra; ++i)
                value = (value << 8U) | std::to_integer<std::uint64_t>(bytes[at++]);
        }
        const std::size_t remaining = bytes.size() - at;
        if (isFirst && major != Map)
            return "it is no map";
        isFirst = false;
        if (isKey && major != Text)
            return "a key is no text";
        if (depth > 0)
            --levels[depth - 1].left;
        switch (major) {
        case Unsigned:
        case Negative:
            break;
        case Bytes:
            return "byte strings are not used";
        case Text: {
            if (value > remaining)
                return "a text is longer than the message";
            const auto part = bytes.subspan(at, static_cast<std::size_t>(value));
            const std::string_view text{
                static_cast<const char*>(static_cast<const void*>(part.data())), part.size()};
            if (utf8::firstInvalid(text))
                return "a text is not valid UTF-8";
            at += part.size();
            if (isKey) {
                auto& keys = levels[depth - 1].keys;
                if (std::ranges::find(keys, text) != keys.end())
                    return "a key occurs twice";
                keys.push_back(text);
            }
            break;
        }
        case Array:
        case Map: {
            if (depth == maxDepth)
                return "it is nested too deeply";
            if (value > (major == Map ? remaining / 2 : remaining))
                return "a count is larger than the message";
            if (major == Map && value > maxKeys)
                return "a map has too many keys";
            levels[depth] = {major == Map, major == Map ? value * 2 : value, {}};
            ++depth;
            break;
        }
        case Tag:
            return "tags are not used";
        default:
            if (info != 20 && info != 21 && info != 22 && info != 25 && info != 26 && info != 27)
                return "a simple value is not known";
        }
        while (depth > 0 && levels[depth - 1].left == 0)
            --depth;
    }
    return at == bytes.size() ? nullptr : "bytes follow after its end";
}

} // namespace muster::wire
