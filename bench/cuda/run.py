"""Batches on a device through a real daemon: how long after the daemon's copy another process has them, and what a training loop waits.

    python bench/cuda/run.py [--device N] [--seconds S] [--photos GLOB]

One line of JSON a case. Without a device it says so, and nothing was measured; a peer whose package is not installed is named as not run.

  hand_over   a ready batch of a device ring: from asking for it until work in the trainer's stream has read it. The time of such a
              read alone is subtracted: what is left is what the ring adds.
  flowers     a convolution over decoded photographs: the share of the time in which the device has nothing to do since no batch is
              there, with the ring's copy, with the device ring, with torch's pinned DataLoader and with DALI's GPU pipeline.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import penstock
import penstock.cuda

IMAGE_BYTES = 224 * 224 * 3

# A producer that costs nothing: what is measured is the way to the trainer.
PLAIN = """
name: "plain"
stage {{ range {{ stop: 10000000 }} }}
stage {{ map {{ constant {{ name: "ZEROS" dtype: "uint8" shape: {size} {values} }} out: "x = ZEROS + uint8(value)"
                out: "n = value" }} }}
stage {{ batch {{ batch_size: 64 drop_remainder: true }} }}
ring {{ device: {device} slots: 5 }}
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


def hand_over(daemon, device, batches=2000):
    """A trainer that is slower than the daemon: every batch that it asks for is ready."""
    values = " ".join("int_value: 0" for _ in range(1024))
    daemon.create("plain", PLAIN.format(size=1024, values=values, device=device))
    cuda = penstock.cuda.open(device)
    loader = penstock.attach("plain", daemon.socket, cuda=cuda)
    for _ in range(100):
        number = next(loader)["n"]
    asked, read = [], []
    for _ in range(batches):
        time.sleep(0.0005)
        start = time.perf_counter_ns()
        number = next(loader)["n"]
        number.numpy()
        middle = time.perf_counter_ns()
        number.numpy()
        asked.append(middle - start)
        read.append(time.perf_counter_ns() - middle)
    stats = cuda.stats()
    del number
    loader.close()
    daemon.delete("plain")
    added = statistics.median(asked) - statistics.median(read)
    tell("hand_over", batch_bytes=64 * 1032, asked_us=round(statistics.median(asked) / 1e3, 2),
         read_alone_us=round(statistics.median(read) / 1e3, 2), added_us=round(added / 1e3, 2), pending=stats["pending"])


class Step:
    """A few convolutions, and how long the device had nothing to do between them."""

    def __init__(self, torch, device):
        self.torch = torch
        self.device = torch.device("cuda", device)
        layers = [torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 128, 3, 2, 1), torch.nn.ReLU(),
                  torch.nn.Conv2d(128, 256, 3, 2, 1), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(256, 10)]
        self.model = torch.nn.Sequential(*layers).to(self.device).half()

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
    tell("flowers", side="ring, one copy", **step.run((normalized(batch["x"]) for batch in loader), seconds), cuda=loader.stats()["cuda"])
    loader.close()
    daemon.delete("flowers")

    try:
        daemon.create("flowers", FLOWERS.format(files=files, ring=EXPANDED.format(device=device)))
        loader = penstock.torch.loader("flowers", socket=daemon.socket, device=step.device, ring=True)
        tell("flowers", side="device ring, expanded", **step.run((batch["x"] for batch in loader), seconds))
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

    tell("flowers", side="torch DataLoader, pinned, nothing to decode", **step.run(epochs(), seconds))
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

    tell("flowers", side="DALI", **step.run(epochs(), seconds))


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
    arguments = parser.parse_args()
    try:
        penstock.cuda.open(arguments.device)
    except penstock.Error as error:
        tell("cuda", not_run=str(error))
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        daemon = Daemon(folder)
        try:
            hand_over(daemon, arguments.device)
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
