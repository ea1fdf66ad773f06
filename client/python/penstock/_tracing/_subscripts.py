"""The subscripts that the expression language has: integers, slices, ..., None, and one list of integers."""

import operator

import numpy as np

from penstock._tracing._constants import to_node
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import Node, StandIn, find_trace, stand_in


def subscripted(x, items):
    """The value `x[items]`."""
    values = [x]
    text = ", ".join(_subscript(item, values) for item in items)
    if not text:
        return x
    trace = find_trace(values)
    return stand_in(trace, Node(trace, "subscript", text, [to_node(trace, value) for value in values]))


# Longer lists in a subscript are constants of their stage: a spec's texts are short.
_MAX_WRITTEN = 64


def _subscript(item, values):
    """An item's text; traced integers and long lists in it are added to `values`, whose places stand for them."""
    if item is None:
        return "None"
    if item is Ellipsis:
        return "..."
    if isinstance(item, slice):
        if isinstance(item.step, StandIn):
            raise TraceError("a traced value as a slice's step", "steps are constants")
        parts = ["" if part is None else _index(part, values) for part in (item.start, item.stop, item.step)]
        return ":".join(parts if parts[2] else parts[:2])
    if isinstance(item, (list, np.ndarray)):
        array = np.asarray(item)
        if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0:
            raise TraceError(
                f"a subscript that is an array of {array.dtype.name} and shape {array.shape}",
                "beside traced integers one list of integers is allowed; np.where chooses by a condition",
            )
        if array.size <= _MAX_WRITTEN:
            return f"[{', '.join(map(str, array.tolist()))}]"
        values.append(array.astype(np.int64))
        return f"{{{len(values) - 1}}}"
    return _index(item, values)


def _index(item, values):
    if isinstance(item, (bool, np.bool_)):
        raise TraceError("a subscript by a lone flag", "use np.where(condition, a, b)")
    if isinstance(item, str):
        raise TraceError(f"the subscript {item!r} of a tensor", "the element has no structure there")
    if isinstance(item, StandIn):
        if getattr(item.dtype, "kind", "") not in ("i", "u") or item.ndim > 0:
            raise TraceError(
                f"a traced {getattr(item.dtype, 'name', item.dtype)} of shape {item.shape} in a subscript beside others",
                "there it is one integer; np.take(x, indices, axis) takes of one axis",
            )
        values.append(item)
        return f"{{{len(values) - 1}}}"
    if not hasattr(item, "__index__"):
        raise TraceError(f"the subscript {item!r}", "subscripts are integers, slices, ..., None and lists of integers")
    return str(operator.index(item))
