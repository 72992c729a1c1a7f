# SPDX-License-Identifier: Apache-2.0
"""Writes backend/metrics/unicode_tables_p.h: what str.lower(), str.split() and the \\b of re do in this Python.

Usage: python3 resources/tools/make_unicode_tables.py > backend/metrics/unicode_tables_p.h
The classes are read off the behaviour of Python, so the tables say what Python does by construction.
"""
import re
import sys
import unicodedata

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(test):
    out = []
    for c in range(0x110000):
        if not 0xD800 <= c < 0xE000 and test(c):
            if out and out[-1][1] == c - 1:
                out[-1][1] = c
            else:
                out.append([c, c])
    return out


def final_sigma(text):
    return text.lower()[-1] == "\u03c2"


def lower_runs():
    pairs = [(c, ord(chr(c).lower())) for c in ALL if len(chr(c).lower()) == 1 and chr(c).lower() != chr(c)]
    runs = []
    for c, to in pairs:
        if runs:
            r = runs[-1]
            step = c - r[1]
            if to - c == r[3] and step in (1, 2) and (r[0] == r[1] or step == r[2]):
                r[1], r[2] = c, step
                continue
        runs.append([c, c, 1, to - c])
    return runs


def show(name, kind, rows):
    print(f"inline constexpr {kind} {name}[] = {{")
    line = "   "
    for r in rows:
        cell = " {" + ", ".join(f"0x{v:X}" if i < 2 else str(v) for i, v in enumerate(r)) + "},"
        if len(line) + len(cell) > 100:
            print(line)
            line = "   "
        line += cell
    print(line)
    print("};\n")


word = re.compile(r"\w")
print(f"""// SPDX-License-Identifier: Apache-2.0
// Made by resources/tools/make_unicode_tables.py with Python {sys.version.split()[0]}, Unicode {unicodedata.unidata_version}; do not edit.
#pragma once

// clang-format off
namespace muster::metrics::tables {{

/// Inclusive range of code points.
struct Range {{
    char32_t first;
    char32_t last;
}};

/// Code points first, first + step, … last map to themselves plus `delta`.
struct LowerRun {{
    char32_t first;
    char32_t last;
    char32_t step;
    int delta;
}};
""")
print("/// str.lower() of one code point; without U+0130, which becomes two.")
show("lowerRuns", "LowerRun", lower_runs())
print("/// \\w of re, without ASCII: letters, numbers of any kind; the underscore is ASCII.")
show("word", "Range", ranges(lambda c: c > 127 and word.match(chr(c))))
print("/// Makes a capital sigma behind it a final one.")
show("cased", "Range", ranges(lambda c: final_sigma(chr(c) + "\u03a3")))
print("/// Is looked through when a capital sigma looks for a cased neighbour.")
show("caseIgnorable", "Range",
     ranges(lambda c: final_sigma("A" + chr(c) + "\u03a3") and not final_sigma(chr(c) + "\u03a3")))
print("/// White space of str.split().")
show("space", "Range", ranges(lambda c: chr(c).isspace()))
print("/// General categories Pc, Pd, Ps, Pe, Pi, Pf, Po, without ASCII.")
show("punctuation", "Range", ranges(lambda c: c > 127 and unicodedata.category(chr(c))[0] == "P"))
print("} // namespace muster::metrics::tables\n// clang-format on")
