// SPDX-License-Identifier: Apache-2.0
#include "data/format.h"

#include "base/file.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster::data {

const char* formatName(Format format)
{
    switch (format) {
    case Format::Squad:
        return "SQuAD JSON";
    case Format::Jsonl:
        return "JSONL";
    case Format::Csv:
        return "CSV";
    case Format::Tsv:
        return "TSV";
    case Format::Text:
        return "plain text";
    case Format::Unknown:
        break;
    }
    return "unknown";
}

Result<DetectedFormat> detectFormat(const std::filesystem::path& path)
{
    auto file = MappedFile::open(path);
    if (!file)
        return fail(std::move(file).error());
    constexpr std::size_t looked = std::size_t{1} << 16U;
    std::string_view head = file->text().substr(0, looked);
    if (head.substr(0, 3) == "\xEF\xBB\xBF")
        head.remove_prefix(3);
    const std::size_t start = head.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos)
        return DetectedFormat{Format::Unknown, "it holds nothing but white space"};
    head.remove_prefix(start);

    std::string extension = path.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string_view line = head.substr(0, std::min(head.find('\n'), head.size()));

    if (head.front() == '{') {
        if (head.find("\"paragraphs\"") != std::string_view::npos)
            return DetectedFormat{Format::Squad, "it starts with { and has the key `paragraphs`"};
        if (head.find("\"data\"") != std::string_view::npos && extension != ".jsonl")
            return DetectedFormat{Format::Squad, "it starts with { and has the key `data`"};
        const std::size_t last = line.find_last_not_of(" \t\r");
        if (last != std::string_view::npos && line[last] == '}')
            return DetectedFormat{Format::Jsonl, "its first line is one JSON object"};
        return DetectedFormat{Format::Unknown,
                              "it starts with { but has neither `data` nor `paragraphs`"};
    }
    if (head.front() == '[')
        return DetectedFormat{Format::Unknown,
                              "it starts with [: a list of records, not a SQuAD-style file"};
    if (extension == ".tsv")
        return DetectedFormat{Format::Tsv, "its name ends in .tsv"};
    if (extension == ".csv")
        return DetectedFormat{Format::Csv, "its name ends in .csv"};
    if (line.find('\t') != std::string_view::npos)
        return DetectedFormat{Format::Tsv, "its first line has tabs"};
    return DetectedFormat{Format::Text, "it has no sign of another format"};
}

} // namespace muster::data
