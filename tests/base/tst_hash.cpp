// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <QtTest>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

using muster::Hash128;
using muster::hash128;
using muster::Hasher;
using muster::UnorderedDigest;

namespace {

using Pairs = std::vector<std::pair<std::uint64_t, Hash128>>;

Hash128 digestOf(const Pairs& pairs)
{
    UnorderedDigest digest;
    for (const auto& [index, hash] : pairs)
        digest.add(index, hash);
    return digest.result();
}

Pairs somePairs()
{
    Pairs pairs;
    for (std::uint64_t i = 0; i < 7; ++i)
        pairs.emplace_back(i, hash128(std::to_string(i)));
    return pairs;
}

} // namespace

class TestHash final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// Vectors: xxhsum 0.8.1, `printf TEXT | xxhsum -H2`.
    void theHashIsThatOfXxhsum_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("hex");
        QTest::newRow("nothing") << QByteArray() << QByteArray("99aa06d3014798d86001c324468d497f");
        QTest::newRow("a") << QByteArray("a") << QByteArray("a96faf705af16834e6c632b61e964e1f");
        QTest::newRow("abc") << QByteArray("abc") << QByteArray("06b05ab6733a618578af5f94892f3950");
    }

    void theHashIsThatOfXxhsum()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, hex);
        const Hash128 hash = hash128(std::string_view(text.constData(), std::size_t(text.size())));
        QCOMPARE(hash.hex(), hex.toStdString());
        QTemporaryDir folder;
        const auto path = folder.filePath(QStringLiteral("f")).toStdString();
        std::ofstream(path, std::ios::binary) << text.toStdString();
        const auto ofFile = muster::hashFile(path);
        QVERIFY(ofFile.has_value());
        QVERIFY(*ofFile == hash);
    }

    void aHashIsReadBack()
    {
        const Hash128 hash = hash128("x");
        Hash128 read;
        QVERIFY(Hash128::parse(hash.hex(), read));
        QVERIFY(read == hash);
        const Hash128 before = read;
        for (const char* bad :
             {"", "12", "99aa06d3014798d86001c324468d497", "99aa06d3014798d86001c324468d497ff",
              "99aa06d3014798d86001c324468d497g"})
            QVERIFY2(!Hash128::parse(bad, read), bad);
        QVERIFY(read == before);
    }

    void aSeedChangesTheHash() { QVERIFY(hash128("x", 1) != hash128("x")); }

    void aMissingFileIsAnError()
    {
        const auto hash = muster::hashFile("/nonexistent/file");
        QVERIFY(!hash.has_value());
        QCOMPARE(hash.error().code, std::string("E-FILE-001"));
    }

    void theBordersOfFieldsCount()
    {
        QVERIFY(Hasher().add("a").add("bc").result() != Hasher().add("ab").add("c").result());
        QVERIFY(Hasher().add("").add("a").result() != Hasher().add("a").add("").result());
        QVERIFY(Hasher().add("a").add("bc").result() == Hasher().add("a").add("bc").result());
        QVERIFY(Hasher().add(0.0).result() != Hasher().add(-0.0).result());
        QVERIFY(Hasher(1).add("a").result() != Hasher(2).add("a").result());
    }

    void anUnorderedDigestDoesNotDependOnTheOrder()
    {
        Pairs pairs = somePairs();
        const Hash128 reference = digestOf(pairs);
        int orders = 0;
        do {
            QVERIFY(digestOf(pairs) == reference);
        } while (std::next_permutation(pairs.begin(), pairs.end()) && ++orders < 2000);
        std::reverse(pairs.begin(), pairs.end());
        QVERIFY(digestOf(pairs) == reference);
    }

    void anUnorderedDigestSeesEveryChange()
    {
        const Pairs pairs = somePairs();
        const Hash128 reference = digestOf(pairs);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            Pairs removed = pairs;
            removed.erase(removed.begin() + std::ptrdiff_t(i));
            QVERIFY(digestOf(removed) != reference);
            Pairs repeated = pairs;
            repeated.push_back(pairs[i]);
            QVERIFY(digestOf(repeated) != reference);
            Pairs renumbered = pairs;
            renumbered[i].first += 100;
            QVERIFY(digestOf(renumbered) != reference);
            for (const std::uint64_t bit : {std::uint64_t{1}, std::uint64_t{1} << 63U}) {
                Pairs changed = pairs;
                changed[i].second.low ^= bit;
                QVERIFY(digestOf(changed) != reference);
                changed = pairs;
                changed[i].second.high ^= bit;
                QVERIFY(digestOf(changed) != reference);
            }
            Pairs swapped = pairs;
            std::swap(swapped[i].second, swapped[(i + 1) % pairs.size()].second);
            QVERIFY(digestOf(swapped) != reference);
        }
        QVERIFY(digestOf({}) != digestOf({{0, Hash128{}}}));
    }
};

QTEST_GUILESS_MAIN(TestHash)
#include "tst_hash.moc"
