// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/sentence_piece_p.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>

namespace muster::tokenizer {

namespace {

constexpr std::size_t maxPieces = std::size_t{1} << 24U;

tl::unexpected<Error> bad(std::string_view why)
{
    return fail(Error::Kind::Invalid, "E-TOK-012",
                fmt::format("the SentencePiece model is broken: {}", why));
}

/// One field of a message in the protocol buffers' encoding.
struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0; ///< of a varint or a fixed number
    std::string_view bytes;  ///< of a length-delimited field
    bool isBytes = false;
};

/// Reads the fields of a message one by one.
class FieldReader final {
public:
    explicit FieldReader(std::string_view message) : m_rest(message) {}

    [[nodiscard]] bool atEnd() const { return m_rest.empty(); }
    /// Nothing when the message breaks off or has a group.
    std::optional<Field> next()
    {
        const auto tag = varint();
        if (!tag)
            return std::nullopt;
        Field field;
        field.number = *tag >> 3U;
        if (field.number == 0)
            return std::nullopt;
        switch (*tag & 7U) {
        case 0: {
            const auto value = varint();
            if (!value)
                return std::nullopt;
            field.value = *value;
            return field;
        }
        case 1:
            return fixed(field, 8);
        case 2: {
            const auto size = varint();
            if (!size || *size > m_rest.size())
                return std::nullopt;
            field.bytes = m_rest.substr(0, static_cast<std::size_t>(*size));
            field.isBytes = true;
            m_rest.remove_prefix(static_cast<std::size_t>(*size));
            return field;
        }
        case 5:
            return fixed(field, 4);
        default:
            return std::nullopt;
        }
    }

private:
    std::optional<std::uint64_t> varint()
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (m_rest.empty())
                return std::nullopt;
            const auto byte = static_cast<unsigned char>(m_rest.front());
            m_rest.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80)
                return value;
        }
        return std::nullopt;
    }
    std::optional<Field> fixed(Field field, std::size_t size)
    {
        if (m_rest.size() < size)
            return std::nullopt;
        for (std::size_t i = 0; i < size; ++i)
            field.value |= std::uint64_t{static_cast<unsigned char>(m_rest[i])} << (8 * i);
        m_rest.remove_prefix(size);
        return field;
    }

    std::string_view m_rest;
};

/// Calls `take(field)`, which returns a Status, for each field.
template <typename Take>
Status readFields(std::string_view message, std::string_view what, Take take)
{
    for (FieldReader reader(message); !reader.atEnd();) {
        const std::optional<Field> field = reader.next();
        if (!field)
            return bad(fmt::format("{} breaks off or is no protocol buffer", what));
        const Status taken = take(*field);
        if (!taken)
            return taken;
    }
    return {};
}

std::int32_t signedValue(const Field& field)
{
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value & 0xFFFFFFFFU));
}

Status readPiece(std::string_view message, SentencePieceModel& model)
{
    SentencePieceModel::Piece piece;
    const Status read = readFields(message, "a piece", [&](const Field& field) -> Status {
        if (field.number == 1 && field.isBytes) {
            piece.text = std::string(field.bytes);
        } else if (field.number == 2 && !field.isBytes) {
            piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
        } else if (field.number == 3 && !field.isBytes) {
            if (field.value < 1 || field.value > 6)
                return bad(
                    fmt::format("piece {} has the type {}", model.pieces.size(), field.value));
            piece.type = static_cast<SentencePieceModel::Type>(field.value);
        }
        return {};
    });
    if (!read)
        return read;
    if (piece.text.empty() || utf8::firstInvalid(piece.text) || !std::isfinite(piece.score))
        return bad(fmt::format("piece {} is empty, not UTF-8 or has no finite score",
                               model.pieces.size()));
    if (model.pieces.size() >= maxPieces)
        return bad("it has more than 2^24 pieces");
    model.pieces.push_back(std::move(piece));
    return {};
}

Status readTrainer(std::string_view message, SentencePieceModel& model)
{
    return readFields(message, "trainer_spec", [&](const Field& field) -> Status {
        if (field.isBytes)
            return {};
        switch (field.number) {
        case 3:
            if (field.value < 1 || field.value > 4)
                return bad(fmt::format("its model type is {}", field.value));
            model.kind = static_cast<SentencePieceModel::Kind>(field.value);
            break;
        case 24:
            model.treatsBlankAsSuffix = field.value != 0;
            break;
        case 35:
            model.fallsBackToBytes = field.value != 0;
            break;
        case 40:
            model.unkId = signedValue(field);
            break;
        case 41:
            model.bosId = signedValue(field);
            break;
        case 42:
            model.eosId = signedValue(field);
            break;
        case 43:
            model.padId = signedValue(field);
            break;
        default:
            break;
        }
        return {};
    });
}

Status readNormalizer(std::string_view message, SentencePieceModel& model)
{
    return readFields(message, "normalizer_spec", [&](const Field& field) -> Status {
        if (field.number == 2 && field.isBytes)
            model.charsmap = std::string(field.bytes);
        else if (field.number == 3 && !field.isBytes)
            model.addsDummyPrefix = field.value != 0;
        else if (field.number == 4 && !field.isBytes)
            model.removesExtraBlanks = field.value != 0;
        else if (field.number == 5 && !field.isBytes)
            model.escapesBlanks = field.value != 0;
        return {};
    });
}

} // namespace

Result<SentencePieceModel> readSentencePieceModel(std::string_view bytes)
{
    SentencePieceModel model;
    const Status read = readFields(bytes, "the file", [&](const Field& field) -> Status {
        if (!field.isBytes)
            return {};
        if (field.number == 1)
            return readPiece(field.bytes, model);
        if (field.number == 2)
            return readTrainer(field.bytes, model);
        if (field.number == 3)
            return readNormalizer(field.bytes, model);
        return {};
    });
    if (!read)
        return fail(read.error());
    if (model.pieces.empty())
        return bad("it has no pieces");
    return model;
}

} // namespace muster::tokenizer
