// SPDX-License-Identifier: Apache-2.0
#include "metrics/perplexity.h"

#include "support/shared_data.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>
#include <vector>

using namespace muster;
using namespace muster::metrics;

namespace {

/// Windows with their own document each.
std::vector<LossRow> texts(std::vector<std::pair<double, std::uint64_t>> losses)
{
    std::vector<LossRow> rows;
    for (const auto& [nll, tokens] : losses)
        rows.push_back({rows.size(), rows.size(), nll, tokens, tokens});
    return rows;
}

/// Windows of one document.
std::vector<LossRow> windows(std::vector<std::pair<double, std::uint64_t>> losses)
{
    std::vector<LossRow> rows = texts(std::move(losses));
    for (LossRow& row : rows)
        row.document = 0;
    return rows;
}

/// Rows of a case's file; a loss of null is not a number.
std::vector<LossRow> rowsOf(const std::filesystem::path& path)
{
    std::vector<LossRow> rows;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const auto json = nlohmann::json::parse(line);
        const auto& loss = json["nll_sum"];
        const auto tokens = json["tokens"].get<std::uint64_t>();
        const auto index = json["index"].get<std::uint64_t>();
        rows.push_back(
            {index, index,
             loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>(), tokens,
             tokens});
    }
    return rows;
}

double entry(const std::vector<LedgerEntry>& ledger, const std::string& name)
{
    for (const LedgerEntry& found : ledger)
        if (found.name == name)
            return found.value;
    qWarning("no entry %s", name.c_str());
    return std::numeric_limits<double>::quiet_NaN();
}

bool near(double a, double b, double relative = 1e-9)
{
    return std::fabs(a - b) <= relative * std::max(std::fabs(a), std::fabs(b));
}

} // namespace

class TestPerplexity : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void casesOfTheField_data();
    void casesOfTheField();
    void wrongAveragesOfTheCases();
    void sameForEveryDealing();
    void overflowKeepsTheMean();
    void nothingScoredIsUndefined();
    void nonFiniteLossesAreNamedAndNotAveragedIn();
    void wordsBytesAndCharacters();
    void wordsAreCountedAsLmEvalDoes_data();
    void wordsAreCountedAsLmEvalDoes();
    void lmEvalExample();
    void meanOfPerplexitiesIsNotTheCorpus();
    void hfDocWeights();
    void goldenTotalsOfSmolLm2();
    void llamaCppBar();
    void intervalsByDocumentAndWindow();
    void intervalCoversTheTruth();
    void seenNumbersAreExplained_data();
    void seenNumbersAreExplained();
    void tolerances();
    void disorderIsRefused();
    void countsBeyond32Bits();
};

void TestPerplexity::casesOfTheField_data()
{
    QTest::addColumn<QString>("file");
    QTest::addColumn<double>("mean");
    QTest::addColumn<double>("perplexity");
    QTest::newRow("C-032") << "c032-nll.jsonl" << 9.2 << 9897.129058743927;
    QTest::newRow("C-033") << "c033-nll.jsonl" << 54.0 / 47 << std::exp(54.0 / 47);
    QTest::newRow("C-034") << "c034-nll.jsonl" << 21.5 / 13 << std::exp(21.5 / 13);
    QTest::newRow("C-037") << "c037-nll.jsonl" << 1.0843494801495548 << 2.957515;
    QTest::newRow("C-040") << "c040-nll.jsonl" << std::log(3.0) << 3.0;
}

void TestPerplexity::casesOfTheField()
{
    QFETCH(QString, file);
    QFETCH(double, mean);
    QFETCH(double, perplexity);
    MUSTER_SHARED_OR_SKIP(folder, "cases/inputs");
    const auto rows = rowsOf(folder / file.toStdString());
    QVERIFY(!rows.empty());
    const auto result = corpusPerplexity(rows);
    QVERIFY(result);
    QVERIFY(near(result->meanNats, mean));
    QVERIFY(near(result->perplexity, perplexity, 1e-6));
    if (file == QStringLiteral("c040-nll.jsonl"))
        QCOMPARE(result->emptyWindows, (std::vector<std::uint64_t>{0, 1}));
}

void TestPerplexity::wrongAveragesOfTheCases()
{
    // C-032: mean of means 6.0, 403.429.
    QVERIFY(near(entry(perplexityLedger(windows({{2, 1}, {90, 9}})), "mean-of-window-losses"),
                 403.4287934927351));
    // C-035: five tokens, the first without a context: the divisor is 4, not 5.
    const auto short5 = windows({{4 * std::numbers::ln2, 4}});
    QVERIFY(near(corpusPerplexity(short5)->perplexity, 2.0));
    QVERIFY(near(entry(perplexityLedger(short5), "window-tokens-plus-one"), 1.741101, 1e-6));
    // C-037 and semantics.md 4.3: the mean of perplexities is 51.
    const auto two = texts({{std::log(100.0), 1}, {9 * std::log(2.0), 9}});
    QVERIFY(near(entry(perplexityLedger(two), "mean-of-document-perplexities"), 51.0));
    // C-033: W times too large.
    QVERIFY(near(
        entry(perplexityLedger(two, {}, {.batchSizes = {}, .ranks = {8}}), "loss-times-ranks, 8"),
        std::pow(corpusPerplexity(two)->perplexity, 8)));
    // T-02: wrapped copies are counted twice. Losses 0 to 9 of one token, 4 ranks.
    std::vector<std::pair<double, std::uint64_t>> ten;
    for (int i = 0; i < 10; ++i)
        ten.emplace_back(i < 2 ? 1.0 : 0.0, 1);
    const auto padded = perplexityLedger(windows(ten), {}, {.batchSizes = {}, .ranks = {4}});
    QVERIFY(near(std::log(entry(padded, "mean-over-ranks, 4 by padded stride")), 4.0 / 12));
    QVERIFY(near(std::log(corpusPerplexity(windows(ten))->perplexity), 0.2));
    // C-034: batches of two windows with 3, 3, 3, 3, 1 tokens.
    const auto five = texts({{3, 3}, {4.5, 3}, {6, 3}, {7.5, 3}, {0.5, 1}});
    const auto batched = perplexityLedger(five, {}, {.batchSizes = {2}, .ranks = {}});
    QVERIFY(near(entry(batched, "mean-of-batch-losses, batch 2"),
                 std::exp((7.5 / 6 + 13.5 / 6 + 0.5) / 3)));
    QVERIFY(near(entry(batched, "mean-of-batch-losses-by-window, batch 2"),
                 std::exp((2 * 7.5 / 6 + 2 * 13.5 / 6 + 0.5) / 5)));
    QVERIFY(near(entry(batched, "padding-counted, batch 2"), std::exp(21.5 / 13)));
    const auto unequal = texts({{3, 3}, {0.5, 1}});
    QVERIFY(near(entry(perplexityLedger(unequal, {}, {.batchSizes = {2}, .ranks = {}}),
                       "padding-counted, batch 2"),
                 std::exp(3.5 / 6)));
}

void TestPerplexity::sameForEveryDealing()
{
    // C-033, C-034: exact sums, so sums of ranks add up to the same bits.
    std::vector<std::pair<double, std::uint64_t>> losses;
    for (int i = 0; i < 97; ++i)
        losses.emplace_back(1.0 / (i + 1.0) + i * 0.1, static_cast<std::uint64_t>(i % 5 + 1));
    auto rows = windows(losses);
    const auto whole = corpusPerplexity(rows);
    QVERIFY(whole);
    std::reverse(rows.begin(), rows.end());
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i].index = i;
    const auto reversed = corpusPerplexity(rows);
    QVERIFY(reversed);
    QCOMPARE(reversed->perplexity, whole->perplexity);
    QCOMPARE(reversed->nllNats, whole->nllNats);
    QCOMPARE(reversed->interval->low, whole->interval->low);
}

void TestPerplexity::overflowKeepsTheMean()
{
    // C-038
    const auto result = corpusPerplexity(texts({{10000.0, 10}}));
    QVERIFY(result);
    QCOMPARE(result->meanNats, 1000.0);
    QVERIFY(std::isinf(result->perplexity));
    QVERIFY(!result->interval);
    QVERIFY(!result->intervalMethod.empty());
}

void TestPerplexity::nothingScoredIsUndefined()
{
    // C-040
    for (const auto& rows : {texts({}), texts({{0.0, 0}, {0.0, 0}})}) {
        const auto result = corpusPerplexity(rows);
        QVERIFY(!result);
        QCOMPARE(result.error().kind, Error::Kind::Undefined);
        QCOMPARE(result.error().code, std::string("E-METRICS-020"));
        QVERIFY(perplexityLedger(rows).empty());
        QVERIFY(explainSeen(1.0, 0.1, rows).empty());
    }
}

void TestPerplexity::nonFiniteLossesAreNamedAndNotAveragedIn()
{
    // C-065
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    const auto result = corpusPerplexity(texts({{2.0, 2}, {nan, 4}, {4.0, 2}, {infinity, 1}}));
    QVERIFY(result);
    QCOMPARE(result->meanNats, 1.5);
    QCOMPARE(result->nonFiniteWindows, (std::vector<std::uint64_t>{1, 3}));
    QCOMPARE(result->windows, std::uint64_t{2});
    QVERIFY(!corpusPerplexity(texts({{nan, 4}})));
}

void TestPerplexity::wordsBytesAndCharacters()
{
    // C-041
    TextCounts counts = countText("hello world");
    counts.tokens = 4;
    QCOMPARE(counts, (TextCounts{2, 11, 11, 4}));
    const auto result =
        corpusPerplexity(texts({{6 * std::numbers::ln2, 3}}), std::span(&counts, 1));
    QVERIFY(result);
    QVERIFY(near(result->perplexity, 4.0));
    QVERIFY(near(*result->wordPerplexity, 8.0));
    QVERIFY(near(*result->bytePerplexity, 1.459480, 1e-6));
    QVERIFY(near(*result->bitsPerByte, 0.545455, 1e-6));
    QVERIFY(near(*result->bitsPerCharacter, 6.0 / 11));
    QCOMPARE(*result->scoredFraction, 0.75);
    const auto without = corpusPerplexity(texts({{6 * std::numbers::ln2, 3}}));
    QVERIFY(!without->wordPerplexity && !without->bitsPerByte && !without->scoredFraction);
}

void TestPerplexity::wordsAreCountedAsLmEvalDoes_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<qulonglong>("words");
    QTest::newRow("4.4 blanks at both ends") << " a b " << 4ULL;
    QTest::newRow("4.4 empty") << "" << 1ULL;
    QTest::newRow("4.5 page") << " = A = \n x y \n" << 7ULL;
    QTest::newRow("runs") << QStringLiteral("a \t\n\u3000b\u00a0c\u001cd") << 4ULL;
    QTest::newRow("zero width space is none") << QStringLiteral("a\u200bb") << 1ULL;
}

void TestPerplexity::wordsAreCountedAsLmEvalDoes()
{
    QFETCH(QString, text);
    QFETCH(qulonglong, words);
    const std::string bytes = text.toStdString();
    const TextCounts counts = countText(bytes);
    QCOMPARE(counts.words, std::uint64_t{words});
    QCOMPARE(counts.bytes, std::uint64_t{bytes.size()});
    QCOMPARE(counts.characters, static_cast<std::uint64_t>(text.toUcs4().size()));
}

void TestPerplexity::lmEvalExample()
{
    // semantics.md 4.4: A −20 over 10 words and 60 bytes, B −3 over 1 word and 5 bytes.
    const std::vector<TextCounts> counts{{10, 60, 60, 0}, {1, 5, 5, 0}};
    const auto rows = texts({{20.0, 12}, {3.0, 2}});
    const auto result = corpusPerplexity(rows, counts);
    QVERIFY(result);
    QVERIFY(near(*result->wordPerplexity, 8.0923, 1e-5));
    QVERIFY(near(*result->bytePerplexity, 1.42454, 1e-5));
    QVERIFY(near(*result->bitsPerByte, 0.51049, 1e-5));
    const auto ledger = perplexityLedger(rows, counts);
    QVERIFY(near(entry(ledger, "mean-of-document-word-perplexities"), 13.74, 1e-3));
    QVERIFY(near(entry(ledger, "loss-per-document"), std::exp(11.5)));
    QVERIFY(near(entry(ledger, "loss-over-all-tokens"), (20.0 / 13 + 3.0 / 3) / 2));
}

void TestPerplexity::meanOfPerplexitiesIsNotTheCorpus()
{
    // semantics.md 4.1, T-43: 2 tokens of mean 1, 8 tokens of mean 3.
    const auto rows = texts({{2.0, 2}, {24.0, 8}});
    QVERIFY(near(corpusPerplexity(rows)->perplexity, 13.464, 1e-4));
    const auto ledger = perplexityLedger(rows);
    QVERIFY(near(entry(ledger, "mean-of-document-perplexities"), 11.402, 1e-4));
    QVERIFY(near(entry(ledger, "mean-of-document-losses"), 7.389, 1e-4));
}

void TestPerplexity::hfDocWeights()
{
    // semantics.md 4.1, stride 2: windows weighted 4, 1, 1, 1, 1; the loss of token i is i.
    auto rows = windows({{10, 4}, {11, 2}, {15, 2}, {19, 2}, {23, 2}});
    for (std::size_t i = 1; i < rows.size(); ++i)
        rows[i].hfDocWeight = 1;
    const auto quirk = corpusPerplexity(rows, {}, {.averaging = LossAveraging::HfDoc});
    QVERIFY(quirk);
    QVERIFY(near(quirk->meanNats, 5.5));
    QVERIFY(near(corpusPerplexity(rows)->meanNats, 6.5));
    QVERIFY(near(entry(perplexityLedger(rows), "hf-doc"), std::exp(5.5)));
    // T-45: a last window of one token.
    rows.push_back({5, 0, 0.0, 0, 0});
    const auto undefined = corpusPerplexity(rows, {}, {.averaging = LossAveraging::HfDoc});
    QVERIFY(!undefined);
    QCOMPARE(undefined.error().kind, Error::Kind::Undefined);
    QVERIFY(corpusPerplexity(rows));
}

void TestPerplexity::goldenTotalsOfSmolLm2()
{
    MUSTER_SHARED_OR_SKIP(path, "goldens/smollm2-135m/wikitext-2-raw.sliding1024-512.json");
    std::ifstream file(path);
    const auto golden = nlohmann::json::parse(file);
    std::vector<LossRow> rows;
    for (const auto& window : golden["windows"])
        rows.push_back({rows.size(), 0, window["nll"].get<double>(),
                        window["scored"].get<std::uint64_t>(),
                        window["target_length"].get<std::uint64_t>() - 1});
    const auto& total = golden["total"];
    const auto exact = corpusPerplexity(rows);
    QVERIFY(exact);
    QCOMPARE(exact->tokens, total["scored"].get<std::uint64_t>());
    QVERIFY(near(exact->meanNats, total["mean_nll"].get<double>(), 1e-14));
    QVERIFY(near(exact->perplexity, total["perplexity"].get<double>(), 1e-14));
    const auto quirk = corpusPerplexity(rows, {}, {.averaging = LossAveraging::HfDoc});
    QVERIFY(quirk);
    QVERIFY(near(quirk->meanNats, total["hf_doc_mean_nll"].get<double>(), 1e-14));
    QVERIFY(near(quirk->perplexity, total["hf_doc_perplexity"].get<double>(), 1e-14));
    const auto matches = explainSeen(19.4606, 0.5e-4, rows);
    QCOMPARE(matches.front().entry.name, std::string("hf-doc"));
}

void TestPerplexity::llamaCppBar()
{
    // semantics.md 4.6: losses 1, 2, 3 give 7.389 ± 4.266.
    const auto bar = llamaCppError(3, 6.0, 14.0);
    QVERIFY(bar);
    QVERIFY(near(*bar, 4.266, 1e-4));
    const auto result = corpusPerplexity(windows({{1, 1}, {5, 2}}), {}, {.sumOfSquares = 14.0});
    QVERIFY(near(result->perplexity, 7.389, 1e-4));
    QCOMPARE(*result->llamaCppError, *bar);
    QVERIFY(!llamaCppError(1, 1.0, 1.0));
}

void TestPerplexity::intervalsByDocumentAndWindow()
{
    // Clusters (2,1), (3,2), (7,3): R = 2, rests 0, −1, 1; se² = 3/2 · 2 / 36.
    const auto rows = texts({{2, 1}, {3, 2}, {7, 3}});
    const auto interval = perplexityInterval(rows);
    QVERIFY(interval);
    const double error = std::sqrt(1.5 * 2.0 / 36.0);
    QVERIFY(near(interval->value, std::exp(2.0)));
    QVERIFY(near(interval->standardError, std::exp(2.0) * error));
    QVERIFY(near(interval->high, std::exp(2.0 + 1.959963984540054 * error)));
    // One document: its windows are the clusters.
    QCOMPARE(*perplexityInterval(windows({{2, 1}, {3, 2}, {7, 3}})), *interval);
    const auto grouped = corpusPerplexity(rows);
    QCOMPARE(grouped->intervalMethod, std::string("delta method over 3 documents"));
    const auto one = perplexityInterval(texts({{2, 1}}));
    QVERIFY(!one);
    QCOMPARE(one.error().code, std::string("E-METRICS-010"));
    QCOMPARE(perplexityInterval(rows, 1.0).error().code, std::string("E-METRICS-011"));
    QVERIFY(!corpusPerplexity(rows, {}, {.confidence = 0.0}));
}

void TestPerplexity::intervalCoversTheTruth()
{
    // Mean losses of 3 ± 0.5 by document: 95 % intervals must hold e³ about 95 times of 100.
    PythonRandom random(5);
    int covered = 0;
    constexpr int trials = 400;
    for (int trial = 0; trial < trials; ++trial) {
        std::vector<std::pair<double, std::uint64_t>> losses;
        for (int i = 0; i < 60; ++i) {
            const auto tokens = static_cast<std::uint64_t>(20 + random.index(100));
            const double mean = 2.0 + 2.0 * random.uniform();
            losses.emplace_back(mean * static_cast<double>(tokens), tokens);
        }
        const auto interval = perplexityInterval(texts(losses));
        QVERIFY(interval);
        covered += interval->low <= std::exp(3.0) && std::exp(3.0) <= interval->high ? 1 : 0;
    }
    QVERIFY2(covered > 0.91 * trials && covered < 0.985 * trials,
             qPrintable(QString::number(covered)));
}

void TestPerplexity::seenNumbersAreExplained_data()
{
    QTest::addColumn<QString>("name");
    for (const char* name :
         {"token-perplexity", "word-perplexity", "bits-per-byte", "mean-loss", "mean-loss-bits",
          "two-to-the-nats", "mean-of-window-perplexities", "mean-of-window-losses",
          "mean-of-document-perplexities", "mean-of-batch-losses, batch 16",
          "padding-counted, batch 8", "mean-over-ranks, 3 by stride", "mean-over-ranks, 7 by block",
          "window-tokens-plus-one", "loss-over-all-tokens"})
        QTest::newRow(name) << name;
}

void TestPerplexity::seenNumbersAreExplained()
{
    QFETCH(QString, name);
    PythonRandom random(11);
    std::vector<LossRow> rows;
    std::vector<TextCounts> counts;
    for (std::uint64_t i = 0; i < 211; ++i) {
        const std::uint64_t document = i / 3;
        const auto tokens = static_cast<std::uint64_t>(1 + random.index(60));
        rows.push_back({i, document, (1.0 + 3.0 * random.uniform()) * static_cast<double>(tokens),
                        tokens, tokens});
        counts.resize(static_cast<std::size_t>(document) + 1);
        counts.back().words += tokens - tokens / 4;
        counts.back().bytes += 5 * tokens;
        counts.back().characters += 4 * tokens;
    }
    const LedgerOptions wide{.batchSizes = {8, 16}, .ranks = {3, 7}};
    const double seen = entry(perplexityLedger(rows, counts, wide), name.toStdString());
    const auto matches = explainSeen(seen, 1e-9 * seen, rows, counts);
    QVERIFY(!matches.empty());
    QVERIFY(matches.front().isMatch);
    QCOMPARE(QString::fromStdString(matches.front().entry.name), name);
    QVERIFY(!matches.front().entry.sentence.empty());
    // A number that nothing gives has no match, and the nearest comes first.
    const auto none = explainSeen(-5.0, 0.01, rows, counts);
    QVERIFY(!none.front().isMatch);
    for (std::size_t i = 1; i < none.size(); ++i)
        QVERIFY(std::fabs(none[i - 1].difference) <= std::fabs(none[i].difference));
}

void TestPerplexity::tolerances()
{
    const auto is = [](std::string_view written, double tolerance) {
        const auto found = toleranceOf(written);
        return found && std::fabs(*found - tolerance) < 1e-6 * tolerance;
    };
    QVERIFY(is("17.2", 0.05));
    QVERIFY(is("17", 0.5));
    QVERIFY(is("17.200", 0.0005));
    QVERIFY(is("1.5e-1", 0.005));
    QVERIFY(is("1e+3", 500));
    for (const char* none : {"", "x", "17,2", "17.2 ", "nan", "inf"})
        QVERIFY2(!toleranceOf(none), none);
}

void TestPerplexity::disorderIsRefused()
{
    auto rows = texts({{1, 1}, {2, 1}});
    rows[1].index = 0;
    QCOMPARE(corpusPerplexity(rows).error().code, std::string("E-METRICS-021"));
    const std::vector<TextCounts> one(1);
    QCOMPARE(corpusPerplexity(texts({{1, 1}, {2, 1}}), one).error().code,
             std::string("E-METRICS-021"));
}

void TestPerplexity::countsBeyond32Bits()
{
    // T-30, T-53
    const std::uint64_t many = std::uint64_t{3} << 40U;
    const auto result =
        corpusPerplexity(windows({{2.0 * static_cast<double>(many), many}, {2.0, 1}, {2.0, 1}}));
    QVERIFY(result);
    QCOMPARE(result->tokens, many + 2);
    QCOMPARE(result->meanNats, 2.0);
}

QTEST_GUILESS_MAIN(TestPerplexity)
#include "tst_perplexity.moc"
