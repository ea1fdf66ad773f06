"""What a host of eight costs beside one alone: `./dev bench hosts [--quick] [--cases A,B]`.

One line of JSON a case; everything else goes to stderr. Each row_cost takes one pipeline by turns as one host and as the fourth of eight, in a daemon with two
workers, for a consumer that takes all that there is: `row_cost` is the daemon's processor time for each row that it hands over, as a multiple of that of one host:
the median of pairs, with the least and the greatest.

images      JPEGs that are decoded and resized, shuffled over all files: at most 1.05 by promise
chess       small records parsed into bit planes, in a shuffle of 10,000: 1.3 was asked for, and is not reached
filter      chess records of which values choose a part: every host computes all of them up to there
unbatch     the same behind unbatch of batches that a map has made
gzip        the same records in compressed files, which every host reads and unpacks
whole       batches that a function of the whole batch has made
bytes_read  of records of 64 KiB, by one of eight hosts: `of_all`, at most 1.1 / 8 by promise
reworld     `seconds` from the last batch of the old hosts to the first of the new ones, changed by the daemon while it runs; `resume_seconds` from a state to its
            first batch, in the same daemon: `ratio`, at most 2 by promise
transport   steps of 12 MiB from one process to another as a helper sends them, with checksums: processor seconds a GiB of who takes them into a slot
            (0.6 at most by promise, 1.1 by TLS), and of who sends them
"""

import argparse
import gzip
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

import numpy as np

import penstock
from daemon import ctl, daemon, spec_text
from sample_data import FOLDER, shards, warm
from window import process_cpu_seconds

CASES = ["images", "chess", "filter", "unbatch", "gzip", "whole", "bytes_read", "reworld", "transport"]
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
    program = pathlib.Path(__file__).parents[2] / "build/release/bin/bench_helper_transport"
    certificates(folder)
    for by in ("plain", "TLS"):
        runs = []
        for _ in range(times):
            done = subprocess.run([program, str(12 << 20), str(steps), *([folder] if by == "TLS" else [])], check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout))
            log(f"transport: {by} {done.stdout.strip()}")
        asker = [run["asker_s_per_gib"] for run in runs]
        show(case="transport", by=by, asker_s_per_gib=statistics.median(asker), least=min(asker), greatest=max(asker), promised=0.6 if by == "plain" else 1.1,
             helper_s_per_gib=statistics.median(run["helper_s_per_gib"] for run in runs), gib_per_s=statistics.median(run["gib_per_s"] for run in runs))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--cases", default=",".join(CASES))
    arguments.add_argument("--photos", help="the pattern of JPEG files for images; without it that case is left out")
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
            if case == "images" and not given.photos:
                log("images: no --photos, left out")
            elif case == "bytes_read":
                bytes_read(folder)
            elif case == "reworld":
                reworld(folder, records, pairs)
            elif case == "transport":
                transport(folder, pairs, 100 if given.quick else 300)
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
