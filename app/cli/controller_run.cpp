// SPDX-License-Identifier: Apache-2.0
// Joins the commands to the controller of backend/run.
#include "controller_api.h"
#include "interrupts.h"
#include "run_end.h"

#include "align/verdict.h"
#include "base/clock.h"
#include "base/file.h"
#include "launch/command.h"
#include "launch/environment.h"
#include "launch/flavour.h"
#include "launch/process_ref.h"
#include "launch/topology.h"
#include "plan/schedule.h"
#include "report/write_files.h"
#include "run/controller.h"
#include "run/outcome.h"
#include "store/history.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace muster::cli {

namespace {

MetricValue toValue(const report::Metric& metric)
{
    MetricValue value;
    value.key = metric.key;
    value.label = metric.label;
    value.value = metric.value;
    if (metric.low && metric.high)
        value.halfWidth = (*metric.high - *metric.low) / 2.0;
    value.unit = metric.unit;
    value.decimals = metric.decimals;
    value.undefinedReason = metric.reason;
    return value;
}

MetricValue toValue(const run::MetricSoFar& metric)
{
    MetricValue made;
    made.key = metric.key;
    made.label = metric.label;
    made.value = metric.value;
    made.unit = metric.unit;
    made.decimals = metric.decimals;
    if (metric.interval)
        made.halfWidth = (metric.interval->high - metric.interval->low) / 2.0;
    return made;
}

ProgressView toView(const run::Progress& progress, const std::string& stage)
{
    ProgressView view;
    view.stage = stage;
    view.samplesDone = progress.samplesDone;
    view.samples = progress.samples;
    view.samplesPerSecond = progress.samplesPerSecond;
    view.tokensPerSecond = progress.tokensPerSecond;
    view.etaSeconds = progress.etaSeconds;
    if (progress.snapshot)
        view.elapsedSeconds = static_cast<double>(progress.snapshot->elapsedNs) * 1e-9;
    view.transferShare = progress.transferShare;
    view.waitShare = progress.waitShare;
    for (const run::MetricSoFar& metric : progress.soFar)
        view.soFar.push_back(toValue(metric));
    return view;
}

void addResult(RunEnd& end, const report::RunResult& result)
{
    end.verdict = align::word(result.verdict);
    end.samplesDone = result.samplesDone;
    end.samples = result.samples;
    for (const report::Metric& metric : result.metrics) {
        MetricValue value = toValue(metric);
        if (!metric.isHeadline)
            value.label.clear();
        end.metrics.push_back(value);
    }
    end.elapsedSeconds = result.elapsedSeconds;
    end.ranks = result.ranks;
    const report::Shares shares = report::shares(result);
    end.transferShare = shares.transfer;
    end.waitShare = shares.wait;
    for (const report::GateResult& gate : result.gates)
        end.gates.push_back({gate.text, gate.found, gate.isMet});
    if (result.verdict != align::Verdict::Aligned && !result.sentence.empty())
        end.findings.push_back(result.sentence);
}

RunEnd execute(run::RunRequest request, const RunListener& listener,
               std::shared_ptr<const run::RunOutcome>* outcomeOut = nullptr)
{
    request.ownFolder = QCoreApplication::applicationDirPath().toStdString();
    request.programVersion = MUSTER_VERSION;
    RunEnd end;
    std::string stage;
    std::shared_ptr<const run::RunOutcome> outcome;
    QEventLoop loop;
    run::Controller controller(std::move(request));
    QObject::connect(&controller, &run::Controller::stageChanged, &loop, [&](const QString& name) {
        stage = name.toStdString();
        ProgressView view;
        view.stage = stage;
        listener.progressed(view);
    });
    QObject::connect(
        &controller, &run::Controller::happened, &loop, [&](const run::RunEvent& event) {
            static constexpr std::array<const char*, 4> names{"info", "notice", "warning", "error"};
            listener.said(names[static_cast<std::size_t>(event.level) % names.size()], event.code,
                          event.text);
        });
    QObject::connect(&controller, &run::Controller::progressed, &loop,
                     [&](const std::shared_ptr<const run::Progress>& progress) {
                         listener.progressed(toView(*progress, stage));
                     });
    QObject::connect(&controller, &run::Controller::finished, &loop,
                     [&](const std::shared_ptr<const run::RunOutcome>& found) {
                         outcome = found;
                         loop.quit();
                     });
    const Interrupts interrupts([&](int signal, int count) {
        end.signal = signal;
        const std::string reason = signal == SIGINT ? "interrupted (Ctrl+C)" : "terminated";
        if (count == 1) {
            listener.said("notice", "", "stopping: results are kept; once more ends at once");
            controller.drain(reason);
        } else {
            controller.stopNow(reason);
        }
    });
    controller.start();
    if (!outcome)
        loop.exec();
    if (outcomeOut != nullptr)
        *outcomeOut = outcome;
    end.folder = outcome->folder;
    end.error = outcome->error;
    if (outcome->result)
        addResult(end, *outcome->result);
    const bool isWhole = end.verdict == "ALIGNED" && !end.error;
    const bool hasSomething = end.verdict == "INCOMPLETE";
    if (!end.folder.empty() && (isWhole || hasSomething))
        end.nextSteps.push_back(isWhole ? "files: " + end.folder.string()
                                        : "go on with: muster resume " + end.folder.string());
    return end;
}

RunEnd failedEnd(Error error)
{
    RunEnd end;
    end.error = std::move(error);
    return end;
}

Answer table(const std::vector<store::HistoryEntry>& entries)
{
    Answer answer;
    answer.json["runs"] = nlohmann::ordered_json::array();
    for (const store::HistoryEntry& entry : entries) {
        answer.json["runs"].push_back({{"id", entry.id},
                                       {"folder", entry.folder.string()},
                                       {"created", utcTime(entry.createdNs)},
                                       {"name", entry.name},
                                       {"task", entry.task},
                                       {"verdict", entry.verdict},
                                       {"summary", entry.summary},
                                       {"tags", entry.tags}});
        answer.text += fmt::format("{}  {}{}\n", entry.id,
                                   entry.summary.empty() ? entry.verdict : entry.summary,
                                   entry.tags.empty() ? "" : "  [" + entry.tags + "]");
    }
    if (entries.empty())
        answer.text = "no runs yet\n";
    return answer;
}

Result<Answer> history(const HistoryOptions& options)
{
    auto index = store::History::open(store::History::defaultPath());
    if (!index)
        return fail(index.error());
    const auto argument = [&options](std::size_t i) {
        return i < options.arguments.size() ? options.arguments[i] : std::string();
    };
    const auto done = [](std::string text) {
        Answer answer;
        answer.json["done"] = text;
        answer.text = text + "\n";
        return answer;
    };
    if (options.action == "ls") {
        auto entries = index->list();
        if (!entries)
            return fail(entries.error());
        if (entries->size() > options.limit)
            entries->resize(options.limit);
        return table(*entries);
    }
    if (options.action == "rebuild") {
        std::vector<std::filesystem::path> roots(options.arguments.begin(),
                                                 options.arguments.end());
        if (roots.empty())
            roots.emplace_back("runs");
        auto rebuilt = index->rebuild(roots);
        if (!rebuilt)
            return fail(rebuilt.error());
        Answer answer = done(fmt::format("{} runs are in the history", rebuilt->runs));
        for (const std::string& problem : rebuilt->problems)
            answer.text += problem + "\n";
        answer.json["problems"] = rebuilt->problems;
        return answer;
    }
    if (options.action == "gc") {
        auto entries = index->list();
        if (!entries)
            return fail(entries.error());
        std::size_t gone = 0;
        for (const store::HistoryEntry& entry : *entries) {
            std::error_code ignored;
            if (std::filesystem::exists(entry.folder, ignored))
                continue;
            if (auto removed = index->remove(entry.id); !removed)
                return fail(removed.error());
            ++gone;
        }
        return done(fmt::format("{} runs whose folders are gone were taken out", gone));
    }
    auto entry = index->find(argument(0));
    if (!entry)
        return fail(entry.error());
    if (options.action == "tag") {
        std::string tags;
        for (std::size_t i = 1; i < options.arguments.size(); ++i)
            tags += (tags.empty() ? "" : " ") + options.arguments[i];
        if (auto tagged = index->tag(entry->id, tags); !tagged)
            return fail(tagged.error());
        return done(fmt::format("{} is tagged {}", entry->id, tags));
    }
    if (options.action == "rm") {
        if (auto removed = index->remove(entry->id); !removed)
            return fail(removed.error());
        return done(fmt::format("{} is out of the history; its folder {} stays", entry->id,
                                entry->folder.string()));
    }
    return table({*entry});
}

/// Root below which abbreviated run ids are looked for.
std::filesystem::path runsRoot()
{
    const auto settings = config::resolve(config::standardSources());
    return settings.resolved.config.output;
}

/// The folder of a run that a person names: path, id below the output folder, id in the history.
Result<std::filesystem::path> runFolder(const std::string& name)
{
    auto found = run::findRun(name, runsRoot());
    if (found || found.error().kind != Error::Kind::NotFound)
        return found;
    auto index = store::History::open(store::History::defaultPath());
    if (index) {
        if (auto entry = index->find(name))
            return entry->folder;
    }
    return found;
}

Answer resultAnswer(const report::RunResult& result, const std::filesystem::path& folder)
{
    RunEnd end;
    end.folder = folder;
    addResult(end, result);
    Answer answer;
    answer.json = toJson(end);
    answer.text = fmt::format("run        {}\nfolder     {}\nmodel      {}\ndata       {}\n"
                              "started    {}\nfinished   {}\nlauncher   {}\nschedule   {}, gather "
                              "{}, {}\n",
                              result.runId, folder.string(), result.model, result.data,
                              result.startedUtc, result.finishedUtc, result.launcher,
                              result.schedule, result.gather, result.dtype);
    for (const report::Metric& metric : result.metrics) {
        MetricValue value = toValue(metric);
        value.label = metric.key;
        answer.text +=
            fmt::format("  {}  (n = {}, {})\n", metricText(value), metric.n, metric.method);
    }
    for (const report::RankTiming& timing : result.timing) {
        const double elapsed = std::max(1.0, static_cast<double>(timing.elapsedNs)) / 100.0;
        const auto share = [elapsed](std::int64_t ns) { return static_cast<double>(ns) / elapsed; };
        answer.text +=
            fmt::format("  rank {:<3} {:>6} units  {:>9} tokens  compute {:.1f} %  wait "
                        "{:.1f} %  transfer {:.1f} %\n",
                        timing.rank.value, timing.units, timing.realTokens, share(timing.computeNs),
                        share(timing.waitNs), share(timing.transferNs));
    }
    for (const std::string& hint : result.hints)
        answer.text += hint + "\n";
    answer.text += lastLine(end) + "\n";
    return answer;
}

Result<Answer> show(const ShowOptions& options)
{
    auto folder = runFolder(options.run);
    if (!folder)
        return fail(folder.error());
    auto result = run::loadResult(*folder);
    if (!result)
        return fail(result.error());
    if (!options.sample)
        return resultAnswer(**result, *folder);
    std::optional<Answer> found;
    auto visited = (*result)->forEachSample([&](const report::SampleRow& row) {
        if (row.index.value != *options.sample)
            return;
        Answer answer;
        answer.json = {{"index", row.index.value},
                       {"id", std::string(row.id)},
                       {"question", std::string(row.question)},
                       {"context", std::string(row.context)},
                       {"prediction", row.prediction},
                       {"em", jsonNumber(row.em)},
                       {"f1", jsonNumber(row.f1)}};
        answer.text =
            fmt::format("sample     {}  {}\ncontext    {}\nquestion   {}\nprediction {}\n",
                        row.index.value, row.id, row.context, row.question, row.prediction);
        answer.json["targets"] = nlohmann::ordered_json::array();
        for (const std::string_view target : row.targets) {
            answer.json["targets"].push_back(std::string(target));
            answer.text += fmt::format("reference  {}\n", target);
        }
        answer.text += fmt::format("EM {:.0f}  F1 {:.4f}\n", row.em, row.f1);
        for (const report::NBestEntry& entry : row.nBest)
            answer.text += fmt::format("  {:.4f}  {}\n", entry.probability, entry.text);
        found = std::move(answer);
    });
    if (!visited)
        return fail(visited.error());
    if (!found)
        return fail(Error::Kind::Usage, "E-CLI-023",
                    fmt::format("the run has no sample {}", *options.sample));
    return std::move(*found);
}

Result<Answer> verify(const VerifyOptions& options)
{
    if (!options.data.empty())
        return fail(Error::Kind::Invalid, "E-CLI-010",
                    "this build has no part that verifies files of other programs");
    auto folder = runFolder(options.target);
    if (!folder)
        return fail(folder.error());
    auto verified = run::verifyRun(*folder);
    if (!verified)
        return fail(verified.error());
    RunEnd end;
    end.folder = *folder;
    if (verified->result)
        addResult(end, *verified->result);
    for (const std::string& finding : verified->findings)
        end.findings.push_back(finding);
    end.gates.clear();
    if (!verified->findings.empty())
        end.verdict = "MISALIGNED";
    Answer answer;
    answer.exitCode = static_cast<int>(exitCodeOf(end));
    answer.json = toJson(end);
    for (const std::string& finding : end.findings)
        answer.text += finding + "\n";
    answer.text += lastLine(end) + "\n";
    return answer;
}

/// Whether a controller holds the run: its lock cannot be taken.
bool isLive(const std::filesystem::path& folder)
{
    const int lock = ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC);
    if (lock < 0)
        return false;
    const bool isFree = ::flock(lock, LOCK_SH | LOCK_NB) == 0;
    ::close(lock);
    return !isFree;
}

/// SIGTERM lets the run drain; a second one after the grace ends its ranks at once.
Result<Answer> stop(const StopOptions& options)
{
    auto folder = runFolder(options.run);
    if (!folder)
        return fail(folder.error());
    if (!isLive(*folder))
        return fail(Error::Kind::Invalid, "E-CLI-024",
                    fmt::format("{} is not running", folder->string()));
    auto text = readFile(*folder / "lock", 4096);
    if (!text)
        return fail(text.error());
    char* end = nullptr;
    const auto pid = static_cast<pid_t>(std::strtol(text->c_str(), &end, 10));
    const std::uint64_t ticks = std::strtoull(end, nullptr, 10);
    const auto owner = pid > 1 ? launch::processRef(pid) : std::nullopt;
    if (!owner || owner->startTicks != ticks)
        return fail(
            Error::Kind::Invalid, "E-CLI-024",
            fmt::format("{} is held by a process that is not on this machine", folder->string()));
    using Clock = std::chrono::steady_clock;
    constexpr auto step = std::chrono::milliseconds(100);
    constexpr auto afterSecond = std::chrono::seconds(15);
    const auto waitUntil = [&](Clock::time_point limit) {
        while (isLive(*folder) && Clock::now() < limit)
            std::this_thread::sleep_for(step);
        return !isLive(*folder);
    };
    ::kill(pid, SIGTERM);
    const auto grace =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.graceS));
    bool isEnded = waitUntil(Clock::now() + grace);
    if (!isEnded) {
        ::kill(pid, SIGTERM);
        isEnded = waitUntil(Clock::now() + afterSecond);
    }
    if (!isEnded)
        return fail(Error::Kind::Timeout, "E-CLI-025",
                    fmt::format("{} does not end; its process is {}", folder->string(), pid));
    Answer answer;
    answer.json = {{"stopped", folder->string()}};
    answer.text = fmt::format("stopped; results are kept: muster resume {}\n", folder->string());
    return answer;
}

Result<Answer> exported(const ExportOptions& options)
{
    auto folder = runFolder(options.run);
    if (!folder)
        return fail(folder.error());
    auto result = run::loadResult(*folder);
    if (!result)
        return fail(result.error());
    const std::filesystem::path target = options.output.value_or(*folder);
    std::error_code error;
    std::filesystem::create_directories(target, error);
    if (error)
        return fail(Error::Kind::Io, "E-CLI-026",
                    fmt::format("{} cannot be made: {}", target.string(), error.message()));
    static const std::array<std::pair<std::string_view, const char*>, 7> names{
        {{"json", "results.json"},
         {"jsonl", "samples.jsonl"},
         {"csv", "samples.csv"},
         {"predictions", "predictions.json"},
         {"proof", "proof.json"},
         {"lm-eval", "results.json"},
         {"chrome-trace", "trace.json"}}};
    Answer answer;
    answer.json["files"] = nlohmann::ordered_json::array();
    const auto written = [&](const std::string& name) {
        const std::string path = (target / name).string();
        answer.json["files"].push_back(path);
        answer.text += path + "\n";
    };
    std::vector<std::string> formats = options.formats;
    if (formats.empty())
        formats.emplace_back("all");
    for (const std::string& format : formats) {
        if (format == "all") {
            if (auto done = report::writeRunFiles(target, **result); !done)
                return fail(done.error());
            written("");
            continue;
        }
        const auto* name = std::find_if(names.begin(), names.end(),
                                        [&format](const auto& one) { return one.first == format; });
        if (name == names.end())
            return fail(Error::Kind::Usage, "E-CLI-027",
                        fmt::format("there is no format '{}'", format));
        if (auto done = report::writeOneFile(target / name->second, name->second, **result); !done)
            return fail(done.error());
        written(name->second);
    }
    return answer;
}

/// The folder with the bundled model and data: installed, or in the tree the program was built of.
std::optional<std::filesystem::path> demoFolder()
{
    const std::filesystem::path own = QCoreApplication::applicationDirPath().toStdString();
    for (const std::filesystem::path& folder :
         {own / ".." / "share" / "muster" / "demo", std::filesystem::path(MUSTER_DEMO_SOURCE)}) {
        std::error_code ignored;
        if (std::filesystem::exists(folder / "xquad.en.json", ignored))
            return folder.lexically_normal();
    }
    return std::nullopt;
}

Result<config::Resolved> demo(const DemoOptions& options)
{
    const auto folder = demoFolder();
    if (!folder)
        return fail(Error::Kind::NotFound, "E-CLI-028",
                    "the bundled model and data are not installed; expected in share/muster/demo");
    config::Sources sources = config::standardSources();
    sources.projectFile.reset();
    static constexpr const char* questions = "name = \"demo\"\n"
                                             "[model]\npath = \"minilm-qa\"\n"
                                             "[data]\nfiles = [\"xquad.en.json\"]\n";
    // The preparation of the model's reference perplexity, 4.530052.
    static constexpr const char* stories =
        "name = \"demo lm\"\ntask = \"lm\"\n"
        "[model]\npath = \"stories260K-hf\"\n"
        "[data]\nfiles = [\"tinystories-200.txt\"]\nlimit = 200\n"
        "[lm]\nprotocol = \"stream\"\nmax_length = 512\ndocuments = \"separator\"\n"
        "separator = \"<|endoftext|>\"\nstrip = true\ndrop_unfinished = true\n";
    sources.givenText =
        config::TomlText{"demo", options.name == "lm" ? stories : questions, *folder};
    sources.flags = options.flags;
    if (!options.inject.empty())
        sources.flags.push_back({"--inject", "inject", options.inject});
    return config::resolve(sources).result();
}

/// A folder that is removed with its content when the measurement is over.
class ScratchFolder final {
public:
    ScratchFolder()
    {
        std::string name =
            (std::filesystem::temp_directory_path() / "muster-bench-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr)
            m_path = name;
    }
    ~ScratchFolder()
    {
        std::error_code ignored;
        if (!m_path.empty())
            std::filesystem::remove_all(m_path, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return m_path; }

private:
    std::filesystem::path m_path;
};

/// Runs the model on the data (those of the demo when none are given) once in each precision, and
/// prints speed beside the metrics.
Result<Answer> bench(const BenchOptions& options, const config::Resolved& given)
{
    static constexpr std::array<const char*, 3> names{"qa", "lm", "classification"};
    if (std::find(names.begin(), names.end(), options.name) == names.end())
        return fail(Error::Kind::Usage, "E-CLI-029",
                    fmt::format("there is no measurement '{}'; there are: {}", options.name,
                                fmt::join(names, ", ")));
    config::Resolved base = given;
    if (base.config.model.path.empty() || base.config.data.files.empty()) {
        if (options.name == "classification")
            return fail(Error::Kind::Usage, "E-CLI-032",
                        "no classifier is bundled; give --model and --data");
        DemoOptions ofDemo;
        ofDemo.name = options.name;
        ofDemo.flags = options.flags;
        auto bundled = demo(ofDemo);
        if (!bundled)
            return fail(bundled.error());
        base = std::move(*bundled);
    } else {
        base.config.task = options.name == "lm"   ? config::Task::Lm
                           : options.name == "qa" ? config::Task::Qa
                                                  : config::Task::Classification;
    }
    std::vector<config::Dtype> dtypes{config::Dtype::Float32, config::Dtype::Bfloat16};
    if (options.name == "lm")
        dtypes.insert(dtypes.end(), {config::Dtype::Int8, config::Dtype::Int4});
    const ScratchFolder scratch;
    if (scratch.path().empty())
        return fail(Error::Kind::Io, "E-CLI-030", "no temporary folder can be made");
    base.config.output = scratch.path();
    Answer answer;
    answer.text = fmt::format("{:<10} {:>9} {:>8} {:>10} {:>10} {:>8} {:>7} {:>10}  metrics\n",
                              "dtype", "samples", "loop s", "samples/s", "tokens/s", "start s",
                              "wait %", "transfer %");
    answer.json["runs"] = nlohmann::ordered_json::array();
    for (const config::Dtype dtype : dtypes) {
        run::RunRequest request;
        request.resolved = base;
        request.resolved.config.model.dtype = dtype;
        RunListener silent;
        silent.progressed = [](const ProgressView&) {};
        silent.said = [](const std::string&, const std::string&, const std::string&) {};
        std::shared_ptr<const run::RunOutcome> outcome;
        const RunEnd end = execute(std::move(request), silent, &outcome);
        if (!outcome->result || end.error)
            return fail(end.error.value_or(
                Error{Error::Kind::Internal, "E-CLI-031", "the measured run gave no result"}));
        const report::RunResult& result = *outcome->result;
        const report::Shares shares = report::shares(result);
        std::uint64_t tokens = 0;
        for (const report::RankTiming& rank : result.timing)
            tokens += rank.realTokens;
        const double loop = result.sinceFirstUnitSeconds;
        const auto rate = [loop](std::uint64_t count) {
            return loop > 0.0 ? static_cast<double>(count) / loop : 0.0;
        };
        std::string shown;
        nlohmann::ordered_json metrics;
        for (const report::Metric& one : result.metrics) {
            if (!one.isHeadline || !one.value)
                continue;
            shown += "  " + metricText(toValue(one));
            metrics[one.key] = *one.value;
        }
        answer.text += fmt::format(
            "{:<10} {:>9} {:>8.2f} {:>10.2f} {:>10.0f} {:>8.2f} {:>7.2f} {:>10.2f}{}\n",
            result.dtype, result.samplesDone, loop, rate(result.samplesDone), rate(tokens),
            result.startUpSeconds, 100.0 * shares.wait, 100.0 * shares.transfer, shown);
        answer.json["runs"].push_back({{"dtype", result.dtype},
                                       {"verdict", align::word(result.verdict)},
                                       {"samples", result.samplesDone},
                                       {"ranks", result.ranks},
                                       {"loop_s", loop},
                                       {"samples_per_s", rate(result.samplesDone)},
                                       {"tokens", tokens},
                                       {"tokens_per_s", rate(tokens)},
                                       {"metrics", metrics},
                                       {"prepare_s", result.prepareSeconds},
                                       {"start_up_s", result.startUpSeconds},
                                       {"wait_share", shares.wait},
                                       {"transfer_share", shares.transfer},
                                       {"kernels", result.kernels}});
        if (dtype == dtypes.back())
            answer.text += fmt::format("{} ranks, {} threads each, {}\n{}\n", result.ranks,
                                       result.threadsPerRank, result.launcher, result.kernels);
    }
    return answer;
}

/// What a run would do: data, windows, units, shares, digests and the command of the launch.
Result<Answer> planned(const config::Resolved& resolved)
{
    const config::RunConfig& config = resolved.config;
    auto job = run::Job::prepare(config);
    if (!job)
        return fail(job.error());
    const std::uint32_t cores = launch::machineTopology().usableCores();
    const std::uint32_t ranks = config.cluster.ranks == 0 ? cores : config.cluster.ranks;
    const plan::UnitTable& units = *(*job)->units();
    std::uint64_t tokens = 0;
    for (std::uint64_t u = 0; u < units.size(); ++u)
        tokens += units.tokens(UnitId(u));
    std::vector<RankId> owners;
    if (config.plan.schedule == config::Schedule::Block)
        owners = plan::share::block(units.size(), ranks);
    else if (config.plan.schedule == config::Schedule::Stride)
        owners = plan::share::stride(units.size(), ranks);
    else if (config.plan.schedule == config::Schedule::Balanced)
        owners = plan::share::balanced(units.costs(), ranks);

    Answer answer;
    const run::Digests& digests = (*job)->digests();
    answer.json = {{"samples", (*job)->samples()},
                   {"items", (*job)->itemCount()},
                   {"units", units.size()},
                   {"tokens", tokens},
                   {"ranks", ranks},
                   {"digests",
                    {{"data", digests.data.hex()},
                     {"tokenizer", digests.tokenizer.hex()},
                     {"evaluation", digests.evaluation.hex()},
                     {"plan", digests.plan.hex()}}}};
    answer.text = fmt::format(
        "samples    {}\nitems      {}\nunits      {}\ntokens     {}\nranks      "
        "{}\ndata       {}\ntokenizer  {}\nevaluation {}\nplan       {}\n",
        (*job)->samples(), (*job)->itemCount(), units.size(), tokens, ranks, digests.data.hex(),
        digests.tokenizer.hex(), digests.evaluation.hex(), digests.plan.hex());
    if (!owners.empty()) {
        const double imbalance = plan::imbalance(plan::workOf(owners, units.costs(), ranks));
        answer.json["predicted_imbalance"] = jsonNumber(imbalance);
        answer.text +=
            fmt::format("imbalance  {:.3f} predicted (slowest rank over mean)\n", imbalance);
    }
    if (config.plan.schedule == config::Schedule::Compat) {
        const auto lists = plan::compatLists(config.plan.compat, (*job)->samples(), ranks,
                                             config.plan.compatBatch);
        if (!lists)
            return fail(lists.error());
        std::uint64_t pads = 0;
        std::size_t longest = 0;
        std::uint64_t rows = 0;
        answer.json["compat"]["lists"] = nlohmann::ordered_json::array();
        answer.text += fmt::format("lists      {}\n", config.plan.compat);
        for (std::uint32_t r = 0; r < ranks; ++r) {
            const auto& list = (*lists)[r];
            std::uint64_t own = 0;
            for (const plan::ListEntry& entry : list)
                own += entry.pad ? 1U : 0U;
            pads += own;
            rows += list.size();
            longest = std::max(longest, list.size());
            answer.json["compat"]["lists"].push_back({{"rows", list.size()}, {"pads", own}});
            if (r < 64)
                answer.text += fmt::format("  rank {:<4} {} rows, {} of them padding copies\n", r,
                                           list.size(), own);
        }
        const std::size_t lost = plan::lostSamples(*lists, (*job)->samples()).size();
        const double mean = static_cast<double>(rows) / static_cast<double>(ranks);
        const double imbalance = mean > 0.0 ? static_cast<double>(longest) / mean : 1.0;
        answer.json["compat"]["pads"] = pads;
        answer.json["compat"]["lost"] = lost;
        answer.json["compat"]["imbalance"] = jsonNumber(imbalance);
        answer.text += fmt::format("padding    {} flagged copies, {} samples in no list, imbalance "
                                   "{:.3f} by rows\n",
                                   pads, lost, imbalance);
    }
    const char* searchPath = std::getenv("PATH");
    auto flavour = launch::chooseFlavour({config.cluster.launcher, config.cluster.launcherPath,
                                          config.cluster.rankProgram,
                                          QCoreApplication::applicationDirPath().toStdString(),
                                          searchPath == nullptr ? "" : searchPath});
    if (!flavour)
        return fail(flavour.error());
    launch::LaunchRequest request;
    request.launcher = flavour->launcher;
    request.rankProgram = flavour->rank.path;
    request.ranks = ranks;
    request.threadsPerRank = config.cluster.threadsPerRank;
    request.physicalCores = cores;
    request.isRoot = ::geteuid() == 0;
    request.allowRoot = config.cluster.allowRoot;
    request.oversubscribe = config.cluster.oversubscribe;
    request.environment = launch::processEnvironment();
    auto launched = launch::buildLaunch(request);
    if (!launched)
        return fail(launched.error());
    answer.json["commands"] = nlohmann::ordered_json::array();
    for (const launch::LaunchCommand& command : launched->commands) {
        answer.json["commands"].push_back(launch::commandText(command));
        answer.text += fmt::format("command    {}\n", launch::commandText(command));
    }
    answer.json["notices"] = launched->notices;
    for (const std::string& notice : launched->notices)
        answer.text += notice + "\n";
    return answer;
}

} // namespace

ControllerApi controllerApi()
{
    ControllerApi api;
    api.run = [](const config::Resolved& resolved, const RunListener& listener) {
        run::RunRequest request;
        request.resolved = resolved;
        return execute(std::move(request), listener);
    };
    api.resume = [](const ResumeOptions& options, const config::Resolved& settings,
                    const RunListener& listener) {
        auto folder = runFolder(options.run);
        if (!folder)
            return failedEnd(folder.error());
        run::RunRequest request;
        request.resolved = settings;
        request.resumeFolder = *folder;
        return execute(std::move(request), listener);
    };
    api.history = history;
    api.show = show;
    api.plan = planned;
    api.verify = verify;
    api.stop = stop;
    api.exported = exported;
    api.demo = demo;
    api.bench = bench;
    addComparisons(api);
    return api;
}

} // namespace muster::cli
