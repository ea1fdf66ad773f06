"""TFRecords over HTTP beside a bare loop of libcurl and Arrow's S3 client against the same nginx, by turns. One JSON line a case and peer.

    python run.py [--quick] [--cases late,near,tls,stalled,cached,first_batch] [--arrow-python PYTHON]

The loop (bench/loop_fetch.cc) fetches 8 MiB × 32 into memory and forgets it, and so does Arrow (arrow_s3.py). The daemon makes batches of the records,
which a consumer takes and forgets. `rate_ratio` is the daemon's bytes a second as a multiple of the peer's, `cpu_s_per_gib` the processor time of each
side (the server's is neither's), all medians of turns. Debian packages: nginx, libnginx-mod-http-lua,
openssl.

    late         50 ms to the first byte and 90 MiB/s a connection
    near         neither
    tls          near, with TLS
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
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("remote", "support")]

import lua_nginx  # noqa: E402
from certificates import make_certificate  # noqa: E402

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


def fetched_by(*words, **variables):
    done = json.loads(subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, **variables}).stdout)
    return {"bytes_per_s": done["bytes"] / done["seconds"], "cpu": done["cpu_seconds"] / done["bytes"] * GIB}


def run_loop(place, authorities=""):
    urls = [f"{place}/part-{i}" for i in range(FILES)]
    return fetched_by(BIN / "bench_loop_fetch", "32", str(8 << 20), *urls, SSL_CERT_FILE=authorities)


def run_arrow(python, place, authorities="-"):
    server, bucket = place.rsplit("/", 1)
    script = pathlib.Path(__file__).parent / "arrow_s3.py"
    return fetched_by(python, script, server, authorities, str(8 << 20), "32", *(f"{bucket}/part-{i}" for i in range(FILES)))


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


def beside(case, turns, mine, **peers):
    """A line for each peer. `peers`: functions, by name; none where a peer is not there."""
    peers = {name: run for name, run in peers.items() if run is not None}
    *all_theirs, ours = by_turns(turns, *peers.values(), mine)
    for name, theirs in zip(peers, all_theirs, strict=True):
        ratios = [one["bytes_per_s"] / two["bytes_per_s"] for one, two in zip(ours, theirs, strict=True)]
        yield {
            "case": case, "peer": name, "rate_ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios],
            "mib_per_s": {"daemon": round(median(ours, "bytes_per_s") / 2**20, 1), name: round(median(theirs, "bytes_per_s") / 2**20, 1)},
            "cpu_s_per_gib": {"daemon": round(median(ours, "cpu"), 3), name: round(median(theirs, "cpu"), 3)},
            "requests": [int(one["remote"].get("requests", 0)) for one in ours], "hedges": [int(one["remote"].get("hedges", 0)) for one in ours],
        }  # fmt: skip


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true", help="less data, one turn")
    arguments.add_argument("--cases", default="late,near,tls,stalled,cached,first_batch")
    arguments.add_argument("--arrow-python", help="a Python with pyarrow; none: without that peer")
    options = arguments.parse_args()
    turns = 1 if options.quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        root = folder / "root"
        root.mkdir()
        for one in (folder, root):
            one.chmod(0o755)
        write(root, (64 if options.quick else 256) << 20)
        servers = []

        def serve(place, **more):
            (folder / place).mkdir()
            servers.append(lua_nginx.LuaNginx(folder / place, root, latency_ms=int(1000 * LATENCY_S), **more))
            return servers[-1].url

        def arrow(place, *more):
            return (lambda: run_arrow(options.arrow_python, place, *more)) if options.arrow_python else None

        certificate = make_certificate(folder)
        plain, secret = serve("plain"), serve("tls", certificate=certificate, name="localhost")
        late, near, stalled, tls = f"{plain}/late", f"{plain}/near", f"{plain}/stalled", f"{secret}/near"
        pem = str(certificate[0])
        cases = {
            "late": lambda: beside("late", turns, lambda: run_daemon(late), loop=lambda: run_loop(late), arrow=arrow(late)),
            "near": lambda: beside("near", turns, lambda: run_daemon(near), loop=lambda: run_loop(near), arrow=arrow(near)),
            "tls": lambda: beside(
                "tls", turns, lambda: run_daemon(tls, remote=f'authorities: "{pem}"'), loop=lambda: run_loop(tls, pem), arrow=arrow(tls, pem)),
            "stalled": lambda: beside("stalled", turns, lambda: run_daemon(stalled), without=lambda: run_daemon(late)),
            "cached": lambda: beside(
                "cached", turns, lambda: run_daemon(near, passes=2, remote=f'cache_folder: "{folder}/cache"'), local=lambda: run_daemon(root)),
            "first_batch": lambda: first_batch(turns, root, late),
        }  # fmt: skip
        try:
            for case in options.cases.split(","):
                for line in cases[case]():
                    print(json.dumps(line), flush=True)
        finally:
            for server in servers:
                server.end()


def first_batch(turns, root, late):
    near, far = by_turns(turns, lambda: run_daemon(root), lambda: run_daemon(late))
    seconds = {"daemon": round(median(far, "first"), 3), "local": round(median(near, "first"), 3)}
    yield {"case": "first_batch", "seconds": seconds, "first_byte_times": round((seconds["daemon"] - seconds["local"]) / LATENCY_S, 2)}


main()
