"""Features of JSON documents: what decode_json and Dataset.json_lines are told to decode."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np

from penstock import _dtypes
from penstock._spec import _textproto
from penstock._spec._lines import user_line
from penstock._spec._stage import Stage, Trait, declare
from penstock._tracing import _refusals, _trace

declare("decode_json", Trait.ROW_BY_ROW, Trait.ONE_BY_ONE)

_FIELDS = {"bool": "bools", "int32": "ints", "int64": "ints", "float32": "floats", "float64": "floats", "string": "strings"}


class JsonFeature:
    """A value of a JSON document, or a list of values.

    Args:
      dtype: penstock.bool, int32, int64, float32, float64 or string. Integers are numbers without fraction and exponent; floats are any numbers, rounded
        as np.float32(json.loads(text)) rounds them. A number out of the type's range is an error.
      shape: the sizes of the axes; () for one value. None or -1 is any size: [None] is a list, [None, None] a list of lists (a penstock.RaggedTensor), [None, 3] a
        list of lists of three. Sizes of any size stand first.
      path: where the value stands; by default the feature's key. Keys are joined by dots: "user.name". "[]" stands for each value of a list and makes an
        axis, "[2]" for the one at place 2: "messages[].content", "scores[0]". "" is the document itself. A backslash makes the next character part of a key.
      default_value: what takes the place of a value that is missing or null: one for all, or one for each of an array of known size. Without it that is an error.
      allow_missing: whether a missing or null list of any size is an empty one. Otherwise it is an error.
      refuse_null: whether null is an error where a missing value is none.
      from_text: whether a number or bool may stand in quotation marks, as "7" or "true".
    """

    __slots__ = ("dtype", "shape", "path", "default_value", "allow_missing", "refuse_null", "from_text", "_form")

    def __init__(
        self,
        dtype: Any,
        shape: Any = (),
        path: Any = None,
        default_value: Any = None,
        *,
        allow_missing: bool = False,
        refuse_null: bool = False,
        from_text: bool = False,
    ) -> None:
        self.dtype = _dtypes.as_dtype(dtype)
        if self.dtype.name not in _FIELDS:
            raise ValueError(f"a JSON feature is of {', '.join(_FIELDS)}, not {self.dtype.name}; cast it in a map")
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        self.shape = tuple(-1 if size is None else int(size) for size in sizes)
        if path is not None and not isinstance(path, str):
            raise TypeError(f"path is a text, not {path!r}")
        self.path = path
        self.default_value = default_value
        self.allow_missing = bool(allow_missing)
        self.refuse_null = bool(refuse_null)
        self.from_text = bool(from_text)
        self._form = None

    def __repr__(self):
        given = [f"{self.dtype!r}"] + ([f"{list(self.shape)}"] if self.shape else [])
        given += [f"{name}={getattr(self, name)!r}" for name in ("path", "default_value") if getattr(self, name) is not None]
        given += [f"{name}=True" for name in ("allow_missing", "refuse_null", "from_text") if getattr(self, name)]
        return f"JsonFeature({', '.join(given)})"

    def _message(self, key):
        """The JsonFeature message."""
        fields = [("name", key), ("path", self.path), ("dtype", self.dtype.name), ("shape", list(self.shape) or None), ("form", self._form)]
        if self.default_value is not None:
            fields.append(("default_value", _textproto.Message((_FIELDS[self.dtype.name], self._defaults(key)))))
        flags = [(name, getattr(self, name) or None) for name in ("allow_missing", "refuse_null", "from_text")]
        return _textproto.Message(*fields, *flags)

    def _defaults(self, key):
        values = np.asarray(self.default_value, object).ravel().tolist()
        if self.dtype is _dtypes.string:
            if wrong := [value for value in values if not isinstance(value, (str, bytes))]:
                raise ValueError(f"feature {key!r}: default_value has {wrong[0]!r}, which is no string")
            return [value.encode() if isinstance(value, str) else value for value in values]
        kinds = {"b": (bool, np.bool_), "i": (int, np.integer), "f": (int, float, np.integer, np.floating)}[self.dtype.kind]
        for value in values:
            if not isinstance(value, kinds) or self.dtype.kind != "b" and isinstance(value, (bool, np.bool_)):
                raise ValueError(f"feature {key!r}: default_value has {value!r}, which is no {self.dtype.name}")
            if self.dtype.kind == "i" and not np.iinfo(self.dtype).min <= value <= np.iinfo(self.dtype).max:
                raise ValueError(f"feature {key!r}: default_value has {value!r}, which {self.dtype.name} does not hold")
        return [{"b": bool, "i": int, "f": float}[self.dtype.kind](value) for value in values]


def _with_form(feature, form):
    feature._form = _textproto.Bare(form)
    return feature


def _from_io(key, feature):
    """The same of a feature as parse_example takes it."""
    kind = type(feature).__name__
    if kind == "FixedLenFeature":
        return JsonFeature(feature.dtype, feature.shape, default_value=feature.default_value)
    if kind == "VarLenFeature":
        return _with_form(JsonFeature(feature.dtype, [None], allow_missing=True), "SPARSE")
    if kind == "FixedLenSequenceFeature":
        shape = [None, *feature.shape]
        sequence = JsonFeature(feature.dtype, shape, default_value=feature.default_value, allow_missing=feature.allow_missing)
        return _with_form(sequence, "PADDED")
    if kind == "RaggedFeature" and not feature.partitions:
        return JsonFeature(feature.dtype, [None], feature.value_key, allow_missing=True)
    if kind in ("RaggedFeature", "SparseFeature"):
        raise ValueError(f"feature {key!r}: a {kind} of several keys is not for JSON, whose lists nest: JsonFeature(dtype, [None, None])")
    return None


def _feature(key, feature):
    if isinstance(feature, JsonFeature):
        return feature
    made = _from_io(key, feature)
    if made is not None:
        return made
    try:
        return JsonFeature(feature)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"feature {key!r} is {feature!r}; expected a dtype ({', '.join(_FIELDS)}), JsonFeature, or penstock.io's FixedLenFeature, VarLenFeature, "
        "FixedLenSequenceFeature or RaggedFeature"
    )


def json_errors(errors):
    """The field `errors`."""
    if errors not in ("strict", "replace"):
        raise ValueError(f"errors is 'strict' or 'replace': {errors!r}")
    return None if errors == "strict" else errors


def json_stage(features, errors="strict", name=None, line=None):
    """A decode_json stage for a dict of features."""
    if not isinstance(features, dict) or not features:
        raise ValueError("features is a dict from names to dtypes or JsonFeatures, with at least one")
    if wrong := [key for key in features if not isinstance(key, str) or not key]:
        raise ValueError(f"features is a dict from names, not {wrong[0]!r}")
    messages = [_feature(key, feature)._message(key) for key, feature in features.items()]
    return Stage("decode_json", [("feature", messages), ("errors", json_errors(errors))], name, line)


def decode_json(text: Any, features: Dict[str, Any], errors: str = "strict", name: Any = None) -> Any:
    """Decodes the JSON document of each element, inside a function given to map: `lambda x: penstock.decode_json(x["text"], {"id": penstock.int64})`.

    What is accepted is what json.loads accepts; of a key that an object has twice the last one counts. The document is checked whole, but only the
    features listed are decoded. Not in tf.data.

    Args:
      text: a traced string; behind `batch`, one of each row.
      features: a dict from names to what stands there: a dtype for one value, a penstock.JsonFeature, or penstock.io's FixedLenFeature, VarLenFeature,
        FixedLenSequenceFeature and RaggedFeature. A name is the path of its value ("user.name"), unless the feature has one.
      errors: "strict": bytes that are not UTF-8, and lone surrogates, are an error of the element; "replace": they become U+FFFD.

    Returns:
      A dict of traced values. Nothing else of the element is left beside them.
    """
    stage = json_stage(features, errors, name, user_line())
    if not isinstance(text, _trace.StandIn):
        raise _refusals.TraceError(
            "penstock.decode_json works on traced values", "call it inside a function given to map, or use Dataset.decode_json"
        )
    return text._trace.parse(text, stage, dict.fromkeys(features))
