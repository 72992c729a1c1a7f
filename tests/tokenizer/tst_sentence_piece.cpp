// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "support/shared_data.h"
#include "tokenizer/encoding_text.h"
#include "tokenizer/whole_text.h"

#include <QCryptographicHash>
#include <QJsonDocument>
#include <QTest>

#include <bit>
#include <string>

using namespace muster;
using namespace muster::tokenizer;

namespace {

using Made = Result<std::unique_ptr<Tokenizer>>;

std::string varint(std::uint64_t value)
{
    std::string out;
    for (; value >= 0x80; value >>= 7U)
        out.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
    out.push_back(static_cast<char>(value));
    return out;
}

std::string number(unsigned field, std::uint64_t value)
{
    return varint(field << 3U) + varint(value);
}

std::string bytes(unsigned field, const std::string& content)
{
    return varint(field << 3U | 2U) + varint(content.size()) + content;
}

std::string piece(const std::string& text, float score, unsigned type = 1)
{
    const auto bits = std::bit_cast<std::uint32_t>(score);
    std::string fixed = varint(2U << 3U | 5U);
    for (unsigned i = 0; i < 4; ++i)
        fixed.push_back(static_cast<char>(bits >> (8 * i) & 0xFFU));
    return bytes(1, bytes(1, text) + fixed + number(3, type));
}

/// A model of a few pieces. Kind 1 is Unigram, 2 BPE.
std::string model(unsigned kind, const std::string& more = "", const std::string& normalizer = "")
{
    return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581", -4) +
           piece("a", -3) + piece("b", -3) + piece("\u2581a", -1) + piece("ab", -2) +
           piece("\u2581ab", -0.5) + more + bytes(2, number(3, kind)) + bytes(3, normalizer);
}

} // namespace

class TestSentencePiece : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void smallModelsFollowTheirSettings_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const std::string& content, const char* text,
                            const char* expected) {
            QTest::newRow(name) << QByteArray::fromStdString(content) << QString(text)
                                << QString(expected);
        };
        const std::string keepsBlanks = number(4, 0);
        row("empty", model(2), "", "");
        row("merges by score", model(2), "ab ab", "8@0-2 8@2-5");
        row("extra blanks vanish", model(2), "  ab   a ", "8@2-4 6@4-8");
        row("extra blanks stay", model(2, "", keepsBlanks), "ab  a", "8@0-2 3@2-3 6@3-5");
        row("no blank in front", model(2, "", number(3, 0)), "ab ab", "7@0-2 8@2-5");
        row("unknown characters are one", model(2), "axyb", "6@0-1 0@1-3 5@3-4");
        row("control symbols are matched", model(2), "ab</s>ab", "8@0-2 2@2-6 8@6-8");
        row("a user-defined symbol stays whole", model(2, piece("aba", 0, 4)), "xabab",
            "3@0-1 0@0-1 9@1-4 5@4-5");
        row("unigram", model(1), "ab ba", "8@0-2 3@2-3 5@3-4 4@4-5");
        row("unigram, unknown", model(1), "abxya", "8@0-2 0@2-4 4@4-5");
        std::string fallback;
        for (unsigned b = 0; b < 256; ++b)
            fallback += piece(QStringLiteral("<0x%1>")
                                  .arg(b, 2, 16, QChar('0'))
                                  .toUpper()
                                  .replace("X", "x")
                                  .toStdString(),
                              0, 6);
        row("bytes", model(2, fallback + bytes(2, number(35, 1))), "a\u00e9",
            "6@0-1 204@1-3 178@1-3");
    }
    void smallModelsFollowTheirSettings()
    {
        QFETCH(QByteArray, content);
        QFETCH(QString, text);
        const Made t = loadSentencePieceModel(content.toStdString());
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QTEST(test::shown(**t, text.toStdString()), "expected");
    }

    void templatesFollowTheKind()
    {
        const Made llama = loadSentencePieceModel(model(2));
        const Made t5 = loadSentencePieceModel(model(1));
        QVERIFY(llama && t5);
        QCOMPARE((*llama)->singleTemplate(), (SingleTemplate{{1}, {}}));
        QCOMPARE((*t5)->singleTemplate(), (SingleTemplate{{}, {2}}));
        QCOMPARE((*t5)->kind(), std::string("unigram"));
        QCOMPARE((*llama)->vocabularySize(), 9);
    }

    void brokenModelsAreRefused_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, const std::string& content, const char* code) {
            QTest::newRow(name) << QByteArray::fromStdString(content) << QString(code);
        };
        row("empty", "", "E-TOK-012");
        row("text", "not a model at all", "E-TOK-012");
        row("cut off", model(2).substr(0, 40), "E-TOK-012");
        row("a length beyond the end", varint(1U << 3U | 2U) + varint(1ULL << 62U), "E-TOK-012");
        row("an endless number", std::string(20, '\xff'), "E-TOK-012");
        row("a piece that is not UTF-8", model(2, piece("\xff", 0)), "E-TOK-012");
        row("a type of 9", model(2, piece("c", 0, 9)), "E-TOK-012");
        row("a piece twice", model(2, piece("ab", 0)), "E-TOK-005");
        row("a second unknown piece", model(2, piece("<x>", 0, 2)), "E-TOK-005");
        row("words", model(3), "E-TOK-004");
        row("an unused piece", model(2, piece("c", 0, 5)), "E-TOK-004");
        row("blanks as suffix", model(2, bytes(2, number(24, 1))), "E-TOK-004");
        row("bytes that are missing", model(2, bytes(2, number(35, 1))), "E-TOK-005");
        row("a broken charsmap", model(2, "", bytes(2, "abc")), "E-TOK-011");
    }
    void brokenModelsAreRefused()
    {
        QFETCH(QByteArray, content);
        const Made t = loadSentencePieceModel(content.toStdString());
        QVERIFY(!t);
        QTEST(QString::fromStdString(t.error().code), "code");
    }

    void llama2HasItsGoldenIds_data()
    {
        QTest::addColumn<QString>("file");
        QTest::newRow("tokenizer.json") << "tokenizer.json";
        QTest::newRow("tokenizer.model") << "tokenizer.model";
    }
    void llama2HasItsGoldenIds()
    {
        QFETCH(QString, file);
        MUSTER_SHARED_OR_SKIP(directory, "data/tokenizers/llama2");
        MUSTER_SHARED_OR_SKIP(golden, "data/tokenizers/llamacpp-golden");
        const auto content = readFile(directory / file.toStdString());
        const auto texts = readFile(golden / "ggml-vocab-llama-spm.gguf.inp");
        const auto ids = readFile(golden / "ggml-vocab-llama-spm.gguf.out");
        QVERIFY(content && texts && ids);
        const Made t =
            file.endsWith("json") ? loadTokenizerJson(*content) : loadSentencePieceModel(*content);
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QCOMPARE((*t)->singleTemplate().prefix, (std::vector<std::int32_t>{1}));
        const QStringList inputs = QString::fromStdString(*texts).split("\n__ggml_vocab_test__\n");
        const QStringList outputs = QString::fromStdString(*ids).split('\n');
        for (qsizetype i = 0; i < inputs.size(); ++i) {
            Encoding encoding;
            (*t)->encode(inputs[i].toStdString(), encoding);
            QString line;
            for (const std::int32_t id : encoding.ids)
                line += QStringLiteral(" %1").arg(id);
            QCOMPARE(line.trimmed(), outputs.value(i).trimmed());
        }
    }

    void storiesHaveTheirGoldenStream()
    {
        MUSTER_SHARED_OR_SKIP(directory, "data/models/stories260K-hf");
        MUSTER_SHARED_OR_SKIP(golden, "goldens/stories260K/tinystories.stream512.json");
        MUSTER_SHARED_OR_SKIP(data, "data/tinystories/tinystories_sample.txt");
        const Made t = loadTokenizer(directory);
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        QCOMPARE((*t)->vocabularySize(), 512);
        QCOMPARE((*t)->modelMaxLength(), std::optional<std::int64_t>(512));
        const auto text = readFile(data);
        const auto json = readFile(golden);
        QVERIFY(text && json);
        const auto expected = QJsonDocument::fromJson(QByteArray::fromStdString(*json));
        QByteArray stream;
        const QStringList stories = QString::fromStdString(*text).split("<|endoftext|>");
        for (qsizetype i = 0; i < 200; ++i) {
            const auto ids = documentIds(**t, stories.value(i).trimmed().toStdString(),
                                         DocumentEnds::asTemplate, 1);
            stream.append(reinterpret_cast<const char*>(ids.data()), qsizetype(ids.size() * 4));
        }
        QCOMPARE(stream.size() / 4, expected["stream_ids"].toInt());
        QCOMPARE(QString(QCryptographicHash::hash(stream, QCryptographicHash::Sha256).toHex()),
                 expected["sha256_int32_of_the_stream"].toString());
    }
};

QTEST_GUILESS_MAIN(TestSentencePiece)
#include "tst_sentence_piece.moc"
