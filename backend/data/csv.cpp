// SPDX-License-Identifier: Apache-2.0
#include "data/csv_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::data {

CsvScanner::Fault CsvScanner::readQuoted(std::string& into)
{
    const std::size_t start = m_at++;
    while (true) {
        const std::size_t quote = m_text.find('"', m_at);
        if (quote == std::string_view::npos) {
            m_at = start;
            return Fault::OpenQuote;
        }
        into.append(m_text.substr(m_at, quote - m_at));
        m_at = quote + 1;
        if (m_at < m_text.size() && m_text[m_at] == '"') {
            into.push_back('"');
            ++m_at;
            continue;
        }
        const std::string_view rest = m_text.substr(m_at, 2);
        if (rest.empty() || rest.front() == m_delimiter || rest.front() == '\n' || rest == "\r\n" ||
            rest == "\r")
            return Fault::None;
        return Fault::BehindQuote;
    }
}

CsvScanner::Fault CsvScanner::readRecord(std::vector<CsvField>& fields)
{
    std::size_t count = 0;
    const char stops[2] = {m_delimiter, '\n'};
    while (true) {
        if (count == fields.size())
            fields.emplace_back();
        CsvField& field = fields[count++];
        field.text.clear();
        field.offset = m_at;
        if (m_quotes == CsvQuotes::Rfc4180 && m_at < m_text.size() && m_text[m_at] == '"') {
            if (const Fault fault = readQuoted(field.text); fault != Fault::None)
                return fault;
            if (m_at < m_text.size() && m_text[m_at] == '\r')
                ++m_at;
        } else {
            const std::size_t end =
                std::min(m_text.find_first_of(std::string_view(stops, 2), m_at), m_text.size());
            std::string_view text = m_text.substr(m_at, end - m_at);
            // The CR of a line end; one at the end of the text ends the record too.
            if ((end == m_text.size() || m_text[end] == '\n') && text.ends_with('\r'))
                text.remove_suffix(1);
            field.text.assign(text);
            if (m_quotes == CsvQuotes::Rfc4180 && text.find('"') != std::string_view::npos)
                ++m_strayQuotes;
            m_at = end;
        }
        if (m_at >= m_text.size() || m_text[m_at] == '\n') {
            m_at = std::min(m_at + 1, m_text.size());
            fields.resize(count);
            return Fault::None;
        }
        ++m_at;
    }
}

DelimiterGuess guessDelimiter(std::string_view text)
{
    constexpr std::size_t looked = std::size_t{1} << 16U;
    constexpr std::uint64_t most = 50;
    const bool isCut = text.size() > looked;
    text = text.substr(0, looked);
    DelimiterGuess best{',', "no delimiter divides the first records, so each is one field"};
    std::uint64_t bestRecords = 0;
    std::size_t bestFields = 0;
    for (const char delimiter : {',', '\t', ';', '|'}) {
        CsvScanner scan(text, 0, delimiter, CsvQuotes::Rfc4180);
        std::map<std::size_t, std::uint64_t> recordsBySize;
        std::vector<CsvField> fields;
        std::uint64_t records = 0;
        while (!scan.atEnd() && records < most) {
            if (scan.readRecord(fields) != CsvScanner::Fault::None)
                break;
            if (isCut && scan.atEnd())
                break;
            ++recordsBySize[fields.size()];
            ++records;
        }
        for (const auto& [size, number] : recordsBySize) {
            if (size < 2 || number < bestRecords || (number == bestRecords && size <= bestFields))
                continue;
            bestRecords = number;
            bestFields = size;
            best = {delimiter, fmt::format("{} of the first {} records have {} fields", number,
                                           records, size)};
        }
    }
    return best;
}

} // namespace muster::data
