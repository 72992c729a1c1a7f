// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <QtTest>

#include <nlohmann/json.hpp>

using namespace muster::cli;

namespace {

constexpr std::int64_t second = 1'000'000'000;

ProgressView view()
{
    ProgressView v;
    v.stage = "running";
    v.samplesDone = 512;
    v.samples = 1190;
    v.samplesPerSecond = 57.23;
    v.tokensPerSecond = 10123.0;
    v.etaSeconds = 11.8;
    v.elapsedSeconds = 9.0;
    v.transferShare = 0.003;
    v.soFar = {{"exact_match", "EM", 61.4, 2.9, "%", 1, {}}};
    return v;
}

} // namespace

class TestProgress final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theBarNamesEverythingThatFits_data()
    {
        QTest::addColumn<int>("columns");
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("wide") << 200
                              << QByteArray("[========>           ] 512/1190  43 %  57.2 samples/s "
                                            " ETA 0:12  10.1k tokens/s  comm 0.3 %  EM 61.4 % "
                                            "+-2.9");
        QTest::newRow("80") << 80
                            << QByteArray("[========>           ] 512/1190  43 %  57.2 samples/s  "
                                          "ETA 0:12  10.1k tokens/s");
        QTest::newRow("narrow") << 34 << QByteArray("512/1190  43 %  57.2 samples/s");
        QTest::newRow("tiny") << 6 << QByteArray("512/1\xE2\x80\xA6");
    }

    void theBarNamesEverythingThatFits()
    {
        QFETCH(int, columns);
        QFETCH(QByteArray, text);
        QCOMPARE(QByteArray::fromStdString(barText(view(), static_cast<std::size_t>(columns))),
                 text);
    }

    void noBarIsWiderThanItsTerminal()
    {
        ProgressView v = view();
        v.stage = "\xE6\xAD\xA3\xE5\x9C\xA8\xE8\xAF\x84\xE4\xBC\xB0";
        for (std::size_t columns = 1; columns < 150; ++columns) {
            QVERIFY(displayWidth(barText(v, columns)) <= columns);
            v.samples = columns % 2 == 0 ? 0 : 1190;
        }
    }

    void wideCharactersTakeTwoColumns()
    {
        QCOMPARE(displayWidth("abc"), 3U);
        QCOMPARE(displayWidth("\xE4\xB8\xAD\xE6\x96\x87"), 4U);
        QCOMPARE(displayWidth("e\xCC\x81"), 1U);
        QCOMPARE(QByteArray::fromStdString(clipped("\xE4\xB8\xAD\xE6\x96\x87\xE4\xB8\xAD", 5)),
                 QByteArray("\xE4\xB8\xAD\xE6\x96\x87\xE2\x80\xA6"));
        QCOMPARE(displayWidth(padded("\xE4\xB8\xAD", 5)), 5U);
    }

    void theBarIsRedrawnAtMostTenTimesASecond()
    {
        std::string written;
        int writes = 0;
        ProgressDisplay display(ProgressStyle::Bar, {true, false, 80}, [&](std::string_view text) {
            written += text;
            ++writes;
        });
        ProgressView v = view();
        for (std::int64_t ms = 0; ms < 2000; ms += 10) {
            ++v.samplesDone;
            display.update(v, second + ms * 1'000'000);
        }
        QCOMPARE(writes, 20);
        display.clear();
        QVERIFY(written.ends_with("\r\x1b[K"));
    }

    void elsewhereALineComesEvery30SecondsWithoutEscapes()
    {
        std::string written;
        ProgressDisplay display(ProgressStyle::Lines, {},
                                [&](std::string_view text) { written += text; });
        for (std::int64_t s = 0; s <= 95; ++s)
            display.update(view(), second * (100 + s));
        display.clear();
        QCOMPARE(std::count(written.begin(), written.end(), '\n'), 3);
        QCOMPARE(written.find('\x1b'), std::string::npos);
        QCOMPARE(written.find('\r'), std::string::npos);
        QVERIFY(written.find("512/1190 samples") != std::string::npos);
    }

    void anEventIsOneStrictDocument()
    {
        std::string written;
        ProgressDisplay display(ProgressStyle::Events, {},
                                [&](std::string_view text) { written += text; });
        ProgressView v = view();
        v.samplesPerSecond = std::numeric_limits<double>::quiet_NaN();
        v.soFar[0].value = std::numeric_limits<double>::infinity();
        display.update(v, second);
        QCOMPARE(std::count(written.begin(), written.end(), '\n'), 1);
        const auto document = nlohmann::json::parse(written);
        QVERIFY(document["event"] == "progress");
        QVERIFY(document["samples_per_s"].is_null());
        QVERIFY(document["metrics"]["exact_match"]["value"].is_null());
    }

    void aMessageDoesNotBreakTheBar()
    {
        std::string written;
        ProgressDisplay display(ProgressStyle::Bar, {true, false, 80},
                                [&](std::string_view text) { written += text; });
        display.update(view(), second);
        written.clear();
        display.say("rank 1 was lost");
        QVERIFY(written.starts_with("\r\x1b[Krank 1 was lost\n\r["));
    }

    void timesAndRatesAreShort_data()
    {
        QTest::addColumn<QByteArray>("found");
        QTest::addColumn<QByteArray>("text");
        const auto row = [](const std::string& found, const char* text) {
            QTest::newRow(text) << QByteArray::fromStdString(found) << QByteArray(text);
        };
        row(durationText(7.2), "0:07");
        row(durationText(725), "12:05");
        row(durationText(11045), "3:04:05");
        row(durationText(-1), "--:--");
        row(rateText(57.23), "57.2");
        row(rateText(840.4), "840");
        row(rateText(10123), "10.1k");
        row(rateText(2.34e6), "2.3M");
    }

    void timesAndRatesAreShort()
    {
        QFETCH(QByteArray, found);
        QFETCH(QByteArray, text);
        QCOMPARE(found, text);
    }
};

QTEST_GUILESS_MAIN(TestProgress)
#include "tst_progress.moc"
