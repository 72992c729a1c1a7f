// SPDX-License-Identifier: Apache-2.0
#include "foreign/analysis.h"

#include "foreign/rows_p.h"
#include "metrics/answer_score.h"
#include "metrics/squad.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace muster::foreign {

namespace {

constexpr std::size_t shown = 20;
constexpr std::uint64_t defaultWorld = 8;

std::string percent(double value)
{
    return fmt::format("{:.2f} %", value);
}

/// Numbers answers: equal normalised texts get equal numbers.
class AnswerNumbers final {
public:
    AnswerNumbers(References::Kind kind, metrics::Normalizer normalizer)
        : m_kind(kind), m_normalizer(normalizer)
    {
    }
    std::uint32_t of(const std::string& text)
    {
        const auto raw = m_raw.find(text);
        if (raw != m_raw.end())
            return raw->second;
        const std::string key = m_kind == References::Kind::Labels
                                    ? plainLabel(text)
                                    : metrics::normalize(m_normalizer, text).text;
        const std::uint32_t number =
            m_numbers.emplace(key, static_cast<std::uint32_t>(m_numbers.size())).first->second;
        m_raw.emplace(text, number);
        return number;
    }

private:
    References::Kind m_kind;
    metrics::Normalizer m_normalizer;
    std::unordered_map<std::string, std::uint32_t> m_raw;
    std::unordered_map<std::string, std::uint32_t> m_numbers;
};

/// The agreement of a list of rows (−1: a row without an answer) with the references.
align::Agreement agreementOf(const ResultFile& file, const std::vector<std::int64_t>& rows,
                             const References& references, metrics::Normalizer normalizer)
{
    AnswerNumbers numbers(references.kind, normalizer);
    std::vector<std::uint32_t> predictions;
    predictions.reserve(rows.size());
    for (const std::int64_t at : rows) {
        const Row* row = at < 0 ? nullptr : &file.rows[static_cast<std::size_t>(at)];
        predictions.push_back(row == nullptr || !row->hasAnswer ? align::noAnswer
                                                                : numbers.of(row->text));
    }
    std::vector<std::uint64_t> starts{0};
    std::vector<std::uint32_t> classes;
    for (const auto& one : references.answers) {
        const std::size_t first = classes.size();
        if (one.empty() && references.kind == References::Kind::Answers)
            classes.push_back(numbers.of(""));
        for (const std::string& text : one) {
            const std::uint32_t number = numbers.of(text);
            if (std::find(classes.begin() + static_cast<std::ptrdiff_t>(first), classes.end(),
                          number) == classes.end())
                classes.push_back(number);
        }
        starts.push_back(classes.size());
    }
    return {std::move(predictions), std::move(starts), std::move(classes)};
}

std::string listed(const std::vector<std::uint64_t>& indices, std::uint64_t total)
{
    return fmt::format("{}{}", fmt::join(indices, ", "), total > indices.size() ? ", …" : "");
}

/// Places rows by what they carry and notes what does not fit.
class Placer final {
public:
    Placer(const ResultFile& file, const References& references, Analysis& made)
        : m_file(file), m_references(references), m_made(made)
    {
    }

    Status run()
    {
        m_made.rows = m_file.rows.size();
        m_made.samples = m_references.size();
        m_made.rowOf.assign(m_references.size(), -1);
        choose();
        for (std::size_t i = 0; i < m_file.rows.size(); ++i)
            place(i);
        if (m_made.placing != Placing::ByOrder && m_placed == 0)
            return fail(Error::Kind::Invalid, "E-FOREIGN-014",
                        fmt::format("{}: no {} of the rows is one of the data; is --data the right "
                                    "data set?",
                                    m_file.name, m_made.placing == Placing::ById ? "id" : "index"));
        for (std::uint64_t i = 0; i < m_references.size(); ++i) {
            if (m_made.rowOf[i] >= 0)
                ++m_made.covered;
            else if (m_made.missing.size() < shown)
                m_made.missing.push_back(i);
        }
        say();
        return {};
    }
    /// Rows in the order in which they are to be tested.
    [[nodiscard]] std::vector<std::int64_t> testedRows() const
    {
        return m_made.placing == Placing::ByOrder ? m_inOrder : m_made.rowOf;
    }

private:
    void choose()
    {
        const bool hasIds =
            std::ranges::any_of(m_file.rows, [](const Row& row) { return !row.id.empty(); });
        const bool hasIndices =
            !m_file.indexField.empty() &&
            std::ranges::any_of(m_file.rows, [](const Row& row) { return row.index.has_value(); });
        if (hasIds) {
            for (std::uint64_t i = 0; i < m_references.ids.size(); ++i)
                m_byId.emplace(m_references.ids[i], i);
            std::size_t known = 0;
            std::size_t numbers = 0;
            for (const Row& row : m_file.rows) {
                known += m_byId.count(row.id);
                numbers += integerOf(row.id) ? 1U : 0U;
            }
            if (known > 0 || (!hasIndices && numbers < m_file.rows.size())) {
                m_made.placing = Placing::ById;
                return;
            }
            if (!hasIndices) {
                m_idsAreIndices = true;
                m_made.placing = Placing::ByIndex;
                m_made.notes.emplace_back("the ids are whole numbers and none of them is an id of "
                                          "the data: taken as indices");
                return;
            }
        }
        m_made.placing = hasIndices ? Placing::ByIndex : Placing::ByOrder;
        if (m_made.placing == Placing::ByOrder)
            m_made.notes.emplace_back("no index and no id: row i is taken for sample i");
    }

    void place(std::size_t i)
    {
        const Row& row = m_file.rows[i];
        if (row.isPad) {
            ++m_made.pads;
            return;
        }
        if (m_made.placing == Placing::ByOrder) {
            if (m_inOrder.size() < m_references.size())
                take(m_inOrder.size(), i);
            m_inOrder.push_back(static_cast<std::int64_t>(i));
            return;
        }
        if (m_made.placing == Placing::ById) {
            const auto found = m_byId.find(row.id);
            if (found == m_byId.end()) {
                ++m_made.unknownIds;
                m_firstUnknown = m_firstUnknown.empty() ? row.id : m_firstUnknown;
                return;
            }
            take(found->second, i);
            return;
        }
        const auto index = m_idsAreIndices ? integerOf(row.id) : row.index;
        if (!index || *index == -1) {
            ++m_made.pads;
            m_padsInFront += m_placed == 0 ? 1U : 0U;
            return;
        }
        if (*index < 0 || static_cast<std::uint64_t>(*index) >= m_references.size()) {
            if (m_made.outOfRange++ == 0)
                m_firstOutside = *index;
            return;
        }
        if (m_last && *index < *m_last)
            m_isRising = false;
        m_last = *index;
        take(static_cast<std::uint64_t>(*index), i);
    }

    void take(std::uint64_t sample, std::size_t i)
    {
        ++m_placed;
        std::int64_t& row = m_made.rowOf[sample];
        if (row >= 0) {
            const Row& first = m_file.rows[static_cast<std::size_t>(row)];
            const bool isEqual =
                first.text == m_file.rows[i].text && first.hasAnswer == m_file.rows[i].hasAnswer;
            ++(isEqual ? m_made.copies : m_made.conflicts);
            if (m_repeated.size() < shown)
                m_repeated.push_back(sample);
            return;
        }
        row = static_cast<std::int64_t>(i);
        const std::string& stated = m_file.rows[i].hash;
        Hash128 hash;
        if (!stated.empty() && !m_references.hashes.empty() && Hash128::parse(stated, hash)) {
            if (hash == m_references.hashes[sample]) {
                ++m_made.hashesEqual;
            } else if (m_made.hashesDiffer++ == 0) {
                m_firstForeign = sample;
            }
        }
    }

    void say()
    {
        const std::uint64_t repeated = m_made.copies + m_made.conflicts;
        if (m_made.hashesDiffer > 0)
            violated(fmt::format("{} rows state the hash of another sample, first at index {}",
                                 m_made.hashesDiffer, m_firstForeign));
        if (m_made.outOfRange > 0)
            violated(fmt::format("{} rows have an index outside 0 to {}, first {}",
                                 m_made.outOfRange, m_references.size() - 1, m_firstOutside));
        if (m_made.unknownIds > 0)
            violated(fmt::format("{} rows have an id that is not in the data, first {}",
                                 m_made.unknownIds, m_firstUnknown));
        if (repeated > 0)
            violated(
                fmt::format("{} of the rows {} a sample that has one already: {}; {}", repeated,
                            repeated == 1 ? "is for" : "are for", listed(m_repeated, repeated),
                            m_made.conflicts == 0
                                ? "they are equal copies, as a sampler that pads adds; counted once"
                                : fmt::format("{} of them differ from the first, which is kept",
                                              m_made.conflicts)));
        if (m_made.pads > 0) {
            m_made.findings.push_back(fmt::format(
                "{} padding {} removed{}", m_made.pads, m_made.pads == 1 ? "row" : "rows",
                m_padsInFront == m_made.pads && m_padsInFront > 0 && m_isRising
                    ? fmt::format(
                          "; rows marked −1 sort to the front: a program that keeps the first {} "
                          "rows loses the last {} samples",
                          m_references.size(), m_made.pads)
                    : ""));
        }
        if (m_made.placing == Placing::ByIndex && !m_isRising)
            m_made.notes.emplace_back(
                "the rows do not stand in index order; they were placed by their index");
    }
    void violated(std::string sentence)
    {
        m_made.verdict = align::Verdict::Misaligned;
        m_made.findings.push_back(std::move(sentence));
    }

    const ResultFile& m_file;
    const References& m_references;
    Analysis& m_made;
    std::unordered_map<std::string, std::uint64_t> m_byId;
    std::vector<std::int64_t> m_inOrder;
    std::vector<std::uint64_t> m_repeated;
    std::string m_firstUnknown;
    std::int64_t m_firstOutside = 0;
    std::uint64_t m_firstForeign = 0;
    std::optional<std::int64_t> m_last;
    std::size_t m_placed = 0;
    std::size_t m_padsInFront = 0;
    bool m_idsAreIndices = false;
    bool m_isRising = true;
};

std::vector<std::int64_t> repaired(const std::vector<std::int64_t>& tested,
                                   const align::OrderDiagnosis& diagnosis, std::uint64_t samples)
{
    std::vector<std::int64_t> rowOf(samples, -1);
    for (std::size_t i = 0; i < tested.size(); ++i) {
        const std::uint64_t sample = diagnosis.referenceOf[i];
        if (sample < samples && rowOf[sample] < 0)
            rowOf[sample] = tested[i];
    }
    return rowOf;
}

/// The predictions' classes and the labels' have nothing in common.
bool hasForeignLabels(const ResultFile& file, const References& references)
{
    if (references.kind != References::Kind::Labels)
        return false;
    std::unordered_set<std::string> labels;
    for (const auto& one : references.answers)
        labels.insert(one.begin(), one.end());
    return std::ranges::none_of(file.rows, [&](const Row& row) {
        return row.hasAnswer && labels.contains(plainLabel(row.text));
    });
}

} // namespace

Result<MetricList> metricsOf(const ResultFile& file, const References& references,
                             const std::vector<std::int64_t>& rowOf, metrics::Normalizer normalizer)
{
    const auto textAt = [&](std::size_t i) -> std::optional<std::string_view> {
        if (rowOf[i] < 0)
            return std::nullopt;
        const Row& row = file.rows[static_cast<std::size_t>(rowOf[i])];
        return row.hasAnswer ? std::optional<std::string_view>(row.text) : std::nullopt;
    };
    if (references.kind == References::Kind::Labels) {
        std::uint64_t right = 0;
        std::uint64_t total = 0;
        for (std::size_t i = 0; i < rowOf.size(); ++i) {
            if (references.answers[i].empty())
                continue;
            ++total;
            const auto text = textAt(i);
            right += text && std::ranges::find(references.answers[i], plainLabel(*text)) !=
                                 references.answers[i].end()
                         ? 1U
                         : 0U;
        }
        if (total == 0)
            return MetricList{};
        return MetricList{
            {"accuracy", 100.0 * static_cast<double>(right) / static_cast<double>(total)}};
    }
    const auto version =
        references.hasUnanswerable ? metrics::SquadVersion::V2 : metrics::SquadVersion::V1;
    metrics::AnswerScorer scorer(version, normalizer);
    std::vector<metrics::QuestionScore> scores;
    scores.reserve(rowOf.size());
    for (std::size_t i = 0; i < rowOf.size(); ++i) {
        std::vector<std::string_view> golds(references.answers[i].begin(),
                                            references.answers[i].end());
        if (auto added = scorer.addQuestion(fmt::format("{}", i), golds); !added)
            return fail(added.error());
        scores.push_back(scorer.score(i, textAt(i)));
    }
    auto totals = version == metrics::SquadVersion::V2 ? metrics::squadV2Totals(scores)
                                                       : metrics::squadV1Totals(scores);
    if (!totals)
        return fail(totals.error());
    if (!totals->all.exact)
        return MetricList{};
    return MetricList{{"exact_match", *totals->all.exact}, {"f1", *totals->all.f1}};
}

Result<Analysis> analyse(const ResultFile& file, const References& references,
                         const AnalysisOptions& options)
{
    Analysis made;
    Placer placer(file, references, made);
    if (auto placed = placer.run(); !placed)
        return fail(placed.error());
    const auto tested = placer.testedRows();
    const auto agreement = agreementOf(file, tested, references, options.normalizer);
    made.scan = align::shiftScan(agreement, options.shift);
    made.diagnosis = align::testOrder(agreement, references.orders);
    const std::uint64_t world = options.worldSize > 0          ? options.worldSize
                                : made.diagnosis.worldSize > 1 ? made.diagnosis.worldSize
                                                               : defaultWorld;
    made.matrix = align::crossMatrix(agreement, std::min<std::uint64_t>(world, 64),
                                     made.diagnosis.disorder == align::Disorder::RanksExchanged
                                         ? align::Share::Stride
                                         : align::Share::Block);
    made.repairedRowOf = made.diagnosis.disorder == align::Disorder::None ||
                                 made.diagnosis.disorder == align::Disorder::Shuffled
                             ? made.rowOf
                             : repaired(tested, made.diagnosis, references.size());
    auto before = metricsOf(file, references, made.rowOf, options.normalizer);
    auto after = made.repairedRowOf == made.rowOf
                     ? before
                     : metricsOf(file, references, made.repairedRowOf, options.normalizer);
    if (!before || !after)
        return fail(!before ? before.error() : after.error());
    made.before = std::move(*before);
    made.after = std::move(*after);

    if (!made.diagnosis.sentence.empty()) {
        made.verdict = align::Verdict::Misaligned;
        std::string sentence = made.diagnosis.sentence;
        if (made.placing != Placing::ByOrder)
            sentence = "placed by " + std::string(made.placing == Placing::ById ? "id" : "index") +
                       ", the predictions are out of order: " + sentence;
        if (!made.diagnosis.cause.empty())
            sentence += "; " + made.diagnosis.cause;
        made.findings.insert(made.findings.begin(), std::move(sentence));
    }
    const std::uint64_t missing = made.samples - made.covered;
    if (missing > 0) {
        std::string sentence = fmt::format("{} of {} samples have no row: {}", missing,
                                           made.samples, listed(made.missing, missing));
        if (made.verdict == align::Verdict::Unverified) {
            made.verdict = align::Verdict::Incomplete;
            made.findings.insert(made.findings.begin(), std::move(sentence));
        } else {
            made.findings.push_back(std::move(sentence));
        }
    }
    if (made.verdict == align::Verdict::Unverified && made.samples > 0 &&
        made.hashesEqual == made.samples)
        made.verdict = align::Verdict::Aligned;
    if (hasForeignLabels(file, references))
        made.findings.emplace_back("no prediction is one of the labels of the data: both number or "
                                   "name the classes differently");
    if (!made.scan.warning.empty())
        made.notes.push_back(made.scan.warning);
    if (!made.diagnosis.doubt.empty())
        made.notes.push_back(made.diagnosis.doubt);
    return made;
}

std::string verdictLine(const Analysis& analysis)
{
    std::string line =
        fmt::format("{} {}/{}", align::word(analysis.verdict), analysis.covered, analysis.samples);
    for (const auto& [key, value] : analysis.before)
        line += fmt::format("  {} {}",
                            key == "exact_match" ? "EM"
                            : key == "f1"        ? "F1"
                                                 : key,
                            percent(value));
    if (analysis.verdict == align::Verdict::Misaligned ||
        analysis.verdict == align::Verdict::Incomplete)
        line += "  " + analysis.findings.front();
    else if (analysis.verdict == align::Verdict::Unverified)
        line += analysis.diagnosis.isTestable
                    ? "  nothing speaks against the order; without hashes it is not proved"
                    : "  the order could not be tested";
    else
        line += "  every row states the hash of its sample";
    return line;
}

} // namespace muster::foreign
