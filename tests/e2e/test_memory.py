"""The memory of rings: limits by pipeline, user and process, and what idle pipelines give back; small /dev/shm and control groups."""

import itertools
import os
import pathlib
import re

import pytest

from confined import memory_group, mounts
from programs import Daemon, Penstock, eventually
from tfrecord_files import example, framed

penstock = pytest.importorskip("penstock")

MIB = 1 << 20
# Slots of 4 MiB.
SPEC = """
name: "{name}" workers: 1
ring {{ slots: {slots} }}
stage {{ range {{ stop: {stop} }} }}
{shuffle}
stage {{ batch {{ batch_size: 524288 }} }}
stage {{ repeat {{}} }}
"""


@pytest.fixture
def start(tmp_path):
    """Starts a daemon with some memory limits; returns its command line."""
    daemons = []

    def run(limits, *options, confine=None):
        config = tmp_path / "penstockd.textproto"
        config.write_text(f"memory {{ {limits} }}")
        daemons.append(Daemon(tmp_path / "penstock.sock", "--config", config, "--log-level", "error", *options,
                              limits=confine))
        assert daemons[-1].is_ready
        command = Penstock(tmp_path, daemons[-1].socket)
        command.daemon = daemons[-1]
        return command

    yield run
    for daemon in daemons:
        daemon.stop()


def create(command, name, slots=3, stop=10 * 524288, shuffle=""):
    path = command.folder / f"{name}.textproto"
    path.write_text(SPEC.format(name=name, slots=slots, stop=stop, shuffle=shuffle))
    return command("create", path)


def attach(command, name, **options):
    return penstock.attach(name, command.socket, timeout=60, **options)


def shared_memory(command):
    """Bytes of rings that the daemon has."""
    status = pathlib.Path(f"/proc/{command.daemon.pid}/status").read_text()
    return int(re.search(r"RssShmem:\s+(\d+) kB", status).group(1)) * 1024


@pytest.mark.parametrize("field, who", [("max_bytes", "the daemon"), ("max_user_bytes", "user")])
def test_a_limit_for_all_pipelines(start, field, who):
    command = start(f"{field}: {40 * MIB}")
    for name in ["a", "b", "c"]:
        assert create(command, name).code == 0
    refused = create(command, "d")
    assert refused.code != 0
    assert f"memory.{field} is 40.0 MiB, {who}" in refused.err and "has 36.0 MiB, and 12.0 MiB more" in refused.err
    # What one gives back another one has.
    assert command("delete", "b").code == 0
    assert create(command, "d").code == 0
    first = next(attach(command, "d"))
    assert first[0] == 0 and len(first) == 524288


def test_a_limit_for_each_pipeline(start):
    command = start(f"max_pipeline_bytes: {22 * MIB}")
    refused = create(command, "large", slots=6)
    assert "memory.max_pipeline_bytes is 22.0 MiB, pipeline large has 0 bytes, and 24.0 MiB more" in refused.err
    assert create(command, "small", slots=3).code == 0
    # Two slots for each consumer would be more than it may have: they share five.
    loaders = [attach(command, "small") for _ in range(4)]
    for step in range(12):
        for loader in loaders:
            assert next(loader)[0] == step % 10 * 524288
    slots = int(re.search(r"ring +(\d+) slots", command("stats", "small").out).group(1))
    assert 3 <= slots <= 5
    # A small ring of one's own counts for the pipeline too.
    cursor = loaders[0].state_dict()["cursor"]
    for _ in range(12):
        for loader in loaders:
            next(loader)
    with pytest.raises(penstock.ResourceExhaustedError, match="memory.max_pipeline_bytes"):
        attach(command, "small", cursor=cursor)
    for loader in loaders:
        next(loader)


def test_a_slot_of_strings_takes_what_its_batches_need(start, tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(["short"] * 1000 + ["x" * 6 * MIB] + ["short"] * 999))
    command = start("")
    spec = tmp_path / "text.textproto"
    spec.write_text(f"""
        name: "text" workers: 2
        stage {{ text_line {{ files: "{tmp_path}/lines.txt" }} }} stage {{ batch {{ batch_size: 100 }} }}""")
    assert command("create", spec).code == 0
    loader = attach(command, "text")
    assert next(loader).tolist() == [b"short"] * 100
    slots = int(re.search(r"ring +(\d+) slots", command("stats", "text").out).group(1))
    # One huge page of each, of the 64 MiB that it may take.
    assert shared_memory(command) < (2 * slots + 1) * MIB
    batches = [[len(line) for line in batch.tolist()] for batch in loader]
    assert len(batches) == 19 and batches[9] == [6 * MIB] + [5] * 99
    assert 6 * MIB < shared_memory(command) < (2 * slots + 8) * MIB
    # A size that somebody named is there from the beginning.
    spec.write_text(spec.read_text().replace('"text"', '"asked"') + " ring { slots: 3 slot_bytes: 10000000 }")
    before = shared_memory(command)
    assert command("create", spec).code == 0
    assert shared_memory(command) - before > 3 * 10_000_000


def test_a_limit_for_each_process(start):
    command = start(f"max_process_bytes: {10 * MIB}")
    # Each command is a process of its own; this one has only what is made for it.
    assert create(command, "a", slots=2).code == 0
    assert create(command, "b", slots=2).code == 0
    assert "memory.max_process_bytes is 10.0 MiB, process" in create(command, "c", slots=3).err
    loader = attach(command, "a")
    next(loader)
    cursor = loader.state_dict()["cursor"]
    for _ in range(20):
        next(loader)
    behind = attach(command, "a", cursor=cursor)  # two slots of its own
    assert next(behind)[0] == 524288
    with pytest.raises(penstock.ResourceExhaustedError, match="memory.max_process_bytes"):
        attach(command, "a", cursor=cursor)


def test_a_user_stays_charged_over_a_restart(start, tmp_path):
    command = start(f"max_user_bytes: {20 * MIB}", "--rejoin-seconds", "0.1")
    assert create(command, "a").code == 0
    command.daemon.kill()
    command = start(f"max_user_bytes: {20 * MIB}", "--rejoin-seconds", "0.1")
    assert next(attach(command, "a"))[0] == 0
    assert "memory.max_user_bytes is 20.0 MiB, user" in create(command, "b").err


def test_an_idle_pipeline_gives_its_memory_back(start):
    command = start("idle_ms: 400")
    assert create(command, "idle", slots=4).code == 0
    loader = attach(command, "idle")
    for step in range(7):
        assert next(loader)[0] == step * 524288
    eventually(lambda: shared_memory(command) >= 16 * MIB)
    assert "rests" not in command("stats", "idle").out
    loader.close()
    eventually(lambda: shared_memory(command) < 2 * MIB)
    assert "it rests" in command("stats", "idle").out
    assert "running" in command("list").out
    # The next one has the very next batch that nobody had, as if nothing had been.
    loader = attach(command, "idle")
    for step in range(7, 25):
        assert next(loader)[0] == step % 10 * 524288
    assert loader.step == 24
    assert "it rests" not in command("stats", "idle").out
    loader.close()
    eventually(lambda: "it rests" in command("stats", "idle").out)
    # What changes it wakes it; a drain says where it stands.
    assert command("update", "idle", "--set", "batch.batch_size=1024").code == 0
    eventually(lambda: "it rests" in command("stats", "idle").out)
    assert command("drain", "idle").code == 0
    assert command("delete", "idle").code == 0


def test_a_pipeline_without_a_quick_way_back_keeps_its_memory(start):
    command = start("idle_ms: 50")
    assert create(command, "quick").code == 0
    assert create(command, "slow", shuffle='stage { filter { predicate: "value % 2 == 0" } } stage { shuffle { buffer_size: 10 seed: 1 } }').code == 0
    assert "replay data" in command("validate", command.folder / "slow.textproto").out
    eventually(lambda: "it rests" in command("stats", "quick").out)
    assert "it rests" not in command("stats", "slow").out
    assert next(attach(command, "slow"))[0] % 2 == 0


# What stands between the records and the batches.
PASSES = {
    "in order": "",
    "shuffled": "stage { shuffle { buffer_size: 1000 seed: 1 } }",
    "permuted": "stage { shuffle { global: true seed: 1 } }",
    "kept": "stage { cache {} } stage { shuffle { buffer_size: 1000 seed: 1 } }",
}


@pytest.mark.parametrize("order", PASSES)
def test_memory_does_not_grow_with_the_number_of_passes(start, tmp_path, order):
    records = [bytearray(framed(example(n=n))) for n in range(20_000)]
    records[5][-6] ^= 1  # a place that each pass lists
    (tmp_path / "n.tfrecord").write_bytes(b"".join(records))
    spec = tmp_path / "passes.textproto"
    spec.write_text(f"""
        name: "passes" workers: 2 ring {{ slots: 4 }}
        stage {{ tfrecord {{ files: "n.tfrecord" damage {{ on_damage: SKIP_RECORD }} }} }} {PASSES[order]}
        stage {{ parse_example {{ feature {{ key: "n" int64 {{}} }} }} }} stage {{ repeat {{}} }} stage {{ batch {{ batch_size: 1000 }} }}""")
    command = start("")
    assert command("create", spec).code == 0
    loader = attach(command, "passes")

    def memory():
        return int(re.search(r"RssAnon:\s+(\d+) kB", pathlib.Path(f"/proc/{command.daemon.pid}/status").read_text()).group(1)) * 1024

    def take(passes):
        for _ in range(20 * passes):
            next(loader)
        return memory()

    before = take(5)
    # A slab of 2 MiB more may be in use, not eight bytes for each record of each pass.
    grown = take(30) - before
    assert grown < 4 * MIB, f"{grown} bytes"


def rings(pid):
    """The maps of rings that a process has: where each begins, and how many KiB of it lie on huge pages."""
    maps = re.findall(r"^([0-9a-f]+)-[0-9a-f]+ .*memfd:penstock-ring.*\n(?:[A-Z].*\n)*?ShmemPmdMapped: +(\d+) kB",
                      pathlib.Path(f"/proc/{pid}/smaps").read_text(), re.MULTILINE)
    return [(int(begin, 16), int(kib)) for begin, kib in maps]


def test_a_trainer_maps_a_ring_on_huge_pages_where_the_daemon_does(start):
    command = start("")
    assert create(command, "a").code == 0
    # Those of loaders that other tests have left behind.
    others = {begin for begin, _ in rings("self")}
    loader = attach(command, "a")
    # Each slot, also in the map that torch's views lie in.
    for batch in itertools.islice(loader, 8):
        assert penstock._core.writable(batch).sum() == batch.sum()
    [(_, daemons)] = rings(command.daemon.pid)
    maps = [one for one in rings("self") if one[0] not in others]
    assert len(maps) == 2 and all(begin % (2 * MIB) == 0 for begin, _ in maps)
    # Without huge pages of the system's nobody has any.
    assert [kib > 0 for _, kib in maps] == [daemons > 0] * 2


def test_fault_33_a_dev_shm_of_1_mib_holds_up_no_ring(start):
    command = start("", confine=mounts(("shm", "/dev/shm", "tmpfs", "size=1m")))
    there = os.statvfs(f"/proc/{command.daemon.pid}/root/dev/shm")
    assert there.f_blocks * there.f_frsize == MIB
    assert create(command, "p", slots=16).code == 0
    with attach(command, "p") as loader:
        for step in range(20):
            assert next(loader)[0] == step % 10 * 524288
    assert shared_memory(command) >= 64 * MIB
    now = os.statvfs(f"/proc/{command.daemon.pid}/root/dev/shm")
    assert now.f_bfree == there.f_bfree == there.f_blocks


def test_fault_34_a_ring_larger_than_its_control_group_is_refused(start):
    with memory_group(256 * MIB) as group:
        if group is None:
            pytest.skip("no control group can be made here")
        command = start("", confine=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
        assert create(command, "small", slots=4).code == 0
        refused = create(command, "large", slots=64)
        assert refused.code == 1 and "RESOURCE_EXHAUSTED: a ring of 64 slots of 4.0 MiB" in refused.err, refused
        assert "(cgroup limit 256.0 MiB, " in refused.err, refused
        # Nobody was killed, and who came before goes on.
        with attach(command, "small") as loader:
            assert next(loader)[0] == 0
        assert "large" not in command("list").out
        command.daemon.stop()
