"""Pipelines on a NUMA node, and without it where the machine or the system does not give it: fault 37 of docs/reliability.md.

A machine of one node has node 0 only. Where the tests may mount (as root), another description of the machine's nodes stands in its place.
"""

import errno
import json
import os
import pathlib
import re

import pytest

from confined import mounts, refuse
from programs import Daemon, Penstock, eventually
from test_return import expected, rows

penstock = pytest.importorskip("penstock")

NODES = pathlib.Path("/sys/devices/system/node")

pytestmark = pytest.mark.skipif(not (NODES / "node0").exists(), reason="this kernel tells of no NUMA nodes")


@pytest.fixture
def start(tmp_path):
    started = []

    def run(*options, config="", **settings):
        (tmp_path / "daemon.textproto").write_text(config)
        started.append(Daemon(tmp_path / "penstock.sock", "--config", tmp_path / "daemon.textproto", *options, **settings))
        assert started[-1].is_ready, started[-1].process.stderr.read()
        return started[-1]

    yield run
    for daemon in started:
        daemon.stop()


def nodes(folder, online, **cpulists):
    """Has a child process see these nodes, each with its list of processors."""
    shown = folder / "nodes"
    for name, cpulist in cpulists.items():
        (shown / name).mkdir(parents=True)
        (shown / name / "cpulist").write_text(cpulist + "\n")
    (shown / "online").write_text(online + "\n")
    return mounts((shown, NODES, "bind", ""))


def endless(counter, node=None):
    more = "stage { repeat {} }" if node is None else f"numa_node: {node} stage {{ repeat {{}} }}"
    return counter(more=more)


def stats(command, name="counter"):
    return json.loads(command("top", name, "--json", "--count", "1").out)


def take(daemon, count=30):
    loader = penstock.attach("counter", daemon.socket, timeout=30)
    for step in range(count):
        assert rows(next(loader)) == expected(step)
    return loader


def workers(daemon):
    """The processors on which each worker may run, as the kernel lists them."""
    found = []
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        status = (task / "status").read_text()
        if re.match(r"Name:\tworker ", status):
            found.append(re.search(r"Cpus_allowed_list:\t(.*)", status).group(1))
    return found


def policies(daemon):
    """The policy and what lies where, of each map of a ring."""
    maps = pathlib.Path(f"/proc/{daemon.pid}/numa_maps").read_text()
    return [line.split()[1:] for line in maps.splitlines() if "penstock-ring" in line]


def own_processors():
    return sorted(os.sched_getaffinity(0))


def told(daemon, command, pattern):
    """The notice, which is in the statistics, in `stats`, an event, and once in the log of the daemon, which ends."""
    notices = stats(command)["numa"]["notice"]
    notice, = [notice for notice in notices if re.search(pattern, notice)]
    assert notice in command("stats", "counter").out
    assert notice in command("explain", "counter").out
    events = [json.loads(line) for line in command("events", "--json").out.splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds.index("EVENT_KIND_CREATED") < kinds.index("EVENT_KIND_MISPLACED")
    assert [event["text"] for event in events if event["kind"] == "EVENT_KIND_MISPLACED"].count(notice) == 1
    daemon.stop()
    log = daemon.process.stderr.read()
    assert log.count(f"pipeline counter: {notice}") == 1, log
    return notices


def test_node_0_is_asked_for_the_ring_and_its_processors_for_workers(tmp_path, counter, start):
    daemon = start()
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 0)).code == 0
    loader = take(daemon)
    numa = stats(command)["numa"]
    assert numa["node"] == 0 and numa["ring"] and numa["notice"] == []
    assert int(numa["ring_bytes"]) == int(stats(command)["ring_bytes"]) > 0
    assert numa["processors"] == len(own_processors())
    assert "NUMA        node 0: workers on its" in command("stats", "counter").out
    assert "node 0: workers on its" in command("top", "counter", "--count", "1").out
    policy, = policies(daemon)
    assert policy[0] == "prefer:0" and any(part.startswith("N0=") for part in policy)
    assert not any(re.match(r"N[1-9]", part) for part in policy)
    assert "misplaced" not in command("events").out
    del loader


def test_without_a_node_nothing_is_asked_for(tmp_path, counter, start):
    daemon = start()
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    take(daemon)
    assert stats(command).get("numa") is None and "NUMA" not in command("stats", "counter").out
    assert all(policy[0] == "default" for policy in policies(daemon))


def test_workers_are_bound_and_as_many_as_the_node_has_processors(tmp_path, counter, start):
    processor = own_processors()[-1]
    daemon = start(limits=nodes(tmp_path, "0-1", node0=f"{processor},1020-1023", node1="1019"))
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 0)).code == 0
    loader = take(daemon)
    assert workers(daemon) == [str(processor)]
    assert command("update", "counter", "--workers", "3").code == 0
    eventually(lambda: workers(daemon) == [str(processor)] * 3)
    assert command("update", "counter", "--workers", "0").code == 0
    eventually(lambda: workers(daemon) == [str(processor)])
    assert stats(command)["numa"]["processors"] == 1
    for step in range(30, 60):
        assert rows(next(loader)) == expected(step)


def test_autotune_takes_the_nodes_processors_at_most(tmp_path, counter, start):
    daemon = start(config="worker_defaults { autotune: true numa_node: 0 }",
                   limits=nodes(tmp_path, "0", node0=f"{own_processors()[0]}"))
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter)).code == 0
    take(daemon)
    eventually(lambda: stats(command).get("autotune", {}).get("most_workers"))
    assert stats(command)["autotune"]["most_workers"] == 1 and stats(command)["autotune"]["processors"] == 1


def test_the_daemons_node_holds_where_a_spec_names_none(tmp_path, counter, start):
    daemon = start("--log-level", "error", config="worker_defaults { numa_node: 0 }")
    command = Penstock(tmp_path, daemon.socket)
    for name, node, options in [("plain", None, []), ("none", -1, []), ("absent", 9, []), ("given", 9, ["--numa-node", 0])]:
        spec = endless(counter, node)
        assert command("create", spec, "--name", name, *options).code == 0
    assert stats(command, "plain")["numa"]["node"] == 0
    assert stats(command, "none").get("numa") is None
    assert stats(command, "absent")["numa"]["node"] == 9
    assert stats(command, "given")["numa"]["node"] == 0


def test_a_node_has_no_effect_on_cursors(tmp_path, counter, start):
    daemon = start("--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 0)).code == 0
    (tmp_path / "cursor").write_bytes(take(daemon, 7).state_dict()["cursor"])
    assert command("delete", "counter").code == 0
    assert command("create", endless(counter), "--resume", tmp_path / "cursor").code == 0
    loader = penstock.attach("counter", daemon.socket, timeout=30)
    assert rows(next(loader)) == expected(7)


@pytest.mark.parametrize("node", [-2, 1024])
def test_numbers_out_of_range_are_refused(tmp_path, counter, start, node):
    daemon = start("--log-level", "error")
    command = Penstock(tmp_path, daemon.socket)
    refused = command("create", endless(counter, node))
    assert refused.code == 1 and f"numa_node out of range: {node} is not -1 (none) or in [0, 1023]" in refused.err


def test_fault_37_a_node_that_is_absent(tmp_path, counter, start):
    daemon = start()
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 7)).code == 0
    take(daemon)
    numa = stats(command)["numa"]
    assert not numa["ring"] and numa["processors"] == 0 and "ring_bytes" not in numa
    assert all(policy[0] == "default" for policy in policies(daemon))
    assert len(workers(daemon)) == len(own_processors())
    online = (NODES / "online").read_text().strip()
    notice, = told(daemon, command, "no NUMA node 7")
    assert notice == f"there is no NUMA node 7: this machine has {online}; workers and ring are on any"


def test_fault_37_a_node_without_memory_or_usable_processors(tmp_path, counter, start):
    daemon = start(limits=nodes(tmp_path, "0-1", node0="0", node1="1000-1001"))
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 1)).code == 0
    take(daemon)
    assert len(workers(daemon)) == len(own_processors())
    notices = told(daemon, command, "in any memory")
    assert notices == [
        "none of the processors of NUMA node 1 (1000-1001) may be used: the affinity or the cpuset of penstockd leaves them out; "
        "workers run on any",
        "the ring is in any memory: NUMA node 1 has none, or the cpuset of penstockd leaves it out"]


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS])
def test_fault_37_mbind_refused(tmp_path, counter, start, error):
    daemon = start(limits=refuse(error, "mbind", "move_pages"))
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 0)).code == 0
    take(daemon)
    numa = stats(command)["numa"]
    assert not numa["ring"] and "ring_bytes" not in numa and numa["processors"] > 0
    assert all(policy[0] == "default" for policy in policies(daemon))
    notice, = told(daemon, command, "mbind")
    assert os.strerror(error) in notice and "CAP_SYS_NICE" in notice


def test_fault_37_binding_workers_refused(tmp_path, counter, start):
    daemon = start(limits=refuse(errno.EPERM, "sched_setaffinity"))
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 0)).code == 0
    take(daemon)
    eventually(lambda: stats(command)["numa"]["notice"])
    numa = stats(command)["numa"]
    assert numa["processors"] == 0 and numa["ring"]
    notice, = told(daemon, command, "sched_setaffinity")
    assert os.strerror(errno.EPERM) in notice


def test_fault_37_what_is_missing_is_told_once_however_often_the_ring_is_made(tmp_path, counter, start):
    daemon = start(config="memory { idle_ms: 1 }")
    command = Penstock(tmp_path, daemon.socket)
    assert command("create", endless(counter, 7)).code == 0
    for step in range(2):
        eventually(lambda: stats(command)["resting"])
        with penstock.attach("counter", daemon.socket, timeout=30) as loader:
            assert rows(next(loader)) == expected(step)
    eventually(lambda: stats(command)["resting"])
    loader = penstock.attach("counter", daemon.socket, timeout=30)
    assert rows(next(loader)) == expected(2)
    told(daemon, command, "no NUMA node 7")
