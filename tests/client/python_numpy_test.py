"""Traced NumPy functions beside NumPy itself: every type, values at the edges of each, axes in all their spellings."""

import itertools

import numpy as np
import pytest

import penstock

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()
SHAPE = (4, 3, 5)


def values(dtype):
    """Elements of each type's edges and some between, the same ones in each run."""
    dtype = np.dtype(dtype)
    count = np.prod(SHAPE)
    dice = np.random.default_rng(7)
    if dtype == bool:
        return dice.integers(0, 2, SHAPE).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        edges = [limits.min, limits.max, limits.min + 1, limits.max - 1, limits.max // 2, 0, 1, 2, 3, 7, 8]
        found = dice.integers(limits.min, limits.max, count, dtype, endpoint=True)
    else:
        edges = [0.0, -0.0, 1, -1.5, 2.5, np.nan, np.inf, -np.inf, np.finfo(dtype).tiny / 4, 3.7, 1e30, -100.25]
        found = (dice.standard_normal(count) * 10.0 ** dice.integers(-3, 4, count)).astype(dtype)
    found[: len(edges)] = edges
    return dice.permutation(found).reshape(SHAPE)


def small(dtype):
    """Elements whose sums and products are exact in every type that they are computed in."""
    return np.random.default_rng(8).integers(0, 4, SHAPE).astype(dtype)


def run(rows, functions):
    """What each function makes of each row of the arrays."""
    tensors = rows if isinstance(rows, tuple) else (rows,)
    dataset = penstock.Dataset.from_tensor_slices(tensors)
    (batch,) = dataset.map(lambda *row: {f"f{i}": f(*row) for i, f in enumerate(functions)}).batch(len(tensors[0]))
    return list(batch.values())


def wanted(rows, function):
    tensors = rows if isinstance(rows, tuple) else (rows,)
    with np.errstate(all="ignore"):
        return np.stack([function(*row) for row in zip(*tensors)])


def assert_same(found, expected, what, rtol=0):
    assert found.dtype == expected.dtype, f"{what}: {found.dtype}, NumPy has {expected.dtype}"
    assert found.shape == expected.shape, f"{what}: {found.shape}, NumPy has {expected.shape}"
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=0, err_msg=what)


def as_computed(array):
    """Nothing is computed in float16: where NumPy takes it, for 8 bits and bools, float32 is taken here."""
    return array.astype(np.float32) if array.dtype in (bool, np.int8, np.uint8) else array


# Rounded as NumPy rounds, and the others: within units in the last place.
EXACT = "absolute negative invert sign floor ceil trunc isnan isinf isfinite signbit logical_not square positive".split()
FLOATING = "sqrt exp log log1p tanh sin cos arctan cbrt log2 log10 exp2 expm1 rint fabs".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one(dtype):
    rows = values(dtype)
    cases = []
    for name in EXACT + FLOATING:
        function = getattr(np, name)
        try:
            expected = wanted(as_computed(rows) if name in FLOATING else rows, function)
        except TypeError:
            continue  # NumPy has none for this type
        if not (name == "square" and dtype == "bool"):
            cases.append((name, function, expected))
    for (name, _, expected), found in zip(cases, run(rows, [function for _, function, _ in cases])):
        assert_same(found, expected, name, 0 if name in EXACT else 2e-6 if expected.dtype == np.float32 else 2e-15)


PAIRS = (
    "add subtract multiply divide floor_divide remainder maximum minimum fmax fmin equal not_equal less less_equal greater "
    "greater_equal bitwise_and bitwise_or bitwise_xor left_shift right_shift logical_and logical_or logical_xor"
).split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_two(dtype):
    left = values(dtype)
    for other in DTYPES:
        rows = (left, np.flip(values(other), (0, 2)).copy())
        cases = []
        for name in PAIRS:
            function = getattr(np, name)
            try:
                expected = wanted(rows, function)
            except TypeError:
                continue
            # NumPy makes int8 or float16 of flags alone.
            if not dtype == other == "bool" or expected.dtype == bool:
                cases.append((name, function, expected))
        found = run(rows, [function for _, function, _ in cases])
        for (name, _, expected), result in zip(cases, found):
            if name == "divide" and expected.dtype == np.float16:
                expected = wanted(tuple(map(as_computed, rows)), np.divide)
                result = result.astype(np.float32)
            assert_same(result, expected, f"{name} of {dtype} and {other}")


INTEGERS = [0, 1, -1, 3, -7, 127, 255, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, 2**64 - 1]
NUMBERS = [*INTEGERS, 0.5, -0.0, 1e300, np.nan, np.inf, -np.inf]
STRONG = [np.uint8(200), np.int16(-3), np.int64(-(2**63)), np.uint64(2**64 - 1), np.float32(2.5), np.float64(-0.0), np.bool_(True)]


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_numbers_beside_tensors(dtype):
    rows = values(dtype)
    wide = np.dtype(dtype).itemsize > 2
    cases = []
    for name, number in itertools.product("add multiply remainder maximum less equal greater_equal".split(), NUMBERS + STRONG):
        function = getattr(np, name)
        # A float makes float32 of 8 and 16 bits here.
        is_small = isinstance(number, float) and not isinstance(number, np.generic) and not wide
        for text, call in (
            (f"{name}(x, {number!r})", lambda x, function=function, number=number: function(x, number)),
            (f"{name}({number!r}, x)", lambda x, function=function, number=number: function(number, x)),
        ):
            try:
                expected = wanted(rows.astype(np.float32) if is_small else rows, call)
            except OverflowError:
                # NumPy refuses a number that the type cannot hold, and so does the daemon.
                with pytest.raises(penstock.InvalidArgumentError, match="is out of the range of"):
                    run(rows, [call])
                continue
            cases.append((text, call, expected))
    for (text, _, expected), found in zip(cases, run(rows, [call for _, call, _ in cases])):
        assert_same(found, expected, text)


def test_integers_that_no_type_holds():
    for number in (2**64, -(2**63) - 1, 10**5000):
        with pytest.raises(penstock.TraceError, match="operator \\+: b is an integer that no type holds"):
            run(values("int64"), [lambda x: x + number])


AXES = [None, 0, 1, -1, np.int64(-2), (0,), (0, 1), (1, 0), (0, 2), (-1, 0), (1, 2), (0, 1, 2), (-3, -1)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_over_axes(dtype):
    rows = np.stack([small(dtype), small(dtype)[::-1]])
    cases = []
    for name, axis, keepdims in itertools.product("sum prod mean var std min max any all".split(), AXES, (False, True)):
        function = lambda x, name=name, axis=axis, keepdims=keepdims: getattr(np, name)(x, axis=axis, keepdims=keepdims)
        cases.append((f"{name}, axis={axis}, keepdims={keepdims}", function))
    for (what, function), found in zip(cases, run(rows, [function for _, function in cases])):
        assert_same(found, wanted(rows, function), what, 2e-6 if found.dtype == np.float32 else 1e-14)


def test_reductions_behind_a_batch():
    rows = small("float32")[:, :, :, None] * np.float32([1, 2])
    dataset = penstock.Dataset.from_tensor_slices(rows).batch(4)
    for axis in [(1, 2), (3, 1), (-1, -2, -3)]:
        (found,) = dataset.map(lambda x, axis=axis: np.mean(x, axis=axis, keepdims=True))
        np.testing.assert_allclose(found, np.mean(rows, axis=axis, keepdims=True), rtol=1e-6)
    images = penstock.Dataset.from_tensor_slices(rows).ragged_batch(4)
    assert next(iter(images)).shape == rows.shape


# Of an array of axes (4, 3, 5), and of those behind it of one of (4, 1, 5).
PLACES = [
    lambda x: np.expand_dims(x, np.int64(1)), lambda x: np.expand_dims(x, [0, -1]), lambda x: np.flip(x, (0, -1)), lambda x: np.flip(x),
    lambda x: np.flipud(x) + np.fliplr(x), lambda x: np.moveaxis(x, [0, -1], [1, 0]), lambda x: np.moveaxis(x, np.int64(2), 0),
    lambda x: np.swapaxes(x, -1, 0), lambda x: np.rot90(x), lambda x: np.rot90(x, 2), lambda x: np.rot90(x, -1, (1, 2)),
    lambda x: np.rot90(x, 5, axes=(2, 0)), lambda x: np.rot90(x, 4), lambda x: np.transpose(x, np.array([1, -1, 0])),
    lambda x: x.transpose(2, 0, 1), lambda x: x.transpose([2, 0, 1]), lambda x: x.transpose(None), lambda x: x[:1, :1, :1].reshape(()), lambda x: x.reshape(np.array([6, 10])),
    lambda x: np.reshape(x, np.int64(60)), lambda x: x.reshape([np.int64(-1), 4]), lambda x: x[:, :1].squeeze(), lambda x: x[:, :1].squeeze(1),
    lambda x: np.squeeze(x[:1, :, :1], (0, -1)), lambda x: np.sort(x, axis=1, kind="stable"), lambda x: np.sort(x, 0, stable=True),
    lambda x: np.sort(x > 2, axis=0), lambda x: np.cumsum(x > 2), lambda x: np.cumsum(x > 1, axis=1), lambda x: np.argmax(x, keepdims=True),
    lambda x: np.argmax(x, axis=1, keepdims=True), lambda x: np.argmin(x, axis=-1, keepdims=True), lambda x: np.unpackbits(x.astype(np.uint8)),
    lambda x: np.unpackbits(x.astype(np.uint8), axis=2), lambda x: np.packbits(x > 1), lambda x: np.packbits(x, axis=-1), lambda x: np.packbits(x[0, 0]),
    lambda x: np.unpackbits(x.astype(np.uint8), bitorder="little"), lambda x: np.unpackbits(x.astype(np.uint8), axis=0, count=21),
    lambda x: np.unpackbits(x.astype(np.uint8), 1, -3, "little"), lambda x: np.unpackbits(x.astype(np.uint8), 2, 43, "little"),
    lambda x: np.packbits(x, bitorder="little"), lambda x: np.packbits(x > 1, axis=0), lambda x: np.packbits(x, 1, "little"), lambda x: np.square(x > 1),
    lambda x: np.maximum.accumulate(x), lambda x: np.minimum.accumulate(x, axis=-1), lambda x: np.maximum.accumulate(x > 0, axis=1), lambda x: np.add.accumulate(x, 2),
    lambda x: np.multiply.accumulate(x, axis=1), lambda x: np.maximum.accumulate(x, axis=0, dtype=np.float64),
    lambda x: np.logical_and.reduce(x > 0), lambda x: np.logical_or.reduce(x > 2, axis=-1), lambda x: np.add.reduce(x, axis=(0, 2)),
    lambda x: np.std(x, axis=(0, 1), correction=1), lambda x: np.clip(x, 1, None), lambda x: np.clip(x, None, None), lambda x: np.clip(x, 1, 2, dtype=np.float64),
    lambda x: np.divmod(x, 3)[1] + divmod(7, x + 1)[0], lambda x: x.astype(np.float32) @ np.ones((5, 2), np.float32), lambda x: x.astype(np.int32, "C", copy=False),
    lambda x: np.astype(x, np.int32, copy=False), lambda x: 1 << x << np.uint8(2) >> 1, lambda x: (1, 2, 3, 4, 5) >> x, lambda x: x + np.float16([[1.5], [2], [0.25]]).astype(np.float32),
]  # fmt: skip


def test_axes_and_optional_arguments():
    rows = np.stack([small("int64"), small("int64")[::-1]])
    for function, found in zip(PLACES, run(rows, PLACES)):
        line = function.__code__.co_firstlineno
        assert_same(found, wanted(rows, function), f"line {line}", 1e-6)


# NumPy raises an error, and so must a trace: where it took another axis for the one that was asked for, the result was a wrong one.
REFUSED = [
    lambda x: np.expand_dims(x, 7), lambda x: np.expand_dims(x, (0, 0)), lambda x: np.squeeze(x, 0), lambda x: np.squeeze(x, 9),
    lambda x: np.flip(x, 3), lambda x: np.flip(x, (0, 0)), lambda x: np.flip(x, -4), lambda x: np.fliplr(x[0, 0]), lambda x: np.flipud(x[0, 0, 0]),
    lambda x: np.moveaxis(x, 0, 5), lambda x: np.moveaxis(x, [0, 1], 2), lambda x: np.swapaxes(x, 0, 3), lambda x: np.rot90(x, 1, (0, 0)),
    lambda x: np.rot90(x[0, 0]), lambda x: np.sum(x, axis=3), lambda x: np.sum(x, axis=1.0), lambda x: np.sum(x, axis=True), lambda x: np.sum(x, axis=(0, 0)),
    lambda x: np.sum(x, axis=[0, 1]), lambda x: np.unpackbits(x.astype(np.uint8), axis=3), lambda x: np.packbits(x, bitorder="middle"),
    lambda x: np.unpackbits(x.astype(np.uint8), count=2.5), lambda x: x.astype(np.int8, casting="safe"),
    lambda x: x.reshape(12.0), lambda x: x.reshape(), lambda x: np.repeat(x, -1), lambda x: np.repeat(x, [1, 2], axis=0), lambda x: np.round(x, 0.5),
    lambda x: x.astype("flaot32"), lambda x: x[1.0], lambda x: x[b"a"], lambda x: x + None, lambda x: None < x, lambda x: np.sort(x, kind="bogus"),
    lambda x: np.full_like(x, 300, np.int8), lambda x: np.full_like(x.astype(np.uint8), -1), lambda x: np.full_like(x[0, 0, 0], [1, 2, 3]),
    lambda x: np.full_like(x[:1], np.ones((3, 1, 1))),
]  # fmt: skip


@pytest.mark.parametrize("function", REFUSED, ids=range(len(REFUSED)))
def test_what_numpy_refuses_is_refused_with_its_line(function):
    rows = small("int64")[None]
    with pytest.raises(Exception):
        function(rows[0])
    with pytest.raises(penstock.TraceError, match="python_numpy_test.py:"):
        run(rows, [function])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8"])
def test_rounding_to_decimals(dtype):
    # Between -100 and 100, so that no rounded value is out of the type, where NumPy's would wrap.
    rows = np.random.default_rng(3).uniform(-100, 100, (4, 50)).clip(0 if dtype == "uint8" else None, 100).astype(dtype)
    functions = [lambda x, d=d: np.round(x, d) for d in (-400, -2, -1, 0, 1, 2, 3, 12, np.int64(2))]
    functions += [lambda x: x.round(1), lambda x: x.round(decimals=-1), lambda x: np.around(x, 1), lambda x: round(x[0], 2)]
    for function, found in zip(functions, run(rows, functions)):
        assert_same(found, wanted(rows, function), f"line {function.__code__.co_firstlineno}")


def test_constants_of_float16():
    halves = np.float16([1.5, -2, np.inf])
    ((found, one, nan),) = penstock.Dataset.range(1).map(lambda x: (halves, np.float16(0.1), np.float16("nan")))
    assert found.dtype == one.dtype == nan.dtype == np.float16 and np.isnan(nan)
    assert found.tolist() == halves.tolist() and one == np.float16(0.1)
    with pytest.raises(penstock.InvalidArgumentError, match="nothing is computed in float16"):
        run(values("float32"), [lambda x: x[..., :3] + halves])


def test_halves_have_the_values_of_float32():
    # Every one.
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 1 << 12)
    wide = halves.astype(np.float32)
    functions = [lambda x: x.astype(np.float32), lambda x: x.astype(np.float64)[::-1], lambda x: x.astype(np.float32).astype(np.float16)]
    for function, found in zip(functions, run(halves, functions)):
        np.testing.assert_array_equal(found, wanted(halves, function))
    rows = penstock.Dataset.from_tensor_slices([row.tobytes() for row in halves])
    found = np.stack([*rows.map(lambda x: penstock.io.decode_raw(x, np.float16).astype(np.float32))])
    np.testing.assert_array_equal(found, wide)
    values = (halves.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    (found,) = run(values, [lambda x: x.astype("bfloat16").astype(np.float32)])
    np.testing.assert_array_equal(found, values)
    few = np.float16([[0.5, -3.75, 2000, -0.0]])
    found, flags = next(iter(penstock.Dataset.from_tensor_slices(few).map(lambda x: (x.astype(np.int16), x.astype(bool)))))
    assert found.tolist() == [0, -3, 2000, 0] and flags.tolist() == [True, True, True, False]


def test_without_an_axis_a_batch_is_one():
    rows = small("uint8")[:, :2, 0]
    for name in ("unpackbits", "packbits", "sort", "cumsum", "argmax"):
        axis = {"axis": None} if name == "sort" else {}
        for drops in (True, False):
            batches = penstock.Dataset.from_tensor_slices(rows).batch(2, drop_remainder=drops).map(lambda x: getattr(np, name)(x, **axis))
            assert next(iter(batches)).tolist() == getattr(np, name)(rows[:2], **axis).tolist(), name


def stacks(x):
    return np.stack(x)


def test_numpys_own_lines_are_not_the_users():
    with pytest.raises(penstock.TraceError, match=r"python_numpy_test.py:\d+: a for loop.*\n  return np.stack\(x\)"):
        run(small("int64"), [stacks])


OF_NOTHING = [
    lambda np, x, y, w: np.maximum(x, y),
    lambda np, x, y, w: np.maximum(x[::-1], y),
    lambda np, x, y, w: np.where(x > 0, y, 1),
    lambda np, x, y, w: (x > 0) & (y > 0),
    lambda np, x, y, w: (x + y) * 2 + 1,
    lambda np, x, y, w: y * w,
    lambda np, x, y, w: np.array([1, 2, 3], np.float32) - y,
    lambda np, x, y, w: np.sum(x + y, axis=0),
    lambda np, x, y, w: np.concatenate([x + y, x[None]]),
    lambda np, x, y, w: np.transpose(y == x),
]


@pytest.mark.parametrize("number", range(len(OF_NOTHING)))
def test_what_broadcasts_to_nothing(number):
    """Of x (3,), y (0, 3) and w (2, 1, 3)."""
    columns = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros((4, 0, 3), np.float32), np.ones((4, 2, 1, 3), np.float32)
    found = list(penstock.Dataset.from_tensor_slices(columns).map(lambda *parts: OF_NOTHING[number](np, *parts)))
    for ours, *parts in zip(found, *columns, strict=True):
        theirs = OF_NOTHING[number](np, *parts)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("function", [
    lambda x: np.sum(x, 0, np.float64, None, True, 5),
    lambda x: np.prod(x, 0, np.float64, None, True, 5),
    lambda x: np.mean(x, 0, np.float64, None, True),
    lambda x: np.std(x, 0, None, None, 1, True),
    lambda x: np.var(x, 0, np.float64, None, 1),
    lambda x: np.max(x, 0, None, True),
    lambda x: np.max(x, 0, None, False, 100),
    lambda x: np.min(x, 1, None, True, -100),
    lambda x: np.amax(x, 0, None, True),
    lambda x: np.min(x, 0, None, False, 100, x > 1),
    lambda x: np.any(x > 2, 0, None, True),
    lambda x: np.all(x > 2, 0, None, True),
    lambda x: x.max(0, None, True),
    lambda x: x.std(0, None, None, 1),
    lambda x: x.sum(0, None, None, True),
])  # fmt: skip
def test_reductions_take_arguments_in_the_order_of_numpy(function):
    rows = small(np.float64)
    (found,) = run(rows, [function])
    assert_same(found, wanted(rows, function), "in a row", rtol=1e-15)


def test_reductions_of_too_many_arguments_are_refused():
    with pytest.raises(penstock.TraceError, match=r"\.any\(\) with these arguments.*takes 4 arguments in a row, not 5"):
        run(small(np.float64), [lambda x: x.any(0, None, True, True)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_closeness_of_every_type(dtype):
    rows = small(dtype)
    other = small(dtype)[:, ::-1].copy()
    functions = [
        lambda a, b: np.isclose(a, b),
        lambda a, b: np.isclose(a, b, atol=1),
        lambda a, b: np.isclose(a, b, 0.5, 0),
        lambda a, b: np.isclose(a, 2, atol=1.5),
        lambda a, b: np.isclose(2, b, atol=1.5),
        lambda a, b: np.isclose(a, [0, 1, 2, 3, 250], atol=1),
        lambda a, b: np.isclose([0, 1, 2, 3, 250], b, atol=1),
        lambda a, b: np.isclose(a, np.float32(1.5), atol=0.75),
        lambda a, b: np.allclose(a, b, atol=3),
        lambda a, b: np.allclose(a, b, atol=2),
        lambda a, b: np.array_equal(a, a.astype(np.float64)),
        lambda a, b: np.array_equal(a[0, :2], [1, 0]),
        lambda a, b: np.array_equal([1, 0, 2], a[0]),
    ]
    for i, (found, function) in enumerate(zip(run((rows, other), functions), functions)):
        assert_same(found, wanted((rows, other), function), f"{dtype}, {i}")


def test_closeness_of_unsigned_numbers_does_not_wrap():
    rows = (np.array([1, 3, 255], np.uint8), np.array([2, 1, 0], np.uint8))
    functions = [lambda a, b: np.isclose(a, b, atol=1), lambda a, b: np.isclose(a, b), lambda a, b: np.allclose(a, b, atol=254)]
    assert [found.tolist() for found in run(rows, functions)] == [[True, False, False], [False] * 3, [True, True, False]]
    words = (np.array([0, (1 << 64) - 1], np.uint64), np.array([1, 0], np.uint64))
    assert run(words, [lambda a, b: np.isclose(a, b, atol=2)])[0].tolist() == [True, False]
