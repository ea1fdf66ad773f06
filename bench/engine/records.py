"""Shards that only the engine's benchmark needs: compressed ones, and ones of large records."""

import concurrent.futures
import glob
import gzip
import json
import os
import pathlib
import shutil
import struct
import subprocess

from daemon import BIN
from sample_data import FOLDER

FILES = 8
FRAME_BYTES = 16


def _compress(source, target):
    with open(source, "rb") as plain, gzip.open(target, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)


def gzip_shards(folder, log):
    """The same shards, each one gzip stream. Returns their folder."""
    target = folder.with_name(folder.name + "-gzip")
    if not target.exists():
        log(f"compressing {folder} to {target}")
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_compress, *zip(*((path, partial / (path.name + ".gz")) for path in sorted(folder.glob("*.tfrecord"))))))
        partial.rename(target)
    return target


def large_records(record_bytes, records, log):
    """Shards of Examples with one feature `d` of `record_bytes` bytes. Returns their folder."""
    target = FOLDER / f"large-{record_bytes}-{records}"
    if not target.exists():
        log(f"making {records} records of {record_bytes} bytes in {target}")
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for file in range(FILES):
            lines = partial / "lines.jsonl"
            with open(lines, "w") as out:
                for record in range(file, records, FILES):
                    out.write(json.dumps({"d": format(record, "08d") * (record_bytes // 8)}) + "\n")
            subprocess.run([BIN / "penstock", "write", partial / f"large-{file}.tfrecord", "--jsonl", lines], check=True,
                           stdout=subprocess.DEVNULL)
            lines.unlink()
        partial.rename(target)
    return target


def mean_record_bytes(pattern):
    """The mean length of the records of the first shard, without their frames."""
    path = pathlib.Path(sorted(glob.glob(pattern))[0])
    records = 0
    size = path.stat().st_size
    with open(path, "rb") as file:
        while header := file.read(8):
            file.seek(struct.unpack("<Q", header)[0] + FRAME_BYTES - 8, os.SEEK_CUR)
            records += 1
    return size / records - FRAME_BYTES
