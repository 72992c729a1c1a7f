// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "report/run_result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace muster::report {

enum class HtmlLanguage { English, Chinese };

struct HtmlOptions {
    HtmlLanguage language = HtmlLanguage::English; ///< shown first; the page can switch
    /// Texts of a sample are cut behind this many bytes (and marked), so that 10⁵ samples stay
    /// usable.
    std::size_t longestText = 4000;
};

/// Writes one HTML document: verdict and proof, metrics with intervals and method, the ledger of
/// wrong averages, the confusion matrix, the alignment strips, ranks and their time, all samples
/// (sorted, searched and shown page by page by the page's own script), configuration and
/// environment. It needs no network, loads nothing and forbids loading by its own policy; every
/// text of a run is escaped, so hostile samples stay text. Memory does not grow with the samples.
/// Error: Io `E-REPORT-001`; those of forEachSample.
[[nodiscard]] Status writeHtml(const std::filesystem::path& to, const RunResult& result,
                               const HtmlOptions& options = {});

/// The text for HTML: & < > " ' as references, broken UTF-8 replaced, control characters but tab
/// and line end replaced by U+FFFD.
[[nodiscard]] std::string htmlEscaped(std::string_view text);

} // namespace muster::report
