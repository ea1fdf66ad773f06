"""What the data names: np.take, np.compress, np.searchsorted and their kin on traced values, against NumPy's results of the same arrays."""

import numpy as np
import pytest

import penstock
from penstock import functions

DICE = np.random.default_rng(11)
TABLE = DICE.integers(-9, 9, (7, 3))
WIDE = DICE.normal(size=(4, 7, 2)).astype(np.float32)
EDGES = np.array([-3, 0, 0, 2, 7])
NUMBERS = np.array([-7, -1, 0, 2, 3, 6], np.int64)
ROWS = DICE.integers(-4, 8, (6, 5))
REALS = np.array([[np.nan, -3.0], [0.0, -0.0], [1e300, -np.inf], [7.0, 6.9], [2.0, 1.9], [np.inf, 0.1]])


def check(function, *columns, batched=False):
    """The function of each element; also behind a batch, where it is the same for each row."""
    dataset = penstock.Dataset.from_tensor_slices(columns)
    found = list(dataset.map(lambda *x: function(np, *x)))
    for ours, *parts in zip(found, *columns, strict=True):
        theirs = np.asarray(function(np, *parts))
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)
    if batched:
        (whole,) = dataset.batch(len(columns[0])).map(lambda *x: function(np, *x))
        np.testing.assert_array_equal(whole, function(np, *columns))


def table(array, indices, **options):
    """NumPy looks at a constant table alone, and not at what is traced in its subscript."""
    if isinstance(indices, np.ndarray | np.generic):
        axis = options.pop("axis", -1)
        return np.take(array, indices, axis, **options)
    return functions.take(array, indices, **options)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("index_dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_of_a_table(dtype, index_dtype):
    flat = TABLE[:, 0].astype(dtype)
    places = np.array([0, 6, 3, 2]).astype(index_dtype)
    check(lambda np, i: table(flat, i), places, batched=True)
    check(lambda np, i: table(TABLE.astype(dtype), i, axis=-2), places, batched=True)
    check(lambda np, i: table(WIDE.astype(dtype), i, axis=-2), np.stack([places, places[::-1]]))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_repeated_as_often_as_the_data_tells(dtype):
    many = np.arange(3 * 100).reshape(3, 100)
    counts = np.array([0, 1, 100]).astype(dtype)
    check(lambda np, x, n: np.repeat(x, n), many, counts)
    check(lambda np, x, n: np.repeat(np.reshape(x, (2, 50)), n, axis=0), many, counts)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_indices_outside(mode):
    check(lambda np, i: table(TABLE[:, 1], i, mode=mode), NUMBERS if mode == "raise" else NUMBERS * 5, batched=True)


OF_ELEMENTS = [
    lambda np, x, i: np.take(x, i),
    lambda np, x, i: x[i],
    lambda np, x, i: x[..., i],
    lambda np, x, i: np.take(np.reshape(x, (5, 1)), i, axis=0),
    lambda np, x, i: np.reshape(x, (5, 1))[i],
    lambda np, x, i: np.stack([x, x + 1])[:, i],
    lambda np, x, i: np.stack([x, x + 1])[..., i - 1],
    lambda np, x, i: np.take(x, i - 2 + np.arange(3)),
    lambda np, x, i: np.take(np.stack([x, -x]), i),
    lambda np, x, i: x[np.stack([i, i - 1])],
    lambda np, x, i: np.take(x, i * 3, mode="wrap"),
    lambda np, x, i: np.take(x, 3),
    lambda np, x, i: np.take(np.stack([x, -x]), [1, 0], axis=0),
    lambda np, x, i: x[x > 0],
    lambda np, x, i: np.stack([x, x * 2], axis=-1)[x > i],
    lambda np, x, i: np.compress(x < 3, np.stack([x, x * 2]), axis=1),
    lambda np, x, i: np.stack([x, x * 2])[:, x == x],
    lambda np, x, i: np.searchsorted(np.sort(x), i),
    lambda np, x, i: np.searchsorted(EDGES, x, side="right") + np.searchsorted(EDGES, x),
    lambda np, x, i: np.digitize(x, EDGES) * 10 + np.digitize(x, EDGES, right=True),
    lambda np, x, i: np.isin(x, [3, -2, 99, 3]),
    lambda np, x, i: np.isin(x[x > 0], np.array([1, 4]), invert=True),
    lambda np, x, i: np.isin(x, []),
]


@pytest.mark.parametrize("case", range(len(OF_ELEMENTS)))
def test_of_an_element(case):
    check(OF_ELEMENTS[case], ROWS, np.array([2, 0, 4, 3, 1, 2]))


@pytest.mark.parametrize("words", [["Cat"], ["dog", "Cat", "dog"], np.array([b"dog", b"", b"x"], object), np.array([["Cat", "cow"]]), []])
def test_whether_a_text_is_among_others(words):
    texts = np.array([[b"cat", b"Cat"], [b"", b"dog"]], object)
    words_in_bytes = [word if isinstance(word, bytes) else word.encode() for word in np.ravel(words).tolist()]
    for invert in (False, True):
        found = list(penstock.Dataset.from_tensor_slices(texts).map(lambda x: (np.isin(x, words, invert=invert), np.isin(x[0], words, invert=invert))))
        for (flags, flag), row in zip(found, texts, strict=True):
            expected = [(text in words_in_bytes) != invert for text in row]
            assert flags.dtype == flag.dtype == bool and flags.tolist() == expected and bool(flag) == expected[0]


@pytest.mark.parametrize("edges", [EDGES, EDGES.astype(np.float32), EDGES + 0.25, np.append(EDGES, np.nan), EDGES.astype(np.int8)])
def test_buckets(edges):
    check(lambda np, x: np.searchsorted(edges, x, side="left"), REALS, batched=True)
    check(lambda np, x: np.searchsorted(edges, x, side="right"), REALS.astype(np.float32), batched=True)
    check(lambda np, x: np.searchsorted(edges, x), NUMBERS, batched=True)


def test_large_unsigned_numbers_are_told_apart():
    edges = np.array([1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
    check(lambda np, a, x: np.searchsorted(a, x, side="right"), np.tile(edges, (4, 1)), np.array([0, 2**63, 2**63 + 1, 2**64 - 1], np.uint64))


def test_of_a_whole_batch():
    values = penstock.Dataset.from_tensor_slices((ROWS, ROWS[:, 0])).batch(6)
    (found,) = values.map(lambda x, y: (x[y > 0], x[np.argmax(y)], np.searchsorted(np.sort(y), y)))
    first = ROWS[:, 0]
    np.testing.assert_array_equal(found[0], ROWS[first > 0])
    np.testing.assert_array_equal(found[1], ROWS[np.argmax(first)])
    np.testing.assert_array_equal(found[2], np.searchsorted(np.sort(first), first))


ERRORS = [
    (lambda x, i: x[i], penstock.DataLossError, "take: index 5 is out of an axis of 5"),
    (lambda x, i: x[x > 0][i - 1], penstock.DataLossError, r"take: index 4 is out of an axis of \d"),
    (lambda x, i: np.compress(x[x > 0] > 1, x), penstock.DataLossError, r"compress: \d flags for an axis of 5: \(5,\)"),
    (lambda x, i: functions.take(np.arange(3), i), penstock.DataLossError, "take: index 5 is out of an axis of 3"),
    (lambda x, i: np.compress(x[:4] > 1, x), penstock.InvalidArgumentError, "a flag for each of 5, found 4"),
    (lambda x, i: functions.take(x, i / 2), penstock.InvalidArgumentError, "indices: expected integers"),
    (lambda x, i: functions.take(x, i, mode="up"), penstock.InvalidArgumentError, 'expected "raise", "wrap" or "clip"'),
    (lambda x, i: functions.compress(x, x), penstock.InvalidArgumentError, "expected flags of one axis, found int64"),
    (lambda x, i: functions.searchsorted(np.stack([x, x]), i), penstock.InvalidArgumentError, "sorted numbers of one axis"),
    (lambda x, i: x[x : x + 2], penstock.TraceError, "takes of one axis"),
    (lambda x, i: np.stack([x, x])[1, x], penstock.TraceError, "takes of one axis"),
    (lambda x, i: np.stack([x, x])[i, x], penstock.TraceError, "takes of one axis"),
    (lambda x, i: np.stack([x, x])[..., ..., x], penstock.TraceError, "takes of one axis"),
    (lambda x, i: TABLE[i], penstock.TraceError, r"penstock.functions.take\(table, x, axis=0\)"),
    (lambda x, i: np.digitize(x, [3, 1]), penstock.TraceError, "rising order"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_what_does_not_fit(case):
    function, kind, message = ERRORS[case]
    dataset = penstock.Dataset.from_tensor_slices((ROWS[:1], np.array([5])))
    with pytest.raises(kind, match=message):
        list(dataset.map(function))
