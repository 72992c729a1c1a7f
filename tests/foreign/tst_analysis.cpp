// SPDX-License-Identifier: Apache-2.0
#include "foreign/analysis.h"
#include "foreign/write.h"
#include "support/shared_data.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <numeric>

using namespace muster;
using align::Disorder;
using align::Verdict;

namespace {

foreign::References labels(const std::vector<std::string>& values)
{
    foreign::References made;
    made.kind = foreign::References::Kind::Labels;
    for (std::size_t i = 0; i < values.size(); ++i) {
        made.ids.push_back("s" + std::to_string(i));
        made.answers.push_back({values[i]});
    }
    return made;
}

double metricOf(const foreign::MetricList& list, const std::string& key)
{
    for (const auto& [name, value] : list) {
        if (name == key)
            return value;
    }
    return -1.0;
}

/// XQuAD and the predictions of a real model, one JSON object a line in data set order.
struct Real {
    foreign::References references;
    std::vector<std::string> predictions;
    bool isThere = false;

    Real()
    {
        const auto squad = test::sharedPath("data/xquad/xquad.en.json");
        const auto golden = test::sharedPath("goldens/minilm-qa/xquad-en.predictions.json");
        if (!std::filesystem::exists(squad) || !std::filesystem::exists(golden))
            return;
        const std::vector<std::filesystem::path> files{squad};
        auto read = foreign::readReferences(files);
        if (!read)
            return;
        references = std::move(*read);
        std::ifstream in(golden);
        const auto texts = nlohmann::json::parse(in);
        for (const std::string& id : references.ids)
            predictions.push_back(texts.at(id).get<std::string>());
        isThere = true;
    }

    [[nodiscard]] foreign::ResultFile file(const std::vector<std::string>& rows) const
    {
        std::string text;
        for (const std::string& row : rows)
            text += nlohmann::json{{"prediction", row}}.dump() + "\n";
        return foreign::readResultText("p.jsonl", text).value();
    }
};

} // namespace

#define REAL_OR_SKIP(name)                                                                         \
    const Real name;                                                                               \
    if (!name.isThere)                                                                             \
    QSKIP("shared test data are absent: set MUSTER_SHARED to their folder")

class TestAnalysis : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void casesOfGathering_data()
    {
        QTest::addColumn<QString>("input");
        QTest::addColumn<int>("samples");
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("covered");
        QTest::addColumn<int>("pads");
        QTest::addColumn<int>("verdict");
        const auto row = [](const char* id, const char* input, int samples, int rows, int covered,
                            int pads, Verdict verdict) {
            QTest::newRow(id) << input << samples << rows << covered << pads
                              << static_cast<int>(verdict);
        };
        row("C-001", "c001-rows.jsonl", 10, 10, 10, 0, Verdict::Unverified);
        row("C-002", "c002-arrival.jsonl", 21, 22, 21, 1, Verdict::Unverified);
        row("C-004", "c004-arrival.jsonl", 7, 9, 7, 2, Verdict::Unverified);
        row("C-007", "c007-arrival.jsonl", 8, 8, 8, 0, Verdict::Unverified);
        row("C-008", "c008-arrival.jsonl", 9, 10, 9, 1, Verdict::Unverified);
    }
    void casesOfGathering()
    {
        QFETCH(QString, input);
        QFETCH(int, samples);
        QFETCH(int, rows);
        QFETCH(int, covered);
        QFETCH(int, pads);
        QFETCH(int, verdict);
        const auto path = test::sharedPath(("cases/inputs/" + input.toStdString()).c_str());
        if (!std::filesystem::exists(path))
            QSKIP("shared test data are absent: set MUSTER_SHARED to their folder");
        foreign::FieldNames fields;
        if (input.contains("c002") || input.contains("c004"))
            fields.prediction = "seq"; // the arrival without predictions
        const auto file = foreign::readResultFile(path, fields);
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        const auto references =
            labels(std::vector<std::string>(static_cast<std::size_t>(samples), "1"));
        const auto found = foreign::analyse(*file, references);
        QVERIFY2(found.has_value(), found ? "" : found.error().message.c_str());
        QCOMPARE(static_cast<int>(found->rows), rows);
        QCOMPARE(static_cast<int>(found->covered), covered);
        QCOMPARE(static_cast<int>(found->pads), pads);
        QCOMPARE(static_cast<int>(found->verdict), verdict);
        if (input.contains("c001"))
            QCOMPARE(metricOf(found->before, "accuracy"), 20.0);
    }

    void c007PredictionsMeetTheirReferences()
    {
        MUSTER_SHARED_OR_SKIP(arrival, "cases/inputs/c007-arrival.jsonl");
        MUSTER_SHARED_OR_SKIP(truth, "cases/inputs/c007-references.jsonl");
        const auto file = foreign::readResultFile(arrival);
        const std::vector<std::filesystem::path> files{truth};
        const auto references = foreign::readReferences(files);
        QVERIFY2(references.has_value(), references ? "" : references.error().message.c_str());
        const auto found = foreign::analyse(*file, *references);
        QVERIFY(found.has_value());
        QCOMPARE(metricOf(found->before, "accuracy"), 100.0);
    }

    void c006MissingRowsAreIncompleteAndListed()
    {
        std::string text;
        for (int i = 0; i < 25; ++i) {
            if (i != 7 && i != 19)
                text += "{\"index\": " + std::to_string(i) + ", \"prediction\": 1}\n";
        }
        const auto file = foreign::readResultText("p.jsonl", text);
        const auto found = foreign::analyse(*file, labels(std::vector<std::string>(25, "1")));
        QVERIFY(found.has_value());
        QCOMPARE(found->verdict, Verdict::Incomplete);
        QCOMPARE(found->missing, (std::vector<std::uint64_t>{7, 19}));
        QVERIFY(foreign::verdictLine(*found).find("7, 19") != std::string::npos);
    }

    void repeatedAndForeignRowsAreViolations()
    {
        const auto truth = labels({"a", "b", "c"});
        const auto verdictOf = [&truth](const std::string& text) {
            const auto file = foreign::readResultText("p.jsonl", text);
            const auto found = foreign::analyse(*file, truth);
            return found ? found->verdict : Verdict::Running;
        };
        const std::string three = "{\"index\": 0, \"prediction\": \"a\"}\n"
                                  "{\"index\": 1, \"prediction\": \"b\"}\n"
                                  "{\"index\": 2, \"prediction\": \"c\"}\n";
        QCOMPARE(verdictOf(three), Verdict::Unverified);
        QCOMPARE(verdictOf(three + "{\"index\": -1, \"prediction\": \"c\"}\n"),
                 Verdict::Unverified);
        QCOMPARE(verdictOf(three + "{\"index\": 0, \"prediction\": \"a\"}\n"), Verdict::Misaligned);
        QCOMPARE(verdictOf(three + "{\"index\": 3, \"prediction\": \"a\"}\n"), Verdict::Misaligned);
        QCOMPARE(verdictOf("{\"id\": \"s0\", \"prediction\": \"a\"}\n"
                           "{\"id\": \"zz\", \"prediction\": \"b\"}\n"),
                 Verdict::Misaligned);
    }

    void padsThatSortFirstAreExplained()
    {
        std::string text;
        for (const int index : {-1, -1, 0, 1, 2})
            text += "{\"index\": " + std::to_string(index) + ", \"prediction\": 1}\n";
        const auto file = foreign::readResultText("p.jsonl", text);
        const auto found = foreign::analyse(*file, labels({"1", "1", "1"}));
        QVERIFY(found.has_value());
        QCOMPARE(found->pads, std::uint64_t{2});
        QVERIFY2(found->findings.front().find("sort to the front") != std::string::npos,
                 found->findings.front().c_str());
    }

    void realFilesInAndOutOfOrder()
    {
        REAL_OR_SKIP(real);
        const auto& p = real.predictions;
        const auto clean = foreign::analyse(real.file(p), real.references);
        QVERIFY(clean.has_value());
        QCOMPARE(clean->verdict, Verdict::Unverified);
        QVERIFY(clean->diagnosis.isTestable);
        QVERIFY(clean->scan.hasPeak && clean->scan.best == 0);

        std::vector<std::string> late(p.begin(), p.begin() + 401);
        late.insert(late.end(), p.begin() + 400, p.end() - 1);
        const auto shifted = foreign::analyse(real.file(late), real.references);
        QVERIFY(shifted.has_value());
        QCOMPARE(shifted->verdict, Verdict::Misaligned);
        QVERIFY2(shifted->findings.front().find("from index 401 on everything is one place late") !=
                     std::string::npos,
                 shifted->findings.front().c_str());
        QVERIFY(metricOf(shifted->after, "exact_match") >
                metricOf(shifted->before, "exact_match") + 20.0);
        QVERIFY(metricOf(shifted->after, "exact_match") >
                metricOf(clean->before, "exact_match") - 0.2);

        std::vector<std::string> major;
        for (std::size_t rank = 0; rank < 3; ++rank) {
            for (std::size_t i = rank; i < p.size(); i += 3)
                major.push_back(p[i]);
        }
        const auto dealt = foreign::analyse(real.file(major), real.references);
        QVERIFY(dealt.has_value());
        QCOMPARE(dealt->verdict, Verdict::Misaligned);
        QVERIFY(dealt->findings.front().find("world size 3") != std::string::npos);
        QCOMPARE(dealt->after, clean->before);
        const auto json =
            nlohmann::json::parse(foreign::analysisJson(*dealt, real.file(major), real.references));
        QCOMPARE(json["diagnosis"]["pattern"].get<std::string>(), std::string("rank-major"));
        QCOMPARE(json["diagnosis"]["world_size"].get<int>(), 3);
        QCOMPARE(json["verdict"].get<std::string>(), std::string("MISALIGNED"));
    }

    void predictionsUnderWrongIdsAreFound()
    {
        REAL_OR_SKIP(real);
        nlohmann::json object = nlohmann::json::object();
        for (std::size_t i = 0; i < real.predictions.size(); ++i)
            object[real.references.ids[i]] = real.predictions[(i + 1) % real.predictions.size()];
        const auto file = foreign::readResultText("p.json", object.dump(1));
        const auto found = foreign::analyse(*file, real.references);
        QVERIFY(found.has_value());
        QCOMPARE(found->verdict, Verdict::Misaligned);
        QVERIFY2(found->findings.front().find("placed by id") != std::string::npos,
                 found->findings.front().c_str());
    }

    void hashesProveTheOrder()
    {
        REAL_OR_SKIP(real);
        std::string text;
        for (std::size_t i = 0; i < real.predictions.size(); ++i)
            text += nlohmann::json{{"doc_id", i},
                                   {"filtered_resps", {real.predictions[i]}},
                                   {"doc_hash", real.references.hashes[i].hex()}}
                        .dump() +
                    "\n";
        auto file = foreign::readResultText("samples.jsonl", text).value();
        const auto found = foreign::analyse(file, real.references);
        QVERIFY(found.has_value());
        QCOMPARE(found->verdict, Verdict::Aligned);
        std::swap(file.rows[3].hash, file.rows[4].hash);
        const auto changed = foreign::analyse(file, real.references);
        QVERIFY(changed.has_value());
        QCOMPARE(changed->verdict, Verdict::Misaligned);
        QCOMPARE(changed->hashesDiffer, std::uint64_t{2});
    }

    void theRepairedCopyIsInOrderAndStaysUnverified()
    {
        REAL_OR_SKIP(real);
        const auto& p = real.predictions;
        const auto file = real.file({p.rbegin(), p.rend()});
        const auto found = foreign::analyse(file, real.references);
        QVERIFY(found.has_value());
        QCOMPARE(found->diagnosis.disorder, Disorder::Reversed);
        QTemporaryDir folder;
        const std::filesystem::path to = folder.path().toStdString() + "/r.jsonl";
        const auto repaired = foreign::writeRepaired(to, file, real.references, *found, {});
        QVERIFY(repaired.has_value());
        QCOMPARE(repaired->verdict, Verdict::Unverified);
        const auto again = foreign::readResultFile(to);
        QVERIFY(again.has_value());
        for (std::size_t i = 0; i < p.size(); ++i)
            QCOMPARE(again->rows[i].text, p[i]);
        const auto checked = foreign::analyse(*again, real.references);
        QVERIFY(checked.has_value());
        QCOMPARE(checked->verdict, Verdict::Unverified);
    }

    void anImportHoldsSamplesAndTheVerdict()
    {
        REAL_OR_SKIP(real);
        const auto file = real.file(real.predictions);
        const auto found = foreign::analyse(file, real.references);
        QTemporaryDir folder;
        const std::filesystem::path to = folder.path().toStdString() + "/run";
        const auto stored = foreign::writeImport(to, file, real.references, *found, {}, "test");
        QVERIFY(stored.has_value());
        QCOMPARE(stored->size(), std::size_t{3});
        std::ifstream in(to / "results.json");
        const auto json = nlohmann::json::parse(in);
        QCOMPARE(json["verdict"].get<std::string>(), std::string("UNVERIFIED"));
        // An import proves nothing: it must not add hashes that the rows did not state.
        const auto again = foreign::readResultFile(to / "samples.jsonl");
        QVERIFY(again.has_value());
        QCOMPARE(again->format, std::string("lm-eval samples"));
        const auto checked = foreign::analyse(*again, real.references);
        QVERIFY(checked.has_value());
        QCOMPARE(checked->verdict, Verdict::Unverified);
        QCOMPARE(checked->before, found->before);
    }

    void anotherDataSetIsNamedAsSuch()
    {
        const auto file = foreign::readResultText("p.json", "{\"x1\": \"a\",\n\"x2\": \"b\"}");
        const auto found = foreign::analyse(*file, labels({"a", "b"}));
        QVERIFY(!found);
        QCOMPARE(found.error().code, std::string("E-FOREIGN-014"));
    }
};

QTEST_GUILESS_MAIN(TestAnalysis)
#include "tst_analysis.moc"
