// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "support/shared_data.h"
#include "tokenizer/encoding_text.h"
#include "tokenizer/tokenizer.h"

#include <QJsonArray>
#include <QJsonDocument>

#include <string>

using namespace muster;
using namespace muster::tokenizer;

namespace {

/// A tokenizer.json of 17 tokens; `model` are more fields of its model.
std::string roberta(bool addsPrefixSpace, const char* model = "")
{
    QFile file(MUSTER_TEST_DATA "/tokenizer/tiny_roberta.json");
    if (!file.open(QIODevice::ReadOnly))
        return {};
    QByteArray json = file.readAll();
    json.replace("\"PREFIX\"", addsPrefixSpace ? "true" : "false");
    json.replace("\"MODEL\":0,", model);
    return json.toStdString();
}

} // namespace

class TestByteLevelBpe : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void textBecomesIdsAndTrimmedOffsets_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("prefix");
        QTest::addColumn<QString>("expected");
        QTest::newRow("empty text") << "" << false << "";
        QTest::newRow("merges by rank") << "abab" << false << "6@0-2 6@2-4";
        QTest::newRow("leading space is trimmed") << " ab" << false << "7@1-3";
        QTest::newRow("added space is not") << "ab" << true << "7@0-2";
        QTest::newRow("bytes of one code point share it")
            << "a\u00e9" << false << "3@0-1 8@1-3 10@1-3";
        QTest::newRow("contraction") << "ab's" << false << "6@0-2 13@2-4";
        QTest::newRow("no contraction behind a space")
            << "ab 's" << false << "6@0-2 5@3-3 11@3-4 12@4-5";
        QTest::newRow("last space goes to the word") << "a  ab" << false << "3@0-1 5@2-2 7@3-5";
        QTest::newRow("spaces at the end stay together") << "a  " << false << "3@0-1 16@3-3";
        QTest::newRow("number and letter part") << "a1a" << false << "3@0-1 14@1-2 3@2-3";
        QTest::newRow("new line before a word") << "a\nab" << false << "3@0-1 15@1-2 6@2-4";
        QTest::newRow("mask takes the space on its left")
            << "ab  <mask> ab" << false << "6@0-2 9@4-10 7@11-13";
        QTest::newRow("byte without a token is dropped") << "axb" << false << "6@0-2";
    }
    void textBecomesIdsAndTrimmedOffsets()
    {
        QFETCH(QString, text);
        QFETCH(bool, prefix);
        const auto t = loadTokenizerJson(roberta(prefix));
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QTEST(test::shown(**t, text.toStdString()), "expected");
    }

    void unknownBytesBecomeTheUnknownToken()
    {
        const auto one = loadTokenizerJson(roberta(false, "\"unk_token\":\"<unk>\","));
        const auto fused =
            loadTokenizerJson(roberta(false, "\"unk_token\":\"<unk>\",\"fuse_unk\":true,"));
        QVERIFY(one && fused);
        QCOMPARE(test::shown(**one, "axyb"), QString("3@0-1 1@1-2 1@2-3 4@3-4"));
        QCOMPARE(test::shown(**fused, "axyb"), QString("3@0-1 1@1-3 4@3-4"));
    }

    void aBrokenByteIsAReplacementCharacter()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/tokenizers/roberta-base");
        const auto t = loadTokenizer(directory);
        QVERIFY(t);
        Encoding broken;
        Encoding repaired;
        (*t)->encode("a \xff b", broken);
        (*t)->encode("a \ufffd b", repaired);
        QCOMPARE(broken.ids, repaired.ids);
        QCOMPARE(broken.end.back(), 5U);
    }

    void aLongWordIsMergedLikeAShortOne()
    {
        const auto t = loadTokenizerJson(roberta(false));
        QVERIFY(t);
        std::string text;
        for (int i = 0; i < 20000; ++i)
            text += "ab";
        Encoding encoding;
        (*t)->encode(text, encoding);
        QCOMPARE(encoding.size(), std::size_t{20000});
        QCOMPARE(encoding.ids.back(), 6);
        QCOMPARE(encoding.end.back(), 40000U);
    }

    void robertaHasItsTemplate()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/tokenizers/roberta-base");
        const auto t = loadTokenizer(directory);
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QCOMPARE((*t)->kind(), std::string("bpe"));
        QCOMPARE((*t)->pairTemplate().prefix, (std::vector<std::int32_t>{0}));
        QCOMPARE((*t)->pairTemplate().middle, (std::vector<std::int32_t>{2, 2}));
        QVERIFY(!(*t)->pairTemplate().usesSegments);
        QCOMPARE((*t)->vocabularySize(), 50265);
        QCOMPARE((*t)->specials().pad, std::optional<std::int32_t>(1));
        QCOMPARE(test::shown(**t, "Hello  <mask> world <s> \u00e9"),
                 QString("31414@0-5 50264@7-13 232@14-19 1437@20-20 0@20-23 7935@24-26"));
    }

    void gpt2HasItsGoldenIds()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/tokenizers/gpt2");
        MUSTER_SHARED_OR_SKIP(golden, "data/tokenizers/llamacpp-golden");
        const auto vocabulary = readFile(directory / "gpt2.vocab");
        const auto merges = readFile(directory / "gpt2.merges.txt");
        QVERIFY(vocabulary && merges);
        const auto t = loadGpt2Vocabulary(*vocabulary, *merges);
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        Encoding encoding;

        const auto french = readFile(directory / "encoded_tokens.json");
        QVERIFY(french);
        const auto document = QJsonDocument::fromJson(QByteArray::fromStdString(*french));
        (*t)->encode(document["text"].toString().toStdString(), encoding);
        std::vector<std::int32_t> expected;
        for (const QJsonValue& id : document["token_ids"].toArray())
            expected.push_back(id.toInt());
        QVERIFY(!expected.empty());
        QCOMPARE(encoding.ids, expected);

        const auto texts = readFile(golden / "ggml-vocab-gpt-2.gguf.inp");
        const auto ids = readFile(golden / "ggml-vocab-gpt-2.gguf.out");
        QVERIFY(texts && ids);
        const QStringList inputs = QString::fromStdString(*texts).split("\n__ggml_vocab_test__\n");
        const QStringList outputs = QString::fromStdString(*ids).split('\n');
        for (qsizetype i = 0; i < inputs.size(); ++i) {
            (*t)->encode(inputs[i].toStdString(), encoding);
            QString line;
            for (const std::int32_t id : encoding.ids)
                line += QStringLiteral(" %1").arg(id);
            QCOMPARE(line.trimmed(), outputs.value(i).trimmed());
        }
    }
};

QTEST_GUILESS_MAIN(TestByteLevelBpe)
#include "tst_byte_level_bpe.moc"
