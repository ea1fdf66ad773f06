"""Loaders and iterators that are left: closed by another thread, interrupted, in the middle of a loop, at the interpreter's end."""

import gc
import inspect
import itertools
import os
import pathlib
import pickle
import signal
import socket as socket_module
import subprocess
import sys
import threading
import time

import pytest

import penstock
from penstock import _control, _core, _epochs
from penstock._running import _daemon
from processes import stop, wait_until


def run(program, *arguments):
    """A Python program: what it prints; an error where it does not end well."""
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


# --- a loader ---

STOP = inspect.getsource(stop)

CLOSED_WHILE_IT_SEEKS = STOP + """
import os, signal, sys, threading, penstock
loader = penstock.attach("counted", sys.argv[1])
next(loader)
state = loader.state_dict()
errors = []

def seek():
    try:
        loader.load_state_dict(state)
    except penstock.FailedPreconditionError as error:
        errors.append(str(error))

stop(int(sys.argv[2]))
seeks = threading.Thread(target=seek)
seeks.start()
while loader._waiting == 0:
    pass
loader.close()
os.kill(int(sys.argv[2]), signal.SIGCONT)
seeks.join()
print(errors)
"""


def test_a_loader_may_be_closed_while_another_thread_seeks(start):
    server = start()
    assert run(CLOSED_WHILE_IT_SEEKS, server.socket, str(server.process.pid)) == "['the loader is closed']\n"


ENDS_WHILE_A_THREAD_WAITS = """
import sys, threading, time, penstock
loader = penstock.attach("counted", sys.argv[1])
next(loader)
wait = next if sys.argv[2] == "next" else lambda loader: penstock.attach("counted", sys.argv[3])
threading.Thread(target=wait, args=(loader,), daemon=True).start()
while sys.argv[2] == "next" and loader._waiting == 0:
    pass

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)  # the interpreter's end; the thread asks for the GIL meanwhile

slow = Slow()
print("ends")
"""


@pytest.mark.parametrize("where", ["next", "attach"])
def test_a_program_ends_while_a_daemon_thread_waits(start, tmp_path, where):
    server = start("--hold-at", 1)
    with socket_module.socket(socket_module.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        assert run(ENDS_WHILE_A_THREAD_WAITS, server.socket, where, str(tmp_path / "silent.sock")) == "ends\n"


def test_a_daemon_with_a_full_queue_can_be_left(tmp_path, alarm):
    path = str(tmp_path / "full.sock")
    with socket_module.socket(socket_module.AF_UNIX) as full, socket_module.socket(socket_module.AF_UNIX) as before:
        full.bind(path)
        full.listen(0)
        before.connect(path)
        for wait in (lambda: penstock.attach("never", path), lambda: _control.create(path, "never", "stage {}")):
            started = time.monotonic()
            alarm.ring()
            with pytest.raises(alarm.Rung):
                wait()
            assert time.monotonic() - started < 5


class Refused(Exception):
    pass


def test_a_batch_that_could_not_be_given_is_given_by_the_next_call(start_kinds, monkeypatch):
    from penstock import _ragged

    refuses = [False]

    class Moody(_ragged.RaggedTensor):
        def __init__(self, values, row_splits):
            if refuses[0]:
                raise Refused
            super().__init__(values, row_splits)

    monkeypatch.setattr(_ragged, "RaggedTensor", Moody)
    loader = start_kinds().attach()
    next(loader)
    state, leases = loader.state_dict(), loader.stats()["leases"]
    refuses[0] = True
    for _ in range(3):
        with pytest.raises(Refused):
            next(loader)
        assert loader.state_dict() == state
    refuses[0] = False
    next(loader)
    assert loader.step == state["step"] + 1
    gc.collect()
    assert loader.stats()["leases"] == leases
    # One that was never given is let go of with the loader.
    refuses[0] = True
    with pytest.raises(Refused):
        next(loader)
    loader.close()


# --- an iterator ---


def numbers(count=100):
    return penstock.Dataset.range(count).batch(10)


def firsts(elements):
    return [int(element[0]) for element in elements]


def names():
    program = _daemon.find_program()[: -len("penstockd")] + "penstock"
    out = subprocess.check_output([program, "--socket", _daemon.private_socket(), "list"], text=True)
    return [line.split()[0] for line in out.splitlines() if line.startswith("dataset_")]


def test_a_closed_iterator_tells_where_it_was():
    dataset = numbers().shuffle(5)
    with iter(dataset) as iterator:
        taken = firsts(itertools.islice(iterator, 3))
    again = iter(dataset)
    again.load_state_dict(iterator.state_dict())
    assert iterator.state_dict()["step"] == 2
    assert sorted(taken + firsts(again)) == list(range(0, 100, 10))


@pytest.mark.parametrize("goes_on", [False, True])
def test_one_that_is_closed_before_its_first_element_tells_where_it_was(goes_on):
    dataset = numbers().shuffle(5, seed=1)
    whole = firsts(dataset)
    other = iter(dataset)
    firsts(itertools.islice(other, 3))
    iterator = iter(dataset)
    if goes_on:
        iterator.load_state_dict(other.state_dict())
    iterator.close()
    state = iterator.state_dict()
    assert state == iterator.state_dict()
    again = iter(dataset)
    again.load_state_dict(state)
    rest = firsts(again)
    assert state["step"] == (2 if goes_on else -1) and sorted(rest) != rest and len(rest) == len(whole) - (3 if goes_on else 0)
    with pytest.raises(penstock.FailedPreconditionError, match="the iterator is closed"):
        next(iterator)


def left_at_the_fourth(breaks, closes):
    """A loader whose loop takes four of its elements, those, and all that its first pass has."""
    loader = _epochs.EpochLoader(numbers().shuffle(5), lambda array: array, {})
    whole = firsts(loader)
    loader.set_epoch(0)
    taken = []
    for batch in loader:
        taken.append(int(batch[0]))
        if len(taken) == 4:
            if closes:
                loader.close()
            if breaks:
                break
    return loader, taken, whole


@pytest.mark.parametrize("closes", [False, True], ids=["break", "close"])
def test_a_loop_over_an_epoch_that_is_left_early_can_be_gone_on_with(closes):
    loader, taken, whole = left_at_the_fourth(breaks=True, closes=closes)
    assert loader.stats()["batches"] == 4
    state = loader.state_dict()
    assert (state["step"], state["epoch"]) == (3, 0)
    other = _epochs.EpochLoader(numbers().shuffle(5), lambda array: array, {})
    other.load_state_dict(state)
    assert taken + firsts(other) == whole


def test_a_loop_over_an_epoch_ends_when_it_is_closed():
    loader, taken, whole = left_at_the_fourth(breaks=False, closes=True)
    assert taken == whole[:4] and loader.state_dict()["step"] == 3
    loader.load_state_dict(loader.state_dict())
    assert firsts(loader) == whole[4:]


def test_one_that_waits_for_a_batch_ends_when_another_thread_closes_it():
    loader = _epochs.EpochLoader(penstock.Dataset.range(1 << 40).filter(lambda x: x < 0).batch(1), lambda array: array, {})
    taken = []
    loop = threading.Thread(target=lambda: taken.append(list(loader)))
    loop.start()
    wait_until(lambda: loader._loader is not None and loader._loader._loader is not None)
    loader.close()
    loop.join()
    assert taken == [[]]


def between(function, after):
    """What `function` gives, behind what another thread does as soon as it has it."""

    def call(*arguments):
        result = function(*arguments)
        other = threading.Thread(target=after)
        other.start()
        other.join()
        return result

    return call


def test_a_batch_that_comes_as_another_thread_closes_the_loop_is_its_last(monkeypatch):
    loader = _epochs.EpochLoader(numbers().shuffle(5), lambda array: array, {})
    whole = firsts(loader)
    loader.set_epoch(0)
    monkeypatch.setattr(penstock.DatasetIterator, "__next__", between(penstock.DatasetIterator.__next__, loader.close))
    taken = firsts(loader)
    monkeypatch.undo()
    assert taken == whole[:1] and loader.valid == 1
    loader.load_state_dict(loader.state_dict())
    assert firsts(loader) == whole[1:]


@pytest.mark.parametrize("name", ["stats", "state_dict"])
def test_a_loop_may_end_while_another_thread_asks_where_it_is(monkeypatch, name):
    iterator = iter(numbers())
    start = iterator._start

    def closed_meanwhile():
        iterator.close()
        start()

    monkeypatch.setattr(iterator, "_start", closed_meanwhile)
    assert getattr(iterator, name)() == ({} if name == "stats" else {"cursor": b"", "step": -1, "seeds": [], "passes": []})


def test_a_loop_over_a_pipeline_ends_when_it_is_closed(start):
    loader = _epochs.EpochLoader("counted", lambda array: array, {"socket": start().socket})
    for taken, _ in enumerate(loader, 1):
        if taken == 3:
            loader.close()
    assert taken == 3
    with pytest.raises(penstock.FailedPreconditionError, match="the loader is closed"):
        next(iter(loader))


def test_a_loader_does_not_go_to_another_process():
    with pytest.raises(penstock.FailedPreconditionError, match="a loader belongs to its process; .* num_workers=0"):
        pickle.dumps(_epochs.EpochLoader(numbers(), bytes, {}))


@pytest.mark.parametrize(
    "state, found", [({}, "nothing"), ({"model": 1, "epoch": 3}, "epoch, model"), ({"cursor": b"x", "step": 1}, "cursor, step")]
)
def test_what_is_no_state_of_a_dataset_is_refused(state, found):
    loader = _epochs.EpochLoader(numbers(), lambda array: array, {})
    next(iter(loader))
    position = loader.state_dict()
    with pytest.raises(penstock.InvalidArgumentError, match=f"which has cursor, seeds, step, or epoch alone; found {found}$"):
        loader.load_state_dict(state)
    assert loader.state_dict() == position


def test_what_is_no_state_of_a_pipeline_is_refused(start):
    loader = _epochs.EpochLoader("counted", lambda array: array, {"socket": start().socket})
    with pytest.raises(penstock.InvalidArgumentError, match="which has cursor, step; found epoch$"):
        loader.load_state_dict({"epoch": 1})


def test_an_iterator_that_did_not_start_has_a_state_and_draws_its_seeds_once(tmp_path):
    dataset = penstock.Dataset.range(1000).shuffle(100)
    iterator = dataset.loader(str(tmp_path / "nobody.sock"), reconnect=0)
    states = []
    for _ in range(3):
        with pytest.raises(penstock.UnavailableError):
            next(iterator)
        states.append(iterator.state_dict())
    assert states[1:] == states[:-1] and (states[0]["cursor"], states[0]["step"]) == (b"", -1)
    again = iter(dataset)
    again.load_state_dict(states[0])
    assert sorted(int(element) for element in again) == list(range(1000))


def test_an_iterator_that_is_closed_while_it_starts_runs_nothing():
    next(iter(numbers()))
    gc.collect()
    iterator, errors = iter(numbers()), []

    def take():
        try:
            next(iterator)
        except penstock.Error as error:
            errors.append(error)

    stop(_daemon.private_process())
    try:
        takes = threading.Thread(target=take)
        takes.start()
        wait_until(lambda: iterator._spec is not None)
        iterator.close()
    finally:
        os.kill(_daemon.private_process(), signal.SIGCONT)
    takes.join()
    assert [(type(error), "the iterator is closed" in str(error)) for error in errors] == [(penstock.FailedPreconditionError, True)]
    wait_until(lambda: names() == [])


IN_A_HANDLER = STOP + """
import os, signal, threading, penstock
from penstock._running import _daemon
dataset = penstock.Dataset.range(10).batch(4)
other = iter(dataset)
next(other)
iterator, daemon = iter(dataset), _daemon.private_process()

def handle(*_):
    print(iterator.stats(), iterator.state_dict()["step"])
    for use in (lambda: next(iterator), lambda: iterator.rows, lambda: iterator.load_state_dict(other.state_dict())):
        try:
            use()
        except penstock.FailedPreconditionError as error:
            print(error)
    os.kill(daemon, signal.SIGCONT)
    print(next(other))

def ring():
    while iterator._spec is None:
        pass
    os.kill(os.getpid(), signal.SIGUSR1)

signal.signal(signal.SIGUSR1, handle)
stop(daemon)
threading.Thread(target=ring).start()
print(next(iterator))
"""
REFUSED = "by the code that this one has interrupted, as a signal's handler does: come again behind it\n"


def test_a_signals_handler_does_not_wait_for_the_start_that_it_has_interrupted():
    refused = f"the iterator is being started, or goes elsewhere, {REFUSED}"
    assert run(IN_A_HANDLER) == "{} -1\n" + 3 * refused + "[4 5 6 7]\n[0 1 2 3]\n"


def test_an_iterator_that_is_interrupted_while_it_starts_leaves_no_pipeline(monkeypatch):
    def interrupted(*arguments, **options):
        assert len(names()) == 1
        raise KeyboardInterrupt

    iterator = iter(numbers())
    gc.collect()
    wait_until(lambda: names() == [])
    with monkeypatch.context() as patch:
        patch.setattr(_core, "Loader", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    wait_until(lambda: names() == [])
    assert firsts(iterator) == list(range(0, 100, 10))


# --- the private daemon ---


@pytest.fixture
def no_daemon(tmp_path, monkeypatch):
    """No private daemon, and a folder of the test's for the next one."""
    import tempfile

    penstock.stop_private_daemon()
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_daemon_that_is_not_there_leaves_no_folder(no_daemon, monkeypatch):
    monkeypatch.setenv("PENSTOCKD", str(no_daemon / "nothing"))
    with pytest.raises(penstock.NotFoundError):
        next(iter(numbers()))
    assert list(no_daemon.iterdir()) == []


def test_an_interrupted_start_of_the_daemon_leaves_nothing(no_daemon, tmp_path, monkeypatch, alarm):
    program = tmp_path / "penstockd"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PENSTOCKD", str(program))
    before = len(os.listdir("/proc/self/fd"))
    alarm.ring()
    with pytest.raises(alarm.Rung):
        next(iter(numbers()))
    assert list(no_daemon.iterdir()) == []
    assert not pathlib.Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
    assert len(os.listdir("/proc/self/fd")) == before
    monkeypatch.delenv("PENSTOCKD")
    assert firsts(iter(numbers())) == list(range(0, 100, 10))


IN_A_HANDLER_AT_THE_START = """
import pathlib, signal, sys, penstock

def handle(*_):
    try:
        print(penstock.Dataset.range(5).element_spec)
    except penstock.FailedPreconditionError as error:
        print(error)
    pathlib.Path(sys.argv[1]).touch()

signal.signal(signal.SIGUSR1, handle)
print(penstock.Dataset.range(5).cardinality(), penstock.Dataset.range(5).element_spec.shape)
"""


def test_a_signals_handler_does_not_wait_for_the_daemons_start_that_it_has_interrupted(tmp_path, monkeypatch):
    handled, program = tmp_path / "handled", tmp_path / "penstockd"
    program.write_text(f'#!/bin/sh\nkill -USR1 $PPID\nuntil [ -e {handled} ]; do sleep 0.01; done\nexec {_daemon.find_program()} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PENSTOCKD", str(program))
    assert run(IN_A_HANDLER_AT_THE_START, str(handled)) == f"the private penstockd is being started {REFUSED}5 ()\n"
