"""np.dot, np.einsum, norms and their kin on traced values, against NumPy's results: exact of integers, within rounding of floats."""

import itertools

import numpy as np
import pytest

import penstock

DICE = np.random.default_rng(6)
A = DICE.normal(size=(3, 4, 6)).astype(np.float32)
B = DICE.normal(size=(3, 6, 5)).astype(np.float32)
V = DICE.normal(size=(3, 6))
WHOLE = DICE.integers(-50, 50, (3, 4, 6))
NARROW = DICE.integers(-99, 99, (3, 6)).astype(np.int8)
TABLE = DICE.normal(size=(6, 2)).astype(np.float32)
CUBE = DICE.normal(size=(3, 2, 4, 6)).astype(np.float32)


def check(function, *columns, batched=False):
    dataset = penstock.Dataset.from_tensor_slices(columns)
    for ours, *parts in zip(dataset.map(function), *columns, strict=True):
        compare(ours, np.asarray(function(*parts)))
    if batched:
        (found,) = dataset.batch(len(columns[0])).map(function)
        compare(found, function(*columns))


def compare(ours, theirs):
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    if theirs.dtype.kind == "f":
        tolerance = 3e-6 if theirs.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(ours, theirs)


OF_ELEMENTS = [
    lambda a, b, v, w: a @ b,
    lambda a, b, v, w: np.matmul(a, TABLE),
    lambda a, b, v, w: np.dot(a, b),
    lambda a, b, v, w: a.dot(v),
    lambda a, b, v, w: np.dot(v, v),
    lambda a, b, v, w: np.dot(2.5, a),
    lambda a, b, v, w: np.dot(w, w.T),
    lambda a, b, v, w: w @ w.T,
    lambda a, b, v, w: np.eye(4, dtype=np.int32) @ w,
    lambda a, b, v, w: np.eye(4) @ w,
    lambda a, b, v, w: w @ np.float64([1, 2, 3, 4, 5, 6]),
    lambda a, b, v, w: v @ b,
    lambda a, b, v, w: np.inner(a, a),
    lambda a, b, v, w: np.inner(a, v),
    lambda a, b, v, w: np.inner(w, w[1]),
    lambda a, b, v, w: np.vdot(a, w),
    lambda a, b, v, w: np.vecdot(a, v),
    lambda a, b, v, w: np.vecdot(a, a, axis=0),
    lambda a, b, v, w: np.outer(v, a[0]),
    lambda a, b, v, w: np.outer(w, [1, 2]),
    lambda a, b, v, w: np.tensordot(a, b, 1),
    lambda a, b, v, w: np.tensordot(a, w, 2),
    lambda a, b, v, w: np.tensordot(a, w, [[1], [1]]),
    lambda a, b, v, w: np.tensordot(a, w, [[1, 0], [1, 0]]),
    lambda a, b, v, w: np.tensordot(b, a, [[0], [-1]]),
    lambda a, b, v, w: np.trace(a),
    lambda a, b, v, w: np.trace(w, 1),
    lambda a, b, v, w: np.diagonal(a, -1),
    lambda a, b, v, w: a.diagonal(2),
    lambda a, b, v, w: np.tril(a) + np.triu(a, 2),
    lambda a, b, v, w: np.tril(w, -1),
    lambda a, b, v, w: np.cross(a[:, :3], v[3:]),
    lambda a, b, v, w: np.cross(w[:3], w[:3][::-1], axis=0),
    lambda a, b, v, w: np.broadcast_to(v, (2, 3, 6)),
    lambda a, b, v, w: np.broadcast_to(w[:, :1], (4, 6)),
    lambda a, b, v, w: np.stack(np.meshgrid(v, w[0, :4])),
    lambda a, b, v, w: np.stack(np.meshgrid(v, [1.0, 2], v[:3], indexing="ij")),
    lambda a, b, v, w: np.meshgrid(v, w[0], sparse=True)[1],
    lambda a, b, v, w: np.linalg.norm(a),
    lambda a, b, v, w: np.linalg.norm(w, axis=0),
    lambda a, b, v, w: np.linalg.norm(a, "fro", axis=(0, 1)),
    lambda a, b, v, w: np.linalg.norm(v, 3),
    lambda a, b, v, w: np.linalg.norm(a, 1, axis=1, keepdims=True),
    lambda a, b, v, w: np.linalg.norm(v, np.inf) - np.linalg.norm(v, -np.inf),
    lambda a, b, v, w: np.linalg.norm(w, 0, axis=1),
    lambda a, b, v, w: np.linalg.vector_norm(a),
    lambda a, b, v, w: np.linalg.vector_norm(a, axis=1, keepdims=True),
]


@pytest.mark.parametrize("case", range(len(OF_ELEMENTS)))
def test_of_elements(case):
    check(OF_ELEMENTS[case], A, B, V, WHOLE)


SUBSCRIPTS = [
    "ij,jk->ik", "ij,jk", "ij,jk->ki", "ij,kj->ik" , "ij,j->i", "ij,ij->i", "ij,ij->", "ij,ij->ij", "ij,ij->ji", "ij,kl->ijkl", "ij,k->kj", "ij->", "ij->j", "ij->ji", "ji",
    "ab,cb->a", "hij,jk->hik", "hij,hjk->hik", "hij,hik->hjk", "hij,ik->jhk", "hij,hij->h", "hij,ij->h", "hij,hij", "hij->ih", "i,i", "i,j->ij", "i,ji->j",
]  # fmt: skip


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16])
def test_einsum(subscripts, dtype):
    inputs, _, _ = subscripts.partition("->")
    sizes = dict(zip("abchijkl", (3, 4, 2, 2, 3, 4, 5, 2)))
    dice = np.random.default_rng(7)
    columns = [(dice.normal(size=(2, *(sizes[letter] for letter in part))) * 30).astype(dtype) for part in inputs.split(",")]
    check(lambda *parts: np.einsum(subscripts, *parts), *columns)


@pytest.mark.parametrize("subscripts", ["hw,c->c", "hw,c->", "hc,c->c", "c,hw->c", "hw,hc->hc"])
@pytest.mark.parametrize("dtypes", [*itertools.product("bool uint8 int8 int64 float32 float64".split(), repeat=2)], ids=" ".join)
def test_what_one_array_alone_has_is_summed_in_the_type_of_the_result(subscripts, dtypes):
    dice = np.random.default_rng(8)
    columns = [dice.integers(0, 2 if dtype == "bool" else 120, (2, *[3] * len(part))).astype(dtype)
               for part, dtype in zip(subscripts.partition("->")[0].split(","), dtypes)]  # fmt: skip
    check(lambda *parts: np.einsum(subscripts, *parts), *columns)


def test_einsum_of_one_array():
    check(lambda x: np.einsum("ij->", x), WHOLE > 0)
    check(lambda x: np.einsum("ij->j", x > 0), WHOLE)


def test_integers_wrap_as_in_numpy():
    check(lambda x: np.dot(x, x), NARROW)
    check(lambda x: np.einsum("i,i", x, x), NARROW)
    check(lambda x: np.outer(x, x), NARROW)
    check(lambda x: x @ np.full(6, 2**30, np.int32), NARROW)
    check(lambda x: np.dot(x > 0, x < 9), NARROW)


def test_matrices_side_by_side():
    check(lambda x, y: np.matmul(x, y[:, None, :, :2] if False else np.swapaxes(x, 1, 2)), CUBE, CUBE)
    check(lambda x: x @ np.swapaxes(x, -1, -2), CUBE)
    check(lambda x: x[0] @ np.swapaxes(x, -1, -2), CUBE)


def test_of_rows_of_a_batch():
    check(lambda x: x @ TABLE, A, batched=True)
    check(lambda x: np.dot(x, TABLE), A, batched=True)
    check(lambda x: x @ np.float32([1, 2, 3, 4, 5, 6]), A, batched=True)
    (found,) = penstock.Dataset.from_tensor_slices(A).batch(3).map(lambda x: (np.einsum("nij,jk->nik", x, TABLE), np.linalg.norm(x, axis=-1), np.tensordot(x, TABLE, [[2], [0]])))
    compare(found[0], np.einsum("nij,jk->nik", A, TABLE))
    compare(found[1], np.linalg.norm(A, axis=-1))
    compare(found[2], np.tensordot(A, TABLE, [[2], [0]]))


OF_WHOLE_BATCHES = [
    lambda x, y: x @ y,
    lambda x, y: np.dot(x, y),
    lambda x, y: np.tensordot(x, y, 1),
    lambda x, y: np.einsum("ij,jk->ik", x, y),
    lambda x, y: np.array([1.0, 2, 3, 4]) @ x,
    lambda x, y: np.arange(8).reshape(2, 4) @ x,
    lambda x, y: x @ y[:, 0],
    lambda x, y: x @ y.T,
    lambda x, y: x @ np.sum(y, axis=0),
    lambda x, y: np.vdot(x, y),
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtypes", [(np.float64, np.float64), (np.float32, np.int16), (np.int64, np.float32), (bool, np.float64)])
@pytest.mark.parametrize("case", range(len(OF_WHOLE_BATCHES)))
def test_with_a_matrix_of_the_rows_of_a_batch(case, dtypes, exact):
    columns = [np.arange(16).reshape(4, 4).astype(dtype) + dtype(1) for dtype in dtypes]
    (found,) = penstock.Dataset.from_tensor_slices(tuple(columns)).batch(4, drop_remainder=exact).map(OF_WHOLE_BATCHES[case])
    compare(found, OF_WHOLE_BATCHES[case](*columns))


def test_a_matrix_of_too_few_rows_of_a_batch():
    for rows in (1, 3):
        with pytest.raises(penstock.DataLossError, match=rf"expected \(4, 4\), found \({rows}, 4\)"):
            list(penstock.Dataset.from_tensor_slices(np.ones((rows, 4))).batch(4).map(lambda x: x @ x))


def test_flags_by_floats():
    for weights in (np.arange(6.0), np.arange(6, dtype=np.float32)):
        check(lambda x: (x > 0) @ weights, WHOLE)


REFUSED = [
    (lambda a: np.einsum("ii->i", a), "a letter for each axis, which stands once"),
    (lambda a: np.einsum("...j->...", a), "each of whose axes has a letter"),
    (lambda a: np.einsum("ij,jk,kl->il", a, a.T, a), "one array or two"),
    (lambda a: np.einsum("ij->iz", a), "the result's axes 'iz'"),
    (lambda a: np.tensordot(a, a, 1), r"np.tensordot of axes of 6 and 4; they are as long"),
    (lambda a: np.tensordot(a, a, 0), "np.tensordot over no axis"),
    (lambda a: a @ 2.0, "operator @ of a number; a . b"),
    (lambda a: np.linalg.norm(a, "nuc"), "with ord='nuc' of 2 axes"),
    (lambda a: np.cross(a, a), "np.cross of vectors of 6 and 6"),
    (lambda a: np.broadcast_to(a, (4, 5)), r"np.broadcast_to of \(4, 6\) to \(4, 5\)"),
    (lambda a: np.diagonal(a, axis1=0, axis2=0), "np.diagonal along one axis"),
    (lambda a: np.tensordot(a, a, 3), "np.tensordot over 3 axes of arrays of 2 and 2; as many as both have"),
    (lambda a: np.tensordot(a[0, 0], a, 1), "np.tensordot over 1 axes of arrays of 0 and 2"),
    (lambda a: np.vecdot(a, 2.0), "np.vecdot of a number"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused(case):
    function, message = REFUSED[case]
    with pytest.raises(penstock.TraceError, match=message):
        list(penstock.Dataset.from_tensor_slices(A).map(function))


OF_ONE_AND_THREE = [
    lambda x: x @ np.array([1, 2, 3]),
    lambda x: x @ np.ones((3, 2), int),
    lambda x: x @ np.ones((2, 3, 2), np.float32),
    lambda x: np.ones((2, 3), int) @ x.T,
    lambda x: np.dot(x, np.array([1, 2, 3])),
    lambda x: np.inner(x, np.ones((2, 3), int)),
    lambda x: np.vecdot(x, np.ones((4, 3), np.float32)),
    lambda x: np.vecdot(x.T, np.ones((3, 4), np.float32), axis=0),
    lambda x: (x > 0) @ np.ones((3, 2), bool),
    lambda x: np.ones((2, 3), bool) @ (x > 0).T,
    lambda x: x @ x[:3],
]


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
@pytest.mark.parametrize("case", range(len(OF_ONE_AND_THREE)))
def test_an_axis_of_one_is_not_repeated(case, dtype):
    values = np.arange(8).reshape(2, 4, 1).astype(dtype)
    with pytest.raises(ValueError):
        OF_ONE_AND_THREE[case](values[0])
    with pytest.raises(penstock.TraceError, match="of axes of (1 and 3|3 and 1); they are as long"):
        penstock.Dataset.from_tensor_slices(values).map(OF_ONE_AND_THREE[case])
