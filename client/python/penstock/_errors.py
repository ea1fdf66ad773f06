"""The exceptions of this package: one for each of gRPC's codes."""


class Error(Exception):
    """What went wrong, in a sentence; `code` is the name of gRPC's code, such as "NOT_FOUND"."""

    code = "UNKNOWN"


class CancelledError(Error):
    """The call was cancelled: the pipeline was deleted, or who asked has gone."""

    code = "CANCELLED"


class UnknownError(Error):
    """The daemon, or the C interface, gave a code that this release does not know."""

    code = "UNKNOWN"


class InvalidArgumentError(Error):
    """An argument, an option or a spec is wrong; the message says what was expected and what was found."""

    code = "INVALID_ARGUMENT"


class DeadlineExceededError(Error):
    """No batch came within `timeout` seconds, or the daemon gave no answer in time."""

    code = "DEADLINE_EXCEEDED"


class NotFoundError(Error):
    """There is no such pipeline, file, device or program."""

    code = "NOT_FOUND"


class AlreadyExistsError(Error):
    """There is a pipeline, a consumer or a rank of that name."""

    code = "ALREADY_EXISTS"


class PermissionDeniedError(Error):
    """The socket, the pipeline or the file is not this user's to use."""

    code = "PERMISSION_DENIED"


class ResourceExhaustedError(Error):
    """A limit is reached: memory, disk space, places for consumers, or the bytes of a slot."""

    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(Error):
    """The state does not allow it: a closed loader, a cursor of another stream, files that have changed, a daemon of another release."""

    code = "FAILED_PRECONDITION"


class AbortedError(Error):
    """The pipeline goes on without this consumer, or has lost one that it needs. PeerLostError and DetachedError are its kinds."""

    code = "ABORTED"


class OutOfRangeError(Error):
    """The position lies beyond the end, or behind what can be had again."""

    code = "OUT_OF_RANGE"


class UnimplementedError(Error):
    """The daemon, or this machine, has no such operation."""

    code = "UNIMPLEMENTED"


class InternalError(Error):
    """A fault of Penstock's own; please report it with its message."""

    code = "INTERNAL"


class UnavailableError(Error):
    """No daemon answers at the socket, or it has gone. Another try may succeed."""

    code = "UNAVAILABLE"


class DataLossError(InvalidArgumentError):
    """The data is not what it should be: a damaged file, or an element that a stage cannot compute.

    It is an InvalidArgumentError too, which TensorFlow raises where an element is wrong; what is damaged is a DataLossError there as well.
    """

    code = "DATA_LOSS"


class UnauthenticatedError(Error):
    """The daemon does not know who asks: a certificate is missing or is not accepted."""

    code = "UNAUTHENTICATED"


class PeerLostError(AbortedError):
    """A rank of the group has died and not come back in time."""

    code = "PEER_LOST"


class DetachedError(AbortedError):
    """The daemon goes on without this consumer: it was too slow, or another one took its place."""

    code = "DETACHED"


# By the numbers of penstock.h.
BY_CODE = {
    1: CancelledError,
    2: UnknownError,
    3: InvalidArgumentError,
    4: DeadlineExceededError,
    5: NotFoundError,
    6: AlreadyExistsError,
    7: PermissionDeniedError,
    8: ResourceExhaustedError,
    9: FailedPreconditionError,
    10: AbortedError,
    11: OutOfRangeError,
    12: UnimplementedError,
    13: InternalError,
    14: UnavailableError,
    15: DataLossError,
    16: UnauthenticatedError,
    102: PeerLostError,
    103: DetachedError,
}


def from_code(code, message):
    """The exception for a result of the C interface."""
    return BY_CODE.get(code, UnknownError)(message)
