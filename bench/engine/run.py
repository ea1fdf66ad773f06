"""Reading, ordering and resuming, alone and beside peers: `./dev bench engine [--quick] [--cases A,B]`.

One line of JSON a figure; everything else goes to stderr. Sides that are compared run by turns on the same warm files: `ours` and
`theirs` are medians in examples/s, `ratio`, `min` and `max` the median and the extremes of ours / theirs over the turns, `cpu_ratio` the
median of their CPU seconds an example over ours, `cores_ns` how far the processors' caches lay apart (median and most of the turns).

front           `ns_per_record`: which record fills which row, and nothing else. `source` says what stands before shuffle(10000) and batch:
                `range`, the numbers up to `records`, or `tfrecord`, 8 files in turns, of which only the front's own work counts.
parse_in_order  read, both checksums, Example parse, `d` and `s` copied into batches of 512. `ours_by` is `engine` where nobody takes the
parse_shuffled  batches (as nobody takes those of the loop), and `daemon` where a Python loop does (as one takes tf.data's).
gzip            8 shards, against the bare inflate of ISA-L on as many threads: `read` is inflate and both checksums, `parsed` also
                the parse of `s`.
global_shuffle  the chess pipeline with `global: true` against a buffer of 10,000; records of 100 KB against the same in order.
cold_shuffle    one pass over files that are not in the page cache, from the start of `penstock run` on, against the same in order: `what` is
                `global`, `read_first`, or `blocks` (of about a mebibyte, 64 among each other).
resume          `ms`: what `penstock run --steps 1 --resume` takes longer than the same without; `ratio` of the two.
cache_memory    images of 192 x 192 float32 from a cache, shuffled and batched, against copying them with as many threads (`memcpy`).
cache_file      the same from a cache in a file.
memory          bytes of the daemon for a shuffle's buffer over those of the waiting records; growth over 10 passes; bytes a record of
                a global shuffle.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

import penstock
from cores import Cores
from daemon import BIN, FILES_AT_ONCE, ctl, daemon, memory_bytes, spec_text
from records import gzip_shards, large_records, mean_record_bytes
from sample_data import cool, shards, warm

HERE = pathlib.Path(__file__).parent
PEERS = HERE.parent / "peers"
BUFFER = 10_000
LARGE_BYTES = 100_000
MIB = 1 << 20
D = 'feature { key: "d" bytes { length: 194 } }'
S = 'feature { key: "s" int64 {} }'


def log(text):
    print(text, file=sys.stderr, flush=True)


def show(**fields):
    print(json.dumps(fields), flush=True)


def run_json(command, seconds):
    """Runs one side and returns its line of JSON."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120 + 20 * seconds)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def scaled(result, part):
    """The result for all records, where one of `part` was counted."""
    return {"examples_per_s": result["examples_per_s"] * part, "cpu_s_per_million": result["cpu_s_per_million"] / part}


def parse_spec(name, files, order="", features=D + " " + S, source="", batch=512, repeat=True):
    return "\n".join([
        f'name: "{name}"',
        f'stage {{ tfrecord {{ files: "{files}" cycle_length: {FILES_AT_ONCE} {source} }} }}',
        f"stage {{ {order} }}" if order else "",
        f"stage {{ parse_example {{ {features} }} }}",
        f"stage {{ batch {{ batch_size: {batch} drop_remainder: true }} }}",
        "stage { repeat {} }" if repeat else "",
    ]) + "\n"


def buffered(size):
    return f"shuffle {{ buffer_size: {size} seed: 7 }}"


GLOBAL = "shuffle { global: true seed: 7 }"


class Bench:
    def __init__(self, arguments, folder):
        self.quick = arguments.quick
        self.runs = 1 if arguments.quick else arguments.runs
        self.seconds = 1.0 if arguments.quick else arguments.seconds
        self.records = 200_000 if arguments.quick else 2_000_000
        self.tf_python = arguments.tf_python
        self.folder = pathlib.Path(folder)
        self.failed = False

    def chess(self):
        folder = shards("chess", self.records, log)
        warm(folder)
        return f"{folder}/*.tfrecord"

    def write(self, name, text):
        path = self.folder / (name + ".textproto")
        path.write_text(text)
        return path

    # ---- sides: each returns {"examples_per_s", "cpu_s_per_million"} ----

    def engine(self, spec):
        return run_json([BIN / "bench_engine_alone", "--spec", spec, "--seconds", self.seconds], self.seconds)

    def taken(self, spec, name):
        """Ours, with a Python loop that takes the batches of a daemon."""
        with tempfile.TemporaryDirectory() as folder, daemon(folder) as (process, socket):
            ctl(socket, "create", str(spec))
            return run_json([sys.executable, PEERS / "take_penstock.py", "--socket", socket, "--pipeline", name, "--daemon-pid",
                             process.pid, "--seconds", self.seconds], self.seconds)

    def compare(self, case, peer, ours, theirs, **more):
        """All runs of one pair, and its line."""
        pairs = []
        cores = Cores()
        for run in range(self.runs):
            cores.look()
            pair = ours(), theirs()
            pairs.append(pair)
            log(f"{case} {peer} {run + 1}/{self.runs}: {pair[0]['examples_per_s']:,.0f}/s, theirs {pair[1]['examples_per_s']:,.0f}/s")

        def medians(field):
            return [statistics.median(pair[side][field] for pair in pairs) for side in (0, 1)]

        rates, costs = medians("examples_per_s"), medians("cpu_s_per_million")
        ratios = [a["examples_per_s"] / b["examples_per_s"] for a, b in pairs]
        cpu_ratios = [b["cpu_s_per_million"] / a["cpu_s_per_million"] for a, b in pairs]
        show(case=case, peer=peer, ours=round(rates[0]), theirs=round(rates[1]), ratio=round(statistics.median(ratios), 3),
             cpu_ratio=round(statistics.median(cpu_ratios), 3), runs=self.runs, min=round(min(ratios), 3), max=round(max(ratios), 3),
             ours_cpu_s_per_million=round(costs[0], 4), theirs_cpu_s_per_million=round(costs[1], 4), **cores.fields(), **more)

    # ---- cases ----

    def front(self, case):
        few, many = 100_000, 10_000_000 if self.quick else 100_000_000
        measured = [("range", few, ["--count", few, "--records", 10_000_000]), ("range", many, ["--count", many, "--records", many]),
                    ("tfrecord", self.records, ["--files", self.chess(), "--records", self.records])]
        costs = [[] for _ in measured]
        for _ in range(self.runs):
            for cost, (_, _, words) in zip(costs, measured):
                cost.append(run_json([BIN / "bench_engine_front", *words], 60)["ns_per_record"])
        for cost, (source, records, _) in zip(costs, measured):
            show(case=case, source=source, records=records, ns_per_record=round(statistics.median(cost), 2), runs=self.runs,
                 min=round(min(cost), 2), max=round(max(cost), 2))

    def parse(self, case):
        files = self.chess()
        buffer = BUFFER if case == "parse_shuffled" else 0
        spec = self.write(case, parse_spec(case, files, buffered(buffer) if buffer else ""))
        self.compare(case, "loop", lambda: self.engine(spec),
                     lambda: run_json([BIN / "bench_loop_parse", "--files", files, "--shuffle", buffer, "--seconds", self.seconds],
                                      self.seconds), ours_by="engine")
        for form in ("raw", "parsed"):
            self.compare(case, f"tf.data {form}", lambda: self.taken(spec, case),
                         lambda: run_json([self.tf_python, HERE / "take_tensorflow.py", "--files", files, "--form", form, "--shuffle",
                                           buffer, "--seconds", self.seconds], self.seconds), ours_by="daemon")

    def gzip(self, case):
        records = self.records // 2  # to compress the rest would only take time
        folder = gzip_shards(shards("chess", records, log), log)
        warm(folder)
        files = f"{folder}/*.tfrecord.gz"
        peer = [BIN / "bench_loop_inflate", "--files", files, "--records", records, "--seconds", self.seconds]
        # All records are read and verified in both; in one nearly all are then left out.
        for what, part in (("read", 64), ("parsed", 1)):
            order = f"shard {{ num_shards: {part} index: 0 }}" if part > 1 else ""
            spec = self.write(f"gzip_{what}", parse_spec(case, files, order, S, 'compression: "GZIP"'))
            self.compare(case, "isa-l", lambda: scaled(self.engine(spec), part), lambda: run_json(peer, self.seconds), what=what,
                         ours_by="engine")

    def global_shuffle(self, case):
        specs = {}
        for name, order in (("buffered", buffered(BUFFER)), ("global", GLOBAL)):
            text = spec_text("chess_float32", self.chess(), self.folder).read_text()
            before = buffered(BUFFER)
            if before not in text:
                raise RuntimeError("the spec's shuffle has another form")
            specs[name] = self.write(f"chess_{name}", text.replace(before, order))
        self.engine(specs["global"])  # builds the index
        self.compare(case, "buffered", lambda: self.engine(specs["global"]), lambda: self.engine(specs["buffered"]), ours_by="engine")

        folder = large_records(LARGE_BYTES, 400 if self.quick else 4_000, log)
        warm(folder)
        features = f'feature {{ key: "d" bytes {{ length: {LARGE_BYTES} }} }}'
        large = {name: self.write(f"large_{name}", parse_spec("large", f"{folder}/*.tfrecord", order, features, batch=16))
                 for name, order in (("global", GLOBAL), ("sequential", ""))}
        self.engine(large["global"])
        self.compare(case, "sequential", lambda: self.engine(large["global"]), lambda: self.engine(large["sequential"]),
                     record_bytes=LARGE_BYTES, ours_by="engine")

    def cold_shuffle(self, case):
        chess = shards("chess", self.records, log)
        large = large_records(LARGE_BYTES, 400 if self.quick else 4_000, log)
        kinds = [(chess, D + " " + S, 512, 4096), (large, f'feature {{ key: "d" bytes {{ length: {LARGE_BYTES} }} }}', 16, 10)]
        for folder, features, batch, block in kinds:
            orders = {"global": GLOBAL, "read_first": "shuffle { global: true seed: 7 read_first: true }",
                      "blocks": f"shuffle {{ global: true seed: 7 block_size: {block} buffer_size: {64 * block} }}", "in order": ""}
            specs = {}
            for what, order in orders.items():
                text = parse_spec("cold", f"{folder}/*.tfrecord", order, features, batch=batch, repeat=False)
                specs[what] = self.write(f"cold_{what}".replace(" ", "_"), text)
            self.run_spec(specs["global"], "--steps", "1")  # builds the index
            times = {what: [] for what in specs}
            for _ in range(self.runs):
                for what, spec in specs.items():
                    cool(folder)
                    times[what].append(self.run_spec(spec))
            records = self.records if folder == chess else 400 if self.quick else 4_000
            for what in ("global", "read_first", "blocks"):
                ratios = [b / a for a, b in zip(times[what], times["in order"])]
                show(case=case, peer="in order", what=what, record_bytes=round(mean_record_bytes(f"{folder}/*.tfrecord")),
                     ours=round(records / statistics.median(times[what])), theirs=round(records / statistics.median(times["in order"])),
                     ratio=round(statistics.median(ratios), 3), runs=self.runs, min=round(min(ratios), 3), max=round(max(ratios), 3))

    def cache(self, case):
        images, batch, side = 500 if self.quick else 2_000, 64, 192
        kept = f'filename: "{self.folder}/kept"' if case == "cache_file" else ""
        spec = self.write(case, "\n".join([
            f'name: "{case}"',
            f"stage {{ range {{ stop: {images} }} }}",
            f'stage {{ map {{ out: "image = random_uniform([{side}, {side}], seed=1)" }} }}',
            f"stage {{ cache {{ {kept} }} }}",
            f"stage {{ shuffle {{ buffer_size: {images} seed: 7 }} }}",
            "stage { repeat {} }",
            f"stage {{ batch {{ batch_size: {batch} drop_remainder: true }} }}",
        ]) + "\n")
        copy = [BIN / "bench_loop_copy", "--elements", images, "--bytes", 4 * side * side, "--batch", batch, "--threads", 2,
                "--seconds", self.seconds]
        # The first two passes fill the cache, and check what is in the file.
        engine = [BIN / "bench_engine_alone", "--spec", spec, "--workers", 2, "--after", 2 * images, "--seconds", self.seconds]
        self.compare(case, "memcpy", lambda: run_json(engine, self.seconds), lambda: run_json(copy, self.seconds), ours_by="engine")

    def resume(self, case):
        files = self.chess()
        # One record a step, so that the step's number says how far in it is.
        steps = self.records // 2
        cases = [("in order", parse_spec("resume", files, features=S, batch=1), steps),
                 ("shuffle(10000)", parse_spec("resume", files, buffered(BUFFER), S, batch=1), steps * 9 // 5)]
        for name, text, step in cases:
            spec = self.write("resume", text)
            cursor = self.folder / "cursor"
            log(f"resume {name}: going to step {step}")
            self.run_spec(spec, "--steps", str(step), "--cursor-out", cursor)
            self.run_spec(spec, "--steps", "1", "--resume", cursor)  # builds the index
            times = {"from the start": [], "resumed": []}
            for _ in range(2 * self.runs + 1):
                times["from the start"].append(self.run_spec(spec, "--steps", "1"))
                times["resumed"].append(self.run_spec(spec, "--steps", "1", "--resume", cursor))
            plain, resumed = times.values()
            extra = [b - a for a, b in zip(plain, resumed)]
            show(case=case, order=name, step=step, ms=round(1e3 * statistics.median(extra), 2), runs=len(extra),
                 min=round(1e3 * min(extra), 2), max=round(1e3 * max(extra), 2), first_ms=round(1e3 * statistics.median(plain), 2),
                 ratio=round(statistics.median(resumed) / statistics.median(plain), 3), cursor_bytes=cursor.stat().st_size)

    def run_spec(self, spec, *words):
        """Seconds of one `penstock run`."""
        begin = time.perf_counter()
        # Without a timeout: to wait with one means to look every 50 ms.
        subprocess.run([BIN / "penstock", "run", spec, *words], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin

    def memory(self, case):
        files = self.chess()
        buffer = self.records // 2
        record_bytes = mean_record_bytes(files)
        waiting = self.bytes_at(parse_spec(case, files, buffered(buffer)), [buffer])[0]
        nothing = self.bytes_at(parse_spec(case, files), [buffer])[0]
        show(case=case, what="shuffle", buffer_size=buffer, record_bytes=round(record_bytes, 1),
             bytes_per_record=round((waiting - nothing) / buffer, 1), ratio=round((waiting - nothing) / (buffer * record_bytes), 3))

        permuted = self.bytes_at(parse_spec(case, files, GLOBAL), [buffer])[0]
        show(case=case, what="global shuffle", records=self.records, bytes_per_record=round((permuted - nothing) / self.records, 1))

        epoch = 200_000
        few = f"{shards('chess', epoch, log)}/*.tfrecord"
        marks = [epoch * count for count in range(1, 12)]
        for field in ("VmRSS", "RssAnon"):
            passes = self.bytes_at(parse_spec(case, few, buffered(BUFFER)), marks, field)
            show(case=case, what="10 passes", field=field, mib_after_first=round(passes[0] / MIB, 2),
                 mib_after_last=round(passes[-1] / MIB, 2), mib_max=round(max(passes) / MIB, 2),
                 growth=round(passes[-1] / passes[0] - 1, 4))

    def bytes_at(self, text, marks, field="RssAnon"):
        """The memory of a daemon each time that so many rows have been taken. The ring is no part of RssAnon."""
        spec = self.write("memory", text)
        measured = []
        with tempfile.TemporaryDirectory() as folder, daemon(folder) as (process, socket):
            ctl(socket, "create", str(spec))
            rows = 0
            for batch in penstock.attach("memory", socket=socket):
                rows += len(batch["s"])
                if rows >= marks[len(measured)]:
                    measured.append(memory_bytes(process.pid, field))
                    if len(measured) == len(marks):
                        return measured
        raise RuntimeError("the stream ended")

    def run(self, case):
        try:
            CASES[case](self, case)
        except (RuntimeError, OSError, ValueError, subprocess.SubprocessError, penstock.Error) as error:
            log(f"FAILED: {case}: {error}")
            self.failed = True


CASES = {"front": Bench.front, "parse_in_order": Bench.parse, "parse_shuffled": Bench.parse, "gzip": Bench.gzip,
         "global_shuffle": Bench.global_shuffle, "cold_shuffle": Bench.cold_shuffle, "cache_memory": Bench.cache, "cache_file": Bench.cache,
         "resume": Bench.resume, "memory": Bench.memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf-python", required=True, help="a Python with TensorFlow")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="fewer records, one run of one second")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(CASES)}")

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        for case in arguments.cases:
            bench.run(case)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
