// SPDX-License-Identifier: Apache-2.0
#include "eval/inject.h"

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

namespace muster::eval {

namespace {

using Fault = Inject::Fault;

constexpr std::array<std::pair<std::string_view, Fault>, 15> names{{
    {"drop", Fault::Drop},
    {"duplicate", Fault::Duplicate},
    {"swap", Fault::Swap},
    {"off-by-one", Fault::OffByOne},
    {"foreign", Fault::Foreign},
    {"wrong-hash", Fault::WrongHash},
    {"wrong-owner", Fault::WrongOwner},
    {"conflict", Fault::Conflict},
    {"pad-scored", Fault::PadScored},
    {"truncated-frame", Fault::TruncatedFrame},
    {"flipped-bit", Fault::FlippedBit},
    {"rank-loss", Fault::RankLoss},
    {"crash-unit", Fault::CrashUnit},
    {"hang-unit", Fault::HangUnit},
    {"slow", Fault::Slow},
}};

constexpr std::uint64_t victim = 0;
constexpr std::uint64_t swapVictims = 16;
constexpr std::uint64_t farAway = std::uint64_t{1} << 40U;
constexpr std::uint64_t slowMs = 50;

void damage(std::vector<std::byte>& payload)
{
    if (payload.empty())
        payload.push_back(std::byte{1});
    else
        payload[0] ^= std::byte{1};
}

} // namespace

Result<Inject> Inject::parse(std::string_view text, RankId rank, std::uint32_t world,
                             std::uint32_t generation)
{
    Inject inject;
    inject.m_rank = rank;
    inject.m_world = world;
    inject.m_generation = generation;
    if (text.empty())
        return inject;
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    for (const auto& [known, fault] : names) {
        if (known == name)
            inject.m_fault = fault;
    }
    const bool needsValue = inject.m_fault == Fault::CrashUnit || inject.m_fault == Fault::HangUnit;
    const bool mayHaveValue = needsValue || inject.m_fault == Fault::Slow;
    bool isGood = inject.m_fault != Fault::None;
    if (colon != std::string_view::npos) {
        const std::string_view value = text.substr(colon + 1);
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), inject.m_value);
        isGood =
            isGood && mayHaveValue && error == std::errc() && end == value.data() + value.size();
    } else {
        isGood = isGood && !needsValue;
        inject.m_value = slowMs;
    }
    if (!isGood)
        return fail(Error::Kind::Invalid, "E-EVAL-001",
                    "unknown fault \"" + std::string(text) + "\" to inject");
    return inject;
}

void Inject::beforeCompute(const wire::Unit& unit, std::uint64_t sequence) const
{
    const std::uint32_t lost = m_world > 1 ? 1 : 0;
    switch (m_fault) {
    case Fault::RankLoss:
        if (m_rank.value == lost && m_generation == 0 && sequence == 1)
            ::kill(::getpid(), SIGKILL);
        break;
    case Fault::CrashUnit:
        if (unit.id.value == m_value) {
            std::signal(SIGSEGV, SIG_DFL);
            ::raise(SIGSEGV);
        }
        break;
    case Fault::HangUnit:
        while (unit.id.value == m_value)
            std::this_thread::sleep_for(std::chrono::seconds(1));
        break;
    case Fault::Slow:
        std::this_thread::sleep_for(std::chrono::milliseconds(m_value));
        break;
    default:
        break;
    }
}

std::vector<wire::OutputBlock> Inject::tamper(wire::OutputBlock block)
{
    std::vector<wire::OutputBlock> blocks;
    const std::optional<wire::Output> earlier = m_earlier;
    if (m_fault == Fault::PadScored && !block.outputs.empty())
        m_earlier = block.outputs.back();
    blocks.push_back(std::move(block));
    wire::OutputBlock& first = blocks.front();
    auto& outputs = first.outputs;
    if (outputs.empty())
        return blocks;

    if (m_fault == Fault::OffByOne) {
        for (wire::Output& output : outputs)
            ++output.item;
        return blocks;
    }
    if (m_fault == Fault::Swap && first.unit.value < swapVictims && outputs.size() > 1) {
        std::swap(outputs.front().item, outputs.back().item);
        return blocks;
    }
    if (first.unit.value != victim)
        return blocks;

    switch (m_fault) {
    case Fault::Drop:
        outputs.pop_back();
        break;
    case Fault::Duplicate:
        outputs.push_back(wire::Output(outputs.front()));
        break;
    case Fault::Foreign:
        outputs.back().item.value += farAway;
        break;
    case Fault::WrongHash:
        outputs.front().hash.low ^= 1U;
        break;
    case Fault::WrongOwner:
        first.rank = RankId(m_world > 1 ? (first.rank.value + 1) % m_world : first.rank.value + 1);
        break;
    case Fault::Conflict: {
        wire::OutputBlock second = first;
        damage(second.outputs.front().payload);
        blocks.push_back(std::move(second));
        break;
    }
    case Fault::PadScored:
        outputs.push_back(earlier ? *earlier : wire::Output(outputs.front()));
        outputs.back().flags &= ~std::uint32_t{wire::padFlag};
        break;
    default:
        break;
    }
    return blocks;
}

Inject::Fault Inject::frameFault(UnitId unit) const
{
    const bool isOfFrames = m_fault == Fault::TruncatedFrame || m_fault == Fault::FlippedBit;
    return isOfFrames && unit.value == victim ? m_fault : Fault::None;
}

} // namespace muster::eval
