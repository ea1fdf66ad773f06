"""Python functions as predicates, as generators of elements, and inside of traced functions, end to end."""

import functools
import hashlib
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import penstock

# Functions of this module travel by its name, as workers have pytest's sys.path.

range_of = penstock.Dataset.range


def arrays(dataset):
    """All elements, as nests of NumPy's values."""
    return list(dataset.as_numpy_iterator())


def digest(dataset):
    whole = hashlib.sha256()
    for element in dataset:
        for array in element if isinstance(element, tuple) else element.values() if isinstance(element, dict) else [element]:
            array = np.asarray(array)
            whole.update(f"{array.dtype} {array.shape}".encode())
            whole.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return whole.hexdigest()


def tails_agree(make, steps):
    """A resume behind those steps, by another number of workers, gives the same tail."""
    whole = arrays(make(2))
    for step in steps:
        with iter(make(1)) as iterator:
            for _ in range(step):
                next(iterator)
            state = iterator.state_dict()
        with make(4).as_numpy_iterator() as resumed:
            resumed.load_state_dict(state)
            tail = list(resumed)
        assert len(tail) == len(whole) - step
        assert all(np.array_equal(a, b) for a, b in zip(tail, whole[step:])), step


class Does:
    """A function that a text says: it travels by the name of this class, as plain pickle takes no lambda."""

    def __init__(self, text):
        self.text = text

    def __call__(self, *values, **named):
        return eval(self.text, {"np": np, "penstock": penstock, "os": os})(*values, **named)


class KillsOnce:
    """A function whose worker is killed at one element, the first time that it comes there."""

    def __init__(self, function, mark, at):
        self.function, self.mark, self.at = function, str(mark), at

    def __call__(self, x):
        if x == self.at and not os.path.exists(self.mark):
            open(self.mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.function(x)


# --- filter -------------------------------------------------------------------------------------


def is_even(x):
    return x % 2 == 0


def test_a_filter_keeps_the_elements_as_they_are():
    assert [int(x) for x in range_of(10).filter(is_even, python=True)] == [0, 2, 4, 6, 8]
    pairs = range_of(6).map(lambda x: {"n": x, "more": (penstock.functions.arange(x), penstock.strings.as_string(x))})
    kept = pairs.filter(Does('lambda e: e["n"] % 3 != 0 and e["more"][1] != b"4"'), python=True)
    assert kept.element_spec == pairs.element_spec
    assert [(element["n"], element["more"][0].tolist(), element["more"][1]) for element in arrays(kept)] == [
        (1, [0], b"1"), (2, [0, 1], b"2"), (5, [0, 1, 2, 3, 4], b"5"),
    ]  # fmt: skip


def test_a_filter_behind_batch_sees_whole_batches():
    assert [x.tolist() for x in range_of(10).batch(4).filter(Does("lambda x: x.sum() > 10"), python=True)] == [[4, 5, 6, 7], [8, 9]]


def test_a_filter_with_a_feature_of_its_own_flags_name():
    dataset = range_of(4).map(lambda x: {"holds": x, "holds_": x + 1}).filter(Does('lambda e: e["holds"] > 1'), python=True)
    assert arrays(dataset) == [{"holds": 2, "holds_": 3}, {"holds": 3, "holds_": 4}]


def drawn_filter(workers, **options):
    return range_of(300).repeat(2).filter(Does("lambda x: penstock.rng().random() < 0.5"), python=True, seed=3, workers=workers, **options)


def test_a_filter_draws_alike_for_any_number_of_workers_and_behind_a_resume():
    one = digest(drawn_filter(1))
    assert digest(drawn_filter(2)) == one and digest(drawn_filter(4)) == one
    assert 200 < len(arrays(drawn_filter(2))) < 400
    tails_agree(drawn_filter, (0, 1, 77, 250))


def test_a_killed_worker_changes_nothing_of_a_filter(tmp_path):
    kills = KillsOnce(is_even, tmp_path / "mark", 55)
    assert [int(x) for x in range_of(100).filter(kills, python=True, workers=2)] == list(range(0, 100, 2))
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("returned, complaint", [(None, "returned None"), ([True], r"bool \(1,\)"), ("x", "not bool"), (1.5, "not bool"), (1, "not bool")])
def test_a_filter_takes_flags_alone(returned, complaint):
    with pytest.raises(penstock.DataLossError, match=complaint):
        list(range_of(3).filter(Does(f"lambda x: {returned!r}"), python=True))


def test_what_fails_in_a_filter_is_left_out_where_that_is_asked_for():
    dataset = range_of(20).filter(Does("lambda x: 1 // int(x - 7) < 5"), python=True, workers=2)
    with pytest.raises(penstock.DataLossError, match="ZeroDivisionError"):
        list(dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [int(x) for x in dataset.ignore_errors()] == [x for x in range(20) if x != 7]


def test_arguments_of_python_functions_are_refused_without_one():
    with pytest.raises(TypeError, match="filter takes workers with python=True alone"):
        range_of(3).filter(lambda x: x > 1, workers=2)
    with pytest.raises(TypeError, match="flat_map takes output with python=True alone"):
        range_of(3).flat_map(lambda x: penstock.Dataset.from_tensors(x), output=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'procs'"):
        range_of(3).filter(is_even, python=True, procs=2)
    with pytest.raises(TypeError, match="filter takes a function, not a int"):
        range_of(3).filter(3, python=True)
    with pytest.raises(penstock.TraceError, match=r"filter\(f, python=True\) runs any function"):
        range_of(3).filter(lambda x: bool(x))


# --- flat_map -----------------------------------------------------------------------------------


def counted(x):
    for i in range(x % 4):
        yield {"of": x, "number": i, "text": f"{x}.{i}"}


COUNTED = {"of": penstock.TensorSpec((), np.int64), "number": penstock.TensorSpec((), np.int64), "text": penstock.TensorSpec((), penstock.string)}


@pytest.mark.parametrize("output", [None, COUNTED], ids=["learned", "declared"])
def test_a_function_yields_any_number_of_elements(output):
    dataset = range_of(9).flat_map(counted, python=True, output=output)
    assert dataset.element_spec == COUNTED
    assert arrays(dataset) == [{"of": x, "number": i, "text": f"{x}.{i}".encode()} for x in range(9) for i in range(x % 4)]
    with pytest.raises(TypeError, match="length is unknown"):
        len(dataset)


def chunks(x):
    return [np.full((x % 3, i), x + i, np.float32) for i in range(x % 4)]


def flags(x):
    yield np.arange(x) % 2 == 0, x


def test_sizes_of_what_is_yielded_may_differ():
    dataset = range_of(9).flat_map(chunks, python=True, output=penstock.TensorSpec((None, None), np.float32))
    assert dataset.element_spec == penstock.TensorSpec((None, None), np.float32)
    expected = [chunk for x in range(9) for chunk in chunks(x)]
    found = arrays(dataset)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.dtype == other.dtype and np.array_equal(one, other)
    dataset = range_of(4).flat_map(flags, python=True, output=(penstock.TensorSpec((None,), np.bool_), penstock.TensorSpec((), np.int64)))
    assert [(a.dtype, a.tolist(), int(b)) for a, b in dataset] == [(np.bool_, (np.arange(x) % 2 == 0).tolist(), x) for x in range(4)]


def same(x):
    buffer = np.zeros(2, np.int64)
    for i in range(3):
        buffer[:] = x, i
        yield buffer


def test_a_buffer_that_is_yielded_again_and_again():
    found = [a.tolist() for a in range_of(2).flat_map(same, python=True)]
    assert found == [[x, i] for x in range(2) for i in range(3)]


def test_nothing_at_all_is_yielded():
    dataset = range_of(5).flat_map(Does("lambda x: []"), python=True, output=penstock.TensorSpec((2,), np.int64))
    assert list(dataset) == []
    with pytest.raises(penstock.InvalidArgumentError, match="yields nothing for the first 1000 elements"):
        list(range_of(5).flat_map(Does("lambda x: []"), python=True))


def drawn_parts(workers, **options):
    output = penstock.TensorSpec((), np.float64)
    dataset = range_of(200).repeat(2)
    return dataset.flat_map(Does("lambda x: (np.random.random() for _ in range(x % 5))"), python=True, output=output, seed=3, workers=workers, **options)


def test_what_is_yielded_is_alike_for_any_number_of_workers_and_behind_a_resume():
    one = digest(drawn_parts(1))
    assert digest(drawn_parts(2)) == one and digest(drawn_parts(4)) == one
    rows = arrays(drawn_parts(2))
    assert len(rows) == len(set(rows)) == 800
    tails_agree(drawn_parts, (0, 1, 2, 401, 799))


def test_a_killed_worker_changes_nothing_of_what_is_yielded(tmp_path):
    kills = KillsOnce(chunks, tmp_path / "mark", 55)
    output = penstock.TensorSpec((None, None), np.float32)
    assert digest(range_of(100).flat_map(kills, python=True, output=output, workers=2)) == digest(range_of(100).flat_map(chunks, python=True, output=output))
    assert (tmp_path / "mark").exists()


def half(x):
    yield x
    yield 1 // int(x - 3)


@pytest.mark.parametrize(
    "function, complaint",
    [
        (Does('lambda x: None'), "returned None, not an iterable of elements"),
        (Does('lambda x: 3'), "returned a int, not an iterable of elements"),
        (Does('lambda x: "text"'), "returned a str, not an iterable"),
        (Does('lambda x: {"a": 1}'), "returned a dict, not an iterable"),
        (Does('lambda x: [(1, 2)]'), r"returned a tuple for 'value'|\(2,\)"),
        (Does('lambda x: [1.5]'), "not int64"),
        (Does('lambda x: [[1], [2]]'), r"\(1,\) for 'value', not int64 \(\)"),
        (half, "ZeroDivisionError"),
    ],
)
def test_what_is_yielded_is_as_declared(function, complaint):
    with pytest.raises(penstock.DataLossError, match=complaint):
        list(range_of(5).flat_map(function, python=True, output=penstock.TensorSpec((), np.int64)))


def test_strings_whose_number_differs_are_refused():
    with pytest.raises(TypeError, match="output value is an array of strings whose number differs"):
        range_of(3).flat_map(counted, python=True, output=penstock.TensorSpec((None,), penstock.string))


# --- calls inside of traced functions -----------------------------------------------------------


def plus(x, y):
    assert isinstance(x, np.int64) and isinstance(y, np.int64)
    return np.float32(x + y)


def test_a_call_between_native_expressions():
    dataset = range_of(5).map(lambda x: (penstock.numpy_function(plus, [x * 2, 10], np.float32) * 2 + 1, x))
    assert dataset.element_spec == (penstock.TensorSpec((), np.float32), penstock.TensorSpec((), np.int64))
    assert arrays(dataset) == [(2 * (2 * x + 10) + 1, x) for x in range(5)]
    # What stands around it is native: one Python stage, and two maps.
    assert [stage.op for stage in dataset._stages] == ["range", "map", "python", "map"]


def test_several_calls_of_which_one_needs_another():
    def function(element):
        a = penstock.numpy_function(Does('lambda x: x + 1'), [element["x"]], np.int64)
        b = penstock.numpy_function(Does('lambda x, y: [x * y, f"{x} {y}"]'), [a, element["y"] + 0.5], [np.float64, penstock.string])
        c = penstock.numpy_function(Does('lambda text: len(text)'), [b[1]], np.int64)
        return {"a": a, "b": b[0] - element["x"], "c": c + a, "text": b[1], "x": element["x"]}

    dataset = range_of(6).map(lambda x: {"x": x, "y": x * 2.0}).map(function)
    for x, element in enumerate(arrays(dataset)):
        y = 2.0 * x + 0.5
        text = f"{x + 1} {y}".encode()
        assert element == {"a": x + 1, "b": (x + 1) * y - x, "c": len(text) + x + 1, "text": text, "x": x}


def test_random_numbers_and_costly_values_in_front_are_computed_once():
    def function(x):
        u = penstock.functions.random_uniform([3])
        return u, penstock.numpy_function(Does('lambda u: u * 2'), [u], np.float32), penstock.numpy_function(Does('lambda u: u * 3'), [u], np.float32) + u

    for u, twice, four in arrays(range_of(20).map(function)):
        assert np.array_equal(u * 2, twice) and np.allclose(u * 4, four)
    assert len({float(u[0]) for u, _, _ in arrays(range_of(20).map(function))}) == 20


def numbers(x):
    return np.arange(x % 3 * 2, dtype=np.int32).reshape(2, -1)


def test_results_have_open_sizes_until_somebody_says_them():
    seen = []

    def function(x):
        result = penstock.numpy_function(numbers, [x], np.int32)
        seen.append(result.shape)
        return result

    assert [a.shape for a in range_of(4).map(function)] == [(2, 0), (2, 1), (2, 2), (2, 0)]
    assert seen == [(None, None)]

    def declared(x):
        result = penstock.numpy_function(numbers, [x], np.int32)
        result.set_shape([2, None])
        assert result.shape == (2, None)
        return result

    dataset = range_of(4).map(declared)
    assert dataset.element_spec.shape == (2, None) and [a.shape for a in dataset][1] == (2, 1)
    spec = penstock.TensorSpec((2, 1), np.int32)
    dataset = range_of(4).map(lambda x: penstock.numpy_function(numbers, [x * 3 + 1], spec))
    assert dataset.element_spec == spec
    with pytest.raises(penstock.DataLossError, match=r"int32 \(2, 2\) for 'r0', not int32 \(2, 1\)"):
        list(range_of(4).map(lambda x: penstock.numpy_function(numbers, [x + 1], spec)))
    # Of a native value it is checked.
    dataset = range_of(3).map(lambda x: penstock.functions.arange(x + 2))

    def shaped(x):
        x.set_shape((2,))
        return x

    assert dataset.map(shaped).element_spec.shape == (2,)
    with pytest.raises(penstock.InvalidArgumentError, match="expected .*2"):
        list(dataset.map(shaped))


def test_equal_sizes_make_batches_though_they_are_open():
    dataset = range_of(4).map(lambda x: penstock.numpy_function(Does('lambda x: np.full(3, x)'), [x], np.int64)).batch(2)
    assert [a.tolist() for a in dataset] == [[[0] * 3, [1] * 3], [[2] * 3, [3] * 3]]


def look(x, table, text, word, flag, words):
    assert (type(text), type(word), type(flag)) == (bytes, bytes, np.bool_) and words.tolist() == [b"a", b"b"]
    return table[x]


def test_constants_are_arguments_too():
    table = np.arange(10) * 10
    dataset = range_of(4).map(lambda x: penstock.numpy_function(look, [x, table, "text", b"word", True, ["a", "b"]], np.int64))
    assert arrays(dataset) == [0, 10, 20, 30]
    assert arrays(range_of(3).map(lambda x: penstock.numpy_function(Does('lambda a, b: a - b'), [5, x], np.int64))) == [5, 4, 3]
    assert arrays(range_of(3).map(lambda x: penstock.numpy_function(Does('lambda a, b: a + b'), [x, x], np.int64))) == [0, 2, 4]


def test_behind_batch_a_call_gets_whole_batches():
    seen = range_of(5).batch(2).map(lambda x: (penstock.numpy_function(Does('lambda y: y.sum(keepdims=True) + len(y)'), [x + 1], np.int64) * 2, np.sum(x)))
    assert [(a.tolist(), int(b)) for a, b in seen] == [([10], 1), ([18], 5), ([12], 4)]
    # What does not depend on it is computed as ever: of rows, where it is of rows.
    texts = penstock.Dataset.from_tensor_slices([b"\x01\x02", b"\x03\x04"]).batch(2)
    both = texts.map(lambda s: (penstock.io.decode_raw(s, np.uint8), penstock.numpy_function(Does('lambda s: np.array([len(x) for x in s])'), [s], np.int64)))
    assert [(a.tolist(), b.tolist()) for a, b in both] == [([[1, 2], [3, 4]], [2, 2])]


def look_by_numpy(number, array, text):
    assert number.numpy() == 3 and array.numpy().tolist() == [3, 4] and text.numpy().decode() == "3"
    assert type(array.numpy()) is np.ndarray and number.shape == () and array.shape == (2,)
    return number.numpy() * 1.5, np.float64(array.numpy().sum()), text


def test_py_function_has_arguments_with_numpy_and_casts():
    def function(x):
        inputs = [x, np.stack([x, x + 1]), penstock.strings.as_string(x)]
        return tuple(penstock.py_function(func=look_by_numpy, inp=inputs, Tout=[np.float32, np.float32, penstock.string]))

    assert arrays(range_of(3, 4).map(function)) == [(4.5, 7.0, b"3")]
    with pytest.raises(penstock.DataLossError, match="float64 .* not int64"):
        list(range_of(3).map(lambda x: penstock.py_function(Does('lambda x: np.float64(1.5)'), [x], np.int64)))


def half_of(x):
    """Half of it."""
    return x / 2


def test_a_decorator():
    halved = penstock.numpy_function(Tout=penstock.float64)(half_of)
    assert halved.__doc__ == "Half of it."
    assert arrays(range_of(3).map(lambda x: halved(x))) == [0, 0.5, 1]


def test_conditions_may_call():
    assert arrays(range_of(8).filter(lambda x: penstock.py_function(Does('lambda x: x.numpy() % 3 == 0'), [x], penstock.TensorSpec((), bool)))) == [0, 3, 6]
    pairs = range_of(8).map(lambda x: {"a": x, "b": (x * 2, x * 3)})
    kept = pairs.filter(lambda e: penstock.numpy_function(is_even, [e["a"]], np.bool_) & (e["a"] > 2))
    assert kept.element_spec == pairs.element_spec and [e["b"][1] for e in arrays(kept)] == [12, 18]
    assert arrays(range_of(8).take_while(lambda x: penstock.numpy_function(Does('lambda x: x != 5'), [x], np.bool_))) == [0, 1, 2, 3, 4]


def test_records_are_parsed_behind_a_call():
    records = [penstock.io.serialize_example({"n": i})[::-1] for i in range(3)]
    features = {"n": penstock.io.FixedLenFeature([], np.int64)}

    def function(record):
        plain = penstock.numpy_function(Does('lambda r: r[::-1]'), [record], penstock.string)
        return penstock.io.parse_single_example(plain, features)["n"] + 1

    assert arrays(penstock.Dataset.from_tensor_slices(records).map(function)) == [1, 2, 3]

    def stale(record):
        plain = penstock.numpy_function(Does('lambda r: r[::-1]'), [record], penstock.string)
        return penstock.io.parse_single_example(plain, features)["n"], plain

    with pytest.raises(penstock.TraceError, match="the result of a Python function is used beside what was parsed"):
        penstock.Dataset.from_tensor_slices(records).map(stale)


def drawn_calls(workers, **options):
    def function(x):
        a = penstock.numpy_function(Does('lambda x: np.random.random() + penstock.rng().random()'), [x], np.float64, seed=5, workers=workers, **options)
        return a + penstock.functions.random_uniform(seed=3).astype(np.float64)

    return range_of(300).repeat(2).map(function)


def test_calls_draw_alike_for_any_number_of_workers_and_behind_a_resume():
    one = digest(drawn_calls(1))
    assert digest(drawn_calls(2)) == one and digest(drawn_calls(4)) == one
    rows = arrays(drawn_calls(2))
    assert len(set(rows)) == 600
    tails_agree(drawn_calls, (0, 1, 333, 599))


def test_a_killed_worker_changes_nothing_of_calls(tmp_path):
    kills = KillsOnce(Does("lambda x: x * 2"), tmp_path / "mark", 55)
    assert arrays(range_of(100).map(lambda x: penstock.numpy_function(kills, [x], np.int64, workers=2) + 1)) == [2 * x + 1 for x in range(100)]
    assert (tmp_path / "mark").exists()


def slow(x):
    if x == 3:
        time.sleep(1000)
    return x


def test_limits_of_calls():
    dataset = range_of(5).map(lambda x: penstock.numpy_function(slow, [x], np.int64, timeout_ms=300))
    with pytest.raises(penstock.DataLossError, match=r"slow took longer than timeout_ms \(300\) twice"):
        list(dataset)


def test_ragged_tensors_stay_beside_a_call():
    words = penstock.Dataset.from_tensor_slices([b"a b", b"", b"c d e"]).map(lambda s: (s, penstock.strings.split(s)))
    dataset = words.map(lambda s, parts: (penstock.numpy_function(Does('lambda s: len(s)'), [s], np.int64), parts))
    assert [(int(n), np.asarray(parts).tolist()) for n, parts in dataset] == [(3, [b"a", b"b"]), (0, []), (5, [b"c", b"d", b"e"])]


def refuses(function, kind, complaint, dataset=None):
    with pytest.raises(kind, match=complaint):
        list((dataset or range_of(3)).map(function))


def test_what_calls_refuse():
    call, i64 = penstock.numpy_function, np.int64
    refuses(lambda x: call(is_even, [1, 2], i64), penstock.TraceError, "penstock.numpy_function is called without a traced value")
    refuses(lambda x: penstock.py_function(print, [x], []), penstock.TraceError, "without a result")
    refuses(lambda x: call(3, [x], i64), TypeError, "takes a function, not a int")
    refuses(lambda x: call(is_even, [x], "int5"), TypeError, "Tout is a type")
    refuses(lambda x: call(is_even, [x, object()], i64), TypeError, "inp holds a object, which is no tensor")
    refuses(lambda x: call(is_even, [x], i64, procs=3), TypeError, "unexpected keyword argument 'procs'")
    refuses(lambda x: call(Does('lambda x: open(os.devnull)'), [x], i64), penstock.InvalidArgumentError, "TextIOWrapper")
    refuses(lambda x: call(Does('lambda x: (x, x)'), [x], i64), penstock.InvalidArgumentError, "returned 2 values, and its Tout has 1 types")
    refuses(lambda x: call(Does('lambda x: (x, x)'), [x], penstock.TensorSpec((), i64)), penstock.DataLossError, "returned a tuple of 2, not a tuple of 1")
    refuses(lambda x: call(Does('lambda x: np.float64(x)'), [x], np.float32), penstock.DataLossError, r"float64 \(\) for 'r0', not float32 \(\); return array.astype")
    refuses(lambda x: call(Does('lambda x: 1 // 0'), [x], i64), penstock.DataLossError, "ZeroDivisionError")
    refuses(lambda x: call(functools.partial(is_even, threading.Lock()), [x], i64), TypeError, "cannot be pickled")
    with pytest.raises(TypeError, match="is a decorator, and takes no inp"):
        call(inp=[1], Tout=i64)
    with pytest.raises(penstock.TraceError, match="call it in a map in front"):
        list(range_of(3).scan(np.int64(0), lambda state, x: (state + call(is_even, [x], i64), x)))
    with pytest.raises(penstock.TraceError, match="pass it through the element"):

        def inner(x):
            made = call(Does('lambda x: x'), [x], penstock.TensorSpec((), i64))
            return penstock.Dataset.range(2).map(lambda y: y + made)

        range_of(3).flat_map(inner)


def test_stateful_and_name_have_no_effect():
    dataset = range_of(3).map(lambda x: penstock.numpy_function(is_even, [x], np.bool_, stateful=False, name="even"))
    assert arrays(dataset) == [True, False, True]


def test_inside_of_interleave():
    def inside(x):
        spec = penstock.TensorSpec((), np.int64)
        return penstock.Dataset.from_tensors(x).repeat(2).map(lambda y: penstock.numpy_function(Does('lambda y: y * 10'), [y], spec))

    assert arrays(range_of(3).interleave(inside, cycle_length=1)) == [0, 0, 10, 10, 20, 20]


def test_a_spec_that_is_no_python_stage_is_refused(tmp_path):
    """By the daemon, whoever wrote it."""
    dataset = range_of(3).filter(is_even, python=True)
    text = dataset.spec_text()
    from penstock import _control
    from penstock._running import _daemon

    def validate(text):
        return _daemon.with_private_daemon(lambda socket: _control.validate(socket, "check", text))

    validate(text)
    for old, new, complaint in [
        ('keep: "value"', 'keep: "other"', 'keep "other": the element has'),
        ('keep: "value"', 'keep: "value" keep: "value"', 'keep "value" twice'),
        ('keep: "value"', 'keep: "value" input: "x"', 'input "x": the element has'),
        ('returns: "null"', 'returns: "[null,null]"', "expected a structure of 1 tensors"),
        ('output { name: "holds"', 'output { name: "value"', "keep has a feature of that name"),
        ('keep: "value"', 'keep: "value" yields: true', "expected -1 as the first size"),
        ('dtype: "bool"', 'dtype: "bool" packed: "int8"', "packed: expected NumPy's numbers in a string"),
    ]:
        assert old in text
        with pytest.raises(penstock.InvalidArgumentError, match=complaint):
            validate(text.replace(old, new))


def in_the_output(number):
    """Bytes that are put together where they will lie; asked for again, where they were too few; and now and then elsewhere after all."""
    from penstock import _row

    number = int(number)
    room = _row.room(100)
    room[:100] = number
    size = 100 + number * 50_000
    larger = _row.room(size)
    assert (larger[:100] == number).all(), "what stood there stays"
    larger[100:] = number + 1
    if number % 4 == 3:
        return larger.copy()
    return larger[: size - number]


def test_a_row_may_be_made_where_it_lies():
    """_row.room, by which a batch of penstock.torch.DataLoader is put together without a copy."""
    output = penstock.TensorSpec((None,), np.uint8)
    found = list(penstock.Dataset.range(12).map(in_the_output, python=True, output=output, workers=2))
    for number, row in enumerate(found):
        size = 100 + number * 50_000 - (0 if number % 4 == 3 else number)
        expected = np.full(size, number + 1, np.uint8)
        expected[:100] = number
        assert np.array_equal(row, expected), number
