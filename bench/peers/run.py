"""Penstock and its peers side by side: `./dev bench peers [--quick] [--cases A,B]`.

Every case is run several times, all sides by turns on the same warm files, and printed as one line of JSON a peer: `ours` and
`theirs` are medians in examples/s, `ratio`, `min` and `max` the median and the extremes of ours / theirs over the turns, `cpu_ratio`
the median of their CPU seconds an example over ours, all processes of a side counted; `cores_ns` how far the processors' caches lay
apart. Everything else goes to stderr.

`augmentation` has Penstock on both sides: flowers_augmented against flowers on the same files. Its `cpu_ratio` is what flip, crop,
brightness and contrast make of flowers' CPU seconds.
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

import penstock
from cores import Cores
from daemon import BIN, FILES_AT_ONCE, ctl, daemon, memory_bytes, spec_text
from sample_data import shards, warm
from window import process_cpu_seconds

HERE = pathlib.Path(__file__).parent
RATE_CASES = ["chess_float32", "chess_float64", "chess_float32_read", "flowers", "imagenet", "segmentation"]
# Cases of images, whose shards and whose spec have names of their own.
SHARDS_OF = {"imagenet": "flowers"}
SPEC_OF = {"segmentation": "segmentation_records"}
IMAGE_CASES = {"flowers", "imagenet", "segmentation"}
OTHER_CASES = ["augmentation", "handover_12MiB", "first_batch", "memory"]
MIB = 1 << 20


def log(text):
    print(text, file=sys.stderr, flush=True)


def run_json(command, seconds):
    """Runs one side and returns its line of JSON."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60 + 20 * seconds)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Bench:
    def __init__(self, arguments):
        self.runs = 1 if arguments.quick else arguments.runs
        self.seconds = 1.0 if arguments.quick else arguments.seconds
        self.records = {"chess": 200_000 if arguments.quick else 2_000_000, "flowers": 2_000 if arguments.quick else 4_000,
                        "segmentation": 200 if arguments.quick else 400}
        self.arguments = arguments
        self.failed = False

    # ---- data ----

    def files(self, kind):
        """The pattern of the shards of `kind`, made if they are not there and read once, so that they are warm."""
        folder = shards(kind, self.records[kind], log, self.arguments.photos)
        warm(folder)
        return f"{folder}/*.tfrecord"

    # ---- sides: each returns {"examples_per_s", "cpu_s_per_million"} ----

    def ours(self, case):
        name = case.removesuffix("_read")
        return self.pipeline("chess" if name == "chess_float64" else SPEC_OF.get(name, name), case)

    def pipeline(self, name, case):
        """The pipeline of a spec of config/pipelines over the files of `case`."""
        with tempfile.TemporaryDirectory() as folder:
            spec = spec_text(name, self.files(self.kind(case)), folder)
            with daemon(folder) as (process, socket):
                ctl(socket, "create", str(spec))
                return run_json([sys.executable, HERE / "take_penstock.py", "--socket", socket, "--pipeline", name, "--daemon-pid",
                                 process.pid, "--seconds", self.seconds, *self.read_flag(case)], self.seconds)

    def tensorflow(self, case, form="table"):
        options = ["--form", form, *([] if case in IMAGE_CASES else ["--dtype", self.dtype(case)])]
        return run_json([self.arguments.tf_python, HERE / "take_tensorflow.py", "--case", case.partition("_")[0], "--files",
                         self.files(self.kind(case)), "--seconds",
                         self.seconds, *options, *self.read_flag(case)], self.seconds)

    def dali(self, case):
        return run_json([self.arguments.dali_python, HERE / "take_dali.py", "--case", case, "--files", self.files(self.kind(case)),
                         "--seconds", self.seconds], self.seconds)

    def torch_images(self, case):
        return run_json([self.arguments.torch_python, HERE / "take_torch_images.py", "--case", case, "--files",
                         self.files(self.kind(case)), "--seconds", self.seconds], self.seconds)

    def torch(self, case):
        return run_json([self.arguments.torch_python, HERE / "take_torch.py", "--files", self.files("chess"), "--dtype", self.dtype(case),
                         "--seconds", self.seconds, *self.read_flag(case)], self.seconds)

    def loop(self, case):
        program = BIN / f"bench_loop_{case.partition('_')[0]}"
        options = [] if case in IMAGE_CASES else ["--dtype", self.dtype(case)]
        return run_json([program, "--files", self.files(self.kind(case)), "--seconds", self.seconds, *options], self.seconds)

    @staticmethod
    def kind(case):
        """Of the shards that a case reads."""
        return SHARDS_OF.get(case, case.partition("_")[0])

    @staticmethod
    def dtype(case):
        return case.split("_")[1]

    @staticmethod
    def read_flag(case):
        return ["--read"] if case.endswith("_read") else []

    def faster_form(self, case):
        """The form of tf.data's bit expansion that is faster on this machine."""
        rates = {form: self.tensorflow(case, form)["examples_per_s"] for form in ("shifts", "table")}
        log(f"{case}: tf.data by " + ", ".join(f"{form} {rate:,.0f}/s" for form, rate in rates.items()))
        return max(rates, key=rates.get)

    # ---- cases ----

    def rate_case(self, case):
        sides = {"penstock": self.ours}
        if not case.endswith("_read"):
            sides["loop"] = self.loop
        if case in IMAGE_CASES:
            sides["tf.data from TFRecord"] = self.tensorflow
            if case == "segmentation":
                sides["tf.data, colours compared"] = lambda case: self.tensorflow(case, "compare")
                sides["tf.data as it is written"] = lambda case: self.tensorflow(case, "written")
                sides["tf.data as it is written, map in turn"] = lambda case: self.tensorflow(case, "written_in_turn")
            sides["DALI CPU"] = self.dali
            sides["torch and Pillow"] = self.torch_images
        else:
            form = self.faster_form(case)
            sides["tf.data vectorised"] = lambda case: self.tensorflow(case, form)
            sides["torch NumPy"] = self.torch
        results = {side: [] for side in sides}
        cores = Cores()
        for run in range(self.runs):
            cores.look()
            for side, take in sides.items():
                result = take(case)
                results[side].append(result)
                log(f"{case} {run + 1}/{self.runs} {side}: {result['examples_per_s']:,.0f}/s, "
                    f"{result['cpu_s_per_million']:.3f} CPU s per million")
        ours = results.pop("penstock")
        for peer, theirs in results.items():
            ratios = [a["examples_per_s"] / b["examples_per_s"] for a, b in zip(ours, theirs)]
            cpu_ratios = [b["cpu_s_per_million"] / a["cpu_s_per_million"] for a, b in zip(ours, theirs)]
            self.show(case=case, peer=peer, ours=round(median(ours, "examples_per_s")), theirs=round(median(theirs, "examples_per_s")),
                      ratio=round(statistics.median(ratios), 3), cpu_ratio=round(statistics.median(cpu_ratios), 3), runs=self.runs,
                      min=round(min(ratios), 3), max=round(max(ratios), 3),
                      ours_cpu_s_per_million=round(median(ours, "cpu_s_per_million"), 4),
                      theirs_cpu_s_per_million=round(median(theirs, "cpu_s_per_million"), 4), **cores.fields())

    def augmentation(self, case):
        """flowers with augmentation against flowers without."""
        names = ["flowers_augmented", "flowers"]
        results = {name: [] for name in names}
        for run in range(self.runs):
            # Whoever comes second finds the machine warmer.
            for name in names if run % 2 == 0 else names[::-1]:
                results[name].append(self.pipeline(name, "flowers"))
                log(f"{case} {run + 1}/{self.runs} {name}: {results[name][-1]['examples_per_s']:,.0f}/s, "
                    f"{results[name][-1]['cpu_s_per_million']:.3f} CPU s per million")
        ours, plain = results.values()
        ratios = [a["cpu_s_per_million"] / b["cpu_s_per_million"] for a, b in zip(ours, plain)]
        self.show(case=case, cpu_ratio=round(statistics.median(ratios), 3), runs=self.runs, min=round(min(ratios), 3),
                  max=round(max(ratios), 3), examples_per_s=round(median(ours, "examples_per_s")),
                  plain_examples_per_s=round(median(plain, "examples_per_s")),
                  cpu_s_per_million=round(median(ours, "cpu_s_per_million"), 4),
                  plain_cpu_s_per_million=round(median(plain, "cpu_s_per_million"), 4))

    def handover(self, case):
        """CPU of both sides for a ready batch of 12 MiB at full rate: the producer publishes slots that are filled already."""
        costs, rates = [], []
        for _ in range(self.runs):
            with tempfile.TemporaryDirectory() as folder:
                socket = os.path.join(folder, "handover.sock")
                producer = subprocess.Popen([BIN / "bench_handover", socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                try:
                    if producer.stdout.readline().strip() != "ready":
                        raise RuntimeError("bench_handover did not start")
                    cost, rate = self.take_handover(socket, producer.pid)
                    costs.append(cost)
                    rates.append(rate)
                finally:
                    producer.stdin.close()
                    producer.wait()
        self.show(case=case, cpu_us_per_batch=round(statistics.median(costs), 2), batches_per_s=round(statistics.median(rates)),
                  runs=self.runs, min=round(min(costs), 2), max=round(max(costs), 2))

    def take_handover(self, socket, producer_pid):
        def cpu_seconds():
            return time.process_time() + process_cpu_seconds(producer_pid)

        count = begin = 0
        for batch in penstock.attach("handover", socket=socket):
            for array in batch.values():
                array.item(0)
                array.item(array.size - 1)
            now = time.perf_counter()
            if not begin:
                begin, cpu = now, cpu_seconds()
                continue
            count += 1
            if now - begin >= self.seconds:
                break
        return (cpu_seconds() - cpu) / count * 1e6, count / (now - begin)

    def first_batch(self, case):
        """Seconds from the start of `penstock run` to its first line."""
        times = []
        with tempfile.TemporaryDirectory() as folder:
            spec = spec_text("chess_float32", self.files("chess"), folder)
            for _ in range(self.runs + 1):
                begin = time.perf_counter()
                command = subprocess.Popen([BIN / "penstock", "run", spec, "--steps", "1"], stdout=subprocess.PIPE, text=True)
                line = command.stdout.readline()
                times.append(time.perf_counter() - begin)
                command.stdout.read()
                if command.wait() != 0 or not line:
                    raise RuntimeError("penstock run failed")
        del times[0]  # the programs themselves were not warm
        self.show(case=case, seconds=round(statistics.median(times), 4), runs=self.runs, min=round(min(times), 4), max=round(max(times), 4))

    def memory(self, case):
        """Peak memory of the daemon beyond the ring, the shuffle's cells and the read buffers: where it keeps no maps of files, and `with_maps_mib`
        where it does, whose pages are the page cache's."""
        plain, mapped = [], []
        for _ in range(self.runs):
            plain.append(self.memory_over("mapped_files { max_bytes: 0 }"))
            mapped.append(self.memory_over(""))
        self.show(case=case, over_mib=round(statistics.median(plain), 1), runs=self.runs, min=round(min(plain), 1), max=round(max(plain), 1),
                  with_maps_mib=round(statistics.median(mapped), 1))

    def memory_over(self, config):
        with tempfile.TemporaryDirectory() as folder:
            settings = pathlib.Path(folder, "config.textproto")
            settings.write_text(config)
            spec = spec_text("chess_float32", self.files("chess"), folder)
            with daemon(folder, "--config", settings) as (process, socket):
                ctl(socket, "create", str(spec))
                self.take_some(socket)
                # The ring is the only shared memory. Cells of 256 bytes for 10,000 waiting records; for each open file the chunk
                # at hand and the one on its way, of 64 KiB.
                peak, ring = memory_bytes(process.pid, "VmHWM"), memory_bytes(process.pid, "RssShmem")
                buffers = 10_000 * 256 + FILES_AT_ONCE * 2 * 64 * 1024
                log(f"memory: peak {peak / MIB:.1f} MiB, ring {ring / MIB:.1f}, buffers {buffers / MIB:.1f}")
                return (peak - ring - buffers) / MIB

    def take_some(self, socket):
        """Takes as many rows as there are records."""
        rows = 0
        for batch in penstock.attach("chess_float32", socket=socket):
            rows += len(batch["score"])
            if rows >= self.records["chess"]:
                break

    def show(self, **fields):
        print(json.dumps(fields), flush=True)

    def run(self, case):
        methods = {"augmentation": self.augmentation, "handover_12MiB": self.handover, "first_batch": self.first_batch, "memory": self.memory}
        try:
            methods.get(case, self.rate_case)(case)
        except (RuntimeError, OSError, ValueError, subprocess.SubprocessError, penstock.Error) as error:
            log(f"FAILED: {case}: {error}")
            self.failed = True


def median(results, field):
    return statistics.median(result[field] for result in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tf-python", required=True, help="a Python with TensorFlow")
    parser.add_argument("--torch-python", required=True, help="a Python with torch")
    parser.add_argument("--dali-python", required=True, help="a Python with nvidia-dali")
    parser.add_argument("--photos", help="the photographs that flowers are made from, if there are none yet")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=RATE_CASES + OTHER_CASES)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="fewer records, one run of one second")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(RATE_CASES + OTHER_CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(RATE_CASES + OTHER_CASES)}")

    bench = Bench(arguments)
    for case in arguments.cases:
        bench.run(case)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
