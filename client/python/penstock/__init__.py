"""Ready batches of a Penstock pipeline, as NumPy arrays without a copy.

    import penstock

    for batch in penstock.attach("chess"):
        train(batch["board"], batch["score"])
"""

from penstock._core import Loader, abi_version, default_socket, version
from penstock._errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

__version__ = version()

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "Error",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "Loader",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "abi_version",
    "attach",
    "default_socket",
    "version",
]


def attach(name, socket=None, group="default", timeout=None):
    """Attaches to a pipeline of penstockd; iterate over what it returns.

    A batch is a dict from the tensors' names to read-only arrays in the daemon's memory. That memory
    lives as long as the last array over it, also after the loader is closed.

    Args:
      name: the pipeline, as `penstock list` shows it.
      socket: the daemon's; by default $PENSTOCK_SOCKET, else $XDG_RUNTIME_DIR/penstock.sock, else
        /run/penstock/penstock.sock.
      group: the consumers that together read one stream.
      timeout: the longest wait for one batch in seconds, after which DeadlineExceededError is
        raised; None waits for ever. (A daemon that has died is noticed within a second.)

    Returns:
      A Loader, which is its own iterator and a context manager.

    Raises:
      UnavailableError: no daemon answers at the socket.
      NotFoundError: it runs no pipeline of that name.
      PermissionDeniedError: the socket is not yours to use.
      FailedPreconditionError: the daemon is of another release.
    """
    return Loader(name, socket, group, timeout)
