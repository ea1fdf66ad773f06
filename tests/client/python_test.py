"""The Python client against a ring_server with known bytes (tests/support/ring_server.cc)."""

import gc
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import penstock


def expected(step, rows=8):
    row = np.arange(rows)
    return {
        "x": (1000 * step + 10 * row[:, None] + np.arange(4)).astype(np.float32),
        "y": 100 * step + row,
        "flag": (step + row) % 2 == 1,
        "id": np.uint64(step),
    }


def check(batch, step, rows=8):
    want = expected(step, rows)
    assert list(batch) == list(want)
    for name, array in want.items():
        np.testing.assert_array_equal(batch[name], array, strict=name != "id")


def test_a_finite_stream(start):
    loader = start("--steps", 50, "--last-rows", 3).attach()
    seen = []
    for batch in loader:
        assert type(batch) is dict
        step = loader.step
        check(batch, step, 3 if step == 49 else 8)
        assert loader.epoch == step // 10
        assert loader.rows == len(batch["y"])
        seen.append(step)
    assert seen == list(range(50))
    # The end stays the end.
    assert next(loader, None) is None
    stats = loader.stats()
    assert stats["batches"] == 50 and stats["copies"] == 0 and stats["position"] == 50
    assert stats["bytes"] == 49 * 208 + 3 * 25 + 8


def test_dtypes_and_shapes(start):
    batch = next(start().attach())
    assert {name: (array.dtype.name, array.shape) for name, array in batch.items()} == {
        "x": ("float32", (8, 4)),
        "y": ("int64", (8,)),
        "flag": ("bool", (8,)),
        "id": ("uint64", ()),
    }
    assert all(array.flags.c_contiguous and array.flags.aligned for array in batch.values())
    assert all(array.ctypes.data % 64 == 0 for array in batch.values())


def test_arrays_are_read_only(start):
    batch = next(start().attach())
    with pytest.raises(ValueError):
        batch["x"][0, 0] = 1
    with pytest.raises(ValueError):
        batch["x"].flags.writeable = True
    with pytest.raises(ValueError):
        np.add(batch["x"], 1, out=batch["x"])


def test_arrays_share_the_ring_and_are_not_copied(start):
    loader = start().attach()
    first = next(loader)
    assert not first["x"].flags.owndata
    assert loader.stats()["leases"] == 1
    view = first["x"][2:4].T
    del first
    gc.collect()
    assert loader.stats()["leases"] == 1
    np.testing.assert_array_equal(view, expected(0)["x"][2:4].T)
    del view
    assert loader.stats()["leases"] == 0


def test_memory_lives_as_long_as_the_last_array(start):
    server = start()
    loader = server.attach()
    kept = next(loader)["x"]
    for _ in range(200):
        next(loader)
    np.testing.assert_array_equal(kept, expected(0)["x"])
    loader.close()
    del loader
    other = server.attach()
    for _ in range(20):
        next(other)
    np.testing.assert_array_equal(kept, expected(0)["x"])
    server.kill()
    np.testing.assert_array_equal(kept, expected(0)["x"])


def test_a_list_of_batches_does_not_wait_for_itself(start):
    loader = start().attach()
    with pytest.warns(RuntimeWarning, match="this trainer holds 2 batches") as caught:
        batches = list(itertools.islice(loader, 20))
    assert len(caught) == 1
    for step, batch in enumerate(batches):
        check(batch, step)
    stats = loader.stats()
    assert stats["copies"] == 18 and stats["leases"] == 2 and stats["lease_share"] == 2
    # Once they are gone, batches are shared again.
    del batch, batches
    next(loader)
    assert loader.stats()["copies"] == 18


def test_a_for_loop_makes_no_copies(start):
    loader = start().attach()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in itertools.islice(loader, 500):
            check(batch, loader.step)
    assert loader.stats()["copies"] == 0


def test_the_warning_can_be_an_error_and_loses_nothing(start):
    loader = start("--steps", 6).attach()
    kept = [next(loader), next(loader)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            next(loader)
        assert loader.step == 1
    check(next(loader), 2)
    check(next(loader), 3)
    assert loader.stats()["leases"] == 2
    assert len(kept) == 2


@pytest.mark.parametrize(
    "given, message",
    [
        ({"lag": -1}, "lag is at least 0 seconds, not -1"),
        ({"lag": float("nan")}, "not nan"),
        ({"group": "a\nb"}, r"group is a name without control characters, not 'a\\nb'"),
        ({"consumer": "\x1b[1m"}, "consumer is a name"),
        ({"consumer": "\x85"}, "consumer is a name"),
    ],
)
def test_arguments_of_attach_are_checked(start, given, message):
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        start("--steps", 1).attach(**given)


@pytest.mark.parametrize("what", ["name", "socket"])
def test_a_zero_byte_does_not_make_another_name(start, what):
    server = start("--steps", 1)
    given = {"name": server.pipeline, "socket": server.socket}
    with pytest.raises(penstock.InvalidArgumentError, match=f"{what} has a zero byte"):
        penstock.attach(**{**given, what: given[what] + "\0more"})


def test_two_loaders_see_the_same_stream(start):
    server = start("--steps", 30)
    one, two = server.attach(), server.attach(group="eval")
    pairs = list(zip((int(b["id"]) for b in one), (int(b["id"]) for b in two)))
    assert pairs == [(step, step) for step in range(30)]


def test_a_context_manager(start):
    with start().attach() as loader:
        batch = next(loader)
    assert loader.closed
    check(batch, 0)
    for use in (lambda: next(loader), loader.stats):
        with pytest.raises(penstock.FailedPreconditionError, match="closed"):
            use()
    loader.close()


def test_the_length_is_not_known(start):
    with pytest.raises(TypeError, match="not known"):
        len(start().attach())
    loader = start("--steps", 2, "--last-rows", 1).attach()
    assert loader
    assert [len(batch["y"]) for batch in list(loader)] == [8, 1]


def test_timeout(start):
    server = start("--steps", 2, "--hold-at", 1)
    loader = server.attach(timeout=0.01)
    check(next(loader), 0)
    with pytest.raises(penstock.DeadlineExceededError, match="0.01"):
        next(loader)
    loader = server.attach(timeout=60)
    server.go()
    assert int(next(loader)["id"]) in (0, 1)
    with pytest.raises(penstock.InvalidArgumentError):
        server.attach(timeout=-1)


def test_other_threads_run_while_a_loader_waits(start):
    server = start("--hold-at", 1)
    loader = server.attach()
    next(loader)
    got = []
    thread = threading.Thread(target=lambda: got.append(next(loader)))
    thread.start()
    while loader.stats()["waits"] == 0:  # needs the GIL, and the loader's attention
        pass
    server.go()
    thread.join()
    check(got[0], 1)


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_threads_share_one_loader(start):
    loader = start("--steps", 2000).attach()
    seen = [[], []]

    def take(into):
        for batch in loader:
            into.append(int(batch["id"]))

    threads = [threading.Thread(target=take, args=(into,)) for into in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen[0] + seen[1]) == list(range(2000))


def test_close_while_another_thread_waits(start):
    loader = start("--hold-at", 0).attach()
    errors = []

    def wait():
        try:
            next(loader)
        except penstock.FailedPreconditionError as error:
            errors.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    while loader.stats()["waits"] == 0:
        pass
    loader.close()
    thread.join()
    assert errors == ["the loader is closed"]


INTERRUPTED = """
import os, signal, sys, threading, penstock
# A shell's background jobs start with it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
loader = penstock.attach("counted", sys.argv[1])
next(loader)

def interrupt():
    while loader.stats()["waits"] == 0:
        pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    next(loader)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_wait(start):
    server = start("--hold-at", 1)
    command = [sys.executable, "-c", INTERRUPTED, server.socket]
    assert subprocess.check_output(command, text=True, timeout=60) == "interrupted\n"


def test_a_killed_daemon_is_unavailable(start):
    server = start("--hold-at", 2)
    loader = server.attach(reconnect=0)
    first = next(loader)
    while loader.stats()["published"] < 2:
        pass
    server.kill()
    check(next(loader), 1)
    for _ in range(2):
        with pytest.raises(penstock.UnavailableError, match="penstockd has gone away"):
            next(loader)
    check(first, 0)


def test_a_failed_pipeline(start):
    message = "bad record (a.tfrecord, record 7, offset 40)"
    loader = start("--steps", 1, "--end-code", 15, "--end-message", message).attach()
    next(loader)
    for _ in range(2):
        with pytest.raises(penstock.DataLossError) as caught:
            next(loader)
        assert str(caught.value) == message
        assert caught.value.code == "DATA_LOSS"


@pytest.mark.parametrize("code", range(1, 17))
def test_every_code_has_its_exception(start, code):
    loader = start("--steps", 0, "--end-code", code, "--end-message", "why").attach(reconnect=0)
    with pytest.raises(penstock.Error, match="why") as caught:
        next(loader)
    assert type(caught.value).__name__.lower()[: -len("error")] == (
        caught.value.code.replace("_", "").lower()
    )


def test_no_daemon(tmp_path):
    with pytest.raises(penstock.UnavailableError) as caught:
        penstock.attach("chess", str(tmp_path / "socket"))
    assert f"penstockd --socket {tmp_path}/socket" in str(caught.value)


def test_an_unknown_pipeline(start):
    server = start()
    with pytest.raises(penstock.NotFoundError, match=f"penstock --socket {server.socket} list"):
        penstock.attach("chest", server.socket)


def test_the_default_socket(start, monkeypatch):
    server = start()
    monkeypatch.setenv("PENSTOCK_SOCKET", server.socket)
    assert penstock.default_socket() == server.socket
    check(next(penstock.attach("counted")), 0)


def take_in_child(loader, results):
    try:
        next(loader)
    except penstock.FailedPreconditionError as error:
        results.put(str(error))


def test_fault_40_a_forked_child_does_not_speak_for_its_parent(start):
    loader = start().attach()
    batch = next(loader)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=take_in_child, args=(loader, results))
        child.start()
    assert "attach again in the child" in results.get()
    child.join()
    for step in range(1, 50):
        check(next(loader), step)
    check(batch, 0)


def inherited_descriptors():
    """Those that a program which this process starts gets, of the kinds that a client has."""
    names = subprocess.run([sys.executable, "-c", """
import os
for fd in os.listdir("/proc/self/fd"):
    try:
        print(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:
        pass
"""], close_fds=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(name for name in names if any(word in name for word in ("penstock", "socket:", "eventfd", "pidfd")))


def test_fault_41_another_program_gets_no_descriptor(start):
    before = inherited_descriptors()  # of other tests
    loader = start().attach()
    batch = next(loader)
    own = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
    assert any("penstock" in name for name in own) and any(name.startswith("socket:") for name in own)
    assert inherited_descriptors() == before
    check(batch, 0)
    check(next(loader), 1)


def test_the_package_loads_neither_grpc_nor_protobuf():
    code = (
        "import penstock, sys; text = open('/proc/self/maps').read();"
        "print(any(word in text for word in ('grpc', 'protobuf', 'absl')))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_batches_leave_no_memory_behind(start):
    loader = start().attach()

    def objects_after(steps):
        for _ in itertools.islice(loader, steps):
            pass
        gc.collect()
        return sys.getallocatedblocks()

    objects_after(200)
    before = objects_after(200)
    assert objects_after(2000) - before < 50


def test_versions():
    assert penstock.abi_version() == 4
    assert penstock.__version__ == penstock.version()
