// SPDX-License-Identifier: Apache-2.0
// Finished runs as a comparison takes them.
#include "run/compare.h"

#include "config/read.h"
#include "run/lm_job.h"
#include "run/outcome.h"
#include "store/run_file.h"

#include <fmt/format.h>

namespace muster::run {

Result<ComparedRun> loadCompared(const std::filesystem::path& folder)
{
    auto result = loadResult(folder);
    if (!result)
        return fail(std::move(result).error());
    auto resolved = config::readToml({"run.toml", (*result)->configToml, {}}).result();
    if (!resolved)
        return fail(std::move(resolved).error());
    auto config = resolved->config;
    config.cluster.ranks = (*result)->ranks;
    return comparedOf(std::move(*result), std::move(config), folder);
}

Result<std::vector<metrics::LedgerMatch>> explainPerplexity(const std::filesystem::path& folder,
                                                            double seen, double tolerance)
{
    auto file = store::RunFile::open(folder / "run.muster", store::Access::ReadOnly);
    if (!file)
        return fail(std::move(file).error());
    auto toml = file->document(store::doc::config);
    if (!toml)
        return fail(std::move(toml).error());
    if (!*toml)
        return fail(Error::Kind::Incomplete, "E-RUN-003",
                    fmt::format("{} has no configuration: the run ended before it was planned.",
                                folder.string()));
    auto resolved = config::readToml({"run.toml", **toml, {}}).result();
    if (!resolved)
        return fail(std::move(resolved).error());
    auto job = Job::load(resolved->config, *file);
    if (!job)
        return fail(std::move(job).error());
    const auto* lm = dynamic_cast<const LmJob*>(job->get());
    if (lm == nullptr)
        return fail(Error::Kind::Usage, "E-RUN-073",
                    fmt::format("{} is no run of a language model and has no perplexity.",
                                folder.filename().string()));
    const Status visited =
        file->forEachOutput([&](const store::OutputRecord&, wire::OutputBlock&& block) {
            (*job)->accept(block);
            return true;
        });
    if (!visited)
        return fail(visited.error());
    return lm->explain(seen, tolerance);
}

} // namespace muster::run
