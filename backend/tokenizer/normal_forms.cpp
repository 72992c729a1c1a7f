// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/text_normalizer_p.h"

#include "base/utf8.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <unordered_map>

namespace muster::tokenizer {

namespace {

/// A code point of a new text and how it relates to the old one, in the terms of Hugging Face's
/// NormalizedString: above 0 it is new, 0 it replaces one, −n it replaces one and n more vanish.
struct Changed {
    char32_t codePoint;
    int change;
};

std::vector<PlacedChar> transformed(const std::vector<PlacedChar>& text,
                                    const std::vector<Changed>& changes)
{
    std::vector<PlacedChar> out;
    out.reserve(changes.size());
    std::size_t at = 0;
    for (const Changed& c : changes) {
        if (c.change > 0) {
            if (at == 0)
                out.push_back({c.codePoint, 0, 0});
            else
                out.push_back({c.codePoint, text[at - 1].begin, text[at - 1].end});
            continue;
        }
        const PlacedChar& place = text[std::min(at, text.size() - 1)];
        out.push_back({c.codePoint, place.begin, place.end});
        at = std::min(at + 1 + static_cast<std::size_t>(-c.change), text.size());
    }
    return out;
}

constexpr char32_t hangulFirst = 0xAC00;
constexpr char32_t hangulLast = 0xD7A3;

class NormalFormStep final : public NormalizerStep {
public:
    explicit NormalFormStep(NormalForm form)
        : m_form(form), m_composes(form == NormalForm::nfc || form == NormalForm::nfkc),
          m_isCompatible(form == NormalForm::nfkc || form == NormalForm::nfkd)
    {
        if (m_composes) {
            m_composed.reserve(unicode::composition.size());
            for (const unicode::CompositionPair& pair : unicode::composition)
                m_composed.emplace(std::uint64_t{pair.first} << 32U | pair.second, pair.composed);
        }
        // What may change, alone or beside its neighbours.
        for (const unicode::CombiningRange& range : unicode::combiningClass)
            m_changes.set(unicode::CodePointRange{range.first, range.last}, true);
        for (const unicode::CodePointMapping& row : unicode::decomposition)
            m_changes.set(row.from, true);
        if (m_composes) {
            for (const unicode::CompositionPair& pair : unicode::composition) {
                m_changes.set(pair.second, true);
                if (combiningClassOf(pair.composed) == 0)
                    m_changes.set(pair.composed, false);
            }
            m_changes.set(unicode::CodePointRange{0x1161, 0x1175}, true);
            m_changes.set(unicode::CodePointRange{0x11A8, 0x11C2}, true);
        } else {
            m_changes.set(unicode::CodePointRange{hangulFirst, hangulLast}, true);
        }
        if (m_isCompatible) {
            for (const unicode::CompatibilityMapping& row : unicode::compatibility)
                m_changes.set(row.from, true);
        }
    }

    void apply(std::vector<PlacedChar>& text, bool) const override
    {
        std::vector<Changed> changes = decomposed(text);
        if (m_composes)
            changes = composed(changes);
        text = transformed(text, changes);
    }

    [[nodiscard]] bool keeps(std::string_view text, bool) const override
    {
        for (std::size_t at = 0; at < text.size();) {
            if (static_cast<unsigned char>(text[at]) < 0x80) {
                ++at;
                continue;
            }
            const utf8::Decoded d = utf8::decode(text, at);
            if (m_changes[d.codePoint])
                return false;
            at += d.size;
        }
        return true;
    }

    void addToDigest(Hasher& hasher) const override
    {
        hasher.add("normal form").add(static_cast<std::uint64_t>(m_form));
    }

private:
    template <typename Each>
    void decompose(char32_t c, Each each) const
    {
        if (c < 0x80) {
            each(c);
            return;
        }
        if (c >= hangulFirst && c <= hangulLast) {
            for (int part = 0; part < 3; ++part) {
                if (const char32_t letter = hangulPart(c, part); letter != 0)
                    each(letter);
            }
            return;
        }
        if (m_isCompatible) {
            const auto row = std::ranges::lower_bound(unicode::compatibility, c, {},
                                                      &unicode::CompatibilityMapping::from);
            if (row != unicode::compatibility.end() && row->from == c) {
                for (const char32_t part :
                     unicode::compatibilityPart.subspan(row->first, row->count))
                    each(part);
                return;
            }
        }
        const unicode::CodePointMapping* row = findMapping(unicode::decomposition, c);
        if (row == nullptr) {
            each(c);
            return;
        }
        for (const char32_t part : row->to) {
            if (part != 0)
                each(part);
        }
    }

    [[nodiscard]] std::vector<Changed> decomposed(const std::vector<PlacedChar>& text) const
    {
        struct Part {
            Changed changed;
            std::uint8_t combining;
        };
        std::vector<Part> parts;
        parts.reserve(text.size());
        for (const PlacedChar& p : text) {
            int change = 0;
            decompose(p.codePoint, [&](char32_t c) {
                parts.push_back({{c, change}, c < 0x300 ? std::uint8_t{0} : combiningClassOf(c)});
                change = 1;
            });
        }
        for (auto at = parts.begin(); at != parts.end();) {
            if (at->combining == 0) {
                ++at;
                continue;
            }
            const auto stop =
                std::find_if(at, parts.end(), [](const Part& p) { return p.combining == 0; });
            std::stable_sort(
                at, stop, [](const Part& a, const Part& b) { return a.combining < b.combining; });
            at = stop;
        }
        std::vector<Changed> out;
        out.reserve(parts.size());
        for (const Part& p : parts)
            out.push_back(p.changed);
        return out;
    }

    [[nodiscard]] char32_t pairComposed(char32_t a, char32_t b) const
    {
        if (a >= 0x1100 && a <= 0x1112 && b >= 0x1161 && b <= 0x1175)
            return hangulFirst + ((a - 0x1100) * 21 + (b - 0x1161)) * 28;
        if (a >= hangulFirst && a <= hangulLast && (a - hangulFirst) % 28 == 0 && b > 0x11A7 &&
            b <= 0x11C2)
            return a + (b - 0x11A7);
        const auto hit = m_composed.find(std::uint64_t{a} << 32U | b);
        return hit == m_composed.end() ? 0 : hit->second;
    }

    /// Canonical composition (Unicode 15, 3.11, D117).
    [[nodiscard]] std::vector<Changed> composed(const std::vector<Changed>& from) const
    {
        std::vector<Changed> out;
        out.reserve(from.size());
        std::size_t starter = from.size(); // its place in `out`; from.size(): none yet
        bool hasStarter = false;
        int lastClass = -1; // of what stands between the starter and here; −1: nothing
        for (const Changed& c : from) {
            const int combining = c.codePoint < 0x300 ? 0 : combiningClassOf(c.codePoint);
            if (hasStarter && (lastClass < combining || lastClass == -1)) {
                const char32_t both = pairComposed(out[starter].codePoint, c.codePoint);
                if (both != 0) {
                    out[starter].codePoint = both;
                    out[starter].change += c.change - 1;
                    continue;
                }
            }
            if (combining == 0) {
                starter = out.size();
                hasStarter = true;
                lastClass = -1;
            } else if (hasStarter) {
                lastClass = combining;
            }
            out.push_back(c);
        }
        return out;
    }

    NormalForm m_form;
    bool m_composes;
    bool m_isCompatible;
    std::unordered_map<std::uint64_t, char32_t> m_composed;
    CodePointTable<bool> m_changes;
};

/// How long a user-perceived character is, as far as it has less than six bytes (Unicode annex 29,
/// GB3 to GB9b; the other rules join only code points of six bytes together).
class ShortClusters final {
public:
    explicit ShortClusters(const std::vector<PlacedChar>& text) : m_text(text) {}

    /// One past the last code point of the cluster that starts at `at`.
    [[nodiscard]] std::size_t endOf(std::size_t at) const
    {
        std::size_t next = at + 1;
        while (next < m_text.size() && joins(m_text[next - 1].codePoint, m_text[next].codePoint))
            ++next;
        return next;
    }

private:
    static int kind(char32_t c)
    {
        return u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_GRAPHEME_CLUSTER_BREAK);
    }
    static bool joins(char32_t left, char32_t right)
    {
        if (right < 0x300)
            return left == U'\r' ? right == U'\n' : kindIsPrepend(left) && !isControl(kind(right));
        const int what = kind(right);
        const bool extends =
            what == U_GCB_EXTEND || what == U_GCB_ZWJ || what == U_GCB_SPACING_MARK;
        if (extends)
            return !isControl(kind(left));
        return kindIsPrepend(left) && !isControl(what);
    }
    static bool kindIsPrepend(char32_t c) { return c >= 0x600 && kind(c) == U_GCB_PREPEND; }
    static bool isControl(int what)
    {
        return what == U_GCB_CONTROL || what == U_GCB_CR || what == U_GCB_LF;
    }
    const std::vector<PlacedChar>& m_text;
};

class Precompiled final : public NormalizerStep {
public:
    explicit Precompiled(Charsmap map) : m_map(std::move(map)), m_allowsCuts(!m_map.hasInnerSpace())
    {
        for (std::size_t c = 0x20; c < 0x7F; ++c) {
            const char byte = static_cast<char>(c);
            m_keepsAscii = m_keepsAscii && !m_map.shortest(std::string_view(&byte, 1));
        }
    }

    void apply(std::vector<PlacedChar>& text, bool) const override
    {
        std::vector<Changed> changes;
        changes.reserve(text.size());
        bool isModified = false;
        const auto replace = [&](std::string_view bytes, std::size_t oldCount) {
            const auto match = m_map.shortest(bytes);
            if (!match)
                return false;
            isModified = true;
            const std::vector<PlacedChar> parts = placedChars(match->replacement);
            // Parts replace characters one by one; what is left over is new, or is taken away
            // behind the last character, which may stand before this one.
            for (std::size_t i = 0; i < parts.size(); ++i)
                changes.push_back({parts[i].codePoint, i < oldCount ? 0 : 1});
            if (parts.size() < oldCount && !changes.empty())
                changes.back().change -= static_cast<int>(oldCount - parts.size());
            return true;
        };
        const ShortClusters clusters(text);
        std::string bytes;
        const auto append = [&](char32_t c) {
            char one[4];
            bytes.append(one, writeUtf8(c, one));
        };
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t next = clusters.endOf(at);
            bytes.clear();
            for (std::size_t i = at; i < next && bytes.size() < 6; ++i)
                append(text[i].codePoint);
            if (bytes.size() < 6 && replace(bytes, next - at)) {
                at = next;
                continue;
            }
            for (; at < next; ++at) {
                bytes.clear();
                append(text[at].codePoint);
                if (!replace(bytes, 1))
                    changes.push_back({text[at].codePoint, 0});
            }
        }
        if (isModified)
            text = transformed(text, changes);
    }
    [[nodiscard]] bool keeps(std::string_view text, bool) const override
    {
        return m_map.isEmpty() || (m_keepsAscii && std::ranges::all_of(text, [](char c) {
                                       return c >= 0x20 && c < 0x7F;
                                   }));
    }
    [[nodiscard]] bool allowsCuts() const override { return m_allowsCuts; }
    void addToDigest(Hasher& hasher) const override { hasher.add("charsmap").add(m_map.blob()); }

private:
    Charsmap m_map;
    bool m_allowsCuts;
    bool m_keepsAscii = true;
};

constexpr char32_t blankMark = 0x2581;

class SentencePieceStep final : public NormalizerStep {
public:
    explicit SentencePieceStep(SentencePieceNormalization settings)
        : m_settings(std::move(settings)), m_allowsCuts(!m_settings.map.hasInnerSpace())
    {
        std::ranges::stable_sort(m_settings.kept, std::ranges::greater{}, &std::string::size);
        for (const std::string& symbol : m_settings.kept)
            m_allowsCuts = m_allowsCuts && symbol.find(' ') == std::string::npos;
    }

    void apply(std::vector<PlacedChar>& text, bool continues) const override
    {
        std::string bytes;
        std::vector<std::uint32_t> charAt; // which code point starts at or holds a byte
        for (std::size_t i = 0; i < text.size(); ++i) {
            char one[4];
            const std::size_t size = writeUtf8(text[i].codePoint, one);
            bytes.append(one, size);
            charAt.insert(charAt.end(), size, static_cast<std::uint32_t>(i));
        }
        const char32_t blank = m_settings.escapesBlanks ? blankMark : U' ';
        std::vector<PlacedChar> out;
        out.reserve(text.size() + 1);
        bool isBehindBlank = m_settings.removesExtraBlanks && !continues;
        bool wantsPrefix = m_settings.addsDummyPrefix && !continues;
        for (std::size_t at = 0; at < bytes.size();) {
            std::size_t size = 0;
            std::vector<char32_t> parts = partsAt(bytes, at, size);
            const PlacedChar& first = text[charAt[at]];
            const std::uint32_t begin = first.begin;
            const std::uint32_t end = text[charAt[at + size - 1]].end;
            at += size;
            std::size_t from = 0;
            while (isBehindBlank && from < parts.size() && parts[from] == U' ')
                ++from;
            if (from == parts.size())
                continue;
            if (wantsPrefix) {
                out.push_back({blank, begin, end});
                wantsPrefix = false;
            }
            for (std::size_t i = from; i < parts.size(); ++i)
                out.push_back({parts[i] == U' ' ? blank : parts[i], begin, end});
            isBehindBlank = m_settings.removesExtraBlanks && parts.back() == U' ';
        }
        if (m_settings.removesExtraBlanks) {
            while (!out.empty() && out.back().codePoint == blank)
                out.pop_back();
        }
        text = std::move(out);
    }
    [[nodiscard]] bool keeps(std::string_view text, bool) const override { return text.empty(); }
    [[nodiscard]] bool allowsCuts() const override { return m_allowsCuts; }
    void addToDigest(Hasher& hasher) const override
    {
        hasher.add("sentencepiece").add(m_settings.map.blob());
        hasher.add(std::uint64_t{m_settings.addsDummyPrefix});
        hasher.add(std::uint64_t{m_settings.removesExtraBlanks});
        hasher.add(std::uint64_t{m_settings.escapesBlanks});
        for (const std::string& symbol : m_settings.kept)
            hasher.add(symbol);
    }

private:
    /// What the next `size` bytes become.
    std::vector<char32_t> partsAt(std::string_view bytes, std::size_t at, std::size_t& size) const
    {
        const std::string_view rest = bytes.substr(at);
        std::vector<char32_t> parts;
        for (const std::string& symbol : m_settings.kept) {
            if (rest.starts_with(symbol)) {
                size = symbol.size();
                for (const PlacedChar& p : placedChars(symbol))
                    parts.push_back(p.codePoint);
                return parts;
            }
        }
        if (const auto match = m_settings.map.longest(rest)) {
            size = match->size;
            for (const PlacedChar& p : placedChars(match->replacement))
                parts.push_back(p.codePoint);
            return parts;
        }
        const utf8::Decoded d = utf8::decode(bytes, at);
        size = d.size;
        parts.push_back(d.codePoint);
        return parts;
    }

    SentencePieceNormalization m_settings;
    bool m_allowsCuts;
};

} // namespace

std::unique_ptr<const NormalizerStep> makeNormalForm(NormalForm form)
{
    return std::make_unique<NormalFormStep>(form);
}

std::unique_ptr<const NormalizerStep> makePrecompiled(Charsmap map)
{
    return std::make_unique<Precompiled>(std::move(map));
}

std::unique_ptr<const NormalizerStep> makeSentencePiece(SentencePieceNormalization settings)
{
    return std::make_unique<SentencePieceStep>(std::move(settings));
}

} // namespace muster::tokenizer
