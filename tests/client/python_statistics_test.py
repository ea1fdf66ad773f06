"""np.median, np.quantile, np.bincount, np.histogram and their kin, and reductions of a part of the values, on traced values: against NumPy's results."""

import warnings

import numpy as np
import pytest

import penstock
from penstock import functions

DICE = np.random.default_rng(5)
REALS = (DICE.normal(size=(3, 4, 5)) * 10).astype(np.float32)
WIDE = DICE.normal(size=(3, 6)) * 100
WHOLE = DICE.integers(-9, 9, (3, 4, 5))
BYTES = DICE.integers(0, 256, (3, 4, 5)).astype(np.uint8)
COUNTS = DICE.integers(0, 7, (3, 8))
FLAGS = DICE.integers(0, 2, (3, 4, 5)).astype(bool)
HOLES = REALS.copy()
HOLES[0, 1] = np.nan
HOLES[1, 2, 3] = HOLES[2, 0, 0] = HOLES[0, 0, 2] = np.nan
HOLES[1, 0, 1], HOLES[2, 3, 3] = np.inf, -np.inf


def check(function, *columns, rtol=0.0):
    """The function of each element."""
    found = list(penstock.Dataset.from_tensor_slices(columns).map(function))
    for ours, *parts in zip(found, *columns, strict=True):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            theirs = np.asarray(function(*parts))
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if rtol:
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
        else:
            np.testing.assert_array_equal(ours, theirs)


AXES = [{}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": (0, 1)}, {"axis": (1,)}, {"axis": 0, "keepdims": True}, {"keepdims": True}]
ORDERED = {
    "median": np.median,
    "percentile 90": lambda x, **to: np.percentile(x, 90, **to),
    "percentile 33.3": lambda x, **to: np.percentile(x, 33.3, **to),
    "percentiles": lambda x, **to: np.percentile(x, [0, 25, 60.5, 100], **to),
    "quantile 0": lambda x, **to: np.quantile(x, 0.0, **to),
    "quantile 1": lambda x, **to: np.quantile(x, 1.0, **to),
    "quantile by float64": lambda x, **to: np.quantile(x, np.float64(0.7), **to),
    "quantiles": lambda x, **to: np.quantile(x, np.array([0.5, 0.1]), **to),
    **{f"quantile {method}": lambda x, method=method, **to: np.quantile(x, 0.37, method=method, **to)
       for method in ("lower", "higher", "nearest", "midpoint")},
    "ptp": np.ptp,
    "count_nonzero": np.count_nonzero,
}  # fmt: skip


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", ORDERED)
def test_along_axes(name, axes):
    function = ORDERED[name]
    if name == "count_nonzero" and not axes:
        return  # NumPy gives Python's int
    # With NaN, NumPy's quantile by a number of float64 has the values' own type, and its ptp warns.
    columns = (REALS, WHOLE, BYTES) if name in ("ptp", "quantile by float64") else (REALS, WHOLE, BYTES, HOLES)
    for values in columns:
        check(lambda x: function(x, **axes), values)


def test_of_one_value_and_of_even_and_odd_numbers_of_them():
    for count in (1, 2, 3, 4, 6):
        check(np.median, WIDE[:, :count])
        check(lambda x: np.quantile(x, 0.25), WIDE[:, :count])
        check(lambda x: np.percentile(x, 50), WIDE[:, :count].astype(np.float32))


def test_of_sizes_that_only_the_data_tells():
    def pieces(function):
        return lambda x: function(np.compress(x > 0, x))

    for function in (np.median, lambda x: np.quantile(x, 0.3), lambda x: np.percentile(x, 75)):
        check(pieces(function), np.abs(WIDE) - 20)
        check(pieces(function), (np.abs(WIDE) - 20).astype(np.float32))


def test_the_median_of_no_values():
    for values in (WIDE, WHOLE[:, 0], np.abs(WIDE).astype(np.float32)):
        for least in (np.inf, 10, 30):
            check(lambda x: np.median(np.compress(x > least, x)), values)
    rows = np.arange(12.0).reshape(3, 1, 4)
    check(lambda x: np.median(np.compress(x[0] > 100, x, axis=1), axis=1, keepdims=True), rows)


def test_of_rows_of_a_batch():
    (found,) = penstock.Dataset.from_tensor_slices(WIDE).batch(3).map(
        lambda x: (np.median(x, axis=1), np.quantile(x, [0.1, 0.9], axis=-1), np.ptp(x, axis=1), functions.bincount(np.abs(x).astype(np.int64) // 50, 9, 9, axis=-1))
    )
    np.testing.assert_array_equal(found[0], np.median(WIDE, axis=1))
    np.testing.assert_array_equal(found[1], np.quantile(WIDE, [0.1, 0.9], axis=-1))
    np.testing.assert_array_equal(found[2], np.ptp(WIDE, axis=1))
    np.testing.assert_array_equal(found[3], [np.bincount(np.abs(row).astype(np.int64) // 50, minlength=9) for row in WIDE])


LEAVING_OUT = "nansum nanmean nanmax nanmin nanstd nanvar nanprod".split()


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", LEAVING_OUT)
def test_what_leaves_nan_out(name, axes):
    function = getattr(np, name)
    for values in (HOLES, WHOLE, REALS):
        if name != "nanprod" or values is not REALS:
            check(lambda x: function(x, **axes), values, rtol=0 if name in ("nanmax", "nanmin") else 2e-5)
    check(lambda x: function(x, **axes), np.where(np.isinf(HOLES), 3, HOLES).astype(np.float64), rtol=0 if name in ("nanmax", "nanmin") else 1e-12)


def test_cumulative_sums_that_leave_nan_out():
    check(lambda x: np.nancumsum(x, axis=1), np.where(np.isinf(HOLES), 1, HOLES))


def test_weighted_means():
    weights = np.array([1, 2, 0, 4, 0.5])
    for values in (REALS, WHOLE, BYTES):
        check(lambda x: np.average(x), values, rtol=1e-6)
        check(lambda x: np.average(x, axis=1, weights=weights), values, rtol=1e-6)
        check(lambda x: np.average(x, axis=0, weights=np.float32([1, 2, 3, 4])), values, rtol=1e-6)
        check(lambda x: np.average(x, weights=x * 0 + 2, keepdims=True), values, rtol=1e-6)
    check(lambda x, y: np.average(x, weights=y), COUNTS, COUNTS + 1)


def test_counts():
    check(lambda x: np.bincount(x), COUNTS)
    check(lambda x: np.bincount(x, minlength=20), COUNTS)
    check(lambda x: np.bincount(x, x * 0.5, 5), COUNTS)
    check(lambda x: np.bincount(x, np.arange(8), minlength=3), COUNTS.astype(np.uint8))
    for bins, limits in ((4, (-10, 10)), (7, (0.0, 3.0)), (10, (-1, 0)), ([-20, -3, 0, 0.5, 20], None), (np.array([0, 3, 3, 9]), None)):
        for values in (REALS, WHOLE, BYTES, HOLES, WIDE):
            check(lambda x: np.histogram(x, bins, limits)[0], np.where(np.isinf(values), 0, values).astype(values.dtype))
    check(lambda x: np.histogram(x, 4, (-10, 10))[1], REALS)
    check(lambda x: np.histogram(x, 3, (-9, 9), weights=x * x)[0], WIDE, rtol=1e-12)
    for values in (REALS, WHOLE):
        check(lambda x: np.histogram(x, 5, (1, 1))[0], values)
        check(lambda x: np.histogram(x, 5, (1, 1))[1], values)


@pytest.mark.parametrize("dtype", "int8 uint8 int16 uint32 int64 uint64 float32 float64".split())
def test_weighted_counts_are_of_the_type_of_the_weights(dtype):
    for bins, limits in ((3, (-9, 9)), ([-9, 0, 5, 9], None)):
        check(lambda x, y: np.histogram(x, bins, limits, weights=y)[0], WHOLE, (BYTES // 2).astype(dtype))
        check(lambda x: np.histogram(x, bins, limits, weights=(BYTES[0] // 2).astype(dtype))[0], WHOLE)
        check(lambda x: np.histogram([1, 2.5], bins, limits, weights=np.ravel(x)[:2].astype(dtype))[0], BYTES // 2)


def test_counts_of_known_size():
    spec = penstock.Dataset.from_tensor_slices(COUNTS).map(lambda x: {"a": functions.bincount(x, 9, 9), "b": np.bincount(x, minlength=9)}).element_spec
    assert (spec["a"].shape, spec["b"].shape) == ((9,), (None,))
    check(lambda x: functions.bincount(x, 3, 3) if isinstance(x, penstock.Tensor) else np.bincount(x, minlength=3)[:3], COUNTS)
    check(lambda x: functions.bincount(x, 2, 5) if isinstance(x, penstock.Tensor) else np.bincount(x, minlength=2)[:5], COUNTS)
    check(lambda x: functions.bincount(x % 3, 2, 5) if isinstance(x, penstock.Tensor) else np.bincount(x % 3, minlength=2)[:5], COUNTS)
    rows = COUNTS.reshape(3, 2, 4)
    check(lambda x: functions.bincount(x, 6, 6, axis=1) if isinstance(x, penstock.Tensor) else np.stack([np.bincount(r, minlength=6)[:6] for r in x]), rows)
    check(lambda x: functions.bincount(x, 6, 6, x, axis=1) if isinstance(x, penstock.Tensor) else np.stack([np.bincount(r, r, 6)[:6] for r in x]), rows)
    (all_of_a_batch,) = penstock.Dataset.from_tensor_slices(COUNTS).batch(3).map(lambda x: np.bincount(x))
    np.testing.assert_array_equal(all_of_a_batch, np.bincount(COUNTS.ravel()))


REFUSED = [
    (lambda x: np.bincount(x - 5), penstock.DataLossError, "bincount: a value below zero: -"),
    (lambda x: np.bincount(x + 2**40), penstock.DataLossError, "bincount: a value from 268435456 on: 10995116277"),
    (lambda x: np.bincount(x[x > 2], x), penstock.DataLossError, r"bincount: weights of shape \(8,\) for values of \(\d,\)"),
    (lambda x: np.bincount(x * 0.5), penstock.InvalidArgumentError, "x: expected integers, but for uint64, found float64"),
    (lambda x: np.bincount(x, x[:, None]), penstock.InvalidArgumentError, r"weights: expected a number for each of int64 \(8,\)"),
    (lambda x: functions.bincount(x, 5, 4), penstock.InvalidArgumentError, "maxlength: expected minlength, 5, at least, found 4"),
    (lambda x: np.histogram(x), penstock.TraceError, "of a range that only the data tells; .*range="),
    (lambda x: np.histogram(x, [3, 1]), penstock.TraceError, "edges; they are two at least, in rising order"),
    (lambda x: np.histogram(x, "auto"), penstock.TraceError, "with bins='auto'"),
    (lambda x: np.histogram(x, 3, (0, 1), density=True), penstock.TraceError, "with density=True; leave it out"),
    (lambda x: np.quantile(x, 1.5), penstock.TraceError, "np.quantile of 1.5; one part"),
    (lambda x: np.quantile(x, x), penstock.TraceError, "a part that only the data tells"),
    (lambda x: np.quantile(x, 0.5, method="hazen"), penstock.TraceError, "method='hazen'"),
    (lambda x: np.median(x, out=np.zeros(3)), penstock.TraceError, "np.median with out="),
    (lambda x: np.median(x, axis=()), penstock.TraceError, "np.median over no axis"),
    (lambda x: functions.bincount(x, 5, axis=-1), penstock.InvalidArgumentError, "axis: expected -1, the last one, with as large a maxlength"),
    (lambda x: functions.bincount(x[:, None], 5, 5, axis=-2), penstock.InvalidArgumentError, "axis: expected -1, the last one"),
    (lambda x: np.mean(x, dtype=np.uint64), penstock.TraceError, "np.mean in uint64; leave dtype out"),
    (lambda x: np.mean(x, where=x > 1, dtype=int), penstock.TraceError, "np.mean in int64; leave dtype out"),
    (lambda x: np.std(x, dtype=bool), penstock.TraceError, "np.std in bool; leave dtype out"),
    (lambda x: np.max(x, initial=-np.inf), penstock.TraceError, "np.max with these arguments .*infinity"),
    (lambda x: np.average(x, weights=[1, 2]), penstock.TraceError, r"weights of shape \(2,\); a weight for each value"),
    (lambda x: np.average(x, weights=[1]), penstock.TraceError, r"with weights of shape \(1,\)"),
    (lambda x: np.average(x[:1], axis=0, weights=[1, 2, 3]), penstock.TraceError, r"values of shape \(1,\) with weights of shape \(3,\)"),
    (lambda x: np.average(x[:, None], axis=1, weights=[1, 2, 3]), penstock.TraceError, r", 1\) with weights of shape \(3,\)"),
    (lambda x: np.average(np.ones((4, 3)), axis=0, weights=x[:4, None]), penstock.TraceError, r"with weights of shape \(4, 1\)"),
    (lambda x: np.average(x, weights=np.ones((2, 4))), penstock.TraceError, "weights of another shape"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused(case):
    function, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        list(penstock.Dataset.from_tensor_slices(COUNTS[:1]).map(function))


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "any", "all", "max", "min"])
def test_reductions_of_a_part_of_the_values(name, axes):
    function = getattr(np, name)
    more = {"initial": 1} if name in ("max", "min") else {}
    for values in (REALS, WHOLE, BYTES):
        if name == "prod" and values is REALS:
            continue
        check(lambda x, flags: function(x, where=flags, **axes, **more), values, FLAGS, rtol=1e-5 if name in ("mean", "sum") else 0)
        if name in ("sum", "prod", "max", "min"):
            check(lambda x: function(x, initial=2, **axes), values, rtol=1e-4 if values is REALS else 0)
    check(lambda x: function(x, where=np.arange(5) > 1, **axes, **more), WHOLE, rtol=1e-12 if name == "mean" else 0)


@pytest.mark.parametrize("initial", [0, 1, 2.5, np.float64(3.75), np.int8(4), True], ids=repr)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_what_a_reduction_begins_with_is_of_its_type(name, initial):
    function = getattr(np, name)
    for values in (WHOLE[:, :1], BYTES, COUNTS.astype(np.int8), FLAGS, REALS[:, 0]):
        check(lambda x: function(x, axis=0, initial=initial), values, rtol=1e-6 if values.dtype == np.float32 else 0)
    check(lambda x: np.sum(x, initial=-2.5), COUNTS)


@pytest.mark.parametrize("dtype", "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split())
def test_sums_in_short_integers_wrap(dtype):
    dice = np.random.default_rng(3)
    for other in "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split():
        limits = (0, 1) if other == "bool" else (np.iinfo(other).min, np.iinfo(other).max)
        values = dice.integers(*limits, (3, 40), "uint8" if other == "bool" else other, endpoint=True).astype(other)
        check(lambda x: np.sum(x, dtype=dtype), values)
        check(lambda x: np.prod(x | 1 if x.dtype != bool else x, dtype=dtype), values)
