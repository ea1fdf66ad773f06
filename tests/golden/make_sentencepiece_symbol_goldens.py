"""Writes tests/golden/sentencepiece/symbols.json and symbols_NAME.model: pieces and scores chosen by hand, and what `sentencepiece` makes of runs with them.

    python tests/golden/make_sentencepiece_symbol_goldens.py      # needs: pip install sentencepiece==0.2.3

A run of one sign can be cut in many orders that are equally good but for rounding, and the sum in front of it decides which one is taken. So each bit of the
scores of user-defined symbols shows in the ids of the runs behind them. Trained models have no scores above 0; three of these have. Each text is a list of
[a string, how often it comes]. symbols.json holds, for each model, a CRC-32 of the ids of each text.
"""

import json
import random
import struct

import sentencepiece
from make_sentencepiece_goldens import OUT, crc, varint

NORMAL, UNKNOWN, USER_DEFINED, UNUSED = 1, 2, 4, 5
UNIGRAM, BPE, CHARACTERS = 1, 2, 4
SIGNS = "-=#~"
LETTERS = "abcdefg"


def piece(text, score, kind):
    data = text.encode()
    body = b"\x0a" + varint(len(data)) + data + b"\x15" + struct.pack("<f", score) + b"\x18" + varint(kind)
    return b"\x0a" + varint(len(body)) + body


def model(kind, pieces):
    """A ModelProto: the pieces, the kind, no rules, and no space in front."""
    trainer, rules = b"\x18" + varint(kind), b"\x18\x00\x20\x00"
    return b"".join(piece(*one) for one in [("<unk>", 0, UNKNOWN), *pieces]) + b"\x12" + varint(len(trainer)) + trainer + b"\x1a" + varint(len(rules)) + rules


def runs(draw, least, greatest, longest=9):
    """A score for each run of one of the signs, and for each letter and pair of letters."""
    texts = [sign * n for sign in SIGNS for n in range(1, longest + 1)] + ["▁", *LETTERS] + [a + b for a in LETTERS for b in LETTERS if draw.random() < 0.4]
    return [(text, draw.uniform(least, greatest), NORMAL) for text in texts]


def with_defined(pieces, *texts):
    return [one for one in pieces if one[0] not in texts] + [(text, 0, USER_DEFINED) for text in texts]


def make():
    """Names and models."""
    draw = random.Random(52)
    yield "runs", model(UNIGRAM, with_defined(runs(draw, -12, -2), "def", "<sep>", "<", "cd", "\u20ac\u20ac"))
    # A user-defined symbol that stands within another one, begins with it, or begins where it ends.
    yield "overlap", model(UNIGRAM, with_defined(runs(draw, -12, -2), "aab", "baaaa", "ab", "abc", "cde", "cdefg", "efgab", "a" * 12, "gg", "ggg", "gggg"))
    # Some normal pieces are better than what the user defined.
    yield "positive", model(UNIGRAM, with_defined(runs(draw, -3, 3), "def", "<sep>", "ab", "gg", "-" * 12))
    # Sums go beyond those at which the library begins anew, on both sides.
    yield "far", model(UNIGRAM, with_defined([(text, score * 9000, kind) for text, score, kind in runs(draw, -1, 1)], "def", "<sep>", "ab", "=" * 12))
    yield "equal", model(UNIGRAM, with_defined([(text, -float(draw.randint(2, 4) * len(text)), kind) for text, _, kind in runs(draw, -1, 0)], "def", "<sep>", "bcd", "dd"))
    yield "bpe", model(BPE, with_defined(runs(draw, -12, -2), "def", "<sep>", "aab", "baaaa", "gg", "ggg"))
    # -0 is below 0 there.
    zeros = [(a + b, draw.choice([-0.0, 0.0, -1.0, 1.0]), NORMAL) for a in LETTERS for b in LETTERS]
    yield "bpe_zeros", model(BPE, [(letter, 0, NORMAL) for letter in LETTERS] + zeros)
    # 64 of the symbols with which a text begins are looked at, and no more.
    nested = [SIGNS[0] * n for n in range(1, 100)]
    yield "nested_bpe", model(BPE, with_defined(runs(draw, -12, -2, 0), *nested))
    yield "nested_characters", model(CHARACTERS, with_defined(runs(draw, -12, -2, 0), *nested))


def texts():
    draw = random.Random(53)
    symbols = ["def", "<sep>", "<", "cd", "\u20ac\u20ac", "aab", "baaaa", "ab", "abc", "cde", "cdefg", "efgab", "gg", "ggg", " ", "\u00e9", "x", "<se"]
    # The shortest ones that tell one score of a symbol from another.
    result = [[["def", 1], ["-", n]] for n in range(1, 40)] + [[["<sep>", n], ["=", 23]] for n in range(1, 20)]
    for _ in range(150):
        text = []
        for _ in range(draw.randint(1, 30)):
            kind = draw.random()
            if kind < 0.45:
                text.append([draw.choice(SIGNS), draw.randint(1, 80)])
            elif kind < 0.8:
                text.append([draw.choice(symbols), draw.randint(1, 3)])
            else:
                text.append(["".join(draw.choice(LETTERS) for _ in range(draw.randint(1, 12))), 1])
        result.append(text)
    for symbol in ("def", "<sep>", "ab", "cdefg", "-", "x", "abcdefg def "):
        result.append([[symbol, 400_000 // len(symbol)], ["-", 30], ["=", 30], ["def", 1], ["~", 30]])
    # User-defined symbols alone: 0.4 each, beyond 100,000.
    result.append([["<sep>", 270_000], ["-", 30], ["<sep>", 3], ["#", 50]])
    return result


def main():
    inputs = texts()
    cases = {"texts": inputs, "models": {}, "library": sentencepiece.__version__}
    for name, proto in make():
        (OUT / f"symbols_{name}.model").write_bytes(proto)
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        cases["models"][name] = [crc(processor.encode("".join(string * count for string, count in text))) for text in inputs]
    (OUT / "symbols.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
