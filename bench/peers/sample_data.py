"""The shards that the comparisons read, made once in build/bench-data."""

import os
import subprocess

from daemon import BIN, ROOT

FOLDER = ROOT / "build/bench-data"


def shards(kind, records, log, photos=None):
    """The folder of `records` sample records of `kind` in 8 shards, made if it is not there."""
    folder = FOLDER / f"{kind}-{records}"
    if kind == "flowers" and photos is None and not folder.exists():
        folder = FOLDER / f"flowers-drawn-{records}"
    if not folder.exists():
        log(f"making {records} {kind} records in {folder}")
        partial = folder.with_suffix(".partial")
        subprocess.run(["rm", "-rf", partial], check=True)
        more = ["--photos", photos, "--shards", "8"] if kind == "segmentation" else ["--photos", photos] if kind == "flowers" and photos else []
        subprocess.run([BIN / "penstock", "make-sample", kind, "--records", str(records), "--out", partial, *more],
                       check=True, stdout=subprocess.DEVNULL)
        partial.rename(folder)
    return folder


def warm(folder):
    """Reads every file once, so that it is in memory."""
    for path in folder.glob("*.tfrecord"):
        path.read_bytes()


def cool(folder):
    """Has the system forget what it holds of the files, so that they are read from the disk."""
    for path in folder.glob("*.tfrecord"):
        with open(path, "rb") as file:
            os.fsync(file.fileno())  # what is not written yet is not forgotten
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
