// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/utf8.h"
#include "support/shared_data.h"
#include "tokenizer/encoding_text.h"
#include "tokenizer/tokenizer.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

using namespace muster;
using namespace muster::tokenizer;

namespace {

//                             0      1      2      3      4       5    6      7   8   9   10
constexpr auto vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n,\n.\ncafe\n"
    // 11     12  13    14   15  16   17  18   19   20  21
    "caf\u00e9\n\u4e2d\n\u56fd\n[\n]\nword\nA\na\n##\u0301\n\u1100\n##\u1161"
    // 22 23    24    25     26         27        28
    "\n=\ni\n##\u0307\n##i\n\u03c3\n##\u03c3\n##\u03c2\n";

std::unique_ptr<Tokenizer> made(const BertSettings& settings)
{
    auto loaded = loadBertVocabulary(vocabulary, settings);
    return loaded ? std::move(*loaded) : nullptr;
}

template <typename Member, typename Value>
BertSettings with(Member member, Value value)
{
    BertSettings settings;
    settings.*member = value;
    return settings;
}

std::vector<std::vector<std::int32_t>> idsOfFile(const QByteArray& json)
{
    std::vector<std::vector<std::int32_t>> out;
    for (const QJsonValue& row : QJsonDocument::fromJson(json).array()) {
        std::vector<std::int32_t> ids;
        for (const QJsonValue& id : row.toArray())
            ids.push_back(id.toInt());
        out.push_back(ids);
    }
    return out;
}

} // namespace

class TestWordPiece : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void textBecomesIdsAndByteOffsets_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<bool>("lowers");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, QByteArray text, bool lowers, const char* expected) {
            QTest::newRow(name) << text << lowers << QString(expected);
        };
        row("empty text", "", true, "");
        row("white space alone", " \t\r\n\u3000", true, "");
        row("pieces", "unaffable", true, "5@0-2 6@2-5 7@5-9");
        row("upper case is lowered", "UnAffAble", true, "5@0-2 6@2-5 7@5-9");
        row("upper case is kept", "A a", false, "17@0-1 18@2-3");
        row("unknown end makes the whole word unknown", "unaffx", true, "1@0-6");
        row("punctuation is isolated", "un,un.", true, "5@0-2 8@2-3 5@3-5 9@5-6");
        row("accent is stripped", "caf\u00e9", true, "10@0-5");
        row("combining accent is stripped and not covered", "cafe\u0301", true, "10@0-4");
        row("accent is kept", "caf\u00e9", false, "11@0-5");
        row("Chinese characters are isolated", "\u4e2d\u56fdun", true, "12@0-3 13@3-6 5@6-8");
        row("control characters vanish inside a word",
            QByteArray("u\x01n\x7f\xc2\xad", 6) + "affable", true, "5@0-3 6@6-9 7@9-13");
        row("zero byte vanishes", QByteArray("u\0n", 3), true, "5@0-3");
        row("U+FFFD vanishes", "u\ufffdn", true, "5@0-5");
        row("broken byte vanishes", "u\xffn", true, "5@0-3");
        row("cut sequence at the end", "un\xe4\xb8", true, "5@0-2");
        row("zero width joiner vanishes", "un\u200daffable", true, "5@0-2 6@5-8 7@8-12");
        row("no-break space splits", "un\u00a0un", true, "5@0-2 5@4-6");
        row("Hangul decomposes, parts share the syllable", "\uac00", true, "20@0-3 21@0-3");
        row("decomposition that ends in punctuation", "a\u2260a", true, "18@0-1 22@1-4 18@4-5");
        row("capital I with dot, stripped", "\u0130", true, "23@0-2");
        row("no final sigma", "\u03a3\u03a3", true, "26@0-2 27@2-4");
        row("special tokens in the text", "[CLS]un[SEP]", true, "2@0-5 5@5-7 3@7-12");
        row("special tokens have their case", "[cls]", true, "14@0-1 1@1-4 15@4-5");
        row("special token inside a word", "un[MASK]un", true, "5@0-2 4@2-8 5@8-10");
        row("100 characters are a word", QByteArray(96, 'x') + "able", true, "1@0-100");
        row("word of 17 bytes", "unaffableaffablee", true, "1@0-17");
        row("emoji is unknown", "un \U0001F642", true, "5@0-2 1@3-7");
    }
    void textBecomesIdsAndByteOffsets()
    {
        QFETCH(QByteArray, text);
        QFETCH(bool, lowers);
        const auto t = made(with(&BertSettings::doLowerCase, lowers));
        QVERIFY(t);
        QTEST(test::shown(*t, std::string_view(text.data(), std::size_t(text.size()))), "expected");
    }

    void aWordOfMoreThan100CharactersIsUnknown()
    {
        const auto t = made({});
        std::string text = "un";
        for (int i = 0; i < 24; ++i)
            text += "able";
        QVERIFY(test::shown(*t, text + "aa").startsWith("1@0-100")); // no piece "##a"
        text = "un" + text.substr(2, 96) + "";
        QVERIFY(test::shown(*t, text).startsWith("5@0-2 7@2-6"));
        text += "ableable";
        QCOMPARE(test::shown(*t, text), QString("1@0-%1").arg(text.size()));
        QCOMPARE(test::shown(*t, text + "\u00e9 un"), QString("1@0-%1 5@%2-%3")
                                                          .arg(text.size() + 2)
                                                          .arg(text.size() + 3)
                                                          .arg(text.size() + 5));
    }

    void brokenBytesGiveTheIdsOfTheRepairedText()
    {
        const auto t = made({});
        for (const std::string text :
             {"un\xc3(able", "\xf0\x9f\x98", "a\xed\xa0\x80z", "\xff\xfe"}) {
            Encoding broken;
            Encoding repaired;
            t->encode(text, broken);
            t->encode(utf8::repaired(text), repaired);
            QCOMPARE(broken.ids, repaired.ids);
        }
    }

    void oneTokenizerServesSeveralThreads()
    {
        const auto t = made({});
        const QString expected = test::shown(*t, "Unaffable, caf\u00e9 \u4e2d\u56fd.");
        std::vector<QString> seen(8);
        std::vector<std::thread> threads;
        for (QString& s : seen)
            threads.emplace_back(
                [&] { s = test::shown(*t, "Unaffable, caf\u00e9 \u4e2d\u56fd."); });
        for (std::thread& thread : threads)
            thread.join();
        for (const QString& s : seen)
            QCOMPARE(s, expected);
    }

    void templateAndSpecialTokensAreBerts()
    {
        const auto t = made(with(&BertSettings::modelMaxLength, 512));
        QCOMPARE(t->kind(), std::string("wordpiece"));
        QCOMPARE(t->vocabularySize(), 29);
        QCOMPARE(t->modelMaxLength(), std::optional<std::int64_t>(512));
        QCOMPARE(t->specials().cls, std::optional<std::int32_t>(2));
        QCOMPARE(t->specials().unk, std::optional<std::int32_t>(1));
        QCOMPARE(t->pairTemplate().prefix, std::vector<std::int32_t>{2});
        QCOMPARE(t->pairTemplate().middle, std::vector<std::int32_t>{3});
        QCOMPARE(t->pairTemplate().contextSegment, 1);
        QVERIFY(t->pairTemplate().usesSegments);
        QCOMPARE(t->idOf("##able"), std::optional<std::int32_t>(7));
        QVERIFY(!t->idOf("##nothing"));
    }

    void theDigestChangesWithWhatChangesIds()
    {
        const Hash128 base = made({})->digest();
        QCOMPARE(made(with(&BertSettings::modelMaxLength, 7))->digest(), base);
        QVERIFY(made(with(&BertSettings::doLowerCase, false))->digest() != base);
        QVERIFY(made(with(&BertSettings::stripAccents, false))->digest() != base);
        QVERIFY(made(with(&BertSettings::tokenizeChineseChars, false))->digest() != base);
        const auto other = loadBertVocabulary(std::string(vocabulary) + "more\n", {});
        QVERIFY(other && (*other)->digest() != base);
    }

    void vocabTxtAndTokenizerJsonOfAModelAreTheSame()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/models/minilm-qa");
        const auto json = loadTokenizer(directory);
        const auto text = readFile(directory / "vocab.txt");
        QVERIFY(json && text);
        const auto plain = loadBertVocabulary(*text, {});
        QVERIFY(plain);
        QCOMPARE((*json)->digest().hex(), (*plain)->digest().hex());
        QCOMPARE((*json)->modelMaxLength(), std::optional<std::int64_t>(512));
    }

    void squadQuestionsHaveTheirGoldenIds()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/tokenizers/bert-base-uncased");
        MUSTER_SHARED_OR_SKIP(squad, "data/squad-v1.1-dev");
        const auto t = loadTokenizer(directory);
        QVERIFY(t);
        const auto golden = readFile(directory / "tokenized_questions.json");
        QVERIFY(golden);
        auto expected = idsOfFile(QByteArray::fromStdString(*golden));
        std::vector<std::vector<std::int32_t>> seen;
        Encoding encoding;
        for (const char* name : {"dev-v1.1.json", "test-v1.1.json"}) {
            const auto file = readFile(squad / name);
            QVERIFY(file);
            const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(*file));
            for (const QJsonValue& article : document["data"].toArray()) {
                for (const QJsonValue& paragraph : article["paragraphs"].toArray()) {
                    for (const QJsonValue& qa : paragraph["qas"].toArray()) {
                        (*t)->encode(qa["question"].toString().toStdString(), encoding);
                        seen.push_back(encoding.ids);
                    }
                }
            }
        }
        QCOMPARE(seen.size(), std::size_t{10570});
        std::ranges::sort(seen);
        std::ranges::sort(expected);
        QVERIFY(seen == expected);
    }

    void hardTextsHaveTheirGoldenIds()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/tokenizers/bert-base-uncased");
        MUSTER_SHARED_OR_SKIP(golden, "data/tokenizers/llamacpp-golden");
        const auto t = loadTokenizer(directory);
        const auto texts = readFile(golden / "ggml-vocab-bert-bge.gguf.inp");
        const auto ids = readFile(golden / "ggml-vocab-bert-bge.gguf.out");
        QVERIFY(t && texts && ids);
        const QStringList inputs = QString::fromStdString(*texts).split("\n__ggml_vocab_test__\n");
        const QStringList outputs = QString::fromStdString(*ids).split('\n');
        QVERIFY(inputs.size() >= 47);
        Encoding encoding;
        for (qsizetype i = 0; i < inputs.size(); ++i) {
            (*t)->encode(inputs[i].toStdString(), encoding);
            QString line;
            for (const std::int32_t id : encoding.ids)
                line += QStringLiteral(" %1").arg(id);
            QCOMPARE(line.trimmed(), outputs.value(i).trimmed());
        }
    }
};

QTEST_GUILESS_MAIN(TestWordPiece)
#include "tst_wordpiece.moc"
