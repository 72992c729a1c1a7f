// SPDX-License-Identifier: Apache-2.0
#include "eval/rounds.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "comm/communicator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace muster::eval {

namespace {

constexpr std::uint32_t magic = 0x444E524DU; // "MRND"
constexpr std::uint64_t noIndex = std::numeric_limits<std::uint64_t>::max();

enum ContributionFlag : std::uint32_t { doneFlag = 1U << 0U };
enum BlockFlag : std::uint32_t { padBlock = 1U << 0U };

wire::OutputBlock makePad()
{
    wire::OutputBlock block;
    block.unit = UnitId(noIndex);
    block.rank = noRank;
    block.outputs.push_back(
        {.item = ItemIndex(noIndex), .hash = {}, .flags = wire::padFlag, .payload = {}});
    return block;
}

tl::unexpected<Error> malformed(const std::string& why)
{
    return fail(Error::Kind::Integrity, "E-EVAL-003",
                "a contribution to a collective round is not well formed: " + why);
}

} // namespace

std::vector<std::byte> encodeContribution(const Contribution& contribution)
{
    ByteWriter body;
    std::uint64_t rows = 0;
    const auto add = [&body, &rows](const wire::OutputBlock& block, std::uint32_t flags) {
        const std::vector<std::byte> bytes = encodeBlock(block);
        body.put(static_cast<std::uint32_t>(bytes.size()));
        body.put(crc32c(bytes));
        body.put(flags);
        body.putBytes(bytes);
        rows += block.outputs.size();
    };
    for (const wire::OutputBlock& block : contribution.blocks)
        add(block, 0);
    if (contribution.blocks.empty())
        add(makePad(), padBlock);

    ByteWriter out;
    out.reserve(40 + body.size());
    out.put(magic);
    out.put(contribution.isDone ? std::uint32_t{doneFlag} : 0U);
    out.put(contribution.round);
    out.put(rows);
    out.put(static_cast<std::uint64_t>(body.size()));
    out.put(static_cast<std::uint32_t>(std::max<std::size_t>(contribution.blocks.size(), 1)));
    out.putBytes(body.bytes());
    return out.take();
}

Result<Contribution> decodeContribution(std::span<const std::byte> bytes)
{
    ByteReader in(bytes);
    Contribution contribution;
    if (in.get<std::uint32_t>() != magic)
        return malformed("it has no head");
    contribution.isDone = (in.get<std::uint32_t>() & doneFlag) != 0;
    contribution.round = in.get<std::uint64_t>();
    const auto rows = in.get<std::uint64_t>();
    const auto size = in.get<std::uint64_t>();
    const auto blocks = in.get<std::uint32_t>();
    if (in.failed() || size != in.remaining())
        return malformed("its size is not the one that it states");
    std::uint64_t seen = 0;
    for (std::uint32_t i = 0; i < blocks; ++i) {
        const auto blockSize = in.get<std::uint32_t>();
        const auto crc = in.get<std::uint32_t>();
        const auto flags = in.get<std::uint32_t>();
        const auto part = in.take(blockSize);
        if (in.failed())
            return malformed("block " + std::to_string(i) + " is cut off");
        if (crc32c(part) != crc)
            return fail(Error::Kind::Integrity, "E-EVAL-004",
                        "the checksum of block " + std::to_string(i) +
                            " in a collective round is wrong");
        auto block = wire::decodeBlock(part);
        if (!block)
            return malformed(block.error().message);
        seen += block->outputs.size();
        if ((flags & padBlock) != 0)
            continue;
        contribution.blocks.push_back(*std::move(block));
    }
    if (!in.finished())
        return malformed("bytes follow after its last block");
    if (seen != rows)
        return fail(Error::Kind::Integrity, "E-EVAL-005",
                    "a contribution to a collective round states " + std::to_string(rows) +
                        " rows and has " + std::to_string(seen));
    return contribution;
}

RoundSink::RoundSink(comm::Communicator& comm, OutputSink& relay, Progress& progress,
                     RoundOptions options)
    : m_comm(comm), m_relay(relay), m_progress(progress), m_options(options),
      m_lastNs(monotonicNs())
{
}

Status RoundSink::deliver(wire::OutputBlock block)
{
    m_waiting.push_back(std::move(block));
    return {};
}

std::chrono::milliseconds RoundSink::patience() const
{
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::nanoseconds(monotonicNs() - m_lastNs));
    return std::max(m_options.period - passed, std::chrono::milliseconds(1));
}

Result<bool> RoundSink::turn(Supply supply)
{
    if (m_isOver)
        return m_comm.rank() == 0 ? m_relay.turn(supply) : Result<bool>(true);
    const bool isDue =
        monotonicNs() - m_lastNs >= std::chrono::nanoseconds(m_options.period).count();
    const bool isFull = m_waiting.size() >= m_options.units;
    const bool isWaitedFor = supply == Supply::Idle && !m_waiting.empty();
    if (!isDue && !isFull && !isWaitedFor && supply != Supply::Drained)
        return false;
    return exchange(supply == Supply::Drained);
}

Status RoundSink::relay(const std::vector<std::vector<std::byte>>& all)
{
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        auto part = decodeContribution(all[rank]);
        if (!part)
            return fail(part.error().during("rank " + std::to_string(rank)));
        if (part->round != m_round)
            return malformed("rank " + std::to_string(rank) + " is in round " +
                             std::to_string(part->round) + ", not " + std::to_string(m_round));
        for (wire::OutputBlock& block : part->blocks) {
            if (Status given = m_relay.deliver(std::move(block)); !given)
                return given;
        }
    }
    const auto sent = m_relay.turn(Supply::Idle);
    if (!sent)
        return fail(sent.error());
    return {};
}

Result<bool> RoundSink::exchange(bool isDrained)
{
    Contribution mine;
    mine.round = m_round;
    const std::size_t count = std::min<std::size_t>(m_waiting.size(), m_options.units);
    mine.isDone = isDrained && count == m_waiting.size();
    const auto end = m_waiting.begin() + static_cast<std::ptrdiff_t>(count);
    mine.blocks.assign(std::make_move_iterator(m_waiting.begin()), std::make_move_iterator(end));
    m_waiting.erase(m_waiting.begin(), end);

    // Time of the calls is split as the communicator measured it; what is left of it (encoding,
    // checking, passing on) is Other.
    m_progress.enter(wire::RankPhase::Gathering, TimeKind::Other);
    const comm::CommTimes before = m_comm.times();
    auto all = m_comm.gather(encodeContribution(mine));
    Status passed;
    if (!all)
        passed = fail(all.error());
    else if (m_comm.rank() == 0)
        passed = relay(*all);

    std::array<std::int64_t, 2> votes{mine.isDone ? 1 : 0, passed ? 0 : 1};
    Status agreed;
    if (all)
        agreed = m_comm.allReduceSum(std::span<std::int64_t>{votes});
    const comm::CommTimes& after = m_comm.times();
    m_progress.move(TimeKind::Other, TimeKind::Wait, after.waitNs - before.waitNs);
    m_progress.move(TimeKind::Other, TimeKind::Transfer, after.transferNs - before.transferNs);
    m_progress.enter(wire::RankPhase::Waiting, TimeKind::Other);
    ++m_round;
    m_lastNs = monotonicNs();

    if (!passed)
        return fail(passed.error());
    if (!agreed)
        return fail(agreed.error());
    if (votes[1] != 0)
        return fail(Error::Kind::Integrity, "E-EVAL-006",
                    "another rank refused what was gathered in round " +
                        std::to_string(m_round - 1));
    m_isOver = votes[0] == static_cast<std::int64_t>(m_comm.size());
    if (m_isOver && m_comm.rank() == 0)
        return m_relay.turn(Supply::Drained);
    return m_isOver;
}

Result<wire::Sums> reduceSums(comm::Communicator& comm, const wire::Sums& own)
{
    std::array<std::int64_t, 6> counts{own.units,      own.items,     own.errors,
                                       own.realTokens, own.padTokens, own.scoredTokens};
    std::array<double, 1> losses{own.lossSum};
    if (Status summed = comm.allReduceSum(std::span<std::int64_t>{counts}); !summed)
        return fail(summed.error());
    if (Status summed = comm.allReduceSum(std::span<double>{losses}); !summed)
        return fail(summed.error());
    return wire::Sums{.units = counts[0],
                      .items = counts[1],
                      .errors = counts[2],
                      .realTokens = counts[3],
                      .padTokens = counts[4],
                      .scoredTokens = counts[5],
                      .lossSum = losses[0]};
}

} // namespace muster::eval
