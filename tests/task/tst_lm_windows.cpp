// SPDX-License-Identifier: Apache-2.0
#include "task/lm_windows.h"

#include <QtTest>

#include <cmath>
#include <vector>

using namespace muster;
using namespace muster::task;

namespace {

/// The targets that are scored, as places in the document.
std::vector<std::uint64_t> scoredTokens(const std::vector<LmWindow>& windows)
{
    std::vector<std::uint64_t> tokens;
    for (const LmWindow& window : windows)
        for (std::uint64_t at = window.begin + window.scoredFrom; at < window.end; ++at)
            tokens.push_back(at);
    return tokens;
}

/// Mean loss as the protocol forms it, when the loss of token i is i.
double toyMean(const std::vector<LmWindow>& windows)
{
    double sum = 0.0;
    double weights = 0.0;
    for (const LmWindow& window : windows) {
        double loss = 0.0;
        for (std::uint64_t at = window.begin + window.scoredFrom; at < window.end; ++at)
            loss += static_cast<double>(at);
        const auto weight = static_cast<double>(window.weight);
        sum += loss / static_cast<double>(window.scored()) * weight;
        weights += weight;
    }
    return sum / weights;
}

/// `[P] 0 1 | 2 3` for a window: what is read only, and what is scored.
QString printed(const LmWindow& window)
{
    QStringList context;
    if (window.prefix)
        context << QStringLiteral("P");
    QStringList targets;
    for (std::uint64_t at = window.begin; at < window.end; ++at)
        (at < window.begin + window.scoredFrom ? context : targets) << QString::number(at);
    return context.join(QChar(u' ')) + QStringLiteral(" | ") + targets.join(QChar(u' '));
}

QStringList printed(const std::vector<LmWindow>& windows)
{
    QStringList lines;
    for (const LmWindow& window : windows)
        lines << printed(window);
    return lines;
}

LmRules rulesOf(LmProtocol protocol, std::uint32_t length, std::uint32_t stride = 1)
{
    return LmRules{.protocol = protocol, .maxLength = length, .stride = stride};
}

} // namespace

Q_DECLARE_METATYPE(muster::task::LmRules)

class TestLmWindows : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void oneTextHasManyPerplexities_data();
    void oneTextHasManyPerplexities();
    void windowsOfTheVectors_data();
    void windowsOfTheVectors();
    void everyTokenIsScoredOnce();
    void hfDocWeightsAreTargetsLessOne();
    void aLastWindowOfOneTokenIsNanExceptInHfFixed();
    void goldenWindowsOfSmolLm2();
    void textsThatAreTooShort_data();
    void textsThatAreTooShort();
    void llamaChunksReplaceTheirFirstToken();
    void itemsHaveWhatIsFed();
    void badRulesAreRefused_data();
    void badRulesAreRefused();
    void hugeDocumentsKeepTheirPlaces();
    void namesGoBothWays();
};

void TestLmWindows::oneTextHasManyPerplexities_data()
{
    QTest::addColumn<LmRules>("rules");
    QTest::addColumn<double>("mean");
    QTest::addColumn<int>("scored");
    using P = LmProtocol;
    LmRules lmEval = rulesOf(P::LmEval, 5);
    lmEval.prefixToken = 0;
    // semantics.md 4.1: thirteen tokens, window 5.
    QTest::newRow("4.1 lm-eval") << lmEval << 6.0 << 13;
    QTest::newRow("4.1 hf-doc, stride 5") << rulesOf(P::HfDoc, 5, 5) << 6.3 << 10;
    QTest::newRow("4.1 hf-doc, stride 2 (T-44)") << rulesOf(P::HfDoc, 5, 2) << 5.5 << 12;
    QTest::newRow("4.1 hf-exact, stride 2") << rulesOf(P::HfExact, 5, 2) << 6.5 << 12;
    QTest::newRow("4.1 hf-fixed, stride 2") << rulesOf(P::HfFixed, 5, 2) << 6.5 << 12;
    QTest::newRow("4.1 hf-doc, stride 1 (T-44)") << rulesOf(P::HfDoc, 5, 1) << 2.5 << 12;
    QTest::newRow("4.1 llama.cpp") << rulesOf(P::LlamaCpp, 5) << 6.0 << 4;
    QTest::newRow("4.1 opencompass (T-57)") << rulesOf(P::OpenCompass, 5, 2) << 6.0 << 11;
    QTest::newRow("non-overlapping is hf-doc at stride L")
        << rulesOf(P::NonOverlapping, 5) << 6.3 << 10;
}

void TestLmWindows::oneTextHasManyPerplexities()
{
    QFETCH(LmRules, rules);
    QFETCH(double, mean);
    QFETCH(int, scored);
    const auto windows = planLmWindows(13, rules);
    QVERIFY(windows);
    QCOMPARE(scoredTokens(*windows).size(), static_cast<std::size_t>(scored));
    // Stride 5 of thirteen tokens: 10 targets in three windows, weights 4, 4 and 2.
    QCOMPARE(toyMean(*windows), mean);
}

void TestLmWindows::windowsOfTheVectors_data()
{
    QTest::addColumn<qulonglong>("tokens");
    QTest::addColumn<LmRules>("rules");
    QTest::addColumn<QStringList>("windows");
    using P = LmProtocol;
    LmRules lmEval = rulesOf(P::LmEval, 5);
    lmEval.prefixToken = 0;
    QTest::newRow("4.4 lm-eval, context 1")
        << 13ULL << lmEval << QStringList{"P | 0 1 2 3 4", "4 | 5 6 7 8 9", "7 8 9 | 10 11 12"};
    QTest::newRow("4.4 lm-eval, shorter than a window")
        << 3ULL << lmEval << QStringList{"P | 0 1 2"};
    lmEval.contextLength = 2;
    QTest::newRow("4.4 lm-eval, context 2")
        << 13ULL << lmEval << QStringList{"P | 0 1 2 3 4", "3 4 | 5 6 7 8", "7 8 | 9 10 11 12"};
    QTest::newRow("4.6 llama.cpp, 8 of 16")
        << 19ULL << rulesOf(P::LlamaCpp, 8)
        << QStringList{"0 1 2 3 4 | 5 6 7", "8 9 10 11 12 | 13 14 15"};
    QTest::newRow("4.6 llama.cpp strided (T-51)")
        << 30ULL << rulesOf(P::LlamaCppStrided, 8, 4)
        << QStringList{"0 1 2 3 4 5 | 6 7 8 9", "4 5 6 7 8 9 | 10 11 12 13",
                       "8 9 10 11 12 13 | 14 15 16 17", "12 13 14 15 16 17 | 18 19 20 21",
                       "16 17 18 19 20 21 | 22 23 24 25"};
    QTest::newRow("4.2 hf-doc, stride 3")
        << 7ULL << rulesOf(P::HfDoc, 5, 3) << QStringList{"0 | 1 2 3 4", "3 4 | 5 6"};
    QTest::newRow("4.8 opencompass leaves the last token")
        << 13ULL << rulesOf(P::OpenCompass, 5, 2)
        << QStringList{"0 | 1 2 3 4 5", "2 3 4 5 | 6 7", "4 5 6 7 | 8 9", "6 7 8 9 | 10 11"};
    QTest::newRow("stream drops its tail")
        << 12ULL << rulesOf(P::Stream, 5) << QStringList{"0 | 1 2 3 4 5", "5 | 6 7 8 9 10"};
    LmRules half = rulesOf(P::NonOverlapping, 8);
    half.scoredPart = ScoredPart::SecondHalf;
    QTest::newRow("C-039 second half of each window: 8 of 16")
        << 16ULL << half << QStringList{"0 1 2 3 | 4 5 6 7", "8 9 10 11 | 12 13 14 15"};
    QTest::newRow("C-039 llama.cpp: 6 of 16")
        << 16ULL << rulesOf(P::LlamaCpp, 8)
        << QStringList{"0 1 2 3 4 | 5 6 7", "8 9 10 11 12 | 13 14 15"};
    QTest::newRow("C-039 default: 15 of 16")
        << 16ULL << rulesOf(P::PerDocument, 8)
        << QStringList{"0 | 1 2 3 4 5 6 7 8", "7 8 | 9 10 11 12 13 14 15"};
    LmRules cut = rulesOf(P::PerDocument, 8);
    cut.longDocument = LongDocument::Truncate;
    QTest::newRow("per-document, cut off") << 16ULL << cut << QStringList{"0 | 1 2 3 4 5 6 7 8"};
    LmRules started = rulesOf(P::PerDocument, 8);
    started.prefixToken = 1;
    QTest::newRow("C-036 start token: every token is scored")
        << 4ULL << started << QStringList{"P | 0 1 2 3"};
}

void TestLmWindows::windowsOfTheVectors()
{
    QFETCH(qulonglong, tokens);
    QFETCH(LmRules, rules);
    QFETCH(QStringList, windows);
    const auto planned = planLmWindows(tokens, rules);
    QVERIFY(planned);
    QCOMPARE(printed(*planned), windows);
}

void TestLmWindows::everyTokenIsScoredOnce()
{
    using P = LmProtocol;
    for (std::uint32_t length = 2; length <= 7; ++length)
        for (std::uint64_t tokens = 0; tokens <= 40; ++tokens) {
            const auto check = [&](LmRules rules, std::uint64_t first) {
                const auto windows = planLmWindows(tokens, rules);
                QVERIFY(windows);
                std::vector<std::uint64_t> all;
                for (std::uint64_t at = first; at < tokens; ++at)
                    all.push_back(at);
                QCOMPARE(scoredTokens(*windows), all);
                for (const LmWindow& window : *windows) {
                    QVERIFY(window.end <= tokens);
                    QVERIFY(window.prefix || window.scoredFrom > 0);
                    // Never more inputs than the model takes; the last token is a target only.
                    QVERIFY(window.end - window.begin - 1 + (window.prefix ? 1 : 0) <= length);
                    QCOMPARE(window.weight, window.scored());
                }
            };
            LmRules rolling = rulesOf(P::PerDocument, length);
            check(rolling, 1);
            rolling.prefixToken = 7;
            check(rolling, 0);
            for (std::uint32_t context = 1; context <= length; ++context) {
                LmRules lmEval = rulesOf(P::LmEval, length);
                lmEval.prefixToken = 7;
                lmEval.contextLength = context;
                check(lmEval, 0);
            }
            for (std::uint32_t stride = 1; stride < length; ++stride)
                check(rulesOf(P::HfFixed, length, stride), 1);
        }
}

void TestLmWindows::hfDocWeightsAreTargetsLessOne()
{
    const auto windows = planLmWindows(13, rulesOf(LmProtocol::HfDoc, 5, 2));
    QVERIFY(windows);
    std::vector<std::uint64_t> weights;
    for (const LmWindow& window : *windows)
        weights.push_back(window.weight);
    QCOMPARE(weights, (std::vector<std::uint64_t>{4, 1, 1, 1, 1})); // semantics.md 4.1
    // The same weights can be had beside the windows of the exact protocols.
    for (std::uint32_t length = 2; length <= 6; ++length)
        for (std::uint32_t stride = 1; stride <= length; ++stride)
            for (std::uint64_t tokens = 0; tokens <= 30; ++tokens) {
                const auto doc = planLmWindows(tokens, rulesOf(LmProtocol::HfDoc, length, stride));
                const LmRules exact = rulesOf(LmProtocol::HfExact, length, stride);
                const auto same = planLmWindows(tokens, exact);
                QVERIFY(doc && same);
                QCOMPARE(doc->size(), same->size());
                for (std::size_t i = 0; i < doc->size(); ++i)
                    QCOMPARE(hfDocWeight((*same)[i], exact), (*doc)[i].weight);
            }
}

void TestLmWindows::aLastWindowOfOneTokenIsNanExceptInHfFixed()
{
    // T-45: stride = L and T mod L = 1.
    const auto doc = planLmWindows(11, rulesOf(LmProtocol::HfDoc, 5, 5));
    const auto exact = planLmWindows(11, rulesOf(LmProtocol::HfExact, 5, 5));
    const auto fixed = planLmWindows(11, rulesOf(LmProtocol::HfFixed, 5, 5));
    QVERIFY(doc && exact && fixed);
    QVERIFY(std::isnan(toyMean(*doc)));
    QVERIFY(std::isnan(toyMean(*exact)));
    QCOMPARE(toyMean(*fixed), (1.0 + 2 + 3 + 4 + 6 + 7 + 8 + 9) / 8);
    QCOMPARE(doc->size(), std::size_t{3});
    QCOMPARE(doc->back().scored(), std::uint64_t{0});
    QCOMPARE(fixed->size(), std::size_t{2});
}

void TestLmWindows::goldenWindowsOfSmolLm2()
{
    // goldens/smollm2-135m: windows of 1,024 every 512; 40 windows: 20,991 scored, weight 20,952.
    const auto windows = planLmWindows(304986, rulesOf(LmProtocol::HfDoc, 1024, 512));
    QVERIFY(windows);
    std::uint64_t scored = 0;
    std::uint64_t weight = 0;
    for (std::size_t i = 0; i < 40; ++i) {
        const LmWindow& window = (*windows)[i];
        QCOMPARE(window.begin, std::uint64_t{512} * i);
        QCOMPARE(window.end, window.begin + 1024);
        scored += window.scored();
        weight += window.weight;
    }
    QCOMPARE(scored, std::uint64_t{20991});
    QCOMPARE(weight, std::uint64_t{20952});
    // 60 blocks: 61,380 scored.
    const auto blocks = planLmWindows(61440, rulesOf(LmProtocol::NonOverlapping, 1024));
    QVERIFY(blocks);
    QCOMPARE(blocks->size(), std::size_t{60});
    QCOMPARE(scoredTokens(*blocks).size(), std::size_t{61380});
    // data/models/stories260K: 80,429 ids, 157 windows, 80,384 targets; all: 1,031,693, 2,015.
    const auto stream = planLmWindows(80429, rulesOf(LmProtocol::Stream, 512));
    QVERIFY(stream);
    QCOMPARE(stream->size(), std::size_t{157});
    QCOMPARE(scoredTokens(*stream).size(), std::size_t{80384});
    QCOMPARE(planLmWindows(1031693, rulesOf(LmProtocol::Stream, 512))->size(), std::size_t{2015});
}

void TestLmWindows::textsThatAreTooShort_data()
{
    QTest::addColumn<LmRules>("rules");
    QTest::addColumn<QList<int>>("scored"); // of 0, 1 and 7 tokens
    using P = LmProtocol;
    QTest::newRow("C-040 per-document") << rulesOf(P::PerDocument, 16) << QList<int>{0, 0, 6};
    QTest::newRow("C-040 hf-doc") << rulesOf(P::HfDoc, 16, 8) << QList<int>{0, 0, 6};
    QTest::newRow("C-040 hf-fixed") << rulesOf(P::HfFixed, 16, 8) << QList<int>{0, 0, 6};
    QTest::newRow("C-040 non-overlapping") << rulesOf(P::NonOverlapping, 16) << QList<int>{0, 0, 6};
    LmRules lmEval = rulesOf(P::LmEval, 16);
    lmEval.prefixToken = 0;
    QTest::newRow("C-040 lm-eval (T-47)") << lmEval << QList<int>{0, 1, 7};
    QTest::newRow("stream") << rulesOf(P::Stream, 6) << QList<int>{0, 0, 6};
    QTest::newRow("opencompass") << rulesOf(P::OpenCompass, 6) << QList<int>{0, 0, 6};
}

void TestLmWindows::textsThatAreTooShort()
{
    QFETCH(LmRules, rules);
    QFETCH(QList<int>, scored);
    const std::vector<std::uint64_t> lengths{0, 1, 7};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const auto windows = planLmWindows(lengths[i], rules);
        QVERIFY(windows);
        QCOMPARE(static_cast<int>(scoredTokens(*windows).size()),
                 scored[static_cast<qsizetype>(i)]);
        if (scored[static_cast<qsizetype>(i)] == 0)
            QVERIFY(windows->empty());
    }
}

void TestLmWindows::llamaChunksReplaceTheirFirstToken()
{
    LmRules rules = rulesOf(LmProtocol::LlamaCpp, 512);
    rules.chunkBos = 1;
    const auto windows = planLmWindows(1100, rules);
    QVERIFY(windows);
    QCOMPARE(windows->size(), std::size_t{2}); // the tail is ignored
    QCOMPARE(windows->front().scored(), std::uint64_t{255});
    QCOMPARE(windows->front().scoredFrom, 257U); // targets 257..511
    QCOMPARE(windows->back().replaceFirst, std::optional<std::int32_t>(1));
    // The strided mode replaces nothing (T-51).
    LmRules strided = rulesOf(LmProtocol::LlamaCppStrided, 512, 256);
    strided.chunkBos = 1;
    QVERIFY(!planLmWindows(1100, strided)->front().replaceFirst);
    // At least two chunks.
    const auto tooShort = planLmWindows(1023, rules);
    QVERIFY(!tooShort);
    QCOMPARE(tooShort.error().code, std::string("E-TASK-022"));
    QVERIFY(planLmWindows(1024, rules));
}

void TestLmWindows::itemsHaveWhatIsFed()
{
    const std::vector<std::int32_t> tokens{10, 11, 12, 13, 14, 15};
    const LmWindow prefixed{.begin = 0, .end = 3, .scoredFrom = 0, .prefix = 1};
    QCOMPARE(lmItemTokens(tokens, prefixed), (std::vector<std::int32_t>{1, 10, 11, 12}));
    QCOMPARE(lmItemScoredFrom(prefixed), 1U);
    const LmWindow replaced{.begin = 2, .end = 6, .scoredFrom = 3, .replaceFirst = 1};
    QCOMPARE(lmItemTokens(tokens, replaced), (std::vector<std::int32_t>{1, 13, 14, 15}));
    QCOMPARE(lmItemScoredFrom(replaced), 3U);
}

void TestLmWindows::badRulesAreRefused_data()
{
    QTest::addColumn<LmRules>("rules");
    QTest::addColumn<QString>("code");
    using P = LmProtocol;
    QTest::newRow("no length") << rulesOf(P::PerDocument, 0) << "E-TASK-020";
    QTest::newRow("hf length 1") << rulesOf(P::HfDoc, 1, 1) << "E-TASK-020";
    QTest::newRow("llama.cpp length 2") << rulesOf(P::LlamaCpp, 2) << "E-TASK-020";
    QTest::newRow("no stride") << rulesOf(P::HfDoc, 8, 0) << "E-TASK-021";
    QTest::newRow("gaps") << rulesOf(P::HfFixed, 8, 9) << "E-TASK-021";
    QTest::newRow("opencompass gaps") << rulesOf(P::OpenCompass, 8, 9) << "E-TASK-021";
    QTest::newRow("llama.cpp strided gaps") << rulesOf(P::LlamaCppStrided, 8, 15) << "E-TASK-021";
    QTest::newRow("no prefix") << rulesOf(P::LmEval, 8) << "E-TASK-023";
    LmRules context = rulesOf(P::LmEval, 8);
    context.prefixToken = 0;
    context.contextLength = 9;
    QTest::newRow("context too long") << context << "E-TASK-023";
}

void TestLmWindows::badRulesAreRefused()
{
    QFETCH(LmRules, rules);
    QFETCH(QString, code);
    const auto windows = planLmWindows(100, rules);
    QVERIFY(!windows);
    QCOMPARE(QString::fromStdString(windows.error().code), code);
    QCOMPARE(windows.error().kind, Error::Kind::Invalid);
    QVERIFY(!checkLmRules(rules));
}

void TestLmWindows::hugeDocumentsKeepTheirPlaces()
{
    // T-30: places beyond 2^31 and 2^32.
    const std::uint64_t tokens = std::uint64_t{5} << 32U;
    const auto windows = planLmWindows(tokens, rulesOf(LmProtocol::HfExact, 1U << 30U, 1U << 29U));
    QVERIFY(windows);
    QCOMPARE(windows->back().end, tokens);
    std::uint64_t scored = 0;
    for (const LmWindow& window : *windows)
        scored += window.scored();
    QCOMPARE(scored, tokens - 1);
}

void TestLmWindows::namesGoBothWays()
{
    QStringList sentences;
    for (const std::string_view name : lmProtocolNames()) {
        const auto protocol = lmProtocolByName(name);
        QVERIFY(protocol);
        QCOMPARE(lmProtocolName(*protocol), name);
        const auto sentence = lmProtocolSentence(rulesOf(*protocol, 1024, 512));
        QVERIFY(sentence.starts_with(name));
        QVERIFY(sentence.find("1024") != std::string::npos);
        sentences << QString::fromStdString(sentence);
    }
    QVERIFY(!lmProtocolByName("hf"));
    // C-042: another window is another procedure.
    QVERIFY(lmProtocolSentence(rulesOf(LmProtocol::HfDoc, 1024, 512)) !=
            lmProtocolSentence(rulesOf(LmProtocol::HfDoc, 4096, 512)));
}

QTEST_GUILESS_MAIN(TestLmWindows)
#include "tst_lm_windows.moc"
