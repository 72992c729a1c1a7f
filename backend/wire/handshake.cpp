// SPDX-License-Identifier: Apache-2.0
#include "wire/handshake.h"

#include "base/bytes.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::wire {

namespace {

using Mac = std::array<std::byte, 32>;

constexpr std::size_t proofBytes = 32 + 12 + 32;

const unsigned char* plain(const std::byte* bytes)
{
    return static_cast<const unsigned char*>(static_cast<const void*>(bytes));
}

void fillRandom(std::span<std::byte> bytes)
{
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
        if (got < 0 && errno == EINTR)
            continue;
        // A system without a random source cannot keep a secret; there is nothing to fall back to.
        if (got < 0)
            std::abort();
        done += static_cast<std::size_t>(got);
    }
}

Mac hmac(const Key& key, std::span<const std::byte> text)
{
    Mac mac{};
    unsigned int size = 0;
    const auto* made =
        HMAC(EVP_sha256(), key.bytes.data(), static_cast<int>(key.bytes.size()), plain(text.data()),
             text.size(), static_cast<unsigned char*>(static_cast<void*>(mac.data())), &size);
    if (made == nullptr || size != mac.size())
        std::abort();
    return mac;
}

void putLabel(ByteWriter& out, std::string_view label)
{
    out.putBytes(std::as_bytes(std::span{label.data(), label.size()}));
}

Mac rankMac(const Key& key, const Nonce& server, const Nonce& rank, const Claim& claim)
{
    ByteWriter text;
    putLabel(text, "muster rank 1");
    text.putBytes(server);
    text.putBytes(rank);
    text.put(claim.group);
    text.put(claim.generation);
    text.put(claim.rank);
    return hmac(key, text.bytes());
}

Mac controllerMac(const Key& key, const Nonce& rank, const Nonce& server)
{
    ByteWriter text;
    putLabel(text, "muster controller 1");
    text.putBytes(rank);
    text.putBytes(server);
    return hmac(key, text.bytes());
}

bool isEqual(std::span<const std::byte> a, std::span<const std::byte> b)
{
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Error notAccepted()
{
    return {Error::Kind::Protocol, "E-WIRE-021", "the peer could not prove that it is of this run"};
}

Error outOfTurn()
{
    return {Error::Kind::Protocol, "E-WIRE-022", "a step of the handshake came out of turn"};
}

tl::unexpected<Error> badKeyFile(const std::filesystem::path& path, const std::string& why)
{
    return fail(Error::Kind::Invalid, "E-WIRE-020", "key file " + path.string() + " " + why);
}

int hexDigit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/// A descriptor that closes itself.
class Descriptor final {
public:
    explicit Descriptor(int fd) : m_fd(fd) {}
    ~Descriptor()
    {
        if (m_fd >= 0)
            ::close(m_fd);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int get() const { return m_fd; }

private:
    int m_fd;
};

} // namespace

Key makeKey()
{
    Key key;
    fillRandom(key.bytes);
    return key;
}

Nonce makeNonce()
{
    Nonce nonce{};
    fillRandom(nonce);
    return nonce;
}

Key deriveKey(const Key& runKey, std::uint32_t group, std::uint32_t generation)
{
    ByteWriter text;
    putLabel(text, "muster launch 1");
    text.put(group);
    text.put(generation);
    return Key{hmac(runKey, text.bytes())};
}

Result<Key> readKeyFile(const std::filesystem::path& path)
{
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0) {
        if (errno == ELOOP)
            return badKeyFile(path, "is a symbolic link");
        return fail(errno == ENOENT ? Error::Kind::NotFound : Error::Kind::Io, "E-WIRE-023",
                    "key file " + path.string() + ": " + std::strerror(errno));
    }
    struct stat info {};
    if (::fstat(file.get(), &info) != 0)
        return fail(Error::Kind::Io, "E-WIRE-023",
                    "key file " + path.string() + ": " + std::strerror(errno));
    if (!S_ISREG(info.st_mode))
        return badKeyFile(path, "is no regular file");
    if (info.st_uid != ::geteuid())
        return badKeyFile(path, "belongs to another user");
    if ((info.st_mode & 07777U) != 0600U)
        return badKeyFile(path, "must have mode 0600");

    std::array<char, 80> text{};
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(Error::Kind::Io, "E-WIRE-023",
                        "key file " + path.string() + ": " + std::strerror(errno));
        if (got == 0)
            break;
        size += static_cast<std::size_t>(got);
    }
    Key key;
    const bool isLine = size == 64 || (size == 65 && text[64] == '\n');
    bool isHex = isLine;
    for (std::size_t i = 0; isHex && i < key.bytes.size(); ++i) {
        const int high = hexDigit(text[2 * i]);
        const int low = hexDigit(text[2 * i + 1]);
        isHex = high >= 0 && low >= 0;
        key.bytes[i] = static_cast<std::byte>(static_cast<unsigned>(high * 16 + low) & 0xFFU);
    }
    OPENSSL_cleanse(text.data(), text.size());
    if (!isHex)
        return badKeyFile(path, "must hold 64 hexadecimal digits");
    return key;
}

Status writeKeyFile(const std::filesystem::path& path, const Key& key)
{
    const Descriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    const auto failed = [&path] {
        return fail(Error::Kind::Io, "E-WIRE-024",
                    "key file " + path.string() + ": " + std::strerror(errno));
    };
    if (file.get() < 0 || ::fchmod(file.get(), 0600) != 0)
        return failed();
    std::array<char, 65> text{};
    for (std::size_t i = 0; i < key.bytes.size(); ++i) {
        constexpr std::string_view digits = "0123456789abcdef";
        const auto value = std::to_integer<unsigned>(key.bytes[i]);
        text[2 * i] = digits[value >> 4U];
        text[2 * i + 1] = digits[value & 0xFU];
    }
    text[64] = '\n';
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t put = ::write(file.get(), text.data() + done, text.size() - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return failed();
        done += static_cast<std::size_t>(put);
    }
    OPENSSL_cleanse(text.data(), text.size());
    return {};
}

ServerHandshake::ServerHandshake(KeyLookup lookup, const Nonce& nonce)
    : m_lookup(std::move(lookup)), m_nonce(nonce)
{
}

ServerHandshake::ServerHandshake(const Key& key, const Nonce& nonce)
    : ServerHandshake([key](const Claim&) { return std::optional<Key>(key); }, nonce)
{
}

std::vector<std::byte> ServerHandshake::challenge() const
{
    return {m_nonce.begin(), m_nonce.end()};
}

Result<std::vector<std::byte>> ServerHandshake::onProof(std::span<const std::byte> payload)
{
    if (m_state != State::Waiting) {
        m_state = State::Failed;
        return fail(outOfTurn());
    }
    m_state = State::Failed;
    if (payload.size() != proofBytes)
        return fail(notAccepted());
    ByteReader in(payload);
    Nonce rankNonce{};
    std::ranges::copy(in.take(rankNonce.size()), rankNonce.begin());
    Claim claim;
    claim.group = in.get<std::uint32_t>();
    claim.generation = in.get<std::uint32_t>();
    claim.rank = in.get<std::uint32_t>();
    const auto mac = in.take(sizeof(Mac));

    // An unknown claim costs the same work as a known one.
    const std::optional<Key> key = m_lookup(claim);
    const Mac expected = rankMac(key.value_or(Key{makeNonce()}), m_nonce, rankNonce, claim);
    if (!isEqual(expected, mac) || !key)
        return fail(notAccepted());
    m_claim = claim;
    m_state = State::Done;
    const Mac answer = controllerMac(*key, rankNonce, m_nonce);
    return std::vector<std::byte>{answer.begin(), answer.end()};
}

RankHandshake::RankHandshake(const Key& key, const Claim& claim, const Nonce& nonce)
    : m_key(key), m_claim(claim), m_nonce(nonce)
{
}

Result<std::vector<std::byte>> RankHandshake::onChallenge(std::span<const std::byte> payload)
{
    if (m_state != State::Start) {
        m_state = State::Failed;
        return fail(outOfTurn());
    }
    m_state = State::Failed;
    if (payload.size() != m_serverNonce.size())
        return fail(notAccepted());
    std::ranges::copy(payload, m_serverNonce.begin());
    ByteWriter out;
    out.putBytes(m_nonce);
    out.put(m_claim.group);
    out.put(m_claim.generation);
    out.put(m_claim.rank);
    out.putBytes(rankMac(m_key, m_serverNonce, m_nonce, m_claim));
    m_state = State::Proved;
    return out.take();
}

Status RankHandshake::onProof(std::span<const std::byte> payload)
{
    if (m_state != State::Proved) {
        m_state = State::Failed;
        return fail(outOfTurn());
    }
    m_state = State::Failed;
    if (!isEqual(controllerMac(m_key, m_nonce, m_serverNonce), payload))
        return fail(notAccepted());
    m_state = State::Done;
    return {};
}

} // namespace muster::wire
