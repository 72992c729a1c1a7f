// SPDX-License-Identifier: Apache-2.0
#include "run/intake.h"

#include "base/clock.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace muster::run {

namespace {

/// A rank that goes within this time after the first of its launch goes because the launcher tears
/// the group down (fault-scenarios 2.1: at most 2 s), not because of its unit.
constexpr std::int64_t tearDownNs = 4'000'000'000;
/// So long may ranks take to leave before one that was given up is ended for their sake.
constexpr std::int64_t leaveNs = 2'000'000'000;
constexpr std::size_t commitUnits = 64;
constexpr int commitMs = 10;
constexpr int tickMs = 100;
/// So many blocks with rows that are wrong are no accident of one unit.
constexpr std::uint64_t mostRefusedBlocks = 8;
constexpr std::int64_t seriesNs = 1'000'000'000;

std::int64_t nanoseconds(double seconds)
{
    return static_cast<std::int64_t>(seconds * 1e9);
}

std::string mib(std::uint64_t bytes)
{
    return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

nlohmann::ordered_json toJson(const wire::Times& times)
{
    return {{"compute_ns", times.computeNs},   {"wait_ns", times.waitNs},
            {"transfer_ns", times.transferNs}, {"load_ns", times.loadNs},
            {"other_ns", times.otherNs},       {"elapsed_ns", times.elapsedNs}};
}

nlohmann::ordered_json toJson(const wire::Sums& sums)
{
    return {{"units", sums.units},          {"items", sums.items},
            {"errors", sums.errors},        {"real_tokens", sums.realTokens},
            {"pad_tokens", sums.padTokens}, {"scored_tokens", sums.scoredTokens},
            {"loss_sum", sums.lossSum}};
}

nlohmann::ordered_json toJson(const wire::Hello& hello)
{
    return {{"rank", hello.rank},
            {"world", hello.world},
            {"local_rank", hello.localRank},
            {"local_size", hello.localSize},
            {"generation", hello.generation},
            {"node", hello.node},
            {"pid", hello.pid},
            {"start_ticks", hello.startTimeTicks},
            {"version", hello.version},
            {"mpi", hello.mpiLibrary},
            {"binary", hello.binaryDigest},
            {"architecture", hello.architecture},
            {"affinity", hello.affinity}};
}

} // namespace

Intake::Intake(Options options, store::RunFile& file, align::Ledger& ledger)
    : m_options(std::move(options)), m_file(file), m_ledger(ledger),
      m_dealer(m_options.units->costs(), m_options.owners,
               Dealer::Rules{.prefetch = m_options.config.plan.prefetch})
{
    m_costTotal =
        std::accumulate(m_options.units->costs().begin(), m_options.units->costs().end(), 0.0);
    for (std::size_t u = 0; u < m_options.done.size(); ++u) {
        if (m_options.done[u] == 0)
            continue;
        m_dealer.alreadyDone(UnitId(u));
        ++m_unitsDone;
        m_itemsBefore += m_options.units->items(UnitId(u)).size();
        m_costDone += m_options.units->cost(UnitId(u));
    }
    m_itemsDone = m_itemsBefore;
    m_fingerprint = m_options.expected;
    for (std::uint32_t r = 0; r < m_options.ranks; ++r)
        m_ranks[r].view.rank = RankId(r);
}

Intake::~Intake() = default;

void Intake::start()
{
    m_startNs = monotonicNs();
    auto writer = m_file.outputWriter();
    if (!writer) {
        Q_EMIT failed(writer.error());
        return;
    }
    m_writer = std::make_unique<store::OutputWriter>(std::move(*writer));
    m_server =
        std::make_unique<RankServer>(m_options.server, static_cast<RankServerHandler&>(*this));
    if (const Status status = m_server->listen(); !status) {
        Q_EMIT failed(status.error());
        return;
    }
    m_commitTimer = new QTimer(this);
    m_commitTimer->setSingleShot(true);
    m_commitTimer->setInterval(commitMs);
    connect(m_commitTimer, &QTimer::timeout, this, &Intake::commit);
    m_tick = new QTimer(this);
    m_tick->setInterval(tickMs);
    connect(m_tick, &QTimer::timeout, this, &Intake::tick);
    m_tick->start();
    Q_EMIT listening();
}

void Intake::beginGeneration(quint32 generation)
{
    m_generation = generation;
    m_groupFaultNs = 0;
    m_generationNs = monotonicNs();
    m_server->setGeneration(generation);
    // Each launch shares weights of its own: those of one that died may be half made.
    m_options.rankConfig.sharedWeightsKey = fmt::format("{:016x}-{}", m_options.runTag, generation);
}

void Intake::abandon(quint32 rank)
{
    m_dealer.abandon(RankId(rank));
    dealAll();
    checkFinished();
}

void Intake::endGeneration()
{
    m_generationNs = 0;
    for (auto& [number, rank] : m_ranks) {
        if (rank.view.state == RankState::Finished || rank.view.state == RankState::Absent)
            continue;
        if (rank.peer != 0) {
            m_server->drop(rank.peer);
            m_byPeer.erase(rank.peer);
            rank.peer = 0;
        }
        if (rank.view.state != RankState::Lost)
            lose(RankId(number), "went with its launcher", Dealer::Blame::Nobody);
        rank.view.state = RankState::Absent;
    }
    checkFinished();
    publish();
}

void Intake::drain(const QString& reason)
{
    m_draining = true;
    m_dealer.stop();
    say(RunEvent::Level::Notice, "", "no more units are handed out: " + reason.toStdString());
    checkFinished();
}

void Intake::cancel(const QString& reason)
{
    m_draining = true;
    m_dealer.stop();
    for (const auto& [number, rank] : m_ranks)
        if (rank.peer != 0)
            m_server->send(rank.peer, wire::FrameType::Cancel,
                           wire::Cancel{reason.toStdString(), wire::CancelMode::Now});
}

void Intake::giveUp()
{
    m_draining = true;
    m_dealer.stop();
    checkFinished();
}

void Intake::stop()
{
    if (m_writer)
        commit();
    if (m_server)
        m_server->close();
    if (m_tick != nullptr)
        m_tick->stop();
    for (const auto& [number, rank] : m_ranks)
        storeRank(rank);
    if (m_turnedAway > 0)
        say(RunEvent::Level::Warning, "E-RUN-013",
            fmt::format("{} connections were turned away because they did not prove the key.",
                        m_turnedAway));
    if (m_writer)
        commit();
    publish();
    m_writer.reset();
    Q_EMIT stopped();
}

Intake::Rank* Intake::rankOf(PeerId peer)
{
    const auto number = m_byPeer.find(peer);
    return number == m_byPeer.end() ? nullptr : &m_ranks.at(number->second.value);
}

std::string Intake::nameOf(const Rank& rank) const
{
    return rank.view.node.empty()
               ? fmt::format("rank {}", rank.view.rank.value)
               : fmt::format("rank {} on {}", rank.view.rank.value, rank.view.node);
}

void Intake::say(RunEvent::Level level, std::string code, std::string text,
                 std::optional<RankId> rank, std::optional<UnitId> unit)
{
    if (m_writer)
        m_writer->addEvent(
            {wallClockNs(), static_cast<std::uint32_t>(level), code, text, rank, unit});
    Q_EMIT happened(RunEvent{level, std::move(code), std::move(text), rank, unit});
}

void Intake::onHello(PeerId peer, const wire::Hello& hello)
{
    const auto refuse = [&](const char* code, const std::string& text) {
        m_server->refuse(peer, code, text);
        if (!m_refused) {
            m_refused = true;
            Q_EMIT refused(Error{Error::Kind::Launch, code,
                                 text + " No unit was handed out to it. Nothing is lost."});
        }
    };
    if (hello.world != m_options.ranks || hello.rank >= m_options.ranks) {
        refuse("E-RUN-020",
               fmt::format("{} ranks were asked for, but a process on {} believes to be rank {} of "
                           "{} ({}). The launcher and the MPI library of the rank program do not "
                           "belong together, or it was started by hand. Use the launcher of the "
                           "same family, or --launcher plain.",
                           m_options.ranks, hello.node, hello.rank, hello.world, hello.mpiLibrary));
        return;
    }
    if ((hello.launcherWorld && *hello.launcherWorld != hello.world) ||
        (hello.launcherRank && *hello.launcherRank != hello.rank)) {
        refuse("E-RUN-021",
               fmt::format("the launcher ({}) says rank {} of {}, but {} says rank {} of {}: "
                           "launcher and MPI library are of different families.",
                           hello.launcherFamily, hello.launcherRank.value_or(hello.rank),
                           hello.launcherWorld.value_or(hello.world), hello.mpiLibrary, hello.rank,
                           hello.world));
        return;
    }
    Rank& rank = m_ranks.at(hello.rank);
    if (rank.peer != 0) {
        const bool isSameProcess = rank.hello && rank.hello->pid == hello.pid &&
                                   rank.hello->node == hello.node &&
                                   rank.hello->startTimeTicks == hello.startTimeTicks;
        if (!isSameProcess) {
            m_server->refuse(peer, "E-RUN-022",
                             fmt::format("rank {} is connected already.", hello.rank));
            say(RunEvent::Level::Warning, "E-RUN-022",
                fmt::format("a second process (pid {} on {}) claims to be rank {}, which is alive; "
                            "it was sent away.",
                            hello.pid, hello.node, hello.rank),
                RankId(hello.rank));
            return;
        }
        // The same process after a cut that only it noticed.
        m_byPeer.erase(rank.peer);
        m_server->drop(rank.peer);
    }
    rank.peer = peer;
    rank.hello = hello;
    rank.heardNs = monotonicNs();
    rank.view.state = RankState::Joined;
    rank.view.generation = hello.generation;
    rank.view.node = hello.node;
    rank.view.pid = hello.pid;
    rank.view.startTicks = hello.startTimeTicks;
    m_byPeer[peer] = RankId(hello.rank);
    if (hello.connection > 0)
        say(RunEvent::Level::Notice, "", nameOf(rank) + " connected again.", RankId(hello.rank));
    if (hello.cpus < m_options.rankConfig.threads && hello.connection == 0)
        say(RunEvent::Level::Warning, "W-RUN-001",
            fmt::format("{} may use {} CPU but {} threads are configured: set threads_per_rank = "
                        "{}, or give it more CPUs.",
                        nameOf(rank), hello.cpus, m_options.rankConfig.threads, hello.cpus),
            RankId(hello.rank));
    storeRank(rank);
    // What it still wants to send again and nobody waits for any more must not come.
    for (const std::uint64_t held : hello.holding) {
        const UnitId unit(held);
        if (held >= m_options.units->size() ||
            !(m_dealer.isDone(unit) || m_dealer.isSetAside(unit)))
            continue;
        for (std::uint32_t attempt = 0; attempt < m_dealer.attempts(unit); ++attempt)
            m_server->send(peer, wire::FrameType::Ack, wire::Ack{unit, attempt});
    }
    rank.handed = 0; // the word to drain is given on every connection
    rank.isEnded = false;
    m_server->send(peer, wire::FrameType::Config, m_options.rankConfig);
}

void Intake::onReady(PeerId peer, const wire::Ready& ready)
{
    Rank* rank = rankOf(peer);
    if (rank == nullptr)
        return;
    const auto refuse = [&](const char* code, const std::string& text,
                            Error::Kind kind = Error::Kind::Launch) {
        m_server->refuse(peer, code, text);
        if (!m_refused) {
            m_refused = true;
            Q_EMIT refused(Error{kind, code, text});
        }
    };
    if (ready.maxPositions != 0 && ready.maxPositions < m_options.longestItem) {
        refuse("E-RUN-023",
               fmt::format("the model has {} positions but the longest input has {} tokens. Set "
                           "max_seq_length to at most {}.",
                           ready.maxPositions, m_options.longestItem, ready.maxPositions));
        return;
    }
    if (ready.vocabulary != 0 && ready.vocabulary < m_options.vocabulary) {
        refuse("E-RUN-024",
               fmt::format("the tokenizer has {} tokens but the model only {}: they do not belong "
                           "together.",
                           m_options.vocabulary, ready.vocabulary));
        return;
    }
    const Fingerprint fingerprint{ready.modelDigest, ready.kernels, rank->hello->architecture,
                                  rank->hello->version, rank->hello->binaryDigest};
    if (!m_fingerprint)
        m_fingerprint = fingerprint;
    if (m_fingerprint->modelDigest != fingerprint.modelDigest) {
        refuse("E-RUN-025",
               fmt::format("{} has loaded another model: digest {} where {} is expected. Results "
                           "are never mixed; what was gathered is saved.",
                           nameOf(*rank), fingerprint.modelDigest, m_fingerprint->modelDigest),
               m_options.expected ? Error::Kind::Invalid : Error::Kind::Launch);
        return;
    }
    // A process that connects again is no new one: its own totals go on.
    if (rank->bookedPid != rank->hello->pid || rank->bookedTicks != rank->hello->startTimeTicks) {
        m_ledger.hello(rank->view.rank, rank->hello->world, fingerprint.modelDigest,
                       fingerprint.kernels, fingerprint.version);
        rank->bookedPid = rank->hello->pid;
        rank->bookedTicks = rank->hello->startTimeTicks;
    }
    if (m_fingerprint->kernels != fingerprint.kernels)
        say(RunEvent::Level::Warning, "W-RUN-002",
            fmt::format("{} computes with other kernels ({} instead of {}): bits may differ "
                        "between ranks.",
                        nameOf(*rank), fingerprint.kernels, m_fingerprint->kernels),
            rank->view.rank);
    rank->view.state = RankState::Ready;
    rank->wasReady = true;
    rank->view.readyNs = monotonicNs();
    m_dealer.rankJoined(rank->view.rank);
    for (const std::uint64_t unit : rank->hello->holding)
        m_dealer.reclaim(rank->view.rank, UnitId(unit), monotonicNs());
    Q_EMIT rankReady(rank->view.rank.value, fingerprint);
    deal(rank->view.rank);
    checkFinished();
}

void Intake::deal(RankId number)
{
    Rank& rank = m_ranks.at(number.value);
    if (rank.peer == 0 || rank.view.state != RankState::Ready)
        return;
    for (const Dealer::Handout& handout : m_dealer.handOut(number, monotonicNs())) {
        const wire::Unit unit =
            plan::makeUnit(*m_options.items, *m_options.units, handout.unit, handout.attempt);
        const auto payload = wire::encodeUnit(unit);
        m_ledger.assigned(handout.unit, number);
        m_server->send(rank.peer, wire::FrameType::Unit, std::span<const std::byte>(payload));
        ++rank.handed;
        if (m_firstUnitNs == 0) {
            m_firstUnitNs = monotonicNs();
            Q_EMIT firstUnit();
        }
        if (rank.view.firstUnitNs == 0)
            rank.view.firstUnitNs = monotonicNs();
    }
}

void Intake::dealAll()
{
    for (const auto& [number, rank] : m_ranks)
        deal(RankId(number));
}

void Intake::onOutputs(PeerId peer, wire::OutputBlock block)
{
    Rank* from = rankOf(peer);
    if (from == nullptr)
        return;
    from->heardNs = monotonicNs();
    if (block.unit.value >= m_options.units->size()) {
        m_ledger.foreignUnit(block.unit, from->view.rank);
        say(RunEvent::Level::Error, "E-RUN-030",
            fmt::format("{} sent outputs of unit {}, which is not in the plan.", nameOf(*from),
                        block.unit.value),
            from->view.rank);
        return;
    }
    if (block.parts == 1) {
        wholeBlock(from->view.rank, std::move(block));
        return;
    }
    const auto id = std::pair(block.rank.value, block.unit.value);
    Parts& parts = m_parts[id];
    const bool continues = parts.received > 0 && parts.block.attempt == block.attempt &&
                           parts.block.parts == block.parts && parts.received == block.part;
    if (!continues) {
        if (block.part != 0) {
            m_parts.erase(id);
            return; // the rest of something that was cut off: the rank sends it again from part 0
        }
        parts = Parts{std::move(block), 1};
    } else {
        std::move(block.outputs.begin(), block.outputs.end(),
                  std::back_inserter(parts.block.outputs));
        ++parts.received;
    }
    if (parts.received == parts.block.parts) {
        wire::OutputBlock whole = std::move(parts.block);
        m_parts.erase(id);
        whole.part = 0;
        whole.parts = 1;
        wholeBlock(from->view.rank, std::move(whole));
    }
}

void Intake::wholeBlock(RankId from, wire::OutputBlock block)
{
    const std::int64_t now = monotonicNs();
    const UnitId unit = block.unit;
    const bool isRelay =
        m_options.rankConfig.gather != wire::GatherMode::Stream && from == RankId(0);
    const RankId by = isRelay ? block.rank : from;
    if (by.value >= m_options.ranks) {
        m_ledger.foreignUnit(unit, from);
        return;
    }
    Rank& rank = m_ranks.at(by.value);
    const std::uint32_t attempt = block.attempt;
    const auto verdict = m_ledger.block(block, by);
    const Dealer::Receipt receipt = m_dealer.received(by, unit, now);
    if (!verdict.sentence.empty())
        say(RunEvent::Level::Error, verdict.code, verdict.sentence, by, unit);

    if (verdict.isDuplicate || receipt == Dealer::Receipt::Again) {
        if (verdict.isDuplicate) {
            store::DuplicateRecord duplicate;
            duplicate.unit = unit;
            duplicate.rank = by;
            duplicate.generation = rank.view.generation;
            duplicate.attempt = attempt;
            duplicate.arrivalNs = now;
            duplicate.isEqual = verdict.isEqual;
            duplicate.firstDifferingItem = verdict.firstDifferingItem;
            m_writer->addDuplicate(std::move(duplicate));
        }
        if (m_dealer.isDone(unit))
            acknowledge(by, unit, attempt);
        else
            m_unacknowledged.push_back({by, unit, attempt});
        deal(by);
        checkFinished();
        return;
    }
    if (!verdict.isUsable) {
        report(m_dealer.refused(by, unit), by, "came back wrong twice");
        if (++m_refusedBlocks == mostRefusedBlocks && !m_draining) {
            say(RunEvent::Level::Error, "E-RUN-035",
                fmt::format("{} blocks contradicted the plan: the run is ended early, because more "
                            "of it would prove nothing.",
                            m_refusedBlocks));
            drain(QStringLiteral("the gather contradicts the plan"));
        }
        // The rank keeps what it sent until it hears of it; nothing of it was stored.
        acknowledge(by, unit, attempt);
        dealAll();
        checkFinished();
        return;
    }
    if (const Status added = m_writer->add(block, rank.view.generation, now, rank.view.node);
        !added) {
        say(RunEvent::Level::Error, added.error().code, added.error().message, by, unit);
        return;
    }
    rank.view.units += 1;
    rank.view.items += block.outputs.size();
    rank.view.realTokens += block.realTokens;
    rank.view.padTokens += block.padTokens;
    m_unacknowledged.push_back({by, unit, attempt});
    m_uncommitted.push_back(std::move(block));
    if (m_writer->pendingUnits() >= commitUnits)
        commit();
    else if (!m_commitTimer->isActive())
        m_commitTimer->start();
    deal(by);
}

void Intake::acknowledge(RankId number, UnitId unit, std::uint32_t attempt)
{
    const bool isRelayed = m_options.rankConfig.gather != wire::GatherMode::Stream;
    const Rank& rank = m_ranks.at(isRelayed ? 0 : number.value);
    if (rank.peer != 0)
        m_server->send(rank.peer, wire::FrameType::Ack, wire::Ack{unit, attempt});
    if (isRelayed && number != RankId(0) && m_ranks.at(number.value).peer != 0)
        m_server->send(m_ranks.at(number.value).peer, wire::FrameType::Ack,
                       wire::Ack{unit, attempt});
}

void Intake::commit()
{
    if (!m_writer)
        return;
    auto durable = m_writer->commit();
    if (!durable) {
        const std::string why = durable.error().message;
        if (m_paused.empty())
            say(RunEvent::Level::Error, durable.error().code,
                "results cannot be written: " + why +
                    " Nothing was acknowledged falsely; the run goes on when there is space.");
        m_paused = why;
        m_commitTimer->start(1000);
        return;
    }
    if (!m_paused.empty()) {
        m_paused.clear();
        m_commitTimer->setInterval(commitMs);
        say(RunEvent::Level::Notice, "", "results are written again.");
    }
    for (const UnitId unit : *durable) {
        m_dealer.committed(unit);
        ++m_unitsDone;
        m_itemsDone += m_options.units->items(unit).size();
        m_costDone += m_options.units->cost(unit);
    }
    for (const Waiting& waiting : m_unacknowledged)
        acknowledge(waiting.rank, waiting.unit, waiting.attempt);
    m_unacknowledged.clear();
    if (!m_uncommitted.empty()) {
        Q_EMIT committed(std::make_shared<const Blocks>(std::move(m_uncommitted)));
        m_uncommitted.clear();
    }
    checkFinished();
}

void Intake::onHeartbeat(PeerId peer, const wire::Heartbeat& heartbeat)
{
    Rank* rank = rankOf(peer);
    if (rank == nullptr)
        return;
    rank->heardNs = monotonicNs();
    rank->view.phase = heartbeat.phase;
    rank->view.rssBytes = heartbeat.rssBytes;
    rank->view.memoryLimitBytes = heartbeat.memoryLimitBytes;
    rank->view.times = heartbeat.times;
    if (rank->view.state == RankState::Suspect) {
        rank->view.state = rank->wasReady ? RankState::Ready : RankState::Joined;
        say(RunEvent::Level::Notice, "", nameOf(*rank) + " is heard again.", rank->view.rank);
        deal(rank->view.rank);
    }
}

void Intake::onStats(PeerId peer, const wire::Stats& stats)
{
    Rank* rank = rankOf(peer);
    if (rank == nullptr)
        return;
    rank->stats = stats;
    rank->view.times = stats.times;
    m_ledger.totals(rank->view.rank, stats.own);
    if (stats.group)
        m_ledger.groupTotals(*stats.group);
    storeRank(*rank);
}

void Intake::onLog(PeerId peer, const wire::Log& log)
{
    if (const Rank* rank = rankOf(peer); rank != nullptr)
        say(log.level == wire::LogLevel::Error     ? RunEvent::Level::Error
            : log.level == wire::LogLevel::Warning ? RunEvent::Level::Warning
                                                   : RunEvent::Level::Information,
            "", fmt::format("{}: {}", nameOf(*rank), log.text), rank->view.rank);
}

void Intake::onBye(PeerId peer, const wire::Bye& bye)
{
    Rank* rank = rankOf(peer);
    if (rank == nullptr)
        return;
    m_server->send(peer, wire::FrameType::Bye, wire::Bye{"done"});
    if (m_saidDrain || m_draining) {
        rank->view.state = RankState::Finished;
        // Whatever it still held came back or never will.
        report(m_dealer.rankLost(rank->view.rank, Dealer::Blame::Nobody), rank->view.rank);
    } else {
        lose(rank->view.rank, "left early: " + bye.reason, Dealer::Blame::Nobody);
    }
    checkFinished();
}

void Intake::onGone(PeerId peer, const std::optional<Error>& fault)
{
    Rank* rank = rankOf(peer);
    m_byPeer.erase(peer);
    if (rank == nullptr)
        return;
    rank->peer = 0;
    if (rank->view.state == RankState::Finished)
        return;
    const RankId number = rank->view.rank;
    std::erase_if(m_parts, [&](const auto& part) { return part.first.first == number.value; });
    if (fault) {
        m_ledger.damagedFrame(number, fault->code);
        say(RunEvent::Level::Error, fault->code,
            fmt::format(
                "a frame of {} was damaged ({}); the connection was closed and its units go "
                "to others.",
                nameOf(*rank), fault->message),
            number);
        // After a cut the first frames are those of units that it holds since before.
        std::optional<UnitId> culprit;
        for (const std::uint64_t held : rank->hello->holding)
            if (!culprit && held < m_options.units->size() && !m_dealer.isSettled(UnitId(held)))
                culprit = UnitId(held);
        lose(number, "sent a damaged frame", Dealer::Blame::UnitInWork, culprit,
             "came damaged twice");
    } else {
        const bool isTornDown = m_groupFaultNs != 0 && monotonicNs() - m_groupFaultNs < tearDownNs;
        std::string how = "is gone";
        if (rank->view.memoryLimitBytes > 0 &&
            rank->view.rssBytes > rank->view.memoryLimitBytes / 10 * 9)
            how = fmt::format("is gone, probably out of memory ({} of {} in use)",
                              mib(rank->view.rssBytes), mib(rank->view.memoryLimitBytes));
        lose(number, how, isTornDown ? Dealer::Blame::Nobody : Dealer::Blame::UnitInWork);
    }
    dealAll();
    checkFinished();
}

void Intake::lose(RankId number, const std::string& how, Dealer::Blame blame,
                  std::optional<UnitId> culprit, const char* why)
{
    Rank& rank = m_ranks.at(number.value);
    const bool wasWorking = rank.view.state != RankState::Absent;
    rank.view.state = RankState::Lost;
    if (m_groupFaultNs == 0)
        m_groupFaultNs = monotonicNs();
    const auto loss =
        culprit ? m_dealer.rankLostOver(number, *culprit) : m_dealer.rankLost(number, blame);
    if (wasWorking && !m_saidDrained)
        say(RunEvent::Level::Warning, "E-RUN-031",
            fmt::format("{} {}. {} of {} units are safe; {} go back to the queue.", nameOf(rank),
                        how, m_unitsDone, m_options.units->size(), loss.requeued.size()),
            number);
    report(loss, number, why);
}

void Intake::report(const Dealer::Loss& loss, RankId number, const char* why)
{
    for (const UnitId unit : loss.setAside) {
        m_ledger.setAside(unit, number);
        say(RunEvent::Level::Error, "E-RUN-032",
            fmt::format("unit {} {} and was set aside; its {} items are missing from the result. "
                        "The last one was rank {}.",
                        unit.value, why, m_options.units->items(unit).size(), number.value),
            number, unit);
    }
}

void Intake::onTurnedAway(const std::string& why)
{
    if (++m_turnedAway <= 3)
        say(RunEvent::Level::Warning, "E-RUN-013", "a connection was turned away: " + why);
}

void Intake::tick()
{
    const std::int64_t now = monotonicNs();
    const config::ClusterConfig& limits = m_options.config.cluster;
    for (auto& [number, rank] : m_ranks) {
        if (rank.peer == 0)
            continue;
        const std::int64_t silent = now - std::max(rank.heardNs, m_server->lastHeardNs(rank.peer));
        if (silent > nanoseconds(limits.deadS)) {
            say(RunEvent::Level::Warning, "E-RUN-033",
                fmt::format("{} was not heard for {:.0f} s and counts as dead.", nameOf(rank),
                            static_cast<double>(silent) / 1e9),
                rank.view.rank);
            m_server->drop(rank.peer);
            m_byPeer.erase(rank.peer);
            rank.peer = 0;
            lose(rank.view.rank, "is silent", Dealer::Blame::Nobody);
            m_dealer.abandon(rank.view.rank);
            dealAll();
            const bool anyoneElse = std::any_of(m_ranks.begin(), m_ranks.end(),
                                                [](const auto& r) { return r.second.peer != 0; });
            if (!anyoneElse)
                Q_EMIT silentRank(number, rank.view.pid, rank.view.startTicks);
        } else if (silent > nanoseconds(limits.suspectS) &&
                   (rank.view.state == RankState::Ready || rank.view.state == RankState::Joined)) {
            rank.view.state = RankState::Suspect;
            say(RunEvent::Level::Notice, "",
                fmt::format("{} was not heard for {:.0f} s.", nameOf(rank),
                            static_cast<double>(silent) / 1e9),
                rank.view.rank);
        }
    }
    for (const Dealer::Overdue& late : m_dealer.overdue(now)) {
        Rank& rank = m_ranks.at(late.rank.value);
        say(RunEvent::Level::Warning, "E-RUN-034",
            fmt::format("unit {} does not come back from {}: the rank is replaced.",
                        late.unit.value, nameOf(rank)),
            late.rank, late.unit);
        if (rank.peer != 0) {
            m_server->drop(rank.peer);
            m_byPeer.erase(rank.peer);
            rank.peer = 0;
        }
        lose(late.rank, "hangs in its unit", Dealer::Blame::UnitInWork);
        Q_EMIT silentRank(late.rank.value, rank.view.pid, rank.view.startTicks);
        dealAll();
    }
    // A rank that was given up but lives keeps the others from leaving together.
    for (auto& [number, rank] : m_ranks) {
        if (!m_saidDrain || m_saidDrained || now - m_drainNs < leaveNs || rank.isEnded ||
            rank.peer != 0 || !rank.hello || rank.view.state != RankState::Lost)
            continue;
        rank.isEnded = true;
        Q_EMIT silentRank(number, rank.view.pid, rank.view.startTicks);
    }
    if (m_generationNs != 0 && !m_draining && !m_refused &&
        now - m_generationNs > nanoseconds(limits.helloS)) {
        const auto absent = std::count_if(m_ranks.begin(), m_ranks.end(), [](const auto& r) {
            return r.second.view.state == RankState::Absent;
        });
        m_generationNs = 0;
        if (absent > 0) {
            m_refused = true;
            Q_EMIT refused(Error{
                Error::Kind::Launch, "E-RUN-026",
                fmt::format(
                    "{} of {} ranks did not say hello within {:.0f} s of the launch. What was "
                    "gathered is saved. Look into the folder log, or give more time with "
                    "hello_s.",
                    absent, m_options.ranks, limits.helloS)});
        }
    }
    // Idle ranks may take over what is late elsewhere.
    if (!m_draining && !m_dealer.finished())
        dealAll();
    checkFinished();
    publish();
}

void Intake::checkFinished()
{
    const bool isOver = m_dealer.finished() || (m_draining && m_dealer.idle());
    if (!isOver || m_saidDrained)
        return;
    if (!m_saidDrain) {
        m_saidDrain = true;
        m_drainNs = monotonicNs();
        m_dealer.stop();
        commit();
        if (m_saidDrained)
            return;
    }
    bool isQuiet = true;
    for (auto& [number, rank] : m_ranks) {
        if (rank.peer == 0 || rank.view.state == RankState::Finished)
            continue;
        // Ranks that are still loading get the word as soon as they are ready.
        if (rank.view.state == RankState::Ready && rank.handed != ~std::uint64_t{0}) {
            m_server->send(rank.peer, wire::FrameType::Drain, wire::Drain{});
            rank.handed = ~std::uint64_t{0};
        }
        isQuiet = false;
    }
    if (!isQuiet || !m_unacknowledged.empty())
        return;
    m_saidDrained = true;
    publish();
    Q_EMIT drained();
}

void Intake::storeRank(const Rank& rank)
{
    if (!rank.hello)
        return;
    nlohmann::ordered_json stats = nlohmann::ordered_json::object();
    if (rank.stats) {
        stats["times"] = toJson(rank.stats->times);
        stats["own"] = toJson(rank.stats->own);
        if (rank.stats->group)
            stats["group"] = toJson(*rank.stats->group);
        stats["bytes_out"] = rank.stats->bytesOut;
        stats["rounds"] = rank.stats->rounds;
    }
    store::RankRecord record;
    record.rank = rank.view.rank;
    record.generation = rank.view.generation;
    record.helloJson = toJson(*rank.hello).dump();
    record.statsJson = stats.dump();
    if (const Status stored = m_file.setRank(record); !stored && m_paused.empty())
        Q_EMIT happened(RunEvent{RunEvent::Level::Warning, stored.error().code,
                                 stored.error().message, rank.view.rank, std::nullopt});
}

void Intake::publish()
{
    const std::int64_t now = monotonicNs();
    auto picture = std::make_shared<Snapshot>();
    picture->elapsedNs = now - m_startNs;
    picture->sinceFirstUnitNs = m_firstUnitNs == 0 ? 0 : now - m_firstUnitNs;
    picture->units = m_options.units->size();
    picture->unitsDone = m_unitsDone;
    picture->items = m_options.items->size();
    picture->itemsDone = m_itemsDone;
    picture->itemsBefore = m_itemsBefore;
    picture->costDone = m_costTotal > 0.0 ? m_costDone / m_costTotal : 1.0;
    picture->paused = m_paused;
    for (const auto& [number, rank] : m_ranks) {
        picture->ranks.push_back(rank.view);
        picture->realTokens += rank.view.realTokens;
        picture->padTokens += rank.view.padTokens;
        if (m_writer && now - m_lastSeriesNs >= seriesNs && rank.view.state != RankState::Absent) {
            store::SeriesRecord point;
            point.timeNs = now;
            point.rank = rank.view.rank;
            point.items = rank.view.items;
            point.tokens = rank.view.realTokens;
            point.computeNs = rank.view.times.computeNs;
            point.waitNs = rank.view.times.waitNs;
            point.transferNs = rank.view.times.transferNs;
            point.memory = rank.view.rssBytes;
            m_writer->addPoint(point);
        }
    }
    if (now - m_lastSeriesNs >= seriesNs)
        m_lastSeriesNs = now;
    Q_EMIT snapshot(picture);
}

} // namespace muster::run
