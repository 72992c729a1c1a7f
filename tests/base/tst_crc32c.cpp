// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <QtTest>

#include <random>
#include <vector>

using muster::crc32c;

namespace {

/// Bit by bit from the polynomial, without table or instruction.
std::uint32_t byBits(std::span<const std::byte> bytes)
{
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const std::byte b : bytes) {
        crc ^= std::to_integer<std::uint32_t>(b);
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
    }
    return ~crc;
}

std::vector<std::byte> bytesOf(const QByteArray& hex)
{
    const QByteArray raw = QByteArray::fromHex(hex);
    std::vector<std::byte> bytes(std::size_t(raw.size()));
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = std::byte(static_cast<unsigned char>(raw[qsizetype(i)]));
    return bytes;
}

} // namespace

class TestCrc32c final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theVectorsOfRfc3720_data()
    {
        QTest::addColumn<QByteArray>("hex");
        QTest::addColumn<quint32>("crc");
        QByteArray up;
        QByteArray down;
        for (int i = 0; i < 32; ++i) {
            up += QByteArray::number(i, 16).rightJustified(2, '0');
            down += QByteArray::number(31 - i, 16).rightJustified(2, '0');
        }
        QTest::newRow("nothing") << QByteArray() << 0U;
        QTest::newRow("zeros") << QByteArray(64, '0') << 0x8A9136AAU;
        QTest::newRow("ones") << QByteArray(64, 'f') << 0x62A8AB43U;
        QTest::newRow("ascending") << up << 0x46DD794EU;
        QTest::newRow("descending") << down << 0x113FDB5CU;
        QTest::newRow("iSCSI read") << QByteArray("01c00000000000000000000000000000"
                                                  "14000000000004000000001400000018"
                                                  "28000000000000000200000000000000")
                                    << 0xD9963A56U;
        QTest::newRow("123456789") << QByteArray("123456789").toHex() << 0xE3069283U;
    }

    void theVectorsOfRfc3720()
    {
        QFETCH(QByteArray, hex);
        QFETCH(quint32, crc);
        QCOMPARE(crc32c(bytesOf(hex)), crc);
    }

    void everyLengthAndAlignmentAgreesWithTheDefinition()
    {
        std::mt19937 random(1);
        std::vector<std::byte> bytes(300);
        for (std::byte& b : bytes)
            b = std::byte(random() & 255U);
        for (std::size_t from = 0; from < 9; ++from)
            for (std::size_t size = 0; size + from <= 100; ++size) {
                const auto part = std::span<const std::byte>(bytes).subspan(from, size);
                QCOMPARE(crc32c(part), byBits(part));
            }
    }

    void piecesGiveTheCrcOfTheWhole()
    {
        const auto bytes = bytesOf(QByteArray("00112233445566778899aabbccddeeff0102030405"));
        const std::span<const std::byte> all(bytes);
        for (std::size_t cut = 0; cut <= all.size(); ++cut)
            QCOMPARE(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
    }

    void everyFlippedBitIsSeen()
    {
        auto bytes = bytesOf(QByteArray("00112233445566778899aabbccddeeff"));
        const auto reference = crc32c(bytes);
        for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
            bytes[bit / 8] ^= std::byte(1U << (bit % 8));
            QVERIFY(crc32c(bytes) != reference);
            bytes[bit / 8] ^= std::byte(1U << (bit % 8));
        }
    }
};

QTEST_GUILESS_MAIN(TestCrc32c)
#include "tst_crc32c.moc"
