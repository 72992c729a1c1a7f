// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"

#include "base/file.h"
#include "model/safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

namespace muster::model {
namespace {

using nlohmann::json;

constexpr std::size_t configLimit = std::size_t{4} << 20U;

/// Keys of every configuration that say nothing about what an evaluation computes.
constexpr std::array<std::string_view, 69> neutralKeys{
    "architectures",
    "model_type",
    "transformers_version",
    "adapters",
    "torch_dtype",
    "dtype",
    "use_cache",
    "initializer_range",
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "classifier_dropout",
    "gradient_checkpointing",
    "id2label",
    "label2id",
    "num_labels",
    "finetuning_task",
    "name_or_path",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "cls_token_id",
    "mask_token_id",
    "decoder_start_token_id",
    "tokenizer_class",
    "language",
    "languages",
    "problem_type",
    "output_past",
    "directionality",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "summary_activation",
    "summary_last_dropout",
    "summary_type",
    "summary_use_proj",
    "tie_word_embeddings",
    "return_dict",
    "return_dict_in_generate",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "torchscript",
    "prefix",
    "task_specific_params",
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "num_return_sequences",
    "remove_invalid_values",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
};

/// Keys that change the mathematics and for which Muster computes one value only.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> fixedKeys{{
    {"position_embedding_type", "absolute"},
    {"quantization_config", ""},
    {"is_decoder", ""},
    {"is_encoder_decoder", ""},
    {"add_cross_attention", ""},
    {"cross_attention_hidden_size", ""},
    {"chunk_size_feed_forward", ""},
    {"pruned_heads", ""},
    {"tie_encoder_decoder", ""},
    {"use_bfloat16", ""},
    {"encoder_no_repeat_ngram_size", ""},
    {"exponential_decay_length_penalty", ""},
    {"tf_legacy_loss", ""},
}};

bool isNothing(const json& value)
{
    if (value.is_null())
        return true;
    if (value.is_boolean())
        return !value.get<bool>();
    if (value.is_number())
        return value.get<double>() == 0.0;
    return value.is_structured() && value.empty();
}

} // namespace

struct ConfigReader::State {
    json keys;
    std::string place; ///< of a part, such as `rope_scaling.`
    std::set<std::string, std::less<>> known;
    std::optional<Error> error;

    const json* find(std::string_view key)
    {
        known.emplace(key);
        const auto at = keys.find(key);
        return at == keys.end() || at->is_null() ? nullptr : &*at;
    }
};

ConfigReader::ConfigReader(std::unique_ptr<State> state) : m_state(std::move(state))
{
}
ConfigReader::~ConfigReader() = default;
ConfigReader::ConfigReader(ConfigReader&&) noexcept = default;
ConfigReader& ConfigReader::operator=(ConfigReader&&) noexcept = default;

Result<ConfigReader> ConfigReader::open(const std::filesystem::path& directory)
{
    const auto path = directory / "config.json";
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error))
        return fail(Error::Kind::NotFound, "E-MODEL-010",
                    fmt::format("the model directory {} does not exist", directory.string()));
    if (!std::filesystem::is_regular_file(path, error))
        return fail(Error::Kind::NotFound, "E-MODEL-010",
                    fmt::format("{} has no config.json; a Hugging Face model directory is needed",
                                directory.string()));
    const auto text = readFile(path, configLimit);
    if (!text)
        return fail(text.error());
    auto state = std::make_unique<State>();
    state->keys = json::parse(*text, nullptr, false);
    if (!state->keys.is_object())
        return fail(Error::Kind::Invalid, "E-MODEL-020",
                    fmt::format("{} is no JSON object", path.string()));
    return ConfigReader(std::move(state));
}

void ConfigReader::refuse(std::string_view code, std::string message)
{
    if (!m_state->error)
        m_state->error =
            Error{Error::Kind::Invalid, std::string(code),
                  (m_state->place.empty() ? "config.json: "
                                          : "config.json: in " + m_state->place + ": ") +
                      std::move(message)};
}

std::uint32_t ConfigReader::count(std::string_view key, std::optional<std::uint32_t> absent,
                                  std::uint32_t least, std::uint32_t most)
{
    const auto* value = m_state->find(key);
    if (value == nullptr) {
        if (!absent)
            refuse("E-MODEL-021", fmt::format("the key {} is missing", key));
        return absent.value_or(least);
    }
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < least ||
        value->get<std::uint64_t>() > most) {
        refuse("E-MODEL-021",
               fmt::format("{} must be a whole number from {} to {}", key, least, most));
        return least;
    }
    return static_cast<std::uint32_t>(value->get<std::uint64_t>());
}

double ConfigReader::positive(std::string_view key, double absent)
{
    const auto* value = m_state->find(key);
    if (value == nullptr)
        return absent;
    if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() <= 0 ||
        value->get<double>() > 1) {
        refuse("E-MODEL-021", fmt::format("{} must be a number above 0 and at most 1", key));
        return absent;
    }
    return value->get<double>();
}

double ConfigReader::number(std::string_view key, std::optional<double> absent, double least,
                            double most)
{
    const auto* value = m_state->find(key);
    if (value == nullptr) {
        if (!absent)
            refuse("E-MODEL-021", fmt::format("the key {} is missing", key));
        return absent.value_or(least);
    }
    if (!value->is_number() || !(value->get<double>() >= least) ||
        !(value->get<double>() <= most)) {
        refuse("E-MODEL-021", fmt::format("{} must be a number from {} to {}", key, least, most));
        return least;
    }
    return value->get<double>();
}

bool ConfigReader::flag(std::string_view key, bool absent)
{
    const auto* value = m_state->find(key);
    if (value == nullptr)
        return absent;
    if (!value->is_boolean()) {
        refuse("E-MODEL-021", fmt::format("{} must be true or false", key));
        return absent;
    }
    return value->get<bool>();
}

bool ConfigReader::has(std::string_view key) const
{
    const auto at = m_state->keys.find(key);
    return at != m_state->keys.end() && !at->is_null();
}

bool ConfigReader::holds(std::string_view key) const
{
    return m_state->keys.contains(key);
}

ConfigReader ConfigReader::part(std::string_view key)
{
    auto state = std::make_unique<State>();
    state->place = key;
    state->keys = json::object();
    if (const auto* value = m_state->find(key); value != nullptr) {
        if (value->is_object())
            state->keys = *value;
        else
            refuse("E-MODEL-021", fmt::format("{} must be an object", key));
    }
    return ConfigReader(std::move(state));
}

void ConfigReader::close(ConfigReader part)
{
    part.refuseUnknown();
    if (part.m_state->error && !m_state->error)
        m_state->error = std::move(part.m_state->error);
}

std::string ConfigReader::text(std::string_view key, std::string_view absent)
{
    const auto* value = m_state->find(key);
    if (value == nullptr)
        return std::string(absent);
    if (!value->is_string()) {
        refuse("E-MODEL-021", fmt::format("{} must be a text", key));
        return std::string(absent);
    }
    return value->get<std::string>();
}

std::string ConfigReader::firstText(std::string_view key)
{
    const auto* value = m_state->find(key);
    if (value == nullptr || !value->is_array() || value->empty() || !value->front().is_string())
        return {};
    return value->front().get<std::string>();
}

std::vector<std::string> ConfigReader::texts(std::string_view key)
{
    std::vector<std::string> all;
    const auto* value = m_state->find(key);
    if (value == nullptr)
        return all;
    if (!value->is_array() || value->size() > mostLayers) {
        refuse("E-MODEL-021",
               fmt::format("{} must be a list of at most {} texts", key, mostLayers));
        return all;
    }
    for (const auto& entry : *value) {
        if (entry.is_string())
            all.push_back(entry.get<std::string>());
        else
            refuse("E-MODEL-021", fmt::format("{} must be a list of texts", key));
    }
    return all;
}

std::uint32_t ConfigReader::labelCount()
{
    constexpr std::uint32_t mostLabels = 65536;
    const std::uint32_t count = this->count("num_labels", 2, 1, mostLabels);
    const auto* names = m_state->find("id2label");
    if (names == nullptr)
        return count;
    if (!names->is_object() || names->empty() || names->size() > mostLabels) {
        refuse("E-MODEL-021", "id2label must be a map from numbers to names");
        return count;
    }
    return static_cast<std::uint32_t>(names->size());
}

Activation ConfigReader::activation(std::string_view key, std::string_view absent)
{
    const auto name = text(key, absent);
    if (name == "gelu" || name == "gelu_python")
        return Activation::GeluErf;
    if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh")
        return Activation::GeluTanh;
    if (name == "relu")
        return Activation::Relu;
    if (name == "silu" || name == "swish")
        return Activation::Silu;
    refuse("E-MODEL-022",
           fmt::format("{} = {} is not computed by Muster (gelu, gelu_new, relu and silu are)", key,
                       inQuotes(name)));
    return Activation::None;
}

void ConfigReader::only(std::string_view key, std::string_view allowed)
{
    const auto* value = m_state->find(key);
    if (value == nullptr || isNothing(*value) || (value->is_string() && *value == allowed))
        return;
    refuse("E-MODEL-022",
           fmt::format(
               "{} changes what the model computes, and Muster computes only "
               "{}",
               key, allowed.empty() ? std::string("its being absent or off") : inQuotes(allowed)));
}

void ConfigReader::ignore(std::span<const std::string_view> keys)
{
    for (const auto key : keys)
        m_state->known.emplace(key);
}

Status ConfigReader::finish()
{
    ignore(neutralKeys);
    for (const auto& [key, allowed] : fixedKeys)
        only(key, allowed);
    refuseUnknown();
    if (m_state->error)
        return fail(*m_state->error);
    return {};
}

void ConfigReader::refuseUnknown()
{
    for (const auto& [key, value] : m_state->keys.items()) {
        if (!m_state->known.contains(key) && !key.starts_with('_') && !value.is_null())
            refuse("E-MODEL-022",
                   fmt::format("the key {} is not known to Muster and may change what the model "
                               "computes; remove it when it does not",
                               inQuotes(key)));
    }
}

void checkShape(ConfigReader& config, const EncoderShape& shape)
{
    if (shape.width % shape.heads != 0)
        config.refuse("E-MODEL-021", fmt::format("{} attention heads do not divide the width {}",
                                                 shape.heads, shape.width));
    constexpr std::uint32_t mostPositions = 65536;
    constexpr std::uint32_t widest = 65536;
    if (shape.positions > mostPositions || shape.width > widest || shape.inner > 4 * widest ||
        shape.embedding > widest)
        config.refuse("E-MODEL-021", "widths or positions are larger than Muster's limits");
    if (shape.segments > 256)
        config.refuse("E-MODEL-021", "type_vocab_size is larger than 256");
    if (shape.maxTokens() == 0)
        config.refuse("E-MODEL-021", "no position is left for a token");
}

namespace {

/// `Bert` of `BertForQuestionAnswering` for this kind of unit, or empty.
std::string_view familyOf(std::string_view architecture, wire::UnitKind kind)
{
    const std::string_view suffix = kind == wire::UnitKind::Classification
                                        ? "ForSequenceClassification"
                                        : "ForQuestionAnswering";
    if (!architecture.ends_with(suffix))
        return {};
    return architecture.substr(0, architecture.size() - suffix.size());
}

/// Puts a classification head in place of the one for answers. Its size is the number of labels, as
/// transformers counts them: id2label, else num_labels, else 2.
void makeClassifier(ConfigReader& config, EncoderPlan& plan, std::string_view family)
{
    EncoderShape& shape = plan.shape;
    shape.outputs = config.labelCount();
    const auto linear = [](const std::string& name) {
        return LinearNames{name + ".weight", name + ".bias"};
    };
    const auto drop = [&plan](std::string_view name) { std::erase(plan.names.harmless, name); };
    if (family == "Bert") {
        shape.head = Head::TanhClasses;
        plan.names.pooler = linear("bert.pooler.dense");
        plan.names.head = linear("classifier");
        drop("bert.pooler.");
    } else if (family == "DistilBert") {
        shape.head = Head::ReluClasses;
        plan.names.pooler = linear("pre_classifier");
        plan.names.head = linear("classifier");
    } else {
        shape.head = family == "Electra" ? Head::GeluClasses : Head::TanhClasses;
        plan.names.pooler = linear("classifier.dense");
        plan.names.head = linear("classifier.out_proj");
    }
}

} // namespace

Result<EncoderPlan> readEncoderPlan(const std::filesystem::path& directory, wire::UnitKind kind)
{
    try {
        auto config = ConfigReader::open(directory);
        if (!config)
            return fail(std::move(config).error());
        const auto architecture = config->firstText("architectures");
        const auto type = config->text("model_type", "");
        const auto family = familyOf(architecture, kind);
        EncoderPlan plan;
        if (family == "Bert") {
            plan = planBert(*config);
        } else if (family == "Roberta" || family == "XLMRoberta" || family == "Camembert") {
            plan = planRoberta(*config);
        } else if (family == "DistilBert") {
            plan = planDistilbert(*config);
        } else if (family == "Electra") {
            plan = planElectra(*config);
        } else {
            const bool isClasses = kind == wire::UnitKind::Classification;
            return fail(
                Error::Kind::Invalid, "E-MODEL-023",
                fmt::format("{} says architecture {} (model_type {}); Muster {} with Bert, "
                            "Roberta, XLMRoberta, Camembert, DistilBert and Electra "
                            "followed by {}",
                            (directory / "config.json").string(), inQuotes(architecture),
                            inQuotes(type), isClasses ? "classifies" : "answers questions",
                            isClasses ? "ForSequenceClassification" : "ForQuestionAnswering"));
        }
        if (kind == wire::UnitKind::Classification)
            makeClassifier(*config, plan, family);
        plan.architecture = architecture;
        if (auto status = config->finish(); !status)
            return fail(std::move(status).error().during("reading " + directory.string()));
        return plan;
    } catch (const std::exception& error) {
        return fail(
            Error::Kind::Invalid, "E-MODEL-020",
            fmt::format("reading {}: {}", (directory / "config.json").string(), error.what()));
    }
}

Hash128 EncoderShape::digest() const
{
    Hasher hasher;
    for (const auto number :
         {vocabulary, positions, segments, embedding, width, inner, layers, heads,
          static_cast<std::uint32_t>(activation), static_cast<std::uint32_t>(counting),
          static_cast<std::uint32_t>(padToken)})
        hasher.add(std::uint64_t{number});
    if (isClassifier())
        hasher.add(static_cast<std::uint64_t>(head)).add(std::uint64_t{outputs});
    return hasher.add(epsilon).result();
}

} // namespace muster::model
