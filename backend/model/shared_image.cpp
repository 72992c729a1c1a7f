// SPDX-License-Identifier: Apache-2.0
#include "model/shared_image_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster::model {
namespace {

using Clock = std::chrono::steady_clock;
/// How long a rank looks for local rank 0, which listens before it reads a weight.
constexpr auto searchTime = std::chrono::seconds(3);
/// How long it then waits for the weights; the death of local rank 0 ends the wait at once.
constexpr auto fillTime = std::chrono::seconds(120);
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

/// What goes with the descriptor, so that two programs never take each other's weights for their
/// own.
struct Greeting {
    std::array<char, 8> magic{'m', 'u', 's', 't', 'e', 'r', 'w', '1'};
    std::uint64_t size = 0;
    std::uint64_t digestHigh = 0;
    std::uint64_t digestLow = 0;

    bool operator==(const Greeting&) const = default;
};

class Descriptor final {
public:
    explicit Descriptor(int fd = -1) : m_fd(fd) {}
    Descriptor(Descriptor&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        std::swap(m_fd, other.m_fd);
        return *this;
    }
    ~Descriptor()
    {
        if (m_fd >= 0)
            ::close(m_fd);
    }
    [[nodiscard]] int get() const { return m_fd; }
    explicit operator bool() const { return m_fd >= 0; }

private:
    int m_fd;
};

struct Address {
    sockaddr_un name{};
    socklen_t size = 0;

    explicit Address(const std::string& key)
    {
        const auto text = "muster-weights-" + hash128(key).hex();
        name.sun_family = AF_UNIX;
        // A leading zero byte: the name lives in the kernel, not in the file system.
        std::memcpy(name.sun_path + 1, text.data(), text.size());
        size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    }
    [[nodiscard]] const sockaddr* get() const
    {
        return static_cast<const sockaddr*>(static_cast<const void*>(&name));
    }
};

bool isSameUser(int socket)
{
    ucred peer{};
    socklen_t size = sizeof(peer);
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == ::geteuid();
}

std::shared_ptr<const std::byte> mapped(int fd, std::size_t size)
{
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return nullptr;
    return {static_cast<const std::byte*>(data),
            [size](const std::byte* bytes) { ::munmap(const_cast<std::byte*>(bytes), size); }};
}

/// Hands the descriptor to `count` ranks, then ends; the destructor ends it before.
class Server final {
public:
    Server(Descriptor listener, Descriptor memory, Greeting greeting, std::uint32_t count)
        : m_listener(std::move(listener)), m_memory(std::move(memory)), m_greeting(greeting),
          m_count(count), m_stop(::eventfd(0, EFD_CLOEXEC)), m_thread([this] { serve(); })
    {
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server()
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(m_stop.get(), &one, sizeof(one));
        m_thread.join();
    }

private:
    void serve()
    {
        while (m_count > 0) {
            std::array<pollfd, 2> ready{{{m_listener.get(), POLLIN, 0}, {m_stop.get(), POLLIN, 0}}};
            if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR)
                break;
            if (ready[1].revents != 0)
                break;
            if (ready[0].revents == 0)
                continue;
            const Descriptor peer(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (peer && isSameUser(peer.get()) && hand(peer.get()))
                --m_count;
        }
        m_listener = Descriptor();
    }
    bool hand(int peer)
    {
        iovec part{&m_greeting, sizeof(m_greeting)};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int fd = m_memory.get();
        std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
        return ::sendmsg(peer, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(m_greeting));
    }

    Descriptor m_listener;
    Descriptor m_memory;
    Greeting m_greeting;
    std::uint32_t m_count;
    Descriptor m_stop;
    std::thread m_thread;
};

/// Local rank 0: fills unnamed memory and offers it. Nothing when the system refuses a step.
std::optional<Image> offer(const SharedWeights& shared, const Greeting& greeting,
                           const std::function<void(std::byte*)>& fill)
{
    // Listen first: the others may wait in the queue while the weights are filled.
    Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Address address(shared.key);
    if (!listener || ::bind(listener.get(), address.get(), address.size) != 0 ||
        ::listen(listener.get(), static_cast<int>(std::min(shared.localRanks, 4096U))) != 0)
        return std::nullopt;
    const auto size = static_cast<std::size_t>(greeting.size);
    Descriptor memory(::memfd_create("muster-weights", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(size)) != 0)
        return std::nullopt;
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (data == MAP_FAILED)
        return std::nullopt;
    fill(static_cast<std::byte*>(data));
    ::munmap(data, size);
    if (::fcntl(memory.get(), F_ADD_SEALS, seals) != 0)
        return std::nullopt;
    auto bytes = mapped(memory.get(), size);
    if (!bytes)
        return std::nullopt;
    auto server = std::make_shared<Server>(std::move(listener), std::move(memory), greeting,
                                           shared.localRanks - 1);
    const auto* start = bytes.get();
    auto owners =
        std::make_shared<std::pair<std::shared_ptr<const std::byte>, std::shared_ptr<Server>>>(
            std::move(bytes), std::move(server));
    return Image{std::shared_ptr<const std::byte>(std::move(owners), start), true};
}

/// The other local ranks: ask for the memory and map it.
std::optional<Image> receive(const SharedWeights& shared, const Greeting& expected)
{
    const Address address(shared.key);
    const auto deadline = Clock::now() + searchTime;
    Descriptor peer;
    for (;;) {
        peer = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (!peer)
            return std::nullopt;
        if (::connect(peer.get(), address.get(), address.size) == 0)
            break;
        if (Clock::now() > deadline)
            return std::nullopt;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pollfd ready{peer.get(), POLLIN, 0};
    const auto wait = std::chrono::milliseconds(fillTime).count();
    if (!isSameUser(peer.get()) || ::poll(&ready, 1, static_cast<int>(wait)) != 1)
        return std::nullopt;
    Greeting greeting{};
    iovec part{&greeting, sizeof(greeting)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto got = ::recvmsg(peer.get(), &message, MSG_CMSG_CLOEXEC);
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return std::nullopt;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    const Descriptor memory(fd);
    struct stat state {};
    if (got != static_cast<ssize_t>(sizeof(greeting)) || !(greeting == expected) ||
        ::fstat(fd, &state) != 0 || static_cast<std::uint64_t>(state.st_size) != expected.size ||
        ::fcntl(fd, F_GET_SEALS) != seals)
        return std::nullopt;
    auto bytes = mapped(fd, static_cast<std::size_t>(expected.size));
    if (!bytes)
        return std::nullopt;
    return Image{std::move(bytes), true};
}

} // namespace

Result<Image> makeImage(const SharedWeights& shared, const Hash128& digest, std::size_t size,
                        const std::function<void(std::byte*)>& fill)
{
    if (shared.localRanks > 1 && !shared.key.empty() && size > 0) {
        Greeting greeting;
        greeting.size = size;
        greeting.digestHigh = digest.high;
        greeting.digestLow = digest.low;
        auto image =
            shared.localRank == 0 ? offer(shared, greeting, fill) : receive(shared, greeting);
        if (image)
            return std::move(*image);
    }
    void* data = ::mmap(nullptr, std::max<std::size_t>(size, 1), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return fail(Error::Kind::Internal, "E-MODEL-092",
                    fmt::format("{} bytes of memory for the weights cannot be had", size));
    ::madvise(data, size, MADV_HUGEPAGE);
    std::shared_ptr<const std::byte> bytes(
        static_cast<const std::byte*>(data), [size](const std::byte* start) {
            ::munmap(const_cast<std::byte*>(start), std::max<std::size_t>(size, 1));
        });
    fill(static_cast<std::byte*>(data));
    return Image{std::move(bytes), false};
}

} // namespace muster::model
