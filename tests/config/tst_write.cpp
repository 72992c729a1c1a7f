// SPDX-License-Identifier: Apache-2.0
#include "config/write.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include <random>

using namespace muster;
using namespace muster::config;

namespace {

/// A text with what is hard to write: quotes, controls, line ends, comment signs, CJK, astral.
std::string anyText(std::mt19937_64& random)
{
    static const std::vector<std::string> parts{
        "a",      "B",      " ", "\"", "\\", "\n", "\t", "\r",           "\x01",
        "\x7f",   "#",      "'", "=",  "[",  "]",  ".",  "\xE4\xB8\xAD", "\xF0\x9F\x98\x80",
        "\"\"\"", "\\u0041"};
    std::string text;
    const std::size_t length = random() % 9;
    for (std::size_t i = 0; i < length; ++i)
        text += parts[random() % parts.size()];
    return text;
}

Value anyValue(const Setting& setting, std::mt19937_64& random)
{
    switch (setting.type) {
    case ValueType::OptionalUnsigned:
        if (random() % 2 == 0)
            return {};
        [[fallthrough]];
    case ValueType::Unsigned: {
        const double span = setting.maximum - setting.minimum;
        std::uniform_real_distribution<double> share(0.0, 0.99);
        return static_cast<std::uint64_t>(setting.minimum + span * share(random));
    }
    case ValueType::Real:
        return std::uniform_real_distribution<double>(setting.minimum, setting.maximum)(random);
    case ValueType::Choice:
    case ValueType::Switch: {
        const std::string name(setting.choices[random() % setting.choices.size()]);
        return name.find('<') == std::string::npos ? name
                                                   : "compat:" + std::to_string(random() % 9);
    }
    case ValueType::Text:
    case ValueType::Path:
        return anyText(random);
    case ValueType::TextList:
    case ValueType::PathList: {
        std::vector<std::string> list(random() % 4);
        for (std::string& text : list)
            text = "x" + anyText(random);
        return list;
    }
    case ValueType::Gates: {
        std::vector<std::string> list;
        const std::vector<std::string> metrics{"em", "f1", "has_ans.f1", "misaligned"};
        const std::vector<std::string> comparisons{"<", "<=", ">", ">=", "==", "!="};
        for (std::size_t i = random() % 5; i > 0; --i) {
            const double value = std::uniform_real_distribution<double>(-1e3, 1e3)(random);
            list.push_back(gateText({metrics[random() % metrics.size()],
                                     comparisons[random() % comparisons.size()], value}));
        }
        return list;
    }
    }
    return {};
}

} // namespace

class TestWrite final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsWrittenReadsBackTheSame()
    {
        std::mt19937_64 random(7);
        for (int round = 0; round < 500; ++round) {
            Resolved resolved;
            for (const Setting& setting : settings()) {
                auto value = check(setting, anyValue(setting, random));
                QVERIFY2(value, value ? "" : value.error().message.c_str());
                setting.set(resolved.config, *value);
                resolved.origins[std::string(setting.key)] = {Layer::Flag, anyText(random), 1, 2};
            }
            // Values that contradict each other are a matter of reading, not of writing.
            resolved.config.qa.docStride = resolved.config.qa.maxSeqLength - 1;
            resolved.config.cluster.heartbeatS = 0.5;
            resolved.config.cluster.suspectS = 1.1;
            resolved.config.cluster.deadS = 2.3;
            const std::string text = toToml(resolved);
            const Reading back = readToml({"run.toml", text, {}});
            for (const Problem& problem : back.problems)
                qWarning("%s", problem.text().c_str());
            QVERIFY2(back.problems.empty(), text.c_str());
            QVERIFY2(back.resolved.config == resolved.config, text.c_str());
        }
    }

    void theOriginStandsBesideTheValue()
    {
        Resolved resolved;
        resolved.config.cluster.ranks = 3;
        resolved.origins["cluster.ranks"] = {Layer::Flag, "--ranks", 0, 0};
        resolved.origins["qa.n_best"] = {Layer::Given, "qa.toml", 3, 7};
        const std::string text = toToml(resolved);
        QVERIFY(text.find("ranks = 3  # flag --ranks\n") != std::string::npos);
        QVERIFY(text.find("n_best = 20  # given qa.toml:3:7\n") != std::string::npos);
        QVERIFY(text.find("doc_stride = 128  # default\n") != std::string::npos);
    }

    void theTemplateIsAValidFile()
    {
        const Reading reading = readToml({"template", templateToml(), {}});
        QVERIFY(reading.problems.empty());
        QVERIFY(missingForRun(reading.resolved.config).empty());
        std::string all = templateToml();
        // With every default put in force the file says the same.
        for (const Setting& setting : settings()) {
            const std::string line = "\n# " + std::string(setting.leaf()) + " = ";
            if (const auto at = all.find(line); at != std::string::npos)
                all.erase(at + 1, 2);
        }
        const Reading full = readToml({"template", all, {}});
        for (const Problem& problem : full.problems)
            qWarning("%s", problem.text().c_str());
        QVERIFY(full.problems.empty());
    }

    void theSchemaIsJsonAndNamesEverySetting()
    {
        QJsonParseError error;
        const QByteArray text = QByteArray::fromStdString(jsonSchema());
        const QJsonObject root = QJsonDocument::fromJson(text, &error).object();
        QVERIFY2(error.error == QJsonParseError::NoError, qPrintable(error.errorString()));
        for (const Setting& setting : settings()) {
            QJsonObject at = root.value(QLatin1String("properties")).toObject();
            if (!setting.section().empty())
                at = at.value(QString::fromStdString(std::string(setting.section())))
                         .toObject()
                         .value(QLatin1String("properties"))
                         .toObject();
            QVERIFY2(at.contains(QString::fromStdString(std::string(setting.leaf()))),
                     std::string(setting.key).c_str());
        }
    }

    void aNumberIsWrittenInItsShortestForm_data()
    {
        QTest::addColumn<double>("value");
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("whole") << 1.0 << QByteArray("1.0");
        QTest::newRow("tenth") << 0.1 << QByteArray("0.1");
        QTest::newRow("large") << 1e300 << QByteArray("1e+300");
        QTest::newRow("negative zero") << -0.0 << QByteArray("-0.0");
    }

    void aNumberIsWrittenInItsShortestForm()
    {
        QFETCH(double, value);
        QFETCH(QByteArray, text);
        QCOMPARE(QByteArray::fromStdString(tomlText(value)), text);
    }
};

QTEST_GUILESS_MAIN(TestWrite)
#include "tst_write.moc"
