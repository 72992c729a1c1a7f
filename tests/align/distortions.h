// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/order_test.h"
#include "align/shift_scan.h"
#include "data/squad_reader.h"
#include "metrics/normalize.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::test {

/// Real predictions beside their references, as numbered answers.
struct RealAnswers {
    std::vector<std::uint32_t> predictions;             // [N]
    std::vector<std::vector<std::uint32_t>> references; // [N]

    [[nodiscard]] align::Agreement with(std::vector<std::uint32_t> rows) const
    {
        std::vector<std::uint64_t> starts{0};
        std::vector<std::uint32_t> classes;
        for (const auto& one : references) {
            classes.insert(classes.end(), one.begin(), one.end());
            starts.push_back(classes.size());
        }
        return {std::move(rows), std::move(starts), std::move(classes)};
    }
    /// The questions at these places, in this order.
    [[nodiscard]] RealAnswers pick(const std::vector<std::size_t>& places) const
    {
        RealAnswers made;
        for (const std::size_t i : places) {
            made.predictions.push_back(predictions[i]);
            made.references.push_back(references[i]);
        }
        return made;
    }
};

inline RealAnswers readAnswers(const std::filesystem::path& squad,
                               const std::filesystem::path& predictions)
{
    RealAnswers made;
    const std::vector<std::filesystem::path> files{squad};
    const auto dataset = data::readSquad(files);
    std::ifstream in(predictions);
    const auto texts = nlohmann::json::parse(in);
    std::unordered_map<std::string, std::uint32_t> numbers;
    const auto numberOf = [&numbers](const std::string& text) {
        const auto key = metrics::normalize(metrics::Normalizer::SquadEn1, text).text;
        return numbers.emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second;
    };
    for (const data::Sample& sample : dataset->samples) {
        made.predictions.push_back(numberOf(texts.at(sample.id).get<std::string>()));
        std::vector<std::uint32_t> golds;
        for (const data::Answer& answer : sample.answers) {
            const std::uint32_t number = numberOf(answer.text);
            if (std::ranges::find(golds, number) == golds.end())
                golds.push_back(number);
        }
        made.references.push_back(std::move(golds));
    }
    return made;
}

/// A file that was put out of order, and what must be said about it.
struct Distorted {
    std::vector<std::uint32_t> rows;
    align::Disorder disorder = align::Disorder::None;
    std::uint64_t count = 0;
    std::uint64_t place = 0;    // Late, Early, BlocksExchanged
    std::uint64_t placeEnd = 0; // Late, Early: the last place that gives the same file
    std::uint64_t world = 0;
    std::uint64_t batch = 0;
    std::uint64_t rankA = 0;
    std::uint64_t rankB = 0;
    std::string label;
};

inline constexpr int distortionKinds = 15;

/// One random distortion of kind 0 … distortionKinds − 1 of predictions that stand in order.
inline Distorted distort(const std::vector<std::uint32_t>& p, int kind, std::mt19937_64& random)
{
    using align::Dealing;
    using align::Disorder;
    const std::uint64_t n = p.size();
    const auto between = [&random](std::uint64_t low, std::uint64_t high) {
        return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
    };
    const auto dealt = [&](const Dealing& dealing) {
        const align::DealtOrder order(n, dealing);
        std::vector<std::uint32_t> rows;
        for (std::uint64_t i = 0; i < order.size(); ++i)
            rows.push_back(p[order.at(i)]);
        return rows;
    };
    const auto at = [&p](std::uint64_t i) { return p.begin() + static_cast<std::ptrdiff_t>(i); };
    Distorted made;
    switch (kind) {
    case 0: // k rows repeated, the file cut to its length
        made.label = "late";
        made.disorder = Disorder::Late;
        made.count = between(0, 2) == 0 ? between(2, 5) : 1;
        made.place = between(n / 20, n - n / 20);
        made.rows.assign(at(0), at(made.place));
        made.rows.insert(made.rows.end(), at(made.place - made.count), at(n - made.count));
        made.placeEnd = made.place;
        while (made.placeEnd < n && p[made.placeEnd] == p[made.placeEnd - made.count])
            ++made.placeEnd;
        while (made.place > made.count && p[made.place - 1] == p[made.place - 1 - made.count])
            --made.place;
        break;
    case 1: // k rows dropped
        made.label = "early";
        made.disorder = Disorder::Early;
        made.count = between(0, 2) == 0 ? between(2, 40) : 1;
        made.place = between(n / 20, n - n / 20 - made.count);
        made.rows.assign(at(0), at(made.place));
        made.rows.insert(made.rows.end(), at(made.place + made.count), at(n));
        made.placeEnd = made.place;
        while (made.placeEnd + made.count < n && p[made.placeEnd] == p[made.placeEnd + made.count])
            ++made.placeEnd;
        if (between(0, 1) == 0)
            made.rows.resize(n, p.back());
        break;
    case 2:
        made.label = "rank-major";
        made.disorder = Disorder::RankMajor;
        made.world = between(0, 3) == 0 ? between(17, 128) : between(2, 16);
        made.rows = dealt({Dealing::Kind::Stride, made.world, 1, false, false});
        break;
    case 3:
        made.label = "rank-major with the sampler's copies";
        made.disorder = Disorder::RankMajor;
        made.world = between(3, 32);
        while (n % made.world == 0)
            ++made.world;
        made.rows = dealt({Dealing::Kind::Stride, made.world, 1, true, false});
        if (between(0, 1) == 0)
            made.rows.resize(n);
        break;
    case 4:
        made.label = "batches rank by rank";
        made.disorder = Disorder::BatchMajor;
        made.world = between(2, 8);
        made.batch = between(2, 32);
        made.rows =
            dealt({Dealing::Kind::Batches, made.world, made.batch, between(0, 1) == 0, false});
        break;
    case 5:
        made.label = "strides step by step";
        made.disorder = Disorder::StepMajor;
        made.world = between(2, 8);
        made.batch = between(2, 32);
        made.rows = dealt({Dealing::Kind::Steps, made.world, made.batch, true, false});
        made.rows.resize(n);
        break;
    case 6: {
        made.label = "blocks exchanged";
        made.disorder = Disorder::BlocksExchanged;
        const std::uint64_t size = between(20, n / 4);
        const std::uint64_t a = between(0, n - 2 * size);
        const std::uint64_t b = between(a + size, n - size);
        made.rows = p;
        std::swap_ranges(made.rows.begin() + static_cast<std::ptrdiff_t>(a),
                         made.rows.begin() + static_cast<std::ptrdiff_t>(a + size),
                         made.rows.begin() + static_cast<std::ptrdiff_t>(b));
        made.place = a;
        break;
    }
    case 7: {
        made.label = "ranks of block shares exchanged";
        made.disorder = Disorder::BlocksExchanged;
        const std::uint64_t world = between(3, 16);
        made.rankA = between(0, world - 2);
        made.rankB = between(made.rankA + 1, world - 1);
        made.world = world;
        for (std::uint64_t rank = 0; rank < world; ++rank) {
            const std::uint64_t from = rank == made.rankA   ? made.rankB
                                       : rank == made.rankB ? made.rankA
                                                            : rank;
            made.rows.insert(made.rows.end(), at(align::blockStart(n, world, from)),
                             at(align::blockStart(n, world, from + 1)));
        }
        made.place = align::blockStart(n, world, made.rankA);
        break;
    }
    case 8:
        made.label = "ranks of strided shares exchanged";
        made.disorder = Disorder::RanksExchanged;
        made.world = between(2, 16);
        made.rankA = between(0, made.world - 2);
        made.rankB = between(made.rankA + 1, made.world - 1);
        made.rows = p;
        for (std::uint64_t start = 0; start + made.rankB < n; start += made.world)
            std::swap(made.rows[start + made.rankA], made.rows[start + made.rankB]);
        break;
    case 9:
        made.label = "copies behind the end";
        made.disorder = Disorder::PaddingAtEnd;
        made.count = between(1, 63);
        made.rows = p;
        made.rows.insert(made.rows.end(), at(0), at(made.count));
        break;
    case 10:
        made.label = "copies instead of the last rows";
        made.disorder = Disorder::PaddingAtEnd;
        made.count = between(8, 63);
        made.rows.assign(at(0), at(n - made.count));
        made.rows.insert(made.rows.end(), at(0), at(made.count));
        break;
    case 11:
        made.label = "sorted with the sampler's copies";
        made.disorder = Disorder::SamplerCopies;
        made.count = between(2, 63);
        for (std::uint64_t i = 0; i < n; ++i) {
            made.rows.push_back(p[i]);
            if (i < made.count)
                made.rows.push_back(p[i]);
        }
        if (between(0, 1) == 0)
            made.rows.resize(n);
        break;
    case 12:
        made.label = "pads in front";
        made.disorder = Disorder::PadsInFront;
        made.count = between(2, 63);
        made.rows.assign(made.count, between(0, 1) == 0 ? align::noAnswer : p[n / 2]);
        made.rows.insert(made.rows.end(), at(0), at(n));
        if (between(0, 1) == 0)
            made.rows.resize(n);
        break;
    case 13:
        made.label = "reversed";
        made.disorder = Disorder::Reversed;
        made.rows.assign(p.rbegin(), p.rend());
        break;
    default:
        made.label = "shuffled";
        made.disorder = Disorder::Shuffled;
        made.rows = p;
        std::ranges::shuffle(made.rows, random);
        break;
    }
    return made;
}

/// Whether the diagnosis says what was done.
inline bool isRight(const align::OrderDiagnosis& found, const Distorted& made)
{
    using align::Disorder;
    // Exchanging ranks 1 and 2 of 4 is the same as two strides gathered after every two rows.
    if (made.disorder == Disorder::RanksExchanged && found.disorder == Disorder::StepMajor)
        return made.world == 4 && made.rankA == 1 && made.rankB == 2 && found.worldSize == 2 &&
               found.batch == 2;
    if (found.disorder != made.disorder)
        return false;
    switch (made.disorder) {
    case Disorder::Late:
    case Disorder::Early:
        return found.count == made.count && found.placeLow <= made.placeEnd &&
               made.place <= found.placeHigh && found.placeHigh - found.placeLow <= 40;
    case Disorder::RankMajor:
        return found.worldSize == made.world;
    case Disorder::BatchMajor:
    case Disorder::StepMajor:
        return found.worldSize == made.world && found.batch == made.batch;
    case Disorder::BlocksExchanged:
        return found.placeLow <= made.place + 12 && made.place <= found.placeHigh + 12 &&
               (made.world == 0 || (found.worldSize == made.world && found.rankA == made.rankA &&
                                    found.rankB == made.rankB));
    case Disorder::RanksExchanged:
        return found.worldSize == made.world && found.rankA == made.rankA &&
               found.rankB == made.rankB;
    case Disorder::PaddingAtEnd:
    case Disorder::SamplerCopies:
    case Disorder::PadsInFront:
        return found.count == made.count;
    default:
        return true;
    }
}

} // namespace muster::test
