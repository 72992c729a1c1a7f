// SPDX-License-Identifier: Apache-2.0
#include "launch/group_process.h"

#include "launch/line_splitter.h"

#include <QFile>
#include <QProcess>
#include <QProcessEnvironment>
#include <QString>
#include <QStringList>

#include <cstring>
#include <optional>

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#if __has_include(<linux/close_range.h>)
#include <linux/close_range.h>
#endif

namespace muster::launch {

namespace {

QString toQString(const std::string& text)
{
    return QString::fromStdString(text);
}

std::string signalText(int signal)
{
    const char* name = ::sigabbrev_np(signal);
    std::string text = "signal " + std::to_string(signal);
    if (name != nullptr) {
        text += std::string(" (SIG") + name + ")";
    }
    if (signal == SIGKILL) {
        text += ", which is also how the kernel ends a process when memory runs out";
    }
    return text;
}

/// Runs between fork and exec: only calls that are safe there.
void prepareChild(pid_t parent, int deathSignal)
{
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, deathSignal);
    if (::getppid() != parent) {
        ::_exit(127);
    }
    for (const int signal :
         {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2}) {
        ::signal(signal, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
#ifdef CLOSE_RANGE_CLOEXEC
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
#endif
}

} // namespace

std::string describeExit(Family family, int exitCode, int signal)
{
    const bool isPlain = family == Family::Plain;
    const std::string who = isPlain ? "the rank" : "the launcher";
    if (signal != 0) {
        return who + " was ended by " + signalText(signal);
    }
    if (exitCode == 0) {
        return who + " ended with status 0";
    }
    const std::string status = who + " ended with status " + std::to_string(exitCode);
    if (family == Family::OpenMpi || family == Family::Slurm) {
        if (exitCode > 128 && exitCode <= 128 + 64 && ::sigabbrev_np(exitCode - 128) != nullptr) {
            return status + ": a rank was ended by " + signalText(exitCode - 128);
        }
        if (exitCode == 205 || exitCode == 255) {
            return status + ": a host or a daemon of the launcher was lost";
        }
    }
    if (family == Family::Mpich) {
        switch (exitCode) {
        case SIGKILL:
            return status + ": a rank left without finishing MPI or was ended by " +
                   signalText(SIGKILL);
        case SIGABRT:
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE:
        case SIGTERM:
            return status + ": perhaps a rank was ended by " + signalText(exitCode);
        default:
            break;
        }
    }
    return status;
}

class GroupProcess::Private {
public:
    struct Child {
        std::unique_ptr<QProcess> process;
        std::unique_ptr<LineSplitter> output;
        std::unique_ptr<LineSplitter> errors;
        std::optional<ProcessExit> exit;
    };

    GroupProcess* q = nullptr;
    LaunchPlan plan;
    std::filesystem::path logFile;
    QFile log;
    std::vector<Child> children;
    std::size_t startedCount = 0;
    bool isStarted = false;
    bool isTerminated = false;
    bool isFinished = false;

    void read(Child& child, QProcess::ProcessChannel channel)
    {
        child.process->setReadChannel(channel);
        LineSplitter& splitter =
            channel == QProcess::StandardOutput ? *child.output : *child.errors;
        const QByteArray bytes = child.process->readAll();
        if (log.isOpen()) {
            log.write(bytes);
        }
        splitter.feed({bytes.constData(), static_cast<std::size_t>(bytes.size())});
    }

    void ended(std::size_t index, ProcessExit exit)
    {
        Child& child = children[index];
        if (child.exit) {
            return;
        }
        if (exit.hasStarted) {
            read(child, QProcess::StandardOutput);
            read(child, QProcess::StandardError);
        }
        child.output->finish();
        child.errors->finish();
        if (log.isOpen()) {
            log.flush();
        }
        child.exit = exit;
        Q_EMIT q->processEnded(static_cast<std::uint32_t>(index), exit);

        const ProcessExit* worst = nullptr;
        for (const Child& other : children) {
            if (!other.exit) {
                return;
            }
            const auto isBad = [](const ProcessExit& end) {
                return !end.hasStarted || end.signal != 0 || end.exitCode != 0;
            };
            if (worst == nullptr || (!isBad(*worst) && isBad(*other.exit))) {
                worst = &*other.exit;
            }
        }
        if (!isFinished && worst != nullptr) {
            isFinished = true;
            const ProcessExit last = *worst;
            Q_EMIT q->finished(last);
        }
    }
};

GroupProcess::GroupProcess(LaunchPlan plan, std::filesystem::path logFile, QObject* parent)
    : QObject(parent), d(std::make_unique<Private>())
{
    d->q = this;
    d->plan = std::move(plan);
    d->logFile = std::move(logFile);
}

GroupProcess::~GroupProcess()
{
    for (Private::Child& child : d->children) {
        child.process->disconnect(this);
        if (child.process->state() != QProcess::NotRunning) {
            child.process->kill();
            child.process->waitForFinished(3000);
        }
    }
    if (d->isStarted) {
        killRanks();
    }
}

void GroupProcess::start()
{
    if (d->isStarted) {
        return;
    }
    d->isStarted = true;
    if (!d->logFile.empty()) {
        d->log.setFileName(toQString(d->logFile.string()));
        d->log.open(QIODevice::WriteOnly | QIODevice::Append);
    }

    QProcessEnvironment environment;
    for (const std::string& entry : d->plan.environment) {
        const std::size_t at = entry.find('=');
        environment.insert(toQString(entry.substr(0, at)), toQString(entry.substr(at + 1)));
    }
    const pid_t parent = ::getpid();
    const int deathSignal = d->plan.family == Family::Plain ? SIGKILL : SIGTERM;
    const auto emitLine = [this](const std::string& line) { Q_EMIT rankOutput(line); };

    d->children.resize(d->plan.commands.size());
    for (Private::Child& child : d->children) {
        child.process = std::make_unique<QProcess>();
        child.output = std::make_unique<LineSplitter>(emitLine);
        child.errors = std::make_unique<LineSplitter>(emitLine);
    }
    for (std::size_t index = 0; index < d->children.size(); ++index) {
        const LaunchCommand& command = d->plan.commands[index];
        QProcess* process = d->children[index].process.get();
        QStringList arguments;
        for (const std::string& argument : command.arguments) {
            arguments.append(toQString(argument));
        }
        process->setProgram(toQString(command.program.string()));
        process->setArguments(arguments);
        process->setProcessEnvironment(environment);
        process->setStandardInputFile(QProcess::nullDevice());
        process->setChildProcessModifier(
            [parent, deathSignal] { prepareChild(parent, deathSignal); });

        connect(process, &QProcess::readyReadStandardOutput, this,
                [this, index] { d->read(d->children[index], QProcess::StandardOutput); });
        connect(process, &QProcess::readyReadStandardError, this,
                [this, index] { d->read(d->children[index], QProcess::StandardError); });
        connect(process, &QProcess::started, this, [this] {
            if (++d->startedCount == d->children.size()) {
                Q_EMIT started();
            }
        });
        connect(
            process, &QProcess::errorOccurred, this, [this, index](QProcess::ProcessError what) {
                if (what == QProcess::FailedToStart) {
                    ProcessExit exit;
                    exit.hasStarted = false;
                    exit.words = d->plan.commands[index].program.string() + " cannot be started: " +
                                 d->children[index].process->errorString().toStdString();
                    d->ended(index, std::move(exit));
                }
            });
        connect(process, &QProcess::finished, this,
                [this, index](int code, QProcess::ExitStatus status) {
                    ProcessExit exit;
                    // After a crash QProcess gives the signal as the code.
                    (status == QProcess::CrashExit ? exit.signal : exit.exitCode) = code;
                    exit.words = describeExit(d->plan.family, exit.exitCode, exit.signal);
                    d->ended(index, std::move(exit));
                });
    }
    for (Private::Child& child : d->children) {
        child.process->start(QIODevice::ReadOnly);
    }
}

void GroupProcess::terminate()
{
    if (d->isTerminated) {
        return;
    }
    d->isTerminated = true;
    for (const Private::Child& child : d->children) {
        child.process->terminate();
    }
}

void GroupProcess::kill()
{
    for (const Private::Child& child : d->children) {
        child.process->kill();
    }
}

std::size_t GroupProcess::killRanks(const std::vector<ProcessRef>& known)
{
    std::vector<ProcessRef> ranks = liveRanks();
    for (const ProcessRef& process : known) {
        if (std::find(ranks.begin(), ranks.end(), process) == ranks.end()) {
            ranks.push_back(process);
        }
    }
    return launch::killRanks(ranks);
}

std::vector<ProcessRef> GroupProcess::liveRanks() const
{
    return ranksOfLaunch(d->plan.launchId);
}

bool GroupProcess::isRunning() const
{
    return d->isStarted && !d->isFinished;
}

const LaunchPlan& GroupProcess::plan() const
{
    return d->plan;
}

std::vector<std::int64_t> GroupProcess::processIds() const
{
    std::vector<std::int64_t> ids;
    for (const Private::Child& child : d->children) {
        if (child.process->processId() > 0) {
            ids.push_back(child.process->processId());
        }
    }
    return ids;
}

} // namespace muster::launch
