// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QTemporaryDir>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace muster::test {

/// A tensor that a test writes.
struct TinyTensor {
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
};

using TinyTensors = std::map<std::string, TinyTensor>;

inline void writeText(const std::filesystem::path& path, const std::string& text)
{
    std::ofstream(path, std::ios::binary) << text;
}

/// The bytes of a safetensors file: header length, header, data.
inline std::string safetensorsFile(const std::string& header, const std::string& data)
{
    const std::uint64_t length = header.size();
    std::string file(sizeof(length), '\0');
    std::memcpy(file.data(), &length, sizeof(length));
    return file + header + data;
}

/// Writes the tensors as F32, or as BF16 by cutting the lower half of each number off.
inline std::string safetensorsOf(const TinyTensors& tensors, bool asBfloat16 = false)
{
    std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
    std::string data;
    for (const auto& [name, tensor] : tensors) {
        const auto begin = data.size();
        for (const float value : tensor.values) {
            const auto bits = std::bit_cast<std::uint32_t>(value);
            char bytes[4];
            std::memcpy(bytes, &bits, 4);
            data.append(asBfloat16 ? bytes + 2 : bytes, asBfloat16 ? 2 : 4);
        }
        header +=
            ",\"" + name + "\":{\"dtype\":\"" + (asBfloat16 ? "BF16" : "F32") + "\",\"shape\":[";
        for (std::size_t i = 0; i < tensor.shape.size(); ++i)
            header += (i != 0 ? "," : "") + std::to_string(tensor.shape[i]);
        header += "],\"data_offsets\":[" + std::to_string(begin) + "," +
                  std::to_string(data.size()) + "]}";
    }
    return safetensorsFile(header + "}", data);
}

/// Small numbers that look random and are the same everywhere.
class TinyNumbers final {
public:
    explicit TinyNumbers(std::uint64_t seed) : m_state(seed) {}
    float next(float scale)
    {
        m_state = m_state * 6364136223846793005U + 1442695040888963407U;
        return (static_cast<float>(m_state >> 40U) / 8388608.0F - 1.0F) * scale;
    }

private:
    std::uint64_t m_state;
};

struct TinyShape {
    std::string family = "bert"; ///< bert, roberta, distilbert, electra
    std::string activation = "gelu";
    std::uint64_t vocabulary = 50, width = 24, embedding = 24, inner = 40, layers = 2, heads = 3;
    std::uint64_t positions = 70, segments = 2;
    int padToken = 1;
    double epsilon = 1e-6;
};

/// config.json of the shape.
inline std::string tinyConfig(const TinyShape& s)
{
    const auto number = [](std::uint64_t value) { return std::to_string(value); };
    if (s.family == "distilbert")
        return R"({"architectures":["DistilBertForQuestionAnswering"],"model_type":"distilbert",)"
               R"("activation":")" +
               s.activation + R"(","dim":)" + number(s.width) + R"(,"hidden_dim":)" +
               number(s.inner) + R"(,"n_layers":)" + number(s.layers) + R"(,"n_heads":)" +
               number(s.heads) + R"(,"max_position_embeddings":)" + number(s.positions) +
               R"(,"vocab_size":)" + number(s.vocabulary) + R"(,"dropout":0.1})";
    const std::string architecture = s.family == "bert"      ? "Bert"
                                     : s.family == "roberta" ? "Roberta"
                                                             : "Electra";
    return R"({"architectures":[")" + architecture + R"(ForQuestionAnswering"],"model_type":")" +
           s.family + R"(","hidden_act":")" + s.activation + R"(","hidden_size":)" +
           number(s.width) + R"(,"intermediate_size":)" + number(s.inner) +
           R"(,"num_hidden_layers":)" + number(s.layers) + R"(,"num_attention_heads":)" +
           number(s.heads) + R"(,"max_position_embeddings":)" + number(s.positions) +
           R"(,"vocab_size":)" + number(s.vocabulary) + R"(,"type_vocab_size":)" +
           number(s.segments) + R"(,"layer_norm_eps":1e-6,"pad_token_id":)" +
           std::to_string(s.padToken) +
           (s.family == "electra" ? R"(,"embedding_size":)" + number(s.embedding) : "") + "}";
}

/// Random parameters under the names of the family.
inline TinyTensors tinyTensors(const TinyShape& s, std::uint64_t seed = 7)
{
    TinyNumbers numbers(seed);
    TinyTensors tensors;
    const auto put = [&](const std::string& name, std::vector<std::uint64_t> shape, float scale,
                         float base = 0.0F) {
        std::uint64_t count = 1;
        for (const auto extent : shape)
            count *= extent;
        TinyTensor tensor{std::move(shape), {}};
        for (std::uint64_t i = 0; i < count; ++i)
            tensor.values.push_back(base + numbers.next(scale));
        tensors[name] = std::move(tensor);
    };
    const auto linear = [&](const std::string& name, std::uint64_t out, std::uint64_t in) {
        // As wide layers are initialised: otherwise attention saturates and magnifies rounding.
        put(name + ".weight", {out, in}, 2.0F / std::sqrt(static_cast<float>(in)));
        put(name + ".bias", {out}, 0.2F);
    };
    const auto norm = [&](const std::string& name, std::uint64_t width) {
        put(name + ".weight", {width}, 0.3F, 1.0F);
        put(name + ".bias", {width}, 0.2F);
    };
    const bool isDistil = s.family == "distilbert";
    const auto embeddings = s.family + ".embeddings.";
    put(embeddings + "word_embeddings.weight", {s.vocabulary, s.embedding}, 1.0F);
    put(embeddings + "position_embeddings.weight", {s.positions, s.embedding}, 0.5F);
    if (!isDistil)
        put(embeddings + "token_type_embeddings.weight", {s.segments, s.embedding}, 0.5F);
    norm(embeddings + "LayerNorm", s.embedding);
    if (s.embedding != s.width)
        linear(s.family + ".embeddings_project", s.width, s.embedding);
    for (std::uint64_t i = 0; i < s.layers; ++i) {
        const auto layer =
            s.family + (isDistil ? ".transformer.layer." : ".encoder.layer.") + std::to_string(i);
        const std::vector<std::string> names =
            isDistil ? std::vector<std::string>{".attention.q_lin", ".attention.k_lin",
                                                ".attention.v_lin", ".attention.out_lin",
                                                ".sa_layer_norm",   ".ffn.lin1",
                                                ".ffn.lin2",        ".output_layer_norm"}
                     : std::vector<std::string>{".attention.self.query",
                                                ".attention.self.key",
                                                ".attention.self.value",
                                                ".attention.output.dense",
                                                ".attention.output.LayerNorm",
                                                ".intermediate.dense",
                                                ".output.dense",
                                                ".output.LayerNorm"};
        for (std::size_t k = 0; k < 4; ++k)
            linear(layer + names[k], s.width, s.width);
        norm(layer + names[4], s.width);
        linear(layer + names[5], s.inner, s.width);
        linear(layer + names[6], s.width, s.inner);
        norm(layer + names[7], s.width);
    }
    linear("qa_outputs", 2, s.width);
    return tensors;
}

inline void writeTinyModel(const std::filesystem::path& directory, const TinyShape& shape,
                           const TinyTensors& tensors, bool asBfloat16 = false)
{
    writeText(directory / "config.json", tinyConfig(shape));
    writeText(directory / "model.safetensors", safetensorsOf(tensors, asBfloat16));
}

inline std::filesystem::path pathOf(const QTemporaryDir& directory)
{
    return directory.path().toStdString();
}

} // namespace muster::test
