// SPDX-License-Identifier: Apache-2.0
#include "launch/line_splitter.h"

#include "base/utf8.h"

#include <algorithm>

namespace muster::launch {

std::string safeLine(std::string_view bytes)
{
    std::string text;
    text.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const utf8::Decoded decoded = utf8::decode(bytes, at);
        const char32_t c = decoded.codePoint;
        if (!decoded.valid || (c >= 0x80 && c < 0xA0)) {
            utf8::append(text, 0xFFFD);
        } else if (c < 0x20 && c != U'\t') {
            utf8::append(text, 0x2400 + c);
        } else if (c == 0x7F) {
            utf8::append(text, 0x2421);
        } else {
            text.append(bytes.substr(at, decoded.size));
        }
        at += decoded.size;
    }
    return text;
}

void LineSplitter::feed(std::string_view bytes)
{
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        const std::string_view part = bytes.substr(0, end);
        const std::size_t room = maxLineBytes - m_line.size();
        m_line.append(part.substr(0, room));
        m_dropped += part.size() - std::min(room, part.size());
        if (end == std::string_view::npos) {
            return;
        }
        emitLine();
        bytes.remove_prefix(end + 1);
    }
}

void LineSplitter::finish()
{
    if (!m_line.empty() || m_dropped > 0) {
        emitLine();
    }
}

void LineSplitter::emitLine()
{
    if (!m_line.empty() && m_line.back() == '\r') {
        m_line.pop_back();
    }
    std::string line = safeLine(m_line);
    if (m_dropped > 0) {
        line += " … (" + std::to_string(m_dropped) + " more bytes in the log)";
    }
    m_line.clear();
    m_dropped = 0;
    m_sink(line);
}

} // namespace muster::launch
