// SPDX-License-Identifier: Apache-2.0
#include "run/controller.h"

#include "base/clock.h"
#include "base/file.h"
#include "config/digest.h"
#include "config/write.h"
#include "launch/command.h"
#include "launch/environment.h"
#include "launch/topology.h"
#include "plan/schedule.h"
#include "run/outcome.h"
#include "store/history.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

namespace muster::run {

namespace {

constexpr std::int64_t relaunchWindowNs = 600'000'000'000;
constexpr std::int64_t rateWindowNs = 10'000'000'000;
constexpr int ladderMs = 3000;

std::uint64_t randomTag()
{
    std::uint64_t tag = 0;
    while (::getrandom(&tag, sizeof tag, 0) != static_cast<ssize_t>(sizeof tag)) {
    }
    return tag;
}

std::vector<RankId> ownersOf(const config::RunConfig& config, const Job& job, std::uint32_t ranks,
                             Error& error)
{
    const auto costs = job.units()->costs();
    switch (config.plan.schedule) {
    case config::Schedule::Dynamic:
        return {};
    case config::Schedule::Block:
        return plan::share::block(costs.size(), ranks);
    case config::Schedule::Stride:
        return plan::share::stride(costs.size(), ranks);
    case config::Schedule::Balanced:
        return plan::share::balanced(costs, ranks);
    case config::Schedule::Compat:
        break;
    }
    // A unit belongs to the rank on whose list its first item's sample stands first.
    const auto lists =
        plan::compatLists(config.plan.compat, job.samples(), ranks, config.plan.compatBatch);
    if (!lists) {
        error = lists.error();
        return {};
    }
    std::vector<RankId> ownerOfSample(job.samples(), RankId(0));
    for (std::uint32_t r = 0; r < ranks; ++r)
        for (const plan::ListEntry& entry : (*lists)[r])
            if (!entry.pad)
                ownerOfSample[static_cast<std::size_t>(entry.sample.value)] = RankId(r);
    std::vector<RankId> owners;
    for (std::uint64_t u = 0; u < costs.size(); ++u) {
        const std::uint64_t item = job.units()->items(UnitId(u)).front();
        owners.push_back(ownerOfSample[static_cast<std::size_t>(
            job.itemSamples()[static_cast<std::size_t>(item)])]);
    }
    return owners;
}

std::string differenceText(const char* what, const std::string& stored, const std::string& now)
{
    return fmt::format("{} differs: {} when the run was made, {} now", what, stored, now);
}

} // namespace

std::string launcherText(const launch::Flavour& flavour)
{
    const std::string family(launch::familyName(flavour.launcher.family));
    return flavour.launcher.version.empty() ? family : family + " " + flavour.launcher.version;
}

Controller::Controller(RunRequest request, QObject* parent)
    : QObject(parent), m_request(std::move(request)), m_config(m_request.resolved.config)
{
    m_isResume = !m_request.resumeFolder.empty();
    m_ladder.setSingleShot(true);
    connect(&m_ladder, &QTimer::timeout, this, &Controller::stopGroup);
    m_timeout.setSingleShot(true);
    connect(&m_timeout, &QTimer::timeout, this, [this] {
        m_cut = Error{Error::Kind::Timeout, "E-RUN-040",
                      fmt::format("the time limit of {:.0f} s is over. What was gathered is saved; "
                                  "`muster resume` goes on from there.",
                                  m_config.cluster.timeoutS)};
        stopNow("time limit");
    });
}

Controller::~Controller()
{
    m_thread.quit();
    m_thread.wait();
    delete m_intake;
    if (m_lock >= 0)
        ::close(m_lock);
}

void Controller::enter(const char* stage)
{
    Q_EMIT stageChanged(QString::fromLatin1(stage));
}

void Controller::note(RunEvent::Level level, std::string code, std::string text)
{
    RunEvent event{level, std::move(code), std::move(text), std::nullopt, std::nullopt};
    Q_EMIT happened(event);
}

void Controller::start()
{
    m_startNs = monotonicNs();
    m_startWallNs = wallClockNs();
    enter("planning");
    if (const Status prepared = m_isResume ? prepareResume() : prepare(); !prepared)
        finish(prepared.error());
}

std::future<Result<launch::Flavour>> Controller::chooseFlavour() const
{
    launch::FlavourRequest request;
    request.launcher = m_config.cluster.launcher;
    request.launcherPath = m_config.cluster.launcherPath;
    request.rankProgram = m_config.cluster.rankProgram;
    request.ownFolder = m_request.ownFolder;
    const char* path = std::getenv("PATH");
    request.searchPath = path != nullptr ? path : "";
    // Asking launcher and rank program for their families takes as long as reading the data.
    return std::async(std::launch::async, [request] { return launch::chooseFlavour(request); });
}

Status Controller::prepare()
{
    if (m_config.cluster.ranks == 0)
        m_config.cluster.ranks = launch::machineTopology().usableCores();
    m_request.resolved.config = m_config;

    auto choosing = chooseFlavour();

    auto job = Job::prepare(m_config);
    auto chosen = choosing.get();
    if (!job)
        return fail(job.error());
    m_job = std::move(*job);
    if (!chosen)
        return fail(chosen.error());
    m_flavour = std::move(*chosen);
    Error ownerError;
    m_owners = ownersOf(m_config, *m_job, m_config.cluster.ranks, ownerError);
    if (!ownerError.code.empty())
        return fail(ownerError);
    for (const data::Warning& warning : m_job->warnings())
        note(RunEvent::Level::Warning, warning.code, warning.sentence);

    if (const Status made = makeFolder(); !made)
        return made;
    auto file = store::RunFile::create(m_folder / "run.muster");
    if (!file)
        return fail(file.error());
    m_file = std::move(*file);
    if (const Status saved = m_job->save(*m_file, m_owners); !saved)
        return saved;
    const auto put = [&](std::string_view key, const std::string& value) -> Status {
        return m_file->setMeta(key, value);
    };
    std::string data;
    for (const auto& one : m_config.data.files)
        data += (data.empty() ? "" : ", ") + one.string();
    for (const auto& [key, value] : std::vector<std::pair<std::string_view, std::string>>{
             {store::key::runId, m_folder.filename().string()},
             {store::key::name, m_config.name},
             {store::key::createdNs, std::to_string(m_startWallNs)},
             {store::key::task, std::string(config::taskName(m_config.task))},
             {store::key::model, m_config.model.path.string()},
             {store::key::data, data},
             {store::key::ranks, std::to_string(m_config.cluster.ranks)},
             {store::key::version, m_request.programVersion}})
        if (const Status stored = put(key, value); !stored)
            return stored;
    const std::string toml = config::toToml(m_request.resolved);
    if (const Status stored = m_file->setDocument(store::doc::config, toml); !stored)
        return stored;
    if (const Status written = writeFileAtomically(m_folder / "run.toml", toml); !written)
        return written;
    if (const Status ledger = makeLedger({}); !ledger)
        return ledger;
    startIntake({});
    return {};
}

Status Controller::makeFolder()
{
    std::error_code error;
    std::filesystem::create_directories(m_config.output, error);
    const auto stem = [](const std::filesystem::path& path) {
        std::string text = path.stem().string();
        if (text.empty())
            text = path.parent_path().stem().string();
        for (char& c : text)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-')
                c = '-';
        return text.substr(0, 40);
    };
    const std::string data =
        m_config.data.files.empty() ? "data" : stem(m_config.data.files.front());
    const std::string id = fmt::format("{}_{}_{}_{}r", utcTime(m_startWallNs, TimeStyle::FileName),
                                       stem(m_config.model.path), data, m_config.cluster.ranks);
    for (int n = 1; n < 1000; ++n) {
        const auto folder = m_config.output / (n == 1 ? id : fmt::format("{}-{}", id, n));
        if (std::filesystem::create_directory(folder, error)) {
            m_folder = folder;
            break;
        }
        if (error)
            break;
    }
    if (m_folder.empty())
        return fail(Error::Kind::Io, "E-RUN-041",
                    fmt::format("no run folder can be made in {}: {}. Nothing was started.",
                                m_config.output.string(),
                                error ? error.message() : "too many runs in one second"));
    std::filesystem::create_directory(m_folder / "log", error);
    m_lock = ::open((m_folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m_lock < 0 || ::flock(m_lock, LOCK_EX | LOCK_NB) != 0)
        return fail(Error::Kind::Io, "E-RUN-042",
                    fmt::format("{} cannot be locked.", m_folder.string()));
    return writeLockOwner(m_lock);
}

Status Controller::prepareResume()
{
    m_folder = m_request.resumeFolder;
    m_lock = ::open((m_folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m_lock < 0 || ::flock(m_lock, LOCK_EX | LOCK_NB) != 0)
        return fail(Error::Kind::Io, "E-RUN-042",
                    fmt::format("{} is in use by another controller. Wait for it, or stop it with "
                                "`muster stop`.",
                                m_folder.string()));
    if (const Status owner = writeLockOwner(m_lock); !owner)
        return owner;
    auto file = store::RunFile::open(m_folder / "run.muster", store::Access::ReadWrite);
    if (!file)
        return fail(file.error());
    m_file = std::move(*file);
    auto stored = m_file->document(store::doc::config);
    if (!stored)
        return fail(stored.error());
    if (!*stored)
        return fail(Error::Kind::Incomplete, "E-RUN-003",
                    fmt::format("{} has no plan: the run ended before it was made. Start it again.",
                                m_folder.string()));
    // Relative paths in it are relative to where the run was started, as they were then.
    const auto reading = config::readToml({"run.toml", **stored, {}});
    auto resolved = reading.result();
    if (!resolved)
        return fail(resolved.error());
    const config::RunConfig before = resolved->config;
    const config::RunConfig& wanted = m_request.resolved.config;
    for (const config::Difference& difference : config::differences(before, wanted)) {
        const auto origin = m_request.resolved.originOf(difference.key);
        if (origin.layer == config::Layer::Flag && difference.changesNumbers())
            return fail(
                Error::Kind::Invalid, "E-RUN-043",
                fmt::format("resuming with another {} ({} instead of {}) would mix results. "
                            "What was gathered is untouched; start a new run instead.",
                            difference.key, difference.second, difference.first));
    }
    // Place and speed may change: take those that were given now.
    m_config = before;
    const auto given = [&](std::string_view key) {
        return m_request.resolved.originOf(key).layer == config::Layer::Flag ||
               m_request.resolved.originOf(key).layer == config::Layer::Environment;
    };
    for (const config::Setting& setting : config::settings())
        if (setting.effect == config::Effect::Speed && given(setting.key))
            setting.set(m_config, setting.get(wanted));
    if (given("model.path"))
        m_config.model.path = wanted.model.path;
    if (given("data.files"))
        m_config.data.files = wanted.data.files;
    if (m_config.cluster.ranks == 0)
        m_config.cluster.ranks = launch::machineTopology().usableCores();
    m_config.inject.clear();
    m_request.resolved = std::move(*resolved);
    m_request.resolved.config = m_config;

    auto choosing = chooseFlavour();

    auto loaded = Job::load(before, *m_file);
    if (!loaded) {
        choosing.wait();
        return fail(loaded.error());
    }
    auto job = Job::prepare(m_config);
    auto chosen = choosing.get();
    if (!job)
        return fail(job.error());
    m_job = std::move(*job);
    if (!chosen)
        return fail(chosen.error());
    m_flavour = std::move(*chosen);
    const Digests& then = (*loaded)->digests();
    const Digests& now = m_job->digests();
    std::vector<std::string> changed;
    if (then.data != now.data)
        changed.push_back(differenceText("the data", then.data.hex(), now.data.hex()));
    if (then.tokenizer != now.tokenizer)
        changed.push_back(
            differenceText("the tokenizer", then.tokenizer.hex(), now.tokenizer.hex()));
    if (then.evaluation != now.evaluation)
        changed.push_back(
            differenceText("the settings", then.evaluation.hex(), now.evaluation.hex()));
    if (changed.empty() && then.plan != now.plan)
        changed.push_back(differenceText("the plan", then.plan.hex(), now.plan.hex()));
    if (!changed.empty())
        return fail(Error::Kind::Invalid, "E-RUN-044",
                    fmt::format("the run cannot be resumed: {}. What was gathered is untouched.",
                                fmt::join(changed, "; ")));
    auto fingerprint = m_file->meta("fingerprint");
    if (!fingerprint)
        return fail(fingerprint.error());
    if (*fingerprint)
        m_fingerprint = fingerprintFromJson(**fingerprint);

    Error ownerError;
    m_owners = ownersOf(m_config, *m_job, m_config.cluster.ranks, ownerError);
    if (!ownerError.code.empty())
        return fail(ownerError);
    auto done = m_file->doneUnits();
    if (!done)
        return fail(done.error());
    if (const Status ledger = makeLedger(*done); !ledger)
        return ledger;
    startIntake(std::move(*done));
    return {};
}

Status Controller::makeLedger(const std::vector<std::uint8_t>& done)
{
    m_ledger = makeLedgerOf(*m_job, *m_job->units(), m_owners);
    if (m_isResume)
        if (const Status recalled = recallViolations(*m_file, *m_ledger); !recalled)
            return recalled;
    if (std::none_of(done.begin(), done.end(), [](std::uint8_t d) { return d != 0; }))
        return {};
    return m_file->forEachOutput([&](const store::OutputRecord& record, wire::OutputBlock&& block) {
        m_ledger->assigned(record.unit, record.rank);
        (void)m_ledger->block(block, record.rank);
        m_job->accept(block);
        return true;
    });
}

void Controller::startIntake(std::vector<std::uint8_t> done)
{
    m_key = wire::makeKey();
    m_runTag = randomTag();
    auto folder = launch::PrivateDirectory::create("ranks.sock");
    if (!folder) {
        finish(folder.error());
        return;
    }
    m_private = std::move(*folder);

    Intake::Options options;
    options.server.socketPath = m_private->path() / "ranks.sock";
    options.server.runTag = m_runTag;
    options.server.key = m_key;
    options.server.expectedRanks = m_config.cluster.ranks;
    options.config = m_config;
    options.rankConfig = rankConfigOf(m_config);
    options.items = m_job->items();
    options.units = m_job->units();
    options.owners = m_owners;
    options.done = std::move(done);
    options.expected = m_fingerprint;
    options.longestItem = m_job->longestItem();
    options.vocabulary = m_job->vocabulary();
    options.ranks = m_config.cluster.ranks;
    options.runTag = m_runTag;
    m_intake = new Intake(std::move(options), *m_file, *m_ledger);
    m_intake->moveToThread(&m_thread);
    connect(m_intake, &Intake::listening, this, &Controller::launchGroup);
    connect(m_intake, &Intake::failed, this, [this](const Error& error) { finish(error); });
    connect(m_intake, &Intake::refused, this, [this](const Error& error) {
        m_fatal = error;
        stopNow("a rank was refused");
    });
    connect(m_intake, &Intake::happened, this, [this](const RunEvent& event) {
        if (event.level == RunEvent::Level::Error && event.rank && m_rankError.empty())
            m_rankError = event.text;
        Q_EMIT happened(event);
    });
    connect(m_intake, &Intake::snapshot, this, &Controller::onSnapshot);
    connect(m_intake, &Intake::committed, this, &Controller::onCommitted);
    connect(m_intake, &Intake::rankReady, this, [this](quint32, const Fingerprint& fingerprint) {
        if (!m_fingerprint)
            m_fingerprint = fingerprint;
    });
    connect(m_intake, &Intake::firstUnit, this, [this] {
        m_firstUnitNs = monotonicNs();
        enter("running");
    });
    connect(m_intake, &Intake::silentRank, this, [this](quint32, qint64 pid, quint64 ticks) {
        launch::killRanks({{pid, ticks}});
    });
    connect(m_intake, &Intake::drained, this, &Controller::onDrained);
    connect(m_intake, &Intake::stopped, this, &Controller::score);
    m_thread.start();
    QMetaObject::invokeMethod(m_intake, &Intake::start);
    if (m_config.cluster.timeoutS > 0.0)
        m_timeout.start(static_cast<int>(m_config.cluster.timeoutS * 1000.0));
}

void Controller::launchGroup()
{
    if (m_isStopping || m_isDrained)
        return;
    if (m_job->units()->size() == 0) {
        QMetaObject::invokeMethod(m_intake, &Intake::giveUp);
        return;
    }
    const std::int64_t now = monotonicNs();
    m_launches.push_back(now);
    if (m_launchNs == 0) {
        m_launchNs = now;
        enter("launching");
    }
    const auto generation = m_generation;
    const auto keyFile = m_private->path() / fmt::format("key-{}", generation);
    if (const Status written = wire::writeKeyFile(keyFile, wire::deriveKey(m_key, 0, generation));
        !written) {
        m_fatal = written.error();
        stopNow("no key file");
        return;
    }
    QMetaObject::invokeMethod(
        m_intake, [intake = m_intake, generation] { intake->beginGeneration(generation); });

    launch::LaunchRequest request;
    request.launcher = m_flavour->launcher;
    request.rankProgram = m_flavour->rank.path;
    request.ranks = m_config.cluster.ranks;
    request.threadsPerRank = m_config.cluster.threadsPerRank;
    request.physicalCores = launch::machineTopology().usableCores();
    request.isRoot = ::geteuid() == 0;
    request.allowRoot = m_config.cluster.allowRoot;
    request.oversubscribe = m_config.cluster.oversubscribe;
    request.temporaryFolder = m_private->path();
    request.launchId = fmt::format("{:016x}-{}", m_runTag, generation);
    request.environment = launch::processEnvironment();
    request.rankArguments = {"--connect",    "unix:" + (m_private->path() / "ranks.sock").string(),
                             "--key-file",   keyFile.string(),
                             "--run-tag",    fmt::format("{:016x}", m_runTag),
                             "--group",      "0",
                             "--generation", std::to_string(generation)};
    auto plan = launch::buildLaunch(request);
    if (!plan) {
        m_fatal = plan.error();
        stopNow("the ranks cannot be launched");
        return;
    }
    // Shared memory of Open MPI (4 and 5) lies in the private folder: when its launcher is killed,
    // nobody else would remove it.
    if (m_flavour->launcher.family == launch::Family::OpenMpi)
        for (const char* name :
             {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"})
            launch::setVariable(plan->environment, name, m_private->path().string());
    if (generation == 0) {
        for (const std::string& notice : plan->notices)
            note(RunEvent::Level::Notice, "", notice);
        for (const launch::LaunchCommand& command : plan->commands)
            note(RunEvent::Level::Information, "", "starting " + launch::commandText(command));
    }
    m_group = std::make_unique<launch::GroupProcess>(
        std::move(*plan), m_folder / "log" / fmt::format("launch-{}.log", generation));
    connect(m_group.get(), &launch::GroupProcess::rankOutput, this,
            [this](const std::string& line) {
                Q_EMIT happened(
                    RunEvent{RunEvent::Level::Information, "", line, std::nullopt, std::nullopt});
            });
    if (m_flavour->launcher.family == launch::Family::Plain)
        connect(m_group.get(), &launch::GroupProcess::processEnded, this,
                [this](std::uint32_t rank, const launch::ProcessExit&) {
                    if (!m_isDrained)
                        QMetaObject::invokeMethod(
                            m_intake, [intake = m_intake, rank] { intake->abandon(rank); });
                });
    connect(m_group.get(), &launch::GroupProcess::finished, this, &Controller::groupEnded);
    m_group->start();
}

void Controller::groupEnded(const launch::ProcessExit& exit)
{
    m_group->disconnect(this);
    m_group->killRanks();
    m_old.push_back(std::move(m_group));
    if (m_isDrained || m_isFinished)
        return;
    QMetaObject::invokeMethod(m_intake, &Intake::endGeneration);
    if (m_isStopping) {
        QMetaObject::invokeMethod(m_intake, &Intake::giveUp);
        return;
    }
    const std::int64_t now = monotonicNs();
    const auto recent = std::count_if(m_launches.begin(), m_launches.end(),
                                      [&](std::int64_t ns) { return now - ns < relaunchWindowNs; });
    const bool neverWorked = m_firstUnitNs == 0;
    // What a rank says about its model it would say again.
    const bool isHopeless = neverWorked && !m_rankError.empty();
    const std::uint32_t launches = isHopeless    ? 0
                                   : neverWorked ? 1
                                                 : m_config.cluster.maxRelaunches;
    const auto limit = static_cast<std::ptrdiff_t>(launches);
    if (!exit.hasStarted || isHopeless || recent > limit) {
        const std::string words = exit.words.empty() ? "the ranks ended" : exit.words;
        if (isHopeless)
            m_fatal = Error{m_rankError.find("E-MODEL-") != std::string::npos ? Error::Kind::Invalid
                                                                              : Error::Kind::Launch,
                            "E-RUN-045", "no rank became ready: " + m_rankError};
        else if (neverWorked)
            m_fatal = Error{Error::Kind::Launch, "E-RUN-045",
                            fmt::format("no rank became ready: {}. The log is {}.", words,
                                        (m_folder / "log").string())};
        else
            note(RunEvent::Level::Error, "E-RUN-046",
                 fmt::format("the ranks were started {} times within 10 minutes and ended each "
                             "time ({}). What was gathered is saved; `muster resume` goes on.",
                             recent, words));
        QMetaObject::invokeMethod(m_intake, &Intake::giveUp);
        return;
    }
    const int waitMs = 1000 * (1 << std::min<int>(static_cast<int>(recent) - 1, 5));
    note(RunEvent::Level::Notice, "",
         fmt::format("{}. The ranks are started again in {} s.",
                     exit.words.empty() ? "the ranks ended" : exit.words, waitMs / 1000));
    ++m_generation;
    QTimer::singleShot(waitMs, this, &Controller::launchGroup);
}

void Controller::drain(const std::string& reason)
{
    if (m_isFinished || m_isStopping)
        return;
    m_isStopping = true;
    if (!m_cut)
        m_cut = Error{Error::Kind::Cancelled, "E-RUN-047",
                      "the run was stopped. What was gathered is saved; `muster resume` goes on "
                      "from there."};
    if (m_intake == nullptr) {
        finish(m_cut);
        return;
    }
    if (!m_group) // between two launches, or before the first
        QMetaObject::invokeMethod(m_intake, &Intake::giveUp);
    else
        QMetaObject::invokeMethod(m_intake, [intake = m_intake, reason] {
            intake->drain(QString::fromStdString(reason));
        });
}

void Controller::stopNow(const std::string& reason)
{
    if (m_isFinished || m_stopNow)
        return;
    m_isStopping = true;
    m_stopNow = true;
    if (!m_cut && !m_fatal)
        m_cut = Error{Error::Kind::Cancelled, "E-RUN-047",
                      "the run was stopped. What was gathered is saved; `muster resume` goes on "
                      "from there."};
    if (m_intake == nullptr) {
        finish(m_fatal ? m_fatal : m_cut);
        return;
    }
    QMetaObject::invokeMethod(
        m_intake, [intake = m_intake, reason] { intake->cancel(QString::fromStdString(reason)); });
    if (!m_group) {
        QMetaObject::invokeMethod(m_intake, &Intake::giveUp);
        return;
    }
    m_rung = 0;
    m_ladder.start(ladderMs);
}

void Controller::stopGroup()
{
    if (!m_group)
        return;
    switch (m_rung++) {
    case 0:
        m_group->terminate();
        break;
    case 1:
        m_group->kill();
        break;
    default: {
        std::vector<launch::ProcessRef> known;
        if (m_lastSnapshot)
            for (const RankView& rank : m_lastSnapshot->ranks)
                if (rank.pid > 0)
                    known.push_back({rank.pid, rank.startTicks});
        m_group->killRanks(known);
        return;
    }
    }
    m_ladder.start(ladderMs);
}

void Controller::onSnapshot(const std::shared_ptr<const Snapshot>& snapshot)
{
    m_lastSnapshot = snapshot;
    auto progress = std::make_shared<Progress>();
    progress->snapshot = snapshot;
    progress->soFar = m_job->soFar();
    progress->samples = m_job->samples();
    progress->samplesDone = m_job->completeSamples();
    const std::int64_t now = monotonicNs();
    m_rate.push_back({now, progress->samplesDone, snapshot->realTokens, snapshot->costDone});
    while (m_rate.size() > 2 && now - m_rate.front().ns > rateWindowNs)
        m_rate.erase(m_rate.begin());
    const RatePoint& then = m_rate.front();
    const double seconds = static_cast<double>(now - then.ns) / 1e9;
    if (seconds > 0.0) {
        progress->samplesPerSecond =
            static_cast<double>(progress->samplesDone - then.samples) / seconds;
        progress->tokensPerSecond =
            static_cast<double>(snapshot->realTokens - then.tokens) / seconds;
    }
    // Work and not samples: longest come first, so samples speed up towards the end.
    const double done = snapshot->costDone - then.cost;
    if (done > 0.0)
        progress->etaSeconds = (1.0 - snapshot->costDone) / done * seconds;
    double elapsed = 0.0;
    for (const RankView& rank : snapshot->ranks) {
        const auto working = static_cast<double>(rank.times.elapsedNs - rank.times.loadNs);
        if (working <= 0.0)
            continue;
        elapsed += working;
        progress->transferShare += static_cast<double>(rank.times.transferNs);
        progress->waitShare += static_cast<double>(rank.times.waitNs);
    }
    if (elapsed > 0.0) {
        progress->transferShare /= elapsed;
        progress->waitShare /= elapsed;
    }
    Q_EMIT progressed(progress);
}

void Controller::onCommitted(const std::shared_ptr<const Blocks>& blocks)
{
    for (const wire::OutputBlock& block : *blocks)
        m_job->accept(block);
}

void Controller::onDrained()
{
    if (m_isDrained)
        return;
    m_isDrained = true;
    m_drainedNs = monotonicNs();
    m_timeout.stop();
    enter("scoring");
    // Ranks end by themselves now; the ladder helps those that do not.
    m_rung = 0;
    if (m_group)
        m_ladder.start(m_stopNow ? 1 : ladderMs);
    QMetaObject::invokeMethod(m_intake, &Intake::stop);
}

void Controller::score()
{
    if (m_isScored || m_isFinished)
        return;
    m_isScored = true;
    if (m_fatal && m_job->completeSamples() == 0) {
        finish(m_fatal);
        return;
    }
    finish(m_fatal ? m_fatal : m_cut);
}

void Controller::finish(std::optional<Error> error)
{
    if (m_isFinished)
        return;
    m_isFinished = true;
    auto outcome = std::make_shared<RunOutcome>();
    outcome->error = error;
    outcome->folder = m_folder;
    const bool canScore = m_isScored && m_file && m_ledger && m_job &&
                          !(error && m_job->completeSamples() == 0 && m_job->samples() > 0);
    if (canScore) {
        ScoreRequest request;
        request.folder = m_folder;
        request.config = m_config;
        request.resolved = m_request.resolved;
        request.programVersion = m_request.programVersion;
        request.fingerprint = m_fingerprint;
        request.launcher = m_flavour ? launcherText(*m_flavour) : std::string();
        request.owners = m_owners;
        request.startWallNs = m_startWallNs;
        request.launchNs = m_launchNs;
        request.firstUnitNs = m_firstUnitNs;
        request.drainedNs = m_drainedNs;
        request.prepareSeconds = static_cast<double>(m_launchNs - m_startNs) / 1e9;
        request.snapshot = m_lastSnapshot;
        request.wasCut = error.has_value();
        auto scored = scoreAndWrite(request, *m_job, *m_ledger, *m_file);
        if (scored) {
            outcome->result = *scored;
            outcome->exitCode = exitCodeOf(**scored, error);
        } else if (!outcome->error) {
            outcome->error = scored.error();
        }
    }
    if (!outcome->result)
        outcome->exitCode = outcome->error ? exitCodeOf(*outcome->error) : 9;
    // The files are written; now wait for what is left of the ranks.
    const auto end = [this, outcome] {
        m_thread.quit();
        m_thread.wait();
        if (m_file)
            (void)m_file->seal();
        m_private.reset();
        Q_EMIT finished(outcome);
    };
    if (m_group && m_group->isRunning()) {
        m_group->disconnect(this);
        connect(m_group.get(), &launch::GroupProcess::finished, this, [this, end](const auto&) {
            m_ladder.stop();
            m_group->killRanks();
            end();
        });
        if (!m_ladder.isActive())
            m_ladder.start(ladderMs);
        return;
    }
    end();
}

} // namespace muster::run
