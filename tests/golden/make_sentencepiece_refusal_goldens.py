"""Writes tests/golden/sentencepiece/refusals.json: models that make little sense, and what `sentencepiece` says to them.

    python tests/golden/make_sentencepiece_refusal_goldens.py      # needs: pip install sentencepiece==0.2.3

A model is its kind (1: unigram, 2: BPE, 3: words, 4: characters) and its pieces: a text, how often it stands there, the score, the type. `ids` are those of
the texts, and the last one how many ids a text of 7,999 letters has; null: the library refuses the model. `back`: the texts of [2, i] for each of the last
pieces' ids i, but for pieces of thousands of letters.
"""

import json
import struct

import sentencepiece
from make_sentencepiece_goldens import OUT, varint

TEXTS = ["ab", "aab b", "c bc u bu", "<unk> <0x41>", ""]
LONG = "a" * 7_999
KINDS = {"unigram": 1, "bpe": 2, "words": 3, "characters": 4}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5
TYPES = {"normal": NORMAL, "control": CONTROL, "user defined": USER_DEFINED, "unused": UNUSED}
PIECES = [["<unk>", 1, "0", UNKNOWN], ["\u2581", 1, "-1", NORMAL], ["a", 1, "-2", NORMAL], ["b", 1, "-3", NORMAL]]


def within(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def model_of(kind, pieces):
    proto = b""
    for text, times, score, type_ in pieces:
        content = within(1, (text * times).encode()) + varint(2 << 3 | 5) + struct.pack("<f", float(score)) + varint(3 << 3) + varint(type_)
        proto += within(1, content)
    return proto + within(2, varint(3 << 3) + varint(kind))


def cases():
    yield "as it should be", PIECES
    for score in ("inf", "-inf", "3e38", "-3e38"):
        for name, type_ in TYPES.items():
            yield f"{name} of score {score}", [*PIECES, ["ab", 1, score, type_]]
    yield "unknown of score inf", [["<unk>", 1, "inf", UNKNOWN], *PIECES[1:]]
    for size in (7_999, 8_000, 70_000):
        for name, type_ in TYPES.items():
            yield f"{name} of {size} bytes", [*PIECES, ["a", size, "-5", type_]]
    for first_name, first in TYPES.items():
        for second_name, second in TYPES.items():
            yield f"{first_name} and {second_name} of one text", [*PIECES, ["ab", 1, "-5", first], ["ab", 1, "-6", second]]
    for name, type_ in TYPES.items():
        yield f"{name} of the unknown piece's text", [*PIECES, ["<unk>", 1, "-5", type_]]
        yield f"{name} of one letter", [*PIECES, ["c", 1, "-5", type_]]
        yield f"{name} of a word", [*PIECES, ["\u2581c", 1, "-5", type_]]
        yield f"{name} with the text of a byte", [*PIECES, ["<0x41>", 1, "-5", type_]]
    for first_name, first in TYPES.items():
        for second_name, second in TYPES.items():
            yield f"{first_name} and {second_name} of one letter", [*PIECES, ["c", 1, "-5", first], ["c", 1, "-6", second]]
            yield f"{first_name} and {second_name} of a word", [*PIECES, ["\u2581c", 1, "-5", first], ["\u2581c", 1, "-6", second]]
    yield "an unknown of one letter", [["u", 1, "0", UNKNOWN], *PIECES[1:]]
    yield "an unknown of a word", [["\u2581u", 1, "0", UNKNOWN], *PIECES[1:]]
    yield "a second unknown", [*PIECES, ["<none>", 1, "-5", UNKNOWN]]
    yield "nothing but the unknown", PIECES[:1]
    yield "nothing but the unknown and a control symbol", [*PIECES[:1], ["<s>", 1, "0", CONTROL]]
    yield "nothing", []
    yield "no unknown", PIECES[1:]
    yield "scores of zero", [[text, times, "0", type_] for text, times, _, type_ in [*PIECES, ["ab", 1, "0", NORMAL]]]


def made_of(kind, pieces):
    """`ids` and `back`."""
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model_of(kind, pieces))
    except RuntimeError:
        return {"ids": None}
    back = [processor.decode([2, i]) for i in range(max(len(pieces) - 2, 0), len(pieces)) if len(pieces) > 2 and pieces[i][1] == 1 == pieces[-1][1]]
    return {"ids": [*(processor.encode(text) for text in TEXTS), [len(processor.encode(LONG))]], "back": back}


def main():
    made = [{"name": f"{kind}: {name}", "kind": number, "pieces": pieces, **made_of(number, pieces)} for kind, number in KINDS.items() for name, pieces in cases()]
    lines = ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in made)
    (OUT / "refusals.json").write_text(f'{{"library":"{sentencepiece.__version__}","texts":{json.dumps(TEXTS)},"models":[\n{lines}\n]}}\n')
    print(f"{len(made)} models, {sum(case['ids'] is None for case in made)} of them refused")


if __name__ == "__main__":
    main()
