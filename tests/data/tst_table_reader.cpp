// SPDX-License-Identifier: Apache-2.0
#include "data/table_reader.h"

#include "support/shared_data.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>
#include <map>

using namespace muster;
using namespace muster::data;

namespace {

Result<Table> readAll(std::vector<std::string> contents, const TableOptions& options = {},
                      const std::string& extension = ".csv")
{
    std::vector<NamedText> texts;
    for (std::size_t i = 0; i < contents.size(); ++i)
        texts.push_back({"f" + std::to_string(i) + extension, contents[i]});
    return readTableTexts(texts, options);
}

/// `label: text` or `label: text / pair` of each row.
QStringList printed(const Table& table)
{
    QStringList lines;
    for (const TableRow& row : table.rows) {
        QStringList labels;
        for (const std::string& label : row.labels)
            labels << QString::fromStdString(label);
        QString line =
            labels.join(QChar(u'+')) + QStringLiteral(": ") + QString::fromStdString(row.text);
        if (row.pair)
            line += QStringLiteral(" / ") + QString::fromStdString(*row.pair);
        lines << line;
    }
    return lines;
}

bool hasNote(const Table& table, std::string_view part)
{
    for (const std::string& note : table.notes)
        if (note.find(part) != std::string::npos)
            return true;
    return false;
}

TableOptions columns(std::string text, std::string label)
{
    TableOptions options;
    options.textField = std::move(text);
    options.labelField = std::move(label);
    return options;
}

std::string codeOf(const Result<Table>& table)
{
    return table ? std::string() : table.error().code;
}

} // namespace

Q_DECLARE_METATYPE(muster::data::TableOptions)

class TestTableReader : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void delimitedTables_data();
    void delimitedTables();
    void jsonLines();
    void labelAndText();
    void severalLabels();
    void idsAndGroups();
    void sentencePairsByName();
    void severalFilesShareAHeader();
    void limitAndSubset();
    void oddRowsAreCounted();
    void aTabbedFileWithLooseQuotesIsRead();
    void faultsHaveTheirPlace_data();
    void faultsHaveTheirPlace();
    void hashesDependOnEveryPart();
    void sst2AsItComes();
    void agNewsAsItComes();
};

void TestTableReader::delimitedTables_data()
{
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<TableOptions>("options");
    QTest::addColumn<QStringList>("rows");
    QTest::addColumn<QString>("note");
    QTest::newRow("header by name") << QByteArray("label,text\n1,a\n0,b\n") << TableOptions{}
                                    << QStringList{"1: a", "0: b"} << "taken for a header";
    QTest::newRow("no header, by number") << QByteArray("1,t,a\n0,u,b") << columns("3", "1")
                                          << QStringList{"1: a", "0: b"} << "taken for data";
    QTest::newRow("quotes, delimiters and line ends inside")
        << QByteArray("text,label\r\n\"a, \"\"b\"\"\r\nc\",1\r\n\"\",0\r\n") << TableOptions{}
        << QStringList{"1: a, \"b\"\r\nc", "0: "} << "`,`";
    QTest::newRow("semicolons") << QByteArray("x;label;text\n1,5;p;a,b\n2;q;c\n") << TableOptions{}
                                << QStringList{"p: a,b", "q: c"} << "`;`: 3 of the first 3";
    QTest::newRow("tabs") << QByteArray("sentence\tlabel\na b\t1\n") << TableOptions{}
                          << QStringList{"1: a b"} << "a tab";
    QTest::newRow("bars") << QByteArray("a|x\nb|y\n") << columns("1", "2")
                          << QStringList{"x: a", "y: b"} << "`|`";
    QTest::newRow("mark") << QByteArray("\xEF\xBB\xBFlabel,text\n1,a\n") << TableOptions{}
                          << QStringList{"1: a"} << "";
    QTest::newRow("blank lines at the end")
        << QByteArray("label,text\n1,a\n\n  \n") << TableOptions{} << QStringList{"1: a"} << "";
    QTest::newRow("names of the caller make a header")
        << QByteArray("q,w\na,b\n") << columns("w", "q") << QStringList{"a: b"} << "header: q, w";
    QTest::newRow("a name that is a number") << QByteArray("3,label\na,b\n") << [] {
        TableOptions options = columns("3", "label");
        return options;
    }() << QStringList{"b: a"} << "header";
    QTest::newRow("number beside a header")
        << QByteArray("id,label,text\n7,b,c\n") << columns("3", "2") << QStringList{"b: c"} << "";
    TableOptions absent = columns("2", "1");
    absent.header = HeaderRule::Absent;
    QTest::newRow("header denied")
        << QByteArray("label,text\n1,a\n") << absent << QStringList{"label: text", "1: a"} << "";
    TableOptions present = columns("2", "1");
    present.header = HeaderRule::Present;
    present.delimiter = ":";
    QTest::newRow("header and delimiter told")
        << QByteArray("x:y\n1:a, b\n") << present << QStringList{"1: a, b"} << "";
    TableOptions literal = columns("2", "1");
    literal.quotes = QuoteRule::Literal;
    QTest::newRow("literal quotes")
        << QByteArray("1,\"a\n0,b\"\n") << literal << QStringList{"1: \"a", "0: b\""} << "";
    QTest::newRow("Chinese") << QByteArray("label,text\n好,\"北京，大学\"\n") << TableOptions{}
                             << QStringList{QStringLiteral(u"好: 北京，大学")} << "";
}

void TestTableReader::delimitedTables()
{
    QFETCH(QByteArray, content);
    QFETCH(TableOptions, options);
    QFETCH(QStringList, rows);
    QFETCH(QString, note);
    const auto table = readAll({content.toStdString()}, options);
    QVERIFY2(table, table ? "" : table.error().message.c_str());
    QCOMPARE(printed(*table), rows);
    if (!note.isEmpty())
        QVERIFY(hasNote(*table, note.toStdString()));
    QVERIFY(!table->isMultiLabel);
    for (std::size_t i = 0; i < table->rows.size(); ++i) {
        QCOMPARE(table->rows[i].index.value, std::uint64_t{i});
        QCOMPARE(table->rows[i].id, std::to_string(i));
        QCOMPARE(table->rows[i].hash, rowHash(table->rows[i]));
    }
}

void TestTableReader::jsonLines()
{
    auto table = readAll({R"({"text": "a", "label": 1}
{"label": "pos", "x": {}, "text": "b\n"}
{"label": true, "text": ""}

)"},
                         {}, ".jsonl");
    QVERIFY2(table, table ? "" : table.error().message.c_str());
    QCOMPARE(printed(*table), (QStringList{"1: a", "pos: b\n", "true: "}));
    QCOMPARE(table->labelNames, (std::vector<std::string>{"1", "pos", "true"}));
    QVERIFY(hasNote(*table, "The text is the field `text`"));
    // Known by its content too.
    table = readAll({"{\"sentence1\":\"a\",\"sentence2\":\"b\",\"label\":0}\n"}, {}, "");
    QVERIFY(table);
    QCOMPARE(printed(*table), (QStringList{"0: a / b"}));
    table = readAll({"{\"t\":\"a\",\"l\":0,\"u\":\"b\"}\n"}, columns("u", "l"), "");
    QVERIFY(table);
    QCOMPARE(printed(*table), (QStringList{"0: b"}));
}

void TestTableReader::labelAndText()
{
    const auto table = readAll({"0 no movement , no yuks\n1 good\n-1 \n"}, {}, ".test");
    QVERIFY(table);
    QCOMPARE(table->format, TableFormat::LabelText);
    QCOMPARE(printed(*table), (QStringList{"0: no movement , no yuks", "1: good", "-1: "}));
    QVERIFY(hasNote(*table, "a label, a blank and a text"));
    TableOptions options;
    options.format = TableFormat::LabelText;
    QCOMPARE(printed(*readAll({"pos so good\n"}, options)), (QStringList{"pos: so good"}));
}

void TestTableReader::severalLabels()
{
    TableOptions options;
    options.labelSeparator = "|";
    options.delimiter = ",";
    auto table = readAll({"text,label\na,x|y\nb,\nc, z \n"}, options);
    QVERIFY2(table, table ? "" : table.error().message.c_str());
    QVERIFY(table->isMultiLabel);
    QCOMPARE(printed(*table), (QStringList{"x+y: a", ": b", "z: c"}));
    QCOMPARE(table->labelNames, (std::vector<std::string>{"x", "y", "z"}));
    table = readAll({"{\"text\":\"a\",\"labels\":[\"x\",2]}\n{\"text\":\"b\",\"labels\":[]}\n"}, {},
                    ".jsonl");
    QVERIFY(table);
    QVERIFY(table->isMultiLabel);
    QCOMPARE(printed(*table), (QStringList{"x+2: a", ": b"}));
}

void TestTableReader::idsAndGroups()
{
    TableOptions options;
    options.idField = "no";
    options.groupField = "doc";
    const auto table = readAll({"no,label,text,doc\nq1,1,a,d1\nq2,0,b,d1\n"}, options);
    QVERIFY(table);
    QCOMPARE(table->rows[1].id, std::string("q2"));
    QCOMPARE(table->rows[1].group, std::string("d1"));
    QCOMPARE(codeOf(readAll({"no,label,text,doc\nq,1,a,d\nq,0,b,d\n"}, options)),
             std::string("E-DATA-008"));
}

void TestTableReader::sentencePairsByName()
{
    auto table = readAll({"premise,hypothesis,label\na,b,neutral\n"});
    QVERIFY(table);
    QCOMPARE(printed(*table), (QStringList{"neutral: a / b"}));
    QVERIFY(hasNote(*table, "`premise` with `hypothesis`"));
    TableOptions options = columns("1", "3");
    options.pairField = "2";
    table = readAll({"a,b,c\n"}, options);
    QVERIFY(table);
    QCOMPARE(printed(*table), (QStringList{"c: a / b"}));
}

void TestTableReader::severalFilesShareAHeader()
{
    const QTemporaryDir folder;
    const std::filesystem::path root = folder.path().toStdString();
    std::ofstream(root / "a.csv") << "label,text\n1,a\n";
    std::ofstream(root / "b.csv") << "label,text\n0,b";
    const std::vector<std::filesystem::path> files{root / "a.csv", root / "b.csv"};
    const auto table = readTable(files);
    QVERIFY(table);
    QCOMPARE(printed(*table), (QStringList{"1: a", "0: b"}));
    QCOMPARE(codeOf(readAll({"label,text\n1,a\n", "text,label\na,1\n"})),
             std::string("E-DATA-025"));
    const std::vector<std::filesystem::path> none{root / "none.csv"};
    QCOMPARE(readTable(none).error().kind, Error::Kind::NotFound);
    QCOMPARE(readTable({}).error().kind, Error::Kind::Usage);
}

void TestTableReader::limitAndSubset()
{
    TableOptions options;
    options.read = {.limit = 2, .subset = "1-"};
    const auto table = readAll({"label,text\n1,a\n2,b\n3,c\n4,d\n"}, options);
    QVERIFY(table);
    QCOMPARE(printed(*table), (QStringList{"2: b", "3: c"}));
    QCOMPARE(table->rows.front().original, SampleIndex(1));
    QCOMPARE(table->originalCount, std::uint64_t{4});
    options.read.subset = "id:9";
    QCOMPARE(codeOf(readAll({"label,text\n1,a\n"}, options)), std::string("E-DATA-012"));
}

void TestTableReader::oddRowsAreCounted()
{
    const auto table = readAll({"label,text\n1, \n0,say \"x\"\n"});
    QVERIFY(table);
    QCOMPARE(table->warnings.size(), std::size_t{2});
    QCOMPARE(table->warnings[0].code, std::string("W-DATA-014"));
    QCOMPARE(table->warnings[0].first20, (std::vector<SampleIndex>{SampleIndex(0)}));
    QCOMPARE(table->warnings[1].code, std::string("W-DATA-015"));
}

void TestTableReader::aTabbedFileWithLooseQuotesIsRead()
{
    const auto table =
        readAll({"sentence\tlabel\n\"open\t1\nclosed\"\t0\n\"b\" c\t1\n"}, {}, ".tsv");
    QVERIFY2(table, table ? "" : table.error().message.c_str());
    QCOMPARE(printed(*table), (QStringList{"1: \"open", "0: closed\"", "1: \"b\" c"}));
    QVERIFY(hasNote(*table, "mere characters"));
}

void TestTableReader::faultsHaveTheirPlace_data()
{
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<TableOptions>("options");
    QTest::addColumn<QString>("code");
    QTest::addColumn<QString>("message");
    const TableOptions none;
    QTest::newRow("empty") << QByteArray() << none << "E-DATA-001"
                           << "f0.csv";
    QTest::newRow("blank") << QByteArray("\n \n") << none << "E-DATA-001"
                           << "f0.csv";
    QTest::newRow("header only") << QByteArray("label,text\n") << none << "E-DATA-010"
                                 << "no rows";
    QTest::newRow("broken byte") << QByteArray("label,text\n1,\xFF\n") << none << "E-DATA-002"
                                 << "f0.csv:2:3";
    QTest::newRow("UTF-16") << QByteArray("\xFF\xFEl\0,\0", 6) << none << "E-DATA-002"
                            << "UTF-16";
    QTest::newRow("too few fields") << QByteArray("label,text\n1,a\n\n1\n") << none << "E-DATA-018"
                                    << "f0.csv:3:1";
    QTest::newRow("ragged") << QByteArray("label,text\n1,a\n1,b,c\n") << none << "E-DATA-021"
                            << "f0.csv:3:1: row 2: 3 fields instead of 2";
    QTest::newRow("place counts lines inside of fields")
        << QByteArray("label,text\n1,\"a\nb\"\n1\n") << none << "E-DATA-021"
        << "f0.csv:4:1: row 2: 1 field instead of 2";
    QTest::newRow("open quote") << QByteArray("label,text\n1,\"a\n2,b\n") << none << "E-DATA-022"
                                << "f0.csv:2:3: row 1";
    QTest::newRow("behind a quote") << QByteArray("label,text\n1,\"a\"b\n") << none << "E-DATA-023"
                                    << "f0.csv:2:6: row 1";
    QTest::newRow("no label") << QByteArray("label,text\n,a\n") << none << "E-DATA-024"
                              << "f0.csv:2:1: row 1";
    QTest::newRow("which is the text?") << QByteArray("a,b,c\n1,2,3\n") << none << "E-DATA-020"
                                        << "1 `a`, 2 `b`, 3 `c`";
    QTest::newRow("no such name") << QByteArray("label,text\n1,a\n") << columns("body", "label")
                                  << "E-DATA-020"
                                  << "there is no field `body`";
    QTest::newRow("no such number") << QByteArray("1,a\n") << columns("3", "1") << "E-DATA-020"
                                    << "there is no field `3`";
    QTest::newRow("numbers start at 1") << QByteArray("1,a\n") << columns("2", "0") << "E-DATA-020"
                                        << "there is no field `0`";
    TableOptions delimiter;
    delimiter.delimiter = "::";
    QTest::newRow("delimiter of two bytes") << QByteArray("1,a\n") << delimiter << "E-DATA-019"
                                            << "one character";
    TableOptions json;
    json.format = TableFormat::Jsonl;
    QTest::newRow("json: no text") << QByteArray("{\"label\":1}\n") << json << "E-DATA-020"
                                   << "classification.text_field";
    QTest::newRow("json: field missing later")
        << QByteArray("{\"text\":\"a\",\"label\":1}\n{\"text\":\"a\"}\n") << json << "E-DATA-007"
        << "f0.csv:2:1: row 2: label";
    QTest::newRow("json: null label")
        << QByteArray("{\"text\":\"a\",\"label\":null}\n") << json << "E-DATA-024"
        << "row 1 has no label";
    QTest::newRow("json: text is a list")
        << QByteArray("{\"text\":[\"a\"],\"label\":1}\n") << json << "E-DATA-006"
        << "f0.csv:1:9";
    QTest::newRow("json: C-066") << QByteArray("{\"text\":\"a\",\"label\":1}\n\n"
                                               "{\"text\":\"a\",\"label\":1}\n")
                                 << json << "E-DATA-018"
                                 << "f0.csv:2:1";
}

void TestTableReader::faultsHaveTheirPlace()
{
    QFETCH(QByteArray, content);
    QFETCH(TableOptions, options);
    QFETCH(QString, code);
    QFETCH(QString, message);
    const auto table = readAll({content.toStdString()}, options);
    QVERIFY(!table);
    QCOMPARE(QString::fromStdString(table.error().code), code);
    const QString said = QString::fromStdString(table.error().message);
    QVERIFY2(said.contains(message), qPrintable(said));
}

void TestTableReader::hashesDependOnEveryPart()
{
    TableRow row;
    row.id = "i";
    row.text = "t";
    row.pair = "p";
    row.labels = {"l"};
    TableRow other = row;
    other.index = SampleIndex(9);
    QCOMPARE(rowHash(other), rowHash(row));
    other.text = "u";
    QVERIFY(rowHash(other) != rowHash(row));
    other = row;
    other.pair.reset();
    QVERIFY(rowHash(other) != rowHash(row));
    other = row;
    other.labels = {"m"};
    QVERIFY(rowHash(other) != rowHash(row));
    const auto digest = [](std::string content) { return readAll({std::move(content)})->digest; };
    QVERIFY(digest("label,text\n1,a\n2,b\n") != digest("label,text\n2,b\n1,a\n"));
}

void TestTableReader::sst2AsItComes()
{
    MUSTER_SHARED_OR_SKIP(path, "data/sst2/stsa.binary.test");
    const std::vector<std::filesystem::path> files{path};
    const auto table = readTable(files);
    QVERIFY2(table, table ? "" : table.error().message.c_str());
    std::map<std::string, int> counts;
    for (const TableRow& row : table->rows)
        ++counts[row.labels.front()];
    QCOMPARE(counts, (std::map<std::string, int>{{"0", 912}, {"1", 909}}));
}

void TestTableReader::agNewsAsItComes()
{
    MUSTER_SHARED_OR_SKIP(path, "data/ag-news/test.csv");
    const std::vector<std::filesystem::path> files{path};
    TableOptions options = columns("3", "1");
    options.pairField = "2";
    const auto table = readTable(files, options);
    QVERIFY2(table, table ? "" : table.error().message.c_str());
    QCOMPARE(table->rows.size(), std::size_t{7600});
    std::map<std::string, int> counts;
    for (const TableRow& row : table->rows)
        ++counts[row.labels.front()];
    QCOMPARE(counts,
             (std::map<std::string, int>{{"1", 1900}, {"2", 1900}, {"3", 1900}, {"4", 1900}}));
    QCOMPARE(*table->rows.front().pair, std::string("Fears for T N pension after talks"));
    // Without fields it is not known what they are, and the message shows them.
    const auto untold = readTable(files);
    QCOMPARE(codeOf(untold), std::string("E-DATA-020"));
    QVERIFY(untold.error().message.find("2 `Fears for") != std::string::npos);
}

QTEST_GUILESS_MAIN(TestTableReader)
#include "tst_table_reader.moc"
