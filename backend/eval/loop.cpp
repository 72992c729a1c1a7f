// SPDX-License-Identifier: Apache-2.0
#include "eval/loop.h"

#include "base/clock.h"
#include "model/model.h"

#include <utility>

namespace muster::eval {

using wire::RankPhase;

Loop::Loop(RankId rank, model::Model& model, UnitSource& source, OutputSink& sink,
           Progress& progress, Inject inject)
    : m_rank(rank), m_model(model), m_source(source), m_sink(sink), m_progress(progress),
      m_inject(std::move(inject))
{
}

Status Loop::compute(const wire::Unit& unit)
{
    wire::OutputBlock block;
    block.unit = unit.id;
    block.rank = m_rank;
    block.attempt = unit.attempt;
    block.sequence = m_sequence;
    block.realTokens = unit.tokens.size();
    m_progress.enter(RankPhase::Computing, TimeKind::Compute, unit.id);
    block.startedNs = monotonicNs();
    m_inject.beforeCompute(unit, m_sequence);
    auto outputs = m_model.compute(unit);
    block.finishedNs = monotonicNs();
    if (!outputs)
        return fail(outputs.error().during("computing unit " + std::to_string(unit.id.value)));
    block.outputs = *std::move(outputs);

    ++m_sequence;
    ++m_sums.units;
    m_sums.items += static_cast<std::int64_t>(block.outputs.size());
    m_sums.realTokens += static_cast<std::int64_t>(block.realTokens);
    m_sums.padTokens += static_cast<std::int64_t>(block.padTokens);
    for (const wire::Output& output : block.outputs) {
        const bool isError = (output.flags & wire::errorFlag) != 0;
        m_sums.errors += isError ? 1 : 0;
        if (unit.kind == wire::UnitKind::Lm && !isError) {
            const wire::LmHead head = wire::peekLm(output.payload);
            m_sums.lossSum += head.lossSum;
            m_sums.scoredTokens += head.scored;
        }
    }
    m_progress.setDoneUnits(m_sequence);

    m_progress.enter(RankPhase::Waiting, TimeKind::Other);
    for (wire::OutputBlock& part : m_inject.tamper(std::move(block))) {
        if (Status given = m_sink.deliver(std::move(part)); !given)
            return given;
    }
    return {};
}

Status Loop::run(const std::stop_token& stop)
{
    for (;;) {
        // A look without waiting tells the sink whether a finished unit is the only one.
        Pulled pulled = m_source.next(stop, std::chrono::milliseconds(0));
        Supply supply = Supply::Busy;
        if (pulled.state == Pulled::State::Empty) {
            supply = Supply::Idle;
        } else if (pulled.state == Pulled::State::Drained) {
            supply = Supply::Drained;
        }
        if (pulled.state != Pulled::State::Stopped) {
            const auto isFinished = m_sink.turn(supply);
            if (!isFinished)
                return fail(isFinished.error());
            if (supply == Supply::Drained && *isFinished)
                return {};
        }
        if (pulled.state == Pulled::State::Empty) {
            m_progress.enter(RankPhase::Waiting, TimeKind::Wait);
            pulled = m_source.next(stop, m_sink.patience());
        }
        if (pulled.state == Pulled::State::Stopped)
            return fail(Error::Kind::Cancelled, "E-EVAL-002", "the rank was asked to stop");
        if (pulled.state == Pulled::State::Unit && pulled.unit) {
            if (Status done = compute(*pulled.unit); !done)
                return done;
        }
    }
}

} // namespace muster::eval
