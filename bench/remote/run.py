"""TFRecords over HTTP beside a bare loop of libcurl against the same nginx, by turns. One JSON line a case.

    python run.py [--quick] [--cases late,near,stalled,cached,first_batch]

The loop (bench/loop_fetch.cc) fetches 8 MiB × 32 into memory and forgets it. The daemon makes batches of the records, which a consumer takes and
forgets. `rate_ratio` is the daemon's bytes a second as a multiple of the loop's, `cpu_s_per_gib` the processor time of each side (the server's
is neither's), all medians of pairs that were taken by turns. Debian packages: nginx, libnginx-mod-http-lua.

    late         50 ms to the first byte and 90 MiB/s a connection
    near         neither
    stalled      as late, and one request in twenty takes two seconds longer; beside the daemon's own rate without
    cached       the second pass out of a cache folder, beside the same files on this machine
    first_batch  seconds from the creation to the first batch, beside the same files on this machine
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

import numpy as np

import penstock

ROOT = pathlib.Path(__file__).parents[2]
BIN = pathlib.Path(os.environ.get("PENSTOCK_BIN", ROOT / "build/release/bin"))
sys.path.insert(0, str(ROOT / "tests/remote"))

import lua_nginx  # noqa: E402

GIB = 1 << 30
FILES = 4
LATENCY_S = 0.05


def write(root, bytes_of_one):
    random = np.random.default_rng(1)
    record = random.bytes(100_000)
    for i in range(FILES):
        with penstock.io.TFRecordWriter(str(root / f"part-{i}")) as writer:
            for _ in range(bytes_of_one // len(record)):
                writer.write(record)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_loop(place):
    urls = [f"{place}/part-{i}" for i in range(FILES)]
    done = json.loads(subprocess.run([BIN / "bench_loop_fetch", "32", str(8 << 20), *urls], check=True, capture_output=True, text=True).stdout)
    return {"bytes_per_s": done["bytes"] / done["seconds"], "cpu": done["cpu_seconds"] / done["bytes"] * GIB}


def run_daemon(place, passes=1, remote=""):
    """Of the last pass: bytes a second, processor seconds a GiB, and what was fetched; and the seconds to the first batch."""
    with tempfile.TemporaryDirectory() as folder:
        is_far = "://" in str(place)
        config = pathlib.Path(folder, "config")
        config.write_text(f'remote {{ allow: "*" allow_local: "{place}/" {remote} }}' if is_far else "")
        files = " ".join(f'files: "{place}/part-{i}"' for i in range(FILES))
        spec = pathlib.Path(folder, "spec.textproto")
        spec.write_text(f'name: "case" stage {{ tfrecord {{ {files} cycle_length: {FILES} }} }} stage {{ batch {{ batch_size: 32 }} }}')
        socket = os.path.join(folder, "s")
        ready, ready_end = os.pipe()
        daemon = subprocess.Popen([BIN / "penstockd", "--socket", socket, "--state-dir", "none", "--config", config, "--ready-fd", str(ready_end)],
                                  pass_fds=[ready_end], stderr=subprocess.DEVNULL)
        os.close(ready_end)
        try:
            assert os.read(ready, 1) == b"\n"
            os.close(ready)
            for turn in range(passes):
                name = f"case{turn}"
                cpu, begin = cpu_seconds(daemon.pid), time.monotonic()
                subprocess.run([BIN / "penstock", "--socket", socket, "create", spec, "--name", name], check=True, stdout=subprocess.DEVNULL)
                first = None
                with penstock.attach(name, socket=socket) as batches:
                    for _ in batches:
                        first = first or time.monotonic() - begin
                seconds = time.monotonic() - begin
                cpu = cpu_seconds(daemon.pid) - cpu
                stats = json.loads(subprocess.run([BIN / "penstock", "--socket", socket, "stats", name, "--json"], check=True, stdout=subprocess.PIPE).stdout)
                subprocess.run([BIN / "penstock", "--socket", socket, "delete", name], check=True, stdout=subprocess.DEVNULL)
                # What the cache folder still writes is not the next pass'.
                time.sleep(1 if remote else 0)
            bytes_ = int(stats["bytes_read"])
            return {"bytes_per_s": bytes_ / seconds, "cpu": cpu / bytes_ * GIB, "first": first, "remote": stats.get("remote", {})}
        finally:
            daemon.terminate()
            daemon.wait()


def by_turns(pairs, *sides):
    taken = [[side() for side in sides] for _ in range(pairs)]
    return [[turn[i] for turn in taken] for i in range(len(sides))]


def median(turns, key):
    return statistics.median(turn[key] for turn in turns)


def beside(case, pairs, name, other, mine):
    theirs, ours = by_turns(pairs, other, mine)
    ratios = [one["bytes_per_s"] / two["bytes_per_s"] for one, two in zip(ours, theirs, strict=True)]
    return {
        "case": case, "rate_ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios],
        "mib_per_s": {"daemon": round(median(ours, "bytes_per_s") / 2**20, 1), name: round(median(theirs, "bytes_per_s") / 2**20, 1)},
        "cpu_s_per_gib": {"daemon": round(median(ours, "cpu"), 3), name: round(median(theirs, "cpu"), 3)},
        "requests": [int(one["remote"].get("requests", 0)) for one in ours], "hedges": [int(one["remote"].get("hedges", 0)) for one in ours],
    }  # fmt: skip


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true", help="less data, one pair")
    arguments.add_argument("--cases", default="late,near,stalled,cached,first_batch")
    options = arguments.parse_args()
    pairs = 1 if options.quick else 5
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "root")
        root.mkdir()
        for one in (pathlib.Path(folder), root):
            one.chmod(0o755)
        write(root, (64 if options.quick else 256) << 20)
        pathlib.Path(folder, "nginx").mkdir()
        server = lua_nginx.LuaNginx(pathlib.Path(folder, "nginx"), root, latency_ms=int(1000 * LATENCY_S))
        late, near, stalled = (f"{server.url}/{place}" for place in ("late", "near", "stalled"))
        cases = {
            "late": lambda: beside("late", pairs, "loop", lambda: run_loop(late), lambda: run_daemon(late)),
            "near": lambda: beside("near", pairs, "loop", lambda: run_loop(near), lambda: run_daemon(near)),
            "stalled": lambda: beside("stalled", pairs, "without", lambda: run_daemon(late), lambda: run_daemon(stalled)),
            "cached": lambda: beside(
                "cached", pairs, "local", lambda: run_daemon(root), lambda: run_daemon(near, passes=2, remote=f'cache_folder: "{folder}/cache"')),
            "first_batch": lambda: first_batch(pairs, root, late),
        }  # fmt: skip
        try:
            for case in options.cases.split(","):
                print(json.dumps(cases[case]()), flush=True)
        finally:
            server.end()


def first_batch(pairs, root, late):
    near, far = by_turns(pairs, lambda: run_daemon(root), lambda: run_daemon(late))
    seconds = {"daemon": round(median(far, "first"), 3), "local": round(median(near, "first"), 3)}
    return {"case": "first_batch", "seconds": seconds, "first_byte_times": round((seconds["daemon"] - seconds["local"]) / LATENCY_S, 2)}


main()
