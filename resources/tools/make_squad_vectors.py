# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/inputs/squad-normalise.jsonl: random Unicode answers and what the SQuAD 1.1 rules make of them.

Usage: python3 resources/tools/make_squad_vectors.py [rows] [seed] > tests/data/inputs/squad-normalise.jsonl
"""
import json
import random
import re
import string
import sys
import unicodedata
from collections import Counter

PUNCT = set(string.punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)


def normalise(s):
    s = "".join(c for c in s.lower() if c not in PUNCT)
    return " ".join(ARTICLES.sub(" ", s).split())


def f1(a, b):
    a, b = a.split(), b.split()
    same = sum((Counter(a) & Counter(b)).values())
    if same == 0:
        return 0.0
    p, r = same / len(a), same / len(b)
    return (2 * p * r) / (p + r)


SPACES = [chr(c) for c in range(0x110000) if chr(c).isspace()]
ODD = list("\u03a3\u03c3\u03c2\u0130\u0131\u0307\u0301\u00ad\u200b\u200d\ufeff\u00b7\u203f\u00b2\uff11\u2019\u201c"
           "\u2013\u2014\u1e9e\u00df\u01c5\u0345\ua64a\U00010400\U0001d7d8\u0000\u001f\u0085\u3000\u00aa\u2160\u24b6")
WORDS = ["a", "an", "the", "A", "An", "THE", "The", "cat", "dog", "Cat", "1,000", "U.S.A.", "and", "thea", "_", "a-b"]


def any_char(rng):
    while True:
        c = rng.randrange(rng.choice([0x80, 0x250, 0x600, 0x3000, 0x11000, 0x20000, 0x110000]))
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def piece(rng):
    kind = rng.randrange(8)
    if kind < 3:
        return rng.choice(WORDS)
    if kind == 3:
        return rng.choice(SPACES)
    if kind == 4:
        return rng.choice(string.punctuation)
    if kind == 5:
        return rng.choice(ODD)
    return any_char(rng) if kind == 6 else rng.choice(string.ascii_letters)


def text(rng):
    return "".join(piece(rng) + (" " if rng.random() < 0.4 else "") for _ in range(rng.randrange(9)))


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(json.dumps({"made_by": "resources/tools/make_squad_vectors.py", "python": sys.version.split()[0],
                      "unicode": unicodedata.unidata_version}))
    for i in range(rows):
        prediction = text(rng)
        gold = text(rng) if i % 2 else "".join(rng.sample(prediction, len(prediction))) + piece(rng)
        p, g = normalise(prediction), normalise(gold)
        print(json.dumps({"prediction": prediction, "gold": gold, "p": p, "g": g, "em": int(p == g), "f1": f1(p, g)}))


main()
