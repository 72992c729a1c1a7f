// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>

#include <functional>

namespace muster::cli {

/// Turns SIGINT and SIGTERM into calls in the main thread, for as long as it lives: one object per
/// process at a time. The call gets the signal and how many of them came so far, from 1 on.
class Interrupts final : public QObject {
public:
    explicit Interrupts(std::function<void(int signal, int count)> call);
    ~Interrupts() override;

private:
    std::function<void(int, int)> m_call;
    int m_count = 0;
    int m_ends[2] = {-1, -1};
};

} // namespace muster::cli
