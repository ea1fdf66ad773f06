"""Writes python_functions.json: the elements that tf.data makes of each case of python_function_cases.py, and that it refuses the mistakes.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_python_function_goldens.py
"""

import json
import pathlib
import types

import python_function_cases
import tensorflow as tf
from make_dataset_goldens import error_of, write

NAMES = "numpy_function py_function TensorSpec bool int64 float32 float64 string".split()


def main():
    namespace = types.SimpleNamespace(Dataset=tf.data.Dataset, **{name: getattr(tf, name) for name in NAMES})
    found = {
        "tensorflow": tf.__version__,
        "cases": {
            name: [write(element, "no folder") for element in case(namespace).as_numpy_iterator()] for name, case in python_function_cases.CASES.items()
        },
        "mistakes": {name: error_of(case, namespace) for name, case in python_function_cases.MISTAKES.items()},
    }
    assert all(found["mistakes"].values()), found["mistakes"]
    path = pathlib.Path(__file__).parent / "python_functions.json"
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
