// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/order_test.h"
#include "base/hash.h"
#include "base/result.h"
#include "foreign/result_file.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::foreign {

/// What predictions are compared with, in data set order.
struct References {
    enum class Kind {
        Answers, ///< texts: EM and F1
        Labels   ///< classes: accuracy
    };
    Kind kind = Kind::Answers;
    std::string description;                       ///< `SQuAD JSON, 1190 questions`
    std::vector<std::string> ids;                  ///< [N]
    std::vector<std::vector<std::string>> answers; ///< accepted texts [N]; none = unanswerable
    std::vector<Hash128> hashes;                   ///< of the samples [N], or empty: none known
    std::vector<align::NamedOrder> orders;         ///< orders in which other programs work
    bool hasUnanswerable = false;
    Hash128 digest;
    std::vector<std::string> notes;

    [[nodiscard]] std::uint64_t size() const { return answers.size(); }
};

/// How tables are read; names as in data::TableOptions.
struct ReferenceOptions {
    std::string textField;
    std::string labelField;
};

/// Reads SQuAD-style JSON, tables of labelled texts, or any result file that has a column of labels
/// (also a NumPy array of them; rows with an index are put in their place).
/// Errors: those of data::readSquad() and data::readTable(); Invalid `E-FOREIGN-011` when nothing
/// in the files says what is right.
[[nodiscard]] Result<References> readReferences(std::span<const std::filesystem::path> files,
                                                const ReferenceOptions& options = {});

/// References from the labels that the rows of a result file carry themselves, placed by index.
/// Error: Invalid `E-FOREIGN-011` when rows have no labels or no index.
[[nodiscard]] Result<References> referencesOf(const ResultFile& file);

/// A label as it is compared: without blanks around it, `3.0` as `3`.
[[nodiscard]] std::string plainLabel(std::string_view text);

} // namespace muster::foreign
