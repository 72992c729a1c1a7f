// SPDX-License-Identifier: Apache-2.0
#include "terminal.h"

#include "base/utf8.h"

#include <unicode/uchar.h>

#include <charconv>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace muster::cli {

namespace {

std::size_t widthOf(char32_t codePoint)
{
    const auto c = static_cast<UChar32>(codePoint);
    switch (u_charType(c)) {
    case U_NON_SPACING_MARK:
    case U_ENCLOSING_MARK:
    case U_FORMAT_CHAR:
    case U_CONTROL_CHAR:
        return 0;
    default:
        break;
    }
    const int width = u_getIntPropertyValue(c, UCHAR_EAST_ASIAN_WIDTH);
    return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

} // namespace

Terminal terminalOf(int descriptor, const GlobalOptions& options)
{
    Terminal terminal;
    const char* term = std::getenv("TERM");
    const bool isDumb = term == nullptr || std::string_view(term) == "dumb";
    terminal.isInteractive = isatty(descriptor) == 1 && !options.isPlain && !isDumb;
    const char* noColour = std::getenv("NO_COLOR");
    const bool isColourOff = options.hasNoColour || (noColour != nullptr && *noColour != '\0');
    terminal.hasColour = terminal.isInteractive && !isColourOff;
    winsize size{};
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        terminal.columns = size.ws_col;
    } else if (const char* columns = std::getenv("COLUMNS")) {
        const std::string_view text = columns;
        std::size_t value = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() &&
            value > 0)
            terminal.columns = value;
    }
    return terminal;
}

std::size_t displayWidth(std::string_view text)
{
    std::size_t width = 0;
    for (std::size_t at = 0; at < text.size();) {
        const utf8::Decoded decoded = utf8::decode(text, at);
        width += widthOf(decoded.codePoint);
        at += decoded.size;
    }
    return width;
}

std::string clipped(std::string_view text, std::size_t columns)
{
    if (displayWidth(text) <= columns)
        return std::string(text);
    if (columns == 0)
        return {};
    std::size_t width = 0;
    std::size_t at = 0;
    while (at < text.size()) {
        const utf8::Decoded decoded = utf8::decode(text, at);
        const std::size_t next = width + widthOf(decoded.codePoint);
        if (next > columns - 1)
            break;
        width = next;
        at += decoded.size;
    }
    return std::string(text.substr(0, at)) + "\xE2\x80\xA6";
}

std::string padded(std::string_view text, std::size_t columns)
{
    std::string out(text);
    const std::size_t width = displayWidth(text);
    if (width < columns)
        out.append(columns - width, ' ');
    return out;
}

} // namespace muster::cli
