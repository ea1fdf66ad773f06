"""Documents for tokenizers, of what is on this machine, and tokenizers of published sizes trained on them.

Needs `tokenizers`, and `sentencepiece` for its models; `./dev test text` has them in build/text-venv. What is trained stays in build/text.
"""

import base64
import glob
import json
import os
import pathlib
import random
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "text"
sys.path.insert(0, str(ROOT / "tests" / "golden"))

import make_tokenizer_goldens as goldens  # noqa: E402

SIZE = 32_768
FILES = ["/usr/share/doc/**/*", "/usr/lib/python3*/**/*.py", "/usr/share/common-licenses/*", "/usr/share/perl/**/*.p[lmo]*", "/usr/share/locale/*/LC_MESSAGES/*.mo",
         "/usr/share/i18n/locales/*", "/usr/share/vim/**/*.txt", "/usr/include/**/*.h", str(ROOT / "docs/**/*.md"), str(ROOT / "server/**/*.cc")]


def files(patterns=FILES):
    found = sorted({path for pattern in patterns for path in glob.glob(pattern, recursive=True) if os.path.isfile(path) and not path.endswith((".gz", ".png", ".svg"))})
    return [path for path in found if os.path.getsize(path) < 2_000_000]


def mixed(size_bytes, seed=1):
    """Documents in many scripts, code, and random bytes, until they have `size_bytes`; the same ones come again in other parts."""
    draw = random.Random(seed)
    paths = files()
    total = 0
    while total < size_bytes:
        kind = draw.random()
        if kind < 0.02:
            text = draw.randbytes(draw.randint(0, 20_000)).decode(errors="replace")
        elif kind < 0.04:
            text = "".join(chr(draw.choice([c for c in (draw.randrange(0x3000), draw.randrange(0x110000)) if not 0xD800 <= c < 0xE000])) for _ in range(draw.randint(0, 3000)))
        else:
            data = pathlib.Path(draw.choice(paths)).read_bytes()
            start = draw.randrange(max(len(data) - 100_000, 1))
            text = data[start : start + 100_000].decode(errors="replace")
        total += len(text.encode())
        yield text


ENGLISH = ["/usr/share/doc/**/*", "/usr/share/common-licenses/*", "/usr/share/perl/**/*.pod", "/usr/share/vim/**/*.txt", str(ROOT / "docs/**/*.md")]


def english(size_bytes, seed=3):
    """Pages of mostly English prose, of 500 to 8,000 bytes, until they have `size_bytes`; the same ones come again in other parts."""
    draw = random.Random(seed)
    paths = files(ENGLISH)
    total = 0
    while total < size_bytes:
        data = pathlib.Path(draw.choice(paths)).read_bytes()
        start = draw.randrange(max(len(data) - 8_000, 1))
        text = data[start : start + draw.randint(500, 8_000)].decode(errors="replace")
        total += len(text.encode())
        yield text


def code_point_text(block):
    """Each of 4,096 code points in more places than the goldens have it."""
    points = [chr(c) for c in range(block * 4096, (block + 1) * 4096) if not 0xD800 <= c <= 0xDFFF]
    return "".join(f"{x} a{x}b '{x} 1{x}2\n{x}\n A{x}B {x}{x} {x}'s{x}\u0001" for x in points)


def runs(size_bytes, seed=5):
    """Documents of long runs of one sign, with words and symbols that a user may define between them, until they have `size_bytes`.

    Ways through a run that differ in the order of their tokens are equally good but for rounding, so that the ids show each bit of the sum in front of it.
    """
    draw = random.Random(seed)
    between = ["def", "<sep>", " def ", "<sep><sep>", "<", "de", "<se", " ", "\n", " the ", "\u00e9", "\u4e2d", "\U0001f389"]
    total = 0
    while total < size_bytes:
        parts = []
        for _ in range(draw.choice([3, 30, 300, 3000])):
            parts.append(draw.choice("-=*#_.~+/!@0aIl\u2500\u00b7\u3042") * draw.choice([1, 2, 3, 7, 20, 77, 300]))
            parts.append(draw.choice(between) * draw.choice([0, 0, 1, 1, 2, 40]))
        text = "".join(parts)
        total += len(text.encode())
        yield text


def write_documents(path, texts):
    with open(path, "wb") as file:
        for text in texts:
            data = text.encode()
            file.write(struct.pack("<I", len(data)) + data)


def read_ids(path):
    data = pathlib.Path(path).read_bytes()
    at = 0
    while at < len(data):
        (count,) = struct.unpack_from("<I", data, at)
        yield list(struct.unpack_from(f"<{count}I", data, at + 4))
        at += 4 + 4 * count


def ranks_of(spec):
    """The tokens of a byte-level tokenizer.json in the order of its merges, as tiktoken has them."""
    letters = {letter: byte for byte, letter in goldens.bytes_to_letters().items()}
    special = {token["content"] for token in spec["added_tokens"]}
    tokens = [token for token, _ in sorted(spec["model"]["vocab"].items(), key=lambda item: item[1]) if token not in special]
    return {bytes(letters[letter] for letter in token): rank for rank, token in enumerate(tokens)}


def train(names=("gpt2", "llama3", "qwen2", "bert", "unigram")):
    """The paths of tokenizers of SIZE tokens, which are trained where they are missing, and of the file of ranks of the first."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = None

    def corpus():
        nonlocal texts
        texts = texts or list(mixed(12_000_000, seed=2))
        return texts

    def byte_level(pre, normalizer=None, **model):
        tokenizer = Tokenizer(models.BPE(**model))
        tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre, decoders.ByteLevel()
        tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=SIZE, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                                    special_tokens=["<|endoftext|>"], show_progress=False))
        return tokenizer

    def bert():
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
        return tokenizer

    def unigram():
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
        tokenizer.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=SIZE, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False))
        return tokenizer

    makers = {
        "gpt2": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
        "llama3": lambda: byte_level(goldens.split(goldens.LLAMA3), ignore_merges=True),
        "qwen2": lambda: byte_level(goldens.split(goldens.QWEN2), normalizers.NFC()),
        "bert": bert, "unigram": unigram,
    }  # fmt: skip
    paths = {}
    for name in names:
        paths[name] = FOLDER / f"{name}.json"
        if not paths[name].exists():
            print(f"training {name}", file=sys.stderr, flush=True)
            makers[name]().save(str(paths[name]), pretty=False)
    ranks = FOLDER / "trained.tiktoken"
    if not ranks.exists():
        spec = json.loads(paths["gpt2"].read_text())
        ranks.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks_of(spec).items()))
    return paths, ranks


def train_sentencepiece(names=("unigram", "unigram_bytes", "bpe", "bpe_bytes")):
    """The paths of SentencePiece's models of SIZE pieces, which are trained where they are missing."""
    import sentencepiece

    FOLDER.mkdir(parents=True, exist_ok=True)
    llama = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "split_digits": True, "allow_whitespace_only_pieces": True}
    options = {"unigram": {"model_type": "unigram", "character_coverage": 0.999},
               "unigram_bytes": {"model_type": "unigram", "normalization_rule_name": "nfkc_cf", "treat_whitespace_as_suffix": True, "user_defined_symbols": ["<sep>", "def"]},
               "bpe": {"model_type": "bpe", "character_coverage": 0.999}, "bpe_bytes": {"model_type": "bpe", "character_coverage": 0.999, **llama}}  # fmt: skip
    paths = {}
    for name in names:
        paths[name] = FOLDER / f"{name}.model"
        if not paths[name].exists():
            print(f"training {name} of sentencepiece", file=sys.stderr, flush=True)
            lines = (line[:4000] for text in mixed(12_000_000, seed=2) for line in text.splitlines() if "\0" not in line)
            part = paths[name].with_suffix(".part")
            with open(part, "wb") as out:
                sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_writer=out, vocab_size=SIZE, byte_fallback="bytes" in name, minloglevel=2,
                                                         num_threads=2, hard_vocab_limit=False, **options[name])
            part.rename(paths[name])
    return paths


def added():
    """The path of the trained Unigram of `tokenizers` with tokens that were added, of which some are cut out of changed texts and some take spaces with them."""
    path = FOLDER / "unigram_added.json"
    if not path.exists():
        spec = json.loads((FOLDER / "unigram.json").read_text())
        ids = {token: place for place, (token, _) in enumerate(spec["model"]["vocab"])}
        flags = {"def": {}, "<sep>": {"special": True, "normalized": False}, "--------": {"normalized": False}, "the": {"single_word": True}, "<": {"lstrip": True, "rstrip": True}}
        for content, more in flags.items():
            place = ids.setdefault(content, len(ids))
            spec["added_tokens"].append({"id": place, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False, **more})
        path.write_text(json.dumps(spec))
    return path


def precompiled():
    """The path of a tokenizer.json of the trained Unigram model, as XLM-R has it: with the model's map, pieces and scores."""
    from make_precompiled_goldens import map_and_pieces

    path = FOLDER / "precompiled.json"
    if not path.exists():
        charsmap, pieces = map_and_pieces(train_sentencepiece(("unigram",))["unigram"].read_bytes())
        spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
        rules = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
        path.write_text(json.dumps({
            "version": "1.0", "added_tokens": [], "normalizer": {"type": "Sequence", "normalizers": [rules, spaces]},
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": False},
        }))  # fmt: skip
    return path


def tiktoken_encoding(path, pattern):
    import tiktoken

    ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in path.read_bytes().splitlines()}
    return tiktoken.Encoding(path.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
