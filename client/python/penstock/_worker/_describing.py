"""What a function returns, for a client that learns what to declare."""

import json

import numpy as np

from penstock import _structure
from penstock._worker._errors import Refused
from penstock._worker._features import TYPES
from penstock._worker._results import as_array, described, elements_of


def describing(function, name, inputs, yields):
    """The function, with a text that says what it returns in the place of that: JSON {"structure", "outputs"}, as a plan has them.

    Args:
      inputs: the Features that it is given.
      yields: whether it gives any number of elements: the first one is described, and nothing ("null") where there is none.
    """

    def describe(*element):
        made = function(*element)
        if yields:
            for made in elements_of(made):
                break
            else:
                return "null"
        structure, values = _structure.flatten(made, _is_tensor, f"what the Python function {name} returned")
        outputs = []
        for path, value in zip(_structure.paths(structure), values):
            array, _ = as_array(value, path)
            is_string = array.dtype.kind in "OSUT"
            dtype = "string" if is_string else array.dtype.newbyteorder("=").name
            if dtype not in TYPES:
                raise Refused(f"{described(array)} for {path!r}, a type that no tensor has")
            outputs.append({"name": path, "dtype": dtype, "shape": _shape_of_all(array.shape, element, inputs)})
        return json.dumps({"structure": _structure.to_json(structure), "outputs": outputs})

    return describe


def _is_tensor(value):
    return not isinstance(value, (dict, tuple))


def _shape_of_all(shape, element, inputs):
    """Of a batch the first axis: batches may differ in it where the data tells how many rows there are."""
    sizes = {feature.shape[:1] for feature in inputs}
    _, tensors = _structure.flatten(element[0] if len(element) == 1 else element, _is_tensor, "an element")
    is_batch = sizes == {(-1,)} and shape and {sizes_of[0] for sizes_of in map(np.shape, tensors)} == {shape[0]}
    return [-1, *shape[1:]] if is_batch else list(shape)
