// SPDX-License-Identifier: Apache-2.0
#include "wire/message.h"

#include "base/utf8.h"
#include "wire/cbor_check_p.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace muster::wire {

namespace {

using nlohmann::json;

constexpr std::size_t maxTextBytes = std::size_t{64} << 10U;
constexpr std::size_t maxLogBytes = 200;
constexpr std::size_t hexDigits = 32;

/// Collects the fields of a message that is sent.
class Writer final {
public:
    template <std::unsigned_integral T>
    void field(const char* name, T value)
    {
        m_map[name] = static_cast<std::uint64_t>(value);
    }
    void field(const char* name, bool value) { m_map[name] = value; }
    void field(const char* name, std::int64_t value) { m_map[name] = value; }
    void field(const char* name, double value) { m_map[name] = value; }
    void field(const char* name, const std::vector<std::uint64_t>& values) { m_map[name] = values; }
    void field(const char* name, const std::string& text)
    {
        m_map[name] = utf8::firstInvalid(text) ? utf8::repaired(text) : text;
    }
    template <typename T>
    requires std::is_enum_v<T>
    void choice(const char* name, T value) { m_map[name] = static_cast<std::uint64_t>(value); }
    template <typename T>
    void optional(const char* name, const std::optional<T>& value)
    {
        if (value)
            field(name, *value);
    }
    void group(const char* name, Writer&& inner) { m_map[name] = std::move(inner.m_map); }
    [[nodiscard]] std::vector<std::byte> take() const
    {
        const std::vector<std::uint8_t> bytes = json::to_cbor(m_map);
        std::vector<std::byte> out(bytes.size());
        std::ranges::transform(bytes, out.begin(), [](std::uint8_t b) { return std::byte{b}; });
        return out;
    }

private:
    json m_map = json::object();
};

/// Reads the fields of a message that came in; keeps the first error.
class Reader final {
public:
    explicit Reader(std::span<const std::byte> payload)
    {
        if (payload.size() > maxControlBytes) {
            malformed("it is larger than 1 MiB");
            return;
        }
        if (const char* problem = cborProblem(payload)) {
            malformed(problem);
            return;
        }
        const auto* from =
            static_cast<const std::uint8_t*>(static_cast<const void*>(payload.data()));
        m_owned = json::from_cbor(from, from + payload.size(), true, false);
        if (!m_owned.is_object()) {
            malformed("it is no map");
            return;
        }
        m_map = &m_owned;
    }

    template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>) void field(const char* name, T& into, T least = 0,
                                                T most = std::numeric_limits<T>::max())
    {
        const json* value = find(name);
        if (value == nullptr)
            return;
        // A number that is not negative may have been built from a signed one.
        if (!value->is_number_unsigned())
            return wrong(name, "is no whole number from 0 on");
        const auto number = value->get<std::uint64_t>();
        if (number < least || number > most)
            return wrong(name, "is out of range");
        into = static_cast<T>(number);
    }

    void field(const char* name, std::int64_t& into,
               std::int64_t least = std::numeric_limits<std::int64_t>::min())
    {
        const json* value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_number_integer())
            return wrong(name, "is no whole number");
        if (value->is_number_unsigned() &&
            value->get<std::uint64_t>() >
                static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return wrong(name, "is out of range");
        const auto number = value->get<std::int64_t>();
        if (number < least)
            return wrong(name, "is out of range");
        into = number;
    }

    void field(const char* name, double& into, double least = std::numeric_limits<double>::lowest())
    {
        const json* value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_number_float())
            return wrong(name, "is no floating-point number");
        const auto number = value->get<double>();
        if (!std::isfinite(number))
            return wrong(name, "is not finite");
        if (number < least)
            return wrong(name, "is out of range");
        into = number;
    }

    void field(const char* name, std::string& into, std::size_t most = maxTextBytes)
    {
        const json* value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_string())
            return wrong(name, "is no text");
        const auto& text = value->get_ref<const std::string&>();
        if (text.size() > most)
            return wrong(name, "is too long");
        into = text;
    }

    void field(const char* name, bool& into)
    {
        const json* value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_boolean())
            return wrong(name, "is neither true nor false");
        into = value->get<bool>();
    }

    void field(const char* name, std::vector<std::uint64_t>& into)
    {
        const json* value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_array() ||
            !std::ranges::all_of(*value, [](const json& v) { return v.is_number_unsigned(); }))
            return wrong(name, "is no list of whole numbers from 0 on");
        into = value->get<std::vector<std::uint64_t>>();
    }

    void digest(const char* name, std::string& into)
    {
        std::string text;
        field(name, text, hexDigits);
        Hash128 hash;
        if (!m_error && !Hash128::parse(text, hash))
            return wrong(name, "is not 32 hexadecimal digits");
        into = std::move(text);
    }

    void oneOf(const char* name, std::string& into, std::initializer_list<std::string_view> names)
    {
        std::string text;
        field(name, text);
        if (!m_error && std::ranges::find(names, text) == names.end())
            return wrong(name, "is none of the known names");
        into = std::move(text);
    }

    /// An enumeration whose values run from `least` to `most`.
    template <typename T>
    requires std::is_enum_v<T>
    void choice(const char* name, T& into, T least, T most)
    {
        auto number = static_cast<std::uint64_t>(into);
        field(name, number, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most));
        into = static_cast<T>(number);
    }

    template <typename T>
    void optional(const char* name, std::optional<T>& into)
    {
        if (m_map == nullptr || !m_map->contains(name))
            return;
        T value{};
        field(name, value);
        if (!m_error)
            into = value;
    }

    /// Reads the fields of the map `name` with `read`.
    template <typename Read>
    void group(const char* name, Read read)
    {
        const json* value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_object())
            return wrong(name, "is no map");
        const json* outer = std::exchange(m_map, value);
        m_inside = name;
        read(*this);
        m_map = outer;
        m_inside = nullptr;
    }

    [[nodiscard]] bool has(const char* name) const
    {
        return m_map != nullptr && m_map->contains(name);
    }

    template <typename Message>
    [[nodiscard]] Result<Message> result(const char* type, Message&& message) const
    {
        if (m_error)
            return fail(m_error->during(std::string("message ") + type));
        return std::move(message);
    }

private:
    const json* find(const char* name)
    {
        if (m_error || m_map == nullptr)
            return nullptr;
        const auto at = m_map->find(name);
        if (at == m_map->end()) {
            wrong(name, "is missing");
            return nullptr;
        }
        return &*at;
    }
    void wrong(const char* name, const char* why)
    {
        if (m_error)
            return;
        std::string path = m_inside == nullptr ? "" : std::string(m_inside) + ".";
        m_error = Error{Error::Kind::Protocol, "E-WIRE-031",
                        "field " + path + name + " " + why + "; the connection is closed"};
    }
    void malformed(const char* why)
    {
        m_error =
            Error{Error::Kind::Protocol, "E-WIRE-030",
                  std::string("it is not well formed: ") + why + "; the connection is closed"};
    }

    json m_owned;
    const json* m_map = nullptr;
    const char* m_inside = nullptr;
    std::optional<Error> m_error;
};

Writer written(const Times& times)
{
    Writer out;
    out.field("computeNs", times.computeNs);
    out.field("waitNs", times.waitNs);
    out.field("transferNs", times.transferNs);
    out.field("loadNs", times.loadNs);
    out.field("otherNs", times.otherNs);
    out.field("elapsedNs", times.elapsedNs);
    return out;
}

void read(Reader& in, Times& times)
{
    in.field("computeNs", times.computeNs, 0);
    in.field("waitNs", times.waitNs, 0);
    in.field("transferNs", times.transferNs, 0);
    in.field("loadNs", times.loadNs, 0);
    in.field("otherNs", times.otherNs, 0);
    in.field("elapsedNs", times.elapsedNs, 0);
}

Writer written(const Sums& sums)
{
    Writer out;
    out.field("units", sums.units);
    out.field("items", sums.items);
    out.field("errors", sums.errors);
    out.field("realTokens", sums.realTokens);
    out.field("padTokens", sums.padTokens);
    out.field("scoredTokens", sums.scoredTokens);
    out.field("lossSum", sums.lossSum);
    return out;
}

void read(Reader& in, Sums& sums)
{
    in.field("units", sums.units, 0);
    in.field("items", sums.items, 0);
    in.field("errors", sums.errors, 0);
    in.field("realTokens", sums.realTokens, 0);
    in.field("padTokens", sums.padTokens, 0);
    in.field("scoredTokens", sums.scoredTokens, 0);
    in.field("lossSum", sums.lossSum);
}

/// At most maxLogBytes, cut where a character ends.
std::string shortened(std::string text)
{
    if (utf8::firstInvalid(text))
        text = utf8::repaired(text);
    if (text.size() <= maxLogBytes)
        return text;
    std::size_t end = maxLogBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
        --end;
    text.resize(end);
    return text;
}

} // namespace

std::vector<std::byte> encode(const Hello& message)
{
    Writer out;
    out.field("protocol", message.protocol);
    out.field("version", message.version);
    out.field("rank", message.rank);
    out.field("world", message.world);
    out.field("localRank", message.localRank);
    out.field("localSize", message.localSize);
    out.field("group", message.group);
    out.field("generation", message.generation);
    out.field("connection", message.connection);
    out.field("node", message.node);
    out.field("pid", message.pid);
    out.field("startTimeTicks", message.startTimeTicks);
    out.field("mpiLibrary", message.mpiLibrary);
    out.field("launcherFamily", message.launcherFamily);
    out.optional("launcherRank", message.launcherRank);
    out.optional("launcherWorld", message.launcherWorld);
    out.field("binaryDigest", message.binaryDigest);
    out.field("architecture", message.architecture);
    out.field("affinity", message.affinity);
    out.field("cpus", message.cpus);
    out.field("cores", message.cores);
    out.field("holding", message.holding);
    return out.take();
}

template <>
Result<Hello> decode<Hello>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Hello message;
    in.field("protocol", message.protocol);
    in.field("version", message.version, 200);
    in.field("rank", message.rank, 0U, 0x7FFFFFFFU);
    in.field("world", message.world, 1U, 0x7FFFFFFFU);
    in.field("localRank", message.localRank, 0U, 0x7FFFFFFFU);
    in.field("localSize", message.localSize, 1U, 0x7FFFFFFFU);
    in.field("group", message.group);
    in.field("generation", message.generation);
    in.field("connection", message.connection);
    in.field("node", message.node, 1024);
    in.field("pid", message.pid, 1);
    in.field("startTimeTicks", message.startTimeTicks);
    in.field("mpiLibrary", message.mpiLibrary, 1024);
    in.field("launcherFamily", message.launcherFamily, 64);
    in.optional("launcherRank", message.launcherRank);
    in.optional("launcherWorld", message.launcherWorld);
    in.digest("binaryDigest", message.binaryDigest);
    in.field("architecture", message.architecture, 200);
    in.field("affinity", message.affinity, 4096);
    in.field("cpus", message.cpus);
    in.field("cores", message.cores);
    in.field("holding", message.holding);
    return in.result("Hello", std::move(message));
}

std::vector<std::byte> encode(const RankConfig& message)
{
    Writer out;
    out.field("modelPath", message.modelPath);
    out.choice("kind", message.kind);
    out.field("precision", message.precision);
    out.field("groupSize", message.groupSize);
    out.field("tokenLosses", message.tokenLosses);
    out.field("threads", message.threads);
    out.field("nBest", message.nBest);
    out.field("ties", message.ties);
    out.choice("gather", message.gather);
    out.choice("pin", message.pin);
    out.field("heartbeatMs", message.heartbeatMs);
    out.field("graceMs", message.graceMs);
    out.field("flushBytes", message.flushBytes);
    out.field("flushMs", message.flushMs);
    out.field("roundUnits", message.roundUnits);
    out.field("roundMs", message.roundMs);
    out.field("inject", message.inject);
    out.field("sharedWeightsKey", message.sharedWeightsKey);
    return out.take();
}

template <>
Result<RankConfig> decode<RankConfig>(std::span<const std::byte> payload)
{
    Reader in(payload);
    RankConfig message;
    in.field("modelPath", message.modelPath, 4096);
    in.choice("kind", message.kind, UnitKind::Qa, UnitKind::Classification);
    in.oneOf("precision", message.precision,
             {"float32", "bfloat16", "float16", "int8", "int4", "int8-dynamic"});
    in.field("groupSize", message.groupSize, 1U, 65536U);
    in.field("tokenLosses", message.tokenLosses);
    in.field("threads", message.threads, 1U, 4096U);
    in.field("nBest", message.nBest, 1U, 65535U);
    in.oneOf("ties", message.ties, {"hf", "bert"});
    in.choice("gather", message.gather, GatherMode::Stream, GatherMode::Nccl);
    in.choice("pin", message.pin, PinMode::Off, PinMode::Core);
    in.field("heartbeatMs", message.heartbeatMs, 1U, 3600000U);
    in.field("graceMs", message.graceMs);
    in.field("flushBytes", message.flushBytes);
    in.field("flushMs", message.flushMs);
    in.field("roundUnits", message.roundUnits, 1U, 1000000U);
    in.field("roundMs", message.roundMs);
    in.field("inject", message.inject, 200);
    in.field("sharedWeightsKey", message.sharedWeightsKey, 200);
    return in.result("Config", std::move(message));
}

std::vector<std::byte> encode(const Ready& message)
{
    Writer out;
    out.field("modelDigest", message.modelDigest);
    out.field("modelArchitecture", message.modelArchitecture);
    out.field("kernels", message.kernels);
    out.field("parameters", message.parameters);
    out.field("weightBytes", message.weightBytes);
    out.field("maxPositions", message.maxPositions);
    out.field("vocabulary", message.vocabulary);
    out.field("threads", message.threads);
    out.field("loadMs", message.loadMs);
    out.field("affinity", message.affinity);
    out.field("cpus", message.cpus);
    return out.take();
}

template <>
Result<Ready> decode<Ready>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Ready message;
    in.digest("modelDigest", message.modelDigest);
    in.field("modelArchitecture", message.modelArchitecture, 1024);
    in.field("kernels", message.kernels, 4096);
    in.field("parameters", message.parameters);
    in.field("weightBytes", message.weightBytes);
    in.field("maxPositions", message.maxPositions);
    in.field("vocabulary", message.vocabulary);
    in.field("threads", message.threads);
    in.field("loadMs", message.loadMs, 0.0);
    in.field("affinity", message.affinity, 4096);
    in.field("cpus", message.cpus);
    return in.result("Ready", std::move(message));
}

std::vector<std::byte> encode(const Refuse& message)
{
    Writer out;
    out.field("code", message.code);
    out.field("text", message.text);
    return out.take();
}

template <>
Result<Refuse> decode<Refuse>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Refuse message;
    in.field("code", message.code, 64);
    in.field("text", message.text);
    return in.result("Refuse", std::move(message));
}

std::vector<std::byte> encode(const Ack& message)
{
    Writer out;
    out.field("unit", message.unit.value);
    out.field("attempt", message.attempt);
    return out.take();
}

template <>
Result<Ack> decode<Ack>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Ack message;
    in.field("unit", message.unit.value);
    in.field("attempt", message.attempt);
    return in.result("Ack", std::move(message));
}

std::vector<std::byte> encode(const Heartbeat& message)
{
    Writer out;
    out.choice("phase", message.phase);
    if (message.unit)
        out.field("unit", message.unit->value);
    out.field("doneUnits", message.doneUnits);
    out.field("rssBytes", message.rssBytes);
    out.field("memoryLimitBytes", message.memoryLimitBytes);
    out.field("deviceBytes", message.deviceBytes);
    out.field("monotonicNs", message.monotonicNs);
    out.group("times", written(message.times));
    return out.take();
}

template <>
Result<Heartbeat> decode<Heartbeat>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Heartbeat message;
    in.choice("phase", message.phase, RankPhase::Starting, RankPhase::Finished);
    std::optional<std::uint64_t> unit;
    in.optional("unit", unit);
    if (unit)
        message.unit = UnitId(*unit);
    in.field("doneUnits", message.doneUnits);
    in.field("rssBytes", message.rssBytes);
    in.field("memoryLimitBytes", message.memoryLimitBytes);
    in.field("deviceBytes", message.deviceBytes);
    in.field("monotonicNs", message.monotonicNs);
    in.group("times", [&message](Reader& inner) { read(inner, message.times); });
    return in.result("Heartbeat", std::move(message));
}

std::vector<std::byte> encode(const Stats& message)
{
    Writer out;
    out.group("times", written(message.times));
    out.group("own", written(message.own));
    if (message.group)
        out.group("group", written(*message.group));
    out.field("bytesOut", message.bytesOut);
    out.field("rounds", message.rounds);
    return out.take();
}

template <>
Result<Stats> decode<Stats>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Stats message;
    in.group("times", [&message](Reader& inner) { read(inner, message.times); });
    in.group("own", [&message](Reader& inner) { read(inner, message.own); });
    if (in.has("group"))
        in.group("group", [&message](Reader& inner) { read(inner, message.group.emplace()); });
    in.field("bytesOut", message.bytesOut);
    in.field("rounds", message.rounds);
    return in.result("Stats", std::move(message));
}

std::vector<std::byte> encode(const Log& message)
{
    Writer out;
    out.choice("level", message.level);
    out.field("text", shortened(message.text));
    return out.take();
}

template <>
Result<Log> decode<Log>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Log message;
    in.choice("level", message.level, LogLevel::Debug, LogLevel::Error);
    in.field("text", message.text, maxLogBytes);
    return in.result("Log", std::move(message));
}

std::vector<std::byte> encode(const Cancel& message)
{
    Writer out;
    out.field("reason", message.reason);
    out.choice("mode", message.mode);
    return out.take();
}

template <>
Result<Cancel> decode<Cancel>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Cancel message;
    in.field("reason", message.reason);
    in.choice("mode", message.mode, CancelMode::Drain, CancelMode::Now);
    return in.result("Cancel", std::move(message));
}

std::vector<std::byte> encode(const Drain&)
{
    return Writer().take();
}

template <>
Result<Drain> decode<Drain>(std::span<const std::byte> payload)
{
    const Reader in(payload);
    return in.result("Drain", Drain{});
}

std::vector<std::byte> encode(const Bye& message)
{
    Writer out;
    out.field("reason", message.reason);
    return out.take();
}

template <>
Result<Bye> decode<Bye>(std::span<const std::byte> payload)
{
    Reader in(payload);
    Bye message;
    in.field("reason", message.reason);
    return in.result("Bye", std::move(message));
}

} // namespace muster::wire
