"""The loop of a worker process.

    daemon ── kWork: tray, sheet, rows ──► for each row: progress, seeds, function, result into the outputs ── kMade ──► daemon
           ── kConfigure ──► the function anew, for another pipeline, with all that it has imported ── kReady ──►
"""

import json
import os
import struct
import sys

from penstock import _albumentations, _row
from penstock._worker import _function, _package
from penstock._worker._errors import load_error

FUNCTION, INPUTS, OUTPUTS, SOCKET, STACK = range(3, 8)
WORK, LEAVE, CONFIGURE, READY, CANNOT_LOAD, MADE, FAILED = 1, 2, 3, 16, 17, 18, 19
MESSAGE = struct.Struct("=IIQQQ")
MAX_TEXT_BYTES = 16 << 10


def end_with_daemon(daemon):
    """Has the kernel kill this process with the daemon, also in the middle of a row."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    except (ImportError, OSError, AttributeError):
        pass  # it ends when it asks for more work
    if os.getppid() != daemon:
        os._exit(1)


def send(what, tray=0, sheet=0, rows=0, size=0, text=""):
    data = text.encode("utf-8", "replace")[:MAX_TEXT_BYTES]
    os.write(SOCKET, MESSAGE.pack(what, tray, sheet, rows, size) + data)


def prepare(configuration_bytes):
    """What takes time before the function: NumPy. Returns the module _sheets."""
    header = _function.read_header(FUNCTION)
    sys.path[:] = header["path"]
    configuration = read_configuration(configuration_bytes)
    _function.limit_threads(configuration["threads"], configuration["sets_threads"])
    # With the user's paths, and so many threads: they import NumPy.
    from penstock._worker import _sheets

    # A function that asks the package for something gets the whole of it.
    _package.install(sys.modules["penstock"])
    _albumentations.follow(_row)
    return _sheets


def read_configuration(size):
    return json.loads(os.pread(INPUTS, size, 0))


def load(sheets, configuration_bytes, forked):
    """The Sheets of the function, which is unpickled: what another pipeline's has kept is none of its."""
    configuration = read_configuration(configuration_bytes)
    function = _function.load(FUNCTION, _function.read_header(FUNCTION))
    _function.limit_threads_of_modules(configuration["threads"])
    loaded = sheets.Sheets(function, configuration, INPUTS, OUTPUTS, forked)
    loaded.progress.begin(0)
    return loaded


def main(configuration_bytes, daemon):
    end_with_daemon(daemon)
    import faulthandler
    import signal

    faulthandler.enable(STACK, all_threads=False)
    faulthandler.register(signal.SIGUSR2, STACK, all_threads=True)
    os.nice(10)  # a trainer on the same processors goes first, as in front of the daemon's threads
    sys.stdout.reconfigure(line_buffering=True)
    forked = []
    os.register_at_fork(after_in_child=lambda: forked.append(True))
    module = None
    while configuration_bytes is not None:
        try:
            module = module or prepare(configuration_bytes)
            sheets = load(module, configuration_bytes, forked)
        except BaseException as error:
            send(CANNOT_LOAD, text=load_error(error))
            return
        send(READY)
        configuration_bytes = work(sheets)
        del sheets  # in front of the next ones


def work(sheets):
    """Computes sheets. Returns the bytes of another configuration where there is one, or None at the end."""
    while True:
        data = os.read(SOCKET, MESSAGE.size)
        if len(data) < MESSAGE.size:
            return None
        what, number, sheet, rows, size = MESSAGE.unpack(data)
        if what == CONFIGURE:
            return size
        if what != WORK:
            return None
        made, error, end = sheets.work(number, sheet, rows, size)
        send(MADE if error is None else FAILED, number, sheet, made, end, error or "")
        _function.limit_threads_of_modules(sheets.threads)
