// SPDX-License-Identifier: Apache-2.0
#include "task/qa_windows.h"

#include <QtTest>

using namespace muster;
using namespace muster::task;

class TestQaWindows : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void workedExampleOfBothMeanings();
    void everyTokenIsCovered();
    void anEmptyContextHasOneWindow();
    void aStrideThatDoesNotAdvanceIsRefused();
    void aQuestionWithoutRoomIsRefused();
};

void TestQaWindows::workedExampleOfBothMeanings()
{
    // T-32, semantics.md 3.1: max_len 384, 12 question tokens, 800 context tokens, stride 128.
    const auto overlap = planWindows(12, 800, {});
    QVERIFY(overlap);
    QCOMPARE(*overlap, (std::vector<Window>{{0, 369}, {241, 369}, {482, 318}}));
    const auto step = planWindows(12, 800, {.meaning = StrideMeaning::Step});
    QVERIFY(step);
    QCOMPARE(*step,
             (std::vector<Window>{{0, 369}, {128, 369}, {256, 369}, {384, 369}, {512, 288}}));
}

void TestQaWindows::everyTokenIsCovered()
{
    for (const auto meaning : {StrideMeaning::Overlap, StrideMeaning::Step})
        for (std::uint32_t capacity = 1; capacity <= 6; ++capacity)
            for (std::uint32_t stride = 0; stride <= 7; ++stride)
                for (std::uint32_t context = 0; context <= 20; ++context) {
                    const auto windows = planWindows(
                        4, context,
                        {.maxSeqLength = capacity + 7, .stride = stride, .meaning = meaning});
                    const bool legal = meaning == StrideMeaning::Overlap
                                           ? stride < capacity
                                           : stride > 0 && stride <= capacity;
                    QCOMPARE(windows.has_value(), legal || context <= capacity);
                    if (!windows)
                        continue;
                    std::uint32_t covered = 0;
                    for (const Window& window : *windows) {
                        QVERIFY(window.start <= covered && window.count <= capacity);
                        QVERIFY(window.start + window.count > covered || context == 0);
                        covered = window.start + window.count;
                    }
                    QCOMPARE(covered, context);
                    // Only the last window reaches the end.
                    for (std::size_t i = 0; i + 1 < windows->size(); ++i)
                        QVERIFY((*windows)[i].start + (*windows)[i].count < context);
                }
}

void TestQaWindows::anEmptyContextHasOneWindow()
{
    QCOMPARE(*planWindows(12, 0, {}), (std::vector<Window>{{0, 0}}));
    QCOMPARE(*planWindows(381, 0, {}), (std::vector<Window>{{0, 0}}));
    QCOMPARE(*planWindows(12, 369, {}), (std::vector<Window>{{0, 369}}));
}

void TestQaWindows::aStrideThatDoesNotAdvanceIsRefused()
{
    // C-029: question 11, context 157, 3 special tokens, max 128, stride 128.
    const auto step =
        planWindows(11, 157, {.maxSeqLength = 128, .stride = 128, .meaning = StrideMeaning::Step});
    QVERIFY(!step);
    QCOMPARE(step.error().code, std::string("E-TASK-001"));
    QVERIFY(step.error().message.find("largest gap-free step is 114") != std::string::npos);
    const auto overlap = planWindows(11, 157, {.maxSeqLength = 128, .stride = 128});
    QVERIFY(!overlap);
    QCOMPARE(overlap.error().code, std::string("E-TASK-001"));
    QVERIFY(overlap.error().message.find("is 113") != std::string::npos);
    QVERIFY(planWindows(11, 157, {.maxSeqLength = 128, .stride = 113}));
    // One window has no gap, whatever the stride.
    QVERIFY(planWindows(11, 114, {.maxSeqLength = 128, .stride = 128}));
}

void TestQaWindows::aQuestionWithoutRoomIsRefused()
{
    for (const std::uint32_t question : {381U, 400U, 0xFFFFFFFFU}) {
        const auto windows = planWindows(question, 5, {});
        QVERIFY(!windows);
        QCOMPARE(windows.error().code, std::string("E-TASK-002"));
    }
    QVERIFY(planWindows(380, 1, {}));
}

QTEST_GUILESS_MAIN(TestQaWindows)
#include "tst_qa_windows.moc"
