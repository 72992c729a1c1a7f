// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "comm/collective_p.h"
#include "comm/communicator.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace muster::comm {

namespace {

/// What one rank lays open in a call. Only its owner writes it, before it enters a meeting.
struct Slot {
    Collective collective = Collective::Barrier;
    std::uint64_t count = 0; ///< values of a sum; 0 elsewhere
    const void* data = nullptr;
    std::size_t size = 0; ///< bytes, or values of a sum
    bool isHere = false;
};

/// The meeting point of the threads.
class Meeting final {
public:
    explicit Meeting(std::uint32_t size) : m_slots(size) {}

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(m_slots.size()); }

    /// Enters a call: lays the slot open and waits for all. Afterwards the slots of all ranks may
    /// be read until the next meeting.
    [[nodiscard]] Status enter(std::uint32_t rank, const Slot& slot, std::uint64_t call,
                               std::chrono::milliseconds limit)
    {
        std::unique_lock lock(m_mutex);
        if (m_broken)
            return fail(brokenError(*m_broken));
        m_slots[rank] = slot;
        return meet(lock, rank, call, "waiting for its partners", limit);
    }

    /// Leaves a call: until all are here nobody takes its data away.
    [[nodiscard]] Status leave(std::uint32_t rank, std::uint64_t call,
                               std::chrono::milliseconds limit)
    {
        std::unique_lock lock(m_mutex);
        if (m_broken)
            return fail(brokenError(*m_broken));
        return meet(lock, rank, call, "moving bytes", limit);
    }

    [[nodiscard]] const Slot& slot(std::uint32_t rank) const { return m_slots[rank]; }

private:
    Status meet(std::unique_lock<std::mutex>& lock, std::uint32_t rank, std::uint64_t call,
                const char* step, std::chrono::milliseconds limit)
    {
        Slot& mine = m_slots[rank];
        mine.isHere = true;
        const std::uint64_t generation = m_generation;
        if (++m_here == m_slots.size()) {
            const auto differs = [&](const Slot& slot) {
                return slot.collective != mine.collective || slot.count != mine.count;
            };
            m_isMismatch = std::any_of(m_slots.begin(), m_slots.end(), differs);
            for (Slot& slot : m_slots)
                slot.isHere = false;
            m_here = 0;
            ++m_generation;
            m_changed.notify_all();
        } else {
            const auto isOver = [&] { return m_generation != generation || m_broken.has_value(); };
            if (limit.count() == 0)
                m_changed.wait(lock, isOver);
            else if (!m_changed.wait_for(lock, limit, isOver))
                return fail(giveUp(mine.collective, call, step, limit));
            if (m_generation == generation)
                return fail(brokenError(*m_broken));
        }
        if (m_isMismatch)
            return fail(mismatchError(mine.collective, call));
        return {};
    }

    Error giveUp(Collective collective, std::uint64_t call, const char* step,
                 std::chrono::milliseconds limit)
    {
        std::string absent;
        for (std::size_t rank = 0; rank < m_slots.size(); ++rank) {
            if (!m_slots[rank].isHere)
                absent += fmt::format("{}{}", absent.empty() ? "" : ", ", rank);
        }
        Error error = timeLimitError(collective, call, step, limit, "; not there: rank " + absent);
        m_broken = error.message;
        m_changed.notify_all();
        return error;
    }

    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::vector<Slot> m_slots;
    std::size_t m_here = 0;
    std::uint64_t m_generation = 0;
    bool m_isMismatch = false;
    std::optional<std::string> m_broken;
};

class ThreadCommunicator final : public Communicator {
public:
    ThreadCommunicator(std::shared_ptr<Meeting> meeting, std::uint32_t rank,
                       const CommOptions& options)
        : m_meeting(std::move(meeting)), m_rank(rank), m_limit(options.timeLimit)
    {
    }

    [[nodiscard]] std::uint32_t rank() const override { return m_rank; }
    [[nodiscard]] std::uint32_t size() const override { return m_meeting->size(); }
    [[nodiscard]] std::uint32_t localRank() const override { return m_rank; }
    [[nodiscard]] std::uint32_t localSize() const override { return m_meeting->size(); }
    [[nodiscard]] std::string library() const override { return "threads"; }
    void setTimeLimit(std::chrono::milliseconds limit) override { m_limit = limit; }
    [[nodiscard]] const CommTimes& times() const override { return m_times; }

    Status barrier() override
    {
        return call(Slot{Collective::Barrier}, [] {});
    }

    Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override
    {
        std::vector<std::vector<std::byte>> all;
        auto done = call(Slot{Collective::Gather, 0, mine.data(), mine.size()}, [&] {
            if (m_rank != 0) {
                m_times.bytes += mine.size();
                return;
            }
            for (std::uint32_t r = 0; r < size(); ++r) {
                const Slot& slot = m_meeting->slot(r);
                const auto* from = static_cast<const std::byte*>(slot.data);
                all.emplace_back(from, from + slot.size);
                m_times.bytes += r == 0 ? 0 : slot.size;
            }
        });
        if (!done)
            return fail(std::move(done).error());
        return all;
    }

    Status allReduceSum(std::span<double> values) override
    {
        return sum(values, Collective::SumDouble);
    }
    Status allReduceSum(std::span<std::int64_t> values) override
    {
        return sum(values, Collective::SumInteger);
    }

    Status broadcast(std::vector<std::byte>& bytes) override
    {
        return call(Slot{Collective::Broadcast, 0, bytes.data(), bytes.size()}, [&] {
            const Slot& root = m_meeting->slot(0);
            m_times.bytes += root.size;
            if (m_rank != 0) {
                const auto* from = static_cast<const std::byte*>(root.data);
                m_taken.assign(from, from + root.size);
                bytes.swap(m_taken);
            }
        });
    }

private:
    template <typename Move>
    Status call(const Slot& slot, Move move)
    {
        ++m_times.calls;
        const std::int64_t start = monotonicNs();
        auto entered = m_meeting->enter(m_rank, slot, m_times.calls, m_limit);
        const std::int64_t here = monotonicNs();
        m_times.waitNs += here - start;
        if (!entered)
            return entered;
        move();
        auto left = m_meeting->leave(m_rank, m_times.calls, m_limit);
        m_times.transferNs += monotonicNs() - here;
        return left;
    }

    template <typename T>
    Status sum(std::span<T> values, Collective collective)
    {
        std::vector<T> total;
        auto done = call(Slot{collective, values.size(), values.data(), values.size()}, [&] {
            for (std::uint32_t r = 0; r < size(); ++r) {
                const std::span<const T> part(static_cast<const T*>(m_meeting->slot(r).data),
                                              values.size());
                if (r == 0)
                    total.assign(part.begin(), part.end());
                else
                    std::transform(total.begin(), total.end(), part.begin(), total.begin(),
                                   [](T a, T b) { return added(a, b); });
            }
            m_times.bytes += 2 * values.size_bytes();
        });
        if (!done)
            return done;
        std::copy(total.begin(), total.end(), values.begin());
        return {};
    }

    std::shared_ptr<Meeting> m_meeting;
    std::uint32_t m_rank;
    std::chrono::milliseconds m_limit;
    CommTimes m_times;
    std::vector<std::byte> m_taken;
};

} // namespace

std::vector<std::unique_ptr<Communicator>> makeThreadCommunicators(std::uint32_t size,
                                                                   const CommOptions& options)
{
    const auto meeting = std::make_shared<Meeting>(size);
    std::vector<std::unique_ptr<Communicator>> all;
    for (std::uint32_t rank = 0; rank < size; ++rank)
        all.push_back(std::make_unique<ThreadCommunicator>(meeting, rank, options));
    return all;
}

} // namespace muster::comm
