"""Subscripts by arrays, constant and traced, against NumPy's: chosen by dice, of every arrangement, and long ones, which are constants of their stage."""

import numpy as np
import pytest

import penstock

VALUES = np.random.default_rng(1).integers(-99, 99, (2, 5, 4, 3, 2))
WAVE = np.random.default_rng(2).normal(size=(2, 16_000)).astype(np.float32)


def check(values, *subscripts):
    """Each subscript of each element."""
    (found,) = penstock.Dataset.from_tensor_slices(values).map(lambda x: {f"{i}": x[item] for i, item in enumerate(subscripts)}).batch(len(values))
    for i, item in enumerate(subscripts):
        expected = np.stack([row[item] for row in values])
        assert found[f"{i}"].dtype == expected.dtype
        np.testing.assert_array_equal(found[f"{i}"], expected, err_msg=repr(item))


def drawn_subscript(dice, shape):
    """Items for some of the axes: slices, integers, new axes, an ellipsis, and arrays that broadcast together."""
    wide = [(), (3,), (2, 3), (2, 1), (1,)]
    items, axis = [], 0
    while axis < len(shape):
        size = shape[axis]
        kind = dice.choice(["whole", "slice", "integer", "array", "list", "flags", "new", "ellipsis", "end"])
        if kind == "end":
            break
        if kind == "new":
            items.append(None)
            continue
        if kind == "ellipsis":
            if Ellipsis in [item for item in items if item is Ellipsis]:
                continue
            items.append(Ellipsis)
            axis += int(dice.integers(0, len(shape) - axis + 1))
            continue
        if kind == "whole":
            items.append(slice(None))
        elif kind == "slice":
            items.append(slice(int(dice.integers(0, 2)), None, int(dice.choice([1, -1, 2]))) if size > 2 else slice(None, None, -1))
        elif kind == "integer":
            items.append(int(dice.integers(-size, size)))
        elif kind == "flags":
            flags = np.zeros(size, bool)
            # As many as broadcast with the others.
            flags[dice.permutation(size)[: 3 if size >= 3 and dice.integers(2) else 1]] = True
            items.append(flags)
        else:
            places = dice.integers(-size, size, wide[dice.integers(len(wide))])
            items.append(places.tolist() if kind == "list" and places.ndim else places)
        axis += 1
    return tuple(items)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_subscripts(seed):
    dice = np.random.default_rng(seed)
    found = []
    while len(found) < 60:
        item = drawn_subscript(dice, VALUES.shape[1:])
        try:
            size = VALUES[0][item].size
        except IndexError:
            continue
        if size > 0:
            found.append(item)
    assert sum(any(isinstance(part, (list, np.ndarray)) for part in item) for item in found) > 30
    check(VALUES, *found)


def test_flags_of_several_axes():
    dice = np.random.default_rng(3)
    check(VALUES, dice.integers(0, 2, (5, 4)).astype(bool), dice.integers(0, 2, (5, 4, 3, 2)).astype(bool), (slice(1, 4), dice.integers(0, 2, (4, 3)).astype(bool)),
          (..., dice.integers(0, 2, (3, 2)).astype(bool)), (dice.integers(0, 2, (5, 4)).astype(bool), 1), (0, dice.integers(0, 2, (4, 3)).astype(bool)))  # fmt: skip
    for function in (lambda x: x[x > 0], lambda x: x[x[..., 0] > 0], lambda x: x[x[..., 0, 0] > 0], lambda x: x[x[:, 0, 0, 0] > 0]):
        for row, found in zip(VALUES, penstock.Dataset.from_tensor_slices(VALUES).map(function), strict=True):
            np.testing.assert_array_equal(found, function(row))


def test_long_ones():
    places = np.random.default_rng(4).integers(-16_000, 16_000, 32_000)
    frames = np.arange(400) + 160 * np.arange(90)[:, None]
    check(WAVE, places, places[:1500], frames, frames[:, ::7], WAVE[0] > 0)
    dataset = penstock.Dataset.from_tensor_slices(WAVE)
    for function in (lambda x: np.take(x, places), lambda x: np.take(x, frames), lambda x: np.repeat(x, 3), lambda x: np.repeat(x, np.arange(16_000) % 3),
                     lambda x: np.repeat(np.reshape(x, (160, 100)), 40, axis=0)):  # fmt: skip
        mapped = dataset.map(function)
        assert len(mapped.spec_text()) < 2000
        for row, found in zip(WAVE, mapped, strict=True):
            np.testing.assert_array_equal(found, function(row))


def test_of_rows_of_a_batch():
    frames = np.arange(400) + 160 * np.arange(90)[:, None]
    (found,) = penstock.Dataset.from_tensor_slices(WAVE).batch(2).map(lambda x: (x[:, frames], x[:, ::-1][:, np.arange(200) * 3], x[:, np.arange(16_000) % 5 == 1]))
    np.testing.assert_array_equal(found[0], WAVE[:, frames])
    np.testing.assert_array_equal(found[1], WAVE[:, ::-1][:, np.arange(200) * 3])
    np.testing.assert_array_equal(found[2], WAVE[:, np.arange(16_000) % 5 == 1])


def test_of_sizes_that_only_the_data_tells():
    pieces = penstock.Dataset.from_tensor_slices(VALUES).map(lambda x: np.compress(x[:, 0, 0, 0] > -200, x, axis=0))
    for item in (np.array([3, 0]), np.array([[3, 0], [1, -1]]), (slice(None), np.array([1, 0]), np.array([2, 1])), (..., np.array([True, False])), (0, 1, [1, 0])):
        for row, found in zip(VALUES, pieces.map(lambda x: x[item]), strict=True):
            np.testing.assert_array_equal(found, row[item])


def test_repeats_along_sizes_that_only_the_data_tells():
    pieces = penstock.Dataset.from_tensor_slices(VALUES).map(lambda x: np.compress(x[:, 0, 0, 0] > 0, x, axis=0))
    for function in (lambda x: np.repeat(x, 3, axis=0), lambda x: x[:, 0, 0, 0].repeat(2), lambda x: np.repeat(x, 1, axis=0), lambda x: np.repeat(x, 2, axis=1)):
        for row, found in zip(VALUES, pieces.map(function), strict=True):
            np.testing.assert_array_equal(found, function(row[row[:, 0, 0, 0] > 0]))
    (found,) = penstock.Dataset.from_tensor_slices(VALUES).batch(2).map(lambda x: np.repeat(x, 2, axis=0))
    np.testing.assert_array_equal(found, np.repeat(VALUES, 2, axis=0))


ERRORS = [
    (lambda x: x[np.array([0.5])], "a subscript that is an array of float64; it holds integers or flags"),
    (lambda x: x[np.array([True, False])], r"flags of shape \(2,\) along axes of the sizes \(5,\); one flag for each place"),
    (lambda x: x[np.zeros(5, bool)], "a subscript that names nothing"),
    (lambda x: x[[0, 1], [0, 1, 2]], r"subscripts of the shapes \(2,\), \(3,\); they broadcast"),
    (lambda x: x[[0, 1], [0, 4]], "the subscript 4 of an axis of 4; places are within the axis"),
    (lambda x: x[[0], [0], [0], [0], [0]], "5 subscripts of a value of 4 axes"),
    (lambda x: x[..., [0], ..., [0]], "a subscript with two ellipses"),
    (lambda x: x[[0, 1], True], "a subscript by a lone flag"),
    (lambda x: np.compress(x[:, 0, 0, 0] > 0, x, axis=0)[[0, 0], [1, 1]], "along axes of sizes that only the data tells"),
    (lambda x: np.repeat(np.compress(x[:, 0, 0, 0] > 0, x, axis=0), [1, 2], axis=0), "one number of repeats, where the other sizes are known"),
    (lambda x: x[:, x[0, :] > 0], "a subscript by flags of 3 axes after others"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_what_is_refused(case):
    function, message = ERRORS[case]
    with pytest.raises(penstock.TraceError, match=message):
        list(penstock.Dataset.from_tensor_slices(VALUES).map(function))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_narrow_integers_name_places_of_long_axes(dtype):
    values = np.arange(2 * 300 * 300).reshape(2, 300, 300)
    places = np.array([[0, 100], [-1 if np.dtype(dtype).kind == "i" else 1, 127]]).astype(dtype)
    check(values, (places, places[::-1]), (slice(None), places), places, (places, 299))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("axis", [0, 1])
def test_narrow_integers_along_an_axis(dtype, axis):
    values = np.arange(2 * 40 * 300).reshape(2, 300, 40) if axis == 0 else np.arange(2 * 40 * 300).reshape(2, 40, 300)
    places = np.array([0, 100, -1 if np.dtype(dtype).kind == "i" else 1, 127]).astype(dtype)
    places = np.broadcast_to(places[:, None], (4, 40)) if axis == 0 else np.broadcast_to(places, (40, 4))
    expected = np.stack([np.take_along_axis(row, places, axis) for row in values])
    dataset = penstock.Dataset.from_tensor_slices((values, np.stack([places, places])))

    def taken(x, at):
        none = np.sum(at * 0).astype(np.int64)
        unsized = x[: 300 + none] if axis == 0 else x[:, : 300 + none]
        return (
            np.take_along_axis(x, at, axis),
            np.take_along_axis(x, places, axis),
            np.take_along_axis(unsized, at, axis),
        )

    for found in zip(*dataset.map(taken)):
        np.testing.assert_array_equal(np.stack(found), expected)
