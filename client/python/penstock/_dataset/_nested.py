"""Datasets that are made for each element, inside the functions given to flat_map and interleave.

`Dataset.from_tensors`, `from_tensor_slices` and `range` of traced values give datasets whose first stage is the element itself
(window_part). Functions inside may use the element too: it is then zipped with what they are given.
"""

import functools
import os
import threading

import numpy as np

from penstock import _dtypes, _structure
from penstock._tracing import _trace
from penstock._dataset._arguments import integer
from penstock._spec._stage import Nested, Stage, Trait, user_line

# Elements of an array that a function is called with one by one.
MAX_ELEMENTS, MAX_BYTES = 64, 1 << 20

# The functions of flat_map and interleave that are being called, by thread: the innermost last.
_calls = threading.local()


class _Call:
    """The call of a function that makes a dataset of an element."""

    def __init__(self, trace):
        self.trace = trace

    def __enter__(self):
        if not hasattr(_calls, "traces"):
            _calls.traces = []
        _calls.traces.append(self.trace)
        return self

    def __exit__(self, *_):
        _calls.traces.pop()


class PartAsPath(_trace.TraceError):
    """A reader is given a path that is a part of the element, beside others."""

    def __init__(self, part):
        super().__init__(
            f"a reader of a path that is one part of the element, {part!r}",
            f"elements of from_tensor_slices, at most {MAX_ELEMENTS}, which it stands directly behind, may have such parts; of others: "
            "interleave over the paths alone, and one dataset for each label, joined by concatenate or choose_from_datasets; or "
            "map(lambda path, y: (penstock.io.read_file(path), y)), where a file is one element",
        )


def of_known_elements(dataset, op, function, cycle_length, block_length):
    """The dataset of a flat_map or an interleave over elements that are known: the function is called with each. None where they are not known.

    Raises:
      TraceError: there are too many, or the turns cannot be written.
    """
    from penstock._dataset import Dataset

    if dataset._given is None:
        return None
    structure, arrays = dataset._given
    if not 0 < dataset._count <= MAX_ELEMENTS:
        return None
    made = []
    for number in range(dataset._count):
        element = _structure.fill(structure, iter([_constant(array[number]) for array in arrays]))
        inside = _trace.result_of(function, element)
        if not isinstance(inside, Dataset):
            raise not_a_dataset(op, inside)
        made.append(inside)
    if op == "flat_map" or cycle_length == 1 or len(made) == 1:
        return functools.reduce(lambda whole, inside: whole.concatenate(inside), made)
    if cycle_length < len(made) or block_length not in (None, 1):
        raise _trace.TraceError(
            f"turns among {len(made)} datasets of known elements, cycle_length={cycle_length} and block_length={block_length or 1}",
            f"give cycle_length={len(made)} or more and block_length=1, or use flat_map",
        )
    return Dataset.choose_from_datasets(made, Dataset.range(len(made)).repeat(), stop_on_empty_dataset=False)


def share_source(*datasets):
    """Whether several of the datasets are made of the element or the window of the call around them, which each place of a pipeline takes once."""
    from penstock._dataset import _windows

    return sum(bool(_windows._parts_inside(dataset._stages)) for dataset in datasets) > 1


def joined(first, second, name):
    """What concatenate gives of datasets of one element each: their values, stacked, and taken apart again.

    Raises:
      TraceError: they have more elements, or their values are of other shapes.
    """
    from penstock._dataset import Dataset

    parts = [*(first._parts or [first]), *(second._parts or [second])]
    if not all(part._count == 1 for part in parts):
        raise _trace.TraceError(
            "concatenate of two datasets that are made of one element or window, of which one has several elements",
            "join the values: Dataset.from_tensor_slices(np.concatenate([a, b])) of an element's; a window's elements are in one dataset already",
        )

    def stack(*elements):
        nests = [_structure.flatten(element, lambda value: isinstance(value, _trace.Tensor), "an element") for element in elements]
        structure = nests[0][0]
        columns = zip(*(_structure.in_order(structure, *nest) for nest in nests))
        return _structure.fill(structure, iter([_stacked(column) for column in columns]))

    whole = Dataset.zip(tuple(parts)).map(stack).unbatch(name)
    whole._parts, whole._count = parts, len(parts)
    return whole


def _stacked(values):
    shapes = {value.shape for value in values}
    if len(shapes) > 1 or None in next(iter(shapes)):
        raise _trace.TraceError(
            f"concatenate of datasets of one element, whose values are of the shapes {_trace.listed(map(str, shapes))}",
            "inside of flat_map and interleave they are of one known shape: penstock.functions.ensure_shape(x, shape) says it, resize, crop or pad make it",
        )
    return np.stack(values)


def refuse_choice(what, datasets):
    """Says that elements are not chosen of several datasets that are made of one."""
    if share_source(*datasets):
        raise _trace.TraceError(
            f"{what} of several datasets that are made of one element or window",
            "inside of flat_map and interleave np.where(condition, a, b) in a map chooses between values; or choose among whole datasets outside of it",
        )


def _constant(value):
    """A slice of an array as a function may use it: NumPy's scalar, or an array."""
    return np.bytes_(value.encode() if isinstance(value, str) else value) if isinstance(value, (str, bytes)) else value


def not_a_dataset(op, found):
    return _trace.TraceError(
        f"the function given to {op} returned a {type(found).__name__}",
        "it returns a Dataset: one that reads the path, or one of the element's values (Dataset.from_tensors, from_tensor_slices)",
    )


def _is_innermost(trace):
    traces = getattr(_calls, "traces", None)
    return bool(traces) and traces[-1] is trace


def _element(trace):
    """The dataset that holds nothing but the element of a call, as it came."""
    from penstock._dataset import Dataset

    from penstock._dataset import _windows

    outer = trace.dataset

    def whole(inside):
        inside = _windows.simplified(inside)
        return outer._whole((*outer._stages, Stage("flat_map", [("input", [Nested(inside)])])))

    return Dataset([Stage("window_part", [])], outer._structure, 1, outer._options, whole)


def of_traced(op, tensors, name=None):
    """The dataset of traced values, or None where `tensors` holds none."""
    from penstock._tracing import _program

    from penstock._dataset import _windows

    if isinstance(tensors, _windows.Value) and op == "from_tensors":
        return tensors.dataset
    values = tensors if isinstance(tensors, (tuple, list)) else [tensors]
    if any(isinstance(value, _windows.Value) for value in (values if not isinstance(tensors, dict) else tensors.values())):
        raise _trace.TraceError(
            f"Dataset.{op} of the result of reduce or get_single_element beside others",
            "a dataset of it alone is Dataset.from_tensors(result), and Dataset.zip puts it beside another one",
        )
    trace = _trace.find_trace(values)
    if trace is None:
        return None
    if not _is_innermost(trace):
        raise _trace.Captured(
            trace,
            what=f"Dataset.{op} of a traced value",
            instead="it makes a dataset in the function given to flat_map or interleave, of that one's element",
        )
    if isinstance(tensors, list):
        tensors = np.stack(tensors)
    element = _element(trace)
    stages, structure = _program.build(trace, tensors, element._structure, name if op == "from_tensors" else None, user_line())
    made = element._like((*element._stages, *stages), structure, 1)
    return made.unbatch(name) if op == "from_tensor_slices" else made


def range_of_traced(args, output_type, name):
    """Dataset.range of traced bounds: numbers without end, up to the first that is beyond."""
    from penstock._dataset import Dataset

    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1
    if isinstance(step, _trace.Tensor):
        raise _trace.TraceError("the step of a range is a traced value", "it is a constant; map multiplies the numbers")
    start, stop, step = (bound if isinstance(bound, _trace.Tensor) else integer(bound, "an argument of range") for bound in (start, stop, step))
    if step == 0:
        raise ValueError("range's step is not 0")
    numbers = Dataset.counter(0, step)
    if isinstance(start, _trace.Tensor) or start:
        numbers = numbers.map(lambda number: number + start)
    inside = numbers.take_while((lambda number: number < stop) if step > 0 else (lambda number: number > stop), name)
    output_type = _dtypes.as_dtype(output_type)
    return inside if output_type == np.int64 else inside.map(lambda number: number.astype(output_type))


def call(trace, function, element):
    """What the function given to flat_map or interleave returns for the element's stand-ins."""
    with _Call(trace):
        return _trace.result_of(function, element)


def with_element(dataset, traces):
    """Pairs of the dataset's elements and the element of the call around it, and that call's trace; None where none of these is one."""
    from penstock._dataset import Dataset

    around = next((trace for trace in traces if _is_innermost(trace) and trace.parse_stage is None), None)
    return None if around is None else (Dataset.zip(dataset, _element(around).repeat()), around)


def stage(op, inside, fields, name, line):
    from penstock._dataset import _windows

    return Stage(op, [("input", [Nested(_windows.simplified(inside))]), *fields], name, line)


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
    from penstock._dataset import _readers
    from penstock._spec import _arrays

    first = stages[0]
    if first.is_(Trait.GIVES_NO_PATHS) or (
        first.op == "from_tensor_slices" and not all(stage.is_(Trait.MOVES_PATHS) for stage in stages[1:])
    ):
        raise _trace.TraceError(
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
    paths = _readers.files_of(fields["string_value"])
    fields = [("files", [without_globs(path) for path in paths]), ("shuffle", False)]
    if [os.fsencode(path) for path in paths] != sorted(os.fsencode(path) for path in paths):
        fields.append(("keep_order", True))
    return (Stage("list_files", fields, first.name, first.line), *stages[1:])


def without_globs(path):
    """The glob that matches this path alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
