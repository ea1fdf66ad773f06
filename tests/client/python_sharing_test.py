"""The processes of one job over one private daemon: penstock.shared_daemon, and loaders with share=."""

import contextlib
import json
import os
import signal
import socket as sockets
import struct
import subprocess
import sys
import time
import uuid

import numpy as np
import penstock
import pytest
from penstock._running import _sharing
from penstock._epochs import EpochLoader
from processes import forked_child, wait_until

# A rank that prints a line an epoch, or a line a batch and waits for one on its input.
RANK = """
import json, sys
import penstock
from penstock._epochs import EpochLoader

share, rank, world_size, epochs, step_by_step = sys.argv[1], *map(int, sys.argv[2:])
dataset = penstock.Dataset.range(60).shuffle(60).batch(10)
loader = EpochLoader(dataset, lambda array: array.tolist(), {"share": share, "rank": rank, "world_size": world_size})
for epoch in range(epochs):
    rows = []
    for batch in loader:
        rows += batch
        if step_by_step:
            print(json.dumps(batch), flush=True)
            if sys.stdin.readline() == "":
                sys.exit()
    if not step_by_step:
        print(json.dumps(rows), flush=True)
"""


@pytest.fixture
def share(tmp_path, monkeypatch):
    """The name of a share that nobody else has."""
    # So short that sockets may lie there.
    folder = f"/tmp/t{uuid.uuid4().hex[:8]}"
    os.mkdir(folder, 0o700)
    monkeypatch.setenv("TMPDIR", folder)
    monkeypatch.setattr("tempfile.tempdir", None)
    yield "job"
    for each in _sharing._shares.values():
        each.leave()
    _sharing._shares.clear()
    remove(folder)


def remove(folder):
    # A daemon that ends there takes its own files away, and may do so between a look into the folder and its removal.
    wait_until(lambda: subprocess.run(["rm", "-rf", folder], stderr=subprocess.DEVNULL).returncode == 0)


def socket_of(share):
    return f"{os.environ['TMPDIR']}/{own_folder()}/{share}/penstock.sock"


def own_folder():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"penstock-{os.geteuid()}-{file.read(8)}"


def daemon_of(path):
    """The process that serves a socket, or None."""
    with sockets.socket(sockets.AF_UNIX) as connection:
        if connection.connect_ex(path) != 0:
            return None
        return struct.unpack("3i", connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12))[0]


def start_rank(share, rank, world_size=2, epochs=3, step_by_step=False):
    return subprocess.Popen(
        [sys.executable, "-c", RANK, share, str(rank), str(world_size), str(epochs), str(int(step_by_step))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def step(process):
    """What a rank that goes step by step has, which then goes on."""
    line = process.stdout.readline()
    process.stdin.write("\n")
    process.stdin.flush()
    return json.loads(line)


def end(*processes):
    for process in processes:
        process.kill()
        process.communicate()


def test_ranks_share_a_daemon_that_ends_with_the_last(share):
    ranks = [start_rank(share, rank) for rank in range(2)]
    epochs = [[json.loads(line) for line in rank.communicate(timeout=60)[0].splitlines()] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert [len(of_rank) for of_rank in epochs] == [3, 3]
    for first, second in zip(*epochs):
        # Each row once: one order for both, though the shuffle has no seed.
        assert len(first) == len(second) == 30
        assert sorted(first + second) == list(range(60))
    assert epochs[0][0] != epochs[0][1]
    wait_until(lambda: daemon_of(socket_of(share)) is None)


def test_another_share_has_another_order_and_the_same_one_the_same(share):
    orders = [start_rank(name, 0, 1, 1).communicate(timeout=60)[0] for name in (share, share, "other")]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(json.loads(orders[2])) == list(range(60))


def twice(x):
    return x * 2


def test_what_is_of_one_process_alone_is_refused_and_says_what_to_do(share):
    function = penstock.Dataset.range(60).map(twice, python=True, output=penstock.TensorSpec((), np.int64)).batch(10)
    array = penstock.Dataset.from_tensor_slices(np.arange(100_000)).batch(10)
    for dataset, message in (function, r"a Python function is part of the dataset.*penstock\.shared_daemon\('job'\)"), (array, "an array of this process"):
        with pytest.raises(penstock.FailedPreconditionError, match=message):
            EpochLoader(dataset, lambda values: values, {"share": share})


def test_a_killed_daemon_is_one_that_comes_back(share):
    # fault 48
    ranks = [start_rank(share, rank, step_by_step=True) for rank in range(2)]
    rows = [step(rank) for rank in ranks]
    killed = daemon_of(socket_of(share))
    os.kill(killed, signal.SIGKILL)
    # Half of an epoch, which lay ready; then what only the daemon behind it can make.
    for number in range(1, 18):
        if number == 3:
            wait_until(lambda: daemon_of(socket_of(share)) not in (None, killed))
        for rank, process in enumerate(ranks):
            rows[rank] += step(process)
    for epoch in range(3):
        of_epoch = [row for of_rank in rows for row in of_rank[30 * epoch : 30 * epoch + 30]]
        assert sorted(of_epoch) == list(range(60))
    end(*ranks)
    wait_until(lambda: daemon_of(socket_of(share)) is None)


def test_who_asks_while_it_comes_back_waits_for_it(share):
    path = penstock.shared_daemon(share)
    loader = penstock.Dataset.range(1000).batch(1).loader(socket=path, name="numbers", reconnect=60)
    assert next(loader).tolist() == [0]
    for number in range(1, 6):
        os.kill(daemon_of(path), signal.SIGKILL)
        # It is the last process, and stays in it.
        assert penstock.shared_daemon(share) == path
        assert next(loader).tolist() == [number]
    loader.close()


def test_a_job_that_was_killed_leaves_nothing_to_the_next(share):
    for _ in range(2):
        process = start_rank(share, 0, 1, step_by_step=True)
        rows = step(process) + step(process)
        end(process)
        wait_until(lambda: daemon_of(socket_of(share)) is None)
    # The second began where the first had begun.
    dataset = penstock.Dataset.range(60).shuffle(60).batch(10)
    loader = EpochLoader(dataset, lambda array: array.tolist(), {"share": share})
    assert next(iter(loader)) == rows[:10]
    loader.close()


def test_who_started_it_may_go_first(share):
    first = start_rank(share, 0, 1, step_by_step=True)
    step(first)
    daemon = daemon_of(socket_of(share))
    path = penstock.shared_daemon(share)
    assert path == socket_of(share) and daemon_of(path) == daemon
    end(first)
    time.sleep(0.5)
    assert daemon_of(path) == daemon
    dataset = penstock.Dataset.range(5).batch(5).loader(socket=path, name="mine")
    assert next(dataset).tolist() == list(range(5))
    assert next(penstock.attach("mine", socket=path, group="late", timeout=10), None) is None
    dataset.close()


def test_a_forked_child_does_not_keep_it(share):
    path = penstock.shared_daemon(share)
    with forked_child():
        _sharing._shares[share].leave()
        wait_until(lambda: daemon_of(path) is None)
    # And whoever asks again gets another one.
    assert penstock.shared_daemon(share) == path
    assert daemon_of(path) is not None


def test_loaders_of_a_share_keep_their_dataset(share):
    dataset = penstock.Dataset.range(60).shuffle(60, seed=3).batch(10)
    loader = EpochLoader(dataset, lambda array: array.copy(), {"share": share})
    assert loader.dataset is dataset and len(loader) == 6
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    expected = next(batches)
    loader.load_state_dict(json.loads(json.dumps(state, default=bytes.hex)))
    np.testing.assert_array_equal(next(iter(loader)), expected)
    loader.close()


def test_what_cannot_be_shared(share):
    dataset = penstock.Dataset.range(4).batch(2)
    large = penstock.Dataset.from_tensor_slices(np.zeros((9000, 2))).batch(2)
    with pytest.raises(penstock.FailedPreconditionError, match="np.save"):
        EpochLoader(large, None, {"share": share})
    for name in ("", "a/b", "-x", ".", "x" * 49, 7, []):
        with pytest.raises(penstock.InvalidArgumentError, match="1 to 48"):
            EpochLoader(dataset, None, {"share": name})
    with pytest.raises(TypeError, match="of a Dataset"):
        EpochLoader("pipeline", None, {"share": share})
    with pytest.raises(TypeError, match="one of them"):
        EpochLoader(dataset, None, {"share": share, "socket": "s"})
    with pytest.raises(penstock.NotFoundError, match="python_sharing_test.py"):
        EpochLoader(penstock.TFRecordDataset("no-such-file").batch(2), None, {"share": share})


def test_a_signals_handler_does_not_wait_for_what_it_has_interrupted(share):
    with _sharing._share(share).locked():
        with pytest.raises(penstock.FailedPreconditionError, match="the shared penstockd 'job' is being asked by the code that this one has interrupted"):
            penstock.shared_daemon(share)
    assert penstock.shared_daemon(share) == socket_of(share)


def test_a_seed_that_two_branches_have_stays_one(tmp_path):
    numbers = penstock.Dataset.range(50).shuffle(50)
    kept = [numbers.map(lambda x: x * 2).cache(str(tmp_path / name)) for name in ("one", "other")]
    spec, *_ = _sharing._spec_of(penstock.Dataset.zip(tuple(kept)), "job")
    assert len(spec.seeds) == 2 and spec.seeds[0] == spec.seeds[1]
    assert _sharing._spec_of(penstock.Dataset.zip(tuple(kept)), "other")[0].seeds != spec.seeds


def test_equal_shuffles_of_different_datasets_differ(share):
    orders = []
    for factor in (1, 2):
        dataset = penstock.Dataset.range(50).map(lambda x: x * factor).shuffle(50).batch(50)
        loader = EpochLoader(dataset, lambda array: array.copy(), {"share": share})
        orders.append((next(iter(loader)) // factor).tolist())
        loader.close()
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]


def test_a_job_whose_daemon_and_supervisor_are_killed_goes_on_when_it_asks_anew(share):
    rank = start_rank(share, 0, 1, step_by_step=True)
    rows = step(rank)
    path = penstock.shared_daemon(share)
    daemon = daemon_of(path)
    with open(f"/proc/{daemon}/stat") as file:
        supervisor = int(file.read().rsplit(")", 1)[1].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: daemon_of(path) is None)
    assert penstock.shared_daemon(share) == path
    for _ in range(11):
        rows += step(rank)
    assert sorted(rows[:60]) == sorted(rows[60:]) == list(range(60))
    end(rank)


def test_a_fork_while_the_lock_is_held_does_not_keep_it(share):
    penstock.shared_daemon(share)
    with contextlib.ExitStack() as child:
        with _sharing._shares[share].locked():
            child.enter_context(forked_child())
        other = start_rank(share, 0, 1, 1)
        assert len(json.loads(other.communicate(timeout=30)[0])) == 60


def test_other_batch_sizes_are_not_counted(share):
    dataset = penstock.Dataset.range(60).batch(10)
    loader = EpochLoader(dataset, lambda array: array.copy(), {"share": share, "batch_size": 5, "socket": None})
    assert len(next(iter(loader))) == 5
    with pytest.raises(TypeError, match="batch_size"):
        len(loader)
    loader.close()


def test_a_folder_of_others_is_refused(share):
    penstock.shared_daemon(share)
    os.chmod(os.path.dirname(os.path.dirname(socket_of(share))), 0o755)
    with pytest.raises(penstock.PermissionDeniedError, match="closed to others"):
        penstock.shared_daemon("another")


def test_the_place_of_sockets_is_not_too_long(share, tmp_path, monkeypatch):
    folder = tmp_path / ("x" * 90)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    name = f"test-{uuid.uuid4().hex}"
    path = penstock.shared_daemon(name)
    assert path.startswith(f"/tmp/{own_folder()}/") and daemon_of(path) is not None
    _sharing._shares.pop(name).leave()
    wait_until(lambda: daemon_of(path) is None)
    remove(os.path.dirname(path))


# A rank that divides the dataset by itself, as DistributedSampler does.
DIVIDED = """
import sys
import penstock
from penstock._epochs import EpochLoader

share, rank, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
numbers = penstock.Dataset.range(60)
dataset = numbers.shard(2, rank) if how == "shard" else penstock.Dataset.range(30 * rank, 30 * rank + 30)
loaders = []
for part in [dataset] if how != "several" else [numbers.take(10), dataset, numbers] if rank == 0 else [numbers, numbers.take(10)]:
    loaders.append(EpochLoader(part.batch(10), lambda array: array, {"share": share, "rank": rank, "world_size": 2}))
print("made", flush=True)
sys.stdin.readline()
"""


def start_divided(share, rank, how):
    process = subprocess.Popen(
        [sys.executable, "-W", "always", "-c", DIVIDED, share, str(rank), how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return process, process.stdout.readline()


@pytest.mark.parametrize("how, wanted", [
    ("shard", "InvalidArgumentError: rank 1 of 2 gives a dataset with a shard of its own, as rank 0 does: each would wait for ever"),
    ("range", "RuntimeWarning: rank 1 of 2 gives another dataset than rank 0: a loader waits until all ranks have given an equal one"),
    ("several", ""),
])  # fmt: skip
def test_ranks_that_would_wait_for_each_other_for_ever_are_told(share, how, wanted):
    first, said = start_divided(share, 0, how)
    assert said == "made\n"
    second, said = start_divided(share, 1, how)
    assert said == ("" if how == "shard" else "made\n")
    text = second.communicate()[1]
    assert wanted in text and (wanted != "" or text == "")
    end(first)
    # Those of an earlier job are nobody's.
    alone, said = start_divided(share, 1, "shard")
    assert said == "made\n" and alone.communicate()[1] == ""


def test_a_second_daemon_never_serves_a_job_whose_folder_was_removed(share, monkeypatch):
    first = start_rank(share, 0, 1, step_by_step=True)
    step(first)
    folder = os.path.dirname(socket_of(share))
    daemon = daemon_of(socket_of(share))
    remove(os.path.dirname(folder))
    monkeypatch.setattr(_sharing, "_PATIENCE_SECONDS", 0)
    with pytest.raises(penstock.FailedPreconditionError, match=f"the folder of the job 'job' was removed while its daemon runs: {folder}"):
        penstock.shared_daemon(share)
    assert daemon_of(socket_of(share)) is None
    # Who is in it goes on.
    assert len(step(first)) == 10
    end(first)
    monkeypatch.undo()
    wait_until(lambda: not os.path.exists(f"/proc/{daemon}"))
    monkeypatch.setenv("TMPDIR", os.path.dirname(os.path.dirname(folder)))
    # The next one begins anew.
    assert daemon_of(penstock.shared_daemon(share)) not in (None, daemon)


def test_one_who_is_in_a_job_whose_folder_was_removed_is_told(share):
    path = penstock.shared_daemon(share)
    loader = penstock.Dataset.range(100).batch(1).loader(socket=path, name="numbers")
    assert next(loader).tolist() == [0]
    remove(os.path.dirname(path))
    with pytest.raises(penstock.FailedPreconditionError, match="was removed while its daemon runs"):
        penstock.shared_daemon(share)
    assert [next(loader).tolist() for _ in range(50)] == [[i] for i in range(1, 51)]
    loader.close()


def test_a_lock_that_was_removed_while_it_was_waited_for_is_taken_anew(share, monkeypatch):
    import fcntl

    taken = []

    def flock(file, operation, flock=fcntl.flock):
        flock(file, operation)
        if operation == fcntl.LOCK_EX and not taken:
            taken.append(file.name)
            os.remove(file.name)

    monkeypatch.setattr(fcntl, "flock", flock)
    held = _sharing._share(share)
    with held.locked():
        assert taken and os.path.samestat(os.stat(taken[0]), os.fstat(held._lock.fileno()))


def test_a_place_for_temporary_files_that_has_gone_is_told(share, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", "/tmp/gone-" + share)
    with pytest.raises(penstock.NotFoundError, match="the folder for temporary files has gone: /tmp/gone-job; make it again"):
        penstock.shared_daemon(share)
