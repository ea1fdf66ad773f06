"""What a container does to a process and all that it starts: refused system calls, other mounts, a limit of memory.

refuse() and mounts() return what a child process runs before its program: `preexec_fn` of subprocess.
"""

import contextlib
import ctypes
import errno
import os
import pathlib
import platform
import uuid

import pytest

from programs import eventually

# By the names of `uname -m`; linux/unistd.h.
_NUMBERS = {
    "x86_64": {"mbind": 237, "mincore": 27, "move_pages": 279, "sched_setaffinity": 203},
    "aarch64": {"mbind": 235, "mincore": 232, "move_pages": 239, "sched_setaffinity": 122},
}
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _SECCOMP_MODE_FILTER = 22, 38, 2
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction))]


def refuse(error, *calls):
    """By a seccomp filter each of the calls fails with `error`."""
    numbers = [_NUMBERS[platform.machine()][call] for call in calls]
    code = [_Instruction(_LOAD_WORD, 0, 0, 0)]  # seccomp_data.nr
    for number in numbers:
        code += [_Instruction(_JUMP_IF_EQUAL, 0, 1, number), _Instruction(_RETURN, 0, 0, _ERROR | error)]
    code.append(_Instruction(_RETURN, 0, 0, _ALLOW))
    instructions = (_Instruction * len(code))(*code)
    program = _Program(len(code), instructions)
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(
                _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no seccomp filter")

    return install


_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000


def mounts(*wanted):
    """Mounts of the process's own, each (what, where, kind, options): kind "bind" shows the folder `what` there, others as mount(2).

    Skips the test where that is not allowed.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result):
        if result != 0:
            raise OSError(ctypes.get_errno(), "cannot mount")

    def mount():
        check(libc.unshare(_CLONE_NEWNS))
        check(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
        for what, where, kind, options in wanted:
            bind = kind == "bind"
            check(libc.mount(str(what).encode(), str(where).encode(), None if bind else kind.encode(), _MS_BIND if bind else 0,
                             options.encode() or None))

    child = os.fork()
    if child == 0:
        try:
            mount()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or errno.EIO)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        pytest.skip(f"no mounts of one's own: {os.strerror(code)}")
    return mount


@contextlib.contextmanager
def memory_group(limit):
    """The folder of a control group of so many bytes that a process can be put into; None where none can be made."""
    with _group(limit, ("memory", "memory.limit_in_bytes"), ("", "memory.max")) as group:
        yield group


@contextlib.contextmanager
def task_group(limit):
    """The same of so many threads and processes."""
    with _group(limit, ("pids", "pids.max"), ("", "pids.max")) as group:
        yield group


@contextlib.contextmanager
def _group(limit, *places):
    for folder, name in places:
        root = pathlib.Path("/sys/fs/cgroup") / folder
        group = root / f"penstock-test-{uuid.uuid4().hex}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / name).write_text(str(limit))
        except OSError:
            group.rmdir()
            continue
        try:
            yield group
        finally:
            eventually(lambda: not (group / "cgroup.procs").read_text())
            group.rmdir()
        return
    yield None
