"""Windows: datasets of consecutive elements, which a function makes other datasets of."""

import functools
import operator

from penstock._dataset._arguments import at_least, check_unused
from penstock._dataset._chain import Chain, of_stages
from penstock._dataset._parts import Value, simplified, uses_parts
from penstock._spec._lines import user_line
from penstock._spec._stage import Nested, Stage
from penstock._tracing import _refusals, _user_function


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
        outer = self._outer if uses_parts(inside) else self._dataset
        return (*outer._stages, Stage(self._op, [*self._fields, *parts], self._name, self._line))

    def _whole(self, inside):
        return self._dataset._whole(self._stages(simplified(inside)))

    def _window(self):
        """The stand-ins for a window: a dataset, or one for each tensor of an element, in its structure."""

        def part(fields, structure):
            dataset = of_stages([Stage("window_part", fields)], structure, options=self._dataset._options, window=self._whole)
            return _by_tensor(dataset, structure, ()) if fields else dataset

        structure = self._dataset._structure
        if structure is None:
            return part([], None)
        if isinstance(structure, dict):
            return {key: part([("component", i)], inner) for i, (key, inner) in enumerate(structure.items())}
        return tuple(part([("component", i)], inner) for i, inner in enumerate(structure))

    def _consume(self, function, what):
        window = self._window() if self._inside is None else self._inside
        result = _user_function.result_of(function, window)
        if isinstance(result, Value):
            result = result.dataset
        if not isinstance(result, Chain) or result._window is None:
            raise _refusals.TraceError(
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
        result = _user_function.result_of(map_func, window)
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
