// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::config {

enum class Task { Qa, Lm, Classification };
/// Number format of the model: what weights are kept in and how products are formed. Int8 and Int4
/// are weight-only (quantised on load); Int8Dynamic quantises activations by row too (A8W8).
enum class Dtype { Float32, Bfloat16, Float16, Int8, Int4, Int8Dynamic };
enum class Schedule { Dynamic, Block, Stride, Balanced, Compat };
enum class Gather { Stream, Collective, Nccl };
enum class Launcher { Auto, OpenMpi, Mpich, Plain };
enum class Switch { Auto, On, Off };
enum class TieMode { Hf, Bert };
/// Which rules score a QA run; Auto: 2.0 when the data have unanswerable questions, else 1.1.
enum class SquadRules { Auto, V1, V2 };
enum class Answering { Extractive };
/// How a text is cut into windows and which of their tokens are scored (semantics.md 4).
/// The names and their meaning: task/lm_windows.h.
enum class LmProtocol {
    PerDocument,
    NonOverlapping,
    Stream,
    HfDoc,
    HfExact,
    HfFixed,
    LmEval,
    LlamaCpp,
    LlamaCppStrided,
    OpenCompass
};
/// Which targets of a window the non-overlapping protocol scores.
enum class ScoredPart { All, SecondHalf };
/// What the per-document protocol does with a document longer than a window.
enum class LongDocuments { Roll, Truncate };
/// Whether CR LF becomes LF in a text.
enum class LineEnds { Keep, Lf };
/// How quotation marks of a table are read.
enum class Quotes { Auto, Rfc4180, Literal };
/// What one document of a text file is.
enum class Documents { File, Lines, BlankLines, Separator, HfRows };

struct ModelConfig {
    std::filesystem::path path; ///< Hugging Face directory, or `synthetic`
    Dtype dtype = Dtype::Float32;
    std::uint32_t groupSize = 128; ///< int4: weights that share a scale, along the input
    bool operator==(const ModelConfig&) const = default;
};

struct DataConfig {
    std::vector<std::filesystem::path> files;
    std::string format = "auto";        ///< auto | squad | jsonl | csv …
    std::optional<std::uint64_t> limit; ///< first n samples
    std::string subset;                 ///< such as `0-99,200`; empty = all
    bool operator==(const DataConfig&) const = default;
};

struct QaConfig {
    std::uint32_t maxSeqLength = 384; ///< tokens, special ones included
    std::uint32_t docStride =
        128; ///< overlap of two windows in tokens (Hugging Face's meaning, T-32)
    std::uint32_t maxAnswerLength = 30; ///< tokens
    std::uint32_t nBest = 20;
    double nullThreshold = 0.0; ///< null_score_diff_threshold
    TieMode ties = TieMode::Hf;
    SquadRules rules = SquadRules::Auto;
    std::string normalizer = "squad-en/1"; ///< squad-en/1 | zh-mixed/1
    std::vector<std::string> abstentions;  ///< texts that count as "no answer" (C-025)
    bool operator==(const QaConfig&) const = default;
};

struct LmConfig {
    LmProtocol protocol = LmProtocol::HfFixed;
    ScoredPart scoredPart = ScoredPart::All;
    std::uint32_t maxLength = 0; ///< tokens of a window; 0 = the model's positions, at most 4096
    std::uint32_t stride = 0;    ///< tokens from window to window; 0 = half the window
    Documents documents = Documents::File;
    LongDocuments longDocuments = LongDocuments::Roll;
    Switch join = Switch::Auto;  ///< tokens of all documents as one stream; Auto: for `stream`
    Switch strip = Switch::Auto; ///< documents without blanks and line ends around them; Auto: no
    Switch dropUnfinished = Switch::Auto; ///< leave out a text that no separator ends; Auto: no
    LineEnds lineEnds = LineEnds::Keep;
    std::string separator;      ///< between documents; documents = separator
    std::string field = "text"; ///< of JSONL lines
    Switch bos = Switch::Auto;  ///< beginning-of-text token before each document; Auto: as the
                                ///< tokenizer does by itself
    std::optional<std::uint64_t> windows; ///< only the first windows, this many
    Switch tokenLosses = Switch::Auto;    ///< keep the loss of each token; Auto: no
    std::uint32_t batch = 8;              ///< batch size of the ledger of wrong averages
    bool operator==(const LmConfig&) const = default;
};

struct ClassificationConfig {
    std::string textField;  ///< column by number from 1, or by name; empty = found by its name
    std::string pairField;  ///< second sentence; empty = none
    std::string labelField; ///< as textField
    std::string idField;    ///< empty = the row's number
    std::string groupField; ///< for clustered intervals; empty = none
    Switch header = Switch::Auto;
    Quotes quotes = Quotes::Auto;
    std::string delimiter;       ///< one character, `\t` for a tab; empty = guessed
    std::string labelSeparator;  ///< between the labels of a row (multi-label); empty = one label
    std::string labelOffset;     ///< number of the first class in files with numbers; empty = 0
    std::uint32_t maxLength = 0; ///< tokens, longer texts are cut; 0 = the model's, at most 512
    double threshold = 0.5;      ///< multi-label: probability from which a label is predicted
    std::string positive;        ///< class of binary precision, recall, F1; empty = the second
    std::uint32_t bins = 15;     ///< of the calibration error
    bool operator==(const ClassificationConfig&) const = default;
};

struct PlanConfig {
    std::uint32_t unitTokens = 2048; ///< token budget of a unit
    std::uint32_t unitItems = 256;   ///< most items of a unit
    Schedule schedule = Schedule::Dynamic;
    std::string compat;            ///< name after `compat:`
    std::uint32_t compatBatch = 8; ///< batch size per rank of the compatibility lists
    std::uint32_t prefetch = 2;    ///< units a rank holds besides the one it computes
    bool operator==(const PlanConfig&) const = default;
};

struct ClusterConfig {
    std::uint32_t ranks = 0; ///< 0 = one per physical core
    Launcher launcher = Launcher::Auto;
    std::filesystem::path launcherPath; ///< mpirun to use; empty = found
    std::filesystem::path rankProgram;  ///< muster-rank; empty = beside this program
    std::uint32_t threadsPerRank = 1;
    Switch pin = Switch::Auto; ///< one rank per physical core
    Switch allowRoot = Switch::Auto;
    Switch oversubscribe = Switch::Auto;
    Gather gather = Gather::Stream;
    double heartbeatS = 1.0;
    double suspectS = 5.0;
    double deadS = 15.0;
    double helloS = 60.0;            ///< limit for all ranks to say hello
    double graceS = 10.0;            ///< how long a rank waits for a lost controller
    double timeoutS = 0.0;           ///< whole run; 0 = none
    std::uint32_t maxRelaunches = 5; ///< per 10 minutes
    bool operator==(const ClusterConfig&) const = default;
};

struct MetricConfig {
    std::uint32_t bootstrap = 1000; ///< replicates; 0 = none
    std::uint64_t seed = 0;
    double confidence = 0.95;
    bool operator==(const MetricConfig&) const = default;
};

/// One gate: `em >= 60`.
struct Gate {
    std::string metric;
    std::string comparison; ///< < <= > >= == !=
    double value = 0.0;
    bool operator==(const Gate&) const = default;
};

/// `qa`, `lm` or `classification`.
[[nodiscard]] constexpr std::string_view taskName(Task task)
{
    return task == Task::Qa ? "qa" : task == Task::Lm ? "lm" : "classification";
}

/// The description of a run: a plain value with defaults. What changes a number is in the digest
/// (evaluationDigest in config/digest.h); what only changes speed or place is not.
struct RunConfig {
    std::uint32_t schema = 1;
    Task task = Task::Qa;
    std::string name;
    std::filesystem::path output = "runs";
    ModelConfig model;
    DataConfig data;
    QaConfig qa;
    LmConfig lm;
    ClassificationConfig classification;
    PlanConfig plan;
    ClusterConfig cluster;
    MetricConfig metrics;
    std::vector<Gate> gates;
    std::string inject; ///< fault to inject, for tests and `demo --inject`; empty = none
    bool operator==(const RunConfig&) const = default;
};

} // namespace muster::config
