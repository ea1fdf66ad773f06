"""Batches on a device through a real daemon: how long after the daemon's copy another process has them, and what a training loop waits.

    python bench/cuda/run.py [--device N] [--seconds S] [--photos GLOB]

One line of JSON a case. Without a device it says so, and nothing was measured; a peer whose package is not installed is named as not run.

  hand_over   two processes wait for the same batches. One copies each to the device by itself (cuMemcpyHtoDAsync out of the mapped
              ring), the other finds it in the device's ring; both read it back in their stream. By how much the second is later is
              what the device's ring adds to a plain copy.
  flowers     a convolution over decoded photographs with the ring's copy, with the device ring, with torch's pinned DataLoader and
              with DALI's GPU pipeline. `of_resident`: the rate, of that of the same loop over one batch that stays on the device.
              `waits_share`: of the time, that in which the device is not at a step: it waits, copies or normalizes.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import penstock
import penstock.cuda

# Both processes wait for each batch: a row takes some microseconds to make.
PLAIN = """
name: "plain"
stage {{ range {{ stop: 10000000 }} }}
stage {{ map {{ constant {{ name: "ZEROS" dtype: "float64" shape: 1024 {values} }}
                out: "x = uint8(ZEROS + float64(value))" out: "work = sum(tanh(ZEROS + float64(value)))" out: "n = value" }} }}
stage {{ batch {{ batch_size: 64 drop_remainder: true }} }}
ring {{ device: {device} slots: 8 }}
"""

FLOWERS = """
name: "flowers"
stage {{ tfrecord {{ files: "{files}" }} }}
stage {{ shuffle {{ buffer_size: 1000 seed: 7 }} }}
stage {{ parse_example {{ feature {{ key: "image/encoded" bytes {{}} }} feature {{ key: "image/class/label" int64 {{}} }} }} }}
stage {{ map {{ out: "x = uint8(resize(decode_jpeg(feature(\\"image/encoded\\"), channels=3), [224, 224]))"
                out: "y = feature(\\"image/class/label\\")" }} }}
stage {{ batch {{ batch_size: 64 drop_remainder: true }} }}
stage {{ repeat {{}} }}
ring {{ {ring} }}
"""

EXPANDED = """device: {device}
  expand {{ feature: "x" normalize {{ scale: 127.5 mean: 1 channels_first: true }} dtype: "float16" }}"""


def tell(case, **figures):
    print(json.dumps({"case": case, **figures}), flush=True)


class Daemon:
    def __init__(self, folder):
        programs = pathlib.Path(os.environ["PENSTOCK_BIN"])
        self.penstock = programs / "penstock"
        self.socket = str(folder / "s")
        ready, ready_end = os.pipe()
        self.process = subprocess.Popen(
            [programs / "penstockd", "--socket", self.socket, "--state-dir", "none", "--ready-fd", str(ready_end)], pass_fds=[ready_end])
        os.close(ready_end)
        if os.read(ready, 1) != b"\n":
            raise SystemExit("penstockd did not start")
        self.folder = folder

    def create(self, name, text):
        spec = self.folder / f"{name}.textproto"
        spec.write_text(text)
        done = subprocess.run([self.penstock, "--socket", self.socket, "create", spec], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())

    def delete(self, name):
        subprocess.run([self.penstock, "--socket", self.socket, "delete", name], check=True, capture_output=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def follow(side, socket, device, batches):
    """One of the two processes: prints when it had which batch, in nanoseconds of the clock that they share."""
    cuda = penstock.cuda.open(device)
    loader = penstock.attach("plain", socket, group=side, cuda=cuda if side == "ring" else None)
    seen, memory = [], None
    for _ in range(batches):
        batch = next(loader)
        images = batch["x"]
        if side == "copy":
            if memory is None:
                memory = cuda.to_device(images)
            cuda.copy(images, memory.__cuda_array_interface__["data"][0])
            memory.numpy()
        else:
            images.numpy()
        now = time.perf_counter_ns()
        number = batch["n"] if side == "copy" else batch["n"].numpy()
        seen.append((int(number[0]), now))
    # Memory of the ring goes back before the loader does, and the loader before a full pipe may hold this process up, and with it
    # the ring and the other process.
    del batch, images, number
    loader.close()
    for number, when in seen[len(seen) // 10:]:
        print(number, when)
    print(json.dumps(cuda.stats()), file=sys.stderr)


def hand_over(daemon, device, batches):
    values = " ".join("value: 0" for _ in range(1024))
    daemon.create("plain", PLAIN.format(values=values, device=device))
    command = [sys.executable, __file__, "--device", str(device), "--batches", str(batches), "--socket", daemon.socket, "--follow"]
    sides = {side: subprocess.Popen([*command, side], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for side in ("copy", "ring")}
    had, stats = {}, {}
    for side, process in sides.items():
        out, errors = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"hand_over, {side}: {errors}")
        had[side] = dict(tuple(map(int, line.split())) for line in out.splitlines())
        stats[side] = json.loads(errors.splitlines()[-1])
    daemon.delete("plain")
    later = [(had["ring"][number] - had["copy"][number]) / 1e3 for number in sorted(had["ring"].keys() & had["copy"].keys())]
    if len(later) < 2:
        raise SystemExit("hand_over: the processes had no batches in common")
    percentiles = statistics.quantiles(later, n=100)
    tell("hand_over", batch_bytes=64 * (1024 + 16), batches=len(later), added_us=round(statistics.median(later), 2),
         added_us_p90=round(percentiles[89], 2), straight_copies=stats["copy"]["copies"], why_staged=stats["copy"]["why_staged"])


def passes(loader):
    """Batches without end: a loop over a loader is one epoch."""
    while True:
        yield from loader


class Step:
    """A few convolutions, and how long the device had nothing to do between them."""

    def __init__(self, torch, device):
        self.torch = torch
        self.device = torch.device("cuda", device)
        layers = [torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 128, 3, 2, 1), torch.nn.ReLU(),
                  torch.nn.Conv2d(128, 256, 3, 2, 1), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(256, 10)]
        self.model = torch.nn.Sequential(*layers).to(self.device).half()
        self.resident = None

    def tell(self, side, batches, seconds):
        if self.resident is None:
            stays = self.torch.zeros((64, 3, 224, 224), dtype=self.torch.float16, device=self.device)
            self.resident = self.run(itertools.repeat(stays), seconds)["examples_per_s"]
        found = self.run(batches, seconds)
        tell("flowers", side=side, **found, of_resident=round(found["examples_per_s"] / self.resident, 3))

    def run(self, batches, seconds):
        torch = self.torch
        marks, rows = [], 0
        iterator = iter(batches)
        self.model(next(iterator))
        torch.cuda.synchronize()
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            images = next(iterator)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.model(images).float().mean().backward()
            end.record()
            rows += len(images)
            marks.append((begin, end))
        torch.cuda.synchronize()
        elapsed = time.perf_counter() - start
        busy = sum(begin.elapsed_time(end) for begin, end in marks) / 1e3
        return {"examples_per_s": round(rows / elapsed), "waits_share": round(max(0.0, 1 - busy / elapsed), 4)}


def flowers(daemon, files, device, seconds):
    try:
        import torch
    except ImportError:
        tell("flowers", not_run="torch is not installed")
        return
    if not torch.cuda.is_available():
        tell("flowers", not_run="this torch has no CUDA")
        return
    import penstock.torch

    step = Step(torch, device)

    def normalized(images):
        return (images.half() / 127.5 - 1).permute(0, 3, 1, 2)

    daemon.create("flowers", FLOWERS.format(files=files, ring=""))
    loader = penstock.torch.loader("flowers", socket=daemon.socket, device=step.device)
    step.tell("ring, one copy", (normalized(batch["x"]) for batch in passes(loader)), seconds)
    tell("flowers", side="ring, one copy", cuda=loader.stats()["cuda"])
    loader.close()
    daemon.delete("flowers")

    try:
        daemon.create("flowers", FLOWERS.format(files=files, ring=EXPANDED.format(device=device)))
        loader = penstock.torch.loader("flowers", socket=daemon.socket, device=step.device, ring=True)
        step.tell("device ring, expanded", (batch["x"] for batch in passes(loader)), seconds)
        loader.close()
        daemon.delete("flowers")
    except RuntimeError as error:
        tell("flowers", side="device ring, expanded", not_run=str(error))

    dataset = torch.utils.data.TensorDataset(torch.zeros((2048, 224, 224, 3), dtype=torch.uint8))
    pinned = torch.utils.data.DataLoader(dataset, batch_size=64, num_workers=os.cpu_count(), pin_memory=True, drop_last=True)

    def epochs():
        while True:
            for (images,) in pinned:
                yield normalized(images.to(step.device, non_blocking=True))

    step.tell("torch DataLoader, pinned, nothing to decode", epochs(), seconds)
    dali(step, files, device, seconds)


def dali(step, files, device, seconds):
    try:
        from nvidia.dali import fn, pipeline_def, types
        from nvidia.dali import tfrecord as tfrecords
        from nvidia.dali.plugin.pytorch import DALIGenericIterator
    except ImportError:
        tell("flowers", side="DALI", not_run="nvidia-dali is not installed")
        return
    import glob

    paths = sorted(glob.glob(files))
    indices = [f"{daemon_index(path)}" for path in paths]

    @pipeline_def(batch_size=64, num_threads=os.cpu_count(), device_id=device)
    def graph():
        features = {"image/encoded": tfrecords.FixedLenFeature((), tfrecords.string, "")}
        encoded = fn.readers.tfrecord(path=paths, index_path=indices, features=features, random_shuffle=True)["image/encoded"]
        images = fn.resize(fn.decoders.image(encoded, device="mixed"), size=[224, 224])
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT16, mean=127.5, std=127.5, output_layout="CHW")

    iterator = DALIGenericIterator([graph()], ["x"], auto_reset=True)

    def epochs():
        while True:
            for batch in iterator:
                yield batch[0]["x"]

    step.tell("DALI", epochs(), seconds)


def daemon_index(path):
    """DALI's index of a TFRecord file: a line "offset size" a record."""
    index = f"{path}.dali"
    if not os.path.exists(index):
        with open(path, "rb") as records, open(index, "w") as lines:
            while header := records.read(12):
                size = 16 + int.from_bytes(header[:8], "little")
                lines.write(f"{records.tell() - 12} {size}\n")
                records.seek(size - 12, os.SEEK_CUR)
    return index


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--photos", help="photographs of which flowers are made; without them that case is left out")
    parser.add_argument("--batches", type=int, default=4000, help="of hand_over")
    parser.add_argument("--follow", choices=["copy", "ring"], help=argparse.SUPPRESS)
    parser.add_argument("--socket", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow:
        follow(arguments.follow, arguments.socket, arguments.device, arguments.batches)
        return
    try:
        penstock.cuda.open(arguments.device)
    except penstock.Error as error:
        tell("cuda", not_run=str(error))
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        daemon = Daemon(folder)
        try:
            hand_over(daemon, arguments.device, arguments.batches)
            if arguments.photos:
                subprocess.run([daemon.penstock, "make-sample", "flowers", "--photos", arguments.photos, "--records", "2000", "--out",
                                folder / "flowers"], check=True, stdout=subprocess.DEVNULL)
                flowers(daemon, f"{folder}/flowers/*.tfrecord", arguments.device, arguments.seconds)
            else:
                tell("flowers", not_run="no photographs: --photos GLOB")
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
