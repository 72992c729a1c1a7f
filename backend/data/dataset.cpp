// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

namespace muster::data {

Hash128 sampleHash(const Sample& sample, std::string_view context)
{
    Hasher hasher;
    hasher.add(std::string_view(sample.id)).add(std::string_view(sample.question)).add(context);
    hasher.add(std::uint64_t{sample.answers.size()});
    for (const Answer& answer : sample.answers)
        hasher.add(std::string_view(answer.text)).add(answer.start);
    hasher.add(std::uint64_t{sample.isImpossible ? 1U : 0U});
    return hasher.result();
}

Hash128 datasetDigest(std::span<const Sample> samples)
{
    UnorderedDigest digest;
    for (const Sample& sample : samples)
        digest.add(sample.index.value, sample.hash);
    return digest.result();
}

} // namespace muster::data
