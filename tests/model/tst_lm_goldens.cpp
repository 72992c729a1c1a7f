// SPDX-License-Identifier: Apache-2.0
// Losses beside those that transformers 5.24 gave (their provenance lies with the goldens).
#include "model/lm_model_p.h"
#include "wire/output.h"

#include "support/shared_data.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>

using namespace muster;
using namespace muster::model;

namespace {

nlohmann::json readJson(const std::filesystem::path& path)
{
    return nlohmann::json::parse(std::ifstream(path));
}

wire::Unit unitOf(const std::vector<std::int32_t>& tokens, std::uint32_t scoredFrom = 1)
{
    wire::Unit unit;
    unit.kind = wire::UnitKind::Lm;
    unit.items = {0};
    unit.offsets = {0, static_cast<std::uint32_t>(tokens.size())};
    unit.tokens = tokens;
    unit.scoredFrom = {scoredFrom};
    return unit;
}

/// The losses of a text's beginning do not depend on what follows.
void compareBeginning(Model& model, const nlohmann::json& golden, double tolerance)
{
    const auto tokens = golden.at("first_64").get<std::vector<std::int32_t>>();
    const auto expected = golden.at("token_nll_of_window_0").get<std::vector<double>>();
    const auto outputs = model.compute(unitOf(tokens));
    QVERIFY(outputs);
    QCOMPARE(outputs->front().flags, 0U);
    const auto output = wire::decodeLm(outputs->front().payload, 63);
    QVERIFY(output);
    QCOMPARE(output->losses.size(), std::size_t{63});
    double largest = 0;
    double mean = 0;
    for (std::size_t i = 0; i < 63; ++i) {
        const auto difference = static_cast<double>(output->losses[i]) - expected[i];
        largest = std::max(largest, std::fabs(difference));
        mean += difference / 63;
    }
    qInfo("largest difference of a token %g, mean %g", largest, mean);
    QVERIFY(largest < tolerance);
}

} // namespace

class TestLmGoldens final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void stories260K();
    void lowPrecisionsOfATrainedModel_data();
    void lowPrecisionsOfATrainedModel();
    void tinyGpt2();
    void smollm2();
};

void TestLmGoldens::stories260K()
{
    MUSTER_SHARED_OR_SKIP(path, "data/models/stories260K-hf");
    MUSTER_SHARED_OR_SKIP(golden, "goldens/stories260K/tinystories.stream512.json");
    const auto model = loadModel({.path = path, .kind = wire::UnitKind::Lm, .tokenLosses = true});
    QVERIFY2(model, model ? "" : model.error().text().c_str());
    QCOMPARE((*model)->identity().parameters, std::uint64_t{260032});
    compareBeginning(**model, readJson(golden), 2e-5);
}

void TestLmGoldens::lowPrecisionsOfATrainedModel_data()
{
    QTest::addColumn<int>("precision");
    QTest::addColumn<double>("tolerance");
    QTest::newRow("bfloat16") << static_cast<int>(Precision::Bfloat16) << 0.01;
    QTest::newRow("int8") << static_cast<int>(Precision::Int8) << 0.01;
    QTest::newRow("int8-dynamic") << static_cast<int>(Precision::Int8Dynamic) << 0.02;
    QTest::newRow("int4") << static_cast<int>(Precision::Int4) << 0.15;
}

void TestLmGoldens::lowPrecisionsOfATrainedModel()
{
    QFETCH(int, precision);
    QFETCH(double, tolerance);
    MUSTER_SHARED_OR_SKIP(path, "data/models/stories260K-hf");
    MUSTER_SHARED_OR_SKIP(golden, "goldens/stories260K/tinystories.stream512.json");
    const auto expected = readJson(golden);
    const auto losses = expected.at("token_nll_of_window_0").get<std::vector<double>>();
    const auto mean = std::accumulate(losses.begin(), losses.begin() + 63, 0.0) / 63;
    for (const auto engine : {Engine::Automatic, Engine::Plain}) {
        const auto model = loadLmModel({.path = path,
                                        .kind = wire::UnitKind::Lm,
                                        .precision = static_cast<Precision>(precision)},
                                       engine);
        QVERIFY2(model, model ? "" : model.error().text().c_str());
        const auto outputs =
            (*model)->compute(unitOf(expected.at("first_64").get<std::vector<std::int32_t>>()));
        QVERIFY(outputs);
        const auto output = wire::decodeLm(outputs->front().payload, 63);
        QVERIFY(output);
        const auto difference = output->lossSum / 63 - mean;
        qInfo("mean loss differs by %g nats", difference);
        QVERIFY(std::fabs(difference) < tolerance);
    }
}

void TestLmGoldens::tinyGpt2()
{
    MUSTER_SHARED_OR_SKIP(path, "data/models/tiny-gpt2-random");
    MUSTER_SHARED_OR_SKIP(golden, "goldens/tiny-gpt2-random/synthetic.block1024.json");
    const auto expected = readJson(golden);
    const auto model = loadModel({.path = path, .kind = wire::UnitKind::Lm});
    QVERIFY2(model, model ? "" : model.error().text().c_str());
    std::uint64_t state = 12345;
    for (const auto& window : expected.at("windows")) {
        std::vector<std::int32_t> tokens;
        for (int i = 0; i < 1024; ++i) {
            state = (1103515245 * state + 12345) % (1ULL << 31U);
            tokens.push_back(static_cast<std::int32_t>((state >> 16U) % 21));
        }
        const auto outputs = (*model)->compute(unitOf(tokens));
        QVERIFY(outputs);
        const auto output = wire::decodeLm(outputs->front().payload, 1023);
        QVERIFY(output);
        const auto nll = window.at("nll").get<double>();
        QVERIFY2(
            std::fabs(output->lossSum / nll - 1) < 1e-6,
            qPrintable(QString("%1 and %2").arg(output->lossSum, 0, 'g', 12).arg(nll, 0, 'g', 12)));
    }
}

/// Needs the directory that the shared script makes, in MUSTER_SMOLLM2.
void TestLmGoldens::smollm2()
{
    const char* path = std::getenv("MUSTER_SMOLLM2");
    if (path == nullptr)
        QSKIP("MUSTER_SMOLLM2 does not name a directory of SmolLM2-135M");
    MUSTER_SHARED_OR_SKIP(tokens, "goldens/smollm2-135m/wikitext-2-raw.tokens.json");
    MUSTER_SHARED_OR_SKIP(losses, "goldens/smollm2-135m/wikitext-2-raw.block1024.json");
    auto golden = readJson(losses);
    golden["first_64"] = readJson(tokens).at("hf_join").at("first_64");
    const auto model = loadModel({.path = path, .kind = wire::UnitKind::Lm, .tokenLosses = true});
    QVERIFY2(model, model ? "" : model.error().text().c_str());
    compareBeginning(**model, golden, 1e-4);
}

QTEST_GUILESS_MAIN(TestLmGoldens)
#include "tst_lm_goldens.moc"
