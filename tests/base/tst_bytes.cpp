// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <QtTest>

#include <cmath>

using muster::ByteReader;
using muster::ByteWriter;
using muster::Hash128;

class TestBytes final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsPutIsGot()
    {
        ByteWriter writer;
        writer.put(std::uint8_t{0xAB});
        writer.put(std::int32_t{-5});
        writer.put(-0.0);
        writer.putHash(Hash128{1, 2});
        const std::vector<float> values{1.5F, -2.25F};
        writer.putArray(std::span<const float>(values));
        writer.putText("t\0x");
        writer.putText({});
        ByteReader reader(writer.bytes());
        QCOMPARE(reader.get<std::uint8_t>(), std::uint8_t{0xAB});
        QCOMPARE(reader.get<std::int32_t>(), -5);
        QVERIFY(std::signbit(reader.get<double>()));
        QVERIFY(reader.getHash() == (Hash128{1, 2}));
        QVERIFY(reader.getArray<float>(2) == values);
        QVERIFY(reader.getText() == "t");
        QVERIFY(reader.getText().empty());
        QVERIFY(reader.finished());
    }

    void valuesAreLittleEndian()
    {
        ByteWriter writer;
        writer.put(std::uint32_t{0x01020304});
        writer.putAt(0, std::uint16_t{0xAABB});
        const auto bytes = writer.take();
        const std::vector<std::byte> wanted{std::byte{0xBB}, std::byte{0xAA}, std::byte{2},
                                            std::byte{1}};
        QVERIFY(bytes == wanted);
        QCOMPARE(writer.size(), std::size_t{0});
    }

    void aReadPastTheEndFailsAndStaysFailed()
    {
        const std::vector<std::byte> bytes(3, std::byte{0xFF});
        ByteReader reader(bytes);
        QCOMPARE(reader.get<std::uint32_t>(), 0U);
        QVERIFY(reader.failed());
        QCOMPARE(reader.get<std::uint8_t>(), std::uint8_t{0});
        QVERIFY(reader.take(0).empty());
        QVERIFY(!reader.finished());
    }

    void aHugeCountFailsWithoutAllocating_data()
    {
        QTest::addColumn<quint64>("count");
        QTest::newRow("one too many") << quint64{3};
        QTest::newRow("product overflows") << (quint64{1} << 61U);
        QTest::newRow("largest") << ~quint64{0};
    }

    void aHugeCountFailsWithoutAllocating()
    {
        QFETCH(quint64, count);
        const std::vector<std::byte> bytes(16);
        ByteReader reader(bytes);
        QVERIFY(reader.getArray<double>(count).empty());
        QVERIFY(reader.failed());
        ByteReader other(bytes);
        QVERIFY(other.take(count + 16).size() <= 16);
    }

    void aTextLongerThanTheBytesFails()
    {
        ByteWriter writer;
        writer.put(std::uint32_t{0xFFFFFFFF});
        writer.put(std::uint8_t{'x'});
        ByteReader reader(writer.bytes());
        QVERIFY(reader.getText().empty());
        QVERIFY(reader.failed());
    }
};

QTEST_GUILESS_MAIN(TestBytes)
#include "tst_bytes.moc"
