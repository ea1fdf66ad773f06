"""Datasets that are made for each element, inside the functions given to flat_map and interleave.

`Dataset.from_tensors`, `from_tensor_slices` and `range` of traced values give datasets whose first stage is the element itself
(window_part). Functions inside may use the element too: it is then zipped with what they are given.
"""

import functools
import os

import numpy as np

from penstock import _dtypes, _structure
from penstock._dataset import _element
from penstock._dataset._arguments import integer
from penstock._dataset._cardinality import INFINITE
from penstock._dataset._chain import Chain, of_stages
from penstock._dataset._element import is_innermost
from penstock._dataset._parts import Value, simplified
from penstock._dataset._paths import MAX_ELEMENTS, files_of, without_globs
from penstock._spec._lines import user_line
from penstock._spec._stage import Nested, Stage, Trait
from penstock._tracing import _program, _refusals, _trace, _user_function


def of_known_elements(dataset, op, function, cycle_length, block_length):
    """The dataset of a flat_map or an interleave over elements that are known: the function is called with each. None where they are not known.

    Raises:
      TraceError: there are too many, or the turns cannot be written.
    """
    if dataset._given is None:
        return None
    structure, arrays = dataset._given
    if not 0 < dataset._count <= MAX_ELEMENTS:
        return None
    made = []
    for number in range(dataset._count):
        element = _structure.fill(structure, iter([_constant(array[number]) for array in arrays]))
        inside = _user_function.result_of(function, element)
        if not isinstance(inside, Chain):
            raise not_a_dataset(op, inside)
        made.append(inside)
    if op == "flat_map" or cycle_length == 1 or len(made) == 1:
        return functools.reduce(lambda whole, inside: whole.concatenate(inside), made)
    if cycle_length < len(made) or block_length not in (None, 1):
        raise _refusals.TraceError(
            f"turns among {len(made)} datasets of known elements, cycle_length={cycle_length} and block_length={block_length or 1}",
            f"give cycle_length={len(made)} or more and block_length=1, or use flat_map",
        )
    return dataset.choose_from_datasets(made, dataset.range(len(made)).repeat(), stop_on_empty_dataset=False)


def joined(first, second, name):
    """What concatenate gives of datasets of one element each: their values, stacked, and taken apart again.

    Raises:
      TraceError: they have more elements, or their values are of other shapes.
    """
    parts = [*(first._parts or [first]), *(second._parts or [second])]
    if not all(part._count == 1 for part in parts):
        raise _refusals.TraceError(
            "concatenate of two datasets that are made of one element or window, of which one has several elements",
            "join the values: Dataset.from_tensor_slices(np.concatenate([a, b])) of an element's; a window's elements are in one dataset already",
        )

    def stack(*elements):
        nests = [_structure.flatten(element, lambda value: isinstance(value, _trace.StandIn), "an element") for element in elements]
        structure = nests[0][0]
        columns = zip(*(_structure.in_order(structure, *nest) for nest in nests))
        return _structure.fill(structure, iter([_stacked(column) for column in columns]))

    whole = first.zip(tuple(parts)).map(stack).unbatch(name)
    whole._parts, whole._count = parts, len(parts)
    return whole


def _stacked(values):
    shapes = {value.shape for value in values}
    if len(shapes) > 1 or None in next(iter(shapes)):
        raise _refusals.TraceError(
            f"concatenate of datasets of one element, whose values are of the shapes {_refusals.listed(map(str, shapes))}",
            "inside of flat_map and interleave they are of one known shape: penstock.functions.ensure_shape(x, shape) says it, resize, crop or pad make it",
        )
    return np.stack(values)


def _constant(value):
    """A slice of an array as a function may use it: NumPy's scalar, or an array."""
    return np.bytes_(value.encode() if isinstance(value, str) else value) if isinstance(value, (str, bytes)) else value


def not_a_dataset(op, found):
    return _refusals.TraceError(
        f"the function given to {op} returned a {type(found).__name__}",
        "it returns a Dataset: one that reads the path, or one of the element's values (Dataset.from_tensors, from_tensor_slices)",
    )


def of_traced(op, tensors, name=None):
    """The dataset of traced values, or None where `tensors` holds none."""
    if isinstance(tensors, Value) and op == "from_tensors":
        return tensors.dataset
    values = tensors if isinstance(tensors, (tuple, list)) else [tensors]
    if any(isinstance(value, Value) for value in (values if not isinstance(tensors, dict) else tensors.values())):
        raise _refusals.TraceError(
            f"Dataset.{op} of the result of reduce or get_single_element beside others",
            "a dataset of it alone is Dataset.from_tensors(result), and Dataset.zip puts it beside another one",
        )
    trace = _trace.find_trace(values)
    if trace is None:
        return None
    if not is_innermost(trace):
        raise _refusals.Captured(
            trace,
            what=f"Dataset.{op} of a traced value",
            instead="it makes a dataset in the function given to flat_map or interleave, of that one's element",
        )
    if isinstance(tensors, list):
        tensors = np.stack(tensors)
    element = _element.of_call(trace)
    stages, structure = _program.build(trace, tensors, element._structure, name if op == "from_tensors" else None, user_line())
    made = element._like((*element._stages, *stages), structure, 1)
    return made.unbatch(name) if op == "from_tensor_slices" else made


def range_of_traced(args, output_type, name):
    """Dataset.range of traced bounds: numbers without end, up to the first that is beyond."""
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1
    if isinstance(step, _trace.StandIn):
        raise _refusals.TraceError("the step of a range is a traced value", "it is a constant; map multiplies the numbers")
    start, stop, step = (bound if isinstance(bound, _trace.StandIn) else integer(bound, "an argument of range") for bound in (start, stop, step))
    if step == 0:
        raise ValueError("range's step is not 0")
    numbers = of_stages([Stage("counter", [("start", None), ("step", step)])], None, INFINITE)
    if isinstance(start, _trace.StandIn) or start:
        numbers = numbers.map(lambda number: number + start)
    inside = numbers.take_while((lambda number: number < stop) if step > 0 else (lambda number: number > stop), name)
    output_type = _dtypes.as_dtype(output_type)
    return inside if output_type == np.int64 else inside.map(lambda number: number.astype(output_type))


def stage(op, inside, fields, name, line):
    return Stage(op, [("input", [Nested(simplified(inside))]), *fields], name, line)


def flattened(op, stages, name):
    """The stages of a flat_map that needs no dataset for each element, or None: what is done to its slices is done to all of them."""
    inside = stages[1:]
    apart = Trait.ROW_BY_ROW if op == "flat_map" else Trait.ONE_BY_ONE
    if stages[0].op != "window_part" or stages[0].fields or not all(stage.is_(apart) for stage in inside):
        return None
    named = next((stage for stage in reversed(inside) if stage.op == "unbatch"), inside[-1] if inside else None)
    if name is None or named is None:
        return inside
    return [Stage(stage.op, stage.fields, name if stage is named else stage.name, stage.line) for stage in inside]


def _inputs(stage):
    for _, value in stage.fields:
        for inner in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(inner, Nested):
                yield inner.stages


def reads_path(stages):
    """Whether a source of these stages reads the file that the element is the path of."""
    for stage in stages:
        if stage.is_(Trait.READS_PATH) and not any(field == "files" and value for field, value in stage.fields):
            return True
        if not stage.is_(Trait.NESTS_ELEMENTS) and any(reads_path(inner) for inner in _inputs(stage)):
            return True
    return False


def as_paths(stages):
    """The stages of a dataset of paths, of which those that were given as an array of strings are files from here on."""
    from penstock._spec import _arrays

    first = stages[0]
    if first.is_(Trait.GIVES_NO_PATHS) or (
        first.op == "from_tensor_slices" and not all(stage.is_(Trait.MOVES_PATHS) for stage in stages[1:])
    ):
        raise _refusals.TraceError(
            f"a reader of paths that are elements of {' | '.join(stage.op for stage in stages[:8])}",
            "the paths are known before: of list_files, or an array of from_tensor_slices, behind which stands no map and no filter. Those in a file: "
            'penstock.TFRecordDataset([line.strip() for line in open("manifest.txt")]); penstock.io.read_file(path) in a map reads a whole file of any path',
        )
    if first.op != "from_tensor_slices":
        return stages
    tensors = dict(first.fields)["tensor"]
    fields = dict(tensors[0].fields) if len(tensors) == 1 else {}
    if isinstance(fields.get("npy"), _arrays.MemoryArray) and fields["dtype"] == "string":
        array = fields["npy"].load()
        fields.update(string_value=array.ravel().tolist(), shape=array.shape)
    if "name" in fields or not fields.get("string_value") or len(fields.get("shape") or []) != 1:
        return stages
    paths = files_of(fields["string_value"])
    fields = [("files", [without_globs(path) for path in paths]), ("shuffle", False)]
    if [os.fsencode(path) for path in paths] != sorted(os.fsencode(path) for path in paths):
        fields.append(("keep_order", True))
    return (Stage("list_files", fields, first.name, first.line), *stages[1:])
