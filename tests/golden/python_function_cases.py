"""Pipelines with Python functions that read the same in tf.data and in Penstock: each case is one function of a namespace, which holds either's names.

make_python_function_goldens.py runs them with TensorFlow, tests/client/python_function_goldens_test.py with Penstock. In `t`: Dataset, numpy_function,
py_function and the dtypes. The functions that are called stand in this module, so that they travel to worker processes by its name.
"""

import numpy as np


def kinds(*values):
    """What the arguments are, as a text."""
    return " ".join(f"{type(value).__name__}:{getattr(value, 'dtype', '')}:{getattr(value, 'shape', '')}" for value in values)


def shapes(*values):
    return np.array([np.ndim(value.numpy()) for value in values])


def half(x):
    return np.float32(x / 2)


def counted(x):
    return np.arange(x % 4), f"n {x}"


def reversed_bytes(text):
    return text[::-1]


def joined(a, b):
    return [a + b, b - a]


def sums(batch):
    return batch.sum(keepdims=True)


def is_third(x):
    return x % 3 == 0


def is_third_of_tensor(x):
    return x.numpy() % 3 == 0


def wide(x):
    return np.float64(x.numpy()) / 4, x.numpy() + 1


def lengths(words):
    return np.array([len(word) for word in words])


def words(x):
    return np.array([f"word {i}" for i in range(x)], object)


def only(x):
    return [x]


def calls(function, *types, of=lambda x: [x], py=False):
    """A case: a map of one call over five numbers."""

    def case(t):
        call = t.py_function if py else t.numpy_function
        wanted = [getattr(t, name) for name in types]
        return t.Dataset.range(5).map(lambda x: call(function, of(x), wanted if len(wanted) > 1 else wanted[0]))

    return case


CASES = {
    "a number": calls(half, "float32"),
    "what a number is given as": calls(kinds, "string"),
    "a list of one": calls(only, "int64"),
    "an array and a text": calls(counted, "int64", "string"),
    "texts": calls(words, "string"),
    "casts of py_function": calls(wide, "float32", "int64", py=True),
    "axes of py_function": calls(shapes, "int64", of=lambda x: [x, np.array([1, 2]), np.zeros((2, 3))], py=True),
    "constants": calls(joined, "int64", "int64", of=lambda x: [x, np.int64(7)]),
    "between native expressions": lambda t: t.Dataset.range(5).map(lambda x: (t.numpy_function(half, [x * 2], t.float32) + 1, x)),
    "one of another": lambda t: t.Dataset.range(5).map(lambda x: t.numpy_function(half, [t.numpy_function(only, [x + 1], t.int64)], t.float32)),
    "strings": lambda t: t.Dataset.from_tensor_slices([b"ab", b"", b"cde"]).map(lambda s: t.numpy_function(reversed_bytes, [s], t.string)),
    "arrays of strings": lambda t: t.Dataset.from_tensor_slices([[b"ab", b""], [b"c", b"def"]]).map(lambda s: t.numpy_function(lengths, [s], t.int64)),
    "batches": lambda t: t.Dataset.range(5).batch(2).map(lambda x: t.numpy_function(sums, [x], t.int64)),
    "equal sizes in batches": lambda t: t.Dataset.range(5).map(lambda x: t.numpy_function(counted, [x * 4 + 3], [t.int64, t.string])).batch(2),
    "filter": lambda t: t.Dataset.range(9).filter(lambda x: t.numpy_function(is_third, [x], t.bool)),
    "filter of py_function": lambda t: t.Dataset.range(9).filter(lambda x: t.py_function(is_third_of_tensor, [x], t.bool)),
    "take_while": lambda t: t.Dataset.range(1, 9).take_while(lambda x: t.numpy_function(is_third, [x - 1], t.bool)),
}


# --- generators ---------------------------------------------------------------------------------


def numbers():
    yield from range(4)


def until(start, stops, name):
    for stop in stops:
        for i in range(start, stop):
            yield i, name


def nests():
    for i in range(4):
        yield {"text": f"n {i}", "parts": (list(range(i)), float(i))}


def mixed_numbers():
    yield 1
    yield np.float64(2.5)
    yield np.int32(3)


def fails_with_a_text():
    yield 1
    yield "x"
    yield 3


class Iterable:
    def __iter__(self):
        return iter([5, 6])


CASES.update(
    {
        "generator: a signature": lambda t: t.Dataset.from_generator(numbers, output_signature=t.TensorSpec([], t.int64)),
        "generator: types": lambda t: t.Dataset.from_generator(numbers, t.int64),
        "generator: numbers are cast": lambda t: t.Dataset.from_generator(numbers, t.float32),
        "generator: NumPy's numbers are cast": lambda t: t.Dataset.from_generator(mixed_numbers, t.float32),
        "generator: arguments": lambda t: t.Dataset.from_generator(until, (t.int64, t.string), args=(1, [3, 2], "x")),
        "generator: nests": lambda t: t.Dataset.from_generator(nests, {"text": t.string, "parts": (t.int64, t.float32)}),
        "generator: shapes": lambda t: t.Dataset.from_generator(
            nests, {"text": t.string, "parts": (t.int64, t.float32)}, {"text": [], "parts": ([None], [])}
        ),
        "generator: a class": lambda t: t.Dataset.from_generator(Iterable, t.int64),
        "generator: epochs": lambda t: t.Dataset.from_generator(numbers, t.int64).repeat(2),
        "generator: batches": lambda t: t.Dataset.from_generator(numbers, t.int64).batch(3),
        "generator: an element that is none is left out": lambda t: t.Dataset.from_generator(fails_with_a_text, t.int64).ignore_errors(),
    }
)

# What TensorFlow refuses, when it is made or run.
MISTAKES = {
    "another type": calls(half, "float64"),
    "too few": calls(only, "int64", "int64"),
    "too many": calls(counted, "int64"),
    "no generator": lambda t: t.Dataset.from_generator(3, t.int64),
    "a signature beside types": lambda t: t.Dataset.from_generator(numbers, t.int64, output_signature=t.TensorSpec([], t.int64)),
    "an element of another shape": lambda t: t.Dataset.from_generator(numbers, t.int64, [2]),
    "an element of another type": lambda t: t.Dataset.from_generator(fails_with_a_text, t.int64),
}
