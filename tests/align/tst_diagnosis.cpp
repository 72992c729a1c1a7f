// SPDX-License-Identifier: Apache-2.0
#include "align/diagnosis.h"

#include <QtTest>

#include <vector>

using namespace muster::align;

class DiagnosisTest final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void namesThePattern_data();
    void namesThePattern();
    void saysNothingOfAnOrderThatIsRight();
};

namespace {

// found[place] = index whose content stands there.
Diagnosis diagnoseOrder(const std::vector<std::uint64_t>& found)
{
    std::vector<Misplaced> rows;
    for (std::uint64_t place = 0; place < found.size(); ++place) {
        if (found[place] != place)
            rows.push_back({place, found[place]});
    }
    return diagnose(rows, found.size());
}

} // namespace

Q_DECLARE_METATYPE(std::vector<std::uint64_t>)
Q_DECLARE_METATYPE(muster::align::Pattern)

void DiagnosisTest::namesThePattern_data()
{
    QTest::addColumn<std::vector<std::uint64_t>>("found");
    QTest::addColumn<Pattern>("pattern");
    QTest::addColumn<QString>("sentence");
    using Order = std::vector<std::uint64_t>;
    const auto row = [](const char* name, const Order& found, Pattern pattern,
                        const char* sentence) {
        QTest::newRow(name) << found << pattern << QString(sentence);
    };
    row("late from 3", Order{0, 1, 2, 2, 3, 4, 5}, Pattern::Shift,
        "from index 3 on everything is one place late");
    row("early by two", Order{0, 3, 4, 5, 6, 7}, Pattern::Shift,
        "from index 1 on everything is 2 places early");
    row("a stretch is late", Order{0, 0, 1, 2, 4, 5}, Pattern::Shift,
        "indices 1 to 3 are one place late");
    row("swap", Order{0, 4, 2, 3, 1, 5}, Pattern::Swap, "indices 1 and 4 are exchanged");
    row("two swaps", Order{1, 0, 2, 3, 5, 4, 6}, Pattern::Swap,
        "2 pairs of indices are exchanged, the first 0 and 1");
    row("blocks", Order{0, 1, 5, 6, 7, 2, 3, 4, 8}, Pattern::Blocks,
        "the blocks 2 to 4 and 5 to 7 are exchanged");
    row("C-007 rank-major", Order{0, 2, 4, 6, 1, 3, 5, 7}, Pattern::RankMajor,
        "the rows are rank-major: strided shares of world size 2 one after the other");
    row("rank-major, uneven", Order{0, 4, 8, 1, 5, 9, 2, 6, 3, 7}, Pattern::RankMajor,
        "the rows are rank-major: strided shares of world size 4 one after the other");
    row("reversed", Order{6, 5, 4, 3, 2, 1, 0}, Pattern::Reversed,
        "the rows stand in reverse order");
    row("one stray", Order{0, 1, 2, 9}, Pattern::Permutation, "index 3 has the content of index 9");
    row("no pattern", Order{3, 0, 4, 1, 2}, Pattern::Permutation,
        "5 rows stand at wrong places without a pattern; index 0 has the content of index 3");
}

void DiagnosisTest::namesThePattern()
{
    QFETCH(std::vector<std::uint64_t>, found);
    QFETCH(Pattern, pattern);
    QFETCH(QString, sentence);
    const auto diagnosis = diagnoseOrder(found);
    QCOMPARE(QString::fromStdString(diagnosis.sentence), sentence);
    QVERIFY(diagnosis.pattern == pattern);
}

void DiagnosisTest::saysNothingOfAnOrderThatIsRight()
{
    QVERIFY(diagnoseOrder({0, 1, 2}).pattern == Pattern::None);
    QVERIFY(diagnoseOrder({}).sentence.empty());
}

QTEST_GUILESS_MAIN(DiagnosisTest)
#include "tst_diagnosis.moc"
