"""A penstockd that the processes of one job share: started by the first that asks for it, gone with the last.

Each process holds the writing end of a FIFO whose reading end the daemon has (`--exit-with-parent`), so that the kernel counts them, however
they end. What happens between looking for a daemon and starting one, or a pipeline, happens under a lock of a file beside the FIFO.
"""

import atexit
import contextlib
import os
import re
import threading
import time
import warnings

from penstock import _control, _core, _errors
from penstock._running import _daemon, _helpers
from penstock._running._undivided import Undivided
from penstock._spec._stage import Spec, first_seed, of_all_parts

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,47}")
_MAX_SOCKET_BYTES = 107
_PROBE_SECONDS = 5.0
# For a daemon that is ending or beginning, between two looks and in all.
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 60.0
_TRIES = 3

_mutex = threading.RLock()
_shares = {}  # by their names, those that this process is in


class _Share:
    """This process' part in one: the FIFO's end, and the daemon's process if it has started it."""

    def __init__(self, name):
        self.name = name
        self.folder = _folder(name)
        self.socket = os.path.join(self.folder, "penstock.sock")
        self._fifo = os.path.join(self.folder, "processes")
        self._mutex = threading.RLock()
        self._undivided = Undivided(f"the shared penstockd {name!r} is being asked")
        self._lock = None  # its file, while it is held or waited for
        self._reading = None  # the FIFO's other end, while a daemon is started
        self._end = None
        self._process = None
        self._notes = _Notes(self.folder)
        self.helpers = None  # of the daemon, if this process starts it
        self._listing = None

    @contextlib.contextmanager
    def locked(self):
        import fcntl

        path = os.path.join(self.folder, "lock")
        with self._mutex, self._undivided:
            while True:
                _folder(self.name)
                with open(path, "ab") as file:
                    self._lock = file
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX)
                        if _is_at(file, path):
                            yield
                            return
                        # It has been removed while it was waited for: others have another one.
                    finally:
                        self._lock = None
                        # A child that another thread has forked meanwhile has the file too.
                        fcntl.flock(file, fcntl.LOCK_UN)

    def join(self):
        """Takes part in the daemon that is there, or in a new one. Under the lock."""
        if self._end is not None and not os.path.exists(self._fifo):
            raise self._has_lost_its_folder()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._end is None or not self._answers():
            self._open_end()
            if self._end is None:
                self._start()
                return
            if self._answers():
                return
            # It is ending, since its last process has; or was killed, and begins again.
            if time.monotonic() > deadline:
                self.leave()
                raise _errors.UnavailableError(f"the shared penstockd {self.name!r} gives no answer at {self.socket}")
            time.sleep(_LOOK_SECONDS)

    def help_by(self, helpers):
        """Tells the daemon where its helpers are, as long as this process takes part. Under the lock, behind join().

        Raises:
          FailedPreconditionError: another process has started it with other helpers, or none.
        """
        _helpers.check_daemon(self.folder, helpers)
        if self._listing is None:
            self._listing = _helpers.Listing(self.folder, helpers)

    def leave(self):
        """Gives up this process' part. The daemon ends where it was the last."""
        end, self._end = self._end, None
        if end is not None:
            os.close(end)
        if self._process is not None:
            self._process.poll()
        listing, self._listing = self._listing, None
        if listing is not None:
            listing.stop()

    def forget(self):
        """The same for good, as this process ends, or in a forked child, where the part is the parent's."""
        self.leave()
        if self._lock is not None:
            self._lock.close()
        if self._reading is not None:
            os.close(self._reading)
        if self._process is not None:
            # Nobody here waits for its end: it is another process' child, or outlives this one.
            self._process.returncode = 0

    def _open_end(self):
        """A writing end of the FIFO that is there now; none where nobody reads. The one before it is held until then: it may be the last."""
        before = self._end
        self._end = None
        with contextlib.suppress(FileNotFoundError):
            self._end = _open_fifo(self._fifo, os.O_WRONLY)
        if before is not None:
            os.close(before)

    def _answers(self):
        # A request, since who is ending may still accept connections. This process' end was opened before, so that the daemon stays once it
        # has answered.
        spec = "stage { range { stop: 1 } } stage { batch { batch_size: 1 } }"
        try:
            _core.request_spec(self.socket, _core.VALIDATE, "any", spec, answer_seconds=_PROBE_SECONDS)
        except (_errors.UnavailableError, _errors.DeadlineExceededError):
            return False
        return True

    def _start(self):
        import shutil

        state = os.path.join(self.folder, "state")
        guard = self._guard()
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self._fifo, 0o600)
        self._reading = reading = _daemon.beyond_standard(_open_fifo(self._fifo, os.O_RDONLY))
        try:
            if not _has_writers(reading):
                # What an earlier job's daemon left: its pipelines are not to come back.
                shutil.rmtree(state, ignore_errors=True)
                self._notes.remove()
            self._end = _open_fifo(self._fifo, os.O_WRONLY)
            with _on_all_processors():
                # One that is killed comes back with its pipelines, and the loaders find it.
                options = ["--supervise", "--state-dir", state]
                _helpers.forget(self.folder)
                if self.helpers is not None:
                    options += self.helpers.write(self.folder)
                self._process = _daemon.start(self.socket, reading, options, [] if guard is None else [guard.fileno()])
        except BaseException:
            self.leave()
            raise
        finally:
            self._reading = None
            os.close(reading)
            if guard is not None:
                guard.close()

    def _guard(self):
        """A socket with a name of the kernel's, which the daemon holds while it lives: where the folder of one has been removed, a second one is
        not to serve the same job. None where another user has the name.

        Raises:
          FailedPreconditionError: there is such a daemon, and it does not end.
        """
        import errno
        import socket

        # A name that begins with a zero byte stands in no folder, and is free again when its holder ends, be it by kill -9.
        name = "\0" + self.folder
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            guard = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                guard.bind(name)
                guard.listen()
                moved = _daemon.beyond_standard(guard.detach())
                return socket.socket(fileno=moved)
            except OSError as error:
                guard.close()
                if error.errno != errno.EADDRINUSE:
                    return None
            user = _user_at(name)
            if user is not None and user != os.geteuid():
                return None
            if time.monotonic() > deadline:
                raise self._has_lost_its_folder()
            time.sleep(_LOOK_SECONDS)

    def _has_lost_its_folder(self):
        return _errors.FailedPreconditionError(
            f"the folder of the job {self.name!r} was removed while its daemon runs: {self.folder}. Who is attached goes on; nobody else can "
            "come in before the job's processes have ended. Whatever clears temporary files away is to leave it alone, or TMPDIR to name another place"
        )


def _is_at(file, path):
    """Whether an open file is the one of that path still."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _user_at(name):
    """The user whose socket has that name of the kernel's; None where there is none by now."""
    import socket
    import struct

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
        except BlockingIOError:
            # Its queue is full of those who have asked.
            return os.geteuid()
        except OSError:
            return None
        return struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]


class _Notes:
    """Who of a job has asked for which pipeline: a file of lines in its folder, under the lock."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "ranks")

    def remove(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._path)

    def add(self, rank, world_size, pipeline, kin):
        """Notes what this process asks for, and says so where no other rank that is there has asked for any of the same.

        Args:
          kin: what pipelines that give parts of the same elements, as by shard, have in common.

        Raises:
          InvalidArgumentError: they differ by that.
        """
        import json

        others, mine = {}, {pipeline}
        with contextlib.suppress(FileNotFoundError), open(self._path) as file:
            for line in file:
                note = json.loads(line)
                if note["pid"] == os.getpid():
                    mine.add(note["pipeline"])
                elif note["world_size"] == world_size and note["rank"] != rank and _lives(note["pid"]):
                    others.setdefault(note["rank"], {})[note["pipeline"]] = note["kin"]
        for other, asked in others.items():
            if not mine & set(asked):
                if kin in asked.values():
                    raise _errors.InvalidArgumentError(
                        f"rank {rank} of {world_size} gives a dataset with a shard of its own, as rank {other} does: each would wait for ever for ranks that "
                        "give an equal one. With share= all ranks give the same dataset, and each gets its rows of every batch: leave .shard(…) out"
                    )
                warnings.warn(
                    f"rank {rank} of {world_size} gives another dataset than rank {other}: a loader waits until all ranks have given an equal one. Files or "
                    "arrays that each rank divides by itself are such a difference: with share= each gets its rows of every batch",
                    RuntimeWarning,
                    stacklevel=5,
                )
        with open(self._path, "a") as file:
            file.write(json.dumps({"pid": os.getpid(), "rank": rank, "world_size": world_size, "pipeline": pipeline, "kin": kin}) + "\n")


def _lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _has_writers(reading):
    """Whether a FIFO that nobody writes into has writing ends."""
    try:
        return os.read(reading, 1) != b""
    except BlockingIOError:
        return True


@contextlib.contextmanager
def _on_all_processors():
    """What this thread starts may run on all that there are for the job, where this process itself is bound to some."""
    mine = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        # The kernel leaves out those that it does not give.
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def _open_fifo(path, mode):
    """A descriptor of its reading or writing end, without waiting for the other one: None for one to write to that nobody reads from."""
    import errno

    flags = mode | os.O_NONBLOCK
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def _host():
    """Eight digits that tell this host from others, for all of its containers."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read(8)
    except OSError:
        import hashlib

        return hashlib.sha256(os.uname().nodename.encode()).hexdigest()[:8]


def _folder(name):
    """The share's folder, of this user alone, in the place for temporary files."""
    import stat
    import tempfile

    # Several hosts may have one place for temporary files.
    own = f"penstock-{os.geteuid()}-{_host()}"
    above = os.path.join(tempfile.gettempdir(), own)
    if len(os.fsencode(os.path.join(above, name, "penstock.sock"))) > _MAX_SOCKET_BYTES:
        above = os.path.join("/tmp", own)
    for folder in (above, os.path.join(above, name)):
        with contextlib.suppress(FileExistsError):
            try:
                os.mkdir(folder, 0o700)
            except FileNotFoundError:
                # Not made elsewhere: the processes of the job meet there.
                raise _errors.NotFoundError(
                    f"the folder for temporary files has gone: {os.path.dirname(above)}; make it again, or begin the job with another TMPDIR"
                ) from None
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise _errors.PermissionDeniedError(f"{folder} is not a folder of this user that is closed to others")
    return os.path.join(above, name)


def _share(name):
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _errors.InvalidArgumentError(
            f"the name of a shared daemon is of 1 to 48 letters, digits, '_', '-' and '.', and begins with none of the last two: {name!r}"
        )
    with _mutex:
        if name not in _shares:
            share = _Share(name)
            # Or that of a signal's handler, which has come meanwhile.
            _shares.setdefault(name, share)
        return _shares[name]


def shared_daemon(name: str) -> str:
    """The socket of a private penstockd that the processes of one job on this host share.

    The first process that asks starts it; it ends with the last, however that ends. It runs under `penstockd --supervise`: where the daemon
    is killed, its pipelines come back, and loaders go on.

    Args:
      name: the job's, which no other job of this user has here at the time: 1 to 48 letters, digits, "_", "-" and ".". Processes of one user
        and one name meet, if they have one place for temporary files (TMPDIR).

    Returns:
      The path, for `socket=` of penstock.attach, Dataset.loader and others.

    Raises:
      InvalidArgumentError: the name.
      PermissionDeniedError: the place for its socket is another user's.
      NotFoundError, UnavailableError: there is no penstockd, or it does not start.
    """
    share = _share(name)
    with share.locked():
        share.join()
    return share.socket


def serve(dataset, name, rank=None, world_size=None, world=None, fewest_hosts=0, helpers=None):
    """Runs a dataset, pass behind pass, in the shared daemon of that name, unless it runs there.

    Args:
      rank, world_size: of this process, where each is to have its rows.
      world: of which host it makes the rows of each batch; None: all rows.
      fewest_hosts: its ring has room for the rows of a host of as few.
      helpers: daemons of other hosts that make steps for the shared one; None: it has none, or another process has named them.

    Returns:
      The pipeline's name and the socket.
    """
    share = _share(name)
    spec, pipeline, kin = _spec_of(dataset, name, world)
    with share.locked():
        share.helpers = helpers
        for tries_left in reversed(range(_TRIES)):
            share.join()
            if helpers is not None:
                share.help_by(helpers)
            try:
                _create(share.socket, pipeline, spec, world, fewest_hosts)
                break
            except _errors.UnavailableError:
                # Killed since it answered.
                if tries_left == 0:
                    raise
        if rank is not None and world_size is not None:
            share._notes.add(rank, world_size, pipeline, kin)
    return pipeline, share.socket


def _create(socket, pipeline, spec, world, fewest_hosts):
    try:
        _control.create(socket, pipeline, spec.text, world=world, fewest_hosts=fewest_hosts)
    except _errors.AlreadyExistsError:
        pass  # another process was first: its name says that it is the same
    except _errors.Error as error:
        raise type(error)(spec.explain(str(error))) from None


def _spec_of(dataset, name, world=None):
    """The spec of endless passes, the same in all processes of the share, the pipeline's name, which tells it from others, and a name that
    it has in common with those that give another part of the same elements."""
    import hashlib

    passes = dataset.repeat()

    def write(pipeline, key, stages=passes._stages):
        drawn = {}

        def draw(seed):
            if seed.given is not None:
                return seed.given
            if key is None:
                return 0
            # In place of one that each process would draw for itself: by what it belongs to, and its place there.
            place = drawn.setdefault(first_seed(seed), len(drawn))
            return int.from_bytes(hashlib.sha256(f"{key}\0{place}".encode()).digest()[:7], "little")

        return Spec(stages, pipeline, passes._options, draw)

    unnamed = write(None, None)
    text = unnamed.text
    if unnamed.codes:
        raise _errors.FailedPreconditionError(
            "a Python function is part of the dataset, which is this process' alone, and not one that each of a job brings along: one process runs the dataset by "
            f"dataset.loader(socket=penstock.shared_daemon({name!r}), name=NAME), and the others take penstock.attach(NAME, penstock.shared_daemon({name!r})). "
            "Should that process and the daemon be killed, the pipeline is to be made again"
        )
    if f"/proc/{os.getpid()}/fd/" in text:
        raise _errors.FailedPreconditionError(
            "an array of this process is part of the dataset, which other processes' would not be the same: save it by np.save, and take "
            'np.load(path, mmap_mode="r")'
        )
    pipeline = "shared_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    kin = hashlib.sha256(write(None, None, of_all_parts(passes._stages)).text.encode()).hexdigest()[:16]
    # Whose rows it makes is no matter of its seeds: those of all hosts are one.
    of_host = pipeline if world is None else f"{pipeline}_{world.host}_of_{world.hosts}"
    return write(of_host, f"{name}\0{pipeline}"), of_host, kin


def _after_fork():
    global _mutex
    _mutex = threading.RLock()
    for share in _shares.values():
        share.forget()
    _shares.clear()


def _leave_all():
    for share in _shares.values():
        share.forget()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_leave_all)
