// SPDX-License-Identifier: Apache-2.0
#include "config/read.h"

#include "config/suggest.h"

#include <QtTest>

#include <filesystem>
#include <fstream>

using namespace muster;
using namespace muster::config;

namespace {

Reading read(const char* text)
{
    return readToml({"qa.toml", text, {}});
}

void put(const std::filesystem::path& path, std::string_view text)
{
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

} // namespace

class TestRead final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void anEmptyFileIsTheDefaults()
    {
        const Reading reading = read("");
        QVERIFY(reading.problems.empty());
        QVERIFY(reading.resolved.config == RunConfig{});
    }

    void everyTableIsRead()
    {
        const Reading reading = read(R"(schema = 1
task = "qa"
name = "a"
[model]
path = "m"
dtype = "bf16"
[data]
files = ["a.json", "b.json"]
limit = 7
[qa]
max_seq_length = 512
null_threshold = 1
abstentions = ["unknown"]
[plan]
schedule = "compat:sampler"
[cluster]
ranks = 3
pin = false
oversubscribe = "true"
[gates]
em = ">= 60"
f1 = ["> 1", "< 99.5"]
)");
        for (const Problem& problem : reading.problems)
            qWarning("%s", problem.text().c_str());
        QVERIFY(reading.problems.empty());
        const RunConfig& c = reading.resolved.config;
        QCOMPARE(c.model.dtype, Dtype::Bfloat16);
        QCOMPARE(c.data.files.size(), 2U);
        QCOMPARE(c.data.limit.value_or(0), 7U);
        QCOMPARE(c.qa.maxSeqLength, 512U);
        QCOMPARE(c.qa.nullThreshold, 1.0);
        QCOMPARE(c.plan.schedule, Schedule::Compat);
        QCOMPARE(QString::fromStdString(c.plan.compat), QStringLiteral("sampler"));
        QCOMPARE(c.cluster.pin, Switch::Off);
        QCOMPARE(c.cluster.oversubscribe, Switch::On);
        QCOMPARE(c.gates.size(), 3U);
        QCOMPARE(c.gates[0], (Gate{"em", ">=", 60.0}));
        QCOMPARE(reading.resolved.originOf("qa.max_seq_length").line, 11U);
        QCOMPARE(reading.resolved.originOf("gates.em").line, 21U);
    }

    void aProblemNamesFileLineColumnAndKey_data()
    {
        QTest::addColumn<QByteArray>("toml");
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("unknown key") << QByteArray("[qa]\ndoc_strid = 4\n")
                                     << QByteArray("qa.toml:2:1: E-CONFIG-002: qa.doc_strid: "
                                                   "unknown key; did you mean doc_stride?");
        QTest::newRow("wrong table") << QByteArray("[qa]\nranks = 4\n")
                                     << QByteArray("qa.toml:2:1: E-CONFIG-002: qa.ranks: unknown "
                                                   "key; did you mean cluster.ranks?");
        QTest::newRow("unknown table")
            << QByteArray("[modle]\npath = 'm'\n") << QByteArray("did you mean model?");
        QTest::newRow("wrong type")
            << QByteArray("[qa]\nn_best = \"20\"\n")
            << QByteArray("qa.toml:2:10: E-CONFIG-003: qa.n_best: a whole number");
        QTest::newRow("text for a table") << QByteArray("qa = 3\n") << QByteArray("E-CONFIG-003");
        QTest::newRow("range")
            << QByteArray("[qa]\nmax_seq_length = 4\n")
            << QByteArray("qa.toml:2:18: E-CONFIG-004: qa.max_seq_length: 4 is outside 8 to 65536");
        QTest::newRow("negative") << QByteArray("[cluster]\nranks = -1\n")
                                  << QByteArray("E-CONFIG-004: cluster.ranks: -1 is negative");
        QTest::newRow("not a number")
            << QByteArray("[metrics]\nconfidence = nan\n") << QByteArray("E-CONFIG-004");
        QTest::newRow("infinite") << QByteArray("[cluster]\ntimeout_s = inf\n")
                                  << QByteArray("E-CONFIG-004");
        QTest::newRow("choice") << QByteArray("[plan]\nschedule = \"dynamik\"\n")
                                << QByteArray("E-CONFIG-005");
        QTest::newRow("compat without a name")
            << QByteArray("[plan]\nschedule = \"compat:\"\n") << QByteArray("E-CONFIG-005");
        QTest::newRow("stride") << QByteArray("[qa]\nmax_seq_length = 64\n")
                                << QByteArray("E-CONFIG-006: qa.doc_stride (128) must be below");
        QTest::newRow("layout") << QByteArray("schema = 2\n") << QByteArray("E-CONFIG-007");
        QTest::newRow("not UTF-8")
            << QByteArray("name = \"\xff\"\n") << QByteArray("qa.toml:1: E-CONFIG-008");
        QTest::newRow("gate") << QByteArray("[gates]\nem = \"60\"\n")
                              << QByteArray("qa.toml:2:6: E-CONFIG-009");
        QTest::newRow("not TOML") << QByteArray("[qa\nx = 1\n")
                                  << QByteArray("qa.toml:1:4: E-CONFIG-001");
        QTest::newRow("twice") << QByteArray("[qa]\nn_best = 1\nn_best = 2\n")
                               << QByteArray("qa.toml:3:");
        QTest::newRow("deep key") << QByteArray("a") + QByteArray(".a").repeated(100000) + " = 1\n"
                                  << QByteArray("qa.toml:1:1: E-CONFIG-001");
    }

    void aProblemNamesFileLineColumnAndKey()
    {
        QFETCH(QByteArray, toml);
        QFETCH(QByteArray, text);
        const Reading reading = readToml({"qa.toml", toml.toStdString(), {}});
        QVERIFY(!reading.problems.empty());
        const QByteArray found = QByteArray::fromStdString(reading.problems.front().text());
        QVERIFY2(found.contains(text), found.constData());
    }

    void allProblemsAreReportedTogether()
    {
        const Reading reading = read("tsk = 1\n[qa]\nn_best = 0\nties = \"x\"\n[cluster]\npin=3\n");
        QCOMPARE(reading.problems.size(), 4U);
        const auto result = reading.result();
        QVERIFY(!result);
        QCOMPARE(result.error().kind, Error::Kind::Invalid);
        QVERIFY(result.error().message.find("4 problems") != std::string::npos);
    }

    void aRelativePathIsRelativeToItsFile()
    {
        const QTemporaryDir dir;
        const std::filesystem::path base = dir.path().toStdString();
        put(base / "c" / "qa.toml", "[model]\npath='../m'\n[data]\nfiles=['d.json','/x/e.json']\n");
        const Reading reading = readTomlFile(base / "c" / "qa.toml");
        QVERIFY(reading.problems.empty());
        QCOMPARE(reading.resolved.config.model.path.string(), (base / "m").string());
        QCOMPARE(reading.resolved.config.data.files[0].string(), (base / "c/d.json").string());
        QCOMPARE(reading.resolved.config.data.files[1].string(), std::string("/x/e.json"));
        put(base / "s.toml", "[model]\npath='synthetic'\n");
        QCOMPARE(readTomlFile(base / "s.toml").resolved.config.model.path.string(),
                 std::string("synthetic"));
    }

    void aStrongerLayerWinsAndIsNamed()
    {
        const QTemporaryDir dir;
        const std::filesystem::path base = dir.path().toStdString();
        put(base / "site.toml", "[qa]\nn_best=1\nmax_answer_length=1\n[cluster]\nranks=1\n[gates]\n"
                                "em='>= 1'\nf1='>= 1'\n");
        put(base / "user.toml", "[qa]\nn_best=2\nmax_seq_length=200\n[cluster]\nranks=2\n");
        put(base / "muster.toml", "[qa]\nn_best=3\ndoc_stride=33\n[cluster]\nranks=3\n");
        put(base / "given.toml", "[qa]\nn_best=4\n[cluster]\nranks=4\nhello_s=4\n");
        Sources sources;
        sources.siteFiles = {base / "site.toml", base / "absent.toml"};
        sources.userFile = base / "user.toml";
        sources.projectFile = base / "muster.toml";
        sources.givenFile = base / "given.toml";
        sources.environment = {{"MUSTER_QA_N_BEST", "5"},
                               {"MUSTER_RANKS", "5"},
                               {"MUSTER_SHARED", "x"},
                               {"MUSTER_RUN_KEY", "x"}};
        sources.flags = {{"--ranks", "ranks", "6"},
                         {"--gate", "gates", "em >= 60"},
                         {"--gate", "gates", "em <= 90"},
                         {"--data", "data.files", "a"},
                         {"--data", "data.files", "b"}};
        const Reading reading = resolve(sources);
        for (const Problem& problem : reading.problems)
            qWarning("%s", problem.text().c_str());
        QVERIFY(reading.problems.empty());
        const RunConfig& c = reading.resolved.config;
        QCOMPARE(c.cluster.ranks, 6U);
        QCOMPARE(c.qa.nBest, 5U);
        QCOMPARE(c.cluster.helloS, 4.0);
        QCOMPARE(c.qa.docStride, 33U);
        QCOMPARE(c.qa.maxSeqLength, 200U);
        QCOMPARE(c.qa.maxAnswerLength, 1U);
        QCOMPARE(c.data.files.size(), 2U);
        QCOMPARE(c.gates.size(), 3U);
        QCOMPARE(c.gates[0], (Gate{"em", ">=", 60}));
        QCOMPARE(c.gates[2], (Gate{"f1", ">=", 1}));
        const Resolved& r = reading.resolved;
        QCOMPARE(r.originOf("cluster.ranks").layer, Layer::Flag);
        QCOMPARE(r.originOf("qa.n_best").layer, Layer::Environment);
        QCOMPARE(r.originOf("cluster.hello_s").layer, Layer::Given);
        QCOMPARE(r.originOf("qa.doc_stride").layer, Layer::Project);
        QCOMPARE(r.originOf("qa.max_seq_length").layer, Layer::User);
        QCOMPARE(r.originOf("qa.max_answer_length").layer, Layer::Site);
        QCOMPARE(r.originOf("qa.ties").layer, Layer::Default);
        QCOMPARE(r.originOf("qa.max_answer_length").line, 3U);
    }

    void aGivenFileMustExist()
    {
        Sources sources;
        sources.givenFile = "/nonexistent/qa.toml";
        const auto result = resolve(sources).result();
        QVERIFY(!result);
        QCOMPARE(result.error().kind, Error::Kind::NotFound);
    }

    void aFlagNamesAFullKeyOrAUniqueLeaf_data()
    {
        QTest::addColumn<QByteArray>("name");
        QTest::addColumn<QByteArray>("value");
        QTest::addColumn<QByteArray>("code");
        const auto row = [](const char* n, const char* v, const char* c) {
            QTest::addRow("%s=%s", n, v) << QByteArray(n) << QByteArray(v) << QByteArray(c);
        };
        row("qa.doc_stride", "64", "");
        row("doc_stride", "64", "");
        row("schedule", "stride", "");
        row("schedule", "compat:sampler", "");
        row("gather", "collective", "");
        row("files", "[\"a\", 'b']", "");
        row("limit", "none", "");
        row("confidence", "0.9", "");
        row("dtype", "bf16", "");
        row("doc_strid", "64", "E-CONFIG-002");
        row("doc_stride", "x", "E-CONFIG-003");
        row("doc_stride", "-1", "E-CONFIG-003");
        row("doc_stride", "", "E-CONFIG-003");
        row("seed", "99999999999999999999", "E-CONFIG-004");
        row("seed", "9223372036854775808", "E-CONFIG-004");
        row("seed", "9223372036854775807", "");
        row("files", "[1]", "E-CONFIG-003");
        row("files", "[\"a\"]\nx=1", "E-CONFIG-003");
        row("gather", "streem", "E-CONFIG-005");
        row("schema", "2", "E-CONFIG-004");
        row("gates", "em", "E-CONFIG-009");
    }

    void aFlagNamesAFullKeyOrAUniqueLeaf()
    {
        QFETCH(QByteArray, name);
        QFETCH(QByteArray, value);
        QFETCH(QByteArray, code);
        Sources sources;
        sources.flags = {{"--set", name.toStdString(), value.toStdString()}};
        const auto result = resolve(sources).result();
        QCOMPARE(result ? QByteArray() : QByteArray::fromStdString(result.error().code), code);
        if (!result)
            QCOMPARE(result.error().kind, Error::Kind::Usage);
    }

    void setNeedsAKeyAndAValue()
    {
        QVERIFY(parseSet("a=b=c"));
        QCOMPARE(parseSet("a=b=c")->text, std::string("b=c"));
        QVERIFY(!parseSet("a"));
        QVERIFY(!parseSet("=b"));
    }

    void theNearestWordIsSuggested()
    {
        const std::vector<std::string> words{"run", "resume", "history", "export"};
        QCOMPARE(nearest("rnu", words), std::string("run"));
        QCOMPARE(nearest("resmue", words), std::string("resume"));
        QCOMPARE(nearest("zzz", words), std::string());
        QCOMPARE(nearest("", words), std::string());
    }
};

QTEST_GUILESS_MAIN(TestRead)
#include "tst_read.moc"
