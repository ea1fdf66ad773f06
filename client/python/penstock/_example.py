"""tf.train.Example messages from Python's values, without protobuf.

tensorflow/core/example/example.proto and feature.proto describe the message; io/record/example_builder.cc writes the same bytes.
"""

import math

import numpy as np

_BYTES, _FLOAT, _INT64 = 1, 2, 3


def serialize_example(features):
    """A tf.train.Example as bytes, for TFRecordWriter.write.

        penstock.io.serialize_example({"image": jpeg, "label": 3, "box": [0.1, 0.2, 0.5, 0.6], "tags": ["cat", "outside"]})

    The features stand in the order of their names, as those of `penstock write --jsonl` do.

    Args:
      features: a dict from names to values: bytes or str (UTF-8), integers or bools (int64), floats (float32), or lists, tuples or arrays
        of these. Arrays are flattened in C order; FixedLenFeature gives the shape back. An empty list has no type, and is parsed as if the
        feature were missing; an empty array has that of its dtype.

    Raises:
      TypeError: a value is none of these.
      ValueError: an integer beyond int64, or a number beyond float32.
    """
    if not isinstance(features, dict):
        raise TypeError(f"features are a dict from names to values, not {type(features).__name__}")
    entries = []
    for name, value in features.items():
        key = name if isinstance(name, bytes) else name.encode() if isinstance(name, str) else None
        if key is None:
            raise TypeError(f"a feature's name is a str, not {name!r}")
        entries.append((key, _field(1, _field(1, key) + _field(2, _feature(name, value)))))
    return _field(1, b"".join(entry for _, entry in sorted(entries)))


def _feature(name, value):
    """A Feature message."""
    kind, values = _values(name, value)
    if kind is None:
        return b""
    if kind == _BYTES:
        return _field(kind, b"".join(_field(1, item) for item in values))
    if len(values) == 0:
        return _field(kind, b"")
    return _field(kind, _field(1, values.astype("<f4").tobytes() if kind == _FLOAT else _varints(values)))


def _values(name, value):
    """The kind of a feature's list, or None, and its values: a list of bytes or an array."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return _BYTES, [_bytes(name, value)]
    if value is None:
        raise TypeError(f"feature {name!r} is None: leave it out")
    if isinstance(value, (list, tuple)):
        if not value:
            return None, []
        if any(isinstance(item, (str, bytes, bytearray, memoryview)) for item in value):
            return _BYTES, [_bytes(name, item) for item in value]
    try:
        array = np.asarray(value)
    except ValueError:
        raise TypeError(f"feature {name!r} is a list of lists of several lengths: write one flat list, and their lengths") from None
    if array.dtype.kind in "SU":
        # NumPy's types of strings drop zeros at the end, and make strings of numbers beside them.
        array = np.array(value, object)
    if array.dtype.kind in "fO" and array is not value or array.dtype.kind == "O":
        array = _numbers(name, value, array)
    if array.dtype.kind == "O":
        return _objects(name, array)
    array = array.ravel()
    if array.dtype.kind in "biu":
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"feature {name!r}: integer beyond int64: {array.max()}")
        return _INT64, array.astype(np.int64)
    if array.dtype.kind != "f" and array.dtype.name != "bfloat16":
        raise TypeError(f"feature {name!r} is of type {array.dtype}: an Example holds strings, integers and floats")
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    beyond = np.isinf(narrow) & np.isfinite(array)
    if beyond.any():
        raise ValueError(f"feature {name!r}: number beyond float32: {array[beyond][0]!r}")
    return _FLOAT, narrow


def _leaves(value):
    """What lists hold in the end: Python's objects, NumPy's scalars, and arrays of numbers."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        yield value
        return
    for item in value:
        yield from _leaves(item)


def _is_integer(item):
    return isinstance(item, (int, np.integer, np.bool_)) or isinstance(item, np.ndarray) and item.dtype.kind in "biu"


def _numbers(name, value, array):
    """The array that NumPy has made of a list, but of integers where these are all that it holds: of several types, or beyond int64, they are
    floats or objects there. Integers beyond int64 among floats are floats."""
    if array.size and all(map(_is_integer, _leaves(value))):
        items = np.array(value, object).ravel().tolist()
        beyond = next((item for item in items if not -(1 << 63) <= int(item) < 1 << 63), None)
        if beyond is not None:
            raise ValueError(f"feature {name!r}: integer beyond int64: {beyond}")
        return np.array([int(item) for item in items], np.int64)
    if array.dtype.kind == "O" and array.size and all(isinstance(item, float) or _is_integer(item) for item in array.ravel().tolist()):
        try:
            return array.astype(np.float64)
        except OverflowError:
            raise ValueError(f"feature {name!r}: number beyond float32: {max(array.ravel().tolist(), key=abs)}") from None
    return array


def _objects(name, array):
    """The same of an array of Python's objects, which strings are too."""
    items = array.ravel().tolist()
    if items and not any(isinstance(item, (str, bytes)) for item in items):
        kind = next((type(item) for item in items if not isinstance(item, (int, float))), type(items[0]))
        raise TypeError(
            f"feature {name!r} holds {_a(kind)}: an Example holds strings, integers, floats, and lists and arrays of them"
        )
    return _BYTES, [_bytes(name, item) for item in items]


def _bytes(name, value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"feature {name!r} holds strings and {_a(type(value))}")


def _a(kind):
    name = kind.__name__
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def _field(number, content):
    """A length-delimited field; numbers are below 16."""
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def _varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varints(values):
    """An array of int64 as varints one behind the other."""
    if len(values) <= 4:
        return b"".join(_varint(int(value) & (1 << 64) - 1) for value in values)
    left = values.view(np.uint64)
    most = max(1, math.ceil(int(left.max()).bit_length() / 7))
    table = np.zeros((len(left), most), np.uint8)
    used = np.zeros(table.shape, bool)
    for i in range(most):
        used[:, i] = True if i == 0 else left > 0
        table[:, i] = (left & np.uint64(0x7F)).astype(np.uint8)
        left = left >> np.uint64(7)
        table[:, i] |= (left > 0).astype(np.uint8) << 7
    return table[used].tobytes()
