// SPDX-License-Identifier: Apache-2.0
#include "store/history.h"
#include "store/run_file.h"

#include <QtTest>

#include <fstream>

using namespace muster;
using namespace muster::store;

class HistoryTest final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { m_folder = std::make_unique<QTemporaryDir>(); }
    void listsTheNewestFirst();
    void findsByTheStartOfAnId();
    void tagsAndRemoves();
    void rebuildsFromFolders();
    void startsAnewWhenDamaged();
    void followsTheDataFolder();

private:
    [[nodiscard]] std::filesystem::path root() const { return m_folder->path().toStdString(); }
    std::unique_ptr<QTemporaryDir> m_folder;
};

namespace {

HistoryEntry entryOf(const char* id, std::int64_t created)
{
    HistoryEntry entry;
    entry.id = id;
    entry.folder = std::filesystem::path("/runs") / id;
    entry.createdNs = created;
    entry.verdict = "ALIGNED";
    entry.ranks = 8;
    return entry;
}

} // namespace

void HistoryTest::listsTheNewestFirst()
{
    auto history = History::open(root() / "deep" / "history.sqlite");
    QVERIFY2(history, history ? "" : history.error().text().c_str());
    QVERIFY(history->list()->empty());
    QVERIFY(history->add(entryOf("a1", 1)) && history->add(entryOf("b2", 2)));
    auto changed = entryOf("a1", 1);
    changed.verdict = "INCOMPLETE";
    QVERIFY(history->add(changed));
    QVERIFY((*history->list() == std::vector{entryOf("b2", 2), changed}));
    auto again = History::open(root() / "deep" / "history.sqlite");
    QCOMPARE(again->list()->size(), std::size_t{2});
}

void HistoryTest::findsByTheStartOfAnId()
{
    auto history = History::open(root() / "history.sqlite");
    QVERIFY(history->add(entryOf("run-1", 1)) && history->add(entryOf("run-12", 2)) &&
            history->add(entryOf("other", 3)));
    QCOMPARE(history->find("oth")->id, std::string("other"));
    QCOMPARE(history->find("run-1")->id, std::string("run-1"));
    QCOMPARE(history->find("run").error().code, std::string("E-STORE-021"));
    QCOMPARE(history->find("x").error().code, std::string("E-STORE-020"));
}

void HistoryTest::tagsAndRemoves()
{
    auto history = History::open(root() / "history.sqlite");
    QVERIFY(history->add(entryOf("a", 1)));
    QVERIFY(history->tag("a", "baseline good"));
    QCOMPARE(history->find("a")->tags, std::string("baseline good"));
    QVERIFY(history->remove("a"));
    QCOMPARE(history->remove("a").error().code, std::string("E-STORE-020"));
}

void HistoryTest::rebuildsFromFolders()
{
    for (const char* id : {"one", "two"}) {
        std::filesystem::create_directories(root() / "runs" / id);
        auto file = RunFile::create(root() / "runs" / id / "run.muster");
        QVERIFY(file && file->setMeta(key::runId, id) && file->setMeta(key::ranks, "3") &&
                file->setMeta(key::createdNs, "17") && file->setMeta(key::verdict, "ALIGNED"));
    }
    std::filesystem::create_directories(root() / "runs" / "bad");
    std::ofstream(root() / "runs" / "bad" / "run.muster") << "no database";
    auto history = History::open(root() / "history.sqlite");
    auto stale = entryOf("one", 1);
    stale.tags = "kept";
    QVERIFY(history->add(stale) && history->add(entryOf("gone", 5)));
    const auto rebuilt = history->rebuild({root() / "runs", root() / "absent"});
    QVERIFY2(rebuilt, rebuilt ? "" : rebuilt.error().text().c_str());
    QCOMPARE(rebuilt->runs, 2U);
    QCOMPARE(rebuilt->problems.size(), std::size_t{1});
    const auto entries = history->list();
    QCOMPARE(entries->size(), std::size_t{2});
    QCOMPARE((*entries)[0].id, std::string("one"));
    QCOMPARE((*entries)[0].tags, std::string("kept"));
    QCOMPARE((*entries)[0].ranks, 3U);
    QCOMPARE((*entries)[0].createdNs, 17);
    QCOMPARE((*entries)[0].folder, root() / "runs" / "one");
}

void HistoryTest::startsAnewWhenDamaged()
{
    std::ofstream(root() / "history.sqlite") << std::string(5000, 'x');
    auto history = History::open(root() / "history.sqlite");
    QVERIFY2(history, history ? "" : history.error().text().c_str());
    QVERIFY(history->list()->empty());
    QVERIFY(std::filesystem::exists(root() / "history.sqlite.damaged"));
}

void HistoryTest::followsTheDataFolder()
{
    qputenv("XDG_DATA_HOME", "/data/home");
    QCOMPARE(History::defaultPath(), std::filesystem::path("/data/home/muster/history.sqlite"));
    qputenv("XDG_DATA_HOME", "relative");
    qputenv("HOME", "/home/someone");
    QCOMPARE(History::defaultPath(),
             std::filesystem::path("/home/someone/.local/share/muster/history.sqlite"));
}

QTEST_GUILESS_MAIN(HistoryTest)
#include "tst_history.moc"
