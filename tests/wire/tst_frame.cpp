// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include "base/crc32c.h"

#include <QTest>

#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace muster;
using namespace muster::wire;

namespace {

constexpr std::uint64_t tag = 0x1122334455667788U;

std::vector<std::byte> bytesOf(std::size_t size, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(size);
    for (std::byte& b : bytes)
        b = static_cast<std::byte>(random() & 0xFFU);
    return bytes;
}

template <typename T>
void patch(std::vector<std::byte>& frame, std::size_t at, T value)
{
    std::memcpy(frame.data() + at, &value, sizeof(T));
}

std::string codeOf(std::span<const std::byte> bytes, bool isAuthenticated = true)
{
    FrameParser parser(tag);
    if (isAuthenticated)
        parser.setAuthenticated();
    parser.feed(bytes);
    for (;;) {
        const auto frame = parser.next();
        if (!frame)
            return frame.error().code;
        if (!*frame)
            break;
    }
    const Status end = parser.finish();
    return end ? "" : end.error().code;
}

} // namespace

class TestFrame : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theHeaderIsLaidOutAsStated()
    {
        const auto payload = bytesOf(5, 1);
        const auto frame = encodeFrame(FrameType::Ack, payload, 7, tag);
        QCOMPARE(frame.size(), std::size_t{37});
        const auto text = [&frame](std::size_t at, std::size_t size) {
            return QByteArray(reinterpret_cast<const char*>(frame.data() + at),
                              static_cast<qsizetype>(size));
        };
        QCOMPARE(text(0, 4), QByteArray("MSTR"));
        QCOMPARE(text(4, 2).toHex(), QByteArray("0001"));
        QCOMPARE(text(6, 2).toHex(), QByteArray("0800"));
        QCOMPARE(text(8, 4).toHex(), QByteArray("05000000"));
        std::uint32_t crc = 0;
        std::memcpy(&crc, frame.data() + 12, 4);
        QCOMPARE(crc, crc32c(payload));
        QCOMPARE(text(16, 8).toHex(), QByteArray("0700000000000000"));
        QCOMPARE(text(24, 8).toHex(), QByteArray("8877665544332211"));
    }

    void everySplitOfAStreamGivesTheSameFrames()
    {
        std::mt19937 random(5);
        std::vector<std::byte> stream;
        std::vector<std::vector<std::byte>> payloads;
        for (unsigned i = 0; i < 60; ++i) {
            payloads.push_back(bytesOf(i % 7 == 0 ? 0 : random() % 3000, i));
            appendFrame(stream, static_cast<FrameType>(1 + i % 15), payloads.back(), i * 3 + 1,
                        tag);
        }
        for (int round = 0; round < 50; ++round) {
            FrameParser parser(tag);
            parser.setAuthenticated();
            std::size_t at = 0;
            std::size_t seen = 0;
            while (at < stream.size()) {
                const std::size_t most = round == 0 ? 1 : round == 1 ? stream.size() : 5000;
                const std::size_t size = std::min(stream.size() - at, 1 + random() % most);
                if (round % 2 == 0) {
                    parser.feed(std::span{stream}.subspan(at, size));
                } else {
                    const auto space = parser.space(size);
                    QVERIFY(space.size() >= size);
                    std::memcpy(space.data(), stream.data() + at, size);
                    parser.filled(size);
                }
                at += size;
                for (;;) {
                    const auto frame = parser.next();
                    QVERIFY(frame.has_value());
                    if (!*frame)
                        break;
                    QCOMPARE((*frame)->sequence, seen * 3 + 1);
                    QCOMPARE(static_cast<unsigned>((*frame)->type),
                             static_cast<unsigned>(1 + seen % 15));
                    QVERIFY(std::ranges::equal((*frame)->payload, payloads[seen]));
                    ++seen;
                }
            }
            QCOMPARE(seen, payloads.size());
            QVERIFY(parser.finish().has_value());
        }
    }

    void aFaultyFrameIsRefusedByItsCause_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<bool>("isAuthenticated");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, const std::vector<std::byte>& bytes, const char* code,
                            bool isAuthenticated = true) {
            QTest::newRow(name) << QByteArray(reinterpret_cast<const char*>(bytes.data()),
                                              static_cast<qsizetype>(bytes.size()))
                                << isAuthenticated << QString::fromLatin1(code);
        };
        const auto good = encodeFrame(FrameType::Unit, bytesOf(100, 2), 1, tag);
        row("a good frame", good, "");
        auto frame = good;
        patch<std::uint32_t>(frame, 0, 0x20544547U);
        row("F-26 wrong magic", frame, "E-WIRE-001");
        frame = good;
        patch<std::uint16_t>(frame, 4, 0x0200U);
        row("F-28 another major version", frame, "E-WIRE-002");
        frame = good;
        patch<std::uint16_t>(frame, 4, 0x0107U);
        row("F-28 another minor version", frame, "");
        frame = good;
        patch<std::uint32_t>(frame, 8, 0xFFFFFFFFU);
        row("F-26 length 0xFFFFFFFF", frame, "E-WIRE-003");
        patch<std::uint32_t>(frame, 8, 0x80000000U);
        row("F-26 length 2^31", frame, "E-WIRE-003");
        patch<std::uint64_t>(frame, 8, std::uint64_t{1} << 63U);
        row("F-26 length 2^63 as 64 bits", frame, "E-WIRE-004");
        frame = good;
        patch<std::uint32_t>(frame, 8, static_cast<std::uint32_t>(maxFrameBytes) + 1);
        row("F-26 4 MiB + 1", frame, "E-WIRE-003");
        row("F-26 4 MiB exactly",
            encodeFrame(FrameType::Outputs, std::vector<std::byte>(maxFrameBytes), 1, tag), "");
        frame = good;
        frame[12] ^= std::byte{1};
        row("F-26 wrong CRC", frame, "E-WIRE-004");
        for (const std::size_t bit : {0U, 333U, 799U}) {
            frame = good;
            frame[frameHeaderBytes + bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            row(("flipped bit " + std::to_string(bit)).c_str(), frame, "E-WIRE-004");
        }
        for (const unsigned type : {0U, 16U, 0xFFFFU}) {
            frame = good;
            patch<std::uint16_t>(frame, 6, static_cast<std::uint16_t>(type));
            row(("F-26 unknown type " + std::to_string(type)).c_str(), frame, "E-WIRE-005");
        }
        row("another run", encodeFrame(FrameType::Unit, {}, 1, tag + 1), "E-WIRE-006");
        frame = good;
        frame.insert(frame.end(), good.begin(), good.end());
        row("sequence repeated", frame, "E-WIRE-007");
        frame = encodeFrame(FrameType::Ack, {}, 9, tag);
        appendFrame(frame, FrameType::Ack, {}, 8, tag);
        row("sequence falls", frame, "E-WIRE-007");
        frame = good;
        frame.pop_back();
        row("truncated payload", frame, "E-WIRE-008");
        frame.resize(31);
        row("truncated header", frame, "E-WIRE-008");
        row("F-23 hello without proof", encodeFrame(FrameType::Hello, bytesOf(10, 1), 1, tag),
            "E-WIRE-009", false);
        row("proof before authentication", encodeFrame(FrameType::Proof, bytesOf(76, 1), 1, tag),
            "", false);
        row("64 KiB + 1 before authentication",
            encodeFrame(FrameType::Proof, bytesOf(maxFrameBytesBeforeProof + 1, 1), 1, tag),
            "E-WIRE-003", false);
    }
    void aFaultyFrameIsRefusedByItsCause()
    {
        QFETCH(QByteArray, bytes);
        QFETCH(bool, isAuthenticated);
        QFETCH(QString, code);
        QCOMPARE(
            QString::fromStdString(codeOf(
                std::as_bytes(std::span{bytes.constData(), static_cast<std::size_t>(bytes.size())}),
                isAuthenticated)),
            code);
    }

    void theVersionErrorNamesBothVersions()
    {
        auto frame = encodeFrame(FrameType::Bye, {}, 1, tag);
        patch<std::uint16_t>(frame, 4, 0x0203U);
        FrameParser parser(tag);
        parser.feed(frame);
        const auto next = parser.next();
        QVERIFY(!next);
        QVERIFY(next.error().message.find("2.3") != std::string::npos);
        QVERIFY(next.error().message.find("1.0") != std::string::npos);
    }

    void afterAnErrorNothingIsReadAnyMore()
    {
        auto frame = encodeFrame(FrameType::Bye, {}, 1, tag);
        frame[0] = std::byte{0};
        FrameParser parser(tag);
        parser.setAuthenticated();
        parser.feed(frame);
        QVERIFY(!parser.next());
        parser.feed(encodeFrame(FrameType::Bye, {}, 2, tag));
        QVERIFY(!parser.next());
        QVERIFY(!parser.finish());
    }

    void randomBytesAndRandomDamageNeverGiveAWrongPayload()
    {
        std::mt19937 random(11);
        const auto payload = bytesOf(500, 3);
        for (int i = 0; i < 20000; ++i) {
            auto frame = encodeFrame(FrameType::Outputs, payload, 1, tag);
            const auto changes = 1 + random() % 3;
            for (unsigned long c = 0; c < changes; ++c)
                frame[random() % frame.size()] ^= static_cast<std::byte>(1U << (random() % 8));
            FrameParser parser(tag);
            parser.setAuthenticated();
            parser.feed(frame);
            const auto next = parser.next();
            if (next && *next)
                QVERIFY(std::ranges::equal((*next)->payload, payload));
        }
        for (unsigned i = 0; i < 5000; ++i) {
            FrameParser parser(tag);
            parser.feed(bytesOf(i % 200, i));
            (void)parser.next();
        }
    }

    void parsingIsFast()
    {
        std::vector<std::byte> stream;
        const auto payload = bytesOf(4096, 9);
        for (std::uint64_t i = 1; i <= 4096; ++i)
            appendFrame(stream, FrameType::Outputs, payload, i, tag);
        QBENCHMARK
        {
            FrameParser parser(tag);
            parser.setAuthenticated();
            std::size_t frames = 0;
            constexpr std::size_t piece = std::size_t{256} << 10U;
            for (std::size_t at = 0; at < stream.size(); at += piece) {
                parser.feed(std::span{stream}.subspan(at, std::min(piece, stream.size() - at)));
                for (auto next = parser.next(); next && *next; next = parser.next())
                    ++frames;
            }
            QCOMPARE(frames, std::size_t{4096});
        }
    }
};

QTEST_GUILESS_MAIN(TestFrame)
#include "tst_frame.moc"
