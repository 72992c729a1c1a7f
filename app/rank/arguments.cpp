// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <charconv>
#include <string_view>

namespace muster::rank {

namespace {

constexpr std::size_t maxSocketPath = 107;

tl::unexpected<Error> wrong(const std::string& text)
{
    return fail(Error::Kind::Usage, "E-RANK-001", text + "; see muster-rank --help");
}

template <typename T>
bool readNumber(std::string_view text, T& into, int base = 10)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into, base);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

} // namespace

std::string usage()
{
    return "usage: muster-rank --connect unix:PATH --key-file PATH --run-tag HEX\n"
           "                   [--group N] [--generation N] [--plain RANK WORLD]\n"
           "       muster-rank --mpi-library | --version | --help\n"
           "\n"
           "One evaluation rank of Muster. The controller starts it, through an MPI launcher or,\n"
           "with --plain, as a process of its own that takes part in no MPI.\n";
}

Result<Arguments> parseArguments(std::span<char* const> words)
{
    Arguments arguments;
    bool hasTag = false;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        const auto value = [&](std::size_t which) -> std::string_view {
            return i + which < words.size() ? std::string_view(words[i + which])
                                            : std::string_view();
        };
        if (word == "--version") {
            arguments.action = Arguments::Action::Version;
            return arguments;
        }
        if (word == "--mpi-library") {
            arguments.action = Arguments::Action::MpiLibrary;
            return arguments;
        }
        if (word == "--help") {
            arguments.action = Arguments::Action::Help;
            return arguments;
        }
        if (word == "--connect") {
            const std::string_view address = value(1);
            if (!address.starts_with("unix:/"))
                return wrong("--connect needs unix:/PATH");
            arguments.socket = address.substr(5);
            if (arguments.socket.native().size() > maxSocketPath)
                return wrong("the path of the socket is longer than 107 bytes");
            ++i;
        } else if (word == "--key-file") {
            if (value(1).empty())
                return wrong("--key-file needs a path");
            arguments.keyFile = value(1);
            ++i;
        } else if (word == "--run-tag") {
            if (!readNumber(value(1), arguments.runTag, 16))
                return wrong("--run-tag needs at most 16 hexadecimal digits");
            hasTag = true;
            ++i;
        } else if (word == "--group") {
            if (!readNumber(value(1), arguments.group))
                return wrong("--group needs a number");
            ++i;
        } else if (word == "--generation") {
            if (!readNumber(value(1), arguments.generation))
                return wrong("--generation needs a number");
            ++i;
        } else if (word == "--plain") {
            PlainPlace place;
            if (!readNumber(value(1), place.rank) || !readNumber(value(2), place.world) ||
                place.rank >= place.world)
                return wrong("--plain needs RANK and WORLD, RANK below WORLD");
            arguments.plain = place;
            i += 2;
        } else {
            return wrong("unknown argument \"" + std::string(word) + "\"");
        }
    }
    if (arguments.socket.empty() || arguments.keyFile.empty() || !hasTag)
        return wrong("--connect, --key-file and --run-tag are needed");
    return arguments;
}

} // namespace muster::rank
