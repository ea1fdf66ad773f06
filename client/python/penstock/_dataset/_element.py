"""The element of a call around: the function given to flat_map or interleave, which makes a dataset of each."""

import threading

from penstock._dataset._chain import of_stages
from penstock._dataset._parts import parts_inside, simplified
from penstock._spec._stage import Nested, Stage
from penstock._tracing._refusals import TraceError
from penstock._tracing._user_function import result_of

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


def share_source(*datasets):
    """Whether several of the datasets are made of the element or the window of the call around them, which each place of a pipeline takes once."""
    return sum(bool(parts_inside(dataset._stages)) for dataset in datasets) > 1


def refuse_choice(what, datasets):
    """Says that elements are not chosen of several datasets that are made of one."""
    if share_source(*datasets):
        raise TraceError(
            f"{what} of several datasets that are made of one element or window",
            "inside of flat_map and interleave np.where(condition, a, b) in a map chooses between values; or choose among whole datasets outside of it",
        )


def is_innermost(trace):
    traces = getattr(_calls, "traces", None)
    return bool(traces) and traces[-1] is trace


def of_call(trace):
    """The dataset that holds nothing but the element of a call, as it came."""
    outer = trace.dataset

    def whole(inside):
        inside = simplified(inside)
        return outer._whole((*outer._stages, Stage("flat_map", [("input", [Nested(inside)])])))

    return of_stages([Stage("window_part", [])], outer._structure, 1, outer._options, whole)


def call(trace, function, element):
    """What the function given to flat_map or interleave returns for the element's stand-ins."""
    with _Call(trace):
        return result_of(function, element)


def with_element(dataset, traces):
    """Pairs of the dataset's elements and the element of the call around it, and that call's trace; None where none of these is one."""
    around = next((trace for trace in traces if is_innermost(trace) and trace.parse_stage is None), None)
    return None if around is None else (dataset.zip(dataset, of_call(around).repeat()), around)
