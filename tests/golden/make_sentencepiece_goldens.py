"""Writes tests/golden/sentencepiece: small models, and what `sentencepiece` makes of texts with them.

    python tests/golden/make_sentencepiece_goldens.py      # needs: pip install sentencepiece==0.2.3

Each NAME.model is trained on documents of this repository. cases.json holds the texts; for each model a CRC-32 of the ids of each, the ids of the first of
them and then ids that were drawn, what these become as texts, and for each block of 4,096 code points the CRC-32 of the ids of a text that has each of them in several places
(`code_points`), and that of a long text (see tests/text/sentencepiece/golden_test.cc). The models in the tree are compared with what the library makes of them, whatever the documents say
today.
"""

import io
import json
import pathlib
import random
import struct
import tempfile
import zlib

import sentencepiece

ROOT = pathlib.Path(__file__).parents[2]
OUT = pathlib.Path(__file__).parent / "sentencepiece"
BLOCK = 4096
# As make_tokenizer_goldens.py has them; and those of which the rules of the models speak.
BLOCKS = [0, 1, 2, 3, 0xA, 0xF, 0x10, 0x11, 0x1D, 0x1F]
SHOWN = 40

SCRIPTS = "Привет, мир! Größe façade naïve Ελληνικά שלום עולם مرحبا بالعالم नमस्ते दुनिया こんにちは世界 你好，世界 안녕하세요 ไทย İstanbul ﬁ ² ½ Ⅷ 🎉👩‍👩‍👧 e\u0301 Å Å ①"
# Replacements: one for one, one for two, two for one, longer ones that begin with a shorter one, to a space, to nothing.
RULES = [("A", "a"), ("B", "b"), ("ß", "ss"), ("ae", "ä"), ("x", "y"), ("xyz", "z x"), ("\t", " "), ("\n", " "), ("\u3000", "  "), ("\u200b", ""), ("e\u0301", "é")]
# Ways through its words are equally good but for rounding, and its score goes beyond that at which the library begins sums of a Unigram anew.
LONG = "III IIII IIIII aaaa lll sss " * 8000
BACK = [("\u00e4", "ae"), ("z", "Z")]


def corpus():
    for name in ("README.md", "docs/determinism.md", "docs/limits.md"):
        yield from (ROOT / name).read_text().splitlines()
    yield from [SCRIPTS] * 20


def code_point_text(block):
    """The same text stands in tests/text/sentencepiece/golden_test.cc."""
    points = [chr(c) for c in range(block * BLOCK, (block + 1) * BLOCK) if not 0xD800 <= c <= 0xDFFF]
    return "".join(f"{x} a{x}b '{x}1{x}\nA{x}" for x in points)


def texts():
    draw = random.Random(7)
    result = ["", " ", "a", "Hello, world!", "  two  spaces  ", "tab\tand\r\nlines\n\n\n  x", "I'm you're WE'LL it's 'tis ſ'ſ", "1234567 12 3,456.78",
              SCRIPTS, "\0", "a\0b\x01\x7f\x85", "a" * 300, " " * 70 + "x", "\n" * 50 + " ", "ab" * 200, "<s>x</s> <unk><0x41> y", "▁a▁▁b ▁", "xyz xy x aee\u0301 ae",
              "def f(x):\n    return {'a': [x, 1.5e-3]}  # комментарий\n", "don't  <mask>  stop <sep><cls>", "\ufffd\u200b \u200d\ufeff\u00ad", "\u200b \u200b  a\u200b  ",
              "The pipeline and the daemon. " * 40, "你好世界" * 60]
    letters = " \n\r\t'sStTrReEvVmMlLdD019²½éÉßſ中文あ한\u0301\u034f\u200d/!.-_Ġ▁\u00a0\u3000\u2028ǅʰ<sep>xyzaeiouAB"
    for _ in range(120):
        result.append("".join(draw.choice(letters) for _ in range(draw.randint(0, 40))))
    for _ in range(30):
        result.append(bytes(draw.randrange(256) for _ in range(draw.randint(0, 60))).decode(errors="replace"))
    for _ in range(60):
        result.append("".join(chr(draw.choice([c for c in (draw.randrange(0x500), draw.randrange(0x3000), draw.randrange(0x20000)) if not 0xD800 <= c < 0xE000]))
                              for _ in range(draw.randint(1, 20))))
    words = " ".join(corpus()).split(" ")
    for _ in range(40):
        result.append(draw.choice([" ", "  ", "▁"]).join(draw.choice(words) for _ in range(draw.randint(1, 40))))
    return result


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def fields(message):
    """The fields of a message, each (number, its bytes with the tag, the bytes in it); all of a ModelProto's have a length."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = number()
        assert tag & 7 == 2
        size = number()
        yield tag >> 3, message[at : at + size]
        at += size


def message(parts):
    return b"".join(varint(number << 3 | 2) + varint(len(body)) + body for number, body in parts)


def with_unused(model, chosen):
    """The model with pieces that are not used; of two values for a field the last one counts."""
    parts, piece = [], 0
    for number, body in fields(model):
        if number == 1:
            body += b"\x18\x05" if chosen(piece, body) else b""
            piece += 1
        parts.append((number, body))
    return message(parts)


def without_escapes(model):
    """The model with spaces that stay spaces, in its pieces as well."""
    parts = []
    for number, body in fields(model):
        if number == 1:
            size = body[1]
            text = body[2 : 2 + size].replace("▁".encode(), b" ")
            body = b"\x0a" + varint(len(text)) + text + body[2 + size :]
        parts.append((number, body + b"\x28\x00" if number == 3 else body))
    return message(parts)


def write_rules(path, rules):
    path.write_text("".join("\t".join(" ".join(f"{ord(x):X}" for x in side) for side in rule) + "\n" for rule in rules))


def make():
    """Names and models."""
    folder = pathlib.Path(tempfile.mkdtemp())
    rules, back = folder / "rules.tsv", folder / "back.tsv"
    write_rules(rules, RULES)
    write_rules(back, BACK)

    def train(kind, size, **options):
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=corpus(), model_writer=out, model_type=kind, vocab_size=size, minloglevel=2, num_threads=1,
                                                 hard_vocab_limit=False, **options)
        return out.getvalue()

    own = {"normalization_rule_tsv": str(rules)}
    symbols = {"user_defined_symbols": ["<sep>", "<sep><cls>", "▁def", "ab"], "control_symbols": ["<mask>"]}
    # As T5 and ALBERT have it.
    yield "unigram", train("unigram", 500)
    # As Llama 2 has it.
    llama = {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "split_digits": True, "allow_whitespace_only_pieces": True}
    yield "bpe_bytes", train("bpe", 700, **llama, **symbols)
    yield "unigram_bytes", train("unigram", 700, byte_fallback=True, treat_whitespace_as_suffix=True, **own, **symbols)
    yield "bpe", train("bpe", 500, denormalization_rule_tsv=str(back), unk_surface="<?>", **own)
    yield "bpe_suffix", train("bpe", 500, treat_whitespace_as_suffix=True, add_dummy_prefix=False, **own)
    yield "bpe_across", train("bpe", 500, split_by_whitespace=False, normalization_rule_name="identity", **symbols)
    yield "bpe_unused", with_unused(train("bpe", 500, normalization_rule_name="identity"), lambda i, _: i > 20 and i % 3 == 0)
    yield "unigram_unused", with_unused(train("unigram", 400, normalization_rule_name="identity", add_dummy_prefix=False, **symbols), lambda i, _: i > 20 and i % 3 == 0)
    yield "words_unused", with_unused(train("word", 200, normalization_rule_name="identity"), lambda i, _: i > 3 and i % 3 == 0)
    yield "characters_unused", with_unused(train("char", 100, normalization_rule_name="identity"), lambda i, _: i > 3 and i % 3 == 0)
    yield "bpe_bytes_unused", with_unused(train("bpe", 500, **llama), lambda i, _: i > 260 and i % 3 == 0)
    yield "spaces", without_escapes(train("bpe", 400, normalization_rule_name="identity"))
    yield "words", train("word", 200, normalization_rule_name="identity")
    yield "characters", train("char", 150, **own, **symbols)


def crc(ids):
    return zlib.crc32(struct.pack(f"<{len(ids)}I", *ids))


def main():
    OUT.mkdir(exist_ok=True)
    inputs = texts()
    cases = {"texts": inputs, "models": {}, "library": sentencepiece.__version__}
    for name, model in make():
        (OUT / f"{name}.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        draw = random.Random(name)
        all_ids = [processor.encode(text) for text in inputs]
        some = all_ids[:SHOWN] + [[draw.randrange(draw.choice([12, 270, processor.get_piece_size()])) % processor.get_piece_size() for _ in range(draw.randint(1, 12))]
                                  for _ in range(100)]
        cases["models"][name] = {
            "crcs": [crc(ids) for ids in all_ids],
            "code_points": [crc(processor.encode(code_point_text(block))) for block in BLOCKS],
            "long": crc(processor.encode(LONG)),
            "ids": some,
            # A text of bytes that are no UTF-8 comes from pieces alone; none of these models has such.
            "decoded": [processor.decode(ids) for ids in some],
        }
    (OUT / "cases.json").write_text(json.dumps(cases, separators=(",", ":"), ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
