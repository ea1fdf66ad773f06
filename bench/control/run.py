"""What watching and steering cost: `./dev bench control [--quick] [--cases A,B]`.

One line of JSON a figure; everything else goes to stderr. Each load is taken by turns with a window without it, in the same daemon, which
makes chess for a C++ consumer that takes all that there is: `ratio` is the throughput under the load over that without, the median of
pairs.

watched     stats followed ten times a second, events followed, /metrics asked once a second: `ratio`, under 1 % below 1 by promise.
flood       1,000 unary calls a second and 64 streams that nobody reads: `ratio`; `at_another_daemon`, the same while the flood is aimed at a
            second daemon, so that it takes its processors, and workers' caches, and nothing else; `beyond_own_cpu`, what is lost besides: how
            far the first is below the second, under 2 % by promise. `control_cpu`, the processors that the generator and the daemon's control
            plane spend; `batch_cpu`, what a batch then costs the workers over what it costs without; `workers_asleep`, the share of their
            time in which they neither run nor queue for a processor, more than without; and the latency of a call meanwhile.
call        one unary call after the other, without other work: `p50_us`, `p99_us`, and the daemon's `cpu_us_per_call`.
profile     while a profile is taken: `ratio`, under 5 % below 1 by promise.
page        the status page's requests, as an open page makes them: `percent_of_a_core` of the daemon.
what_if     the rate with one worker more than top measures with one, against what it says: `says`, `brings`.
uneven      batches of which one in forty takes a hundred times as long, and a trainer that takes longer than they do on the whole: `waits`, the
            share of its time in which it waits, with autotune of the ring's slots and without it (`untuned`), and the slots in the end.
slow_reads  the same for autotune of read-ahead, of a source on a disk that answers late (slow_disk.c) and could carry what the trainer takes.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

from daemon import BIN, ctl, daemon, spec_text
from sample_data import shards, warm
import tuning
from window import process_cpu_seconds

CASES = ["watched", "flood", "call", "profile", "page", "what_if", "uneven", "slow_reads"]
NAME = "chess_float32"


def log(text):
    print(text, file=sys.stderr, flush=True)


def show(**fields):
    print(json.dumps(fields), flush=True)


def threads_of(pid, name=""):
    """(how many, seconds on a processor, seconds in a queue for one) of the threads whose names begin so: to the nanosecond, where
    process_cpu_seconds() counts ticks of 10 ms (schedstat of the kernel's manual)."""
    count, running, queued = 0, 0, 0
    for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
        # A thread may end between any two of these.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (thread / "comm").read_text().startswith(name):
                times = (thread / "schedstat").read_text().split()
                count, running, queued = count + 1, running + int(times[0]), queued + int(times[1])
    return count, running / 1e9, queued / 1e9


def median_of(values, digits=4):
    return round(statistics.median(values), digits)


def watched_daemon(folder, http_port=0):
    """A running penstockd, as daemon() makes one, with a status page."""
    config = os.path.join(folder, "penstockd.textproto")
    # The limits of a user are not what is measured.
    pathlib.Path(config).write_text(f"http {{ port: {http_port} }} connection_limits {{ max_requests_per_s: 1000000 max_streams: 100 }}\n")
    return daemon(folder, "--config", config)


class Taker:
    """A consumer that takes all that there is."""

    def __init__(self, socket):
        self.process = subprocess.Popen([BIN / "bench_ring_take", socket, NAME, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def rate(self, seconds):
        """Batches a second of a window."""
        before, begin = self.taken(), time.perf_counter()
        time.sleep(seconds)
        return (self.taken() - before) / (time.perf_counter() - begin)

    def taken(self):
        """Batches since it began."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["taken"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Bench:
    def __init__(self, arguments):
        self.pairs = 2 if arguments.quick else arguments.pairs
        self.seconds = arguments.seconds
        # Of what is no ratio of two windows, and needs longer ones.
        self.looks = 2 if arguments.quick else min(7, arguments.pairs)
        self.look_seconds = 6.0
        # Autotune looks once a second, and changes a number every five at most.
        self.tuning_seconds = 10 if arguments.quick else 60

    @contextlib.contextmanager
    def running(self, workers=0, http_port=0):
        """A daemon that makes chess: yields (process, socket, taker)."""
        with tempfile.TemporaryDirectory() as folder:
            files = shards("chess", 200_000, log)
            warm(files)
            spec = str(spec_text(NAME, f"{files}/*.tfrecord", folder))
            with watched_daemon(folder, http_port) as (process, socket):
                ctl(socket, "create", spec, *(["--workers", str(workers)] if workers else []))
                taker = Taker(socket)
                taker.rate(self.seconds / 2)
                try:
                    yield process, socket, taker
                finally:
                    taker.stop()

    def pairs_of(self, taker, load):
        """The ratios of the rate under `load`, a context, to the mean of those in front of and behind it."""
        ratios = []
        before = taker.rate(self.seconds)
        for _ in range(self.pairs):
            with load():
                under = taker.rate(self.seconds)
            after = taker.rate(self.seconds)
            ratios.append(under / ((before + after) / 2))
            before = after
        return ratios

    def watched(self, case):
        port = free_port()
        with self.running(http_port=port) as (_, socket, taker):

            @contextlib.contextmanager
            def load():
                followers = [subprocess.Popen([BIN / "penstock", "--socket", socket, *words], stdout=subprocess.DEVNULL)
                             for words in (["stats", NAME, "--follow", "--interval", "0.1"], ["events", "--follow"])]
                stop = threading.Event()

                def scrape():
                    while not stop.wait(1):
                        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read()

                scraping = threading.Thread(target=scrape)
                scraping.start()
                time.sleep(0.2)
                try:
                    yield
                finally:
                    stop.set()
                    scraping.join()
                    for follower in followers:
                        follower.terminate()
                        follower.wait()

            ratios = self.pairs_of(taker, load)
        show(case=case, ratio=median_of(ratios), min=round(min(ratios), 4), max=round(max(ratios), 4), runs=len(ratios))

    def flood(self, case):
        ratios, elsewhere, asleep, control, batches, latencies = [], [], [], [], [], []
        with self.running() as (process, socket, taker), self.running() as (_, other, _):
            # The same flood, with nothing in common with this daemon but the machine.
            ctl(other, "pause", NAME)

            def window(flood=None):
                """(batches, the workers' processors, those of the control plane and its flood, the share in which workers sleep) a second."""

                def look():
                    count, running, queued = threads_of(process.pid, "worker")
                    spent = process_cpu_seconds(process.pid) - running + (process_cpu_seconds(flood.pid) if flood else 0)
                    return running, spent, time.perf_counter() - (running + queued) / count

                begin, before = time.perf_counter(), look()
                rate = taker.rate(self.seconds)
                after, seconds = look(), time.perf_counter() - begin
                return rate, *[(now - then) / seconds for then, now in zip(before, after)]

            def flooded(target):
                flood = subprocess.Popen([BIN / "bench_control_flood", target, NAME, "1000", "64", str(self.seconds + 2.5)], stdout=subprocess.PIPE, text=True)
                flood.stdout.readline()
                time.sleep(2)  # until nothing more goes into the streams
                under = window(flood)
                latency = json.loads(flood.stdout.readline())
                flood.wait()
                return under, latency

            before = window()
            for _ in range(self.pairs):
                under, latency = flooded(socket)
                between = window()
                there, _ = flooded(other)
                after = window()
                latencies.append(latency)
                ratios.append(2 * under[0] / (before[0] + between[0]))
                elsewhere.append(2 * there[0] / (between[0] + after[0]))
                without = [(one + two) / 2 for one, two in zip(before, between)]
                asleep.append(under[3] - without[3])
                control.append(under[2] - without[2])
                batches.append(under[1] / under[0] / (without[1] / without[0]))
                before = after
        show(case=case, ratio=median_of(ratios), at_another_daemon=median_of(elsewhere),
             beyond_own_cpu=median_of([1 - own / there for own, there in zip(ratios, elsewhere)]), control_cpu=median_of(control, 3),
             batch_cpu=median_of(batches, 3), workers_asleep=median_of(asleep), p50_us=median_of([one["p50_us"] for one in latencies], 1),
             p99_us=median_of([one["p99_us"] for one in latencies], 1), failed=sum(one["failed"] for one in latencies), runs=len(ratios))

    def call(self, case):
        with self.running() as (process, socket, taker):
            ctl(socket, "pause", NAME)
            results, cpus = [], []
            for _ in range(self.looks):
                cpu = process_cpu_seconds(process.pid)
                done = subprocess.run([BIN / "bench_control_flood", socket, NAME, "1000000", "0", str(self.look_seconds / 2)], stdout=subprocess.PIPE, text=True, check=True)
                results.append(json.loads(done.stdout.splitlines()[-1]))
                cpus.append((process_cpu_seconds(process.pid) - cpu) / results[-1]["calls"] * 1e6)
            ctl(socket, "resume", NAME)
        show(case=case, p50_us=median_of([one["p50_us"] for one in results], 1), p99_us=median_of([one["p99_us"] for one in results], 1),
             cpu_us_per_call=median_of(cpus, 1), runs=len(results))

    def profile(self, case):
        with self.running() as (_, socket, taker):

            @contextlib.contextmanager
            def load():
                with tempfile.TemporaryDirectory() as folder:
                    profiling = subprocess.Popen([BIN / "penstock", "--socket", socket, "profile", NAME, "--seconds", str(self.seconds + 0.5),
                                                  "--out", os.path.join(folder, "trace.json")], stdout=subprocess.DEVNULL)
                    time.sleep(0.2)
                    yield
                    profiling.wait()

            ratios = self.pairs_of(taker, load)
        show(case=case, ratio=median_of(ratios), min=round(min(ratios), 4), max=round(max(ratios), 4), runs=len(ratios))

    def page(self, case):
        port = free_port()
        shares, quiet = [], []
        with self.running(http_port=port) as (process, socket, taker):
            # Of a pipeline that stands still, so that what is spent is the page's.
            ctl(socket, "pause", NAME)
            time.sleep(0.5)
            for _ in range(self.looks):
                begin, cpu = time.perf_counter(), threads_of(process.pid)[1]
                time.sleep(self.look_seconds)
                quiet.append((threads_of(process.pid)[1] - cpu) / (time.perf_counter() - begin))
                begin, cpu = time.perf_counter(), threads_of(process.pid)[1]
                while time.perf_counter() - begin < self.look_seconds:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/status.json").read()
                    time.sleep(1)
                shares.append((threads_of(process.pid)[1] - cpu) / (time.perf_counter() - begin))
            ctl(socket, "resume", NAME)
        show(case=case, percent_of_a_core=round(100 * (statistics.median(shares) - statistics.median(quiet)), 3),
             watching_percent_of_a_core=round(100 * statistics.median(quiet), 3), runs=len(shares))

    def what_if(self, case):
        if len(os.sched_getaffinity(0)) < 2:
            return log(f"{case}: not run on one processor")
        says, brings = [], []
        for _ in range(self.looks):
            with self.running(workers=1) as (_, socket, taker):
                one = taker.rate(self.look_seconds)
                analysis = json.loads(ctl(socket, "top", NAME, "--count", "1", "--json"))["analysis"]
                ctl(socket, "update", NAME, "--workers", "2")
                taker.rate(0.5)
                says.append(analysis["one_more_worker"])
                brings.append(taker.rate(self.look_seconds) / one - 1)
        show(case=case, says=median_of(says, 3), brings=median_of(brings, 3),
             error=median_of([said - brought for said, brought in zip(says, brings)], 3), runs=len(says))

    def tuned(self, case, spec, step_s, environment=()):
        """Shows what a trainer waits that takes batches at a pace, without autotune and with it, once that has had time."""
        waits, chosen = {}, {}
        for tuned in (False, True):
            with tempfile.TemporaryDirectory() as folder, tuning.serving(folder, spec, tuned, environment) as socket:
                trainer = tuning.Trainer(socket)
                trainer.wait(step_s, self.tuning_seconds if tuned else self.look_seconds / 2)
                waits[tuned] = [trainer.wait(step_s, self.look_seconds) for _ in range(self.looks)]
                chosen[tuned] = tuning.numbers(socket)
        show(case=case, waits=median_of(waits[True]), untuned=median_of(waits[False]), **chosen[True],
             **{f"{name}_untuned": value for name, value in chosen[False].items()}, step_ms=round(step_s * 1e3, 2), runs=self.looks)

    def uneven(self, case):
        spec = tuning.UNEVEN % (tuning.uneven_pictures(log), tuning.ROWS)
        with tempfile.TemporaryDirectory() as folder, tuning.serving(folder, spec, False) as socket:
            step_s = tuning.SPARE / tuning.Trainer(socket).rate(self.look_seconds)
        self.tuned(case, spec, step_s)

    def slow_reads(self, case):
        files = tuning.slow_records(log)
        rows = 64
        spec = tuning.SLOW % (f"{files}/*.tfrecord", tuning.RECORD_BYTES, rows)
        with tempfile.TemporaryDirectory() as folder:
            self.tuned(case, spec, rows * tuning.RECORD_BYTES / (tuning.DEMAND_MB_PER_S * 1e6), tuning.slow_disk(folder, files))

    def run(self, case):
        try:
            getattr(self, case)(case)
            return True
        except (RuntimeError, OSError, ValueError, KeyError, AssertionError, subprocess.SubprocessError) as error:
            log(f"FAILED: {case}: {error}")
            return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=lambda text: text.split(","), default=CASES)
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--seconds", type=float, default=1.0, help="the length of a ratio's windows")
    parser.add_argument("--quick", action="store_true", help="two pairs")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(CASES)}")
    bench = Bench(arguments)
    return 0 if all([bench.run(case) for case in arguments.cases]) else 1


if __name__ == "__main__":
    sys.exit(main())
