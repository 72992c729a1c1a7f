// SPDX-License-Identifier: Apache-2.0
#include "wire/message.h"

#include <QTest>

#include <nlohmann/json.hpp>

#include <cstring>
#include <limits>
#include <random>

using namespace muster;
using namespace muster::wire;
using nlohmann::json;

namespace {

std::vector<std::byte> raw(std::initializer_list<unsigned> values)
{
    std::vector<std::byte> bytes;
    for (const unsigned value : values)
        bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

std::vector<std::byte> cbor(const json& value)
{
    const auto bytes = json::to_cbor(value);
    std::vector<std::byte> out(bytes.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

json asJson(const std::vector<std::byte>& bytes)
{
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return json::from_cbor(from, from + bytes.size());
}

Hello makeHello()
{
    return {.version = "0.1.0",
            .rank = 3,
            .world = 8,
            .localRank = 1,
            .localSize = 4,
            .group = 1,
            .generation = 2,
            .connection = 1,
            .node = "node-a",
            .pid = 4711,
            .startTimeTicks = 123456789,
            .mpiLibrary = "Open MPI v4.1.4",
            .launcherFamily = "openmpi",
            .launcherRank = 3,
            .launcherWorld = 8,
            .binaryDigest = std::string(32, 'a'),
            .architecture = "x86_64",
            .affinity = "0-3",
            .cpus = 4,
            .cores = 2,
            .holding = {7, 1}};
}

Heartbeat makeHeartbeat()
{
    return {.phase = RankPhase::Computing,
            .unit = UnitId(12),
            .doneUnits = 5,
            .rssBytes = 1U << 30U,
            .memoryLimitBytes = 2U << 30U,
            .deviceBytes = 0,
            .monotonicNs = 99,
            .times = {1, 2, 3, 4, 5, 15}};
}

template <typename Message>
void compareAfterTransport(const Message& message)
{
    const auto back = decode<Message>(encode(message));
    if (!back)
        QFAIL(back.error().text().c_str());
    QCOMPARE(*back, message);
}

template <typename Message>
void verifyEachFieldIsChecked(const Message& message, const QStringList& optional = {})
{
    const json whole = asJson(encode(message));
    for (const auto& [name, value] : whole.items()) {
        json changed = whole;
        changed.erase(name);
        const auto missing = decode<Message>(cbor(changed));
        if (!optional.contains(QString::fromStdString(name))) {
            QVERIFY2(!missing, name.c_str());
            QVERIFY(missing.error().code == "E-WIRE-031");
            QVERIFY(missing.error().message.find("field " + name + " ") != std::string::npos);
        }
        for (const json& other : {json(nullptr), json(true), json::array({-1}), json(-1.5),
                                  json(std::numeric_limits<double>::quiet_NaN()),
                                  json(std::numeric_limits<double>::infinity())}) {
            if (value.is_boolean() && other.is_boolean())
                continue;
            changed = whole;
            changed[name] = other;
            const auto wrong = decode<Message>(cbor(changed));
            QVERIFY2(!wrong, (name + " " + other.dump()).c_str());
            QVERIFY(wrong.error().message.find("field " + name + " ") != std::string::npos);
        }
        if (value.is_number_unsigned()) {
            changed = whole;
            changed[name] = -1;
            if (name != "pid" && name != "monotonicNs")
                QVERIFY2(!decode<Message>(cbor(changed)), name.c_str());
        }
        if (value.is_string()) {
            changed = whole;
            changed[name] = std::string(70000, 'x');
            QVERIFY2(!decode<Message>(cbor(changed)), name.c_str());
        }
    }
}

} // namespace

class TestMessage : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void messagesComeBackAsTheyWereSent()
    {
        compareAfterTransport(makeHello());
        Hello plain = makeHello();
        plain.launcherRank.reset();
        plain.launcherWorld.reset();
        compareAfterTransport(plain);
        compareAfterTransport(RankConfig{.modelPath = "/models/a",
                                         .kind = UnitKind::Lm,
                                         .precision = "bfloat16",
                                         .threads = 2,
                                         .nBest = 5,
                                         .ties = "bert",
                                         .gather = GatherMode::Collective,
                                         .pin = PinMode::Off,
                                         .inject = "drop",
                                         .sharedWeightsKey = "k"});
        compareAfterTransport(Ready{.modelDigest = std::string(32, '0'),
                                    .modelArchitecture = "BertForQuestionAnswering",
                                    .kernels = "avx512",
                                    .parameters = 22,
                                    .weightBytes = 88,
                                    .maxPositions = 512,
                                    .vocabulary = 30522,
                                    .threads = 1,
                                    .loadMs = 12.25,
                                    .affinity = "1",
                                    .cpus = 1});
        compareAfterTransport(Refuse{"E-RUN-001", "two ranks say that they are rank 0"});
        compareAfterTransport(Ack{UnitId(std::numeric_limits<std::uint64_t>::max()), 3});
        compareAfterTransport(makeHeartbeat());
        compareAfterTransport(Heartbeat{});
        Stats stats{.times = {1, 2, 3, 4, 5, 15},
                    .own = {1, 2, 3, 4, 5, 6, -0.1},
                    .bytesOut = 8,
                    .rounds = 9};
        compareAfterTransport(stats);
        stats.group = Sums{.items = 5, .lossSum = 1e300};
        compareAfterTransport(stats);
        compareAfterTransport(Log{LogLevel::Warning, "text"});
        compareAfterTransport(Cancel{"user", CancelMode::Now});
        compareAfterTransport(Drain{});
        compareAfterTransport(Bye{"done"});
    }

    void everyMissingOrWrongFieldIsNamed()
    {
        verifyEachFieldIsChecked(makeHello(),
                                 {QStringLiteral("launcherRank"), QStringLiteral("launcherWorld")});
        verifyEachFieldIsChecked(RankConfig{.modelPath = "m"});
        verifyEachFieldIsChecked(Ready{.modelDigest = std::string(32, '0'), .kernels = "k"});
        verifyEachFieldIsChecked(Refuse{"a", "b"});
        verifyEachFieldIsChecked(Ack{UnitId(4), 5});
        verifyEachFieldIsChecked(makeHeartbeat(), {QStringLiteral("unit")});
        verifyEachFieldIsChecked(Stats{.group = Sums{}}, {QStringLiteral("group")});
        verifyEachFieldIsChecked(Log{});
        verifyEachFieldIsChecked(Cancel{});
        verifyEachFieldIsChecked(Bye{});
    }

    void fieldsInsideAGroupAreNamedWithIt()
    {
        json whole = asJson(encode(Stats{}));
        whole["own"]["lossSum"] = std::numeric_limits<double>::quiet_NaN();
        const auto stats = decode<Stats>(cbor(whole));
        QVERIFY(!stats);
        QVERIFY(stats.error().message.find("field own.lossSum is not finite") != std::string::npos);
        whole = asJson(encode(Stats{}));
        whole["own"]["items"] = -3;
        QVERIFY(!decode<Stats>(cbor(whole)));
        whole = asJson(encode(Stats{}));
        whole["own"]["items"] = std::numeric_limits<std::uint64_t>::max();
        QVERIFY(!decode<Stats>(cbor(whole)));
    }

    void aNewerPeersExtraFieldsAreSkipped()
    {
        json whole = asJson(encode(makeHello()));
        whole["later"] = {{"a", 1}};
        QVERIFY(decode<Hello>(cbor(whole)).has_value());
    }

    void bytesOutsideTheRulesAreRefused_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        const auto row = [](const char* name, const std::vector<std::byte>& bytes) {
            QTest::newRow(name) << QByteArray(reinterpret_cast<const char*>(bytes.data()),
                                              static_cast<qsizetype>(bytes.size()));
        };
        row("empty", {});
        row("no map", raw({0x01}));
        row("F-27 nested arrays", std::vector<std::byte>(1000000, std::byte{0x81}));
        auto nested = raw({0xA1, 0x61, 0x61});
        nested.insert(nested.end(), 1000000, std::byte{0x81});
        row("F-27 nested arrays in a map", nested);
        row("F-27 indefinite map", raw({0xBF, 0xFF}));
        row("F-27 indefinite text", raw({0xA1, 0x61, 0x61, 0x7F, 0x61, 0x62, 0xFF}));
        row("indefinite key", raw({0xA1, 0x7F, 0x61, 0x62, 0xFF, 0x01}));
        row("F-27 trailing byte", raw({0xA0, 0x00}));
        row("F-27 duplicate key", raw({0xA2, 0x61, 0x61, 0x01, 0x61, 0x61, 0x02}));
        row("key is a number", raw({0xA1, 0x01, 0x01}));
        row("tag", raw({0xA1, 0x61, 0x61, 0xC1, 0x01}));
        row("byte string", raw({0xA1, 0x61, 0x61, 0x41, 0x01}));
        row("undefined", raw({0xA1, 0x61, 0x61, 0xF7}));
        row("reserved length", raw({0xA1, 0x61, 0x61, 0x1C}));
        row("huge map", raw({0xBB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}));
        row("huge array",
            raw({0xA1, 0x61, 0x61, 0x9B, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}));
        row("huge text",
            raw({0xA1, 0x61, 0x61, 0x7B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x61}));
        row("broken UTF-8", raw({0xA1, 0x61, 0x61, 0x61, 0xFF}));
        row("cut off", raw({0xA1, 0x61, 0x61}));
        row("cut off number", raw({0xA1, 0x61, 0x61, 0x1B, 0x00}));
        std::vector<std::byte> large = cbor({{"a", std::string(maxControlBytes, 'x')}});
        row("larger than 1 MiB", large);
    }
    void bytesOutsideTheRulesAreRefused()
    {
        QFETCH(QByteArray, bytes);
        const auto span =
            std::as_bytes(std::span{bytes.constData(), static_cast<std::size_t>(bytes.size())});
        const auto drain = decode<Drain>(span);
        QVERIFY(!drain);
        QCOMPARE(QString::fromStdString(drain.error().code), QStringLiteral("E-WIRE-030"));
        QVERIFY(!decode<Hello>(span));
    }

    void aLogLineIsCutAtACharacter()
    {
        std::string text(199, 'x');
        text += "é and more";
        const auto log = decode<Log>(encode(Log{LogLevel::Info, text}));
        QVERIFY(log.has_value());
        QCOMPARE(log->text, std::string(199, 'x'));
        const auto broken = decode<Log>(encode(Log{LogLevel::Info, "a\xFF"}));
        QVERIFY(broken.has_value());
        QCOMPARE(broken->text, std::string("a\xEF\xBF\xBD"));
    }

    void damagedMessagesDoNoHarm()
    {
        std::mt19937 random(7);
        const auto hello = encode(makeHello());
        const auto heartbeat = encode(makeHeartbeat());
        for (int i = 0; i < 20000; ++i) {
            auto bytes = i % 2 == 0 ? hello : heartbeat;
            for (unsigned c = 0; c <= random() % 3; ++c)
                bytes[random() % bytes.size()] = static_cast<std::byte>(random() & 0xFFU);
            (void)decode<Hello>(bytes);
            (void)decode<Heartbeat>(bytes);
        }
    }
};

QTEST_GUILESS_MAIN(TestMessage)
#include "tst_message.moc"
