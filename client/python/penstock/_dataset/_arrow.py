"""Arrow IPC files and streams: penstock.ArrowDataset, and what of a column is asked for."""

from __future__ import annotations

import os
from typing import Any, Optional, Sequence

import numpy as np

from penstock import _dtypes
from penstock._dataset import Dataset
from penstock._dataset._arguments import integer
from penstock._dataset._cardinality import UNKNOWN
from penstock._dataset._chain import ASK
from penstock._dataset._paths import files_of
from penstock._dataset._reading import damage_policy
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


def _features(features):
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


class ArrowDataset(Dataset):
    """The rows of Arrow IPC files and streams, a dict of the features that are asked for. Not in tf.data.

    pyarrow, Hugging Face's datasets and Feather (version 2) write such files. Which of the two a file is its beginning tells. They are read in place: only the
    metadata of their record batches is read when the pipeline is created, so that the length is exact, and any row is found at once. Rows come in the order of the
    files; global_shuffle() permutes all of them.

    A column of numbers, dates or times becomes numbers, text and binary penstock.string; a list becomes an axis of any size, a fixed-size list one of its size; a
    dictionary is decoded; the fields of a struct are columns. Buffers may be compressed by zstd.

    Args:
      filenames: a path, a glob, or a list of them.
      features: a list of columns, or a dict of names and columns (penstock.ArrowFeature, or the column's name); by default all columns of the first file.
      rows: which rows, in which order, counted over all files: a list of numbers, or the path of an Arrow file of one int64 or uint64 column. By default all.
      on_damage: what a record batch does whose metadata is damaged, or that its file does not hold whole: "fail"; "skip_record" leaves it out, and in a stream all
        behind it, as nothing tells where the next one begins; "skip_shard" leaves out the rest of the file. It is found when the pipeline is created.
      max_skipped: more damaged places are an error.
    """

    def __init__(
        self,
        filenames: Any,
        features: Any = None,
        rows: Any = None,
        name: Optional[str] = None,
        *,
        on_damage: str = "fail",
        max_skipped: Optional[int] = None,
    ) -> None:
        stretches, row_file = None, None
        if isinstance(rows, (str, os.PathLike)):
            row_file = os.path.abspath(os.fspath(rows))
        elif rows is not None:
            stretches = [("row", [integer(row, "a number of rows") for row in rows])]
        super().__init__(*_arguments(files_of(filenames), _features(features), stretches, row_file, damage_policy(on_damage, max_skipped, None), name))


def _arguments(files, features, rows, row_file, damage, name=None):
    """Of Dataset: stages, structure and length. `rows`: the fields of the message."""
    if rows is not None and rows[0][0] == "row" and not rows[0][1]:
        raise ValueError("rows are numbers of rows; there are none")
    fields = [
        ("files", files),
        ("feature", None if features is None else [feature._message(key) for key, feature in features.items()]),
        ("damage", damage),
        ("rows", None if rows is None else _textproto.Message(*rows)),
        ("row_file", row_file),
    ]
    count = UNKNOWN
    if rows is not None and row_file is None:
        given = dict(rows)
        count = len(given["row"]) if "row" in given else sum(given["count"])
    return [Stage("arrow", fields, name)], ASK if features is None else dict.fromkeys(features), count


def of_files(files: Sequence[str], features: Any, rows: Any, row_file: Optional[str]) -> Dataset:
    """Such a dataset of absolute paths; `rows`: pairs of fields of the message ArrowRows."""
    return Dataset(*_arguments(files, features, rows, row_file, None))
