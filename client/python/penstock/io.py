"""tf.io's names, on traced values (inside a function given to map) and in Dataset.parse_example."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, List, NamedTuple

import numpy as np

from penstock import _dtypes
from penstock._example import serialize_example
from penstock._registry import IO as _LOOKED_UP
from penstock._running import _daemon
from penstock._source import Source
from penstock._spec import _textproto
from penstock._spec._lines import user_line
from penstock._spec._stage import Stage, Trait, declare
from penstock._tracing import _language, _refusals, _trace
from penstock._tracing._functions import lookup as _lookup
from penstock._tracing._functions import names as _dir
from penstock._writer import TFRecordOptions, TFRecordWriter

if TYPE_CHECKING:
    # What is defined below stands over it.
    from penstock._io_names import *  # noqa: F403
    from penstock._numpy._tensor import Tensor

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "Source",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_compressed",
    "decode_csv",
    "decode_raw",
    "encode_base64",
    "extract_jpeg_shape",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_example",
    "string_to_number",
]


class FixedLenFeature:
    """A feature of an Example with a known number of values, as tf.io.FixedLenFeature.

    Args:
      shape: the sizes of the axes; () or [] for one value.
      dtype: penstock.int64, penstock.float32 or penstock.string. Also penstock.uint8, beyond tf.io: one
        byte string of exactly shape[0] bytes, as their values.
      default_value: one value for all, or as many as the shape holds; without it, a missing feature is
        an error.
    """

    __slots__ = ("shape", "dtype", "default_value")

    def __init__(self, shape: Any, dtype: Any, default_value: Any = None) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        self.dtype = _dtypes.as_dtype(dtype)
        self.default_value = default_value

    def __repr__(self):
        default = "" if self.default_value is None else f", default_value={self.default_value!r}"
        return f"FixedLenFeature({list(self.shape)}, {self.dtype}{default})"

    def _parsed_fields(self, key):
        """The fields of a ParsedFeature."""
        default = self.default_value
        if self.dtype is _dtypes.string:
            if default is not None:
                defaults = set(np.asarray(default, object).ravel().tolist())
                if len(defaults) != 1:
                    raise ValueError(f"feature {key!r}: a string feature has one default value for all")
                default = defaults.pop()
                default = default.encode() if isinstance(default, str) else bytes(default)
            shape = list(self.shape) or None
            return [("bytes", _textproto.Message(("default_value", default), ("shape", shape)))]
        name = self.dtype.name
        if name == "uint8":
            if len(self.shape) != 1:
                raise ValueError(f"feature {key!r}: a uint8 feature has the shape [bytes], not {list(self.shape)}")
            if default is not None:
                default = default if isinstance(default, bytes) else np.asarray(default, np.uint8).tobytes()
            return [("bytes", _textproto.Message(("length", self.shape[0]), ("default_value", default)))]
        if name not in ("int64", "float32"):
            raise ValueError(f"feature {key!r}: an Example holds int64, float32 and string, not {name}; cast it in a map")
        if default is not None:
            default = np.asarray(default, self.dtype).ravel().tolist()
        fields = _textproto.Message(("shape", list(self.shape)), ("default_value", default))
        return [({"int64": "int64", "float32": "float"}[name], fields)]


def _list_dtype(key, dtype):
    name = dtype.name
    if name not in ("int64", "float32", "string"):
        raise ValueError(f"feature {key!r}: an Example holds int64, float32 and string, not {name}; cast it in a map")
    return name


class FixedLenSequenceFeature:
    """Any number of values of `shape` each, as tf.io.FixedLenSequenceFeature: of shape (?, *shape).

    Parsed behind `batch` they are padded to the longest of the batch with default_value, zero or b"" by default. Parsed before it,
    batches of them are padded_batch or ragged_batch. A missing feature is empty; in parse_example allow_missing must be True, as in
    TensorFlow.
    """

    __slots__ = ("shape", "dtype", "allow_missing", "default_value")

    def __init__(self, shape: Any, dtype: Any, allow_missing: Any = False, default_value: Any = None) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        self.dtype = _dtypes.as_dtype(dtype)
        self.allow_missing = bool(allow_missing)
        self.default_value = default_value

    def __repr__(self):
        default = "" if self.default_value is None else f", default_value={self.default_value!r}"
        return f"FixedLenSequenceFeature({list(self.shape)}, {self.dtype}, allow_missing={self.allow_missing}{default})"

    def _parsed_fields(self, key):
        """The fields of a ParsedFeature."""
        dtype = _list_dtype(key, self.dtype)
        default = self.default_value
        if default is not None:
            if np.ndim(default) != 0:
                raise ValueError(f"feature {key!r}: a sequence's default value is a scalar, not {default!r}")
            default = np.asarray(default).item() if not isinstance(default, (str, bytes)) else default
            if dtype == "string":
                default = default.encode() if isinstance(default, str) else bytes(default)
            else:
                default = int(default) if dtype == "int64" else float(default)
        field = {"string": "bytes_value", "int64": "int_value", "float32": "float_value"}[dtype]
        fields = [("dtype", dtype), ("shape", list(self.shape) or None), ("allow_missing", self.allow_missing or None)]
        return [("sequence", _textproto.Message(*fields, (field, default)))]


class VarLenFeature(NamedTuple):
    """Any number of values, as tf.io.VarLenFeature: a penstock.SparseTensor of shape (?,) that holds them all."""

    dtype: Any

    def _parsed_fields(self, key):
        """The fields of a ParsedFeature."""
        return [("sparse", _textproto.Message(("dtype", _list_dtype(key, _dtypes.as_dtype(self.dtype)))))]


class SparseFeature(NamedTuple):
    """A penstock.SparseTensor whose indices and values are features of the same Example, as tf.io.SparseFeature.

    Attributes:
      index_key: the key of the indices, int64; or a list of keys, one for each axis.
      value_key: the key of the values.
      dtype: theirs.
      size: of the dense tensor: a number, or a list of them.
      already_sorted: whether the values are in the order of their indices; otherwise they are sorted.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False

    def _parsed_fields(self, key):
        """The fields of a ParsedFeature."""
        many = not isinstance(self.index_key, str)
        if many != (np.ndim(self.size) == 1):
            raise ValueError(f"feature {key!r}: index_key and size are both lists, or neither is")
        keys = list(self.index_key) if many else [self.index_key]
        sizes = [int(size) for size in self.size] if many else [int(self.size)]
        fields = [("dtype", _list_dtype(key, _dtypes.as_dtype(self.dtype))), ("index_key", keys)]
        fields += [("value_key", self.value_key), ("size", sizes), ("already_sorted", self.already_sorted or None)]
        return [("indexed", _textproto.Message(*fields))]


class RaggedFeature(
    NamedTuple(
        "RaggedFeature",
        [("dtype", Any), ("value_key", Any), ("partitions", tuple), ("row_splits_dtype", Any), ("validate", bool)],
    )
):
    """Any number of values, cut into rows by other features of the same Example, as tf.io.RaggedFeature.

    A penstock.RaggedTensor, or an array where all partitions are uniform and nothing is batched. Partitions are always checked,
    whatever validate says.

    Attributes:
      dtype: of the values.
      value_key: their key; by default that of the feature.
      row_splits_dtype: np.int32 or np.int64, of the row splits.
      partitions: RaggedFeature.RowSplits(key), RowLengths(key), RowStarts(key), RowLimits(key), ValueRowIds(key) or
        UniformRowLength(length), the outermost first.
    """

    RowSplits = NamedTuple("RowSplits", [("key", str)])
    RowLengths = NamedTuple("RowLengths", [("key", str)])
    RowStarts = NamedTuple("RowStarts", [("key", str)])
    RowLimits = NamedTuple("RowLimits", [("key", str)])
    ValueRowIds = NamedTuple("ValueRowIds", [("key", str)])
    UniformRowLength = NamedTuple("UniformRowLength", [("length", int)])

    def __new__(cls, dtype: Any, value_key: Any = None, partitions: Any = (), row_splits_dtype: Any = np.int32, validate: Any = False) -> "RaggedFeature":
        return super().__new__(cls, dtype, value_key, tuple(partitions), row_splits_dtype, validate)

    def _parsed_fields(self, key):
        """The fields of a ParsedFeature."""
        partitions = []
        for partition in self.partitions:
            kind = type(partition).__name__
            if kind not in _PARTITIONS:
                raise ValueError(f"feature {key!r}: a partition is RaggedFeature.RowSplits or one of its like, not {kind}")
            value = partition.length if kind == "UniformRowLength" else partition.key
            partitions.append(_textproto.Message((_PARTITIONS[kind], value)))
        fields = [("dtype", _list_dtype(key, _dtypes.as_dtype(self.dtype))), ("value_key", self.value_key)]
        splits = np.dtype(getattr(self.row_splits_dtype, "as_numpy_dtype", self.row_splits_dtype))
        if splits not in (np.int32, np.int64):
            raise ValueError(f"feature {key!r}: row splits are int32 or int64, not {splits}")
        narrow = ("int32_row_splits", True if splits == np.int32 else None)
        return [("ragged", _textproto.Message(*fields, ("partition", partitions), narrow))]


_PARTITIONS = {
    "RowSplits": "row_splits",
    "RowLengths": "row_lengths",
    "RowStarts": "row_starts",
    "RowLimits": "row_limits",
    "ValueRowIds": "value_rowids",
    "UniformRowLength": "uniform_row_length",
}

# By the names of TensorFlow's own classes, which have the same attributes.
_CLASSES = {
    feature.__name__: feature
    for feature in (FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature, VarLenFeature)
}


declare("parse_example", Trait.ROW_BY_ROW)
declare("parse_sequence_example", Trait.ROW_BY_ROW)


def _parsed_features(features, what="features"):
    """ParsedFeature messages of a dict of features."""
    if not isinstance(features, dict):
        raise ValueError(f"{what} is a dict from keys to FixedLenFeature and its like")
    parsed = []
    for key, feature in features.items():
        if not hasattr(feature, "_parsed_fields"):
            if type(feature).__name__ not in _CLASSES:
                kind = type(feature).__name__
                raise ValueError(f"feature {key!r} is a {kind}; there are {', '.join(_CLASSES)}")
            attributes = {name: getattr(feature, name) for name in feature._fields}
            feature = _CLASSES[type(feature).__name__](**attributes)
        parsed.append(_textproto.Message(("key", key), *feature._parsed_fields(key)))
    return parsed


def example_stage(features, name=None, line=None):
    """A parse_example stage for a dict of features."""
    if not isinstance(features, dict) or not features:
        raise ValueError("features is a dict from keys to FixedLenFeature and its like, with at least one")
    return Stage("parse_example", [("feature", _parsed_features(features))], name, line)


def parse_single_example(serialized: Any, features: Any, example_names: Any = None, name: Any = None) -> Any:
    """Parses the serialized tf.train.Example of each element, inside a function given to map.

    Args:
      serialized: a traced string; behind `batch`, one of each row.
      features: a dict from keys to FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, SparseFeature and RaggedFeature.

    Returns:
      A dict of traced values. Nothing else of the element is left beside them. Those of a VarLenFeature are lists inside of the
      function; handed on as they are they become SparseTensors.
    """
    if not isinstance(serialized, _trace.StandIn):
        raise _refusals.TraceError(
            "penstock.io.parse_single_example works on traced values",
            "call it inside a function given to map, or use Dataset.parse_example",
        )
    stage = example_stage(features, name, user_line())
    return serialized._trace.parse(serialized, stage, dict.fromkeys(features))


parse_example = parse_single_example


def sequence_example_stage(context_features, sequence_features, name=None, line=None):
    """A parse_sequence_example stage for two dicts of features, at least one of which is not empty."""
    context = _parsed_features(context_features or {}, "context_features")
    sequence = _parsed_features(sequence_features or {}, "sequence_features")
    if not context and not sequence:
        raise ValueError("context_features and sequence_features have at least one feature")
    return Stage("parse_sequence_example", [("context", context), ("sequence", sequence)], name, line)


def _parse_sequences(serialized, context_features, sequence_features, name, batched):
    if not isinstance(serialized, _trace.StandIn):
        raise _refusals.TraceError(
            "penstock.io.parse_sequence_example works on traced values", "call it inside a function given to map"
        )
    stage = sequence_example_stage(context_features, sequence_features, name, user_line())
    context, sequence = dict.fromkeys(context_features or {}), dict.fromkeys(sequence_features or {})
    if not batched:
        return serialized._trace.parse(serialized, stage, (context, sequence))
    dense = ("FixedLenSequenceFeature",)
    lengths = {key: None for key in sequence if type(sequence_features[key]).__name__ in dense}
    return serialized._trace.parse(serialized, stage, (context, sequence, lengths))


def parse_single_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None, example_name: Any = None, name: Any = None
) -> Any:
    """Parses the serialized tf.train.SequenceExample of each element, inside a function given to map in front of a batch.

    Args:
      serialized: a traced string.
      context_features: a dict from keys to FixedLenFeature and its like.
      sequence_features: a dict from keys to FixedLenSequenceFeature (values of a shape for each step), VarLenFeature (a
        SparseTensor of steps by values) and RaggedFeature, whose partitions are feature lists with as many steps.

    Returns:
      A pair of dicts of traced values. Nothing else of the element is left beside them.
    """
    return _parse_sequences(serialized, context_features, sequence_features, name, batched=False)


def parse_sequence_example(serialized: Any, context_features: Any = None, sequence_features: Any = None, example_names: Any = None, name: Any = None) -> Any:
    """The same behind a batch: each row's SequenceExample. FixedLenSequenceFeatures are padded to the longest of the batch.

    Returns:
      Three dicts of traced values: the context's, the feature lists', and the number of steps of each FixedLenSequenceFeature,
      int64 of shape (rows,).
    """
    return _parse_sequences(serialized, context_features, sequence_features, name, batched=True)


def decode_raw(input_bytes: Any, out_type: Any, little_endian: Any = True, fixed_length: Any = None, name: Any = None) -> Tensor:
    """The bytes of a traced string as numbers of out_type, shape (n,), as tf.io.decode_raw.

    Args:
      fixed_length: bytes, a multiple of the type's: longer strings are cut, shorter ones filled up with zeros.
    """
    dtype = _dtypes.as_dtype(out_type).name
    return _language.call("decode_raw", (input_bytes, dtype, bool(little_endian), fixed_length), {}, "penstock.io.decode_raw")


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: Any = 0,
    ratio: Any = 1,
    fancy_upscaling: Any = True,
    try_recover_truncated: Any = False,
    acceptable_fraction: Any = 1,
    dct_method: Any = "",
    name: Any = None,
) -> Tensor:
    """A part of a JPEG file's image, as tf.io.decode_and_crop_jpeg: only that part is decoded.

    Args:
      crop_window: [top, left, height, width], constants or traced integers.
    """
    arguments = {
        "channels": channels,
        "ratio": ratio,
        "fancy_upscaling": bool(fancy_upscaling),
        "dct_method": dct_method,
        "try_recover_truncated": bool(try_recover_truncated),
        "acceptable_fraction": acceptable_fraction,
        "crop_window": crop_window,
    }
    return _language.call("decode_jpeg", (contents,), arguments, "penstock.io.decode_and_crop_jpeg")


def extract_jpeg_shape(contents: Any, output_type: Any = np.int32, name: Any = None) -> Tensor:
    """The shape of a JPEG file's image, [height, width, channels], from its header alone, as tf.io.extract_jpeg_shape."""
    shape = _language.call("image_shape", (contents,), {}, "penstock.io.extract_jpeg_shape")
    return shape.astype(output_type)


def decode_compressed(bytes: Any, compression_type: Any = "", name: Any = None) -> Tensor:
    """What a traced string holds that is compressed by "GZIP" or "ZLIB", as tf.io.decode_compressed."""
    return _language.call("decode_compressed", (bytes, compression_type or ""), {}, "penstock.io.decode_compressed")


def decode_base64(input: Any, name: Any = None) -> Tensor:
    """The bytes that a traced text in base64 stands for, as tf.io.decode_base64; in the alphabet with + and / too."""
    return _language.call("decode_base64", (input,), {}, "penstock.io.decode_base64")


def encode_base64(input: Any, pad: Any = False, name: Any = None) -> Tensor:
    """A traced string's bytes as a text in base64, with - and _, as tf.io.encode_base64."""
    return _language.call("encode_base64", (input, bool(pad)), {}, "penstock.io.encode_base64")


def read_file(filename: Any, name: Any = None) -> Tensor:
    """The bytes of the file that a traced string names, as tf.io.read_file.

    A relative path counts from the folder that this process is in now, as the function is traced, as those of readers do from where these
    are made. (In a daemon that others have started, from that one's, unless this process has changed its folder.) Files are read when their
    element is computed, each time anew. A file may lie at an address (s3://, gs://, http://); then a worker waits for it.
    """
    folder = _daemon.moved_to()
    if folder is not None and isinstance(filename, _trace.StandIn):
        # Where this process has not moved the daemon is in the same folder, and a spec that does not name it is the same anywhere.
        before = os.path.join(folder, "").replace("\\", "\\\\") + "\\0"
        # What begins neither with "/" nor as an address does ("s3://").
        relative = "^(?::|[^/:]+(?::?$|:?/$|/|:[^/]|:/[^/]))"
        filename = _language.call("regex_replace", (filename, relative, before), {}, "penstock.io.read_file")
    return _language.call("read_file", (filename,), {}, "penstock.io.read_file")


def parse_tensor(serialized: Any, out_type: Any, name: Any = None, *, shape: Any = ()) -> Tensor:
    """The tensor of a traced string that tf.io.serialize_tensor has written, as tf.io.parse_tensor.

    Args:
      shape: its sizes, None for those that only the data tells. TensorFlow needs none, since there a tensor may have any number of
        axes.
    """
    sizes = [-1 if size is None else int(size) for size in shape]
    dtype = _dtypes.as_dtype(out_type).name
    return _language.call("parse_tensor", (serialized, dtype, sizes or None), {}, "penstock.io.parse_tensor")


def string_to_number(input: Any, out_type: Any = np.float32, name: Any = None) -> Tensor:
    """The number that a traced string is, as tf.strings.to_number."""
    return _language.call("string_to_number", (input, _dtypes.as_dtype(out_type).name), {}, "penstock.io.string_to_number")


def decode_csv(records: Any, record_defaults: Any, field_delim: Any = ",", use_quote_delim: Any = True, na_value: Any = "", select_cols: Any = None, name: Any = None) -> List[Tensor]:
    """The fields of a traced string that is a record of comma-separated values, a list of scalars, as tf.io.decode_csv.

    Args:
      record_defaults: one for each column that is read: a dtype (float32, float64, int32, int64, string) or an empty array of it where a
        value is required, or a value of that type, alone or in a list, that stands for a missing one. Python's numbers are
        float32 and int32.
      field_delim: one character.
      use_quote_delim: whether quotation marks may enclose fields.
      na_value: a text that stands for a missing value, besides the empty one.
      select_cols: which columns are read, rising; by default all. Without it a record has as many fields as record_defaults.
    """
    columns = list(range(len(record_defaults))) if select_cols is None else [int(column) for column in select_cols]
    if len(columns) != len(record_defaults):
        raise ValueError(f"record_defaults has one for each of select_cols: {len(record_defaults)} and {len(columns)}")
    keywords = {} if field_delim == "," else {"field_delim": field_delim}
    if not use_quote_delim:
        keywords["use_quote_delim"] = False
    if na_value:
        keywords["na_value"] = na_value
    # Where columns are chosen TensorFlow passes over all others, however many.
    num_columns = len(columns) if select_cols is None else 0
    values = []
    for column, default in zip(columns, record_defaults):
        dtype, text = _csv_default(default)
        arguments = (records, num_columns, column, dtype, text)
        values.append(_language.call("decode_csv", arguments, dict(keywords), "penstock.io.decode_csv"))
    return values


def _csv_default(default):
    """The name of a column's type, and the text of its default or None."""
    if isinstance(default, (list, tuple)):
        default = default[0] if len(default) == 1 else np.asarray(default, np.float32)
    if isinstance(default, (type, np.dtype)) or default is _dtypes.string or hasattr(default, "as_numpy_dtype"):
        return _dtypes.as_dtype(default).name, None
    if isinstance(default, (str, bytes)):
        return "string", default.decode() if isinstance(default, bytes) else default
    value = np.asarray(default)
    if value.dtype.kind in "OSU" and not value.size:
        return "string", None
    narrow = {"float64": "float32", "int64": "int32"}
    dtype = value.dtype.name if isinstance(default, (np.ndarray, np.generic)) else narrow.get(value.dtype.name)
    if dtype not in ("float32", "float64", "int32", "int64") or value.size > 1:
        raise TypeError(f"a record default is a dtype, a number or a string, not {default!r}")
    return dtype, repr(value.item()) if value.size else None


if not TYPE_CHECKING:

    def __getattr__(name):
        return _lookup(name, "penstock.io")


def __dir__():
    return _dir(__all__, _LOOKED_UP)
