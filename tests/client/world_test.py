"""Several hosts that make one stream: what launchers say of them, how they find out that one differs, and loaders of them beside one for all rows."""

import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

import penstock
from penstock import _control
from penstock._epochs import EpochLoader
from penstock._running import _guard, _world
from penstock._running._world import World, find

TORCHRUN = {"TORCHELASTIC_RUN_ID": "a", "RANK": "5", "WORLD_SIZE": "8", "GROUP_RANK": "2", "GROUP_WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
SLURM = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_NODEID": "2", "SLURM_NNODES": "4", "SLURM_LOCALID": "1", "SLURM_TASKS_PER_NODE": "2(x4)"}
RAY = {"RANK": "5", "WORLD_SIZE": "8", "NODE_RANK": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
JOB = {"JOB_COMPLETION_INDEX": "2", "PENSTOCK_HOSTS": "4"}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "trainer-2", "PENSTOCK_HOSTS": "4"}


@pytest.mark.parametrize(
    "world, environ, of_processes, of_hosts",
    [
        ("auto", TORCHRUN, World(8, 5), World(4, 2, 1, 2)),
        ("torchrun", {**SLURM, **TORCHRUN}, World(8, 5), World(4, 2, 1, 2)),
        ("auto", {**SLURM, **TORCHRUN}, World(8, 5), World(4, 2, 1, 2)),
        ("auto", SLURM, World(8, 5), World(4, 2, 1, 2)),
        ("auto", {**SLURM, "SLURM_STEP_NUM_TASKS": "6", "SLURM_STEP_NUM_NODES": "3"}, World(6, 5), World(3, 2, 1, 2)),
        ("slurm", {**SLURM, **TORCHRUN}, World(8, 5), World(4, 2, 1, 2)),
        ("ray", RAY, World(8, 5), World(4, 2, 1, 2)),
        ("auto", RAY, World(8, 5), World(4, 2, 1, 2)),
        ("mpi", MPI, World(4, 2), World(4, 2)),
        ("auto", {"PMI_RANK": "1", "PMI_SIZE": "3", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}, World(3, 1), World(3, 1)),
        ("auto", JOB, World(4, 2), World(4, 2)),
        ("kubernetes", {**JOB, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, World(8, 5), World(4, 2, 1, 2)),
        ("auto", POD, World(4, 2), World(4, 2)),
        ("auto", {**POD, **MPI, "HOSTNAME": "trainer-worker-0"}, World(4, 2), World(4, 2)),
        ("auto", {**POD, **SLURM}, World(8, 5), World(4, 2, 1, 2)),
        ("statefulset", {"POD_NAME": "a-b-3", "PENSTOCK_HOSTS": "4"}, World(4, 3), World(4, 3)),
        ("auto", {"PENSTOCK_HOST": "1", "PENSTOCK_HOSTS": "2"}, World(2, 1), World(2, 1)),
        ("auto", {**TORCHRUN, "PENSTOCK_HOST": "1", "PENSTOCK_HOSTS": "2"}, World(4, 3), World(2, 1, 1, 2)),
        ((3, 2), {}, World(3, 2), World(3, 2)),
        (None, TORCHRUN, None, None),
    ],
)
def test_what_launchers_say(world, environ, of_processes, of_hosts):
    assert find(world, True, environ) == of_processes
    assert find(world, False, environ) == of_hosts


def without(environ, name):
    return {key: value for key, value in environ.items() if key != name}


@pytest.mark.parametrize(
    "world, environ, message",
    [
        ("auto", {}, "none of PENSTOCK_HOST, GROUP_RANK.*is set"),
        ("slurm", TORCHRUN, "none of SLURM_PROCID is set"),
        ("auto", without(TORCHRUN, "WORLD_SIZE"), r"GROUP_RANK is set, but WORLD_SIZE is not: it says how many processes there are"),
        ("auto", {**TORCHRUN, "RANK": "8"}, "RANK is 8 and WORLD_SIZE is 8: expected a number below it"),
        ("auto", {**TORCHRUN, "WORLD_SIZE": "nine"}, "WORLD_SIZE is 'nine', and no number"),
        ("auto", {**TORCHRUN, "LOCAL_RANK": "2"}, "LOCAL_RANK is 2 and LOCAL_WORLD_SIZE is 2"),
        ("auto", {**TORCHRUN, "GROUP_WORLD_SIZE": "3"}, "which makes 6 processes, but WORLD_SIZE is 8"),
        ("auto", {**TORCHRUN, "GROUP_RANK": "4"}, "GROUP_RANK is 4 and GROUP_WORLD_SIZE is 4"),
        ("auto", without(SLURM, "SLURM_STEP_ID"), "start the program by srun"),
        ("auto", {**SLURM, "SLURM_TASKS_PER_NODE": "2(x3),1"}, "hosts with different numbers of processes"),
        ("auto", without(JOB, "PENSTOCK_HOSTS"), "JOB_COMPLETION_INDEX is set, but PENSTOCK_HOSTS is not"),
        ("auto", without(POD, "PENSTOCK_HOSTS"), "pod trainer-2 is number 2, but PENSTOCK_HOSTS is not set"),
        ("auto", {**POD, "HOSTNAME": "trainer"}, "ends with no number"),
        ("auto", {"PENSTOCK_HOST": "2", "PENSTOCK_HOSTS": "2"}, "PENSTOCK_HOST is 2 and PENSTOCK_HOSTS is 2"),
        ("mpi", {**MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "does not say which host this is"),
        ("jax", {}, "jax.distributed.initialize"),
        ("lsf", {}, "expected None"),
        ((0, 0), {}, "hosts counted from 0 on"),
        ((3, 3), {}, "hosts counted from 0 on"),
        ((3,), {}, "two whole numbers"),
        ((3, 1.5), {}, "two whole numbers"),
        (7, {}, "two whole numbers"),
    ],
)
def test_what_is_missing_or_contradicts_is_named(world, environ, message):
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        find(world, False, environ)


def numbers(rows=12, count=100, seed=3):
    return penstock.Dataset.range(count).shuffle(30, seed=seed).map(lambda x: {"n": x, "x": x * 2}).batch(rows)


def loader(dataset, world, **options):
    return EpochLoader(dataset, np.array, dict(options, world=world, guard=None))


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_the_rows_of_all_hosts_are_those_of_one(hosts):
    whole = EpochLoader(numbers(), np.array, {})
    parts = [loader(numbers(), (hosts, host)) for host in range(hosts)]
    assert {len(part) for part in parts} == {len(whole)}
    for _ in range(2):
        steps = [list(part) for part in parts]
        for batch, *of_hosts in itertools.zip_longest(whole, *steps):
            for name in batch:
                np.testing.assert_array_equal(np.concatenate([part[name] for part in of_hosts]), batch[name])


def test_a_state_of_any_host_goes_on_in_another_world():
    whole = [batch["n"].tolist() for batch in EpochLoader(numbers(), np.array, {})]
    dice = random.Random(5)
    joined, state = [], None
    while len(joined) < len(whole):
        hosts, count = dice.randint(1, 6), dice.randint(1, 3)
        parts, states = [], []
        for host in range(hosts):
            part = loader(numbers(), (hosts, host))
            if state is not None:
                part.load_state_dict(state)
            batches = iter(part)
            parts.append([batch["n"].tolist() for batch in itertools.islice(batches, count)])
            states.append(part.state_dict())
            part.close()
        assert len({one["cursor"] for one in states}) == 1
        state = dice.choice(states)
        joined += [sum(of_hosts, []) for of_hosts in zip(*parts)]
    assert joined == whole


def test_the_number_of_hosts_changes_while_they_live():
    # Three of five stay; the other two have gone before the step.
    whole = [batch["n"].tolist() for batch in EpochLoader(numbers(count=300), np.array, {})]
    parts = [loader(numbers(count=300), (5, host)) for host in range(5)]
    running = [iter(part) for part in parts]
    found = []
    for step in range(len(whole)):
        if step == 4:
            for number, host in enumerate((0, 2, 3)):
                parts[host].reworld(3, number, at_step=7)
        if step == 7:
            # The step before the change is the last one that the others give.
            running = [running[host] for host in (0, 2, 3)]
        found.append(sum((next(one)["n"].tolist() for one in running), []))
    assert found == whole
    assert parts[2].world == (3, 1, 0, 1)
    for part in parts:
        part.close()


def by_resume(dataset, changes, count):
    """The rows of all hosts, which each change makes anew from the state of any of them."""
    joined, state = [], None
    dice = random.Random(11)
    for first, end, hosts in zip([0, *(step for step, _ in changes)], [*(step for step, _ in changes), count], [8, *(hosts for _, hosts in changes)]):
        rows, states = [], []
        for host in range(hosts):
            part = loader(dataset, (hosts, host))
            if state is not None:
                part.load_state_dict(state)
            rows.append([batch["n"].tolist() for batch in itertools.islice(part, end - first)])
            states.append(part.state_dict())
            part.close()
        assert len({one["cursor"] for one in states}) == 1
        state = dice.choice(states)
        assert len(state["cursor"]) <= 150
        joined += [sum(of_hosts, []) for of_hosts in zip(*rows)]
    return joined


@pytest.mark.parametrize("fewest", [1, None])
def test_ten_changes_by_reworld_and_by_resume_give_one_stream(fewest):
    dataset = numbers(rows=12, count=2400)
    whole = [batch["n"].tolist() for batch in EpochLoader(dataset, np.array, {})]
    dice = random.Random(10)
    changes = [(18 * number + dice.randint(0, 5), dice.randint(1, 8)) for number in range(1, 11)]
    assert by_resume(dataset, changes, len(whole)) == whole

    # Host 0 stays in all worlds; whoever else is needed comes with the state of the step before.
    parts = [loader(dataset, (8, host), fewest_hosts=fewest) for host in range(8)]
    running = [iter(part) for part in parts]
    found, state, coming, pipelines = [], None, list(changes), set()
    for step in range(len(whole)):
        if coming and step == coming[0][0]:
            _, hosts = coming.pop(0)
            for part in parts[hosts:]:
                part.close()
            parts, running = parts[:hosts], running[:hosts]
            for host in range(len(parts), hosts):
                part = loader(dataset, (hosts, host), fewest_hosts=1 if fewest else None)
                part.load_state_dict(state)
                parts.append(part)
                running.append(iter(part))
        found.append(sum((next(one)["n"].tolist() for one in running), []))
        state = parts[0].state_dict()
        pipelines.add(parts[0]._loader.pipeline)
        if coming:
            at_step, hosts = coming[0]
            for host, part in enumerate(parts[:hosts]):
                if part._reworld is None:
                    part.reworld(hosts, host, at_step=at_step)
    assert found == whole
    # The daemon changes a pipeline that has room; one that has none is made anew.
    assert (len(pipelines) == 1) == (fewest == 1)
    for part in parts:
        part.close()


def test_a_pipeline_that_others_read_too_is_divided_anew_where_it_has_room():
    whole = [batch["n"].tolist() for batch in EpochLoader(numbers(rows=12, count=600), np.array, {"share": "world_again_alone"})]
    parts = [loader(numbers(rows=12, count=600), (3, 1), share="world_again", rank=rank, world_size=2, fewest_hosts=2) for rank in range(2)]
    running = [iter(part) for part in parts]
    found = []
    for step in range(50):
        found.append([next(one)["n"].tolist() for one in running])
        if step == 3:
            # Each process of the host asks for it.
            for part in parts:
                part.reworld(2, 0, at_step=30)
            with pytest.raises(penstock.FailedPreconditionError, match="step 30 already, which is still to come"):
                parts[0].reworld(2, 0, at_step=31)
            with pytest.raises(penstock.FailedPreconditionError, match="a slot of its ring has room for 6"):
                parts[0].reworld(1, 0, at_step=30)
    assert [sum(rows, []) for rows in found] == [batch[4:8] if step < 30 else batch[:6] for step, batch in enumerate(whole)]
    assert parts[1].world == (2, 0, 0, 1)
    for part in parts:
        part.close()
    with pytest.raises(penstock.InvalidArgumentError, match="fewest_hosts: expected 1 to 3, found 4"):
        loader(numbers(), (3, 1), fewest_hosts=4)
    with pytest.raises(penstock.InvalidArgumentError, match="fewest_hosts: expected 1 to the number of hosts"):
        EpochLoader(numbers(), np.array, {"fewest_hosts": 1})


def test_a_change_of_hosts_outlives_its_daemon(tmp_path):
    socket = str(tmp_path / "s")

    def start():
        ready, ready_end = os.pipe()
        command = [pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstockd", "--socket", socket, "--state-dir", tmp_path / "state", "--log-level", "error", "--ready-fd", str(ready_end)]
        daemon = subprocess.Popen(command, pass_fds=[ready_end])
        os.close(ready_end)
        with os.fdopen(ready) as pipe:
            assert pipe.read(1)
        return daemon

    daemon = start()
    try:
        spec = "stage { range { stop: 4000 } } stage { shuffle { buffer_size: 50 seed: 4 } } stage { batch { batch_size: 12 } }"
        _control.create(socket, "alone", spec)
        whole = [batch.tolist() for batch in penstock.attach("alone", socket)]
        _control.create(socket, "divided", spec, world=World(4, 1), fewest_hosts=2)
        rows = []
        with penstock.attach("divided", socket) as batches:
            for step, batch in enumerate(batches):
                rows.append(batch.tolist())
                if step == 5:
                    assert _control.redivide(socket, "divided", 100, World(2, 1))["change"]["world"] == {"hosts": 2, "host": 1, "fewest_hosts": 0}
                if step in (40, 200):
                    daemon.kill()
                    daemon.wait()
                    daemon = start()
        assert rows == [batch[len(batch) // 4 : 2 * len(batch) // 4] if step < 100 else batch[len(batch) // 2 :] for step, batch in enumerate(whole)]
    finally:
        daemon.kill()
        daemon.wait()


@pytest.mark.parametrize("hosts", [2, 3, 5, 8])
def test_functions_of_whole_batches_see_the_batch_of_all_hosts(hosts):
    def of_python(batch):
        return {"n": batch["n"][::-1].copy(), "sum": np.int64(batch["n"].sum())}

    traced = numbers(rows=12, count=100).map(lambda batch: {"n": batch["n"] - np.sum(batch["n"]), "sum": np.sum(batch["n"])})
    called = numbers(rows=12, count=100).map(of_python, python=True, seed=5)
    for dataset in (traced, called, numbers(rows=12, count=100).shuffle(3, seed=4)):
        whole = list(EpochLoader(dataset, np.array, {}))
        parts = [list(loader(dataset, (hosts, host))) for host in range(hosts)]
        for batch, *of_hosts in itertools.zip_longest(whole, *parts):
            np.testing.assert_array_equal(np.concatenate([part["n"] for part in of_hosts]), batch["n"])
            if "sum" in batch:
                assert {int(part["sum"]) for part in of_hosts} == {int(batch["sum"])}


def test_a_change_of_the_number_of_hosts_names_its_step():
    part = loader(numbers(), (2, 0))
    part.reworld(3, 1)  # between two loops it holds from the next one on
    batches = iter(part)
    assert len(next(batches)["n"]) == 4
    with pytest.raises(penstock.FailedPreconditionError, match="name the first step"):
        part.reworld(2, 0)
    with pytest.raises(penstock.FailedPreconditionError, match="step 0 was given already: the earliest is 1"):
        part.reworld(2, 0, at_step=0)
    with pytest.raises(penstock.InvalidArgumentError, match="below their number"):
        part.reworld(2, 2, at_step=5)
    part.reworld(2, 0, at_step=1)
    assert len(next(batches)["n"]) == 6
    part.close()
    with pytest.raises(penstock.FailedPreconditionError, match=r"world=\(1, 0\)"):
        EpochLoader(numbers(), np.array, {}).reworld(2, 0)


def test_a_change_of_the_number_of_hosts_that_its_pass_does_not_reach_holds_from_the_next_one_on():
    part = loader(numbers(count=24), (2, 0))
    batches = iter(part)
    next(batches)
    part.reworld(3, 0, at_step=5)
    assert [len(batch["n"]) for batch in batches] == [6]
    with pytest.raises(penstock.FailedPreconditionError, match="leave at_step=7 out"):
        part.reworld(2, 0, at_step=7)
    for batch in part:
        assert len(batch["n"]) == 4
        break
    # The loop was left: no step of it is to come.
    part.reworld(4, 0)
    assert [len(batch["n"]) for batch in part] == [3, 3]
    part.close()


def test_seeds_that_each_host_would_draw_are_refused():
    with pytest.raises(penstock.InvalidArgumentError, match="1 of the 1 seeds of this dataset are open"):
        loader(numbers(seed=None), (2, 0))


def test_more_hosts_than_rows_are_refused():
    with pytest.raises(penstock.InvalidArgumentError, match="13 hosts divide batches of 12 rows"):
        next(iter(loader(numbers(), (13, 0))))


def test_processes_of_a_host_divide_its_rows():
    # Of one host each: a daemon for each name.
    whole = [batch["n"].tolist() for batch in EpochLoader(numbers(), np.array, {"share": "world_alone"})]
    parts = [loader(numbers(), (3, host), share="world_alone") for host in range(3)]
    assert [sum(of_hosts, []) for of_hosts in zip(*[[batch["n"].tolist() for batch in part] for part in parts])] == whole
    for part in parts:
        part.close()


def test_a_batch_size_of_ones_own_is_refused_where_hosts_divide_the_rows():
    with pytest.raises(penstock.FailedPreconditionError, match="only those of one of several hosts; give its spec another batch_size"):
        loader(numbers(), (3, 1), share="world_sizes", batch_size=5)
    part = loader(numbers(), (1, 0), share="world_sizes", batch_size=5)
    assert len(next(iter(part))["n"]) == 5
    part.close()


def told(dataset, world, state=None):
    part = EpochLoader(dataset, np.array, {"world": world, "guard": None})
    if state is not None:
        part.load_state_dict(state)
    batches = iter(part)
    next(batches)
    state = part.state_dict()
    part.close()
    return _guard.told(state["cursor"], _world.World(*world)), state


def test_the_guard_names_the_host_that_differs():
    all_told = [told(numbers(), (3, host))[0] for host in range(3)]
    _guard.compare(all_told)
    for other, message in (
        (numbers(seed=4), "host 2 of 3: beside host 0, its seeds are others"),
        (numbers(rows=13), "host 2 of 3: beside host 0, its batch size is another one"),
        (numbers(count=101), "host 2 of 3: beside host 0, its order ops"),
        (penstock.Dataset.range(100).shuffle(30, seed=3).map(lambda x: {"n": x, "x": x * 3}).batch(12), "its work ops"),
    ):
        with pytest.raises(penstock.FailedPreconditionError, match=message):
            _guard.compare([*all_told[:2], told(other, (3, 2))[0]])
    with pytest.raises(penstock.FailedPreconditionError, match="host 1 of 3: two processes have this number"):
        _guard.compare([*all_told, told(numbers(), (3, 1))[0]])
    with pytest.raises(penstock.FailedPreconditionError, match="host 1 of 3: none of the processes has this number"):
        _guard.compare([all_told[0], all_told[2]])
    with pytest.raises(penstock.FailedPreconditionError, match="it counts 4 hosts, and host 0 counts 3"):
        _guard.compare([*all_told[:2], told(numbers(), (4, 2))[0]])
    with pytest.raises(penstock.FailedPreconditionError, match="its next step is 2, not 1"):
        _guard.compare([*all_told[:2], told(numbers(), (3, 2), told(numbers(), (3, 2))[1])[0]])


def test_files_that_differ_are_named(tmp_path):
    for folder, count in (("a", 50), ("b", 60)):
        (tmp_path / folder).mkdir()
        with penstock.io.TFRecordWriter(str(tmp_path / folder / "x.tfrecord")) as writer:
            for number in range(count):
                writer.write(b"%d" % number)

    def records(folder):
        return penstock.TFRecordDataset(str(tmp_path / folder / "x.tfrecord")).batch(8)

    _guard.compare([told(records("a"), (2, host))[0] for host in range(2)])
    with pytest.raises(penstock.FailedPreconditionError, match="host 1 of 2: beside host 0, its files have other sizes"):
        _guard.compare([told(records("a"), (2, 0))[0], told(records("b"), (2, 1))[0]])


def test_the_guard_is_asked_behind_the_first_batch_and_when_it_is_called():
    asked = []

    def gather(mine):
        asked.append(mine)
        return [mine, dict(mine, host=1)]

    part = EpochLoader(numbers(), np.array, {"world": (2, 0), "guard": gather})
    batches = iter(part)
    assert not asked
    next(batches), next(batches)
    assert [one["step"] for one in asked] == [1]
    part.check_hosts()
    assert [one["step"] for one in asked] == [1, 2]
    part.close()
    part.check_hosts()
    assert [one["step"] for one in asked] == [1, 2, 2]
    with pytest.raises(penstock.InvalidArgumentError, match="guard: expected"):
        next(iter(EpochLoader(numbers(), np.array, {"world": (2, 0), "guard": "none"})))


def test_the_guard_is_asked_in_each_loop_and_behind_a_change_of_hosts():
    asked = []

    def gather(mine):
        asked.append((mine["hosts"], mine["step"]))
        return [dict(mine, host=host) for host in range(mine["hosts"])]

    part = EpochLoader(numbers(count=240), np.array, {"world": (2, 0), "guard": gather})
    for _ in range(2):
        for step, _ in enumerate(part):
            if step == 2:
                part.reworld(3, 0, at_step=15)
    assert asked == [(2, 1), (3, 16), (3, 1), (3, 16)]


def test_hosts_that_nobody_compares_are_told_once(monkeypatch):
    monkeypatch.setattr(_guard, "_has_warned", False)
    part = EpochLoader(numbers(), np.array, {"world": (2, 0)})
    with pytest.warns(RuntimeWarning, match="nothing compares what the 2 hosts of this world make"):
        next(iter(part))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(EpochLoader(numbers(), np.array, {"world": (3, 0)})))
        monkeypatch.setattr(_guard, "_has_warned", False)
        next(iter(EpochLoader(numbers(), np.array, {"world": (2, 0), "guard": None})))
        next(iter(EpochLoader(numbers(), np.array, {"world": (1, 0)})))


def test_jax_gathers_what_is_longer_than_that_of_others(monkeypatch):
    mine = told(numbers(), (2, 0))[0]
    others = dict(mine, host=1, position=list(range(3000)))

    def allgather(rows):
        # The other process pads to the same size; it tells a longer one at first.
        text = json.dumps(dict(others, fingerprint={str(number): value.hex() if isinstance(value, bytes) else value for number, value in others["fingerprint"].items()})).encode()
        if rows.dtype == np.int32:
            return np.stack([rows, np.asarray([len(text)], np.int32)])
        assert len(rows) >= len(text)
        return np.stack([rows, np.frombuffer(text.ljust(len(rows), b"\0"), np.uint8)])

    utilities = types.SimpleNamespace(process_allgather=allgather)
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    monkeypatch.setitem(sys.modules, "jax.experimental", types.SimpleNamespace(multihost_utils=utilities))
    gathered = _guard._gather_by_jax(mine)
    assert [one["host"] for one in gathered] == [0, 1]
    assert gathered[1]["position"] == list(range(3000))
