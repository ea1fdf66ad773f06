"""Constants of a traced function: Python's values and NumPy's as nodes of the graph."""

import math
import re

import numpy as np

from penstock._registry import FUNCTIONS
from penstock._tracing._refusals import OUTSIDE, Captured, TraceError
from penstock._tracing._trace import Node, StandIn, find_trace, require_unchanged


def is_identifier(name):
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name not in (
        "True", "False", "None", "and", "or", "not", "if", "feature",
    )  # fmt: skip


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def literal(value):
    """A Python value as it stands in an expression, or None."""
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        try:
            return quoted(value.decode())
        except UnicodeDecodeError:
            raise TraceError(f"{value!r} is no text in UTF-8", "a spec is text, and so are its constants") from None
    if isinstance(value, (list, tuple)):
        items = [literal(item) for item in value]
        return None if None in items or not items else f"[{', '.join(items)}]"
    return None


def to_node(trace, value, what="an operand"):
    """The node of a traced value or a constant.

    Python's numbers are weak, as in NumPy 2; NumPy's scalars and arrays keep their types.
    """
    if isinstance(value, StandIn):
        if trace.adopts(value._trace):
            require_unchanged(value)
            return trace.adopted(value._node)
        if value._trace is not trace:
            raise Captured(trace, value._trace)
        require_unchanged(value)
        return value._node
    strings = _long_strings(value)
    if strings is not None:
        return Node(trace, "array", strings)
    if holds_strings(value):
        return Node(trace, "text", literal(value.tolist()))
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
        if value.dtype.name not in FUNCTIONS:
            raise TraceError(f"{what} is a constant of type {value.dtype.name}", "cast it to one of NumPy's numbers")
        text = None if value.dtype.name in _HALVES else literal(value)
        if text is not None and value.dtype != bool:
            return Node(trace, "call", value.dtype.name, [Node(trace, "text", text)])
        if text is None:
            return _array(trace, value)
    if isinstance(value, float) and not math.isfinite(value):
        return Node(trace, "array", value)
    if isinstance(value, (list, tuple)) and find_trace(value) is not None:
        # [height, width] of which one is traced.
        return to_node(trace, packed(value), what)
    if isinstance(value, (list, tuple)) and _are_flags(value):
        # The language's own lists hold numbers.
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.dtype.name not in FUNCTIONS or value.size == 0:
            raise TraceError(
                f"{what} is an array of type {value.dtype.name} and shape {value.shape}",
                "constants are arrays of numbers with elements",
            )
        # As it is now: the function may write into it behind this.
        return _array(trace, value.copy())
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(type(value), "__array__"):
        # Of another package: a tensor that is not traced, a column of a table.
        return to_node(trace, np.asarray(value), what)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise TraceError(f"{what} is an integer that no type holds", "integers go from -2**63 to 2**64 - 1; a float may be larger")
    text = literal(value)
    if text is None:
        if isinstance(value, (list, tuple)) and any(item is None for item in value):
            raise TraceError(f"{what} is {value}, where None is a size that only the data tells", "np.shape(x)[0] is each element's")
        kind = type(value)
        raise TraceError(
            f"{what} is of type {kind.__module__}.{kind.__qualname__}",
            "constants are numbers and NumPy arrays; " + OUTSIDE,
        )
    return Node(trace, "text", text)


# Strings that together are longer are constants of the stage, not part of its expressions.
_LONG_TEXT = 4 << 10


def _long_strings(value):
    """The array of a text, or of a list or an array of texts, that is long: of bytes, as objects. Else None."""
    if isinstance(value, (str, bytes)):
        items, shape = [value], ()
    elif holds_strings(value):
        items, shape = np.ravel(value).tolist(), np.shape(value)
    elif isinstance(value, (list, tuple)) and value and all(isinstance(item, (str, bytes)) for item in value):
        items, shape = value, (len(value),)
    else:
        return None
    if sum(map(len, items)) <= _LONG_TEXT:
        return None
    array = np.empty(len(items), object)
    array[:] = [item.encode() if isinstance(item, str) else item for item in items]
    return array.reshape(shape)


def packed(value):
    """An array; of a list that holds traced values one traced value, as np.stack joins them."""
    if isinstance(value, (list, tuple)) and find_trace(value) is not None:
        return np.stack([item if isinstance(item, StandIn) else packed(item) for item in value])
    return np.asarray(value)


def with_type(value):
    """A list that holds NumPy's scalars as the array that NumPy makes of it; anything else as it is."""
    if isinstance(value, (list, tuple)) and find_trace(value) is None and _holds_scalars(value):
        array = np.asarray(value)
        return array if array.dtype.name in FUNCTIONS else value
    return value


def _holds_scalars(values):
    return any(_holds_scalars(value) if isinstance(value, (list, tuple)) else isinstance(value, (np.generic, np.ndarray)) for value in values)


def _are_flags(values):
    return bool(values) and all(
        _are_flags(value) if isinstance(value, (list, tuple)) else isinstance(value, (bool, np.bool_)) for value in values
    )


# A spec has no constants of these; what they hold, float32 holds too.
_HALVES = ("float16", "bfloat16")


def _array(trace, value):
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if value.dtype.name not in _HALVES:
        return Node(trace, "array", value)
    return Node(trace, "call", value.dtype.name, [Node(trace, "array", value.astype(np.float32))])


def holds_strings(value):
    """Whether it is an array of texts, or NumPy's of one text."""
    return isinstance(value, (np.str_, np.bytes_)) or isinstance(value, np.ndarray) and value.size > 0 and (
        value.dtype.kind in "SU" or value.dtype == object and all(isinstance(word, (str, bytes)) for word in value.flat)
    )  # fmt: skip


def texts(words):
    """The texts of an array of them, as str."""
    return [word if isinstance(word, str) else bytes(word).decode() for word in words.ravel().tolist()]


def vocabulary(words):
    """The words as `string_lookup` takes them."""
    if len(set(words)) < len(words):
        seen = set()
        twice = next(word for word in words if word in seen or seen.add(word))
        raise TraceError(f"{twice!r} stands twice in the array of words", "words of a vocabulary differ")
    return list(words)
