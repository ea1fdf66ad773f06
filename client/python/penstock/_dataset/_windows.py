"""Windows: datasets of consecutive elements, which a function makes other datasets of."""

import functools
import operator

from penstock._tracing import _trace
from penstock._dataset._arguments import at_least, check_unused
from penstock._dataset import Dataset
from penstock._spec._stage import Nested, Spec, Stage, Trait, user_line


class Value:
    """What a function makes of one window: the only element of a dataset."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __repr__(self):
        _trace.refuse_text()
        return f"<value of {self.dataset!r}>"

    __str__ = __repr__

    def __format__(self, spec):
        _trace.refuse_text()
        return format(repr(self), spec)


class Windows:
    """The windows of a dataset. Consume them by flat_map or map: a window is no array."""

    def __init__(self, dataset, op, fields, name=None, inside=None):
        # A dict's parts are told apart by their place.
        self._outer = dataset
        if isinstance(dataset._structure, dict):
            self._outer = dataset.map(lambda element: tuple(element.values()))
        self._dataset, self._op, self._fields, self._name = dataset, op, tuple(fields), name
        self._line = user_line()
        self._inside = inside

    def _stages(self, inside):
        """The pipeline's, with those of a window's dataset."""
        parts = [("input", [Nested(inside)])] if inside else []
        outer = self._outer if _uses_parts(inside) else self._dataset
        return (*outer._stages, Stage(self._op, [*self._fields, *parts], self._name, self._line))

    def _whole(self, inside):
        return self._dataset._whole(self._stages(simplified(inside)))

    def _window(self):
        """The stand-ins for a window: a dataset, or one for each tensor of an element, in its structure."""

        def part(fields, structure):
            dataset = Dataset([Stage("window_part", fields)], structure, options=self._dataset._options, window=self._whole)
            return _by_tensor(dataset, structure, ()) if fields else dataset

        structure = self._dataset._structure
        if structure is None:
            return part([], None)
        if isinstance(structure, dict):
            return {key: part([("component", i)], inner) for i, (key, inner) in enumerate(structure.items())}
        return tuple(part([("component", i)], inner) for i, inner in enumerate(structure))

    def _consume(self, function, what):
        window = self._window() if self._inside is None else self._inside
        result = _trace.result_of(function, window)
        if isinstance(result, Value):
            result = result.dataset
        if not isinstance(result, Dataset) or result._window is None:
            raise _trace.TraceError(
                f"the function given to {what} returned a {type(result).__name__}",
                "it returns a dataset made of the window, such as w.batch(5), or w.reduce(…) in map",
            )
        return result

    def flat_map(self, map_func, name=None):
        """The elements of the datasets that map_func makes of each window."""
        result = self._consume(map_func, "flat_map")
        stages = self._stages(simplified(result._stages))
        return self._dataset._like(stages, result._known_structure)

    def interleave(self, map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None):
        """flat_map, for a cycle_length of 1."""
        check_unused(num_parallel_calls)
        if cycle_length != 1:
            raise ValueError("windows are interleaved one after another: cycle_length is 1")
        if block_length is not None:
            at_least(1, block_length, "block_length")
        return self.flat_map(map_func, name)

    def map(self, map_func, num_parallel_calls=None, deterministic=None, name=None):
        """A value of each window, or another dataset of each, for a flat_map behind."""
        check_unused(num_parallel_calls)
        window = self._window() if self._inside is None else self._inside
        result = _trace.result_of(map_func, window)
        if isinstance(result, Value):
            return self.flat_map(lambda *_: result, name)
        self._consume(lambda *_: result, "map")
        return Windows(self._dataset, self._op, self._fields, self._name, result)

    def __iter__(self):
        raise TypeError("a window is no array: use flat_map(lambda w: w.batch(size)) or map(lambda w: w.reduce(…))")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"windows have no {name}: make a dataset of elements again by flat_map(lambda w: w.batch(size)) or map(lambda w: w.reduce(…)); "
            f"take, skip and repeat of whole windows stand in front of window, or behind w.batch(size)"
        )

    def __repr__(self):
        return f"<Windows of {self._dataset!r}>"


def _by_tensor(dataset, structure, keys):
    """A dataset for each tensor below `keys` of the elements of one, in their structure."""
    if isinstance(structure, dict):
        return {key: _by_tensor(dataset, inner, (*keys, key)) for key, inner in structure.items()}
    if structure is not None:
        return tuple(_by_tensor(dataset, inner, (*keys, i)) for i, inner in enumerate(structure))
    if not keys:
        return dataset
    # A tuple's parts are the arguments.
    is_tuple = isinstance(dataset._structure, tuple)
    return dataset.map(lambda *parts: functools.reduce(operator.getitem, keys, parts if is_tuple else parts[0]))


def _is_part(stage):
    return stage.op == "window_part"


def _parts_inside(stages):
    """All window_part stages, but not those of windows and elements inside."""
    found = []
    for stage in stages:
        if _is_part(stage):
            found.append(stage)
        elif not stage.is_(Trait.NESTS_ELEMENTS):
            for _, value in stage.fields:
                for nested in value if isinstance(value, (list, tuple)) else [value]:
                    if isinstance(nested, Nested):
                        found += _parts_inside(nested.stages)
    return found


def _uses_parts(stages):
    return any(stage.fields for stage in _parts_inside(stages))


def simplified(stages):
    """Without window_part where the elements of a window are used as they are."""
    parts = _parts_inside(stages)
    is_input = len(stages) > 1 and stages[1].is_(Trait.TAKES_FRONT)
    if len(parts) == 1 and not parts[0].fields and _is_part(stages[0]) and len(stages) > 1 and not is_input:
        return tuple(stages[1:])
    return tuple(stages)
