// SPDX-License-Identifier: Apache-2.0
#include "config/digest.h"

#include <QtTest>

#include <set>

using namespace muster;
using namespace muster::config;

class TestDigest final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatChangesNumbersChangesTheDigest()
    {
        const std::set<std::string_view> numbers{"task",
                                                 "model.dtype",
                                                 "data.limit",
                                                 "data.subset",
                                                 "qa.max_seq_length",
                                                 "qa.doc_stride",
                                                 "qa.max_answer_length",
                                                 "qa.n_best",
                                                 "qa.null_threshold",
                                                 "qa.ties",
                                                 "qa.rules",
                                                 "qa.normalizer",
                                                 "qa.abstentions",
                                                 "plan.unit_tokens",
                                                 "plan.unit_items",
                                                 "cluster.threads_per_rank",
                                                 "metrics.bootstrap",
                                                 "metrics.seed",
                                                 "metrics.confidence"};
        const RunConfig base;
        for (const Setting& setting : settings()) {
            if (setting.key == "schema")
                continue;
            RunConfig other = base;
            Value value = setting.get(base);
            if (setting.type == ValueType::OptionalUnsigned)
                value = std::uint64_t{5};
            else if (auto* whole = std::get_if<std::uint64_t>(&value))
                *whole += 1;
            else if (auto* real = std::get_if<double>(&value))
                *real += 0.001;
            else if (auto* list = std::get_if<std::vector<std::string>>(&value))
                list->emplace_back("em > 1");
            else if (!setting.choices.empty())
                value = std::string(
                    setting.choices[setting.choices[0] == std::get<std::string>(value)]);
            else
                value = std::get<std::string>(value) + "x";
            setting.set(other, value);
            QVERIFY2(!(other == base), std::string(setting.key).c_str());
            const bool isChanged = evaluationDigest(other) != evaluationDigest(base);
            QVERIFY2(isChanged == numbers.contains(setting.key), std::string(setting.key).c_str());
            const auto found = differences(base, other);
            QCOMPARE(found.size(), 1U);
            QCOMPARE(found[0].key, std::string(setting.key));
            QVERIFY(found[0].changesNumbers() || !isChanged);
        }
    }

    void settingsOfOtherTasksChangeNothing()
    {
        for (const Task task : {Task::Qa, Task::Lm, Task::Classification}) {
            RunConfig base;
            base.task = task;
            RunConfig other = base;
            other.qa.nBest = 7;
            QCOMPARE(evaluationDigest(other) != evaluationDigest(base), task == Task::Qa);
            other = base;
            other.lm.stride = 7;
            QCOMPARE(evaluationDigest(other) != evaluationDigest(base), task == Task::Lm);
            other = base;
            other.classification.textField = "2";
            QCOMPARE(evaluationDigest(other) != evaluationDigest(base),
                     task == Task::Classification);
            other = base;
            other.model.groupSize = 64;
            QVERIFY(evaluationDigest(other) == evaluationDigest(base));
            base.model.dtype = Dtype::Int4;
            other.model.dtype = Dtype::Int4;
            QVERIFY(evaluationDigest(other) != evaluationDigest(base));
        }
    }

    void equalConfigurationsHaveNoDifferences()
    {
        QVERIFY(differences({}, {}).empty());
        RunConfig other;
        other.data.limit = 3;
        const auto found = differences({}, other);
        QCOMPARE(found.size(), 1U);
        QCOMPARE(found[0], (Difference{"data.limit", "(none)", "3", Effect::Numbers}));
    }
};

QTEST_GUILESS_MAIN(TestDigest)
#include "tst_digest.moc"
