// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "model/lm_model_p.h"
#include "model/qa_model_p.h"
#include "model/shared_image_p.h"
#include "model/torch_encoder_p.h"

#include <fmt/format.h>

#include <new>
#include <utility>

namespace muster::model {

const char* nameOf(Precision precision)
{
    switch (precision) {
    case Precision::Float32:
        return "float32";
    case Precision::Bfloat16:
        return "bfloat16";
    case Precision::Float16:
        return "float16";
    case Precision::Int8:
        return "int8";
    case Precision::Int4:
        return "int4";
    case Precision::Int8Dynamic:
        break;
    }
    return "int8-dynamic";
}

namespace {

/// An encoder ready to compute.
struct LoadedEncoder {
    EncoderShape shape;
    ModelIdentity identity;
    std::vector<std::unique_ptr<Encoder>> encoders;
};

Result<LoadedEncoder> loadEncoder(const ModelOptions& options, wire::UnitKind kind, Engine engine)
{
    try {
        if (options.kind != kind)
            return fail(Error::Kind::Invalid, "E-MODEL-024",
                        "the model is asked for as one of another task");
        if (options.precision == Precision::Float16)
            return fail(Error::Kind::Invalid, "E-MODEL-025",
                        "float16 is computed on devices only; use float32 or bfloat16 on the CPU");
        if (options.precision != Precision::Float32 && options.precision != Precision::Bfloat16)
            return fail(Error::Kind::Invalid, "E-MODEL-027",
                        fmt::format("encoders are computed in float32 and bfloat16, not in {}",
                                    nameOf(options.precision)));
        if (options.threads == 0 || options.threads > 1024 || options.nBest == 0)
            return fail(Error::Kind::Invalid, "E-MODEL-026",
                        "threads must be 1 to 1024 and n_best at least 1");
        const auto plan = readEncoderPlan(options.path, kind);
        if (!plan)
            return fail(plan.error());
        const auto checkpoint = Checkpoint::open(options.path);
        if (!checkpoint)
            return fail(checkpoint.error());
        const auto tensors = matchTensors(*plan, *checkpoint);
        if (!tensors)
            return fail(tensors.error().during("reading " + options.path.string()));
        const auto rounding =
            options.precision == Precision::Bfloat16 ? Rounding::Bfloat16 : Rounding::None;
        ModelIdentity identity;
        identity.architecture = plan->architecture;
        identity.digest = Hasher().add(plan->shape.digest()).add(tensors->digest).result();
        std::vector<std::unique_ptr<Encoder>> encoders;
        std::string library = "Muster kernels 1";
        if (engine == Engine::Torch || (engine == Engine::Automatic && prefersTorch())) {
            auto encoder = makeTorchEncoder(plan->shape, *tensors, rounding, options.threads);
            if (!encoder)
                return fail(std::move(encoder).error());
            encoders.push_back(std::move(*encoder));
            library = torchVersion();
        } else {
            const auto& kernels = engine == Engine::Plain ? *plainKernels() : bestKernels();
            const auto layout = layOut(plan->shape, kernels, tensors->words.type);
            // What is in the image depends on these as well as on the weights.
            const auto content = Hasher()
                                     .add(identity.digest)
                                     .add(kernels.name)
                                     .add(nameOf(options.precision))
                                     .result();
            const auto image = makeImage(options.shared, content, layout.size, [&](std::byte* to) {
                fillImage(plan->shape, kernels, rounding, *tensors, layout, to);
            });
            if (!image)
                return fail(image.error());
            for (std::uint32_t i = 0; i < options.threads; ++i)
                encoders.push_back(std::make_unique<PanelEncoder>(
                    plan->shape, kernels, rounding, layout, image->bytes.get(), image->bytes));
        }
        identity.kernels = fmt::format("{}, {}, {}, {} thread{}", encoders.front()->kernels(),
                                       library, nameOf(options.precision), options.threads,
                                       options.threads == 1 ? "" : "s");
        identity.parameters = tensors->parameters;
        identity.weightBytes = tensors->bytes;
        identity.maxPositions = plan->shape.maxTokens();
        identity.vocabulary = plan->shape.vocabulary;
        return LoadedEncoder{plan->shape, std::move(identity), std::move(encoders)};
    } catch (const std::bad_alloc&) {
        return fail(Error::Kind::Internal, "E-MODEL-092",
                    fmt::format("not enough memory for the weights in {}", options.path.string()));
    } catch (const std::exception& error) {
        return fail(Error::Kind::Internal, "E-MODEL-090",
                    fmt::format("loading {}: {}", options.path.string(), error.what()));
    }
}

} // namespace

Result<std::unique_ptr<QaModel>> loadQaModel(const ModelOptions& options, Engine engine)
{
    auto loaded = loadEncoder(options, wire::UnitKind::Qa, engine);
    if (!loaded)
        return fail(std::move(loaded).error());
    return std::make_unique<QaModel>(loaded->shape, std::move(loaded->identity),
                                     std::move(loaded->encoders), options.nBest, options.ties);
}

Result<std::unique_ptr<ClassModel>> loadClassModel(const ModelOptions& options, Engine engine)
{
    auto loaded = loadEncoder(options, wire::UnitKind::Classification, engine);
    if (!loaded)
        return fail(std::move(loaded).error());
    return std::make_unique<ClassModel>(loaded->shape, std::move(loaded->identity),
                                        std::move(loaded->encoders));
}

Result<std::unique_ptr<Model>> loadModel(const ModelOptions& options)
{
    if (options.path == "synthetic")
        return makeSyntheticModel(options);
    if (options.kind == wire::UnitKind::Lm) {
        auto model = loadLmModel(options, Engine::Automatic);
        if (!model)
            return fail(std::move(model).error());
        return std::unique_ptr<Model>(std::move(*model));
    }
    if (options.kind == wire::UnitKind::Classification) {
        auto model = loadClassModel(options, Engine::Automatic);
        if (!model)
            return fail(std::move(model).error());
        return std::unique_ptr<Model>(std::move(*model));
    }
    auto model = loadQaModel(options, Engine::Automatic);
    if (!model)
        return fail(std::move(model).error());
    return std::unique_ptr<Model>(std::move(*model));
}

} // namespace muster::model
