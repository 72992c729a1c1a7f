// SPDX-License-Identifier: Apache-2.0
#include "wire/output.h"

#include <QTest>

#include <cstring>
#include <limits>
#include <random>

using namespace muster;
using namespace muster::wire;

namespace {

OutputBlock makeBlock(unsigned seed, std::size_t outputs)
{
    std::mt19937_64 random(seed);
    OutputBlock block;
    block.unit = UnitId(random());
    block.rank = RankId(3);
    block.attempt = 1;
    block.sequence = random();
    block.startedNs = 100;
    block.finishedNs = 200;
    block.realTokens = 77;
    block.padTokens = 5;
    for (std::size_t i = 0; i < outputs; ++i) {
        Output output;
        output.item = ItemIndex(random());
        output.hash = {random(), random()};
        output.flags = static_cast<std::uint32_t>(random() % 4);
        output.payload.resize(random() % 50);
        block.outputs.push_back(std::move(output));
    }
    return block;
}

QaOutput makeQa()
{
    return {.nullStart = 0.5F,
            .nullEnd = -0.25F,
            .startPosition = {3, 1, 7},
            .startLogit = {4.0F, 2.0F, 2.0F},
            .endPosition = {7, 3, 0},
            .endLogit = {1.0F, 0.0F, -1.0F}};
}

} // namespace

class TestOutput : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aBlockComesBackAsItWasSent()
    {
        for (unsigned seed = 0; seed < 100; ++seed) {
            const OutputBlock block = makeBlock(seed, seed % 12);
            const auto back = decodeBlock(encodeBlock(block));
            QVERIFY(back.has_value());
            QCOMPARE(*back, block);
        }
    }

    void everyCutAndEveryExtraByteIsRefused()
    {
        const auto bytes = encodeBlock(makeBlock(2, 4));
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            const auto block = decodeBlock(std::span{bytes}.first(size));
            QVERIFY(!block);
            QCOMPARE(QString::fromStdString(block.error().code), QStringLiteral("E-WIRE-011"));
        }
        auto more = bytes;
        more.push_back(std::byte{0});
        QVERIFY(!decodeBlock(more));
    }

    void aBlockThatContradictsItselfIsRefused()
    {
        OutputBlock block = makeBlock(2, 1);
        block.part = 1;
        QVERIFY(!decodeBlock(encodeBlock(block)));
        block = makeBlock(2, 1);
        block.parts = 0;
        QVERIFY(!decodeBlock(encodeBlock(block)));
        block = makeBlock(2, 1);
        block.finishedNs = 99;
        QVERIFY(!decodeBlock(encodeBlock(block)));
        block = makeBlock(2, 1);
        block.outputs[0].flags = 4;
        QVERIFY(!decodeBlock(encodeBlock(block)));
        auto bytes = encodeBlock(makeBlock(2, 1));
        const std::uint32_t count = 0xFFFFFFFFU;
        std::memcpy(bytes.data() + 64, &count, 4);
        QVERIFY(!decodeBlock(bytes));
    }

    void aLargeBlockIsCutIntoPartsThatTogetherAreIt()
    {
        const OutputBlock block = makeBlock(5, 100);
        for (const std::size_t limit : {160U, 500U, 4000U, 100000U}) {
            const auto parts = splitBlock(block, limit);
            QVERIFY(parts.has_value());
            std::vector<Output> outputs;
            for (std::size_t i = 0; i < parts->size(); ++i) {
                const OutputBlock& part = (*parts)[i];
                QCOMPARE(part.part, i);
                QCOMPARE(part.parts, parts->size());
                QCOMPARE(part.sequence, block.sequence);
                QVERIFY(encodeBlock(part).size() <= limit);
                outputs.insert(outputs.end(), part.outputs.begin(), part.outputs.end());
            }
            QCOMPARE(outputs, block.outputs);
        }
        QCOMPARE(splitBlock(makeBlock(5, 0), 1000)->size(), std::size_t{1});
        QVERIFY(!splitBlock(block, 100));
    }

    void logitsComeBackAsTheyWereSent()
    {
        const QaOutput output = makeQa();
        const auto back = decodeQa(encodeQa(output), 8);
        QVERIFY(back.has_value());
        QCOMPARE(*back, output);
        QaOutput infinite = output;
        infinite.endLogit[2] = -std::numeric_limits<float>::infinity();
        QVERIFY(decodeQa(encodeQa(infinite), 8).has_value());
    }

    void logitsThatBreakARuleAreRefused()
    {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        const auto isRefused = [](const QaOutput& output, std::uint32_t tokens = 8) {
            const auto back = decodeQa(encodeQa(output), tokens);
            return !back && back.error().code == "E-WIRE-012";
        };
        QVERIFY(isRefused(makeQa(), 7));
        QVERIFY(isRefused(makeQa(), 0));
        QaOutput output = makeQa();
        output.nullStart = nan;
        QVERIFY(isRefused(output));
        output = makeQa();
        output.endLogit[1] = nan;
        QVERIFY(isRefused(output));
        output = makeQa();
        std::swap(output.startLogit[0], output.startLogit[1]);
        QVERIFY(isRefused(output));
        output = makeQa();
        output.endPosition[2] = 7;
        QVERIFY(isRefused(output));
        QVERIFY(isRefused(QaOutput()));
        auto bytes = encodeQa(makeQa());
        bytes.pop_back();
        QVERIFY(!decodeQa(bytes, 8));
        const std::uint32_t count = 0x40000000U;
        std::memcpy(bytes.data() + 8, &count, 4);
        QVERIFY(!decodeQa(bytes, 8));
    }

    void lossesComeBackAndAreChecked()
    {
        LmOutput lm{.lossSum = 0.0, .scored = 3, .greedyHits = 1, .losses = {0.5F, 1.25F, 0.1F}};
        for (const float loss : lm.losses)
            lm.lossSum += static_cast<double>(loss);
        const auto back = decodeLm(encodeLm(lm), 3);
        QVERIFY(back.has_value());
        QCOMPARE(*back, lm);
        QCOMPARE(decodeLm(encodeLm(lm), 4).error().code, std::string("E-WIRE-014"));

        LmOutput other = lm;
        other.lossSum += 1e-12;
        QVERIFY(!decodeLm(encodeLm(other), 3).has_value());
        other = lm;
        other.lossSum = std::numeric_limits<double>::quiet_NaN();
        QVERIFY(!decodeLm(encodeLm(other), 3).has_value());
        other = lm;
        other.greedyHits = 4;
        QVERIFY(!decodeLm(encodeLm(other), 3).has_value());
        other = lm;
        other.losses.clear();
        QVERIFY(decodeLm(encodeLm(other), 3).has_value());
        auto cut = encodeLm(lm);
        cut.pop_back();
        QVERIFY(!decodeLm(cut, 3).has_value());
    }

    void logitsOfClassesComeBackAndAreChecked()
    {
        const ClassOutput classes{.logits = {-1.5F, 2.0F, 0.0F}};
        const auto back = decodeClass(encodeClass(classes), 3);
        QVERIFY(back.has_value());
        QCOMPARE(*back, classes);
        QCOMPARE(decodeClass(encodeClass(classes), 2).error().code, std::string("E-WIRE-015"));
        const ClassOutput infinite{.logits = {std::numeric_limits<float>::infinity()}};
        QVERIFY(!decodeClass(encodeClass(infinite), 1).has_value());
        auto longer = encodeClass(classes);
        longer.push_back(std::byte{0});
        QVERIFY(!decodeClass(longer, 3).has_value());
    }
};

QTEST_GUILESS_MAIN(TestOutput)
#include "tst_output.moc"
