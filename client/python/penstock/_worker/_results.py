"""What the function returns: taken apart, and checked."""

import numpy as np

from penstock import _row
from penstock._worker._errors import Refused


def elements_of(made):
    if made is None or isinstance(made, (dict, str, bytes)) or not hasattr(made, "__iter__"):
        raise Refused(f"{described(made)}, not an iterable of elements; a generator yields them")
    return made


def flattener(structure, path=""):
    """A function that appends an element's tensors to a list, in order; Refused where the element has another structure."""
    where = f" at {path}" if path else ""
    if structure is None:

        def add_tensor(value, tensors):
            if value is None:
                raise Refused(f"None{where}; does it lack a return?")
            if isinstance(value, dict):
                raise Refused(f"a dict{where}, not a tensor")
            tensors.append(value)

        return add_tensor
    if isinstance(structure, dict):
        parts = {key: flattener(inner, f"{path}/{key}" if path else str(key)) for key, inner in structure.items()}

        def add_dict(value, tensors):
            if not isinstance(value, dict):
                raise Refused(f"{described(value)}{where}, not a dict of {', '.join(map(repr, parts))}")
            if value.keys() != parts.keys():
                raise Refused(f"a dict of {', '.join(map(repr, value)) or 'nothing'}{where}, not of {', '.join(map(repr, parts))}")
            for key, part in parts.items():
                part(value[key], tensors)

        return add_dict
    parts = [flattener(inner, f"{path}/{i}" if path else str(i)) for i, inner in enumerate(structure)]

    def add_tuple(value, tensors):
        if not isinstance(value, (tuple, list)):
            raise Refused(f"{described(value)}{where}, not a tuple of {len(parts)}")
        if len(value) != len(parts):
            raise Refused(f"a {type(value).__name__} of {len(value)}{where}, not a tuple of {len(parts)}")
        for inner, part in zip(value, parts):
            part(inner, tensors)

    return add_tuple


def described(value):
    if value is None:
        return "None"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{getattr(value.dtype, 'name', value.dtype)} {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def as_array(value, name):
    """An array of what the function returned, and whether its type is its own: Python's numbers, and lists of them, take that of the output."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value), True
    if isinstance(value, (str, bytes)):
        array = np.empty((), object)
        array[()] = value
        return array, True
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        if value.device.type != "cpu":
            raise Refused(f"a torch tensor on {value.device} for {name!r}: return tensor.cpu()")
        return value.detach().resolve_conj().resolve_neg().numpy(), True
    if value is None or isinstance(value, (dict, set)) or hasattr(value, "__next__"):
        raise Refused(f"{described(value)} for {name!r}, not a tensor")
    try:
        array = np.asarray(value)
    except Exception as error:
        raise Refused(f"{described(value)} for {name!r}, of which NumPy makes no array ({error})") from None
    if array.dtype == object:
        raise Refused(f"{described(value)} for {name!r}, of which NumPy makes no array of numbers")
    return array, not isinstance(value, (bool, int, float, list, tuple))


def checked(feature, value):
    """The value as an array of the feature's type and shape, or as Texts; or Refused."""
    if type(value) is _row.Texts:
        sizes = feature.shape
        if not feature.is_string or len(sizes) != len(value.shape) or any(size not in (-1, found) for size, found in zip(sizes, value.shape)):
            raise Refused(f"strings of shape {value.shape} for {feature.name!r}, not {feature}")
        return value
    array, is_typed = as_array(value, feature.name)
    if feature.is_string:
        if array.dtype.kind not in "OSUT":
            raise Refused(f"{described(array)} for {feature.name!r}, not {feature}")
        array = array.astype(object)
    elif array.dtype != feature.dtype:
        same_bytes = array.dtype.newbyteorder("=") == feature.dtype
        if feature.casts and is_typed and array.dtype.kind in "biuf":
            same_bytes = np.can_cast(array.dtype, feature.dtype, "same_kind")
        if not same_bytes and (is_typed or (can_hold := fits(array, feature.dtype)) is None):
            hint = f"; return array.astype(np.{feature.dtype.name})" if is_typed else ""
            raise Refused(f"{described(array)} for {feature.name!r}, not {feature}{hint}")
        array = array.astype(feature.dtype) if same_bytes else can_hold
    if array.ndim != len(feature.shape) or any(size not in (-1, found) for size, found in zip(feature.shape, array.shape)):
        raise Refused(f"{described(array)} for {feature.name!r}, not {feature}")
    return array


def fits(array, dtype):
    """Python's numbers as that type; None where it does not hold them."""
    if not array.size:
        return array.astype(dtype)  # an empty list says nothing of its type
    if array.dtype.kind == "b" and dtype.kind != "b" or array.dtype.kind == "f" and dtype.kind != "f":
        return None
    if dtype.kind in "iu" and array.size:
        info = np.iinfo(dtype)
        if array.min() < info.min or array.max() > info.max:
            return None
    if dtype.kind == "b" and array.dtype.kind != "b":
        return None
    return array.astype(dtype)
