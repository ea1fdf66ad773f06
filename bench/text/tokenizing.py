"""Tokenising English text beside `tiktoken` and Hugging Face's `tokenizers`: one line of JSON a peer.

All sides have the same documents and a byte-level BPE of 32,768 tokens (tests/text/corpora.py), one thread, and go by turns. In its turn each
goes through the documents once without the clock and then three times, of which the quickest counts. `ours` and `theirs` are
medians in tokens a second of processor time (`tokens_per_cpu_s` of ours), `ratio` and `cpu_ratio` the median of ours / theirs, `min` and `max` its
extremes. The ids are compared first.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "text"))

CASES = ("tokenize",)
ROUNDS = 3
PYTHON = os.environ.get("PENSTOCK_BENCH_TEXT_PYTHON", str(ROOT / "build/text-venv/bin/python"))
FOLDER = ROOT / "build" / "text"
PROGRAM = ROOT / "build/release/bin/tokenize_documents"


def peer(name, size):
    """What one peer takes for all documents, in a process of its own."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["RAYON_NUM_THREADS"] = "1"
    import time

    import corpora
    from tiktoken_ext import openai_public

    texts = list(corpora.english(size))
    if name == "tiktoken":
        encode = corpora.tiktoken_encoding(corpora.FOLDER / "trained.tiktoken", openai_public.r50k_pat_str).encode_ordinary
    else:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(corpora.FOLDER / "gpt2.json"))
        encode = lambda text: tokenizer.encode(text).ids  # noqa: E731
    wanted = [encode(text) for text in texts[:20]]
    tokens = sum(len(encode(text)) for text in texts)
    costs = []
    for _ in range(ROUNDS):
        before = time.process_time()
        for text in texts:
            encode(text)
        costs.append(time.process_time() - before)
    print(json.dumps({"tokens": tokens, "cpu_s": min(costs), "first": wanted}))


def ours(path, pattern, documents, ids):
    done = subprocess.run([PROGRAM, path, pattern, documents, ids, str(ROUNDS), "1"], check=True, capture_output=True, text=True)
    line = json.loads(done.stdout)
    return {"tokens": line["tokens"], "cpu_s": min(line["cpu_s"])}


def read_ids(path):
    data = path.read_bytes()
    at = 0
    while at < len(data):
        (count,) = struct.unpack_from("<I", data, at)
        yield list(struct.unpack_from(f"<{count}I", data, at + 4))
        at += 4 + 4 * count


def prepare(size):
    import corpora

    corpora.train(("gpt2",))
    corpora.write_documents(corpora.FOLDER / "english.bin", corpora.english(size))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", help="ignored: there is one")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = 2_000_000 if arguments.quick else 20_000_000
    runs = 1 if arguments.quick else 5
    more = ["--quick"] if arguments.quick else []
    if arguments.prepare:
        return prepare(size)
    if arguments.peer:
        return peer(arguments.peer, size)
    here = [PYTHON, str(pathlib.Path(__file__).resolve())]
    subprocess.run([*here, "--prepare", *more], check=True, stdout=sys.stderr)
    for name, path, pattern in (("tiktoken", FOLDER / "trained.tiktoken", "gpt2"), ("tokenizers", FOLDER / "gpt2.json", "")):
        mine, theirs = [], []
        for _ in range(runs):
            mine.append(ours(path, pattern, FOLDER / "english.bin", FOLDER / "ids.bin"))
            done = subprocess.run([*here, "--peer", name, *more], check=True, capture_output=True, text=True)
            theirs.append(json.loads(done.stdout.splitlines()[-1]))
        first = list(itertools.islice(read_ids(FOLDER / "ids.bin"), 20))
        if mine[0]["tokens"] != theirs[0]["tokens"] or first != theirs[0]["first"]:
            print(f"tokenize: other ids than {name}", file=sys.stderr)
            return 1
        rates = [[one["tokens"] / one["cpu_s"] for one in side] for side in (mine, theirs)]
        ratios = [a / b for a, b in zip(*rates)]
        median = statistics.median(ratios)
        print(json.dumps({"case": "tokenize", "peer": name, "ours": round(statistics.median(rates[0])), "theirs": round(statistics.median(rates[1])),
                          "tokens_per_cpu_s": round(statistics.median(rates[0])), "ratio": round(median, 3), "cpu_ratio": round(median, 3),
                          "runs": runs, "load": round(os.getloadavg()[0], 1), "min": round(min(ratios), 3), "max": round(max(ratios), 3)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
