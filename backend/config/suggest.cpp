// SPDX-License-Identifier: Apache-2.0
#include "config/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace muster::config {

namespace {

std::string folded(std::string_view text)
{
    std::string result;
    for (const char c : text)
        result += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

} // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates)
{
    constexpr std::size_t longest = 64;
    if (word.empty() || word.size() > longest)
        return {};
    const std::string wanted = folded(word);
    std::size_t best = std::max<std::size_t>(1, wanted.size() / 3) + 1;
    std::string found;
    for (const std::string& candidate : candidates) {
        const std::size_t d = distance(wanted, folded(candidate));
        if (d < best) {
            best = d;
            found = candidate;
        }
    }
    return found;
}

} // namespace muster::config
