// SPDX-License-Identifier: Apache-2.0
#include "model/decoder_plan.h"

#include "model/config_reader_p.h"
#include "model/safetensors.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <utility>

namespace muster::model {
namespace {

struct Architecture {
    std::string_view name;
    DecoderPlan (*plan)(ConfigReader&);
};

/// GPT2Model stands for checkpoints without a head of their own: GPT-2's is its embedding table.
constexpr std::array<Architecture, 6> architectures{{
    {"GPT2LMHeadModel", planGpt2},
    {"GPT2Model", planGpt2},
    {"LlamaForCausalLM", planLlama},
    {"MistralForCausalLM", planMistral},
    {"Qwen2ForCausalLM", planQwen2},
    {"Qwen3ForCausalLM", planQwen3},
}};

} // namespace

Result<DecoderPlan> readDecoderPlan(const std::filesystem::path& directory)
{
    try {
        auto config = ConfigReader::open(directory);
        if (!config)
            return fail(std::move(config).error());
        const auto name = config->firstText("architectures");
        const auto type = config->text("model_type", "");
        for (const auto& architecture : architectures) {
            if (architecture.name != name)
                continue;
            auto plan = architecture.plan(*config);
            plan.architecture = name == "GPT2Model" ? "GPT2LMHeadModel" : name;
            if (auto status = config->finish(); !status)
                return fail(std::move(status).error().during("reading " + directory.string()));
            return plan;
        }
        std::string known;
        for (const auto& architecture : architectures)
            known += (known.empty() ? "" : ", ") + std::string(architecture.name);
        return fail(Error::Kind::Invalid, "E-MODEL-023",
                    fmt::format("{} says architecture {} (model_type {}); the language models that "
                                "Muster computes are {}",
                                (directory / "config.json").string(), inQuotes(name),
                                inQuotes(type), known));
    } catch (const std::exception& error) {
        return fail(
            Error::Kind::Invalid, "E-MODEL-020",
            fmt::format("reading {}: {}", (directory / "config.json").string(), error.what()));
    }
}

Hash128 DecoderShape::digest() const
{
    Hasher hasher;
    for (const auto number :
         {vocabulary, positions, width, inner, layers, heads, keyHeads, headSize,
          static_cast<std::uint32_t>(norm), static_cast<std::uint32_t>(activation),
          static_cast<std::uint32_t>(isGated), static_cast<std::uint32_t>(isTied),
          static_cast<std::uint32_t>(rope.kind)})
        hasher.add(std::uint64_t{number});
    for (const auto window : windows)
        hasher.add(std::uint64_t{window});
    for (const auto number : {epsilon, rope.theta, rope.factor, rope.lowFrequency,
                              rope.highFrequency, rope.originalPositions})
        hasher.add(number);
    return hasher.result();
}

} // namespace muster::model
