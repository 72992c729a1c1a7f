// SPDX-License-Identifier: Apache-2.0
#include "interrupts.h"

#include <QSocketNotifier>

#include <atomic>
#include <cerrno>

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace muster::cli {

namespace {

/// A signal handler cannot be given anything, so the end it writes to stands here.
std::atomic<int> writeEnd{-1};

void onSignal(int signal)
{
    const int saved = errno;
    const auto byte = static_cast<char>(signal);
    const int descriptor = writeEnd.load();
    if (descriptor >= 0 && write(descriptor, &byte, 1) < 0) {
        // The pipe is full: enough signals wait there.
    }
    errno = saved;
}

void install(void (*handler)(int))
{
    struct sigaction action {};
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

} // namespace

Interrupts::Interrupts(std::function<void(int, int)> call) : m_call(std::move(call))
{
    if (pipe2(m_ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    auto* notifier = new QSocketNotifier(m_ends[0], QSocketNotifier::Read, this);
    connect(notifier, &QSocketNotifier::activated, this, [this] {
        char byte = 0;
        while (read(m_ends[0], &byte, 1) == 1)
            m_call(byte, ++m_count);
    });
    writeEnd.store(m_ends[1]);
    install(&onSignal);
}

Interrupts::~Interrupts()
{
    if (m_ends[0] < 0)
        return;
    install(SIG_DFL);
    writeEnd.store(-1);
    close(m_ends[0]);
    close(m_ends[1]);
}

} // namespace muster::cli
