// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "eval/flow.h"
#include "eval/inject.h"
#include "eval/progress.h"
#include "wire/message.h"

#include <stop_token>

namespace muster::model {
class Model;
}

namespace muster::eval {

/// One rank's work: pull a unit, compute it, hand over the outputs, until the source is drained and
/// the sink has nothing left to do. Lives on the rank's main thread; knows no sockets and no MPI.
class Loop final {
public:
    /// All references must outlive the loop.
    Loop(RankId rank, model::Model& model, UnitSource& source, OutputSink& sink, Progress& progress,
         Inject inject = {});

    /// Errors: Cancelled `E-EVAL-002` when a stop was asked for; whatever model and sink fail with.
    [[nodiscard]] Status run(const std::stop_token& stop);

    /// What this rank computed so far.
    [[nodiscard]] const wire::Sums& sums() const { return m_sums; }

private:
    [[nodiscard]] Status compute(const wire::Unit& unit);

    RankId m_rank;
    model::Model& m_model;
    UnitSource& m_source;
    OutputSink& m_sink;
    Progress& m_progress;
    Inject m_inject;
    wire::Sums m_sums;
    std::uint64_t m_sequence = 0;
};

} // namespace muster::eval
