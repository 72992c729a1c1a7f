// SPDX-License-Identifier: Apache-2.0
#include "metrics/answer_score.h"
#include "metrics/normalize.h"

#include <QtTest>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>

using namespace muster;
using namespace muster::metrics;

namespace {

std::string squadEn(std::string_view text)
{
    return normalize(Normalizer::SquadEn1, text).text;
}

} // namespace

class TestNormalize : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void squadEnIsTheOfficialRule_data();
    void squadEnIsTheOfficialRule();
    void squadEnEqualsPythonOnRandomUnicode();
    void tokensAreCounted();
    void brokenBytesBecomeReplacementCharacters();
    void chineseIsTakenCharacterByCharacter_data();
    void chineseIsTakenCharacterByCharacter();
    void extendedModeKnowsUnicodeMarks_data();
    void extendedModeKnowsUnicodeMarks();
    void normalizingTwiceChangesNothingInAscii();
    void namesGoBothWays();
};

void TestNormalize::squadEnIsTheOfficialRule_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("normalized");
    const auto row = [](const char* name, const char* text, const char* normalized) {
        QTest::newRow(name) << QByteArray(text) << QByteArray(normalized);
    };
    // semantics.md 3.3, made by Python.
    row("points and spaces", "The  U.S.A.!", "usa");
    row("hyphen first", "a-b", "ab");
    row("en dash kept", "a–b", "–b");
    row("the-end", "the-end", "theend");
    row("curly quotes kept", "“the” cat", "“ ” cat");
    row("two apostrophes", "O'Neill’s", "oneill’s");
    row("A.", "A.", "");
    row("underscores", "_the_", "");
    row("underscores inside", "a_the_b", "atheb");
    row("unit separator is space", "x\x1fy", "x y");
    row("zero width space is none", "x\u200By", "x\u200By");
    row("byte order mark is none", "x\uFEFFy", "x\uFEFFy");
    row("dotted capital i", "\u0130stanbul", "i\u0307stanbul");
    row("final sigma", "ΟΔΟΣ", "οδος");
    row("combining mark ends a word", "the\u0301 cat", "\u0301 cat");
    row("superscript is a word character", "a²", "a²");
    row("full-width digit is one", "a１", "a１");
    row("middle dot is none", "the·end", "·end");
    row("undertie is none", "the\u203Fend", "\u203Fend");
    row("comma in a number", "1,000", "1000");
    // By the same rules.
    row("nothing", "", "");
    row("articles only", "the a an", "");
    row("article at both ends", "the end of a", "end of");
    row("article beside a control character", "a\x01the", "\x01");
    row("sigma before a mark and a letter", "ΑΣ\u0301Α", "ασ\u0301α");
    row("sigma alone", "Σ", "σ");
    row("all white space", "\t\n\v\f\r \u0085\u00A0\u1680\u2003\u2028\u2029\u202F\u205F\u3000", "");
}

void TestNormalize::squadEnIsTheOfficialRule()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, normalized);
    QCOMPARE(QByteArray::fromStdString(squadEn(text.toStdString())), normalized);
}

void TestNormalize::squadEnEqualsPythonOnRandomUnicode()
{
    // Made by resources/tools/make_squad_vectors.py with Python 3.11.7 (Unicode 14.0). Another file
    // of the same form can be named in MUSTER_SQUAD_VECTORS.
    const char* other = std::getenv("MUSTER_SQUAD_VECTORS");
    std::ifstream file(other != nullptr ? other : MUSTER_TEST_DATA "/inputs/squad-normalise.jsonl");
    QVERIFY(file);
    std::string line;
    QVERIFY(std::getline(file, line));
    std::size_t rows = 0;
    while (std::getline(file, line)) {
        const auto row = nlohmann::json::parse(line);
        const auto prediction = row.at("prediction").get<std::string>();
        const auto gold = row.at("gold").get<std::string>();
        QCOMPARE(squadEn(prediction), row.at("p").get<std::string>());
        QCOMPARE(squadEn(gold), row.at("g").get<std::string>());
        AnswerScorer scorer(SquadVersion::V1, Normalizer::SquadEn1);
        const std::string_view golds[] = {gold};
        QVERIFY(scorer.addQuestion("q", golds));
        const QuestionScore score = scorer.score(0, prediction);
        QCOMPARE(score.em, row.at("em").get<double>());
        QVERIFY2(score.f1 == row.at("f1").get<double>(), line.c_str());
        ++rows;
    }
    QVERIFY(rows >= 300);
}

void TestNormalize::tokensAreCounted()
{
    QCOMPARE(normalize(Normalizer::SquadEn1, " The cat  sat. ").tokens, 2U);
    QCOMPARE(normalize(Normalizer::SquadEn1, "the").tokens, 0U);
    QCOMPARE(normalize(Normalizer::ZhMixed1, "北京 2008年").tokens, 4U);
}

void TestNormalize::brokenBytesBecomeReplacementCharacters()
{
    QCOMPARE(squadEn("x\xC3"), std::string("x\uFFFD"));
    QCOMPARE(squadEn("\xED\xA0\x80"), std::string("\uFFFD\uFFFD\uFFFD"));
    QCOMPARE(squadEn(std::string_view("a\0b", 3)), std::string("\0b", 2));
}

void TestNormalize::chineseIsTakenCharacterByCharacter_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("normalized");
    QTest::newRow("C-027 gold") << QByteArray("北京") << QByteArray("北 京");
    QTest::newRow("C-027 prediction") << QByteArray("北京大学") << QByteArray("北 京 大 学");
    QTest::newRow("mixed") << QByteArray("在Windows 10上") << QByteArray("在 windows 10 上");
    QTest::newRow("punctuation") << QByteArray("《红楼梦》，第1回！……")
                                 << QByteArray("红 楼 梦 第 1 回");
    QTest::newRow("white space is nothing") << QByteArray("北 京\u3000") << QByteArray("北 京");
    QTest::newRow("ASCII marks") << QByteArray("U.S.-based") << QByteArray("usbased");
    QTest::newRow("articles stay") << QByteArray("The cat") << QByteArray("the cat");
    QTest::newRow("extension B") << QByteArray("\U00020000x") << QByteArray("\U00020000 x");
    QTest::newRow("kana") << QByteArray("カナ") << QByteArray("カ ナ");
    QTest::newRow("hangul are words") << QByteArray("한국 서울") << QByteArray("한국 서울");
    QTest::newRow("only marks") << QByteArray("。，、") << QByteArray("");
}

void TestNormalize::chineseIsTakenCharacterByCharacter()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, normalized);
    QCOMPARE(QByteArray::fromStdString(normalize(Normalizer::ZhMixed1, text.toStdString()).text),
             normalized);
}

void TestNormalize::extendedModeKnowsUnicodeMarks_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("normalized");
    QTest::newRow("C-028 en dash") << QByteArray("1914–1918") << QByteArray("19141918");
    QTest::newRow("C-028 hyphen") << QByteArray("1914-1918") << QByteArray("19141918");
    QTest::newRow("C-028 minus sign") << QByteArray("−5") << QByteArray("5");
    QTest::newRow("C-028 decimal point") << QByteArray("3.14") << QByteArray("3.14");
    QTest::newRow("point at the end") << QByteArray("It is 3.") << QByteArray("it is 3");
    QTest::newRow("thousands") << QByteArray("1,000.5") << QByteArray("1000.5");
    QTest::newRow("curly quotes") << QByteArray("“the” cat’s") << QByteArray("cats");
    QTest::newRow("currency stays") << QByteArray("€ 5") << QByteArray("€ 5");
}

void TestNormalize::extendedModeKnowsUnicodeMarks()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, normalized);
    QCOMPARE(
        QByteArray::fromStdString(normalize(Normalizer::SquadExtended1, text.toStdString()).text),
        normalized);
}

void TestNormalize::normalizingTwiceChangesNothingInAscii()
{
    for (const char* text : {"The quick, brown fox.", "a b-c an the", "x_y  z\x01 a", "", "A"}) {
        const std::string once = squadEn(text);
        QCOMPARE(squadEn(once), once);
    }
}

void TestNormalize::namesGoBothWays()
{
    for (const Normalizer n :
         {Normalizer::SquadEn1, Normalizer::ZhMixed1, Normalizer::SquadExtended1}) {
        const auto found = normalizerByName(normalizerName(n));
        QVERIFY(found);
        QVERIFY(*found == n);
    }
    const auto unknown = normalizerByName("squad-en/2");
    QVERIFY(!unknown);
    QCOMPARE(unknown.error().code, std::string("E-METRICS-001"));
    QVERIFY(unknown.error().message.find("zh-mixed/1") != std::string::npos);
}

QTEST_GUILESS_MAIN(TestNormalize)
#include "tst_normalize.moc"
