"""What a host of eight costs beside one alone: processor time a row, and bytes read. One JSON line a case.

    python hosts.py BIN FOLDER [--quick]

BIN has penstockd and penstock. Each case runs one pipeline to its end, in a daemon of its own, with two workers: as one host, and as three of the hosts of eight,
taken by turns. `row_cost` is the processor time of the daemon for each row that it made, in the median of the pairs, as a multiple of that of one host; `bytes_read`
is a part of what one host reads.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import penstock

HOSTS = 8

SPECS = {
    # Small records in the order of a buffered shuffle: each host reads all of them.
    "parse_buffered_shuffle": 'stage { tfrecord { files: "FOLDER/small-*.tfrecord" cycle_length: 2 } } stage { shuffle { buffer_size: 10000 seed: 7 } } '
    'stage { parse_example { feature { key: "x" float { shape: 64 } } feature { key: "n" int64 {} } } } stage { batch { batch_size: 512 drop_remainder: true } }',
    "parse_global_shuffle": 'stage { tfrecord { files: "FOLDER/small-*.tfrecord" } } stage { shuffle { global: true seed: 7 } } '
    'stage { parse_example { feature { key: "x" float { shape: 64 } } feature { key: "n" int64 {} } } } stage { batch { batch_size: 512 drop_remainder: true } }',
    "records_of_64_kib": 'stage { tfrecord { files: "FOLDER/large.tfrecord" } } stage { shuffle { buffer_size: 100 seed: 7 } } stage { batch { batch_size: 64 } }',
    "gzip": 'stage { tfrecord { files: "FOLDER/small.tfrecord.gz" compression: "GZIP" } } '
    'stage { parse_example { feature { key: "x" float { shape: 64 } } feature { key: "n" int64 {} } } } stage { batch { batch_size: 512 drop_remainder: true } }',
    "filter": 'stage { tfrecord { files: "FOLDER/small-*.tfrecord" } } stage { parse_example { feature { key: "x" float { shape: 64 } } feature { key: "n" int64 {} } } } '
    'stage { filter { predicate: "n % 4 != 0" } } stage { batch { batch_size: 512 drop_remainder: true } }',
}


def write(folder, records):
    draws = np.random.default_rng(5)

    def example(number):
        return penstock.io.serialize_example({"x": draws.random(64, np.float32), "n": np.int64(number)})

    for shard in range(2):
        with penstock.io.TFRecordWriter(str(folder / f"small-{shard}.tfrecord")) as writer:
            for number in range(records // 2):
                writer.write(example(number))
    with penstock.io.TFRecordWriter(str(folder / "small.tfrecord.gz"), "GZIP") as writer:
        for number in range(records // 4):
            writer.write(example(number))
    with penstock.io.TFRecordWriter(str(folder / "large.tfrecord")) as writer:
        for _ in range(2048):
            writer.write(draws.bytes(65536))


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(programs, spec, world):
    """Processor seconds and bytes read for a row, of one run to the end."""
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, "s")
        daemon = subprocess.Popen([programs / "penstockd", "--socket", socket, "--state-dir", "none", "--log-level", "error"])
        try:
            while not os.path.exists(socket):
                time.sleep(0.01)
            options = [] if world is None else ["--world", f"{world[0]}:{world[1]}"]
            subprocess.run([programs / "penstock", "--socket", socket, "create", spec, "--workers", "2", *options], check=True, stdout=subprocess.DEVNULL)
            rows = sum(len(batch[next(iter(batch))] if isinstance(batch, dict) else batch) for batch in penstock.attach("case", socket))
            stats = json.loads(subprocess.run([programs / "penstock", "--socket", socket, "stats", "case", "--json"], check=True, stdout=subprocess.PIPE).stdout)
            return cpu_seconds(daemon.pid) / rows, int(stats["bytesRead"] if "bytesRead" in stats else stats["bytes_read"])
        finally:
            daemon.terminate()
            daemon.wait()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("programs", type=pathlib.Path)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--quick", action="store_true")
    given = arguments.parse_args()
    write(given.folder, 40_000 if given.quick else 400_000)
    for case, text in SPECS.items():
        spec = given.folder / f"{case}.textproto"
        spec.write_text('name: "case"\n' + text.replace("FOLDER", str(given.folder.resolve())) + "\n")
        costs, read = [], []
        for host in (0, 3, 7):
            alone = measure(given.programs, spec, None)
            one = measure(given.programs, spec, (HOSTS, host))
            costs.append(one[0] / alone[0])
            read.append(one[1] / alone[1])
        print(json.dumps({"case": case, "hosts": HOSTS, "row_cost": round(statistics.median(costs), 3), "row_costs": [round(cost, 3) for cost in sorted(costs)],
                          "bytes_read": round(max(read), 4), "load": round(os.getloadavg()[0], 1)}), flush=True)


if __name__ == "__main__":
    main()
