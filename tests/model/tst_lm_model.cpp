// SPDX-License-Identifier: Apache-2.0
// The tiny models of tests/data/lm and their losses come from make_lm_models.py (transformers
// 5.24.0).
#include "model/lm_model_p.h"
#include "wire/output.h"

#include "model/tiny_model.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>

using namespace muster;
using namespace muster::model;
using muster::test::pathOf;
using muster::test::writeText;

namespace {

std::filesystem::path dataOf(const std::string& name)
{
    return std::filesystem::path(MUSTER_TEST_DATA) / "lm" / name;
}

nlohmann::json readJson(const std::filesystem::path& path)
{
    return nlohmann::json::parse(std::ifstream(path));
}

using Tokens = std::vector<std::int32_t>;

void addItem(wire::Unit& unit, const Tokens& tokens, std::uint32_t scoredFrom = 1)
{
    unit.kind = wire::UnitKind::Lm;
    if (unit.offsets.empty())
        unit.offsets = {0};
    unit.items.push_back(unit.items.size());
    unit.tokens.insert(unit.tokens.end(), tokens.begin(), tokens.end());
    unit.offsets.push_back(static_cast<std::uint32_t>(unit.tokens.size()));
    unit.scoredFrom.push_back(scoredFrom);
}

wire::Unit unitOf(const Tokens& tokens, std::uint32_t scoredFrom = 1)
{
    wire::Unit unit;
    addItem(unit, tokens, scoredFrom);
    return unit;
}

Tokens someTokens(std::size_t count, std::int32_t vocabulary = 37, std::uint64_t seed = 3)
{
    test::TinyNumbers numbers(seed);
    Tokens tokens;
    for (std::size_t i = 0; i < count; ++i)
        tokens.push_back(static_cast<std::int32_t>((numbers.next(0.5F) + 0.5F) *
                                                   static_cast<float>(vocabulary - 1)));
    return tokens;
}

/// The output of one item; empty when it is an error.
wire::LmOutput outputOf(const wire::Output& output, std::uint32_t targets)
{
    if ((output.flags & wire::errorFlag) != 0)
        return {};
    const auto decoded = wire::decodeLm(output.payload, targets);
    return decoded ? *decoded : wire::LmOutput{};
}

std::string textOf(const wire::Output& output)
{
    std::string text;
    for (const auto byte : output.payload)
        text += static_cast<char>(byte);
    return text;
}

ModelOptions optionsOf(const std::filesystem::path& path, Precision precision = Precision::Float32)
{
    return {.path = path,
            .kind = wire::UnitKind::Lm,
            .precision = precision,
            .tokenLosses = true,
            .groupSize = 32};
}

double meanLoss(const std::string& name, Precision precision)
{
    const auto golden = readJson(dataOf(name) / "losses.json");
    const auto model = loadModel(optionsOf(dataOf(name), precision));
    if (!model)
        return std::nan("");
    const auto outputs = (*model)->compute(unitOf(golden.at("ids").get<Tokens>()));
    return outputs ? outputOf(outputs->front(), 47).lossSum / 47 : std::nan("");
}

/// A copy of a tiny model with another config.json.
void copyModel(const std::string& name, const QTemporaryDir& to,
               const std::function<void(nlohmann::json&)>& change)
{
    auto config = readJson(dataOf(name) / "config.json");
    change(config);
    writeText(pathOf(to) / "config.json", config.dump());
    std::filesystem::copy_file(dataOf(name) / "model.safetensors",
                               pathOf(to) / "model.safetensors");
}

} // namespace

class TestLmModel final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void lossesAreThoseOfTransformers_data();
    void lossesAreThoseOfTransformers();
    void anItemHasTheSameBitsInEveryUnit_data();
    void anItemHasTheSameBitsInEveryUnit();
    void scoredPositionsAreAsAskedFor();
    void lowPrecisionsAreNear_data();
    void lowPrecisionsAreNear();
    void lowPrecisionsUseLessMemory();
    void itemsThatCannotBeComputedSayWhy();
    void aLossThatIsNotFiniteIsNamed();
    void ranksOfANodeShareTheWeights();
    void aHostileConfigurationIsAnError_data();
    void aHostileConfigurationIsAnError();
    void aCheckpointThatDoesNotFitIsAnError();
    void optionsOutOfRangeAreErrors();
    void bothSpellingsOfRopeAreOne();
};

void TestLmModel::lossesAreThoseOfTransformers_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("isPlain");
    for (const auto* name :
         {"llama-biases", "llama-llama3-rope", "llama-linear-rope", "mistral-window",
          "qwen2-biases", "qwen2-window", "qwen3-head-norms", "gpt2"}) {
        QTest::newRow(name) << QString(name) << false;
        QTest::newRow(qPrintable(QString("%1, portable kernels").arg(name)))
            << QString(name) << true;
    }
}

void TestLmModel::lossesAreThoseOfTransformers()
{
    QFETCH(QString, name);
    QFETCH(bool, isPlain);
    const auto path = dataOf(name.toStdString());
    const auto golden = readJson(path / "losses.json");
    const auto model = loadLmModel(optionsOf(path), isPlain ? Engine::Plain : Engine::Automatic);
    QVERIFY2(model, model ? "" : model.error().text().c_str());
    const auto outputs = (*model)->compute(unitOf(golden.at("ids").get<Tokens>()));
    QVERIFY(outputs);
    const auto output = outputOf(outputs->front(), 47);
    QCOMPARE(output.scored, 47U);
    const auto expected = golden.at("losses").get<std::vector<double>>();
    const auto greedy = golden.at("greedy").get<std::vector<std::uint32_t>>();
    double sum = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto own = static_cast<double>(output.losses[i]);
        QVERIFY2(std::fabs(own - expected[i]) < 5e-5,
                 qPrintable(QString("target %1: %2, not %3").arg(i + 1).arg(own).arg(expected[i])));
        sum += own;
    }
    QCOMPARE(output.lossSum, sum);
    QCOMPARE(output.greedyHits, std::accumulate(greedy.begin(), greedy.end(), 0U));
}

void TestLmModel::anItemHasTheSameBitsInEveryUnit_data()
{
    QTest::addColumn<QString>("name");
    QTest::addColumn<int>("precision");
    for (const auto precision : {Precision::Float32, Precision::Bfloat16, Precision::Int8,
                                 Precision::Int4, Precision::Int8Dynamic}) {
        for (const auto* name : {"mistral-window", "gpt2"})
            QTest::newRow(qPrintable(QString("%1, %2").arg(name, nameOf(precision))))
                << QString(name) << static_cast<int>(precision);
    }
}

void TestLmModel::anItemHasTheSameBitsInEveryUnit()
{
    QFETCH(QString, name);
    QFETCH(int, precision);
    auto options = optionsOf(dataOf(name.toStdString()), static_cast<Precision>(precision));
    const auto model = loadModel(options);
    options.threads = 3;
    const auto threaded = loadModel(options);
    QVERIFY(model && threaded);
    wire::Unit unit;
    std::vector<wire::LmOutput> alone;
    const std::vector<std::size_t> lengths{2, 65, 7, 33, 64, 13};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const auto tokens = someTokens(lengths[i], 37, i);
        addItem(unit, tokens);
        const auto single = (*model)->compute(unitOf(tokens));
        QVERIFY(single);
        alone.push_back(outputOf(single->front(), static_cast<std::uint32_t>(lengths[i] - 1)));
    }
    for (const auto* each : {&model, &threaded}) {
        const auto together = (**each)->compute(unit);
        QVERIFY(together);
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            const auto targets = static_cast<std::uint32_t>(lengths[i] - 1);
            QVERIFY(alone[i].scored == targets);
            QVERIFY(outputOf((*together)[i], targets) == alone[i]);
        }
    }
}

void TestLmModel::scoredPositionsAreAsAskedFor()
{
    auto options = optionsOf(dataOf("qwen2-biases"));
    const auto model = loadModel(options);
    options.tokenLosses = false;
    const auto brief = loadModel(options);
    QVERIFY(model && brief);
    const auto tokens = someTokens(40);
    const auto all = outputOf((*model)->compute(unitOf(tokens))->front(), 39);
    QCOMPARE(all.losses.size(), std::size_t{39});
    for (const std::uint32_t from : {1U, 2U, 20U, 39U, 40U}) {
        const auto part = outputOf((*model)->compute(unitOf(tokens, from))->front(), 40 - from);
        QCOMPARE(part.scored, 40 - from);
        QVERIFY(std::equal(part.losses.begin(), part.losses.end(), all.losses.begin() + from - 1,
                           all.losses.end()));
        const auto sum = outputOf((*brief)->compute(unitOf(tokens, from))->front(), 40 - from);
        QVERIFY(sum.losses.empty());
        QCOMPARE(sum.lossSum, part.lossSum);
        QCOMPARE(sum.greedyHits, part.greedyHits);
    }
    const auto single = (*model)->compute(unitOf(Tokens{5}));
    QVERIFY(single && single->front().flags == 0);
    QCOMPARE(outputOf(single->front(), 0).scored, 0U);
}

void TestLmModel::lowPrecisionsAreNear_data()
{
    QTest::addColumn<int>("precision");
    QTest::addColumn<double>("tolerance");
    QTest::newRow("bfloat16") << static_cast<int>(Precision::Bfloat16) << 0.03;
    QTest::newRow("int8") << static_cast<int>(Precision::Int8) << 0.03;
    QTest::newRow("int8-dynamic") << static_cast<int>(Precision::Int8Dynamic) << 0.1;
    QTest::newRow("int4") << static_cast<int>(Precision::Int4) << 0.4;
}

/// Random weights have no easy directions: what stays small here stays smaller in a trained model.
void TestLmModel::lowPrecisionsAreNear()
{
    QFETCH(int, precision);
    QFETCH(double, tolerance);
    for (const auto* name : {"llama-biases", "qwen3-head-norms", "gpt2"}) {
        const auto exact = meanLoss(name, Precision::Float32);
        const auto near = meanLoss(name, static_cast<Precision>(precision));
        QVERIFY2(std::fabs(near - exact) < tolerance && near != exact,
                 qPrintable(QString("%1: %2, not %3").arg(name).arg(near).arg(exact)));
    }
}

/// The tiny models as F32 files: the same numbers in twice the memory.
void TestLmModel::lowPrecisionsUseLessMemory()
{
    const QTemporaryDir directory;
    copyModel("gpt2", directory, [](nlohmann::json&) {});
    const auto file = pathOf(directory) / "model.safetensors";
    const auto checkpoint = Checkpoint::open(pathOf(directory));
    QVERIFY(checkpoint);
    test::TinyTensors tensors;
    for (const auto& [name, view] : checkpoint->tensors()) {
        auto& tensor = tensors[name];
        tensor.shape.assign(view.shape.begin(), view.shape.end());
        tensor.values.resize(view.bytes.size() / 2);
        readFloats(*plainKernels(), view, 0, tensor.values);
    }
    const auto small = loadModel(optionsOf(dataOf("gpt2")));
    std::filesystem::remove(file);
    writeText(file, test::safetensorsOf(tensors));
    const auto bytes = [&](Precision precision) {
        const auto model = loadModel(optionsOf(pathOf(directory), precision));
        return model ? static_cast<double>((*model)->identity().weightBytes) : 0.0;
    };
    const auto full = loadModel(optionsOf(pathOf(directory)));
    QVERIFY(small && full);
    const auto unit = unitOf(someTokens(50));
    const auto ofSmall = (*small)->compute(unit);
    const auto ofFull = (*full)->compute(unit);
    QVERIFY(ofSmall && ofFull && *ofSmall == *ofFull);
    const auto fullBytes = bytes(Precision::Float32);
    QVERIFY(static_cast<double>((*small)->identity().weightBytes) < 0.7 * fullBytes);
    QVERIFY(bytes(Precision::Bfloat16) < 0.7 * fullBytes);
    QVERIFY(bytes(Precision::Int8) < 0.6 * fullBytes);
    QVERIFY(bytes(Precision::Int8Dynamic) < 0.6 * fullBytes);
    QVERIFY(bytes(Precision::Int4) < bytes(Precision::Int8));
}

void TestLmModel::itemsThatCannotBeComputedSayWhy()
{
    const auto model = loadModel(optionsOf(dataOf("gpt2")));
    QVERIFY(model);
    wire::Unit unit;
    const auto good = someTokens(9);
    addItem(unit, good);
    addItem(unit, Tokens{1, 37, 2});
    addItem(unit, Tokens{1, -1, 2});
    addItem(unit, someTokens(66));
    addItem(unit, Tokens{1, 2, 3}, 0);
    addItem(unit, good);
    const auto outputs = (*model)->compute(unit);
    QVERIFY(outputs);
    const std::vector<std::string> words{
        "", "token 1 of the item is 37", "token 1 of the item is -1", "64 positions", "first token",
        ""};
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto& output = (*outputs)[i];
        QCOMPARE((output.flags & wire::errorFlag) != 0, !words[i].empty());
        QVERIFY2(textOf(output).find(words[i]) != std::string::npos, textOf(output).c_str());
        QVERIFY(output.hash == wire::itemHash(unit, i));
    }
    QVERIFY(outputOf((*outputs)[0], 8) == outputOf((*outputs)[5], 8));
    auto other = unitOf(good);
    other.kind = wire::UnitKind::Qa;
    QVERIFY(!(*model)->compute(other));
}

void TestLmModel::aLossThatIsNotFiniteIsNamed()
{
    const QTemporaryDir directory;
    copyModel("gpt2", directory, [](nlohmann::json&) {});
    // Position 5 of the table becomes NaN; later positions see its keys.
    auto file = pathOf(directory) / "model.safetensors";
    std::string bytes;
    {
        std::ifstream in(file, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    const auto header = nlohmann::json::parse(bytes.substr(8, length));
    const auto begin =
        header.at("transformer.wpe.weight").at("data_offsets").at(0).get<std::size_t>();
    const auto at = 8 + length + begin + std::size_t{5} * 18 * 2;
    bytes[at] = '\xC0';
    bytes[at + 1] = '\x7F';
    writeText(file, bytes);
    for (const auto precision :
         {Precision::Float32, Precision::Bfloat16, Precision::Int4, Precision::Int8Dynamic}) {
        const auto model = loadModel(optionsOf(pathOf(directory), precision));
        QVERIFY(model);
        wire::Unit unit;
        addItem(unit, someTokens(6));
        addItem(unit, someTokens(12));
        const auto outputs = (*model)->compute(unit);
        QVERIFY(outputs);
        QCOMPARE((*outputs)[0].flags, 0U);
        QVERIFY(((*outputs)[1].flags & wire::errorFlag) != 0);
        QVERIFY2(textOf((*outputs)[1]).find("position 6 ") != std::string::npos,
                 textOf((*outputs)[1]).c_str());
    }
}

void TestLmModel::ranksOfANodeShareTheWeights()
{
    auto options = optionsOf(dataOf("llama-biases"), Precision::Int8);
    const auto unit = unitOf(someTokens(30));
    const auto expected = (*loadModel(options))->compute(unit);
    QVERIFY(expected);
    std::vector<int> equal(3);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        ranks.emplace_back([&, rank] {
            auto own = options;
            own.shared = {.localRank = rank, .localRanks = 3, .key = "lm weights of a test"};
            const auto model = loadModel(own);
            const auto outputs =
                model ? (*model)->compute(unit) : Result<std::vector<wire::Output>>();
            equal[rank] = outputs && *outputs == *expected ? 1 : 0;
        });
    }
    for (auto& rank : ranks)
        rank.join();
    QVERIFY((equal == std::vector<int>{1, 1, 1}));
}

void TestLmModel::aHostileConfigurationIsAnError_data()
{
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("key");
    QTest::addColumn<QString>("value"); // JSON; empty: the key is taken out
    QTest::addColumn<QString>("code");
    QTest::addColumn<QString>("word"); // in the message
    const auto row = [](const char* model, const char* key, const char* value, const char* code,
                        const char* word = nullptr) {
        QTest::newRow(qPrintable(QString("%1: %2 = %3").arg(model, key, value)))
            << QString(model) << QString(key) << QString(value) << QString(code)
            << QString(word != nullptr ? word : key);
    };
    const char* llama = "llama-biases";
    row(llama, "architectures", R"(["LlamaForSequenceClassification"])", "E-MODEL-023",
        "LlamaForSequenceClassification");
    row(llama, "architectures", R"(["Gemma2ForCausalLM"])", "E-MODEL-023", "Gemma2ForCausalLM");
    row(llama, "hidden_act", R"("gelu")", "E-MODEL-022");
    row(llama, "partial_rotary_factor", "0.5", "E-MODEL-022");
    row(llama, "attn_logit_softcapping", "30.0", "E-MODEL-022");
    row(llama, "final_logit_softcapping", "30.0", "E-MODEL-022");
    row(llama, "logit_scale", "0.06", "E-MODEL-022");
    row(llama, "sliding_window", "8", "E-MODEL-022");
    row(llama, "rope_interleaved", "true", "E-MODEL-022");
    row(llama, "quantization_config", R"({"bits":4})", "E-MODEL-022");
    row(llama, "rope_parameters", R"({"rope_type":"dynamic","factor":2.0})", "E-MODEL-022",
        "dynamic");
    row(llama, "rope_parameters", R"({"rope_type":"yarn","factor":2.0})", "E-MODEL-022", "yarn");
    row(llama, "rope_parameters", R"({"rope_type":"default","factor":2.0})", "E-MODEL-022",
        "factor");
    row(llama, "rope_parameters", R"({"rope_type":"linear"})", "E-MODEL-021", "factor");
    row(llama, "rope_parameters", R"({"rope_type":"linear","type":"default","factor":2})",
        "E-MODEL-022", "rope_type");
    row(llama, "rope_parameters", "7", "E-MODEL-021");
    row(llama, "rope_scaling", R"({"rope_type":"linear","factor":2.0})", "E-MODEL-022");
    row(llama, "rope_theta", "-1", "E-MODEL-021");
    row(llama, "rope_theta", R"("big")", "E-MODEL-021");
    row(llama, "num_key_value_heads", "3", "E-MODEL-021");
    row(llama, "num_attention_heads", "0", "E-MODEL-021");
    row(llama, "head_dim", "5", "E-MODEL-021");
    row(llama, "head_dim", "4000000000", "E-MODEL-021");
    row(llama, "num_hidden_layers", "100000", "E-MODEL-021");
    row(llama, "hidden_size", "-16", "E-MODEL-021");
    row(llama, "intermediate_size", "", "E-MODEL-021");
    row(llama, "rms_norm_eps", "0", "E-MODEL-021");
    row(llama, "tie_word_embeddings", R"("yes")", "E-MODEL-021");
    row(llama, "vocab_size", "38", "E-MODEL-030", "model.embed_tokens.weight");
    row(llama, "num_hidden_layers", "1", "E-MODEL-030", "model.layers.1.");
    row(llama, "attention_bias", "false", "E-MODEL-030", "bias");
    row(llama, "tie_word_embeddings", "true", "E-MODEL-030", "lm_head.weight");
    row("mistral-window", "num_key_value_heads", "", "E-MODEL-021");
    row("mistral-window", "layer_types", R"(["full_attention","full_attention"])", "E-MODEL-022");
    row("mistral-window", "attention_bias", "true", "E-MODEL-022");
    row("qwen2-window", "layer_types", R"(["full_attention"])", "E-MODEL-021");
    row("qwen2-window", "layer_types", R"(["full_attention","linear_attention"])", "E-MODEL-022");
    row("qwen2-window", "use_sliding_window", "false", "E-MODEL-022", "layer_types");
    row("gpt2", "n_head", "4", "E-MODEL-021", "heads");
    row("gpt2", "scale_attn_weights", "false", "E-MODEL-022");
    row("gpt2", "scale_attn_by_inverse_layer_idx", "true", "E-MODEL-022");
    row("gpt2", "activation_function", R"("mish")", "E-MODEL-022");
    row("gpt2", "tie_word_embeddings", "false", "E-MODEL-030", "lm_head.weight");
    row("gpt2", "n_positions", "65", "E-MODEL-030", "wpe");
}

void TestLmModel::aHostileConfigurationIsAnError()
{
    QFETCH(QString, model);
    QFETCH(QString, key);
    QFETCH(QString, value);
    QFETCH(QString, code);
    QFETCH(QString, word);
    const QTemporaryDir directory;
    copyModel(model.toStdString(), directory, [&](nlohmann::json& config) {
        if (value.isEmpty())
            config.erase(key.toStdString());
        else
            config[key.toStdString()] = nlohmann::json::parse(value.toStdString());
    });
    const auto loaded = loadModel(optionsOf(pathOf(directory)));
    QVERIFY(!loaded);
    QCOMPARE(QString::fromStdString(loaded.error().code), code);
    QVERIFY2(loaded.error().message.find(word.toStdString()) != std::string::npos,
             loaded.error().message.c_str());
}

void TestLmModel::aCheckpointThatDoesNotFitIsAnError()
{
    const QTemporaryDir directory;
    copyModel("gpt2", directory, [](nlohmann::json&) {});
    const auto file = pathOf(directory) / "model.safetensors";
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 2);
    const auto cut = loadModel(optionsOf(pathOf(directory)));
    QVERIFY(!cut && cut.error().code.starts_with("E-MODEL-00"));
    std::filesystem::remove(file);
    const auto none = loadModel(optionsOf(pathOf(directory)));
    QVERIFY(!none && none.error().code == "E-MODEL-010");
    const auto nowhereToBeFound = loadModel(optionsOf(pathOf(directory) / "absent"));
    QVERIFY(!nowhereToBeFound && nowhereToBeFound.error().code == "E-MODEL-010");
}

void TestLmModel::optionsOutOfRangeAreErrors()
{
    const auto codeOf = [](ModelOptions options) {
        const auto model = loadModel(options);
        return model ? std::string() : model.error().code;
    };
    auto options = optionsOf(dataOf("gpt2"), Precision::Int4);
    options.groupSize = 48;
    QCOMPARE(codeOf(options), std::string("E-MODEL-027"));
    for (const std::uint32_t size : {32U, 64U, 128U, 256U}) {
        options.groupSize = size;
        QCOMPARE(codeOf(options), std::string());
    }
    options.threads = 0;
    QCOMPARE(codeOf(options), std::string("E-MODEL-026"));
    options = optionsOf(dataOf("gpt2"), Precision::Float16);
    QCOMPARE(codeOf(options), std::string("E-MODEL-025"));
    options = optionsOf(dataOf("gpt2"), Precision::Int8);
    options.kind = wire::UnitKind::Qa;
    QCOMPARE(codeOf(options), std::string("E-MODEL-027"));
}

void TestLmModel::bothSpellingsOfRopeAreOne()
{
    const auto digestOf = [](const std::function<void(nlohmann::json&)>& change) {
        const QTemporaryDir directory;
        copyModel("llama-llama3-rope", directory, change);
        const auto model = loadModel(optionsOf(pathOf(directory)));
        return model ? (*model)->identity().digest : Hash128{};
    };
    const auto old = digestOf([](nlohmann::json&) {});
    const auto now = digestOf([](nlohmann::json& config) {
        config["rope_parameters"] = config["rope_scaling"];
        config["rope_parameters"]["rope_theta"] = config["rope_theta"];
        config.erase("rope_scaling");
        config.erase("rope_theta");
    });
    QVERIFY(old != Hash128{});
    QCOMPARE(QString::fromStdString(now.hex()), QString::fromStdString(old.hex()));
    const auto other = digestOf([](nlohmann::json& config) { config["rope_theta"] = 501.0; });
    QVERIFY(other != Hash128{} && other != old);
}

QTEST_GUILESS_MAIN(TestLmModel)
#include "tst_lm_model.moc"
