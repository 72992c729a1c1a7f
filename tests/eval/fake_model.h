// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/model.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace muster::test {

/// A model whose output for an item is its content hash; needs no weights and no LibTorch.
class FakeModel final : public model::Model {
public:
    explicit FakeModel(std::chrono::microseconds cost = {}) : m_cost(cost) {}

    Result<std::vector<wire::Output>> compute(const wire::Unit& unit) override
    {
        if (m_cost.count() > 0)
            std::this_thread::sleep_for(m_cost);
        ++computed;
        std::vector<wire::Output> outputs;
        for (std::size_t i = 0; i < unit.size(); ++i) {
            wire::Output output;
            output.item = ItemIndex(unit.items[i]);
            output.hash = wire::itemHash(unit, i);
            output.payload.resize(sizeof(Hash128));
            std::memcpy(output.payload.data(), &output.hash, sizeof(Hash128));
            outputs.push_back(std::move(output));
        }
        return outputs;
    }
    const model::ModelIdentity& identity() const override { return m_identity; }

    int computed = 0;

private:
    std::chrono::microseconds m_cost;
    model::ModelIdentity m_identity;
};

} // namespace muster::test
