"""Writes tests/golden/tokenizers/precompiled_cases.json: what `tokenizers` makes of texts with the maps of SentencePiece (its normaliser Precompiled).

    python tests/golden/make_precompiled_goldens.py      # needs: pip install tokenizers==0.23.3 tiktoken==0.14.0 sentencepiece==0.2.3

The file holds texts and tokenizers. A map that is the name of a model stands for that of the model in tests/golden/sentencepiece, which is too large to be there
again. For each tokenizer there is a CRC-32 of the ids of each text, the ids of the first of them, and for each block of 4,096 code points the CRC-32 of the ids
of a text that has each of them in places where clusters of characters begin, go on or end (`code_points`; see tests/text/precompiled_golden_test.cc). The ids of
`clusters`, `bytes` and `own` are the bytes of the text that the normaliser makes.
"""

import base64
import copy
import json
import pathlib
import random
import struct
import zlib

import tokenizers
from make_sentencepiece_goldens import fields
from make_tokenizer_goldens import BLOCKS, bytes_to_letters, texts
from tokenizers import Tokenizer

FOLDER = pathlib.Path(__file__).parent
OUT = FOLDER / "tokenizers" / "precompiled_cases.json"
BLOCK, SHOWN = 4096, 60
# Of each class of code points that Unicode's rules of clusters tell apart, of one to four bytes where there are such.
LETTERS = [*"aexyzAB `'", "\r", "\n", "\r\n", "\0", "\u0001", "\u200b", "é", "\u0301", "\u0300", "\u0307", "\u05b0", "\u0903", "\u0e33", "\u0600", "\u06dd", "\u08e2",
           "\U000110bd", "\u1100", "\u1161", "\u11a8", "가", "각", "\U0001f1e6", "\U0001f1fa", "\u263a", "©", "\u200d", "\ufe0f", "\u0915", "\u0930", "\u094d", "\u093c",
           "\u200c", "\U0001f3fb", "\U0001f469", "\U000e0020", "\U00016d63", "\U00016d67", "ﬁ", "Å", "\u3000", "ｶ", "ﾞ", "①", "\u2009", "\ufeff", "™"]  # fmt: skip


def model(name):
    return map_and_pieces((FOLDER / "sentencepiece" / name).read_bytes())


def map_and_pieces(file):
    """The map of a model, and its pieces with their scores."""
    parts = list(fields(file))
    (rules,) = (body for number, body in parts if number == 3)
    at, charsmap = 0, None
    while at < len(rules):
        tag, at = rules[at], at + 1
        size = shift = 0
        while True:
            byte, at = rules[at], at + 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if tag & 7 == 2:
            charsmap = rules[at : at + size] if tag >> 3 == 2 else charsmap
            at += size
    pieces = []
    for number, body in parts:
        if number == 1:
            size = body[1]
            assert size < 0x80
            score = body[2 + size + 1 : 2 + size + 5] if len(body) > 2 + size and body[2 + size] == 0x15 else b"\0\0\0\0"
            pieces.append([body[2 : 2 + size].decode(), struct.unpack("<f", score)[0]])
    return charsmap, pieces


def cluster_map():
    """Replaces each text that begins with "a" or no ASCII by "Q": so a cluster that is taken as a whole becomes one, and others as many as they have characters."""
    root, leaf = 0x100, 0x200
    units = [0] * (leaf + 0x100)
    units[0] = root << 10
    for byte in (ord("a"), *range(0x80, 0x100)):
        units[root ^ byte] = byte | 1 << 8 | (root ^ byte ^ leaf) << 10
    units[leaf] = 1 << 31
    trie = struct.pack(f"<{len(units)}I", *units)
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + b"Q\0").decode()


def precompiled(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": charsmap}


def sequence(*parts):
    return {"type": "Sequence", "normalizers": list(parts)}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def specs():
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None, "decoder": None}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    bytes_model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                   "byte_fallback": False, "vocab": {letter: byte for byte, letter in bytes_to_letters().items()}, "merges": []}  # fmt: skip
    for name, charsmap in (("clusters", cluster_map()), ("bytes", "unigram.model"), ("own", "bpe.model")):
        yield name, {**whole, "normalizer": precompiled(charsmap), "pre_tokenizer": byte_level, "model": bytes_model}
    _, pieces = model("unigram.model")
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False}

    def metaspace(scheme):
        return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True}

    spaces = replace({"Regex": " {2,}"}, " ")
    yield "t5", {**whole, "normalizer": precompiled("unigram.model"), "model": unigram,
                 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace("always")]}}  # fmt: skip
    token = {"id": len(pieces), "content": "ﬁx", "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    yield "xlm_roberta", {**whole, "normalizer": sequence(precompiled("unigram.model"), spaces), "model": unigram, "pre_tokenizer": metaspace("always"),
                          "added_tokens": [token]}  # fmt: skip
    albert = sequence(replace({"String": "``"}, '"'), replace({"String": "''"}, '"'), {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
                      precompiled("unigram.model"), spaces)  # fmt: skip
    yield "albert", {**whole, "normalizer": albert, "model": unigram, "pre_tokenizer": metaspace("always")}
    # Where the first characters go, in both ways.
    first = sequence(precompiled("unigram.model"), {"type": "Strip", "strip_left": True, "strip_right": False})
    yield "first", {**whole, "normalizer": first, "model": unigram, "pre_tokenizer": metaspace("first")}


def with_maps(spec):
    """As the library takes it."""
    spec = copy.deepcopy(spec)
    normalizer = spec["normalizer"]
    for part in normalizer.get("normalizers", [normalizer]):
        if part.get("precompiled_charsmap", "").endswith(".model"):
            part["precompiled_charsmap"] = base64.b64encode(model(part["precompiled_charsmap"])[0]).decode()
    return spec


def drawn():
    draw = random.Random(11)
    for _ in range(1200):
        yield "".join(draw.choice(LETTERS) for _ in range(draw.randint(1, 14)))
    for _ in range(200):
        yield "".join(chr(c) for c in (draw.choice([draw.randrange(0x900), draw.randrange(0x3100), draw.randrange(0x20000)]) for _ in range(12)) if not 0xD800 <= c < 0xE000)


def code_point_text(block):
    """The same text stands in tests/text/precompiled_golden_test.cc."""
    points = [chr(c) for c in range(block * BLOCK, (block + 1) * BLOCK) if not 0xD800 <= c <= 0xDFFF]
    return "".join(f"{x}\u0301 a{x} \u0600{x}a\r\n{x}\u200d\u263a\u0301a{x}\u0300 {x}\u094d\u0915\u0301 \u1100{x}\u0301 {x}\u11a8\u0301\n" for x in points)


def crc(ids):
    return zlib.crc32(struct.pack(f"<{len(ids)}I", *ids))


def main():
    inputs = [*texts(), "\u0001a", "\u0001\u3000a", "\u3000a", "  a", "\u200b\u0001", "ﬁx", "a ﬁx ﬁ x", "e\u0301\u0301", "\r\n\r\n", "ｶﾞ", *drawn()]
    cases = {"library": tokenizers.__version__, "texts": inputs, "tokenizers": {}}
    for name, spec in specs():
        tokenizer = Tokenizer.from_str(json.dumps(with_maps(spec)))
        ids = [tokenizer.encode(text).ids for text in inputs]
        cases["tokenizers"][name] = {"spec": spec, "crcs": [crc(one) for one in ids], "ids": ids[:SHOWN],
                                     "code_points": [crc(tokenizer.encode(code_point_text(block)).ids) for block in BLOCKS]}  # fmt: skip
    OUT.write_text(json.dumps(cases, separators=(",", ":"), ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
