// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/ledger.h"
#include "config/run_config.h"
#include "plan/items.h"
#include "plan/units.h"
#include "run/dealer.h"
#include "run/rank_server.h"
#include "run/snapshot.h"
#include "store/run_file.h"

#include <QObject>
#include <QTimer>

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

namespace muster::run {

/// Something worth a line in the log and in the run file.
struct RunEvent {
    enum class Level : std::uint32_t { Information = 0, Notice = 1, Warning = 2, Error = 3 };
    Level level = Level::Information;
    std::string code;
    std::string text;
    std::optional<RankId> rank;
    std::optional<UnitId> unit;
};

/// What a rank program must be, so that its numbers may stand beside the others' (I8).
struct Fingerprint {
    std::string modelDigest;
    std::string kernels;
    std::string architecture;
    std::string version;
    std::string binaryDigest;
    bool operator==(const Fingerprint&) const = default;
};

using Blocks = std::vector<wire::OutputBlock>;

/// Takes the ranks in, deals units, checks what comes back against the plan, stores it,
/// acknowledges it: the part of the controller that lives on the I/O thread. Made on any thread,
/// moved to its own, started and stopped by queued calls; reports by signals.
class Intake final : public QObject, private RankServerHandler {
    Q_OBJECT

public:
    struct Options {
        RankServer::Options server;
        config::RunConfig config;
        wire::RankConfig rankConfig;
        std::shared_ptr<const plan::ItemTable> items;
        std::shared_ptr<const plan::UnitTable> units;
        std::vector<RankId> owners;     ///< fixed shares; empty = ranks pull
        std::vector<std::uint8_t> done; ///< units stored by an earlier session [units], or empty
        std::optional<Fingerprint> expected; ///< of the earlier session
        std::uint32_t longestItem = 0;       ///< tokens
        std::uint32_t vocabulary = 0;        ///< of the tokenizer
        std::uint32_t ranks = 1;
        std::uint64_t runTag = 0; ///< names the weights that the ranks of a launch share
    };

    /// `file` and `ledger` are used by this object alone between start() and stopped().
    Intake(Options options, store::RunFile& file, align::Ledger& ledger);
    ~Intake() override;

public Q_SLOTS:
    /// Opens the socket; listening() or failed() follows.
    void start();
    /// A new launch begins: only its ranks may join from now on.
    void beginGeneration(quint32 generation);
    /// The launcher of this generation ended: whoever of it is still unknown or connected is lost.
    void endGeneration();
    /// This rank will not come back in this launch: its fixed share goes to the others.
    void abandon(quint32 rank);
    /// Hands out nothing more; units in work are awaited, then drained() follows.
    void drain(const QString& reason);
    /// Tells every rank to leave at once.
    void cancel(const QString& reason);
    /// The ranks will not come back: open units stay open.
    void giveUp();
    /// Closes everything, commits what is pending; stopped() follows.
    void stop();

Q_SIGNALS:
    void listening();
    void failed(const muster::Error& error);
    /// A rank of another kind than planned: the run must not go on (exit 4).
    void refused(const muster::Error& error);
    void happened(const muster::run::RunEvent& event);
    void snapshot(const std::shared_ptr<const muster::run::Snapshot>& snapshot);
    /// Outputs that are on disk now, in the order of storing.
    void committed(const std::shared_ptr<const muster::run::Blocks>& blocks);
    void rankReady(quint32 rank, const muster::run::Fingerprint& fingerprint);
    /// The first unit of this session was handed out.
    void firstUnit();
    /// A silent rank of this launch should be ended by force.
    void silentRank(quint32 rank, qint64 pid, quint64 startTicks);
    /// Nothing is open any more, or draining is over, and every rank has said goodbye.
    void drained();
    void stopped();

private:
    struct Rank {
        RankView view;
        PeerId peer = 0; ///< 0 = not connected
        std::int64_t heardNs = 0;
        bool wasReady = false;
        std::int64_t bookedPid = 0; ///< of the process that the ledger knows
        std::uint64_t bookedTicks = 0;
        std::optional<wire::Hello> hello;
        std::optional<wire::Stats> stats;
        std::uint64_t handed = 0;
        bool isEnded = false; ///< asked to be killed, because the others wait for it
    };
    struct Parts {
        wire::OutputBlock block;
        std::uint32_t received = 0;
    };

    void onHello(PeerId peer, const wire::Hello& hello) override;
    void onReady(PeerId peer, const wire::Ready& ready) override;
    void onOutputs(PeerId peer, wire::OutputBlock block) override;
    void onHeartbeat(PeerId peer, const wire::Heartbeat& heartbeat) override;
    void onStats(PeerId peer, const wire::Stats& stats) override;
    void onLog(PeerId peer, const wire::Log& log) override;
    void onBye(PeerId peer, const wire::Bye& bye) override;
    void onGone(PeerId peer, const std::optional<Error>& fault) override;
    void onTurnedAway(const std::string& why) override;

    void tick();
    void commit();
    void wholeBlock(RankId from, wire::OutputBlock block);
    void deal(RankId rank);
    void dealAll();
    void lose(RankId rank, const std::string& how, Dealer::Blame blame,
              std::optional<UnitId> culprit = std::nullopt,
              const char* why = "ended its rank twice");
    void report(const Dealer::Loss& loss, RankId rank, const char* why = "ended its rank twice");
    void checkFinished();
    void say(RunEvent::Level level, std::string code, std::string text,
             std::optional<RankId> rank = std::nullopt, std::optional<UnitId> unit = std::nullopt);
    void publish();
    void storeRank(const Rank& rank);
    [[nodiscard]] Rank* rankOf(PeerId peer);
    [[nodiscard]] std::string nameOf(const Rank& rank) const;
    void acknowledge(RankId rank, UnitId unit, std::uint32_t attempt);

    Options m_options;
    store::RunFile& m_file;
    align::Ledger& m_ledger;
    std::unique_ptr<store::OutputWriter> m_writer;
    std::unique_ptr<RankServer> m_server;
    Dealer m_dealer;
    std::map<std::uint32_t, Rank> m_ranks;
    std::unordered_map<PeerId, RankId> m_byPeer;
    std::map<std::pair<std::uint32_t, std::uint64_t>, Parts> m_parts; ///< by rank and unit
    struct Waiting {
        RankId rank;
        UnitId unit;
        std::uint32_t attempt = 0;
    };
    std::vector<Waiting> m_unacknowledged;
    Blocks m_uncommitted;
    std::optional<Fingerprint> m_fingerprint;
    QTimer* m_commitTimer = nullptr;
    QTimer* m_tick = nullptr;
    std::uint32_t m_generation = 0;
    std::int64_t m_generationNs = 0; ///< when the ranks of this launch were started; 0 = none are
    std::int64_t m_startNs = 0;
    std::int64_t m_firstUnitNs = 0;
    std::int64_t m_groupFaultNs = 0; ///< when the first rank of this generation was lost
    std::int64_t m_lastSeriesNs = 0;
    std::uint64_t m_itemsBefore = 0;
    std::uint64_t m_itemsDone = 0;
    std::uint64_t m_unitsDone = 0;
    double m_costTotal = 0.0;
    double m_costDone = 0.0;
    std::string m_paused;
    std::uint64_t m_turnedAway = 0;
    std::uint64_t m_refusedBlocks = 0;
    bool m_draining = false;
    bool m_saidDrain = false;
    std::int64_t m_drainNs = 0; ///< when that was
    bool m_saidDrained = false;
    bool m_refused = false;
};

} // namespace muster::run

Q_DECLARE_METATYPE(muster::run::RunEvent)
Q_DECLARE_METATYPE(muster::run::Fingerprint)
Q_DECLARE_METATYPE(muster::Error)
