// SPDX-License-Identifier: Apache-2.0
#include "metrics/perplexity.h"

#include "base/sums.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>

namespace muster::metrics {

namespace {

/// Python's `\s` for texts.
bool isPythonSpace(char32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

bool counts(const LossRow& row)
{
    return row.tokens > 0 && std::isfinite(row.nllNats);
}

tl::unexpected<Error> nothingScored()
{
    return fail(Error::Kind::Undefined, "E-METRICS-020",
                "no token was scored, so there is no perplexity");
}

Status checkRows(std::span<const LossRow> rows, std::span<const TextCounts> documents)
{
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i > 0 &&
            (rows[i].index <= rows[i - 1].index || rows[i].document < rows[i - 1].document))
            return fail(Error::Kind::Invalid, "E-METRICS-021",
                        fmt::format("the windows {} and {} are out of order", rows[i - 1].index,
                                    rows[i].index));
        if (!documents.empty() && rows[i].document >= documents.size())
            return fail(Error::Kind::Invalid, "E-METRICS-021",
                        fmt::format("window {} belongs to document {}, but {} documents are known",
                                    rows[i].index, rows[i].document, documents.size()));
    }
    return {};
}

/// Loss and tokens of a set of windows that belong together.
struct Group {
    double nllNats = 0.0;
    std::uint64_t tokens = 0;

    [[nodiscard]] double mean() const { return nllNats / static_cast<double>(tokens); }
};

/// Adds up windows exactly.
class GroupSum final {
public:
    void add(const LossRow& row)
    {
        if (!counts(row))
            return;
        m_sum.add(row.nllNats);
        m_tokens += row.tokens;
    }
    [[nodiscard]] Group group() const { return {m_sum.result(), m_tokens}; }

private:
    ExactSum m_sum;
    std::uint64_t m_tokens = 0;
};

Group total(std::span<const LossRow> rows)
{
    GroupSum sum;
    for (const LossRow& row : rows)
        sum.add(row);
    return sum.group();
}

std::vector<Group> byDocument(std::span<const LossRow> rows)
{
    std::vector<Group> groups;
    std::size_t begin = 0;
    while (begin < rows.size()) {
        std::size_t end = begin;
        while (end < rows.size() && rows[end].document == rows[begin].document)
            ++end;
        const Group group = total(rows.subspan(begin, end - begin));
        if (group.tokens > 0)
            groups.push_back(group);
        begin = end;
    }
    return groups;
}

std::vector<Group> byWindow(std::span<const LossRow> rows)
{
    std::vector<Group> groups;
    for (const LossRow& row : rows)
        if (counts(row))
            groups.push_back({row.nllNats, row.tokens});
    return groups;
}

/// Mean of a value over groups, summed exactly.
template <typename Value>
double meanOver(std::span<const Group> groups, Value value)
{
    ExactSum sum;
    for (const Group& group : groups)
        sum.add(value(group));
    return sum.result() / static_cast<double>(groups.size());
}

double meanLoss(std::span<const Group> groups)
{
    return meanOver(groups, [](const Group& group) { return group.mean(); });
}

double meanPerplexity(std::span<const Group> groups)
{
    return meanOver(groups, [](const Group& group) { return std::exp(group.mean()); });
}

/// Weighted mean as Hugging Face's loop forms it; nothing when it is undefined.
std::optional<double> hfDocMean(std::span<const LossRow> rows)
{
    ExactSum sum;
    std::uint64_t weights = 0;
    for (const LossRow& row : rows) {
        if (row.tokens == 0)
            return std::nullopt;
        if (!counts(row))
            continue;
        sum.add(row.nllNats / static_cast<double>(row.tokens) *
                static_cast<double>(row.hfDocWeight));
        weights += row.hfDocWeight;
    }
    if (weights == 0)
        return std::nullopt;
    return sum.result() / static_cast<double>(weights);
}

/// The counts of the documents that the windows belong to or not: the text counts in any case.
TextCounts allCounts(std::span<const TextCounts> documents)
{
    TextCounts all;
    for (const TextCounts& document : documents) {
        all.words += document.words;
        all.bytes += document.bytes;
        all.characters += document.characters;
        all.tokens += document.tokens;
    }
    return all;
}

Result<Interval> clusterInterval(std::span<const Group> clusters, double confidence)
{
    if (!(confidence > 0.0 && confidence < 1.0))
        return fail(Error::Kind::Invalid, "E-METRICS-011",
                    "a confidence must lie between 0 and 1, such as 0.95");
    if (clusters.size() < 2)
        return fail(Error::Kind::Undefined, "E-METRICS-010",
                    "one window alone has no standard error");
    ExactSum sum;
    double tokens = 0.0;
    for (const Group& cluster : clusters) {
        sum.add(cluster.nllNats);
        tokens += static_cast<double>(cluster.tokens);
    }
    const double mean = sum.result() / tokens;
    ExactSum squares;
    for (const Group& cluster : clusters) {
        const double rest = cluster.nllNats - mean * static_cast<double>(cluster.tokens);
        squares.add(rest * rest);
    }
    const auto m = static_cast<double>(clusters.size());
    const double error = std::sqrt(m / (m - 1.0) * squares.result()) / tokens;
    const double reach = normalQuantile(0.5 + 0.5 * confidence) * error;
    return Interval{std::exp(mean), std::exp(mean) * error, std::exp(mean - reach),
                    std::exp(mean + reach)};
}

} // namespace

TextCounts countText(std::string_view text)
{
    TextCounts found;
    found.bytes = text.size();
    found.words = 1;
    bool wasSpace = false;
    for (std::size_t at = 0; at < text.size();) {
        const utf8::Decoded decoded = utf8::decode(text, at);
        at += decoded.size;
        ++found.characters;
        const bool isSpace = decoded.valid && isPythonSpace(decoded.codePoint);
        found.words += isSpace && !wasSpace ? 1 : 0;
        wasSpace = isSpace;
    }
    return found;
}

Result<Interval> perplexityInterval(std::span<const LossRow> rows, double confidence)
{
    if (const Status checked = checkRows(rows, {}); !checked)
        return fail(checked.error());
    if (total(rows).tokens == 0)
        return nothingScored();
    const std::vector<Group> documents = byDocument(rows);
    return clusterInterval(documents.size() > 1 ? documents : byWindow(rows), confidence);
}

Result<double> llamaCppError(std::uint64_t tokens, double sum, double sumOfSquares)
{
    if (tokens < 2)
        return fail(Error::Kind::Undefined, "E-METRICS-010",
                    "fewer than two tokens have no standard error");
    const auto n = static_cast<double>(tokens);
    const double mean = sum / n;
    const double variance = std::max(0.0, sumOfSquares / n - mean * mean) / (n - 1.0);
    return std::exp(mean) * std::sqrt(variance);
}

Result<Perplexity> corpusPerplexity(std::span<const LossRow> rows,
                                    std::span<const TextCounts> documents,
                                    const PerplexityOptions& options)
{
    if (const Status checked = checkRows(rows, documents); !checked)
        return fail(checked.error());
    Perplexity result;
    for (const LossRow& row : rows) {
        if (row.tokens == 0)
            result.emptyWindows.push_back(row.index);
        else if (!std::isfinite(row.nllNats))
            result.nonFiniteWindows.push_back(row.index);
    }
    const Group all = total(rows);
    if (all.tokens == 0)
        return nothingScored();
    const std::vector<Group> ofDocuments = byDocument(rows);
    const std::vector<Group> ofWindows = byWindow(rows);
    result.nllNats = all.nllNats;
    result.tokens = all.tokens;
    result.windows = ofWindows.size();
    result.documents = ofDocuments.size();
    result.meanNats = all.mean();
    if (options.averaging == LossAveraging::HfDoc) {
        const auto mean = hfDocMean(rows);
        if (!mean)
            return fail(Error::Kind::Undefined, "E-METRICS-020",
                        "protocol `hf-doc` has no value here: a window without a scored token "
                        "makes its mean a NaN, as in the original; use `hf-fixed`");
        result.meanNats = *mean;
    }
    result.perplexity = std::exp(result.meanNats);
    if (!documents.empty()) {
        const TextCounts text = allCounts(documents);
        const auto per = [&](std::uint64_t number) {
            return all.nllNats / static_cast<double>(number);
        };
        if (text.words > 0)
            result.wordPerplexity = std::exp(per(text.words));
        if (text.bytes > 0) {
            result.bytePerplexity = std::exp(per(text.bytes));
            result.bitsPerByte = per(text.bytes) / std::numbers::ln2;
        }
        if (text.characters > 0)
            result.bitsPerCharacter = per(text.characters) / std::numbers::ln2;
        if (text.tokens > 0)
            result.scoredFraction =
                static_cast<double>(all.tokens) / static_cast<double>(text.tokens);
    }
    const bool isByDocument = ofDocuments.size() > 1;
    auto interval = clusterInterval(isByDocument ? ofDocuments : ofWindows, options.confidence);
    if (interval) {
        result.interval = *interval;
        result.intervalMethod = fmt::format("delta method over {} {}",
                                            isByDocument ? ofDocuments.size() : ofWindows.size(),
                                            isByDocument ? "documents" : "windows");
    } else if (interval.error().kind == Error::Kind::Undefined) {
        result.intervalMethod = interval.error().message;
    } else {
        return fail(std::move(interval).error());
    }
    if (options.sumOfSquares)
        if (const auto error = llamaCppError(all.tokens, all.nllNats, *options.sumOfSquares))
            result.llamaCppError = *error;
    return result;
}

namespace {

/// Collects entries.
class Ledger final {
public:
    Ledger(std::span<const LossRow> rows, std::span<const TextCounts> documents)
        : m_rows(rows), m_counts(documents), m_windows(byWindow(rows)),
          m_documents(byDocument(rows)), m_all(total(rows))
    {
        for (const LossRow& row : rows)
            if (counts(row))
                m_scored.push_back(row);
    }

    [[nodiscard]] bool isEmpty() const { return m_all.tokens == 0; }
    [[nodiscard]] std::vector<LedgerEntry> take() { return std::move(m_entries); }

    void addRightFigures()
    {
        right("token-perplexity", std::exp(m_all.mean()),
              "The exponential of all losses over all scored tokens: the corpus perplexity.");
        if (m_counts.empty())
            return;
        const TextCounts text = allCounts(m_counts);
        const auto per = [&](std::uint64_t number) {
            return m_all.nllNats / static_cast<double>(number);
        };
        if (text.words > 0)
            right("word-perplexity", std::exp(per(text.words)),
                  "The same losses over the words of the original text, as "
                  "lm-evaluation-harness counts them.");
        if (text.bytes > 0) {
            right("byte-perplexity", std::exp(per(text.bytes)),
                  "The same losses over the UTF-8 bytes of the original text.");
            right("bits-per-byte", per(text.bytes) / std::numbers::ln2,
                  "The same losses in bits over the UTF-8 bytes of the original text; no "
                  "exponential.");
        }
        if (text.characters > 0)
            right("bits-per-character", per(text.characters) / std::numbers::ln2,
                  "The same losses in bits over the code points of the original text; no "
                  "exponential.");
    }

    void addAverages()
    {
        wrong("mean-loss", m_all.mean(),
              "The mean loss in nats without its exponential; some tools print it as perplexity.");
        wrong("mean-loss-bits", m_all.mean() / std::numbers::ln2,
              "The mean loss in bits per token without its exponential.");
        wrong("two-to-the-nats", std::exp2(m_all.mean()),
              "Two to the power of a loss in nats: the base of the power and that of the "
              "logarithm differ.");
        wrong("mean-of-window-perplexities", meanPerplexity(m_windows),
              "Each window's perplexity was formed first and then averaged; the exponential "
              "weighs bad windows up.");
        wrong("mean-of-window-losses", std::exp(meanLoss(m_windows)),
              "Each window's mean loss counts alike, so a short last window weighs as much as a "
              "full one.");
        wrong("window-tokens-plus-one", std::exp(overTokens(m_windows.size())),
              "The first token of each window, which has no context or is a special token, was "
              "counted in the divisor although it has no loss.");
        wrong("window-tokens-minus-one", std::exp(overTokensLess(m_windows.size())),
              "One token of each window was left out of the divisor although its loss was added.");
        if (m_documents.size() > 1) {
            wrong("mean-of-document-perplexities", meanPerplexity(m_documents),
                  "Each document's perplexity was formed first and then averaged, as the "
                  "perplexity of the library evaluate does; short texts dominate.");
            wrong("mean-of-document-losses", std::exp(meanLoss(m_documents)),
                  "Each document's mean loss counts alike, whatever its length.");
            wrong("document-tokens-plus-one", std::exp(overTokens(m_documents.size())),
                  "The first token of each document was counted in the divisor although it has no "
                  "loss.");
        }
        wrong("loss-per-document",
              std::exp(m_all.nllNats / static_cast<double>(m_documents.size())),
              "The exponential of the mean loss of a whole document, as the metric `perplexity` "
              "of lm-evaluation-harness and lighteval: meant for single words, not for texts.");
        wrong("loss-over-all-tokens",
              meanOver(m_documents,
                       [](const Group& group) {
                           return group.nllNats / static_cast<double>(group.tokens + 1);
                       }),
              "OpenCompass: each text's loss over all its tokens, one more than were scored, "
              "averaged over the texts, without an exponential.");
        addHfDoc();
        addWordAverages();
    }

    void addBatches(std::uint64_t size)
    {
        if (size < 2 || m_scored.size() < 2)
            return;
        std::vector<Group> batches;
        ExactSum perSample;
        std::uint64_t padded = 0;
        const auto rows = std::span<const LossRow>(m_scored);
        for (std::size_t begin = 0; begin < rows.size(); begin += size) {
            const auto batch =
                rows.subspan(begin, std::min<std::size_t>(size, rows.size() - begin));
            batches.push_back(total(batch));
            perSample.add(batches.back().mean() * static_cast<double>(batch.size()));
            std::uint64_t longest = 0;
            for (const LossRow& row : batch)
                longest = std::max(longest, row.tokens);
            padded += longest * batch.size();
        }
        const auto name = [&](std::string_view what) {
            return fmt::format("{}, batch {}", what, size);
        };
        wrong(name("mean-of-batch-losses"), std::exp(meanLoss(batches)),
              fmt::format("The mean losses of batches of {} windows were averaged, so that a batch "
                          "with few tokens weighs as much as a full one.",
                          size));
        wrong(name("mean-of-batch-losses-by-window"),
              std::exp(perSample.result() / static_cast<double>(rows.size())),
              fmt::format("The mean losses of batches of {} windows were averaged with their "
                          "numbers of windows as weights, not their numbers of tokens.",
                          size));
        wrong(name("mean-of-batch-perplexities"), meanPerplexity(batches),
              fmt::format("The perplexities of batches of {} windows were averaged.", size));
        wrong(name("padding-counted"), std::exp(m_all.nllNats / static_cast<double>(padded)),
              fmt::format("In batches of {} windows the padding was counted in the divisor as if "
                          "it had been scored without loss.",
                          size));
    }

    void addRanks(std::uint64_t ranks)
    {
        if (ranks < 2 || m_scored.size() < 2)
            return;
        const auto rows = std::span<const LossRow>(m_scored);
        const std::uint64_t n = rows.size();
        std::vector<Group> byStride;
        std::vector<Group> byPaddedStride;
        std::vector<Group> byBlock;
        const std::uint64_t each = (n + ranks - 1) / ranks;
        for (std::uint64_t rank = 0; rank < ranks; ++rank) {
            GroupSum stride;
            GroupSum paddedStride;
            for (std::uint64_t i = 0; i < each; ++i) {
                const std::uint64_t at = rank + i * ranks;
                if (at < n)
                    stride.add(rows[static_cast<std::size_t>(at)]);
                paddedStride.add(rows[static_cast<std::size_t>(at % n)]);
            }
            const std::uint64_t begin = rank * (n / ranks) + std::min(rank, n % ranks);
            const std::uint64_t size = n / ranks + (rank < n % ranks ? 1 : 0);
            for (auto [groups, group] :
                 {std::pair{&byStride, stride.group()},
                  std::pair{&byPaddedStride, paddedStride.group()},
                  std::pair{&byBlock, total(rows.subspan(static_cast<std::size_t>(begin),
                                                         static_cast<std::size_t>(size)))}})
                if (group.tokens > 0)
                    groups->push_back(group);
        }
        const auto add = [&](std::string_view dealt, const std::vector<Group>& groups,
                             std::string_view how) {
            wrong(fmt::format("mean-over-ranks, {} {}", ranks, dealt), std::exp(meanLoss(groups)),
                  fmt::format("The mean losses of {} ranks were averaged; each rank had {}.", ranks,
                              how));
            wrong(fmt::format("mean-of-rank-perplexities, {} {}", ranks, dealt),
                  meanPerplexity(groups),
                  fmt::format("The perplexities of {} ranks were averaged; each rank had {}.",
                              ranks, how));
        };
        add("by stride", byStride, fmt::format("one window in {}", ranks));
        add("by block", byBlock, "consecutive windows");
        if (n % ranks != 0)
            add("by padded stride", byPaddedStride,
                fmt::format("one window in {}, and the first ones were repeated to make the "
                            "shares equal",
                            ranks));
        wrong(fmt::format("loss-times-ranks, {}", ranks),
              std::exp(m_all.mean() * static_cast<double>(ranks)),
              fmt::format("The loss was multiplied by {} ranks: summed over them where it should "
                          "have been averaged.",
                          ranks));
    }

private:
    void right(std::string name, double value, std::string sentence)
    {
        m_entries.push_back({std::move(name), value, std::move(sentence), true});
    }
    void wrong(std::string name, double value, std::string sentence)
    {
        if (!std::isnan(value))
            m_entries.push_back({std::move(name), value, std::move(sentence), false});
    }

    [[nodiscard]] double overTokens(std::uint64_t more) const
    {
        return m_all.nllNats / static_cast<double>(m_all.tokens + more);
    }
    [[nodiscard]] double overTokensLess(std::uint64_t less) const
    {
        return m_all.tokens > less ? m_all.nllNats / static_cast<double>(m_all.tokens - less)
                                   : std::numeric_limits<double>::quiet_NaN();
    }

    void addHfDoc()
    {
        const bool differs = std::any_of(m_scored.begin(), m_scored.end(), [](const LossRow& row) {
            return row.hfDocWeight != row.tokens;
        });
        const auto mean = hfDocMean(m_scored);
        if (differs && mean)
            wrong("hf-doc", std::exp(*mean),
                  "Hugging Face's documented loop: each overlapping window weighs one token less "
                  "than it scored.");
    }

    void addWordAverages()
    {
        if (m_counts.empty() || m_documents.size() < 2)
            return;
        ExactSum sum;
        std::uint64_t number = 0;
        std::size_t begin = 0;
        while (begin < m_rows.size()) {
            std::size_t end = begin;
            while (end < m_rows.size() && m_rows[end].document == m_rows[begin].document)
                ++end;
            const Group group = total(m_rows.subspan(begin, end - begin));
            const auto document = static_cast<std::size_t>(m_rows[begin].document);
            if (group.tokens > 0 && document < m_counts.size() && m_counts[document].words > 0) {
                sum.add(std::exp(group.nllNats / static_cast<double>(m_counts[document].words)));
                ++number;
            }
            begin = end;
        }
        if (number > 0)
            wrong("mean-of-document-word-perplexities", sum.result() / static_cast<double>(number),
                  "Each document's word perplexity was formed first and then averaged.");
    }

    std::span<const LossRow> m_rows;
    std::span<const TextCounts> m_counts;
    std::vector<LossRow> m_scored;
    std::vector<Group> m_windows;
    std::vector<Group> m_documents;
    Group m_all;
    std::vector<LedgerEntry> m_entries;
};

} // namespace

std::vector<LedgerEntry> perplexityLedger(std::span<const LossRow> rows,
                                          std::span<const TextCounts> documents,
                                          const LedgerOptions& options)
{
    Ledger ledger(rows, documents);
    if (ledger.isEmpty())
        return {};
    ledger.addRightFigures();
    ledger.addAverages();
    for (const std::uint64_t size : options.batchSizes)
        ledger.addBatches(size);
    for (const std::uint64_t ranks : options.ranks)
        ledger.addRanks(ranks);
    return ledger.take();
}

std::vector<LedgerMatch> explainSeen(double seen, double tolerance, std::span<const LossRow> rows,
                                     std::span<const TextCounts> documents,
                                     const LedgerOptions& options)
{
    LedgerOptions wide = options;
    const auto want = [](std::vector<std::uint64_t>& numbers,
                         std::initializer_list<std::uint64_t> more) {
        numbers.insert(numbers.end(), more);
        std::sort(numbers.begin(), numbers.end());
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    };
    want(wide.batchSizes, {2, 4, 8, 16, 32, 64, 128});
    want(wide.ranks, {2, 3, 4, 5, 6, 7, 8, 16, 32, 64});
    std::vector<LedgerMatch> matches;
    for (LedgerEntry& entry : perplexityLedger(rows, documents, wide)) {
        if (!std::isfinite(entry.value))
            continue;
        const double difference = entry.value - seen;
        const bool isMatch = std::fabs(difference) <= tolerance;
        matches.push_back({std::move(entry), difference, isMatch});
    }
    // Stable: the ledger's own order, from simple to far-fetched, decides among equals.
    std::stable_sort(matches.begin(), matches.end(),
                     [](const LedgerMatch& a, const LedgerMatch& b) {
                         if (a.isMatch != b.isMatch)
                             return a.isMatch;
                         if (a.isMatch && a.entry.isRight != b.entry.isRight)
                             return a.entry.isRight;
                         return std::fabs(a.difference) < std::fabs(b.difference);
                     });
    return matches;
}

std::optional<double> toleranceOf(std::string_view written)
{
    double value = 0.0;
    const auto [end, error] =
        std::from_chars(written.data(), written.data() + written.size(), value);
    if (error != std::errc{} || end != written.data() + written.size() || !std::isfinite(value))
        return std::nullopt;
    const std::size_t exponentAt = written.find_first_of("eE");
    const std::string_view mantissa = written.substr(0, exponentAt);
    const std::size_t point = mantissa.find('.');
    int digits =
        point == std::string_view::npos ? 0 : static_cast<int>(mantissa.size() - point - 1);
    if (exponentAt != std::string_view::npos) {
        int exponent = 0;
        std::string_view power = written.substr(exponentAt + 1);
        if (power.starts_with('+'))
            power.remove_prefix(1);
        std::from_chars(power.data(), power.data() + power.size(), exponent);
        digits -= exponent;
    }
    return 0.5 * std::pow(10.0, -digits) + 1e-12 * std::fabs(value);
}

} // namespace muster::metrics
