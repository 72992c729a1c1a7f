// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "support/shared_data.h"
#include "tokenizer/encoding_text.h"
#include "tokenizer/whole_text.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>

using namespace muster;
using namespace muster::tokenizer;

namespace {

constexpr auto normalizer = R"({"type":"BertNormalizer","clean_text":true,
    "handle_chinese_chars":true,"strip_accents":null,"lowercase":true})";
constexpr auto model = R"({"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"[CLS]":1,
    "[SEP]":2,"a":3}})";
constexpr auto processor = R"({"type":"BertProcessing","sep":["[SEP]",2],"cls":["[CLS]",1]})";

QByteArray json(QByteArray n = normalizer, QByteArray p = R"({"type":"BertPreTokenizer"})",
                QByteArray m = model, QByteArray post = processor, QByteArray added = "[]")
{
    return R"({"version":"1.0","added_tokens":)" + added + R"(,"normalizer":)" + n +
           R"(,"pre_tokenizer":)" + p + R"(,"post_processor":)" + post + R"(,"model":)" + m + "}";
}

Result<std::unique_ptr<Tokenizer>> loaded(const QByteArray& text)
{
    return loadTokenizerJson(std::string_view(text.data(), std::size_t(text.size())));
}

} // namespace

class TestTokenizerJson : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsNotImplementedIsNamed_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("word");
        const QByteArray n = normalizer;
        const QByteArray bert = R"({"type":"BertPreTokenizer"})";
        const QByteArray m = model;
        const auto row = [](const char* name, QByteArray text, const char* code, const char* word) {
            QTest::newRow(name) << text << QString(code) << QString(word);
        };
        row("no JSON", "{", "E-TOK-002", "tokenizer.json");
        row("empty", "", "E-TOK-002", "tokenizer.json");
        row("a list", "[]", "E-TOK-003", "object");
        row("no model", "{}", "E-TOK-003", "model");
        row("normalizer", json(R"({"type":"NFKC"})"), "E-TOK-004", "NFKC");
        row("two normalizers",
            json(R"({"type":"Sequence","normalizers":[)" + n + R"(,{"type":"NFC"}]})"), "E-TOK-004",
            "NFC");
        row("pre-tokenizer", json(n, R"({"type":"Metaspace"})"), "E-TOK-004", "Metaspace");
        row("no pre-tokenizer", json(n, "null"), "E-TOK-004", "pre-tokenizer");
        row("model", json(n, bert, R"({"type":"Unigram","vocab":[]})"), "E-TOK-004", "Unigram");
        row("post-processor", json(n, bert, m, R"({"type":"Other"})"), "E-TOK-004", "Other");
        row("unknown token",
            json(n, bert, R"({"type":"WordPiece","unk_token":"?","vocab":{"a":0}})"), "E-TOK-005",
            "?");
        row("negative id",
            json(n, bert, R"({"type":"WordPiece","unk_token":"a","vocab":{"a":-1}})"), "E-TOK-005",
            "a");
        row("id of 2^31",
            json(n, bert, R"({"type":"WordPiece","unk_token":"a","vocab":{"a":2147483648}})"),
            "E-TOK-005", "a");
        row("vocabulary is a list",
            json(n, bert, R"({"type":"WordPiece","unk_token":"a","vocab":["a"]})"), "E-TOK-003",
            "vocab");
        row("flag is a number", json(R"({"type":"BertNormalizer","lowercase":1})"), "E-TOK-003",
            "lowercase");
        row("added token with another id",
            json(n, bert, m, processor, R"([{"id":9,"content":"[SEP]"}])"), "E-TOK-007", "[SEP]");
        row("template with the texts turned round",
            json(n, bert, m, R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}],
                "pair":[{"Sequence":{"id":"B"}},{"Sequence":{"id":"A"}}],"special_tokens":{}})"),
            "E-TOK-008", "order");
        row("template with an unknown token",
            json(n, bert, m, R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"X"}},
                {"Sequence":{"id":"A"}}],"pair":[],"special_tokens":{}})"),
            "E-TOK-008", "X");
        row("byte fallback",
            json("null", R"({"type":"ByteLevel"})",
                 R"({"type":"BPE","byte_fallback":true,"vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-004", "byte_fallback");
        row("dropout",
            json("null", R"({"type":"ByteLevel"})",
                 R"({"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-004", "dropout");
        row("an expression that is none",
            json("null", R"({"type":"Split","pattern":{"Regex":"*"},"behavior":"Isolated"})",
                 R"({"type":"BPE","vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-010", "pattern");
        row("a behavior that is none",
            json("null", R"({"type":"Split","pattern":{"String":"a"},"behavior":"Other"})",
                 R"({"type":"BPE","vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-004", "behavior");
        row("a charsmap that is not base64",
            json(R"({"type":"Precompiled","precompiled_charsmap":"?"})", "null",
                 R"({"type":"BPE","vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-003", "charsmap");
        row("a charsmap without its trie",
            json(R"({"type":"Precompiled","precompiled_charsmap":"BAAAAA=="})", "null",
                 R"({"type":"BPE","vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-011", "charsmap");
        row("a step behind ByteLevel",
            json("null",
                 R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]})",
                 R"({"type":"BPE","vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-004", "Digits");
        row("Metaspace before ByteLevel",
            json(
                "null",
                R"({"type":"Sequence","pretokenizers":[{"type":"Metaspace"},{"type":"ByteLevel"}]})",
                R"({"type":"BPE","vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-004", "Metaspace");
        row("a normalizer of another kind",
            json(R"({"type":"ByteLevel"})", "null", R"({"type":"BPE","vocab":{"a":0},"merges":[]})",
                 "null"),
            "E-TOK-004", "normalizer ByteLevel");
        row("an unknown id beyond the pieces",
            json("null", "null", R"({"type":"Unigram","unk_id":3,"vocab":[["a",-1.0]]})", "null"),
            "E-TOK-005", "unk_id");
        row("a piece without a score",
            json("null", "null", R"({"type":"Unigram","unk_id":0,"vocab":[["a"]]})", "null"),
            "E-TOK-005", "entry 0");
        row("sequences in sequences without end",
            json(QByteArray(R"({"type":"Sequence","normalizers":[)").repeated(40) +
                     R"({"type":"NFC"})" + QByteArray("]}").repeated(40),
                 "null", R"({"type":"BPE","vocab":{"a":0},"merges":[]})", "null"),
            "E-TOK-003", "normalizers");
        row("merge of unknown tokens",
            json("null", R"({"type":"ByteLevel"})",
                 R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})", "null"),
            "E-TOK-006", "b");
        row("merge of three",
            json("null", R"({"type":"ByteLevel"})",
                 R"({"type":"BPE","vocab":{"a":0},"merges":["a a a"]})", "null"),
            "E-TOK-006", "merges");
    }
    void whatIsNotImplementedIsNamed()
    {
        QFETCH(QByteArray, text);
        QFETCH(QString, word);
        const auto t = loaded(text);
        QVERIFY(!t);
        QTEST(QString::fromStdString(t.error().code), "code");
        QVERIFY2(QString::fromStdString(t.error().message).contains(word),
                 t.error().message.c_str());
    }

    void addedTokensFollowTheirFlags_data()
    {
        QTest::addColumn<QByteArray>("flags");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        QTest::newRow("plain") << QByteArray() << "aXYa"
                               << "3@0-1 4@1-3 3@3-4";
        QTest::newRow("single word, joined") << QByteArray(R"(,"single_word":true)") << "aXY a"
                                             << "0@0-3 3@4-5";
        QTest::newRow("single word, alone") << QByteArray(R"(,"single_word":true)") << "a XY a"
                                            << "3@0-1 4@2-4 3@5-6";
        QTest::newRow("left") << QByteArray(R"(,"lstrip":true)") << "a \u3000XY a"
                              << "3@0-1 4@1-7 3@8-9";
        QTest::newRow("right") << QByteArray(R"(,"rstrip":true)") << "aXY  a"
                               << "3@0-1 4@1-5 3@5-6";
        QTest::newRow("normalised") << QByteArray(R"(,"normalized":true)") << "x\u0301Ya"
                                    << "4@0-4 3@4-5";
        QTest::newRow("not normalised") << QByteArray(R"(,"normalized":false)") << "xya"
                                        << "0@0-3";
    }
    void addedTokensFollowTheirFlags()
    {
        QFETCH(QByteArray, flags);
        QFETCH(QString, text);
        const auto t = loaded(json(normalizer, R"({"type":"BertPreTokenizer"})", model, processor,
                                   R"([{"id":4,"content":"XY")" + flags + "}]"));
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QTEST(test::shown(**t, text.toStdString()), "expected");
        QCOMPARE((*t)->vocabularySize(), 5);
    }

    void aDirectoryWithoutTokenizerIsNotFound()
    {
        QTemporaryDir folder;
        const auto t = loadTokenizer(folder.path().toStdString());
        QVERIFY(!t);
        QCOMPARE(t.error().kind, Error::Kind::NotFound);
        QCOMPARE(t.error().code, std::string("E-TOK-001"));
    }

    void aDisagreementOfTheFilesIsAnError()
    {
        QTemporaryDir folder;
        const auto write = [&](const char* name, const QByteArray& content) {
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(content);
        };
        write("tokenizer.json", json());
        write("tokenizer_config.json", R"({"do_lower_case":false,"model_max_length":512})");
        const auto t = loadTokenizer(folder.path().toStdString());
        QVERIFY(!t);
        QCOMPARE(t.error().code, std::string("E-TOK-009"));
        write("tokenizer_config.json", R"({"do_lower_case":true,"model_max_length":1e30})");
        const auto agreed = loadTokenizer(folder.path().toStdString());
        QVERIFY(agreed);
        QVERIFY(!(*agreed)->modelMaxLength());
    }

    void otherModelsLoadFromTheirFiles_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        QTest::addColumn<int>("vocabulary");
        // Ids and offsets of Hugging Face's tokenizers 0.23.3.
        QTest::newRow("t5-small") << "data/tokenizers/t5-small"
                                  << "Caf\u00e9 \uff21\ufb01 don't  42 <extra_id_0> \U0001f600"
                                  << "18131@0-5 71@6-9 89@9-12 23@9-12 278@13-16 31@16-17 17@17-18 "
                                     "6426@20-22 32099@23-35 3@36-40 2@36-40"
                                  << 32100;
        QTest::newRow("llama2") << "data/tokenizers/llama2"
                                << "Hello  w\u00f6rld <s>\n\U0001f600"
                                << "15043@0-5 29871@5-6 281@6-8 1340@8-11 430@11-13 1@13-17 "
                                   "13@17-18 243@18-22 162@18-22 155@18-22 131@18-22"
                                << 32000;
        QTest::newRow("tiny-trained")
            << "data/tokenizers/tiny-trained/tiny_bpe_tokenizer.json"
            << "e\u0301 IT'S 123\n\nthe <|im_end|>"
            << "223@3-5 51@5-6 6@6-7 50@7-8 95@8-9 16@9-10 17@10-11 18@11-12 94@12-13 94@13-14 "
               "83@14-15 100@15-17 95@17-18 2002@18-28"
            << 2003;
        QTest::newRow("added tokens above a small vocabulary")
            << "data/tokenizers/tiny-llama-added-tokens"
            << "<|user|>x<|end|>\n"
            << "32010@0-8 0@8-9 32007@9-16 13@16-17 0@16-17" << 32011;
    }
    void otherModelsLoadFromTheirFiles()
    {
        QFETCH(QString, path);
        QFETCH(QString, text);
        MUSTER_SHARED_OR_SKIP(root, "data/tokenizers");
        const std::filesystem::path file = test::sharedPath(path.toUtf8().constData());
        const auto t = std::filesystem::is_directory(file)
                           ? loadTokenizer(file)
                           : loaded(QByteArray::fromStdString(readFile(file).value_or("")));
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QTEST(test::shown(**t, text.toStdString()), "expected");
        QTEST(int((*t)->vocabularySize()), "vocabulary");
    }

    void aDirectoryLoadsTwiceWithTheSameDigest()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/tokenizers/t5-small");
        const auto one = loadTokenizer(directory);
        const auto other = loadTokenizer(directory);
        QVERIFY(one && other);
        QVERIFY((*one)->digest() == (*other)->digest());
        QCOMPARE((*one)->singleTemplate().suffix, (std::vector<std::int32_t>{1}));
        QCOMPARE((*one)->kind(), std::string("unigram"));
    }

    void flagsOfLlamaSetItsTemplate_data()
    {
        QTest::addColumn<QByteArray>("config");
        QTest::addColumn<int>("prefix");
        QTest::addColumn<int>("suffix");
        QTest::newRow("as the file has it")
            << QByteArray(R"({"tokenizer_class":"LlamaTokenizer"})") << 1 << 0;
        QTest::newRow("no begin")
            << QByteArray(
                   R"({"tokenizer_class":"LlamaTokenizerFast","add_bos_token":false,"bos_token":"<s>"})")
            << 0 << 0;
        QTest::newRow("both")
            << QByteArray(
                   R"({"tokenizer_class":"LlamaTokenizer","add_eos_token":true,"bos_token":"<s>","eos_token":"</s>"})")
            << 1 << 1;
    }
    void flagsOfLlamaSetItsTemplate()
    {
        QFETCH(QByteArray, config);
        QTemporaryDir folder;
        const auto write = [&](const char* name, const QByteArray& content) {
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(content);
        };
        write(
            "tokenizer.json",
            R"({"added_tokens":[{"id":0,"content":"<s>","special":true},{"id":1,"content":"</s>","special":true}],
              "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
              {"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],
              "special_tokens":{"<s>":{"id":"<s>","ids":[0],"tokens":["<s>"]}}},
              "model":{"type":"BPE","vocab":{"<s>":0,"</s>":1,"a":2},"merges":[]}})");
        write("tokenizer_config.json", config);
        const auto t = loadTokenizer(folder.path().toStdString());
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QTEST(int((*t)->singleTemplate().prefix.size()), "prefix");
        QTEST(int((*t)->singleTemplate().suffix.size()), "suffix");
    }

    void stepsOfThePipelineChangeTheText_data()
    {
        QTest::addColumn<QByteArray>("components");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const char* components, const char* text,
                            const char* expected) {
            QTest::newRow(name) << QByteArray(components) << QString(text) << QString(expected);
        };
        // Tokens: 0 <unk>, 1 a, 2 b, 3 e with acute, 4 U+2581, 5 fi, 6 U+2581a, 7 1, 8 f, 9 i, 10
        // ab.
        row("nothing", "", "ab a", "10@0-2 0@2-3 1@3-4");
        row("NFC composes", R"("normalizer":{"type":"NFC"},)", "e\u0301a", "3@0-1 1@3-4");
        row("NFC leaves compatible ones", R"("normalizer":{"type":"NFC"},)", "\ufb01", "0@0-3");
        row("NFKC takes them apart", R"("normalizer":{"type":"NFKC"},)", "\ufb01a", "5@0-3 1@3-4");
        row("lower case", R"("normalizer":{"type":"Lowercase"},)", "AB", "10@0-2");
        row("accents", R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFD"},
            {"type":"StripAccents"}]},)",
            "\u00e1b", "10@0-3");
        row("prepend", R"("normalizer":{"type":"Prepend","prepend":"\u2581"},)", "ab",
            "6@0-1 2@1-2");
        row("prepend to nothing", R"("normalizer":{"type":"Prepend","prepend":"\u2581"},)", "", "");
        row("replace a string",
            R"("normalizer":{"type":"Replace","pattern":{"String":"xx"},"content":"a"},)", "xxb",
            "10@1-3");
        row("replace by a pattern",
            R"("normalizer":{"type":"Replace","pattern":{"Regex":"x+"},"content":"a"},)", "xxxb",
            "10@2-4");
        row("strip", R"("normalizer":{"type":"Strip","strip_left":true,"strip_right":true},)",
            " \u3000ab\n", "10@4-6");
        row("metaspace", R"("pre_tokenizer":{"type":"Metaspace","replacement":"\u2581",
            "prepend_scheme":"always"},)",
            "ab  a", "6@0-1 2@1-2 4@2-3 6@3-5");
        row("metaspace, first", R"("pre_tokenizer":{"type":"Metaspace","replacement":"\u2581",
            "prepend_scheme":"first"},)",
            "a<unk>a", "6@0-1 0@1-6 1@6-7");
        row("digits", R"("pre_tokenizer":{"type":"Digits","individual_digits":true},)", "a1b",
            "1@0-1 7@1-2 2@2-3");
        row("white space", R"("pre_tokenizer":{"type":"WhitespaceSplit"},)", "a b\tab",
            "1@0-1 2@2-3 10@4-6");
    }
    void stepsOfThePipelineChangeTheText()
    {
        QFETCH(QByteArray, components);
        QFETCH(QString, text);
        const auto t = loaded("{" + components +
                              R"("added_tokens":[{"id":0,"content":"<unk>","special":true}],
            "model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"vocab":{"<unk>":0,"a":1,"b":2,
            "\u00e9":3,"\u2581":4,"fi":5,"\u2581a":6,"1":7,"f":8,"i":9,"ab":10},
            "merges":["\u2581 a","a b","f i"]}})");
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QTEST(test::shown(**t, text.toStdString()), "expected");
    }

    void smollm2HasItsGoldenIds()
    {
        if (!qEnvironmentVariableIsSet("MUSTER_TEST_SMOLLM2"))
            QSKIP("MUSTER_TEST_SMOLLM2 does not name a directory with SmolLM2's tokenizer");
        MUSTER_SHARED_OR_SKIP(data, "data/wikitext-2-raw/wiki.test.raw");
        MUSTER_SHARED_OR_SKIP(golden, "goldens/smollm2-135m/wikitext-2-raw.tokens.json");
        const auto t = loadTokenizer(qEnvironmentVariable("MUSTER_TEST_SMOLLM2").toStdString());
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        const auto text = readFile(data);
        const auto json = readFile(golden);
        QVERIFY(text && json);
        const auto ids = documentIds(**t, *text, DocumentEnds::bare, 2);
        const auto expected =
            QJsonDocument::fromJson(QByteArray::fromStdString(*json))["raw"].toObject();
        QCOMPARE(int(ids.size()), expected["tokens"].toInt());
        const QJsonArray first = expected["first_64"].toArray();
        const QJsonArray last = expected["last_16"].toArray();
        for (qsizetype i = 0; i < first.size(); ++i)
            QCOMPARE(ids[std::size_t(i)], first[i].toInt());
        for (qsizetype i = 0; i < last.size(); ++i)
            QCOMPARE(ids[ids.size() - std::size_t(last.size() - i)], last[i].toInt());
    }
};

QTEST_GUILESS_MAIN(TestTokenizerJson)
#include "tst_tokenizer_json.moc"
