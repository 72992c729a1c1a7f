// SPDX-License-Identifier: Apache-2.0
#include "data/text_reader.h"

#include "support/shared_data.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>
#include <vector>

using namespace muster;
using namespace muster::data;

namespace {

struct Read {
    Result<TextSummary> summary;
    std::vector<std::string> texts;
    std::vector<std::string> ids;
    std::vector<std::uint64_t> lines;
};

Read readAll(std::vector<std::string> contents, const TextOptions& options = {})
{
    Read read;
    std::vector<NamedText> texts;
    for (std::size_t i = 0; i < contents.size(); ++i)
        texts.push_back({"f" + std::to_string(i), contents[i]});
    read.summary = readDocumentTexts(texts, options, [&](const Document& document) -> Status {
        read.texts.emplace_back(document.text);
        read.ids.emplace_back(document.id);
        read.lines.push_back(document.line);
        return {};
    });
    return read;
}

TextOptions by(DocumentRule rule)
{
    TextOptions options;
    options.documents = rule;
    return options;
}

std::vector<std::string> codesOf(const TextSummary& summary)
{
    std::vector<std::string> codes;
    for (const Warning& warning : summary.warnings)
        codes.push_back(warning.code);
    return codes;
}

using Texts = std::vector<std::string>;

} // namespace

class TestTextReader : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aFileIsOneDocument();
    void linesAreDocuments();
    void paragraphsAreDocuments();
    void separatorsDivideDocuments();
    void lineEndsAreKeptOrChanged();
    void jsonLinesGiveTheirField();
    void blankDocumentsKeepTheirPlaces();
    void limitAndSubset();
    void faultsHaveTheirPlace_data();
    void faultsHaveTheirPlace();
    void theSinkMayStop();
    void digestsDependOnPlaceAndText();
    void filesAreReadOneAfterTheOther();
    void wikiTextJoinedAsHuggingFaceDoes();
    void storiesOfTheSample();
};

void TestTextReader::aFileIsOneDocument()
{
    const auto read = readAll({"a\nb\n", "\xEF\xBB\xBF"
                                         "c"});
    QVERIFY(read.summary);
    QCOMPARE(read.texts, (Texts{"a\nb\n", "c"}));
    QCOMPARE(read.ids, (Texts{"0", "1"}));
    QCOMPARE(read.summary->bytes, std::uint64_t{5});
    QCOMPARE(codesOf(*read.summary), (Texts{"W-DATA-007"}));
}

void TestTextReader::linesAreDocuments()
{
    const auto read = readAll({"a\n\nb\r\nc"}, by(DocumentRule::Lines));
    QVERIFY(read.summary);
    QCOMPARE(read.texts, (Texts{"a", "", "b", "c"}));
    QCOMPARE(read.lines, (std::vector<std::uint64_t>{1, 2, 3, 4}));
    QCOMPARE(codesOf(*read.summary), (Texts{"W-DATA-010"}));
    QCOMPARE(read.summary->warnings.front().first20, (std::vector<SampleIndex>{SampleIndex(1)}));
}

void TestTextReader::paragraphsAreDocuments()
{
    const auto read = readAll({"\n \na\nb\n\n\n \nc\n", "d\n\n"}, by(DocumentRule::BlankLines));
    QVERIFY(read.summary);
    QCOMPARE(read.texts, (Texts{"a\nb", "c", "d"}));
    QCOMPARE(read.lines, (std::vector<std::uint64_t>{3, 8, 1}));
    QVERIFY(read.summary->warnings.empty());
}

void TestTextReader::separatorsDivideDocuments()
{
    TextOptions options = by(DocumentRule::Separator);
    options.separator = "<e>";
    auto read = readAll({"a\n<e>\n b<e>\n"}, options);
    QVERIFY(read.summary);
    QCOMPARE(read.texts, (Texts{"a\n", "\n b"}));
    QVERIFY(read.summary->warnings.empty());

    options.ends = DocumentEnds::Strip;
    read = readAll({"a\n<e>\n b<e>cut"}, options);
    QCOMPARE(read.texts, (Texts{"a", "b", "cut"}));
    QCOMPARE(codesOf(*read.summary), (Texts{"W-DATA-013"}));
    options.unfinished = UnfinishedDocument::Drop;
    read = readAll({"a\n<e>\n b<e>cut"}, options);
    QCOMPARE(read.texts, (Texts{"a", "b"}));

    options.separator.clear();
    QCOMPARE(readAll({"a"}, options).summary.error().code, std::string("E-DATA-017"));
}

void TestTextReader::lineEndsAreKeptOrChanged()
{
    TextOptions options;
    auto read = readAll({"a\r\nb\rc\r\n\r"}, options);
    QCOMPARE(read.texts, (Texts{"a\r\nb\rc\r\n\r"}));
    QCOMPARE(codesOf(*read.summary), (Texts{"W-DATA-012"}));
    options.lineEnds = LineEnds::Normalise;
    read = readAll({"a\r\nb\rc\r\n\r"}, options);
    QCOMPARE(read.texts, (Texts{"a\nb\rc\n\r"}));
    QVERIFY(read.summary->warnings.empty());
}

void TestTextReader::jsonLinesGiveTheirField()
{
    TextOptions options = by(DocumentRule::Jsonl);
    options.field = "body";
    options.idField = "n";
    const auto read = readAll(
        {R"({"n": 7, "body": "a\nb\u00e9\ud83d\ude00\/", "x": [1, {"y": null}], "z": -1.5e3})"
         "\r\n"
         R"({"body":"","n":"q"})"
         "\n\n \n"},
        options);
    QVERIFY2(read.summary, read.summary ? "" : read.summary.error().message.c_str());
    QCOMPARE(read.texts, (Texts{"a\nb\u00e9\U0001F600/", ""}));
    QCOMPARE(read.ids, (Texts{"7", "q"}));
}

void TestTextReader::blankDocumentsKeepTheirPlaces()
{
    // C-040: texts without tokens stay in the data set.
    const auto read = readAll({"\n \nx\n"}, by(DocumentRule::Lines));
    QVERIFY(read.summary);
    QCOMPARE(read.summary->documents, std::uint64_t{3});
    QCOMPARE(read.summary->warnings.front().count, std::uint64_t{2});
    QCOMPARE(readAll({"\n\n"}, by(DocumentRule::BlankLines)).summary.error().code,
             std::string("E-DATA-010"));
}

void TestTextReader::limitAndSubset()
{
    TextOptions options = by(DocumentRule::Lines);
    options.read = {.limit = 2, .subset = "1-"};
    const auto read = readAll({"a\nb\n", "c\nd\n"}, options);
    QVERIFY(read.summary);
    QCOMPARE(read.texts, (Texts{"b", "c"}));
    QCOMPARE(read.ids, (Texts{"1", "2"}));
    QCOMPARE(read.summary->originalCount, std::uint64_t{4});
    options.read.subset = "9";
    QCOMPARE(readAll({"a\n"}, options).summary.error().code, std::string("E-DATA-012"));
    options.read = {.limit = 0, .subset = ""};
    QCOMPARE(readAll({"a\n"}, options).summary.error().code, std::string("E-DATA-010"));
}

void TestTextReader::faultsHaveTheirPlace_data()
{
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<int>("rule");
    QTest::addColumn<QString>("code");
    QTest::addColumn<QString>("place");
    const int lines = static_cast<int>(DocumentRule::Lines);
    const int jsonl = static_cast<int>(DocumentRule::Jsonl);
    const int whole = static_cast<int>(DocumentRule::WholeFile);
    const int join = static_cast<int>(DocumentRule::HfJoin);
    QTest::newRow("empty file") << QByteArray() << whole << "E-DATA-001"
                                << "f0";
    QTest::newRow("only a mark") << QByteArray("\xEF\xBB\xBF") << lines << "E-DATA-001"
                                 << "f0";
    QTest::newRow("broken byte") << QByteArray("ok\n\xC3\xA9x\xFF") << lines << "E-DATA-002"
                                 << "f0:2:3";
    QTest::newRow("broken byte of a whole file") << QByteArray("ok\n\xC3") << whole << "E-DATA-002"
                                                 << "f0:2:1";
    QTest::newRow("broken byte of joined rows") << QByteArray("ok\n\xC3") << join << "E-DATA-002"
                                                << "f0:2:1";
    QTest::newRow("UTF-16") << QByteArray("\xFF\xFE"
                                          "a",
                                          3)
                            << whole << "E-DATA-002"
                            << "f0:1:1";
    QTest::newRow("no JSON") << QByteArray("{\"text\":\"a\"}\n{\"text\" \"a\"}\n") << jsonl
                             << "E-DATA-003"
                             << "f0:2:9";
    QTest::newRow("bad number") << QByteArray("{\"text\":\"a\",\"x\":01}") << jsonl << "E-DATA-003"
                                << "f0:1:17";
    QTest::newRow("bad escape") << QByteArray("{\"text\":\"a\\x\"}") << jsonl << "E-DATA-003"
                                << "f0:1:11";
    QTest::newRow("cut line") << QByteArray("{\"text\":\"a\"\n") << jsonl << "E-DATA-004"
                              << "f0:1:12";
    QTest::newRow("behind the object") << QByteArray("{\"text\":\"a\"} x") << jsonl << "E-DATA-005"
                                       << "f0:1:14";
    QTest::newRow("a list") << QByteArray("[1]\n") << jsonl << "E-DATA-006"
                            << "f0:1:1";
    QTest::newRow("a number as text") << QByteArray("{\"text\":1}") << jsonl << "E-DATA-006"
                                      << "f0:1:9";
    QTest::newRow("no field") << QByteArray("\n{\"text\":\"a\"}\n{\"body\":\"a\"}").mid(1) << jsonl
                              << "E-DATA-007"
                              << "f0:2:1";
    QTest::newRow("half a pair") << QByteArray("{\"text\":\"\\ud800\"}") << jsonl << "E-DATA-009"
                                 << "f0:1:10";
    QTest::newRow("too deep") << QByteArray("{\"x\":" + QByteArray(70, '[')) << jsonl
                              << "E-DATA-013"
                              << "f0:1:";
    QTest::newRow("key twice") << QByteArray("{\"text\":\"a\",\"text\":\"b\"}") << jsonl
                               << "E-DATA-014"
                               << "f0:1:13";
    QTest::newRow("C-066 blank line between")
        << QByteArray("{\"text\":\"a\"}\n\n{\"text\":\"b\"}\n") << jsonl << "E-DATA-018"
        << "f0:2:1";
}

void TestTextReader::faultsHaveTheirPlace()
{
    QFETCH(QByteArray, content);
    QFETCH(int, rule);
    QFETCH(QString, code);
    QFETCH(QString, place);
    const auto read = readAll({content.toStdString()}, by(static_cast<DocumentRule>(rule)));
    QVERIFY(!read.summary);
    QCOMPARE(QString::fromStdString(read.summary.error().code), code);
    const QString message = QString::fromStdString(read.summary.error().message);
    QVERIFY2(message.startsWith(place), qPrintable(message));
}

void TestTextReader::theSinkMayStop()
{
    int seen = 0;
    const NamedText text{"f", "a\nb\nc\n"};
    const auto read = readDocumentTexts(std::span(&text, 1), by(DocumentRule::Lines),
                                        [&](const Document&) -> Status {
                                            if (++seen == 2)
                                                return fail(Error::Kind::Cancelled, "", "enough");
                                            return {};
                                        });
    QVERIFY(!read);
    QCOMPARE(read.error().kind, Error::Kind::Cancelled);
    QCOMPARE(seen, 2);
}

void TestTextReader::digestsDependOnPlaceAndText()
{
    const auto digest = [](std::string content) {
        return readAll({std::move(content)}, by(DocumentRule::Lines)).summary->digest;
    };
    QCOMPARE(digest("a\nb\n"), digest("a\r\nb"));
    QVERIFY(digest("a\nb\n") != digest("b\na\n"));
    QVERIFY(digest("a\nb\n") != digest("a\nb\nb\n"));
}

void TestTextReader::filesAreReadOneAfterTheOther()
{
    const QTemporaryDir folder;
    const std::filesystem::path root = folder.path().toStdString();
    std::ofstream(root / "a.txt") << "a\nb";
    std::ofstream(root / "b.txt") << "c\n";
    const std::vector<std::filesystem::path> files{root / "a.txt", root / "b.txt"};
    std::vector<std::pair<std::size_t, std::string>> seen;
    const auto read =
        readDocuments(files, by(DocumentRule::Lines), [&](const Document& document) -> Status {
            seen.emplace_back(document.file, document.text);
            return {};
        });
    QVERIFY(read);
    QCOMPARE(seen,
             (std::vector<std::pair<std::size_t, std::string>>{{0, "a"}, {0, "b"}, {1, "c"}}));
    const std::vector<std::filesystem::path> absent{root / "none.txt"};
    const DocumentSink sink = [](const Document&) -> Status { return {}; };
    QCOMPARE(readDocuments(absent, {}, sink).error().kind, Error::Kind::NotFound);
    QCOMPARE(readDocuments({}, {}, sink).error().kind, Error::Kind::Usage);
}

void TestTextReader::wikiTextJoinedAsHuggingFaceDoes()
{
    MUSTER_SHARED_OR_SKIP(path, "data/wikitext-2-raw/wiki.test.raw");
    const std::vector<std::filesystem::path> files{path};
    std::string text;
    const DocumentSink sink = [&](const Document& document) -> Status {
        text = document.text;
        return {};
    };
    QVERIFY(readDocuments(files, by(DocumentRule::HfJoin), sink));
    // goldens/smollm2-135m/wikitext-2-raw.tokens.json, hf_join and raw
    QCOMPARE(text.size(), std::size_t{1296370});
    QVERIFY(text.starts_with("\n\n = Robert Boulter = \n\n\n"));
    QVERIFY(readDocuments(files, {}, sink));
    QCOMPARE(text.size(), std::size_t{1290590});
    std::uint64_t lines = 0;
    const auto byLine =
        readDocuments(files, by(DocumentRule::Lines), [&](const Document&) -> Status {
            ++lines;
            return {};
        });
    QVERIFY(byLine);
    QCOMPARE(lines, std::uint64_t{4358});
    QCOMPARE(byLine->warnings.front().count, std::uint64_t{4358 - 2891});
}

void TestTextReader::storiesOfTheSample()
{
    MUSTER_SHARED_OR_SKIP(path, "data/tinystories/tinystories_sample.txt");
    TextOptions options = by(DocumentRule::Separator);
    options.separator = "<|endoftext|>";
    options.ends = DocumentEnds::Strip;
    options.unfinished = UnfinishedDocument::Drop;
    const std::vector<std::filesystem::path> files{path};
    const auto read = readDocuments(files, options, [](const Document&) -> Status { return {}; });
    QVERIFY(read);
    QCOMPARE(read->documents, std::uint64_t{2316}); // data/tinystories/PROVENANCE.md
}

QTEST_GUILESS_MAIN(TestTextReader)
#include "tst_text_reader.moc"
