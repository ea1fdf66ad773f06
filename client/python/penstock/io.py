"""tf.io's names, on traced values (inside a function given to map) and in Dataset.parse_example."""

import numpy as np

from penstock import _dtypes, _textproto, _trace
from penstock._functions import lookup as _lookup
from penstock._stage import Stage, user_line


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

    def __init__(self, shape, dtype, default_value=None):
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


class FixedLenSequenceFeature:
    """A list of any length, of shape (?,), as tf.io.FixedLenSequenceFeature([], dtype, allow_missing=True).

    A missing feature is an empty list. Batches of them are padded_batch or ragged_batch.
    """

    __slots__ = ("shape", "dtype")

    def __init__(self, shape, dtype, allow_missing=False, default_value=None):
        if tuple(shape) != () or not allow_missing or default_value is not None:
            raise ValueError("what exists is FixedLenSequenceFeature([], dtype, allow_missing=True), without default_value")
        self.shape = ()
        self.dtype = _dtypes.as_dtype(dtype)

    def __repr__(self):
        return f"FixedLenSequenceFeature([], {self.dtype}, allow_missing=True)"

    def _parsed_fields(self, key):
        """The fields of a ParsedFeature."""
        kind = {"string": "bytes", "int64": "int64", "float32": "float"}.get(self.dtype.name)
        if kind is None:
            raise ValueError(f"feature {key!r}: an Example holds int64, float32 and string, not {self.dtype.name}")
        return [(kind, _textproto.Message(("variable_length", True)))]


# By the names of TensorFlow's own classes, which have the same attributes.
_CLASSES = {"FixedLenFeature": FixedLenFeature, "FixedLenSequenceFeature": FixedLenSequenceFeature}


def example_stage(features, name=None, line=None):
    """A parse_example stage for a dict of features."""
    if not isinstance(features, dict) or not features:
        raise ValueError("features is a dict from keys to FixedLenFeature, with at least one")
    parsed = []
    for key, feature in features.items():
        if not hasattr(feature, "_parsed_fields"):
            if type(feature).__name__ not in _CLASSES:
                kind = type(feature).__name__
                raise ValueError(f"feature {key!r} is a {kind}; there are FixedLenFeature and FixedLenSequenceFeature")
            attributes = {name: getattr(feature, name) for name in feature._fields}
            feature = _CLASSES[type(feature).__name__](**attributes)
        parsed.append(_textproto.Message(("key", key), *feature._parsed_fields(key)))
    return Stage("parse_example", [("feature", parsed)], name, line)


def parse_single_example(serialized, features, example_names=None, name=None):
    """Parses the serialized tf.train.Example of each element, inside a function given to map.

    Args:
      serialized: a traced string.
      features: a dict from keys to FixedLenFeature.

    Returns:
      A dict of traced values. Nothing else of the element is left beside them.
    """
    if not isinstance(serialized, _trace.Tensor):
        raise _trace.TraceError(
            "penstock.io.parse_single_example works on traced values",
            "call it inside a function given to map, or use Dataset.parse_example",
        )
    stage = example_stage(features, name, user_line())
    return serialized._trace.parse(serialized, stage, list(features))


parse_example = parse_single_example


def __getattr__(name):
    return _lookup(name, "penstock.io")
