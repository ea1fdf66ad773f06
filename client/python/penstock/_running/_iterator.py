"""One pass over a dataset."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
import threading
import time
import warnings
from typing import Any, Dict

from penstock import _control, _core, _errors, _show
from penstock._options import Options
from penstock._running import _changed_code, _daemon, _left_out, _offering, _watching
from penstock._running._undivided import Undivided
from penstock._spec._stage import Spec

_numbers = itertools.count(1)
# Between two looks for a daemon that has gone away.
_RETRY_SECONDS = 0.1
# Looks, 1 ms apart, for the threads that are still in a dead daemon's loader: by their number, as who holds the GIL for long holds up
# both. Not for ever, since one of them may be this thread, in a signal's handler.
_LEAVING_LOOKS = 1000
# What the daemon says of a batch that is larger than a slot (server/engine/tensor/variable_rows.cc).
_SLOT_TOO_SMALL = re.compile(r"needs (\d+) > (\d+) bytes; raise ring { slot_bytes")
_SLOT_UNIT = 16 << 20


class DatasetIterator:
    """The elements of one pass over a Dataset, in order; its own iterator and a context manager.

    It runs a pipeline, in the process' private daemon or a given one, that is deleted when the
    iterator is closed, let go of, or the process ends. Nothing starts before the first `next`. Several
    threads may take elements from one iterator: each element goes to one of them.

    Where the private daemon is killed or crashes, the iterator goes on in a new one, behind the element
    taken last, with a RuntimeWarning; UnavailableError where that one dies before it has given any. In a
    given daemon it goes on when that is there again within `reconnect` seconds. Where a batch whose size only the data tells is larger than a
    slot of its ring, it goes on in one with larger slots, with a RuntimeWarning, unless the dataset's options say how large these are.

    Attributes that it lacks are those of the Loader (step, epoch, rows, socket, profile); asking for one starts it.
    """

    def __init__(self, dataset, socket=None, name=None, group="default", timeout=None, first_pass=False, number=None, reconnect=60.0, world=None, fewest_hosts=0, helpers=None):
        self._dataset = dataset
        self._socket = socket
        self._name = name
        self._group = group
        self._timeout = timeout
        self._reconnect = reconnect
        self._first_pass = first_pass
        self._number = number  # of the pass; the next one by default
        self._world = world  # whose host's rows it gives; None: all
        self._fewest_hosts = fewest_hosts  # for the rows of one of how few its ring has room
        self._helpers = helpers  # of the private daemon that runs it; None: it has none
        self._state = None
        self._spec = None
        self._loader = None
        self._connection = None
        self._process = os.getpid()
        self._closed = False
        self._starting = threading.RLock()
        self._undivided = Undivided("the iterator is being started, or goes elsewhere,")
        self._private_socket = None  # of the private daemon that runs it
        self._left = None  # the loader that was closed last, which still tells what it has given
        self._stats = {}  # and its own
        self._slot_bytes = None  # of a ring that had to grow
        self._skipped = None  # what the daemon has said of it last
        self._returned_at = None  # the step taken last when a new daemon took the place of a dead one
        # Of elements of which some parts are other kinds of dicts and tuples than the daemon has.
        self._rebuilt = getattr(dataset._known_structure, "rebuilt", None)

    def __iter__(self) -> DatasetIterator:
        return self

    def __next__(self) -> Any:
        loader = self._loader
        if loader is None or self._process != os.getpid():
            loader = self._start()
        while True:
            try:
                element = next(loader)
                return element if self._rebuilt is None else self._rebuilt(element)
            except _errors.UnavailableError as error:
                loader = self._start_again(loader, error)
            except _errors.ResourceExhaustedError as error:
                loader = self._grow(loader, error)
            except StopIteration:
                self._note_skipped(loader)
                raise
            except _errors.Error as error:
                raise self._explained(error) from None

    def get_next(self) -> Any:
        """The next element, as next() gives it: StopIteration is raised behind the last one, where TensorFlow has OutOfRangeError."""
        return next(self)

    @property
    def element_spec(self) -> Any:
        """The dataset's."""
        return self._dataset.element_spec

    def __enter__(self) -> DatasetIterator:
        return self

    def __exit__(self, type, value, traceback):
        self.close()

    def __del__(self):
        # Not when __init__ has failed.
        connection = getattr(self, "_connection", None)
        if connection is None:
            return
        if sys is not None and not sys.is_finalizing():
            self._leave()
        elif os is not None and self._process == os.getpid():
            # The modules that leaving takes are being taken apart, and the process' end does the rest of it. A forked child may hold the connection.
            try:
                connection.shutdown(2)
            except OSError:
                pass  # the daemon has gone

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(_core.Loader, name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self._loader or self._start(), name)

    def _valid_of_last(self):
        """The `valid` of the element taken last, behind a close() of another thread too."""
        return (self._loader or self._left).valid

    def __dir__(self):
        return sorted({*super().__dir__(), *(name for name in dir(_core.Loader) if not name.startswith("_"))})

    def __repr__(self):
        state = "closed" if self._closed else "not started" if self._loader is None else f"at step {self._loader.step}"
        return f"<{type(self).__name__} of {self._dataset!r}, {state}>"

    def _repr_html_(self):
        """For notebooks: the dataset's tables, and where the pass is."""
        return self._dataset._repr_html_() + _show.of_loader(self, has_begun=self._loader is not None or self._closed)

    def _make_spec(self, name):
        options = self._dataset._options
        if self._slot_bytes is not None:
            larger = Options()
            larger.ring.slot_bytes = self._slot_bytes
            options = options.merge(larger)
        if self._state is not None:
            seeds = iter(self._state["seeds"])
            return Spec(self._dataset._stages, name, options, lambda seed: next(seeds, seed.given))
        if self._number is not None:
            return Spec(self._dataset._stages, name, options, lambda seed: seed.of_pass(self._number))
        if self._first_pass:
            return Spec(self._dataset._stages, name, options, lambda seed: seed.base())
        drawn = {}  # one seed may stand in several places of a pass

        def draw(seed):
            if seed not in drawn:
                drawn[seed] = seed.next()
            return drawn[seed]

        return Spec(self._dataset._stages, name, options, draw)

    def _declare(self, name):
        spec = self._make_spec(name)
        # Whoever starts it again, where that fails, draws no other seeds.
        self._state = self._state or {"cursor": b"", "step": -1, "seeds": list(spec.seeds)}
        self._spec = spec

    def _start(self):
        if self._process != os.getpid():
            raise _errors.FailedPreconditionError(
                f"this iterator belongs to process {self._process}, which forked this one; make one here: iter(dataset)"
            )
        with self._starting, self._undivided:
            return self._loader or self._create()

    def _start_again(self, loader, error):
        """Goes on where the daemon of `loader` has died: in a new private one, or in the given one as soon as it is there again. Else
        raises the error."""
        with self._starting, self._undivided:
            if self._loader is not None and self._loader is not loader:
                return self._loader  # another thread was first
            _wait_for_others(loader)
            state = None if self._loader is None else self._position()
            if state is None or self._returned_at == state["step"] or not self._may_return():
                raise self._explained(error) from None
            self._returned_at = state["step"]
            self._leave()
            self._state = state
            if self._socket is not None:
                return self._wait_for_daemon()
            warnings.warn(
                f"the private penstockd was killed, or it crashed; a new one goes on behind step {state['step']}",
                RuntimeWarning,
                stacklevel=3,
            )
            return self._create()

    def _grow(self, loader, error):
        """Goes on with larger slots where a batch is larger than one, of what only the data tells the size of. Else raises the error."""
        needed = _SLOT_TOO_SMALL.search(str(error))
        with self._starting, self._undivided:
            if self._loader is not None and self._loader is not loader:
                return self._loader
            if needed is None or self._loader is None or self._name is not None or self._dataset._options.slot_bytes:
                raise self._explained(error) from None
            _wait_for_others(loader)
            state = self._position()
            self._leave()
            self._state = state
            # A quarter more, so that it is not done again for each that is a little larger.
            self._slot_bytes = -(-int(needed[1]) * 5 // 4 // _SLOT_UNIT) * _SLOT_UNIT
            warnings.warn(
                f"a batch of {needed[1]} bytes does not fit a slot of the ring ({needed[2]}): the pipeline goes on in a ring with slots of "
                f"{self._slot_bytes}; options.ring.slot_bytes = {self._slot_bytes} of penstock.Options makes it so from the beginning",
                RuntimeWarning,
                stacklevel=3,
            )
            return self._create()

    @property
    def _next_step(self):
        """The number of the step that comes next."""
        loader = self._loader
        given = loader.step if loader is not None and loader.cursor else (self._state or {}).get("step", -1)
        return given + 1

    def _divide_anew(self, world, step):
        """Has the pipeline that runs now make the rows of another host from a step on, as the daemon writes down; what identifies that pipeline, or None where it
        cannot: it does not run, is at that step already, or has no room for as many rows."""
        with self._starting, self._undivided:
            if self._loader is None:
                return None
            try:
                _control.redivide(self._loader.socket, self._loader.pipeline, step, world)
            except (_errors.FailedPreconditionError, _errors.UnavailableError, _errors.UnimplementedError, _errors.NotFoundError):
                return None
            return self._loader

    def _change_world(self, world):
        """Goes on behind the element taken last as another host, or one of another number of hosts."""
        with self._starting, self._undivided:
            if self._spec is None:
                self._declare(None)
            state = self._position()
            self._leave()
            self._state = state
            self._world = world

    def _explained(self, error, hint=""):
        """The error with the line of the stage; its own text while another thread goes elsewhere."""
        spec = self._spec
        return type(error)((str(error) if spec is None else spec.explain(str(error))) + hint)

    def _may_return(self):
        if self._socket is None:
            return _daemon.has_died(self._private_socket)
        # A pipeline that has a name comes back by itself, and its loader has looked for it.
        return self._name is None and self._reconnect > 0

    def _wait_for_daemon(self):
        seconds = self._reconnect if self._timeout is None else min(self._reconnect, self._timeout)
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._create()
            except _errors.UnavailableError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_RETRY_SECONDS)

    def _create(self):
        if self._closed:
            raise _errors.FailedPreconditionError("the iterator is closed")
        # Processes of several containers have the same numbers and may share a daemon.
        name = self._name or f"dataset_{next(_numbers)}_{os.getpid()}_{os.urandom(4).hex()}"
        self._declare(name)

        def run(socket):
            self._private_socket = None if self._socket is not None else socket
            if self._socket is not None and self._spec.functions:
                _offering.begin(socket, self._spec.functions, keep=self._name is not None)
            _, self._connection = _control.create(
                socket, name, self._spec.text, self._state["cursor"], self._name is None, self._timeout, self._world, self._fewest_hosts
            )  # fmt: skip
            # Without a name its pipeline ends with the connection, and so with the daemon: there is nothing to wait for.
            reconnect = 0.0 if self._name is None else self._reconnect
            self._loader = _core.Loader(name, socket, self._group, self._timeout, reconnect=reconnect)

        try:
            if self._socket is None:
                _daemon.with_private_daemon(run, self._helpers)
            else:
                run(self._socket)
        except _errors.Error as error:
            self._hang_up()
            hint = ""
            if isinstance(error, _errors.AlreadyExistsError):
                hint = f"; to read what runs already: penstock.attach({name!r})"
            raise self._explained(error, hint) from None
        except BaseException:
            self._hang_up()
            raise
        self._dataset._iterator_begun(self)
        if self._closed:
            self._leave()
            raise _errors.FailedPreconditionError("the iterator is closed")
        return self._loader

    def state_dict(self) -> Dict[str, Any]:
        """The position behind the element taken last, for a checkpoint.

        Returns:
          A dict: "cursor" (bytes, at most 1,024), "step" (int; -1 before the first), "seeds" (a
          list of int), the seeds of this pass, and of iter(dataset) "passes" (a list of int), how many
          passes each of them has begun by now. For JSON, which has no bytes:
          json.dumps(state, default=bytes.hex), and load_state_dict(json.loads(text)).
        """
        if self._spec is None:
            try:
                if not self._closed:
                    self._start()
            except _errors.FailedPreconditionError:
                # Another thread may have closed it meanwhile.
                if not self._closed:
                    raise
            if self._spec is None:
                self._declare(None)
        return self._position()

    def _position(self):
        loader = self._loader
        position = loader.state_dict() if loader is not None and loader.cursor else self._state
        state = {"cursor": position["cursor"], "step": position["step"], "seeds": list(self._spec.seeds)}
        if self._spec.codes:
            state["code"] = list(self._spec.codes)
        return {**state, "passes": [seed.num_passes for seed in self._spec.drawn_by]} if self._counts_passes else state

    @property
    def _counts_passes(self):
        """Whether the dataset's seeds do, and no number says which pass this is."""
        return not self._first_pass and self._number is None

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Goes to a position: the next element is the one behind it. In iter(dataset) the dataset counts its passes from there too, so that
        the pass begun next is the one that would have followed; a state without "passes" leaves that as it is.

        Args:
          state: from state_dict(), of an iterator over an equal dataset, in this process or another. The cursor is bytes, or their hex
            text.

        Raises:
          FailedPreconditionError, InvalidArgumentError: on the next element, when the dataset or its
            files are others; at once in a pipeline that has a name and runs.
        """
        missing = {"cursor", "step", "seeds"} - set(state)
        if missing:
            raise _errors.InvalidArgumentError(f"the state of an iterator has {', '.join(sorted(missing))} too")
        given = {"cursor": _core.cursor_bytes(state["cursor"]), "step": state["step"], "seeds": list(state["seeds"])}
        with self._starting, self._undivided:
            loader = self._loader
            if self._name is not None and loader is not None and self._process == os.getpid():
                _seek(loader, given)
                return
            _changed_code.of_state(self._dataset, state.get("code"), stacklevel=2)
            self._leave()
            self._state = given
            self._spec = None
            if self._counts_passes:
                counting = Spec(self._dataset._stages).drawn_by
                for seed, count in zip(counting, state.get("passes", ())):
                    seed.num_passes = int(count)

    def stats(self) -> Dict[str, Any]:
        """What the loader has seen, behind close() too, and what holds the pass up ("bottleneck", "sentence"); see penstock.Loader.stats. Of a dataset that may leave elements out (ignore_errors,
        on_damage) "left_out" is how many were. Empty if it was closed before the first element, and in a
        signal's handler that has interrupted its start."""
        loader = self._loader
        try:
            if loader is None and not self._closed and not self._undivided.is_mine:
                loader = self._start()
            if loader is not None:
                return self._with_skipped(loader.stats())
        except _errors.FailedPreconditionError:
            # Another thread may have closed it meanwhile, or gone elsewhere.
            if not self._closed and (loader is None or self._loader is loader):
                raise
        return self._with_skipped(dict(self._stats))

    def _with_skipped(self, stats):
        if stats and _left_out.may_leave_out(self._dataset._stages):
            stats["left_out"] = self.skipped().count
        return stats

    def skipped(self) -> _control.Skipped:
        """What the pass has left out so far, of ignore_errors and on_damage: how many, and the first 1,000 with file, offset and reason. Behind
        the end and close() what was left out in all. Of what is ready and was not taken, too."""
        loader = self._loader
        if loader is not None and self._process == os.getpid():
            self._ask_skipped(loader)
        return self._skipped or _control.Skipped(0, [])

    def _ask_skipped(self, loader):
        """Asks the daemon, which may have gone, or be of another release."""
        with contextlib.suppress(_errors.Error):
            self._skipped = loader.skipped()

    def _note_skipped(self, loader):
        """Asks what was left out, and warns of it, where the dataset has stages that leave something out."""
        if _left_out.may_leave_out(self._dataset._stages):
            self._ask_skipped(loader)
            self._warn_of_skipped()

    def _warn_of_skipped(self):
        """Once for a dataset."""
        if self._skipped is not None:
            _left_out.tell(self._dataset, self._skipped)

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._closed

    def close(self) -> None:
        """Deletes the pipeline. Elements that are still in use stay valid, and state_dict() tells where it was."""
        self._closed = True
        if self._loader is not None:
            self._state = self._position()
        self._leave()

    def _leave(self):
        loader = self._loader
        if loader is not None and self._process == os.getpid():
            # Before it is gone from here: other threads ask meanwhile. One of them may have closed it.
            self._left = loader
            with contextlib.suppress(_errors.FailedPreconditionError):
                self._stats = _watching.with_bottleneck(loader._counters(), loader.socket, loader.pipeline, ask=False)
            self._dataset._stats = dict(self._stats)
            if not sys.is_finalizing() and _left_out.may_leave_out(self._dataset._stages):
                self._ask_skipped(loader)
        self._loader = None
        if loader is not None and self._process == os.getpid():
            loader.close()
        self._hang_up()
        if loader is not None and self._process == os.getpid() and not sys.is_finalizing():
            self._warn_of_skipped()

    def _hang_up(self):
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._process == os.getpid():
            _control.hang_up(connection)
        else:
            connection.close()


def _wait_for_others(loader):
    """What other threads have taken is behind the position, once they have noted it; and they are not to find the loader closed."""
    for _ in range(_LEAVING_LOOKS):
        if not loader._waiting:
            return
        time.sleep(0.001)


def _seek(loader, state):
    """Goes to a position in a pipeline that has a name: it stays, whoever leaves it."""
    if state["cursor"]:
        loader.load_state_dict(state)
    elif loader.cursor:
        raise _errors.FailedPreconditionError(
            "the state is that of an iterator before its first element, and has no cursor; delete the pipeline to begin there"
        )
