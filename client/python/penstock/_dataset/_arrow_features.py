"""What is asked for of Arrow IPC files and streams, and the stage that reads them."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from penstock import _dtypes
from penstock._dataset._cardinality import UNKNOWN
from penstock._dataset._chain import ASK
from penstock._spec import _textproto
from penstock._spec._stage import Stage, Trait, declare

declare("arrow", Trait.GIVES_NO_PATHS)

# Of the kinds of Python's values.
_FIELDS = {bool: "bools", int: "ints", float: "floats", bytes: "strings"}


class ArrowFeature:
    """A feature of the rows of Arrow files (penstock.ArrowDataset).

    Args:
      column: the column that it is made of; by default the feature's key. Fields of structs follow a dot: "image.bytes". A backslash makes the next character part
        of a name.
      dtype: what the column has to hold; by default what it holds in the first file. penstock.string for text and bytes.
      shape: the sizes of the axes that lists in each other make. None or -1 is any size, and stands first: [None] is a list, [None, 3] a list of lists of three. By
        default as the column has them: any size for a list, its own for a fixed-size list. A list of another size is an error of its row.
      default_value: what takes the place of a null. Without it a null is an error of its row.
      allow_missing: whether a list of any size that is null is an empty one. Otherwise it is an error.
      is_null: the feature tells whether the value is null, penstock.bool, in the place of the value. The others but column are not given then.
    """

    __slots__ = ("column", "dtype", "shape", "default_value", "allow_missing", "is_null")

    def __init__(
        self,
        column: Optional[str] = None,
        dtype: Any = None,
        shape: Any = None,
        default_value: Any = None,
        *,
        allow_missing: bool = False,
        is_null: bool = False,
    ) -> None:
        if column is not None and not isinstance(column, str):
            raise TypeError(f"column is a name, not {column!r}")
        self.column = column
        self.dtype = None if dtype is None else _dtypes.as_dtype(dtype)
        sizes = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        self.shape = tuple(-1 if size is None else int(size) for size in sizes)
        self.default_value = _plain(default_value)
        self.allow_missing = bool(allow_missing)
        self.is_null = bool(is_null)
        if self.is_null and (self.dtype is not None or self.shape or default_value is not None or allow_missing):
            raise ValueError("is_null says whether a value is null, and has neither dtype, shape, default_value nor allow_missing")

    def __repr__(self):
        given = [f"{name}={getattr(self, name)!r}" for name in self.__slots__ if getattr(self, name) not in (None, (), False)]
        return f"ArrowFeature({', '.join(given)})"

    def _message(self, key):
        """The ArrowFeature message."""
        fields = [("name", key), ("column", self.column), ("dtype", None if self.dtype is None else self.dtype.name), ("shape", list(self.shape) or None)]
        if self.default_value is not None:
            fields.append(("default_value", _textproto.Message((_FIELDS[type(self.default_value)], [self.default_value]))))
        return _textproto.Message(*fields, *((name, getattr(self, name) or None) for name in ("allow_missing", "is_null")))


def _plain(value):
    """A default as a value of Python's."""
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (str, bytes)):
        return value.encode() if isinstance(value, str) else bytes(value)
    raise TypeError(f"default_value is one number, bool or string, not {value!r}")


def features_of(features):
    """The ArrowFeatures by their keys; None: all columns."""
    if features is None:
        return None
    if isinstance(features, str):
        features = [features]
    named = dict(features) if isinstance(features, dict) else {column: None for column in features}
    if not named:
        raise ValueError('features are columns such as ["image", "label"], or a dict of names and columns; there are none')
    if wrong := [key for key in named if not isinstance(key, str) or not key]:
        raise ValueError(f"features have names, not {wrong[0]!r}")
    for key, feature in named.items():
        if feature is None or isinstance(feature, str):
            named[key] = ArrowFeature(feature)
        elif not isinstance(feature, ArrowFeature):
            raise ValueError(f"feature {key!r} is {feature!r}; expected the name of a column, or ArrowFeature")
    return named


def arrow_source(files, features, rows, row_file, damage, name=None, count=UNKNOWN):
    """Of of_stages(): stages, structure and length.

    Args:
      features: ArrowFeatures by their keys, or None for all columns.
      rows: pairs of fields of the message ArrowRows, or None.
    """
    if rows is not None and not rows[0][1]:
        raise ValueError("rows are numbers of rows; there are none")
    fields = [
        ("files", files),
        ("feature", None if features is None else [feature._message(key) for key, feature in features.items()]),
        ("damage", damage),
        ("rows", None if rows is None else _textproto.Message(*rows)),
        ("row_file", row_file),
    ]
    if rows is not None and rows[0][0] == "row":
        count = len(rows[0][1])
    return [Stage("arrow", fields, name)], ASK if features is None else dict.fromkeys(features), count
