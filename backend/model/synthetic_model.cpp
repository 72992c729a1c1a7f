// SPDX-License-Identifier: Apache-2.0
#include "model/qa_model_p.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::model {
namespace {

constexpr std::size_t tableRows = 256;
constexpr std::uint32_t tableDepth = 20;

/// Sixteen well-mixed bits of a counter (the finaliser of SplitMix64, Steele et al. 2014).
std::uint64_t mixed(std::uint64_t x)
{
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
}

class SyntheticModel final : public Model {
public:
    SyntheticModel(std::uint32_t nBest, Ties ties)
    {
        const auto count = std::min(nBest, tableDepth);
        for (std::size_t row = 0; row < tableRows; ++row) {
            for (std::size_t tokens = 1; tokens <= tableDepth; ++tokens) {
                std::vector<float> logits(2 * tokens);
                for (std::size_t i = 0; i < logits.size(); ++i)
                    logits[i] = static_cast<float>(mixed(row * 64 + i) % 4096) / 256.0F - 8.0F;
                m_table[row].at(tokens - 1) = wire::encodeQa(largestLogits(logits, count, ties));
            }
        }
        m_identity.architecture = "synthetic";
        m_identity.digest = Hasher().add("synthetic 1").add(std::uint64_t{count}).result();
        m_identity.kernels = "look-up table";
        m_identity.maxPositions = 0xFFFF;
        m_identity.vocabulary = 0x7FFFFFFF;
    }

    Result<std::vector<wire::Output>> compute(const wire::Unit& unit) override
    {
        if (!unit.valid())
            return fail(Error::Kind::Internal, "E-MODEL-091", "the unit is malformed");
        std::vector<wire::Output> outputs(unit.size());
        for (std::size_t place = 0; place < unit.size(); ++place) {
            auto& output = outputs[place];
            const std::size_t tokens = unit.offsets[place + 1] - unit.offsets[place];
            output.item = ItemIndex(unit.items[place]);
            output.hash = wire::itemHash(unit, place);
            if (tokens == 0) {
                output.flags |= wire::errorFlag;
                continue;
            }
            if (unit.kind == wire::UnitKind::Lm) {
                output.payload = lossesOf(output.hash, tokens - unit.scoredFrom[place]);
                continue;
            }
            const auto depth = std::min<std::size_t>(tokens, tableDepth);
            output.payload = m_table[output.hash.low % tableRows].at(depth - 1);
        }
        return outputs;
    }
    const ModelIdentity& identity() const override { return m_identity; }

private:
    /// A loss of 1 to 5 nats for each target, with exact sums: multiples of 1/1024.
    static std::vector<std::byte> lossesOf(const Hash128& hash, std::size_t targets)
    {
        wire::LmOutput output;
        output.scored = static_cast<std::uint32_t>(targets);
        output.lossSum = static_cast<double>(targets) +
                         static_cast<double>(hash.low % (targets * 4096 + 1)) / 1024.0;
        output.greedyHits = static_cast<std::uint32_t>(hash.high % (targets + 1));
        return wire::encodeLm(output);
    }

    std::array<std::array<std::vector<std::byte>, tableDepth>, tableRows> m_table;
    ModelIdentity m_identity;
};

} // namespace

std::unique_ptr<Model> makeSyntheticModel(const ModelOptions& options)
{
    return std::make_unique<SyntheticModel>(options.nBest, options.ties);
}

} // namespace muster::model
