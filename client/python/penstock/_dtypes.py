"""Element types: NumPy's, and one for byte strings of any length."""

import numpy as np


class StringType:
    """The type of tensors of byte strings (tf.string). There is one: penstock.string."""

    __slots__ = ()
    name = "string"
    as_numpy_dtype = object

    def __repr__(self):
        return "penstock.string"

    def __reduce__(self):
        return "string"

    def __eq__(self, other):
        return self is other or getattr(other, "name", other) == "string"

    def __hash__(self):
        return hash("string")


string = StringType()

# The number of a type in the control plane (proto/penstock/v1/tensor.proto) by its name there.
_NAMES = {"DATA_TYPE_STRING": string}


def as_dtype(value):
    """penstock.string or a NumPy dtype, from either, a Python type, a name, or TensorFlow's DType."""
    if value is string or value in (str, bytes):
        return string
    name = getattr(value, "name", value)
    if isinstance(name, str):
        return string if name == "string" else np.dtype(name)
    return np.dtype(value)


def from_control(name):
    """The type that the daemon calls `name`, such as DATA_TYPE_INT64; bfloat16 is given by its name."""
    if name in _NAMES:
        return _NAMES[name]
    plain = name[len("DATA_TYPE_") :].lower()
    return plain if plain == "bfloat16" else np.dtype(plain)
