# SPDX-License-Identifier: Apache-2.0
"""Writes backend/tokenizer/unicode_tables.cpp by asking Hugging Face's `tokenizers` about every code point.

The tokenizer must give the ids of that package whatever Unicode version the machine's libraries have, so its
tables are not taken from ICU but from the behaviour of the package itself. Run it again only when the package
changes its tables:

    python3 tests/tokenizer/make_unicode_tables.py > backend/tokenizer/unicode_tables.cpp
"""
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers


def bert(**on):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **on}).normalize_str


clean, isolate, lower, strip = (bert(**{k: True}) for k in
                                ("clean_text", "handle_chinese_chars", "lowercase", "strip_accents"))
nfd = normalizers.NFD().normalize_str
bert_words = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False).pre_tokenize_str
whole_word = Tokenizer(models.WordLevel({"x": 0, "QQ": 1}, unk_token="x"))
whole_word.add_tokens([AddedToken("QQ", single_word=True, normalized=False)])

LOW_MARK, HIGH_MARK = "\u0334", "\u0345"
S_CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def unexpected(what, code_point):
    sys.exit(f"unexpected behaviour of {what} at U+{code_point:04X}")


def ask():
    sets = {k: [] for k in ("removed", "blank", "isolated", "nonspacing", "punctuation", "separator", "letter",
                            "number", "space", "word")}
    lowered, decomposed, nonstarters = {}, {}, []
    for cp in S_CODE_POINTS:
        c = chr(cp)
        s = "a" + c + "b"
        r = clean(s)
        if r == "ab":
            sets["removed"].append(cp)
        elif r == "a b":
            sets["blank"].append(cp)
        elif r != s:
            unexpected("clean_text", cp)
        r = isolate(s)
        if r == "a " + c + " b":
            sets["isolated"].append(cp)
        elif r != s:
            unexpected("handle_chinese_chars", cp)
        r = lower(s)
        if r != s:
            lowered[cp] = r[1:-1]
        d = nfd(s)[1:-1]
        if d != c:
            decomposed[cp] = d
        else:
            r = strip(s)
            if r == "ab":
                sets["nonspacing"].append(cp)
            elif r != s:
                unexpected("strip_accents", cp)
        if nfd("a" + c + LOW_MARK) != "a" + d + LOW_MARK or nfd("a" + HIGH_MARK + c) != "a" + HIGH_MARK + d:
            nonstarters.append(cp)
        r = [w for w, _ in bert_words(s)]
        if r == ["a", c, "b"]:
            sets["punctuation"].append(cp)
        elif r == ["a", "b"]:
            sets["separator"].append(cp)
        elif r != [s]:
            unexpected("BertPreTokenizer", cp)
        joins = tuple(len(byte_level(c + x)) == 1 for x in "a1!")
        if joins == (True, False, False):
            sets["letter"].append(cp)
        elif joins == (False, True, False):
            sets["number"].append(cp)
        elif joins == (False, False, False) or c == " ":
            sets["space"].append(cp)
        elif joins != (False, False, True):
            unexpected("ByteLevel", cp)
        if whole_word.encode(c + "QQ").ids[-1] != 1:
            sets["word"].append(cp)
    marks = set(sets["nonspacing"])
    for cp, d in decomposed.items():
        if strip(chr(cp)) != "".join(x for x in d if ord(x) not in marks):
            unexpected("strip_accents", cp)
    return sets, lowered, decomposed, [c for c in nonstarters if c not in decomposed]


def combining_classes(nonstarters):
    def above(a, b):
        return nfd("a" + chr(a) + chr(b)) != "a" + chr(a) + chr(b)
    marks = {}
    for cp in nonstarters:
        value = unicodedata.combining(chr(cp))
        if value:
            marks.setdefault(value, cp)
    classes = {}
    for cp in nonstarters:
        equal = [v for v, m in marks.items() if not above(cp, m) and not above(m, cp)]
        if len(equal) != 1:
            unexpected("NFD", cp)
        classes[cp] = equal[0]
    return classes


def ranges(points):
    out = []
    for cp in points:
        if out and (out[-1][1] == cp - 1 or (out[-1][1] == 0xD7FF and cp == 0xE000)):
            out[-1][1] = cp
        else:
            out.append([cp, cp])
    return out


def rows(kind, name, items):
    print(f"const {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 100:
            print(line)
            line = "   "
        line += " " + item + ","
    print(line)
    print("};\n")


def main():
    sets, lowered, decomposed, nonstarters = ask()
    classes = combining_classes(nonstarters)
    hangul = range(0xAC00, 0xD7A4)
    for cp in hangul:
        i = cp - 0xAC00
        want = chr(0x1100 + i // 588) + chr(0x1161 + i % 588 // 28) + (chr(0x11A7 + i % 28) if i % 28 else "")
        if decomposed.pop(cp) != want:
            unexpected("NFD", cp)
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Written by tests/tokenizer/make_unicode_tables.py from tokenizers {tokenizers.__version__}; do not edit.")
    print('#include "tokenizer/unicode_tables_p.h"\n')
    print("namespace muster::tokenizer::unicode {\n")
    print("namespace {\n")
    print("// clang-format off")
    names = {}
    for key, points in sets.items():
        names[key] = f"{key}Ranges"
        rows("CodePointRange", names[key], [f"{{{a:#x}, {b:#x}}}" for a, b in ranges(points)])

    def mapping(name, table, width):
        rows("CodePointMapping", name,
             [f"{{{cp:#x}, {{{', '.join(f'{ord(x):#x}' for x in s)}}}}}" for cp, s in sorted(table.items())])
        if max(len(s) for s in table.values()) > width:
            sys.exit(f"{name} needs wider rows")

    mapping("lowerRows", lowered, 4)
    mapping("decompositionRows", decomposed, 4)
    runs = []
    for cp, value in sorted(classes.items()):
        if runs and runs[-1][1] == cp - 1 and runs[-1][2] == value:
            runs[-1][1] = cp
        else:
            runs.append([cp, cp, value])
    rows("CombiningRange", "combiningRows", [f"{{{a:#x}, {b:#x}, {v}}}" for a, b, v in runs])
    print("// clang-format on\n")
    print("} // namespace\n")
    for key in sets:
        print(f"const std::span<const CodePointRange> {key} = {names[key]};")
    print("const std::span<const CodePointMapping> lowerCase = lowerRows;")
    print("const std::span<const CodePointMapping> decomposition = decompositionRows;")
    print("const std::span<const CombiningRange> combiningClass = combiningRows;")
    print("\n} // namespace muster::tokenizer::unicode")


main()
