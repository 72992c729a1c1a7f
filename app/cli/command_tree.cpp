// SPDX-License-Identifier: Apache-2.0
#include "command_tree.h"

#include "config/settings.h"
#include "config/suggest.h"
#include "help.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iostream>
#include <iterator>
#include <map>

namespace muster::cli {

namespace {

/// A flag that stands for one setting of the configuration.
struct SettingFlag {
    const char* names;
    const char* shown; ///< the name used in messages
    const char* key;
    const char* value;
    Completes completes;
    bool isRepeatable;
};

constexpr std::array<SettingFlag, 28> settingFlags{{
    {"--task", "--task", "task", "NAME", Completes::Choice, false},
    {"--model", "--model", "model.path", "DIR", Completes::Folder, false},
    {"--data,--dataset", "--data", "data.files", "FILE", Completes::File, true},
    {"-n,--ranks", "--ranks", "cluster.ranks", "N", Completes::Nothing, false},
    {"-o,--output", "--output", "output", "DIR", Completes::Folder, false},
    {"--limit", "--limit", "data.limit", "N", Completes::Nothing, false},
    {"--subset", "--subset", "data.subset", "RANGES", Completes::Nothing, false},
    {"--dtype", "--dtype", "model.dtype", "NAME", Completes::Choice, false},
    {"--protocol", "--protocol", "lm.protocol", "NAME", Completes::Choice, false},
    {"--max-length", "--max-length", "lm.max_length", "N", Completes::Nothing, false},
    {"--stride", "--stride", "lm.stride", "N", Completes::Nothing, false},
    {"--documents", "--documents", "lm.documents", "NAME", Completes::Choice, false},
    {"--windows", "--windows", "lm.windows", "N", Completes::Nothing, false},
    {"--token-losses", "--token-losses", "lm.token_losses", "SWITCH", Completes::Choice, false},
    {"--group-size", "--group-size", "model.group_size", "N", Completes::Nothing, false},
    {"--text-field", "--text-field", "classification.text_field", "COLUMN", Completes::Nothing,
     false},
    {"--pair-field", "--pair-field", "classification.pair_field", "COLUMN", Completes::Nothing,
     false},
    {"--label-field", "--label-field", "classification.label_field", "COLUMN", Completes::Nothing,
     false},
    {"--label-separator", "--label-separator", "classification.label_separator", "CHARACTER",
     Completes::Nothing, false},
    {"--schedule", "--schedule", "plan.schedule", "NAME", Completes::Choice, false},
    {"--gather", "--gather", "cluster.gather", "NAME", Completes::Choice, false},
    {"--gate", "--gate", "gates", "EXPR", Completes::Nothing, true},
    {"--timeout", "--timeout", "cluster.timeout_s", "SECONDS", Completes::Nothing, false},
    {"--launcher", "--launcher", "cluster.launcher", "NAME", Completes::Choice, false},
    {"--launcher-path", "--launcher-path", "cluster.launcher_path", "FILE", Completes::File, false},
    {"--rank-program", "--rank-program", "cluster.rank_program", "FILE", Completes::File, false},
    {"--inject", "--inject", "inject", "FAULT", Completes::Nothing, false},
    {"--name", "--name", "name", "TEXT", Completes::Nothing, false},
}};

constexpr std::array<const char*, 5> resumeFlags{"--ranks", "--timeout", "--launcher",
                                                 "--launcher-path", "--rank-program"};

struct Extra {
    Completes completes = Completes::Nothing;
    std::vector<std::string> choices;
    bool isRepeatable = false;
};

/// Values that a command collects for settings until the parse is over.
struct Collected {
    const SettingFlag* flag = nullptr; ///< null for --set
    std::vector<std::string> texts;
};

std::vector<std::string> optionNames(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    }
    return names;
}

std::vector<std::string> commandNames(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(command->get_name());
    return names;
}

auto usage(const char* code, std::string message)
{
    return fail(Error::Kind::Usage, code, std::move(message));
}

} // namespace

struct CommandTree::State {
    CLI::App app{"Evaluates models over many ranks and proves that every sample counted once",
                 "muster"};
    Invocation invocation;
    std::map<const CLI::Option*, Extra> extras;
    std::map<const CLI::App*, std::deque<Collected>> collected;
    bool isVersion = false;

    CLI::Option* shape(CLI::Option* option, const char* value,
                       Completes completes = Completes::Nothing,
                       std::vector<std::string> choices = {})
    {
        option->type_name(value);
        const bool isList = option->get_items_expected_max() > 1;
        if (isList)
            option->allow_extra_args(false);
        extras[option] = {completes, std::move(choices), isList};
        return option;
    }

    template <typename T>
    CLI::Option* add(CLI::App* app_, const char* names, T& into, const char* value, const char* doc,
                     Completes completes = Completes::Nothing,
                     std::vector<std::string> choices = {})
    {
        CLI::Option* option = shape(app_->add_option(names, into, doc), value, completes, choices);
        if (!choices.empty()) {
            option->check([choices](const std::string& text) {
                if (std::find(choices.begin(), choices.end(), text) != choices.end())
                    return std::string();
                const std::string meant = config::nearest(text, choices);
                return fmt::format("'{}' is not one of {}{}", text, fmt::join(choices, ", "),
                                   meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
            });
        }
        return option;
    }

    CLI::App* command(CLI::App* parent, const char* name, const char* doc)
    {
        CLI::App* made = parent->add_subcommand(name, doc);
        made->fallthrough();
        made->set_help_flag("-h,--help", "Show what this command does and takes");
        return made;
    }

    void addSettingFlag(CLI::App* to, const SettingFlag& flag)
    {
        const config::Setting* setting = config::findSetting(flag.key);
        Collected& slot = collected[to].emplace_back();
        slot.flag = &flag;
        std::string doc(setting->doc);
        if (flag.isRepeatable)
            doc += " May be repeated.";
        std::vector<std::string> choices(setting->choices.begin(), setting->choices.end());
        CLI::Option* option =
            shape(to->add_option(flag.names, slot.texts, doc), flag.value, flag.completes, choices);
        if (!flag.isRepeatable)
            option->expected(1);
        extras[option].isRepeatable = flag.isRepeatable;
    }

    void addSet(CLI::App* to)
    {
        Collected& slot = collected[to].emplace_back();
        shape(to->add_option("--set", slot.texts,
                             "Set any setting by its full key or its unique last part. May be "
                             "repeated."),
              "KEY=VALUE", Completes::Setting);
    }

    void addRunFlags(CLI::App* to)
    {
        for (const SettingFlag& flag : settingFlags)
            addSettingFlag(to, flag);
        addSet(to);
    }

    void addGlobals()
    {
        GlobalOptions& g = invocation.global;
        app.set_help_flag("-h,--help", "Show this help");
        app.add_flag("--version", isVersion, "Show the version");
        app.add_flag("-q,--quiet", g.isQuiet, "Only results and errors");
        app.add_flag("-v,--verbose", g.verbosity, "Say more; may be repeated");
        app.add_flag("--debug", g.isDebug, "Say everything");
        app.add_flag("--json", g.isJson, "One JSON document on standard output");
        app.add_flag("--ndjson", g.isNdjson, "One JSON event per line on standard output");
        app.add_flag("--plain", g.isPlain, "No bar and no escape sequences");
        app.add_flag("--no-color,--no-colour", g.hasNoColour, "No colours");
        app.add_flag("--no-input", g.hasNoInput, "Never ask");
        app.add_flag("--yes", g.isYes, "Answer every question with yes");
        shape(app.add_option("--config", g.configFile, "Configuration file"), "FILE",
              Completes::File);
        shape(app.add_option("--log-file", g.logFile, "Append the log to this file"), "FILE",
              Completes::File);
    }

    void addRun()
    {
        CLI::App* run = command(&app, "run", "Plan, launch, gather, prove the alignment and score");
        shape(run->add_option("CONFIG", invocation.run.configFile,
                              "Configuration file, or - for standard input"),
              "FILE", Completes::File);
        addRunFlags(run);
        run->add_flag("--dry-run", invocation.run.isDryRun, "Only plan, as `muster plan`");

        CLI::App* plan = command(&app, "plan", "Check everything and show what a run would do");
        shape(plan->add_option("CONFIG", invocation.run.configFile,
                               "Configuration file, or - for standard input"),
              "FILE", Completes::File);
        addRunFlags(plan);

        CLI::App* resume = command(&app, "resume", "Redo what a run still misses, on any ranks");
        shape(resume->add_option("RUN", invocation.resume.run, "Run folder or its abbreviated id"),
              "RUN", Completes::Folder)
            ->required();
        for (const SettingFlag& flag : settingFlags) {
            if (std::find_if(resumeFlags.begin(), resumeFlags.end(), [&flag](const char* name) {
                    return std::string_view(name) == flag.shown;
                }) != resumeFlags.end())
                addSettingFlag(resume, flag);
        }
        addSet(resume);

        CLI::App* stop = command(&app, "stop", "End a live run and keep its results");
        shape(stop->add_option("RUN", invocation.stop.run, "Run folder or its abbreviated id"),
              "RUN", Completes::Folder)
            ->required();
        add(stop, "--grace", invocation.stop.graceS, "SECONDS",
            "How long the ranks may finish what they compute")
            ->check(CLI::Range(0.0, 86400.0));
    }

    void addForeign(CLI::App* to, ForeignOptions& into)
    {
        add(to, "--data,--dataset", into.data, "FILE",
            "Data with the reference answers or labels. May be repeated.", Completes::File);
        add(to, "--pred-field", into.predictionField, "NAME",
            "Column of the predictions; guessed by default");
        add(to, "--index-field", into.indexField, "NAME",
            "Column of the sample indices; guessed by default");
        add(to, "--id-field", into.idField, "NAME", "Column of the ids; guessed by default");
        add(to, "--row-label-field", into.labelField, "NAME",
            "Column of labels in the result file itself");
        add(to, "--text-field", into.dataTextField, "NAME", "Column of the text in the data");
        add(to, "--label-field", into.dataLabelField, "NAME", "Column of the label in the data");
        add(to, "--shift", into.shift, "K", "How far the shift scan looks")
            ->check(CLI::Range(std::int64_t{0}, std::int64_t{100000}));
        add(to, "--world", into.world, "W", "Ranks of the cross matrix")
            ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{64}));
        add(to, "--normalizer", into.normalizer, "NAME",
            "How answers are normalised before comparing", Completes::Choice,
            {"squad-en/1", "zh-mixed/1", "squad-extended/1"});
    }

    void addChecks()
    {
        const std::vector<std::string> normalizers{"squad-en/1", "zh-mixed/1", "squad-extended/1"};
        CLI::App* verify = command(&app, "verify",
                                   "Check the invariants of a run, or find a shift in a foreign "
                                   "file");
        add(verify, "TARGET", invocation.verify.target, "RUN|FILE",
            "Run folder; or a result file, a folder of shards, or a pattern", Completes::File)
            ->required();
        addForeign(verify, invocation.verify.foreign);

        CLI::App* align =
            command(&app, "align", "Show how the rows of a result file lie against their data");
        add(align, "FILE", invocation.align.foreign.target, "FILE",
            "Result file, folder of shards, or pattern", Completes::File)
            ->required();
        addForeign(align, invocation.align.foreign);
        add(align, "--repair", invocation.align.output, "OUT",
            "Write the predictions in the order found, as JSONL", Completes::File);

        CLI::App* imported =
            command(&app, "import", "Bring a result file of another program into a folder");
        add(imported, "FILE", invocation.align.foreign.target, "FILE",
            "Result file, folder of shards, or pattern", Completes::File)
            ->required();
        addForeign(imported, invocation.align.foreign);
        add(imported, "-o,--output", invocation.align.output, "DIR", "Folder to make",
            Completes::Folder)
            ->required();

        CLI::App* explain =
            command(&app, "explain", "Find the procedure that gives a number somebody saw");
        add(explain, "--metric", invocation.explain.metric, "X",
            "The number seen, in percent (0.813 is taken as 81.3)")
            ->required();
        add(explain, "--metric-name", invocation.explain.name, "NAME",
            "What the number is: em, f1, accuracy, macro-f1; any by default");
        add(explain, "--pred,--predictions", invocation.explain.foreign.target, "FILE",
            "Result file, folder of shards, or pattern", Completes::File)
            ->required();
        addForeign(explain, invocation.explain.foreign);

        CLI::App* score = command(&app, "score", "Score a file of predictions");
        add(score, "FILE", invocation.score.predictions, "FILE",
            "Predictions: a JSON object from question id to answer, or any file that verify reads",
            Completes::File)
            ->required();
        add(score, "--data,--dataset", invocation.score.data, "FILE",
            "Data with the reference answers. May be repeated.", Completes::File)
            ->required();
        add(score, "--rules", invocation.score.rules, "NAME",
            "SQuAD rules; auto takes 2.0 when questions without answer occur", Completes::Choice,
            {"auto", "1.1", "2.0"});
        add(score, "--normalizer", invocation.score.normalizer, "NAME",
            "How answers are normalised before comparing", Completes::Choice, normalizers);
        add(score, "--na-prob,--na-prob-file", invocation.score.nullOdds, "FILE",
            "Null odds: a JSON object from question id to number", Completes::File);
        add(score, "--na-prob-thresh", invocation.score.nullThreshold, "X",
            "Null odds above which an answer counts as empty; without it answers count as they "
            "are");
        add(score, "--sums", invocation.score.sums, "NAME",
            "Sums of the 2.0 totals: plain, or compensated as Python forms them from 3.12 on",
            Completes::Choice, {"plain", "compensated"});
        add(score, "--abstention", invocation.score.abstentions, "TEXT",
            "A text that counts as no answer. May be repeated.");
        add(score, "--pred-field", invocation.score.foreign.predictionField, "NAME",
            "Column of the predictions; guessed by default");
        add(score, "--index-field", invocation.score.foreign.indexField, "NAME",
            "Column of the sample indices; guessed by default");
        add(score, "--id-field", invocation.score.foreign.idField, "NAME",
            "Column of the ids; guessed by default");
        score->add_flag("--rows", invocation.score.hasAllRows,
                        "Also the score of every question (with --json)");
    }

    void addComparisons()
    {
        CLI::App* compare =
            command(&app, "compare", "Compare runs: whether they can be, then what differs");
        CompareOptions& into = invocation.compare;
        CLI::Option* runs = compare->add_option("RUNS", into.runs,
                                                "Run folders or abbreviated ids; the others are "
                                                "compared with the first");
        runs->type_name("RUN");
        runs->required();
        extras[runs] = {Completes::Folder, {}, true};
        add(compare, "--preset", into.preset, "NAME",
            "What is asked: metrics, determinism (what changed at all), scaling", Completes::Choice,
            {"metrics", "determinism", "scaling"});
        add(compare, "--fail-on", into.failOn, "EXPR",
            "Exit 7 when this holds, such as 'em < -0.5pp @ 95%'. May be repeated.");
        add(compare, "--format", into.format, "NAME", "How the text is laid out", Completes::Choice,
            {"text", "markdown", "latex", "csv"});
        add(compare, "--confidence", into.confidence, "PERCENT", "Of the intervals and readings")
            ->check(CLI::Range(1.0, 99.9999));
        add(compare, "--samples", into.samples, "N", "Show at most this many changed samples");
        add(compare, "--bootstrap", into.bootstrap, "N",
            "Replicates of the second opinion on a difference; 0 for none")
            ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1000000}));
        compare->add_flag("--only-differences,!--all-settings", into.hasOnlyDifferences,
                          "Show only settings that differ, as is the default");
        add(compare, "-o,--output", into.output, "FILE", "Write the text to this file",
            Completes::File);
        add(compare, "--svg", into.svg, "FILE", "Draw the scaling preset", Completes::File);

        CLI::App* report = command(&app, "report", "Write one HTML file about a run");
        add(report, "RUN", invocation.report.run, "RUN", "Run folder or its abbreviated id",
            Completes::Folder)
            ->required();
        add(report, "-o,--output", invocation.report.output, "FILE",
            "File to write; report.html in the run's folder by default", Completes::File);
        add(report, "--lang", invocation.report.language, "NAME",
            "Language that the page shows first", Completes::Choice, {"en", "zh_CN"});

        CLI::App* scale =
            command(&app, "scale", "Run on several rank counts, one after the other, and compare");
        shape(scale->add_option("CONFIG", invocation.run.configFile,
                                "Configuration file, or - for standard input"),
              "FILE", Completes::File);
        CLI::Option* counts =
            add(scale, "-n,--ranks", invocation.scale.ranks, "N,N", "Rank counts, such as 1,2,4,8");
        counts->required()->delimiter(',')->check(
            CLI::Range(std::uint32_t{1}, std::uint32_t{4096}));
        add(scale, "--svg", invocation.scale.svg, "FILE",
            "Where the drawing goes; scaling.svg in the output folder by default", Completes::File);
        for (const SettingFlag& flag : settingFlags)
            if (std::string_view(flag.shown) != "--ranks")
                addSettingFlag(scale, flag);
        addSet(scale);

        CLI::App* explain =
            command(&app, "explain-ppl", "Find the average that gives a perplexity somebody saw");
        add(explain, "RUN", invocation.explainPpl.run, "RUN", "Run folder or its abbreviated id",
            Completes::Folder)
            ->required();
        add(explain, "--seen", invocation.explainPpl.seen, "X",
            "The perplexity, with the digits that were seen")
            ->required();
    }

    void addViews()
    {
        CLI::App* show = command(&app, "show", "Show a run: verdict, metrics, ranks, time");
        add(show, "RUN", invocation.show.run, "RUN", "Run folder or its abbreviated id",
            Completes::Folder)
            ->required();
        add(show, "--sample", invocation.show.sample, "INDEX", "Show one sample in full");

        const std::vector<std::string> formats{"json",  "jsonl",   "csv",          "predictions",
                                               "proof", "lm-eval", "chrome-trace", "all"};
        CLI::App* exported = command(&app, "export", "Write the files of a run again");
        add(exported, "RUN", invocation.exported.run, "RUN", "Run folder or its abbreviated id",
            Completes::Folder)
            ->required();
        add(exported, "--format", invocation.exported.formats, "NAME",
            "What to write; may be repeated, or a list with commas", Completes::Choice, formats)
            ->delimiter(',');
        add(exported, "-o,--output", invocation.exported.output, "DIR",
            "Folder to write to; the run's own by default", Completes::Folder);

        addComparisons();

        CLI::App* history = command(&app, "history", "Look up and tidy earlier runs");
        const std::vector<std::string> actions{"ls", "show", "tag", "rm", "rebuild", "gc"};
        add(history, "ACTION", invocation.history.action, "ACTION", "What to do; ls by default",
            Completes::Choice, actions);
        CLI::Option* arguments =
            history->add_option("ARGUMENTS", invocation.history.arguments, "Run, tag");
        arguments->type_name("TEXT");
        extras[arguments] = {Completes::Nothing, {}, true};
        add(history, "--limit", invocation.history.limit, "N", "Show at most this many");
    }

    void addRest()
    {
        command(&app, "doctor", "Check this machine: launchers, rank programs, memory, folders");

        CLI::App* demo = command(&app, "demo",
                                 "Evaluate a bundled model: qa on 1,190 questions, lm on 200 "
                                 "stories");
        add(demo, "NAME", invocation.demo.name, "NAME", "What to show: qa by default",
            Completes::Choice, {"qa", "lm"});
        add(demo, "--inject", invocation.demo.inject, "FAULT",
            "Let something go wrong and watch what happens", Completes::Choice,
            {"rank-loss", "off-by-one", "duplicate", "drop"});
        for (const SettingFlag& flag : settingFlags) {
            const std::string_view name = flag.shown;
            if (name == "--ranks" || name == "--output" || name == "--limit" || name == "--dtype" ||
                name == "--launcher" || name == "--rank-program")
                addSettingFlag(demo, flag);
        }
        addSet(demo);

        CLI::App* config = command(&app, "config", "Show, check and begin configurations");
        config->require_subcommand(0, 1);
        const auto action = [this, config](const char* name, const char* doc) {
            CLI::App* made = command(config, name, doc);
            made->callback([this, name] { invocation.config.action = name; });
            return made;
        };
        CLI::App* shown = action("show", "Print the configuration that a run would use");
        add(shown, "CONFIG", invocation.config.file, "FILE", "Configuration file", Completes::File);
        shown->add_flag("--origin", invocation.config.hasOrigins, "Say where each value came from");
        addRunFlags(shown);
        CLI::App* validate = action("validate", "Report everything that is wrong with a file");
        add(validate, "CONFIG", invocation.config.file, "FILE", "Configuration file",
            Completes::File);
        addSet(validate);
        action("schema", "Print the JSON Schema of the configuration file");
        CLI::App* init = action("init", "Begin a configuration file");
        add(init, "FILE", invocation.config.file, "FILE",
            "File to write; standard output without it", Completes::File);

        CLI::App* bench = command(&app, "bench", "Measure this machine and this build");
        add(bench, "NAME", invocation.bench.name, "NAME", "What to measure: qa by default");
        addRunFlags(bench);

        command(&app, "version", "Show the versions of all parts");

        CLI::App* completion = command(&app, "completion", "Print the completion of a shell");
        add(completion, "SHELL", invocation.help.shell, "SHELL", "bash, zsh or fish",
            Completes::Choice, {"bash", "zsh", "fish"})
            ->required();

        CLI::App* help = command(&app, "help", "Explain a command or a topic");
        add(help, "TOPIC", invocation.help.topic, "TOPIC", "A command or a topic",
            Completes::Choice);
        help->add_flag("--man", invocation.help.isMan, "Print the manual page (roff)");
    }

    State()
    {
        app.require_subcommand(0, 1);
        addGlobals();
        addRun();
        addChecks();
        addViews();
        addRest();
        std::vector<std::string> topics = commandNames(app);
        for (const std::string& topic : helpTopics())
            topics.push_back(topic);
        for (CLI::Option* option : app.get_subcommand("help")->get_options()) {
            if (option->get_name() == "TOPIC")
                extras[option].choices = topics;
        }
    }

    /// The command that the line names, with its own command where it has one.
    const CLI::App* chosen() const
    {
        const CLI::App* at = &app;
        while (!at->get_subcommands().empty())
            at = at->get_subcommands().back();
        return at;
    }

    /// `config show`; empty when the line names no command.
    std::string chosenPath() const
    {
        std::string path;
        for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
            at = at->get_subcommands().back();
            path += (path.empty() ? "" : " ") + at->get_name();
        }
        return path;
    }

    /// All commands of `at` with their options, without the hidden ones.
    CommandInfo describe(const CLI::App& at) const
    {
        CommandInfo made{at.get_name(), at.get_description(), {}, {}, {}};
        for (const CLI::Option* option : at.get_options()) {
            OptionInfo one;
            one.doc = option->get_description();
            one.isRequired = option->get_required();
            if (const auto extra = extras.find(option); extra != extras.end()) {
                one.completes = extra->second.completes;
                one.choices = extra->second.choices;
                one.isRepeatable = extra->second.isRepeatable;
            }
            if (option->get_items_expected_max() > 0)
                one.value = option->get_type_name();
            if (option->get_positional()) {
                one.names.push_back(option->get_name());
                made.positionals.push_back(std::move(one));
                continue;
            }
            for (const std::string& name : option->get_snames())
                one.names.push_back("-" + name);
            for (const std::string& name : option->get_lnames())
                one.names.push_back("--" + name);
            made.options.push_back(std::move(one));
        }
        for (const CLI::App* inner : at.get_subcommands([](const CLI::App*) { return true; }))
            made.commands.push_back(describe(*inner));
        return made;
    }

    tl::unexpected<Error> unexpected(const std::vector<std::string>& left) const
    {
        const CLI::App* at = chosen();
        const std::string word = left.empty() ? std::string() : left.front();
        const std::string name = word.substr(0, word.find('='));
        if (word.starts_with("-")) {
            std::vector<std::string> names = optionNames(app);
            for (const CLI::App* a = at; a != &app; a = a->get_parent()) {
                const auto own = optionNames(*a);
                names.insert(names.end(), own.begin(), own.end());
            }
            const std::string meant = config::nearest(name, names);
            const std::string path =
                at == &app ? std::string("muster") : "muster " + at->get_name();
            return usage("E-CLI-002",
                         fmt::format("{} has no option '{}'{}", path, name,
                                     meant.empty() ? fmt::format("; see {} --help", path)
                                                   : fmt::format("; did you mean {}?", meant)));
        }
        const auto names = commandNames(*at);
        if (!names.empty()) {
            const std::string meant = config::nearest(word, names);
            return usage("E-CLI-001",
                         fmt::format("there is no command '{}'{}", word,
                                     meant.empty() ? "; see muster --help"
                                                   : fmt::format("; did you mean {}?", meant)));
        }
        return usage("E-CLI-002", fmt::format("'{}' is one argument too many for muster {}", word,
                                              at->get_name()));
    }

    Result<std::vector<config::FlagSetting>> flagsOf(const CLI::App* at) const
    {
        std::vector<config::FlagSetting> flags;
        const auto slots = collected.find(at);
        if (slots == collected.end())
            return flags;
        for (const Collected& slot : slots->second) {
            for (const std::string& text : slot.texts) {
                if (slot.flag != nullptr) {
                    flags.push_back({slot.flag->shown, slot.flag->key, text});
                    continue;
                }
                auto set = config::parseSet(text);
                if (!set)
                    return fail(std::move(set).error());
                flags.push_back(std::move(*set));
            }
        }
        return flags;
    }
};

CommandTree::CommandTree() : m_state(std::make_unique<State>())
{
}
CommandTree::~CommandTree() = default;

CommandInfo CommandTree::info() const
{
    return m_state->describe(m_state->app);
}

Result<std::variant<Invocation, Printed>> CommandTree::parse(std::span<const std::string> arguments)
{
    State& state = *m_state;
    CLI::App& app = state.app;
    // CLI11 takes the arguments from the back.
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
        app.parse(reversed);
    } catch (const CLI::CallForHelp&) {
        return Printed{helpText(info(), state.chosenPath())};
    } catch (const CLI::ExtrasError&) {
        return state.unexpected(app.remaining(true));
    } catch (const CLI::ParseError& error) {
        if (state.isVersion)
            return Printed{versionLine()};
        // A misspelt option that is followed by a value reads as a missing argument.
        const auto left = app.remaining(true);
        if (std::any_of(left.begin(), left.end(),
                        [](const std::string& word) { return word.starts_with("-"); }))
            return state.unexpected(left);
        return usage("E-CLI-003", error.what());
    } catch (const std::exception& error) {
        return usage("E-CLI-003", error.what());
    }
    if (state.isVersion)
        return Printed{versionLine()};

    Invocation& made = state.invocation;
    if (made.global.isJson && made.global.isNdjson)
        return usage("E-CLI-004", "--json and --ndjson exclude each other");
    const CLI::App* at = state.chosen();
    const auto chosen = app.get_subcommands();
    made.verify.foreign.target = made.verify.target;
    made.verify.data = made.verify.foreign.data;
    made.score.foreign.target = made.score.predictions.string();
    made.score.foreign.data = made.score.data;
    made.score.foreign.normalizer = made.score.normalizer;
    made.verb = chosen.empty() ? std::string() : chosen.front()->get_name();
    auto flags = state.flagsOf(at);
    if (!flags)
        return fail(std::move(flags).error());
    made.run.flags = *flags;
    made.resume.flags = *flags;
    made.demo.flags = *flags;
    made.bench.flags = *flags;
    made.config.flags = std::move(*flags);
    return made;
}

Result<config::Resolved> resolvedConfig(const GlobalOptions& global, const std::string& file,
                                        const std::vector<config::FlagSetting>& flags)
{
    if (!file.empty() && global.configFile)
        return usage("E-CLI-004", "a configuration file and --config are given; one is enough");
    config::Sources sources = config::standardSources();
    sources.flags = flags;
    const std::string given = file.empty() ? global.configFile.value_or("") : file;
    if (given == "-") {
        std::string text{std::istreambuf_iterator<char>(std::cin), {}};
        sources.givenText = config::TomlText{"stdin", std::move(text), "."};
    } else if (!given.empty()) {
        sources.givenFile = given;
    }
    return config::resolve(sources).result();
}

} // namespace muster::cli
