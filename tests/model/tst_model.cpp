// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"
#include "model/shared_image_p.h"

#include "model/tiny_model.h"

#include <QtTest>

#include <atomic>
#include <thread>

using namespace muster;
using namespace muster::model;
using muster::test::pathOf;
using muster::test::TinyShape;
using muster::test::writeText;

class TestModel final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aHostileDirectoryIsAnError_data();
    void aHostileDirectoryIsAnError();
    void harmlessKeysAndTensorsAreAllowed();
    void theDigestChangesWithWeightsAndMathematics();
    void bfloat16WeightsAreRead();
    void ranksOfANodeShareTheWeights();
    void sharedWeightsAreFilledOnce();
    void otherWeightsAreNotTaken();
    void aMissingLocalRankZeroIsNoError();
};

void TestModel::aHostileDirectoryIsAnError_data()
{
    QTest::addColumn<QString>("from"); // replaced in config.json
    QTest::addColumn<QString>("to");
    QTest::addColumn<QString>("tensor"); // taken out, or with + put in, or with = made longer
    QTest::addColumn<QString>("code");
    const auto config = [](const char* name, const char* from, const char* to, const char* code) {
        QTest::newRow(name) << from << to << "" << code;
    };
    const auto key = [&](const char* name, const char* text) {
        config(name, "\"hidden_size\"", (std::string(text) + ",\"hidden_size\"").c_str(),
               "E-MODEL-022");
    };
    config("no JSON", "{", "[", "E-MODEL-020");
    config("unknown activation", "\"gelu\"", "\"mish\"", "E-MODEL-022");
    config("other architecture", "BertForQuestionAnswering", "GPT2LMHeadModel", "E-MODEL-023");
    config("heads do not divide", "\"num_attention_heads\":3", "\"num_attention_heads\":5",
           "E-MODEL-021");
    config("no heads", "\"num_attention_heads\":3", "\"num_attention_heads\":0", "E-MODEL-021");
    config("negative size", "\"hidden_size\":24", "\"hidden_size\":-24", "E-MODEL-021");
    config("size is a text", "\"hidden_size\":24", "\"hidden_size\":\"24\"", "E-MODEL-021");
    config("huge layers", "\"num_hidden_layers\":2", "\"num_hidden_layers\":9999999",
           "E-MODEL-021");
    config("missing size", "\"hidden_size\":24,", "", "E-MODEL-021");
    config("epsilon zero", "1e-6", "0", "E-MODEL-021");
    config("other width", "\"hidden_size\":24", "\"hidden_size\":48", "E-MODEL-030");
    config("other vocabulary", "\"vocab_size\":50", "\"vocab_size\":51", "E-MODEL-030");
    config("fewer layers than tensors", "\"num_hidden_layers\":2", "\"num_hidden_layers\":1",
           "E-MODEL-030");
    key("relative positions", R"("position_embedding_type":"relative_key")");
    key("quantised", R"("quantization_config":{"bits":4})");
    key("decoder", R"("is_decoder":true)");
    key("pruned heads", R"("pruned_heads":{"0":[1]})");
    key("unknown key", R"("attention_softcap":30.0)");
    const auto tensor = [](const char* name, const char* change, const char* code) {
        QTest::newRow(name) << ""
                            << "" << change << code;
    };
    tensor("missing tensor", "bert.encoder.layer.1.output.dense.bias", "E-MODEL-030");
    tensor("missing head", "qa_outputs.weight", "E-MODEL-030");
    tensor("unknown tensor", "+bert.encoder.layer.2.output.dense.bias", "E-MODEL-030");
    tensor("mis-shaped tensor", "=bert.encoder.layer.1.output.dense.bias", "E-MODEL-030");
}

void TestModel::aHostileDirectoryIsAnError()
{
    QFETCH(QString, from);
    QFETCH(QString, to);
    QFETCH(QString, tensor);
    QFETCH(QString, code);
    const TinyShape shape;
    auto tensors = test::tinyTensors(shape);
    auto name = tensor.toStdString();
    if (name.starts_with('+')) {
        tensors[name.substr(1)] = {{1}, {0.0F}};
    } else if (name.starts_with('=')) {
        auto& changed = tensors.at(name.substr(1));
        ++changed.shape[0];
        changed.values.push_back(0.0F);
    } else {
        tensors.erase(name);
    }
    const QTemporaryDir directory;
    test::writeTinyModel(pathOf(directory), shape, tensors);
    auto config = QString::fromStdString(test::tinyConfig(shape));
    if (!from.isEmpty()) {
        QVERIFY(config.contains(from));
        config.replace(config.indexOf(from), from.size(), to);
    }
    writeText(pathOf(directory) / "config.json", config.toStdString());
    const auto model = loadModel({.path = pathOf(directory)});
    QVERIFY(!model);
    QCOMPARE(QString::fromStdString(model.error().code), code);
    const auto word = name.starts_with('+') || name.starts_with('=') ? name.substr(1) : name;
    QVERIFY2(model.error().message.find(word) != std::string::npos, model.error().message.c_str());
}

void TestModel::harmlessKeysAndTensorsAreAllowed()
{
    const TinyShape shape;
    auto tensors = test::tinyTensors(shape);
    tensors["bert.embeddings.position_ids"] = {{1}, {0.0F}};
    tensors["bert.pooler.dense.weight"] = {{1}, {0.0F}};
    const QTemporaryDir directory;
    test::writeTinyModel(pathOf(directory), shape, tensors);
    auto config = test::tinyConfig(shape);
    config.insert(1, R"("_name_or_path":"x","transformers_version":"4.1","torch_dtype":"float32",)"
                     R"("position_embedding_type":"absolute","is_decoder":false,)"
                     R"("classifier_dropout":null,"pruned_heads":{},)");
    writeText(pathOf(directory) / "config.json", config);
    const auto model = loadModel({.path = pathOf(directory)});
    QVERIFY2(model, model ? "" : model.error().text().c_str());
}

void TestModel::theDigestChangesWithWeightsAndMathematics()
{
    TinyShape shape;
    auto tensors = test::tinyTensors(shape);
    const auto digest = [&] {
        const QTemporaryDir directory;
        test::writeTinyModel(pathOf(directory), shape, tensors);
        const auto model = loadModel({.path = pathOf(directory)});
        return model ? (*model)->identity().digest : Hash128();
    };
    const auto first = digest();
    QVERIFY(first == digest());
    shape.activation = "relu";
    QVERIFY(first != digest());
    shape.activation = "gelu";
    tensors["qa_outputs.bias"].values[1] += 1e-7F;
    QVERIFY(first != digest());
}

void TestModel::bfloat16WeightsAreRead()
{
    const TinyShape shape;
    const QTemporaryDir directory;
    test::writeTinyModel(pathOf(directory), shape, test::tinyTensors(shape), true);
    const auto model = loadModel({.path = pathOf(directory), .precision = Precision::Bfloat16});
    QVERIFY2(model, model ? "" : model.error().text().c_str());
}

void TestModel::ranksOfANodeShareTheWeights()
{
    const TinyShape shape;
    const QTemporaryDir directory;
    test::writeTinyModel(pathOf(directory), shape, test::tinyTensors(shape));
    wire::Unit unit;
    unit.items = {0, 1};
    unit.offsets = {0, 4, 7};
    unit.tokens = {1, 2, 3, 4, 5, 6, 7};
    const auto alone = loadModel({.path = pathOf(directory)});
    QVERIFY(alone);
    const auto expected = (*alone)->compute(unit);
    QVERIFY(expected);
    const auto key = "test " + pathOf(directory).string();
    std::vector<int> equal(3);
    std::vector<Result<std::unique_ptr<Model>>> models(3);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
        ranks.emplace_back([&, rank] {
            const auto model =
                loadModel({.path = pathOf(directory),
                           .shared = {.localRank = rank, .localRanks = 3, .key = key}});
            if (!model)
                return;
            const auto outputs = (*model)->compute(unit);
            equal[rank] = outputs && *outputs == *expected ? 1 : 0;
        });
    }
    for (auto& rank : ranks)
        rank.join();
    QVERIFY((equal == std::vector<int>{1, 1, 1}));
}

void TestModel::sharedWeightsAreFilledOnce()
{
    std::atomic<int> fills = 0;
    std::vector<Result<Image>> images(4);
    std::vector<std::thread> ranks;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        ranks.emplace_back([&, rank] {
            images[rank] = makeImage({.localRank = rank, .localRanks = 4, .key = "filled once"},
                                     hash128("weights"), 100000, [&](std::byte* to) {
                                         ++fills;
                                         to[99999] = std::byte{7};
                                     });
        });
    }
    for (auto& rank : ranks)
        rank.join();
    QCOMPARE(fills.load(), 1);
    for (const auto& image : images) {
        QVERIFY(image && image->isShared);
        QVERIFY(image->bytes.get()[99999] == std::byte{7});
    }
}

void TestModel::otherWeightsAreNotTaken()
{
    const auto make = [](std::uint32_t rank, std::string_view content) {
        return makeImage({.localRank = rank, .localRanks = 2, .key = "other weights"},
                         hash128(content), 100, [](std::byte*) {});
    };
    const auto first = make(0, "one");
    const auto second = make(1, "another");
    QVERIFY(first && first->isShared);
    QVERIFY(second && !second->isShared);
}

void TestModel::aMissingLocalRankZeroIsNoError()
{
    const TinyShape shape;
    const QTemporaryDir directory;
    test::writeTinyModel(pathOf(directory), shape, test::tinyTensors(shape));
    // Local rank 0 waits for nobody, and a rank that finds none reads for itself.
    for (const std::uint32_t rank : {0U, 3U}) {
        const auto model =
            loadModel({.path = pathOf(directory),
                       .shared = {.localRank = rank, .localRanks = 5, .key = "alone"}});
        QVERIFY(model);
    }
}

QTEST_GUILESS_MAIN(TestModel)
#include "tst_model.moc"
