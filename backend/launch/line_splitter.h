// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace muster::launch {

/// Cuts the bytes of one channel into lines that are safe to show.
///
/// Keeps at most one line of `maxLineBytes`: what follows in a longer line is dropped and the line
/// ends with a word that says so. Broken UTF-8 becomes U+FFFD; control characters become their
/// pictures (U+2400…), so that a rank cannot steer the terminal (F-16). Not thread-safe.
class LineSplitter final {
public:
    using Sink = std::function<void(const std::string& line)>;
    static constexpr std::size_t maxLineBytes = 64 * 1024;

    explicit LineSplitter(Sink sink) : m_sink(std::move(sink)) {}

    /// Takes bytes as they come and calls the sink for each line that is now complete.
    void feed(std::string_view bytes);
    /// Hands over the last line when it has no line feed. To be called at the end of the channel.
    void finish();

private:
    void emitLine();
    Sink m_sink;
    std::string m_line;
    std::size_t m_dropped = 0;
};

/// One line of foreign bytes as it may be shown: valid UTF-8 without control characters.
[[nodiscard]] std::string safeLine(std::string_view bytes);

} // namespace muster::launch
