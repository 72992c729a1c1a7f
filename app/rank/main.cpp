// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"
#include "connection.h"
#include "process.h"

#include "base/clock.h"
#include "base/hash.h"
#include "comm/mpi_communicator.h"
#include "eval/inject.h"
#include "eval/loop.h"
#include "eval/progress.h"
#include "eval/rounds.h"
#include "eval/stream_sink.h"
#include "model/model.h"
#include "wire/handshake.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <unistd.h>

using namespace muster;

namespace {

constexpr int exitFailed = 1;
constexpr int exitUsage = 2;
constexpr int exitInvalid = 3;
constexpr int exitRefused = 4;
constexpr std::chrono::milliseconds lastWords{500};

/// After anything that went wrong: without finalising MPI, which would wait for lost partners.
[[noreturn]] void leave(int code)
{
    std::fflush(nullptr);
    ::_exit(code);
}

[[noreturn]] void leave(rank::Connection& line, const Error& error)
{
    const bool isEnd = error.kind == Error::Kind::Cancelled;
    line.log(isEnd ? wire::LogLevel::Info : wire::LogLevel::Error, error.text());
    line.flush(lastWords);
    if (isEnd)
        leave(0);
    leave(error.kind == Error::Kind::Launch                                           ? exitRefused
          : error.kind == Error::Kind::Invalid || error.kind == Error::Kind::NotFound ? exitInvalid
                                                                                      : exitFailed);
}

wire::Hello makeHello(const rank::Arguments& arguments, const comm::Communicator* group)
{
    const rank::LauncherPlace launcher = rank::launcherPlace();
    const std::vector<std::uint32_t> cpus = rank::allowedCpus();
    wire::Hello hello;
    hello.version = MUSTER_VERSION;
    if (group != nullptr) {
        hello.rank = group->rank();
        hello.world = group->size();
        hello.localRank = group->localRank();
        hello.localSize = group->localSize();
        hello.mpiLibrary = group->library();
        hello.launcherFamily = launcher.family;
        hello.launcherRank = launcher.rank;
        hello.launcherWorld = launcher.world;
    } else {
        hello.rank = arguments.plain->rank;
        hello.world = arguments.plain->world;
        hello.localRank = hello.rank;
        hello.localSize = hello.world;
        hello.mpiLibrary = "none";
    }
    hello.group = arguments.group;
    hello.generation = arguments.generation;
    hello.node = rank::hostName();
    hello.pid = ::getpid();
    hello.startTimeTicks = rank::startTimeTicks();
    const auto digest = hashFile("/proc/self/exe");
    hello.binaryDigest = digest.value_or(Hash128{}).hex();
    hello.architecture = rank::machineName();
    hello.affinity = rank::rangesText(cpus);
    hello.cpus = static_cast<std::uint32_t>(cpus.size());
    hello.cores = static_cast<std::uint32_t>(rank::physicalCores(cpus).size());
    return hello;
}

void pin(rank::Connection& line, const wire::RankConfig& config, const wire::Hello& hello)
{
    if (config.pin == wire::PinMode::Off)
        return;
    const auto cores = rank::physicalCores(rank::allowedCpus());
    // A launcher that bound the ranks already leaves fewer cores than ranks: nothing to do then.
    const auto mine = rank::coresOf(cores, hello.localRank, hello.localSize, config.threads);
    if (mine && !rank::bindTo(*mine))
        line.log(wire::LogLevel::Warning, "could not be bound to CPUs " + rank::rangesText(*mine));
    if (cores.size() < config.threads)
        line.log(wire::LogLevel::Warning,
                 "has " + std::to_string(config.threads) + " threads and may use only " +
                     std::to_string(cores.size()) +
                     " cores; set threads_per_rank lower or start the launcher without binding");
}

model::ModelOptions modelOptions(const wire::RankConfig& config, const wire::Hello& hello)
{
    model::ModelOptions options;
    options.path = config.modelPath;
    options.kind = config.kind;
    using enum model::Precision;
    static constexpr std::array<std::pair<std::string_view, model::Precision>, 6> precisions{
        {{"float32", Float32},
         {"bfloat16", Bfloat16},
         {"float16", Float16},
         {"int8", Int8},
         {"int4", Int4},
         {"int8-dynamic", Int8Dynamic}}};
    for (const auto& [name, precision] : precisions)
        if (config.precision == name)
            options.precision = precision;
    options.groupSize = config.groupSize;
    options.tokenLosses = config.tokenLosses;
    options.threads = config.threads;
    options.nBest = config.nBest;
    options.ties = config.ties == "bert" ? model::Ties::Bert : model::Ties::Hf;
    if (!config.sharedWeightsKey.empty()) {
        options.shared.localRank = hello.localRank;
        options.shared.localRanks = hello.localSize;
        options.shared.key = config.sharedWeightsKey;
    }
    return options;
}

wire::Ready makeReady(const model::ModelIdentity& identity, const wire::RankConfig& config,
                      std::int64_t loadNs)
{
    const std::vector<std::uint32_t> cpus = rank::allowedCpus();
    wire::Ready ready;
    ready.modelDigest = identity.digest.hex();
    ready.modelArchitecture = identity.architecture;
    ready.kernels = identity.kernels;
    ready.parameters = identity.parameters;
    ready.weightBytes = identity.weightBytes;
    ready.maxPositions = identity.maxPositions;
    ready.vocabulary = identity.vocabulary;
    ready.threads = config.threads;
    ready.loadMs = static_cast<double>(loadNs) / 1e6;
    ready.affinity = rank::rangesText(cpus);
    ready.cpus = static_cast<std::uint32_t>(cpus.size());
    return ready;
}

/// The whole life of a rank after MPI has started (or not). Returns only at a normal end.
void work(const rank::Arguments& arguments, const wire::Key& key, pid_t parent,
          comm::Communicator* group, eval::Progress& progress)
{
    const wire::Hello hello = makeHello(arguments, group);
    const RankId self(hello.rank);
    rank::Connection line({.socket = arguments.socket,
                           .key = key,
                           .runTag = arguments.runTag,
                           .claim = {arguments.group, arguments.generation, hello.rank},
                           .parent = parent},
                          hello, progress);
    line.start();
    const auto config = line.waitForConfig();
    if (!config)
        leave(line, config.error());
    auto inject = eval::Inject::parse(config->inject, self, hello.world, hello.generation);
    if (!inject)
        leave(line, inject.error());
    if (config->gather == wire::GatherMode::Nccl)
        leave(line, Error{Error::Kind::Invalid, "E-RANK-005",
                          "gather = \"nccl\" is not built into this program"});
    pin(line, *config, hello);

    progress.enter(wire::RankPhase::Loading, eval::TimeKind::Load);
    const std::int64_t loadBegan = monotonicNs();
    auto loaded = model::loadModel(modelOptions(*config, hello));
    if (!loaded)
        leave(line, loaded.error());
    model::Model& model = **loaded;
    progress.enter(wire::RankPhase::Waiting, eval::TimeKind::Other);
    line.ready(makeReady(model.identity(), *config, monotonicNs() - loadBegan), *inject);

    const std::unique_ptr<comm::Communicator> alone = comm::makeSelfCommunicator();
    comm::Communicator& ranks = group != nullptr ? *group : *alone;
    std::unique_ptr<eval::RoundSink> rounds;
    std::unique_ptr<eval::StreamSink> stream;
    if (config->gather == wire::GatherMode::Collective)
        rounds = std::make_unique<eval::RoundSink>(
            ranks, line, progress,
            eval::RoundOptions{config->roundUnits, std::chrono::milliseconds(config->roundMs)});
    else
        stream = std::make_unique<eval::StreamSink>(
            line, progress,
            eval::FlushPolicy(config->flushBytes, std::int64_t{config->flushMs} * 1'000'000));
    eval::OutputSink& sink =
        rounds ? static_cast<eval::OutputSink&>(*rounds) : static_cast<eval::OutputSink&>(*stream);

    eval::Loop loop(self, model, line, sink, progress, *inject);
    Status done = loop.run(line.stopToken());
    if (done) {
        progress.enter(wire::RankPhase::Finished, eval::TimeKind::Other);
        done = line.waitForAcks();
    }
    if (!done)
        leave(line, done.error());

    wire::Stats stats;
    stats.own = loop.sums();
    stats.rounds = rounds ? rounds->rounds() : 0;
    stats.bytesOut = line.bytesOut();
    if (group != nullptr && group->size() > 1) {
        progress.enter(wire::RankPhase::Gathering, eval::TimeKind::Other);
        const comm::CommTimes before = group->times();
        const auto sums = eval::reduceSums(*group, loop.sums());
        if (!sums)
            leave(line, sums.error());
        progress.move(eval::TimeKind::Other, eval::TimeKind::Wait,
                      group->times().waitNs - before.waitNs);
        progress.move(eval::TimeKind::Other, eval::TimeKind::Transfer,
                      group->times().transferNs - before.transferNs);
        if (hello.rank == 0)
            stats.group = *sums;
        progress.enter(wire::RankPhase::Finished, eval::TimeKind::Other);
    }
    stats.times = progress.snapshot().times;
    if (Status ended = line.finish(stats); !ended)
        leave(line, ended.error());
}

} // namespace

int main(int argc, char** argv)
{
    const auto arguments =
        rank::parseArguments(std::span<char* const>(argv, static_cast<std::size_t>(argc)));
    if (!arguments) {
        rank::say(0, arguments.error().text());
        return exitUsage;
    }
    switch (arguments->action) {
    case rank::Arguments::Action::Version:
        std::printf("muster-rank %s\n", MUSTER_VERSION);
        return 0;
    case rank::Arguments::Action::MpiLibrary:
        std::printf("%s\n", comm::mpiLibraryVersion().c_str());
        return 0;
    case rank::Arguments::Action::Help:
        std::fputs(rank::usage().c_str(), stdout);
        return 0;
    case rank::Arguments::Action::Work:
        break;
    }

    const std::optional<pid_t> parent = rank::dieWithParent();
    if (!parent)
        return exitFailed;
    rank::keepLargeBlocks();
    // The controller decides about the end of a run; Ctrl+C in its terminal reaches this process
    // too.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);

    const auto key = wire::readKeyFile(arguments->keyFile);
    if (!key) {
        rank::say(0, key.error().text());
        return exitInvalid;
    }
    eval::Progress progress;
    progress.addEarlier(rank::ageNs());
    std::unique_ptr<comm::Communicator> group;
    if (!arguments->plain) {
        auto made = comm::makeMpiCommunicator(&argc, &argv);
        if (!made) {
            rank::say(0, made.error().text());
            return exitRefused;
        }
        group = *std::move(made);
    }
    work(*arguments, *key, *parent, group.get(), progress);
    return 0;
}
