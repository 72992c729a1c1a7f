// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/file.h"
#include "store/run_file.h"
#include "support/synthetic_run.h"

#include <QtTest>

#include <csignal>
#include <fstream>
#include <random>
#include <set>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace muster;
using namespace muster::store;

class RunFileTest final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void givesBackThePlanAsItWasWritten();
    void givesBackTheSmallTables();
    void givesBackOutputsByUnitWhateverTheOrderOfArrival();
    void keepsTheFirstResult();
    void refusesToOverwrite();
    void refusesWhatIsNoRunFile();
    void refusesPlansThatContradictThemselves();
    void leavesNoTraceOfAnUnfinishedPlan();
    void tellsDamage();
    void holdsOutputsBackWhenTheDiskIsFull_data();
    void holdsOutputsBackWhenTheDiskIsFull();
    void keepsAllAcknowledgedUnitsWhenKilled();
    void takesTenThousandSamplesInNoTime();
    void readsWhileAnotherWrites();

private:
    std::filesystem::path fresh(const char* name)
    {
        return std::filesystem::path(m_folder.path().toStdString()) / name;
    }
    QTemporaryDir m_folder;
};

void RunFileTest::givesBackThePlanAsItWasWritten()
{
    const auto path = fresh("plan.muster");
    {
        auto file = RunFile::create(path);
        QVERIFY2(file, file ? "" : file.error().text().c_str());
        QVERIFY(!file->plan()->has_value());
        const auto done = test::writeSyntheticPlan(*file, 10'000, 300);
        QVERIFY2(done, done ? "" : done.error().text().c_str());
    }
    auto file = RunFile::open(path, Access::ReadOnly);
    QVERIFY2(file, file ? "" : file.error().text().c_str());
    const auto plan = file->plan();
    QVERIFY(plan && plan->has_value());
    QCOMPARE((*plan)->samples, 10'000U);
    QCOMPARE((*plan)->items, 10'000U);
    QCOMPARE((*plan)->units, 34U);
    QCOMPARE((*plan)->schedule, std::string("dynamic"));
    std::uint64_t next = 0;
    QVERIFY(file->forEachItem([&next](ItemIndex index, const ItemRecord& item) {
        const bool isRight = index.value == next && item.sample.value == next &&
                             item.contextAt == 12 && item.hash == test::syntheticHash(next);
        ++next;
        return isRight;
    }));
    QCOMPARE(next, 10'000U);
    next = 0;
    std::set<std::uint64_t> items;
    QVERIFY(file->forEachUnit([&](UnitId unit, UnitRecord&& record) {
        items.insert(record.items.begin(), record.items.end());
        return unit.value == next++ && record.cost > 0;
    }));
    QCOMPARE(items.size(), std::size_t{10'000});
    next = 0;
    QVERIFY(file->forEachSample([&next](SampleIndex index, SampleRecord&& sample) {
        const bool isRight = index.value == next && sample.id == "q" + std::to_string(next) &&
                             sample.isImpossible == (next % 7 == 0);
        ++next;
        return isRight;
    }));
    QCOMPARE(next, 10'000U);
    const auto context = file->context(0);
    QVERIFY(context);
    QCOMPARE(context->tokenBegin, (std::vector<std::uint64_t>{0, 5, 8, 10, 13, 16, 24}));
    QCOMPARE(context->tokenEnd, (std::vector<std::uint64_t>{4, 7, 9, 12, 15, 25, 25}));
    QCOMPARE(file->context(1).error().code, std::string("E-STORE-011"));
    QCOMPARE(file->sample(SampleIndex(10'000)).error().code, std::string("E-STORE-011"));
    QCOMPARE(file->sample(SampleIndex(9'999))->source, 9'999U);
    QVERIFY(file->checkAll());
}

void RunFileTest::givesBackTheSmallTables()
{
    const auto path = fresh("small.muster");
    const DuplicateRecord duplicate{UnitId(3), RankId(1), 2, 1, 77, false, 12, "payload byte 4"};
    const RankRecord rank{RankId(1), 2, R"({"world":8})", "{}"};
    const EventRecord event{123, 2, "E-RUN-001", "rank 1 lost", RankId(1), std::nullopt};
    const EventRecord event2{124, 0, "", "", std::nullopt, UnitId(0)};
    const SeriesRecord point{5, RankId(1), 10, 100, 1, 2, 3, 4, 5};
    const SumRecord sum{"rank", RankId(1), 2, "nll", 7, 0.1};
    const PredictionRecord prediction{
        std::string("a\0b", 3), 1.0, 0.5, std::nullopt, {std::byte{1}}};
    {
        auto file = RunFile::create(path);
        QVERIFY(file);
        QVERIFY(test::writeSyntheticPlan(*file, 10, 2));
        QVERIFY(file->setMeta(key::runId, "one"));
        QVERIFY(file->setMeta(key::runId, "two"));
        QVERIFY(file->setDocument(doc::config, "schema = 1\n"));
        QVERIFY(file->setRank(rank));
        QVERIFY(file->addEvent(event));
        QVERIFY(file->setSum(sum));
        QVERIFY(file->setPredictions(std::vector{prediction, PredictionRecord{}}));
        QVERIFY(file->setPredictions(std::vector{PredictionRecord{}, prediction}));
        auto writer = file->outputWriter();
        QVERIFY(writer);
        writer->addDuplicate(duplicate);
        writer->addEvent(event2);
        writer->addPoint(point);
        QVERIFY(writer->commit());
        QVERIFY(file->seal());
    }
    QVERIFY(!std::filesystem::exists(path.string() + "-wal"));
    auto file = RunFile::open(path, Access::ReadOnly);
    QVERIFY(file);
    QCOMPARE(file->meta(key::runId)->value(), std::string("two"));
    QVERIFY(!file->meta("absent")->has_value());
    QCOMPARE(file->allMeta()->size(), std::size_t{1});
    QCOMPARE(file->document(doc::config)->value(), std::string("schema = 1\n"));
    QVERIFY(*file->duplicates() == std::vector{duplicate});
    QVERIFY(*file->ranks() == std::vector{rank});
    QVERIFY((*file->events() == std::vector{event, event2}));
    QVERIFY((*file->events(1) == std::vector{event2}));
    QVERIFY(*file->series() == std::vector{point});
    QVERIFY(*file->sums() == std::vector{sum});
    std::vector<PredictionRecord> predictions;
    QVERIFY(file->forEachPrediction([&](SampleIndex, PredictionRecord&& record) {
        predictions.push_back(std::move(record));
        return true;
    }));
    QVERIFY((predictions == std::vector{PredictionRecord{}, prediction}));
}

void RunFileTest::givesBackOutputsByUnitWhateverTheOrderOfArrival()
{
    const auto path = fresh("outputs.muster");
    auto file = RunFile::create(path);
    QVERIFY(file && test::writeSyntheticPlan(*file, 100, 10));
    {
        auto writer = file->outputWriter();
        QVERIFY(writer);
        for (const std::uint64_t unit : {7U, 2U, 9U}) {
            QVERIFY(writer->add(test::syntheticBlock(unit, unit * 10, 10, 3), 1, 55, "node-a"));
            QVERIFY(writer->has(UnitId(unit)));
        }
        QCOMPARE(writer->pendingUnits(), std::size_t{3});
        QVERIFY((*file->doneUnits() == std::vector<std::uint8_t>(10)));
        const auto durable = writer->commit();
        QVERIFY(durable);
        QVERIFY((*durable == std::vector{UnitId(7), UnitId(2), UnitId(9)}));
        QVERIFY(writer->commit()->empty());
    }
    QVERIFY((*file->doneUnits() == std::vector<std::uint8_t>{0, 0, 1, 0, 0, 0, 0, 1, 0, 1}));
    std::vector<std::uint64_t> seen;
    QVERIFY(file->forEachOutput([&](const OutputRecord& record, wire::OutputBlock&& block) {
        seen.push_back(record.unit.value);
        return block == test::syntheticBlock(record.unit.value, record.unit.value * 10, 10, 3) &&
               record.node == "node-a" && record.generation == 1 && record.arrivalNs == 55;
    }));
    QVERIFY((seen == std::vector<std::uint64_t>{2, 7, 9}));
    QVERIFY(file->output(UnitId(7))->has_value());
    QVERIFY(!file->output(UnitId(8))->has_value());
    QCOMPARE(file->outputRecords()->size(), std::size_t{3});
}

void RunFileTest::keepsTheFirstResult()
{
    auto file = RunFile::create(fresh("first.muster"));
    QVERIFY(file && test::writeSyntheticPlan(*file, 20, 10));
    {
        auto writer = file->outputWriter();
        QVERIFY(writer->add(test::syntheticBlock(0, 0, 10, 1), 0, 0, ""));
        QCOMPARE(writer->add(test::syntheticBlock(0, 0, 10, 2), 0, 0, "").error().code,
                 std::string("E-STORE-013"));
        QCOMPARE(writer->add(test::syntheticBlock(2, 0, 10, 2), 0, 0, "").error().code,
                 std::string("E-STORE-013"));
        QVERIFY(writer->commit());
    }
    auto writer = file->outputWriter();
    QVERIFY(writer->has(UnitId(0)));
    QCOMPARE(writer->add(test::syntheticBlock(0, 0, 10, 2), 0, 0, "").error().code,
             std::string("E-STORE-013"));
    QCOMPARE((*file->output(UnitId(0)))->rank.value, 1U);
}

void RunFileTest::refusesToOverwrite()
{
    const auto path = fresh("c064.muster");
    auto first = RunFile::create(path);
    QVERIFY(first);
    QVERIFY(first->setMeta(key::runId, "first"));
    QCOMPARE(RunFile::create(path).error().code, std::string("E-STORE-001"));
    QCOMPARE(first->meta(key::runId)->value(), std::string("first"));
    QVERIFY(test::writeSyntheticPlan(*first, 4, 2));
    QCOMPARE(first->planWriter().error().code, std::string("E-STORE-010"));
}

void RunFileTest::refusesWhatIsNoRunFile()
{
    QCOMPARE(RunFile::open(fresh("absent"), Access::ReadOnly).error().code,
             std::string("E-STORE-002"));
    const auto text = fresh("text.muster");
    std::ofstream(text) << std::string(9000, 'x');
    QCOMPARE(RunFile::open(text, Access::ReadOnly).error().code, std::string("E-STORE-003"));
    const auto empty = fresh("empty.muster");
    std::ofstream{empty};
    QCOMPARE(RunFile::open(empty, Access::ReadOnly).error().code, std::string("E-STORE-003"));
    const auto newer = fresh("newer.muster");
    {
        auto file = RunFile::create(newer);
        QVERIFY(file && file->seal());
    }
    auto bytes = *readFile(newer);
    bytes[63] = schemaVersion + 1;
    QVERIFY(writeFileAtomically(newer, bytes));
    QCOMPARE(RunFile::open(newer, Access::ReadOnly).error().code, std::string("E-STORE-009"));
}

void RunFileTest::refusesPlansThatContradictThemselves()
{
    auto file = RunFile::create(fresh("wrong.muster"));
    QVERIFY(file);
    auto writer = file->planWriter();
    QVERIFY(writer);
    QCOMPARE(writer->addSample({}).error().code, std::string("E-STORE-012"));
    QCOMPARE(writer->addItem({}).error().code, std::string("E-STORE-012"));
    QCOMPARE(writer->addUnit({{0}, 1.0, 1}).error().code, std::string("E-STORE-012"));
    QCOMPARE(writer->addContext({"a", "text", {0}, {}}).error().code, std::string("E-STORE-012"));
    PlanRecord plan;
    plan.owners = {0};
    QCOMPARE(writer->finish(plan).error().code, std::string("E-STORE-012"));
}

void RunFileTest::leavesNoTraceOfAnUnfinishedPlan()
{
    auto file = RunFile::create(fresh("unfinished.muster"));
    QVERIFY(file);
    {
        auto writer = file->planWriter();
        QVERIFY(writer && writer->addContext({}) && writer->addSample({}));
    }
    QVERIFY(!file->plan()->has_value());
    QVERIFY(test::writeSyntheticPlan(*file, 0, 1));
    QCOMPARE((*file->plan())->samples, 0U);
    QVERIFY(file->checkAll());
    QVERIFY(file->doneUnits()->empty());
}

namespace {

// Everything that was read, as one hash; nothing when anything was refused.
std::optional<Hash128> contentOf(const std::filesystem::path& path)
{
    auto file = RunFile::open(path, Access::ReadOnly);
    if (!file || !file->checkAll())
        return std::nullopt;
    Hasher hasher;
    const auto plan = file->plan();
    if (!plan)
        return std::nullopt;
    if (*plan)
        hasher.add((*plan)->digest).add((*plan)->units);
    const bool isRead = file->forEachSample([&](SampleIndex, SampleRecord&& sample) {
        hasher.add(sample.id).add(sample.hash).add(sample.question);
        return true;
    }) && file->forEachItem([&](ItemIndex, const ItemRecord& item) {
        hasher.add(item.hash).add(item.sample.value);
        return true;
    }) && file->forEachUnit([&](UnitId, UnitRecord&& unit) {
        hasher.add(std::as_bytes(std::span(unit.items)));
        return true;
    }) && file->forEachOutput([&](const OutputRecord& record, wire::OutputBlock&& block) {
        hasher.add(record.unit.value).add(std::span<const std::byte>(wire::encodeBlock(block)));
        return true;
    });
    const auto id = file->meta(key::runId);
    if (!isRead || !id)
        return std::nullopt;
    hasher.add(id->value_or("absent"));
    return hasher.result();
}

} // namespace

void RunFileTest::tellsDamage()
{
    const auto path = fresh("damage.muster");
    {
        auto file = RunFile::create(path);
        QVERIFY(file && test::writeSyntheticPlan(*file, 500, 50));
        auto writer = file->outputWriter();
        for (std::uint64_t unit = 0; unit < 10; ++unit)
            QVERIFY(writer->add(test::syntheticBlock(unit, unit * 50, 50), 0, 0, "n"));
        QVERIFY(writer->commit() && file->setMeta(key::runId, "id") && file->seal());
    }
    const auto sound = *readFile(path);
    const auto expected = contentOf(path);
    QVERIFY(expected);
    const auto bad = fresh("bad.muster");
    std::mt19937 random(7);
    int found = 0;
    for (int round = 0; round < 100; ++round) {
        auto bytes = sound;
        const auto place = static_cast<std::size_t>(random() % bytes.size());
        bytes[place] = static_cast<char>(bytes[place] ^ static_cast<char>(1U << (random() % 8)));
        std::ofstream(bad, std::ios::binary).write(bytes.data(), std::ssize(bytes));
        // A bit in unused space of a page changes nothing; any other is refused.
        const auto content = contentOf(bad);
        QVERIFY2(!content || *content == *expected, qPrintable(QString::number(place)));
        found += content ? 0 : 1;
    }
    QVERIFY2(found > 20, qPrintable(QString::number(found)));
    for (const std::size_t size : {sound.size() / 2, std::size_t{100}, sound.size() - 1}) {
        std::ofstream(bad, std::ios::binary)
            .write(sound.data(), static_cast<std::streamsize>(size));
        // One byte less may be one of an unused page.
        const auto content = contentOf(bad);
        QVERIFY(!content || (size + 1 == sound.size() && *content == *expected));
    }
}

void RunFileTest::holdsOutputsBackWhenTheDiskIsFull_data()
{
    QTest::addColumn<bool>("byProcessLimit");
    QTest::newRow("F-14 page limit") << false;
    QTest::newRow("F-14 file size limit") << true;
}

void RunFileTest::holdsOutputsBackWhenTheDiskIsFull()
{
    QFETCH(bool, byProcessLimit);
    const auto path = fresh(byProcessLimit ? "full1.muster" : "full2.muster");
    auto file = RunFile::create(path);
    QVERIFY(file && test::writeSyntheticPlan(*file, 6400, 100));
    auto writer = file->outputWriter();
    QVERIFY(writer);
    QVERIFY(writer->add(test::syntheticBlock(0, 0, 100), 0, 0, ""));
    QVERIFY(writer->commit());
    const auto oldHandler = std::signal(SIGXFSZ, SIG_IGN);
    struct rlimit before {};
    ::getrlimit(RLIMIT_FSIZE, &before);
    if (byProcessLimit) {
        struct rlimit limit = before;
        limit.rlim_cur = std::filesystem::file_size(path.string() + "-wal") + 20'000;
        ::setrlimit(RLIMIT_FSIZE, &limit);
    } else {
        QVERIFY(file->limitPages(8));
    }
    for (std::uint64_t unit = 1; unit < 64; ++unit)
        QVERIFY(writer->add(test::syntheticBlock(unit, unit * 100, 100), 0, 0, ""));
    for (int attempt = 0; attempt < 3; ++attempt) {
        const auto full = writer->commit();
        QVERIFY(!full);
        QCOMPARE(full.error().kind, Error::Kind::Io);
        QCOMPARE(writer->pendingUnits(), std::size_t{63});
    }
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, oldHandler);
    {
        auto other = RunFile::open(path, Access::ReadOnly);
        QVERIFY(other);
        QCOMPARE(other->outputRecords()->size(), std::size_t{1});
    }
    QVERIFY(file->limitPages(0));
    const auto durable = writer->commit();
    QVERIFY2(durable, durable ? "" : durable.error().text().c_str());
    QCOMPARE(durable->size(), std::size_t{63});
    QVERIFY(file->checkAll());
    QCOMPARE(file->outputRecords()->size(), std::size_t{64});
}

void RunFileTest::keepsAllAcknowledgedUnitsWhenKilled()
{
    // F-13, C-061: a child appends and is killed at random moments, twenty times in a row.
    constexpr std::uint64_t units = 200'000;
    const auto path = fresh("killed.muster");
    {
        auto file = RunFile::create(path);
        QVERIFY(file && test::writeSyntheticPlan(*file, units, 1));
    }
    std::mt19937 random(std::random_device{}());
    std::set<std::uint64_t> acknowledged;
    for (int round = 0; round < 20; ++round) {
        int ends[2] = {-1, -1};
        QCOMPARE(::pipe(ends), 0);
        const pid_t child = ::fork();
        QVERIFY(child >= 0);
        if (child == 0) {
            ::close(ends[0]);
            auto file = RunFile::open(path, Access::ReadWrite);
            if (!file)
                ::_exit(3);
            auto writer = file->outputWriter();
            if (!writer)
                ::_exit(4);
            std::uint64_t unit = 0;
            while (true) {
                for (int i = 0; i < 16 && unit < units; ++unit) {
                    if (writer->has(UnitId(unit)))
                        continue;
                    if (!writer->add(test::syntheticBlock(unit, unit, 1, 0, 2000), 0, 0, ""))
                        ::_exit(5);
                    ++i;
                }
                auto durable = writer->commit();
                if (!durable)
                    ::_exit(6);
                for (const UnitId& done : *durable) {
                    if (::write(ends[1], &done.value, 8) != 8)
                        ::_exit(7);
                }
            }
        }
        ::close(ends[1]);
        std::uint64_t unit = 0;
        const auto take = [&] {
            const bool isThere = ::read(ends[0], &unit, 8) == 8;
            if (isThere)
                acknowledged.insert(unit);
            return isThere;
        };
        const std::int64_t end =
            monotonicNs() + 1'000'000 * static_cast<std::int64_t>(random() % 60);
        bool isAlive = take();
        while (isAlive && monotonicNs() < end)
            isAlive = take();
        ::kill(child, SIGKILL);
        while (take()) {
        }
        ::close(ends[0]);
        int status = 0;
        ::waitpid(child, &status, 0);
        QVERIFY2(WIFSIGNALED(status), qPrintable(QString::number(WEXITSTATUS(status))));
        auto file = RunFile::open(path, Access::ReadWrite);
        QVERIFY2(file, file ? "" : file.error().text().c_str());
        const auto done = file->doneUnits();
        QVERIFY2(done, done ? "" : done.error().text().c_str());
        for (const std::uint64_t number : acknowledged)
            QVERIFY((*done)[number] == 1);
    }
    QVERIFY(acknowledged.size() >= 320);
    auto file = RunFile::open(path, Access::ReadOnly);
    QVERIFY(file && file->checkAll());
}

void RunFileTest::takesTenThousandSamplesInNoTime()
{
    auto file = RunFile::create(fresh("time.muster"));
    QVERIFY(file);
    const std::int64_t start = monotonicNs();
    QVERIFY(test::writeSyntheticPlan(*file, 10'570, 16));
    const auto elapsedMs = (monotonicNs() - start) / 1'000'000;
    qInfo("plan of 10570 samples written in %lld ms", static_cast<long long>(elapsedMs));
    QVERIFY(elapsedMs < 2'000);
}

void RunFileTest::readsWhileAnotherWrites()
{
    const auto path = fresh("both.muster");
    auto file = RunFile::create(path);
    QVERIFY(file && test::writeSyntheticPlan(*file, 100, 10));
    auto reader = RunFile::open(path, Access::ReadOnly);
    QVERIFY(reader);
    auto writer = file->outputWriter();
    for (std::uint64_t unit = 0; unit < 10; ++unit) {
        QVERIFY(writer->add(test::syntheticBlock(unit, unit * 10, 10), 0, 0, ""));
        QVERIFY(writer->commit());
        QCOMPARE(reader->outputRecords()->size(), std::size_t{unit + 1});
    }
}

QTEST_GUILESS_MAIN(RunFileTest)
#include "tst_run_file.moc"
