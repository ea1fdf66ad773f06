"""JSON lines to packed sequences, and resuming in the middle: a part of `./dev bench text`.

pipeline        pages of English in JSON lines, of which `text` is decoded, tokenised by a byte-level BPE of 32,768 tokens and packed into batches of 8
                sequences of 2,048, one after another (bench_text_pack); beside a loop of json, tiktoken and NumPy, Grain's ConcatThenSplit over
                json and tokenizers, and Zephon's packing by "wrap" over the same tokenizer, one process each. `ours` and `theirs` are tokens a second of processor time.
resume          the same in a global shuffle, by windows of 10,000 documents: the time from a cursor to the first batch, with an index of tokens and
                without one, in a process whose plan is made (bench_engine_resume). At most 20 ms are asked for with the index, and a cursor of 1 KB.

`ratio`, `min` and `max` are the median and the extremes of ours / theirs over the turns.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CASES = ("pipeline", "resume")
ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"
PYTHON = os.environ.get("PENSTOCK_BENCH_TEXT_PYTHON", str(ROOT / "build/text-venv/bin/python"))
ZEPHON_PYTHON = os.environ.get("PENSTOCK_BENCH_ZEPHON_PYTHON", str(ROOT / "build/zephon-venv/bin/python"))
LENGTH, BATCH, FILES = 2048, 8, 4

PREPARE = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import corpora
corpora.train(("gpt2",))
files = [open(pathlib.Path(sys.argv[2]) / f"part-{i}.jsonl", "w") for i in range(int(sys.argv[4]))]
for i, text in enumerate(corpora.english(int(sys.argv[3]))):
    files[i % len(files)].write(json.dumps({"id": i, "url": f"https://example.org/{i}", "text": text}) + "\\n")
"""

# Each of these goes through all files once and prints what that took.
TIKTOKEN = """
import glob, json, sys, time
import numpy as np
sys.path.insert(0, sys.argv[1])
import corpora
from tiktoken_ext import openai_public
encode = corpora.tiktoken_encoding(corpora.FOLDER / "trained.tiktoken", openai_public.r50k_pat_str).encode_ordinary
length, batch = int(sys.argv[3]), int(sys.argv[4])
encode("warm")
before = time.process_time()
tokens, rest, batches = 0, np.zeros(0, np.int32), 0
for path in sorted(glob.glob(sys.argv[2])):
    for line in open(path, encoding="utf-8"):
        ids = np.array(encode(json.loads(line)["text"]), np.int32)
        tokens += len(ids)
        rest = np.concatenate((rest, ids))
        while len(rest) >= length * batch:
            rows, rest = rest[: length * batch].reshape(batch, length).copy(), rest[length * batch :]
            batches += 1
print(json.dumps({"tokens": tokens, "cpu_s": time.process_time() - before}))
"""
GRAIN = """
import glob, json, os, sys, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import numpy as np, grain, grain.experimental
from tokenizers import Tokenizer
sys.path.insert(0, sys.argv[1])
import corpora
tokenizer = Tokenizer.from_file(str(corpora.FOLDER / "gpt2.json"))
length, batch = int(sys.argv[3]), int(sys.argv[4])
lines = [line for path in sorted(glob.glob(sys.argv[2])) for line in open(path, encoding="utf-8")]
before = time.process_time()
count = 0
def ids(line):
    global count
    found = np.array(tokenizer.encode(json.loads(line)["text"]).ids, np.int32)
    count += len(found)
    return {"tokens": found}
documents = grain.MapDataset.source(lines).map(ids).to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
packed = grain.experimental.ConcatThenSplitIterDataset(documents, length_struct={"tokens": length}).batch(batch)
batches = sum(1 for _ in packed)
print(json.dumps({"tokens": count, "cpu_s": time.process_time() - before}))
"""
# It has no end; as many batches as a pass has. It makes some batches more than are taken.
ZEPHON = """
import json, os, resource, sys
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from transformers import PreTrainedTokenizerFast
from zephon import Pipeline
from zephon.io import Dataset
from zephon.work import MixtureSpec, StaticMixtureWorkSource
def cpu():
    return sum(sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
path = os.path.join(sys.argv[1], "../../build/text/gpt2.json")
tokenizer = PreTrainedTokenizerFast(tokenizer_file=path, eos_token="<|endoftext|>")
length, batch, steps = int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
before = cpu()
dataset = Dataset.from_path("train", os.path.dirname(sys.argv[2]))
work = StaticMixtureWorkSource(datasets=[dataset], mixture=MixtureSpec({"train": 1.0}), seed=1, chunk_size=256)
texts = Pipeline(work).decode_text().tokenize(tokenizer, field="text", special_tokens="none", add_attention_mask=False)
tokens = 0
for taken in texts.pack_flat(length, algorithm="wrap").batch(batch):
    tokens += taken.to_training()["input_ids"].size
    if tokens >= steps * length * batch:
        break
print(json.dumps({"tokens": tokens, "cpu_s": cpu() - before}), flush=True)
os._exit(0)
"""
PEERS = {"tiktoken": (PYTHON, TIKTOKEN), "grain and tokenizers": (PYTHON, GRAIN), "zephon": (ZEPHON_PYTHON, ZEPHON)}


def last_line(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def spec(folder, name, before_map="", batch=BATCH):
    path = folder / f"{name}.textproto"
    path.write_text(f"""
name: "{name}"
stage {{ json_lines {{ files: "{folder}/data/part-*.jsonl" cycle_length: {FILES} }} }}
{before_map}
stage {{ decode_json {{ feature {{ name: "text" dtype: "string" }} }} }}
stage {{ map {{ out: "tokens = tokenize(text, '{ROOT}/build/text/gpt2.json')" }} }}
stage {{ pack {{ sequence_length: {LENGTH} }} }}
stage {{ batch {{ batch_size: {batch} drop_remainder: true }} }}
stage {{ repeat {{}} }}
""")
    return path


def pipeline(folder, tokens, turns, threads):
    steps = tokens // (LENGTH * BATCH)
    path = spec(folder, "pipeline")
    for peer, (python, program) in PEERS.items():
        ratios, ours, theirs = [], [], []
        for _ in range(turns):
            run = last_line(BIN / "bench_text_pack", "--spec", path, "--steps", steps, "--workers", threads)
            ours.append(1e9 / run["cpu_ns_per_token"])
            other = last_line(python, "-c", program, ROOT / "tests/text", f"{folder}/data/part-*.jsonl", LENGTH, BATCH, steps)
            theirs.append(other["tokens"] / other["cpu_s"])
            ratios.append(ours[-1] / theirs[-1])
        print(json.dumps({
            "case": "pipeline", "peer": peer, "ours": round(statistics.median(ours)), "theirs": round(statistics.median(theirs)),
            "tokens_per_cpu_s": round(statistics.median(ours)), "ratio": round(statistics.median(ratios), 3),
            "cpu_ratio": round(statistics.median(ratios), 3), "min": round(min(ratios), 3), "max": round(max(ratios), 3), "runs": turns,
            "threads": threads, "load": round(os.getloadavg()[0], 1),
        }), flush=True)  # fmt: skip


def resume(folder, tokens, turns):
    """At three places of the pass, one of them late in a window."""
    shuffle = "stage { shuffle { global: true seed: 1 } }"
    path = spec(folder, "resume", shuffle)
    steps = tokens // (LENGTH * BATCH)
    for with_index in (False, True):
        if with_index:
            subprocess.run([BIN / "penstock", "index", "--tokens", path], check=True, stdout=sys.stderr)
        asked = {"asked_ms": 20, "asked_cursor_bytes": 1024} if with_index else {}
        for part in (0.25, 0.5, 0.9):
            found = last_line(BIN / "bench_engine_resume", "--spec", path, "--step", int(steps * part), "--runs", turns)
            print(json.dumps({"case": "resume", "index": with_index, "step": int(steps * part), **asked,
                              **found, "load": round(os.getloadavg()[0], 1)}), flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    wanted = arguments.cases.split(",")
    turns = 1 if arguments.quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        size = 4_000_000 if arguments.quick else 60_000_000
        (folder / "data").mkdir()
        subprocess.run([PYTHON, "-c", PREPARE, ROOT / "tests/text", folder / "data", str(size), str(FILES)], check=True, stdout=sys.stderr)
        counted = last_line(PYTHON, "-c", TIKTOKEN, ROOT / "tests/text", f"{folder}/data/part-*.jsonl", LENGTH, BATCH)["tokens"]
        if "pipeline" in wanted:
            pipeline(folder, counted, turns, arguments.threads)
        if "resume" in wanted:
            resume(folder, counted, max(turns, 3))


if __name__ == "__main__":
    main()
