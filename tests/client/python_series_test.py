"""Windows, convolutions, differences, interpolation, and functions of single numbers that are made of others, against NumPy's results."""

import warnings

import numpy as np
import pytest

import penstock

DICE = np.random.default_rng(8)
X = (DICE.normal(size=(3, 12)) * 4).astype(np.float32)
D = DICE.normal(size=(3, 12))
I = DICE.integers(-9, 9, (3, 12))  # noqa: E741
U = DICE.integers(0, 256, (3, 4, 6)).astype(np.uint8)
EDGES = np.array([[0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 7, -1, 1e-30, 3.99, -0.5]] * 3)
SMOOTH = np.array([0.25, 0.5, 0.25], np.float32)


def check(function, *columns, rtol=0.0):
    for ours, *parts in zip(penstock.Dataset.from_tensor_slices(columns).map(function), *columns, strict=True):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            theirs = np.asarray(function(*parts))
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if rtol:
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(ours, theirs)
            if theirs.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(ours) | np.isnan(ours), np.signbit(theirs) | np.isnan(theirs))


windows = np.lib.stride_tricks.sliding_window_view
EXACT = [
    lambda x, d, i, u, e: windows(x, 5),
    lambda x, d, i, u, e: windows(x, 5)[::3],
    lambda x, d, i, u, e: windows(u, (2, 3)),
    lambda x, d, i, u, e: windows(u, 3, axis=1)[:, ::2],
    lambda x, d, i, u, e: windows(u, 4, axis=0),
    lambda x, d, i, u, e: np.diff(i, prepend=0),
    lambda x, d, i, u, e: np.diff(i, 2, append=[5, 6]),
    lambda x, d, i, u, e: np.diff(u, axis=0, prepend=u[:1]),
    lambda x, d, i, u, e: np.diff(x, prepend=x[0], append=0),
    lambda x, d, i, u, e: np.diff(i, 0, prepend=0),
    lambda x, d, i, u, e: np.ediff1d(i),
    lambda x, d, i, u, e: np.convolve(i, [1, -2, 3]),
    lambda x, d, i, u, e: np.convolve(i, np.array([1, 2], np.int8), "same"),
    lambda x, d, i, u, e: np.correlate(i, [1, -2, 3, 1], "full"),
    lambda x, d, i, u, e: np.correlate(i, [1, -2, 3, 1]),
    lambda x, d, i, u, e: np.correlate(i, [4, 5], "same"),
    lambda x, d, i, u, e: np.interp(d, [-1, 0, 0.5], [3, 1, 2]),
    lambda x, d, i, u, e: np.interp(e, [-1, 0, 0.5, 7], [3, 1, 2, 9], left=-5, right=5),
    lambda x, d, i, u, e: np.interp(x, [1], [2]),
    lambda x, d, i, u, e: np.interp([0.5, 1.5, 8.25], np.arange(12), d),
    lambda x, d, i, u, e: np.interp(e, [-1, 0, 1.5, 3], [5, np.inf, 1, np.inf]),
    lambda x, d, i, u, e: np.interp(e, [-1, 0, 1.5, 7], [np.inf, np.inf, -np.inf, 2]),
    lambda x, d, i, u, e: np.interp(e, [-3, 1.5, 7], [1, np.nan, 2]),
    lambda x, d, i, u, e: np.interp([0, 0.5, 3, 3.25, 4, 5.5], np.arange(12), e),
    lambda x, d, i, u, e: np.interp(e, [1.5], [2]),
    lambda x, d, i, u, e: np.gradient(d),
    lambda x, d, i, u, e: np.gradient(u, axis=1),
    lambda x, d, i, u, e: np.gradient(u, 2.0)[0],
    lambda x, d, i, u, e: np.polyval([1, -2, 3], i),
    lambda x, d, i, u, e: np.polyval([0.5, 2], d),
    lambda x, d, i, u, e: np.linspace(d[0], 5, 7),
    lambda x, d, i, u, e: np.linspace(x[0], 3, 4, endpoint=False),
    lambda x, d, i, u, e: np.linspace(i[0], i[1], 6, dtype=np.float32),
    lambda x, d, i, u, e: np.linspace(d[0], -5, 7, dtype=int),
    lambda x, d, i, u, e: np.linspace(-2.5, x[0], 7, dtype=np.int8),
    lambda x, d, i, u, e: np.deg2rad(x) + np.radians(x),
    lambda x, d, i, u, e: np.rad2deg(e),
    lambda x, d, i, u, e: np.heaviside(e, 0.5),
    lambda x, d, i, u, e: np.heaviside(x, x),
    lambda x, d, i, u, e: np.heaviside(x, 0.5),
    lambda x, d, i, u, e: np.heaviside(x, np.float64(0.5)),
    lambda x, d, i, u, e: np.heaviside(e, x),
    lambda x, d, i, u, e: np.heaviside(i.astype(np.int16), 1),
    lambda x, d, i, u, e: np.heaviside(u, 0.5),
    lambda x, d, i, u, e: np.heaviside(0, x) + np.heaviside([0] * 12, x),
    lambda x, d, i, u, e: np.reciprocal(i[np.abs(i) > 0]),
    lambda x, d, i, u, e: np.reciprocal(u[u > 0]),
    lambda x, d, i, u, e: np.reciprocal(i[i > 0] > 0),
    lambda x, d, i, u, e: np.reciprocal(x),
    lambda x, d, i, u, e: np.fix(e),
    lambda x, d, i, u, e: np.stack(np.modf(e)),
    lambda x, d, i, u, e: np.stack(np.modf(x)),
    lambda x, d, i, u, e: np.ldexp(e, 3) + np.ldexp(x, i),
    lambda x, d, i, u, e: np.ldexp(e, 2100) + np.ldexp(e, -20000),
    lambda x, d, i, u, e: np.ldexp(e, i * 1000),
    lambda x, d, i, u, e: np.float_power(i, 2),
    lambda x, d, i, u, e: np.isneginf(e) | np.isposinf(e),
    lambda x, d, i, u, e: np.isclose(e, e + 1e-9, equal_nan=True),
    lambda x, d, i, u, e: np.isclose(e, 7.00001),
    lambda x, d, i, u, e: np.isclose(e, -e),
    lambda x, d, i, u, e: np.allclose(d, d + 1e-9),
    lambda x, d, i, u, e: np.array_equal(e, e, equal_nan=True),
    lambda x, d, i, u, e: np.array_equal(i, i[::-1]),
    lambda x, d, i, u, e: np.select([i > 3, i < -3], [i, -i], 0),
    lambda x, d, i, u, e: np.select([x > 1, x > 0], [x, 0.5], -1.0),
    lambda x, d, i, u, e: np.take_along_axis(u, np.argsort(u, axis=1), axis=1),
    lambda x, d, i, u, e: np.take_along_axis(u, np.argmax(u, axis=0, keepdims=True), axis=0),
    lambda x, d, i, u, e: np.take_along_axis(u, np.array([[1], [-1], [0], [5]]), axis=1),
    lambda x, d, i, u, e: np.take_along_axis(d, i % 12, None),
    lambda x, d, i, u, e: np.take_along_axis(SMOOTH, abs(i) % 3, 0),
    lambda x, d, i, u, e: np.take_along_axis(I, abs(i[:3, None]), 1),
    lambda x, d, i, u, e: np.take_along_axis(I, i, None),
    lambda x, d, i, u, e: np.diff([1, 2, 4], prepend=i, append=i[0]),
    lambda x, d, i, u, e: np.flatnonzero(i > 2),
    lambda x, d, i, u, e: np.argwhere(u > 128),
    lambda x, d, i, u, e: np.nonzero(u > 128)[1],
    lambda x, d, i, u, e: np.where(i > 2)[0],
    lambda x, d, i, u, e: np.extract(u > 100, u),
    lambda x, d, i, u, e: np.compress([True, False, True, True], u, axis=0),
    lambda x, d, i, u, e: i.compress(i > 0),
    lambda x, d, i, u, e: np.flatnonzero(i[i > -5] > 0),
    lambda x, d, i, u, e: np.unstack(u, axis=1)[2],
    lambda x, d, i, u, e: np.concat([i, i]),
    lambda x, d, i, u, e: np.matrix_transpose(u),
    lambda x, d, i, u, e: np.cumulative_sum(i),
    lambda x, d, i, u, e: np.cumprod(i, dtype=np.float64),
    lambda x, d, i, u, e: np.cumsum(i * 1234567, dtype=np.float32),
    lambda x, d, i, u, e: np.cumsum(u, axis=0, dtype=np.uint8),
    lambda x, d, i, u, e: np.cumsum(i, dtype=np.int8),
    lambda x, d, i, u, e: np.cumprod(i, dtype=np.int16),
    lambda x, d, i, u, e: np.cumsum(d, dtype=np.int16),
    lambda x, d, i, u, e: np.cumsum(i > 0, dtype=np.float32),
    lambda x, d, i, u, e: np.cumsum(i > 0, dtype=bool),
    lambda x, d, i, u, e: np.cumprod(i, dtype=bool),
    lambda x, d, i, u, e: np.isin(i > 0, [True]) & np.isin(i > 0, [0, 1]),
    lambda x, d, i, u, e: np.digitize(i > 0, [0, 1]),
    lambda x, d, i, u, e: u.cumprod(axis=1),
    lambda x, d, i, u, e: np.stack(np.dsplit(u[..., None] + np.arange(2, dtype=np.uint8), 2)),
]
CLOSE = [
    lambda x, d, i, u, e: np.convolve(x, SMOOTH),
    lambda x, d, i, u, e: np.convolve(SMOOTH, x, "same"),
    lambda x, d, i, u, e: np.convolve(x, np.float32([1, 2, 3, 4]), "same"),
    lambda x, d, i, u, e: np.convolve(d, [0.5, 0.25], "valid"),
    lambda x, d, i, u, e: np.convolve(x, [2.0]),
    lambda x, d, i, u, e: np.convolve(d, 2.0),
    lambda x, d, i, u, e: np.correlate(d, [0.5, 0.25, 3], "full"),
    lambda x, d, i, u, e: np.trapezoid(d),
    lambda x, d, i, u, e: np.trapezoid(u.astype(np.float64), [0, 1, 4, 5], axis=0),
    lambda x, d, i, u, e: np.trapezoid(d, dx=0.5),
]


@pytest.mark.parametrize("case", range(len(EXACT)))
def test_the_same_values(case):
    check(EXACT[case], X, D, I, U, EDGES)


@pytest.mark.parametrize("case", range(len(CLOSE)))
def test_values_within_rounding(case):
    check(CLOSE[case], X, D, I, U, EDGES, rtol=2e-6)


def test_of_rows_of_a_batch():
    batches = penstock.Dataset.from_tensor_slices((X, U)).batch(3)
    (found,) = batches.map(lambda x, u: (windows(x, 5, axis=1), np.diff(x, axis=1, prepend=0), np.interp(x, [-1, 1], [0, 9]), np.heaviside(x, 0.5), np.unstack(u, axis=2)[1]))
    for ours, theirs in zip(found, (windows(X, 5, axis=1), np.diff(X, axis=1, prepend=0), np.interp(X, [-1, 1], [0, 9]), np.heaviside(X, 0.5), np.unstack(U, axis=2)[1])):
        np.testing.assert_array_equal(ours, theirs)


def test_an_index_that_is_outside_takes_of_no_other_row():
    rows = penstock.Dataset.from_tensor_slices((U, np.full((3, 4, 1), 6)))
    with pytest.raises(penstock.DataLossError, match="take: index 24 is out of an axis of 24"):
        list(rows.map(lambda u, i: np.take_along_axis(u, i, axis=1)))


REFUSED = [
    (lambda x: windows(x, 13), "of 13 along an axis of 12; windows are within"),
    (lambda x: np.convolve(x, np.ones(13)), r"taps of shape \(13,\)"),
    (lambda x: np.convolve(x[0], [1, 2]), r"np.convolve of values of shape \(\) and taps of shape \(2,\); a list of known length"),
    (lambda x: np.correlate(x[0], 2), r"np.correlate of values of shape \(\)"),
    (lambda x: np.convolve(x, x), "np.convolve with taps that are traced"),
    (lambda x: np.convolve(x, [1, 2], "wide"), "mode='wide'"),
    (lambda x: np.interp(x, [1, 0], [0, 1]), "places that do not rise"),
    (lambda x: np.interp(x, [0, 1], [0, 1, 2]), r"np.interp of \(3,\) values at 2 places"),
    (lambda x: np.linspace(x, 3, 5), "two numbers, and how many"),
    (lambda x: np.gradient(x, np.arange(12)), "one step for all axes"),
    (lambda x: np.select([x > 0, x < -1], [x], 0), "np.select of 2 conditions and 1 choices; as many of both"),
    (lambda x: np.nonzero(x[0]), "np.nonzero of a number"),
    (lambda x: np.take_along_axis(x, np.zeros((1, 1), int), 0), r"values of shape \(12,\) and indices of shape \(1, 1\)"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused(case):
    function, message = REFUSED[case]
    with pytest.raises((penstock.TraceError, ValueError), match=message):
        list(penstock.Dataset.from_tensor_slices(X).map(function))
