"""What a host of eight costs beside one alone: `./dev bench hosts [--quick] [--cases A,B]`.

One line of JSON a case; everything else goes to stderr. Each row_cost takes one pipeline by turns as one host and as the fourth of eight, in a daemon with two
workers, for a consumer that takes all that there is: `row_cost` is the daemon's processor time for each row that it hands over, as a multiple of that of one host:
the median of pairs, with the least and the greatest.

images      JPEGs that are decoded and resized, shuffled over all files: at most 1.05 by promise. Of photographs with --photos GLOB, else drawn ones
chess       small records parsed into bit planes, in a shuffle of 10,000: 1.3 was asked for, and is not reached
filter      chess records of which values choose a part: every host computes all of them up to there
unbatch     the same behind unbatch of batches that a map has made
gzip        the same records in compressed files, which every host reads and unpacks
whole       batches that a function of the whole batch has made
bytes_read  of records of 64 KiB, by one of eight hosts: `of_all`, at most 1.1 / 8 by promise
reworld     `seconds` from the last batch of the old hosts to the first of the new ones, changed by the daemon while it runs; `resume_seconds` from a state to its
            first batch, in the same daemon: `ratio`, at most 2 by promise
transport   steps of 12 MiB from one process to another as a helper sends them, with checksums: processor seconds a GiB of who takes them into a slot
            (0.6 at most by promise, 1.1 by TLS), and of who sends them; beside a plain gRPC stream of the same bytes, by turns: `of_grpc` is both sides'
            time as a part of gRPC's. With PENSTOCK_FRAMEWORKS_PYTHON, a Python with TensorFlow, tf.data service stands beside them
scale       batches a second of two daemons with a worker and a core each, one of which helps the other, as a part of those of one daemon with two workers
            on both cores: images, at least 0.9 by promise
slow        the same for a daemon that a helper far away helps, whose answers take 300 ms longer, beside a daemon alone: it must not lose by it
"""

import argparse
import contextlib
import gzip
import json
import os
import pathlib
import queue
import re
import socket as socket_module
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
from sample_data import FOLDER, shards, warm
from window import process_cpu_seconds

CASES = ["images", "chess", "filter", "unbatch", "gzip", "whole", "bytes_read", "reworld", "transport", "scale", "slow"]
HOSTS, HOST = 8, 3
WARM_UP_SECONDS = 0.5


def log(text):
    print(text, file=sys.stderr, flush=True)


def show(**fields):
    print(json.dumps({**fields, "load": round(os.getloadavg()[0], 1)}), flush=True)


def row_seconds(folder, spec, world, seconds):
    """The daemon's processor time for a row that it hands over."""
    with tempfile.TemporaryDirectory(dir=folder) as place, daemon(place) as (process, socket):
        ctl(socket, "create", str(spec), "--name", "case", "--workers", "2", *([] if world is None else ["--world", f"{world[0]}:{world[1]}"]))
        rows, begin, cpu, ready = 0, None, 0.0, time.perf_counter() + WARM_UP_SECONDS
        for batch in penstock.attach("case", socket):
            now = time.perf_counter()
            if begin is not None:
                rows += len(next(iter(batch.values())))
                if now - begin >= seconds:
                    return (process_cpu_seconds(process.pid) - cpu) / rows
            elif now >= ready:
                begin, cpu = now, process_cpu_seconds(process.pid)
    raise SystemExit("the stream ended within the window")


def row_cost(case, folder, spec, pairs, seconds):
    costs = []
    for pair in range(pairs):
        both = {world: row_seconds(folder, spec, world, seconds) for world in ((None, (HOSTS, HOST)) if pair % 2 == 0 else ((HOSTS, HOST), None))}
        costs.append(both[(HOSTS, HOST)] / both[None])
        log(f"{case}: {costs[-1]:.3f}")
    show(case=case, hosts=HOSTS, row_cost=round(statistics.median(costs), 3), least=round(min(costs), 3), greatest=round(max(costs), 3))


def chess(folder, records, log, source=None, behind_parse="", behind_map=""):
    """The spec of chess positions, with more stages; of one host's batches of 512, 64 rows are those of one of eight."""
    files = shards("chess", records, log)
    warm(files)
    path = spec_text("chess", source or files / "*.tfrecord", folder)
    text = path.read_text()
    if source is not None:
        text = re.sub(r'(tfrecord \{ files: "[^"]*")', r'\1 compression: "GZIP"', text)
    text = re.sub(r"\nstage \{\n  map", f"\n{behind_parse}stage {{\n  map", text, count=1)
    text = re.sub(r"\nstage \{ batch \{[^}]*\} \}", f"{behind_map}\\g<0>", text, count=1)
    path = path.with_name(f"chess-{len(list(folder.iterdir()))}.textproto")
    path.write_text(text)
    return path


def compressed(records):
    """The chess records in files of gzip."""
    plain = shards("chess", records, log)
    folder = FOLDER / f"chess-gzip-{records}"
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        partial.mkdir(parents=True, exist_ok=True)
        for path in sorted(plain.glob("*.tfrecord")):
            (partial / (path.name + ".gz")).write_bytes(gzip.compress(path.read_bytes(), 3))
        partial.rename(folder)
    return folder / "*.gz"


def images(folder, photos):
    files = shards("flowers", 400, log, photos)
    warm(files)
    path = spec_text("flowers", files / "*.tfrecord", folder)
    text = path.read_text().replace("shuffle { buffer_size: 500 seed: 7 }", "shuffle { global: true seed: 7 }")
    # Else a row would be the decoding of one large photograph or another.
    path.write_text(text.replace("batch { batch_size: 40 }", "batch { batch_size: 40 drop_remainder: true }"))
    return path


def bytes_read(folder):
    draws = np.random.default_rng(5)
    with penstock.io.TFRecordWriter(str(folder / "large.tfrecord")) as writer:
        for _ in range(2048):
            writer.write(draws.bytes(65536))
    spec = folder / "large.textproto"
    read = {}
    for order in ("", "stage { shuffle { buffer_size: 100 seed: 7 } } ", "stage { shuffle { global: true seed: 7 } } "):
        spec.write_text(f'name: "case" stage {{ tfrecord {{ files: "{folder}/large.tfrecord" }} }} {order}stage {{ batch {{ batch_size: 64 }} }}\n')
        for world in (None, (HOSTS, HOST)):
            with tempfile.TemporaryDirectory(dir=folder) as place, daemon(place) as (_, socket):
                ctl(socket, "create", str(spec), *([] if world is None else ["--world", f"{world[0]}:{world[1]}"]))
                for _ in penstock.attach("case", socket):
                    pass
                read[world] = int(json.loads(ctl(socket, "stats", "case", "--json"))["bytes_read"])
        name = "global shuffle" if "global" in order else "shuffle" if order else "files' order"
        show(case="bytes_read", order=name, hosts=HOSTS, bytes=read[(HOSTS, HOST)], of_all=round(read[(HOSTS, HOST)] / read[None], 4), promised=round(1.1 / HOSTS, 4))


def reworld(folder, records, pairs):
    spec = chess(folder, records, log).read_text()
    gaps, resumes = [], []
    with daemon(str(folder)) as (_, socket):
        for pair in range(pairs):
            name = f"reworld_{pair}"
            path = folder / "reworld.textproto"
            path.write_text(re.sub(r'name: "[^"]*"', f'name: "{name}"', spec, count=1))
            ctl(socket, "create", str(path), "--workers", "2", "--world", "5:2", "--fewest-hosts", "3")
            loader = penstock.attach(name, socket)
            step, changes, last, state = 0, 400, 0.0, None
            for _ in loader:
                now = time.perf_counter()
                if step == changes:
                    gaps.append(now - last)
                    break
                last = now
                if step == changes - 1:
                    state = loader.state_dict()["cursor"]
                if step == 200:
                    ctl(socket, "update", name, "--world", "3:1", "--at-step", str(changes))
                step += 1
            loader.close()
            ctl(socket, "delete", name)
            (folder / "cursor").write_bytes(state)
            begin = time.perf_counter()
            ctl(socket, "create", str(path), "--workers", "2", "--world", "3:1", "--resume", str(folder / "cursor"))
            loader = penstock.attach(name, socket)
            next(iter(loader))
            resumes.append(time.perf_counter() - begin)
            loader.close()
            ctl(socket, "delete", name)
    show(case="reworld", seconds=round(statistics.median(gaps), 4), resume_seconds=round(statistics.median(resumes), 4),
         ratio=round(statistics.median(gap / resume for gap, resume in zip(gaps, resumes)), 3))


def certificates(folder):
    """Of an authority, which is the certificate of both sides itself."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=bench",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)
    (folder / "key.pem").chmod(0o600)
    (folder / "authority.pem").write_bytes((folder / "certificate.pem").read_bytes())


def transport(folder, times, steps):
    certificates(folder)
    for by in ("plain", "TLS"):
        runs = {"helper_transport": [], "helper_grpc": []}
        # It has no TLS.
        python = os.environ.get("PENSTOCK_FRAMEWORKS_PYTHON") if by == "plain" else None
        if python:
            runs["tf_data_service"] = []
        for _ in range(times):
            for name, of_name in runs.items():
                program = [python, pathlib.Path(__file__).parent / "tf_data_service.py"] if name == "tf_data_service" else [BIN / f"bench_{name}"]
                words = [*program, str(12 << 20), str(steps), *([folder] if by == "TLS" else [])]
                of_name.append(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
                log(f"transport: {by} {name} {of_name[-1]}")
        own, grpc, *service = runs.values()
        asker = [run["asker_s_per_gib"] for run in own]
        both = [(a["asker_s_per_gib"] + a["helper_s_per_gib"]) / (b["asker_s_per_gib"] + b["helper_s_per_gib"]) for a, b in zip(own, grpc)]
        show(case="transport", by=by, asker_s_per_gib=statistics.median(asker), least=min(asker), greatest=max(asker), promised=0.6 if by == "plain" else 1.1,
             helper_s_per_gib=statistics.median(run["helper_s_per_gib"] for run in own), gib_per_s=statistics.median(run["gib_per_s"] for run in own),
             grpc_asker_s_per_gib=statistics.median(run["asker_s_per_gib"] for run in grpc),
             grpc_helper_s_per_gib=statistics.median(run["helper_s_per_gib"] for run in grpc), of_grpc=round(statistics.median(both), 3))
        for runs_of_service in service:
            show(case="transport of tf.data service", asker_s_per_gib=statistics.median(run["asker_s_per_gib"] for run in runs_of_service),
                 helper_s_per_gib=statistics.median(run["helper_s_per_gib"] for run in runs_of_service),
                 gib_per_s=statistics.median(run["gib_per_s"] for run in runs_of_service))


@contextlib.contextmanager
def pinned(processors):
    """What is started meanwhile runs there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def batches_per_second(socket, spec, workers, seconds, helped):
    """And the part of the steps that the helper has made."""
    ctl(socket, "create", str(spec), "--name", "case", "--workers", str(workers))
    batches, begin, ready = 0, None, time.perf_counter() + 4 * WARM_UP_SECONDS
    for _ in penstock.attach("case", socket):
        now = time.perf_counter()
        if begin is not None:
            batches += 1
            if now - begin >= seconds:
                stats = json.loads(ctl(socket, "stats", "case", "--json"))
                steps = sum(int(each.get("steps", 0)) for each in stats.get("helpers", []))
                if helped and steps == 0:
                    log(f"the helper has made no step: {stats.get('helpers')}")
                return batches / (now - begin), steps / int(stats["steps"])
        elif now >= ready:
            begin = now
    raise SystemExit("the stream ended within the window")


def free_port():
    with socket_module.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def scale(folder, spec, pairs, seconds):
    text = spec.read_text()
    assert "ring {" not in text
    # As docs/howto/helpers.md says: a step is lent when it has a slot.
    spec = folder / "scale.textproto"
    spec.write_text(text + "ring { slots: 12 }\n")
    cores = sorted(os.sched_getaffinity(0))[:2]
    ratios, parts = [], []
    for pair in range(pairs):
        rates = {}
        for helped in (True, False) if pair % 2 else (False, True):
            with contextlib.ExitStack() as stack:
                places = [stack.enter_context(tempfile.TemporaryDirectory(dir=folder)) for _ in range(2)]
                options = []
                if helped:
                    port = free_port()
                    config = pathlib.Path(places[0], "penstockd.textproto")
                    config.write_text("worker_defaults { workers: 1 }\n")
                    with pinned({cores[1]}):
                        stack.enter_context(daemon(places[0], "--config", str(config), "--serve", f"127.0.0.1:{port}"))
                    asker = pathlib.Path(places[1], "penstockd.textproto")
                    asker.write_text(f'helpers {{ address: "127.0.0.1:{port}" }}\n')
                    options = ["--config", str(asker)]
                with pinned({cores[0]} if helped else set(cores)):
                    _, socket = stack.enter_context(daemon(places[1], *options))
                rates[helped], part = batches_per_second(socket, spec, 1 if helped else 2, seconds, helped)
                if helped:
                    parts.append(part)
        ratios.append(rates[True] / rates[False])
        log(f"scale: {ratios[-1]:.3f} of {rates[False]:.2f} batches a second; the helper made {parts[-1]:.2f} of them")
    show(case="scale", of_two_workers=round(statistics.median(ratios), 3), least=round(min(ratios), 3), greatest=round(max(ratios), 3), promised=0.9,
         helper_part=round(statistics.median(parts), 3))


def slow(folder, pairs, seconds):
    """Small steps, some 2 ms each, and a helper behind a line that takes 300 ms."""
    spec = folder / "slow.textproto"
    spec.write_text('name: "case" stage { range { stop: 1000 } } stage { repeat {} } stage { map { out: "x = sum(random_uniform([30000], seed=1)) + float32(value)" } } '
                    'stage { batch { batch_size: 10 } }\n')
    ratios, parts = [], []
    for pair in range(pairs):
        rates = {}
        for helped in (True, False) if pair % 2 else (False, True):
            with contextlib.ExitStack() as stack:
                places = [stack.enter_context(tempfile.TemporaryDirectory(dir=folder)) for _ in range(2)]
                options = []
                if helped:
                    port = free_port()
                    stack.enter_context(daemon(places[0], "--serve", f"127.0.0.1:{port}"))
                    line = stack.enter_context(Line(port, 0.3))
                    asker = pathlib.Path(places[1], "penstockd.textproto")
                    asker.write_text(f'helpers {{ address: "127.0.0.1:{line.port}" }}\n')
                    options = ["--config", str(asker)]
                _, socket = stack.enter_context(daemon(places[1], *options))
                rates[helped], part = batches_per_second(socket, spec, 1, seconds, helped=False)
                if helped:
                    parts.append(part)
        ratios.append(rates[True] / rates[False])
        log(f"slow: {ratios[-1]:.3f} of {rates[False]:.2f} batches a second; the helper made {parts[-1]:.3f} of them")
    show(case="slow", of_alone=round(statistics.median(ratios), 3), least=round(min(ratios), 3), greatest=round(max(ratios), 3), helper_part=round(statistics.median(parts), 4))


class Line:
    """Hands on what comes from a port's side later than it came."""

    def __init__(self, port, delay_s):
        self._to, self._delay_s = port, delay_s
        self._listening = socket_module.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listening.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                asker, _ = self._listening.accept()
                helper = socket_module.create_connection(("127.0.0.1", self._to))
                late = queue.Queue()
                for work in ((self._carry, asker, helper.sendall), (self._carry, helper, lambda data, late=late: late.put((time.monotonic(), data))), (self._send, late, asker)):
                    threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    @staticmethod
    def _carry(of, put):
        with contextlib.suppress(OSError):
            while data := of.recv(1 << 18):
                put(data)
        with contextlib.suppress(OSError):
            put(b"")

    def _send(self, late, asker):
        with contextlib.suppress(OSError):
            while True:
                came, data = late.get()
                if not data:
                    break
                time.sleep(max(0.0, came + self._delay_s - time.monotonic()))
                asker.sendall(data)
        asker.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--cases", default=",".join(CASES))
    arguments.add_argument("--photos", help="the pattern of JPEG files for images and scale; without it flowers are drawn")
    given = arguments.parse_args()
    cases = given.cases.split(",")
    if unknown := set(cases) - set(CASES):
        raise SystemExit(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    pairs, seconds, records = (3, 1.0, 100_000) if given.quick else (7, 3.0, 400_000)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        filtered = 'stage { filter { predicate: "s % 16 != 0" } }\n'
        specs = {
            "images": lambda: images(folder, given.photos),
            "chess": lambda: chess(folder, records, log),
            "filter": lambda: chess(folder, records, log, behind_parse=filtered),
            "unbatch": lambda: chess(folder, records, log, behind_map="\nstage { batch { batch_size: 64 } }\nstage { map { out: \"board = board - mean(board)\" out: \"flags = flags\" out: \"score = score\" } }\nstage { unbatch {} }"),
            "gzip": lambda: chess(folder, records, log, source=compressed(records)),
            "whole": lambda: pathlib.Path(add_map(chess(folder, records, log))),
        }
        for case in cases:
            if case == "bytes_read":
                bytes_read(folder)
            elif case == "reworld":
                reworld(folder, records, pairs)
            elif case == "transport":
                transport(folder, pairs, 100 if given.quick else 300)
            elif case == "scale":
                scale(folder, images(folder, given.photos), pairs, seconds)
            elif case == "slow":
                slow(folder, pairs, seconds)
            else:
                row_cost(case, folder, specs[case](), pairs, seconds)


def add_map(path):
    """A function of whole batches, behind the batch."""
    text = path.read_text()
    text = re.sub(r"(\nstage \{ batch \{[^}]*\} \})", r'\1\nstage { map { out: "board = board" out: "flags = flags" out: "score = score - mean(score)" } }', text, count=1)
    path.write_text(text)
    return path


if __name__ == "__main__":
    main()
