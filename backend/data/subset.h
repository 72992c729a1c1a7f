// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

/// Which samples of a data set are wanted. A comma-separated list of `17` (one index), `0-99`
/// (both ends included), `500-` (to the end) and `id:TEXT` (one id, without commas); spaces around
/// a part are ignored. Parts may overlap; the order of the parts has no meaning. An empty
/// expression wants everything.
class Subset final {
public:
    /// Errors: Invalid (`E-DATA-011`) with the part that cannot be read.
    [[nodiscard]] static Result<Subset> parse(std::string_view expression);

    [[nodiscard]] bool contains(SampleIndex original, const std::string& id) const;

    /// Checks that each part meets a sample. `ids` are the wanted ids that were seen.
    /// Errors: Invalid (`E-DATA-012`) with the first part that lies outside.
    [[nodiscard]] Status checkAgainst(std::uint64_t samples,
                                      const std::set<std::string>& ids) const;

    [[nodiscard]] bool isEverything() const { return m_ranges.empty() && m_ids.empty(); }
    [[nodiscard]] bool namesId(const std::string& id) const { return m_ids.count(id) != 0; }

private:
    struct Range {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        bool isOpen = false;
    };
    std::vector<Range> m_ranges;
    std::set<std::string> m_ids;
};

} // namespace muster::data
