// SPDX-License-Identifier: Apache-2.0
// The built program from outside: words, exit codes, and what stands on which stream.
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStandardPaths>
#include <QtTest>

namespace {

struct Outcome {
    int code = -1;
    QByteArray out;
    QByteArray err;
};

} // namespace

class TestProgram final : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    Outcome run(const QStringList& arguments, const QByteArray& input = {},
                const QStringList& variables = {}) const
    {
        QProcess process;
        process.setWorkingDirectory(m_folder.path());
        QProcessEnvironment environment;
        environment.insert(QStringLiteral("PATH"), qEnvironmentVariable("PATH"));
        environment.insert(QStringLiteral("HOME"), m_folder.path());
        environment.insert(QStringLiteral("XDG_CONFIG_DIRS"), m_folder.path());
        environment.insert(QStringLiteral("LC_ALL"), QStringLiteral("C.UTF-8"));
        for (const QString& variable : variables) {
            const auto at = variable.indexOf(QLatin1Char('='));
            environment.insert(variable.left(at), variable.mid(at + 1));
        }
        process.setProcessEnvironment(environment);
        process.start(QStringLiteral(MUSTER_BIN_DIR "/muster"), arguments);
        process.write(input);
        process.closeWriteChannel();
        if (!process.waitForFinished(60000))
            return {};
        return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
                process.readAllStandardOutput(), process.readAllStandardError()};
    }

    void put(const char* name, const QByteArray& text) const
    {
        QFile file(m_folder.filePath(QLatin1String(name)));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
    }

    static QStringList words(const char* line)
    {
        return QString::fromUtf8(line).split(QLatin1Char(' '), Qt::SkipEmptyParts);
    }

private Q_SLOTS:
    void aWrongLineSaysWhatWasMeant_data()
    {
        QTest::addColumn<QByteArray>("line");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("text");
        const auto row = [](const char* line, int code, const char* text) {
            QTest::newRow(line) << QByteArray(line) << code << QByteArray(text);
        };
        row("rnu", 2, "E-CLI-001: there is no command 'rnu'; did you mean run?");
        row("hist", 2, "E-CLI-001: there is no command 'hist'");
        row("config shwo", 2, "did you mean show?");
        row("run --modle m", 2,
            "E-CLI-002: muster run has no option '--modle'; did you mean "
            "--model?");
        row("run --plan", 2, "did you mean --plain?");
        row("--jsn run", 2, "did you mean --json?");
        row("run a.toml b.toml", 2, "E-CLI-002: 'b.toml' is one argument too many");
        row("run --model", 2, "E-CLI-003");
        row("score", 2, "E-CLI-003");
        row("score p.json --data d.json --rules 3", 2, "1.1, 2.0");
        row("completion tcsh", 2, "E-CLI-003");
        row("help nothing-like-it", 2, "E-CLI-005");
        row("config show --json --ndjson", 2, "E-CLI-004");
        row("config show --set qa.doc_strid=4", 2, "E-CONFIG-002");
        row("config show --set doc_stride=x", 2, "--set: qa.doc_stride: a whole number");
        row("config show --ranks many", 2, "--ranks: cluster.ranks: a whole number");
        row("config show --set nothing", 2, "E-CONFIG-010");
        row("config show absent.toml", 3, "E-CONFIG-008");
        row("run --set max_seq_length=64", 3, "E-CONFIG-006");
        row("run", 3, "E-CONFIG-012: no model is given");
        row("score absent.json --data absent.json", 3, "E-FILE-001");
    }

    void aWrongLineSaysWhatWasMeant()
    {
        QFETCH(QByteArray, line);
        QFETCH(int, code);
        QFETCH(QByteArray, text);
        const Outcome outcome = run(words(line.constData()));
        QVERIFY2(outcome.err.contains(text), outcome.err.constData());
        QCOMPARE(outcome.code, code);
        QVERIFY2(outcome.out.isEmpty() || line.contains("json"), outcome.out.constData());
        QVERIFY(outcome.err.startsWith("E-"));
    }

    void anErrorIsADocumentWhenAskedFor()
    {
        const Outcome outcome = run(words("rnu --json"));
        QCOMPARE(outcome.code, 2);
        const QJsonObject root = QJsonDocument::fromJson(outcome.out).object();
        QCOMPARE(root.value(QLatin1String("exit")).toInt(), 2);
        QCOMPARE(root.value(QLatin1String("error")).toObject().value(QLatin1String("code")),
                 QJsonValue(QStringLiteral("E-CLI-001")));
    }

    void helpAndVersionGoToStandardOutput_data()
    {
        QTest::addColumn<QByteArray>("line");
        QTest::addColumn<QByteArray>("text");
        const auto row = [](const char* line, const char* text) {
            QTest::newRow(line) << QByteArray(line) << QByteArray(text);
        };
        row("--help", "usage: muster COMMAND [options]");
        row("-h", "Commands");
        row("run --help", "usage: muster run [CONFIG] [options]");
        row("config show -h", "usage: muster config show [CONFIG] [options]");
        row("help run", "--model DIR");
        row("help exit-codes", "124  a time limit ran out");
        row("help settings", "qa.doc_stride");
        row("help --man", ".TH MUSTER 1");
        row("--version", "muster 0");
        row("version", "sqlite");
    }

    void helpAndVersionGoToStandardOutput()
    {
        QFETCH(QByteArray, line);
        QFETCH(QByteArray, text);
        const Outcome outcome = run(words(line.constData()));
        QCOMPARE(outcome.code, 0);
        QVERIFY2(outcome.out.contains(text), outcome.out.constData());
        QVERIFY2(outcome.err.isEmpty(), outcome.err.constData());
        QVERIFY(!outcome.out.contains('\x1b'));
    }

    void everyCommandHasHelp()
    {
        for (const char* verb :
             {"run", "plan", "resume", "stop", "verify", "score", "show", "export", "history",
              "doctor", "demo", "config", "bench", "version", "completion", "help"}) {
            const Outcome outcome = run({QLatin1String(verb), QStringLiteral("--help")});
            QCOMPARE(outcome.code, 0);
            QVERIFY2(outcome.out.startsWith(QByteArray("usage: muster ") + verb), verb);
        }
    }

    void aDocumentIsOneStrictObject_data()
    {
        QTest::addColumn<QByteArray>("line");
        for (const char* line : {"version --json", "config show --json", "--json config show",
                                 "config show --origin --json", "config validate --json",
                                 "config schema", "doctor --json"})
            QTest::newRow(line) << QByteArray(line);
    }

    void aDocumentIsOneStrictObject()
    {
        QFETCH(QByteArray, line);
        const Outcome outcome = run(words(line.constData()));
        QJsonParseError error;
        const QJsonDocument document = QJsonDocument::fromJson(outcome.out, &error);
        QVERIFY2(error.error == QJsonParseError::NoError, outcome.out.constData());
        QVERIFY(document.isObject());
    }

    void theShellsAcceptTheCompletion()
    {
        for (const char* shell : {"bash", "zsh", "fish"}) {
            const Outcome outcome = run({QStringLiteral("completion"), QLatin1String(shell)});
            QCOMPARE(outcome.code, 0);
            QVERIFY(outcome.out.contains("no-color"));
            QVERIFY(outcome.out.contains("qa.doc_stride"));
            const QString program = QStandardPaths::findExecutable(QLatin1String(shell));
            if (program.isEmpty())
                continue;
            put("completion", outcome.out);
            QProcess check;
            check.start(program,
                        {QStringLiteral("-n"), m_folder.filePath(QStringLiteral("completion"))});
            QVERIFY(check.waitForFinished());
            QVERIFY2(check.exitCode() == 0, check.readAllStandardError().constData());
        }
    }

    void bashCompletesCommandsOptionsAndValues_data()
    {
        QTest::addColumn<QByteArray>("line");
        QTest::addColumn<QByteArray>("word");
        const auto row = [](const char* line, const char* word) {
            QTest::newRow(line) << QByteArray(line) << QByteArray(word);
        };
        row("re", "resume");
        row("config s", "schema");
        row("run --mod", "--model");
        row("run --pl", "--plain");
        row("run --dtype bf", "bfloat16");
        row("run --set qa.doc", "qa.doc_stride=");
        row("score --rules 2", "2.0");
        row("-q completion z", "zsh");
    }

    void bashCompletesCommandsOptionsAndValues()
    {
        QFETCH(QByteArray, line);
        QFETCH(QByteArray, word);
        const QString bash = QStandardPaths::findExecutable(QStringLiteral("bash"));
        if (bash.isEmpty())
            QSKIP("bash is not installed");
        put("completion", run(words("completion bash")).out);
        QProcess check;
        check.setWorkingDirectory(m_folder.path());
        check.start(bash, {QStringLiteral("-c"),
                           QStringLiteral("source completion; COMP_WORDS=(muster %1); "
                                          "COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _muster; "
                                          "printf '%s\\n' \"${COMPREPLY[@]}\"")
                               .arg(QString::fromUtf8(line))});
        QVERIFY(check.waitForFinished());
        const QByteArray out = check.readAllStandardOutput();
        QVERIFY2(out.split('\n').contains(word), (out + check.readAllStandardError()).constData());
    }

    void aConfigurationIsWrittenAndReadBack()
    {
        const QStringList flags = words("--model m --data a.json --data b.json -n 3 --limit 9 "
                                        "--dtype bf16 --set schedule=compat:sampler --timeout 2.5");
        Outcome first = run(QStringList{QStringLiteral("config"), QStringLiteral("show")} + flags +
                            QStringList{QStringLiteral("--gate"), QStringLiteral("em >= 60")});
        QCOMPARE(first.code, 0);
        // From standard input paths are relative to the working folder, which changes nothing here.
        const Outcome second = run(words("config show -"), first.out);
        QCOMPARE(second.code, 0);
        QCOMPARE(second.out, first.out);
        QVERIFY(first.out.contains("limit = 9\n"));
        QVERIFY(first.out.contains("em = \">= 60\"\n"));
    }

    void theOriginOfEachValueIsShown()
    {
        put("muster.toml", "[qa]\nn_best = 5\n[cluster]\nranks = 5\nhello_s = 5\n");
        put("given.toml", "[cluster]\nranks = 4\nhello_s = 4\n");
        const Outcome outcome = run(words("config show given.toml --origin -n 2"), {},
                                    {QStringLiteral("MUSTER_HELLO_S=3")});
        QFile::remove(m_folder.filePath(QStringLiteral("muster.toml")));
        QCOMPARE(outcome.code, 0);
        QVERIFY(outcome.out.contains("ranks = 2  # flag --ranks\n"));
        QVERIFY(outcome.out.contains("hello_s = 3.0  # environment MUSTER_HELLO_S\n"));
        QVERIFY(outcome.out.contains("n_best = 5  # project muster.toml:2:10\n"));
        QVERIFY(outcome.out.contains("doc_stride = 128  # default\n"));
    }

    void allProblemsOfAFileAreReported()
    {
        put("bad.toml", "tsk = 1\n[qa]\nn_best = 0\n");
        const Outcome outcome = run(words("config validate bad.toml"));
        QCOMPARE(outcome.code, 3);
        QVERIFY(outcome.err.contains("bad.toml:1:1: E-CONFIG-002: tsk: unknown key; did you mean "
                                     "task?"));
        QVERIFY(outcome.err.contains("bad.toml:3:10: E-CONFIG-004"));
        QVERIFY(outcome.out.isEmpty());
    }

    void aFileIsBegunButNeverOverwritten()
    {
        QCOMPARE(run(words("config init new.toml")).code, 0);
        QCOMPARE(run(words("config validate new.toml")).code, 0);
        QCOMPARE(run(words("config init new.toml")).code, 3);
        QCOMPARE(run(words("config init new.toml --yes")).code, 0);
    }

    void predictionsAreScored()
    {
        put("data.json",
            R"({"version":"1.1","data":[{"title":"t","paragraphs":[{"context":"Paris is in France.","qas":[
            {"id":"1","question":"q","answers":[{"text":"Paris","answer_start":0}]},
            {"id":"2","question":"q","answers":[{"text":"France","answer_start":12}]}]}]}]})");
        put("p.json", R"({"1":"the paris","2":"in France"})");
        const Outcome outcome = run(words("score p.json --data data.json --json"));
        QCOMPARE(outcome.code, 0);
        const QJsonObject metrics = QJsonDocument::fromJson(outcome.out)
                                        .object()
                                        .value(QLatin1String("metrics"))
                                        .toObject();
        QCOMPARE(metrics.value(QLatin1String("exact_match")).toDouble(), 50.0);
        QVERIFY(qAbs(metrics.value(QLatin1String("f1")).toDouble() - 83.333333333333333) < 1e-9);
        put("twice.json", R"({"1":"a","1":"b"})");
        QCOMPARE(run(words("score twice.json --data data.json")).code, 3);
        put("foreign.json", R"({"3":"a"})");
        QCOMPARE(run(words("score foreign.json --data data.json")).code, 3);
        put("broken.json", "{\"1\":");
        QCOMPARE(run(words("score broken.json --data data.json")).code, 3);
    }
};

QTEST_GUILESS_MAIN(TestProgram)
#include "tst_program.moc"
