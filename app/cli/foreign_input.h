// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "controller_api.h"
#include "foreign/analysis.h"
#include "options.h"

namespace muster::cli {

/// A result file of another program with what it is compared with.
struct ForeignInput {
    foreign::ResultFile file;
    foreign::References references;
    foreign::AnalysisOptions options;
};

/// Reads both; without --data the labels that the rows carry are the references.
[[nodiscard]] Result<ForeignInput> readForeign(const ForeignOptions& options);

/// Both read and analysed.
struct ForeignAnalysis {
    ForeignInput input;
    foreign::Analysis analysis;
};
[[nodiscard]] Result<ForeignAnalysis> analyseForeign(const ForeignOptions& options);

/// The analysis for people (last line: the verdict) and programs, with its exit code: 0 ALIGNED or
/// UNVERIFIED, 5 INCOMPLETE, 6 MISALIGNED.
[[nodiscard]] Answer answerOf(const ForeignAnalysis& checked, foreign::Detail detail);

/// The argument in quotes when the shell needs it.
[[nodiscard]] std::string shellWord(const std::string& text);

} // namespace muster::cli
