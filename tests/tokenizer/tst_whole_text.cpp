// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "support/shared_data.h"
#include "tokenizer/encoding_text.h"
#include "tokenizer/splitting_p.h"
#include "tokenizer/whole_text.h"

#include <QElapsedTimer>
#include <QTest>

#include <string>

using namespace muster;
using namespace muster::tokenizer;

namespace {

using Made = Result<std::unique_ptr<Tokenizer>>;

/// A byte-level tokenizer with the pre-tokenizer steps given; every byte has a token, some merges.
std::string byteLevelJson(const std::string& steps, const char* more = "")
{
    std::string vocabulary;
    int id = 0;
    int next = 0x100;
    for (int b = 0; b < 256; ++b) {
        const bool isPrintable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        vocabulary += QStringLiteral("\"\\u%1\":%2,")
                          .arg(isPrintable ? b : next++, 4, 16, QChar('0'))
                          .arg(id++)
                          .toStdString();
    }
    return "{\"pre_tokenizer\":" + steps + more + ",\"model\":{\"type\":\"BPE\",\"vocab\":{" +
           vocabulary +
           "\"ab\":256,\"\\u0120a\":257,\"\\u0120ab\":258,\"abab\":259},"
           "\"merges\":[\"a b\",\"\\u0120 a\",\"\\u0120 ab\",\"ab ab\"]}}";
}

constexpr auto gpt2Steps = R"({"type":"ByteLevel","add_prefix_space":false})";
constexpr auto prefixSteps = R"({"type":"ByteLevel","add_prefix_space":true})";
/// Split by an expression, then ByteLevel without one.
std::string splitSteps(std::string_view expression)
{
    std::string escaped;
    for (const char c : expression)
        escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
    return R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" + escaped +
           R"("},"behavior":"Isolated"},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
}

std::string llama3Steps()
{
    return splitSteps(expressionOf(KnownPattern::cl100k));
}

constexpr auto smolSteps =
    R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false}]})";

std::string sampleText()
{
    std::string text;
    for (int i = 0; text.size() < 600'000; ++i) {
        text += "abab ab's 123 \u4e2d\u6587  \n";
        if (i % 3 == 0)
            text += "word\nab don't\n\n \u3002\n\u4e2d x<s> ab";
        if (i % 7 == 0)
            text += "\xff ab \t\t a";
    }
    return text;
}

void compareAllWays(const Tokenizer& tokenizer, const std::string& text)
{
    Encoding whole;
    tokenizer.encode(text, whole);
    QVERIFY(whole.size() > 0 || text.empty());
    for (const unsigned threads : {0U, 1U, 2U, 5U}) {
        Encoding parallel;
        encodeText(tokenizer, text, threads, parallel);
        QVERIFY2(parallel == whole, qPrintable(QStringLiteral("%1 threads").arg(threads)));
    }
    for (const std::size_t block : {std::size_t{1000}, std::size_t{77'777}}) {
        StreamEncoder stream(tokenizer, 2, 5000);
        Encoding part;
        Encoding streamed;
        const auto take = [&] {
            for (std::size_t i = 0; i < part.size(); ++i) {
                streamed.ids.push_back(part.ids[i]);
                streamed.begin.push_back(std::uint32_t(part.begin[i] + stream.base()));
                streamed.end.push_back(std::uint32_t(part.end[i] + stream.base()));
            }
        };
        for (std::size_t at = 0; at < text.size(); at += block) {
            stream.push(std::string_view(text).substr(at, block), part);
            take();
        }
        stream.finish(part);
        take();
        QVERIFY(streamed == whole);
    }
    std::vector<std::int32_t> wanted = tokenizer.singleTemplate().prefix;
    wanted.insert(wanted.end(), whole.ids.begin(), whole.ids.end());
    wanted.insert(wanted.end(), tokenizer.singleTemplate().suffix.begin(),
                  tokenizer.singleTemplate().suffix.end());
    QCOMPARE(documentIds(tokenizer, text, DocumentEnds::asTemplate, 2), wanted);
    QCOMPARE(documentIds(tokenizer, text, DocumentEnds::bare, 1), whole.ids);
}

} // namespace

class TestWholeText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void threadsAndBlocksChangeNothing_data()
    {
        QTest::addColumn<QByteArray>("json");
        const auto row = [](const char* name, const std::string& json) {
            QTest::newRow(name) << QByteArray::fromStdString(json);
        };
        row("gpt2", byteLevelJson(gpt2Steps));
        row("gpt2 with an added space", byteLevelJson(prefixSteps));
        row("llama 3", byteLevelJson(llama3Steps()));
        row("smollm", byteLevelJson(smolSteps));
        row("NFC", byteLevelJson(llama3Steps(), R"(,"normalizer":{"type":"NFC"})"));
        row("trimmed offsets",
            byteLevelJson(prefixSteps,
                          R"(,"post_processor":{"type":"ByteLevel","trim_offsets":true})"));
        row("added tokens",
            byteLevelJson(gpt2Steps,
                          R"(,"added_tokens":[{"id":300,"content":"<s>","lstrip":true}])"));
        row("an added token over a space",
            byteLevelJson(gpt2Steps, R"(,"added_tokens":[{"id":300,"content":"ab a"}])"));
    }
    void threadsAndBlocksChangeNothing()
    {
        QFETCH(QByteArray, json);
        const Made t = loadTokenizerJson(json.toStdString());
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        compareAllWays(**t, sampleText());
    }

    void realTokenizersMayBeCut_data()
    {
        QTest::addColumn<QString>("directory");
        for (const char* name :
             {"tokenizers/llama2", "tokenizers/t5-small", "tokenizers/roberta-base",
              "models/stories260K-hf", "models/minilm-qa"})
            QTest::newRow(name) << QStringLiteral("data/") + name;
    }
    void realTokenizersMayBeCut()
    {
        QFETCH(QString, directory);
        MUSTER_SHARED_OR_SKIP(root, "data/tokenizers");
        const Made t = loadTokenizer(test::sharedPath(directory.toUtf8().constData()));
        QVERIFY2(t, t ? "" : t.error().text().c_str());
        const std::string text = sampleText();
        QVERIFY((*t)->cutBefore(text, text.size()) > text.size() - 200);
        compareAllWays(**t, text);
    }

    void theEmptyTextHasNoTokens()
    {
        const Made t = loadTokenizerJson(byteLevelJson(gpt2Steps));
        QVERIFY(t);
        compareAllWays(**t, "");
        Encoding encoding;
        StreamEncoder stream(**t);
        stream.finish(encoding);
        QCOMPARE(encoding.size(), std::size_t{0});
    }

    void anAddedTokenOverASpaceForbidsCuts()
    {
        const Made t = loadTokenizerJson(
            byteLevelJson(gpt2Steps, R"(,"added_tokens":[{"id":300,"content":"ab a"}])"));
        QVERIFY(t);
        QCOMPARE((*t)->cutBefore("ab ab ab", 8), std::size_t{0});
    }

    void aPatternThatIsNotKnownForbidsCuts()
    {
        const Made t = loadTokenizerJson(byteLevelJson(splitSteps("a b|.")));
        QVERIFY(t);
        QCOMPARE((*t)->cutBefore("ab ab ab", 8), std::size_t{0});
        compareAllWays(**t, "ab ab a b ab");
    }

    void aHugeWordTakesNoTimeInItsSquare()
    {
        const Made t = loadTokenizerJson(byteLevelJson(gpt2Steps));
        QVERIFY(t);
        std::string word;
        while (word.size() < 2'000'000)
            word += "abababxabyab";
        Encoding encoding;
        QElapsedTimer timer;
        timer.start();
        (*t)->encode(word, encoding);
        // Time in the square would be hours.
        QVERIFY(timer.elapsed() < 60'000);
        QCOMPARE(encoding.end.back(), std::uint32_t(word.size()));
        Encoding parallel;
        encodeText(**t, word, 4, parallel);
        QVERIFY(parallel == encoding);
    }
};

QTEST_GUILESS_MAIN(TestWholeText)
#include "tst_whole_text.moc"
