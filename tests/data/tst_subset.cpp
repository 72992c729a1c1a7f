// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"
#include "data/subset.h"

#include <QtTest>

using namespace muster;
using muster::data::Subset;

class TestSubset : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void expressionsSelect_data()
    {
        QTest::addColumn<QString>("expression");
        QTest::addColumn<QString>("selected");
        QTest::newRow("everything") << ""
                                    << "0 1 2 3 4 5 6 7 8 9";
        QTest::newRow("one") << "3"
                             << "3";
        QTest::newRow("range") << "0-2"
                               << "0 1 2";
        QTest::newRow("open range") << "7-"
                                    << "7 8 9";
        QTest::newRow("list with spaces") << " 1 , 8 - 9 "
                                          << "1 8 9";
        QTest::newRow("overlap") << "1-3,2-4,3"
                                 << "1 2 3 4";
        QTest::newRow("id") << "id:s5"
                            << "5";
        QTest::newRow("id and range") << "id:s5,0-1"
                                      << "0 1 5";
    }
    void expressionsSelect()
    {
        QFETCH(QString, expression);
        QFETCH(QString, selected);
        const auto subset = Subset::parse(expression.toStdString());
        QVERIFY2(subset.has_value(), subset ? "" : subset.error().text().c_str());
        QStringList found;
        for (std::uint64_t i = 0; i < 10; ++i) {
            if (subset->contains(SampleIndex(i), "s" + std::to_string(i)))
                found << QString::number(static_cast<qulonglong>(i));
        }
        QCOMPARE(found.join(' '), selected);
    }

    void unreadablePartsAreNamed_data()
    {
        QTest::addColumn<QString>("expression");
        for (const char* bad :
             {"x", "1,,2", "1-x", "-3", "5-2", "id:", "1.5", "1,", "99999999999999999999", "0x10"})
            QTest::newRow(bad) << bad;
    }
    void unreadablePartsAreNamed()
    {
        QFETCH(QString, expression);
        const auto subset = Subset::parse(expression.toStdString());
        QVERIFY(!subset.has_value());
        QCOMPARE(subset.error().code, std::string("E-DATA-011"));
        QCOMPARE(subset.error().kind, Error::Kind::Invalid);
    }

    void partsOutsideTheDataSetAreRefused()
    {
        const auto range = Subset::parse("0-9");
        QVERIFY(range->checkAgainst(10, {}).has_value());
        QVERIFY(!range->checkAgainst(9, {}).has_value());
        const auto open = Subset::parse("9-");
        QVERIFY(open->checkAgainst(10, {}).has_value());
        QVERIFY(!open->checkAgainst(9, {}).has_value());
        const auto id = Subset::parse("id:a");
        QVERIFY(id->checkAgainst(1, {"a"}).has_value());
        QVERIFY(!id->checkAgainst(1, {}).has_value());
    }
};

QTEST_GUILESS_MAIN(TestSubset)
#include "tst_subset.moc"
