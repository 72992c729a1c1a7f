// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "model/decoder_plan.h"
#include "model/encoder_plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::model {

/// The keys of a config.json. Every key that is asked for counts as known; finish() refuses the
/// rest, because a key that nobody read may change what the model computes. The first problem is
/// kept and returned by finish(); values after it are defaults.
class ConfigReader final {
public:
    /// Errors: `E-MODEL-010`, `E-MODEL-020`.
    [[nodiscard]] static Result<ConfigReader> open(const std::filesystem::path& directory);
    ~ConfigReader();
    ConfigReader(ConfigReader&&) noexcept;
    ConfigReader& operator=(ConfigReader&&) noexcept;

    std::uint32_t count(std::string_view key, std::optional<std::uint32_t> absent,
                        std::uint32_t least = 1, std::uint32_t most = 1U << 24U);
    double positive(std::string_view key, double absent);
    double number(std::string_view key, std::optional<double> absent, double least, double most);
    bool flag(std::string_view key, bool absent);
    [[nodiscard]] bool has(std::string_view key) const;   ///< it is there and is not null
    [[nodiscard]] bool holds(std::string_view key) const; ///< it is there, null or not
    std::string text(std::string_view key, std::string_view absent);
    /// The first entry of a list of texts, or empty.
    std::string firstText(std::string_view key);
    std::vector<std::string> texts(std::string_view key);
    /// Size of a classification head by id2label or num_labels.
    std::uint32_t labelCount();
    Activation activation(std::string_view key, std::string_view absent = "gelu");
    /// The object under a key, empty when it is absent. Hand it back to close() when it is read.
    [[nodiscard]] ConfigReader part(std::string_view key);
    /// Refuses keys of the part that were not asked for, and takes over its first problem.
    void close(ConfigReader part);
    /// Keys that may have these values only, where absent and null always count as allowed:
    /// false, 0, an empty object or list, or the text `allowed`.
    void only(std::string_view key, std::string_view allowed = {});
    /// Keys that do not change the mathematics of evaluation.
    void ignore(std::span<const std::string_view> keys);
    void refuse(std::string_view code, std::string message);

    /// Refuses keys that were not asked for; the first problem of all.
    [[nodiscard]] Status finish();

    static constexpr std::uint32_t largestCount = 1U << 24U;

private:
    struct State;
    explicit ConfigReader(std::unique_ptr<State> state);
    void refuseUnknown();
    std::unique_ptr<State> m_state;
};

/// Layers that a model may have; keeps a hostile configuration from filling the memory with names.
inline constexpr std::uint32_t mostLayers = 1000;

/// Checks what all encoders have in common: heads divide the width, sizes are within limits.
void checkShape(ConfigReader& config, const EncoderShape& shape);

/// Names of the layers of BERT and of the models that keep its naming (RoBERTa, ELECTRA).
[[nodiscard]] EncoderNames bertNames(const std::string& prefix, std::uint32_t layers);
/// Keys that BERT, RoBERTa and ELECTRA share.
[[nodiscard]] EncoderShape bertShape(ConfigReader& config);

[[nodiscard]] EncoderPlan planBert(ConfigReader& config);
[[nodiscard]] EncoderPlan planRoberta(ConfigReader& config);
[[nodiscard]] EncoderPlan planDistilbert(ConfigReader& config);
[[nodiscard]] EncoderPlan planElectra(ConfigReader& config);

/// Sizes and keys that the Llama family shares, and checks of them. `keyHeadsDefault`: whether
/// num_key_value_heads may be absent; `headSize`: head_dim when it is absent, 0: width / heads.
[[nodiscard]] DecoderShape llamaShape(ConfigReader& config, bool keyHeadsDefault,
                                      std::uint32_t headSize);
/// Names of the Llama family; biases and q/k norms as asked for.
struct LlamaParts {
    bool hasInputBias = false;  ///< of query, key and value
    bool hasOutputBias = false; ///< of the attention's output
    bool hasInnerBias = false;  ///< of gate, up and down
    bool hasHeadNorms = false;  ///< of query and key
};
[[nodiscard]] DecoderNames llamaNames(std::uint32_t layers, const LlamaParts& parts);
/// Windows of each layer by use_sliding_window, sliding_window, max_window_layers, layer_types.
[[nodiscard]] std::vector<std::uint32_t> qwenWindows(ConfigReader& config, std::uint32_t layers);

[[nodiscard]] DecoderPlan planGpt2(ConfigReader& config);
[[nodiscard]] DecoderPlan planLlama(ConfigReader& config);
[[nodiscard]] DecoderPlan planMistral(ConfigReader& config);
[[nodiscard]] DecoderPlan planQwen2(ConfigReader& config);
[[nodiscard]] DecoderPlan planQwen3(ConfigReader& config);

} // namespace muster::model
