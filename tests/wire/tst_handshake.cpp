// SPDX-License-Identifier: Apache-2.0
#include "wire/handshake.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <sys/stat.h>

using namespace muster;
using namespace muster::wire;

namespace {

const Claim someone{.group = 1, .generation = 2, .rank = 3};

} // namespace

class TestHandshake : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void bothSidesProveTheSameKey()
    {
        const Key key = makeKey();
        ServerHandshake server(key);
        RankHandshake rank(key, someone);
        const auto proof = rank.onChallenge(server.challenge());
        QVERIFY(proof.has_value());
        QVERIFY(!rank.isDone());
        const auto answer = server.onProof(*proof);
        QVERIFY(answer.has_value());
        QVERIFY(server.isDone());
        QCOMPARE(server.claim(), someone);
        QVERIFY(rank.onProof(*answer).has_value());
        QVERIFY(rank.isDone());
    }

    void aPeerWithoutTheKeyIsRefusedInOneWay_data()
    {
        QTest::addColumn<int>("kind");
        QTest::newRow("F-23 without a proof") << 0;
        QTest::newRow("F-23 wrong key") << 1;
        QTest::newRow("F-23 key of an older generation") << 2;
        QTest::newRow("claim of an older generation") << 3;
        QTest::newRow("changed claim") << 4;
        QTest::newRow("recorded proof for another nonce") << 5;
        QTest::newRow("proof cut off") << 6;
        QTest::newRow("proof too long") << 7;
    }
    void aPeerWithoutTheKeyIsRefusedInOneWay()
    {
        QFETCH(int, kind);
        const Key runKey = makeKey();
        const auto lookup = [&runKey](const Claim& claim) -> std::optional<Key> {
            if (claim.group != 1 || claim.generation != 2)
                return std::nullopt;
            return deriveKey(runKey, claim.group, claim.generation);
        };
        ServerHandshake server(lookup);
        Key key = deriveKey(runKey, 1, 2);
        Claim claim = someone;
        if (kind == 1)
            key = makeKey();
        if (kind == 2)
            key = deriveKey(runKey, 1, 1);
        if (kind == 3) {
            key = deriveKey(runKey, 1, 1);
            claim.generation = 1;
        }
        RankHandshake rank(key, claim);
        const ServerHandshake other(key);
        auto proof = *rank.onChallenge(kind == 5 ? other.challenge() : server.challenge());
        if (kind == 0)
            proof.clear();
        if (kind == 4)
            proof[40] ^= std::byte{1};
        if (kind == 6)
            proof.pop_back();
        if (kind == 7)
            proof.push_back(std::byte{0});
        const auto answer = server.onProof(proof);
        QVERIFY(!answer);
        QCOMPARE(QString::fromStdString(answer.error().code), QStringLiteral("E-WIRE-021"));
        QCOMPARE(QString::fromStdString(answer.error().message),
                 QStringLiteral("the peer could not prove that it is of this run"));
        QVERIFY(!server.isDone());
        QVERIFY(!server.onProof(proof));
        QVERIFY(!server.isDone());
    }

    void everyChangedBitOfAProofIsRefused()
    {
        const Key key = makeKey();
        const Nonce nonce = makeNonce();
        RankHandshake rank(key, someone);
        const auto good = *rank.onChallenge(ServerHandshake(key, nonce).challenge());
        QVERIFY(ServerHandshake(key, nonce).onProof(good).has_value());
        for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
            auto proof = good;
            proof[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            ServerHandshake server(key, nonce);
            QVERIFY(!server.onProof(proof));
        }
    }

    void aFalseControllerIsRefusedByTheRank()
    {
        const Key key = makeKey();
        RankHandshake rank(key, someone);
        ServerHandshake server(key);
        const auto proof = *rank.onChallenge(server.challenge());
        // A peer that only reflects what it was sent proves nothing.
        QVERIFY(!rank.onProof(std::span{proof}.last(32)));
        QVERIFY(!rank.isDone());
        RankHandshake second(key, someone);
        QVERIFY(!second.onProof(proof));
        RankHandshake third(key, someone);
        QVERIFY(!third.onChallenge(std::vector<std::byte>(31)));
        QVERIFY(!third.onChallenge(server.challenge()));
    }

    void aKeyFileIsReadAsItWasWritten()
    {
        QTemporaryDir folder;
        const auto path = folder.filePath(QStringLiteral("key")).toStdString();
        const Key key = makeKey();
        QVERIFY(writeKeyFile(path, key).has_value());
        struct stat info {};
        QCOMPARE(::stat(path.c_str(), &info), 0);
        QCOMPARE(info.st_mode & 07777U, 0600U);
        QCOMPARE(*readKeyFile(path), key);
        QVERIFY(!writeKeyFile(path, key));
    }

    void aKeyFileThatOthersMayReadIsRefused()
    {
        QTemporaryDir folder;
        const auto path = folder.filePath(QStringLiteral("key")).toStdString();
        QVERIFY(writeKeyFile(path, makeKey()).has_value());
        for (const mode_t mode : {0644U, 0640U, 0666U, 0700U, 0400U}) {
            QCOMPARE(::chmod(path.c_str(), mode), 0);
            const auto key = readKeyFile(path);
            QVERIFY(!key);
            QCOMPARE(QString::fromStdString(key.error().code), QStringLiteral("E-WIRE-020"));
        }
    }

    void aKeyFileWithOtherContentIsRefusedWithoutShowingIt()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("key"));
        for (const QByteArray& content : {QByteArray(), QByteArray(63, 'a'), QByteArray(64, 'x'),
                                          QByteArray(65, 'a'), QByteArray(100000, 'a')}) {
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
            file.write(content);
            file.close();
            QCOMPARE(::chmod(path.toLocal8Bit().constData(), 0600), 0);
            const auto key = readKeyFile(path.toStdString());
            QVERIFY(!key);
            QCOMPARE(QString::fromStdString(key.error().code), QStringLiteral("E-WIRE-020"));
            QVERIFY(key.error().message.find("aaaa") == std::string::npos);
        }
        const auto missing = readKeyFile(path.toStdString() + "-none");
        QVERIFY(!missing);
        QVERIFY(missing.error().kind == Error::Kind::NotFound);
        QVERIFY(QFile::link(path, path + QStringLiteral("-link")));
        QVERIFY(!readKeyFile(path.toStdString() + "-link"));
        QVERIFY(!readKeyFile(folder.path().toStdString()));
    }
};

QTEST_GUILESS_MAIN(TestHandshake)
#include "tst_handshake.moc"
