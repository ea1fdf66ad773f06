"""Fault 10 of docs/reliability.md: small files that inflate without end."""

import os
import subprocess
import sys
import zlib

import pytest

from confined import memory_group
from tfrecord_files import masked_crc32c

penstock = pytest.importorskip("penstock")

# A record has at most 256 MiB; while its memory grows there are two of them.
LIMIT_BYTES = 900 << 20

# What `penstock` and the daemon that it starts took at their peak, of which the larger counts.
RUN = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.stderr.write(done.stderr)
sys.exit(done.returncode)
"""


def gzip_member(plain):
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    return compressor.compress(plain) + compressor.flush()


def bomb(path, head):
    """4 GiB of zeros behind `head`, in 4 MB."""
    zeros = gzip_member(bytes(64 << 20))
    path.write_bytes((gzip_member(head) if head else b"") + 64 * zeros)
    assert path.stat().st_size < 6 << 20


def header(length):
    bytes_ = length.to_bytes(8, "little")
    return bytes_ + masked_crc32c(bytes_).to_bytes(4, "little")


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("what, head, source, message", [
    ("a record of the largest size", header(256 << 20), "tfrecord", "data checksum mismatch"),
    ("a record above it", header((256 << 20) + 1), "tfrecord", "record longer than limit"),
    ("a line without an end", b"", "text_line", "line longer than limit"),
])
def test_fault_10_what_inflates_without_end_stops_at_the_limit_of_a_record(penstock_command, limited, what, head, source, message):
    folder = penstock_command.folder
    bomb(folder / "bomb.gz", head)
    spec = folder / "bomb.textproto"
    spec.write_text(f'stage {{ {source} {{ files: "{folder}/bomb.gz" compression: "GZIP" }} }}')
    with memory_group(LIMIT_BYTES) as group:
        if limited and group is None:
            pytest.skip("no control group can be made here; the peak of the memory is compared without one")

        def enter():
            (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run([sys.executable, "-c", RUN, *penstock_command.command("run", spec, "--steps", 1)],
                              env=penstock_command.environment, cwd=folder, capture_output=True, text=True,
                              preexec_fn=enter if limited else None, timeout=120)
    assert done.returncode == 1 and "DATA_LOSS" in done.stderr and message in done.stderr, (what, done)
    assert int(done.stdout) < LIMIT_BYTES, what
