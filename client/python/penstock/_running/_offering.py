"""Workers for the functions of this process, offered to a daemon that is another user's (server/python/offers.h).

    daemon ── path, code, a worker's descriptors ──► a thread of this process ── posix_spawn ──► worker
           ── "kill", "stack" ─────────────────────►                           ── signals ─────►
           ◄─ "ended SIGSEGV", "refused why" ───────                           ◄─ its end ──────

Such a daemon has no right to start a process of this user or to end one. Rows do not come by here: worker and daemon have memory and a socket in
common. What is unpickled is this process' own function, which the daemon has not got.
"""

import os
import threading
import time
import weakref

from penstock import _core, _errors

_MAX_REQUEST_BYTES = 64 << 10
_MAX_WORKERS = 1024
# What comes with a request: inputs, outputs, the worker's socket, where its stack goes, and the keeper's socket.
_FILES = 5
_FIRST_OF_WORKER = 3
# Where descriptors are kept until the worker has its own: no number that is put in another's place.
_BEYOND = 32
# Between two looks for a daemon that has gone away.
_RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_ANSWER_SECONDS = 60.0
_LOOK_SECONDS = 0.1  # for ends, where the kernel tells of none

# Run by `-c`: the folder, and what nobody has closed, are the trainer's affair; the rest as the daemon does it (server/python/spawned_worker.cc).
_BOOTSTRAP = (
    "import os,sys;"
    "folder=sys.argv.pop();"
    "os.path.isdir(folder) and os.chdir(folder);"
    "[os.close(fd) for fd in map(int,os.listdir('/proc/self/fd')) if fd>7 and os.path.exists(f'/proc/self/fd/{fd}')];"
    "exec(compile(open(sys.argv[1],'rb').read(),sys.argv[1],'exec'),"
    "{'__name__':'penstock._worker._start','__file__':sys.argv[1]})"
)

_lock = threading.Lock()
_keepers = {}  # by the daemon's socket; under _lock
_functions_lock = threading.Lock()
_functions = weakref.WeakSet()  # all of this process; under _functions_lock, as those of keepers


def known(function):
    """Notes a function that this process holds.

    Args:
      function: has `spec_value()`, its path in a spec; `file`, its descriptor; `code`, its hash; `is_whole`, whether the hash is of all of it; and `header`, how a
        worker of it is started.
    """
    with _functions_lock:
        _functions.add(function)


def begin(socket, functions, keep):
    """Offers workers for these functions to the daemon at `socket`, if that is another user's.

    Args:
      keep: the functions stay as long as this process, since their pipeline may.

    Raises:
      ResourceExhaustedError, PermissionDeniedError: the daemon takes no offer, so that a pipeline of theirs would wait in vain.
    """
    with _lock:
        keeper = _keepers.get(socket)
        if keeper is None:
            connection = _offer(socket)
            if connection is None:
                return
            keeper = _keepers[socket] = _Keeper(socket, connection)
            keeper.start()
        keeper.add(functions, keep)


def offer_workers(socket=None):
    """Offers to start worker processes for the Python functions of this process, to a daemon of another user.

    A dataset that runs in such a daemon (`dataset.loader(socket, name)`) does so by itself. This is for a pipeline that was made otherwise: of a spec that this process has
    saved, or by a process that has ended, of a function that is pickled to the same bytes. Functions made later are offered, too.

    Args:
      socket: the daemon's; by default the one of penstock.default_socket().

    Returns:
      Whether they are offered: not to a daemon of this user, which starts its workers itself.
    """
    socket = os.fspath(socket or _core.default_socket())
    begin(socket, (), keep=False)
    keeper = _keepers.get(socket)
    if keeper is None:
        return False
    keeper.has_all = True
    return True


def _offer(path):
    """This end of a socket whose other one the daemon has; None where it starts the workers itself, or does not know offers, or is not there."""
    import socket as sockets

    ours, theirs = sockets.socketpair(sockets.AF_UNIX, sockets.SOCK_SEQPACKET)
    with theirs:
        try:
            _core.request_spec(path, _core.OFFER, answer_seconds=_ANSWER_SECONDS, offered=theirs.fileno())
            return ours
        except (_errors.FailedPreconditionError, _errors.UnimplementedError, _errors.UnavailableError):
            # Whoever makes the pipeline is told why.
            ours.close()
            return None
        except BaseException:
            ours.close()
            raise


class _Keeper(threading.Thread):
    """Starts and ends workers, as a daemon asks, for as long as this process lives: it is the parent whose end the kernel tells them."""

    def __init__(self, path, connection):
        super().__init__(name="penstock-offer", daemon=True)
        self._path = path
        self._connection = connection
        self._workers = {}  # by the keeper's socket
        self._offered = weakref.WeakSet()
        self._kept = set()
        self.has_all = False

    def add(self, functions, keep):
        with _functions_lock:
            self._offered.update(functions)
            if keep:
                self._kept.update(functions)

    def forget(self):
        """In a forked child: these are the parent's."""
        self._connection.close()
        for control in self._workers:
            control.close()

    def run(self):
        while True:
            self._serve()
            self._end_all()
            self._connect_again()

    def _connect_again(self):
        delays = iter(_RETRY_SECONDS)
        delay = 0.0
        while True:
            delay = next(delays, delay)
            time.sleep(delay)
            try:
                connection = _offer(self._path)
            except (_errors.Error, OSError):
                continue
            if connection is not None:
                self._connection = connection
                return

    def _serve(self):
        """Until the daemon has gone."""
        import selectors

        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ, None)
            while True:
                has_pidfds = all(worker.pidfd is not None for worker in self._workers.values())
                ready = selector.select(None if has_pidfds else _LOOK_SECONDS)
                for key, _ in ready:
                    if key.data is None:
                        if not self._take(selector):
                            return
                    elif key.fileobj in self._workers:
                        self._hear(key.fileobj, selector)
                for control, worker in list(self._workers.items()):
                    if worker.has_ended():
                        self._bury(control, worker, selector)

    def _take(self, selector):
        """A request. False where the daemon has gone."""
        import json
        import selectors
        import socket as sockets

        try:
            text, files, _, _ = sockets.recv_fds(self._connection, _MAX_REQUEST_BYTES, _FILES, sockets.MSG_CMSG_CLOEXEC)
        except OSError:
            return False
        if not text:
            _close(files)
            return False
        if len(files) != _FILES:
            _close(files)
            return True
        try:
            control = sockets.socket(fileno=files[-1])
        except OSError:
            # There is nobody to refuse it to.
            _close(files)
            return True
        files.pop()
        # Whoever reads no answer holds up no other request.
        control.setblocking(False)
        try:
            asked = json.loads(text)
            worker = _Worker(self._function(asked), asked, files)
        except Exception as error:
            _answer(control, f"refused {error}")
            control.close()
            return True
        finally:
            _close(files)
        self._workers[control] = worker
        selector.register(control, selectors.EVENT_READ, control)
        if worker.pidfd is not None:
            selector.register(worker.pidfd, selectors.EVENT_READ, control)
        return True

    def _function(self, asked):
        if len(self._workers) >= _MAX_WORKERS:
            raise ValueError(f"process {os.getpid()} has {_MAX_WORKERS} workers, which is the most")
        with _functions_lock:
            mine = list(_functions if self.has_all else self._offered)
        for function in mine:
            if function.spec_value() == asked["path"] and function.code == asked["code"]:
                return function
        # The same bytes, though another process made them.
        for function in mine:
            if function.is_whole and function.code == asked["code"]:
                return function
        raise ValueError(f"process {os.getpid()} has no function {asked['path']} of the code {asked['code']}")

    def _hear(self, control, selector):
        worker = self._workers[control]
        try:
            told = control.recv(64)
        except BlockingIOError:
            return
        except OSError:
            told = b""
        if told == b"stack":
            worker.ask_for_stack()
        elif told == b"kill" or not told:
            # A daemon that lets go of a worker wants nothing more of it.
            worker.kill()
            if not told:
                # Its end may take a while, and the socket is readable until then.
                selector.unregister(control)

    def _bury(self, control, worker, selector):
        import contextlib

        with contextlib.suppress(KeyError):
            selector.unregister(control)
        if worker.pidfd is not None:
            selector.unregister(worker.pidfd)
            os.close(worker.pidfd)
        del self._workers[control]
        _answer(control, f"ended {worker.ending}")
        control.close()

    def _end_all(self):
        self._connection.close()
        for control, worker in self._workers.items():
            worker.kill()
            worker.wait()
            if worker.pidfd is not None:
                os.close(worker.pidfd)
            control.close()
        self._workers.clear()


class _Worker:
    """A process, and how it ended."""

    def __init__(self, function, asked, files):
        import signal

        _check(files)
        header = function.header
        moved = []
        try:
            moved += [_moved(file) for file in (function.file, *files)]
            # As the daemon does for its own user's: what a function prints is seen where errors are.
            actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
            actions += [(os.POSIX_SPAWN_DUP2, file, _FIRST_OF_WORKER + i) for i, file in enumerate(moved)]
            program = [header["program"], *header["flags"], "-c", _BOOTSTRAP, header["script"]]
            self._process = os.posix_spawn(
                header["program"],
                [*program, str(int(asked["configuration_bytes"])), str(os.getpid()), header["folder"]],
                dict(variable.split("=", 1) for variable in header["environment"]),
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )
        finally:
            _close(moved)
        self.ending = None
        self.pidfd = None
        if hasattr(os, "pidfd_open"):
            try:
                self.pidfd = os.pidfd_open(self._process)
            except OSError:
                pass  # a kernel without

    def _signal(self, number):
        # Not a process that has got its number since.
        if self.ending is None:
            try:
                os.kill(self._process, number)
            except ProcessLookupError:
                pass

    def kill(self):
        import signal

        self._signal(signal.SIGKILL)

    def ask_for_stack(self):
        import signal

        self._signal(signal.SIGUSR2)

    def has_ended(self):
        return self.wait(os.WNOHANG)

    def wait(self, options=0):
        import signal

        if self.ending is not None:
            return True
        try:
            process, status = os.waitpid(self._process, options)
        except ChildProcessError:
            # Somebody else of this process has waited for it.
            self.ending = "an end that nobody saw"
            return True
        if process == 0:
            return False
        code = os.waitstatus_to_exitcode(status)
        self.ending = f"exit status {code}" if code >= 0 else _name_of(signal, -code)
        return True


def _name_of(signal, number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _check(files):
    """Memory that keeps its size, as the worker and the daemon expect of each other."""
    import fcntl
    import socket as sockets
    import stat

    sealed = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW  # novermin
    inputs, outputs, socket, stack = files
    for file in (inputs, outputs):
        if fcntl.fcntl(file, fcntl.F_GET_SEALS) & sealed != sealed:  # novermin
            raise ValueError("the daemon's memory may change its size")
    fcntl.fcntl(stack, fcntl.F_GET_SEALS)  # novermin
    if not stat.S_ISSOCK(os.fstat(socket).st_mode):
        raise ValueError("the daemon's socket is none")
    with sockets.socket(fileno=os.dup(socket)) as given:
        if (given.family, given.type) != (sockets.AF_UNIX, sockets.SOCK_SEQPACKET):
            raise ValueError("the daemon's socket is none of packets")


def _moved(file):
    import fcntl

    return fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _BEYOND)


def _close(files):
    for file in files:
        os.close(file)


def _answer(control, text):
    try:
        control.send(text.encode("utf-8", "replace")[:500])
    except OSError:
        pass  # nobody wants to know


def _forget_all():
    global _lock, _functions_lock
    _lock = threading.Lock()
    _functions_lock = threading.Lock()
    for keeper in _keepers.values():
        keeper.forget()
    _keepers.clear()


os.register_at_fork(after_in_child=_forget_all)
