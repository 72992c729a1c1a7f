// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"
#include "foreign/elements_p.h"
#include "foreign/number_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <unordered_map>
#include <variant>

namespace muster::foreign {

namespace {

auto refused(std::string_view what)
{
    return fail(Error::Kind::Invalid, "E-FOREIGN-008", std::string(what));
}

std::span<const std::byte> bytesOf(std::string_view text)
{
    return std::as_bytes(std::span(text.data(), text.size()));
}

/// Members of a zip file without compression, by name.
Result<std::map<std::string, std::string_view>> zipMembers(std::string_view bytes)
{
    constexpr std::string_view endMark = "PK\x05\x06";
    constexpr std::size_t endSize = 22;
    if (bytes.size() < endSize)
        return refused("the zip file is cut");
    const std::size_t searched = std::min<std::size_t>(bytes.size(), endSize + 65535);
    const std::size_t end = bytes.rfind(endMark, bytes.size() - endSize);
    if (end == std::string_view::npos || end < bytes.size() - searched)
        return refused("the zip file has no directory");
    ByteReader tail(bytesOf(bytes.substr(end + 8)));
    static_cast<void>(tail.get<std::uint16_t>());
    std::uint64_t count = tail.get<std::uint16_t>();
    static_cast<void>(tail.get<std::uint32_t>());
    std::uint64_t directory = tail.get<std::uint32_t>();
    constexpr std::size_t locatorSize = 20;
    if ((count == 0xFFFF || directory == 0xFFFFFFFFU) && end >= locatorSize) {
        ByteReader locator(bytesOf(bytes.substr(end - locatorSize)));
        if (locator.get<std::uint32_t>() != 0x07064B50U)
            return refused("the zip file has no directory");
        static_cast<void>(locator.get<std::uint32_t>());
        const auto at = locator.get<std::uint64_t>();
        if (at >= bytes.size())
            return refused("the zip file has no directory");
        ByteReader large(bytesOf(bytes.substr(at)));
        static_cast<void>(large.take(32));
        count = large.get<std::uint64_t>();
        static_cast<void>(large.get<std::uint64_t>());
        directory = large.get<std::uint64_t>();
        if (large.failed())
            return refused("the zip file is cut");
    }
    if (directory >= bytes.size() || count > 65536)
        return refused("the zip file has no directory");
    std::map<std::string, std::string_view> members;
    ByteReader reader(bytesOf(bytes.substr(directory)));
    for (std::uint64_t i = 0; i < count; ++i) {
        if (reader.get<std::uint32_t>() != 0x02014B50U)
            return refused("the directory of the zip file is broken");
        static_cast<void>(reader.take(6));
        const auto method = reader.get<std::uint16_t>();
        static_cast<void>(reader.take(8));
        std::uint64_t packed = reader.get<std::uint32_t>();
        std::uint64_t size = reader.get<std::uint32_t>();
        const auto nameSize = reader.get<std::uint16_t>();
        const auto extraSize = reader.get<std::uint16_t>();
        const auto commentSize = reader.get<std::uint16_t>();
        static_cast<void>(reader.take(8));
        std::uint64_t offset = reader.get<std::uint32_t>();
        const auto name = reader.take(nameSize);
        ByteReader extra(reader.take(extraSize));
        static_cast<void>(reader.take(commentSize));
        if (reader.failed())
            return refused("the directory of the zip file is cut");
        while (!extra.failed() && extra.remaining() >= 4) {
            const auto id = extra.get<std::uint16_t>();
            ByteReader field(extra.take(extra.get<std::uint16_t>()));
            if (id != 1)
                continue;
            for (auto* value : {&size, &packed, &offset}) {
                if (*value == 0xFFFFFFFFU)
                    *value = field.get<std::uint64_t>();
            }
        }
        if (method != 0 || packed != size)
            return refused("the zip file is compressed, which torch does not do");
        if (offset > bytes.size())
            return refused("a member lies outside the file");
        ByteReader local(bytesOf(bytes.substr(offset)));
        if (local.get<std::uint32_t>() != 0x04034B50U)
            return refused("a member of the zip file is broken");
        static_cast<void>(local.take(22));
        const auto localName = local.get<std::uint16_t>();
        const auto localExtra = local.get<std::uint16_t>();
        static_cast<void>(local.take(std::uint64_t{localName} + localExtra));
        const auto data = local.take(size);
        if (local.failed())
            return refused("a member of the zip file is cut");
        members.emplace(
            std::string(static_cast<const char*>(static_cast<const void*>(name.data())),
                        name.size()),
            std::string_view(static_cast<const char*>(static_cast<const void*>(data.data())),
                             data.size()));
    }
    return members;
}

struct Storage {
    ElementKind kind = ElementKind::Real;
    std::size_t size = 4;
    std::string key;
};
struct Tensor {
    Storage storage;
    std::uint64_t offset = 0;
    std::vector<std::uint64_t> shape;
    std::vector<std::uint64_t> stride;
};
struct Global {
    std::string name;
};
struct Mark {};
struct None {};

/// A value of the pickle. Containers are kept by number, so that there are no cycles to follow.
struct Value {
    std::variant<None, Mark, bool, std::int64_t, double, std::string, Global, Storage, Tensor,
                 std::size_t>
        is;
    // std::size_t: a container
};
struct Container {
    bool isDict = false;
    std::vector<Value> items; // dict: key, value, key, value, …
};

std::optional<Storage> storageOf(const std::string& name)
{
    static const std::map<std::string, Storage> known{
        {"torch FloatStorage", {ElementKind::Real, 4, {}}},
        {"torch DoubleStorage", {ElementKind::Real, 8, {}}},
        {"torch HalfStorage", {ElementKind::Real, 2, {}}},
        {"torch BFloat16Storage", {ElementKind::Brain, 2, {}}},
        {"torch LongStorage", {ElementKind::Signed, 8, {}}},
        {"torch IntStorage", {ElementKind::Signed, 4, {}}},
        {"torch ShortStorage", {ElementKind::Signed, 2, {}}},
        {"torch CharStorage", {ElementKind::Signed, 1, {}}},
        {"torch ByteStorage", {ElementKind::Unsigned, 1, {}}},
        {"torch BoolStorage", {ElementKind::Bool, 1, {}}},
    };
    const auto found = known.find(name);
    return found == known.end() ? std::nullopt : std::optional(found->second);
}

/// Reads the opcodes of pickle protocol 2 that torch writes for plain tensors; nothing is called.
class Unpickler final {
public:
    explicit Unpickler(std::string_view bytes) : m_reader(bytesOf(bytes)), m_bytes(bytes) {}

    Result<Value> run()
    {
        constexpr std::size_t mostSteps = 1U << 20U;
        for (std::size_t steps = 0; steps < mostSteps; ++steps) {
            if (m_reader.remaining() == 0)
                return refused("data.pkl is cut");
            const auto code = m_reader.get<std::uint8_t>();
            if (code == '.') {
                if (m_stack.size() != 1)
                    return refused("data.pkl is broken");
                return m_stack.back();
            }
            if (auto done = step(code); !done)
                return fail(done.error());
            if (m_reader.failed())
                return refused("data.pkl is cut");
        }
        return refused("data.pkl is too long for plain tensors");
    }
    [[nodiscard]] const Container& container(std::size_t number) const
    {
        return m_containers[number];
    }

private:
    Status step(std::uint8_t code)
    {
        switch (code) {
        case 0x80: // PROTO
            if (m_reader.get<std::uint8_t>() > 4)
                return refused("a newer pickle protocol");
            return {};
        case '}':
            return pushContainer({true, {}});
        case ']':
            return pushContainer({false, {}});
        case ')':
            return pushContainer({false, {}});
        case '(':
            return push({Mark{}});
        case 'N':
            return push({None{}});
        case 0x88:
            return push({true});
        case 0x89:
            return push({false});
        case 'K':
            return push({static_cast<std::int64_t>(m_reader.get<std::uint8_t>())});
        case 'M':
            return push({static_cast<std::int64_t>(m_reader.get<std::uint16_t>())});
        case 'J':
            return push({static_cast<std::int64_t>(m_reader.get<std::int32_t>())});
        case 0x8a: { // LONG1
            const auto size = m_reader.get<std::uint8_t>();
            if (size > 8)
                return refused("a number above 64 bits");
            std::uint64_t bits = 0;
            for (std::uint8_t i = 0; i < size; ++i)
                bits |= static_cast<std::uint64_t>(m_reader.get<std::uint8_t>()) << (8U * i);
            if (size > 0 && size < 8 && ((bits >> (8U * size - 1U)) & 1U) != 0)
                bits |= ~std::uint64_t{0} << (8U * size);
            return push({static_cast<std::int64_t>(bits)});
        }
        case 'G': { // BINFLOAT, big endian
            std::uint64_t bits = 0;
            for (int i = 0; i < 8; ++i)
                bits = bits << 8U | m_reader.get<std::uint8_t>();
            return push({std::bit_cast<double>(bits)});
        }
        case 'X':
            return pushText(m_reader.get<std::uint32_t>());
        case 0x8c:
            return pushText(m_reader.get<std::uint8_t>());
        case 'q':
            return remember(m_reader.get<std::uint8_t>());
        case 'r':
            return remember(m_reader.get<std::uint32_t>());
        case 'h':
            return recall(m_reader.get<std::uint8_t>());
        case 'j':
            return recall(m_reader.get<std::uint32_t>());
        case 'c':
            return global();
        case 'Q':
            return persistent();
        case 't':
            return tuple();
        case 0x85:
            return tupleOf(1);
        case 0x86:
            return tupleOf(2);
        case 0x87:
            return tupleOf(3);
        case 'R':
            return reduce();
        case 's':
        case 'a':
            return addTo(code == 's' ? 2 : 1);
        case 'u':
        case 'e':
            return addMarked();
        default:
            return refused(fmt::format("data.pkl has the opcode 0x{:02x}, which plain tensors do "
                                       "not need; nothing was executed",
                                       code));
        }
    }

    std::string text(std::uint64_t size)
    {
        const auto part = m_reader.take(size);
        return {static_cast<const char*>(static_cast<const void*>(part.data())), part.size()};
    }
    Status push(Value value)
    {
        constexpr std::size_t most = 1U << 16U;
        if (m_stack.size() >= most)
            return refused("data.pkl is too deep");
        m_stack.push_back(std::move(value));
        return {};
    }
    Status pushText(std::uint64_t size)
    {
        constexpr std::uint64_t longest = 512;
        if (size > longest)
            return refused("data.pkl has a long text, which plain tensors do not need");
        return push({text(size)});
    }
    Status pushContainer(Container container)
    {
        m_containers.push_back(std::move(container));
        return push({m_containers.size() - 1});
    }
    Result<Value> pop()
    {
        if (m_stack.empty())
            return refused("data.pkl is broken");
        Value value = std::move(m_stack.back());
        m_stack.pop_back();
        return value;
    }
    Result<std::vector<Value>> popMarked()
    {
        std::vector<Value> values;
        while (!m_stack.empty()) {
            Value value = std::move(m_stack.back());
            m_stack.pop_back();
            if (std::holds_alternative<Mark>(value.is)) {
                std::ranges::reverse(values);
                return values;
            }
            values.push_back(std::move(value));
        }
        return refused("data.pkl is broken");
    }
    Status remember(std::uint32_t place)
    {
        if (m_stack.empty() || m_memo.size() > (1U << 20U))
            return refused("data.pkl is broken");
        m_memo[place] = m_stack.back();
        return {};
    }
    Status recall(std::uint32_t place)
    {
        const auto found = m_memo.find(place);
        if (found == m_memo.end())
            return refused("data.pkl is broken");
        return push(found->second);
    }
    Status global()
    {
        std::string name;
        for (int part = 0; part < 2; ++part) {
            const std::size_t at = m_reader.position();
            const std::size_t end = m_bytes.find('\n', at);
            if (end == std::string_view::npos)
                return refused("data.pkl is cut");
            name += (part == 1 ? " " : "") + text(end - at);
            static_cast<void>(m_reader.take(1));
        }
        if (storageOf(name) || name == "torch._utils _rebuild_tensor_v2" ||
            name == "collections OrderedDict")
            return push({Global{name}});
        return refused(fmt::format("data.pkl names {}, which plain tensors do not need; nothing "
                                   "was executed",
                                   name));
    }
    Status persistent()
    {
        auto id = pop();
        if (!id)
            return fail(id.error());
        const auto* number = std::get_if<std::size_t>(&id->is);
        if (number == nullptr || m_containers[*number].items.size() < 5)
            return refused("a storage is not described as torch does it");
        const auto& items = m_containers[*number].items;
        const auto* kind = std::get_if<std::string>(&items[0].is);
        const auto* type = std::get_if<Global>(&items[1].is);
        const auto* key = std::get_if<std::string>(&items[2].is);
        if (kind == nullptr || *kind != "storage" || type == nullptr || key == nullptr)
            return refused("a storage is not described as torch does it");
        auto storage = storageOf(type->name);
        if (!storage)
            return refused(fmt::format("the storage {} is not read", type->name));
        storage->key = *key;
        return push({*storage});
    }
    Status tuple()
    {
        auto items = popMarked();
        if (!items)
            return fail(items.error());
        return pushContainer({false, std::move(*items)});
    }
    Status tupleOf(std::size_t count)
    {
        std::vector<Value> items(count);
        for (std::size_t i = count; i-- > 0;) {
            auto value = pop();
            if (!value)
                return fail(value.error());
            items[i] = std::move(*value);
        }
        return pushContainer({false, std::move(items)});
    }
    std::optional<std::vector<std::uint64_t>> sizes(const Value& value) const
    {
        const auto* number = std::get_if<std::size_t>(&value.is);
        if (number == nullptr)
            return std::nullopt;
        std::vector<std::uint64_t> made;
        for (const Value& item : m_containers[*number].items) {
            const auto* size = std::get_if<std::int64_t>(&item.is);
            if (size == nullptr || *size < 0)
                return std::nullopt;
            made.push_back(static_cast<std::uint64_t>(*size));
        }
        return made;
    }
    Status reduce()
    {
        auto arguments = pop();
        if (!arguments)
            return fail(arguments.error());
        auto function = pop();
        if (!function)
            return fail(function.error());
        const auto* global_ = std::get_if<Global>(&function->is);
        const auto* number = std::get_if<std::size_t>(&arguments->is);
        if (global_ == nullptr || number == nullptr)
            return refused("data.pkl is broken");
        const auto& items = m_containers[*number].items;
        if (global_->name == "collections OrderedDict" && items.empty())
            return pushContainer({true, {}});
        if (global_->name != "torch._utils _rebuild_tensor_v2" || items.size() < 4)
            return refused("data.pkl calls something else than the making of a tensor");
        const auto* storage = std::get_if<Storage>(&items[0].is);
        const auto* offset = std::get_if<std::int64_t>(&items[1].is);
        const auto shape = sizes(items[2]);
        const auto stride = sizes(items[3]);
        if (storage == nullptr || offset == nullptr || *offset < 0 || !shape || !stride ||
            shape->size() != stride->size() || shape->size() > 8)
            return refused("a tensor is not described as torch does it");
        return push({Tensor{*storage, static_cast<std::uint64_t>(*offset), *shape, *stride}});
    }
    Status append(std::vector<Value> values)
    {
        if (m_stack.empty())
            return refused("data.pkl is broken");
        const auto* number = std::get_if<std::size_t>(&m_stack.back().is);
        if (number == nullptr)
            return refused("data.pkl is broken");
        Container& into = m_containers[*number];
        if (into.isDict && values.size() % 2 != 0)
            return refused("data.pkl is broken");
        for (Value& value : values)
            into.items.push_back(std::move(value));
        return {};
    }
    Status addTo(std::size_t count)
    {
        std::vector<Value> values(count);
        for (std::size_t i = count; i-- > 0;) {
            auto value = pop();
            if (!value)
                return fail(value.error());
            values[i] = std::move(*value);
        }
        return append(std::move(values));
    }
    Status addMarked()
    {
        auto values = popMarked();
        if (!values)
            return fail(values.error());
        return append(std::move(*values));
    }

    ByteReader m_reader;
    std::string_view m_bytes;
    std::vector<Value> m_stack;
    std::vector<Container> m_containers;
    std::unordered_map<std::uint32_t, Value> m_memo;
};

Result<NumberArray> arrayOf(const Tensor& tensor,
                            const std::map<std::string, std::string_view>& members,
                            const std::string& folder)
{
    const auto member = members.find(folder + "data/" + tensor.storage.key);
    if (member == members.end())
        return refused(fmt::format("the storage {} is missing", tensor.storage.key));
    const std::string_view data = member->second;
    NumberArray array;
    array.shape = tensor.shape;
    array.type =
        tensor.storage.kind == ElementKind::Real || tensor.storage.kind == ElementKind::Brain
            ? NumberArray::Type::Real
            : NumberArray::Type::Integer;
    auto count = elementCount(tensor.shape, tensor.storage.size, data.size());
    if (!count)
        return refused("a tensor needs more bytes than its storage has");
    const std::uint64_t elements = data.size() / tensor.storage.size;
    std::vector<std::uint64_t> index(tensor.shape.size(), 0);
    for (std::uint64_t at = 0; at < *count; ++at) {
        std::uint64_t place = tensor.offset;
        for (std::size_t d = 0; d < index.size(); ++d) {
            if (tensor.stride[d] > elements)
                return refused("a tensor lies outside its storage");
            place += index[d] * tensor.stride[d];
            if (place >= elements)
                return refused("a tensor lies outside its storage");
        }
        if (place >= elements || !appendElement(array, data.data() + place * tensor.storage.size,
                                                tensor.storage.kind, tensor.storage.size, false))
            return refused("a tensor lies outside its storage");
        for (std::size_t d = index.size(); d-- > 0;) {
            if (++index[d] < tensor.shape[d])
                break;
            index[d] = 0;
        }
    }
    return array;
}

} // namespace

Result<std::vector<std::pair<std::string, NumberArray>>> readTorch(std::string_view name,
                                                                   std::string_view bytes)
{
    const auto during = [name](const Error& error) { return fail(error.during(name)); };
    if (!bytes.starts_with("PK"))
        return during({Error::Kind::Invalid, "E-FOREIGN-008",
                       "refused: no zip file. Files from before torch 1.6 are whole pickles; save "
                       "plain tensors with a current torch.save, or arrays with numpy.save"});
    auto members = zipMembers(bytes);
    if (!members)
        return during(members.error());
    const auto pickle = std::ranges::find_if(*members, [](const auto& member) {
        return member.first == "data.pkl" || member.first.ends_with("/data.pkl");
    });
    if (pickle == members->end())
        return during({Error::Kind::Invalid, "E-FOREIGN-008", "refused: there is no data.pkl"});
    const std::string folder =
        pickle->first.substr(0, pickle->first.size() - std::string_view("data.pkl").size());
    if (const auto order = members->find(folder + "byteorder");
        order != members->end() && order->second != "little")
        return during({Error::Kind::Invalid, "E-FOREIGN-008", "refused: not little endian"});
    Unpickler unpickler(pickle->second);
    auto root = unpickler.run();
    if (!root)
        return during(root.error());
    std::vector<std::pair<std::string, NumberArray>> arrays;
    const auto add = [&](std::string key, const Value& value) -> Status {
        const auto* tensor = std::get_if<Tensor>(&value.is);
        if (tensor == nullptr)
            return refused(fmt::format("{} is no tensor", key.empty() ? "the value" : key));
        auto array = arrayOf(*tensor, *members, folder);
        if (!array)
            return fail(array.error());
        arrays.emplace_back(std::move(key), std::move(*array));
        return {};
    };
    const auto* number = std::get_if<std::size_t>(&root->is);
    if (number == nullptr) {
        if (auto added = add("", *root); !added)
            return during(added.error());
        return arrays;
    }
    const Container& container = unpickler.container(*number);
    for (std::size_t i = 0; i < container.items.size(); i += container.isDict ? 2 : 1) {
        std::string key = fmt::format("{}", i);
        if (container.isDict) {
            const auto* text = std::get_if<std::string>(&container.items[i].is);
            if (text == nullptr)
                return during({Error::Kind::Invalid, "E-FOREIGN-008", "a key is no text"});
            key = *text;
        }
        if (auto added = add(std::move(key), container.items[container.isDict ? i + 1 : i]); !added)
            return during(added.error());
    }
    return arrays;
}

} // namespace muster::foreign
