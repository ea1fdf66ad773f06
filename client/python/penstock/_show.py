"""What an element or a batch holds, at a glance: a line for each of its tensors."""

from typing import Any, NamedTuple, Tuple

import numpy as np

from penstock import _html
from penstock._ragged import RaggedTensor
from penstock._sparse import SparseTensor
from penstock._structure import key_text

# Values of one tensor that are looked at; a batch may be large.
_LOOKED_AT = 1 << 20
# Bytes of a string, and characters of one line, that are shown.
_SHOWN = 40


class ShownTensor(NamedTuple):
    """One tensor of an element.

    Attributes:
      name: where it is in the element: "image", "0", "1/x"; "value" where it is the whole of it.
      dtype: its element type, as a text.
      shape: its sizes, with None for a ragged axis; () for a number, and for what has no shape.
      values: the range and the mean of its numbers, how many are true, or the first of its strings, in words.
    """

    name: str
    dtype: str
    shape: Tuple[Any, ...]
    values: str


class Shown:
    """The tensors of an element or a batch, as they were when show() looked at them; see penstock.show. A notebook shows it as a table."""

    def __init__(self, element: Any):
        self.tensors = tuple(ShownTensor(name, *_look(value)) for name, value in _leaves(element, ""))

    def __repr__(self) -> str:
        rows = [(_plain(one.name), one.dtype, str(one.shape), one.values) for one in self.tensors]
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
        return "\n".join("  ".join([*(text.ljust(width) for text, width in zip(row, widths)), row[3]]).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        return _html.table(("tensor", "type", "shape", "values"), self.tensors)


def show(element: Any) -> Shown:
    """What an element or a batch holds: name, type, shape and values of each of its tensors.

    It looks at the first 1,048,576 values of each, takes no reference to them, and changes nothing.

        >>> penstock.show(next(iter(dataset)))
        image  uint8  (64, 224, 224, 3)  0 to 255, mean 117.4
        label  int64  (64,)              0 to 9, mean 4.5

    Args:
      element: what a dataset, a loader or an iterator gives: a nest of dicts and tuples of arrays, RaggedTensors and SparseTensors, or of the
        tensors of torch, JAX or TensorFlow. Of those on a device only type and shape are told.

    Returns:
      A Shown: its repr() is a line for each tensor, and a notebook shows a table.
    """
    return Shown(element)


def _leaves(element, name):
    """Each tensor with where it is."""
    if isinstance(element, dict):
        items = [(key_text(key), inner) for key, inner in element.items()]
    elif isinstance(element, (tuple, list)) and not isinstance(element, SparseTensor):
        items = [(str(index), inner) for index, inner in enumerate(element)]
    else:
        return [(name or "value", element)]
    return [leaf for key, inner in items for leaf in _leaves(inner, f"{name}/{key}" if name else key)]


def _look(value):
    """Type, shape and values of one tensor."""
    if isinstance(value, (str, bytes)):
        return type(value).__name__, (), _short(repr(value))
    if not isinstance(value, (RaggedTensor, SparseTensor)) and not hasattr(value, "shape"):
        if isinstance(value, (bool, int, float)):
            return type(value).__name__, (), str(value)
        return type(value).__name__, (), ""
    kind = "ragged " if isinstance(value, RaggedTensor) else "sparse " if isinstance(value, SparseTensor) else ""
    dtype = str(getattr(value.dtype, "name", value.dtype))
    try:
        shape = tuple(value.shape)
        flat = value.flat_values if kind == "ragged " else value.values if kind == "sparse " else value
        words = _words(np.asarray(flat))
    except (TypeError, ValueError, RuntimeError):
        words = ""  # on a device, or a type that NumPy has not
    if kind == "sparse " and words:
        words = f"{len(value.values)} values, {words}"
    return kind + ("string" if dtype == "object" else dtype), shape, words


def _words(array):
    """What the values of an array are like."""
    values = array.reshape(-1)
    if values.size == 0:
        return "no values"
    looked_at = values[:_LOOKED_AT]
    more = f", of the first {_LOOKED_AT}" if values.size > _LOOKED_AT else ""
    if array.dtype.kind in "OSU":
        first = looked_at[0]
        return _short(repr(first)) + (f" and {values.size - 1} more" if values.size > 1 else "")
    if array.dtype.kind == "b":
        return f"{np.count_nonzero(looked_at)} of {looked_at.size} true"
    if array.dtype.kind not in "iuf":
        return ""
    finite = looked_at[np.isfinite(looked_at)] if array.dtype.kind == "f" else looked_at
    odd = looked_at.size - finite.size
    words = f"{odd} not finite" if odd else ""
    if finite.size:
        mean = finite.mean(dtype=np.float64)
        least, most = finite.min(), finite.max()
        told = f"{least:g} to {most:g}, mean {mean:g}" if array.dtype.kind == "f" else f"{least} to {most}, mean {mean:g}"
        if values.size == 1:
            told = f"{least:g}" if array.dtype.kind == "f" else f"{least}"
        words = f"{told}, {words}" if words else told
    return words + more


def _plain(name):
    """A name without what a terminal would obey."""
    return name if name.isprintable() else repr(name)[1:-1]


def _short(text):
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def of_loader(loader, has_begun=True):
    """A loader's state and counters for notebooks. What has not begun is not asked: that would begin it."""
    said = repr(loader)
    rows = [(key, value) for key, value in loader.stats().items() if value != ""] if has_begun else []
    return _html.table((type(loader).__name__, said), rows)
