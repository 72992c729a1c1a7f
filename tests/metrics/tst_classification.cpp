// SPDX-License-Identifier: Apache-2.0
#include "metrics/classification.h"

#include "metrics/metric_vectors.h"
#include "support/shared_data.h"

#include <QElapsedTimer>
#include <QtTest>

#include <fstream>
#include <limits>

using namespace muster;
using namespace muster::metrics;
using muster::test::isClose;
using nlohmann::json;

namespace {

using Ints = std::vector<std::int32_t>;

ClassificationScores scoresOf(const Ints& labels, const Ints& predictions, std::uint32_t classes)
{
    const auto matrix = confusionMatrix(labels, predictions, classes);
    return *classificationScores(*matrix);
}

bool equals(const Prf& prf, const json& expected)
{
    return isClose(prf.precision, expected[0].get<double>()) &&
           isClose(prf.recall, expected[1].get<double>()) &&
           isClose(prf.f1, expected[2].get<double>());
}

bool equals(const std::optional<double>& value, const json& expected)
{
    if (expected.is_null() || !value)
        return expected.is_null() == !value.has_value();
    return isClose(*value, expected.get<double>());
}

std::vector<std::uint8_t> bytes(const json& values)
{
    return values.get<std::vector<std::uint8_t>>();
}

} // namespace

class TestClassification : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sameAsScikitLearn_data();
    void sameAsScikitLearn();
    void multiLabelSameAsScikitLearn_data();
    void multiLabelSameAsScikitLearn();
    void casesOfTheField();
    void sumsDoNotDependOnBatches();
    void absentClasses();
    void zeroDivisionsAreFlagged();
    void oneClassOnly();
    void nothingIsUndefined();
    void badInputIsRefused();
    void classesAreMatchedByName();
    void aPermutationIsNamed();
    void bootstrapOfAccuracyIsTheBootstrapOfHits();
    void bootstrapIsFastAndDependsOnTheSeedOnly();
    void calibrationBinsAreClosedAbove();
    void tiesOfScoresCountHalf();
    void goldenSst2();
};

void TestClassification::sameAsScikitLearn_data()
{
    QTest::addColumn<int>("number");
    const json& vectors = muster::test::metricVectors();
    QVERIFY(!vectors.is_discarded());
    for (int i = 0; i < static_cast<int>(vectors["classification"].size()); ++i)
        QTest::addRow("case %d", i) << i;
}

void TestClassification::sameAsScikitLearn()
{
    QFETCH(int, number);
    const json& test =
        muster::test::metricVectors()["classification"][static_cast<std::size_t>(number)];
    const json& expected = test["expected"];
    const auto classes = test["classes"].get<std::uint32_t>();
    const auto labels = test["labels"].get<Ints>();
    const auto matrix = confusionMatrix(labels, test["predictions"].get<Ints>(), classes);
    QVERIFY(matrix);
    for (std::uint32_t i = 0; i < classes; ++i)
        for (std::uint32_t k = 0; k < classes; ++k)
            QCOMPARE(matrix->at(i, k), expected["confusion"][i][k].get<std::uint64_t>());
    const auto scores = classificationScores(*matrix);
    QVERIFY(scores);
    QVERIFY(equals(scores->accuracy, expected["accuracy"]));
    QVERIFY(equals(scores->balancedAccuracy, expected["balanced_accuracy"]));
    QVERIFY(equals(scores->macro, expected["macro"]));
    QVERIFY(equals(scores->micro, expected["micro"]));
    QVERIFY(equals(scores->weighted, expected["weighted"]));
    QVERIFY(equals(scores->matthews, expected["matthews"]));
    QVERIFY(equals(scores->kappa, expected["kappa"]));
    const json& perClass = expected["per_class"];
    for (std::uint32_t k = 0; k < classes; ++k) {
        QVERIFY(equals(scores->perClass[k].prf,
                       json::array({perClass[0][k], perClass[1][k], perClass[2][k]})));
        QCOMPARE(scores->perClass[k].support, perClass[3][k].get<std::uint64_t>());
    }
    QCOMPARE(scores->binary.has_value(), classes == 2);
    if (scores->binary)
        QVERIFY(equals(*scores->binary, expected["binary"]));
    const auto counted = classificationScores(*matrix, {.absent = AbsentClasses::Count});
    QVERIFY(equals(counted->macro, expected["macro_all"]));

    const auto probabilities = test["probabilities"].get<std::vector<double>>();
    const auto soft = probabilityScores(labels, probabilities, classes);
    QVERIFY(soft);
    QVERIFY(equals(soft->logLoss, expected["log_loss"]));
    QVERIFY(equals(soft->brier, expected["brier"]));
    QVERIFY(equals(soft->calibrationError, expected["calibration_error"]));
    QVERIFY(equals(soft->averagePrecision, expected["average_precision"]));
    QVERIFY(equals(soft->rocAuc, expected["roc_auc"]));
}

void TestClassification::multiLabelSameAsScikitLearn_data()
{
    QTest::addColumn<int>("number");
    const json& vectors = muster::test::metricVectors();
    for (int i = 0; i < static_cast<int>(vectors["multi_label"].size()); ++i)
        QTest::addRow("case %d", i) << i;
}

void TestClassification::multiLabelSameAsScikitLearn()
{
    QFETCH(int, number);
    const json& test =
        muster::test::metricVectors()["multi_label"][static_cast<std::size_t>(number)];
    const json& expected = test["expected"];
    const auto scores = multiLabelScores(bytes(test["truth"]), bytes(test["predicted"]),
                                         test["labels"].get<std::uint32_t>(),
                                         test["probabilities"].get<std::vector<double>>());
    QVERIFY(scores);
    QVERIFY(equals(scores->subsetAccuracy, expected["subset_accuracy"]));
    QVERIFY(equals(scores->hammingLoss, expected["hamming_loss"]));
    QVERIFY(equals(scores->micro, expected["micro"]));
    QVERIFY(equals(scores->macro, expected["macro"]));
    QVERIFY(equals(scores->weighted, expected["weighted"]));
    QVERIFY(equals(scores->perSample, expected["samples"]));
    QVERIFY(equals(scores->averagePrecision, expected["average_precision"]));
    QVERIFY(equals(scores->rocAuc, expected["roc_auc"]));
}

void TestClassification::casesOfTheField()
{
    // C-016: 0.655556, whatever the batches.
    const auto c016 = scoresOf({0, 0, 0, 1, 1, 2}, {0, 0, 1, 1, 2, 2}, 3);
    QVERIFY(isClose(c016.macro.f1, (0.8 + 0.5 + 2.0 / 3) / 3));
    QVERIFY(isClose(c016.macro.f1, 0.655556, 1e-6));
    // C-018: the ignored row is out of numerator and denominator.
    const auto c018 = scoresOf({1, -100, 0, 2}, {1, 5, 0, 1}, 6);
    QCOMPARE(c018.accuracy, 2.0 / 3);
    QCOMPARE(c018.ignored, std::uint64_t{1});
    // C-001, T-02: 2 of 10, not 4 of 12.
    const auto c001 = scoresOf({1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, 2);
    QCOMPARE(c001.accuracy, 0.2);
    // C-019: micro by samples, macro by task.
    const std::vector<TaskAccuracy> tasks{{9, 10}, {1, 2}, {0, 0}};
    const auto group = groupAccuracy(tasks);
    QVERIFY(group);
    QVERIFY(isClose(group->micro, 10.0 / 12));
    QVERIFY(isClose(group->macro, 0.7));
    QVERIFY(!groupAccuracy({}));
    // C-015: 393 of 522, not the mean of the batches' values.
    const std::vector<TaskAccuracy> batches{{179, 256}, {205, 256}, {9, 10}};
    QVERIFY(isClose(groupAccuracy(batches)->micro, 0.752874, 1e-6));
    QVERIFY(isClose(groupAccuracy(batches)->macro, 0.8));
}

void TestClassification::sumsDoNotDependOnBatches()
{
    // C-016: confusion counts of parts add up to those of the whole.
    const Ints labels{0, 0, 0, 1, 1, 2, 2, 0, 1};
    const Ints predictions{0, 0, 1, 1, 2, 2, 0, 0, 1};
    const auto whole = confusionMatrix(labels, predictions, 3);
    for (std::size_t batch = 1; batch <= labels.size(); ++batch) {
        ConfusionMatrix sum = *confusionMatrix({}, {}, 3);
        for (std::size_t begin = 0; begin < labels.size(); begin += batch) {
            const std::size_t size = std::min(batch, labels.size() - begin);
            const auto part = confusionMatrix(std::span(labels).subspan(begin, size),
                                              std::span(predictions).subspan(begin, size), 3);
            for (std::size_t i = 0; i < sum.counts.size(); ++i)
                sum.counts[i] += part->counts[i];
        }
        QCOMPARE(sum, *whole);
    }
}

void TestClassification::absentClasses()
{
    const auto matrix = confusionMatrix(Ints{0, 0, 1}, Ints{0, 0, 1}, 4);
    QCOMPARE(classificationScores(*matrix)->macro.f1, 1.0);
    const auto counted = classificationScores(*matrix, {.absent = AbsentClasses::Count});
    QCOMPARE(counted->macro.f1, 0.5);
    QVERIFY(counted->hasZeroDivision);
    QCOMPARE(counted->balancedAccuracy, 1.0);
}

void TestClassification::zeroDivisionsAreFlagged()
{
    const auto scores = scoresOf({0, 1, 1}, {0, 0, 0}, 2);
    QCOMPARE(scores.perClass[1].prf, (Prf{0.0, 0.0, 0.0, true}));
    QVERIFY(scores.perClass[1].prf.hasZeroDivision);
    QVERIFY(scores.hasZeroDivision);
    QCOMPARE(scores.matthews, 0.0);
    QVERIFY(!scoresOf({0, 1}, {1, 1}, 2).perClass[1].prf.hasZeroDivision);
    const auto other =
        classificationScores(*confusionMatrix(Ints{0, 1}, Ints{0, 1}, 3), {.positive = 2});
    QVERIFY(other->binary && other->binary->hasZeroDivision);
}

void TestClassification::oneClassOnly()
{
    const auto scores = scoresOf({1, 1}, {1, 1}, 2);
    QCOMPARE(scores.accuracy, 1.0);
    QVERIFY(!scores.kappa);
    const std::vector<double> probabilities{0.25, 0.75, 0.5, 0.5};
    const auto soft = probabilityScores(Ints{1, 1}, probabilities, 2);
    QVERIFY(soft);
    QVERIFY(!soft->rocAuc);
    QCOMPARE(soft->averagePrecision, 1.0);
    const auto none = probabilityScores(Ints{0, 0}, probabilities, 2);
    QCOMPARE(none->averagePrecision, 0.0);
}

void TestClassification::nothingIsUndefined()
{
    const auto scores = classificationScores(*confusionMatrix(Ints{-1}, Ints{0}, 2));
    QVERIFY(!scores);
    QCOMPARE(scores.error().kind, Error::Kind::Undefined);
    QCOMPARE(scores.error().code, std::string("E-METRICS-033"));
    QVERIFY(!probabilityScores({}, {}, 2));
    QVERIFY(!multiLabelScores({}, {}, 2));
}

void TestClassification::badInputIsRefused()
{
    QCOMPARE(confusionMatrix(Ints{0}, Ints{0, 1}, 2).error().code, std::string("E-METRICS-030"));
    QCOMPARE(confusionMatrix({}, {}, 0).error().code, std::string("E-METRICS-030"));
    const auto outside = confusionMatrix(Ints{0, 2}, Ints{0, 0}, 2);
    QCOMPARE(outside.error().code, std::string("E-METRICS-031"));
    QVERIFY(outside.error().message.find("row 1") != std::string::npos);
    QCOMPARE(confusionMatrix(Ints{0}, Ints{-1}, 2).error().code, std::string("E-METRICS-031"));
    const auto matrix = confusionMatrix(Ints{0}, Ints{0}, 2);
    QCOMPARE(classificationScores(*matrix, {.positive = 2}).error().code,
             std::string("E-METRICS-031"));
    QCOMPARE(classificationScores(*matrix, {.confidence = 2.0}).error().code,
             std::string("E-METRICS-011"));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const double bad : {nan, -0.1, 1.1})
        QCOMPARE(probabilityScores(Ints{0}, std::vector<double>{bad, 0.5}, 2).error().code,
                 std::string("E-METRICS-032"));
    QCOMPARE(probabilityScores(Ints{0}, std::vector<double>{0.5}, 2).error().code,
             std::string("E-METRICS-030"));
    QCOMPARE(probabilityScores(Ints{0}, std::vector<double>{0.5, 0.5}, 2, {.bins = 0}).error().code,
             std::string("E-METRICS-032"));
    const std::vector<std::uint8_t> three{0, 1, 0};
    QCOMPARE(multiLabelScores(three, three, 2).error().code, std::string("E-METRICS-030"));
}

void TestClassification::classesAreMatchedByName()
{
    // C-017
    MUSTER_SHARED_OR_SKIP(path, "cases/inputs/c017-label-map.json");
    std::ifstream file(path);
    const json input = json::parse(file);
    const auto mapping = matchClasses(input["dataset_classes"].get<std::vector<std::string>>(),
                                      input["model_classes"].get<std::vector<std::string>>());
    QVERIFY(mapping);
    QCOMPARE(*mapping, (std::vector<std::uint32_t>{1, 2, 0}));
    Ints labels;
    Ints mapped;
    Ints predictions;
    for (const json& row : input["rows"]) {
        labels.push_back(row["label"].get<std::int32_t>());
        mapped.push_back(static_cast<std::int32_t>((*mapping)[row["label"].get<std::size_t>()]));
        predictions.push_back(row["prediction"].get<std::int32_t>());
    }
    QCOMPARE(scoresOf(mapped, predictions, 3).accuracy, 1.0);
    QCOMPARE(scoresOf(labels, predictions, 3).accuracy, 0.0);
    // Unmapped: the permutation is named.
    const auto permutation = likelyPermutation(*confusionMatrix(labels, predictions, 3));
    QVERIFY(permutation);
    QCOMPARE(permutation->prediction, (std::vector<std::uint32_t>{2, 0, 1}));
    QCOMPARE(permutation->accuracy, 1.0);

    using Names = std::vector<std::string>;
    QCOMPARE(*matchClasses(Names{"Positive", "negative"}, Names{"NEGATIVE", "POSITIVE", "x"}),
             (std::vector<std::uint32_t>{1, 0}));
    QVERIFY(!matchClasses(Names{"0", "1"}, Names{"negative", "positive"}));
    QVERIFY(!matchClasses(Names{"a", "A"}, Names{"A", "b"}));
}

void TestClassification::aPermutationIsNamed()
{
    // Good models have none, nor does one that guesses.
    QVERIFY(!likelyPermutation(*confusionMatrix(Ints{0, 1, 0, 1}, Ints{0, 1, 0, 0}, 2)));
    PythonRandom random(3);
    Ints labels;
    Ints guesses;
    Ints shifted;
    for (int i = 0; i < 500; ++i) {
        labels.push_back(static_cast<std::int32_t>(random.index(12)));
        guesses.push_back(static_cast<std::int32_t>(random.index(12)));
        shifted.push_back(random.index(10) == 0 ? guesses.back() : (labels.back() + 1) % 12);
    }
    QVERIFY(!likelyPermutation(*confusionMatrix(labels, guesses, 12)));
    const auto found = likelyPermutation(*confusionMatrix(labels, shifted, 12));
    QVERIFY(found);
    QCOMPARE(found->prediction[5], 4U);
    QVERIFY(found->accuracy > 0.85);
}

void TestClassification::bootstrapOfAccuracyIsTheBootstrapOfHits()
{
    PythonRandom random(1);
    Ints labels;
    Ints predictions;
    std::vector<double> hits;
    for (int i = 0; i < 200; ++i) {
        labels.push_back(static_cast<std::int32_t>(random.index(3)));
        predictions.push_back(static_cast<std::int32_t>(random.index(3)));
        hits.push_back(labels.back() == predictions.back() ? 1.0 : 0.0);
    }
    const MatrixMetric accuracy = [](const ConfusionMatrix& matrix) {
        return classificationScores(matrix)->accuracy;
    };
    const auto ofMatrix = bootstrapMetric(labels, predictions, 3, accuracy);
    const auto ofMean = bootstrapMean(hits);
    QVERIFY(ofMatrix && ofMean);
    QVERIFY(isClose(ofMatrix->value, ofMean->value));
    QVERIFY(isClose(ofMatrix->standardError, ofMean->standardError));
    QVERIFY(isClose(ofMatrix->low, ofMean->low));
    QVERIFY(isClose(ofMatrix->high, ofMean->high));
    // C-021: one sample has no spread.
    const auto one = bootstrapMetric(Ints{1}, Ints{1}, 3, accuracy);
    QVERIFY(!one);
    QCOMPARE(one.error().kind, Error::Kind::Undefined);
}

void TestClassification::bootstrapIsFastAndDependsOnTheSeedOnly()
{
    // C-021: 10,000 scores, 1,000 replicates in under 5 s.
    PythonRandom random(2);
    Ints labels;
    Ints predictions;
    for (int i = 0; i < 10000; ++i) {
        labels.push_back(static_cast<std::int32_t>(random.index(4)));
        predictions.push_back(random.index(4) == 0 ? static_cast<std::int32_t>(random.index(4))
                                                   : labels.back());
    }
    const MatrixMetric macroF1 = [](const ConfusionMatrix& matrix) {
        return classificationScores(matrix)->macro.f1;
    };
    QElapsedTimer timer;
    timer.start();
    const auto first = bootstrapMetric(labels, predictions, 4, macroF1);
    QVERIFY(timer.elapsed() < 5000);
    QVERIFY(first);
    QVERIFY(first->low < first->value && first->value < first->high);
    const auto few = [&](std::uint64_t seed) {
        return *bootstrapMetric(labels, predictions, 4, macroF1, {.replicates = 20, .seed = seed});
    };
    QCOMPARE(few(0), few(0));
    QVERIFY(few(0) != few(1));
}

void TestClassification::calibrationBinsAreClosedAbove()
{
    const std::vector<double> probabilities{0.5, 0.5, 0.4, 0.6, 0.0, 1.0};
    const auto scores = probabilityScores(Ints{0, 1, 0}, probabilities, 2, {.bins = 10});
    QVERIFY(scores);
    QCOMPARE(scores->calibration[4].count, std::uint64_t{1}); // 0.5 in (0.4, 0.5]
    QCOMPARE(scores->calibration[5].count, std::uint64_t{1}); // 0.6 in (0.5, 0.6]
    QCOMPARE(scores->calibration[9].count, std::uint64_t{1});
    QVERIFY(isClose(scores->calibrationError, (0.5 + 0.4 + 1.0) / 3));
}

void TestClassification::tiesOfScoresCountHalf()
{
    const std::vector<std::uint8_t> positive{1, 0, 1, 0};
    QCOMPARE(*rocAuc(positive, std::vector<double>{0.5, 0.5, 0.5, 0.5}), 0.5);
    QCOMPARE(*rocAuc(positive, std::vector<double>{0.9, 0.5, 0.5, 0.1}), 0.875);
    QVERIFY(!rocAuc({}, {}));
    QCOMPARE(averagePrecision(positive, std::vector<double>{0.9, 0.1, 0.8, 0.2}), 1.0);
    QCOMPARE(averagePrecision({}, {}), 0.0);
}

void TestClassification::goldenSst2()
{
    MUSTER_SHARED_OR_SKIP(folder, "goldens/minilm-sst2");
    std::ifstream file(folder / "metrics.json");
    const json golden = json::parse(file)["sst2-test"];
    std::ifstream rows(folder / "sst2-test.outputs.json");
    Ints labels;
    Ints predictions;
    std::vector<double> probabilities;
    for (const json& row : json::parse(rows)) {
        labels.push_back(row["label"].get<std::int32_t>());
        predictions.push_back(row["predicted"].get<std::int32_t>());
        for (const json& probability : row["probabilities"])
            probabilities.push_back(probability.get<double>());
    }
    const auto scores = scoresOf(labels, predictions, 2);
    QCOMPARE(scores.samples, golden["n"].get<std::uint64_t>());
    QVERIFY(equals(scores.accuracy, golden["accuracy"]));
    QVERIFY(equals(scores.binary->f1, golden["f1_binary"]));
    QVERIFY(equals(scores.binary->precision, golden["precision"]));
    QVERIFY(equals(scores.binary->recall, golden["recall"]));
    QVERIFY(equals(scores.macro.f1, golden["f1_macro"]));
    QVERIFY(equals(scores.matthews, golden["mcc"]));
    const auto soft = probabilityScores(labels, probabilities, 2);
    QVERIFY(soft);
    QVERIFY(isClose(soft->logLoss, golden["mean_cross_entropy"].get<double>(), 1e-6));
}

QTEST_GUILESS_MAIN(TestClassification)
#include "tst_classification.moc"
