// SPDX-License-Identifier: Apache-2.0
#include "run_end.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include <csignal>
#include <limits>

using namespace muster;
using namespace muster::cli;

namespace {

RunEnd good()
{
    RunEnd end;
    end.verdict = "ALIGNED";
    end.samplesDone = 10570;
    end.samples = 10570;
    end.metrics = {{"exact_match", "EM", 61.4213, 0.9281, "%", 2, {}},
                   {"f1", "F1", 69.8, std::nullopt, "%", 2, {}}};
    end.elapsedSeconds = 33.94;
    end.ranks = 8;
    end.transferShare = 0.0612;
    return end;
}

} // namespace

class TestRunEnd final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theLastLineIsAsDocumented()
    {
        QCOMPARE(QByteArray::fromStdString(lastLine(good())),
                 QByteArray("ALIGNED 10570/10570  EM 61.42 % +-0.93  F1 69.80 %  33.9 s on 8 ranks "
                            " comm 6.1 %"));
        RunEnd end = good();
        end.ranks = 1;
        end.metrics = {{"perplexity", "PPL", 8.4131, std::nullopt, "", 3, {}},
                       {"exact_match", "EM", std::nullopt, std::nullopt, "%", 2, "no question"}};
        QCOMPARE(QByteArray::fromStdString(lastLine(end)),
                 QByteArray("ALIGNED 10570/10570  PPL 8.413  EM undefined  33.9 s on 1 rank  comm "
                            "6.1 %"));
    }

    void everyEndHasItsExitCode_data()
    {
        QTest::addColumn<int>("code");
        QTest::addColumn<int>("found");
        const auto row = [](const char* name, int code, const RunEnd& end) {
            QTest::newRow(name) << code << static_cast<int>(exitCodeOf(end));
        };
        row("aligned", 0, good());
        RunEnd end = good();
        end.verdict = "MISALIGNED";
        row("misaligned", 6, end);
        end.signal = SIGINT;
        row("misaligned wins over a signal", 6, end);
        end.verdict = "INCOMPLETE";
        row("interrupted", 130, end);
        end.signal = SIGTERM;
        row("terminated", 143, end);
        end.signal = 0;
        row("incomplete", 5, end);
        end.error = Error{Error::Kind::Timeout, "E-RUN-001", "time"};
        row("timeout", 124, end);
        end = good();
        end.gates = {{"em >= 60", 61.4, true}, {"f1 >= 90", 69.8, false}};
        row("gate", 7, end);
        end.gates.pop_back();
        row("gate met", 0, end);
        const auto error = [&row](const char* name, Error::Kind kind, int code) {
            RunEnd failed;
            failed.error = Error{kind, "E", "m"};
            row(name, code, failed);
        };
        error("usage", Error::Kind::Usage, 2);
        error("invalid", Error::Kind::Invalid, 3);
        error("not found", Error::Kind::NotFound, 3);
        error("launch", Error::Kind::Launch, 4);
        error("io", Error::Kind::Io, 1);
        error("protocol", Error::Kind::Protocol, 1);
        error("undefined", Error::Kind::Undefined, 1);
        error("incomplete error", Error::Kind::Incomplete, 5);
        error("integrity", Error::Kind::Integrity, 6);
        error("gate error", Error::Kind::Gate, 7);
        error("incomparable", Error::Kind::Incomparable, 8);
        error("internal", Error::Kind::Internal, 9);
        error("cancelled", Error::Kind::Cancelled, 130);
        row("nothing", 1, RunEnd{});
    }

    void everyEndHasItsExitCode()
    {
        QFETCH(int, code);
        QFETCH(int, found);
        QCOMPARE(found, code);
    }

    void theDocumentIsStrictJson()
    {
        // C-065: infinite and undefined values are null with a reason.
        RunEnd end = good();
        end.metrics.push_back({"perplexity", "PPL", std::numeric_limits<double>::infinity(), 1.0,
                               "", 3, "a sample has an infinite loss"});
        end.metrics.push_back(
            {"nll", "", std::numeric_limits<double>::quiet_NaN(), std::nullopt, "", 3, {}});
        end.findings = {"broken \xff text"};
        end.transferShare = std::numeric_limits<double>::quiet_NaN();
        const QByteArray text = QByteArray::fromStdString(jsonText(toJson(end), 1));
        QJsonParseError error;
        const QJsonObject root = QJsonDocument::fromJson(text, &error).object();
        QVERIFY2(error.error == QJsonParseError::NoError, qPrintable(error.errorString()));
        QCOMPARE(root.value(QLatin1String("verdict")).toString(), QStringLiteral("ALIGNED"));
        const QJsonObject metrics = root.value(QLatin1String("metrics")).toObject();
        QCOMPARE(metrics.value(QLatin1String("exact_match")).toDouble(), 61.4213);
        QCOMPARE(metrics.value(QLatin1String("f1")).toDouble(), 69.8);
        QVERIFY(metrics.value(QLatin1String("perplexity")).isNull());
        const QJsonObject reasons = root.value(QLatin1String("undefined")).toObject();
        QCOMPARE(reasons.value(QLatin1String("perplexity")).toString(),
                 QStringLiteral("a sample has an infinite loss"));
        QVERIFY(reasons.contains(QLatin1String("nll")));
        QVERIFY(root.value(QLatin1String("comm")).isNull());
        QCOMPARE(root.value(QLatin1String("exit")).toInt(-1), 0);
    }
};

QTEST_GUILESS_MAIN(TestRunEnd)
#include "tst_run_end.moc"
