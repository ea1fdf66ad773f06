"""Writes tests/golden/tokenizers: small tokenizers, and what `tokenizers` and `tiktoken` make of texts with them.

    python tests/golden/make_tokenizer_goldens.py      # needs: pip install tokenizers==0.23.3 tiktoken==0.14.0

Each NAME.json is a tokenizer.json, trained on documents of this repository; small.tiktoken is a file of ranks. cases.json holds texts with their ids,
and for each block of 4,096 code points the CRC-32 of the ids of a text that has each of them alone, between letters, and behind an apostrophe, a space,
a digit and a line end (`code_points`; see tests/text/tokenizer_golden_test.cc). Training again gives other tokenizers where the documents changed; the files in
the tree are compared with what made them, whatever the documents say today.
"""

import base64
import json
import pathlib
import random
import struct
import unicodedata
import zlib

import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).parents[2]
OUT = pathlib.Path(__file__).parent / "tokenizers"
BLOCK = 4096
# The blocks of most scripts, marks and signs. `./dev test text` takes every code point.
BLOCKS = [0, 1, 2, 3, 0xA, 0xF, 0x10, 0x11, 0x1D, 0x1F]

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
# Patterns that nobody published go to PCRE2, which has Unicode 14, as this Python has: newer characters are left out of their cases.
OTHER = r"[A-Z]?[a-z]+(?!x)|\p{N}+|[^\s\w]+|\s+"
OTHER_OF_RANKS = OTHER.replace(r"\w", r"\p{L}\p{M}\p{N}")
SCRIPTS = "Привет, мир! Größe façade naïve Ελληνικά שלום עולם مرحبا بالعالم नमस्ते दुनिया こんにちは世界 你好，世界 안녕하세요 ไทย İstanbul ﬁ ² ½ Ⅷ 🎉👩‍👩‍👧 e\u0301 Å Å ①"


def corpus():
    for name in ("README.md", "docs/determinism.md", "docs/limits.md"):
        yield from (ROOT / name).read_text().splitlines(keepends=True)
    yield SCRIPTS * 20


def code_point_text(block):
    """The same text stands in tokenizer_golden_test.cc."""
    text = []
    for c in range(block * BLOCK, (block + 1) * BLOCK):
        if 0xD800 <= c <= 0xDFFF:
            continue
        x = chr(c)
        text.append(f"{x} a{x}b '{x}1{x}\nA{x}")
    return "".join(text)


def texts():
    draw = random.Random(7)
    result = ["", " ", "a", "Hello, world!", "  two  spaces  ", "tab\tand\r\nlines\n\n\n  x", "I'm you're WE'LL it's 'tis ſ'ſ", "1234567 12 3,456.78",
              SCRIPTS, "\0", "a\0b\x01\x7f\x85", "a" * 300, " " * 70 + "x", "\n" * 50 + " ", "ab" * 200, "<s>x</s> <|endoftext|>[MASK] [mask] y",
              "def f(x):\n    return {'a': [x, 1.5e-3]}  # комментарий\n", "don't  <mask>  stop", "\ufffd\u200b\u200d\ufeff\u00ad", "x<tok>y <tok> z tok"]
    letters = " \n\r\t'sStTrReEvVmMlLdD019²½éÉßſ中文あ한\u0301\u034f\u200d/!.-_Ġ▁\u00a0\u3000\u2028ǅʰ<|endoftext|>aeiou"
    for _ in range(150):
        result.append("".join(draw.choice(letters) for _ in range(draw.randint(0, 40))))
    for _ in range(30):
        result.append(bytes(draw.randrange(256) for _ in range(draw.randint(0, 60))).decode(errors="replace"))
    for _ in range(80):
        result.append("".join(chr(draw.choice([c for c in (draw.randrange(0x500), draw.randrange(0x3000), draw.randrange(0x20000)) if not 0xD800 <= c < 0xE000]))
                              for _ in range(draw.randint(1, 20))))
    return result


def byte_level(pre, size=900, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                                special_tokens=["<|endoftext|>"], show_progress=False))
    return tokenizer


def split(pattern, **more):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), more.get("behavior", "isolated"), invert=more.get("invert", False)),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def make():
    gpt2 = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))
    yield "gpt2", gpt2
    llama3 = byte_level(split(LLAMA3), ignore_merges=True)
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|endoftext|> $A", pair="<|endoftext|> $A $B", special_tokens=[("<|endoftext|>", 0)])])
    yield "llama3", llama3
    qwen2 = byte_level(split(QWEN2), normalizer=normalizers.NFC())
    qwen2.add_tokens([AddedToken("<tok>", normalized=False, lstrip=True, rstrip=True), AddedToken("tok", single_word=True, normalized=True)])
    yield "qwen2", qwen2
    yield "o200k", byte_level(split(O200K, behavior="removed", invert=True))
    yield "digits", byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous"),
                                                        pre_tokenizers.ByteLevel(add_prefix_space=True)]))
    yield "other", byte_level(split(OTHER, behavior="merged_with_next"), normalizer=normalizers.NFKC())
    # BERT.
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece()
    bert.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=900, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    bert.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    bert.enable_truncation(24)
    yield "bert", bert
    # T5 without its table of characters.
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    unigram.decoder = decoders.Metaspace(prepend_scheme="first")
    unigram.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=700, special_tokens=["<unk>", "<mask>"], unk_token="<unk>", show_progress=False))
    yield "unigram", unigram
    # Llama 2.
    llama2 = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama2.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    llama2.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    llama2.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=900, limit_alphabet=90, show_progress=False,
                                                             special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]))
    llama2.pre_tokenizer = None
    llama2.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="$A $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    llama2.enable_truncation(30, direction="left")
    yield "llama2", llama2
    # Words and their parts, by suffix.
    clip = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix="@@"))
    clip.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip()])
    clip.pre_tokenizer = pre_tokenizers.Whitespace()
    clip.decoder = decoders.BPEDecoder()
    clip.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=700, limit_alphabet=120, special_tokens=["<unk>"], end_of_word_suffix="</w>",
                                                           continuing_subword_prefix="@@", show_progress=False))
    yield "clip", clip
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.train_from_iterator(corpus(), trainers.WordLevelTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False))
    yield "words", words


def without_new(ids, inputs):
    return [None if any(unicodedata.category(x) == "Cn" for x in text) else one for one, text in zip(ids, inputs)]


def crc(ids):
    return zlib.crc32(struct.pack(f"<{len(ids)}I", *ids))


def main():
    OUT.mkdir(exist_ok=True)
    inputs = texts()
    cases = {"texts": inputs, "tokenizers": {}}
    with_code_points = {"gpt2", "qwen2", "bert", "unigram", "clip"}
    for name, tokenizer in make():
        tokenizer.save(str(OUT / f"{name}.json"), pretty=False)
        tokenizer = Tokenizer.from_file(str(OUT / f"{name}.json"))
        with_special = [tokenizer.encode(text).ids for text in inputs]
        case = {"ids": with_special, "plain": [tokenizer.encode(text, add_special_tokens=False).ids for text in inputs[:40]],
                "decoded": [tokenizer.decode(ids) for ids in with_special[:120]]}
        if name == "other":
            case["ids"] = without_new(with_special, inputs)
        if name in with_code_points:
            free = Tokenizer.from_str(tokenizer.to_str())
            free.no_truncation()
            case["code_points"] = [crc(free.encode(code_point_text(block), add_special_tokens=False).ids) for block in BLOCKS]
        cases["tokenizers"][name] = case
    # The merges of gpt2 as ranks.
    model = json.loads((OUT / "gpt2.json").read_text())["model"]
    letters = {v: k for k, v in bytes_to_letters().items()}
    tokens = sorted(((i, t) for t, i in model["vocab"].items() if t != "<|endoftext|>"))
    ranks = {bytes(letters[x] for x in token): rank for rank, (_, token) in enumerate(tokens)}
    (OUT / "small.tiktoken").write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    for name, pattern in (("cl100k_base", CL100K), ("o200k_base", O200K), (OTHER_OF_RANKS, OTHER_OF_RANKS)):
        encoding = tiktoken.Encoding("small", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        ids = [encoding.encode_ordinary(text) for text in inputs]
        case = {"pattern": name, "ids": ids, "plain": [], "decoded": [encoding.decode(x) for x in ids[:120]]}
        if name == OTHER_OF_RANKS:
            case["ids"] = without_new(ids, inputs)
        else:
            case["code_points"] = [crc(encoding.encode_ordinary(code_point_text(block))) for block in BLOCKS]
        cases["tokenizers"][f"small.tiktoken {name}"] = case
    cases["libraries"] = {"tokenizers": tokenizers.__version__, "tiktoken": "0.14.0"}
    (OUT / "cases.json").write_text(json.dumps(cases, separators=(",", ":"), ensure_ascii=True) + "\n")


def bytes_to_letters():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


if __name__ == "__main__":
    main()
