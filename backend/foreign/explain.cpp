// SPDX-License-Identifier: Apache-2.0
#include "foreign/explain.h"

#include "align/dealing.h"
#include "metrics/answer_score.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace muster::foreign {

namespace {

constexpr std::size_t kept = 20;
constexpr std::uint64_t mostWorlds = 64;

using Values = std::vector<double>; // of the samples in data set order, 0..1

double mean(const Values& values)
{
    return values.empty() ? 0.0
                          : std::accumulate(values.begin(), values.end(), 0.0) /
                                static_cast<double>(values.size());
}

/// Collects procedures and keeps the nearest ones.
class Search final {
public:
    explicit Search(SeenNumber seen) { m_made.seen = std::move(seen); }

    void add(const std::string& metric, std::string sentence, double value, bool isRight = false)
    {
        if (!m_made.seen.name.empty() && shortName(metric) != shortName(m_made.seen.name))
            return;
        ++m_made.tried;
        const double percent = 100.0 * value;
        m_all.push_back(
            {metric, std::move(sentence), percent, std::abs(percent - m_made.seen.value), isRight});
    }
    /// Lower case without what stands between the letters.
    static std::string shortName(const std::string& name)
    {
        std::string made;
        for (const char c : name) {
            if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
                made += c;
            else if (c >= 'A' && c <= 'Z')
                made += static_cast<char>(c - 'A' + 'a');
        }
        return made == "exactmatch" ? "em" : made == "acc" ? "accuracy" : made;
    }
    Explanation take(double tolerance)
    {
        std::ranges::stable_sort(m_all, [](const Procedure& a, const Procedure& b) {
            return a.distance != b.distance ? a.distance < b.distance : a.isRight > b.isRight;
        });
        m_made.tolerance = tolerance;
        for (const bool isRight : {true, false}) {
            for (const Procedure& one : m_all) {
                if (one.isRight == isRight && one.distance <= tolerance &&
                    m_made.matches.size() < kept)
                    m_made.matches.push_back(one);
            }
        }
        for (const Procedure& one : m_all) {
            if (m_made.nearest.size() < kept)
                m_made.nearest.push_back(one);
        }
        return std::move(m_made);
    }

private:
    Explanation m_made;
    std::vector<Procedure> m_all;
};

/// Everything that is a mean of per-sample values in some order and share.
void addMeans(Search& search, const std::string& metric, const Values& values,
              const std::string& suffix)
{
    const std::uint64_t total = values.size();
    if (total == 0)
        return;
    const auto padded = [&](std::uint64_t world) { return (total + world - 1) / world; };
    for (std::uint64_t world = 2; world <= std::min(mostWorlds, total); ++world) {
        // Mean of the ranks' means, strided with the sampler's copies.
        double sum = 0.0;
        double counted = 0.0;
        for (std::uint64_t rank = 0; rank < world; ++rank) {
            double own = 0.0;
            for (std::uint64_t i = 0; i < padded(world); ++i)
                own += values[(i * world + rank) % total];
            sum += own / static_cast<double>(padded(world));
            counted += own;
        }
        const std::uint64_t copies = padded(world) * world - total;
        if (copies > 0) {
            search.add(metric,
                       fmt::format("padding counted: world size {}, {} {} of the first samples "
                                   "scored again{}",
                                   world, copies, copies == 1 ? "copy" : "copies", suffix),
                       sum / static_cast<double>(world));
            // Pads marked −1 sort first; the first N rows are kept.
            double lost = 0.0;
            for (std::uint64_t i = 0; i + copies < total; ++i)
                lost += values[i];
            for (std::uint64_t i = 0; i < copies; ++i)
                lost += values[i];
            search.add(metric,
                       fmt::format("copies sorted to the front and the first N rows kept: world "
                                   "size {}, the last {} samples are lost{}",
                                   world, copies, suffix),
                       lost / static_cast<double>(total));
        }
        // Mean over ranks without copies, strided and in blocks.
        double stride = 0.0;
        double block = 0.0;
        for (std::uint64_t rank = 0; rank < world; ++rank) {
            double own = 0.0;
            std::uint64_t count = 0;
            for (std::uint64_t i = rank; i < total; i += world, ++count)
                own += values[i];
            stride += own / static_cast<double>(count);
            const std::uint64_t first = align::blockStart(total, world, rank);
            const std::uint64_t end = align::blockStart(total, world, rank + 1);
            double inBlock = 0.0;
            for (std::uint64_t i = first; i < end; ++i)
                inBlock += values[i];
            block += inBlock / static_cast<double>(end - first);
        }
        search.add(metric,
                   fmt::format("mean of the means of {} ranks (strided shares){}", world, suffix),
                   stride / static_cast<double>(world));
        search.add(metric,
                   fmt::format("mean of the means of {} ranks (block shares){}", world, suffix),
                   block / static_cast<double>(world));
        // Blocks evened out with the last sample.
        const std::uint64_t share = padded(world);
        if (copies > 0) {
            double last = 0.0;
            for (const double value : values)
                last += value;
            last += static_cast<double>(share * world - total) * values.back();
            search.add(metric,
                       fmt::format("padding counted: world size {}, the last sample {} times "
                                   "more{}",
                                   world, copies, suffix),
                       last / static_cast<double>(share * world));
        }
    }
    for (std::uint64_t batch = 2; batch <= std::min<std::uint64_t>(1024, total - 1); batch *= 2) {
        double sum = 0.0;
        std::uint64_t batches = 0;
        for (std::uint64_t first = 0; first < total; first += batch, ++batches) {
            const std::uint64_t end = std::min(first + batch, total);
            double own = 0.0;
            for (std::uint64_t i = first; i < end; ++i)
                own += values[i];
            sum += own / static_cast<double>(end - first);
        }
        search.add(metric,
                   fmt::format("mean of the means of batches of {} (the last one is smaller){}",
                               batch, suffix),
                   sum / static_cast<double>(batches));
    }
}

struct PairValues {
    Values em;
    Values f1;
};

Result<PairValues> scoresOf(const ResultFile& file, const References& references,
                            const std::vector<std::int64_t>& rowOf, metrics::SquadVersion version,
                            metrics::Normalizer normalizer, bool isFirstOnly)
{
    metrics::AnswerScorer scorer(version, normalizer);
    PairValues made;
    for (std::size_t i = 0; i < rowOf.size(); ++i) {
        std::vector<std::string_view> golds(references.answers[i].begin(),
                                            references.answers[i].end());
        if (isFirstOnly && golds.size() > 1)
            golds.resize(1);
        if (auto added = scorer.addQuestion(fmt::format("{}", i), golds); !added)
            return fail(added.error());
        std::optional<std::string_view> text;
        if (rowOf[i] >= 0 && file.rows[static_cast<std::size_t>(rowOf[i])].hasAnswer)
            text = file.rows[static_cast<std::size_t>(rowOf[i])].text;
        const auto score = scorer.score(i, text);
        made.em.push_back(score.em);
        made.f1.push_back(score.f1);
    }
    return made;
}

std::vector<std::int64_t> moved(const std::vector<std::int64_t>& rowOf, std::int64_t shift)
{
    std::vector<std::int64_t> made(rowOf.size(), -1);
    for (std::size_t i = 0; i < rowOf.size(); ++i) {
        const std::int64_t from = static_cast<std::int64_t>(i) + shift;
        if (from >= 0 && from < static_cast<std::int64_t>(rowOf.size()))
            made[i] = rowOf[static_cast<std::size_t>(from)];
    }
    return made;
}

Status addAnswers(Search& search, const ResultFile& file, const References& references,
                  const Analysis& analysis, metrics::Normalizer normalizer)
{
    using metrics::Normalizer;
    using metrics::SquadVersion;
    const SquadVersion right = references.hasUnanswerable ? SquadVersion::V2 : SquadVersion::V1;
    const auto versionName = [](SquadVersion version) {
        return version == SquadVersion::V1 ? "SQuAD 1.1 rules" : "SQuAD 2.0 rules";
    };
    const auto both = [&](const std::string& sentence, const PairValues& values, bool isRight) {
        search.add("EM", sentence, mean(values.em), isRight);
        search.add("F1", sentence, mean(values.f1), isRight);
    };
    auto correct = scoresOf(file, references, analysis.rowOf, right, normalizer, false);
    if (!correct)
        return fail(correct.error());
    both(fmt::format("{}, {}, the rows as they stand", versionName(right),
                     metrics::normalizerName(normalizer)),
         *correct, true);
    for (const SquadVersion version : {SquadVersion::V1, SquadVersion::V2}) {
        for (const Normalizer other :
             {Normalizer::SquadEn1, Normalizer::ZhMixed1, Normalizer::SquadExtended1}) {
            for (const bool isFirstOnly : {false, true}) {
                if (version == right && other == normalizer && !isFirstOnly)
                    continue;
                auto values =
                    scoresOf(file, references, analysis.rowOf, version, other, isFirstOnly);
                if (!values)
                    return fail(values.error());
                both(fmt::format("{}, normaliser {}{}", versionName(version),
                                 metrics::normalizerName(other),
                                 isFirstOnly ? ", the first reference only" : ""),
                     *values, false);
            }
        }
    }
    Values raw;
    Values answered;
    PairValues present;
    PairValues answerable;
    for (std::size_t i = 0; i < references.size(); ++i) {
        const std::int64_t at = analysis.rowOf[i];
        const Row* row = at < 0 ? nullptr : &file.rows[static_cast<std::size_t>(at)];
        const auto& golds = references.answers[i];
        raw.push_back(row != nullptr && row->hasAnswer &&
                              (golds.empty() ? row->text.empty()
                                             : std::ranges::find(golds, row->text) != golds.end())
                          ? 1.0
                          : 0.0);
        if (row != nullptr && row->hasAnswer) {
            present.em.push_back(correct->em[i]);
            present.f1.push_back(correct->f1[i]);
        }
        if (!golds.empty()) {
            answerable.em.push_back(correct->em[i]);
            answerable.f1.push_back(correct->f1[i]);
        }
    }
    search.add("EM", "texts compared without a normaliser", mean(raw));
    if (present.em.size() != references.size())
        both("samples without a prediction left out of the total", present, false);
    if (answerable.em.size() != references.size())
        both("questions with an answer only (HasAns)", answerable, false);
    addMeans(search, "EM", correct->em, "");
    addMeans(search, "F1", correct->f1, "");
    for (const std::int64_t shift : {-3, -2, -1, 1, 2, 3}) {
        auto values =
            scoresOf(file, references, moved(analysis.rowOf, shift), right, normalizer, false);
        if (!values)
            return fail(values.error());
        both(fmt::format("every prediction {} {} {}", std::abs(shift),
                         std::abs(shift) == 1 ? "place" : "places", shift < 0 ? "late" : "early"),
             *values, false);
    }
    if (analysis.repairedRowOf != analysis.rowOf) {
        auto values = scoresOf(file, references, analysis.repairedRowOf, right, normalizer, false);
        if (!values)
            return fail(values.error());
        both("the rows put in order: " + analysis.diagnosis.sentence, *values, true);
        addMeans(search, "EM", values->em, ", the rows put in order");
        addMeans(search, "F1", values->f1, ", the rows put in order");
    }
    return {};
}

struct Confusion {
    std::map<std::string, std::uint64_t> gold;
    std::map<std::string, std::uint64_t> predicted;
    std::map<std::string, std::uint64_t> right;
    std::uint64_t total = 0;

    void add(const std::string& label, const std::string& prediction)
    {
        ++gold[label];
        ++predicted[prediction];
        gold.try_emplace(prediction, 0);
        predicted.try_emplace(label, 0);
        right[label] += label == prediction ? 1U : 0U;
        ++total;
    }
    [[nodiscard]] double recall(const std::string& label) const
    {
        const auto count = gold.at(label);
        const auto hits = right.find(label);
        return count == 0 || hits == right.end()
                   ? 0.0
                   : static_cast<double>(hits->second) / static_cast<double>(count);
    }
    [[nodiscard]] double precision(const std::string& label) const
    {
        const auto count = predicted.at(label);
        const auto hits = right.find(label);
        return count == 0 || hits == right.end()
                   ? 0.0
                   : static_cast<double>(hits->second) / static_cast<double>(count);
    }
    [[nodiscard]] double f1(const std::string& label) const
    {
        const double p = precision(label);
        const double r = recall(label);
        return p + r == 0.0 ? 0.0 : 2.0 * p * r / (p + r);
    }
    [[nodiscard]] double macro(double (Confusion::*one)(const std::string&) const) const
    {
        double sum = 0.0;
        for (const auto& [label, count] : gold)
            sum += (this->*one)(label);
        return gold.empty() ? 0.0 : sum / static_cast<double>(gold.size());
    }
    [[nodiscard]] double weightedF1() const
    {
        double sum = 0.0;
        for (const auto& [label, count] : gold)
            sum += f1(label) * static_cast<double>(count);
        return total == 0 ? 0.0 : sum / static_cast<double>(total);
    }
};

void addLabels(Search& search, const ResultFile& file, const References& references,
               const std::vector<std::int64_t>& rowOf, const std::string& suffix, bool isRight)
{
    Confusion all;
    Values hits;
    std::vector<std::pair<std::string, std::string>> pairs;
    for (std::size_t i = 0; i < references.size(); ++i) {
        if (references.answers[i].empty())
            continue;
        const std::int64_t at = rowOf[i];
        const Row* row = at < 0 ? nullptr : &file.rows[static_cast<std::size_t>(at)];
        const std::string prediction =
            row != nullptr && row->hasAnswer ? plainLabel(row->text) : std::string();
        const std::string& label = references.answers[i].front();
        all.add(label, prediction);
        pairs.emplace_back(label, prediction);
        hits.push_back(label == prediction ? 1.0 : 0.0);
    }
    search.add("accuracy", "accuracy over all samples (micro F1)" + suffix, mean(hits), isRight);
    search.add("macro F1", "mean of the classes' F1 (macro)" + suffix, all.macro(&Confusion::f1));
    search.add("weighted F1", "F1 of the classes weighted by their samples" + suffix,
               all.weightedF1());
    search.add("balanced accuracy", "mean of the classes' recall (balanced accuracy)" + suffix,
               all.macro(&Confusion::recall));
    search.add("macro precision", "mean of the classes' precision" + suffix,
               all.macro(&Confusion::precision));
    for (const auto& [label, count] : all.gold) {
        if (count == 0 || all.gold.size() > 50)
            continue;
        search.add("F1", fmt::format("F1 of the class {}{}", label, suffix), all.f1(label));
        search.add("accuracy", fmt::format("recall of the class {}{}", label, suffix),
                   all.recall(label));
        search.add("precision", fmt::format("precision of the class {}{}", label, suffix),
                   all.precision(label));
    }
    for (std::size_t batch = 2; batch <= std::min<std::size_t>(1024, pairs.size()); ++batch) {
        if (batch > 4 && (batch & (batch - 1)) != 0)
            continue;
        double sum = 0.0;
        std::size_t batches = 0;
        for (std::size_t first = 0; first < pairs.size(); first += batch, ++batches) {
            Confusion part;
            for (std::size_t i = first; i < std::min(first + batch, pairs.size()); ++i)
                part.add(pairs[i].first, pairs[i].second);
            sum += part.macro(&Confusion::f1);
        }
        search.add("macro F1",
                   fmt::format("mean of the macro F1 of batches of {}{}", batch, suffix),
                   sum / static_cast<double>(std::max<std::size_t>(batches, 1)));
    }
    addMeans(search, "accuracy", hits, suffix);
}

nlohmann::ordered_json procedureJson(const Procedure& one)
{
    return {{"metric", one.metric},
            {"procedure", one.sentence},
            {"value", one.value},
            {"distance", one.distance},
            {"right", one.isRight}};
}

} // namespace

Result<Explanation> explain(const ResultFile& file, const References& references,
                            const AnalysisOptions& options, SeenNumber seen)
{
    if (!std::isfinite(seen.value) || seen.value < 0.0)
        return fail(Error::Kind::Usage, "E-FOREIGN-017", "--metric wants a number from 0 to 100");
    if (!seen.name.empty()) {
        const std::string name = Search::shortName(seen.name);
        if (name != "em" && name != "f1" && name != "accuracy" && name != "macrof1" &&
            name != "weightedf1" && name != "balancedaccuracy")
            return fail(Error::Kind::Usage, "E-FOREIGN-017",
                        fmt::format("'{}' is none of em, f1, accuracy, macro-f1, weighted-f1, "
                                    "balanced-accuracy",
                                    seen.name));
    }
    const bool isFraction = seen.value <= 1.0;
    if (isFraction)
        seen.value *= 100.0;
    auto analysis = analyse(file, references, options);
    if (!analysis)
        return fail(analysis.error());
    // What rounding leaves: half a unit of the last digit, found from the shortest decimal.
    const std::string digits = fmt::format("{}", isFraction ? seen.value / 100.0 : seen.value);
    const std::size_t point = digits.find('.');
    const std::size_t places = point == std::string::npos ? 0 : digits.size() - point - 1;
    const double unit = std::pow(10.0, -static_cast<double>(places)) * (isFraction ? 100.0 : 1.0);
    const double tolerance = std::max(0.5 * unit, 1e-9) * (1.0 + 1e-9) + 1e-9;

    Search search(seen);
    if (references.kind == References::Kind::Labels) {
        addLabels(search, file, references, analysis->rowOf, "", true);
        for (const std::int64_t shift : {-1, 1}) {
            addLabels(search, file, references, moved(analysis->rowOf, shift),
                      shift < 0 ? ", every prediction one place late"
                                : ", every prediction one place early",
                      false);
        }
        if (analysis->repairedRowOf != analysis->rowOf)
            addLabels(search, file, references, analysis->repairedRowOf, ", the rows put in order",
                      true);
    } else if (auto added = addAnswers(search, file, references, *analysis, options.normalizer);
               !added) {
        return fail(added.error());
    }
    Explanation made = search.take(tolerance);
    if (made.matches.empty())
        made.conclusion = fmt::format(
            "none of the {} procedures gives {}; the nearest is {:.4f}: {}", made.tried,
            made.seen.value, made.nearest.empty() ? 0.0 : made.nearest.front().value,
            made.nearest.empty() ? std::string("nothing") : made.nearest.front().sentence);
    else if (const auto right = std::ranges::find_if(made.matches, &Procedure::isRight);
             right != made.matches.end())
        made.conclusion = fmt::format("{} is right: {} {:.4f}, {}", made.seen.value, right->metric,
                                      right->value, right->sentence);
    else
        made.conclusion =
            fmt::format("{} is {}: {} ({:.4f})", made.seen.value, made.matches.front().metric,
                        made.matches.front().sentence, made.matches.front().value);
    return made;
}

std::string explanationJson(const Explanation& explanation)
{
    nlohmann::ordered_json made;
    made["seen"] = explanation.seen.value;
    made["metric"] = explanation.seen.name;
    made["tolerance"] = explanation.tolerance;
    made["tried"] = explanation.tried;
    made["conclusion"] = explanation.conclusion;
    made["matches"] = nlohmann::ordered_json::array();
    for (const Procedure& one : explanation.matches)
        made["matches"].push_back(procedureJson(one));
    made["nearest"] = nlohmann::ordered_json::array();
    for (const Procedure& one : explanation.nearest)
        made["nearest"].push_back(procedureJson(one));
    return made.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string explanationText(const Explanation& explanation)
{
    std::string text =
        fmt::format("{} procedures tried; within {:.4g} of {}: {}\n", explanation.tried,
                    explanation.tolerance, explanation.seen.value, explanation.matches.size());
    constexpr std::size_t shown = 8;
    const auto& list = explanation.matches.empty() ? explanation.nearest : explanation.matches;
    for (std::size_t i = 0; i < std::min(shown, list.size()); ++i)
        text += fmt::format("  {:>8.4f}  {}: {}{}\n", list[i].value, list[i].metric,
                            list[i].sentence, list[i].isRight ? "  (right)" : "");
    return text + explanation.conclusion + '\n';
}

} // namespace muster::foreign
