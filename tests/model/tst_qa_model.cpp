// SPDX-License-Identifier: Apache-2.0
// The reference is a direct transcription of the architectures' formulas in double precision loops.
#include "model/qa_model_p.h"

#include "model/tiny_model.h"
#include "support/shared_data.h"

#include <nlohmann/json.hpp>

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace muster;
using namespace muster::model;
using muster::test::pathOf;
using muster::test::TinyNumbers;
using muster::test::TinyShape;
using muster::test::TinyTensors;

namespace {

using Matrix = std::vector<std::vector<double>>;

class Reference final {
public:
    Reference(const TinyShape& shape, const TinyTensors& tensors) : s(shape), t(tensors) {}

    /// Start and end logits of one item.
    Matrix logits(const std::vector<std::int32_t>& tokens,
                  const std::vector<std::uint8_t>& segments) const
    {
        const bool isDistil = s.family == "distilbert";
        const auto embeddings = s.family + ".embeddings.";
        Matrix x;
        int next = s.family == "roberta" ? s.padToken + 1 : 0;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            const bool isPad = s.family == "roberta" && tokens[i] == s.padToken;
            const int position = isPad ? s.padToken : next++;
            auto row = rowOf(embeddings + "word_embeddings.weight", tokens[i], s.embedding);
            addTo(row, rowOf(embeddings + "position_embeddings.weight", position, s.embedding));
            if (!isDistil)
                addTo(row,
                      rowOf(embeddings + "token_type_embeddings.weight", segments[i], s.embedding));
            x.push_back(norm(embeddings + "LayerNorm", row));
        }
        if (s.embedding != s.width)
            x = linear(s.family + ".embeddings_project", x);
        for (std::uint64_t i = 0; i < s.layers; ++i) {
            const auto layer = s.family + (isDistil ? ".transformer.layer." : ".encoder.layer.") +
                               std::to_string(i);
            const auto q =
                linear(layer + (isDistil ? ".attention.q_lin" : ".attention.self.query"), x);
            const auto k =
                linear(layer + (isDistil ? ".attention.k_lin" : ".attention.self.key"), x);
            const auto v =
                linear(layer + (isDistil ? ".attention.v_lin" : ".attention.self.value"), x);
            auto a = linear(layer + (isDistil ? ".attention.out_lin" : ".attention.output.dense"),
                            attend(q, k, v));
            for (std::size_t r = 0; r < x.size(); ++r) {
                addTo(a[r], x[r]);
                a[r] = norm(layer + (isDistil ? ".sa_layer_norm" : ".attention.output.LayerNorm"),
                            a[r]);
            }
            auto f = linear(layer + (isDistil ? ".ffn.lin1" : ".intermediate.dense"), a);
            for (auto& row : f) {
                for (auto& value : row)
                    value = active(value);
            }
            f = linear(layer + (isDistil ? ".ffn.lin2" : ".output.dense"), f);
            for (std::size_t r = 0; r < x.size(); ++r) {
                addTo(f[r], a[r]);
                x[r] = norm(layer + (isDistil ? ".output_layer_norm" : ".output.LayerNorm"), f[r]);
            }
        }
        return linear("qa_outputs", x);
    }

private:
    std::vector<double> rowOf(const std::string& name, int row, std::uint64_t width) const
    {
        const auto& values = t.at(name).values;
        const auto begin = values.begin() + row * static_cast<std::ptrdiff_t>(width);
        return {begin, begin + static_cast<std::ptrdiff_t>(width)};
    }
    static void addTo(std::vector<double>& to, const std::vector<double>& from)
    {
        for (std::size_t i = 0; i < to.size(); ++i)
            to[i] += from[i];
    }
    std::vector<double> norm(const std::string& name, std::vector<double> row) const
    {
        double mean = 0, variance = 0;
        for (const double value : row)
            mean += value / static_cast<double>(row.size());
        for (const double value : row)
            variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
        const double epsilon = s.family == "distilbert" ? 1e-12 : s.epsilon;
        for (std::size_t i = 0; i < row.size(); ++i)
            row[i] = (row[i] - mean) / std::sqrt(variance + epsilon) *
                         static_cast<double>(t.at(name + ".weight").values[i]) +
                     static_cast<double>(t.at(name + ".bias").values[i]);
        return row;
    }
    Matrix linear(const std::string& name, const Matrix& x) const
    {
        const auto& weight = t.at(name + ".weight");
        const auto& bias = t.at(name + ".bias").values;
        Matrix y;
        for (const auto& row : x) {
            auto& out = y.emplace_back();
            for (std::size_t c = 0; c < bias.size(); ++c) {
                double sum = static_cast<double>(bias[c]);
                for (std::size_t k = 0; k < row.size(); ++k)
                    sum += row[k] * static_cast<double>(weight.values[c * row.size() + k]);
                out.push_back(sum);
            }
        }
        return y;
    }
    Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v) const
    {
        const auto size = s.width / s.heads;
        Matrix out(q.size(), std::vector<double>(s.width));
        for (std::size_t head = 0; head < s.heads; ++head) {
            for (std::size_t i = 0; i < q.size(); ++i) {
                std::vector<double> p(q.size());
                double sum = 0;
                for (std::size_t j = 0; j < q.size(); ++j) {
                    double dot = 0;
                    for (std::size_t c = head * size; c < (head + 1) * size; ++c)
                        dot += q[i][c] * k[j][c];
                    p[j] = std::exp(dot / std::sqrt(static_cast<double>(size)));
                    sum += p[j];
                }
                for (std::size_t j = 0; j < q.size(); ++j) {
                    for (std::size_t c = head * size; c < (head + 1) * size; ++c)
                        out[i][c] += p[j] / sum * v[j][c];
                }
            }
        }
        return out;
    }
    double active(double x) const
    {
        if (s.activation == "relu")
            return std::max(x, 0.0);
        if (s.activation == "silu")
            return x / (1 + std::exp(-x));
        if (s.activation == "gelu_new")
            return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    }

    const TinyShape& s;
    const TinyTensors& t;
};

wire::Unit unitOf(const std::vector<std::size_t>& lengths, const TinyShape& shape)
{
    wire::Unit unit;
    unit.offsets.push_back(0);
    TinyNumbers numbers(3);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        unit.items.push_back(100 + i);
        for (std::size_t k = 0; k < lengths[i]; ++k) {
            const auto raw = (numbers.next(0.5F) + 0.5F) * static_cast<float>(shape.vocabulary);
            unit.tokens.push_back(std::clamp(static_cast<std::int32_t>(raw), 0,
                                             static_cast<std::int32_t>(shape.vocabulary) - 1));
            unit.segments.push_back(shape.segments > 1 && k > lengths[i] / 3 ? 1 : 0);
        }
        unit.offsets.push_back(static_cast<std::uint32_t>(unit.tokens.size()));
    }
    return unit;
}

wire::Unit part(const wire::Unit& unit, std::size_t place)
{
    wire::Unit one;
    one.items = {unit.items[place]};
    one.offsets = {0, unit.offsets[place + 1] - unit.offsets[place]};
    one.tokens.assign(unit.tokens.begin() + unit.offsets[place],
                      unit.tokens.begin() + unit.offsets[place + 1]);
    one.segments.assign(unit.segments.begin() + unit.offsets[place],
                        unit.segments.begin() + unit.offsets[place + 1]);
    return one;
}

} // namespace

class TestQaModel final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void logitsEqualTheFormulas_data();
    void logitsEqualTheFormulas();
    void goldenLogitsOfMiniLm_data();
    void goldenLogitsOfMiniLm();
    void bitsDoNotDependOnTheUnitOrTheThreads();
    void badItemsGiveErrorsAndLeaveTheOthersAlone();
    void largestLogitsFollowTheTieRule();
    void syntheticModelDependsOnTheItemOnly();
};

void TestQaModel::logitsEqualTheFormulas_data()
{
    QTest::addColumn<QString>("family");
    QTest::addColumn<QString>("activation");
    QTest::addColumn<int>("width");
    QTest::addColumn<int>("embedding");
    QTest::addColumn<int>("engine");
    const auto row = [](const char* name, const char* family, const char* activation, int width,
                        int embedding, Engine engine) {
        QTest::newRow(name) << family << activation << width << embedding
                            << static_cast<int>(engine);
    };
    row("bert own", "bert", "gelu", 24, 24, Engine::Own);
    row("bert plain", "bert", "gelu", 24, 24, Engine::Plain);
    row("bert torch", "bert", "gelu", 24, 24, Engine::Torch);
    row("bert deeper than a block", "bert", "gelu_new", 399, 399, Engine::Own);
    row("roberta own", "roberta", "gelu", 24, 24, Engine::Own);
    row("roberta torch", "roberta", "gelu", 24, 24, Engine::Torch);
    row("distilbert own", "distilbert", "gelu", 48, 48, Engine::Own);
    row("distilbert torch", "distilbert", "relu", 48, 48, Engine::Torch);
    row("electra projected", "electra", "silu", 24, 10, Engine::Own);
    row("electra projected torch", "electra", "gelu_new", 24, 10, Engine::Torch);
}

void TestQaModel::logitsEqualTheFormulas()
{
    QFETCH(QString, family);
    QFETCH(QString, activation);
    QFETCH(int, width);
    QFETCH(int, embedding);
    QFETCH(int, engine);
    TinyShape shape{.family = family.toStdString(), .activation = activation.toStdString()};
    shape.width = static_cast<std::uint64_t>(width);
    shape.embedding = static_cast<std::uint64_t>(embedding);
    shape.segments = shape.family == "roberta" ? 1 : 2;
    if (width > 300)
        shape.inner = 500;
    const auto tensors = test::tinyTensors(shape);
    const QTemporaryDir directory;
    test::writeTinyModel(pathOf(directory), shape, tensors);
    const auto model = loadQaModel({.path = pathOf(directory)}, static_cast<Engine>(engine));
    QVERIFY2(model, model ? "" : model.error().text().c_str());
    const auto unit = unitOf({1, 7, 17, 66, 33, 7}, shape);
    const auto logits = (*model)->logits(unit);
    QVERIFY(logits);
    const Reference reference(shape, tensors);
    double worst = 0;
    for (std::size_t place = 0; place < unit.size(); ++place) {
        const auto one = part(unit, place);
        const auto expected = reference.logits(one.tokens, one.segments);
        for (std::size_t k = 0; k < expected.size(); ++k) {
            for (std::size_t c = 0; c < 2; ++c) {
                const double got =
                    static_cast<double>((*logits)[2 * (unit.offsets[place] + k) + c]);
                worst = std::max(worst, std::abs(got - expected[k][c]));
            }
        }
    }
    QVERIFY2(worst < 1e-4, std::to_string(worst).c_str());
}

void TestQaModel::goldenLogitsOfMiniLm_data()
{
    QTest::addColumn<int>("engine");
    QTest::addColumn<int>("precision");
    QTest::addColumn<double>("bound");
    QTest::newRow("own float32") << static_cast<int>(Engine::Own)
                                 << static_cast<int>(Precision::Float32) << 1e-3;
    QTest::newRow("torch float32")
        << static_cast<int>(Engine::Torch) << static_cast<int>(Precision::Float32) << 1e-3;
    QTest::newRow("own bfloat16") << static_cast<int>(Engine::Own)
                                  << static_cast<int>(Precision::Bfloat16) << 0.6;
}

void TestQaModel::goldenLogitsOfMiniLm()
{
    QFETCH(int, engine);
    QFETCH(int, precision);
    QFETCH(double, bound);
    MUSTER_SHARED_OR_SKIP(path, "data/models/minilm-qa");
    MUSTER_SHARED_OR_SKIP(golden, "goldens/minilm-qa/xquad-en.logits.json");
    const auto model = loadQaModel({.path = path, .precision = static_cast<Precision>(precision)},
                                   static_cast<Engine>(engine));
    QVERIFY2(model, model ? "" : model.error().text().c_str());
    std::ifstream file(golden);
    const auto json = nlohmann::json::parse(file);
    const auto& features = json.is_array() ? json : json.at("features");
    wire::Unit unit;
    unit.offsets = {0};
    std::vector<double> expected;
    for (const auto& feature : features) {
        unit.items.push_back(unit.items.size());
        for (const auto& id : feature.at("input_ids"))
            unit.tokens.push_back(id.get<std::int32_t>());
        for (const auto& id : feature.at("token_type_ids"))
            unit.segments.push_back(id.get<std::uint8_t>());
        unit.offsets.push_back(static_cast<std::uint32_t>(unit.tokens.size()));
        for (std::size_t i = 0; i < feature.at("input_ids").size(); ++i) {
            expected.push_back(feature.at("start_logits").at(i).get<double>());
            expected.push_back(feature.at("end_logits").at(i).get<double>());
        }
    }
    QCOMPARE(unit.size(), std::size_t{20});
    const auto logits = (*model)->logits(unit);
    QVERIFY(logits);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        worst = std::max(worst, std::abs(expected[i] - static_cast<double>((*logits)[i])));
    qInfo("largest difference %g; %s", worst, (*model)->identity().kernels.c_str());
    QVERIFY2(worst < bound, std::to_string(worst).c_str());
}

void TestQaModel::bitsDoNotDependOnTheUnitOrTheThreads()
{
    const TinyShape shape;
    const QTemporaryDir directory;
    test::writeTinyModel(pathOf(directory), shape, test::tinyTensors(shape));
    const auto model = loadModel({.path = pathOf(directory), .nBest = 5});
    const auto fresh = loadModel({.path = pathOf(directory), .threads = 3, .nBest = 5});
    QVERIFY(model && fresh);
    QCOMPARE((*model)->identity().digest.hex(), (*fresh)->identity().digest.hex());
    const auto unit = unitOf({5, 66, 1, 13, 40, 12, 9}, shape);
    const auto first = (*model)->compute(unit);
    QVERIFY(first);
    for (std::size_t place = unit.size(); place-- > 0;) {
        const auto alone = (*model)->compute(part(unit, place));
        QVERIFY(alone);
        QCOMPARE((*alone)[0].hash, wire::itemHash(unit, place));
        QVERIFY((*alone)[0] == (*first)[place]);
        QVERIFY(wire::decodeQa((*alone)[0].payload, unit.offsets[place + 1] - unit.offsets[place]));
    }
    const auto again = (*model)->compute(unit);
    const auto threaded = (*fresh)->compute(unit);
    QVERIFY(again && threaded);
    QVERIFY(*again == *first);
    QVERIFY(*threaded == *first);
}

void TestQaModel::badItemsGiveErrorsAndLeaveTheOthersAlone()
{
    const TinyShape shape;
    const QTemporaryDir directory;
    auto tensors = test::tinyTensors(shape);
    tensors["bert.embeddings.word_embeddings.weight"].values[49 * shape.width] = NAN;
    test::writeTinyModel(pathOf(directory), shape, tensors);
    const auto model = loadModel({.path = pathOf(directory)});
    QVERIFY(model);
    auto unit = unitOf({5, 71, 6, 7, 8, 9}, shape);
    for (auto& token : unit.tokens)
        token = std::min(token, 48);
    const auto good = (*model)->compute(part(unit, 0));
    unit.tokens[unit.offsets[2] + 1] = 50;
    unit.tokens[unit.offsets[3] + 1] = -1;
    unit.tokens[unit.offsets[4] + 1] = 49;
    unit.segments[unit.offsets[5] + 1] = 2;
    const auto outputs = (*model)->compute(unit);
    QVERIFY(outputs && good);
    QVERIFY((*outputs)[0] == (*good)[0]);
    for (std::size_t place = 1; place < unit.size(); ++place) {
        QCOMPARE((*outputs)[place].flags, std::uint32_t{wire::errorFlag});
        QVERIFY(!(*outputs)[place].payload.empty());
        QCOMPARE((*outputs)[place].hash, wire::itemHash(unit, place));
    }
}

void TestQaModel::largestLogitsFollowTheTieRule()
{
    const std::vector<float> logits{1, 0, 3, 0, 3, 0, 2, 0, 3, 5};
    const auto hf = largestLogits(logits, 3, Ties::Hf);
    QVERIFY((hf.startPosition == std::vector<std::uint16_t>{4, 2, 1}));
    QVERIFY((hf.endPosition == std::vector<std::uint16_t>{4, 3, 2}));
    const auto bert = largestLogits(logits, 3, Ties::Bert);
    QVERIFY((bert.startPosition == std::vector<std::uint16_t>{1, 2, 4}));
    QVERIFY((bert.endPosition == std::vector<std::uint16_t>{4, 0, 1}));
    QCOMPARE(largestLogits(logits, 99, Ties::Hf).startLogit.size(), std::size_t{5});
}

void TestQaModel::syntheticModelDependsOnTheItemOnly()
{
    const auto model = loadModel({.path = "synthetic"});
    QVERIFY(model);
    const TinyShape shape;
    const auto unit = unitOf({5, 66, 1, 13}, shape);
    const auto outputs = (*model)->compute(unit);
    QVERIFY(outputs);
    for (std::size_t place = 0; place < unit.size(); ++place) {
        const auto alone = (*model)->compute(part(unit, place));
        QVERIFY(alone && (*alone)[0] == (*outputs)[place]);
        QVERIFY(wire::decodeQa((*alone)[0].payload, unit.offsets[place + 1] - unit.offsets[place]));
    }
}

QTEST_GUILESS_MAIN(TestQaModel)
#include "tst_qa_model.moc"
