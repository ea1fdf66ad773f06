"""Create, validate and delete over a daemon's socket: the client's side of ring/attach.h.

A request is 2,560 bytes with a memory file beside it, an answer 1,024 bytes with another one, which
holds JSON.
"""

import os
import struct

from penstock import _core, _errors

_ATTACH_CREATE = 2
_ATTACH_VALIDATE = 3
_ATTACH_DELETE = 4
_TEMPORARY = 1

# magic, ABI version, bytes │ operation, flags, bytes of the name and of the group │ part_bytes │
# zeros │ pipeline, group │ what only an attach has
_REQUEST = struct.Struct("<8sII IIII 4I 16x 128s 64s 2304x")
# magic, ABI version, bytes │ code, consumer, start step │ message_bytes, descriptors │ zeros │ message
_REPLY = struct.Struct("<8sII iIQ II 24x 960s")
_REQUEST_MAGIC = b"PNSTKATT"
_REPLY_MAGIC = b"PNSTKREP"


def _connect(path):
    import socket as sockets

    connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError as error:
        connection.close()
        raise _errors.UnavailableError(
            f"no penstockd at {path}: {error.strerror or error}; start one: penstockd --socket {path}"
        ) from None
    return connection


def _memory_file(parts):
    fd = os.memfd_create("penstock-request", os.MFD_CLOEXEC)
    try:
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[os.write(fd, view) :]
    except BaseException:
        os.close(fd)
        raise
    return fd


def _receive(connection, path):
    import json
    import socket as sockets

    data, fds = b"", []
    try:
        while len(data) < _REPLY.size:
            more, received, _, _ = sockets.recv_fds(connection, _REPLY.size - len(data), 4)
            fds += received
            if not more:
                raise _errors.UnavailableError(f"penstockd at {path} closed the connection without an answer")
            data += more
        magic, abi, _, code, _, _, message_bytes, _, message = _REPLY.unpack(data)
        if magic != _REPLY_MAGIC:
            raise _errors.FailedPreconditionError(f"{path} is no penstockd: it answers another protocol")
        if code != 0:
            raise _errors.from_code(code, message[:message_bytes].decode(errors="replace"))
        if abi != _core.abi_version():
            raise _errors.FailedPreconditionError(
                f"client and penstockd speak different versions of the ring's ABI: {_core.abi_version()} and {abi}"
            )
        if not fds:
            return None
        with open(fds.pop(0), "rb") as file:
            file.seek(0)
            return json.loads(file.read())
    finally:
        for fd in fds:
            os.close(fd)


def _request(path, operation, name="", text="", cursor=b"", flags=0):
    """Returns the connection and what was answered."""
    import socket as sockets

    if len(path.encode()) > 107:
        raise _errors.InvalidArgumentError(f"a socket's path has at most 107 bytes: {path}")
    parts = (text.encode(), b"spec", os.getcwd().encode(), cursor)
    pipeline = name.encode()
    head = _REQUEST.pack(
        _REQUEST_MAGIC, _core.abi_version(), _REQUEST.size, operation, flags, len(pipeline), 0,
        *map(len, parts), pipeline, b"",
    )  # fmt: skip
    fd = _memory_file(parts)
    connection = None
    try:
        connection = _connect(path)
        sockets.send_fds(connection, [head], [fd])
        return connection, _receive(connection, path)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, OSError):
            raise _errors.UnavailableError(f"penstockd at {path} has gone: {error.strerror or error}") from None
        raise
    finally:
        os.close(fd)


def create(path, name, text, cursor=b"", temporary=False):
    """Starts a pipeline.

    Returns:
      A dict that describes it (Pipeline in control.proto), and the connection: a temporary pipeline
      lives as long as that.
    """
    flags = _TEMPORARY if temporary else 0
    connection, answer = _request(path, _ATTACH_CREATE, name, text, cursor, flags)
    return answer["pipeline"], connection


def validate(path, name, text):
    """Checks a spec and starts nothing: a dict that describes the pipeline, and an explanation."""
    connection, answer = _request(path, _ATTACH_VALIDATE, name, text)
    connection.close()
    return answer["pipeline"], answer["explanation"]


def hang_up(connection):
    """Ends a temporary pipeline, also where a forked child holds its connection too."""
    try:
        connection.shutdown(2)  # SHUT_RDWR
    except OSError:
        pass  # the daemon has gone
    connection.close()


def delete(path, name):
    connection, _ = _request(path, _ATTACH_DELETE, name)
    connection.close()
