// SPDX-License-Identifier: Apache-2.0
#include "launch/flavour.h"

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QtTest>

using namespace muster;
using namespace muster::launch;

namespace fs = std::filesystem;

class TestFlavour : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    fs::path top() const { return m_folder.path().toStdString(); }

    /// A folder below the temporary one that holds the fake under these names.
    fs::path folderWith(const char* name, const std::vector<std::string>& programs) const
    {
        const fs::path folder = top() / name;
        fs::create_directories(folder);
        for (const std::string& program : programs) {
            const bool isRank = program.starts_with("muster-rank");
            fs::create_symlink(isRank ? MUSTER_FAKE_RANK : MUSTER_FAKE_LAUNCHER, folder / program);
        }
        return folder;
    }

private Q_SLOTS:
    void readsTheVersionOfEachLauncher_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("family");
        QTest::addColumn<int>("major");
        QTest::addColumn<QString>("version");
        QTest::newRow("Open MPI 4") << "mpirun (Open MPI) 4.1.4\n\nReport bugs to x\n"
                                    << int(Family::OpenMpi) << 4 << "4.1.4";
        QTest::newRow("Open MPI 4 as OpenRTE") << "mpirun.openmpi (OpenRTE) 4.1.4\n"
                                               << int(Family::OpenMpi) << 4 << "4.1.4";
        QTest::newRow("Open MPI 5") << "mpirun (Open MPI) 5.0.9\n"
                                    << int(Family::OpenMpi) << 5 << "5.0.9";
        QTest::newRow("Open MPI 5, candidate") << "mpirun (Open MPI) 5.0.0rc12\n"
                                               << int(Family::OpenMpi) << 5 << "5.0.0";
        QTest::newRow("hydra") << "HYDRA build details:\n    Version:            4.0.2\n    "
                                  "Release Date: Thu Apr  7 12:34:45 CDT 2022\n"
                               << int(Family::Mpich) << 4 << "4.0.2";
        QTest::newRow("srun") << "slurm 22.05.8\n" << int(Family::Slurm) << 22 << "22.05.8";
    }

    void readsTheVersionOfEachLauncher()
    {
        QFETCH(QString, text);
        QFETCH(int, family);
        QFETCH(int, major);
        QFETCH(QString, version);
        const auto info = parseLauncherVersion(text.toStdString());
        QVERIFY(info.has_value());
        QCOMPARE(int(info->family), family);
        QCOMPARE(info->major, major);
        QCOMPARE(QString::fromStdString(info->version), version);
    }

    void refusesAnUnknownLauncher()
    {
        for (const char* text : {"", "GNU bash 5", "\xff\xfe", "slurm", "Open"}) {
            const auto info = parseLauncherVersion(text);
            QVERIFY(!info.has_value());
            QCOMPARE(info.error().code, std::string("E-LAUNCH-002"));
        }
    }

    void readsTheLibraryOfARank()
    {
        const auto open = parseMpiLibrary("Open MPI v4.1.4, package: Debian, ident: 4.1.4\n");
        QVERIFY(open.has_value());
        QCOMPARE(open->family, Family::OpenMpi);
        QCOMPARE(open->library, std::string("Open MPI v4.1.4"));
        const auto mpich = parseMpiLibrary("MPICH Version:\t4.0.2\nMPICH Release date: x\n");
        QVERIFY(mpich.has_value());
        QCOMPARE(mpich->family, Family::Mpich);
        QCOMPARE(mpich->library, std::string("MPICH 4.0.2"));
        QCOMPARE(parseMpiLibrary("Intel(R) MPI").error().code, std::string("E-LAUNCH-004"));
    }

    void aForeignPairIsRefusedWithBothNames()
    {
        const LauncherInfo hydra{Family::Mpich, 4, "4.0.2", "/usr/bin/mpiexec.hydra"};
        const RankProgramInfo rank{Family::OpenMpi, "Open MPI v4.1.4", "0.1", "/m/muster-rank"};
        const Status status = checkMatch(hydra, rank); // F-12
        QVERIFY(!status.has_value());
        QCOMPARE(status.error().kind, Error::Kind::Launch);
        QCOMPARE(status.error().code, std::string("E-LAUNCH-003"));
        QVERIFY(status.error().message.starts_with(
            "your launcher is MPICH 4.0.2 (/usr/bin/mpiexec.hydra), the rank program is built "
            "with Open MPI v4.1.4 (/m/muster-rank)"));
        QVERIFY(checkMatch(LauncherInfo{}, rank).has_value());
    }

    void choosesAPairThatFits_data()
    {
        QTest::addColumn<QStringList>("ranks");
        QTest::addColumn<QStringList>("launchers");
        QTest::addColumn<int>("asked");
        QTest::addColumn<int>("family");
        QTest::addColumn<QString>("rank");
        QTest::addColumn<QString>("code");
        const QStringList both = {"muster-rank", "muster-rank-mpich"};
        const QStringList all = {"mpirun.openmpi", "mpiexec.hydra"};
        const int automatic = int(config::Launcher::Auto);
        QTest::newRow("both there: Open MPI first")
            << both << all << automatic << int(Family::OpenMpi) << "muster-rank"
            << "";
        QTest::newRow("only hydra") << both << QStringList{"mpiexec.hydra"} << automatic
                                    << int(Family::Mpich) << "muster-rank-mpich"
                                    << "";
        QTest::newRow("only the MPICH build")
            << QStringList{"muster-rank-mpich"} << all << automatic << int(Family::Mpich)
            << "muster-rank-mpich"
            << "";
        QTest::newRow("no launcher at all")
            << both << QStringList{} << automatic << int(Family::Plain) << "muster-rank"
            << "";
        QTest::newRow("no pair fits")
            << QStringList{"muster-rank-mpich"} << QStringList{"mpirun.openmpi"} << automatic
            << int(Family::Plain) << "muster-rank-mpich"
            << "";
        QTest::newRow("MPICH asked for") << both << all << int(config::Launcher::Mpich)
                                         << int(Family::Mpich) << "muster-rank-mpich"
                                         << "";
        QTest::newRow("plain asked for")
            << both << all << int(config::Launcher::Plain) << int(Family::Plain) << "muster-rank"
            << "";
        QTest::newRow("F-12 MPICH asked for, no build")
            << QStringList{"muster-rank"} << all << int(config::Launcher::Mpich) << 0 << ""
            << "E-LAUNCH-003";
        QTest::newRow("Open MPI asked for, no launcher")
            << both << QStringList{"mpiexec.hydra"} << int(config::Launcher::OpenMpi) << 0 << ""
            << "E-LAUNCH-005";
        QTest::newRow("no rank program") << QStringList{} << all << automatic << 0 << ""
                                         << "E-LAUNCH-005";
    }

    void choosesAPairThatFits()
    {
        QFETCH(QStringList, ranks);
        QFETCH(QStringList, launchers);
        QFETCH(int, asked);
        QFETCH(int, family);
        QFETCH(QString, rank);
        QFETCH(QString, code);
        const auto names = [](const QStringList& list) {
            std::vector<std::string> result;
            for (const QString& name : list) {
                result.push_back(name.toStdString());
            }
            return result;
        };
        const std::string row = QByteArray(QTest::currentDataTag()).toHex().toStdString();
        FlavourRequest request;
        request.launcher = static_cast<config::Launcher>(asked);
        request.ownFolder = folderWith((row + "r").c_str(), names(ranks));
        request.searchPath = folderWith((row + "l").c_str(), names(launchers)).string();
        const auto flavour = chooseFlavour(request);
        if (!code.isEmpty()) {
            QVERIFY(!flavour.has_value());
            QCOMPARE(QString::fromStdString(flavour.error().code), code);
            return;
        }
        QVERIFY2(flavour.has_value(), flavour ? "" : flavour.error().text().c_str());
        QCOMPARE(int(flavour->launcher.family), family);
        QCOMPARE(QString::fromStdString(flavour->rank.path.filename().string()), rank);
    }

    void aNamedLauncherIsUsedOrRefused()
    {
        FlavourRequest request;
        request.ownFolder = folderWith("named", {"muster-rank", "mpiexec.hydra", "mpirun5"});
        request.launcherPath = request.ownFolder / "mpirun5";
        auto flavour = chooseFlavour(request);
        QVERIFY(flavour.has_value());
        QCOMPARE(flavour->launcher.major, 5);
        request.launcherPath = request.ownFolder / "mpiexec.hydra";
        flavour = chooseFlavour(request);
        QVERIFY(!flavour.has_value());
        QCOMPARE(flavour.error().code, std::string("E-LAUNCH-003"));
        request.launcherPath = request.ownFolder / "absent";
        flavour = chooseFlavour(request);
        QVERIFY(!flavour.has_value());
        QCOMPARE(flavour.error().code, std::string("E-LAUNCH-001"));
    }

    void aLauncherThatIsSilentIsGivenUpAfterFiveSeconds()
    {
        const fs::path folder = folderWith("silent", {"silent"});
        QElapsedTimer timer;
        timer.start();
        const auto info = inspectLauncher(folder / "silent");
        QVERIFY(!info.has_value());
        QCOMPARE(info.error().code, std::string("E-LAUNCH-001"));
        QVERIFY(timer.elapsed() >= 4900);
        QVERIFY(timer.elapsed() < 8000);
    }
};

QTEST_GUILESS_MAIN(TestFlavour)
#include "tst_flavour.moc"
