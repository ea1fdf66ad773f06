"""Datasets that are made for each element, inside the functions given to flat_map and interleave.

`Dataset.from_tensors`, `from_tensor_slices` and `range` of traced values give datasets whose first stage is the element itself
(window_part). Functions inside may use the element too: it is then zipped with what they are given.
"""

import os
import threading

import numpy as np

from penstock import _dtypes, _trace
from penstock._stage import Nested, Stage, user_line

_SOURCES_OF_PATHS = ("tfrecord", "text_line", "fixed_length_record", "csv")
# What a flat_map does behind it as well as inside.
_ROW_BY_ROW = ("map", "filter", "parse_example", "parse_sequence_example", "unbatch")
_MOVES_PATHS = ("shard", "shuffle", "take", "skip", "repeat", "prefetch")

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


def _is_innermost(trace):
    traces = getattr(_calls, "traces", None)
    return bool(traces) and traces[-1] is trace


def _element(trace):
    """The dataset that holds nothing but the element of a call, as it came."""
    from penstock._dataset import Dataset

    from penstock import _windows

    outer = trace.dataset

    def whole(inside):
        inside = _windows.simplified(inside)
        return outer._whole((*outer._stages, Stage("flat_map", [("input", [Nested(inside)])])))

    return Dataset([Stage("window_part", [])], outer._structure, 1, outer._options, whole)


def of_traced(op, tensors, name=None):
    """The dataset of traced values, or None where `tensors` holds none."""
    from penstock import _program

    values = tensors if isinstance(tensors, (tuple, list)) else [tensors]
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
    if isinstance(step, _trace.Tensor) or not step:
        raise _trace.TraceError("the step of a range is a traced value or 0", "it is a constant; map multiplies the numbers")
    numbers = Dataset.counter(0, int(step))
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
    from penstock import _windows

    return Stage(op, [("input", [Nested(_windows.simplified(inside))]), *fields], name, line)


def flattened(op, stages, name):
    """The stages of a flat_map that needs no dataset for each element, or None: what is done to its slices is done to all of them."""
    inside = stages[1:]
    apart = _ROW_BY_ROW if op == "flat_map" else ("map",)
    if stages[0].op != "window_part" or stages[0].fields or not all(stage.op in apart for stage in inside):
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
        if stage.op in _SOURCES_OF_PATHS and not any(field == "files" and value for field, value in stage.fields):
            return True
        if stage.op not in ("interleave", "flat_map") and any(reads_path(inner) for inner in _inputs(stage)):
            return True
    return False


def as_paths(stages):
    """The stages of a dataset of paths, of which those that were given as an array of strings are files from here on."""
    from penstock import _arrays, _readers

    first = stages[0]
    if first.op != "from_tensor_slices" or not all(stage.op in _MOVES_PATHS for stage in stages[1:]):
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
