// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::config {

enum class Task { Qa, Lm, Classification };
enum class Dtype { Float32, Bfloat16, Float16 };
enum class Schedule { Dynamic, Block, Stride, Balanced, Compat };
enum class Gather { Stream, Collective, Nccl };
enum class Launcher { Auto, OpenMpi, Mpich, Plain };
enum class Switch { Auto, On, Off };
enum class TieMode { Hf, Bert };
/// Which rules score a QA run; Auto: 2.0 when the data have unanswerable questions, else 1.1.
enum class SquadRules { Auto, V1, V2 };
enum class Answering { Extractive };

struct ModelConfig {
    std::filesystem::path path; ///< Hugging Face directory, or `synthetic`
    Dtype dtype = Dtype::Float32;
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
    PlanConfig plan;
    ClusterConfig cluster;
    MetricConfig metrics;
    std::vector<Gate> gates;
    std::string inject; ///< fault to inject, for tests and `demo --inject`; empty = none
    bool operator==(const RunConfig&) const = default;
};

} // namespace muster::config
