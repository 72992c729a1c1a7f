// SPDX-License-Identifier: Apache-2.0
#include "support/shared_data.h"
#include "tokenizer/encoding_text.h"
#include "tokenizer/tokenizer.h"

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

    void modelsOfOtherKindsAreRefused_data()
    {
        QTest::addColumn<QString>("directory");
        QTest::addColumn<QString>("word");
        QTest::newRow("t5-small") << "data/tokenizers/t5-small"
                                  << "model";
        QTest::newRow("llama2") << "data/tokenizers/llama2"
                                << "Prepend";
        QTest::newRow("tiny-trained") << "data/tokenizers/tiny-trained/tiny_bpe_tokenizer.json"
                                      << "NFC";
    }
    void modelsOfOtherKindsAreRefused()
    {
        QFETCH(QString, directory);
        QFETCH(QString, word);
        MUSTER_SHARED_OR_SKIP(root, "data/tokenizers");
        std::filesystem::path path = test::sharedPath(directory.toUtf8().constData());
        QTemporaryDir folder;
        if (!std::filesystem::is_directory(path)) {
            std::filesystem::copy_file(path, folder.filePath("tokenizer.json").toStdString());
            path = folder.path().toStdString();
        }
        const auto t = loadTokenizer(path);
        QVERIFY(!t);
        QVERIFY2(QString::fromStdString(t.error().message).contains(word),
                 t.error().message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestTokenizerJson)
#include "tst_tokenizer_json.moc"
