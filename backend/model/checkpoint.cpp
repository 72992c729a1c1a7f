// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoint.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>
#include <system_error>
#include <utility>

namespace muster::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t indexLimit = std::size_t{64} << 20U;

bool isFile(const fs::path& path)
{
    std::error_code error;
    return fs::is_regular_file(path, error);
}

/// A plain file name: no folder, no way out of the directory.
bool isPlainName(const std::string& name)
{
    return !name.empty() && name.size() < 256 && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

tl::unexpected<Error> wrongIndex(std::string message)
{
    return fail(Error::Kind::Invalid, "E-MODEL-012",
                "reading model.safetensors.index.json: " + std::move(message));
}

/// Tensor name to shard name.
Result<std::map<std::string, std::string>> readIndex(const fs::path& path)
{
    const auto text = readFile(path, indexLimit);
    if (!text)
        return fail(text.error());
    const json index = json::parse(*text, nullptr, false);
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
        return wrongIndex("it is no JSON object with a weight_map");
    std::map<std::string, std::string> shards;
    for (const auto& [tensor, shard] : index["weight_map"].items()) {
        if (!shard.is_string())
            return wrongIndex(fmt::format("tensor {} names no file", inQuotes(tensor)));
        const auto& name = shard.get_ref<const std::string&>();
        if (!isPlainName(name))
            return wrongIndex(fmt::format("tensor {} points to {}; shards must lie in the model's "
                                          "own directory",
                                          inQuotes(tensor), inQuotes(name)));
        shards.emplace(tensor, name);
    }
    if (shards.empty())
        return wrongIndex("its weight_map is empty");
    return shards;
}

} // namespace

Status Checkpoint::addFile(const fs::path& path, std::string name)
{
    if (!isFile(path))
        return fail(
            Error::Kind::NotFound, "E-MODEL-010",
            fmt::format("the weight file {} does not exist or is no regular file", inQuotes(name)));
    auto map = MappedFile::open(path);
    if (!map)
        return fail(std::move(map).error());
    auto header = parseSafetensors(map->bytes(), inQuotes(name));
    if (!header)
        return fail(std::move(header).error());
    m_files.push_back(
        std::make_unique<File>(File{std::move(name), std::move(*map), std::move(*header)}));
    const auto& file = *m_files.back();
    for (const auto& tensor : file.header.tensors) {
        const auto bytes =
            file.map.bytes().subspan(static_cast<std::size_t>(file.header.dataStart + tensor.begin),
                                     static_cast<std::size_t>(tensor.end - tensor.begin));
        const auto [at, isNew] =
            m_tensors.emplace(tensor.name, TensorView{tensor.type, tensor.shape, bytes, file.name});
        if (!isNew)
            return fail(Error::Kind::Invalid, "E-MODEL-005",
                        fmt::format("tensor {} stands in {} and in {}", inQuotes(tensor.name),
                                    inQuotes(at->second.file), inQuotes(file.name)));
    }
    return {};
}

Result<Checkpoint> Checkpoint::open(const fs::path& directory)
{
    Checkpoint checkpoint;
    try {
        const auto single = directory / "model.safetensors";
        const auto index = directory / "model.safetensors.index.json";
        if (isFile(single)) {
            if (auto status = checkpoint.addFile(single, "model.safetensors"); !status)
                return fail(std::move(status).error());
            return checkpoint;
        }
        if (isFile(index)) {
            const auto shards = readIndex(index);
            if (!shards)
                return fail(shards.error());
            std::set<std::string> names;
            for (const auto& [tensor, shard] : *shards)
                names.insert(shard);
            for (const auto& name : names) {
                if (auto status = checkpoint.addFile(directory / name, name); !status)
                    return fail(std::move(status).error());
            }
            for (const auto& [tensor, shard] : *shards) {
                const auto at = checkpoint.m_tensors.find(tensor);
                if (at == checkpoint.m_tensors.end() || at->second.file != shard)
                    return wrongIndex(
                        fmt::format("tensor {} is not in {}", inQuotes(tensor), inQuotes(shard)));
            }
            for (const auto& [tensor, view] : checkpoint.m_tensors) {
                if (!shards->contains(tensor))
                    return wrongIndex(fmt::format("tensor {} of {} is not in the weight_map",
                                                  inQuotes(tensor), inQuotes(view.file)));
            }
            return checkpoint;
        }
        for (const auto* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
            if (isFile(directory / pickle))
                return fail(Error::Kind::Invalid, "E-MODEL-011",
                            fmt::format("{} has its weights only as a pickle ({}), which can run "
                                        "code when it is read, so Muster does not open it. Convert "
                                        "it once in Python: AutoModelForQuestionAnswering."
                                        "from_pretrained(DIR).save_pretrained(DIR)",
                                        directory.string(), pickle));
        }
        return fail(Error::Kind::NotFound, "E-MODEL-010",
                    fmt::format("{} has neither model.safetensors nor "
                                "model.safetensors.index.json",
                                directory.string()));
    } catch (const std::exception& error) {
        return fail(Error::Kind::Invalid, "E-MODEL-012",
                    fmt::format("reading the weights in {}: {}", directory.string(), error.what()));
    }
}

} // namespace muster::model
