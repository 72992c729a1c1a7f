// SPDX-License-Identifier: Apache-2.0
#include "launch/private_directory.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace muster;
using namespace muster::launch;

namespace fs = std::filesystem;

class TestPrivateDirectory : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    fs::path top() const { return m_folder.path().toStdString(); }

    static unsigned modeOf(const fs::path& path)
    {
        struct stat facts = {};
        return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777U : 0U;
    }

private Q_SLOTS:
    void makesAFolderForThisUserAlone()
    {
        const mode_t old = ::umask(0);
        const fs::path wanted = top() / "fresh";
        QVERIFY(createPrivateDirectory(wanted).has_value());
        ::umask(old);
        QCOMPARE(modeOf(wanted), 0700U);
        QVERIFY(createPrivateDirectory(wanted).has_value());
    }

    void refusesWhatOthersCouldHavePrepared_data()
    {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("words");
        QTest::newRow("F-30 symbolic link") << "link"
                                            << "symbolic link";
        QTest::newRow("F-30 mode 0777") << "wide"
                                        << "other users may enter it";
        QTest::newRow("F-30 another user") << "foreign"
                                           << "belongs to another user";
        QTest::newRow("F-30 a file") << "file"
                                     << "is no folder";
        QTest::newRow("F-30 not empty") << "full"
                                        << "not empty";
        QTest::newRow("F-30 no parent") << "absent/below"
                                        << "No such file";
    }

    void refusesWhatOthersCouldHavePrepared()
    {
        QFETCH(QString, kind);
        QFETCH(QString, words);
        const fs::path wanted = top() / kind.toStdString();
        if (kind == "link") {
            fs::create_directory(top() / "target");
            fs::create_directory_symlink(top() / "target", wanted);
        } else if (kind == "file") {
            std::ofstream(wanted) << "x";
        } else if (kind != "absent/below") {
            QVERIFY(::mkdir(wanted.c_str(), 0700) == 0);
        }
        if (kind == "wide") {
            QVERIFY(::chmod(wanted.c_str(), 0777) == 0);
        } else if (kind == "full") {
            std::ofstream(wanted / "planted") << "x";
        } else if (kind == "foreign" && ::chown(wanted.c_str(), 12345, 12345) != 0) {
            QSKIP("giving a folder to another user needs root");
        }
        const Status status = createPrivateDirectory(wanted);
        QVERIFY(!status.has_value());
        QCOMPARE(status.error().code, std::string("E-LAUNCH-020"));
        QVERIFY2(status.error().message.find(words.toStdString()) != std::string::npos,
                 status.error().message.c_str());
    }

    void aFreshFolderIsPrivateShortAndGoesAway()
    {
        fs::path path;
        {
            auto made = PrivateDirectory::create("control.sock");
            QVERIFY(made.has_value());
            path = made->path();
            QCOMPARE(modeOf(path), 0700U);
            QVERIFY((path / "control.sock").string().size() <= maxSocketPath);
            std::ofstream(path / "key") << "x";
            const PrivateDirectory moved = std::move(*made);
            QCOMPARE(moved.path(), path);
        }
        QVERIFY(!fs::exists(path));
    }

    void aLongPathIsPassedOver()
    {
        const fs::path deep = top() / std::string(100, 'd');
        fs::create_directory(deep);
        const QByteArray oldRuntime = qgetenv("XDG_RUNTIME_DIR");
        const QByteArray oldTemporary = qgetenv("TMPDIR");
        qunsetenv("XDG_RUNTIME_DIR");
        qputenv("TMPDIR", deep.c_str());
        auto made = PrivateDirectory::create("control.sock"); // F-30, more than 107 bytes
        oldRuntime.isNull() ? qunsetenv("XDG_RUNTIME_DIR") : qputenv("XDG_RUNTIME_DIR", oldRuntime);
        oldTemporary.isNull() ? qunsetenv("TMPDIR") : qputenv("TMPDIR", oldTemporary);
        QVERIFY(made.has_value());
        QCOMPARE(made->path().parent_path(), fs::path("/tmp"));
        QCOMPARE(PrivateDirectory::create(std::string(120, 'n')).error().code,
                 std::string("E-LAUNCH-021"));
    }
};

QTEST_GUILESS_MAIN(TestPrivateDirectory)
#include "tst_private_directory.moc"
