// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/distortions.h"

#include <QTest>

#include <array>

namespace muster::test {

/// How many of the random distortions were named rightly, by kind.
struct Trials {
    std::array<int, distortionKinds> tried{};
    std::array<int, distortionKinds> right{};
    int wrong = 0;
    int total = 0;
};

/// Distorts random subsets of at least 1,000 real predictions (every second time all of them).
inline Trials distortedTrials(const RealAnswers& all, int trials, std::uint64_t seed)
{
    Trials made;
    std::mt19937_64 random(seed);
    for (int trial = 0; trial < trials; ++trial) {
        std::vector<std::size_t> places(all.predictions.size());
        std::iota(places.begin(), places.end(), std::size_t{0});
        if (trial / distortionKinds % 2 == 1) {
            const std::size_t size = std::uniform_int_distribution<std::size_t>(
                1000, std::min<std::size_t>(places.size(), 3000))(random);
            std::ranges::shuffle(places, random);
            places.resize(size);
            std::ranges::sort(places);
        }
        const RealAnswers some = all.pick(places);
        const int kind = trial % distortionKinds;
        const Distorted distorted = distort(some.predictions, kind, random);
        const auto found = align::testOrder(some.with(distorted.rows));
        ++made.total;
        ++made.tried[static_cast<std::size_t>(kind)];
        if (isRight(found, distorted)) {
            ++made.right[static_cast<std::size_t>(kind)];
            continue;
        }
        ++made.wrong;
        qInfo("trial %d, %zu samples, %s (k %llu, place %llu, world %llu, batch %llu, ranks %llu "
              "%llu): %s; gain %.1f, [%llu, %llu], k %llu",
              trial, places.size(), distorted.label.c_str(),
              static_cast<unsigned long long>(distorted.count),
              static_cast<unsigned long long>(distorted.place),
              static_cast<unsigned long long>(distorted.world),
              static_cast<unsigned long long>(distorted.batch),
              static_cast<unsigned long long>(distorted.rankA),
              static_cast<unsigned long long>(distorted.rankB), found.sentence.c_str(),
              found.gainNats, static_cast<unsigned long long>(found.placeLow),
              static_cast<unsigned long long>(found.placeHigh),
              static_cast<unsigned long long>(found.count));
    }
    return made;
}

/// Alarms on files that are in order: random subsets, half of them with the questions in random
/// order, some with a model that is made worse.
inline int alarmsOnCleanFiles(const RealAnswers& all, int trials, std::uint64_t seed)
{
    int alarms = 0;
    std::mt19937_64 random(seed);
    for (int trial = 0; trial < trials; ++trial) {
        std::vector<std::size_t> places(all.predictions.size());
        std::iota(places.begin(), places.end(), std::size_t{0});
        std::ranges::shuffle(places, random);
        places.resize(std::uniform_int_distribution<std::size_t>(
            30, std::min<std::size_t>(places.size(), 3000))(random));
        if (trial % 2 == 0)
            std::ranges::sort(places);
        RealAnswers some = all.pick(places);
        if (trial % 4 >= 2) { // a worse model answers with another question's answer at times
            const double share = std::uniform_real_distribution<double>(0.0, 0.95)(random);
            for (std::uint32_t& one : some.predictions) {
                if (std::uniform_real_distribution<double>(0.0, 1.0)(random) < share)
                    one = all.predictions[std::uniform_int_distribution<std::size_t>(
                        0, all.predictions.size() - 1)(random)];
            }
        }
        const auto found = align::testOrder(some.with(some.predictions));
        if (found.disorder != align::Disorder::None) {
            ++alarms;
            qInfo("clean trial %d, %zu samples: %s (gain %.1f)", trial, places.size(),
                  found.sentence.c_str(), found.gainNats);
        }
    }
    return alarms;
}

} // namespace muster::test
