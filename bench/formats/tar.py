"""Tar files beside WebDataset and our own TFRecords: a part of `./dev bench formats`.

tar         samples of a member of 4 KB and a label, in batches of 64, warm and in order: beside webdataset's own loop (peer `webdataset`), and beside TFRecords of Examples with the same
            two features (peer `tfrecord`)
tar_scan    members a second of processor time that `penstock index` finds, in each file under several names, so that its own start counts for little
"""

import io
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tarfile
import tempfile

import sides

CASES = ("tar", "tar_scan")
PAYLOAD = 4096
FILES = 4
SCANS = 8


def write_tars(folder, samples):
    for number in range(FILES):
        with tarfile.open(folder / f"part-{number}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(samples // FILES):
                key = f"{number}-{i:08}"
                for extension, data in (("bin", os.urandom(16) * (PAYLOAD // 16)), ("cls", str(i % 1000).encode())):
                    member = tarfile.TarInfo(f"{key}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def write_records(folder, samples):
    """The same samples as Examples. Their checksums are made by our own writer."""
    import penstock

    for number in range(FILES):
        with penstock.TFRecordWriter(str(folder / f"part-{number}.tfrecord")) as out:
            for i in range(samples // FILES):
                features = b""
                for key, data in ((b"bin", os.urandom(16) * (PAYLOAD // 16)), (b"cls", str(i % 1000).encode())):
                    features += field(1, field(1, key) + field(2, field(1, field(1, data))))
                out.write(field(1, features))


def scan(folder, turns):
    """Processor seconds of `penstock index`, of all files anew, SCANS times."""
    links = folder / "links"
    links.mkdir()
    for path in folder.glob("*.tar"):
        for number in range(SCANS):
            os.link(path, links / f"{number}-{path.name}")
    spent = []
    for _ in range(turns):
        for path in links.glob(".*.penstock-index"):
            path.unlink()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sides.BIN / "penstock", "index", "--format", "tar", *sorted(links.glob("*.tar"))], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return spent


def main():
    arguments = sides.arguments_of(__doc__.splitlines()[0], CASES)
    cases = arguments.cases.split(",")
    seconds, turns = (1, 1) if arguments.quick else (3, arguments.turns)
    samples = 8_000 if arguments.quick else 40_000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_tars(folder, samples)
        batch = ["batch { batch_size: 64 drop_remainder: true }", "repeat {}"]
        features = 'feature { name: "bin" extension: "bin" } feature { name: "cls" extension: "cls" }'
        if "tar" in cases:
            ours = sides.engine(folder, "tar", [f'tar {{ files: "{folder}/part-*.tar" {features} }}', *batch], seconds)
            theirs = [arguments.peer_python, sides.HERE / "side_loop.py", "webdataset", folder / "part-*.tar", seconds]
            sides.compare("tar", "webdataset", ours, theirs, turns, samples=samples)
            write_records(folder, samples)
            parse = 'parse_example { feature { key: "bin" bytes {} } feature { key: "cls" bytes {} } }'
            theirs = sides.engine(folder, "tfrecord", [f'tfrecord {{ files: "{folder}/part-*.tfrecord" }}', parse, *batch], seconds)
            sides.compare("tar", "tfrecord", ours, theirs, turns, samples=samples)
        if "tar_scan" in cases:
            members, spent = SCANS * 2 * samples, scan(folder, turns)
            rates = [members / seconds for seconds in spent]
            print(json.dumps({"case": "tar_scan", "members_per_cpu_s": round(statistics.median(rates)), "min": round(min(rates)), "max": round(max(rates)), "runs": turns,
                              "members": members}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
