"""Faults of files, memory and clocks, provoked from outside; the numbers are those of docs/reliability.md."""

import contextlib
import functools
import gzip
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import numpy
import penstock
import pytest

from programs import Daemon, Penstock, eventually, free_port
from tfrecord_files import example, framed

penstock = pytest.importorskip("penstock")

SOURCE = "stage {{ tfrecord {{ files: \"*.tfrecord{suffix}\" {options} }} }}"
SPEC = """
name: "faulty"
{source}
stage {{ parse_example {{ feature {{ key: "n" int64 {{}} }} }} }}
stage {{ batch {{ batch_size: {batch} }} }}
{more}
"""


def write_spec(folder, options="", suffix="", batch=5, more="", order=""):
    source = SOURCE.format(options=options, suffix=suffix) + order
    path = folder / "faulty.textproto"
    path.write_text(SPEC.format(source=source, batch=batch, more=more))
    return path


def frames(first, count, padding=0):
    """Framed Examples whose `n` counts on from `first`."""
    return [framed(example(n=first + i, padding=bytes(padding)) if padding else example(n=first + i)) for i in range(count)]


@functools.cache
def large_frames(first):
    """A thousand records of 6 KB: more than a ring of two slots and the reads ahead of it want."""
    return tuple(frames(first, 1000, padding=6000))


def flip(data, position):
    data = bytearray(data)
    data[position] ^= 0x10
    return bytes(data)


def delivered(folder):
    """The `n` of all rows that a run wrote, in their order."""
    rows = []
    for path in sorted(folder.glob("step-*.npz")):
        with numpy.load(path) as arrays:
            rows.extend(int(n) for n in arrays["n"])
    return rows


def taken(loader):
    """The `n` of all rows that are left, and the error that ends them, if one does."""
    rows = []
    try:
        for batch in loader:
            rows.extend(int(n) for n in batch["n"])
    except penstock.Error as error:
        return rows, error
    return rows, None


# ---- fault 7: empty files ----


def test_fault_7_an_empty_file_among_others_is_no_error(penstock_command, tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"".join(frames(0, 7)))
    (tmp_path / "b.tfrecord").write_bytes(b"")
    (tmp_path / "c.tfrecord").write_bytes(b"".join(frames(7, 6)))
    result = penstock_command("run", write_spec(tmp_path), "--out", "out")
    assert result.code == 0, result
    assert delivered(tmp_path / "out") == list(range(13))


@pytest.mark.parametrize("command", ["validate", "run"])
def test_fault_7_nothing_but_empty_files_is_an_error(penstock_command, tmp_path, command):
    for name in "ab":
        (tmp_path / f"{name}.tfrecord").write_bytes(b"")
    result = penstock_command(command, write_spec(tmp_path))
    assert result.code == 1, result
    assert "INVALID_ARGUMENT" in result.err and "2 files are empty" in result.err and "a.tfrecord" in result.err, result


# ---- fault 9: another compression than declared ----


@pytest.mark.parametrize("declared", ["GZIP", "ZLIB", "ZSTD"])
def test_fault_9_plain_records_that_are_declared_compressed(penstock_command, tmp_path, declared):
    (tmp_path / "a.tfrecord").write_bytes(b"".join(frames(0, 20)))
    result = penstock_command("run", write_spec(tmp_path, f'compression: "{declared}"'), "--out", "out")
    assert result.code == 1, result
    assert "DATA_LOSS" in result.err and declared in result.err.upper() and "a.tfrecord" in result.err, result
    assert delivered(tmp_path / "out") == []


def test_fault_9_compressed_records_that_are_declared_plain(penstock_command, tmp_path):
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(b"".join(frames(0, 20))))
    result = penstock_command("run", write_spec(tmp_path, suffix=".gz"), "--out", "out")
    assert result.code == 1, result
    assert "DATA_LOSS" in result.err and "gzip" in result.err.lower() and "a.tfrecord.gz" in result.err, result
    assert delivered(tmp_path / "out") == []


# ---- faults 1 and 2 through the whole program: what the policies deliver ----

SHARDS = 3
RECORDS = 30  # of a shard
BAD = 12      # the damaged record of shard 1
HEADER_BYTES = 12


def damaged_shards(folder, position_in_record):
    for shard in range(SHARDS):
        parts = frames(RECORDS * shard, RECORDS)
        if shard == 1:
            parts[BAD] = flip(parts[BAD], position_in_record)
            offset = len(b"".join(parts[:BAD]))
        (folder / f"{shard}.tfrecord").write_bytes(b"".join(parts))
    return offset


EVERY = list(range(SHARDS * RECORDS))
POLICIES = {
    "SKIP_RECORD": [n for n in EVERY if n != RECORDS + BAD],
    "SKIP_SHARD": [n for n in EVERY if not RECORDS + BAD <= n < 2 * RECORDS],
}


@pytest.mark.parametrize("position", [3, HEADER_BYTES + 4], ids=["length", "data"])
@pytest.mark.parametrize("policy", POLICIES)
def test_faults_1_and_2_a_flipped_bit_costs_what_the_policy_says(penstock_command, tmp_path, policy, position):
    offset = damaged_shards(tmp_path, position)
    spec = write_spec(tmp_path, f"damage {{ on_damage: {policy} }}")
    for workers in ("1", "2", "8"):
        result = penstock_command("run", spec, "--workers", workers, "--out", f"out-{workers}")
        assert result.code == 0, result
        assert delivered(tmp_path / f"out-{workers}") == POLICIES[policy]
        (listed,) = [line for line in result.err.splitlines() if f"offset {offset}" in line]
        assert ("length" if position < HEADER_BYTES else "data") + " checksum mismatch" in listed
        assert "1.tfrecord" in listed


@pytest.mark.parametrize("policy", POLICIES)
def test_skipping_gives_the_same_bytes_with_any_number_of_workers(penstock_command, tmp_path, policy):
    damaged_shards(tmp_path, HEADER_BYTES + 4)
    spec = write_spec(tmp_path, f"cycle_length: 3 damage {{ on_damage: {policy} }}", batch=1,
                      order="stage { shuffle { buffer_size: 20 seed: 4 } }", more="stage { repeat { count: 3 } }")
    lines = {workers: penstock_command("run", spec, "--workers", workers) for workers in ("1", "2", "8")}
    assert lines["1"].code == 0, lines["1"]
    assert len(lines["1"].out.splitlines()) == 3 * len(POLICIES[policy])
    assert lines["1"].out == lines["2"].out == lines["8"].out


def one_damaged(folder, bad, records=6000):
    """More records than are pulled where an index can be asked; returns the offset of the damaged one."""
    parts = frames(0, records)
    parts[bad] = flip(parts[bad], HEADER_BYTES + 4)
    (folder / "0.tfrecord").write_bytes(b"".join(parts))
    return len(b"".join(parts[:bad]))


def test_a_global_shuffle_tells_of_damage_and_has_its_limits(penstock_command, tmp_path):
    offset = one_damaged(tmp_path, 5000)
    shuffled = "stage { shuffle { global: true seed: 1 } }"
    result = penstock_command("run", write_spec(tmp_path, "damage { on_damage: SKIP_RECORD }", batch=100, order=shuffled))
    assert result.code == 0 and f"offset {offset}" in result.err, result
    for limit in ("max_skipped: 0", "max_skipped_fraction: 0.0001"):
        result = penstock_command("run", write_spec(tmp_path, f"damage {{ on_damage: SKIP_RECORD {limit} }}", batch=100, order=shuffled))
        assert result.code == 1 and not result.out, result
        assert "stage shuffle: too" in result.err and "DATA_LOSS" in result.err, result


# In front of the place that is gone to, just there, and behind all that is left.
@pytest.mark.parametrize("bad", [4500, 5000, 5999])
@pytest.mark.parametrize("order", ["", "stage { shuffle { buffer_size: 50 seed: 3 } }"], ids=["in order", "shuffled"])
def test_damage_counts_as_much_behind_a_cursor(penstock_command, tmp_path, bad, order):
    one_damaged(tmp_path, bad)
    spec = write_spec(tmp_path, "damage { on_damage: SKIP_RECORD }", batch=100, order=order)
    whole = penstock_command("run", spec, "--cursor-out", "end")
    assert whole.code == 0, whole
    assert penstock_command("run", spec, "--steps", "50", "--cursor-out", "middle").code == 0
    for _ in range(2):  # the second time with the index that the first one has made
        rest = penstock_command("run", spec, "--resume", "middle", "--cursor-out", "rest")
        assert rest.code == 0, rest
        assert rest.out.splitlines() == whole.out.splitlines()[50:]
        assert (tmp_path / "rest").read_bytes() == (tmp_path / "end").read_bytes()


# The limit; whether one damaged place among 90 records is too much.
LIMITS = {
    "max_skipped: 0": True,
    "max_skipped: 1": False,
    "max_skipped_fraction: 0.01": True,
    "max_skipped_fraction: 0.02": False,
}


@pytest.mark.parametrize("limit", LIMITS)
def test_more_damage_than_a_limit_is_an_error(penstock_command, tmp_path, limit):
    damaged_shards(tmp_path, HEADER_BYTES + 4)
    spec = write_spec(tmp_path, f"damage {{ on_damage: SKIP_RECORD {limit} }}")
    result = penstock_command("run", spec, "--out", "out")
    rows = delivered(tmp_path / "out")
    if not LIMITS[limit]:
        assert result.code == 0, result
        assert rows == POLICIES["SKIP_RECORD"]
        return
    assert result.code == 1, result
    assert "DATA_LOSS" in result.err and limit.partition(":")[0] in result.err and "stage tfrecord" in result.err, result
    assert rows == POLICIES["SKIP_RECORD"][:len(rows)]


def test_a_limit_counts_anew_in_every_pass(penstock_command, tmp_path):
    damaged_shards(tmp_path, HEADER_BYTES + 4)
    spec = write_spec(tmp_path, "damage { on_damage: SKIP_RECORD max_skipped: 1 }", batch=89, more="stage { repeat { count: 4 } }")
    result = penstock_command("run", spec, "--out", "out")
    assert result.code == 0, result
    assert delivered(tmp_path / "out") == 4 * POLICIES["SKIP_RECORD"]


# ---- verify ----


def test_verify_lists_the_damage_and_passes_what_is_sound(penstock_command, tmp_path):
    damaged_shards(tmp_path, HEADER_BYTES + 4)
    sound = penstock_command("verify", "0.tfrecord", "2.tfrecord")
    assert sound.code == 0, sound
    assert "verified 60 records of 2 files" in sound.out and "all is well" in sound.out
    result = penstock_command("verify", "*.tfrecord")
    assert result.code == 1, result
    [place] = [line for line in result.out.splitlines() if "offset" in line]
    bad = frames(RECORDS, RECORDS)
    offset = sum(map(len, bad[:BAD]))
    assert place.startswith(f"1.tfrecord: offset {offset}, length {len(bad[BAD])}: "), result
    assert "data" in place
    assert "verified 89 records of 3 files" in result.out and "1 damaged places" in result.out, result


# ---- faults 22 to 24: files that change behind a running pipeline ----


@pytest.fixture
def waiting(remote, tmp_path):
    """Creates the pipeline and takes one batch, so that it waits with a full ring far in front of the end. Returns its loader."""

    def start(**options):
        for shard in range(SHARDS):
            (tmp_path / f"{shard}.tfrecord").write_bytes(b"".join(large_frames(1000 * shard)))
        spec = write_spec(tmp_path, **{"more": "ring { slots: 2 }", **options})
        created = remote("create", spec)
        assert created.code == 0, created
        loader = iter(penstock.attach("faulty", socket=remote.socket))
        next(loader)
        return loader

    return start


ALL = [1000 * shard + n for shard in range(SHARDS) for n in range(1000)]


def is_alive(remote):
    return "faulty" in remote("list").out


def test_fault_22_a_shard_that_disappears_before_it_is_opened_is_named(waiting, remote, tmp_path):
    loader = waiting()
    (tmp_path / "2.tfrecord").unlink()
    rows, error = taken(loader)
    assert isinstance(error, penstock.NotFoundError), error
    assert "2.tfrecord" in str(error) and "stage tfrecord" in str(error)
    assert rows == ALL[5:2000]
    assert is_alive(remote)


def test_fault_22_a_shard_that_disappeared_after_validate_is_named(penstock_command, tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"".join(frames(0, 7)))
    spec = write_spec(tmp_path)
    spec.write_text(spec.read_text().replace("*.tfrecord", "a.tfrecord"))
    assert penstock_command("validate", spec).code == 0
    (tmp_path / "a.tfrecord").unlink()
    result = penstock_command("run", spec)
    assert result.code == 1, result
    assert "NOT_FOUND" in result.err and "a.tfrecord" in result.err


def test_fault_23_what_is_open_is_read_on_when_it_vanishes(waiting, tmp_path):
    loader = waiting(more="ring { slots: 2 } stage { repeat { count: 2 } }")
    rows = []
    for _ in range(len(ALL) // 5):  # into the second pass: every shard is open
        rows.extend(next(loader)["n"])
    for shard in range(SHARDS):
        (tmp_path / f"{shard}.tfrecord").unlink()
    rest, error = taken(loader)
    assert error is None
    assert rows + rest == (ALL + ALL)[5:]


def test_fault_23_a_shard_replaced_before_it_is_opened_is_an_error(waiting, remote, tmp_path):
    loader = waiting()
    (tmp_path / "new").write_bytes(b"".join(large_frames(1000)[:999]))
    (tmp_path / "new").rename(tmp_path / "2.tfrecord")
    rows, error = taken(loader)
    assert isinstance(error, penstock.FailedPreconditionError), error
    assert "2.tfrecord" in str(error) and "changed" in str(error)
    assert rows == ALL[5:2000]
    assert is_alive(remote)


def test_fault_23_a_shard_replaced_by_another_of_the_same_size_is_an_error(waiting, tmp_path):
    loader = waiting()
    (tmp_path / "new").write_bytes(b"".join(reversed(large_frames(2000))))
    (tmp_path / "new").rename(tmp_path / "2.tfrecord")
    rows, error = taken(loader)
    assert isinstance(error, penstock.FailedPreconditionError), error
    assert rows == ALL[5:2000]


def test_fault_25_what_a_shard_grows_by_while_it_is_open_is_left_out_and_logged(waiting, daemon, tmp_path):
    loader = waiting(more="stage { repeat { count: 2 } }")
    size = (tmp_path / "0.tfrecord").stat().st_size
    with open(tmp_path / "0.tfrecord", "ab") as shard:
        shard.write(b"".join(frames(7_000_000, 50)) + b"and a part of a")
    grown = (tmp_path / "0.tfrecord").stat().st_size
    rows, error = taken(loader)
    assert error is None
    assert rows == ALL[5:] + ALL
    loader.close()
    assert daemon.stop() == 0
    told = [line for line in daemon.process.stderr.read().splitlines() if "has grown" in line]
    assert len(told) == 1, told  # once, not in each pass
    assert f"from {size} to {grown} bytes" in told[0] and "0.tfrecord" in told[0] and "faulty" in told[0]


def test_fault_25_a_shard_that_has_grown_before_it_is_opened_is_an_error(waiting, tmp_path):
    loader = waiting()
    with open(tmp_path / "2.tfrecord", "ab") as shard:
        shard.write(b"".join(frames(7_000_000, 50)))
    rows, error = taken(loader)
    assert isinstance(error, penstock.FailedPreconditionError) and "2.tfrecord" in str(error), error
    assert rows == ALL[5:2000]


def test_fault_24_a_shard_truncated_while_it_is_read_is_an_error(waiting, remote, tmp_path):
    loader = waiting()
    os.truncate(tmp_path / "0.tfrecord", 3_000_000)
    rows, error = taken(loader)
    assert error is not None
    assert "0.tfrecord" in str(error) and "stage" in str(error)
    assert rows == ALL[5:5 + len(rows)] and len(rows) < 1000
    assert is_alive(remote)


def test_fault_24_a_mapped_shard_that_is_truncated_is_an_error_and_kills_nobody(waiting, remote, tmp_path):
    loader = waiting(order="stage { shuffle { global: true seed: 3 } }")
    for shard in range(SHARDS):
        os.truncate(tmp_path / f"{shard}.tfrecord", 8192)
    rows, error = taken(loader)
    assert error is not None
    assert ".tfrecord" in str(error)
    assert len(rows) < len(ALL) - 5 and set(rows) <= set(ALL)
    assert is_alive(remote)


# ---- fault 60: no descriptors left ----


# None is left to accept a connection with, or two: enough for that, not to attach.
@pytest.mark.parametrize("left, error, message", [(0, penstock.UnavailableError, "penstock.sock"), (2, penstock.ResourceExhaustedError, "Too many open files")],
                         ids=["accept", "attach"])
def test_fault_60_without_descriptors_an_attach_is_refused_and_consumers_go_on(daemon, remote, counter, left, error, message):
    assert remote("create", counter(more="stage { repeat {} }")).code == 0
    loader = iter(penstock.attach("counter", socket=daemon.socket))
    next(loader)
    limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    in_use = {int(name) for name in os.listdir(f"/proc/{daemon.pid}/fd")}
    # A limit is one of numbers, and of those below the largest some may be free.
    limit = [number for number in range(max(in_use) + 4) if number not in in_use][left]
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (limit, limits[1]))
    with pytest.raises(error, match=message):
        next(iter(penstock.attach("counter", socket=daemon.socket)))
    for _ in range(100):
        next(loader)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
    other = iter(penstock.attach("counter", socket=daemon.socket))
    next(other)
    next(loader)
    del other


# ---- faults 28 and 59: a disk that hangs, a clock that jumps ----

_END_S = 20  # to end in, whatever the disk does: the daemon gives up after 5

PRELOAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// Reads of a file whose name holds HANG_FILE do not return, from offset HANG_FROM to 1 MB behind it, nor does a look at a map of
// these bytes, until there is a file HANG_UNTIL; nor does a call of HANG_WRITES (pwrite64, write, fsync) to such a file.
static char* hung_map;
static const char* until(void) {
  const char* path = getenv("HANG_UNTIL");
  return path ? path : "/dev/null/none";
}
static int is_hanging(int fd) {
  const char* name = getenv("HANG_FILE");
  char link[64], path[4096] = "";
  if (!name || fd < 0) return 0;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, name);
}
static void hang(int) {
  fclose(fopen(getenv("HANG_MARK"), "w"));
  while (access(until(), F_OK) != 0) usleep(1000);
  if (hung_map) mprotect(hung_map, 1000000, PROT_READ);
}
void* mmap64(void* address, size_t size, int protection, int flags, int fd, off64_t offset) {
  static void* (*real)(void*, size_t, int, int, int, off64_t);
  if (!real) real = (void* (*)(void*, size_t, int, int, int, off64_t))dlsym(RTLD_NEXT, "mmap64");
  const int hangs = is_hanging(fd);
  if (hangs && getenv("HANG_UNMAPPED")) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  char* memory = (char*)real(address, size, protection, flags, fd, offset);
  const size_t from = hangs ? atol(getenv("HANG_FROM")) / 4096 * 4096 : 0;
  if (hangs && memory != MAP_FAILED && from + 1000000 < size) {
    hung_map = memory + from;
    mprotect(hung_map, 1000000, PROT_NONE);
    signal(SIGSEGV, hang);
  }
  return memory;
}
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return mmap64(address, size, protection, flags, fd, offset);
}
ssize_t pread64(int fd, void* out, size_t count, off64_t offset) {
  static ssize_t (*real)(int, void*, size_t, off64_t);
  if (!real) real = (ssize_t(*)(int, void*, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
  const long from = is_hanging(fd) && !getenv("HANG_MAPS_ONLY") ? atol(getenv("HANG_FROM")) : offset + 1;
  if (from <= offset && offset <= from + 1000000 && access(until(), F_OK) != 0) hang(0);
  return real(fd, out, count, offset);
}
static void hang_in(const char* call, int fd) {
  const char* hangs = getenv("HANG_WRITES");
  if (hangs && strcmp(hangs, call) == 0 && is_hanging(fd) && access(until(), F_OK) != 0) hang(0);
}
ssize_t pwrite64(int fd, const void* from, size_t count, off64_t offset) {
  static ssize_t (*real)(int, const void*, size_t, off64_t);
  if (!real) real = (ssize_t(*)(int, const void*, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
  hang_in("pwrite64", fd);
  return real(fd, from, count, offset);
}
ssize_t pwrite(int fd, const void* from, size_t count, off_t offset) { return pwrite64(fd, from, count, offset); }
ssize_t write(int fd, const void* from, size_t count) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  hang_in("write", fd);
  return real(fd, from, count);
}
int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  hang_in("fsync", fd);
  return real(fd);
}
ssize_t pread(int fd, void* out, size_t count, off_t offset) { return pread64(fd, out, count, offset); }

// Each look at the wall clock is two days earlier or later than the last.
int clock_gettime(clockid_t clock, struct timespec* out) {
  static int (*real)(clockid_t, struct timespec*);
  static __thread int looks;
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, out);
  if (clock == CLOCK_REALTIME && getenv("JUMPING_CLOCK")) out->tv_sec += ++looks % 2 ? 86400L : -86400L;
  return result;
}
"""


@pytest.fixture(scope="session")
def preload(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preload")
    (folder / "preload.c").write_text(PRELOAD)
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-O1", "-o", folder / "preload.so", folder / "preload.c", "-ldl"], check=True)
    return str(folder / "preload.so")


def test_fault_59_a_jumping_wall_clock_changes_nothing(penstock_command, counter, preload):
    environment = dict(os.environ, LD_PRELOAD=preload, JUMPING_CLOCK="1")
    looks = subprocess.run([sys.executable, "-c", "import time; print(time.time(), time.time())"], env=environment, capture_output=True,
                           check=True, text=True).stdout.split()
    assert abs(float(looks[0]) - float(looks[1])) > 86400, "the clock does not jump"
    spec = counter(records=400, more="stage { repeat { count: 5 } }")
    expected = penstock_command("run", spec)
    assert expected.code == 0, expected
    result = penstock_command("run", spec, LD_PRELOAD=preload, JUMPING_CLOCK="1")
    assert result.code == 0, result
    assert result.out == expected.out


@pytest.fixture
def hanging(tmp_path, preload, monkeypatch):
    """Starts a daemon in which looks at hangs.tfrecord from an offset on hang, and a creation that meets one. Returns the daemon."""
    started = []

    def start(where, *options, limits=None):
        (tmp_path / "hangs.tfrecord").write_bytes(b"".join(large_frames(0)))
        settings = {"LD_PRELOAD": preload, "HANG_UNTIL": tmp_path / "until", "PENSTOCK_CACHE_DIR": tmp_path / "cache", "HANG_FILE": "hangs.tfrecord", "HANG_MARK": tmp_path / "mark", **HANGS[where]}
        order = settings.pop("order", "")
        for name, value in settings.items():
            monkeypatch.setenv(name, str(value))
        daemon = Daemon(tmp_path / "penstock.sock", *options, limits=limits)
        monkeypatch.delenv("LD_PRELOAD")
        creation = Penstock(tmp_path, daemon.socket).start("create", write_spec(tmp_path, batch=1000, order=order))
        started.extend([daemon, creation])
        daemon.creation = creation
        eventually((tmp_path / "mark").exists)
        return daemon

    yield start
    for process in started:
        process.kill()
    started[1].communicate()


# The first bytes of a file are read when its pipeline is created, those in the middle by a worker; those of a
# global shuffle lie in a map.
HANGS = {"at creation": {"HANG_FROM": 0}, "in a worker": {"HANG_FROM": 3_000_000},
         "in a worker that cannot map": {"HANG_FROM": 3_000_000, "HANG_UNMAPPED": 1},
         "in a map": {"HANG_FROM": 3_000_000, "HANG_MAPS_ONLY": 1, "order": "stage { shuffle { global: true seed: 3 } }"}}

LATER = ["in a worker", "in a map"]


@pytest.mark.parametrize("where", HANGS)
def test_fault_28_a_read_that_hangs_holds_up_no_other_pipeline(hanging, counter, tmp_path, where):
    daemon = hanging(where)
    result = Penstock(tmp_path, daemon.socket)("run", counter())
    assert result.code == 0, result
    assert len(result.out.splitlines()) == 11


@pytest.mark.parametrize("where", HANGS)
def test_fault_28_a_read_that_hangs_does_not_hold_up_the_end(hanging, where):
    daemon = hanging(where)
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait(_END_S)


def configured(folder, *lines):
    path = folder / "penstockd.textproto"
    path.write_text("\n".join(lines))
    return "--config", str(path)


def log_of(daemon):
    """All that it has logged so far."""
    log = daemon.process.stderr.fileno()
    os.set_blocking(log, False)
    with contextlib.suppress(BlockingIOError):
        daemon.logged = getattr(daemon, "logged", "") + os.read(log, 1 << 20).decode()
    return getattr(daemon, "logged", "")


@pytest.mark.parametrize("where", LATER)
def test_fault_28_a_read_that_hangs_is_told_with_its_file_and_how_long(hanging, tmp_path, where):
    port = free_port()
    daemon = hanging(where, *configured(tmp_path, f"http {{ port: {port} }}"))
    remote = Penstock(tmp_path, daemon.socket)

    def age():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            found = re.search(r'^penstock_pipeline_oldest_read_seconds\{pipeline="faulty"\} (\S+)$', answer.read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0

    eventually(lambda: age() >= 1)
    before = age()
    eventually(lambda: age() > before)
    read = json.loads(remote("top", "faulty", "--json", "--count", "1").out)["oldest_read"]
    assert read["doing"] == "reading" and read["file"].endswith("/hangs.tfrecord") and read["seconds"] >= 1
    # Of a map of random records, a record of the same block is named; of one that is read in order, the beginning of its 64 KiB.
    assert where == "in a map" or -(64 << 10) <= int(read["offset"]) - HANGS[where]["HANG_FROM"] <= 1_000_000
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status.json", timeout=30) as answer:
        shown, = [one["stats"]["oldest_read"] for one in json.load(answer)["pipelines"]]
    assert (shown["doing"], shown["file"]) == (read["doing"], read["file"]) and shown["seconds"] >= read["seconds"]
    for words in (("stats", "faulty"), ("top", "faulty", "--count", "1"), ("explain", "faulty")):
        told = remote(*words).out
        assert re.search(r"reading \S+/hangs\.tfrecord(,| at) offset \d+,? has not returned for \d+ s", told), told


@pytest.mark.parametrize("where", LATER)
def test_fault_28_a_read_beyond_its_deadline_ends_its_pipeline_alone(hanging, counter, tmp_path, where):
    daemon = hanging(where, *configured(tmp_path, "worker_defaults { read_deadline_ms: 1000 }"))
    remote = Penstock(tmp_path, daemon.socket)
    eventually(lambda: "failed" in remote("list").out)
    with pytest.raises(penstock.DeadlineExceededError) as raised:
        next(iter(penstock.attach("faulty", socket=daemon.socket)))
    assert re.search(r"did not return within read_deadline_ms: \d+ > 1000 ms.*/hangs\.tfrecord, offset \d+\)", str(raised.value)), raised.value
    assert remote("run", counter()).code == 0
    # Its worker never comes back, and its name is free at once.
    began = time.monotonic()
    assert remote("delete", "faulty").code == 0
    assert time.monotonic() - began < _END_S
    assert remote("create", counter("faulty")).code == 0
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(_END_S) == 1


def test_fault_28_a_creation_that_meets_a_read_beyond_its_deadline_fails(hanging, counter, tmp_path):
    daemon = hanging("at creation", *configured(tmp_path, "worker_defaults { read_deadline_ms: 1000 }"))
    out, error = daemon.creation.communicate(timeout=60)
    assert daemon.creation.returncode != 0
    assert re.search(r"did not return within read_deadline_ms: .*/hangs\.tfrecord", out + error), (out, error)
    remote = Penstock(tmp_path, daemon.socket)
    assert remote("create", counter("faulty")).code == 0
    (tmp_path / "until").touch()
    eventually(lambda: "given back" in log_of(daemon))
    assert "faulty" in remote("list").out
    assert daemon.stop() == 0


@pytest.mark.parametrize("where", LATER)
def test_fault_28_a_read_that_returns_after_all_finds_what_it_needs_and_gives_it_back(hanging, counter, tmp_path, where):
    daemon = hanging(where, *configured(tmp_path, "worker_defaults { read_deadline_ms: 1000 }"))
    remote = Penstock(tmp_path, daemon.socket)
    eventually(lambda: "failed" in remote("list").out)
    assert remote("delete", "faulty").code == 0
    rings = lambda: pathlib.Path(f"/proc/{daemon.pid}/maps").read_text().count("penstock-ring")
    assert rings() > 0, "what the read may write to is gone"
    (tmp_path / "until").touch()
    eventually(lambda: "given back" in log_of(daemon))
    assert rings() == 0
    # The file is one like any other now, and the daemon can end in its own time.
    assert remote("create", write_spec(tmp_path, batch=1000)).code == 0
    rows, error = taken(penstock.attach("faulty", socket=daemon.socket))
    assert (len(rows), error) == (1000, None)
    assert daemon.stop() == 0


@pytest.mark.parametrize("op", ["cache { filename: 'KEPT' }", "snapshot { path: 'KEPT' }", "save { path: 'KEPT' }"])
@pytest.mark.parametrize("call, doing", [("pwrite64", r"writing \S+(,| at) offset \d+,?"), ("fsync", r"syncing \S+(, offset 0,)?")])
def test_fault_28_a_write_that_hangs_is_told_with_its_file_and_how_long(tmp_path, preload, monkeypatch, op, call, doing):
    kept, until, port = tmp_path / "kept", tmp_path / "until", free_port()
    (tmp_path / "faulty.tfrecord").write_bytes(b"".join(frames(0, 42)))
    spec = write_spec(tmp_path, batch=20, order=f"stage {{ {op.replace('KEPT', str(kept))} }}", more="stage { repeat {} }")
    settings = {"LD_PRELOAD": preload, "HANG_UNTIL": until, "HANG_FILE": f"{kept}/", "HANG_FROM": 1 << 40, "HANG_MARK": tmp_path / "mark",
                "HANG_WRITES": call}
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    daemon = Daemon(tmp_path / "penstock.sock", *configured(tmp_path, f"http {{ port: {port} }}", "worker_defaults { read_deadline_ms: 1000 }"))
    monkeypatch.delenv("LD_PRELOAD")
    try:
        remote = Penstock(tmp_path, daemon.socket)
        assert remote("create", spec).code == 0
        eventually((tmp_path / "mark").exists)

        def stats():
            return json.loads(remote("top", "faulty", "--json", "--count", "1").out)

        eventually(lambda: stats().get("oldest_write", {"seconds": 0})["seconds"] >= 2)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            told = re.search(r'^penstock_pipeline_oldest_write_seconds\{pipeline="faulty"\} (\S+)$', answer.read().decode(), re.MULTILINE)
        assert float(told[1]) >= 1
        write = stats()["oldest_write"]
        assert write["file"].startswith(f"{kept}/") and write["seconds"] >= 1, write
        for words in (("stats", "faulty"), ("top", "faulty", "--count", "1"), ("explain", "faulty")):
            out = remote(*words).out
            assert re.search(rf"{doing} has not returned for \d+ s", out), out
        # What is written has no deadline, and is waited for.
        assert "failed" not in remote("list").out
        until.touch()
        eventually(lambda: "oldest_write" not in stats())
        eventually(lambda: any(not path.name.endswith(".partial") for path in kept.iterdir()))
        assert daemon.stop() == 0
    finally:
        daemon.kill()


def test_fault_28_a_state_folder_that_hangs_holds_up_those_who_attach_and_nobody_else(tmp_path, counter, preload, monkeypatch):
    until = tmp_path / "until"
    settings = {"LD_PRELOAD": preload, "HANG_UNTIL": until, "HANG_FILE": ".consumers", "HANG_FROM": 1 << 40, "HANG_MARK": tmp_path / "mark",
                "HANG_WRITES": "write"}
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    until.touch()
    daemon = Daemon(tmp_path / "penstock.sock")
    monkeypatch.delenv("LD_PRELOAD")
    newcomer = []
    try:
        remote = Penstock(tmp_path, daemon.socket)
        assert remote("create", counter(more="stage { repeat {} }")).code == 0
        first, dying = [penstock.attach("counter", daemon.socket, timeout=60) for _ in range(2)]
        until.unlink()
        thread = threading.Thread(target=lambda: newcomer.append(penstock.attach("counter", daemon.socket, timeout=60)))
        thread.start()
        eventually((tmp_path / "mark").exists)
        # A death is noticed, its slots come back, and the others and the commands go on.
        dying.close()
        for _ in range(20):
            next(first)
        eventually(lambda: len(remote("consumers", "counter").out.splitlines()) == 2)  # with a head
        eventually(lambda: re.search(r"writing \S+/counter\.consumers has not returned for \d+ s", log_of(daemon)))
        assert thread.is_alive()
        until.touch()
        thread.join(60)
        assert next(newcomer[0]) is not None
        eventually(lambda: "the state folder is written again" in log_of(daemon))
        assert daemon.stop() == 0
    finally:
        until.touch()
        daemon.kill()


def test_fault_28_a_deadline_that_is_no_number_of_milliseconds_is_refused(remote, counter):
    spec = counter()
    spec.write_text(spec.read_text() + "\nread_deadline_ms: 99")
    result = remote("create", spec)
    assert result.code != 0 and "read_deadline_ms out of range: 99 is not 0 (none) or in [100, 86400000]" in result.err, result


def test_faults_51_and_52_a_stop_that_waits_ignores_a_reload_and_ends_at_a_second_signal(hanging, tmp_path):
    config = tmp_path / "penstockd.textproto"
    config.write_text("stop_timeout_ms: 600000")
    # As a shell's script starts what it puts into the background.
    daemon = hanging("in a worker", "--config", str(config), limits=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    daemon.process.send_signal(signal.SIGTERM)
    # The socket goes as the stop begins, whatever hangs.
    eventually(lambda: not os.path.exists(daemon.socket))
    for _ in range(100):
        daemon.process.send_signal(signal.SIGHUP)
    assert daemon.process.poll() is None
    daemon.process.send_signal(signal.SIGINT)
    assert daemon.process.wait(60) == -signal.SIGINT
    assert "the configuration" not in daemon.process.stderr.read()
