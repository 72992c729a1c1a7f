// SPDX-License-Identifier: Apache-2.0
#include "run/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace muster::run {

namespace {

/// Settings that change numbers and may differ all the same, and why.
struct Exception {
    std::string_view key;
    DifferenceEffect effect;
};
constexpr std::array<Exception, 20> exceptions{{
    {"model.dtype", DifferenceEffect::Compared},
    {"model.group_size", DifferenceEffect::Compared},
    {"plan.unit_tokens", DifferenceEffect::Compared},
    {"plan.unit_items", DifferenceEffect::Compared},
    {"qa.null_threshold", DifferenceEffect::Compared},
    {"classification.threshold", DifferenceEffect::Compared},
    {"lm.token_losses", DifferenceEffect::Intervals},
    {"classification.bins", DifferenceEffect::Intervals},
    {"metrics.bootstrap", DifferenceEffect::Intervals},
    {"metrics.seed", DifferenceEffect::Intervals},
    {"metrics.confidence", DifferenceEffect::Intervals},
    {"data.limit", DifferenceEffect::Content},
    {"data.subset", DifferenceEffect::Content},
    {"classification.text_field", DifferenceEffect::Content},
    {"classification.pair_field", DifferenceEffect::Content},
    {"classification.label_field", DifferenceEffect::Content},
    {"classification.id_field", DifferenceEffect::Content},
    {"classification.group_field", DifferenceEffect::Intervals},
    {"classification.header", DifferenceEffect::Content},
    {"classification.delimiter", DifferenceEffect::Content},
}};

DifferenceEffect effectOf(const config::Setting& setting)
{
    if (setting.key == "model.path")
        return DifferenceEffect::Compared;
    for (const Exception& one : exceptions)
        if (one.key == setting.key)
            return one.effect;
    switch (setting.effect) {
    case config::Effect::Speed:
        return DifferenceEffect::Speed;
    case config::Effect::Content:
        return DifferenceEffect::Content;
    case config::Effect::Numbers:
        break;
    }
    return DifferenceEffect::Blocks;
}

/// Whether a setting belongs to a task at all; those of other tasks change nothing.
bool concerns(const config::Setting& setting, const config::RunConfig& config)
{
    const std::string_view section = setting.section();
    if (section == "qa")
        return config.task == config::Task::Qa;
    if (section == "lm")
        return config.task == config::Task::Lm;
    if (section == "classification")
        return config.task == config::Task::Classification;
    return setting.key != "model.group_size" || config.model.dtype == config::Dtype::Int4;
}

/// Settings that only say where things lie and how they are watched.
bool isIncidental(std::string_view key)
{
    return key == "output" || key == "name" || key == "schema" || key == "gates" || key == "inject";
}

/// What a person calls a setting in the sentence of a refusal.
std::string plainName(std::string_view key)
{
    if (key == "lm.max_length" || key == "qa.max_seq_length" || key == "classification.max_length")
        return "window";
    if (key == "lm.stride" || key == "qa.doc_stride")
        return "stride";
    if (key == "lm.protocol")
        return "protocol";
    if (key == "lm.bos")
        return "prefix token";
    if (key == "qa.normalizer")
        return "normaliser";
    if (key == "qa.rules")
        return "scoring rules";
    if (key == "qa.abstentions")
        return "abstention texts";
    if (key == "task")
        return "task";
    return std::string(key);
}

std::string shown(const config::Setting& setting, const config::RunConfig& config)
{
    std::string text = config::tomlText(setting.get(config));
    return text.empty() ? std::string("(none)") : text;
}

/// Numbers things in the order in which they are first seen.
class Numbering final {
public:
    std::uint64_t of(const std::string& key)
    {
        return m_numbers.try_emplace(key, m_numbers.size()).first->second;
    }
    [[nodiscard]] std::size_t size() const { return m_numbers.size(); }

private:
    std::unordered_map<std::string, std::uint64_t> m_numbers;
};

const report::Metric* metricOf(const report::RunResult& result, std::string_view key)
{
    for (const report::Metric& one : result.metrics)
        if (one.key == key)
            return &one;
    return nullptr;
}

bool isLowerBetter(std::string_view key)
{
    return key.ends_with("perplexity") || key.starts_with("bits_per_") || key == "loss" ||
           key.ends_with("log_loss") || key.starts_with("brier") ||
           key.find("calibration") != std::string_view::npos || key == "ece" ||
           key == "hamming_loss";
}

/// The columns of two runs over the samples that are complete in both.
struct Paired {
    std::vector<std::size_t> at; ///< sample indices
    std::vector<std::uint64_t> groups;
    std::uint64_t clusters = 0; ///< 0: samples count as independent
};

std::vector<double> picked(const std::vector<double>& column, const Paired& paired, double factor)
{
    std::vector<double> values;
    values.reserve(paired.at.size());
    for (const std::size_t i : paired.at)
        values.push_back(factor * column[i]);
    return values;
}

Paired pairOf(const ComparedRun& a, const ComparedRun& b)
{
    Paired paired;
    const std::size_t n = std::min(a.isComplete.size(), b.isComplete.size());
    std::unordered_map<std::uint64_t, std::uint64_t> groups;
    for (std::size_t i = 0; i < n; ++i) {
        if (a.isComplete[i] == 0 || b.isComplete[i] == 0)
            continue;
        paired.at.push_back(i);
        if (!a.groups.empty()) {
            paired.groups.push_back(a.groups[i]);
            groups.emplace(a.groups[i], 0);
        }
    }
    if (groups.size() > 1 && groups.size() < paired.at.size())
        paired.clusters = groups.size();
    return paired;
}

void setReading(MetricDifference& made, bool isEqual)
{
    if (isEqual) {
        made.reading = Reading::Equal;
        return;
    }
    if (!made.pValue || !made.difference)
        return;
    if (*made.pValue >= 1.0 - made.confidence) {
        made.reading = Reading::WithinNoise;
        return;
    }
    const bool isHigher = *made.difference > 0.0;
    made.reading = isHigher == made.isLowerBetter ? Reading::Worse : Reading::Better;
}

/// Difference of a metric that is the mean of per-sample values, in percent when `factor` is 100.
void testMeans(MetricDifference& made, const std::vector<double>& columnA,
               const std::vector<double>& columnB, double factor, const Paired& paired,
               const CompareOptions& options, const metrics::McNemar* flips)
{
    const std::vector<double> a = picked(columnA, paired, factor);
    const std::vector<double> b = picked(columnB, paired, factor);
    made.samples = a.size();
    const auto tested = paired.clusters > 0
                            ? metrics::pairedTByGroup(a, b, paired.groups, options.confidence)
                            : metrics::pairedT(a, b, options.confidence);
    if (!tested) {
        made.reason = tested.error().message;
        setReading(made, a == b);
        return;
    }
    made.difference = tested->difference.value;
    made.low = tested->difference.low;
    made.high = tested->difference.high;
    made.clusters = paired.clusters;
    made.pValue = tested->pValue;
    made.test = tested->method;
    if (flips != nullptr && paired.clusters == 0) {
        made.pValue = flips->pValue;
        made.test = "exact McNemar; interval: " + tested->method;
    }
    if (options.bootstrap >= 2 && paired.clusters == 0 && a.size() <= 200000) {
        metrics::BootstrapOptions drawing;
        drawing.replicates = options.bootstrap;
        drawing.seed = options.seed;
        drawing.confidence = options.confidence;
        if (const auto drawn = metrics::pairedBootstrap(a, b, drawing)) {
            made.bootstrapLow = drawn->difference.low;
            made.bootstrapHigh = drawn->difference.high;
            made.bootstrapMethod = drawn->method;
        }
    }
    setReading(made, a == b);
}

/// Perplexity and loss, from the windows of both.
void testLosses(MetricDifference& made, const ComparedRun& a, const ComparedRun& b,
                const Paired& paired, const CompareOptions& options)
{
    std::vector<metrics::LossRow> rowsA;
    std::vector<metrics::LossRow> rowsB;
    bool isEqual = true;
    for (const std::size_t i : paired.at) {
        rowsA.push_back(a.windows[i]);
        rowsB.push_back(b.windows[i]);
        isEqual = isEqual && a.windows[i] == b.windows[i];
    }
    made.samples = rowsA.size();
    const auto ratio = metrics::perplexityRatio(rowsA, rowsB, options.confidence);
    if (!ratio) {
        made.reason = ratio.error().message;
        setReading(made, isEqual && !rowsA.empty());
        return;
    }
    made.clusters = paired.clusters;
    made.pValue = ratio->pValue;
    made.test = ratio->method;
    if (made.key == "perplexity") {
        made.ratio = ratio->ratio;
        if (made.a && std::isfinite(*made.a)) {
            made.low = *made.a * (ratio->ratio.low - 1.0);
            made.high = *made.a * (ratio->ratio.high - 1.0);
        }
    } else {
        made.difference = ratio->lnRatio;
        made.low = std::log(ratio->ratio.low);
        made.high = std::log(ratio->ratio.high);
    }
    setReading(made, isEqual);
}

void addFlips(PairComparison& pair, const ComparedRun& a, const ComparedRun& b,
              const Paired& paired)
{
    Flips flips;
    flips.label = a.config.task == config::Task::Qa ? "EM" : "accuracy";
    std::vector<std::uint8_t> rightA;
    std::vector<std::uint8_t> rightB;
    for (const std::size_t i : paired.at) {
        rightA.push_back(a.em[i] > 0.5 ? 1 : 0);
        rightB.push_back(b.em[i] > 0.5 ? 1 : 0);
        if (rightA.back() > rightB.back())
            flips.onlyA.push_back(i);
        if (rightB.back() > rightA.back())
            flips.onlyB.push_back(i);
    }
    if (const auto table = metrics::mcNemar(rightA, rightB)) {
        flips.table = *table;
        pair.flips = std::move(flips);
    }
}

void addTokenChanges(Changes& changes, const ComparedRun& a, const ComparedRun& b,
                     double confidence)
{
    if (a.tokenLosses.empty() || a.firstToken != b.firstToken)
        return;
    changes.tokens = a.tokenLosses.size();
    for (std::size_t i = 0; i < a.tokenLosses.size(); ++i) {
        const double apart =
            std::abs(static_cast<double>(a.tokenLosses[i]) - static_cast<double>(b.tokenLosses[i]));
        changes.tokenLosses += apart != 0.0 ? 1U : 0U;
        changes.greatestTokenLoss = std::max(changes.greatestTokenLoss, apart);
    }
    if (const auto ratio =
            metrics::perplexityRatioOfTokens(a.tokenLosses, b.tokenLosses, confidence))
        changes.byTokens = *ratio;
}

void addChanges(PairComparison& pair, const ComparedRun& a, const ComparedRun& b,
                const Paired& paired, double confidence)
{
    Changes changes;
    changes.samples = paired.at.size();
    const bool isLm = !a.windows.empty();
    changes.hasScores = !a.em.empty();
    changes.hasLosses = isLm || !a.losses.empty();
    const std::size_t classes =
        a.probabilities.size() == b.probabilities.size() && !a.isComplete.empty()
            ? a.probabilities.size() / a.isComplete.size()
            : 0;
    for (const std::size_t i : paired.at) {
        bool isOther = false;
        if (!isLm && a.predictions[i] != b.predictions[i]) {
            ++changes.texts;
            isOther = true;
        }
        if (changes.hasScores)
            changes.scores += a.em[i] != b.em[i] || (!a.f1.empty() && a.f1[i] != b.f1[i]) ? 1U : 0U;
        double apart = 0.0;
        if (isLm) {
            const double tokens =
                static_cast<double>(std::max<std::uint64_t>(1, a.windows[i].tokens));
            apart = std::abs(a.windows[i].nllNats - b.windows[i].nllNats) / tokens;
        } else if (changes.hasLosses) {
            apart = std::abs(a.losses[i] - b.losses[i]);
        }
        if (!(apart == 0.0)) {
            ++changes.losses;
            isOther = true;
            if (apart > changes.greatestLoss) {
                changes.greatestLoss = apart;
                changes.greatestAt = i;
            }
        }
        for (std::size_t c = 0; c < classes; ++c)
            changes.greatestProbability =
                std::max(changes.greatestProbability, std::abs(a.probabilities[i * classes + c] -
                                                               b.probabilities[i * classes + c]));
        if (isOther)
            changes.indices.push_back(i);
    }
    addTokenChanges(changes, a, b, confidence);
    pair.changes = std::move(changes);
}

void addReasons(PairComparison& pair, const ComparedRun& a, const ComparedRun& b)
{
    if (a.config.task != b.config.task) {
        pair.reasons.push_back(fmt::format("task: {} and {}", a.result->task, b.result->task));
        return;
    }
    if (a.result->dataDigest != b.result->dataDigest)
        pair.reasons.push_back(
            fmt::format("data: {} samples with digest {} and {} samples with digest {}",
                        a.result->samples, a.result->dataDigest.hex().substr(0, 8),
                        b.result->samples, b.result->dataDigest.hex().substr(0, 8)));
    for (const config::Setting& setting : config::settings()) {
        if (!concerns(setting, a.config) || effectOf(setting) != DifferenceEffect::Blocks)
            continue;
        const std::string first = shown(setting, a.config);
        const std::string second = shown(setting, b.config);
        if (first != second)
            pair.reasons.push_back(fmt::format("{} ({}): {} and {}", plainName(setting.key),
                                               setting.key, first, second));
    }
    for (const ComparedRun* run : {&a, &b})
        if (run->result->verdict == align::Verdict::Misaligned)
            pair.reasons.push_back(
                fmt::format("{} is MISALIGNED: {}", run->result->runId, run->result->sentence));
}

/// Whether the samples of both are the same ones; the digest says so for data, not for windows.
void checkSamples(PairComparison& pair, const ComparedRun& a, const ComparedRun& b)
{
    const bool isLm = a.config.task == config::Task::Lm;
    bool isSame = a.isComplete.size() == b.isComplete.size();
    for (std::size_t i = 0; isSame && i < a.isComplete.size(); ++i) {
        isSame = a.hashes[i] == b.hashes[i];
        if (isLm)
            isSame = isSame && a.windows[i].document == b.windows[i].document &&
                     (a.isComplete[i] == 0 || b.isComplete[i] == 0 ||
                      a.windows[i].tokens == b.windows[i].tokens);
    }
    if (isSame)
        return;
    pair.reasons.push_back(
        isLm ? fmt::format("tokens: the windows of {} and {} score other tokens, because another "
                           "tokenizer cuts the texts; only figures per word, byte and character "
                           "mean the same",
                           a.result->runId, b.result->runId)
             : std::string("samples: the two runs hold other samples at the same places"));
}

void addNotes(PairComparison& pair, const ComparedRun& a, const ComparedRun& b,
              const Paired& paired)
{
    const std::uint64_t n = a.isComplete.size();
    if (paired.at.size() < n)
        pair.notes.push_back(fmt::format(
            "{} of {} samples are missing in one of the runs; differences and tests are over the "
            "{} that both have, the runs' own figures are not",
            n - paired.at.size(), n, paired.at.size()));
    if (a.result->modelDigest != b.result->modelDigest)
        pair.notes.emplace_back("the models differ: they are what is compared");
    else if (a.result->dtype != b.result->dtype)
        pair.notes.push_back(fmt::format("the same model in {} and {}: the precisions are what is "
                                         "compared",
                                         a.result->dtype, b.result->dtype));
    else if (a.result->planDigest != b.result->planDigest)
        pair.notes.emplace_back("the units are packed differently, which may move the last bits");
    if (!a.result->kernels.empty() && !b.result->kernels.empty() &&
        a.result->kernels != b.result->kernels)
        pair.notes.emplace_back("the runs computed with other kernels, which may move the last "
                                "bits");
    std::uint64_t targets = 0;
    for (std::size_t i = 0; i < std::min(a.targets.size(), b.targets.size()); ++i)
        targets += a.targets[i] == b.targets[i] ? 0U : 1U;
    if (targets > 0)
        pair.notes.push_back(
            fmt::format("{} samples have reference labels of other names: the models call their "
                        "classes differently, so labels count as changed",
                        targets));
    if (a.config.task == config::Task::Lm && a.config.lm.protocol == config::LmProtocol::HfDoc)
        pair.notes.emplace_back("hf-doc weights windows in its own way; the test is over the "
                                "token-weighted losses");
}

void addMetrics(PairComparison& pair, const ComparedRun& a, const ComparedRun& b,
                const Paired& paired, const CompareOptions& options)
{
    for (const report::Metric& metric : a.result->metrics) {
        const report::Metric* other = metricOf(*b.result, metric.key);
        if (other == nullptr || metric.key == "llama_cpp_error")
            continue;
        MetricDifference made;
        made.key = metric.key;
        made.label = metric.label;
        made.unit = metric.unit;
        made.decimals = metric.decimals;
        made.isLowerBetter = isLowerBetter(metric.key);
        made.confidence = options.confidence;
        made.a = metric.value;
        made.b = other->value;
        if (made.a && made.b && std::isfinite(*made.a) && std::isfinite(*made.b))
            made.difference = *made.b - *made.a;
        if (!metric.value || !other->value)
            made.reason = metric.value ? other->reason : metric.reason;
        if (!pair.isComparable()) {
            made.reason = "not comparable";
        } else if ((metric.key == "exact_match" || metric.key == "accuracy") && !a.em.empty()) {
            testMeans(made, a.em, b.em, 100.0, paired, options,
                      pair.flips ? &pair.flips->table : nullptr);
        } else if (metric.key == "f1" && !a.f1.empty()) {
            testMeans(made, a.f1, b.f1, 100.0, paired, options, nullptr);
        } else if (metric.key == "log_loss" && !a.losses.empty() && !b.losses.empty()) {
            testMeans(made, a.losses, b.losses, 1.0, paired, options, nullptr);
        } else if ((metric.key == "perplexity" || metric.key == "loss") && !a.windows.empty()) {
            testLosses(made, a, b, paired, options);
        } else if (made.a && made.b && *made.a == *made.b) {
            made.reading = Reading::Equal;
        } else if (made.reason.empty()) {
            made.reason = "no mean over samples: no paired test";
        }
        pair.metrics.push_back(std::move(made));
    }
}

} // namespace

std::string_view effectName(DifferenceEffect effect)
{
    switch (effect) {
    case DifferenceEffect::Speed:
        return "changes no number";
    case DifferenceEffect::Compared:
        return "is compared";
    case DifferenceEffect::Intervals:
        return "changes intervals only";
    case DifferenceEffect::Content:
        return "decided by the digest of the data";
    case DifferenceEffect::Blocks:
        return "NOT COMPARABLE";
    }
    return "";
}

std::string_view readingName(Reading reading)
{
    switch (reading) {
    case Reading::Equal:
        return "equal";
    case Reading::WithinNoise:
        return "within noise";
    case Reading::Better:
        return "better";
    case Reading::Worse:
        return "worse";
    case Reading::NotTested:
        return "not tested";
    }
    return "";
}

Result<ComparedRun> comparedOf(std::shared_ptr<const report::RunResult> result,
                               config::RunConfig config, std::filesystem::path folder)
{
    ComparedRun run;
    run.config = std::move(config);
    run.folder = std::move(folder);
    const bool isQa = run.config.task == config::Task::Qa;
    Numbering groups;
    bool hasLosses = true;
    bool isOneLabel = true;
    std::size_t classes = 0;
    bool hasGroup = false;
    const Status visited = result->forEachSample([&](const report::SampleRow& row) {
        run.isComplete.push_back(row.isComplete ? 1 : 0);
        run.hashes.push_back(row.hash);
        run.ids.emplace_back(row.id);
        std::string targets;
        for (const std::string_view target : row.targets)
            targets.append(targets.empty() ? "" : " | ").append(target);
        run.targets.push_back(std::move(targets));
        run.predictions.push_back(row.prediction);
        if (row.lm) {
            metrics::LossRow window;
            window.index = row.index.value;
            window.document = row.lm->document;
            window.nllNats = row.lm->lossSum;
            window.tokens = row.lm->scored;
            window.hfDocWeight = row.lm->scored;
            run.windows.push_back(window);
            run.groups.push_back(row.lm->document);
            run.firstToken.push_back(run.tokenLosses.size());
            hasLosses = hasLosses && row.lm->losses.size() == row.lm->scored;
            if (hasLosses)
                run.tokenLosses.insert(run.tokenLosses.end(), row.lm->losses.begin(),
                                       row.lm->losses.end());
            return;
        }
        run.em.push_back(row.em);
        if (isQa) {
            run.f1.push_back(row.f1);
            run.groups.push_back(groups.of(hash128(row.context).hex()));
            return;
        }
        hasGroup = hasGroup || !row.group.empty();
        run.groups.push_back(groups.of(std::string(row.group)));
        if (row.classes) {
            isOneLabel = isOneLabel && row.classes->references.size() == 1;
            run.losses.push_back(row.classes->loss);
            classes = std::max(classes, row.classes->probabilities.size());
            run.probabilities.insert(run.probabilities.end(), row.classes->probabilities.begin(),
                                     row.classes->probabilities.end());
        }
    });
    if (!visited)
        return fail(visited.error());
    run.firstToken.push_back(run.tokenLosses.size());
    if (!hasLosses || run.windows.empty()) {
        run.tokenLosses.clear();
        run.firstToken.clear();
    }
    if (!isOneLabel || run.losses.size() != run.em.size())
        run.losses.clear();
    // A row that was not computed has no probabilities; then they are not compared.
    if (run.probabilities.size() != classes * run.isComplete.size())
        run.probabilities.clear();
    if (!run.windows.empty())
        run.groupNoun = "documents";
    else if (isQa)
        run.groupNoun = "contexts";
    else if (hasGroup)
        run.groupNoun = "groups";
    else
        run.groups.clear();
    run.result = std::move(result);
    return run;
}

std::vector<SettingRow> settingRows(std::span<const ComparedRun> runs, bool all)
{
    std::vector<SettingRow> rows;
    for (const config::Setting& setting : config::settings()) {
        if (isIncidental(setting.key) ||
            std::none_of(runs.begin(), runs.end(),
                         [&](const ComparedRun& run) { return concerns(setting, run.config); }))
            continue;
        SettingRow row;
        row.key = setting.key;
        row.effect = effectOf(setting);
        for (const ComparedRun& run : runs)
            row.values.push_back(shown(setting, run.config));
        row.isEqual = std::all_of(row.values.begin(), row.values.end(),
                                  [&](const std::string& v) { return v == row.values.front(); });
        if (all || !row.isEqual)
            rows.push_back(std::move(row));
    }
    return rows;
}

Result<PairComparison> comparePair(std::span<const ComparedRun> runs, std::size_t a, std::size_t b,
                                   const CompareOptions& options)
{
    if (!(options.confidence > 0.0 && options.confidence < 1.0))
        return fail(Error::Kind::Usage, "E-RUN-072",
                    fmt::format("a confidence of {} is not between 0 and 1", options.confidence));
    const ComparedRun& first = runs[a];
    const ComparedRun& second = runs[b];
    PairComparison pair;
    pair.a = a;
    pair.b = b;
    addReasons(pair, first, second);
    if (pair.isComparable())
        checkSamples(pair, first, second);
    Paired paired;
    if (pair.isComparable()) {
        paired = pairOf(first, second);
        pair.shared = paired.at.size();
        addNotes(pair, first, second, paired);
        if (!first.em.empty())
            addFlips(pair, first, second, paired);
        addChanges(pair, first, second, paired, options.confidence);
    }
    if (first.config.task == second.config.task)
        addMetrics(pair, first, second, paired, options);
    return pair;
}

} // namespace muster::run
