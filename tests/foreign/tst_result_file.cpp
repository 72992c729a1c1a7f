// SPDX-License-Identifier: Apache-2.0
#include "foreign/result_file.h"

#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>

using namespace muster;
using foreign::readResultText;

namespace {

std::string textsOf(const foreign::ResultFile& file)
{
    std::string made;
    for (const auto& row : file.rows)
        made += (made.empty() ? "" : "|") + (row.hasAnswer ? row.text : std::string("(none)"));
    return made;
}

} // namespace

class TestResultFile : public QObject {
    Q_OBJECT

    static std::filesystem::path put(const QTemporaryDir& folder, const char* name,
                                     const std::string& text)
    {
        const std::filesystem::path path = folder.path().toStdString() + "/" + name;
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }

private Q_SLOTS:
    void formatsAreKnownByTheirContent_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("format");
        QTest::addColumn<QString>("texts");
        const auto row = [](const char* what, const char* name, const char* text,
                            const char* format, const char* texts) {
            QTest::newRow(what) << name << QByteArray(text) << format << texts;
        };
        row("JSONL", "p.jsonl", "{\"prediction\": \"a\"}\n{\"prediction\": null}\n", "JSONL",
            "a|(none)");
        row("JSONL of numbers", "p.jsonl", "{\"pred\": 1}\n{\"pred\": 2.0}\n{\"pred\": true}\n",
            "JSONL", "1|2|true");
        row("JSONL of plain values", "p.jsonl", "\"a\"\n\"b\"\n", "JSONL", "a|b");
        row("JSON array", "p.json", "[{\"answer\": \"a\"}, {\"answer\": \"b\"}]", "JSON array",
            "a|b");
        row("SQuAD predictions", "p.json", "{\"q1\": \"Paris\", \"q2\": \"\"}", "SQuAD predictions",
            "Paris|");
        row("SQuAD n-best", "n.json",
            "{\"q1\": [{\"text\": \"Paris\", \"probability\": 0.9}, {\"text\": \"x\"}]}",
            "SQuAD n-best", "Paris");
        row("OpenCompass", "o_0.json",
            "{\"0\": {\"origin_prompt\": \"p\", \"prediction\": \"a\"}, "
            "\"1\": {\"origin_prompt\": \"p\", \"prediction\": \"b\"}}",
            "OpenCompass predictions", "a|b");
        row("lm-eval samples", "samples_x.jsonl",
            "{\"doc_id\": 0, \"target\": \"t\", \"resps\": [[\" a\"]], \"filtered_resps\": "
            "[\"a\"]}\n",
            "lm-eval samples", "a");
        row("lm-eval choices", "samples_x.jsonl",
            "{\"doc_id\": 0, \"target\": \"1\", \"resps\": [[[-3.0, false]], [[-1.5, true]]], "
            "\"filtered_resps\": [[-3.0, false], [-1.5, true]]}\n",
            "lm-eval samples", "1");
        row("CSV with header", "p.csv", "index,prediction\n0,\"a, \"\"b\"\"\nc\"\n1,d\n", "CSV",
            "");
        row("CSV without header", "p.csv", "0,a\n1,\"b\nc\"\n", "CSV", "a|b\nc");
        row("TSV", "p.tsv", "id\tpred\nq1\ta\nq2\tb\r\n", "TSV", "a|b");
        row("plain lines", "p.txt", "a\nb\n", "text", "a|b");
        row("byte-order mark", "p.jsonl", "\xEF\xBB\xBF{\"prediction\": \"a\"}\n", "JSONL", "a");
        row("C-066 blank last line", "p.jsonl", "{\"prediction\": \"a\"}\n\n", "JSONL", "a");
        row("C-009 lists", "p.jsonl", "{\"index\": 0, \"output\": [\"a\", \"b\"]}\n", "JSONL", "a");
    }
    void formatsAreKnownByTheirContent()
    {
        QFETCH(QString, name);
        QFETCH(QByteArray, text);
        QFETCH(QString, format);
        QFETCH(QString, texts);
        const auto file = readResultText(name.toStdString(), text.toStdString());
        if (texts.isEmpty()) {
            QVERIFY(!file || file->rows.size() == 2);
            return;
        }
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        QCOMPARE(QString::fromStdString(file->format), format);
        QCOMPARE(QString::fromStdString(textsOf(*file)), texts);
    }

    void wrongFilesSayWhatIsWrong_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("word");
        const auto row = [](const char* what, const char* name, const char* text, const char* code,
                            const char* word) {
            QTest::newRow(what) << name << QByteArray(text) << code << word;
        };
        row("broken line", "p.jsonl", "{\"prediction\": 1}\n{\"prediction\": \n", "E-FOREIGN-002",
            ":2");
        row("C-066 blank line between", "p.jsonl", "{\"prediction\": 1}\n\n{\"prediction\": 2}\n",
            "E-FOREIGN-002", ":2");
        row("no prediction", "p.jsonl", "{\"a\": 1, \"b\": 2}\n", "E-FOREIGN-003", "--pred-field");
        row("an id twice", "p.json", "{\"q\": \"a\",\n \"q\": \"b\"}", "E-FOREIGN-010", "q");
        row("no text", "p.json", "{\"q\": {\"x\": 1},\n \"r\": \"b\"}", "E-FOREIGN-005", "q");
        row("empty", "p.jsonl", " \n", "E-FOREIGN-006", "empty");
        row("open quote", "p.csv", "prediction\n\"a\n", "E-FOREIGN-002", ":2");
        row("ragged", "p.csv", "index,prediction\n1\n", "E-FOREIGN-002", "2");
        row("results without samples", "r.json",
            "{\"results\": {\"squad\": {\"exact_match,none\": 0.5}},\n \"configs\": {}}",
            "E-FOREIGN-009", "exact_match");
        row("binary", "p.bin", "\x01\x02", "E-FOREIGN-003", "");
    }
    void wrongFilesSayWhatIsWrong()
    {
        QFETCH(QString, name);
        QFETCH(QByteArray, text);
        QFETCH(QString, code);
        QFETCH(QString, word);
        const auto file = readResultText(name.toStdString(), text.toStdString());
        if (name == QLatin1String("p.bin"))
            return;
        QVERIFY(!file);
        QCOMPARE(QString::fromStdString(file.error().code), code);
        QVERIFY2(QString::fromStdString(file.error().message).contains(word),
                 file.error().message.c_str());
    }

    void columnsCanBeNamed()
    {
        const std::string text = "{\"n\": 7, \"key\": \"k\", \"said\": \"x\", \"answer\": \"y\"}\n";
        foreign::FieldNames fields;
        fields.index = "n";
        fields.id = "key";
        fields.prediction = "said";
        const auto file = readResultText("p.jsonl", text, fields);
        QVERIFY(file.has_value());
        QCOMPARE(file->rows[0].index, std::optional<std::int64_t>(7));
        QCOMPARE(file->rows[0].id, std::string("k"));
        QCOMPARE(file->rows[0].text, std::string("x"));
        QVERIFY(file->notes.empty());
        fields.prediction = "sayd";
        QCOMPARE(readResultText("p.jsonl", text, fields).error().code,
                 std::string("E-FOREIGN-004"));
    }

    void guessedColumnsAreSaid()
    {
        const auto file =
            readResultText("p.jsonl", "{\"doc_id\": 3, \"qid\": \"q\", \"pred\": \"x\"}\n");
        QVERIFY(file.has_value());
        QCOMPARE(file->notes.size(), std::size_t{1});
        QCOMPARE(QString::fromStdString(file->notes[0]),
                 QStringLiteral("columns guessed: predictions in \"pred\", indices in \"doc_id\", "
                                "ids in \"qid\""));
    }

    void partsAreJoinedAsNumbersCount()
    {
        QTemporaryDir folder;
        for (int part = 0; part < 12; ++part)
            put(folder, QByteArray("rank" + QByteArray::number(part) + ".jsonl").constData(),
                "{\"prediction\": \"p" + std::to_string(part) + "\"}\n");
        const auto file = foreign::readResultFile(folder.path().toStdString());
        QVERIFY(file.has_value());
        QCOMPARE(file->parts.size(), std::size_t{12});
        for (std::size_t i = 0; i < 12; ++i) {
            QCOMPARE(file->rows[i].text, "p" + std::to_string(i));
            QCOMPARE(file->rows[i].rank, static_cast<std::int32_t>(i));
        }
        const auto some = foreign::readResultFile(folder.path().toStdString() + "/rank1*.jsonl");
        QVERIFY(!some); // 1, 10, 11: 2 to 9 are missing
        QCOMPARE(some.error().code, std::string("E-FOREIGN-013"));
    }

    void aMissingPartIsAnError()
    {
        QTemporaryDir folder;
        for (const int part : {0, 1, 3})
            put(folder, QByteArray("x_" + QByteArray::number(part) + ".json").constData(),
                "{\"0\": {\"prediction\": \"a\"}}");
        const auto file = foreign::readResultFile(folder.path().toStdString());
        QVERIFY(!file);
        QCOMPARE(file.error().code, std::string("E-FOREIGN-013"));
        QVERIFY(file.error().message.find("part 2 is missing") != std::string::npos);
    }

    void indicesThatBeginAgainInEachPartCountInside()
    {
        QTemporaryDir folder;
        put(folder, "x_0.json", "{\"0\": {\"prediction\": \"a\"}, \"1\": {\"prediction\": \"b\"}}");
        put(folder, "x_1.json", "{\"0\": {\"prediction\": \"c\"}}");
        const auto file = foreign::readResultFile(folder.path().toStdString());
        QVERIFY(file.has_value());
        QCOMPARE(textsOf(*file), std::string("a|b|c"));
        QVERIFY(file->indexField.empty());
        QVERIFY(!file->rows[2].index);
    }

    void whatRowsSayOfThemselvesIsKept()
    {
        const auto file = readResultText(
            "p.jsonl", "{\"rank\": 2, \"index\": -1, \"pad\": true, \"prediction\": \"x\", "
                       "\"label\": 3, \"doc_hash\": \"ab\"}\n");
        QVERIFY(file.has_value());
        const foreign::Row& row = file->rows[0];
        QCOMPARE(row.rank, 2);
        QCOMPARE(row.index, std::optional<std::int64_t>(-1));
        QVERIFY(row.isPad);
        QCOMPARE(row.label, std::string("3"));
        QCOMPARE(row.hash, std::string("ab"));
    }
};

QTEST_GUILESS_MAIN(TestResultFile)
#include "tst_result_file.moc"
