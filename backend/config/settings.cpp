// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

#include "base/utf8.h"
#include "config/suggest.h"
#include "config/toml_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

namespace muster::config {

namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 3> taskNames{"qa", "lm", "classification"};
constexpr std::array<std::string_view, 6> dtypeNames{"float32", "bfloat16", "float16",
                                                     "int8",    "int4",     "int8-dynamic"};
constexpr std::array<std::string_view, 10> protocolNames{
    "per-document", "non-overlapping",   "stream",     "hf-doc", "hf-exact", "hf-fixed", "lm-eval",
    "llama.cpp",    "llama.cpp-strided", "opencompass"};
constexpr std::array<std::string_view, 2> scoredPartNames{"all", "second-half"};
constexpr std::array<std::string_view, 2> longDocumentNames{"roll", "truncate"};
constexpr std::array<std::string_view, 2> lineEndNames{"keep", "lf"};
constexpr std::array<std::string_view, 3> quoteNames{"auto", "rfc4180", "literal"};
constexpr std::array<std::string_view, 5> documentNames{"file", "lines", "blank-lines", "separator",
                                                        "hf-rows"};
constexpr std::array<std::string_view, 5> scheduleNames{"dynamic", "block", "stride", "balanced",
                                                        "compat:<name>"};
constexpr std::array<std::string_view, 3> gatherNames{"stream", "collective", "nccl"};
constexpr std::array<std::string_view, 4> launcherNames{"auto", "openmpi", "mpich", "plain"};
constexpr std::array<std::string_view, 3> switchNames{"auto", "true", "false"};
constexpr std::array<std::string_view, 2> tieNames{"hf", "bert"};
constexpr std::array<std::string_view, 3> rulesNames{"auto", "1.1", "2.0"};
constexpr std::array<std::string_view, 3> normalizerNames{"squad-en/1", "zh-mixed/1",
                                                          "squad-extended/1"};
constexpr std::array<std::string_view, 6> formatNames{"auto", "squad", "jsonl",
                                                      "csv",  "tsv",   "text"};
constexpr std::string_view compatPrefix = "compat:";
constexpr double largestU32 = 4294967295.0;
constexpr double largestWhole = 9223372036854775807.0;
constexpr double aYearS = 366.0 * 86400.0;

constexpr Names namesOf(Task)
{
    return taskNames;
}
constexpr Names namesOf(Dtype)
{
    return dtypeNames;
}
constexpr Names namesOf(LmProtocol)
{
    return protocolNames;
}
constexpr Names namesOf(ScoredPart)
{
    return scoredPartNames;
}
constexpr Names namesOf(LongDocuments)
{
    return longDocumentNames;
}
constexpr Names namesOf(LineEnds)
{
    return lineEndNames;
}
constexpr Names namesOf(Quotes)
{
    return quoteNames;
}
constexpr Names namesOf(Documents)
{
    return documentNames;
}
constexpr Names namesOf(Gather)
{
    return gatherNames;
}
constexpr Names namesOf(Launcher)
{
    return launcherNames;
}
constexpr Names namesOf(Switch)
{
    return switchNames;
}
constexpr Names namesOf(TieMode)
{
    return tieNames;
}
constexpr Names namesOf(SquadRules)
{
    return rulesNames;
}

template <typename T>
Value toValue(const T& field)
{
    if constexpr (std::is_enum_v<T>) {
        return std::string(namesOf(field)[static_cast<std::size_t>(field)]);
    } else if constexpr (std::is_same_v<T, std::optional<std::uint64_t>>) {
        return field ? Value(*field) : Value();
    } else if constexpr (std::is_unsigned_v<T>) {
        return static_cast<std::uint64_t>(field);
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
        return field.string();
    } else if constexpr (std::is_same_v<T, std::vector<std::filesystem::path>>) {
        std::vector<std::string> list;
        for (const auto& path : field)
            list.push_back(path.string());
        return list;
    } else {
        return field;
    }
}

template <typename T>
void fromValue(const Value& value, T& field)
{
    if constexpr (std::is_enum_v<T>) {
        const Names names = namesOf(T{});
        const auto found = std::find(names.begin(), names.end(), std::get<std::string>(value));
        field = static_cast<T>(found - names.begin());
    } else if constexpr (std::is_same_v<T, std::optional<std::uint64_t>>) {
        const auto* number = std::get_if<std::uint64_t>(&value);
        field = number != nullptr ? std::optional(*number) : std::nullopt;
    } else if constexpr (std::is_unsigned_v<T>) {
        field = static_cast<T>(std::get<std::uint64_t>(value));
    } else if constexpr (std::is_same_v<T, double>) {
        field = std::get<double>(value);
    } else if constexpr (std::is_same_v<T, std::vector<std::filesystem::path>>) {
        const auto& list = std::get<std::vector<std::string>>(value);
        field.assign(list.begin(), list.end());
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        field = std::get<std::vector<std::string>>(value);
    } else {
        field = std::get<std::string>(value);
    }
}

template <auto... Path>
Value getField(const RunConfig& config)
{
    return toValue((config.*....*Path));
}

template <auto... Path>
void setField(RunConfig& config, const Value& value)
{
    fromValue(value, (config.*....*Path));
}

template <auto... Path>
Setting row(std::string_view key, ValueType type, Effect effect, std::string_view doc,
            double minimum = 0.0, double maximum = largestU32, Names choices = {})
{
    return {
        key, type, minimum, maximum, choices, doc, effect, &getField<Path...>, &setField<Path...>};
}

template <auto... Path>
Setting choice(std::string_view key, Names names, Effect effect, std::string_view doc)
{
    return row<Path...>(key, ValueType::Choice, effect, doc, 0.0, 0.0, names);
}

template <auto... Path>
Setting onOff(std::string_view key, std::string_view doc, Effect effect = Effect::Speed)
{
    return row<Path...>(key, ValueType::Switch, effect, doc, 0.0, 0.0, switchNames);
}

Value getSchedule(const RunConfig& config)
{
    if (config.plan.schedule == Schedule::Compat)
        return std::string(compatPrefix) + config.plan.compat;
    return std::string(scheduleNames[static_cast<std::size_t>(config.plan.schedule)]);
}

void setSchedule(RunConfig& config, const Value& value)
{
    const std::string_view text = std::get<std::string>(value);
    if (text.starts_with(compatPrefix)) {
        config.plan.schedule = Schedule::Compat;
        config.plan.compat = text.substr(compatPrefix.size());
        return;
    }
    const auto* found = std::find(scheduleNames.begin(), scheduleNames.end(), text);
    config.plan.schedule = static_cast<Schedule>(found - scheduleNames.begin());
    config.plan.compat.clear();
}

Value getGates(const RunConfig& config)
{
    std::vector<std::string> list;
    for (const Gate& gate : config.gates)
        list.push_back(gateText(gate));
    return list;
}

void setGates(RunConfig& config, const Value& value)
{
    config.gates.clear();
    for (const std::string& text : std::get<std::vector<std::string>>(value)) {
        if (auto gate = parseGate(text))
            config.gates.push_back(*gate);
    }
    std::stable_sort(config.gates.begin(), config.gates.end(),
                     [](const Gate& a, const Gate& b) { return a.metric < b.metric; });
}

std::vector<Setting> makeTable()
{
    using R = RunConfig;
    using enum ValueType;
    using E = Effect;
    return {
        row<&R::schema>("schema", Unsigned, E::Speed, "Version of this file's layout.", 1, 1),
        choice<&R::task>("task", taskNames, E::Numbers, "What is evaluated."),
        row<&R::name>("name", Text, E::Speed, "A name for the run, shown in the history."),
        row<&R::output>("output", Path, E::Speed, "Folder in which the run's own folder is made."),
        row<&R::inject>("inject", Text, E::Speed,
                        "A fault to inject, to see that the alarm rings; for tests and the demo."),
        row<&R::model, &ModelConfig::path>("model.path", Path, E::Content,
                                           "Hugging Face directory of the model, or `synthetic`."),
        choice<&R::model, &ModelConfig::dtype>("model.dtype", dtypeNames, E::Numbers,
                                               "Number format in which the model computes."),
        row<&R::model, &ModelConfig::groupSize>(
            "model.group_size", Unsigned, E::Numbers,
            "int4: weights that share one scale (256, 128, 64 or 32).", 32, 256),
        row<&R::data, &DataConfig::files>("data.files", PathList, E::Content,
                                          "Data files, read in this order."),
        choice<&R::data, &DataConfig::format>("data.format", formatNames, E::Content,
                                              "Layout of the data files; auto looks into them."),
        row<&R::data, &DataConfig::limit>("data.limit", OptionalUnsigned, E::Numbers,
                                          "Evaluate only the first samples, this many.", 1,
                                          largestWhole),
        row<&R::data, &DataConfig::subset>(
            "data.subset", Text, E::Numbers,
            "Evaluate only these samples, such as `0-99,200`; empty is all."),
        row<&R::qa, &QaConfig::maxSeqLength>("qa.max_seq_length", Unsigned, E::Numbers,
                                             "Tokens of a window, special ones included.", 8,
                                             65536),
        row<&R::qa, &QaConfig::docStride>("qa.doc_stride", Unsigned, E::Numbers,
                                          "Tokens that two neighbouring windows share.", 0, 65535),
        row<&R::qa, &QaConfig::maxAnswerLength>("qa.max_answer_length", Unsigned, E::Numbers,
                                                "Most tokens of an answer.", 1, 65536),
        row<&R::qa, &QaConfig::nBest>("qa.n_best", Unsigned, E::Numbers,
                                      "Start and end positions that are combined to answers.", 1,
                                      1000),
        row<&R::qa, &QaConfig::nullThreshold>(
            "qa.null_threshold", Real, E::Numbers,
            "Null score difference above which the answer is empty (SQuAD 2.0).", -1e9, 1e9),
        choice<&R::qa, &QaConfig::ties>("qa.ties", tieNames, E::Numbers,
                                        "Whose order decides between equal scores."),
        choice<&R::qa, &QaConfig::rules>(
            "qa.rules", rulesNames, E::Numbers,
            "SQuAD rules that score; auto takes 2.0 when questions without answer occur."),
        choice<&R::qa, &QaConfig::normalizer>("qa.normalizer", normalizerNames, E::Numbers,
                                              "How answers are normalised before comparing."),
        row<&R::qa, &QaConfig::abstentions>("qa.abstentions", TextList, E::Numbers,
                                            "Texts that count as no answer."),
        choice<&R::lm, &LmConfig::protocol>(
            "lm.protocol", protocolNames, E::Numbers,
            "How a text is cut into windows and which tokens are scored."),
        choice<&R::lm, &LmConfig::scoredPart>(
            "lm.scored_part", scoredPartNames, E::Numbers,
            "Which tokens of a window the non-overlapping protocol scores."),
        row<&R::lm, &LmConfig::maxLength>(
            "lm.max_length", Unsigned, E::Numbers,
            "Tokens of a window; 0 takes the model's positions, at most 4096.", 0, 1048576),
        row<&R::lm, &LmConfig::stride>("lm.stride", Unsigned, E::Numbers,
                                       "Tokens from one window to the next; 0 is half a window.", 0,
                                       1048576),
        choice<&R::lm, &LmConfig::documents>("lm.documents", documentNames, E::Numbers,
                                             "What one document of a text file is."),
        row<&R::lm, &LmConfig::separator>("lm.separator", Text, E::Numbers,
                                          "Text between two documents (documents = separator)."),
        choice<&R::lm, &LmConfig::longDocuments>(
            "lm.long_documents", longDocumentNames, E::Numbers,
            "What per-document does with a document longer than a window."),
        onOff<&R::lm, &LmConfig::join>(
            "lm.join",
            "Put the tokens of all documents into one stream; auto does so for protocol stream.",
            E::Numbers),
        onOff<&R::lm, &LmConfig::strip>(
            "lm.strip", "Leave out blanks and line ends around a document; auto is false.",
            E::Numbers),
        onOff<&R::lm, &LmConfig::dropUnfinished>(
            "lm.drop_unfinished", "Leave out a last text that no separator ends; auto is false.",
            E::Numbers),
        choice<&R::lm, &LmConfig::lineEnds>("lm.line_ends", lineEndNames, E::Numbers,
                                            "Whether line ends CR LF become LF."),
        row<&R::lm, &LmConfig::field>("lm.field", Text, E::Numbers,
                                      "Field of a JSONL line that holds the text."),
        onOff<&R::lm, &LmConfig::bos>(
            "lm.bos",
            "Put the beginning-of-text token before each document; auto does what the tokenizer "
            "does.",
            E::Numbers),
        row<&R::lm, &LmConfig::windows>("lm.windows", OptionalUnsigned, E::Numbers,
                                        "Evaluate only the first windows, this many.", 1,
                                        largestWhole),
        onOff<&R::lm, &LmConfig::tokenLosses>(
            "lm.token_losses", "Keep the loss of each token in the run file.", E::Numbers),
        row<&R::lm, &LmConfig::batch>("lm.batch", Unsigned, E::Speed,
                                      "Batch size that the ledger of wrong averages assumes.", 1,
                                      65536),
        row<&R::classification, &ClassificationConfig::textField>(
            "classification.text_field", Text, E::Numbers,
            "Column of the text, by number from 1 or by name; empty looks for a usual name."),
        row<&R::classification, &ClassificationConfig::pairField>(
            "classification.pair_field", Text, E::Numbers,
            "Column of the second text of sentence pairs; empty is none."),
        row<&R::classification, &ClassificationConfig::labelField>(
            "classification.label_field", Text, E::Numbers,
            "Column of the label, by number from 1 or by name."),
        row<&R::classification, &ClassificationConfig::idField>(
            "classification.id_field", Text, E::Numbers,
            "Column of the row's id; empty takes the row's number."),
        row<&R::classification, &ClassificationConfig::groupField>(
            "classification.group_field", Text, E::Numbers,
            "Column that says which rows belong together, for clustered intervals."),
        onOff<&R::classification, &ClassificationConfig::header>(
            "classification.header", "Whether the first row names the columns.", E::Numbers),
        choice<&R::classification, &ClassificationConfig::quotes>(
            "classification.quotes", quoteNames, E::Numbers,
            "Whether a quotation mark holds delimiters and line ends, or is a character."),
        row<&R::classification, &ClassificationConfig::delimiter>(
            "classification.delimiter", Text, E::Numbers,
            "Character between columns, `\\t` for a tab; empty is guessed and printed."),
        row<&R::classification, &ClassificationConfig::labelSeparator>(
            "classification.label_separator", Text, E::Numbers,
            "Character between the labels of one row (multi-label)."),
        row<&R::classification, &ClassificationConfig::labelOffset>(
            "classification.label_offset", Text, E::Numbers,
            "Number of the first class in files that number their labels; empty is 0."),
        row<&R::classification, &ClassificationConfig::maxLength>(
            "classification.max_length", Unsigned, E::Numbers,
            "Tokens of a text, special ones included; longer ones are cut. 0 is the model's "
            "limit, at most 512.",
            0, 65536),
        row<&R::classification, &ClassificationConfig::threshold>(
            "classification.threshold", Real, E::Numbers,
            "Multi-label: probability from which a label counts as predicted.", 0, 1),
        row<&R::classification, &ClassificationConfig::positive>(
            "classification.positive", Text, E::Numbers,
            "Class of binary precision, recall and F1; empty is the second."),
        row<&R::classification, &ClassificationConfig::bins>(
            "classification.bins", Unsigned, E::Numbers, "Bins of the calibration error.", 1, 1000),
        row<&R::plan, &PlanConfig::unitTokens>("plan.unit_tokens", Unsigned, E::Numbers,
                                               "Token budget of a unit.", 8, 1048576),
        row<&R::plan, &PlanConfig::unitItems>("plan.unit_items", Unsigned, E::Numbers,
                                              "Most items of a unit.", 1, 65536),
        {"plan.schedule", Choice, 0.0, 0.0, scheduleNames,
         "How units are dealt to the ranks; the numbers do not depend on it.", E::Speed,
         &getSchedule, &setSchedule},
        row<&R::plan, &PlanConfig::compatBatch>("plan.compat_batch", Unsigned, E::Speed,
                                                "Batch size per rank of the compatibility lists.",
                                                1, 65536),
        row<&R::plan, &PlanConfig::prefetch>("plan.prefetch", Unsigned, E::Speed,
                                             "Units a rank holds besides the one it computes.", 0,
                                             64),
        row<&R::cluster, &ClusterConfig::ranks>("cluster.ranks", Unsigned, E::Speed,
                                                "Number of ranks; 0 is one per physical core.", 0,
                                                65536),
        choice<&R::cluster, &ClusterConfig::launcher>("cluster.launcher", launcherNames, E::Speed,
                                                      "What starts the ranks."),
        row<&R::cluster, &ClusterConfig::launcherPath>(
            "cluster.launcher_path", Path, E::Speed,
            "The mpirun to use; empty takes the one that is found."),
        row<&R::cluster, &ClusterConfig::rankProgram>(
            "cluster.rank_program", Path, E::Speed,
            "The muster-rank to use; empty takes the one beside this program."),
        row<&R::cluster, &ClusterConfig::threadsPerRank>("cluster.threads_per_rank", Unsigned,
                                                         E::Numbers, "Computing threads of a rank.",
                                                         1, 1024),
        onOff<&R::cluster, &ClusterConfig::pin>("cluster.pin",
                                                "Bind each rank to a physical core of its own."),
        onOff<&R::cluster, &ClusterConfig::allowRoot>("cluster.allow_root",
                                                      "Let the launcher run as root."),
        onOff<&R::cluster, &ClusterConfig::oversubscribe>("cluster.oversubscribe",
                                                          "Allow more ranks than cores."),
        choice<&R::cluster, &ClusterConfig::gather>("cluster.gather", gatherNames, E::Speed,
                                                    "How outputs travel to the controller."),
        row<&R::cluster, &ClusterConfig::heartbeatS>("cluster.heartbeat_s", Real, E::Speed,
                                                     "Seconds between two signs of life.", 0.01,
                                                     3600),
        row<&R::cluster, &ClusterConfig::suspectS>(
            "cluster.suspect_s", Real, E::Speed,
            "Seconds of silence after which a rank is suspected.", 0.01, 86400),
        row<&R::cluster, &ClusterConfig::deadS>(
            "cluster.dead_s", Real, E::Speed, "Seconds of silence after which a rank is given up.",
            0.01, 86400),
        row<&R::cluster, &ClusterConfig::helloS>("cluster.hello_s", Real, E::Speed,
                                                 "Seconds for all ranks to report after the start.",
                                                 0.1, 86400),
        row<&R::cluster, &ClusterConfig::graceS>("cluster.grace_s", Real, E::Speed,
                                                 "Seconds that a rank waits for a lost controller.",
                                                 0, 86400),
        row<&R::cluster, &ClusterConfig::timeoutS>("cluster.timeout_s", Real, E::Speed,
                                                   "Seconds for the whole run; 0 is no limit.", 0,
                                                   aYearS),
        row<&R::cluster, &ClusterConfig::maxRelaunches>(
            "cluster.max_relaunches", Unsigned, E::Speed,
            "How often lost ranks are started again in ten minutes.", 0, 1000),
        row<&R::metrics, &MetricConfig::bootstrap>(
            "metrics.bootstrap", Unsigned, E::Numbers,
            "Replicates of the bootstrap intervals; 0 is none.", 0, 1000000),
        row<&R::metrics, &MetricConfig::seed>("metrics.seed", Unsigned, E::Numbers,
                                              "Seed of the bootstrap.", 0, largestWhole),
        row<&R::metrics, &MetricConfig::confidence>("metrics.confidence", Real, E::Numbers,
                                                    "Coverage of the intervals.", 0.5, 0.9999),
        {"gates",
         Gates,
         0.0,
         0.0,
         {},
         "Conditions on metrics; a run that breaks one ends with exit 7.",
         E::Speed,
         &getGates,
         &setGates},
    };
}

std::string number(double value)
{
    return value == std::floor(value) && std::abs(value) < 1e15
               ? fmt::format("{}", static_cast<std::int64_t>(value))
               : fmt::format("{}", value);
}

std::string quotedText(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (byte < 0x20 || byte == 0x7F) {
            out += fmt::format("\\u{:04X}", byte);
        } else {
            out += c;
        }
    }
    return out + '"';
}

auto wrongType(const Setting& setting, std::string_view wanted)
{
    return fail(Error::Kind::Invalid, "E-CONFIG-003",
                fmt::format("{}: {} is wanted", setting.key, wanted));
}

auto outOfRange(const Setting& setting, std::string_view given)
{
    return fail(Error::Kind::Invalid, "E-CONFIG-004",
                fmt::format("{}: {} is outside {} to {}", setting.key, given,
                            number(setting.minimum), number(setting.maximum)));
}

Result<Value> checkChoice(const Setting& setting, std::string text)
{
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> aliases{
        {{"fp32", "float32"},
         {"f32", "float32"},
         {"bf16", "bfloat16"},
         {"fp16", "float16"},
         {"f16", "float16"},
         {"half", "float16"},
         {"on", "true"},
         {"off", "false"},
         {"open-mpi", "openmpi"}}};
    std::vector<std::string> names(setting.choices.begin(), setting.choices.end());
    for (const auto& [alias, name] : aliases) {
        if (text == alias && std::find(names.begin(), names.end(), name) != names.end())
            return std::string(name);
    }
    for (const std::string& name : names) {
        if (text == name && name.find('<') == std::string::npos)
            return text;
        const std::size_t open = name.find('<');
        if (open != std::string::npos && text.size() > open &&
            text.starts_with(name.substr(0, open)))
            return text;
    }
    const std::string meant = nearest(text, names);
    return fail(Error::Kind::Invalid, "E-CONFIG-005",
                fmt::format("{}: '{}' is not one of {}{}", setting.key, text,
                            fmt::join(setting.choices, ", "),
                            meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

bool isCleanText(std::string_view text)
{
    return !utf8::firstInvalid(text).has_value();
}

Result<Value> checkTexts(const Setting& setting, const std::vector<std::string>& texts, Value value)
{
    for (const std::string& text : texts) {
        if (!isCleanText(text))
            return fail(Error::Kind::Invalid, "E-CONFIG-003",
                        fmt::format("{}: the text is not UTF-8", setting.key));
        const bool isPath = setting.type == ValueType::Path || setting.type == ValueType::PathList;
        if (isPath && text.find('\0') != std::string::npos)
            return fail(Error::Kind::Invalid, "E-CONFIG-003",
                        fmt::format("{}: a path cannot hold a null character", setting.key));
        if (setting.type == ValueType::PathList && text.empty())
            return fail(Error::Kind::Invalid, "E-CONFIG-003",
                        fmt::format("{}: a path is empty", setting.key));
        if (setting.type == ValueType::Gates) {
            if (auto gate = parseGate(text); !gate)
                return fail(gate.error());
        }
    }
    return value;
}

bool isMetricCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

} // namespace

std::string_view Setting::section() const
{
    const std::size_t dot = key.find('.');
    return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

std::string_view Setting::leaf() const
{
    const std::size_t dot = key.find('.');
    return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

std::span<const Setting> settings()
{
    static const std::vector<Setting> table = makeTable();
    return table;
}

const Setting* findSetting(std::string_view key)
{
    for (const Setting& setting : settings()) {
        if (setting.key == key)
            return &setting;
    }
    return nullptr;
}

Result<const Setting*> settingNamed(std::string_view name)
{
    if (const Setting* exact = findSetting(name))
        return exact;
    std::vector<const Setting*> found;
    std::vector<std::string> names;
    for (const Setting& setting : settings()) {
        if (setting.leaf() == name)
            found.push_back(&setting);
        names.emplace_back(setting.key);
        names.emplace_back(setting.leaf());
    }
    if (found.size() == 1)
        return found.front();
    if (found.size() > 1)
        return fail(Error::Kind::Usage, "E-CONFIG-011",
                    fmt::format("'{}' could be {} or {}; write the full key", name, found[0]->key,
                                found[1]->key));
    const std::string meant = nearest(name, names);
    return fail(Error::Kind::Usage, "E-CONFIG-002",
                fmt::format("there is no setting '{}'{}", name,
                            meant.empty() ? "; `muster config show` lists all"
                                          : fmt::format("; did you mean {}?", meant)));
}

Result<Value> check(const Setting& setting, Value value)
{
    switch (setting.type) {
    case ValueType::OptionalUnsigned:
        if (std::holds_alternative<std::monostate>(value))
            return value;
        [[fallthrough]];
    case ValueType::Unsigned: {
        const auto* whole = std::get_if<std::uint64_t>(&value);
        if (whole == nullptr)
            return wrongType(setting, "a whole number of at least 0");
        // Compared as integers: a double cannot tell 2^63 from 2^63 − 1.
        const std::uint64_t most =
            setting.maximum >= largestWhole
                ? static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                : static_cast<std::uint64_t>(setting.maximum);
        if (*whole < static_cast<std::uint64_t>(setting.minimum) || *whole > most)
            return outOfRange(setting, fmt::format("{}", *whole));
        return value;
    }
    case ValueType::Real: {
        if (const auto* whole = std::get_if<std::uint64_t>(&value))
            value = static_cast<double>(*whole);
        const auto* real = std::get_if<double>(&value);
        if (real == nullptr)
            return wrongType(setting, "a number");
        if (!(*real >= setting.minimum && *real <= setting.maximum))
            return outOfRange(setting, fmt::format("{}", *real));
        return value;
    }
    case ValueType::Choice:
    case ValueType::Switch:
    case ValueType::Text:
    case ValueType::Path: {
        const auto* text = std::get_if<std::string>(&value);
        if (text == nullptr)
            return wrongType(setting, setting.type == ValueType::Switch ? "auto, true or false"
                                                                        : "a text in quotes");
        auto clean = checkTexts(setting, {*text}, value);
        if (!clean)
            return clean;
        if (setting.type == ValueType::Choice || setting.type == ValueType::Switch)
            return checkChoice(setting, *text);
        return clean;
    }
    case ValueType::TextList:
    case ValueType::PathList:
    case ValueType::Gates: {
        if (const auto* text = std::get_if<std::string>(&value))
            value = std::vector<std::string>{*text};
        const auto* list = std::get_if<std::vector<std::string>>(&value);
        if (list == nullptr)
            return wrongType(setting, "a list of texts");
        const std::vector<std::string> texts = *list;
        return checkTexts(setting, texts, std::move(value));
    }
    }
    return fail(Error::Kind::Internal, "E-CONFIG-099", "a setting has no type");
}

Result<Value> valueFromText(const Setting& setting, std::string_view text)
{
    const char* end = text.data() + text.size();
    switch (setting.type) {
    case ValueType::OptionalUnsigned:
        if (text == "none")
            return Value();
        [[fallthrough]];
    case ValueType::Unsigned: {
        std::uint64_t whole = 0;
        const auto [stop, error] = std::from_chars(text.data(), end, whole);
        if (error == std::errc::result_out_of_range)
            return outOfRange(setting, text);
        if (error != std::errc() || stop != end)
            return wrongType(setting, fmt::format("a whole number of at least 0, not '{}',", text));
        return check(setting, whole);
    }
    case ValueType::Real: {
        double real = 0.0;
        const auto [stop, error] = std::from_chars(text.data(), end, real);
        if (error == std::errc::result_out_of_range)
            return outOfRange(setting, text);
        if (error != std::errc() || stop != end)
            return wrongType(setting, fmt::format("a number, not '{}',", text));
        return check(setting, real);
    }
    case ValueType::TextList:
    case ValueType::PathList:
    case ValueType::Gates:
        if (text.starts_with('[')) {
            auto list = tomlStringList(text);
            if (!list)
                return wrongType(setting, R"(a list such as ["a", "b"])");
            return check(setting, std::move(*list));
        }
        break;
    default:
        break;
    }
    return check(setting, std::string(text));
}

std::string tomlText(const Value& value)
{
    if (const auto* whole = std::get_if<std::uint64_t>(&value))
        return fmt::format("{}", *whole);
    if (const auto* real = std::get_if<double>(&value)) {
        std::string text = fmt::format("{}", *real);
        if (text.find_first_of(".en") == std::string::npos)
            text += ".0";
        return text;
    }
    if (const auto* text = std::get_if<std::string>(&value))
        return quotedText(*text);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
        std::string out = "[";
        for (const std::string& text : *list) {
            if (out.size() > 1)
                out += ", ";
            out += quotedText(text);
        }
        return out + "]";
    }
    return {};
}

Result<Gate> parseGate(std::string_view text)
{
    const std::string_view all = trimmed(text);
    std::size_t at = 0;
    while (at < all.size() && isMetricCharacter(all[at]))
        ++at;
    Gate gate;
    gate.metric = all.substr(0, at);
    std::string_view rest = trimmed(all.substr(at));
    for (const std::string_view comparison : {"<=", ">=", "==", "!=", "<", ">"}) {
        if (rest.starts_with(comparison)) {
            gate.comparison = comparison;
            rest = trimmed(rest.substr(comparison.size()));
            break;
        }
    }
    const char* end = rest.data() + rest.size();
    const auto [stop, error] = std::from_chars(rest.data(), end, gate.value);
    const bool hasNumber = error == std::errc() && stop == end && std::isfinite(gate.value);
    if (gate.metric.empty() || gate.comparison.empty() || rest.empty() || !hasNumber)
        return fail(Error::Kind::Invalid, "E-CONFIG-009",
                    fmt::format("gate '{}': a metric, one of < <= > >= == != and a number are "
                                "wanted, such as 'em >= 60'",
                                all));
    return gate;
}

std::string gateText(const Gate& gate)
{
    return fmt::format("{} {} {}", gate.metric, gate.comparison, gate.value);
}

} // namespace muster::config
