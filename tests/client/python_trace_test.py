"""Tracing: expressions against NumPy's results, the text they become, and errors that name a line."""

import copy
import functools
import json
import logging
import math
import os
import pickle
import random
import re
import reprlib
import string
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

import penstock
from penstock import _control, _registry
from penstock._tracing import _refusals

NUMBERS = penstock.Dataset.range(-3, 9)
PLAIN = np.arange(-3, 9)
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
TABLE = np.arange(12, dtype=np.int16).reshape(3, 4)


def run(function, rows=PLAIN):
    """What `function` makes of each number, as one array with the numbers as first axis."""
    return next(iter(NUMBERS.map(function).batch(len(rows))))


# Functions of an int64 scalar that NumPy and a trace give the same results for.
SAME = [
    lambda x: x + 1,
    lambda x: 1 + x,
    lambda x: x - 2,
    lambda x: 2 - x,
    lambda x: x * 3 * x,
    lambda x: x / 4,
    lambda x: 12 / (x + 4),
    lambda x: x // 4,
    lambda x: 100 // (x + 4),
    lambda x: x % 5,
    lambda x: 17 % (x + 4),
    lambda x: x**3,
    lambda x: 2.0**x,
    lambda x: -x,
    lambda x: +x,
    lambda x: ~x,
    lambda x: abs(x),
    lambda x: x & 6,
    lambda x: 5 | x,
    lambda x: x ^ 3,
    lambda x: divmod(x, 4)[0] + divmod(x, 4)[1] * 100,
    lambda x: (x > 2) & (x < 6) | (x == -1),
    lambda x: (x >= 2) ^ (x != 3),
    lambda x: np.where(x > 2, x, -x),
    lambda x: np.where(x > 2, 1.5, x),
    lambda x: np.maximum(x, 2) + np.minimum(3, x),
    lambda x: np.tanh(x / 3),
    lambda x: np.sin(x) + np.cos(x / 2) * np.arctan2(x, 3.0) + np.cbrt(x) + np.hypot(x, 2.0),
    lambda x: np.log2(np.abs(x) + 1) + np.expm1(x / 9) + np.exp2(x / 2),
    lambda x: np.fmax(x / 0.0, 1.0) + np.fmod(x, 2.5) + np.copysign(2.0, x),
    lambda x: np.exp(x) + np.log1p(np.abs(x)),
    lambda x: np.sqrt(np.square(x)),
    lambda x: np.sign(x) * np.floor(x / 2) - np.ceil(x / 2) + np.trunc(x / 2) + np.rint(x / 2),
    lambda x: np.round(x / 4),
    lambda x: round(x / 4) + round(x / 4, 0),
    lambda x: np.clip(x, 0, 5),
    lambda x: np.clip(x, None, 5),
    lambda x: np.clip(x, 1, None),
    lambda x: x.clip(min=0),
    lambda x: np.logical_and(x, x > 1),
    lambda x: np.logical_or(x > 4, np.logical_not(x > 0)),
    lambda x: np.isnan(x / 1.0) | np.isfinite(x / 1.0),
    lambda x: np.isinf(1.0 * x),
    lambda x: np.reciprocal(x + 0.5),
    lambda x: np.zeros_like(x) + np.ones_like(x) * 2,
    lambda x: np.full_like(x, 7),
    lambda x: np.add(x, 1) * np.subtract(5, x) - np.true_divide(x, 2) + np.power(x, 2),
    lambda x: np.multiply(x, 2, dtype=np.float64),
    lambda x: np.add(np.clip(x * 90, 0, 200).astype(np.uint8), np.uint8(180), dtype=np.int32),
    lambda x: np.mean(x / np.float32(3), dtype=np.float64),
    lambda x: np.round(x) + x.round(),
    lambda x: np.fabs(x),
    lambda x: np.nan_to_num(x),
    lambda x: np.nan_to_num((x - 3) / (x - x), posinf=5, nan=-1),
    lambda x: np.float32(0.1) * x.astype(np.float32),
    lambda x: np.int8(3) + x.astype("int8"),
    lambda x: (x + 3).astype(np.uint8) + 1,  # casts saturate, where NumPy's wrap
    lambda x: x.astype(float) / 3,
    lambda x: x.astype(bool),
    lambda x: np.minimum(x, np.inf),
    lambda x: x * np.float64("inf") > 0,
    lambda x: np.uint64(3) + abs(x).astype(np.uint64),
    lambda x: x + True,
    lambda x: np.bool_(True) & (x > 1),
    lambda x: x - -3,
    lambda x: -3 * x,
    lambda x: x * 1e-3 + 2.5,
    lambda x: np.int64(-(2**63)) + abs(x) * np.int64(1),
    lambda x: abs(x).astype(np.uint64) + np.uint64(2**63 + 1),
    lambda x: abs(x).astype(np.uint64) // np.uint64(2) + np.uint64(2**64 - 9),
    lambda x: np.stack([x, x + 1]),
    lambda x: np.stack([x, x / 2, 3, np.int8(4), x * x, x > 1]),
    lambda x: np.stack([x]),
    lambda x: ((x + 1) * (x + 1) + (x + 1)) * 2,
]


@pytest.mark.parametrize("function", SAME, ids=range(len(SAME)))
def test_scalars_are_numpys(function):
    found = run(function)
    with np.errstate(all="ignore"):
        wanted = np.array([function(np.int64(x)) for x in PLAIN])
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-15 if found.dtype.kind == "f" else 0)


# Functions that begin with an array of constants, of shape (3, 4).
ARRAYS = [
    lambda x, t: t + x,
    lambda x, t: (t + x)[1],
    lambda x, t: (t + x)[:, 1:3],
    lambda x, t: (t + x)[..., -1],
    lambda x, t: (t + x)[::-1, ::2],
    lambda x, t: (t + x)[:, [2, 0, 0]],
    lambda x, t: (t + x)[:, np.array([3, 1])],
    lambda x, t: (t + x)[None, 2, :, None],
    lambda x, t: (t + x).reshape(4, 3),
    lambda x, t: (t + x).reshape((2, -1)),
    # NumPy's order F.
    lambda x, t: np.reshape((t + x).T, (6, 2)[::-1]).T,
    lambda x, t: np.ravel((t + x).T),
    lambda x, t: np.reshape(t + x, (6, 2)),
    lambda x, t: np.reshape(t + x, -1),
    lambda x, t: (t + x).ravel() * 2,
    lambda x, t: (t + x).T,
    lambda x, t: np.transpose(t + x, (1, 0)),
    lambda x, t: (t + x).reshape(2, 3, 2).transpose(2, 0, 1),
    lambda x, t: np.moveaxis((t + x).reshape(2, 3, 2), -1, 0),
    lambda x, t: np.swapaxes(t + x, 0, 1),
    lambda x, t: np.flip(t + x, 1),
    lambda x, t: np.flip(t + x),
    lambda x, t: np.fliplr(t + x),
    lambda x, t: np.expand_dims(t + x, (0, -1)),
    lambda x, t: np.squeeze((t + x)[None, :, :, None]),
    lambda x, t: np.squeeze((t + x)[None], axis=0),
    lambda x, t: (t + x) * np.array([1, 2, 3, 4]),
    lambda x, t: np.array([[1.5], [2.5], [3.5]], np.float32) * (t + x),
    lambda x, t: np.unpackbits(abs(t + x).astype(np.uint8), axis=-1),
    lambda x, t: (t + x).shape[0] * (t + x).ndim * (t + x),
    lambda x, t: ((t + x).astype(np.float32) - MEAN[0]) / MEAN[1],
    lambda x, t: np.where((t + x) > 4, t, 0),
    lambda x, t: np.sum(t + x, axis=0),
    lambda x, t: (t + x).sum(),
    lambda x, t: (t + x).mean(axis=1, keepdims=True) - np.std(t + x),
    lambda x, t: np.max(t + x, axis=-1) - np.amin(t + x, axis=-1) + np.prod(t + x, axis=1),
    lambda x, t: np.any(t + x > 9, axis=0) | np.all(t + x > 1, axis=0),
    lambda x, t: np.var(t + x, axis=-1, ddof=1),
    lambda x, t: np.add.reduce(t + x),
    lambda x, t: np.pad(t + x, ((1, 0), (2, 3)), mode="reflect"),
    lambda x, t: np.pad(t + x, 1, constant_values=7),
    lambda x, t: np.matmul((t + x).astype(np.float32), np.ones((4, 2), np.float32)),
    lambda x, t: t[1] + (t + x)[0],
    lambda x, t: np.argmax(abs(t + x)),
    lambda x, t: np.argmax(-abs(t + x), axis=0),
    lambda x, t: (t % 3 + x).argmax(axis=1),
    lambda x, t: (t + x > 4).argmax(axis=-1),
    lambda x, t: np.argmin(abs(t + x)),
    lambda x, t: np.argmin(abs(t + x).astype(np.uint8), axis=0),
    lambda x, t: (abs(t + x) / 2.0).argmin(1),
    lambda x, t: np.argmin(t + x > 4, 0),
    lambda x, t: np.cumsum(t + x),
    lambda x, t: np.cumsum(t + x, axis=0),
    lambda x, t: (t + x).cumsum(axis=1, dtype=np.float32),
    lambda x, t: np.sort(abs(t - 5 + x)),
    lambda x, t: np.sort(abs(t - 5 + x), axis=0),
    lambda x, t: np.take(t + x, [3, 11]),
    lambda x, t: np.take(t + x, 2, axis=0),
    lambda x, t: (t + x).take([3, 1], axis=-1),
    lambda x, t: (t + x).repeat(2),
    lambda x, t: np.repeat(t + x, [1, 2, 3], axis=0),
    lambda x, t: np.concatenate([t + x, t]),
    lambda x, t: np.concatenate((t + x, t + 1.5), axis=1),
    lambda x, t: np.concatenate([t + x, [1, 2]], axis=None),
    lambda x, t: np.concatenate([t + x] * 6 + [t[:1]], axis=0),
    lambda x, t: np.stack([t + x, t]),
    lambda x, t: np.stack([t + x, t, t * 2], axis=1),
    lambda x, t: np.stack([t + x] * 5 + [t], axis=-1),
    lambda x, t: np.stack([t + x] * 9, axis=1, dtype=np.float32),
]  # fmt: skip


@pytest.mark.parametrize("function", ARRAYS, ids=range(len(ARRAYS)))
def test_arrays_are_numpys(function):
    found = run(lambda x: function(x, TABLE))
    wanted = np.stack([function(np.int64(x), TABLE) for x in PLAIN])
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if found.dtype.kind == "f" else 0)


def text(function, dataset=NUMBERS):
    return dataset.map(function).spec_text().splitlines()[-1]


def test_what_is_used_twice_becomes_a_let():
    def function(x):
        y = np.tanh(x / 2)
        return {"a": y + 1, "b": y * y}

    assert text(function) == 'stage { map { let: "t1 = tanh(value / 2)" out: "a = t1 + 1" out: "b = t1 * t1" } }'
    assert 'let' not in text(lambda x: x + x)


def test_names_that_need_quotes_or_hide_each_other():
    dataset = NUMBERS.map(lambda x: {"image/encoded": x, "t2": x + 1, "tanh": x + 2, "c1": x + 3, "a b": x + 4})

    def function(e):
        y = e["image/encoded"] * np.array([1, 2]) + e["t2"]
        return {"r": y * y, "s": e["tanh"] + e["c1"] + e["a b"]}

    batch = next(iter(dataset.map(function).batch(12)))
    np.testing.assert_array_equal(batch["r"], (PLAIN[:, None] * [1, 2] + PLAIN[:, None] + 1) ** 2)
    np.testing.assert_array_equal(batch["s"], 3 * PLAIN + 9)
    spec = text(function, dataset)
    assert 'feature(\\"image/encoded\\")' in spec and 'feature(\\"tanh\\")' in spec
    # Names of features are not taken for others.
    assert 'let: "t2' not in spec and 'name: "c1"' not in spec


def test_deep_and_wide_expressions():
    def deep(x):
        for i in range(1500):
            x = x + 1 if i % 2 else x * 1
        return x

    assert run(deep).tolist() == (PLAIN + 750).tolist()


def test_an_array_counts_as_it_was_when_it_was_used():
    def weighted(x):
        weights, sums = np.zeros(3), []
        for i in range(3):
            weights[:] = 0
            weights[i] = 1
            sums.append(np.sum(x * weights, axis=-1))
        weights += 1000
        return tuple(sums)

    ((a, b, c),) = penstock.Dataset.from_tensor_slices(np.array([[1.0, 2.0, 3.0]])).map(weighted)
    assert (a, b, c) == (1, 2, 3)


def test_an_array_is_written_once():
    weights = np.linspace(0, 1, 7).astype(np.float32)
    spec = text(lambda x: (x * weights, weights - x))
    assert spec.count("constant {") == 1
    assert 'dtype: "float32" shape: [7]' in spec
    found = next(iter(NUMBERS.map(lambda x: (x * weights, weights - x)).batch(12)))
    np.testing.assert_array_equal(found[0], PLAIN[:, None] * weights)


def test_types_are_known_while_tracing():
    seen = {}

    def function(x):
        y = TABLE.astype(np.float32) * x.astype(np.float32)
        seen["y"] = (y.shape, y.dtype, y.ndim, y.size)
        seen["x"] = (x.shape, x.dtype)
        return y[: y.shape[0] - 1]

    assert NUMBERS.map(function).element_spec == penstock.TensorSpec((2, 4), np.dtype("float32"))
    assert seen == {"y": ((3, 4), np.dtype("float32"), 2, 12), "x": ((), np.dtype("int64"))}
    batched = {}
    NUMBERS.batch(5).map(lambda x: batched.update(shape=x.shape) or x)
    assert batched["shape"] == (None,)


def test_a_type_is_asked_for_once(monkeypatch):
    asked = []
    ask = _control.validate
    monkeypatch.setattr(_control, "validate", lambda socket, name, text: asked.append(text) or ask(socket, name, text))
    NUMBERS.map(lambda x: x.reshape((1,) * x.ndim) + x.ndim + len(x.shape) * (x.dtype == np.int64))
    assert len([text for text in asked if "map" in text]) == 1


def test_the_function_is_called_once_and_gets_the_elements_structure():
    calls = []

    def function(*arguments):
        calls.append(arguments)
        return arguments[0]

    dataset = NUMBERS.enumerate().map(lambda i, x: (i, {"a": x, "b": (x, i)}))
    dataset.map(function)
    assert len(calls) == 1
    first, second = calls[0]
    assert isinstance(first, penstock.Tensor) and set(second) == {"a", "b"} and len(second["b"]) == 2


def test_constants_and_named_tuples_in_results():
    import collections

    Pair = collections.namedtuple("Pair", "left right")
    found = next(iter(NUMBERS.map(lambda x: Pair(x, 2.5 * x)).batch(12)))
    assert type(found) is tuple and found[1].tolist() == (PLAIN * 2.5).tolist()
    found = next(iter(NUMBERS.map(lambda x: (x, np.float32(1.5) + 0 * x)).batch(12)))
    assert found[1].shape == (12,)


def if_statement(x):
    if x > 0:
        return x


def loop(x):
    return sum(value for value in x)


def assigns(x):
    x[0] = 1
    return x


def chained(x):
    return 0 < x < 4


class Other:
    """What another package's array is."""


class Places:
    """Another package's tensor, which is an index too."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values)

    def __index__(self):
        raise TypeError("only integer tensors of a single element can be converted to an index")


def take_in_c(x):
    raise TypeError("expected an array (got Tensor)")


def keras_layer():
    kind = type("Rescaling", (), {"__module__": "keras.src.layers", "__call__": lambda self, x: x})
    return kind()


ERRORS = [
    (if_statement, r"python_trace_test.py:\d+: the truth of a traced value.*use np.where.*\n  if x > 0:"),
    (chained, r"truth of a traced value \(if, while, and, or, not, x < y < z.*\n  return 0 < x < 4"),
    (lambda x: x > 1 and x < 3, "truth.*&, |, ~"),
    (lambda x: not x, "truth"),
    (loop, "for loop or unpacking"),
    (lambda x: [y for y in x], "for loop"),
    (assigns, r"assignment into.*np.where.*\n  x\[0\] = 1"),
    (lambda x: int(x), r"int\(\) of a traced value; use x.astype\(np.int64\)"),
    (lambda x: float(x), r"use x.astype\(np.float32\)"),
    (lambda x: math.sqrt(x), r"float\(\)"),
    (lambda x: len(x), r"len\(\).*np.shape\(x\)\[0\]"),
    (lambda x: {1: 2}[x], "as a key of a dict or a set.*penstock.functions.take\\(table, x, axis=0\\)"),
    (lambda x: x in {1, 2}, "as a key of a dict or a set"),
    (lambda x: bytes(x), r"bytes\(\) of a traced value.*decode_raw"),
    (lambda x: penstock.io.read_file(f"/folder/{x}.jpg"), r"a traced value as t[e]xt \(str, repr, an f-string"),
    (lambda x: penstock.io.read_file(f"/folder/{x!r:>9}"), "a traced value as t[e]xt"),
    (lambda x: penstock.io.read_file(f"{x:>9}"), "a traced value as t[e]xt"),
    (lambda x: "%s.jpg" % x, "a traced value as t[e]xt"),
    (lambda x: "%(x)r" % {"x": x}, "a traced value as t[e]xt"),
    (lambda x: "{}".format(x), "a traced value as t[e]xt"),
    (lambda x: "{0[0]!s}".format([x]), "a traced value as t[e]xt"),
    (lambda x: ",".join(map(str, [x])), "a traced value as t[e]xt"),
    (lambda x: str([x]), "a traced value as t[e]xt"),
    (lambda x: repr({"x": x}), "a traced value as t[e]xt"),
    (lambda x: ascii(x), "a traced value as t[e]xt"),
    (lambda x: format(x), "a traced value as t[e]xt"),
    (lambda x: string.Template("$x").substitute(x=x), "a traced value as t[e]xt"),
    (lambda x: x + len(f"{np.fft.rfft(x[None], 4)}"), "a traced value as t[e]xt"),
    (lambda x: np.float32(x), "on it, x[.]astype"),
    (lambda x: np.compress(x[None] > 0, x[None]).size, "np.size\\(x\\) is each element's"),
    (lambda x: penstock.functions.random_uniform([2, None]), "shape is \\[2, None\\], where None is a size that only the data tells; np.shape"),
    (lambda x: [1, 2, 3][x], "as an index, a size or a count"),
    (lambda x: range(x), "as an index, a size or a count"),
    (lambda x: np.fft.fft(x), "np.fft.*cannot be traced"),
    (lambda x: np.linalg.inv(x), "np.linalg.*cannot be traced"),
    (lambda x: np.sinc(x), "np.sinc cannot be traced; did you mean"),
    (lambda x: np.dot(x, x, np.zeros(3)), "np.dot into an array"),
    (lambda x: np.sum(x, axis=(0, 1)), "np.sum along the axis 0 of 0; it has no axes"),
    (lambda x: np.sum(x + TABLE, axis=(0, 2)), "np.sum along the axis 2 of 2; axes are from -2 to 1"),
    (lambda x: np.sum(x + TABLE, axis=()), "np.sum over no axis; leave it out"),
    (lambda x: np.var(x, where=x > 3), "np.var where a condition holds; np.where.condition, x, value. before it"),
    (lambda x: np.sum(x, out=np.zeros(3)), "np.sum into an array; it gives a new one"),
    (lambda x: np.round(x, 1, out=np.zeros(3)), "np.round into an array; it gives a new one"),
    (lambda x: np.clip(x, 1, 2, out=np.zeros(3)), "np.clip into an array; it gives a new one"),
    (lambda x: np.clip(x, 1, 2, where=x > 3), "np.clip with these arguments.*'where'"),
    (lambda x: np.broadcast_to(np.stack([x, x, x]), (2, 2)), r"np.broadcast_to of \(3,\) to \(2, 2\); axes of one repeat"),
    (lambda x: np.resize(x, (2, 2)), "np.resize cannot be traced; use np.reshape"),
    (lambda x: np.ravel(x, order="F"), r"np.reshape in order F; np.reshape\(x.T, sizes\[::-1\]\).T is in order F; np.ravel\(x.T\) is flat in it"),
    (lambda x: np.sort(x + TABLE, axis=2), "np.sort along the axis 2 of 2; axes are from -2 to 1"),
    (lambda x: np.cumsum(x + TABLE, axis=(0, 1)), r"np.cumsum along the axis \(0, 1\); it is one integer, a constant"),
    (lambda x: np.concatenate([x, x]), "np.concatenate along the axis 0 of 0"),
    (lambda x: np.stack([x, "a"]), "np.stack of strings"),
    (lambda x: np.take(x + TABLE, [0, 1], out=TABLE), "np.take into an array"),
    (lambda x: np.arange(x), r"np.arange of a traced value; penstock.functions.arange\(start, stop, step\)"),
    (lambda x: np.unique(x), "np.unique cannot be traced; use np.sort"),
    (lambda x: np.where(x > 1), r"np.nonzero of a number; np.where\(condition, a, b\)"),
    (lambda x: np.round(x, 2.5), "np.round to decimals 2.5; it is one integer, a constant"),
    (lambda x: np.partition(x, 1), "np.partition cannot be traced; use np.sort"),
    (lambda x: np.linalg.norm(np.stack([x, x]), "nuc"), r"np.linalg.norm with ord='nuc' of 1 axes"),
    (lambda x: np.array([x, x]), "conversion of a traced value to an array.*np.stack to join several"),
    (lambda x: x == None, "operator ==: b is None"),  # noqa: E711
    (lambda x: x[1.5], r"the subscript 1.5; subscripts are integers"),
    (lambda x: x.astype("flaot32"), "astype.*flaot32.*types are NumPy's"),
    (lambda x: x + 2**64, "operator .: b is an integer that no type holds"),
    (lambda x: np.asarray(x), "conversion of a traced value to an array"),
    (lambda x: np.subtract.accumulate(x), "np.subtract.accumulate cannot be traced"),
    (lambda x: np.maximum.accumulate(np.stack([x, x]), out=TABLE), "np.maximum.accumulate into an array"),
    (lambda x: np.zeros(x), r"a traced value as a size of an array; .*np.pad\(x, \(0, n\)\)"),
    (lambda x: np.eye(x), r"as an index, a size or a count; .*np.pad\(x, \(0, n\)\)"),
    (lambda x: np.shape(np.stack([x, x])).astype(np.float32), r"'tuple' object has no attribute 'astype'; .*penstock.functions.shape\(x\) is a tensor"),
    (lambda x: np.shape(np.stack([x, x])) // 2, r"unsupported operand.*penstock.functions.shape\(x\) is a tensor"),
    (lambda x: np.stack([x, x]).shape + 1, r"can only concatenate tuple.*penstock.functions.shape\(x\) is a tensor"),
    (lambda x: np.delete(np.stack([x, x]), 0), r"np.delete cannot be traced; use x\[places\]"),
    (lambda x: np.insert(np.stack([x, x]), 0, 1), r"np.insert cannot be traced; use np.concatenate\("),
    (lambda x: np.kron(x, x), r"np.kron cannot be traced; use np.reshape\(a\[:, None, :, None\] \* b"),
    (lambda x: np.block([x, x]), "np.block cannot be traced; use np.hstack and np.vstack"),
    (lambda x: np.nanpercentile(x, 50), r"np.nanpercentile cannot be traced; use np.percentile of x\[x == x\]"),
    (lambda x: np.nanmedian(x), r"np.nanmedian cannot be traced; use np.median of x\[x == x\]"),
    (lambda x: np.take(TABLE, x), r"use penstock.functions.take\(table, x, axis=0\) for table\[x\] and np.take"),
    (lambda x: TABLE[x], r"use penstock.functions.take\(table, x, axis=0\) for table\[x\] and np.take"),
    (lambda x: np.choose(x, [1, 2]), r"np.choose cannot be traced; use np.select"),
    (lambda x: x.split("."), r"attribute .split of a traced value; use penstock.strings.split"),
    (lambda x: take_in_c(x), r"expected an array \(got Tensor\); it is a stand-in"),
    (keras_layer(), "a keras.src.layers.Rescaling in the place of a function.*Keras' layers"),
    (lambda x: np.add(x, 1, out=np.zeros(3)), "no argument out="),
    (lambda x: np.add(x, 1, where=np.array([True])), "no argument where="),
    (lambda x: x.item(), r"attribute .item of a traced value"),
    (lambda x: x.numpy(), r"attribute .numpy of a traced value"),
    (lambda x: x + Other(), "is of type .*Other; constants are numbers and NumPy arrays"),
    (lambda x: x + "a" + Other(), "Other"),
    (lambda x: np.array([1j]) + x, "array of type complex128"),
    (lambda x: x + np.zeros((0, 3)), r"shape \(0, 3\)"),
    (lambda x: x + 1j, "complex"),
    (lambda x: x[x > 1], "np.compress along the axis 0 of 0; it has no axes"),
    (lambda x: x[np.array([True, False])], "1 subscripts of a value of 0 axes"),
    (lambda x: x["label"], "subscript 'label' of a tensor"),
    (lambda x: None, "of type NoneType, not a tensor.*lack a return"),
    (lambda x: (x, [x, x]), r"\[1\] is of type list.*tuples keep tensors apart"),
    (lambda x: {"a": x, object: x}, "a key of type type"),
    (lambda x: {}, "holds no tensor"),
    (lambda x: penstock.image.resize(x), "penstock.image.resize lacks the argument size; it is resize"),
    (lambda x: penstock.image.resize(x, [2, 2], align=True), "no argument align=True"),
    (lambda x: penstock.image.resize(x, [2, 2], size=[2, 2]), "given size twice"),
    (lambda x: penstock.image.resize(x, [2, 2], "nearest", 1, 2, "tf", 3), "takes 6 arguments, not 7"),
    (lambda x: penstock.functions.tanh(3), "without a traced value"),
    (lambda x: penstock.io.parse_single_example(b"x", {}), "works on traced values"),
]


def rebinding(statement):
    """A function of x that executes `statement` and returns x, or what the statement calls `result`."""

    def function(x):
        names = {"x": x, "np": np}
        exec(compile(statement, __file__, "exec"), names)
        return names.get("result", names["x"])

    return function


ROWS = np.arange(1, 7).reshape(2, 3)
IN_PLACE = [
    "x = x.astype(np.float32); x /= 255; x -= [0.485, 0.456, 0.406]; x *= np.float64(3)",
    "x = x * 2; x //= 3; x **= 2; x %= 100; x <<= 3; x >>= 1; x |= 1; x ^= 6; x &= 31",
    "x = x.astype(np.int8); x += np.int64(3)",
    "x = x.astype(np.float32); x @= np.eye(3)",
    "x += 1",
    "x = x.T.copy().T; x += x; x -= x[0]",
    "y = x.copy(); y += 1; result = x + y",
    "y = +x; y += 1; result = x + y",
    "y = x.flatten(); y += 1; result = x.ravel() + y",
    "y = x[[0, 1]]; y += 1; result = x + y",
    "y = x[x > 1]; y += 1; result = x.sum() + y",
    "v = x[1, 0]; v /= 4; result = x + v",
    "v = x[0, 1]; x += 5; result = x + v",
    "s = x.sum(); s /= 4; result = s",
    "x = x.reshape(3, 2); x += 1",
    "d = {'x': x}; d['x'] += 1; result = d['x']",
]


@pytest.mark.parametrize("statement", IN_PLACE)
def test_operators_that_assign_keep_the_type_as_numpys(statement):
    (found,) = penstock.Dataset.from_tensors(ROWS).map(rebinding(statement))
    expected = rebinding(statement)(ROWS.copy())
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


SEEN_ELSEWHERE = [
    "v = x[:1]; v += 5",
    "v = x[1]; v *= 2",
    "y = x; y += 1",
    "v = x.reshape(-1); v -= 1",
    "v = x.T; v -= 1",
    "v = np.ravel(x); v /= 0.5",
    "v = np.squeeze(x[None]); v /= 0.5",
    "v, w = np.split(x, 2); v += 1",
    "v = np.flip(x)[0].T; v += 1",
    "v = x[np.min(x).astype(int)]; v += 1",
    "y = x * 2; v = y[:1]; y += 1; result = v",
    "d = {'x': x}; x = x; x += 1; result = d",
]


@pytest.mark.parametrize("statement", SEEN_ELSEWHERE)
def test_a_change_that_others_would_see_is_refused(statement):
    with pytest.raises(penstock.TraceError, match=r"_test.py:1: .=.* cannot be changed in place.*; write x = x . y"):
        penstock.Dataset.from_tensors(ROWS.astype(float)).map(rebinding(statement))


NOT_CAST = [
    ("x *= 2.0", r"x \*= y of a traced int64, whose result is float64, which does not become int64 again; write x = x \* y"),
    ("x /= 2", "x /= y of a traced int64, whose result is float64"),
    ("x = x.astype(np.uint8); x -= np.int64(1)", "x -= y of a traced uint8, whose result is int64"),
    ("x = x > 2; x += 1", "x \\+= y of a traced bool"),
    ("x += np.ones((4, 2, 3), np.int64)", r"of shape \(2, 3\), whose result has the shape \(4, 2, 3\)"),
    ("x = x[0] * 1.0; x += np.fft.rfft(x, 4)", "complex numbers as a traced value"),
]


@pytest.mark.parametrize("statement, message", NOT_CAST)
def test_a_result_that_numpy_does_not_write_back_is_refused(statement, message):
    with pytest.raises(penstock.TraceError, match=message):
        penstock.Dataset.from_tensors(ROWS).map(rebinding(statement))


def test_a_list_is_a_tuple_as_in_tf_data():
    found = next(iter(NUMBERS.map(lambda x: [x, x + 1]).batch(12)))
    assert type(found) is tuple and (found[1] - found[0]).tolist() == [1] * 12
    rows = penstock.Dataset.from_tensor_slices(["1,a", "2,b"]).map(lambda line: penstock.io.decode_csv(line, [0, ""]))
    assert [(int(number), text) for number, text in rows] == [(1, b"a"), (2, b"b")]


def test_what_leaves_other_types_alone_is_refused():
    """torchvision's transforms, inside of a function."""
    transform = types.ModuleType("torchvision.transforms.v2._utils")
    code = "def call(x, kind):\n    return x + 1 if isinstance(x, kind) else x\n"
    exec(compile(code, "/site-packages/torchvision/transforms/v2/_utils.py", "exec"), transform.__dict__)
    with pytest.raises(penstock.TraceError, match=r"python_trace_test.py:\d+: a transform of torchvision, which does nothing"):
        NUMBERS.map(lambda x: transform.call(x, np.ndarray))
    assert NUMBERS.map(lambda x: x if isinstance(x, np.ndarray) else x + 1).element_spec.dtype == np.int64


def test_other_packages_arrays_are_subscripts():
    image = np.arange(24).reshape(4, 3, 2)
    rows = penstock.Dataset.from_tensors(image)
    for index in (Places([2, 0, 1]), (slice(None), Places([2, 0])), (Places([1, 2]), Places([0, 2])), Places(1)):
        constant = tuple(np.asarray(item) if isinstance(item, Places) else item for item in (index if isinstance(index, tuple) else (index,)))
        (found,) = rows.map(lambda x, index=index: x[index])
        assert found.tolist() == image[constant].tolist()


@pytest.mark.parametrize("function, message", ERRORS, ids=[message[:30] for _, message in ERRORS])
def test_what_cannot_be_traced_is_named(function, message):
    with pytest.raises(penstock.TraceError) as error:
        # A failure behind the trace would not be of its class.
        next(iter(NUMBERS.map(function)))
    first, _, code = str(error.value).partition("\n")
    assert "python_trace_test.py:" in first
    # A case's own line holds the message too.
    assert re.search(message, first if "lambda" in code else str(error.value))


@pytest.mark.parametrize("name, draw", [("random", random.random), ("np.random", lambda: np.random.rand()), ("np.random", lambda: np.random.normal())])
def test_draws_of_python_are_warned_of(name, draw):
    with pytest.warns(RuntimeWarning, match=f"the function draws by {name} while it is traced, which is once for all") as warned:
        NUMBERS.map(lambda x: x + draw())
    assert warned[0].filename == __file__ and len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NUMBERS.map(lambda x: x + penstock.functions.random_uniform())


def sqrt_in_c(x):
    # torch.sqrt(x)
    raise TypeError("sqrt(): argument 'input' (position 1) must be Tensor, not Tensor")


@pytest.mark.parametrize("function", [
    sqrt_in_c,
    lambda x: json.loads(x),
    lambda x: json.dumps([x]),
    lambda x: os.path.join("folder", x),
    lambda x: re.sub("a", "b", x),
    lambda x: "".join([x]),
    lambda x: bytearray(b"").join([x]),
    lambda x: open(x),
])  # fmt: skip
def test_functions_that_refuse_the_stand_in_are_named(function):
    with pytest.raises(penstock.TraceError, match=r"python_trace_test.py:\d+: .*Tensor.*; it is a stand-in for each element's tensor") as error:
        NUMBERS.map(function)
    assert type(error.value.__cause__) is TypeError


def test_a_type_error_of_something_else_stays():
    def function(x):
        raise TypeError("a tf.Tensor, not TensorArray")

    with pytest.raises(TypeError, match="^a tf.Tensor, not TensorArray$"):
        NUMBERS.map(function)


GENERATOR = np.random.default_rng(0)
TWISTER = random.Random(1)


class Drawing:
    """A transform that is called like a function."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, x):
        return x + self.rng.random()


def drawing_by_a_variable():
    rng, draw = np.random.RandomState(1), np.random.default_rng(1).random
    return [lambda x: x + rng.rand(), lambda x: x + draw()]


def drawing_by_a_list():
    rngs = [np.random.default_rng(3)]
    return lambda x: x + rngs[0].random()


class OfClass:
    rng = np.random.default_rng(4)


class Slotted:
    __slots__ = ("slot",)


OBJECT = types.SimpleNamespace(inner=types.SimpleNamespace(rng=np.random.default_rng(5)))
SLOTTED = Slotted()
SLOTTED.slot = np.random.default_rng(6)
HELD = {
    "rng": np.random.default_rng(7),
    "list": [1, np.random.default_rng(8)],
    "objects": OfClass(),
    "function": lambda x, rng=np.random.default_rng(9): x + rng.random(),
}
HELPERS = types.ModuleType("helpers")
HELPERS.rng = np.random.default_rng(0)
HOLDING = [
    ("Generator rng", lambda x: x + HELPERS.rng.random()),
    ("Generator GENERATOR", lambda x: x + GENERATOR.random()),
    ("Random TWISTER", lambda x: x + sum(TWISTER.random() for _ in range(2))),
    ("RandomState rng", drawing_by_a_variable()[0]),
    ("Generator draw", drawing_by_a_variable()[1]),
    ("Generator rng", lambda x, rng=np.random.default_rng(1): x + rng.integers(9)),
    ("Generator rng", functools.partial(lambda x, rng: x + rng.random(), rng=np.random.default_rng(1))),
    ("Generator rng", Drawing()),
    ("Generator rng", Drawing().__call__),
    (r"Generator HELD\['rng'\]", lambda x: x + HELD["rng"].random()),
    (r"Generator HELD\['list'\]\[1\]", lambda x: x + HELD["list"][1].random()),
    ("Generator rng", lambda x: x + HELD["objects"].rng.random()),
    (r"Generator rngs\[0\]", drawing_by_a_list()),
    (r"Generator rngs\[0\]\[0\]", lambda x, rngs=([np.random.default_rng(2)],): x + rngs[0][0].random()),
    ("Generator rng", lambda x: x + OfClass.rng.random()),
    ("Generator rng", lambda x: x + OBJECT.inner.rng.random()),
    ("Generator rng", lambda x: HELD["function"](x)),
    ("Generator slot", lambda x: x + SLOTTED.slot.random()),
]


@pytest.mark.parametrize("name, function", HOLDING)
def test_so_are_those_of_generators_that_the_function_holds(name, function):
    with pytest.warns(RuntimeWarning, match=f"the function draws by the {name} while it is traced, which is once for all") as warned:
        NUMBERS.map(function)
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NUMBERS.map(lambda x: x + (0 if random is None else 1) * len(str(GENERATOR)[:1]))


def test_a_shared_generator_is_warned_of_once():
    rand = np.random.rand
    with pytest.warns(RuntimeWarning, match="the function draws by np.random while") as warned:
        NUMBERS.map(lambda x: x + rand())
    assert len(warned) == 1


WITH_FUNCTIONS = {
    "scan": lambda made: NUMBERS.scan(np.int64(0), lambda state, x: (made(state), x)),
    "reduce": lambda made: NUMBERS.reduce(np.int64(0), lambda state, x: made(state) + x),
    "flat_map": lambda made: NUMBERS.flat_map(lambda x: penstock.Dataset.from_tensors(made(x))),
    "interleave": lambda made: NUMBERS.interleave(lambda x: penstock.Dataset.from_tensors(made(x))),
    "window_size_func": lambda made: NUMBERS.group_by_window(lambda x: x, lambda key, window: window.batch(2), window_size_func=lambda key: made(key) + 1),
    "reduce_func": lambda made: NUMBERS.group_by_window(lambda x: x, lambda key, window: window.batch(2 + int(made(0))), 2),
    "window.flat_map": lambda made: NUMBERS.window(2).flat_map(lambda window: window.batch(2 + int(made(0)))),
    "window.map": lambda made: NUMBERS.window(2).map(lambda window: window.batch(2 + int(made(0)))),
}


@pytest.mark.parametrize("use", WITH_FUNCTIONS.values(), ids=WITH_FUNCTIONS)
def test_so_are_those_in_other_functions(use):
    with pytest.warns(RuntimeWarning, match="the function draws by np.random while it is traced") as warned:
        use(lambda x: x + np.random.randint(3))
    assert warned[0].filename == __file__ and len(warned) == 1
    with pytest.warns(RuntimeWarning, match="the function draws by the Generator GENERATOR while it is traced") as warned:
        use(lambda x: x + GENERATOR.integers(3))
    assert warned[0].filename == __file__ and len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        use(lambda x: x + 1)


@pytest.mark.parametrize("name", ["scan", "reduce", "flat_map", "interleave", "window_size_func"])
def test_other_packages_errors_in_other_functions_are_explained(name):
    with pytest.raises(penstock.TraceError, match="a traced value as a size of an array"):
        WITH_FUNCTIONS[name](lambda x: np.ones(x))


def test_the_stand_in_may_be_shown(capsys, caplog):
    def function(x):
        print(x, [x])
        print("x is", x)
        logging.getLogger("a").warning("x is %s, %r", x, x)
        shown.append(reprlib.repr(x))
        return x

    shown = []
    NUMBERS.map(function)
    printed = capsys.readouterr().out
    assert printed == "<traced feature value> [<traced feature value>]\nx is <traced feature value>\n"
    assert caplog.messages == ["x is <traced feature value>, <traced feature value>"] and shown == ["<traced feature value>"]
    without_source = {"NUMBERS": NUMBERS}
    exec("def show(x):\n    print(x)\n    return x\ndef text(x):\n    return len('_%s' % x)\nNUMBERS.map(show)", without_source)
    assert capsys.readouterr().out == "<traced feature value>\n"
    with pytest.raises(penstock.TraceError, match="a traced value as text"):
        NUMBERS.map(without_source["text"])
    kept = []
    NUMBERS.map(lambda x: (kept.append(x), x)[1])
    # Behind the trace it is nobody's data.
    assert str(kept[0]) == f"{kept[0]}" == "<traced feature value>"


@pytest.mark.parametrize("draw, count", [("np.random.randint(0, 2)", 1), ("np.random.rand()", 1), ("np.random.default_rng(1).random()", 0), ("__import__('random').random()", 1), ("1", 0)])
def test_so_are_those_of_a_package_that_is_loaded_by_the_function(draw, count):
    code = (
        "import warnings, numpy as np, penstock\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        f"    penstock.Dataset.range(2).map(lambda x: x + {draw})\n"
        "print(len(caught))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == f"{count}\n"


def test_draws_take_no_traced_value():
    random_uniform = penstock.functions.random_uniform
    drawn = NUMBERS.map(lambda x: (x, random_uniform([2], seed=3), np.where(random_uniform(seed=4) < 0.5, x, x + 100))).batch(12)
    ((numbers, pairs, chosen),) = drawn
    assert pairs.shape == (12, 2) and len({*pairs.ravel().tolist()}) == 24 and 0 <= pairs.min() < pairs.max() < 1
    assert {*((chosen - numbers) // 100).tolist()} == {0, 1}
    inner = NUMBERS.map(lambda x: x).flat_map(
        lambda x: penstock.Dataset.from_tensors(x).map(lambda y: y + penstock.functions.random_normal(mean=0, stddev=0))
    )
    assert [float(x) for x in inner] == PLAIN.tolist()
    assert 0 < len(list(NUMBERS.repeat(50).filter(lambda x: random_uniform() < 0.5))) < 600
    zero = np.float32(0)
    assert 12 <= NUMBERS.map(lambda x: random_uniform(minval=1, maxval=1.5)).reduce(zero, lambda state, x: state + x) < 18
    for function in (
        lambda: NUMBERS.reduce(zero, lambda state, x: state + random_uniform()),
        lambda: list(NUMBERS.scan(zero, lambda state, x: (state, random_uniform()))),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match="no random functions beside a state: draw in a map before"):
            function()
    for function in (loop, lambda x: random_uniform):
        with pytest.raises(penstock.TraceError):
            NUMBERS.map(function)
        with pytest.raises(penstock.TraceError, match="random_uniform is called without a traced value"):
            random_uniform()


def test_values_of_other_traces_and_missing_functions():
    kept = []
    NUMBERS.map(lambda x: kept.append(x) or x)
    with pytest.raises(penstock.TraceError, match="another function's call"):
        NUMBERS.map(lambda x: x + kept[0])
    for module in (penstock.image, penstock.io):
        with pytest.raises(AttributeError, match="has no function 'tanh'"):
            module.tanh
    with pytest.raises(AttributeError, match="did you mean resize"):
        penstock.image.risize
    assert not hasattr(kept[0], "no_such_attribute") and not hasattr(kept[0], "__no_such_protocol__")
    with pytest.raises(KeyError):
        NUMBERS.map(lambda x: {"a": x}).map(lambda e: e["b"])


def test_torch_and_others_are_refused_with_a_reason():
    torch = pytest.importorskip("torch")
    for function in (lambda x: torch.tensor(x), lambda x: torch.ones(3) * x):
        with pytest.raises((penstock.TraceError, TypeError)):
            NUMBERS.map(function)


def test_every_function_of_the_language_is_reachable():
    assert "resize" in dir(penstock.functions)
    for name in _registry.FUNCTIONS:
        assert getattr(penstock.functions, name).__doc__.startswith(_registry.FUNCTIONS[name][0])
    assert "tf.image.resize" in penstock.image.resize.__doc__
    assert penstock.io.decode_jpeg.__name__ == penstock.image.decode_jpeg.__name__ == "decode_jpeg"


def test_image_functions_have_the_names_of_tf_image():
    for name in (
        "central_crop crop_to_bounding_box pad_to_bounding_box resize_with_crop_or_pad resize_with_pad resize flip_left_right "
        "flip_up_down rot90 transpose adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation hsv_to_rgb "
        "rgb_to_hsv rgb_to_grayscale per_image_standardization convert_image_dtype"
    ).split():
        assert f"tf.image.{name}" in getattr(penstock.image, name).__doc__, name
    methods = {value for name, value in vars(penstock.image.ResizeMethod).items() if not name.startswith("_")}
    line = penstock.image.resize.__doc__.partition("* method: ")[2].partition("\n")[0]
    assert methods == set(re.findall(r'"(\w+)"', line))


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_convert_image_dtype_takes_dtypes_as_numpy_does(dtype):
    images = penstock.Dataset.from_tensor_slices(np.array([[[[0, 51, 255]]]], np.uint8))
    (image,) = images.map(lambda x: penstock.image.convert_image_dtype(x, dtype)).as_numpy_iterator()
    assert image.dtype == np.float32
    assert image.tolist() == (np.array([[[0, 51, 255]]], np.float32) * np.float32(1 / 255)).tolist()


def test_image_functions_on_traced_values():
    image = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(1, 2, 3, 3)
    images = penstock.Dataset.from_tensor_slices(image)
    (turned,) = images.map(lambda x: penstock.image.rot90(penstock.image.flip_left_right(x), k=-1)).as_numpy_iterator()
    assert turned.tolist() == np.rot90(image[0, :, ::-1], -1).tolist()
    (padded,) = images.map(lambda x: penstock.image.resize_with_crop_or_pad(x, 4, 1)).as_numpy_iterator()
    assert padded.tolist() == np.pad(image[0, :, 1:2], [(1, 1), (0, 0), (0, 0)]).tolist()


def test_mixing_takes_whole_batches():
    images = np.arange(8 * 2 * 3 * 3, dtype=np.float32).reshape(8, 2, 3, 3)
    functions = penstock.functions
    slices = penstock.Dataset.from_tensor_slices((images, np.arange(8) % 4)).batch(4)
    batches = slices.map(
        lambda image, label: (functions.mixup(image, alpha=1, seed=1), functions.mixup(functions.one_hot(label, 4), alpha=1, seed=1))
    ).as_numpy_iterator()
    for step, (image, label) in enumerate(batches):
        assert label.shape == (4, 4)
        np.testing.assert_allclose(label.sum(axis=1), 1, rtol=1e-6)
        own = images[4 * step : 4 * step + 4]
        np.testing.assert_allclose(image, np.tensordot(label, own, 1), rtol=1e-5)
    assert step == 1


def test_halves_have_names():
    def halves(x):
        return x.astype(penstock.bfloat16), x.astype("bfloat16"), x.astype(penstock.float16), x.astype(_TensorFlowType())

    specs = NUMBERS.map(halves).element_spec
    assert [str(spec.dtype) for spec in specs] == ["bfloat16", "bfloat16", "float16", "bfloat16"]


class _TensorFlowType:
    name = "bfloat16"


def test_types_and_shapes_are_given_as_tensorflow_takes_them():
    element = NUMBERS.map(
        lambda x: (
            penstock.functions.random_uniform([], 0, 5, dtype=np.int64, seed=1),
            penstock.functions.random_normal((), seed=1),
            penstock.functions.decode_raw(penstock.io.encode_png((x + np.zeros((1, 1, 1))).astype(np.uint8)), np.uint8)[1:4],
        )
    )
    draw, normal, png = element.element_spec
    assert (draw.shape, draw.dtype, normal.shape) == ((), np.int64, ())
    assert bytes(next(iter(element))[2].tolist()) == b"PNG"


def test_lists_of_flags_are_flags():
    def flags(np, x):
        y = x + np.arange(3)
        return np.where([True, False, True], y, -y), np.logical_or([[True], [False]], y > 2), np.compress([False, True, True], y)

    found = NUMBERS.map(lambda x: flags(np, x)).batch(len(PLAIN))
    for got, rows in zip(next(iter(found)), zip(*(flags(np, x) for x in PLAIN))):
        np.testing.assert_array_equal(got, np.stack(rows), strict=True)


def test_an_element_names_its_features_when_asked_for_another():
    dataset = penstock.Dataset.from_tensor_slices({"image": [1, 2], "label": [3, 4]})
    with pytest.raises(KeyError, match=r"^the element has no feature 'imgae'; did you mean image\?$"):
        dataset.map(lambda x: x["imgae"])
    with pytest.raises(KeyError, match="^the element has no feature 'y'; it has 'image', 'label'$"):
        dataset.map(lambda x: {"x": x["image"], "y": x["y"]})
    table = penstock.Dataset.range(1).map(lambda x: {f"f{i}": x for i in range(40)})
    with pytest.raises(KeyError, match="^the element has no feature 'y'; it has 'f0', .*'f15' and 24 more$"):
        table.map(lambda x: x["y"])
    assert repr(table).endswith("f15 and 24 more}>")
    assert [element["label"] for element in dataset.map(lambda x: x)] == [3, 4]


@pytest.mark.parametrize(
    "name, place",
    [
        ("cast", "x.astype"),
        ("concat", "np.concatenate"),
        ("data", "penstock.Dataset"),
        ("reshape", "np.reshape"),
        ("reduce_mean", "np.mean"),
        ("one_hot", "penstock.functions.one_hot"),
        ("while_loop", "Python does not run in the data path"),
        ("TextLineDatset", "did you mean TextLineDataset"),
    ],
)
def test_a_name_of_tensorflow_that_is_not_here_says_what_stands_in_its_place(name, place):
    with pytest.raises(AttributeError, match=f"^module 'penstock' has no attribute '{name}'; .*{place}"):
        getattr(penstock, name)


def test_a_name_of_nothing_is_plainly_absent():
    for name in ("qqqqq", "_qqqqq"):
        with pytest.raises(AttributeError, match=f"^module 'penstock' has no attribute '{name}'$"):
            getattr(penstock, name)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "deepcopy", "pickle"])
def test_errors_can_go_to_another_process(again):
    errors = []
    outside = []
    for function in (
        lambda x: x if x > 1 else 0,
        lambda x: x.no_such_thing,
        lambda x: (outside.append(x), x)[1],
        lambda x: outside[0] + x,
    ):
        try:
            NUMBERS.map(function)
        except penstock.Error as error:
            errors.append(error)
    assert [type(error) for error in errors] == [penstock.TraceError, _refusals.TraceAttributeError, _refusals.Captured]
    for error in errors:
        found = again(error)
        assert str(found) == str(error) and isinstance(found, penstock.InvalidArgumentError)
        assert isinstance(found, TypeError) == isinstance(error, TypeError) and isinstance(found, AttributeError) == isinstance(error, AttributeError)
