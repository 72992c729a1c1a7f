// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "report/run_result.h"
#include "report/write_files.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <limits>

using namespace muster;
using namespace muster::report;

namespace {

SampleRow rowOf(std::uint64_t index)
{
    static const std::array<std::string, 3> ids = {"q-0", "q,\"1\"", "q-2"};
    SampleRow row;
    row.index = SampleIndex(index);
    row.original = row.index;
    row.id = ids[index];
    row.title = "Title";
    row.context = "A caf\xC3\xA9 in the rain.\nSecond line.";
    row.question = "Where, \"exactly\"?";
    row.targets = {"a caf\xC3\xA9", "caf\xC3\xA9"};
    row.hash = hash128(row.id);
    row.prediction = index == 1 ? "in the \"rain\"" : "caf\xC3\xA9";
    row.isComplete = index != 2;
    row.error = index == 2 ? "not computed" : "";
    row.nBest = {{"caf\xC3\xA9", 0.1, 1.0 / 3.0, 0.43333333333333335, 0.75},
                 {"", -1e-7, std::numeric_limits<double>::infinity(), 0.0, 0.25}};
    row.nullOdds = index == 0 ? -12.25 : std::numeric_limits<double>::quiet_NaN();
    row.em = index == 0 ? 1.0 : 0.0;
    row.f1 = index == 0 ? 1.0 : 2.0 / 3.0;
    return row;
}

RunResult resultOf()
{
    RunResult result;
    result.runId = "2026-01-31T12-00-05Z_minilm_xquad_2r";
    result.version = "0.1.0";
    result.verdict = align::Verdict::Aligned;
    result.sentence = "3 of 3 samples";
    result.proofJson = "{\"schema\": 1}\n";
    result.ledgerJson = R"({"verdict":"ALIGNED"})";
    result.samples = 3;
    result.samplesDone = 2;
    result.isSquadV2 = true;
    Metric em{.key = "exact_match", .label = "EM", .value = 100.0 / 3.0, .unit = "%"};
    em.standardError = 0.1;
    em.intervalMethod = "normal, 95 %";
    em.n = 3;
    Metric ppl{.key = "ppl", .label = "PPL", .value = std::numeric_limits<double>::infinity()};
    ppl.method = "a, b";
    Metric f1{.key = "f1", .label = "F1", .value = std::nullopt};
    f1.reason = "no sample";
    result.metrics = {em, f1, ppl};
    result.gates = {{"em >= 60", std::numeric_limits<double>::quiet_NaN(), false}};
    // The name of a node is what a rank said, and may be anything.
    result.provenance = {{.unit = UnitId(0), .rank = RankId(1), .node = "node\xFF", .samples = {}}};
    result.timing = {{.rank = RankId(1), .node = "node\xFF", .computeNs = 5, .elapsedNs = 10}};
    result.forEachSample = [](const std::function<void(const SampleRow&)>& visit) -> Status {
        for (std::uint64_t i = 0; i < 3; ++i)
            visit(rowOf(i));
        return {};
    };
    return result;
}

} // namespace

class WriteFilesTest final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_result = resultOf();
    }
    void everyFileIsStrictJson();
    void writesOfficialLayouts();
    void keepsDoublesToTheLastBit();
    void writesSamplesInDataSetOrder();
    void sumsAreThoseOfTheFiles();
    void stableFilesDoNotDependOnTheSchedule();
    void namesFilesThatDiffer();
    void quotesCsv();
    void refusesUnknownNames();

private:
    [[nodiscard]] std::filesystem::path root() const { return m_folder->path().toStdString(); }
    [[nodiscard]] std::string textOf(const std::string& name) const
    {
        auto text = readFile(root() / name);
        return text ? *text : "cannot be read: " + text.error().text();
    }
    std::unique_ptr<QTemporaryDir> m_folder;
    RunResult m_result;
};

void WriteFilesTest::everyFileIsStrictJson()
{
    // C-065: not a number and infinity become null with a reason.
    const auto written = writeRunFiles(root(), m_result);
    QVERIFY2(written, written ? "" : written.error().text().c_str());
    for (const char* name : {"results.json", "predictions.json", "nbest_predictions.json",
                             "null_odds.json", "trace.json", "proof.json", "manifest.json"})
        QVERIFY2(nlohmann::json::accept(textOf(name)), name);
    for (const char* name : {"samples.jsonl", "provenance.jsonl"}) {
        for (const auto& line : QByteArray::fromStdString(textOf(name)).split('\n'))
            QVERIFY2(line.isEmpty() || nlohmann::json::accept(line.toStdString()), name);
    }
    const auto results = nlohmann::json::parse(textOf("results.json"));
    QVERIFY(results["results"]["qa"]["ppl,none"].is_null());
    QVERIFY(results["results"]["qa"]["f1,none"].is_null());
    QCOMPARE(results["metrics"][2]["reason"].get<std::string>(), std::string("not finite"));
    QCOMPARE(results["metrics"][1]["reason"].get<std::string>(), std::string("no sample"));
    QVERIFY(results["gates"][0]["found"].is_null());
    QCOMPARE(results["alignment"]["verdict"].get<std::string>(), std::string("ALIGNED"));
    QCOMPARE(results["n-samples"]["qa"]["original"].get<int>(), 3);
}

void WriteFilesTest::writesOfficialLayouts()
{
    QVERIFY(writeRunFiles(root(), m_result));
    QCOMPARE(textOf("predictions.json"),
             std::string("{\n    \"q-0\": \"caf\\u00e9\",\n"
                         "    \"q,\\\"1\\\"\": \"in the \\\"rain\\\"\"\n}"));
    QVERIFY(textOf("nbest_predictions.json")
                .starts_with("{\n    \"q-0\": [\n        {\n            \"start_logit\": 0.1,\n"
                             "            \"end_logit\": 0.3333333333333333,\n"
                             "            \"text\": \"caf\\u00e9\",\n"
                             "            \"probability\": 0.75\n        },\n"));
    const auto odds = nlohmann::json::parse(textOf("null_odds.json"));
    QCOMPARE(odds["q-0"].get<double>(), -12.25);
    QVERIFY(odds["q,\"1\""].is_null());
}

void WriteFilesTest::keepsDoublesToTheLastBit()
{
    for (const double value :
         {100.0 / 3.0, 0.1, 5e-324, 1.7976931348623157e308, 61.42857142857143}) {
        m_result.metrics[0].value = value;
        QVERIFY(writeOneFile(root() / "results.json", "results.json", m_result));
        const auto results = nlohmann::json::parse(textOf("results.json"));
        QVERIFY(results["results"]["qa"]["exact_match,none"].get<double>() == value);
        QVERIFY(results["metrics"][0]["value"].get<double>() == value);
    }
}

void WriteFilesTest::writesSamplesInDataSetOrder()
{
    QVERIFY(writeRunFiles(root(), m_result));
    int line = 0;
    for (const auto& text : QByteArray::fromStdString(textOf("samples.jsonl")).split('\n')) {
        if (text.isEmpty())
            continue;
        const auto json = nlohmann::json::parse(text.toStdString());
        QCOMPARE(json["doc_id"].get<int>(), line);
        for (const char* field :
             {"doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
              "doc_hash", "prompt_hash", "target_hash", "exact_match", "f1"})
            QVERIFY2(json.contains(field), field);
        for (const char* field : {"rank", "attempt", "unit"})
            QVERIFY2(!json.contains(field), field);
        QCOMPARE(json.contains("missing"), line == 2);
        ++line;
    }
    QCOMPARE(line, 3);
}

void WriteFilesTest::sumsAreThoseOfTheFiles()
{
    QVERIFY(writeRunFiles(root(), m_result));
    int files = 0;
    for (const auto& line : QByteArray::fromStdString(textOf("SHA256SUMS")).split('\n')) {
        if (line.isEmpty())
            continue;
        const auto name = line.mid(66).toStdString();
        const auto sum = QCryptographicHash::hash(QByteArray::fromStdString(textOf(name)),
                                                  QCryptographicHash::Sha256);
        QCOMPARE(line.left(64), sum.toHex());
        ++files;
    }
    QCOMPARE(files, 11);
    // Nothing but the files and their sums: no temporary name is left.
    QCOMPARE(QDir(m_folder->path()).entryList(QDir::Files | QDir::Hidden).size(), 12);
}

void WriteFilesTest::stableFilesDoNotDependOnTheSchedule()
{
    QVERIFY(writeRunFiles(root(), m_result));
    std::vector<std::string> before;
    for (const auto& name : stableFiles())
        before.push_back(textOf(name));
    m_result.runId = "another";
    m_result.startedUtc = "2027-01-01T00:00:00Z";
    m_result.ranks = 7;
    m_result.schedule = "stride";
    m_result.gather = "collective";
    m_result.elapsedSeconds = 99.0;
    m_result.provenance.clear();
    m_result.timing.clear();
    m_result.ledgerJson = "{}";
    QVERIFY(writeRunFiles(root(), m_result));
    std::vector<std::string> after;
    for (const auto& name : stableFiles())
        after.push_back(textOf(name));
    QVERIFY(before == after);
    QVERIFY(differingFiles(root(), m_result).empty());
}

void WriteFilesTest::namesFilesThatDiffer()
{
    QVERIFY(writeRunFiles(root(), m_result));
    QVERIFY(writeFileAtomically(root() / "predictions.json", "{}"));
    std::filesystem::remove(root() / "samples.csv");
    const auto findings = differingFiles(root(), m_result);
    QCOMPARE(findings.size(), std::size_t{2});
    QVERIFY(findings[0].find("predictions.json") != std::string::npos);
    QVERIFY(findings[1].find("samples.csv is not there") != std::string::npos);
}

void WriteFilesTest::quotesCsv()
{
    QVERIFY(writeRunFiles(root(), m_result));
    const auto text = textOf("samples.csv");
    QVERIFY(text.find("1,\"q,\"\"1\"\"\",\"Where, \"\"exactly\"\"?\",\"in the \"\"rain\"\"\",") !=
            std::string::npos);
    QVERIFY(textOf("summary.csv").find("ppl,,,0,,,,\"a, b\"\r\n") != std::string::npos);
}

void WriteFilesTest::refusesUnknownNames()
{
    QCOMPARE(writeOneFile(root() / "x", "x.parquet", m_result).error().code,
             std::string("E-REPORT-002"));
    QCOMPARE(writeOneFile(root() / "absent" / "x", "results.json", m_result).error().kind,
             Error::Kind::Io);
}

QTEST_GUILESS_MAIN(WriteFilesTest)
#include "tst_write_files.moc"
