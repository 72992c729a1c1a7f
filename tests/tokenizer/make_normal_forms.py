# SPDX-License-Identifier: Apache-2.0
"""Writes backend/tokenizer/unicode_normal_forms.cpp by asking Hugging Face's `tokenizers` about every code point.

What is composed, what is only compatible and what StripAccents drops, as that package has it; the canonical
decompositions stand in unicode_tables.cpp (make_unicode_tables.py).

    python3 tests/tokenizer/make_normal_forms.py > backend/tokenizer/unicode_normal_forms.cpp
"""
import tokenizers
from tokenizers import normalizers

nfc, nfd, nfkd = (getattr(normalizers, n)().normalize_str for n in ("NFC", "NFD", "NFKD"))
strip = normalizers.StripAccents().normalize_str
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)


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
    marks, compatible, parts, pairs = [], [], [], []
    for cp in CODE_POINTS:
        c = chr(cp)
        if strip(c) == "":
            if marks and marks[-1][1] == cp - 1:
                marks[-1][1] = cp
            else:
                marks.append([cp, cp])
        if cp in HANGUL:
            continue
        d, k = nfd(c), nfkd(c)
        if k != d:
            compatible.append((cp, len(parts), len(k)))
            parts += [ord(x) for x in k]
        if d != c and len(d) > 1 and nfc(c) == c:
            first = nfc(d[:-1])
            if len(first) == 1 and nfc(first + d[-1]) == c:
                pairs.append((ord(first), ord(d[-1]), cp))
    pairs.sort()
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Written by tests/tokenizer/make_normal_forms.py from tokenizers {tokenizers.__version__}; do not edit.")
    print('#include "tokenizer/unicode_tables_p.h"\n')
    print("namespace muster::tokenizer::unicode {\n")
    print("namespace {\n")
    print("// clang-format off")
    rows("CodePointRange", "markRanges", [f"{{{a:#x}, {b:#x}}}" for a, b in marks])
    rows("CompatibilityMapping", "compatibilityRows", [f"{{{c:#x}, {at}, {n}}}" for c, at, n in compatible])
    rows("char32_t", "compatibilityParts", [f"{c:#x}" for c in parts])
    rows("CompositionPair", "compositionRows", [f"{{{a:#x}, {b:#x}, {c:#x}}}" for a, b, c in pairs])
    print("// clang-format on\n")
    print("} // namespace\n")
    print("const std::span<const CodePointRange> mark = markRanges;")
    print("const std::span<const CompatibilityMapping> compatibility = compatibilityRows;")
    print("const std::span<const char32_t> compatibilityPart = compatibilityParts;")
    print("const std::span<const CompositionPair> composition = compositionRows;")
    print("\n} // namespace muster::tokenizer::unicode")


main()
