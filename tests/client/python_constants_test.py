"""Arrays that a traced function uses: short ones stand in the spec, others in a memory file."""

import gc

import numpy as np
import pytest

import penstock
from penstock import Dataset


@pytest.mark.parametrize("dtype", "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
def test_a_large_constant_of_every_type(dtype):
    table = (np.random.default_rng(1).normal(size=(5000, 7)) * 50).astype(dtype)
    # The function's own copy: nobody else holds the array while the pipeline runs.
    used = table.copy()
    dataset = Dataset.range(50).map(lambda i: penstock.functions.take(used, i * 97, axis=0))
    del used
    gc.collect()
    assert len(dataset.spec_text()) < 1000
    found = np.stack(list(dataset))
    assert found.dtype == table.dtype
    np.testing.assert_array_equal(found, table[np.arange(50) * 97])


def test_a_mean_image_is_subtracted():
    """Beyond what a spec's text may hold."""
    mean = np.random.default_rng(2).random((224, 224, 3)).astype(np.float32)
    for i, image in enumerate(Dataset.range(3).map(lambda i: i.astype(np.float32) - mean)):
        np.testing.assert_array_equal(image, np.float32(i) - mean)


def test_conditions_and_states_have_large_constants_too():
    flags = np.arange(30_000) % 3 == 0
    chosen = Dataset.range(10).filter(lambda i: penstock.functions.take(flags, i))
    assert [int(i) for i in chosen] == [0, 3, 6, 9]
    steps = np.arange(30_000) * 2
    sums = Dataset.range(4).scan(np.int64(0), lambda total, i: (total + penstock.functions.take(steps, i), total))
    assert [int(total) for total in sums] == [0, 0, 2, 6]


def test_a_uint64_that_no_int64_holds():
    table = np.array([2**63, 2**64 - 1], np.uint64)
    assert [int(x) for x in Dataset.range(2).map(lambda i: penstock.functions.take(table, i))] == [2**63, 2**64 - 1]


@pytest.mark.parametrize("axis", [0, 1, -1, np.int64(0)])
def test_axes_are_counted_from_either_side(axis):
    table = np.arange(12).reshape(3, 4)
    for i, found in enumerate(Dataset.range(2).map(lambda i: penstock.functions.take(table, i, axis=axis))):
        np.testing.assert_array_equal(found, np.take(table, i, axis))
    rows = Dataset.from_tensors(table)
    for name, at in (("sort", 0), ("cumsum", axis), ("argmax", axis)):
        (found,) = rows.map(lambda x, name=name, at=at: getattr(penstock.functions, name)(-x, axis=at))
        np.testing.assert_array_equal(found, getattr(np, name)(-table, axis=at))
    (found,) = rows.map(lambda x: penstock.functions.stack(x, -x, axis=axis))
    np.testing.assert_array_equal(found, np.stack([table, -table], axis=axis))


def test_an_axis_that_is_not_there():
    with pytest.raises(penstock.InvalidArgumentError, match="axis: expected an integer constant of -2 to -1, found 2"):
        list(Dataset.from_tensors(np.zeros((2, 2))).map(lambda x: penstock.functions.sort(x, axis=2)))


def test_lists_of_numpy_scalars_have_their_type():
    """As NumPy's arrays of them have; as sizes they are numbers."""
    row = np.arange(2, dtype=np.float32)
    functions = [
        lambda x: x * [np.float32(0.1), np.float32(0.2)],
        lambda x: [np.float32(0.1), np.float32(0.2)] + x,
        lambda x: np.maximum(x, [[np.float32(0.5)], [np.float32(0.25)]]),
        lambda x: x.astype(np.int8) + [np.int8(1), np.int8(2)],
        lambda x: np.where(x > 0, [np.uint8(7), np.uint8(8)], np.uint8(9)),
        lambda x: x.astype(np.uint64) | [np.uint64(1 << 63), np.uint64(1)],
        lambda x: x * [np.float32(0.1), 2],
        lambda x: x * [0.1, 0.2],
        lambda x: x.reshape([np.int64(2), -1]),
        lambda x: np.reshape(x, (np.int32(1), np.int32(2))),
        lambda x: np.pad(x, [(np.int32(1), np.int32(0))]),
    ]
    (found,) = Dataset.from_tensors(row).map(lambda x: tuple(function(x) for function in functions))
    for i, (ours, function) in enumerate(zip(found, functions)):
        theirs = function(row)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), i
        np.testing.assert_array_equal(ours, theirs, err_msg=str(i))


@pytest.mark.parametrize("size", [3, 30_000])
@pytest.mark.parametrize("dtype", [">i2", ">i4", ">f4", ">f8", ">u8"])
def test_constants_of_the_other_byte_order(dtype, size):
    table = (np.arange(size) * 3 + 1).astype(dtype)
    found = np.stack(list(Dataset.range(3).map(lambda i: penstock.functions.take(table, i))))
    assert found.tolist() == [1, 4, 7] and found.dtype == table.dtype.newbyteorder("=")
