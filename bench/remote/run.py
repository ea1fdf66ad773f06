"""TFRecords over HTTP beside a bare loop of libcurl and Arrow's S3 client against the same nginx, by turns. One JSON line a case and peer.

    python run.py [--quick] [--cases late,near,tls,stalled,cached,first_batch,plan,flowers,dali,gfile] [--arrow-python PYTHON] [--dali-python PYTHON]
                  [--tf-python PYTHON] [--photos GLOB]

The loop (bench/loop_fetch.cc) fetches 8 MiB × 32 into memory and forgets it, and so does Arrow (arrow_s3.py). The daemon makes batches of the records,
which a consumer takes and forgets; `local` is the daemon with the same files on this machine, so that what fetching costs is the difference. `rate_ratio` is the daemon's bytes a second as a multiple of the peer's, `cpu_s_per_gib` the processor time of each
side (the server's is neither's), all medians of turns. Debian packages: nginx, libnginx-mod-http-lua,
openssl.

    late         50 ms to the first byte and 90 MiB/s a connection
    near         neither
    tls          near, with TLS
    stalled      as late, and one request in twenty takes two seconds longer; beside the daemon's own rate without
    cached       the second pass out of a cache folder, beside the same files on this machine
    first_batch  seconds from the creation to the first batch, beside the same files on this machine
    plan         a pipeline of 10,000 objects is created: requests for lists and for ends, seconds at 50 ms, memory of the daemon; with and without
                 trust_etags
    half_cached  as cached, with a folder for half of the data: requests of the third pass as a part of the first one's

Against Ceph's radosgw (Debian packages: radosgw, ceph-mon, ceph-osd, ceph-common), where the objects are put by --arrow-python:

    flowers      config/pipelines/flowers.textproto out of a bucket, beside the same files on this machine
    dali         image and label of each of its records, not decoded, beside DALI's reader
    gfile        what tf.data's gfile says to one of its objects

A case whose peer or server is not there says so in "cannot", and gives no figure.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np

import penstock

ROOT = pathlib.Path(__file__).parents[2]
BIN = pathlib.Path(os.environ.get("PENSTOCK_BIN", ROOT / "build/release/bin"))
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("remote", "support")]

import lua_nginx  # noqa: E402
import small_ceph  # noqa: E402
from certificates import make_certificate  # noqa: E402

GIB = 1 << 30
FILES = 4
# Each file has so many names, that is: so many objects, so that a start is little beside the rest.
NAMES = 4
LATENCY_S = 0.05
KEY, SECRET = "AKIDEXAMPLE", "SECRETEXAMPLE"


def write(root, bytes_of_one):
    random = np.random.default_rng(1)
    record = random.bytes(100_000)
    for i in range(FILES):
        with penstock.io.TFRecordWriter(str(root / f"part-{i}")) as writer:
            for _ in range(bytes_of_one // len(record)):
                writer.write(record)
        for name in range(1, NAMES):
            os.link(root / f"part-{i}", root / f"part-{name * FILES + i}")


def names(place, count=FILES * NAMES):
    return [f"{place}/part-{i}" for i in range(count)]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fetched_by(*words, **variables):
    done = json.loads(subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, **variables}).stdout)
    return {"bytes_per_s": done["bytes"] / done["seconds"], "cpu": done["cpu_seconds"] / done["bytes"] * GIB}


def run_loop(place, authorities=""):
    return fetched_by(BIN / "bench_loop_fetch", "32", str(8 << 20), *names(place), SSL_CERT_FILE=authorities)


def run_arrow(python, place, authorities="-"):
    server, bucket = place.rsplit("/", 1)
    script = pathlib.Path(__file__).parent / "arrow_s3.py"
    return fetched_by(python, script, server, authorities, str(8 << 20), "32", *names(bucket))


class Daemon:
    """A penstockd with that remote { } in its configuration; none: ""."""

    def __init__(self, remote=""):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        config = self.folder / "config"
        config.write_text(f"remote {{ {remote} }}" if remote else "")
        self.socket = str(self.folder / "s")
        ready, ready_end = os.pipe()
        self.process = subprocess.Popen(
            [BIN / "penstockd", "--socket", self.socket, "--state-dir", "none", "--config", config, "--ready-fd", str(ready_end)],
            pass_fds=[ready_end], stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(ready_end)
        assert os.read(ready, 1) == b"\n"
        os.close(ready)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self._folder.cleanup()

    def do(self, *words):
        return subprocess.run([BIN / "penstock", "--socket", self.socket, *words], check=True, stdout=subprocess.PIPE).stdout

    def create(self, text, name):
        spec = self.folder / "spec.textproto"
        spec.write_text(text)
        self.do("create", spec, "--name", name)

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) << 10

    def passes(self, text, passes):
        """Of each pass, of a pipeline of its own: seconds, those to the first batch and behind it, rows behind it, and what was fetched."""
        for turn in range(passes):
            name = f"case{turn}"
            cpu, begin = cpu_seconds(self.process.pid), time.monotonic()
            self.create(text, name)
            first, rows = None, 0
            with penstock.attach(name, socket=self.socket) as batches:
                for batch in batches:
                    if first is None:
                        first = time.monotonic() - begin
                    else:
                        rows += len(next(iter(batch.values())) if isinstance(batch, dict) else batch)
            seconds = time.monotonic() - begin
            cpu = cpu_seconds(self.process.pid) - cpu
            stats = json.loads(self.do("stats", name, "--json"))
            self.do("delete", name)
            yield {"seconds": seconds, "first": first, "rows_per_s": rows / (seconds - first), "cpu": cpu, "bytes": int(stats["bytes_read"]),
                   "remote": stats.get("remote", {})}  # fmt: skip


def records_spec(place):
    files = " ".join(f'files: "{name}"' for name in names(place))
    return f'name: "case" stage {{ tfrecord {{ {files} cycle_length: {FILES} }} }} stage {{ batch {{ batch_size: 32 }} }}'


def run_daemon(place, passes=1, remote=""):
    """Of the last pass: bytes a second, processor seconds a GiB, and what was fetched; and the seconds to the first batch."""
    is_far = "://" in str(place)
    with Daemon(f'allow: "*" allow_local: "{place}/" {remote}' if is_far else "") as daemon:
        for done in daemon.passes(records_spec(place), passes):
            # What the cache folder still writes is not the next pass'.
            time.sleep(1 if remote else 0)
    return {"bytes_per_s": done["bytes"] / done["seconds"], "cpu": done["cpu"] / done["bytes"] * GIB, "first": done["first"], "remote": done["remote"]}


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
            f"requests_{name}": [int(one.get("remote", {}).get("requests", 0)) for one in theirs],
        }  # fmt: skip


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--quick", action="store_true", help="less data, one turn")
    arguments.add_argument("--cases", default="late,near,tls,stalled,cached,half_cached,first_batch,plan,flowers,dali,gfile")
    arguments.add_argument("--arrow-python", help="a Python with pyarrow and boto3; none: without that peer, and without radosgw's cases")
    arguments.add_argument("--dali-python", help="a Python with DALI; none: without that peer")
    arguments.add_argument("--tf-python", help="a Python with TensorFlow; none: without that peer")
    arguments.add_argument("--photos", help="photographs to make flowers of; none: drawn ones")
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
            "near": lambda: beside("near", turns, lambda: run_daemon(near), loop=lambda: run_loop(near), arrow=arrow(near), local=lambda: run_daemon(root)),
            "tls": lambda: beside(
                "tls", turns, lambda: run_daemon(tls, remote=f'authorities: "{pem}"'), loop=lambda: run_loop(tls, pem), arrow=arrow(tls, pem),
                local=lambda: run_daemon(root)),
            "stalled": lambda: beside("stalled", turns, lambda: run_daemon(stalled), without=lambda: run_daemon(late)),
            "cached": lambda: beside(
                "cached", turns, lambda: run_daemon(near, passes=2, remote=f'cache_folder: "{folder}/cache"'), local=lambda: run_daemon(root)),
            "half_cached": lambda: half_cached(near, f"{folder}/half"),
            "first_batch": lambda: first_batch(turns, root, late),
            "plan": lambda: plan(plain),
            "flowers": lambda: flowers(turns, bucket()),
            "dali": lambda: dali(turns, bucket(), options.dali_python),
            "gfile": lambda: gfile(bucket(), options.tf_python),
        }  # fmt: skip
        buckets = []

        def bucket():
            """What there is of flowers, here and in radosgw's bucket; made once."""
            if not buckets:
                buckets.append(Bucket(folder, options.arrow_python, 400 if options.quick else 4000, options.photos))
            return buckets[0]

        try:
            for case in options.cases.split(","):
                for line in cases[case]():
                    print(json.dumps(line), flush=True)
        finally:
            for server in [*servers, *buckets]:
                server.end()


def first_batch(turns, root, late):
    near, far = by_turns(turns, lambda: run_daemon(root), lambda: run_daemon(late))
    seconds = {"daemon": round(median(far, "first"), 3), "local": round(median(near, "first"), 3)}
    yield {"case": "first_batch", "seconds": seconds, "first_byte_times": round((seconds["daemon"] - seconds["local"]) / LATENCY_S, 2)}


def half_cached(near, cache):
    """One pipeline that repeats its data, since what a pipeline needs is kept as long as it is there."""
    half = sum(int(re.search(r"^content-length: (\d+)", str(urllib.request.urlopen(name).headers), re.I | re.M)[1]) for name in names(near)) // 2
    with Daemon(f'allow: "*" allow_local: "{near}/" cache_folder: "{cache}" cache_bytes: {max(half, 64 << 20)}') as daemon:
        passes = 3
        daemon.create(f"{records_spec(near)} stage {{ repeat {{ count: {passes} }} }}", "case")
        requests = [0]
        with penstock.attach("case", socket=daemon.socket) as batches:
            for _ in batches:
                # What was asked for ahead of the next pass counts for the one before.
                if batches.epoch + 1 > len(requests):
                    requests.append(requests_of(daemon))
        requests.append(requests_of(daemon))
    of_pass = [later - before for before, later in zip(requests, requests[1:])]
    yield {"case": "half_cached", "requests_of_each_pass": of_pass, "last_over_first": round(of_pass[-1] / of_pass[0], 3)}


def requests_of(daemon):
    return int(json.loads(daemon.do("stats", "case", "--json")).get("remote", {}).get("requests", 0))


def plan(server):
    def counts():
        return {name: int(number) for name, number in (line.split() for line in urllib.request.urlopen(f"{server}/counts").read().decode().splitlines())}

    for trusts in (False, True):
        place = f'allow: "*" place {{ prefix: "s3://" endpoint: "{server}" }} trust_etags: {str(trusts).lower()}'
        with Daemon(place) as daemon:
            before, peak, begin = counts(), daemon.peak_bytes(), time.monotonic()
            daemon.create('name: "case" stage { list_files { files: "s3://many/part-*" } } stage { batch { batch_size: 1000 } }', "case")
            seconds = time.monotonic() - begin
            after = counts()
            yield {"case": "plan", "objects": 10_000, "trust_etags": trusts, "lists": after["lists"] - before["lists"],
                   "other_requests": after["many"] - before["many"], "seconds": round(seconds, 2),
                   "mib_of_daemon": {"at_its_start": round(peak / 2**20, 1), "at_most": round(daemon.peak_bytes() / 2**20, 1)}}  # fmt: skip


class Bucket:
    """Flowers on this machine, and in a bucket of radosgw; `cannot` says why there is none."""

    def __init__(self, folder, arrow_python, records, photos):
        self.records = records
        self.here = folder / "flowers"
        self.cannot, self._ceph = None, None
        if not small_ceph.is_installed():
            self.cannot = "Debian packages: radosgw ceph-mon ceph-osd ceph-common"
        elif arrow_python is None:
            self.cannot = "no --arrow-python to put objects with"
        if self.cannot:
            return
        subprocess.run([BIN / "penstock", "make-sample", "flowers", "--records", str(records), "--out", self.here, *(["--photos", photos] if photos else [])],
                       check=True, stdout=subprocess.DEVNULL)
        self.files = sorted(path.name for path in self.here.glob("*.tfrecord"))
        (folder / "ceph").mkdir()
        self._ceph = small_ceph.SmallCeph(folder / "ceph", KEY, SECRET)
        self.url = self._ceph.url
        script = pathlib.Path(__file__).parent / "put_objects.py"
        subprocess.run([arrow_python, script, self.url, KEY, SECRET, "flowers", *(self.here / name for name in self.files)], check=True)
        secret = folder / "secret"
        secret.write_text(SECRET)
        self.remote = (f'allow: "*" place {{ prefix: "s3://" endpoint: "{self.url}" '
                       f'aws_key {{ access_key_id: "{KEY}" secret_access_key_file: "{secret}" }} }}')  # fmt: skip
        self.variables = {"AWS_ENDPOINT_URL": self.url, "AWS_ENDPOINT_URL_S3": self.url, "S3_ENDPOINT": self.url, "AWS_ACCESS_KEY_ID": KEY,
                          "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}  # fmt: skip

    def end(self):
        if self._ceph is not None:
            self._ceph.end()


def rows_per_s(text, remote=""):
    with Daemon(remote) as daemon, contextlib.closing(daemon.passes(text, 1)) as passes:
        return next(passes)


def flowers(turns, bucket):
    if bucket.cannot:
        yield {"case": "flowers", "cannot": bucket.cannot}
        return
    whole = (ROOT / "config/pipelines/flowers.textproto").read_text()
    # Once through, so that each turn ends.
    once, count = re.subn(r"stage \{ repeat \{\} \}", "", whole)
    assert count == 1, "the spec has another end"

    def of(place):
        text, number = re.subn(r'files: "[^"]*"', f'files: "{place}/*.tfrecord" cycle_length: {FILES}', once)
        assert number == 1, "the spec has another source"
        return text

    local, far = by_turns(turns, lambda: rows_per_s(of(bucket.here)), lambda: rows_per_s(of("s3://flowers"), bucket.remote))
    ratios = [one["rows_per_s"] / two["rows_per_s"] for one, two in zip(far, local, strict=True)]
    yield {"case": "flowers", "peer": "local", "rate_ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios],
           "images_per_s": {"s3": round(median(far, "rows_per_s"), 1), "local": round(median(local, "rows_per_s"), 1)},
           "requests": [int(one["remote"].get("requests", 0)) for one in far]}  # fmt: skip


def dali(turns, bucket, python):
    if bucket.cannot or python is None:
        yield {"case": "dali", "cannot": bucket.cannot or "no --dali-python"}
        return
    text = (f'name: "case" stage {{ tfrecord {{ files: "s3://flowers/*.tfrecord" cycle_length: {FILES} }} }} stage {{ parse_example {{ '
            'feature { key: "image/encoded" bytes {} } feature { key: "image/class/label" int64 {} } } } stage { batch { batch_size: 40 } }')  # fmt: skip
    script = pathlib.Path(__file__).parent / "dali_s3.py"
    words = [python, script, bucket.here, str(bucket.records), *(f"s3://flowers/{name}" for name in bucket.files)]

    def run():
        return json.loads(subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, **bucket.variables}).stdout.splitlines()[-1])

    theirs, ours = by_turns(turns, run, lambda: rows_per_s(text, bucket.remote))
    refused = next((one["cannot"] for one in theirs if "cannot" in one), None)
    line = {"case": "dali", "peer": "dali", "records_per_s": {"daemon": round(median(ours, "rows_per_s"), 1)}}
    if refused is not None:
        yield {**line, "cannot": refused}
        return
    ratios = [one["rows_per_s"] / two["records_per_s"] for one, two in zip(ours, theirs, strict=True)]
    line["records_per_s"]["dali"] = round(median(theirs, "records_per_s"), 1)
    yield {**line, "rate_ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios]}


def gfile(bucket, python):
    if bucket.cannot or python is None:
        yield {"case": "gfile", "cannot": bucket.cannot or "no --tf-python"}
        return
    script = pathlib.Path(__file__).parent / "gfile.py"
    done = subprocess.run([python, script, f"s3://flowers/{bucket.files[0]}"], check=True, capture_output=True, text=True,
                          env={**os.environ, **bucket.variables})  # fmt: skip
    yield {"case": "gfile", "peer": "tf.data", **json.loads(done.stdout.splitlines()[-1])}


main()
