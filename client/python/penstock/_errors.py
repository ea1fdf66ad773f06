"""The exceptions of this package: one for each of gRPC's codes."""


class Error(Exception):
    """What went wrong, in a sentence; `code` is the name of gRPC's code, such as "NOT_FOUND"."""

    code = "UNKNOWN"


class CancelledError(Error):
    code = "CANCELLED"


class UnknownError(Error):
    code = "UNKNOWN"


class InvalidArgumentError(Error):
    code = "INVALID_ARGUMENT"


class DeadlineExceededError(Error):
    code = "DEADLINE_EXCEEDED"


class NotFoundError(Error):
    code = "NOT_FOUND"


class AlreadyExistsError(Error):
    code = "ALREADY_EXISTS"


class PermissionDeniedError(Error):
    code = "PERMISSION_DENIED"


class ResourceExhaustedError(Error):
    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(Error):
    code = "FAILED_PRECONDITION"


class AbortedError(Error):
    code = "ABORTED"


class OutOfRangeError(Error):
    code = "OUT_OF_RANGE"


class UnimplementedError(Error):
    code = "UNIMPLEMENTED"


class InternalError(Error):
    code = "INTERNAL"


class UnavailableError(Error):
    code = "UNAVAILABLE"


class DataLossError(InvalidArgumentError):
    """The data is not what it should be: a damaged file, or an element that a stage cannot compute.

    It is an InvalidArgumentError too, which TensorFlow raises where an element is wrong; what is damaged is a DataLossError there as well.
    """

    code = "DATA_LOSS"


class UnauthenticatedError(Error):
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
