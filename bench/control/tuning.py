"""Pipelines that autotune is for, and a trainer that takes their batches at a pace of its own: what it waits, tuned and not."""

import contextlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time
import zlib

import penstock
from daemon import BIN, ctl, daemon
from sample_data import FOLDER

# Steps of so many rows, of which one in HEAVY_EVERY has large pictures, for a trainer that takes so many times as long as they do.
ROWS, HEAVY_EVERY, SPARE = 8, 40, 1.6
LIGHT_SIDE, HEAVY_SIDE = 288, 3072
# Records of so many bytes, on a disk that answers so late and carries so much, for a trainer that takes so much.
RECORD_BYTES, RECORDS = 4000, 16_000
LATENCY_MS, DISK_MB_PER_S, DEMAND_MB_PER_S = 20, 2000, 60

# Each names all numbers but the one that is to be chosen.
UNEVEN = """
name: "tuned" workers: 2 read_ahead_bytes: 524288
stage { tfrecord { files: "%s" } }
stage { parse_example { feature { key: "data" bytes {} } } }
stage { map { out: "m = mean(resize(decode_png(data, channels=3), [8, 8]))" } }
stage { batch { batch_size: %d } }
stage { repeat {} }
"""

SLOW = """
name: "tuned" workers: 2 ring { slots: 8 }
stage { tfrecord { files: "%s" } }
stage { parse_example { feature { key: "d" bytes { length: %d } } } }
stage { batch { batch_size: %d } }
stage { repeat {} }
"""


def _png(side):
    """A grey picture of so many pixels a side."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    squares = bytes(column * column & 0xFF for column in range(2 * side))
    rows = b"".join(b"\0" + squares[7 * row % side :][:side] for row in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def uneven_pictures(log):
    """A shard of pictures, the first of HEAVY_EVERY batches large. Returns its path."""
    path = FOLDER / f"uneven-{LIGHT_SIDE}-{HEAVY_SIDE}.tfrecord"
    if not path.exists():
        log(f"making {path}")
        folder = path.with_suffix(".pictures")
        folder.mkdir(parents=True, exist_ok=True)
        light, heavy = _png(LIGHT_SIDE), _png(HEAVY_SIDE)
        for i in range(ROWS * HEAVY_EVERY):
            (folder / f"{i:06d}.png").write_bytes(heavy if i < ROWS else light)
        subprocess.run([BIN / "penstock", "write", path, "--files", f"{folder}/*.png"], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder)
    return path


def slow_records(log):
    """A folder of a shard of RECORDS records. Returns the folder."""
    folder = FOLDER / f"slow-{RECORD_BYTES}-{RECORDS}"
    if not folder.exists():
        log(f"making {folder}")
        partial = folder.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        lines = partial / "lines.jsonl"
        lines.write_text("".join(json.dumps({"d": format(i, "08d") * (RECORD_BYTES // 8)}) + "\n" for i in range(RECORDS)))
        subprocess.run([BIN / "penstock", "write", partial / "slow.tfrecord", "--jsonl", lines], check=True, stdout=subprocess.DEVNULL)
        lines.unlink()
        partial.rename(folder)
    return folder


def slow_disk(folder, files):
    """What the environment of a daemon has to have, so that `files`, a folder, lies on a slow disk; `folder` takes a library."""
    library = os.path.join(folder, "slow_disk.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, pathlib.Path(__file__).with_name("slow_disk.c"), "-ldl", "-lpthread"], check=True)
    return {"LD_PRELOAD": library, "SLOW_DISK": f"{os.path.realpath(files)} {LATENCY_MS} {DISK_MB_PER_S}"}


@contextlib.contextmanager
def serving(folder, spec, tuned, environment=()):
    """A daemon with the pipeline of `spec`, a text: yields its socket. No file of it is mapped."""
    config = pathlib.Path(folder, "penstockd.textproto")
    # Other load of the machine is to change nothing of what workers can do in time.
    config.write_text(f"worker_defaults {{ autotune: {'true' if tuned else 'false'} worker_nice: 0 }} mapped_files {{ max_bytes: 0 }}\n")
    pathlib.Path(folder, "tuned.textproto").write_text(spec)
    with daemon(folder, "--config", str(config), environment=environment) as (_, socket):
        ctl(socket, "create", f"{folder}/tuned.textproto")
        yield socket


class Trainer:
    """Takes batches at its own pace."""

    def __init__(self, socket):
        self._loader = iter(penstock.attach("tuned", socket=socket, timeout=60))

    def rate(self, seconds):
        """Batches a second of one that takes all that there is."""
        begin, taken = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            next(self._loader)
            taken += 1
        return taken / (time.perf_counter() - begin)

    def wait(self, step_s, seconds):
        """The share of its time in which it waits for batches, where each takes it `step_s`."""
        begin, waited = time.perf_counter(), 0.0
        while (now := time.perf_counter()) - begin < seconds:
            next(self._loader)
            got = time.perf_counter()
            waited += got - now
            time.sleep(step_s)
        return waited / (time.perf_counter() - begin)


def numbers(socket):
    """What the pipeline has now."""
    stats = json.loads(ctl(socket, "top", "tuned", "--count", "1", "--json"))
    ahead = [int(stage["read_ahead_bytes"]) for stage in stats["stages"] if int(stage.get("read_ahead_bytes", 0)) > 0]
    return {"slots": stats["slots"], "read_ahead_kib": ahead[0] // 1024}
