// SPDX-License-Identifier: Apache-2.0
#include "data/squad_reader.h"

#include "support/shared_data.h"

#include <QTemporaryDir>
#include <QtTest>

#include <chrono>
#include <fstream>

using namespace muster;
using namespace muster::data;

namespace {

std::filesystem::path input(const char* name)
{
    return std::filesystem::path(MUSTER_TEST_DATA) / "inputs" / name;
}

Result<Dataset> readFiles(const std::vector<std::filesystem::path>& files,
                          const ReadOptions& options = {})
{
    return readSquad(files, options);
}

Result<Dataset> readText(std::string_view text, const ReadOptions& options = {})
{
    const NamedText named{"t.json", text};
    return readSquadTexts(std::span(&named, 1), options);
}

/// A file of one paragraph with the given context (JSON string body) and `qas` body.
std::string file(std::string_view context, std::string_view qas)
{
    return R"({"version":"v","data":[{"title":"T","paragraphs":[{"context":")" +
           std::string(context) + R"(","qas":[)" + std::string(qas) + "]}]}]}";
}

constexpr auto goodQuestion =
    R"({"id":"q","question":"Q?","answers":[{"text":"red","answer_start":0}]})";

const Warning* warning(const Dataset& dataset, const char* code)
{
    for (const Warning& w : dataset.warnings) {
        if (w.code == code)
            return &w;
    }
    return nullptr;
}

std::uint64_t warningCount(const Dataset& dataset, const char* code)
{
    const Warning* found = warning(dataset, code);
    return found == nullptr ? 0 : found->count;
}

QByteArray bytes(std::string_view text)
{
    return QByteArray(text.data(), static_cast<qsizetype>(text.size()));
}

} // namespace

#define VERIFY_READ(result)                                                                        \
    QVERIFY2((result).has_value(), (result) ? "" : (result).error().text().c_str())

class TestSquadReader : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void keepsOrderTextsAndOffsetsOfASmallFile()
    {
        const auto read = readFiles({input("two-articles.json")});
        VERIFY_READ(read);
        QCOMPARE(read->samples.size(), std::size_t{5});
        QCOMPARE(read->contexts.size(), std::size_t{2});
        QCOMPARE(read->titles, (std::vector<std::string>{"Boats", "Hills"}));
        QCOMPARE(read->version, std::string("made-up 1.0"));
        QVERIFY(read->hasUnanswerable);
        const Sample& first = read->samples[0];
        QCOMPARE(first.id, std::string("b1"));
        QCOMPARE(first.answers, (std::vector<Answer>{{"red boat", 4}, {"The red boat", 0}}));
        QVERIFY(!first.isImpossible);
        QCOMPARE(read->samples[2].id, std::string("7"));
        QVERIFY(read->samples[2].isImpossible);
        QCOMPARE(read->samples[2].context, 1U);
        QCOMPARE(read->samples[3].answers[0].text, std::string("39764.0"));
        QCOMPARE(read->samples[4].context, 0U);
        for (std::uint64_t i = 0; i < 5; ++i) {
            QCOMPARE(read->samples[i].index.value, i);
            QCOMPARE(read->samples[i].original.value, i);
        }
        QCOMPARE(warningCount(*read, "W-DATA-001"), std::uint64_t{0});
        QCOMPARE(warningCount(*read, "W-DATA-002"), std::uint64_t{1});
        QCOMPARE(warningCount(*read, "W-DATA-005"), std::uint64_t{1});
        QCOMPARE(warningCount(*read, "W-DATA-006"), std::uint64_t{1});
        QCOMPARE(warning(*read, "W-DATA-006")->first20, std::vector<SampleIndex>{SampleIndex(2)});
        QCOMPARE(read->digest, datasetDigest(read->samples));
        QCOMPARE(read->samples[4].hash, sampleHash(read->samples[4], read->contexts[0]));
    }

    void hashChangesWithEveryFieldAndNotWithTheIndex()
    {
        Sample sample;
        sample.id = "a";
        sample.question = "b";
        sample.answers = {{"c", 1}};
        const Hash128 hash = sampleHash(sample, "ctx");
        Sample other = sample;
        other.index = SampleIndex(9);
        QCOMPARE(sampleHash(other, "ctx"), hash);
        QVERIFY(sampleHash(sample, "ctx2") != hash);
        other = sample;
        other.id = "ab";
        other.question = "";
        QVERIFY(sampleHash(other, "ctx") != hash);
        other = sample;
        other.answers[0].start = 2;
        QVERIFY(sampleHash(other, "ctx") != hash);
        other = sample;
        other.answers.push_back({"c", 1});
        QVERIFY(sampleHash(other, "ctx") != hash);
        other = sample;
        other.isImpossible = true;
        QVERIFY(sampleHash(other, "ctx") != hash);
    }

    void sharedSetsHaveTheStatedCounts_data()
    {
        QTest::addColumn<QString>("files");
        QTest::addColumn<quint64>("samples");
        QTest::addColumn<quint64>("answers");
        QTest::addColumn<quint64>("impossible");
        QTest::addColumn<quint64>("wrongAnswers");
        QTest::newRow("xquad en") << "data/xquad/xquad.en.json" << 1190ULL << 1190ULL << 0ULL
                                  << 0ULL;
        QTest::newRow("xquad de") << "data/xquad/xquad.de.json" << 1190ULL << 1190ULL << 0ULL
                                  << 0ULL;
        QTest::newRow("xquad zh") << "data/xquad/xquad.zh.json" << 1190ULL << 1190ULL << 0ULL
                                  << 0ULL;
        QTest::newRow("squad 1.1 dev half")
            << "data/squad-v1.1-dev/dev-v1.1.json" << 4961ULL << 17778ULL << 0ULL << 0ULL;
        QTest::newRow("squad 1.1 test half")
            << "data/squad-v1.1-dev/test-v1.1.json" << 5609ULL << 16948ULL << 0ULL << 0ULL;
        QTest::newRow("squad 1.1 both halves")
            << "data/squad-v1.1-dev/dev-v1.1.json data/squad-v1.1-dev/test-v1.1.json" << 10570ULL
            << 34726ULL << 0ULL << 0ULL;
        QTest::newRow("squad 2.0 part")
            << "data/squad-v2.0-dev-part/dev-v2.0.json" << 6078ULL << 0ULL << 3168ULL << 0ULL;
        QTest::newRow("cmrc dev") << "data/cmrc2018/cmrc2018_dev.json" << 3219ULL << 9657ULL << 0ULL
                                  << 200ULL;
        QTest::newRow("cmrc trial")
            << "data/cmrc2018/cmrc2018_trial.json" << 1002ULL << 1002ULL << 0ULL << 5ULL;
    }
    void sharedSetsHaveTheStatedCounts()
    {
        QFETCH(QString, files);
        QFETCH(quint64, samples);
        QFETCH(quint64, answers);
        QFETCH(quint64, impossible);
        QFETCH(quint64, wrongAnswers);
        MUSTER_SHARED_OR_SKIP(root, "data");
        std::vector<std::filesystem::path> paths;
        for (const QString& part : files.split(' '))
            paths.push_back(test::sharedPath(part.toUtf8().constData()));
        const auto read = readFiles(paths);
        VERIFY_READ(read);
        std::uint64_t answersRead = 0;
        std::uint64_t impossibleRead = 0;
        for (const Sample& sample : read->samples) {
            answersRead += sample.answers.size();
            impossibleRead += sample.isImpossible ? 1 : 0;
        }
        QCOMPARE(read->samples.size(), std::size_t{samples});
        if (answers != 0)
            QCOMPARE(answersRead, std::uint64_t{answers});
        QCOMPARE(impossibleRead, std::uint64_t{impossible});
        QCOMPARE(read->hasUnanswerable, impossible != 0);
        QCOMPARE(warningCount(*read, "W-DATA-001") + warningCount(*read, "W-DATA-002"),
                 std::uint64_t{wrongAnswers});
    }

    void readsTheWholeDevSetWellBelowATenthOfASecond()
    {
        MUSTER_SHARED_OR_SKIP(first, "data/squad-v1.1-dev/dev-v1.1.json");
        const auto second = test::sharedPath("data/squad-v1.1-dev/test-v1.1.json");
        double best = 1e9;
        for (int i = 0; i < 5; ++i) {
            const auto from = std::chrono::steady_clock::now();
            const auto read = readFiles({first, second});
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - from;
            VERIFY_READ(read);
            best = std::min(best, took.count());
        }
        qInfo("10,570 questions in %.1f ms (best of 5)", best);
        // A wide limit: sanitizers and busy machines are no regression.
        QVERIFY(best < 2000);
    }

    void halvesReadTogetherEqualTheHalvesReadApart()
    {
        MUSTER_SHARED_OR_SKIP(first, "data/squad-v1.1-dev/dev-v1.1.json");
        const auto second = test::sharedPath("data/squad-v1.1-dev/test-v1.1.json");
        const auto a = readFiles({first});
        const auto b = readFiles({second});
        const auto both = readFiles({first, second});
        QVERIFY(a && b && both);
        QCOMPARE(both->samples.size(), a->samples.size() + b->samples.size());
        for (std::size_t i = 0; i < b->samples.size(); ++i)
            QCOMPARE(both->samples[a->samples.size() + i].hash, b->samples[i].hash);
    }

    void casesAreRead_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<quint64>("samples");
        QTest::addColumn<quint64>("impossible");
        QTest::newRow("C-023 no gold answers") << "cases/inputs/c023-squad.json" << 4ULL << 2ULL;
        QTest::newRow("C-026 answerable only") << "cases/inputs/c026-squad.json" << 3ULL << 0ULL;
        QTest::newRow("C-030 same question twice")
            << "cases/inputs/c030-squad.json" << 2ULL << 0ULL;
    }
    void casesAreRead()
    {
        QFETCH(QString, path);
        QFETCH(quint64, samples);
        QFETCH(quint64, impossible);
        MUSTER_SHARED_OR_SKIP(root, "cases/inputs");
        const auto read = readFiles({test::sharedPath(path.toUtf8().constData())});
        VERIFY_READ(read);
        QCOMPARE(read->samples.size(), std::size_t{samples});
        const auto unanswerable = std::count_if(read->samples.begin(), read->samples.end(),
                                                [](const Sample& s) { return s.isImpossible; });
        QCOMPARE(static_cast<quint64>(unanswerable), impossible);
    }

    void sameQuestionInTwoContextsKeepsItsOwnAnswers() // C-030
    {
        const auto read = readText(
            R"({"data":[{"paragraphs":[)"
            R"({"context":"red","qas":[{"id":"1","question":"Q","answers":[{"text":"red","answer_start":0}]}]},)"
            R"({"context":"blue","qas":[{"id":"2","question":"Q","answers":[{"text":"blue","answer_start":0}]}]}]}]})");
        VERIFY_READ(read);
        QCOMPARE(read->samples[0].answers[0].text, std::string("red"));
        QCOMPARE(read->samples[1].answers[0].text, std::string("blue"));
        QVERIFY(read->samples[0].hash != read->samples[1].hash);
    }

    void oddTextsAreKeptAndCounted_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("code");
        QTest::addColumn<quint64>("count");
        const auto row = [](const char* name, const std::string& text, const char* code,
                            quint64 count) {
            QTest::newRow(name) << bytes(text) << QByteArray(code) << count;
        };
        const auto answer = [](const char* body) {
            return std::string(R"({"id":"q","question":"Q","answers":[)") + body + "]}";
        };
        row("offset one too far", file("a red b", answer(R"({"text":"red","answer_start":3})")),
            "W-DATA-001", 1);
        row("offset in bytes, not code points",
            file("ü red", answer(R"({"text":"red","answer_start":3})")), "W-DATA-001", 1);
        row("offset behind the end",
            file("a red b", answer(R"({"text":"red","answer_start":9000000000})")), "W-DATA-001",
            1);
        row("offset unknown", file("a red b", answer(R"({"text":"red","answer_start":-1})")),
            "W-DATA-001", 1);
        row("no substring",
            file("a red b",
                 answer(R"({"text":"blue","answer_start":2},{"text":"x","answer_start":0})")),
            "W-DATA-002", 2);
        row("empty context", file("", answer("")), "W-DATA-003", 1);
        row("U+0000 in the context", file("a\\u0000b", answer("")), "W-DATA-004", 1);
        row("U+0000 in the question", file("a", R"({"id":"q","question":"\u0000","answers":[]})"),
            "W-DATA-004", 1);
        row("number as answer", file("in 1914", answer(R"({"text":1914,"answer_start":3})")),
            "W-DATA-005", 1);
        row("number as id", file("a", R"({"id":12,"question":"Q","answers":[]})"), "W-DATA-006", 1);
        row("byte-order mark", "\xEF\xBB\xBF" + file("a", answer("")), "W-DATA-007", 1);
        row("impossible with answers",
            file(
                "a",
                R"({"id":"q","question":"Q","is_impossible":true,"answers":[{"text":"a","answer_start":0}]})"),
            "W-DATA-008", 1);
        row("possible without answers",
            file("a", R"({"id":"q","question":"Q","is_impossible":false,"answers":[]})"),
            "W-DATA-008", 1);
        row("empty answer", file("a", answer(R"({"text":"","answer_start":0})")), "W-DATA-009", 1);
    }
    void oddTextsAreKeptAndCounted()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, code);
        QFETCH(quint64, count);
        const auto read = readText({text.constData(), static_cast<std::size_t>(text.size())});
        VERIFY_READ(read);
        QCOMPARE(read->samples.size(), std::size_t{1});
        QCOMPARE(read->warnings.size(), std::size_t{1});
        QCOMPARE(read->warnings[0].code, code.toStdString());
        QCOMPARE(read->warnings[0].count, std::uint64_t{count});
        QVERIFY(!read->warnings[0].sentence.empty());
    }

    void escapesBecomeTheirCharacters()
    {
        const auto read = readText(file(
            R"(\ud83d\ude00 \u00e9 \n\t\"\\\/ \u0000)",
            R"({"\u0069d":"q","question":"Q","answers":[{"text":"\u00e9","answer_start":2}]})"));
        VERIFY_READ(read);
        QCOMPARE(bytes(read->contexts[0]),
                 QByteArray("\xF0\x9F\x98\x80 \xC3\xA9 \n\t\"\\/ \0", 15));
        QCOMPARE(warningCount(*read, "W-DATA-001"), std::uint64_t{0});
    }

    void blankLinesBetweenTokensAreWhiteSpace() // C-066
    {
        const auto read = readText("\n\n" + file("a", goodQuestion) + "\n\n \r\n");
        VERIFY_READ(read);
        QCOMPARE(read->samples.size(), std::size_t{1});
    }

    void badFilesAreRefusedWithTheirPlace_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("code");
        QTest::addColumn<QByteArray>("part");
        const auto row = [](const char* name, const std::string& text, const char* code,
                            const char* part) {
            QTest::newRow(name) << bytes(text) << QByteArray(code) << QByteArray(part);
        };
        const std::string good = file("red", goodQuestion);
        row("empty file", "", "E-DATA-001", "t.json:1:1");
        row("white space only", " \n\n ", "E-DATA-001", "t.json:3:2");
        row("byte-order mark only", "\xEF\xBB\xBF", "E-DATA-001", "t.json:1:1");
        row("broken UTF-8", "{\n\"\xC3\xA4\xFF\"", "E-DATA-002", "t.json:2:3");
        row("Latin-1", file("caf\xE9", goodQuestion), "E-DATA-002", "t.json:1:");
        row("UTF-16", std::string("\xFF\xFE{\0", 4), "E-DATA-002", "UTF-16");
        row("surrogate as UTF-8", "\"\xED\xA0\x80\"", "E-DATA-002", "t.json:1:2");
        row("text", "hello", "E-DATA-003", "t.json:1:1");
        row("list at the top", "[1]", "E-DATA-006", "t.json:1:1");
        row("missing colon", R"({"data" []})", "E-DATA-003", "t.json:1:9");
        row("trailing comma at the top", R"({"a":1,})", "E-DATA-003", "t.json:1:8");
        row("trailing comma in data", R"({"data":[{"paragraphs":[]},]})", "E-DATA-003",
            "t.json:1:28");
        row("trailing comma inside", R"({"data":[{"paragraphs":[],}]})", "E-DATA-003",
            "t.json:1:27");
        row("two values without comma", R"({"data":[{} {}]})", "E-DATA-007", "t.json:1:10");
        row("brackets that do not match", R"({"x":[1}, "data":[]})", "E-DATA-003", "t.json:1:8");
        row("bad literal in an ignored value", R"({"x":[nul], "data":[]})", "E-DATA-003",
            "t.json:1:7");
        row("bad number in an ignored value", R"({"x":[01], "data":[]})", "E-DATA-003",
            "t.json:1:7");
        row("backslash outside of a string, after a good article",
            "{\"data\":[{\"paragraphs\":[]}, {\"a\": \\\"b\"}]}", "E-DATA-003",
            "t.json:1:35: data[1]");
        row("bad escape", file("a\\q", goodQuestion), "E-DATA-003", "t.json:1:64");
        row("bad escape in a key", R"({"data":[{"\x":1}]})", "E-DATA-003", "t.json:1:12");
        row("line end in a string", "{\"data\":[\"a\nb\"]}", "E-DATA-003", "t.json:1:12");
        row("half a high surrogate", file("x\\ud83dx", goodQuestion), "E-DATA-009",
            "data[0].paragraphs[0].context");
        row("half a low surrogate", file("ü\\ude00", goodQuestion), "E-DATA-009", "t.json:1:64");
        row("surrogates in the wrong order", file("\\ude00\\ud83d", goodQuestion), "E-DATA-009",
            "t.json:1:63");
        row("cut in a string", good.substr(0, 60), "E-DATA-004", "t.json:1:61");
        row("cut before the last brace", good.substr(0, good.size() - 1), "E-DATA-004",
            "t.json:1:");
        row("cut after the first article", R"({"data":[{"paragraphs":[]})", "E-DATA-004",
            "t.json:1:27");
        row("trailing garbage", good + "\nx", "E-DATA-005", "t.json:2:1");
        row("two texts in one file", good + good, "E-DATA-005", "t.json:1:");
        row("NUL behind the end", good + std::string(1, '\0'), "E-DATA-005", "t.json:1:");
        row("data is an object", R"({"data":{}})", "E-DATA-006", "data: a list of articles");
        row("article is a number", R"({"data":[1]})", "E-DATA-006", "data[0]: an object");
        row("paragraphs is null", R"({"data":[{"paragraphs":null}]})", "E-DATA-006",
            "data[0].paragraphs: a list of paragraphs was expected, but it is null");
        row("context is a number", R"({"data":[{"paragraphs":[{"context":1,"qas":[]}]}]})",
            "E-DATA-006", "t.json:1:36: data[0].paragraphs[0].context: a text");
        row("id is a list", file("a", R"({"id":[],"question":"Q","answers":[]})"), "E-DATA-006",
            "data[0].paragraphs[0].qas[0].id");
        row("offset is a text",
            file("a", R"({"id":"q","question":"Q","answers":[{"text":"a","answer_start":"0"}]})"),
            "E-DATA-006", "qas[0].answers[0].answer_start: an integer");
        row("offset is a fraction",
            file("a", R"({"id":"q","question":"Q","answers":[{"text":"a","answer_start":0.5}]})"),
            "E-DATA-006", "answers[0].answer_start");
        row("flag is a text",
            file("a", R"({"id":"q","question":"Q","answers":[],"is_impossible":"no"})"),
            "E-DATA-006", "is_impossible");
        row("no data", R"({"version":"1"})", "E-DATA-007", "t.json:1:1: data");
        row("no paragraphs", R"({"data":[{"title":"x"}]})", "E-DATA-007", "data[0].paragraphs");
        row("no context", R"({"data":[{"paragraphs":[{"qas":[]}]}]})", "E-DATA-007",
            "t.json:1:25: data[0].paragraphs[0].context");
        row("no id in the second question",
            file("red", std::string(goodQuestion) + R"(,{"question":"Q","answers":[]})"),
            "E-DATA-007", "data[0].paragraphs[0].qas[1].id");
        row("no answers", file("a", R"({"id":"q","question":"Q"})"), "E-DATA-007",
            "qas[0].answers");
        row("no answer_start", file("a", R"({"id":"q","question":"Q","answers":[{"text":"a"}]})"),
            "E-DATA-007", "answers[0].answer_start");
        row("duplicate id", file("red", std::string(goodQuestion) + ",\n" + goodQuestion),
            "E-DATA-008",
            "t.json:2:7: data[0].paragraphs[0].qas[1].id: the id `q` was used before, at "
            "t.json:1:81");
        row("C-012 data without elements", R"({"data":[]})", "E-DATA-010", "t.json:1:9");
        row("C-012 articles without questions", R"({"data":[{"paragraphs":[]}]})", "E-DATA-010",
            "t.json:1:9");
        row("nested too deep",
            R"({"x":)" + std::string(100, '[') + std::string(100, ']') + R"(,"data":[]})",
            "E-DATA-013", "t.json:1:70");
        row("key twice", R"({"data":[],"data":[]})", "E-DATA-010", "t.json:1:9");
        row("context twice",
            R"({"data":[{"paragraphs":[{"context":"a","context":"b","qas":[]}]}]})", "E-DATA-014",
            "t.json:1:");
    }
    void badFilesAreRefusedWithTheirPlace()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, code);
        QFETCH(QByteArray, part);
        const auto read = readText({text.constData(), static_cast<std::size_t>(text.size())});
        QVERIFY(!read.has_value());
        QVERIFY2(read.error().code == code.toStdString(), read.error().text().c_str());
        QVERIFY2(read.error().message.find(part.toStdString()) != std::string::npos,
                 read.error().text().c_str());
        QVERIFY(read.error().message.find("t.json:") == 0);
    }

    void everyTruncationIsRefusedAndNoneCrashes()
    {
        std::ifstream stream(input("two-articles.json"), std::ios::binary);
        std::string text((std::istreambuf_iterator<char>(stream)), {});
        text.resize(text.find_last_of('}') + 1);
        for (std::size_t size = 0; size < text.size(); ++size) {
            const auto read = readText(std::string_view(text).substr(0, size));
            QVERIFY2(!read.has_value(), QByteArray::number(static_cast<qulonglong>(size)));
        }
        QVERIFY(readText(text).has_value());
    }

    void everyByteChangedNeverCrashes()
    {
        std::ifstream stream(input("two-articles.json"), std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(stream)), {});
        for (std::size_t at = 0; at < text.size(); ++at) {
            for (const char c : {'"', '\\', '{', ']', ',', '\0', '\xFF', '7'}) {
                std::string changed = text;
                changed[at] = c;
                const auto read = readText(changed);
                if (!read)
                    QVERIFY(!read.error().code.empty());
            }
        }
    }

    void duplicateIdsOverTwoFilesNameBothPlaces()
    {
        const auto read = readFiles({input("two-articles.json"), input("duplicate-id.json")});
        QVERIFY(!read.has_value());
        QCOMPARE(read.error().code, std::string("E-DATA-008"));
        QVERIFY2(read.error().message.find("duplicate-id.json:2:10") != std::string::npos,
                 read.error().text().c_str());
        QVERIFY2(read.error().message.find("two-articles.json:10:20") != std::string::npos,
                 read.error().text().c_str());
    }

    void subsetRenumbersAndRemembers()
    {
        ReadOptions options;
        options.subset = "4,1-2";
        auto read = readFiles({input("two-articles.json")}, options);
        VERIFY_READ(read);
        QCOMPARE(read->originalCount, std::uint64_t{5});
        QCOMPARE(read->samples.size(), std::size_t{3});
        const std::vector<std::uint64_t> originals{1, 2, 4};
        for (std::uint64_t i = 0; i < 3; ++i) {
            QCOMPARE(read->samples[i].index.value, i);
            QCOMPARE(read->samples[i].original.value, originals[i]);
        }
        options.limit = 1;
        read = readFiles({input("two-articles.json")}, options);
        VERIFY_READ(read);
        QCOMPARE(read->samples.size(), std::size_t{1});
        QCOMPARE(read->samples[0].id, std::string("b2"));
        QCOMPARE(read->contexts.size(), std::size_t{1});
        QVERIFY(!read->hasUnanswerable);
        options = {};
        options.subset = "id:7, id:b1";
        read = readFiles({input("two-articles.json")}, options);
        VERIFY_READ(read);
        QCOMPARE(read->samples[1].id, std::string("7"));
    }

    void subsetThatMeetsNothingIsRefused_data()
    {
        QTest::addColumn<QString>("subset");
        QTest::addColumn<QString>("code");
        QTest::newRow("behind the end") << "0-5"
                                        << "E-DATA-012";
        QTest::newRow("unknown id") << "id:nobody"
                                    << "E-DATA-012";
        QTest::newRow("unreadable") << "0,x"
                                    << "E-DATA-011";
    }
    void subsetThatMeetsNothingIsRefused()
    {
        QFETCH(QString, subset);
        QFETCH(QString, code);
        ReadOptions options;
        options.subset = subset.toStdString();
        const auto read = readFiles({input("two-articles.json")}, options);
        QVERIFY(!read.has_value());
        QCOMPARE(read.error().code, code.toStdString());
    }

    void noFileAndAMissingFileAreErrors()
    {
        QCOMPARE(readFiles({}).error().code, std::string("E-DATA-016"));
        QCOMPARE(readFiles({"does-not-exist.json"}).error().kind, Error::Kind::NotFound);
        ReadOptions none;
        none.limit = 0;
        QCOMPARE(readFiles({input("two-articles.json")}, none).error().code,
                 std::string("E-DATA-010"));
    }

    void firstTwentySamplesOfAWarningAreListedOnce()
    {
        std::string qas;
        const QString question = QStringLiteral(
            "{'id':'q%1','question':'Q',"
            "'answers':[{'text':'x','answer_start':0},{'text':'y','answer_start':0}]}");
        for (int i = 0; i < 50; ++i)
            qas += (i == 0 ? "" : ",") + question.arg(i).replace('\'', '"').toStdString();
        const auto read = readText(file("red", qas));
        VERIFY_READ(read);
        const Warning* found = warning(*read, "W-DATA-002");
        QVERIFY(found != nullptr);
        QCOMPARE(found->count, std::uint64_t{100});
        QCOMPARE(found->first20.size(), std::size_t{20});
        QCOMPARE(found->first20.back().value, std::uint64_t{19});
    }
};

QTEST_GUILESS_MAIN(TestSquadReader)
#include "tst_squad_reader.moc"
