// SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include "base/utf8.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

namespace muster::model {
namespace {

struct TypeRow {
    DType type;
    std::string_view name;
    std::size_t size;
};

constexpr std::array<TypeRow, 15> typeRows{{
    {DType::Bool, "BOOL", 1},
    {DType::U8, "U8", 1},
    {DType::I8, "I8", 1},
    {DType::F8E5M2, "F8_E5M2", 1},
    {DType::F8E4M3, "F8_E4M3", 1},
    {DType::I16, "I16", 2},
    {DType::U16, "U16", 2},
    {DType::F16, "F16", 2},
    {DType::Bf16, "BF16", 2},
    {DType::I32, "I32", 4},
    {DType::U32, "U32", 4},
    {DType::F32, "F32", 4},
    {DType::I64, "I64", 8},
    {DType::U64, "U64", 8},
    {DType::F64, "F64", 8},
}};

constexpr std::uint64_t headerLimit = 100'000'000;
constexpr std::size_t rankLimit = 16;

using nlohmann::json;

/// Follows the header as it is parsed, so that a name that stands twice is seen and nothing else
/// than the format's own nesting is accepted.
class HeaderReader final : public nlohmann::json_sax<json> {
public:
    std::vector<TensorEntry> tensors;
    Error error;

    bool null() override { return refuse("null"); }
    bool boolean(bool) override { return refuse("a truth value"); }
    bool number_float(number_float_t, const string_t&) override { return refuse("a fraction"); }
    bool binary(binary_t&) override { return refuse("binary data"); }
    bool number_integer(number_integer_t) override { return refuse("a negative number"); }
    bool number_unsigned(number_unsigned_t value) override
    {
        if (m_place != Place::Array)
            return refuse("a number");
        auto& into = m_key == "shape" ? m_entry.shape : m_offsets;
        if (into.size() >= (m_key == "shape" ? rankLimit : 2))
            return stop("E-MODEL-002", fmt::format("tensor {}: {} has too many numbers",
                                                   inQuotes(m_entry.name), m_key));
        into.push_back(value);
        return true;
    }
    bool string(string_t& value) override
    {
        if (m_place == Place::Metadata)
            return true;
        if (m_place != Place::Entry || m_key != "dtype")
            return refuse("a text");
        for (const auto& row : typeRows) {
            if (row.name == value) {
                m_entry.type = row.type;
                return true;
            }
        }
        return stop("E-MODEL-003", fmt::format("tensor {} has the unknown type {}",
                                               inQuotes(m_entry.name), inQuotes(value)));
    }
    bool start_object(std::size_t) override
    {
        if (m_place == Place::Outside) {
            m_place = Place::Top;
            return true;
        }
        if (m_place != Place::Top)
            return refuse("an object");
        if (m_key == "__metadata__") {
            m_place = Place::Metadata;
            return true;
        }
        m_place = Place::Entry;
        m_entry = TensorEntry();
        m_entry.name = m_key;
        m_offsets.clear();
        m_seen = {};
        return true;
    }
    bool key(string_t& value) override
    {
        if (m_place == Place::Top && !m_names.insert(value).second)
            return stop("E-MODEL-005", fmt::format("tensor {} stands twice", inQuotes(value)));
        if (m_place == Place::Entry) {
            constexpr std::array<std::string_view, 3> known{"dtype", "shape", "data_offsets"};
            const auto at = std::find(known.begin(), known.end(), value);
            if (at == known.end())
                return stop("E-MODEL-002", fmt::format("tensor {} has the unknown field {}",
                                                       inQuotes(m_entry.name), inQuotes(value)));
            auto& seen = m_seen.at(static_cast<std::size_t>(at - known.begin()));
            if (std::exchange(seen, true))
                return stop("E-MODEL-002", fmt::format("tensor {}: {} stands twice",
                                                       inQuotes(m_entry.name), value));
        }
        m_key = value;
        return true;
    }
    bool end_object() override
    {
        if (m_place == Place::Entry) {
            if (m_seen != std::array{true, true, true} || m_offsets.size() != 2)
                return stop("E-MODEL-002",
                            fmt::format("tensor {} lacks dtype, shape or two data_offsets",
                                        inQuotes(m_entry.name)));
            m_entry.begin = m_offsets[0];
            m_entry.end = m_offsets[1];
            tensors.push_back(std::move(m_entry));
        }
        m_place = m_place == Place::Top ? Place::Outside : Place::Top;
        return true;
    }
    bool start_array(std::size_t) override
    {
        if (m_place != Place::Entry || m_key == "dtype")
            return refuse("a list");
        m_place = Place::Array;
        return true;
    }
    bool end_array() override
    {
        m_place = Place::Entry;
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const json::exception&) override
    {
        return stop("E-MODEL-002", fmt::format("the header is no JSON at its byte {}", position));
    }

private:
    enum class Place { Outside, Top, Metadata, Entry, Array };

    bool stop(std::string_view code, std::string message)
    {
        error = Error{Error::Kind::Invalid, std::string(code), std::move(message)};
        return false;
    }
    bool refuse(std::string_view what)
    {
        return stop("E-MODEL-002",
                    fmt::format("the header has {} at {} where the format has none", what,
                                m_key.empty() ? std::string("its start") : inQuotes(m_key)));
    }

    Place m_place = Place::Outside;
    std::string m_key;
    TensorEntry m_entry;
    std::vector<std::uint64_t> m_offsets;
    std::array<bool, 3> m_seen{};
    std::unordered_set<std::string> m_names;
};

/// Bytes that the shape needs; nothing when the product does not fit 64 bits.
std::optional<std::uint64_t> bytesOf(const TensorEntry& tensor)
{
    std::uint64_t product = sizeOf(tensor.type);
    for (const auto extent : tensor.shape) {
        if (extent != 0 && product > std::numeric_limits<std::uint64_t>::max() / extent)
            return std::nullopt;
        product *= extent;
    }
    return product;
}

Status checkTensors(std::vector<TensorEntry>& tensors, std::uint64_t dataSize)
{
    const auto wrong = [](std::string_view code, std::string message) {
        return fail(Error::Kind::Invalid, std::string(code), std::move(message));
    };
    for (const auto& tensor : tensors) {
        if (tensor.begin > tensor.end || tensor.end > dataSize)
            return wrong("E-MODEL-004",
                         fmt::format("tensor {} claims bytes {} to {} of {}", inQuotes(tensor.name),
                                     tensor.begin, tensor.end, dataSize));
        const auto bytes = bytesOf(tensor);
        if (!bytes)
            return wrong("E-MODEL-003", fmt::format("the shape of tensor {} is larger than memory",
                                                    inQuotes(tensor.name)));
        if (*bytes != tensor.end - tensor.begin)
            return wrong("E-MODEL-003",
                         fmt::format("tensor {} needs {} bytes by shape and type and has {}",
                                     inQuotes(tensor.name), *bytes, tensor.end - tensor.begin));
    }
    std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t at = 0;
    const TensorEntry* before = nullptr;
    for (const auto& tensor : tensors) {
        if (tensor.begin < at)
            return wrong("E-MODEL-004", fmt::format("tensors {} and {} overlap",
                                                    inQuotes(before->name), inQuotes(tensor.name)));
        if (tensor.begin > at)
            return wrong("E-MODEL-004", fmt::format("{} bytes before tensor {} belong to no tensor",
                                                    tensor.begin - at, inQuotes(tensor.name)));
        at = tensor.end;
        before = &tensor;
    }
    if (at != dataSize)
        return wrong(
            "E-MODEL-004",
            fmt::format("{} bytes after the last tensor belong to no tensor", dataSize - at));
    return {};
}

} // namespace

std::size_t sizeOf(DType type)
{
    return typeRows.at(static_cast<std::size_t>(type)).size;
}

std::string_view nameOf(DType type)
{
    return typeRows.at(static_cast<std::size_t>(type)).name;
}

std::string inQuotes(std::string_view name)
{
    constexpr std::size_t limit = 100;
    const bool isCut = name.size() > limit;
    std::string text = utf8::repaired(name.substr(0, limit));
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
            c = '?';
    }
    return fmt::format("\"{}{}\"", text, isCut ? "..." : "");
}

Result<SafetensorsHeader> parseSafetensors(std::span<const std::byte> bytes, std::string_view file)
{
    const auto inFile = [&](Error error) {
        return fail(std::move(error).during(fmt::format("reading {}", file)));
    };
    const auto wrong = [&](std::string_view code, std::string message) {
        return inFile(Error{Error::Kind::Invalid, std::string(code), std::move(message)});
    };
    std::uint64_t length = 0;
    if (bytes.size() < sizeof(length))
        return wrong("E-MODEL-001", "the file is too short to be a safetensors file");
    std::memcpy(&length, bytes.data(), sizeof(length));
    if (length > headerLimit)
        return wrong("E-MODEL-001", fmt::format("the header claims {} bytes; at most {} are read",
                                                length, headerLimit));
    const auto rest = bytes.subspan(sizeof(length));
    if (length > rest.size())
        return wrong("E-MODEL-001",
                     fmt::format("the header claims {} bytes and the file has {}: it was cut off",
                                 length, rest.size()));
    const auto* text = static_cast<const char*>(static_cast<const void*>(rest.data()));
    const std::string_view header(text, static_cast<std::size_t>(length));
    if (header.empty() || header.front() != '{')
        return wrong("E-MODEL-002", "the header does not begin with {");
    if (const auto at = utf8::firstInvalid(header))
        return wrong("E-MODEL-002", fmt::format("the header is no UTF-8 at its byte {}", *at));
    HeaderReader reader;
    try {
        if (!json::sax_parse(header.begin(), header.end(), &reader))
            return inFile(std::move(reader.error));
    } catch (const std::exception&) {
        return wrong("E-MODEL-002", "the header cannot be parsed");
    }
    SafetensorsHeader result{sizeof(length) + length, std::move(reader.tensors)};
    if (auto status = checkTensors(result.tensors, rest.size() - length); !status)
        return inFile(std::move(status).error());
    return result;
}

} // namespace muster::model
