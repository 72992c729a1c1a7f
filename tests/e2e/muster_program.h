// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStringList>
#include <QTemporaryDir>
#include <QtTest>

#include <csignal>
#include <memory>
#include <unistd.h>

/// The built programs, run as a person runs them, on the bundled model and questions.
namespace e2e {

/// How a call of `muster` ended.
struct Outcome {
    int code = -1; ///< −1: it did not end, or by a signal
    QByteArray out;
    QByteArray err;

    [[nodiscard]] QByteArray lastLine() const { return out.trimmed().split('\n').last(); }
    /// For the message of a failed check.
    [[nodiscard]] QByteArray text() const
    {
        return "exit " + QByteArray::number(code) + "\n" + out.right(2000) + "\n" + err.right(4000);
    }
};

/// A folder of its own with everything that the programs write: runs, history, sockets. Removed
/// at the end.
class Place final {
public:
    Place()
    {
        QDir(m_folder.path()).mkpath(QStringLiteral("tmp"));
        QFile::setPermissions(path("tmp"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }

    [[nodiscard]] QString path(const char* name) const
    {
        return m_folder.filePath(QLatin1String(name));
    }
    [[nodiscard]] QString root() const { return m_folder.path(); }
    [[nodiscard]] static QString program() { return QStringLiteral(MUSTER_BIN_DIR "/muster"); }
    [[nodiscard]] static QString model() { return QStringLiteral(MUSTER_DEMO "/minilm-qa"); }
    [[nodiscard]] static QString data() { return QStringLiteral(MUSTER_DEMO "/xquad.en.json"); }

    /// The words of a run over the first questions, into a folder of that name.
    [[nodiscard]] QStringList words(const char* output, int limit, int ranks,
                                    const char* more = "") const
    {
        QStringList all{QStringLiteral("run"),
                        QStringLiteral("--task"),
                        QStringLiteral("qa"),
                        QStringLiteral("--model"),
                        model(),
                        QStringLiteral("--data"),
                        data(),
                        QStringLiteral("--limit"),
                        QString::number(limit),
                        QStringLiteral("-n"),
                        QString::number(ranks),
                        QStringLiteral("-o"),
                        path(output)};
        return all + split(more);
    }

    [[nodiscard]] static QStringList split(const char* line)
    {
        return QString::fromUtf8(line).split(QLatin1Char(' '), Qt::SkipEmptyParts);
    }

    [[nodiscard]] std::unique_ptr<QProcess> start(const QStringList& arguments) const
    {
        auto process = std::make_unique<QProcess>();
        process->setWorkingDirectory(root());
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const QString& key : environment.keys())
            if (key.startsWith(QLatin1String("MUSTER_")))
                environment.remove(key);
        environment.remove(QStringLiteral("XDG_RUNTIME_DIR"));
        environment.insert(QStringLiteral("TMPDIR"), path("tmp"));
        environment.insert(QStringLiteral("HOME"), root());
        environment.insert(QStringLiteral("XDG_DATA_HOME"), path("share"));
        environment.insert(QStringLiteral("XDG_CONFIG_DIRS"), root());
        environment.insert(QStringLiteral("LC_ALL"), QStringLiteral("C.UTF-8"));
        process->setProcessEnvironment(environment);
        process->setStandardInputFile(QProcess::nullDevice());
        process->start(program(), arguments);
        return process;
    }

    static Outcome finish(QProcess& process, int seconds = 180)
    {
        Outcome outcome;
        if (!process.waitForFinished(seconds * 1000)) {
            process.kill();
            process.waitForFinished();
            outcome.err = "it did not end in time\n";
        } else if (process.exitStatus() == QProcess::NormalExit) {
            outcome.code = process.exitCode();
        }
        outcome.out = process.readAllStandardOutput();
        outcome.err += process.readAllStandardError();
        return outcome;
    }

    [[nodiscard]] Outcome run(const QStringList& arguments) const
    {
        const auto process = start(arguments);
        return finish(*process);
    }

    /// The newest run folder below an output folder; empty when there is none.
    [[nodiscard]] QString runIn(const char* output) const
    {
        const QFileInfoList folders =
            QDir(path(output)).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
        return folders.isEmpty() ? QString() : folders.last().filePath();
    }

    /// Processes, other than this one, with this folder in their command line: controllers,
    /// launchers and ranks.
    [[nodiscard]] QList<qint64> processes(const char* programPrefix = "") const
    {
        QList<qint64> found;
        const QByteArray mark = root().toUtf8();
        for (const QString& name : QDir(QStringLiteral("/proc")).entryList(QDir::Dirs)) {
            bool isNumber = false;
            const qint64 pid = name.toLongLong(&isNumber);
            if (!isNumber || pid == ::getpid())
                continue;
            QFile line(QStringLiteral("/proc/%1/cmdline").arg(pid));
            if (!line.open(QIODevice::ReadOnly) || !line.readAll().contains(mark))
                continue;
            const QString target = QFile::symLinkTarget(QStringLiteral("/proc/%1/exe").arg(pid));
            if (QFileInfo(target).fileName().startsWith(QLatin1String(programPrefix)))
                found.append(pid);
        }
        return found;
    }

    /// Rank programs of the tested folder that belong to this place.
    [[nodiscard]] QList<qint64> ranks() const { return processes("muster-rank"); }

    /// What is left of sockets, keys and sessions of launchers.
    [[nodiscard]] QStringList temporaryFiles() const
    {
        return QDir(path("tmp"))
            .entryList(QDir::AllEntries | QDir::NoDotAndDotDot | QDir::Hidden | QDir::System);
    }

private:
    QTemporaryDir m_folder;
};

[[nodiscard]] inline QByteArray contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray("(absent)");
}

/// Files that must not depend on how a run was spread.
[[nodiscard]] inline QStringList fixedFiles()
{
    return {QStringLiteral("predictions.json"), QStringLiteral("nbest_predictions.json"),
            QStringLiteral("samples.jsonl"), QStringLiteral("proof.json")};
}

/// Name of the first file that differs or is absent; empty when all are the same, byte by byte.
[[nodiscard]] inline QString differingFile(const QString& one, const QString& other)
{
    for (const QString& name : fixedFiles()) {
        const QByteArray first = contentOf(one + QLatin1Char('/') + name);
        if (first == "(absent)" || first != contentOf(other + QLatin1Char('/') + name))
            return name;
    }
    return {};
}

/// Reads the event stream of a run with `--ndjson` until so many samples are done. What was read is
/// added to `events`.
[[nodiscard]] inline bool waitForSamples(QProcess& process, int samples, QByteArray& events,
                                         int seconds = 90)
{
    QElapsedTimer timer;
    timer.start();
    qsizetype at = 0;
    while (timer.elapsed() < seconds * 1000) {
        process.waitForReadyRead(100);
        events += process.readAllStandardOutput();
        for (qsizetype end = 0; (end = events.indexOf('\n', at)) >= 0; at = end + 1) {
            const QJsonObject event = QJsonDocument::fromJson(events.mid(at, end - at)).object();
            if (event.value(QLatin1String("event")) == QLatin1String("progress") &&
                event.value(QLatin1String("samples_done")).toInt() >= samples)
                return true;
        }
        if (process.state() == QProcess::NotRunning)
            return false;
    }
    return false;
}

/// Names in the folder of shared memory.
[[nodiscard]] inline QStringList sharedMemory()
{
    return QDir(QStringLiteral("/dev/shm"))
        .entryList(QDir::AllEntries | QDir::NoDotAndDotDot | QDir::System | QDir::Hidden);
}

} // namespace e2e
