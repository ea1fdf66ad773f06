"""Windows of datasets, and what is made of each."""

import numpy as np
import pytest

import penstock


def test_windows_are_consumed_by_flat_map_or_map():
    windows = penstock.Dataset.range(6).window(3)
    with pytest.raises(TypeError, match="flat_map"):
        iter(windows)
    with pytest.raises(penstock.TraceError, match="returned a int"):
        windows.flat_map(lambda w: 3)
    with pytest.raises(penstock.TraceError, match="made of the window"):
        windows.flat_map(lambda w: penstock.Dataset.range(3))
    with pytest.raises(ValueError, match="size is at least 1: 0"):
        penstock.Dataset.range(6).window(0)
    spec = windows.flat_map(lambda w: w.batch(3, drop_remainder=True)).element_spec
    assert spec.shape == (3,) and spec.dtype == np.int64


def test_a_window_of_nests_is_a_nest_of_datasets():
    make = penstock.Dataset
    numbers = make.zip((make.range(9), make.range(9, 18))).enumerate()
    found = numbers.window(3).flat_map(lambda i, p: make.zip((i.batch(3), p[1].batch(3))))
    assert [(i.tolist(), y.tolist()) for i, y in found][1] == ([3, 4, 5], [12, 13, 14])
    found = numbers.window(3).flat_map(lambda i, p: make.zip(p).batch(3))
    assert [(x.tolist(), y.tolist()) for x, y in found][2] == ([6, 7, 8], [15, 16, 17])
    named = numbers.map(lambda i, p: {"i": i, "p": {"x": (p[0],), "y": p[1]}})
    found = named.window(3).flat_map(lambda w: make.zip(w["p"]["x"][0].batch(2), w["i"].batch(2)))
    assert [(x.tolist(), i.tolist()) for x, i in found][:2] == [([0, 1], [0, 1]), ([2], [2])]


def test_a_shape_in_a_window_is_known():
    pairs = penstock.Dataset.from_tensor_slices(np.arange(12, dtype=np.float32).reshape(6, 2))
    found = pairs.window(3, 1, drop_remainder=True).flat_map(lambda w: w.map(lambda x: x.reshape(x.shape[0], 1)).batch(3))
    assert [batch.shape for batch in found] == [(3, 2, 1)] * 4


def test_windows_say_what_makes_elements_of_them():
    with pytest.raises(AttributeError, match=r"^windows have no take: .*flat_map\(lambda w: w.batch\(size\)\)"):
        penstock.Dataset.range(6).window(3).take(2)
