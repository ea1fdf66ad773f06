"""Handing batches over, sharing, attaching and coming back: `./dev bench ring [--quick] [--cases A,B]`.

One line of JSON a figure; everything else goes to stderr.

handover_12MiB  a ready batch of 12 MiB to a Python `for` loop: `batches_per_s` and `cpu_us_per_batch`, both sides together. As a peer one
                memcpy of as many bytes, and torch's DataLoader with one worker that hands over a tensor that is ready.
torch_views     the same to a loop over torch tensors: `read` views that nobody writes to, `write` one write into each, `copy` copies.
own_size        ready batches of 6,144 rows, 12 MiB, to a Python consumer whose batches are as large (`whole`), a quarter (`views`), three quarters
                (two of four are views, the others are copied together) and half as large again (all are copied): `cpu_us_per_12MiB`,
                both sides together.
handover_spin   C++, both sides spinning: `p50_ns` from before the publishing until the consumer has it.
wake            C++: until a consumer that sleeps has it, and `ratio` of that to a bare futex wake-up.
futex_calls     system calls for batches that nobody waited for.
broadcast_8     the daemon's CPU a batch of chess with eight consumers, and with one (`peer`, `theirs`): `cpu_ratio` is theirs / ours.
shared_prefix   two pipelines over the same photographs, which differ behind decoding and resizing: `ours_per_s`, the rows of both a second, and as the
                peer `alone` the same with `shared_prefix { max_bytes: 0 }`; `cpu_ratio` is the daemon's CPU a row, theirs / ours. `decodes_per_row` is 0.5
                where each element is decoded once for both.
attach          `ms` from the request to the first batch of a running pipeline: C++ and Python.
return          `ms` from a kill -9 of the daemon under its supervisor to the next batch, and `start_ms`, what a daemon's start takes.
step_time       Keras' model.fit and a torch loop over flowers, a small convolution as the model: `step_ms`, the trainer's CPU and the
                daemon's a step in milliseconds, beside PyDataset and tf.data, and beside DataLoader. The peers' CPU is all the trainer's.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

import numpy as np
import penstock
from daemon import BIN, ctl, daemon, spec_text
from sample_data import shards, warm
from window import process_cpu_seconds

HERE = pathlib.Path(__file__).parent
BATCH_BYTES = 12 << 20
CASES = ["handover_12MiB", "torch_views", "own_size", "cpp", "broadcast_8", "shared_prefix", "attach", "return", "step_time"]

PREFIX = """
stage { tfrecord { files: "%s" cycle_length: 8 } }
stage { shuffle { buffer_size: 500 seed: 7 } }
stage { parse_example { feature { key: "image/encoded" bytes {} } feature { key: "image/class/label" int64 {} } } }
stage { map {
  let: "photo = decode_jpeg(feature(\\"image/encoded\\"), channels=3)"
  out: "photo = uint8(resize(photo, [192, 192]))"
  out: "label = feature(\\"image/class/label\\")"
} }
"""
PREFIX_PIPELINES = {
    "train": """
stage { map { out: "image = float32(random_flip_left_right(photo, seed=1)) / 127.5 - 1" out: "label = label" } }
stage { batch { batch_size: 40 } }
""",
    "small": """
stage { map { out: "image = float32(photo[16:176, 16:176]) / 255" out: "label = label" } }
stage { batch { batch_size: 64 } }
""",
}


def log(text):
    print(text, file=sys.stderr, flush=True)


def show(**fields):
    print(json.dumps(fields), flush=True)


@contextlib.contextmanager
def ready_batches(folder):
    """A producer of ready batches: yields (process, socket)."""
    socket = os.path.join(folder, "handover.sock")
    producer = subprocess.Popen([BIN / "bench_handover", socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if producer.stdout.readline().strip() != "ready":
            raise RuntimeError("bench_handover did not start")
        yield producer, socket
    finally:
        producer.stdin.close()
        producer.wait()


def take_for(seconds, batches, producer_pid):
    """(batches a second, CPU microseconds a batch of both sides)."""

    def cpu_seconds():
        return time.process_time() + process_cpu_seconds(producer_pid)

    count = begin = 0
    for batch in batches:
        for array in batch.values():
            array.item(0)
            array.item(array.size - 1)
        now = time.perf_counter()
        if not begin:
            begin, cpu = now, cpu_seconds()
            continue
        count += 1
        if now - begin >= seconds:
            break
    return count / (now - begin), (cpu_seconds() - cpu) / count * 1e6


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def median_of(values, digits=3):
    return round(statistics.median(values), digits)


class Bench:
    def __init__(self, arguments):
        self.runs = 1 if arguments.quick else arguments.runs
        self.seconds = 1.0 if arguments.quick else arguments.seconds
        self.torch_python = arguments.torch_python
        self.tf_python = arguments.tf_python
        self.photos = arguments.photos

    def spec(self, folder):
        files = shards("chess", 200_000, log)
        warm(files)
        return str(spec_text("chess_float32", f"{files}/*.tfrecord", folder))

    def handover(self, case):
        rates, costs, copies, theirs = [], [], [], []
        for _ in range(self.runs):
            with tempfile.TemporaryDirectory() as folder, ready_batches(folder) as (producer, socket):
                rate, cost = take_for(self.seconds, penstock.attach("handover", socket=socket), producer.pid)
                rates.append(rate)
                costs.append(cost)
            copies.append(self.memcpy())
            if self.torch_python:
                theirs.append(self.torch_side("dataloader"))
        figures = {"batches_per_s": round(statistics.median(rates)), "cpu_us_per_batch": median_of(costs, 2), "runs": self.runs}
        for peer, other in (("one memcpy", copies), ("torch DataLoader", theirs)):
            if other:
                ratios = [ours / rate for ours, rate in zip(rates, other)]
                show(case=case, peer=peer, **figures, theirs_per_s=round(statistics.median(other)), ratio=median_of(ratios, 1),
                     min=round(min(ratios), 1), max=round(max(ratios), 1))

    def own_size(self, case):
        sizes = {"whole": None, "views": 1536, "three_quarters": 4608, "one_and_a_half": 9216}
        found = {name: [] for name in sizes}
        for _ in range(self.runs):
            for name, size in sizes.items():
                with tempfile.TemporaryDirectory() as folder, ready_batches(folder) as (producer, socket):
                    loader = penstock.attach("handover", socket=socket, batch_size=size)
                    rate, cost = take_for(self.seconds, loader, producer.pid)
                    stats = loader.stats()
                    rows = size or 6144
                    found[name].append((cost * 6144 / rows, rate * rows * 2048 / (1 << 30), stats["joined"]))
                    loader.close()
        for name, runs in found.items():
            show(case=case, size=name, cpu_us_per_12MiB=median_of([run[0] for run in runs], 2), gib_per_s=median_of([run[1] for run in runs], 2),
                 joins=runs[-1][2] > 0, runs=len(runs))

    def memcpy(self):
        source, target = np.ones(BATCH_BYTES, np.uint8), np.zeros(BATCH_BYTES, np.uint8)
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < self.seconds / 2:
            np.copyto(target, source)
            count += 1
        return count / (time.perf_counter() - begin)

    def torch_side(self, what, socket="-"):
        done = subprocess.run([self.torch_python, HERE / "take_torch.py", what, socket, str(self.seconds)], capture_output=True,
                              text=True, timeout=60 + 20 * self.seconds)
        if done.returncode != 0:
            raise RuntimeError(f"take_torch.py {what}: {done.stderr[-2000:]}")
        return float(done.stdout.strip().splitlines()[-1])

    def torch_views(self, case):
        if not self.torch_python:
            return log(f"{case}: not run without --torch-python")
        rates = {what: [] for what in ("read", "write", "copy")}
        for _ in range(self.runs):
            for what, found in rates.items():
                with tempfile.TemporaryDirectory() as folder, ready_batches(folder) as (_, socket):
                    found.append(self.torch_side(what, socket))
        for what, found in rates.items():
            show(case=case, way=what, batches_per_s=round(statistics.median(found)), us_per_batch=median_of([1e6 / rate for rate in found], 1),
                 runs=self.runs)

    def cpp(self, case):
        for _ in range(self.runs):
            subprocess.run([BIN / "bench_ring_wake", str(round(100 * self.seconds))], check=True)

    def taking(self, socket, consumers):
        return subprocess.Popen([BIN / "bench_ring_take", socket, "chess_float32", str(consumers)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)

    def daemon_cost(self, consumers):
        """CPU microseconds of the daemon for each batch that all of them have taken."""
        with tempfile.TemporaryDirectory() as folder:
            spec = self.spec(folder)
            with daemon(folder) as (process, socket):
                ctl(socket, "create", spec)
                taker = self.taking(socket, consumers)
                taker.stdout.readline()

                def look():
                    taker.stdin.write("\n")
                    taker.stdin.flush()
                    return json.loads(taker.stdout.readline())["taken"], process_cpu_seconds(process.pid)

                look()
                time.sleep(self.seconds / 2)
                taken, cpu = look()
                time.sleep(self.seconds)
                taken_later, cpu_later = look()
                taker.stdin.close()
                taker.wait()
                return (cpu_later - cpu) / (taken_later - taken) * 1e6

    def broadcast(self, case):
        ours, theirs = [], []
        for _ in range(self.runs):
            ours.append(self.daemon_cost(8))
            theirs.append(self.daemon_cost(1))
            log(f"{case}: {ours[-1]:.1f} and {theirs[-1]:.1f} microseconds of CPU a batch")
        ratios = [one / eight for one, eight in zip(theirs, ours)]
        show(case=case, peer="one consumer", ours_cpu_us_per_batch=median_of(ours, 1), theirs_cpu_us_per_batch=median_of(theirs, 1),
             cpu_ratio=median_of(ratios), min=round(min(ratios), 3), max=round(max(ratios), 3), runs=self.runs)

    def two_pipelines(self, files, config):
        """(rows a second of both, the daemon's CPU microseconds a row, decodes a row) of two pipelines over the same photographs."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "config.textproto").write_text(config)
            with daemon(folder, "--config", os.path.join(folder, "config.textproto")) as (process, socket):
                names = list(PREFIX_PIPELINES)
                for name in names:
                    path = pathlib.Path(folder, name + ".textproto")
                    path.write_text(f'name: "{name}"\n' + PREFIX % f"{files}/*.tfrecord" + PREFIX_PIPELINES[name] + "stage { repeat {} }\n")
                    ctl(socket, "create", str(path))
                ends = threading.Event()

                def take(loader):
                    for _ in loader:
                        if ends.is_set():
                            return

                def look():
                    lines = ctl(socket, "top", "--count", "1", "--json").splitlines()
                    stats = [json.loads(line) for line in lines if line]
                    shared = [prefix for one in stats for prefix in one["shared_prefix"]]
                    return (time.perf_counter(), process_cpu_seconds(process.pid), sum(int(one["rows"]) for one in stats),
                            sum(int(prefix["hits"]) for prefix in shared))

                loaders = [penstock.attach(name, socket=socket) for name in names]
                takers = [threading.Thread(target=take, args=[loader]) for loader in loaders]
                for taker in takers:
                    taker.start()
                time.sleep(self.seconds / 2)
                begin = look()
                time.sleep(2 * self.seconds)
                end = look()
                ends.set()
                for taker in takers:
                    taker.join()
                seconds, cpu, rows, hits = (later - before for later, before in zip(end, begin))
                return rows / seconds, cpu / rows * 1e6, (rows - hits) / rows

    def shared_prefix(self, case):
        files = shards("flowers", 4_000, log, self.photos)
        warm(files)
        ours, theirs = [], []
        for _ in range(self.runs):
            ours.append(self.two_pipelines(files, ""))
            theirs.append(self.two_pipelines(files, "shared_prefix { max_bytes: 0 }"))
            log(f"{case}: {ours[-1][0]:.0f} and {theirs[-1][0]:.0f} rows a second, {ours[-1][2]:.2f} decodes a row")
        ratios = [one[0] / other[0] for one, other in zip(ours, theirs)]
        show(case=case, peer="alone", ours_per_s=round(statistics.median(one[0] for one in ours)),
             theirs_per_s=round(statistics.median(one[0] for one in theirs)), ratio=median_of(ratios), min=round(min(ratios), 3),
             max=round(max(ratios), 3), cpu_ratio=median_of([other[1] / one[1] for one, other in zip(ours, theirs)]),
             decodes_per_row=median_of([one[2] for one in ours], 2), runs=self.runs)

    def attach(self, case):
        native, python = [], []
        with tempfile.TemporaryDirectory() as folder:
            spec = self.spec(folder)
            with daemon(folder) as (_, socket):
                ctl(socket, "create", spec)
                for _ in range(5 * self.runs):
                    taker = self.taking(socket, 1)
                    native.append(json.loads(taker.stdout.readline())["first_batch_ms"])
                    taker.stdin.close()
                    taker.wait()
                    begin = time.perf_counter()
                    with penstock.attach("chess_float32", socket=socket) as loader:
                        next(loader)
                        python.append((time.perf_counter() - begin) * 1e3)
        for language, found in (("C++", native), ("Python", python)):
            show(case=case, language=language, ms=median_of(found), min=round(min(found), 3), max=round(max(found), 3), runs=len(found))

    def starting(self, folder):
        """Milliseconds from a daemon's start until it answers."""
        begin = time.perf_counter()
        with daemon(folder):
            return (time.perf_counter() - begin) * 1e3

    def coming_back(self, case):
        found, starts = [], []
        for _ in range(3 * self.runs):
            with tempfile.TemporaryDirectory() as folder:
                starts.append(self.starting(folder))
                found.append(self.one_return(folder, self.spec(folder)))
        show(case=case, ms=median_of(found, 1), start_ms=median_of(starts, 1), min=round(min(found), 1), max=round(max(found), 1), runs=len(found))

    def one_return(self, folder, spec):
        socket, state = os.path.join(folder, "p.sock"), os.path.join(folder, "state")
        with open(os.path.join(folder, "log"), "w") as output:
            supervisor = subprocess.Popen([BIN / "penstockd", "--supervise", "--socket", socket, "--state-dir", state], stderr=output)
        try:
            deadline = time.monotonic() + 10
            while True:
                try:
                    ctl(socket, "create", spec)
                    break
                except subprocess.CalledProcessError:
                    if time.monotonic() > deadline:
                        raise
            with penstock.attach("chess_float32", socket=socket) as loader:
                for _ in range(20):
                    next(loader)
                (child,) = children(supervisor.pid)
                step, begin = loader.step, time.perf_counter()
                os.kill(child, signal.SIGKILL)
                # What was ready is served; the first batch of the next daemon is meant.
                while loader.stats()["reconnects"] == 0:
                    next(loader)
                    step += 1
                assert loader.step == step
                return (time.perf_counter() - begin) * 1e3
        finally:
            supervisor.terminate()
            supervisor.wait()

    def one_step_time(self, script, way, files, folder):
        """What the script prints, and the daemon's CPU milliseconds a step (0 without one)."""
        python = self.tf_python if script == "step_keras.py" else self.torch_python

        def train(source):
            done = subprocess.run([python, HERE / script, way, source, str(self.seconds)], capture_output=True, text=True,
                                  timeout=300 + 20 * self.seconds)
            if done.returncode != 0 or not done.stdout:
                raise RuntimeError(f"{script} {way}: {done.stderr[-2000:]}")
            return json.loads(done.stdout.strip().splitlines()[-1])

        pattern = f"{files}/*.tfrecord"
        if way != "penstock":
            return train(pattern), 0.0
        with daemon(folder) as (process, socket):
            ctl(socket, "create", str(spec_text("flowers", pattern, folder)))
            found = train(socket)
            # All that it has done, for all steps that were made: those in the ring too.
            steps = json.loads(ctl(socket, "top", "flowers", "--count", "1", "--json").splitlines()[0])["steps"]
            return found, process_cpu_seconds(process.pid) / int(steps) * 1e3

    def step_time(self, case):
        files = shards("flowers", 4_000, log, self.photos)
        warm(files)
        sides = {"step_keras.py": ["penstock", "tf.data", "PyDataset"], "step_torch.py": ["penstock", "DataLoader"]}
        for script, ways in sides.items():
            if not (self.tf_python if script == "step_keras.py" else self.torch_python):
                log(f"{case}: {script} is not run without its Python")
                continue
            figures = {way: [] for way in ways}
            # By turns, so that what else the machine does meets all of them.
            for _ in range(self.runs):
                for way in ways:
                    with tempfile.TemporaryDirectory() as folder:
                        figures[way].append(self.one_step_time(script, way, files, folder))
            for way, runs in figures.items():
                show(case=case, loop="Keras" if script == "step_keras.py" else "torch", way=way,
                     step_ms=median_of([found["step_ms"] for found, _ in runs], 1),
                     trainer_cpu_ms=median_of([found["trainer_cpu_ms"] for found, _ in runs], 1),
                     daemon_cpu_ms=median_of([cpu for _, cpu in runs], 1),
                     min=round(min(found["step_ms"] for found, _ in runs), 1), max=round(max(found["step_ms"] for found, _ in runs), 1),
                     runs=self.runs)

    def run(self, case):
        methods = {"handover_12MiB": self.handover, "torch_views": self.torch_views, "own_size": self.own_size, "cpp": self.cpp, "broadcast_8": self.broadcast, "shared_prefix": self.shared_prefix,
                   "attach": self.attach, "return": self.coming_back, "step_time": self.step_time}
        try:
            methods[case](case)
            return True
        except (RuntimeError, OSError, ValueError, AssertionError, subprocess.SubprocessError, penstock.Error) as error:
            log(f"FAILED: {case}: {error}")
            return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=lambda text: text.split(","), default=CASES)
    parser.add_argument("--torch-python", default="", help="a Python with torch and this tree's package on its path; without it torch is left out")
    parser.add_argument("--tf-python", default="", help="the same with TensorFlow and Keras")
    parser.add_argument("--photos", help="the photographs that flowers are made from, if there are none yet")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="one run of one second")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(CASES)} (cpp: handover_spin, wake, futex_calls)")
    bench = Bench(arguments)
    return 0 if all([bench.run(case) for case in arguments.cases]) else 1


if __name__ == "__main__":
    sys.exit(main())
