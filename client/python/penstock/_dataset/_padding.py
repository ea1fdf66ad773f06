"""Arguments of padded_batch: nests like the element's, written by the features' paths."""

import numpy as np

from penstock import _structure
from penstock._spec._textproto import Message


def _pairs(structure, nest, is_leaf, what):
    """Pairs of a feature's path and the leaf at its place in `nest`."""

    def differs(path):
        return ValueError(f"{what} has another structure than the element at {path or 'its top'}")

    def walk(inner, part, path):
        if inner is None:
            if not is_leaf(part):
                raise differs(path)
            return [(path or "value", part)]
        if isinstance(inner, dict):
            if not isinstance(part, dict) or set(part) != set(inner):
                raise differs(path)
            items = [(_structure.key_text(key), inner[key], part[key]) for key in inner]
        else:
            if not isinstance(part, tuple) or len(part) != len(inner):
                raise differs(path)
            items = [(str(i), inner[i], part[i]) for i in range(len(inner))]
        return [pair for key, a, b in items for pair in walk(a, b, f"{path}/{key}" if path else key)]

    return walk(structure, nest, "")


def shapes(structure, padded_shapes):
    """PaddedShape messages, or None."""
    if padded_shapes is None:
        return None

    def is_leaf(part):
        return part is None or isinstance(part, (list, tuple)) and all(
            size is None or isinstance(size, (int, np.integer)) for size in part
        )

    messages = []
    for path, shape in _pairs(structure, padded_shapes, is_leaf, "padded_shapes"):
        if shape is not None:
            sizes = [-1 if size is None else int(size) for size in shape]
            messages.append(Message(("feature", path), ("shape", sizes)))
    return messages


def values(structure, padding_values):
    """PaddingValue messages, or None."""
    if padding_values is None:
        return None
    if not isinstance(padding_values, (dict, tuple)) and structure is not None:
        padding_values = _structure.fill(structure, iter([padding_values] * len(_structure.paths(structure))))
    leaves = _pairs(structure, padding_values, lambda part: not isinstance(part, (dict, tuple, list)), "padding_values")
    return [Message(("feature", path), _value(leaf, path)) for path, leaf in leaves if leaf is not None]


def _value(leaf, path):
    if isinstance(leaf, str):
        return "bytes_value", leaf.encode()
    if isinstance(leaf, bytes):
        return "bytes_value", leaf
    leaf = np.asarray(leaf)
    if leaf.ndim != 0 or leaf.dtype.kind not in "biuf":
        raise TypeError(f"padding_values: a number or a string is expected for {path}, not {leaf!r}")
    value = leaf.item()
    field = {"b": "bool_value", "i": "int64_value", "u": "uint64_value", "f": "float_value"}[leaf.dtype.kind]
    return field, value
