// SPDX-License-Identifier: Apache-2.0
#include "align/dealing.h"

#include <algorithm>
#include <numeric>

namespace muster::align {

namespace {

std::uint64_t ceilDiv(std::uint64_t a, std::uint64_t b)
{
    return (a + b - 1) / b;
}

} // namespace

DealtOrder::DealtOrder(std::uint64_t total, const Dealing& dealing)
    : m_total(total), m_dealing(dealing)
{
    if (m_dealing.isByName) {
        m_ranks = orderByName(m_dealing.world);
    } else {
        m_ranks.resize(m_dealing.world);
        std::iota(m_ranks.begin(), m_ranks.end(), std::uint64_t{0});
    }
    m_starts.assign(m_dealing.world + 1, 0);
    for (std::uint64_t i = 0; i < m_dealing.world; ++i)
        m_starts[i + 1] = m_starts[i] + shareOf(m_ranks[i]);
}

std::uint64_t DealtOrder::shareOf(std::uint64_t rank) const
{
    const std::uint64_t world = m_dealing.world;
    if (m_dealing.kind != Dealing::Kind::Batches) {
        if (m_dealing.isPadded || m_dealing.kind == Dealing::Kind::Steps)
            return ceilDiv(m_total, world);
        return m_total / world + (rank < m_total % world ? 1U : 0U);
    }
    const std::uint64_t batches = ceilDiv(m_total, m_dealing.batch);
    if (m_dealing.isPadded)
        return ceilDiv(batches, world) * m_dealing.batch;
    if (rank >= batches)
        return 0;
    const std::uint64_t own = (batches - 1 - rank) / world + 1;
    const bool hasLast = (batches - 1) % world == rank;
    return own * m_dealing.batch - (hasLast ? batches * m_dealing.batch - m_total : 0);
}

std::uint64_t DealtOrder::at(std::uint64_t place) const
{
    const std::uint64_t world = m_dealing.world;
    if (m_dealing.kind == Dealing::Kind::Steps) {
        const std::uint64_t share = ceilDiv(m_total, world);
        const std::uint64_t step = place / (world * m_dealing.batch);
        const std::uint64_t within = place % (world * m_dealing.batch);
        const std::uint64_t rows = std::min(m_dealing.batch, share - step * m_dealing.batch);
        const std::uint64_t local = step * m_dealing.batch + within % rows;
        return (local * world + m_ranks[within / rows]) % m_total;
    }
    const auto next = std::upper_bound(m_starts.begin(), m_starts.end(), place);
    const auto slot = static_cast<std::uint64_t>(next - m_starts.begin()) - 1;
    const std::uint64_t local = place - m_starts[slot];
    const std::uint64_t rank = m_ranks[slot];
    if (m_dealing.kind == Dealing::Kind::Stride)
        return (local * world + rank) % m_total;
    const std::uint64_t batch = local / m_dealing.batch * world + rank;
    return (batch * m_dealing.batch + local % m_dealing.batch) % m_total;
}

std::vector<std::uint64_t> orderByName(std::uint64_t count)
{
    std::vector<std::uint64_t> order;
    order.reserve(count);
    if (count == 0)
        return order;
    order.push_back(0);
    // Walks the decimal texts without leading zero depth first.
    std::uint64_t at = 1;
    while (order.size() < count) {
        if (at < count)
            order.push_back(at);
        if (at < count && at * 10 < count) {
            at *= 10;
            continue;
        }
        while (at % 10 == 9 || at + 1 >= count) {
            at /= 10;
            if (at == 0)
                return order;
        }
        ++at;
    }
    return order;
}

} // namespace muster::align
