// SPDX-License-Identifier: Apache-2.0
#include "model/lm_model_p.h"

#include "model/shared_image_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <thread>
#include <utility>

namespace muster::model {
namespace {

/// Fed tokens that go through the layers together: enough rows for the products, and memory that
/// does not grow with the unit.
constexpr std::size_t tokensOfPass = 2048;

std::uint32_t scoredFrom(const wire::Unit& unit, std::size_t place)
{
    return unit.scoredFrom.empty() ? 1U : unit.scoredFrom[place];
}

std::span<const std::int32_t> tokensOf(const wire::Unit& unit, std::size_t place)
{
    return std::span(unit.tokens)
        .subspan(unit.offsets[place], unit.offsets[place + 1] - unit.offsets[place]);
}

std::vector<std::byte> bytesOf(std::string_view text)
{
    std::vector<std::byte> bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return bytes;
}

} // namespace

LmModel::LmModel(const DecoderShape& shape, ModelIdentity identity,
                 std::vector<std::unique_ptr<Decoder>> decoders, bool tokenLosses)
    : m_shape(shape), m_identity(std::move(identity)), m_decoders(std::move(decoders)),
      m_tokenLosses(tokenLosses)
{
}

std::optional<std::string> LmModel::problem(const wire::Unit& unit, std::size_t place) const
{
    const auto tokens = tokensOf(unit, place);
    if (tokens.empty())
        return "the item has no tokens";
    if (scoredFrom(unit, place) == 0)
        return "the first token of an item has nothing before it and cannot be scored";
    if (tokens.size() - 1 > m_shape.positions)
        return fmt::format("{} tokens of the item are fed to the model, which has {} positions",
                           tokens.size() - 1, m_shape.positions);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        if (tokens[t] < 0 || std::cmp_greater_equal(tokens[t], m_shape.vocabulary))
            return fmt::format("token {} of the item is {} and the vocabulary has {}", t, tokens[t],
                               m_shape.vocabulary);
    }
    return std::nullopt;
}

/// Deals whole items to the decoders, about the same number of tokens to each, and runs them in
/// passes.
Status LmModel::run(std::span<const ScoredTokens> items, std::vector<TokenLoss>& losses)
{
    const auto passes = [](Decoder& decoder, std::span<const ScoredTokens> part,
                           std::vector<TokenLoss>& to) -> Status {
        while (!part.empty()) {
            std::size_t count = 0;
            std::size_t tokens = 0;
            while (count < part.size() &&
                   (count == 0 || tokens + part[count].tokens.size() <= tokensOfPass))
                tokens += part[count++].tokens.size();
            if (auto status = decoder.run(part.first(count), to); !status)
                return status;
            part = part.subspan(count);
        }
        return {};
    };
    const auto threads = std::min(m_decoders.size(), items.size());
    if (threads <= 1)
        return passes(*m_decoders.front(), items, losses);
    std::size_t total = 0;
    for (const auto& item : items)
        total += item.tokens.size();
    std::vector<Status> states(threads);
    std::vector<std::vector<TokenLoss>> parts(threads);
    std::vector<std::thread> workers;
    std::size_t begin = 0;
    std::size_t dealt = 0;
    for (std::size_t i = 0; i < threads; ++i) {
        auto end = begin;
        const auto goal = total * (i + 1) / threads;
        while (end < items.size() &&
               (i + 1 == threads || end == begin || dealt + items[end].tokens.size() <= goal))
            dealt += items[end++].tokens.size();
        const auto work = [&, i, part = items.subspan(begin, end - begin)] {
            states[i] = passes(*m_decoders[i], part, parts[i]);
        };
        if (i + 1 == threads)
            work();
        else
            workers.emplace_back(work);
        begin = end;
    }
    for (auto& worker : workers)
        worker.join();
    for (std::size_t i = 0; i < threads; ++i) {
        if (!states[i])
            return std::move(states[i]);
        losses.insert(losses.end(), parts[i].begin(), parts[i].end());
    }
    return {};
}

Result<std::vector<wire::Output>> LmModel::compute(const wire::Unit& unit)
{
    if (!unit.valid() || unit.kind != wire::UnitKind::Lm)
        return fail(Error::Kind::Internal, "E-MODEL-091",
                    "the unit is malformed or not of a language model");
    std::vector<wire::Output> outputs(unit.size());
    std::vector<ScoredTokens> items;
    for (std::size_t place = 0; place < unit.size(); ++place) {
        auto& output = outputs[place];
        output.item = ItemIndex(unit.items[place]);
        output.hash = wire::itemHash(unit, place);
        if (const auto text = problem(unit, place)) {
            output.flags |= wire::errorFlag;
            output.payload = bytesOf(*text);
        } else if (const ScoredTokens item{tokensOf(unit, place), scoredFrom(unit, place)};
                   item.scoredFrom < item.tokens.size()) {
            items.push_back(item);
        }
    }
    std::vector<TokenLoss> losses;
    if (!items.empty()) {
        if (auto status = run(items, losses); !status)
            return fail(std::move(status).error());
    }
    std::size_t next = 0;
    for (std::size_t place = 0; place < unit.size(); ++place) {
        auto& output = outputs[place];
        if ((output.flags & wire::errorFlag) != 0)
            continue;
        wire::LmOutput result;
        std::optional<std::string> text;
        for (std::size_t p = scoredFrom(unit, place); p < tokensOf(unit, place).size(); ++p) {
            const auto& token = losses[next++];
            if (!std::isfinite(token.loss) && !text)
                text = fmt::format("the loss at position {} of the item is not finite", p);
            result.lossSum += static_cast<double>(token.loss);
            ++result.scored;
            result.greedyHits += token.isGreedy ? 1U : 0U;
            if (m_tokenLosses)
                result.losses.push_back(token.loss);
        }
        if (text) {
            output.flags |= wire::errorFlag;
            output.payload = bytesOf(*text);
        } else {
            output.payload = wire::encodeLm(result);
        }
    }
    return outputs;
}

Result<std::unique_ptr<LmModel>> loadLmModel(const ModelOptions& options, Engine engine)
{
    try {
        if (options.precision == Precision::Float16)
            return fail(Error::Kind::Invalid, "E-MODEL-025",
                        "float16 is computed on devices only; use float32 or bfloat16 on the CPU");
        if (options.threads == 0 || options.threads > 1024)
            return fail(Error::Kind::Invalid, "E-MODEL-026", "threads must be 1 to 1024");
        constexpr std::array<std::uint32_t, 4> groups{32, 64, 128, 256};
        if (options.precision == Precision::Int4 &&
            std::find(groups.begin(), groups.end(), options.groupSize) == groups.end())
            return fail(Error::Kind::Invalid, "E-MODEL-027",
                        fmt::format("int4 weights have groups of 32, 64, 128 or 256 inputs, not {}",
                                    options.groupSize));
        const auto plan = readDecoderPlan(options.path);
        if (!plan)
            return fail(plan.error());
        const auto checkpoint = Checkpoint::open(options.path);
        if (!checkpoint)
            return fail(checkpoint.error());
        const auto tensors = matchDecoder(*plan, *checkpoint);
        if (!tensors)
            return fail(tensors.error().during("reading " + options.path.string()));
        const auto form = weightForm(options.precision, options.groupSize);
        ModelIdentity identity;
        identity.architecture = plan->architecture;
        identity.digest = Hasher().add(plan->shape.digest()).add(tensors->digest).result();
        const auto& kernels = engine == Engine::Plain ? *plainKernels() : bestKernels();
        const auto layout = layOut(plan->shape, *tensors, kernels, form);
        const auto precision = options.precision == Precision::Int4
                                   ? fmt::format("int4, groups of {}", options.groupSize)
                                   : std::string(nameOf(options.precision));
        // What is in the image depends on these as well as on the weights.
        const auto content =
            Hasher().add(identity.digest).add(kernels.name).add(precision).result();
        const auto image = makeImage(options.shared, content, layout.size, [&](std::byte* to) {
            fillImage(*tensors, kernels, form, layout, to);
        });
        if (!image)
            return fail(image.error());
        std::vector<std::unique_ptr<Decoder>> decoders;
        for (std::uint32_t i = 0; i < options.threads; ++i)
            decoders.push_back(std::make_unique<PanelDecoder>(
                plan->shape, kernels, form.rounding, layout, image->bytes.get(), image->bytes));
        identity.kernels =
            fmt::format("{}, Muster kernels 1, {}, {} thread{}", decoders.front()->kernels(),
                        precision, options.threads, options.threads == 1 ? "" : "s");
        identity.parameters = tensors->parameters;
        identity.weightBytes = layout.size;
        identity.maxPositions = plan->shape.positions;
        identity.vocabulary = plan->shape.vocabulary;
        return std::make_unique<LmModel>(plan->shape, std::move(identity), std::move(decoders),
                                         options.tokenLosses);
    } catch (const std::bad_alloc&) {
        return fail(Error::Kind::Internal, "E-MODEL-092",
                    fmt::format("not enough memory for the weights in {}", options.path.string()));
    } catch (const std::exception& error) {
        return fail(Error::Kind::Internal, "E-MODEL-090",
                    fmt::format("loading {}: {}", options.path.string(), error.what()));
    }
}

} // namespace muster::model
