"""Calls of the expression language's functions: arguments by TensorFlow's and NumPy's names become its own."""

import numpy as np

from penstock._registry import FUNCTIONS, PARAMETERS
from penstock._tracing._constants import holds_strings, literal, texts, to_node, vocabulary, with_type
from penstock._tracing._refusals import OUTSIDE, TraceError, near
from penstock._tracing._trace import Node, StandIn, calls, find_trace, stand_in

# Parameters that are computed with, where a list's type counts; of others, sizes for one, only its numbers do.
_OPERANDS = {"x", "a", "b", "c", "d", "y", "v", "w", "low", "high", "on_value", "off_value", "weights", "image", "mean", "std"}

# Arguments of TensorFlow's and NumPy's functions that ours lack, with the values that mean nothing.
_NEUTRAL = {
    "name": (None,),
    "out": (None,),
    "keepdims": (False,),
    "dtype": (None,),
    "casting": ("same_kind",),
    "order": ("C", "K", None),
    "preserve_aspect_ratio": (False,),
    "antialias": (False,),
    "try_recover_truncated": (False,),
    "acceptable_fraction": (1, 1.0),
    "subok": (True,),
    "where": (True,),
}
# TensorFlow's and NumPy's names of parameters, by ours.
_SYNONYMS = {"images": "image", "a_min": "low", "a_max": "high", "min": "low", "max": "high", "newshape": "shape", "correction": "ddof"}


def _are_words(value):
    """Whether texts can be looked up in it: several that differ."""
    return holds_strings(value) and np.ndim(value) == 1 and len({*value.tolist()}) == len(value)


def _compare_with_words(name, args, shown):
    """A traced string beside an array of words that differ: a flag for each word."""
    words, text = args if holds_strings(args[0]) else reversed(args)
    words = vocabulary(texts(words))
    number = call("string_lookup", (text,), {"vocabulary": words, "default": -1}, shown)
    return call(name, (number, np.arange(len(words))), {}, shown)


def call(name, args, kwargs, shown=None):
    """A call of the expression language's function `name`; `shown` is what the user has called."""
    shown = shown or name
    if name in ("equal", "not_equal") and any(_are_words(arg) for arg in args):
        return _compare_with_words(name, args, shown)
    trace = find_trace(list(args) + list(kwargs.values()))
    if trace is None and name in FUNCTIONS and all(default is not ... for _, default in PARAMETERS[name]):
        # One that draws takes no tensor.
        trace = next(reversed(getattr(calls, "traces", ())), None)
    if trace is None:
        raise TraceError(f"{shown} is called without a traced value", "it works inside a function given to map")
    if name not in FUNCTIONS:
        raise TraceError(f"{shown} is not part of the expression language", near(name, FUNCTIONS) or OUTSIDE)
    known = PARAMETERS[name]
    names = [parameter for parameter, _ in known]
    if len(args) > len(names):
        raise TraceError(f"{shown} takes {len(names)} arguments, not {len(args)}", f"it is {FUNCTIONS[name][0]}")
    given = dict(zip(names, args))
    for key, value in kwargs.items():
        key = key if key in names else _SYNONYMS.get(key, key)
        if key in names:
            if key in given:
                raise TraceError(f"{shown} is given {key} twice", f"it is {FUNCTIONS[name][0]}")
            given[key] = value
        elif not any(type(value) is type(neutral) and value == neutral for neutral in _NEUTRAL.get(key, ())):
            raise TraceError(f"{shown} has no argument {key}={value!r}", f"it is {FUNCTIONS[name][0]}")
    inputs, keywords, named, positional = [], [], [], True
    for parameter, default in known:
        if parameter not in given:
            if default is ...:
                raise TraceError(f"{shown} lacks the argument {parameter}", f"it is {FUNCTIONS[name][0]}")
            positional = False
            continue
        value = given[parameter]
        if value is None and default is ...:
            raise TraceError(f"{shown}: {parameter} is None", f"it is {FUNCTIONS[name][0]}")
        if parameter in ("dtype", "out_type") and not isinstance(value, str):
            # NumPy's types and dtypes, and TensorFlow's.
            value = np.dtype(getattr(value, "as_numpy_dtype", value)).name
        if parameter == "axis":
            value = _counted_from_last(value, given.get("x", given.get("a")), name)
        if parameter == "shape" and default is None and isinstance(value, (list, tuple)) and not value:
            # Left out, it is a scalar's.
            value = None
        if value is None or default is not ... and not isinstance(value, (StandIn, np.ndarray)) and value == default:
            positional = False
        elif positional:
            value = with_type(value) if parameter in _OPERANDS else value
            inputs.append(to_node(trace, value, f"{shown}: {parameter}"))
        elif find_trace([value]) is not None:
            named.append(to_node(trace, value, f"{shown}: {parameter}"))
            keywords.append((parameter, None))
        else:
            text = literal(value.tolist() if isinstance(value, np.ndarray) else value)
            if text is None:
                raise TraceError(f"{shown}: {parameter} is not a constant", f"it is {FUNCTIONS[name][0]}")
            keywords.append((parameter, text))
    return stand_in(trace, Node(trace, "call", name, inputs + named, keywords))


def _counted_from_last(axis, array, name):
    """An axis as the language has it, whose rows may be of a batch: from -1 down. Others stay as they are, to be refused."""
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or axis < 0 or not isinstance(array, (StandIn, np.ndarray)):
        return axis
    ndim = array.ndim + (name == "stack")  # which makes a new one
    return int(axis) - ndim if axis < ndim else axis


SYMBOLS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "bitwise_or": "|", "bitwise_xor": "^", "bitwise_and": "&", "add": "+", "subtract": "-", "multiply": "*",
    "divide": "/", "floor_divide": "//", "remainder": "%", "power": "**", "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip
