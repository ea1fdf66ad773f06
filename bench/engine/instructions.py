"""Instructions an element of two builds' engines, by callgrind: does a change of the code's shape cost anything?

    python bench/engine/instructions.py BEFORE AFTER [--cases A,B] [--turns N]

BEFORE and AFTER are folders of programs (build/release/bin of two trees), each with bench_engine_alone. A case runs its spec to the end, three times as long the second time; the
difference of the two counts, of all threads but the first, is that of the elements alone. One line of JSON a case: `before`, `after` and `ratio`, the least of the turns, and `spread`, the
larger of the two sides' median / least - 1. Other work changes a count by what the engine decides by time, which is how many rows a worker takes at once; so the least counts. Debian
package: valgrind.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

from daemon import BIN, ROOT, spec_text
from records import gzip_shards, large_records
from sample_data import shards

RECORDS = 8_000
PARSE = 'parse_example { feature { key: "d" bytes { length: 194 } } feature { key: "s" int64 {} } }'
LARGE = 'parse_example { feature { key: "d" bytes { length: 100000 } } }'
GLOBAL = "shuffle { global: true seed: 7 }"


def log(text):
    print(text, file=sys.stderr, flush=True)


def batch(size):
    return f"batch {{ batch_size: {size} drop_remainder: true }}"


def source(files, more=""):
    return f'tfrecord {{ files: "{files}" cycle_length: 8 {more} }}'


def buffered(size):
    return f"shuffle {{ buffer_size: {size} seed: 7 }}"


def pipeline(name, folder, files=""):
    """The stages of one of config/pipelines, without its repeat."""
    text = spec_text(name, files, folder).read_text() if files else (ROOT / f"config/pipelines/{name}.textproto").read_text()
    text = re.sub(r"^(name: .*|#.*|stage \{ repeat \{\} \})$", "", text, flags=re.MULTILINE)
    return text


class Cases:
    """Each gives the text of a spec's stages, how many elements one pass has, and how many passes the shorter run has."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.plain = shards("chess", RECORDS, log)
        self.files = f"{self.plain}/*.tfrecord"

    def stages(self, *stages):
        return "\n".join(f"stage {{ {stage} }}" for stage in stages)

    def front(self):
        return self.stages("range { stop: 200000 }", buffered(10_000), batch(500)), 200_000, 1

    def parse_in_order(self):
        return self.stages(source(self.files), PARSE, batch(500)), RECORDS, 10

    def parse_shuffled(self):
        return self.stages(source(self.files), buffered(4_000), PARSE, batch(500)), RECORDS, 10

    def parse_global(self):
        return self.stages(source(self.files), GLOBAL, PARSE, batch(500)), RECORDS, 10

    def gzip(self):
        files = f"{gzip_shards(self.plain, log)}/*.tfrecord.gz"
        return self.stages(source(files, 'compression: "GZIP"'), PARSE, batch(500)), RECORDS, 10

    def filter(self):
        return self.stages(source(self.files), PARSE, "filter { predicate: \"feature('s') > 0\" }", batch(500)), RECORDS, 10

    def chess(self):
        return pipeline("chess", self.folder, self.files), RECORDS, 10

    def chess_float32(self):
        return pipeline("chess_float32", self.folder, self.files), RECORDS, 10

    def large_in_order(self):
        files = large_records(100_000, 400, log)
        return self.stages(source(f"{files}/*.tfrecord"), LARGE, batch(16)), 400, 3

    def large_global(self):
        files = large_records(100_000, 400, log)
        return self.stages(source(f"{files}/*.tfrecord"), GLOBAL, LARGE, batch(16)), 400, 3

    def cache_memory(self, filename=""):
        stages = ("range { stop: 500 }", "map { out: 'image = random_uniform([192, 192], seed=1)' }", f"cache {{ {filename} }}", buffered(500), batch(50))
        return self.stages(*stages), 500, 4

    def flowers(self):
        return pipeline("flowers", self.folder, f"{shards('flowers', 200, log)}/*.tfrecord"), 200, 1

    def segmentation(self):
        folder = shards("segmentation", 24, log)
        return pipeline("segmentation", self.folder).replace("samples/segmentation", str(folder)), 24, 1


CASES = [name for name in vars(Cases) if not name.startswith("_") and name != "stages"]


def count(program, spec, folder):
    """Instructions of all threads but the first, which waits."""
    for path in folder.glob("counts*"):
        path.unlink()
    words = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/counts", program, "--spec", spec, "--workers", "1", "--seconds", "100000"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if "the stream ended" not in done.stderr:
        raise RuntimeError(f"{program}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    total = 0
    for path in folder.glob("counts-*"):
        if path.name != "counts-01":
            total += int(re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE)[1])
    return total


def instructions(programs, case, cases, folder):
    stages, elements, passes = getattr(cases, case)()
    counts = []
    for length in (passes, 3 * passes):
        spec = folder / f"{case}.textproto"
        spec.write_text(f'name: "{case}"\n{stages}\nstage {{ repeat {{ count: {length} }} }}\n')
        counts.append(count(programs / "bench_engine_alone", spec, folder))
    return (counts[1] - counts[0]) / (2 * passes * elements)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=CASES)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    log(f"data are made by {BIN}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = Cases(folder)
        for case in arguments.cases:
            sides = [[], []]
            for _ in range(arguments.turns):
                for side, programs in zip(sides, (arguments.before, arguments.after)):
                    side.append(instructions(programs, case, cases, folder))
            before, after = map(min, sides)
            spread = max(statistics.median(side) / min(side) - 1 for side in sides)
            print(json.dumps({"case": case, "before": round(before), "after": round(after), "ratio": round(after / before, 4), "spread": round(spread, 4)}), flush=True)


if __name__ == "__main__":
    main()
