// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

/// One reference answer as the file states it.
struct Answer {
    std::string text;
    /// Place in the context in code points as in the file; −1 = unknown. Not corrected when wrong.
    std::int64_t start = -1;

    bool operator==(const Answer&) const = default;
};

/// One question with its reference answers.
struct Sample {
    SampleIndex index;         ///< canonical place among the samples that were kept, 0..N−1
    SampleIndex original;      ///< place among all samples of the files, before subset and limit
    std::string id;            ///< unique in the data set; a number in the file keeps its digits
    std::uint32_t context = 0; ///< index into Dataset::contexts
    std::string question;
    std::vector<Answer> answers; ///< in file order, repeated texts kept
    /// No reference answer: the official rules decide by the empty list, and so does this (C-023).
    bool isImpossible = false;
    Hash128 hash; ///< sampleHash() of this sample
};

/// Something odd in the data that does not stop a run; counted, and shown with the result.
struct Warning {
    std::string code;                 ///< `W-DATA-001` …, listed in docs/data.md
    std::string sentence;             ///< what was found and how it is treated
    std::uint64_t count = 0;          ///< answers, samples or files, as the sentence says
    std::vector<SampleIndex> first20; ///< the first samples concerned, each once, ascending

    bool operator==(const Warning&) const = default;
};

/// A question-answering data set, read once and then only looked at.
struct Dataset {
    std::vector<std::string> contexts; ///< each distinct context text once, in reading order
    std::vector<std::string> titles;   ///< [contexts]; of the article where the text stood first
    std::vector<Sample> samples;       ///< [N], in canonical order
    std::uint64_t originalCount = 0;   ///< samples in the files, before subset and limit
    bool hasUnanswerable = false;      ///< some kept sample has no reference answer
    std::string version;               ///< `version` of the first file that has one; may be empty
    std::vector<Warning> warnings;     ///< by code
    Hash128 digest;                    ///< datasetDigest() of the samples
};

/// Content hash of a sample: Hasher over id, question, context text, the number of answers, text
/// and start of each answer, and 1 or 0 for isImpossible. The index is no part of it.
[[nodiscard]] Hash128 sampleHash(const Sample& sample, std::string_view context);

/// UnorderedDigest over (index, hash) of the samples.
[[nodiscard]] Hash128 datasetDigest(std::span<const Sample> samples);

} // namespace muster::data
