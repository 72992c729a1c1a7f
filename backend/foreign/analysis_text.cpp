// SPDX-License-Identifier: Apache-2.0
#include "foreign/analysis.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace muster::foreign {

namespace {

using Json = nlohmann::ordered_json;

const char* placingName(Placing placing)
{
    switch (placing) {
    case Placing::ById:
        return "id";
    case Placing::ByIndex:
        return "index";
    case Placing::ByOrder:
        break;
    }
    return "order";
}

Json number(double value)
{
    if (std::isfinite(value))
        return value;
    return nullptr;
}

Json metricsJson(const MetricList& list)
{
    Json made = Json::object();
    for (const auto& [key, value] : list)
        made[key] = number(value);
    return made;
}

std::string metricsText(const MetricList& list)
{
    std::vector<std::string> parts;
    for (const auto& [key, value] : list)
        parts.push_back(fmt::format("{} {:.2f} %",
                                    key == "exact_match" ? "EM"
                                    : key == "f1"        ? "F1"
                                                         : key,
                                    value));
    return fmt::format("{}", fmt::join(parts, ", "));
}

Json diagnosisJson(const align::OrderDiagnosis& found)
{
    Json made;
    made["pattern"] = std::string(align::word(found.disorder));
    made["sentence"] = found.sentence;
    made["cause"] = found.cause;
    made["confidence"] = number(found.confidence);
    made["gain_nats"] = number(found.gainNats);
    made["testable"] = found.isTestable;
    if (found.disorder == align::Disorder::None)
        return made;
    made["place"] = found.place;
    made["place_range"] = {found.placeLow, found.placeHigh};
    if (found.count > 0)
        made["count"] = found.count;
    if (found.worldSize > 0)
        made["world_size"] = found.worldSize;
    if (found.batch > 0)
        made["batch"] = found.batch;
    if (found.rankA != found.rankB)
        made["ranks"] = {found.rankA, found.rankB};
    made["copies"] = found.copies;
    Json pieces = Json::array();
    constexpr std::size_t most = 100;
    for (std::size_t i = 0; i < std::min(found.pieces.size(), most); ++i)
        pieces.push_back({{"first", found.pieces[i].first},
                          {"end", found.pieces[i].end},
                          {"shift", found.pieces[i].shift}});
    made["pieces"] = std::move(pieces);
    made["agreed_before"] = found.agreedBefore;
    made["agreed_after"] = found.agreedAfter;
    return made;
}

Json scanJson(const align::ShiftScan& scan)
{
    Json made;
    made["best"] = scan.best;
    made["has_peak"] = scan.hasPeak;
    made["background_percent"] = number(100.0 * scan.background);
    made["warning"] = scan.warning;
    Json shifts = Json::array();
    for (const align::ShiftScore& score : scan.scores)
        shifts.push_back({{"shift", score.shift},
                          {"rows", score.rows},
                          {"percent", number(100.0 * score.rate)},
                          {"z", number(score.z)}});
    made["shifts"] = std::move(shifts);
    return made;
}

Json matrixJson(const align::CrossMatrix& matrix)
{
    Json made;
    made["world_size"] = matrix.worldSize;
    made["share"] = matrix.share == align::Share::Block ? "block" : "stride";
    Json rows = Json::array();
    for (std::uint64_t a = 0; a < matrix.worldSize; ++a) {
        Json row = Json::array();
        for (std::uint64_t b = 0; b < matrix.worldSize; ++b)
            row.push_back(number(100.0 * matrix.rate[a * matrix.worldSize + b]));
        rows.push_back(std::move(row));
    }
    made["percent"] = std::move(rows);
    return made;
}

std::string scanText(const align::ShiftScan& scan)
{
    std::string text = fmt::format("shift scan (predictions against references shifted; background "
                                   "{:.2f} %)\n   shift  agreement        z\n",
                                   100.0 * scan.background);
    constexpr std::int64_t near = 5;
    for (const align::ShiftScore& score : scan.scores) {
        const bool stands = score.z >= 4.0;
        if (score.rows == 0 || (std::abs(score.shift) > near && !stands))
            continue;
        text += fmt::format("  {:>+6}   {:>7.2f} %  {:>7.1f}{}\n", score.shift, 100.0 * score.rate,
                            score.z, score.shift == scan.best && scan.hasPeak ? "  <- peak" : "");
    }
    if (!scan.hasPeak)
        text += "  no shift stands out\n";
    return text;
}

std::string matrixText(const align::CrossMatrix& matrix)
{
    constexpr std::uint64_t widest = 12;
    const std::uint64_t size = std::min(matrix.worldSize, widest);
    std::string text =
        fmt::format("cross matrix of world size {} ({} shares): references of rank "
                    "(down) against predictions of rank (across), %\n      ",
                    matrix.worldSize, matrix.share == align::Share::Block ? "block" : "strided");
    for (std::uint64_t b = 0; b < size; ++b)
        text += fmt::format("{:>6}", b);
    text += '\n';
    for (std::uint64_t a = 0; a < size; ++a) {
        text += fmt::format("  {:>4}", a);
        for (std::uint64_t b = 0; b < size; ++b)
            text += fmt::format("{:>6.1f}", 100.0 * matrix.rate[a * matrix.worldSize + b]);
        text += '\n';
    }
    if (matrix.worldSize > size)
        text += fmt::format("  (the first {} ranks)\n", size);
    return text;
}

} // namespace

std::string analysisJson(const Analysis& analysis, const ResultFile& file,
                         const References& references)
{
    Json made;
    made["file"] = file.name;
    made["format"] = file.format;
    made["parts"] = file.parts;
    made["fields"] = {
        {"prediction", file.predictionField}, {"index", file.indexField}, {"id", file.idField}};
    made["data"] = references.description;
    made["data_digest"] = references.digest.hex();
    made["verdict"] = std::string(align::word(analysis.verdict));
    made["findings"] = analysis.findings;
    Json notes = file.notes;
    for (const std::string& note : analysis.notes)
        notes.push_back(note);
    made["notes"] = std::move(notes);
    made["placed_by"] = placingName(analysis.placing);
    made["coverage"] = {{"rows", analysis.rows},
                        {"expected", analysis.samples},
                        {"unique", analysis.covered},
                        {"missing", analysis.samples - analysis.covered},
                        {"first_missing", analysis.missing},
                        {"duplicated", analysis.copies + analysis.conflicts},
                        {"conflicting", analysis.conflicts},
                        {"pads_dropped", analysis.pads},
                        {"out_of_range", analysis.outOfRange},
                        {"unknown_ids", analysis.unknownIds},
                        {"hashes_equal", analysis.hashesEqual},
                        {"hashes_differ", analysis.hashesDiffer}};
    made["metrics"] = metricsJson(analysis.before);
    made["metrics_in_order_found"] = metricsJson(analysis.after);
    made["diagnosis"] = diagnosisJson(analysis.diagnosis);
    made["shift_scan"] = scanJson(analysis.scan);
    made["cross_matrix"] = matrixJson(analysis.matrix);
    Json stated = Json::object();
    for (const auto& [key, value] : file.stated)
        stated[key] = number(value);
    made["stated_metrics"] = std::move(stated);
    return made.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string analysisText(const Analysis& analysis, const ResultFile& file,
                         const References& references, Detail detail)
{
    std::string text = fmt::format("{}: {}, {} rows\n", file.name, file.format, analysis.rows);
    text += fmt::format("data: {}\n", references.description);
    for (const auto* notes : {&file.notes, &analysis.notes}) {
        for (const std::string& note : *notes)
            text += "  " + note + '\n';
    }
    if (detail == Detail::Whole) {
        text += scanText(analysis.scan);
        text += matrixText(analysis.matrix);
    }
    for (const std::string& finding : analysis.findings)
        text += finding + '\n';
    if (analysis.repairedRowOf != analysis.rowOf)
        text += fmt::format("{} as the rows stand, {} in the order found (confidence {:.1f} %)\n",
                            metricsText(analysis.before), metricsText(analysis.after),
                            100.0 * std::min(analysis.diagnosis.confidence, 0.9999));
    else if (detail == Detail::Whole)
        text += metricsText(analysis.before) + '\n';
    return text;
}

} // namespace muster::foreign
