# SPDX-License-Identifier: Apache-2.0
"""Compares ids and offsets of dump_tokens with Hugging Face's `tokenizers`, token by token.

    python3 compare_with_hf.py DUMP_TOKENS SHARED [--random N] [--seed S] [--code-points]

Every text of the shared data, in all its languages, as a whole and in its rows, then N random strings, for each
of: BERT vocabularies, byte-level BPE with the patterns of GPT-2, Llama 3, Qwen 2 and SmolLM2, Llama 2, T5, and
variants with every normalizer and pre-tokenizer. MUSTER_TEST_SMOLLM2 names a directory with SmolLM2's
tokenizer.json, which then takes part. --code-points adds every code point alone and between letters. Exit 1 at a
difference, 77 when the package is missing.
"""
import argparse
import csv
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

try:
    import tokenizers
    from tokenizers import AddedToken, ByteLevelBPETokenizer, BertWordPieceTokenizer, Tokenizer
except ImportError:
    print("skipped: this Python has no package tokenizers")
    sys.exit(77)

QA_FILES = ["xquad/xquad.en.json", "xquad/xquad.de.json", "xquad/xquad.zh.json", "squad-v1.1-dev/dev-v1.1.json",
            "squad-v1.1-dev/test-v1.1.json", "squad-v2.0-dev-part/dev-v2.0.json"]


def data_texts(shared):
    texts = {}
    for name in QA_FILES:
        for article in json.loads((shared / "data" / name).read_text(encoding="utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                texts[paragraph["context"]] = None
                for qa in paragraph["qas"]:
                    texts[qa["question"]] = None

    def walk(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, str) and "text" in key or key in ("context", "question", "query_text"):
                    if isinstance(inner, str):
                        texts[inner] = None
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
    for path in sorted((shared / "data" / "cmrc2018").glob("*.json")):
        walk(json.loads(path.read_text(encoding="utf-8")))
    golden = shared / "data/tokenizers/llamacpp-golden/ggml-vocab-gpt-2.gguf.inp"
    for text in golden.read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n"):
        texts[text] = None
    with open(shared / "data/ag-news/test.csv", encoding="utf-8", newline="") as f:
        for row in csv.reader(f):
            texts.update(dict.fromkeys(row[1:]))
    for name in ("sst2/stsa.binary.dev", "sst2/stsa.binary.test", "wikitext-2-raw/wiki.test.raw"):
        texts.update(dict.fromkeys((shared / "data" / name).read_text(encoding="utf-8").split("\n")))
    stories = (shared / "data/tinystories/tinystories_sample.txt").read_text(encoding="utf-8")
    texts.update(dict.fromkeys(stories.split("\n\n")))
    return list(texts)


def whole_files(shared):
    """Every data file as one text."""
    out = []
    for path in sorted((shared / "data").glob("*/*")):
        if path.is_file() and path.parent.name not in ("models", "tokenizers"):
            out.append(path.read_bytes().decode("utf-8", errors="replace"))
    return out


POOLS = [
    (0x20, 0x7F), (0x20, 0x7F), (0x61, 0x7B), (0x41, 0x5B), (0x30, 0x3A), (0x00, 0x20), (0x7F, 0x250), (0x2B0, 0x370),
    (0x300, 0x370), (0x370, 0x530), (0x590, 0x900), (0x900, 0xE00), (0xE00, 0x1200), (0x1100, 0x1200), (0x1AB0, 0x1D00),
    (0x1DC0, 0x2070), (0x2070, 0x2400), (0x3000, 0x3130), (0x302A, 0x3030), (0x4E00, 0xA000), (0xA800, 0xAC00),
    (0xAC00, 0xD7A4), (0xF900, 0xFB50), (0xFE00, 0x10000), (0x10000, 0x11FFF), (0x1D100, 0x1D200), (0x1F300, 0x1FAFF),
    (0x2F800, 0x2FA20), (0xE0000, 0xE01F0), (0, 0x110000),
]
SNIPPETS = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "<s>", "</s>", "<mask>", " <mask>", "<unk>", "<|endoftext|>",
            "'s", "'ll", "'re", "n't", "  ", "\n\n", " \n ", "\u200d", "\U0001F468\u200d\U0001F469\u200d\U0001F467",
            "e\u0301", "A\u030a\u0323", "\u0344", "\u1100\u1161\u11a8", "\u05d0\u05b7\u05bc", "##ing", "unaffable",
            "\u0130", "\u1e9e", "\u03a3\u03a3", "\u00df", "\ufb01", "\u3000", "\u00a0", "\ufffd", "\u0f73\u0f71",
            "\U0001d15e\U0001d165\U0001d166", "\u1b44\u1b34", "\u302e\u0301", "\u16ff0\u0323"]


SNIPPETS += ["'S", "'\u017f", "'LL", "'Ve", "\r\n", "\r\n\r\n ", "\n  x", "12345", "\u0661\u0662\u0663\u0664", "x  ", "\u2581",
             "\u2581\u2581a", " \u2581 ", "<0x0A>", "<extra_id_0>", "\u1100\u1161", "e\u0323\u0301", "\u0958", "\u2126",
             "\ufb03", "\uff21", "a\u0300\u0301", " \u0308", "\u00ad", "\u200b", "\u180e", "\u0085", "\x1c", "...", "?!\n",
             "\u00e9", "\ufdfa", "\u3300", "\u0675", "\u06ddx", "\u0903a", "!\u0301"]


def random_text(rng):
    out = []
    for _ in range(rng.randrange(1, 12)):
        if rng.random() < 0.2:
            out.append(rng.choice(SNIPPETS))
            continue
        low, high = rng.choice(POOLS)
        for _ in range(rng.randrange(1, 150 if rng.random() < 0.02 else 9)):
            c = rng.randrange(low, high)
            if not 0xD800 <= c < 0xE000:
                out.append(chr(c))
        if rng.random() < 0.4:
            out.append(" ")
    return "".join(out)


def bert_directory(root, name, shared, vocabulary, settings):
    folder = root / name
    folder.mkdir()
    (folder / "vocab.txt").write_bytes((shared / "data/tokenizers" / vocabulary / "vocab.txt").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    theirs = BertWordPieceTokenizer(
        vocab={t: i for i, t in enumerate((folder / "vocab.txt").read_bytes().decode().split("\n")[:-1])},
        lowercase=settings.get("do_lower_case", True), strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True))
    return name, folder, theirs


def json_directory(root, name, theirs):
    """A tokenizer.json that the package itself wrote."""
    folder = root / name
    folder.mkdir()
    theirs.save(str(folder / "tokenizer.json"))
    return name, folder, theirs


def tokenizers_under_test(root, shared):
    out = []
    for name, vocabulary, settings in [
        ("uncased", "bert-base-uncased", {"do_lower_case": True}),
        ("cased", "bert-base-cased", {"do_lower_case": False}),
        ("chinese", "bert-base-chinese", {"do_lower_case": True}),
        ("uncased with accents", "bert-base-uncased", {"do_lower_case": True, "strip_accents": False}),
        ("cased without accents", "bert-base-cased", {"do_lower_case": False, "strip_accents": True}),
        ("uncased, Chinese together", "bert-base-uncased", {"do_lower_case": True, "tokenize_chinese_chars": False}),
    ]:
        out.append(bert_directory(root, name, shared, vocabulary, settings))
    minilm = shared / "data/models/minilm-qa"
    out.append(("minilm-qa", minilm, Tokenizer.from_file(str(minilm / "tokenizer.json"))))
    added = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    added.add_tokens([AddedToken("Unaff", normalized=True), AddedToken("e\u0301x", normalized=True),
                      AddedToken("word", single_word=True, normalized=False),
                      AddedToken("left", lstrip=True, normalized=False),
                      AddedToken("right", rstrip=True, normalized=True)])
    out.append(json_directory(root, "added tokens", added))
    raw = json.loads((minilm / "tokenizer.json").read_text(encoding="utf-8"))
    raw["normalizer"]["clean_text"] = False
    out.append(json_directory(root, "without cleaning", Tokenizer.from_str(json.dumps(raw))))
    roberta = shared / "data/tokenizers/roberta-base"
    out.append(("roberta-base", roberta, Tokenizer.from_file(str(roberta / "tokenizer.json"))))
    raw = json.loads((roberta / "tokenizer.json").read_text(encoding="utf-8"))
    raw["pre_tokenizer"]["add_prefix_space"] = True
    raw["post_processor"]["add_prefix_space"] = True
    out.append(json_directory(root, "roberta with prefix space", Tokenizer.from_str(json.dumps(raw))))
    gpt2 = root / "gpt2"
    gpt2.mkdir()
    (gpt2 / "vocab.json").write_bytes((shared / "data/tokenizers/gpt2/gpt2.vocab").read_bytes())
    (gpt2 / "merges.txt").write_bytes((shared / "data/tokenizers/gpt2/gpt2.merges.txt").read_bytes())
    theirs = ByteLevelBPETokenizer(str(gpt2 / "vocab.json"), str(gpt2 / "merges.txt"))
    theirs.add_special_tokens(["<|endoftext|>"])
    out.append(("gpt2", gpt2, theirs))
    out += byte_level_variants(root, roberta)
    out += character_variants(root, shared / "data/tokenizers")
    merges = json.loads((roberta / "tokenizer.json").read_text(encoding="utf-8"))
    keep = {t: i for t, i in merges["model"]["vocab"].items() if t not in ("e", "\u0120", "\u00c3", "\u00a9", "q")}
    for unk, fuse in ((None, False), ("<unk>", False), ("<unk>", True)):
        merges["model"].update(vocab=keep, unk_token=unk, fuse_unk=fuse,
                               merges=[m for m in merges["model"]["merges"]
                                       if all(p in keep for p in m.split(" ")) and m.replace(" ", "") in keep]
                               if isinstance(merges["model"]["merges"][0], str) else merges["model"]["merges"])
        out.append(json_directory(root, f"bytes missing, unknown {unk}, fused {fuse}",
                                  Tokenizer.from_str(json.dumps(merges))))
    return out


CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def split(pattern, behavior="Isolated", invert=False):
    kind = "Regex" if pattern.startswith(("(", "\\", "[", "'")) else "String"
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": False, "use_regex": regex}


def byte_level_variants(root, roberta):
    out = []
    raw = json.loads((roberta / "tokenizer.json").read_text(encoding="utf-8"))
    raw["post_processor"] = byte_level()
    for name, normalizer, steps, ignore in [
        ("llama 3", None, [split(CL100K % "{1,3}"), byte_level()], True),
        ("qwen 2", {"type": "NFC"}, [split(CL100K % ""), byte_level()], False),
        ("removed and inverted", None, [split(CL100K % "{1,3}", "Removed", True), byte_level()], False),
        ("smollm", None, [{"type": "Digits", "individual_digits": True}, byte_level(regex=True)], False),
        ("digits together", None, [{"type": "Digits", "individual_digits": False}, byte_level(regex=True)], False),
        ("deepseek", None, [split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                            split(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                                  r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), byte_level()], False),
        ("every piece with a space", None, [split(r"\s+", "MergedWithNext"), byte_level(prefix=True, regex=True)], False),
        ("no pattern at all", {"type": "NFKC"}, [byte_level()], False),
    ]:
        raw.update(normalizer=normalizer, pre_tokenizer={"type": "Sequence", "pretokenizers": steps})
        raw["model"]["ignore_merges"] = ignore
        out.append(json_directory(root, "byte level, " + name, Tokenizer.from_str(json.dumps(raw))))
    if os.environ.get("MUSTER_TEST_SMOLLM2"):
        folder = Path(os.environ["MUSTER_TEST_SMOLLM2"])
        out.append(("smollm2", folder, Tokenizer.from_file(str(folder / "tokenizer.json"))))
    return out


def merge_pair(line, vocabulary):
    """The two tokens of a line of merges that has more than one space, which the package does not read."""
    cuts = [i for i, c in enumerate(line) if c == " "]
    pairs = [[line[:i], line[i + 1:]] for i in cuts]
    return [p for p in pairs if p[0] in vocabulary and p[1] in vocabulary and p[0] + p[1] in vocabulary][0]


def character_variants(root, tokenizers_folder):
    folder = tokenizers_folder / "t5-small"
    out = [("t5-small", folder, Tokenizer.from_file(str(folder / "tokenizer.json")))]
    tiny = Tokenizer.from_file(str(tokenizers_folder / "tiny-trained/tiny_bpe_tokenizer.json"))
    out.append(json_directory(root, "tiny-trained", tiny))
    llama = json.loads((tokenizers_folder / "llama2/tokenizer.json").read_text(encoding="utf-8"))
    llama["model"]["merges"] = [merge_pair(m, llama["model"]["vocab"]) for m in llama["model"]["merges"]]
    out.append(("llama2", tokenizers_folder / "llama2", Tokenizer.from_str(json.dumps(llama))))
    t5 = json.loads((tokenizers_folder / "t5-small/tokenizer.json").read_text(encoding="utf-8"))
    t5["added_tokens"] = t5["added_tokens"][:3]

    def variant(base, label, **parts):
        raw = json.loads(json.dumps(base))
        raw["model"].update(parts.pop("model", {}))
        raw.update(parts)
        out.append(json_directory(root, label, Tokenizer.from_str(json.dumps(raw))))

    def replace(kind, pattern, content):
        return {"type": "Replace", "pattern": {kind: pattern}, "content": content}

    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "StripAccents"):
        variant(llama, "normalizer " + form, normalizer={"type": form})
    variant(llama, "normalizer Strip", normalizer={"type": "Strip", "strip_left": True, "strip_right": True})
    variant(llama, "normalizer sequence", normalizer={"type": "Sequence", "normalizers": [
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, replace("Regex", r" {2,}|\p{Nd}+", "\u2581"),
        replace("String", "er", "<->"), {"type": "Prepend", "prepend": "\u2581x"}]})
    variant(t5, "t5 normalizer", normalizer={"type": "Sequence", "normalizers": [
        t5["normalizer"], {"type": "Strip", "strip_left": False, "strip_right": True},
        replace("Regex", " {2,}", "\u2581")]},
            pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"})
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            variant(llama, f"Metaspace {scheme}, split {cut}", normalizer=None, pre_tokenizer={
                "type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": cut})
    pieces = [[p, s] for p, s in t5["model"]["vocab"]]
    for byte in range(256):
        pieces.append([f"<0x{byte:02X}>", -20.0])
    variant(t5, "Unigram with bytes", normalizer=None, model={"byte_fallback": True, "vocab": pieces},
            pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"})
    variant(t5, "Unigram without words", normalizer=None, pre_tokenizer=None)
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            variant(llama, f"Split {behavior}, {invert}", normalizer=None,
                    pre_tokenizer=split(r"[\s\p{P}]", behavior, invert))
            variant(llama, f"Split string {behavior}, {invert}", normalizer=None,
                    pre_tokenizer=split("e", behavior, invert))
        variant(llama, f"Punctuation {behavior}", normalizer=None,
                pre_tokenizer={"type": "Punctuation", "behavior": behavior})
    for step in ({"type": "WhitespaceSplit"}, {"type": "Whitespace"}, {"type": "BertPreTokenizer"},
                 {"type": "Digits", "individual_digits": False}, {"type": "CharDelimiterSplit", "delimiter": "e"},
                 split(r"\s*"), split(r"(?=[A-Z])")):
        variant(llama, f"pre-tokenizer {step}", normalizer=None, pre_tokenizer=step)
    for fuse in (True, False):
        variant(llama, f"no bytes, fused {fuse}", model={"byte_fallback": False, "fuse_unk": fuse})
    variant(llama, "no unknown", model={"byte_fallback": False, "unk_token": None})
    variant(llama, "whole words", model={"ignore_merges": True},
            pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"})
    with_tokens = Tokenizer.from_str(json.dumps(llama))
    with_tokens.add_tokens([AddedToken("Unaff", normalized=True), AddedToken("e\u0301x", normalized=True),
                            AddedToken("the", single_word=True, normalized=False),
                            AddedToken("left", lstrip=True, normalized=False), AddedToken("a b", normalized=True),
                            AddedToken("right", rstrip=True, normalized=True)])
    out.append(json_directory(root, "llama2 with added tokens", with_tokens))
    return out


def byte_offsets(text):
    table = [0]
    for c in text:
        table.append(table[-1] + len(c.encode("utf-8")))
    return table


def compare(name, folder, theirs, texts, program, root):
    file = root / "texts.bin"
    with open(file, "wb") as f:
        for text in texts:
            raw = text.encode("utf-8")
            f.write(struct.pack("<Q", len(raw)) + raw)
    ours = subprocess.run([program, str(folder), str(file)], stdout=subprocess.PIPE, check=True).stdout
    theirs.no_truncation()
    theirs.no_padding()
    at = tokens = wrong = 0
    for start in range(0, len(texts), 4096):
        chunk = texts[start:start + 4096]
        # Threads of its own would slow a long test down on a machine that is in use.
        for text, e in zip(chunk, (theirs.encode(t, add_special_tokens=False) for t in chunk)):
            n, = struct.unpack_from("<Q", ours, at)
            flat = struct.unpack_from(f"<{3 * n}I", ours, at + 8)
            at += 8 + 12 * n
            table = byte_offsets(text)
            want = [(i, table[b], table[s]) for i, (b, s) in zip(e.ids, e.offsets)]
            got = list(zip(flat[0::3], flat[1::3], flat[2::3]))
            tokens += n
            if want != got:
                wrong += 1
                if wrong <= 3:
                    first = next((k for k, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
                    print(f"  {name}: {text[:300]!r}\n    token {first}: theirs {want[first:first + 4]}, "
                          f"ours {got[first:first + 4]}; {len(want)} and {len(got)} tokens")
    print(f"{name}: {len(texts)} texts, {tokens} tokens, {wrong} texts differ", flush=True)
    return wrong


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("program")
    ap.add_argument("shared", type=Path)
    ap.add_argument("--random", type=int, default=20000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--code-points", action="store_true")
    ap.add_argument("--only")
    args = ap.parse_args()
    if not args.shared.is_dir():
        print("skipped: the shared test data are absent")
        return 77
    print(f"tokenizers {tokenizers.__version__}")
    rng = random.Random(args.seed)
    texts = data_texts(args.shared) + whole_files(args.shared) + [random_text(rng) for _ in range(args.random)]
    if args.code_points:
        for c in range(0x110000):
            if not 0xD800 <= c < 0xE000:
                texts += [chr(c), "a" + chr(c) + "b"]
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name, folder, theirs in tokenizers_under_test(root, args.shared):
            if not args.only or args.only in name:
                # A variant differs from what it is made of in how it cuts and normalises; random
                # strings and a tenth of the texts show that.
                few = texts[::10] if "," in name or "normalizer" in name or "pre-tokenizer" in name else texts
                # Expressions without a reader of their own take the properties of PCRE2, which may be
                # of an older Unicode: characters that are younger than this Python are left out.
                if "deepseek" in name or "Split" in name or "normalizer sequence" in name:
                    few = [t for t in few if all(unicodedata.category(c) != "Cn" for c in t)]
                wrong += compare(name, folder, theirs, few, args.program, root)
    return 1 if wrong else 0


sys.exit(main())
