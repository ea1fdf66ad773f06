"""Dataset.from_python: the elements of an object that has a length and can be indexed.

The front deals indices, and workers that hold the object index it. So whatever is about order alone (shuffle, shard, take, skip, repeat) is done
to the indices, before anything is computed.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from penstock import _structure
from penstock._dataset._chain import of_stages
from penstock._loading import _parcel
from penstock._options import TensorSpec

class KeptDict(dict):
    """A dict of a structure that stands for another kind of mapping, or for a dataclass."""

    kind = dict

    def rebuilt(self, element):
        inner = {key: _rebuilt(part, element[key]) for key, part in self.items()}
        return self.kind(**inner) if dataclasses.is_dataclass(self.kind) else inner if self.kind is dict else self.kind(inner)


class KeptTuple(tuple):
    """A tuple of a structure that stands for a list or a named tuple, too."""

    kind = tuple

    def rebuilt(self, element):
        inner = [_rebuilt(part, value) for part, value in zip(self, element)]
        return self.kind(*inner) if hasattr(self.kind, "_fields") else inner if self.kind is list else self.kind(inner)


def _rebuilt(structure, element):
    return element if structure is None else structure.rebuilt(element)


def _is_numbers(value):
    """Whether a list is one tensor: of numbers, texts or such lists."""
    return all(isinstance(item, (bool, int, float, str, bytes)) or isinstance(item, list) and _is_numbers(item) for item in value)


def plain(element):
    """The element as a nest of dicts and tuples of tensors."""
    if isinstance(element, tuple) or isinstance(element, list) and not _is_numbers(element):
        return tuple([plain(inner) for inner in element])
    if isinstance(element, dict):
        return {key: plain(inner) for key, inner in element.items()}
    if dataclasses.is_dataclass(element):
        return {field.name: plain(getattr(element, field.name)) for field in dataclasses.fields(element)}
    return element


def kept(element):
    """The structure of an element, which knows the kinds of its parts."""
    if isinstance(element, tuple) or isinstance(element, list) and not _is_numbers(element):
        structure = KeptTuple(kept(inner) for inner in element)
        structure.kind = type(element)
    elif isinstance(element, dict) or dataclasses.is_dataclass(element):
        items = element.items() if isinstance(element, dict) else ((field.name, getattr(element, field.name)) for field in dataclasses.fields(element))
        structure = KeptDict((key, kept(inner)) for key, inner in items)
        structure.kind = type(element)
    else:
        return None
    return structure


class _Element:
    """In a worker: an index's element. Of an object that has __getitems__, those of several indices are fetched together."""

    def __init__(self, parcel, source=None):
        self._parcel = parcel
        self._source = source
        self._fetched = {}

    def __reduce__(self):
        return _in_worker, (self._parcel,)

    def ahead(self, indices):
        """Of rows that this will be called for, as long as nothing is drawn (_worker/_sheets.py)."""
        self._fetched = {}
        fetch = getattr(self._source, "__getitems__", None)
        if fetch is None:
            return
        wanted = indices.tolist()
        try:
            found = list(fetch(wanted))
        except Exception:
            return  # each by itself, so that it is one element's
        if len(found) == len(wanted):
            self._fetched = dict(zip(wanted, found))

    def __call__(self, index):
        index = int(index)
        if index in self._fetched:
            return plain(self._fetched.pop(index))
        return plain(self._source[index])


def _in_worker(parcel):
    (source,) = parcel.load_in_worker()
    return _Element(parcel, source)


def _type_of(values, what):
    """The TensorSpec of a tensor, of what it is in several elements: axes whose sizes differ, and those of lists, are open."""
    arrays = [np.asarray(value) for value in values]
    # An empty list says nothing of its type.
    first = next((array for array in arrays if array.size), arrays[0])
    if first.dtype == object and not (first.size and all(isinstance(item, (str, bytes)) for item in first.ravel().tolist())):
        raise TypeError(
            f"{what} is a {type(values[0]).__name__}, of which no tensor is made: give a number, a text or an array in its place, or leave it out"
        )
    if any(array.ndim != first.ndim for array in arrays):
        raise TypeError(f"{what} has {', '.join(str(array.ndim) for array in arrays)} axes in the elements looked at: tensors have as many in each")
    sizes = zip(*(array.shape for array in arrays))
    shape = [None if isinstance(values[0], list) or len(set(size)) > 1 else size[0] for size in sizes]
    return TensorSpec(shape, "string" if first.dtype.kind in "OSU" else first.dtype)


def _types(elements):
    nests = [plain(element) for element in elements]
    flat = [_structure.flatten(nest, lambda value: not isinstance(value, (dict, tuple)), "the element") for nest in nests]
    structure = flat[0][0]
    if any(found != structure for found, _ in flat):
        raise TypeError("the elements looked at have different structures: the first one, the one in the middle and the last one are to be alike")
    names = _structure.paths(structure)
    return structure, [_type_of(values, f"element part {name!r}") for name, values in zip(names, zip(*(tensors for _, tensors in flat)))]


def _examples(source, indices):
    """Those of the elements that can be had: what is wrong with one is found when it is its turn."""
    found, first_error = [], None
    for index in indices:
        try:
            found.append(source[index])
        except Exception as error:
            first_error = first_error or error
    if not found:
        raise first_error
    return found


def from_python(source, output, options, range_of):
    """As Dataset.from_python; `range_of` is Dataset.range."""
    for needed in ("__len__", "__getitem__"):
        if not hasattr(source, needed):
            raise TypeError(
                f"from_python takes an object that has __len__ and __getitem__, and this {type(source).__name__} has no {needed}; an iterable is for "
                "Dataset.from_generator, or penstock.torch.DataLoader"
            )
    count = len(source)
    parcel = _parcel.pack(source=source)
    indices = range_of(count)
    structure = ...
    if output is None:
        if count == 0:
            raise ValueError("from_python learns from the first element what elements are, and there is none: declare it by output=")
        # Of a copy, as workers have it: what the object opens as it is indexed is to stay closed here.
        (copy,) = parcel.load()
        elements = _examples(copy, sorted({0, count // 2, count - 1}))
        structure = kept(elements[0])
        plain_structure, types = _types(elements)
        output = _structure.fill(plain_structure, iter(types))
    made = indices.map(_Element(parcel), python=True, output=output, **options)
    dataset = of_stages(made._stages, made._known_structure if structure is ... else structure, indices._count, indices._options, indices._window)
    dataset._indices = indices
    return dataset
