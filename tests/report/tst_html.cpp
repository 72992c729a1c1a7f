// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include "base/file.h"

#include <nlohmann/json.hpp>

#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>

using namespace muster;
using namespace muster::report;

namespace {

const std::string hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&'\"\x01"
                            "\xFF <!--";

RunResult resultOf(const std::string& task, std::size_t samples)
{
    RunResult result;
    result.runId = "run <b>1</b>";
    result.task = task;
    result.model = hostile;
    result.verdict = align::Verdict::Aligned;
    result.sentence = "every sample once " + hostile;
    result.proofJson = "{\"text\": \"" + hostile + "\"}";
    result.configToml = "name = \"" + hostile + "\"\n";
    result.samples = samples;
    result.samplesDone = samples;
    result.ranks = 2;
    Metric metric{
        .isHeadline = true, .key = "exact_match", .label = hostile, .value = 50.0, .unit = "%"};
    metric.low = 40.0;
    metric.high = 60.0;
    metric.method = hostile;
    result.metrics.push_back(metric);
    metric.value = std::numeric_limits<double>::infinity();
    result.metrics.push_back(metric);
    result.ledger.push_back({"mean-of-windows", 17.2, hostile});
    result.classNames = {hostile, "b"};
    if (task == "classification")
        result.confusion = {{1, 2}, {3, 4}};
    result.events.push_back({0, "notice", "", hostile});
    for (std::uint32_t r = 0; r < 2; ++r) {
        RankTiming timing;
        timing.rank = RankId(r);
        timing.node = hostile;
        timing.realTokens = 1000;
        timing.computeNs = 800;
        timing.waitNs = 100;
        timing.transferNs = 50;
        timing.loadNs = 30;
        timing.otherNs = 20;
        timing.elapsedNs = 1000;
        result.timing.push_back(timing);
        UnitProvenance unit;
        unit.unit = UnitId(r);
        unit.rank = RankId(r);
        unit.arrivalNs = 1000 * (2 - static_cast<std::int64_t>(r));
        for (std::size_t i = r; i < samples; i += 2)
            unit.samples.emplace_back(i);
        result.provenance.push_back(unit);
    }
    result.forEachSample = [task, samples](const std::function<void(const SampleRow&)>& visit) {
        for (std::size_t i = 0; i < samples; ++i) {
            SampleRow row;
            row.index = SampleIndex(i);
            const std::string id = "id" + std::to_string(i);
            const std::string longText(5000, 'x');
            row.id = id;
            row.title = hostile;
            row.context = i == 1 ? std::string_view(longText) : std::string_view(hostile);
            row.question = hostile;
            row.targets = {hostile};
            row.prediction = hostile;
            row.isComplete = i != 2;
            row.error = i == 2 ? hostile : "";
            row.em = i % 2 == 0 ? 1.0 : 0.0;
            row.f1 = std::nan("");
            if (task == "lm") {
                LmFields fields;
                fields.scored = 10;
                fields.lossSum = 5000.0 * static_cast<double>(i);
                row.lm = fields;
            }
            if (task == "classification") {
                ClassFields fields;
                fields.predicted = {1};
                fields.probabilities = {0.25, 0.75};
                row.classes = fields;
            }
            visit(row);
        }
        return Status{};
    };
    return result;
}

} // namespace

class TestHtml : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void hostileTextStaysText_data();
    void hostileTextStaysText();
    void nothingIsLoadedFromElsewhere();
    void theLanguageIsChosen();
    void theScriptIsWhole();
    void manySamplesAreWritten();
    void nothingAtAllIsAPageToo();
    void textIsEscaped();

private:
    QString page(const RunResult& result, const HtmlOptions& options = {})
    {
        const std::filesystem::path to = m_scratch.filePath("report.html").toStdString();
        if (const Status written = writeHtml(to, result, options); !written)
            return QString::fromStdString(written.error().text());
        return QString::fromStdString(*readFile(to));
    }
    static nlohmann::json dataOf(const QString& page)
    {
        const QString begin = "id=\"data\">";
        const qsizetype from = page.indexOf(begin) + begin.size();
        return nlohmann::json::parse(
            page.mid(from, page.indexOf("</script>", from) - from).toStdString(), nullptr, false);
    }
    QTemporaryDir m_scratch;
};

void TestHtml::hostileTextStaysText_data()
{
    QTest::addColumn<QString>("task");
    for (const char* task : {"qa", "lm", "classification"})
        QTest::newRow(task) << QString(task);
}

void TestHtml::hostileTextStaysText()
{
    QFETCH(QString, task);
    const QString text = page(resultOf(task.toStdString(), 4));
    QVERIFY(text.startsWith("<!DOCTYPE html>"));
    QVERIFY(text.trimmed().endsWith("</html>"));
    // The two scripts of the page and no other; no element that a text began.
    QCOMPARE(text.count("<script"), 2);
    QCOMPARE(text.count("</script"), 2);
    QVERIFY(!text.contains("<img"));
    QVERIFY(!text.contains("<b>1</b>"));
    QVERIFY(!text.contains("<!--"));
    QVERIFY(!text.contains(QChar(1)));
    const nlohmann::json data = dataOf(text);
    QVERIFY(data.is_object());
    QCOMPARE(data["rows"].size(), std::size_t{4});
    for (const auto& row : data["rows"])
        QCOMPARE(row.size(), data["columns"].size() + 1);
    QCOMPARE(data["rows"][2].back().get<int>(), 1);
    QCOMPARE(data["rows"][0].back().get<int>(), 0);
    if (task == "qa") {
        // The context is kept once, and the text comes back as it was.
        QCOMPARE(data["texts"].size(), std::size_t{2});
        QVERIFY(data["texts"][0].get<std::string>().starts_with("</script><script>"));
        QVERIFY(data["texts"][1].get<std::string>().size() < 4100);
    }
    if (task == "lm")
        QVERIFY(data["rows"][3][7].is_null()); // an infinite perplexity (C-038, C-065)
}

void TestHtml::nothingIsLoadedFromElsewhere()
{
    const QString text = page(resultOf("qa", 4));
    QVERIFY(text.contains("default-src 'none'"));
    const QRegularExpression loads(R"((src|href|action|url)\s*[=(])");
    for (auto found = loads.globalMatch(text); found.hasNext();) {
        // Only texts of the samples may speak of such things, escaped.
        const QString around = text.mid(found.next().capturedStart() - 12, 12);
        QVERIFY2(around.contains("img"), qPrintable(around));
    }
    QVERIFY(!text.contains("http://"));
    QVERIFY(!text.contains("https://"));
    QVERIFY(!text.contains("innerHTML"));
}

void TestHtml::theLanguageIsChosen()
{
    QVERIFY(page(resultOf("qa", 2)).contains("<html lang=\"en\" data-lang=\"en\">"));
    HtmlOptions options;
    options.language = HtmlLanguage::Chinese;
    const QString text = page(resultOf("qa", 2), options);
    QVERIFY(text.contains("<html lang=\"zh-CN\" data-lang=\"zh_CN\">"));
    QVERIFY(text.contains("混淆矩阵") == false);
    QVERIFY(text.contains("指标") && text.contains("Metrics"));
    QCOMPARE(text.count("<span lang=\"en\">"), text.count("<span lang=\"zh-CN\">"));
}

void TestHtml::theScriptIsWhole()
{
    const QString node = QStandardPaths::findExecutable("node");
    if (node.isEmpty())
        QSKIP("no JavaScript engine (node) is installed");
    const QString text = page(resultOf("classification", 4));
    const qsizetype from = text.lastIndexOf("<script>") + 8;
    QFile file(m_scratch.filePath("page.js"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text.mid(from, text.lastIndexOf("</script>") - from).toUtf8());
    file.close();
    QProcess process;
    process.start(node, {"--check", file.fileName()});
    QVERIFY(process.waitForFinished());
    QVERIFY2(process.exitCode() == 0, process.readAllStandardError().constData());
}

void TestHtml::manySamplesAreWritten()
{
    const RunResult result = resultOf("classification", 20000);
    const QString text = page(result);
    const nlohmann::json data = dataOf(text);
    QCOMPARE(data["rows"].size(), std::size_t{20000});
    // The strips do not grow with the samples.
    QVERIFY(text.count("<rect") < 6000);
}

void TestHtml::nothingAtAllIsAPageToo()
{
    RunResult result;
    result.forEachSample = [](const std::function<void(const SampleRow&)>&) { return Status{}; };
    const QString text = page(result);
    QVERIFY(text.contains("</html>"));
    QVERIFY(dataOf(text)["rows"].empty());
    result.forEachSample = [](const std::function<void(const SampleRow&)>&) -> Status {
        return fail(Error::Kind::Integrity, "E-RUN-002", "damaged");
    };
    QVERIFY(!writeHtml(m_scratch.filePath("other.html").toStdString(), result));
    QVERIFY(!QFile::exists(m_scratch.filePath("other.html")));
}

void TestHtml::textIsEscaped()
{
    QCOMPARE(htmlEscaped("a<b>&\"'"), std::string("a&lt;b&gt;&amp;&quot;&#39;"));
    QCOMPARE(htmlEscaped("\x01\n\t\x7F"), std::string("\xEF\xBF\xBD\n\t\xEF\xBF\xBD"));
    QCOMPARE(htmlEscaped("\xFF"), std::string("\xEF\xBF\xBD"));
    QCOMPARE(htmlEscaped("中文"), std::string("中文"));
}

QTEST_GUILESS_MAIN(TestHtml)
#include "tst_html.moc"
