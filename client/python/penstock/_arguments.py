"""Arguments of the methods of Dataset."""

import numpy as np

from penstock import _trace

AUTOTUNE = -1


def integer(value, what):
    """An int of a size or a count; NumPy's will do."""
    if isinstance(value, _trace.Tensor):
        raise _trace.TraceError(
            f"{what} is a traced value", "it is a constant; enumerate() with take_while or filter decides by values"
        )
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = int(np.asarray(value)[()].__index__())
    except (TypeError, AttributeError):
        raise TypeError(f"{what} is an integer, not {value!r}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{what} is an integer of 64 bits, from -2**63 to 2**63 - 1: {number}")
    return number


def optional(value, what):
    return None if value is None else integer(value, what)
