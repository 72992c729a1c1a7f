// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/loading_p.h"
#include "tokenizer/pipeline_tokenizer_p.h"

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Reading of JSON fields, and of the components of tokenizer.json.
namespace muster::tokenizer {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

/// `E-TOK-003`: a field has another type than expected.
[[nodiscard]] tl::unexpected<Error> wrongType(std::string_view where, std::string_view wanted);
/// `E-TOK-004`: a part of the file is not implemented.
[[nodiscard]] tl::unexpected<Error> notImplemented(std::string_view what);

/// The root object of a JSON text. Errors: `E-TOK-002`, `E-TOK-003`.
[[nodiscard]] Result<object> parseJson(simdjson::dom::parser& parser, std::string_view json,
                                       std::string_view what);
/// The field; nothing when it is absent or null.
[[nodiscard]] std::optional<element> field(const object& in, std::string_view key);
/// A string; `otherwise` when the field is absent, an error when there is no `otherwise`.
[[nodiscard]] Result<std::string> stringField(const object& in, std::string_view key,
                                              std::string_view where,
                                              std::optional<std::string> otherwise = std::nullopt);
[[nodiscard]] Result<bool> boolField(const object& in, std::string_view key, std::string_view where,
                                     bool otherwise);
[[nodiscard]] Result<std::int32_t> idOfElement(const element& value, std::string_view where);
[[nodiscard]] Result<object> objectOf(const element& value, std::string_view where);
[[nodiscard]] Result<array> arrayOf(const element& value, std::string_view where);
/// An entry of `added_tokens`; its id is −1 when the entry has none.
[[nodiscard]] Result<AddedToken> addedToken(const element& value, std::string_view where);
/// Tokens and ids of a vocabulary object. Error: `E-TOK-005`.
[[nodiscard]] Result<Vocabulary> vocabularyOf(const object& in);
/// The steps of a component of tokenizer.json, nested sequences flattened; none when it is absent.
[[nodiscard]] Result<std::vector<object>> steps(const object& root, std::string_view component,
                                                std::string_view listKey);
/// The `type` of a component, empty when it has none.
[[nodiscard]] std::string typeOf(const object& step);

/// The post-processor as templates; `trims` gets one entry for each step that trims offsets.
/// Errors: `E-TOK-003`, `E-TOK-004`, `E-TOK-008`.
[[nodiscard]] Status setPostProcessor(const object& root, Description& description,
                                      std::vector<bool>& trims);

/// The normalizer of a tokenizer whose model is BPE or Unigram.
struct NormalizerReading {
    TextNormalizer normalizer;
    bool replacesSpaces = false; ///< turns each space into U+2581
};
[[nodiscard]] Result<NormalizerReading> normalizerOf(const object& root);

/// The pre-tokenizer of a tokenizer whose model is BPE or Unigram.
struct PreTokenizerReading {
    std::vector<PreTokenizerStep> steps; ///< without ByteLevel
    bool isByteLevel = false;            ///< ByteLevel is the last step
    bool addsPrefixSpace = false;        ///< of ByteLevel
    bool usesRegex = false;              ///< of ByteLevel
};
[[nodiscard]] Result<PreTokenizerReading> preTokenizerOf(const object& root);

} // namespace muster::tokenizer
