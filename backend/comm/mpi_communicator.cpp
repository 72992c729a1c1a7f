// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_communicator.h"

#include "base/clock.h"
#include "comm/collective_p.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace muster::comm {

namespace {

constexpr int root = 0;
constexpr int pieceTag = 1;

/// Ends the process when it lives longer than the limit; its destructor disarms it.
class Watchdog final {
public:
    explicit Watchdog(std::chrono::seconds limit)
    {
        try {
            m_thread = std::thread([this, limit] {
                std::unique_lock lock(m_mutex);
                if (!m_disarmed.wait_for(lock, limit, [this] { return m_isDisarmed; }))
                    ::_exit(0);
            });
        } catch (const std::system_error&) {
            // Without a thread there is no watch; finalising goes on as it would without one.
        }
    }
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
    ~Watchdog()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_isDisarmed = true;
        }
        m_disarmed.notify_all();
        if (m_thread.joinable())
            m_thread.join();
    }

private:
    std::mutex m_mutex;
    std::condition_variable m_disarmed;
    bool m_isDisarmed = false;
    std::thread m_thread;
};

void sleepMicroseconds(long microseconds)
{
    const timespec time{0, microseconds * 1000};
    ::nanosleep(&time, nullptr);
}

std::string mpiErrorText(int code)
{
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int size = 0;
    if (MPI_Error_string(code, text.data(), &size) != MPI_SUCCESS)
        return "error " + std::to_string(code);
    return {text.data(), static_cast<std::size_t>(size)};
}

std::string libraryText()
{
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int size = 0;
    if (MPI_Get_library_version(text.data(), &size) != MPI_SUCCESS)
        return "unknown MPI";
    return {text.data(), static_cast<std::size_t>(size)};
}

/// The state of one call: when it began and which step is under way.
struct Call {
    Collective collective = Collective::Barrier;
    std::uint64_t number = 0;
    std::int64_t startNs = 0;
};

/// Memory that the library writes to. It outlives a call that was given up, in which the library
/// may still be at work.
struct Buffers {
    std::array<std::int64_t, 4> arrivalSent{};
    std::array<std::int64_t, 4> arrivalReceived{};
    std::uint64_t size = 0;
    std::vector<std::uint64_t> sizes;
    std::vector<std::vector<std::byte>> gathered;
    std::vector<std::byte> broadcast;
    std::vector<std::byte> node;
    std::vector<std::byte> all;
    std::vector<std::byte> total;
};

/// Room for `count` values at the start of a buffer.
template <typename T>
std::span<T> room(std::vector<std::byte>& buffer, std::size_t count)
{
    buffer.resize(count * sizeof(T));
    return {static_cast<T*>(static_cast<void*>(buffer.data())), count};
}

class MpiCommunicator final : public Communicator {
public:
    explicit MpiCommunicator(const CommOptions& options)
        : m_pieceBytes(std::clamp<std::size_t>(options.pieceBytes, 1, maxPieceBytes)),
          m_limit(options.timeLimit)
    {
    }

    ~MpiCommunicator() override
    {
        if (m_broken) {
            static_cast<void>(m_buffers.release());
            return;
        }
        const Watchdog watchdog(std::chrono::seconds(5));
        for (MPI_Comm* comm : {&m_leaders, &m_node, &m_world}) {
            if (*comm != MPI_COMM_NULL)
                MPI_Comm_free(comm);
        }
        MPI_Finalize();
    }

    /// Makes the groups of the nodes. Every rank takes part.
    [[nodiscard]] Status connect()
    {
        // Errors come back as codes instead of ending the program.
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (auto made = check(MPI_Comm_dup(MPI_COMM_WORLD, &m_world), "duplicating the world");
            !made)
            return made;
        MPI_Comm_set_errhandler(m_world, MPI_ERRORS_RETURN);
        MPI_Comm_rank(m_world, &m_rank);
        MPI_Comm_size(m_world, &m_size);
        if (auto made = check(
                MPI_Comm_split_type(m_world, MPI_COMM_TYPE_SHARED, m_rank, MPI_INFO_NULL, &m_node),
                "finding the ranks of the node");
            !made)
            return made;
        MPI_Comm_set_errhandler(m_node, MPI_ERRORS_RETURN);
        MPI_Comm_rank(m_node, &m_localRank);
        MPI_Comm_size(m_node, &m_localSize);
        const int color = m_localRank == 0 ? 0 : MPI_UNDEFINED;
        if (auto made =
                check(MPI_Comm_split(m_world, color, m_rank, &m_leaders), "grouping the nodes");
            !made)
            return made;
        if (m_leaders != MPI_COMM_NULL)
            MPI_Comm_set_errhandler(m_leaders, MPI_ERRORS_RETURN);
        // The world rank of the first rank of its node, for every rank: tells rank 0 in which
        // order the values of the nodes arrive.
        int leader = m_rank;
        if (auto told = check(MPI_Bcast(&leader, 1, MPI_INT, root, m_node), "naming the nodes");
            !told)
            return told;
        std::vector<int> leaders(static_cast<std::size_t>(m_size));
        if (auto told =
                check(MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, m_world),
                      "naming the nodes");
            !told)
            return told;
        for (int node = 0; node < m_size; ++node) {
            if (leaders[static_cast<std::size_t>(node)] != node)
                continue;
            m_nodeSizes.push_back(0);
            for (int rank = 0; rank < m_size; ++rank) {
                if (leaders[static_cast<std::size_t>(rank)] == node) {
                    m_arrivalOrder.push_back(static_cast<std::size_t>(rank));
                    ++m_nodeSizes.back();
                }
            }
        }
        return {};
    }

    [[nodiscard]] std::uint32_t rank() const override { return static_cast<std::uint32_t>(m_rank); }
    [[nodiscard]] std::uint32_t size() const override { return static_cast<std::uint32_t>(m_size); }
    [[nodiscard]] std::uint32_t localRank() const override
    {
        return static_cast<std::uint32_t>(m_localRank);
    }
    [[nodiscard]] std::uint32_t localSize() const override
    {
        return static_cast<std::uint32_t>(m_localSize);
    }
    [[nodiscard]] std::string library() const override { return mpiLibraryVersion(); }
    void setTimeLimit(std::chrono::milliseconds limit) override { m_limit = limit; }
    [[nodiscard]] const CommTimes& times() const override { return m_times; }

    Status barrier() override
    {
        return run(Collective::Barrier, 0, [](const Call&) { return Status{}; });
    }

    Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override
    {
        auto done =
            run(Collective::Gather, 0, [&](const Call& call) { return moveToRoot(call, mine); });
        if (!done)
            return fail(std::move(done).error());
        return std::exchange(m_buffers->gathered, {});
    }

    Status allReduceSum(std::span<double> values) override
    {
        return sum(values, Collective::SumDouble, MPI_DOUBLE);
    }
    Status allReduceSum(std::span<std::int64_t> values) override
    {
        return sum(values, Collective::SumInteger, MPI_INT64_T);
    }

    Status broadcast(std::vector<std::byte>& bytes) override
    {
        return run(Collective::Broadcast, 0, [&](const Call& call) -> Status {
            m_buffers->size = bytes.size();
            if (auto sent = moveAll(call, &m_buffers->size, 1, MPI_UINT64_T, m_world); !sent)
                return sent;
            const auto total = static_cast<std::size_t>(m_buffers->size);
            if (m_rank != root)
                m_buffers->broadcast.resize(total);
            std::byte* data = m_rank == root ? bytes.data() : m_buffers->broadcast.data();
            for (std::size_t at = 0; at < total; at += m_pieceBytes) {
                const std::size_t piece = std::min(m_pieceBytes, total - at);
                if (auto sent =
                        moveAll(call, data + at, static_cast<int>(piece), MPI_BYTE, m_world);
                    !sent)
                    return sent;
            }
            if (m_rank != root)
                bytes = std::exchange(m_buffers->broadcast, {});
            m_times.bytes += m_size > 1 ? total : 0;
            return {};
        });
    }

private:
    static constexpr std::size_t maxPieceBytes = 0x7FFFFFFF;

    tl::unexpected<Error> giveUp(Error error)
    {
        if (!m_broken)
            m_broken = error.message;
        return fail(std::move(error));
    }

    [[nodiscard]] Status check(int code, std::string_view step)
    {
        if (code == MPI_SUCCESS)
            return {};
        return giveUp(Error{
            Error::Kind::Io, "E-COMM-002",
            fmt::format("{} failed in {}: {}.", step, mpiLibraryVersion(), mpiErrorText(code))});
    }

    /// Waits for requests without using the core. `firstSleep` in microseconds; 0 yields at first,
    /// for steps that are over soon.
    [[nodiscard]] Status finish(const Call& call, std::span<MPI_Request> requests, const char* step,
                                long firstSleep)
    {
        constexpr long shortestSleep = 20;
        constexpr long longSleep = 200;
        constexpr long longestSleep = 1000;
        constexpr int yields = 200;
        int tried = 0;
        long sleep = firstSleep;
        for (;;) {
            int isDone = 0;
            const int code = MPI_Testall(static_cast<int>(requests.size()), requests.data(),
                                         &isDone, MPI_STATUSES_IGNORE);
            if (code != MPI_SUCCESS)
                return check(code, fmt::format("{}, {}", collectiveName(call.collective), step));
            if (isDone != 0)
                return {};
            const std::chrono::nanoseconds elapsed(monotonicNs() - call.startNs);
            if (m_limit.count() > 0 && elapsed > m_limit)
                return giveUp(timeLimitError(call.collective, call.number, step, m_limit, ""));
            if (sleep == 0 && ++tried < yields) {
                std::this_thread::yield();
                continue;
            }
            sleepMicroseconds(sleep);
            // A long wait may sleep longer: it gets longer by half a percent at most.
            const auto share = static_cast<long>(elapsed / std::chrono::microseconds(200));
            const long longest = std::clamp(share, longSleep, longestSleep);
            sleep = std::clamp(sleep + sleep / 4, shortestSleep, longest);
        }
    }

    [[nodiscard]] Status finishMoving(const Call& call, std::span<MPI_Request> requests)
    {
        return finish(call, requests, "moving bytes", 0);
    }

    /// The frame of every call: waits for all ranks, checks that they are in the same call, moves.
    template <typename Move>
    Status run(Collective collective, std::uint64_t count, Move move)
    {
        if (m_broken)
            return fail(brokenError(*m_broken));
        const Call call{collective, ++m_times.calls, monotonicNs()};
        auto arrived = arrive(call, count);
        const std::int64_t here = monotonicNs();
        m_times.waitNs += here - call.startNs;
        if (!arrived)
            return arrived;
        Status moved;
        try {
            moved = move(call);
        } catch (const std::bad_alloc&) {
            moved = giveUp(Error{Error::Kind::Io, "E-COMM-002",
                                 fmt::format("{}: there is not enough memory for what the ranks "
                                             "sent.",
                                             collectiveName(collective))});
        }
        m_times.transferNs += monotonicNs() - here;
        return moved;
    }

    /// A barrier that can be polled: a small reduction that cannot complete before every rank has
    /// entered it, and that tells whether all entered the same call.
    [[nodiscard]] Status arrive(const Call& call, std::uint64_t count)
    {
        const auto kind = static_cast<std::int64_t>(call.collective);
        const auto values = static_cast<std::int64_t>(count);
        const std::array<std::int64_t, 4> mine{kind, -kind, values, -values};
        m_buffers->arrivalSent = mine;
        MPI_Request request = MPI_REQUEST_NULL;
        if (auto started = check(MPI_Iallreduce(m_buffers->arrivalSent.data(),
                                                m_buffers->arrivalReceived.data(), 4, MPI_INT64_T,
                                                MPI_MAX, m_world, &request),
                                 collectiveName(call.collective));
            !started)
            return started;
        if (auto done = finish(call, {&request, 1}, "waiting for its partners", 20); !done)
            return done;
        if (m_buffers->arrivalReceived != mine)
            return fail(mismatchError(call.collective, call.number));
        return {};
    }

    [[nodiscard]] Status moveAll(const Call& call, void* data, int count, MPI_Datatype type,
                                 MPI_Comm comm)
    {
        MPI_Request request = MPI_REQUEST_NULL;
        if (auto started = check(MPI_Ibcast(data, count, type, root, comm, &request),
                                 collectiveName(call.collective));
            !started)
            return started;
        return finishMoving(call, {&request, 1});
    }

    [[nodiscard]] Status moveToRoot(const Call& call, std::span<const std::byte> mine)
    {
        const auto ranks = static_cast<std::size_t>(m_size);
        m_buffers->size = mine.size();
        std::vector<std::uint64_t>& sizes = m_buffers->sizes;
        std::vector<std::vector<std::byte>>& all = m_buffers->gathered;
        sizes.resize(m_rank == root ? ranks : 0);
        MPI_Request counts = MPI_REQUEST_NULL;
        if (auto started = check(MPI_Igather(&m_buffers->size, 1, MPI_UINT64_T, sizes.data(), 1,
                                             MPI_UINT64_T, root, m_world, &counts),
                                 "gather of counts");
            !started)
            return started;
        if (auto done = finishMoving(call, {&counts, 1}); !done)
            return done;
        if (m_rank != root) {
            for (std::size_t at = 0; at < mine.size(); at += m_pieceBytes) {
                const std::size_t piece = std::min(m_pieceBytes, mine.size() - at);
                MPI_Request request = MPI_REQUEST_NULL;
                if (auto started = check(MPI_Isend(mine.data() + at, static_cast<int>(piece),
                                                   MPI_BYTE, root, pieceTag, m_world, &request),
                                         "sending to rank 0");
                    !started)
                    return started;
                if (auto done = finishMoving(call, {&request, 1}); !done)
                    return done;
            }
            m_times.bytes += mine.size();
            return {};
        }
        all.resize(ranks);
        all[0].assign(mine.begin(), mine.end());
        std::uint64_t longest = 0;
        for (std::size_t r = 1; r < ranks; ++r) {
            all[r].resize(static_cast<std::size_t>(sizes[r]));
            longest = std::max(longest, sizes[r]);
            m_times.bytes += sizes[r];
        }
        // Piece by piece from all ranks at once; the pieces of one rank keep their order.
        std::vector<MPI_Request> requests;
        for (std::size_t at = 0; at < longest; at += m_pieceBytes) {
            requests.clear();
            for (std::size_t r = 1; r < ranks; ++r) {
                if (at >= all[r].size())
                    continue;
                const std::size_t piece = std::min(m_pieceBytes, all[r].size() - at);
                requests.push_back(MPI_REQUEST_NULL);
                if (auto started =
                        check(MPI_Irecv(all[r].data() + at, static_cast<int>(piece), MPI_BYTE,
                                        static_cast<int>(r), pieceTag, m_world, &requests.back()),
                              "receiving from a rank");
                    !started)
                    return started;
            }
            if (auto done = finishMoving(call, requests); !done)
                return done;
        }
        return {};
    }

    template <typename T>
    Status sum(std::span<T> values, Collective collective, MPI_Datatype type)
    {
        return run(collective, values.size(), [&](const Call& call) -> Status {
            const std::size_t part = std::max<std::size_t>(1, m_pieceBytes / sizeof(T) /
                                                                  static_cast<std::size_t>(m_size));
            for (std::size_t at = 0; at < values.size(); at += part) {
                auto piece = values.subspan(at, std::min(part, values.size() - at));
                if (auto summed = sumPiece(call, piece, type); !summed)
                    return summed;
            }
            return {};
        });
    }

    /// Rank → first rank of the node → rank 0, there added in rank order, and back the same way.
    template <typename T>
    [[nodiscard]] Status sumPiece(const Call& call, std::span<T> values, MPI_Datatype type)
    {
        const auto n = static_cast<int>(values.size());
        const std::span<T> node =
            room<T>(m_buffers->node,
                    m_localRank == 0 ? values.size() * static_cast<std::size_t>(m_localSize) : 0);
        MPI_Request request = MPI_REQUEST_NULL;
        if (auto started = check(
                MPI_Igather(values.data(), n, type, node.data(), n, type, root, m_node, &request),
                "sum inside the node");
            !started)
            return started;
        if (auto done = finishMoving(call, {&request, 1}); !done)
            return done;
        const std::span<T> total = room<T>(m_buffers->total, values.size());
        if (m_leaders != MPI_COMM_NULL) {
            const std::span<T> all =
                room<T>(m_buffers->all,
                        m_rank == root ? values.size() * static_cast<std::size_t>(m_size) : 0);
            std::vector<int> counts;
            std::vector<int> starts;
            int start = 0;
            for (const int ranks : m_nodeSizes) {
                counts.push_back(ranks * n);
                starts.push_back(start);
                start += ranks * n;
            }
            if (auto started = check(MPI_Igatherv(node.data(), m_localSize * n, type, all.data(),
                                                  counts.data(), starts.data(), type, root,
                                                  m_leaders, &request),
                                     "sum over the nodes");
                !started)
                return started;
            if (auto done = finishMoving(call, {&request, 1}); !done)
                return done;
            if (m_rank == root)
                addInRankOrder(std::span<const T>(all), total);
            if (auto sent = moveAll(call, total.data(), n, type, m_leaders); !sent)
                return sent;
        }
        if (auto sent = moveAll(call, total.data(), n, type, m_node); !sent)
            return sent;
        std::copy(total.begin(), total.end(), values.begin());
        m_times.bytes += m_size > 1 ? 2 * values.size_bytes() : 0;
        return {};
    }

    template <typename T>
    void addInRankOrder(std::span<const T> all, std::span<T> total) const
    {
        std::vector<std::size_t> place(m_arrivalOrder.size());
        for (std::size_t i = 0; i < m_arrivalOrder.size(); ++i)
            place[m_arrivalOrder[i]] = i;
        for (std::size_t rank = 0; rank < place.size(); ++rank) {
            const std::span<const T> part = all.subspan(place[rank] * total.size(), total.size());
            if (rank == 0)
                std::copy(part.begin(), part.end(), total.begin());
            else
                std::transform(total.begin(), total.end(), part.begin(), total.begin(),
                               [](T a, T b) { return added(a, b); });
        }
    }

    std::size_t m_pieceBytes;
    std::chrono::milliseconds m_limit;
    MPI_Comm m_world = MPI_COMM_NULL;
    MPI_Comm m_node = MPI_COMM_NULL;
    MPI_Comm m_leaders = MPI_COMM_NULL;
    int m_rank = 0;
    int m_size = 1;
    int m_localRank = 0;
    int m_localSize = 1;
    std::vector<int> m_nodeSizes;
    std::vector<std::size_t> m_arrivalOrder; ///< world ranks, node by node
    std::unique_ptr<Buffers> m_buffers = std::make_unique<Buffers>();
    CommTimes m_times;
    std::optional<std::string> m_broken;
};

} // namespace

MpiFamily mpiFamily()
{
    const std::string text = libraryText();
    if (text.find("Open MPI") != std::string::npos)
        return MpiFamily::OpenMpi;
    // Libraries that keep MPICH's binary interface say so or start with its name.
    if (text.find("MPICH") != std::string::npos || text.find("MVAPICH") != std::string::npos ||
        text.find("Intel(R) MPI") != std::string::npos)
        return MpiFamily::Mpich;
    return MpiFamily::Other;
}

std::string mpiLibraryVersion()
{
    std::string text = libraryText();
    text.resize(std::min(text.find_first_of(",\n"), text.size()));
    const std::string label = "MPICH Version:";
    if (text.compare(0, label.size(), label) == 0) {
        const std::size_t number = text.find_first_not_of(" \t", label.size());
        text = "MPICH " + (number == std::string::npos ? "" : text.substr(number));
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\0'))
        text.pop_back();
    return text;
}

Result<std::unique_ptr<Communicator>> makeMpiCommunicator(int* argc, char*** argv,
                                                          const CommOptions& options)
{
    int isInitialised = 0;
    MPI_Initialized(&isInitialised);
    if (isInitialised != 0)
        return fail(Error::Kind::Launch, "E-COMM-005",
                    "MPI was initialised before; a process can be part of one group only.");
    int provided = MPI_THREAD_SINGLE;
    const int code = MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    if (code != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED)
        return fail(Error::Kind::Launch, "E-COMM-005",
                    fmt::format("{} cannot be initialised{}.", mpiLibraryVersion(),
                                code == MPI_SUCCESS ? " for programs with threads" : ""));
    auto communicator = std::make_unique<MpiCommunicator>(options);
    if (auto connected = communicator->connect(); !connected)
        return fail(std::move(connected).error());
    return communicator;
}

} // namespace muster::comm
