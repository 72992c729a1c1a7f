// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "base/utf8.h"
#include "support/shared_data.h"
#include "tokenizer/splitting_p.h"

#include <QTest>

#include <random>
#include <string>

using namespace muster;
using namespace muster::tokenizer;

namespace {

using Ranges = std::vector<SplitStep::Range>;

Ranges partsOf(const SplitStep& step, std::string_view text)
{
    static const CharClasses classes;
    Ranges parts;
    step.split(text, {0, text.size()}, classes, parts);
    return parts;
}

/// `a|b|c`
QString shown(std::string_view text, const Ranges& parts)
{
    QStringList out;
    for (const auto& part : parts)
        out << QString::fromUtf8(text.data() + part.begin, qsizetype(part.end - part.begin));
    return out.join('|');
}

SplitStep byReader(KnownPattern pattern)
{
    SplitStep step;
    step.kind = SplitStep::Kind::known;
    step.known = pattern;
    return step;
}

SplitStep byPcre(KnownPattern pattern)
{
    SplitStep step;
    auto made = Pattern::regex(expressionOf(pattern));
    if (made)
        step.pattern = std::move(*made);
    return step;
}

/// Letters, digits, marks, white space and apostrophes of several scripts, in short runs.
std::string randomText(std::mt19937& random)
{
    static constexpr std::array<std::string_view, 40> pieces{" ",
                                                             "  ",
                                                             "\n",
                                                             "\r\n",
                                                             "\t",
                                                             "a",
                                                             "Bc",
                                                             "'s",
                                                             "'S",
                                                             "'\u017f",
                                                             "'ll",
                                                             "'Re",
                                                             "'",
                                                             "don't",
                                                             "1",
                                                             "1234567",
                                                             "\u0661",
                                                             "\u0662\u0663\u0664\u0665",
                                                             "\u4e2d\u6587",
                                                             "\u3002",
                                                             "\u3000",
                                                             "\u00a0",
                                                             "e\u0301",
                                                             "\u0301",
                                                             "!",
                                                             "?!\n",
                                                             "\n\n  x",
                                                             "   ",
                                                             " \n ",
                                                             "_",
                                                             "\u00bd",
                                                             "\u2163",
                                                             "\U0001F600",
                                                             "\u200d",
                                                             "\u0915\u094d\u0937",
                                                             "\u0130",
                                                             "\u1e9e",
                                                             "$5",
                                                             "x1",
                                                             "\u0085"};
    std::string text;
    const auto count = random() % 12 + 1;
    for (std::size_t i = 0; i < count; ++i)
        text += pieces[random() % pieces.size()];
    return text;
}

} // namespace

class TestSplitting : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void patternsCutAsTheyAreWritten_data()
    {
        QTest::addColumn<int>("pattern");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("expected");
        const auto row = [](KnownPattern p, const char* name, const char* text,
                            const char* expected) {
            QTest::newRow(name) << int(p) << QString(text) << QString(expected);
        };
        row(KnownPattern::gpt2, "gpt2: words and numbers", "I'll pay 1234 EUR",
            "I|'ll| pay| 1234| EUR");
        row(KnownPattern::gpt2, "gpt2: blanks", "a   b  \n c ", "a|  | b|  \n| c| ");
        row(KnownPattern::gpt2, "gpt2: case counts", "I'LL", "I|'|LL");
        row(KnownPattern::cl100k, "llama 3: three digits", "x1234567", "x|123|456|7");
        row(KnownPattern::cl100k, "llama 3: case does not count", "I'LL (yes)", "I|'LL| (|yes|)");
        row(KnownPattern::cl100k, "llama 3: new lines", "end.\n\n  Next", "end|.\n\n| | Next");
        row(KnownPattern::cl100k, "llama 3: blanks before a line", "a  \n  b", "a|  \n| | b");
        row(KnownPattern::cl100kDigit, "qwen 2: single digits", " 123", " |1|2|3");
    }
    void patternsCutAsTheyAreWritten()
    {
        QFETCH(int, pattern);
        QFETCH(QString, text);
        const std::string bytes = text.toStdString();
        QTEST(shown(bytes, partsOf(byReader(KnownPattern(pattern)), bytes)), "expected");
        QTEST(shown(bytes, partsOf(byPcre(KnownPattern(pattern)), bytes)), "expected");
    }

    void readersAgreeWithTheRegularExpressions_data()
    {
        QTest::addColumn<int>("pattern");
        QTest::newRow("gpt2") << int(KnownPattern::gpt2);
        QTest::newRow("llama 3") << int(KnownPattern::cl100k);
        QTest::newRow("qwen 2") << int(KnownPattern::cl100kDigit);
    }
    void readersAgreeWithTheRegularExpressions()
    {
        QFETCH(int, pattern);
        const SplitStep reader = byReader(KnownPattern(pattern));
        const SplitStep pcre = byPcre(KnownPattern(pattern));
        QVERIFY(pcre.pattern.isRegex());
        std::mt19937 random(7);
        std::vector<std::string> texts;
        for (int i = 0; i < 3000; ++i)
            texts.push_back(randomText(random));
        for (const char* name : {"data/wikitext-2-raw/wiki.test.raw", "data/xquad/xquad.de.json",
                                 "data/xquad/xquad.zh.json"}) {
            const auto file = readFile(test::sharedPath(name));
            if (file)
                texts.push_back(utf8::repaired(std::string_view(*file).substr(0, 300'000)));
        }
        for (const std::string& text : texts) {
            const Ranges one = partsOf(reader, text);
            const Ranges other = partsOf(pcre, text);
            const bool areEqual = std::ranges::equal(one, other, [](const auto& a, const auto& b) {
                return a.begin == b.begin && a.end == b.end;
            });
            if (!areEqual)
                QCOMPARE(shown(text, one), shown(text, other));
        }
    }

    void behavioursAreThoseOfHuggingFace_data()
    {
        QTest::addColumn<int>("behavior");
        QTest::addColumn<bool>("inverted");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, SplitBehavior b, bool inverted,
                            const char* expected) {
            QTest::newRow(name) << int(b) << inverted << QString(expected);
        };
        row("removed", SplitBehavior::removed, false, "the|final|countdown");
        row("isolated", SplitBehavior::isolated, false, "the|-|final|-|-|countdown");
        row("with the previous", SplitBehavior::mergedWithPrevious, false,
            "the-|final-|-|countdown");
        row("with the next", SplitBehavior::mergedWithNext, false, "the|-final|-|-countdown");
        row("contiguous", SplitBehavior::contiguous, false, "the|-|final|--|countdown");
        row("removed, inverted", SplitBehavior::removed, true, "-|-|-");
    }
    void behavioursAreThoseOfHuggingFace()
    {
        QFETCH(int, behavior);
        QFETCH(bool, inverted);
        SplitStep step;
        step.pattern = Pattern::fixed("-");
        step.behavior = SplitBehavior(behavior);
        step.isInverted = inverted;
        const std::string text = "the-final--countdown";
        QTEST(shown(text, partsOf(step, text)), "expected");
    }

    void anExpressionThatIsReadDifferentlyIsRefused_data()
    {
        QTest::addColumn<QString>("expression");
        for (const char* text :
             {"(", "\\h+", "[a&&b]", "a{1,3}+", "(?m)a", "[\\S]", "\\Ka", "(*SKIP)"})
            QTest::newRow(text) << QString(text);
    }
    void anExpressionThatIsReadDifferentlyIsRefused()
    {
        QFETCH(QString, expression);
        const auto made = Pattern::regex(expression.toStdString());
        QVERIFY(!made);
        QCOMPARE(made.error().code, std::string("E-TOK-010"));
    }
};

QTEST_GUILESS_MAIN(TestSplitting)
#include "tst_splitting.moc"
