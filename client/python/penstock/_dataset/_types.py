"""The types of values while a function is traced.

The daemon says them; no rule of the language stands here. A new value is asked for over values whose types are known already, by a
pipeline of its own, so that an answer costs the same however long the function is. What that cannot tell, errors above all, is asked of
the dataset's whole pipeline.
"""

import weakref

from penstock import _errors
from penstock._dataset._described import types_of
from penstock._dtypes import string
from penstock._options import TensorSpec
from penstock._spec._lines import user_line
from penstock._spec._stage import Nested, Stage
from penstock._spec._textproto import Message
from penstock._tracing import _program
from penstock._tracing._cut import depends_on_call
from penstock._tracing._expressions import map_stage
from penstock._tracing._trace import Node

# Two rows: those that are computed one by one are told from whole batches, of which one is an element, by their number.
_ROWS = 2
_SOURCE = Stage(
    "from_tensor_slices",
    [("tensor", [Message(("name", "n"), ("int_value", [0] * _ROWS)), Message(("name", "s"), ("string_value", [""] * _ROWS))])],
)


class Types:
    """The types of the values of one trace.

    Behind `batch` a function is computed of each row, or else of whole batches (docs/expressions.md), which decides what it means. Values
    of rows are asked for by themselves, and those of elements where there is no batch; others are not.
    """

    def __init__(self, trace):
        # Not a reference: the two would wait for the garbage collector, and with them the dataset's arrays.
        self._trace = weakref.proxy(trace)
        self._dataset = trace.dataset
        self._specs = {}
        # By number, what can be a value of _SOURCE in the place of a node.
        self._leaves = {}
        # Of the element before a parse inside of the function, and behind: TensorSpecs by name.
        self._features = {}
        self._rows = ...

    def spec_of(self, node):
        """The TensorSpec of a value."""
        spec = self._specs.get(node.number)
        if spec is None:
            spec = self._given(node) if node.kind in ("feature", "made") else self._alone(node)
            spec = self._specs[node.number] = spec or self._dataset._type_of(self._trace, node)
        return spec

    def _alone(self, node):
        """The type as that of a function of values of known types; None where that is not known."""
        rows = self._dataset_rows()
        if rows not in (None, 1) and self._trace.has_calls and depends_on_call(node):
            # Python functions get whole batches, as has what is made of their results.
            rows = None
        found = None if rows is None else self._cut(node)
        if found is None:
            return None
        copy, leaves = found
        if rows > 1 and not leaves:
            return None
        line = user_line()
        stages = [_SOURCE]
        if leaves:
            outs = [f"{name} = {_expression(leaf.shape[rows > 1 :], leaf.dtype)}" for name, leaf in leaves.items()]
            stages.append(Stage("map", [("out", outs)], None, line))
        if rows > 1:
            stages.append(Stage("batch", [("batch_size", _ROWS)], None, line))
        stages.append(map_stage([copy], ["value"], None, list(leaves), None, line))
        try:
            (spec,), computed_rows = types_of(stages)
        except _errors.InvalidArgumentError:
            return None
        if computed_rows != (_ROWS if rows > 1 else 1):
            return None
        if rows > 1:
            # Whether all batches have as many rows is the dataset's affair.
            spec.shape = (next(iter(leaves.values())).shape[0], *spec.shape[1:])
        if self._is_leaf(spec):
            self._leaves[node.number] = spec
        return spec

    def _cut(self, node):
        """The node over features in the place of values of known types, and those TensorSpecs by name; None where one is not known."""
        needed, waiting = {}, [node]
        while waiting:
            inner = waiting.pop()
            if inner.number in needed:
                continue
            needed[inner.number] = inner
            if inner.kind in ("feature", "made"):
                spec = self._given(inner)
                if spec is None or not self._is_leaf(spec):
                    return None
                self._leaves[inner.number] = spec
            if inner.number in self._leaves and inner is not node:
                if self._trace.stale(inner) != self._trace.stale(node):
                    return None
            else:
                waiting.extend(inner.inputs)
        copies, leaves, numbers = {}, {}, _Numbers()
        for number in sorted(needed):
            inner = needed[number]
            if number in self._leaves and inner is not node:
                name = f"v{len(leaves)}"
                leaves[name] = self._leaves[number]
                copies[number] = Node(numbers, "feature", name)
            else:
                inputs = [copies[each.number] for each in inner.inputs]
                copies[number] = Node(numbers, inner.kind, inner.value, inputs, inner.keywords)
        return copies[node.number], leaves

    def _is_leaf(self, spec):
        shape = spec.shape
        if self._dataset_rows() > 1:
            shape = shape[1:]
        if spec.dtype is string:
            return spec.kind == "string" and not shape
        return spec.kind == "dense" and 0 not in shape

    def _dataset_rows(self):
        """The rows of the dataset's batches; 1: it has no batches, None: it is not known whether it has."""
        if self._rows is ...:
            self._rows = self._ask_rows()
        return self._rows

    def _ask_rows(self):
        sizes = list(_batch_sizes(self._dataset._stages))
        if self._dataset._window is not None:
            return None if sizes else 1
        if 1 in sizes:
            return None
        try:
            return int(self._dataset._describe()["batch_rows"])
        except _errors.Error:
            return None

    def _given(self, node):
        """The TensorSpec of what a Python function has made, or of a feature as _feature() has it."""
        if node.kind == "feature":
            return self._feature(node)
        call, number = node.value
        return call.spec_of(number)

    def _feature(self, node):
        """The TensorSpec of a tensor of the element; None where it is computed of whole batches, or has none."""
        before = self._trace.stale(node)
        if before not in self._features:
            self._features[before] = self._ask_features(before)
        return self._features[before].get(node.value)

    def _ask_features(self, before):
        trace = self._trace
        names = [name for name in (trace.before[1] if before else trace.features) if name not in trace.states]
        numbers = _Numbers()
        nodes = [Node(numbers, "feature", name) for name in names]
        line = user_line()
        outs = dict.fromkeys(f"v{i}" for i in range(len(names)))
        stages = [] if before else _program.prefix_stages(trace, line)
        stages.append(map_stage(nodes, list(outs), outs, names, None, line))
        try:
            specs, rows = types_of(self._dataset._whole((*self._dataset._stages, *stages)))
            if rows != self._dataset_rows():
                return {}
        except _errors.Error:
            # Asked again, and said, of the value that is wanted.
            return {}
        found = {
            name: TensorSpec(spec.shape, spec.dtype, "value", spec.kind, spec.row_splits_dtype) for name, spec in zip(names, specs)
        }
        # A state has no rows of a batch.
        return found if rows > 1 else {**found, **trace.states}


class _Numbers:
    """Counts Nodes as a Trace does."""

    num_nodes = 0


def _batch_sizes(stages):
    """All numbers that are sizes of batches, those of stages inside of others too."""
    for stage in stages:
        for field, value in stage.fields:
            for inner in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(inner, Nested):
                    yield from _batch_sizes(inner.stages)
                elif field in ("batch_size", "bucket_batch_size"):
                    yield inner


def _expression(shape, dtype):
    """A value of that type that is no constant, of one of _SOURCE's rows."""
    if dtype is string:
        return "s"
    name = getattr(dtype, "name", dtype)
    if not shape:
        return f"{name}(n)"
    first = name if name not in ("float16", "bfloat16") else "float32"
    text = f"reshape({first}(n), {[1] * len(shape)})"
    if any((size or 1) > 1 for size in shape):
        text = f"pad({text}, {[[0, (size or 1) - 1] for size in shape]})"
    for axis, size in enumerate(shape):
        if size is None:
            text = f"compress(reshape(n, [1]) > 0, {text}, {axis - len(shape)})"
    return text if first == name else f"{name}({text})"
