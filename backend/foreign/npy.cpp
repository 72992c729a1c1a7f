// SPDX-License-Identifier: Apache-2.0
#include "foreign/elements_p.h"
#include "foreign/number_array.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

namespace muster::foreign {

namespace {

constexpr std::size_t mostDimensions = 8;

/// The value of `key` in the header's dict: from behind the colon.
std::optional<std::string_view> valueOf(std::string_view header, std::string_view key)
{
    for (const char quote : {'\'', '"'}) {
        const std::string quoted = fmt::format("{}{}{}", quote, key, quote);
        const std::size_t at = header.find(quoted);
        if (at == std::string_view::npos)
            continue;
        std::size_t value = header.find(':', at + quoted.size());
        if (value == std::string_view::npos)
            return std::nullopt;
        value = header.find_first_not_of(" \t", value + 1);
        if (value == std::string_view::npos)
            return std::nullopt;
        return header.substr(value);
    }
    return std::nullopt;
}

std::optional<std::vector<std::uint64_t>> shapeOf(std::string_view text)
{
    std::vector<std::uint64_t> shape;
    if (!text.starts_with('('))
        return std::nullopt;
    const std::size_t end = text.find(')');
    if (end == std::string_view::npos)
        return std::nullopt;
    text = text.substr(1, end - 1);
    while (!text.empty()) {
        const std::size_t first = text.find_first_not_of(" ,L");
        if (first == std::string_view::npos)
            break;
        text.remove_prefix(first);
        std::uint64_t value = 0;
        const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || shape.size() == mostDimensions)
            return std::nullopt;
        shape.push_back(value);
        text.remove_prefix(static_cast<std::size_t>(next - text.data()));
    }
    return shape;
}

/// Place in Fortran order of the element at row-major place `at`.
std::uint64_t fortranPlace(const std::vector<std::uint64_t>& shape, std::uint64_t at)
{
    std::uint64_t place = 0;
    std::uint64_t stride = 1;
    std::vector<std::uint64_t> index(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        index[d] = at % shape[d];
        at /= shape[d];
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
        place += index[d] * stride;
        stride *= shape[d];
    }
    return place;
}

} // namespace

Result<std::uint64_t> elementCount(const std::vector<std::uint64_t>& shape,
                                   std::uint64_t elementSize, std::uint64_t available)
{
    std::uint64_t count = 1;
    for (const std::uint64_t size : shape) {
        if (size != 0 && count > available / size + 1)
            return fail(Error::Kind::Invalid, "E-FOREIGN-007",
                        "the shape needs more bytes than the file has");
        count *= size;
    }
    if (elementSize == 0 || count > available / elementSize)
        return fail(Error::Kind::Invalid, "E-FOREIGN-007",
                    "the shape needs more bytes than the file has");
    return count;
}

double halfToDouble(std::uint16_t bits)
{
    const int exponent = (bits >> 10) & 31;
    const double mantissa = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31)
        return mantissa == 0.0 ? sign * HUGE_VAL : std::nan("");
    return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                         : sign * std::ldexp(1024.0 + mantissa, exponent - 25);
}

bool appendElement(NumberArray& array, const char* bytes, ElementKind kind, std::size_t size,
                   bool isSwapped)
{
    std::array<char, 8> raw{};
    std::copy_n(bytes, std::min<std::size_t>(size, 8), raw.begin());
    if (isSwapped)
        std::reverse(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(size));
    std::uint64_t bits = 0;
    std::memcpy(&bits, raw.data(), sizeof bits);
    switch (kind) {
    case ElementKind::Bool:
        array.integers.push_back(raw[0] != 0 ? 1 : 0);
        return true;
    case ElementKind::Signed: {
        const int unused = static_cast<int>(64 - 8 * size);
        array.integers.push_back(static_cast<std::int64_t>(bits << unused) >> unused);
        return true;
    }
    case ElementKind::Unsigned:
        array.integers.push_back(static_cast<std::int64_t>(bits));
        return array.integers.back() >= 0;
    case ElementKind::Brain:
        array.reals.push_back(static_cast<double>(
            std::bit_cast<float>(static_cast<std::uint32_t>((bits & 0xFFFF) << 16U))));
        return true;
    case ElementKind::Real:
        array.reals.push_back(size == 8   ? std::bit_cast<double>(bits)
                              : size == 4 ? static_cast<double>(std::bit_cast<float>(
                                                static_cast<std::uint32_t>(bits)))
                                          : halfToDouble(static_cast<std::uint16_t>(bits)));
        return true;
    }
    return false;
}

Result<NumberArray> readNpy(std::string_view name, std::string_view bytes)
{
    const auto bad = [name](std::string_view what) {
        return fail(Error::Kind::Invalid, "E-FOREIGN-007", fmt::format("{}: {}", name, what));
    };
    constexpr std::string_view magic = "\x93NUMPY";
    if (!bytes.starts_with(magic) || bytes.size() < 10)
        return bad("no NumPy array");
    const auto version = static_cast<unsigned char>(bytes[6]);
    if (version < 1 || version > 3)
        return bad(fmt::format("version {} of the format is not known", version));
    const std::size_t lengthSize = version == 1 ? 2 : 4;
    if (bytes.size() < 8 + lengthSize)
        return bad("the header is cut");
    std::size_t length = 0;
    for (std::size_t i = 0; i < lengthSize; ++i)
        length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
    const std::size_t start = 8 + lengthSize;
    if (length > bytes.size() - start || length > (std::size_t{1} << 20U))
        return bad("the header is cut");
    const std::string_view header = bytes.substr(start, length);
    const std::string_view data = bytes.substr(start + length);

    const auto descr = valueOf(header, "descr");
    const auto shapeText = valueOf(header, "shape");
    const auto order = valueOf(header, "fortran_order");
    if (!descr || !shapeText || !order)
        return bad("the header lacks descr, shape or fortran_order");
    if (descr->size() < 4 || (descr->front() != '\'' && descr->front() != '"'))
        return bad("arrays of records are not read");
    const std::size_t close = descr->find(descr->front(), 1);
    if (close == std::string_view::npos || close < 3)
        return bad("the header's descr is broken");
    const std::string_view type = descr->substr(1, close - 1);
    std::size_t width = 0;
    const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), width);
    if (type[1] == 'O')
        return bad("an array of Python objects is a pickle and is not read");
    if (error != std::errc() || end != type.data() + type.size() || width == 0 || width > 1 << 20)
        return bad(fmt::format("the type {} is not read", type));
    auto shape = shapeOf(*shapeText);
    if (!shape)
        return bad("the shape cannot be read");
    const bool isFortran = order->starts_with("True");
    const bool isSwapped = type[0] == '>';

    NumberArray array;
    array.shape = *shape;
    ElementKind kind = ElementKind::Signed;
    std::size_t size = width;
    switch (type[1]) {
    case 'b':
        kind = ElementKind::Bool;
        break;
    case 'i':
        break;
    case 'u':
        kind = ElementKind::Unsigned;
        break;
    case 'f':
        kind = ElementKind::Real;
        array.type = NumberArray::Type::Real;
        break;
    case 'U':
        array.type = NumberArray::Type::Text;
        size = width * 4;
        break;
    default:
        return bad(fmt::format("the type {} is not read", type));
    }
    const bool isNumber = array.type != NumberArray::Type::Text;
    if (isNumber &&
        (size > 8 || !std::has_single_bit(size) || (kind == ElementKind::Bool && size != 1) ||
         (kind == ElementKind::Real && size == 1)))
        return bad(fmt::format("the type {} is not read", type));
    auto count = elementCount(*shape, size, data.size());
    if (!count)
        return fail(count.error().during(name));
    for (std::uint64_t at = 0; at < *count; ++at) {
        const std::uint64_t place = isFortran && shape->size() > 1 ? fortranPlace(*shape, at) : at;
        const char* element = data.data() + place * size;
        if (isNumber) {
            if (!appendElement(array, element, kind, size, isSwapped))
                return bad("a number above 2^63");
            continue;
        }
        std::string text;
        for (std::size_t i = 0; i < width; ++i) {
            std::uint32_t point = 0;
            for (std::size_t b = 0; b < 4; ++b)
                point |= static_cast<std::uint32_t>(static_cast<unsigned char>(element[4 * i + b]))
                         << (8 * (isSwapped ? 3 - b : b));
            if (point == 0)
                break;
            utf8::append(text, static_cast<char32_t>(point));
        }
        array.texts.push_back(std::move(text));
    }
    return array;
}

} // namespace muster::foreign
