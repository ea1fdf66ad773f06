"""Ops that gather elements by a number that is computed of each."""

import numpy as np

from penstock._dataset import _cardinality, _padding
from penstock._dataset._arguments import integer
from penstock._dataset._chain import Chain, of_stages
from penstock._dataset._parts import Value, simplified
from penstock._spec._lines import user_line
from penstock._spec._stage import Nested, Stage, Trait, declare
from penstock._tracing import _program, _refusals, _trace, _user_function


declare("group_by_window", Trait.NESTS_ELEMENTS, Trait.BY_VALUE)
declare("bucket_by_sequence_length", Trait.BY_VALUE)


def bucket(
    dataset, element_length_func, boundaries, batch_sizes, padded_shapes, padding_values, to_boundary, no_padding, drop, name
):
    line = user_line()
    boundaries = [integer(value, "a bucket boundary") for value in np.asarray(boundaries).tolist()]
    batch_sizes = [integer(value, "a bucket batch size") for value in np.asarray(batch_sizes).tolist()]
    if len(batch_sizes) != len(boundaries) + 1:
        raise ValueError(f"bucket_batch_sizes are one more than bucket_boundaries: {len(batch_sizes)} and {len(boundaries)}")
    shapes = _padding.shapes(dataset._structure, padded_shapes)
    values = _padding.values(dataset._structure, padding_values)
    trace, result = dataset._call(element_length_func)
    more = [
        ("bucket_boundary", boundaries),
        ("bucket_batch_size", batch_sizes),
        ("padded_shape", None if no_padding else shapes),
        ("padding_value", None if no_padding else values),
        ("pad_to_bucket_boundary", True if to_boundary else None),
        ("no_padding", True if no_padding else None),
        ("drop_remainder", True if drop else None),
    ]
    stage = _program.condition_stage(
        "bucket_by_sequence_length", trace, result, name, line, "element_length", "integer", more
    )
    return dataset._like((*dataset._stages, stage), dataset._known_structure, _cardinality.of_values(dataset._count))


def group(dataset, key_func, reduce_func, window_size, window_size_func, name):
    if (window_size is None) == (window_size_func is None):
        raise ValueError("one of window_size and window_size_func is given")
    line = user_line()
    trace, result = dataset._call(key_func)
    if window_size is not None:
        size = ("window_size", integer(window_size, "window_size"))
        if size[1] < 1:
            raise ValueError(f"window_size is at least 1: {window_size}")
    else:
        of_key = _trace.Trace(dataset)
        key = of_key.tensors_of({"key": None})["key"]
        with of_key:
            size = ("window_size_of_key", _program.expression(of_key, _user_function.result_of(window_size_func, key)))
    fields = _program.condition_stage("group_by_window", trace, result, name, line, "key", "integer", [size]).fields
    # The key is no tensor of the window's elements: whatever is done with it there is refused.
    key = _trace.Trace(dataset).tensors_of({"key": None})["key"]
    whole = [None]

    def inside(stages):
        return dataset._whole((*dataset._stages, _stage(fields, stages, name, line)))

    window = of_stages([Stage("window_part", [])], dataset._structure, options=dataset._options, window=inside)
    whole[0] = _user_function.result_of(reduce_func, (key, window))
    result = whole[0].dataset if isinstance(whole[0], Value) else whole[0]
    if not isinstance(result, Chain) or result._window is None:
        raise _refusals.TraceError(
            f"reduce_func returned a {type(result).__name__}", "it returns a dataset made of the window, such as window.batch(5)"
        )
    stages = (*dataset._stages, _stage(fields, result._stages, name, line))
    return dataset._like(stages, result._known_structure, _cardinality.of_values(dataset._count))


def _stage(fields, inside, name, line):
    inside = simplified(inside)
    parts = [("input", [Nested(inside)])] if inside else []
    return Stage("group_by_window", [*fields, *parts], name, line)
