"""JSON lines beside simdjson's own loop: a part of `./dev bench text`.

json            documents of some 1.7 KB, of which `id` (int64) and `text` (string) are decoded into batches of 256, by the engine (bench_engine_alone)
                and by two bare loops of simdjson (bench_loop_json), on as many threads: by its On-Demand interface ("simdjson"), which looks at a document up
                to the second field, and by its document tree ("simdjson, whole documents"), which checks each document to its end, as decode_json does.
                `scan` is the engine without decoding.

`ours` and `theirs` are medians of documents a second by turns on the same warm files, `ratio`, `min` and `max` the median and the extremes of ours /
theirs over the turns, `cpu_ratio` the median of their CPU seconds a document over ours.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

CASES = ("json",)
HERE = pathlib.Path(__file__).parent
BIN = HERE.parents[1] / "build" / "release" / "bin"
FILES = 8
WORDS = "the of and a to in is you that it he was for on are as with his they I at be this have from or one had by word but not what all".split()


def log(text):
    print(text, file=sys.stderr, flush=True)


def document(number, dice):
    """A row as a crawl has it: text with line ends and quotation marks, and things around it that nobody asks for."""
    paragraphs = []
    for _ in range(dice.randrange(2, 9)):
        words = dice.choices(WORDS, k=dice.randrange(40, 120))
        paragraphs.append(" ".join(words) + (' "quoted"' if dice.random() < 0.3 else "") + ".")
    text = "\n".join(paragraphs)
    meta = {"lang": "en", "score": dice.random(), "dump": "2026-10", "links": [f"/{dice.randrange(1000)}" for _ in range(5)], "ok": True}
    return json.dumps({"id": number, "url": f"https://example.org/{number}", "meta": meta, "text": text, "length": len(text)})


def write_corpus(folder, megabytes):
    dice, number = random.Random(5), 0
    some = [document(n, dice) for n in range(2000)]
    for index in range(FILES):
        written = 0
        with open(folder / f"part-{index}.jsonl", "w", encoding="utf-8") as file:
            while written < megabytes * 1_000_000 / FILES:
                line = some[number % len(some)] + "\n"
                number += 1
                file.write(line)
                written += len(line)
    return number


def run_json(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def spec(folder, decodes):
    features = 'feature { name: "id" dtype: "int64" } feature { name: "text" dtype: "string" }'
    path = folder / f"{'json' if decodes else 'scan'}.textproto"
    path.write_text("\n".join([
        'name: "json"',
        f'stage {{ json_lines {{ files: "{folder}/part-*.jsonl" cycle_length: {FILES} }} }}',
        f"stage {{ decode_json {{ {features} }} }}" if decodes else "",
        "stage { batch { batch_size: 256 drop_remainder: true } }",
        "stage { repeat {} }",
    ]) + "\n")  # fmt: skip
    return path


def compared(pairs):
    ratios = [ours["examples_per_s"] / theirs["examples_per_s"] for ours, theirs in pairs]
    cpu = [theirs["cpu_s_per_million"] / ours["cpu_s_per_million"] for ours, theirs in pairs]
    rates = [statistics.median(side["examples_per_s"] for side in sides) for sides in zip(*pairs)]
    return {
        "ours": round(rates[0]), "theirs": round(rates[1]), "ratio": round(statistics.median(ratios), 3), "cpu_ratio": round(statistics.median(cpu), 3),
        "min": round(min(ratios), 3), "max": round(max(ratios), 3), "runs": len(pairs),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    seconds, turns = (1, 1) if arguments.quick else (3, arguments.turns)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        documents = write_corpus(folder, 40 if arguments.quick else 200)
        size = sum(path.stat().st_size for path in folder.glob("part-*")) / documents
        log(f"{documents} documents of {size:.0f} bytes")
        loop = [BIN / "bench_loop_json", "--files", f"{folder}/part-*.jsonl", "--threads", arguments.threads, "--seconds", seconds]
        engine = [BIN / "bench_engine_alone", "--workers", arguments.threads, "--seconds", seconds, "--spec"]
        whole = [loop[0], "--whole", *loop[1:]]
        programs = ([*engine, spec(folder, True)], loop, whole, [*engine, spec(folder, False)])
        ran = [[run_json(words) for words in programs] for _ in range(turns)]
        more = {
            "scan": round(statistics.median(turn[3]["examples_per_s"] for turn in ran)), "bytes_per_document": round(size), "threads": arguments.threads,
            "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip
        for peer, place in (("simdjson", 1), ("simdjson, whole documents", 2)):
            print(json.dumps({"case": "json", "peer": peer, **compared([(turn[0], turn[place]) for turn in ran]), **more}), flush=True)


if __name__ == "__main__":
    main()
