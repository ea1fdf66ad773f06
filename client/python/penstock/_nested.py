"""Datasets made of an element's own values, inside the function given to flat_map."""

from penstock import _trace


class TracedElements:
    """What from_tensors and from_tensor_slices make of traced values: flat_map takes it, and nothing else can be done with it."""

    def __init__(self, op, tensors):
        self.op = op
        self.tensors = tensors

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise _trace.TraceError(
            f"{name} on a dataset that is made of traced values", f"return {self.op}(…) and apply .{name} behind flat_map"
        )


def of_traced(op, tensors):
    """A TracedElements if a traced value is among `tensors`, else None."""
    values = tensors if isinstance(tensors, (tuple, list)) else [tensors]
    return TracedElements(op, tensors) if _trace.find_trace(values) is not None else None
