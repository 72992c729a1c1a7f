// SPDX-License-Identifier: Apache-2.0
#include "model/torch_encoder_p.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/add.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <cstring>
#include <string>
#include <utility>

namespace muster::model {
namespace {

/// One linear layer: oneDNN's own layout where it can be made, else the plain weight.
struct TorchLinear {
    at::Tensor weight;
    at::Tensor bias;
    bool isPacked = false;
};

struct TorchNorm {
    at::Tensor gain;
    at::Tensor shift;
};

struct TorchLayer {
    TorchLinear attentionInput, attentionOutput, up, down;
    TorchNorm attentionNorm, outputNorm;
};

at::Tensor call(const c10::OperatorHandle& op, torch::jit::Stack stack)
{
    op.callBoxed(stack);
    return stack.at(0).toTensor();
}

class TorchEncoder final : public Encoder {
public:
    TorchEncoder(const EncoderShape& shape, const EncoderTensors& tensors, Rounding rounding)
        : m_shape(shape), m_type(rounding == Rounding::Bfloat16 ? at::kBFloat16 : at::kFloat),
          m_pack(find("mkldnn::_reorder_linear_weight")),
          m_pointwise(find("mkldnn::_linear_pointwise"))
    {
        const c10::InferenceMode guard;
        const std::int64_t width = shape.width;
        const std::int64_t embedding = shape.embedding;
        m_words = read(tensors.words, {shape.vocabulary, embedding});
        m_positions = read(tensors.positions, {shape.positions, embedding});
        if (shape.segments != 0)
            m_segments = read(tensors.segments, {shape.segments, embedding});
        m_norm = norm(tensors.embeddingNorm, embedding);
        if (embedding != width)
            m_projection = linear({&tensors.projection}, embedding);
        for (const auto& layer : tensors.layers) {
            m_layers.push_back({linear({&layer.query, &layer.key, &layer.value}, width),
                                linear({&layer.attentionOutput}, width), linear({&layer.up}, width),
                                linear({&layer.down}, shape.inner),
                                norm(layer.attentionNorm, width), norm(layer.outputNorm, width)});
        }
        const std::int64_t outputs = shape.outputs;
        m_head = {read(tensors.head.weight, {outputs, width}), read(tensors.head.bias, {outputs}),
                  false};
        if (shape.isClassifier())
            m_pooler = {read(tensors.pooler.weight, {width, width}),
                        read(tensors.pooler.bias, {width}), false};
    }

    Status run(const PackedTokens& packed, float* logits) override
    {
        try {
            const c10::InferenceMode guard;
            compute(packed, logits);
            return {};
        } catch (const std::exception& error) {
            return fail(Error::Kind::Internal, "E-MODEL-090",
                        std::string("LibTorch failed: ") + error.what());
        }
    }
    std::string kernels() const override
    {
        return m_layers.empty() || m_layers.front().up.isPacked ? "onednn" : "torch";
    }

private:
    static c10::OperatorHandle find(const char* name)
    {
        return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    }

    at::Tensor read(const TensorView& view, at::IntArrayRef shape)
    {
        at::Tensor tensor = at::empty(shape, at::kFloat);
        readFloats(bestKernels(), view, 0,
                   {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())});
        return tensor.to(m_type);
    }
    TorchNorm norm(const LinearTensors& tensors, std::int64_t width)
    {
        return {read(tensors.weight, {width}), read(tensors.bias, {width})};
    }
    /// Layers with the same input, one after the other as one layer.
    TorchLinear linear(std::initializer_list<const LinearTensors*> parts, std::int64_t depth)
    {
        std::int64_t columns = 0;
        for (const auto* part : parts)
            columns += static_cast<std::int64_t>(part->bias.shape[0]);
        TorchLinear layer{at::empty({columns, depth}, m_type), at::empty({columns}, m_type), false};
        std::int64_t first = 0;
        for (const auto* part : parts) {
            const auto count = static_cast<std::int64_t>(part->bias.shape[0]);
            layer.weight.narrow(0, first, count).copy_(read(part->weight, {count, depth}));
            layer.bias.narrow(0, first, count).copy_(read(part->bias, {count}));
            first += count;
        }
        try {
            layer.weight = call(m_pack, {layer.weight, c10::IValue()});
            layer.isPacked = true;
        } catch (const c10::Error&) {
            layer.isPacked = false; // this processor has no oneDNN kernel for the type
        }
        return layer;
    }

    at::Tensor apply(const TorchLinear& layer, const at::Tensor& x, Activation activation)
    {
        if (layer.isPacked) {
            std::string name = "none";
            std::string algorithm;
            if (activation == Activation::GeluErf || activation == Activation::GeluTanh) {
                name = "gelu";
                algorithm = activation == Activation::GeluErf ? "none" : "tanh";
            } else if (activation == Activation::Relu) {
                name = "relu";
            } else if (activation == Activation::Silu) {
                name = "swish";
            }
            return call(m_pointwise, {x, layer.weight, layer.bias, name,
                                      c10::List<std::optional<at::Scalar>>(), algorithm});
        }
        const at::Tensor y = at::linear(x, layer.weight, layer.bias);
        switch (activation) {
        case Activation::None:
            break;
        case Activation::GeluErf:
            return at::gelu(y);
        case Activation::GeluTanh:
            return at::gelu(y, "tanh");
        case Activation::Relu:
            return at::relu(y);
        case Activation::Silu:
            return at::silu(y);
        }
        return y;
    }
    at::Tensor normalised(const TorchNorm& norm, const at::Tensor& x)
    {
        return at::layer_norm(x, {x.size(1)}, norm.gain, norm.shift, m_shape.epsilon);
    }

    void compute(const PackedTokens& packed, float* logits)
    {
        const auto count = static_cast<std::int64_t>(packed.tokens.size());
        const auto places = positionsOf(m_shape, packed.tokens, packed.offsets);
        const auto look = [&](const at::Tensor& table, auto numberOf) {
            at::Tensor index = at::empty({count}, at::kLong);
            auto* to = index.mutable_data_ptr<std::int64_t>();
            for (std::int64_t i = 0; i < count; ++i)
                to[i] = static_cast<std::int64_t>(numberOf(static_cast<std::size_t>(i)));
            return at::embedding(table, index);
        };
        at::Tensor x = look(m_words, [&](std::size_t i) { return packed.tokens[i]; });
        if (m_shape.segments != 0)
            x.add_(look(m_segments, [&](std::size_t i) {
                return packed.segments.empty() ? 0 : packed.segments[i];
            }));
        x.add_(look(m_positions, [&](std::size_t i) { return places[i]; }));
        x = normalised(m_norm, x);
        if (m_projection.weight.defined())
            x = apply(m_projection, x, Activation::None);
        for (const auto& layer : m_layers) {
            const auto mixed = attend(apply(layer.attentionInput, x, Activation::None), packed);
            x = normalised(layer.attentionNorm,
                           apply(layer.attentionOutput, mixed, Activation::None).add_(x));
            const auto inner = apply(layer.up, x, m_shape.activation);
            x = normalised(layer.outputNorm, apply(layer.down, inner, Activation::None).add_(x));
        }
        if (m_shape.isClassifier()) {
            const auto items = static_cast<std::int64_t>(packed.offsets.size() - 1);
            at::Tensor first = at::empty({items}, at::kLong);
            for (std::int64_t i = 0; i < items; ++i)
                first.mutable_data_ptr<std::int64_t>()[i] =
                    packed.offsets[static_cast<std::size_t>(i)];
            x = at::linear(x.index_select(0, first), m_pooler.weight, m_pooler.bias);
            x = m_shape.head == Head::ReluClasses   ? at::relu(x)
                : m_shape.head == Head::GeluClasses ? at::gelu(x)
                                                    : at::tanh(x);
        }
        const auto result = at::linear(x, m_head.weight, m_head.bias).to(at::kFloat).contiguous();
        std::memcpy(logits, result.const_data_ptr<float>(),
                    static_cast<std::size_t>(result.numel()) * sizeof(float));
    }

    /// qkv [T, 3 · width] → [T, width]; runs of equally long items go together.
    at::Tensor attend(const at::Tensor& qkv, const PackedTokens& packed)
    {
        const std::int64_t width = m_shape.width;
        const std::int64_t heads = m_shape.heads;
        at::Tensor out = at::empty({qkv.size(0), width}, m_type);
        const auto items = packed.offsets.size() - 1;
        for (std::size_t item = 0; item < items;) {
            const std::int64_t length = packed.offsets[item + 1] - packed.offsets[item];
            auto end = item + 1;
            while (end < items && packed.offsets[end + 1] - packed.offsets[end] == length)
                ++end;
            const std::int64_t first = packed.offsets[item];
            const auto batch = static_cast<std::int64_t>(end - item);
            const auto part = qkv.narrow(0, first, batch * length)
                                  .view({batch, length, 3, heads, width / heads})
                                  .permute({2, 0, 3, 1, 4});
            const auto mixed = at::scaled_dot_product_attention(part[0], part[1], part[2]);
            out.narrow(0, first, batch * length)
                .view({batch, length, heads, width / heads})
                .copy_(mixed.transpose(1, 2));
            item = end;
        }
        return out;
    }

    EncoderShape m_shape;
    at::ScalarType m_type;
    c10::OperatorHandle m_pack;
    c10::OperatorHandle m_pointwise;
    at::Tensor m_words, m_positions, m_segments;
    TorchNorm m_norm;
    TorchLinear m_projection;
    std::vector<TorchLayer> m_layers;
    TorchLinear m_pooler;
    TorchLinear m_head;
};

} // namespace

Result<std::unique_ptr<Encoder>> makeTorchEncoder(const EncoderShape& shape,
                                                  const EncoderTensors& tensors, Rounding rounding,
                                                  std::uint32_t threads)
{
    try {
        at::set_num_threads(static_cast<int>(threads));
        return std::make_unique<TorchEncoder>(shape, tensors, rounding);
    } catch (const std::exception& error) {
        return fail(Error::Kind::Internal, "E-MODEL-090",
                    std::string("LibTorch cannot prepare the model: ") + error.what());
    }
}

std::string torchVersion()
{
    return std::string("LibTorch ") + TORCH_VERSION + " " + at::get_cpu_capability();
}

bool prefersTorch()
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

} // namespace muster::model
