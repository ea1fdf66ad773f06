"""What puts traced values side by side, repeats, moves and takes them apart, and the same of strings: against NumPy's results."""

import numpy as np
import pytest

import penstock

DICE = np.random.default_rng(21)
# NumPy's own type for bytes, which it makes of a single one, drops zeros at their end.
WORDS = [b"", b"a", b"ab", b"b", b"\x00b", b"a\x00c", b"\xff", b"zz", "ß".encode(), b"B"]


def numbers(*shape, dtype=np.int64):
    return DICE.integers(0, 90, shape).astype(dtype)


def words(*shape):
    return DICE.choice(np.array(WORDS, object), shape)


def check(function, *columns, batched=True):
    """The function of each element, and of all of them as one batch; NumPy gets the same arrays."""
    dataset = penstock.Dataset.from_tensor_slices(columns)
    for found, *parts in zip(dataset.map(lambda *x: function(np, *x)), *columns, strict=True):
        same(found, function(np, *parts))
    if batched:
        (whole,) = dataset.batch(len(columns[0])).map(lambda *x: function(np, *x))
        same(whole, function(np, *columns))


def same(found, expected):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected):
            same(ours, theirs)
        return
    expected = np.asarray(expected)
    expected = expected.astype(object) if expected.dtype.kind == "S" else expected
    found = np.asarray(found, expected.dtype) if expected.dtype == object else found
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def as_texts(array):
    """A constant of the same texts that NumPy compares by their bytes."""
    return np.array(array, object)


# Of x (3,), y (2, 3), z (3, 2, 3) and n, a number below 90.
OF_NUMBERS = [
    lambda np, x, y, z, n: np.hstack([x, x * 2, x]),
    lambda np, x, y, z, n: np.hstack([y, y[:, :1]]),
    lambda np, x, y, z, n: np.hstack([n, n + 1]),
    lambda np, x, y, z, n: np.hstack([z, z]),
    lambda np, x, y, z, n: np.vstack([x, y, x]),
    lambda np, x, y, z, n: np.vstack([n, n]),
    lambda np, x, y, z, n: np.vstack([z, z, z, z, z]),
    lambda np, x, y, z, n: np.dstack([x, x]),
    lambda np, x, y, z, n: np.dstack([y, y * 2]),
    lambda np, x, y, z, n: np.dstack([z, z]),
    lambda np, x, y, z, n: np.dstack([n, n]),
    lambda np, x, y, z, n: np.column_stack([x, x, y.T]),
    lambda np, x, y, z, n: np.concatenate([[1], [2, 3], [4], [5], x, [n]]),
    lambda np, x, y, z, n: np.stack([1, 2, 3, 4, 5, 6, n]),
    lambda np, x, y, z, n: np.append(x, y),
    lambda np, x, y, z, n: np.append(x, 7),
    lambda np, x, y, z, n: np.append(y, y, axis=0),
    lambda np, x, y, z, n: np.append(x, [n, 2]),
    lambda np, x, y, z, n: np.tile(x, 3),
    lambda np, x, y, z, n: np.tile(x, (2, 1)),
    lambda np, x, y, z, n: np.tile(x, (2, 2, 2)),
    lambda np, x, y, z, n: np.tile(y, 2),
    lambda np, x, y, z, n: np.tile(y, [5, 1]),
    lambda np, x, y, z, n: np.tile(z, (1, 2, 1)),
    lambda np, x, y, z, n: np.tile(n, 4),
    lambda np, x, y, z, n: np.tile(n, (1,)),
    lambda np, x, y, z, n: np.roll(x, 1),
    lambda np, x, y, z, n: np.roll(x, -8),
    lambda np, x, y, z, n: np.roll(x, n),
    lambda np, x, y, z, n: np.roll(y, 4),
    lambda np, x, y, z, n: np.roll(y, (1, 2)),
    lambda np, x, y, z, n: np.roll(x, [1]),
    lambda np, x, y, z, n: np.roll(x, np.array([3, -1])),
    lambda np, x, y, z, n: np.roll(x, (n, 1)),
    lambda np, x, y, z, n: np.roll(y, 1, axis=1),
    lambda np, x, y, z, n: np.roll(z, (1, -1), axis=(0, 2)),
    lambda np, x, y, z, n: np.roll(z, 1, axis=(0, 1)),
    lambda np, x, y, z, n: np.roll(z, -n, axis=-2),
    lambda np, x, y, z, n: tuple(np.split(x, 3)),
    lambda np, x, y, z, n: tuple(np.split(y, [1, 2], axis=1)),
    lambda np, x, y, z, n: tuple(np.split(y, 2)),
    lambda np, x, y, z, n: tuple(np.array_split(x, 2)),
    lambda np, x, y, z, n: tuple(np.array_split(y, 2, axis=-1)),
    lambda np, x, y, z, n: tuple(np.hsplit(y, 3)),
    lambda np, x, y, z, n: tuple(np.vsplit(y, 2)),
    lambda np, x, y, z, n: np.diff(x),
    lambda np, x, y, z, n: np.diff(y, axis=0),
    lambda np, x, y, z, n: np.diff(y > 40),
    lambda np, x, y, z, n: np.diff(x, 2),
    lambda np, x, y, z, n: np.atleast_1d(n),
    lambda np, x, y, z, n: np.atleast_2d(x),
    lambda np, x, y, z, n: np.atleast_3d(x),
    lambda np, x, y, z, n: np.atleast_3d(y),
    lambda np, x, y, z, n: np.atleast_3d(n),
    lambda np, x, y, z, n: np.flip(y),
    lambda np, x, y, z, n: np.flip(z, (0, 2)),
    lambda np, x, y, z, n: np.fliplr(y),
    lambda np, x, y, z, n: np.flipud(x),
    lambda np, x, y, z, n: np.argsort(x, kind="stable"),
    lambda np, x, y, z, n: np.argsort(z, axis=1, kind="stable"),
    lambda np, x, y, z, n: np.argsort(y, axis=None, kind="stable"),
    lambda np, x, y, z, n: np.argsort(np.where(y > 50, np.nan, y), axis=0, kind="stable"),
    lambda np, x, y, z, n: np.argsort(x > 40, kind="stable"),
    lambda np, x, y, z, n: x[n % 3 :],
    lambda np, x, y, z, n: y[n % 2, : n % 3],
    lambda np, x, y, z, n: z[n % 3 : n, :, ::-2],
    lambda np, x, y, z, n: z[:, n % 2, n % 3 :],
    lambda np, x, y, z, n: z[1, n % 2, -(n % 3) - 1],
    lambda np, x, y, z, n: x[-n : n - 40],
    lambda np, x, y, z, n: x[n - 10 : n + 2 : 2],
]


@pytest.mark.parametrize("number", range(len(OF_NUMBERS)))
def test_numbers(number):
    columns = numbers(6, 3), numbers(6, 2, 3), numbers(6, 3, 2, 3), numbers(6)
    check(OF_NUMBERS[number], *columns, batched=False)
    # Narrow ones too, whose differences wrap.
    check(OF_NUMBERS[number], *(column.astype(np.uint8) for column in columns[:3]), columns[3], batched=False)


BATCHED = [
    lambda np, x, y: np.hstack([x, y]),
    lambda np, x, y: np.vstack([x, y, x]),
    lambda np, x, y: np.dstack([x, y]),
    lambda np, x, y: np.tile(x, 3),
    lambda np, x, y: np.tile(x, (2, 1)),
    lambda np, x, y: np.roll(x, 2, axis=-1),
    lambda np, x, y: np.roll(x, 2, axis=0),
    lambda np, x, y: np.argsort(x, kind="stable"),
    lambda np, x, y: np.argsort(x, axis=0, kind="stable"),
    lambda np, x, y: np.append(x, y, axis=1),
    lambda np, x, y: tuple(np.split(x, [1], axis=1)),
    lambda np, x, y: np.diff(x, axis=0),
    lambda np, x, y: np.concatenate([x, y]),
    lambda np, x, y: np.stack([x, y]),
    lambda np, x, y: np.stack([x, y, x, y, x], axis=1),
    lambda np, x, y: np.where(x < y, x, y),
    lambda np, x, y: np.where(np.array([True, False, True]), x, y),
    lambda np, x, y: np.sort(x),
    lambda np, x, y: np.sort(x, axis=0),
    lambda np, x, y: x < y,
    lambda np, x, y: x[:, None] >= y[:, :, None],
    lambda np, x, y: x.T,
    lambda np, x, y: np.reshape(x, (-1, 1)),
    lambda np, x, y: x.reshape(2, -1),
    lambda np, x, y: x.reshape(x.shape[0], 3, 1),
    lambda np, x, y: np.take(x, np.array([2, 0]), axis=1),
    lambda np, x, y: np.flip(x, 1),
]


@pytest.mark.parametrize("width", [1, [1], (2,), [1, 2], [[2, 1]]], ids=str)
def test_margins_of_all_axes(width):
    for values in (numbers(4, 3), numbers(4, 2, 3, dtype=np.float32)):
        check(lambda np, x: np.pad(x, width), values)


@pytest.mark.parametrize("number", range(len(BATCHED)))
@pytest.mark.parametrize("of", [numbers, words])
def test_batches(number, of):
    function = BATCHED[number]
    columns = of(4, 3), of(4, 3)
    if of is words and number == 11:
        return
    (found,) = penstock.Dataset.from_tensor_slices(columns).batch(4).map(lambda x, y: function(np, x, y))
    same(found, function(np, *columns))


def test_shifts_of_rows_are_the_languages_alone():
    """np.roll adds up the shifts of an array, and moves all rows by the sum."""
    columns = numbers(4, 3), np.arange(4)
    batches = penstock.Dataset.from_tensor_slices(columns).batch(4)
    with pytest.raises(penstock.TraceError, match=r"np.roll by a traced value of shape \(None,\); penstock.functions.roll"):
        batches.map(lambda x, n: np.roll(x, n, axis=1))
    (found,) = batches.map(lambda x, n: penstock.functions.roll(x, n, axis=-1))
    same(found, np.stack([np.roll(row, by) for row, by in zip(*columns)]))


# Of a string s, strings v (3,) and w (2, 3), and i, a number below 2.
OF_STRINGS = [
    lambda np, s, v, w, i: s < b"b",
    lambda np, s, v, w, i: v <= s,
    lambda np, s, v, w, i: v > v[::-1],
    lambda np, s, v, w, i: w >= v,
    lambda np, s, v, w, i: w == v,
    lambda np, s, v, w, i: w != as_texts([b"a", b"a", b"zz"]),
    lambda np, s, v, w, i: s == as_texts([b"a", b"ab"]),
    lambda np, s, v, w, i: v + w,
    lambda np, s, v, w, i: np.sort(v),
    lambda np, s, v, w, i: np.sort(w, axis=0),
    lambda np, s, v, w, i: np.sort(w, axis=None),
    lambda np, s, v, w, i: np.argsort(v, kind="stable"),
    lambda np, s, v, w, i: np.argsort(w, axis=0, kind="stable"),
    lambda np, s, v, w, i: v[np.argsort(v, kind="stable")],
    lambda np, s, v, w, i: np.where(v < s, v, s),
    lambda np, s, v, w, i: np.where(i > 0, v, w),
    lambda np, s, v, w, i: np.where(w == v, as_texts([[b"x"], [b""]]), v),
    lambda np, s, v, w, i: np.where(np.array([[True], [False]]), v, s),
    lambda np, s, v, w, i: np.concatenate([v, v[1:]]),
    lambda np, s, v, w, i: np.concatenate([w, w, w, w, w], axis=1),
    lambda np, s, v, w, i: np.concatenate([as_texts([b"<"]), v, as_texts([b">", b""])]),
    lambda np, s, v, w, i: np.concatenate([w, v], axis=None),
    lambda np, s, v, w, i: np.stack([s, s + b"!", s]),
    lambda np, s, v, w, i: np.stack([v, v], axis=1),
    lambda np, s, v, w, i: np.stack([s]),
    lambda np, s, v, w, i: np.stack([v] * 7),
    lambda np, s, v, w, i: np.hstack([v, s]),
    lambda np, s, v, w, i: np.vstack([v, w]),
    lambda np, s, v, w, i: np.dstack([w, w]),
    lambda np, s, v, w, i: np.tile(v, (2, 2)),
    lambda np, s, v, w, i: np.tile(s, 3),
    lambda np, s, v, w, i: np.roll(v, i + 1),
    lambda np, s, v, w, i: np.roll(w, 1, axis=0),
    lambda np, s, v, w, i: np.flip(w, 1),
    lambda np, s, v, w, i: np.append(v, s),
    lambda np, s, v, w, i: np.take(v, i),
    lambda np, s, v, w, i: v[i],
    lambda np, s, v, w, i: w[i],
    lambda np, s, v, w, i: w[:, i],
    lambda np, s, v, w, i: w[i, i:],
    lambda np, s, v, w, i: np.take(v, np.stack([i, i - 1, i])),
    lambda np, s, v, w, i: np.take(w, i, axis=1),
    lambda np, s, v, w, i: np.reshape(w, (3, 2)),
    lambda np, s, v, w, i: np.reshape(w, -1),
    lambda np, s, v, w, i: np.reshape(s, (1, 1)),
    lambda np, s, v, w, i: w.T,
    lambda np, s, v, w, i: np.expand_dims(v, 0),
    lambda np, s, v, w, i: np.squeeze(v[:1]),
    lambda np, s, v, w, i: np.squeeze(np.reshape(s, (1, 1))),
    lambda np, s, v, w, i: np.swapaxes(w, 0, 1),
    lambda np, s, v, w, i: np.moveaxis(w, 0, 1),
    lambda np, s, v, w, i: np.repeat(v, 2),
    lambda np, s, v, w, i: tuple(np.split(v, [1])),
]


@pytest.mark.parametrize("number", range(len(OF_STRINGS)))
def test_strings(number):
    check(OF_STRINGS[number], words(9), words(9, 3), words(9, 2, 3), numbers(9) % 2, batched=False)


def test_a_table_of_texts_is_a_constant():
    names = np.array(["zero", "one", "two"])
    found = penstock.Dataset.range(3).map(lambda i: penstock.functions.take(names, i))
    assert [text.item() for text in found] == [b"zero", b"one", b"two"]
    batch = penstock.Dataset.range(3).batch(3).map(lambda i: penstock.functions.take(names, i))
    assert next(iter(batch)).tolist() == [b"zero", b"one", b"two"]
    chosen = penstock.Dataset.range(3).map(lambda i: np.where(i > 1, "many", "few"))
    assert [text.item() for text in chosen] == [b"few", b"few", b"many"]


def test_lists_of_any_length():
    """Sizes that only the data tells."""
    lines = [b"a b c", b"", b"d", b"b a b a c"]
    dataset = penstock.Dataset.from_tensor_slices(np.array(lines, object)).map(penstock.strings.split)
    functions = [
        lambda np, x: np.concatenate([x, as_texts([b"end"]), x]),
        lambda np, x: np.sort(x),
        lambda np, x: np.argsort(x, kind="stable"),
        lambda np, x: np.roll(x, 4),
        lambda np, x: np.where(x == b"a", b"A", x),
        lambda np, x: np.tile(x, (2, 2)),
        lambda np, x: x < b"b",
        lambda np, x: np.stack([x, x]),
        lambda np, x: np.reshape(x, (1, -1)),
        lambda np, x: x[::-1] + x,
    ]
    for function in functions:
        for found, line in zip(dataset.map(lambda x: function(np, x)), lines, strict=True):
            same(found, function(np, np.array(line.split(), object)))


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x, s: np.tile(x, 0), "repeats once at least"),
        (lambda x, s: np.hstack(x), "takes a list of arrays"),
        (lambda x, s: np.concatenate([x, s[None]]), "of strings and numbers"),
        (lambda x, s: np.split(x, 2), "each part has as many"),
        (lambda x, s: np.roll(x, (1, 2, 3), (0, 0)), "one shift for each axis"),
        (lambda x, s: np.roll(x, 1.5), "shift"),
        (lambda x, s: s < 3, "string"),
        (lambda x, s: np.where(x > 1, s, 3), "y: expected a string"),
        (lambda x, s: x[:: x[0]], "steps are constants"),
        (lambda x, s: x[x : x + 1], "there it is one integer"),
        (lambda x, s: x[x[0] * 0.5 :], "there it is one integer"),
        (lambda x, s: penstock.functions.take(s, 0), "one axis at least"),
        (lambda x, s: np.where(np.stack([x > 1] * 2), np.stack([s] * 2), s), "shapes do not broadcast"),
    ],
)
def test_what_cannot_be_is_refused(function, message):
    dataset = penstock.Dataset.from_tensor_slices((numbers(2, 3), words(2)))
    with pytest.raises(penstock.Error, match=message):
        next(iter(dataset.map(function)))


def test_an_integer_of_the_data_that_is_outside_is_an_error_of_its_record():
    dataset = penstock.Dataset.from_tensor_slices((np.array([[5, 6, 7]] * 3), np.array([1, 3, -4])))
    iterator = iter(dataset.map(lambda x, i: np.stack([x, x])[0, i]))
    assert next(iterator) == 6
    with pytest.raises(penstock.DataLossError, match="index 3 is out of axis"):
        next(iterator)
