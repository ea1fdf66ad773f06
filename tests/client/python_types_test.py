"""Types asked for while tracing: each value over those that are known, with the answer of the whole pipeline."""

import numpy as np
import pytest

import penstock
from penstock import _control
from penstock._dataset import _types
from penstock._tracing import _trace

SHORTS = penstock.Dataset.from_tensor_slices({
    "a": np.zeros((6, 4, 3), np.int16),
    "b": np.zeros((6, 3), np.float32),
    "text": [b"1", b"2", b"3", b"4", b"5", b"6"],
    "flag": np.zeros(6, bool),
    "half": np.zeros((6, 2), np.float16),
    "wide": np.zeros(6, np.uint64),
})  # fmt: skip


def known(x):
    rows = x["a"] * 2
    yield rows
    yield rows / 255.0
    yield rows + x["b"][None]
    yield np.sum(rows, axis=0) * np.where(x["flag"], 1, 2)
    yield np.where(x["flag"], 1, 2) + x["b"]
    yield np.where(x["flag"], 1.5, 2) + x["a"]
    yield x["wide"] + 1
    yield x["wide"] + rows
    yield np.concatenate([rows, rows[:1]]) @ x["b"]
    yield np.transpose(rows).reshape(2, -1)
    yield np.zeros_like(rows) + np.uint8(3)
    yield x["half"]
    yield x["text"]
    number = penstock.functions.string_to_number(x["text"], "int64")
    yield number
    yield penstock.functions.random_uniform([2, 3])
    yield number * penstock.functions.random_uniform()
    few = np.compress(np.arange(4) < number, rows, axis=0)
    yield few
    yield few[1:] * 2
    yield few - few.mean(axis=0)
    yield few[0] + np.shape(few)[0]
    yield penstock.functions.bfloat16(few[:, :2])
    yield few.reshape(-1, 3)[:3] * np.ones((3, 3), np.float32)
    yield np.isnan(few / 2).any(axis=-1)


def of_images(x):
    image = penstock.image.decode_jpeg(x["text"], channels=3)
    yield image
    yield image / 255
    yield image[1:, ::-1] - np.array([1, 2, 3], np.uint8)
    fixed = penstock.image.resize(image, [8, 8])
    yield fixed
    yield penstock.image.random_crop(fixed, [4, 4, 3])
    yield np.stack([fixed, fixed]).reshape(2, -1)


def of_rows(x):
    yield x["a"]
    yield x["a"] + x["b"][:, None]
    yield np.sum(x["a"], axis=(1, 2)) / 2
    yield x["b"] * np.array([1, 2, 3])
    yield x["text"]
    yield x["wide"][:, None] + x["a"][:, 0]
    yield penstock.functions.random_uniform() * x["b"]


def of_whole_batches(x):
    yield x["a"] + 1
    centred = x["b"] - np.mean(x["b"], axis=0)
    yield centred
    yield centred * 2
    yield np.sum(x["b"])
    yield x["a"][::-1]
    yield np.shape(x["a"])


@pytest.mark.parametrize(
    "dataset, values",
    [
        (SHORTS, known),
        (SHORTS, of_images),
        (SHORTS.batch(4), of_rows),
        (SHORTS.batch(4), of_whole_batches),
        (SHORTS.batch(1), of_rows),
        (SHORTS.batch(1), of_whole_batches),
        (SHORTS.batch(3).unbatch(), known),
        (SHORTS.batch(2).batch(3), lambda x: [x["a"][0], x["b"].mean(axis=-1), x["a"] * 0.5]),
        (SHORTS.padded_batch(2), of_rows),
        (SHORTS.filter(lambda x: x["flag"]).batch(2, drop_remainder=True), of_rows),
    ],
)
def test_the_type_of_a_value_is_that_of_the_whole_pipeline(dataset, values):
    found = []

    def function(x):
        for value in values(x):
            trace = value._trace
            found.append((trace, value._node, trace.spec_of(value._node)))
        return value

    dataset.map(function)
    assert found
    for trace, node, spec in found:
        whole = dataset._type_of(trace, node)
        for name in whole.__slots__:
            assert getattr(spec, name) == getattr(whole, name), (node.kind, node.value, spec, whole)


def test_behind_a_parse_inside_of_the_function():
    seen = []

    def function(record):
        seen.append((record.shape, record.dtype))
        x = penstock.io.parse_single_example(record, {"x": penstock.io.FixedLenFeature([2, 3], penstock.int64)})["x"]
        y = (x + 1).mean(axis=0)
        seen.append((x.shape, y.shape, y.dtype, (y + x).shape))
        return y

    penstock.Dataset.from_tensor_slices([b"record"]).map(function)
    assert seen == [((), penstock.string), ((2, 3), (3,), np.float64, (2, 3))]


def test_in_windows_and_in_datasets_of_an_element():
    shapes = []

    def doubled(row):
        twice = np.stack([row, row])
        shapes.extend([twice.shape, (twice * 2).sum(axis=0).shape])
        return twice

    rows = penstock.Dataset.from_tensor_slices(np.zeros((6, 4), np.float32))
    rows.window(2, drop_remainder=True).flat_map(lambda window: window.batch(2).map(doubled))
    rows.window(2, drop_remainder=True).flat_map(lambda window: window.map(doubled).batch(2))
    rows.interleave(lambda row: penstock.Dataset.from_tensor_slices(row).map(lambda number: doubled(number + row)), cycle_length=1)
    assert shapes == [(2, None, 4), (None, 4), (2, 4), (4,), (2, 4), (4,)]


def test_a_refused_value_says_what_the_whole_pipeline_says():
    def function(x):
        sums = x["a"].sum(axis=0)
        assert sums.shape == (3,)
        return sums.reshape(7).shape

    with pytest.raises(penstock.TraceError, match=r"reshape: expected a shape of 3 elements like \(3,\), found \(7,\)"):
        SHORTS.map(function)


@pytest.mark.parametrize("dataset", [SHORTS, SHORTS.batch(2)])
def test_what_is_asked_does_not_grow_with_the_function(dataset, monkeypatch):
    asked = []
    validate = _control.validate
    monkeypatch.setattr(_control, "validate", lambda socket, name, text: asked.append(len(text)) or validate(socket, name, text))

    def function(x):
        value = x["b"]
        for i in range(60):
            value = value * np.float32(2) + np.float32(i % 10)
            assert value.shape[-1] == 3
        return value

    dataset.map(function)
    assert len(asked) >= 60
    assert max(asked[-20:]) <= max(asked[10:30])


def test_nothing_is_kept_by_what_has_been_asked():
    import weakref

    traces = []

    def function(x):
        assert x["b"].shape == (3,)
        traces.append(weakref.ref(x["b"]._trace))
        return x["b"]

    import gc

    gc.disable()
    try:
        SHORTS.map(function)
        assert traces[0]() is None
    finally:
        gc.enable()


def test_sources_of_every_type_have_it():
    for name in ("bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "bfloat16"):
        for shape in ((), (1,), (5,), (2, 1, 3), (None,), (None, None, 3), (4, None)):
            dtype = name if name == "bfloat16" else np.dtype(name)
            stages = [_types._SOURCE, _types.Stage("map", [("out", ["value = " + _types._expression(shape, dtype)])])]
            (spec,), _ = _types.types_of(stages)
            assert (spec.shape, spec.dtype, spec.kind) == (shape, dtype, "dense")


def test_a_trace_asks_once_for_each_value(monkeypatch):
    asked = []
    validate = _control.validate

    def function(x):
        y = x["b"] + 1
        y.shape
        monkeypatch.setattr(_control, "validate", lambda *arguments: asked.append(arguments) or validate(*arguments))
        assert (y.shape, y.ndim, y.dtype) == ((3,), 1, np.float32)
        return y

    SHORTS.map(function)
    assert asked == []
    assert _trace.Trace(SHORTS)._types is None
