"""Compares ids with `tokenizers`, `tiktoken` and `sentencepiece` on many documents, and on every code point: `./dev test text [--mb N] [--kinds A,B]
[--libraries A,B] [--campaign]`.

Every code point stands alone, between letters, and behind an apostrophe, a space, a digit and a line end. Runs are of one sign, with symbols that a user
may define between them: what is equally good but for rounding. The tokenizers have 32,768 tokens.
"""

import argparse
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

import campaigns
import corpora
from make_tokenizer_goldens import CL100K, O200K

PROGRAM = corpora.ROOT / "build/release/bin/tokenize_documents"


LIBRARIES = ("tokenizers", "tiktoken", "sentencepiece")


def ours(path, pattern, documents, special):
    ids = corpora.FOLDER / "ids.bin"
    subprocess.run([PROGRAM, path, pattern, documents, ids, "0", str(int(special))], check=True, stdout=subprocess.DEVNULL)
    return corpora.read_ids(ids)


def compare(name, texts, found, wanted):
    documents = differing = tokens = 0
    for text, a, b in zip(texts, found, wanted, strict=True):
        documents += 1
        tokens += len(b)
        if a != b:
            differing += 1
            place = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            if differing <= 3:
                print(f"{name}: document {documents - 1} of {len(text)} characters differs at id {place}: {a[place:place + 5]}, expected {b[place:place + 5]}")
    print(f"{name}: {documents} documents, {tokens} tokens, {differing} differ", flush=True)
    return differing == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=100, help="megabytes of documents; a tenth of it of runs")
    parser.add_argument("--kinds", default="code points,documents,runs", help="which of the three, with commas between them")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="whose ids are compared, with commas between them")
    parser.add_argument("--campaign", action="store_true", help="note it in tests/campaigns.jsonl")
    arguments = parser.parse_args()
    began = time.monotonic()
    libraries = arguments.libraries.split(",")
    if unknown := set(libraries) - set(LIBRARIES):
        parser.error(f"no such library: {', '.join(sorted(unknown))}")
    paths = ranks = None
    if {"tokenizers", "tiktoken"} & set(libraries):
        paths, ranks = corpora.train()
    models = corpora.train_sentencepiece() if "sentencepiece" in libraries else {}
    if "tokenizers" in libraries:
        paths["unigram_added"] = corpora.added()
    if "tokenizers" in libraries and models:
        paths["precompiled"] = corpora.precompiled()
    same = wrong = documents_compared = 0
    makers = {"code points": lambda: [corpora.code_point_text(block) for block in range(0x110000 // 4096)],
              "documents": lambda: list(corpora.mixed(arguments.mb * 1_000_000)),
              "runs": lambda: list(corpora.runs(arguments.mb * 100_000))}  # fmt: skip
    kinds = arguments.kinds.split(",")
    if unknown := set(kinds) - set(makers):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    for kind in kinds:
        texts = makers[kind]()
        documents = corpora.FOLDER / "documents.bin"
        corpora.write_documents(documents, texts)
        for name, path in paths.items() if "tokenizers" in libraries else ():
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(path))
            for special in (kind == "documents",):
                good = compare(f"{name}, {kind}", texts, ours(path, "", documents, special), (tokenizer.encode(text, add_special_tokens=special).ids for text in texts))
                same, wrong, documents_compared = same + good, wrong + (not good), documents_compared + len(texts)
        for pattern_name, pattern in (("cl100k_base", CL100K), ("o200k_base", O200K)) if "tiktoken" in libraries else ():
            encoding = corpora.tiktoken_encoding(ranks, pattern)
            good = compare(f"tiktoken {pattern_name}, {kind}", texts, ours(ranks, pattern_name, documents, False), (encoding.encode_ordinary(text) for text in texts))
            same, wrong, documents_compared = same + good, wrong + (not good), documents_compared + len(texts)
        for name, path in models.items():
            import sentencepiece

            processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
            good = compare(f"sentencepiece {name}, {kind}", texts, ours(path, "", documents, False), (processor.encode(text) for text in texts))
            same, wrong, documents_compared = same + good, wrong + (not good), documents_compared + len(texts)
    if arguments.campaign:
        found = "nothing" if not wrong else f"{wrong} of {same + wrong} comparisons differ"
        print(campaigns.note("text", documents_compared, "documents compared", time.monotonic() - began, found=found, kinds=kinds, libraries=libraries,
                             megabytes=arguments.mb if "documents" in kinds else 0, comparisons=same + wrong))
    print(f"{same} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
