"""Python functions beside TensorFlow's own results: numpy_function, py_function and from_generator."""

import json
import pathlib
import sys
import warnings

import numpy as np
import pytest

import penstock

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import python_function_cases  # noqa: E402

FOUND = json.loads((GOLDEN / "python_functions.json").read_text())


def written(element):
    """As make_dataset_goldens.py writes it."""
    if isinstance(element, dict):
        return {"dict": {key: written(value) for key, value in element.items()}}
    if isinstance(element, tuple):
        return {"tuple": [written(value) for value in element]}
    array = np.asarray(element, object if isinstance(element, bytes) else None)
    if array.dtype.kind in "SO":
        return {"dtype": "string", "shape": list(array.shape), "values": [value.hex() for value in array.ravel().tolist()]}
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.ravel().tolist()}


@pytest.mark.parametrize("name", python_function_cases.CASES)
def test_elements_are_tensorflows(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [written(element) for element in python_function_cases.CASES[name](penstock).as_numpy_iterator()]
    assert found == FOUND["cases"][name]


@pytest.mark.parametrize("name", python_function_cases.MISTAKES)
def test_what_tensorflow_refuses_is_refused(name):
    assert FOUND["mistakes"][name]
    with pytest.raises((penstock.Error, TypeError)):
        list(python_function_cases.MISTAKES[name](penstock))
