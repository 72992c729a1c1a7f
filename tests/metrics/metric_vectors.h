// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace muster::test {

/// Arrays with the results of scikit-learn and scipy, made by make_metric_vectors.py: the committed
/// file, or the one that MUSTER_METRIC_VECTORS names.
inline const nlohmann::json& metricVectors()
{
    static const nlohmann::json vectors = [] {
        const char* named = std::getenv("MUSTER_METRIC_VECTORS");
        std::ifstream file(named != nullptr ? named
                                            : MUSTER_TEST_DATA "/inputs/metric_vectors.json");
        return nlohmann::json::parse(file, nullptr, false);
    }();
    return vectors;
}

/// Equal to 1e-12, relative to the larger one above 1.
inline bool isClose(double a, double b, double tolerance = 1e-12)
{
    return std::fabs(a - b) <= tolerance * std::max({1.0, std::fabs(a), std::fabs(b)});
}

} // namespace muster::test
