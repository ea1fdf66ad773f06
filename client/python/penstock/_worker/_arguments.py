"""What the function is given, and how it is called."""

import numpy as np


def column(feature, memory, place, rows):
    """The rows of a feature, in order: NumPy's arrays over the memory, or bytes."""
    values, sizes = place
    if feature.row_bytes is not None:
        return np.ndarray((rows, *feature.shape), feature.dtype, memory, values)
    table = np.ndarray((rows, 2), np.uint64, memory, values).tolist()
    axes = np.ndarray((rows, len(feature.shape)), np.int64, memory, sizes).tolist()
    if not feature.is_string:
        return [np.ndarray(shape, feature.dtype, memory, offset) for shape, (offset, _) in zip(axes, table)]
    if not feature.shape:
        return [memory[offset : offset + size] for offset, size in table]
    return [strings(memory[offset : offset + size], shape) for shape, (offset, size) in zip(axes, table)]


def strings(data, shape):
    array = np.empty(shape, object)
    lengths = np.frombuffer(data, np.uint32, array.size).tolist()
    offset, flat = 4 * array.size, []
    for length in lengths:
        flat.append(data[offset : offset + length])
        offset += length
    array.reshape(-1)[:] = flat
    return array


def filler(structure):
    """A function of an iterator over the tensors of an element: the element."""
    if structure is None:
        return next
    if isinstance(structure, dict):
        parts = [(key, filler(inner)) for key, inner in structure.items()]
        return lambda tensors: {key: part(tensors) for key, part in parts}
    parts = [filler(inner) for inner in structure]
    return lambda tensors: tuple([part(tensors) for part in parts])


def caller(function, structure):
    """A function of a row's tensors, as a tuple, that calls the user's as Dataset.map does: a tuple's parts are several arguments."""
    if structure is None:
        return lambda row: function(row[0])
    if isinstance(structure, dict):
        if all(inner is None for inner in structure.values()):
            keys = list(structure)
            return lambda row: function(dict(zip(keys, row)))
        fill = filler(structure)
        return lambda row: function(fill(iter(row)))
    if all(inner is None for inner in structure):
        return lambda row: function(*row)
    fill = filler(structure)
    return lambda row: function(*fill(iter(row)))


def with_tensors(function):
    """The function with arguments as tf.py_function gives them: they have a method numpy()."""

    class Tensor(np.ndarray):
        def numpy(self):
            return self.view(np.ndarray) if self.ndim else self[()]

    def tensor(value):
        if isinstance(value, bytes):
            array = np.empty((), object)
            array[()] = value
            return array.view(Tensor)
        return np.asarray(value).view(Tensor)

    return lambda *values: function(*map(tensor, values))


def with_constants(function, constants):
    """The function of its other arguments; `constants` is a dict from places to values."""
    places = sorted(constants)

    def call(*values):
        values = list(values)
        for place in places:
            values.insert(place, constants[place])
        return function(*values)

    return call


def with_list(function):
    """The function with a tuple of its outputs as result, as TensorFlow takes it: a list or a tuple of them, or the only one."""

    def call(*values):
        made = function(*values)
        return tuple(made) if isinstance(made, (list, tuple)) else (made,)

    return call
