"""Several hosts that make one stream: what launchers say of them, how they find out that one differs, and loaders of them beside one for all rows."""

import itertools
import random

import numpy as np
import pytest

import penstock
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
