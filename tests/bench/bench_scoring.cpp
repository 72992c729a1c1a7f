// SPDX-License-Identifier: Apache-2.0
// Scores 10,570 predictions on both halves of the SQuAD 1.1 development set on one thread.
// Usage: bench_scoring <folder with dev-v1.1.json and test-v1.1.json> [repetitions]
// Predictions are made from the golds by a fixed rule, so that hits, overlaps and misses all occur;
// a script in Python that follows the same rule must print the same EM and F1.
#include "metrics/squad.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using namespace muster::metrics;

namespace {

struct Row {
    std::string id;
    std::vector<std::string> golds;
    std::string prediction;
};

std::vector<std::string> words(const std::string& text)
{
    std::vector<std::string> found;
    std::size_t at = 0;
    while ((at = text.find_first_not_of(" \t\n\r\f\v", at)) != std::string::npos) {
        const std::size_t end = std::min(text.find_first_of(" \t\n\r\f\v", at), text.size());
        found.push_back(text.substr(at, end - at));
        at = end;
    }
    return found;
}

std::string joined(const std::vector<std::string>& list, std::size_t from, std::size_t to)
{
    std::string text;
    for (std::size_t i = from; i < std::min(to, list.size()); ++i)
        text += (i == from ? "" : " ") + list[i];
    return text;
}

std::string madeUp(std::size_t number, const Row& row, const std::string& context)
{
    const std::string& gold = row.golds[number % row.golds.size()];
    const auto around = words(context);
    switch (number % 4) {
    case 0:
        return gold;
    case 1:
        return gold + " " + around.front();
    case 2: {
        const auto own = words(gold);
        return own.size() > 1 ? joined(own, 1, own.size()) : around.back();
    }
    default:
        return joined(around, number % 7, number % 7 + 4);
    }
}

double seconds(std::chrono::steady_clock::time_point since)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 2) {
        std::fputs("usage: bench_scoring <folder of SQuAD 1.1 dev> [repetitions]\n", stderr);
        return 2;
    }
    std::vector<Row> rows;
    std::size_t pairs = 0;
    for (const char* name : {"dev-v1.1.json", "test-v1.1.json"}) {
        std::ifstream file(std::string(argv[1]) + "/" + name);
        const auto set = nlohmann::json::parse(file, nullptr, false);
        if (set.is_discarded()) {
            std::fprintf(stderr, "cannot read %s\n", name);
            return 1;
        }
        for (const auto& article : set.at("data"))
            for (const auto& paragraph : article.at("paragraphs"))
                for (const auto& qa : paragraph.at("qas")) {
                    Row row{.id = qa.at("id"), .golds = {}, .prediction = {}};
                    for (const auto& answer : qa.at("answers"))
                        row.golds.push_back(answer.at("text"));
                    pairs += row.golds.size();
                    row.prediction = madeUp(rows.size(), row, paragraph.at("context"));
                    rows.push_back(std::move(row));
                }
    }
    const int repetitions = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
    std::vector<double> whole;
    std::vector<double> scoring;
    SquadTotals totals;
    for (int i = 0; i < repetitions; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        AnswerScorer scorer(SquadVersion::V1, Normalizer::SquadEn1);
        for (const Row& row : rows) {
            const std::vector<std::string_view> golds(row.golds.begin(), row.golds.end());
            if (!scorer.addQuestion(row.id, golds))
                return 1;
        }
        std::vector<Prediction> predictions;
        predictions.reserve(rows.size());
        for (const Row& row : rows)
            predictions.push_back({row.id, row.prediction});
        const auto prepared = std::chrono::steady_clock::now();
        const auto scores = scorer.scoreAll(predictions);
        if (!scores)
            return 1;
        totals = *squadV1Totals(*scores);
        scoring.push_back(seconds(prepared));
        whole.push_back(seconds(begin));
    }
    std::sort(whole.begin(), whole.end());
    std::sort(scoring.begin(), scoring.end());
    const std::size_t middle = whole.size() / 2;
    std::printf("{\"predictions\": %zu, \"pairs\": %zu, \"em\": %.17g, \"f1\": %.17g, "
                "\"whole_s\": %.6f, \"whole_per_s\": %.0f, \"scoring_s\": %.6f, "
                "\"scoring_per_s\": %.0f}\n",
                rows.size(), pairs, *totals.all.exact, *totals.all.f1, whole[middle],
                static_cast<double>(rows.size()) / whole[middle], scoring[middle],
                static_cast<double>(rows.size()) / scoring[middle]);
    return 0;
}
