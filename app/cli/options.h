// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/read.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

/// Options that every command takes, before or after its name.
struct GlobalOptions {
    bool isQuiet = false;
    int verbosity = 0;
    bool isDebug = false;
    bool isJson = false;   ///< one document on standard output
    bool isNdjson = false; ///< one event per line on standard output
    bool isPlain = false;  ///< no bar, no escape sequences
    bool hasNoColour = false;
    bool hasNoInput = false;
    bool isYes = false;
    std::optional<std::string> configFile;
    std::optional<std::filesystem::path> logFile;
};

/// `run` and `plan`, and the settings of every other command that takes them.
struct RunOptions {
    std::string configFile;                 ///< positional; empty: none, `-`: standard input
    std::vector<config::FlagSetting> flags; ///< in the order of the flag table, then --set
    bool isDryRun = false;
};

/// `resume RUN`.
struct ResumeOptions {
    std::string run; ///< folder, run file or abbreviated id
    std::vector<config::FlagSetting> flags;
};

/// `stop RUN`.
struct StopOptions {
    std::string run;
    double graceS = 10.0;
};

/// How a result file of another program is read and what it is compared with.
struct ForeignOptions {
    std::string target; ///< file, folder of shards, or pattern
    std::vector<std::filesystem::path> data;
    std::string indexField; ///< empty: guessed
    std::string idField;
    std::string predictionField;
    std::string labelField;     ///< of the result file
    std::string dataTextField;  ///< of the data
    std::string dataLabelField; ///< of the data
    std::int64_t shift = 64;    ///< how far the shift scan looks
    std::uint64_t world = 0;    ///< of the cross matrix; 0: as found
    std::string normalizer = "squad-en/1";
};

/// `verify RUN|FILE`.
struct VerifyOptions {
    std::string target;
    std::vector<std::filesystem::path> data;
    ForeignOptions foreign; ///< the same target and data
};

/// `align FILE` and `import FILE`.
struct AlignOptions {
    ForeignOptions foreign;
    std::optional<std::filesystem::path> output; ///< --repair of align, -o of import
};

/// `explain`.
struct ExplainOptions {
    ForeignOptions foreign;
    double metric = 0.0; ///< percent
    std::string name;    ///< of the metric; empty: any
};

/// `score FILE`.
struct ScoreOptions {
    std::filesystem::path predictions;
    std::vector<std::filesystem::path> data;
    std::optional<std::filesystem::path> nullOdds;
    std::string rules = "auto";
    std::string normalizer = "squad-en/1";
    std::optional<double> nullThreshold; ///< absent: predictions count as they are
    std::string sums = "plain";          ///< how the 2.0 totals are summed: plain or compensated
    std::vector<std::string> abstentions;
    bool hasAllRows = false; ///< per-question scores too
    ForeignOptions foreign;  ///< for files that are no JSON object of answers
};

/// `show RUN`.
struct ShowOptions {
    std::string run;
    std::optional<std::uint64_t> sample; ///< one sample in full
};

/// `export RUN`.
struct ExportOptions {
    std::string run;
    std::vector<std::string> formats;
    std::optional<std::filesystem::path> output;
};

/// `history ls|show|tag|rm|rebuild|gc`.
struct HistoryOptions {
    std::string action = "ls";
    std::vector<std::string> arguments;
    std::uint64_t limit = 20;
};

/// `compare A B…`.
struct CompareOptions {
    std::vector<std::string> runs; ///< folders, run files or abbreviated ids; the first is the base
    std::string preset = "metrics";
    std::string format = "text";
    std::vector<std::string> failOn;
    double confidence = 95.0; ///< percent
    std::uint64_t samples = 10;
    std::uint64_t bootstrap = 1000;
    bool hasOnlyDifferences = true;
    std::optional<std::filesystem::path> output; ///< the text goes there
    std::optional<std::filesystem::path> svg;    ///< drawing of the scaling preset
};

/// `report RUN`.
struct ReportOptions {
    std::string run;
    std::optional<std::filesystem::path> output; ///< report.html in the run's folder by default
    std::string language = "en";
};

/// `scale -n 1,2,4`; the run's own settings stand in RunOptions.
struct ScaleOptions {
    std::vector<std::uint32_t> ranks;
    std::optional<std::filesystem::path> svg;
};

/// `explain-ppl RUN --seen X`.
struct ExplainPplOptions {
    std::string run;
    std::string seen; ///< as it was written: its digits say how near a match must be
};

/// `demo [qa|lm]`.
struct DemoOptions {
    std::string name = "qa";
    std::string inject;
    std::vector<config::FlagSetting> flags;
};

/// `bench NAME`.
struct BenchOptions {
    std::string name = "qa";
    std::vector<config::FlagSetting> flags;
};

/// `config show|validate|schema|init`.
struct ConfigOptions {
    std::string action;
    std::string file;
    bool hasOrigins = false;
    std::vector<config::FlagSetting> flags;
};

/// `help TOPIC`, `completion SHELL`.
struct HelpOptions {
    std::string topic;
    bool isMan = false;
    std::string shell;
};

/// What a command line says. `verb` is empty when none was given.
struct Invocation {
    std::string verb;
    GlobalOptions global;
    RunOptions run;
    ResumeOptions resume;
    StopOptions stop;
    VerifyOptions verify;
    AlignOptions align;
    ExplainOptions explain;
    ScoreOptions score;
    ShowOptions show;
    ExportOptions exported;
    HistoryOptions history;
    DemoOptions demo;
    BenchOptions bench;
    ConfigOptions config;
    HelpOptions help;
    CompareOptions compare;
    ScaleOptions scale;
    ExplainPplOptions explainPpl;
    ReportOptions report;
};

} // namespace muster::cli
