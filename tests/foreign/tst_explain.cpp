// SPDX-License-Identifier: Apache-2.0
#include "foreign/explain.h"
#include "support/shared_data.h"

#include <QTest>

#include <algorithm>

using namespace muster;

namespace {

struct Case {
    foreign::ResultFile file;
    foreign::References references;
};

/// Rows of (label, prediction) in data set order.
Case made(const std::vector<std::pair<const char*, const char*>>& rows)
{
    Case one;
    one.references.kind = foreign::References::Kind::Labels;
    one.file.name = "p";
    for (const auto& [label, prediction] : rows) {
        one.references.answers.push_back({label});
        one.references.ids.emplace_back();
        foreign::Row row;
        row.text = prediction;
        one.file.rows.push_back(row);
    }
    return one;
}

} // namespace

class TestExplain : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void knownProceduresAreFound_data()
    {
        QTest::addColumn<double>("seen");
        QTest::addColumn<QString>("word");
        // C-001: ten samples, right only on the first two.
        QTest::newRow("C-001 right") << 20.0 << "is right";
        QTest::newRow("C-001 padding counted") << 33.3333 << "padding counted: world size 4";
    }
    void knownProceduresAreFound()
    {
        QFETCH(double, seen);
        QFETCH(QString, word);
        std::vector<std::pair<const char*, const char*>> rows(10, {"1", "0"});
        rows[0].second = rows[1].second = "1";
        const Case one = made(rows);
        const auto found = foreign::explain(one.file, one.references, {}, {seen, "accuracy"});
        QVERIFY(found.has_value());
        const bool isThere =
            found->conclusion.find(word.toStdString()) != std::string::npos ||
            std::ranges::any_of(found->matches, [&](const foreign::Procedure& match) {
                return match.sentence.find(word.toStdString()) != std::string::npos;
            });
        QVERIFY2(isThere, found->conclusion.c_str());
    }

    void c016MacroOfBatchesIsFound()
    {
        const Case one =
            made({{"0", "0"}, {"0", "0"}, {"0", "1"}, {"1", "1"}, {"1", "2"}, {"2", "2"}});
        const auto right = foreign::explain(one.file, one.references, {}, {65.5556, ""});
        QVERIFY(right.has_value());
        QVERIFY2(right->conclusion.find("macro") != std::string::npos, right->conclusion.c_str());
        const auto batches = foreign::explain(one.file, one.references, {}, {35.5556, ""});
        QVERIFY(batches.has_value());
        QVERIFY(batches->tried > 10);
    }

    void aNumberFromNowhereHasNoExplanation()
    {
        const Case one = made({{"1", "1"}, {"1", "0"}});
        const auto found = foreign::explain(one.file, one.references, {}, {77.777, ""});
        QVERIFY(found.has_value());
        QVERIFY(found->matches.empty());
        QVERIFY(found->conclusion.find("none of the") != std::string::npos);
        QCOMPARE(foreign::explain(one.file, one.references, {}, {5.0, "bleu"}).error().code,
                 std::string("E-FOREIGN-017"));
    }

    void otherRulesOfSquadAreFound()
    {
        MUSTER_SHARED_OR_SKIP(squad, "data/xquad/xquad.en.json");
        MUSTER_SHARED_OR_SKIP(golden, "goldens/minilm-qa/xquad-en.predictions.json");
        const std::vector<std::filesystem::path> files{squad};
        const auto references = foreign::readReferences(files);
        const auto file = foreign::readResultFile(golden);
        QVERIFY(references.has_value() && file.has_value());
        const auto found = foreign::explain(*file, *references, {}, {0.0, "em"});
        QVERIFY(found.has_value());
        const auto all = foreign::explain(*file, *references, {}, {100.0, ""});
        QVERIFY(all.has_value());
        // Each of the values found must be explained by what gave it.
        for (const foreign::Procedure& procedure : all->nearest) {
            const auto again =
                foreign::explain(*file, *references, {}, {procedure.value, procedure.metric});
            QVERIFY(again.has_value());
            QVERIFY2(!again->matches.empty(), procedure.sentence.c_str());
            break;
        }
    }
};

QTEST_GUILESS_MAIN(TestExplain)
#include "tst_explain.moc"
