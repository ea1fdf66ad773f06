"""Python iterables as sources."""

import functools
import inspect

import numpy as np

from penstock import _dtypes, _errors, _structure
from penstock._dataset._arguments import at_least
from penstock._dataset._chain import ASK, of_stages
from penstock._dataset._python import Declared, Learned, Lazily, fields_of, name_of, output_of, stage_of
from penstock._dataset._python_calls import constant
from penstock._options import TensorSpec
from penstock._running._iterator import DatasetIterator
from penstock._spec import _textproto
from penstock._spec._lines import user_line
from penstock._spec._stage import Trait, declare

declare("from_generator", Trait.GIVES_NO_PATHS, Trait.BY_VALUE)


class _Typed:
    """What an iterable gives: of declared types, and of shapes that are declared or, of how many axes, learned from the first element."""

    def __init__(self, structure, dtypes, shapes, learned):
        self.structure = structure
        self._paths = _structure.paths(structure)
        self._dtypes, self._shapes, self._learned = dtypes, shapes, learned

    def outputs(self):
        shapes = self._shapes
        if None in shapes:
            found = {output["name"]: output["shape"] for output in self._learned._description["outputs"]}
            if list(found) != self._paths:
                raise TypeError(f"{self._learned._name} gives elements of {', '.join(found)}, and output_types are of {', '.join(self._paths)}")
            shapes = [shape if shape is not None else (None,) * len(found[path]) for path, shape in zip(self._paths, shapes)]
        return [output_of(path, TensorSpec(shape, dtype)) for path, dtype, shape in zip(self._paths, self._dtypes, shapes)]


def from_generator(generator, output_types, output_shapes, args, output_signature, name, num_shards, options):
    _check_given(generator, output_types, output_shapes, output_signature)
    if num_shards is not None:
        if not callable(generator):
            raise TypeError("from_generator with num_shards takes a function, which is called with shard_index and num_shards")
        at_least(1, num_shards, "num_shards")
    values = [constant("from_generator", value) for value in args or ()]
    line = user_line()
    known, datasets = None, []
    for shard in range(num_shards or 1):
        of_shard = {} if num_shards is None else {"shard_index": shard, "num_shards": num_shards}
        make = functools.partial(generator, *values, **of_shard) if values or of_shard else generator
        fields, of_draws = _fields(generator, make, options)
        if known is None:
            known = _known(fields, output_types, output_shapes, output_signature, name_of(generator), line)
        outputs = [("output", Lazily(known.outputs)), ("structure", Lazily(lambda: _structure.to_json(known.structure)))]
        stage = stage_of("from_generator", [*fields, *of_draws, *outputs], name, line)
        datasets.append(of_stages([stage], ASK if isinstance(known, Learned) else known.structure))
    if len(datasets) == 1:
        return datasets[0]
    return datasets[0].choose_from_datasets(datasets, datasets[0].range(len(datasets)).repeat(), stop_on_empty_dataset=False)


def _check_given(generator, types, shapes, signature):
    if not callable(generator) and not hasattr(generator, "__iter__"):
        raise TypeError(f"from_generator takes a function that returns an iterable, or an iterable, not a {type(generator).__name__}")
    if hasattr(generator, "__next__") and not isinstance(generator, type):
        raise TypeError("from_generator takes a function that makes an iterator, not an iterator: each pass begins anew, in another process")
    if signature is not None and (types is not None or shapes is not None):
        given = "output_types" if types is not None else "output_shapes"
        raise TypeError(f"the {given} argument can not be used together with the output_signature argument")
    if shapes is not None and types is None:
        raise TypeError("output_shapes stands beside output_types")


def _fields(generator, make, options):
    if unused := [option for option in ("workers", "max_rows_per_worker") if option in options]:
        raise TypeError(f"from_generator takes no {unused[0]}: one process makes the elements of a shard")
    _, fields, of_draws = fields_of("from_generator", make, **options)
    resume = "state" if _has_states(generator) else "again"
    return [*fields, ("casts", True), ("resume", resume)], of_draws


def _has_states(generator):
    if callable(generator) and not isinstance(generator, type):
        try:
            return "position" in inspect.signature(generator).parameters
        except (TypeError, ValueError):
            return False
    return hasattr(generator, "state_dict") and hasattr(generator, "load_state_dict")


def _known(fields, types, shapes, signature, shown, line):
    if signature is not None:
        return Declared(signature, shown)

    def describing():
        told = _textproto.Message(("name", "value"), ("dtype", "string"))
        return stage_of("from_generator", [*fields, ("describes", True), ("output", told), ("structure", "null")], None, line)

    learned = _LearnedOfFirst(describing, shown)
    if types is None:
        return learned
    structure, dtypes = _structure.flatten(types, lambda value: not isinstance(value, (dict, tuple)), "output_types")
    dtypes = [_dtypes.as_dtype(dtype) for dtype in dtypes]
    given = [None] * len(dtypes)
    if shapes is not None:
        given = _shapes_in(structure, shapes)
    return _Typed(structure, dtypes, given, learned)


def _shapes_in(structure, shapes):
    """The shapes, in order, of a nest of that structure; None for one of which nothing is known."""
    if structure is None:
        sizes = getattr(shapes, "dims", shapes)
        return [None if sizes is None else tuple(None if size is None else int(size) for size in sizes)]
    if isinstance(structure, dict):
        if not isinstance(shapes, dict) or shapes.keys() != structure.keys():
            raise TypeError("output_shapes has another structure than output_types")
        return [shape for key, inner in structure.items() for shape in _shapes_in(inner, shapes[key])]
    if not isinstance(shapes, (tuple, list)) or len(shapes) != len(structure):
        raise TypeError("output_shapes has another structure than output_types")
    return [shape for inner, part in zip(structure, shapes) for shape in _shapes_in(inner, part)]


class _LearnedOfFirst(Learned):
    """What the first element is."""

    def __init__(self, describing, name):
        super().__init__(None, describing, name)

    def _first(self):
        with DatasetIterator(of_stages([self._stage_of()], None).take(1), first_pass=True) as elements:
            for element in elements:
                return np.asarray(element).item()
        raise _errors.InvalidArgumentError(f"{self._name} gives no element of which its types could be learned: declare them (output_signature=…)")
