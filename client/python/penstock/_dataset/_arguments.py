"""Arguments of the methods of Dataset."""

import numpy as np

from penstock._spec._stage import Seed
from penstock._tracing import _refusals, _trace

AUTOTUNE = -1


def integer(value, what, instead="enumerate() with take_while or filter decides by values"):
    """An int of a size or a count; NumPy's will do.

    Args:
      instead: what a function can do where only the data tells the number.
    """
    if isinstance(value, _trace.StandIn):
        raise _refusals.TraceError(f"{what} is a traced value", f"it is a constant; {instead}")
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = int(np.asarray(value)[()].__index__())
    except (TypeError, AttributeError):
        raise TypeError(f"{what} is an integer, not {value!r}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{what} is an integer of 64 bits, from -2**63 to 2**63 - 1: {number}")
    return number


def optional(value, what, *instead):
    return None if value is None else integer(value, what, *instead)


def at_least(least, value, what):
    """An int that is no less than `least`."""
    number = integer(value, what)
    if number < least:
        raise ValueError(f"{what} is at least {least}: {number}")
    return number


def turns(value, what):
    """A number of datasets or elements that take turns: at least 1; None where it was left open, or is AUTOTUNE."""
    number = optional(value, what)
    if number is None or number == AUTOTUNE:
        return None
    if number < 1:
        raise ValueError(f"{what} is at least 1, or AUTOTUNE: {number}")
    return number


def check_unused(num_parallel_calls=None, buffer_size=None):
    """Refuses numbers of tf.data's runtime that TensorFlow refuses too. The others have no effect."""
    turns(num_parallel_calls, "num_parallel_calls")
    if buffer_size is not None:
        at_least(0, buffer_size, "buffer_size")


def draws(seed, rerandomize):
    """The fields of an op whose passes draw alike, unless it is told otherwise."""
    return [
        ("seed", Seed(optional(seed, "seed"), bool(rerandomize))),
        ("rerandomize_each_iteration", True if rerandomize else None),
    ]
