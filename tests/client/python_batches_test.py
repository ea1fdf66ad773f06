"""Maps behind `batch`, and places behind datasets of elements: the values are those that tf.data gives."""

import itertools
import re

import numpy as np
import penstock
import pytest

D = penstock.Dataset


@pytest.mark.parametrize("between", [lambda d: d, lambda d: d.filter(lambda x: np.sum(x) >= 0), lambda d: d.cache()])
def test_a_reduction_of_all_axes_is_of_the_whole_batch(between):
    batches = between(D.range(6).batch(3, drop_remainder=True))
    assert [int(x) for x in batches.map(lambda x: np.sum(x))] == [3, 12]
    assert [x.tolist() for x in batches.map(lambda x: x - np.max(x))] == [[-2, -1, 0]] * 2
    assert [x.tolist() for x in batches.map(lambda x: x * 2)] == [[0, 2, 4], [6, 8, 10]]


def test_an_output_means_the_same_whatever_stands_beside_it():
    pairs = D.from_tensor_slices(np.array([[1, 2], [3, 4]])).batch(2)
    (alone,) = pairs.map(lambda x: {"s": np.sum(x)})
    (beside,) = pairs.map(lambda x: {"s": np.sum(x), "m": np.max(x, axis=0)})
    assert int(alone["s"]) == int(beside["s"]) == 10
    assert beside["m"].tolist() == [3, 4]


def numbers(texts):
    return D.from_tensor_slices(np.array(texts)).map(lambda s: penstock.io.string_to_number(s, np.int64)).filter(lambda x: x >= 0)


@pytest.mark.parametrize("skipped", range(7))
def test_elements_in_front_of_an_error_are_there_behind_any_skip(skipped):
    flat = numbers(["0", "1", "2", "bad"]).flat_map(lambda x: D.range(2))
    found = []
    with pytest.raises(penstock.DataLossError):
        for x in flat.skip(skipped):
            found.append(int(x))
    assert found == [0, 1, 0, 1, 0, 1][skipped:]


def test_elements_are_there_although_their_input_never_goes_on():
    flat = D.counter().filter(lambda x: x < 5).flat_map(lambda x: D.range(2))
    assert [int(x) for x in itertools.islice(flat.skip(1), 3)] == [1, 0, 1]


PAIRS = penstock.Dataset.from_tensor_slices({"x": np.zeros((4, 3, 2), np.float32), "v": np.zeros((4, 3), np.int64)}).batch(2)


@pytest.mark.parametrize(
    "function, message",
    [
        # Both ways for one reason.
        (lambda e: e["v"] + np.arange(5), r'column 11 of "[^"]*": add: shapes do not broadcast: int64 \(\?, 3\) and int64 \(5,\)$'),
        (lambda e: e["v"][:, 7], r"index 7 is out of an axis of 3: int64 \(\?, 3\)$"),
        # The same operation: rows have a cure.
        (
            lambda e: e["x"] * e["v"],
            r"multiply: broadcasting .* reaches the batch axis.*\(x\[:, None\]\).*; nor of whole batches: multiply: shapes do not broadcast: "
            r"float32 \(\?, 3, 2\) and int64 \(\?, 3\)$",
        ),
        # Whole batches come further.
        (
            lambda e: e["v"] - e["v"].mean() + e["x"],
            r'column 23 of "[^"]*": add: shapes do not broadcast.*; nor row by row, column 14: mean: expected an axis',
        ),
        (lambda e: np.cumsum(e["v"], axis=0)[:, 9], r"index 9 is out of an axis of 3: .*; nor row by row, column 9: cumsum: axis"),
        (lambda e: e["v"][0, 7], r"index 7 is out of an axis of 3: .*; nor row by row, column 11: the first axis .* is the batch"),
    ],
)
def test_what_is_refused_of_rows_and_of_batches_says_what_to_act_on(function, message):
    with pytest.raises(penstock.InvalidArgumentError) as caught:
        PAIRS.map(function).element_spec
    assert re.search(message, str(caught.value).split("\n")[0]), caught.value


def of_the_datas_size():
    """Batches of two rows of the same numbers, whose axes behind the first only the data tells."""
    numbers = D.range(1, 5).map(lambda n: penstock.functions.arange(n * 0 + 2) + n).batch(2)
    images = D.range(1, 5).map(lambda n: np.reshape(penstock.functions.arange(n * 0 + 6) + n, [n * 0 + 2, 3])).batch(2)
    of_numbers = [np.array([[n, n + 1], [n + 1, n + 2]]) for n in (1, 3)]
    of_images = [np.arange(6).reshape(2, 3) + np.array([n, n + 1])[:, None, None] for n in (1, 3)]
    return [(numbers, of_numbers), (images, of_images)]


@pytest.mark.parametrize("function", [
    np.ravel,
    lambda x: x.reshape(-1),
    lambda x: np.reshape(x, (-1,)),
    lambda x: x.flatten(),
    lambda x: np.outer(x, np.array([1, 2])),
    lambda x: x.reshape(-1, 1),
    lambda x: np.reshape(x, [-1, 2]),
    lambda x: x.reshape(2, -1),
    lambda x: x.reshape(x.shape[0], -1),
    lambda x: np.ravel(x) * 2 + 1,
    lambda x: {"x": np.ravel(x)}["x"],
])  # fmt: skip
def test_batches_of_sizes_that_only_the_data_tells_are_reshaped_as_numpy_does(function):
    for batches, arrays in of_the_datas_size():
        for found, array in zip([*batches.map(function)], arrays):
            np.testing.assert_array_equal(found, function(array))


def test_axes_of_one_are_not_left_out_by_what_only_the_data_tells():
    ones = D.range(1, 5).map(lambda n: penstock.functions.arange(n * 0 + 1) + n)
    for dataset in (ones, ones.batch(2), ones.padded_batch(2), D.range(4).map(lambda n: np.reshape(n, [1])).batch(2)):
        with pytest.raises(penstock.TraceError, match=r"np.squeeze of a value of shape \(None.*np.squeeze\(x, axis=-1\)"):
            dataset.map(np.squeeze)
        with pytest.raises(penstock.TraceError, match="np.squeeze of a value of shape"):
            dataset.map(lambda x: x.squeeze())
    assert [x.tolist() for x in D.range(4).map(lambda n: np.reshape(n, [1])).batch(2).map(lambda x: np.squeeze(x, -1))] == [[0, 1], [2, 3]]
    assert [x.tolist() for x in D.range(2).map(lambda n: np.squeeze(np.reshape(n, [1, 1])))] == [0, 1]
