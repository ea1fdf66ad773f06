"""The private penstockd of this process: started when a dataset needs one, gone when the process is.

All datasets of a process share it, but for those that helpers make steps of, which have one for these helpers. It watches the process by a pidfd, so that it ends after kill -9
too; it has a session of its own, so that Ctrl-C in a terminal does not reach it. A forked child
starts one of its own.
"""

import atexit
import os
import sys
import threading

from penstock import _errors
from penstock._running import _helpers
from penstock._running._undivided import Undivided


def find_command():
    """The path of `penstock`, the command: beside penstockd, or on PATH."""
    import shutil

    beside = os.path.join(os.path.dirname(os.path.abspath(find_program())), "penstock")
    program = beside if os.access(beside, os.X_OK) else shutil.which("penstock")
    if program is None:
        raise _errors.NotFoundError(f"no penstock, the command: it is neither beside {find_program()} nor on PATH")
    return program


def find_program():
    """The path of penstockd: $PENSTOCKD, beside the package, where pip puts programs, or on PATH."""
    import shutil
    import sysconfig

    given = os.environ.get("PENSTOCKD")
    if given:
        if not os.access(given, os.X_OK):
            raise _errors.NotFoundError(f"PENSTOCKD is no program that may be run: {given}")
        return given
    package = os.path.dirname(os.path.abspath(_errors.__file__))
    folders = [
        os.path.join(package, "bin"),
        # Where auditwheel puts programs: what pip calls scripts is then a line of Python that starts them.
        os.path.join(os.path.dirname(package), "penstock.scripts"),
        sysconfig.get_path("scripts"),
        os.path.dirname(sys.executable),
        # `pip install --target FOLDER` and --prefix, and the build folder.
        os.path.join(os.path.dirname(package), "bin"),
        os.path.join(package, *[os.pardir] * 4, "bin"),
        os.path.join(package, *[os.pardir] * 2, "bin"),
    ]
    for folder in folders:
        program = os.path.join(folder or "", "penstockd")
        if folder and os.access(program, os.X_OK):
            return os.path.normpath(program)
    program = shutil.which("penstockd")
    if program is None:
        raise _errors.NotFoundError(
            "no penstockd: it is neither beside the package, nor beside Python, nor on PATH; install the wheel "
            "again (pip install .), or set PENSTOCKD to its path"
        )
    return program


def beyond_standard(fd):
    """The descriptor, moved to where no standard stream of a child takes its place."""
    import fcntl

    if fd > 2:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def _working_folder():
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


# That of the daemons that this process starts: relative paths that elements name count from it.
_FOLDER = _working_folder()


def moved_to():
    """The folder that this process works in, where that is not the daemons'; else None."""
    folder = _working_folder()
    return None if folder == _FOLDER else folder


def start(socket, owner, options=(), held=()):
    """Starts a penstockd that ends when `owner`, a pidfd or the reading end of a pipe, says so.

    Args:
      held: further descriptors that it has, and keeps open while it lives.

    Returns:
      Its process, as soon as it accepts connections.

    Raises:
      NotFoundError, UnavailableError: there is none, or it did not start.
    """
    import subprocess

    program = find_program()
    ready, ready_end = (beyond_standard(end) for end in os.pipe())
    process = None
    try:
        with open(ready, "rb") as file:
            try:
                process = subprocess.Popen(
                    [os.path.abspath(program), "--socket", socket, "--log-level", "error", "--exit-with-parent", str(owner), "--ready-fd", str(ready_end), *options],
                    pass_fds=(owner, ready_end, *held),
                    cwd=_FOLDER if _FOLDER is not None and os.path.isdir(_FOLDER) else None,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise _errors.UnavailableError(f"cannot start {program}: {error.strerror}") from None
            finally:
                os.close(ready_end)
            if file.read(1) != b"\n":
                code = process.wait()
                raise _errors.UnavailableError(
                    f"{program} ended while it started, with exit status {code}; what it says stands above"
                )
    except BaseException:
        # Ctrl-C among them.
        if process is not None:
            process.kill()
            process.wait()
        raise
    return process


class PrivateDaemon:
    """One that ends with this process.

    Args:
      settings: what writes its settings into its folder before it starts (`write`, which returns further options), and removes them when it has read
        them (`forget`). None: it has the defaults.
    """

    def __init__(self, settings=None):
        import tempfile

        self._settings = settings
        self._listing = None

        # Not below TMPDIR if that is long, since a socket's path has at most 107 bytes, or has gone.
        try:
            folder = tempfile.mkdtemp(prefix="penstock-")
        except FileNotFoundError:
            folder = tempfile.mkdtemp(prefix="penstock-", dir="/tmp")
        if len(folder) > 80:
            os.rmdir(folder)
            folder = tempfile.mkdtemp(prefix="penstock-", dir="/tmp")
        self.folder = folder
        self.socket = os.path.join(folder, "penstock.sock")
        self.process = None
        try:
            self._start()
        except BaseException:
            self._remove_folder()
            raise

    def _start(self):
        # A pidfd stays this process' own, whatever forks; where the kernel has none, a pipe that every
        # child would have to close.
        try:
            owner = beyond_standard(os.pidfd_open(os.getpid()))
            self._owner = None
        except OSError:
            owner, self._owner = (beyond_standard(end) for end in os.pipe())
        try:
            options = [] if self._settings is None else self._settings.write(self.folder)
            self.process = start(self.socket, owner, options)
        finally:
            os.close(owner)
            if self._settings is not None:
                self._settings.forget(self.folder)
        if isinstance(self._settings, _helpers.Helpers):
            self._listing = _helpers.Listing(self.folder, self._settings)

    def alive(self):
        return self.process.poll() is None

    def reachable(self):
        """Whether its socket is there: whoever clears temporary files away leaves the daemon with those who are connected."""
        return os.path.exists(self.socket)

    def wait(self, seconds):
        """Waits for its end, at most so long."""
        import subprocess

        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def stop(self):
        self.process.terminate()
        self.wait(10)
        if self.alive():
            self.process.kill()
            self.process.wait()
        self._remove_folder()

    def forget(self):
        """In a forked child: the daemon is the parent's."""
        if self._owner is not None:
            os.close(self._owner)
        # It is not this process' child, so that its end is not to be waited for.
        self.process.returncode = 0

    def _remove_folder(self):
        import shutil

        if self._listing is not None:
            self._listing.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _locks():
    # A signal's handler may come while this thread looks for the daemon, and use it, but not while this thread starts it.
    return threading.RLock(), Undivided("the private penstockd is being started")


_lock, _start_of_daemon = _locks()
_daemon = None
_helped = {}  # by the keys of their helpers, those that have some
_cut_off = []  # those whose folder has been removed: iterations in them go on
_dead = set()  # the sockets of those that have ended by themselves


def _of(helpers):
    return _daemon if helpers is None else _helped.get(helpers.key)


def _put(helpers, daemon):
    global _daemon
    if helpers is None:
        _daemon = daemon
    elif daemon is None:
        _helped.pop(helpers.key, None)
    else:
        _helped[helpers.key] = daemon


def _all():
    return [daemon for daemon in (_daemon, *_helped.values(), *_cut_off) if daemon is not None]


def private_socket(helpers=None):
    """The socket of this process' daemon, or of the one with these helpers, which is started if there is none."""
    with _lock:
        daemon = _of(helpers)
        if daemon is not None and not daemon.alive():
            # Killed; pipelines that it ran have failed.
            daemon._remove_folder()
            _dead.add(daemon.socket)
            if _of(helpers) is daemon:
                _put(helpers, None)
        elif daemon is not None and not daemon.reachable():
            _cut_off.append(daemon)
            if _of(helpers) is daemon:
                _put(helpers, None)
        daemon = _of(helpers)
        if daemon is None:
            with _start_of_daemon:
                if _of(helpers) is None:
                    _put(helpers, PrivateDaemon(helpers))
                daemon = _of(helpers)
        return daemon.socket


def has_died(socket):
    """Whether the daemon of that socket was this process' and has ended by itself: not by stop_private_daemon()."""
    for daemon in _all():
        if daemon.socket == socket:
            # Its descriptors are closed a moment before its end can be waited for.
            daemon.wait(2)
            return not daemon.alive()
    return socket in _dead


def with_private_daemon(function, helpers=None):
    """function(socket), and once more with a new daemon where the one that was there has died."""
    socket = private_socket(helpers)
    try:
        return function(socket)
    except _errors.UnavailableError:
        daemon = _of(helpers)
        if daemon is not None and daemon.socket == socket and daemon.reachable() and not has_died(socket):
            raise
        return function(private_socket(helpers))


def stop_private_daemon():
    """Ends it now, and with it iterations, which give the batches that are ready and then raise UnavailableError; the next dataset starts another one."""
    global _daemon
    with _lock:
        daemons = _all()
        _daemon = None
        _helped.clear()
        _cut_off.clear()
    for daemon in daemons:
        daemon.stop()


def private_process():
    """The daemon's process id, or None."""
    return _daemon.process.pid if _daemon is not None else None


def _after_fork():
    global _daemon, _lock, _start_of_daemon
    _lock, _start_of_daemon = _locks()
    _dead.clear()
    daemons = _all()
    _daemon = None
    _helped.clear()
    _cut_off.clear()
    for daemon in daemons:
        daemon.forget()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(stop_private_daemon)
