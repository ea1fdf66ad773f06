"""Tracing: a function is called once with stand-ins for an element's tensors, which record what is done
to them as a graph of the expression language (docs/expressions.md).
"""

import math
import threading

from penstock import _structure
from penstock._tracing._refusals import FeatureError, TraceError, listed, near


class Node:
    """A vertex of the graph; constant.

    Attributes:
      kind: "feature", "text" (what stands in an expression as it is), "array", "call", "subscript" or "made" (by a Python function).
      value: the feature's name, the text, the array, the function's name or operator, the subscript's
        text, in which "{1}" is the second of the inputs, the call of the Python function (_cut.py) and the number of its result.
      inputs: Nodes.
      keywords: pairs of a name and a text, of a call; None in the place of a text for one of the last inputs.
      number: rises from inputs to what uses them.
    """

    __slots__ = ("kind", "value", "inputs", "keywords", "number")

    def __init__(self, trace, kind, value, inputs=(), keywords=()):
        self.kind = kind
        self.value = value
        self.inputs = tuple(inputs)
        self.keywords = tuple(keywords)
        trace.num_nodes += 1
        self.number = trace.num_nodes


# Of this thread: `traces`, the calls that it is in, the innermost last, and `depth`, how many functions of the user's it is in.
calls = threading.local()


class Trace:
    """One call of a user's function, during which it is entered.

    Attributes:
      dataset: the one whose elements the function is given.
      parsed: None, or the features that the element was parsed into (a parse inside of the function).
      states: the TensorSpecs of features that are no part of the element, but of a state, by name.
    """

    # Whether it has called Python functions (_dataset/_python_calls.py).
    has_calls = False

    def __init__(self, dataset):
        self.dataset = dataset
        self.num_nodes = 0
        self.features = []
        self.states = {}
        self.before = None
        self.parse_stage = None
        self.parsed_structure = None
        self._around = None
        self._adopted = {}
        self._types = None

    def __enter__(self):
        calls.traces = [*getattr(calls, "traces", ()), self]
        return self

    def __exit__(self, *error):
        calls.traces = calls.traces[:-1]

    def spec_of(self, node):
        """The TensorSpec of a value, which the daemon is asked for once."""
        return self._of_types().spec_of(node)

    def is_batched(self):
        """Whether the elements are batches, or may be."""
        return self._of_types()._dataset_rows() != 1

    def _of_types(self):
        if self._types is None:
            self._types = self.dataset._types_of(self)
        return self._types

    def adopt(self, around):
        """Values of another call may be used, whose element is the second part of this one's."""
        self._around = around

    def adopts(self, trace):
        return self._around is trace

    def adopted(self, node):
        """A node of the other call as one of this one's."""
        known = self._adopted.get(node.number)
        if node.kind == "made":
            raise TraceError("the result of a Python function of another function's call is used here", "pass it through the element")
        if known is None:
            inputs = [self.adopted(inner) for inner in node.inputs]
            value = node.value
            if node.kind == "feature":
                value = "1" if self._around.dataset._structure is None else f"1/{value}"
            known = self._adopted[node.number] = Node(self, node.kind, value, inputs, node.keywords)
        return known

    def tensors_of(self, structure):
        """Stand-ins for the tensors of an element."""
        self.features = _structure.paths(structure)
        nodes = [stand_in(self, Node(self, "feature", name)) for name in self.features]
        return _structure.fill(structure, iter(nodes), make_dict=_Features)

    def parse(self, serialized, make_stage, structure):
        """The element becomes that of a stage which parses `serialized`."""
        if self.parse_stage is not None:
            raise TraceError("a function can parse its element once", "put the second one into a map of its own")
        self.before = (serialized._node, self.features)
        self.parse_stage = make_stage
        self.parsed_structure = structure
        return self.tensors_of(structure)

    def stale(self, node):
        """Whether a feature is one from before the parse."""
        return self.before is not None and node.number <= self.before[0].number


class StandIn:
    """A value of a traced function: a node of a trace, whose type the daemon is asked for. All of them are Tensors, which are above this module."""

    __slots__ = ("_trace", "_node", "_base", "_changed")
    # Tensor, which says so itself: what stand_in() makes.
    whole = None

    def __init__(self, trace, node):
        self._trace = trace
        self._node = node
        self._base = None  # the value whose memory NumPy's would share, of a view
        self._changed = None  # the line and the operator that changed it in place

    def _copied(self):
        """The same value, which shares no memory with it."""
        require_unchanged(self)
        return stand_in(self._trace, self._node)

    def _as_view_of(self, base):
        """The same value, which shares NumPy's memory with `base`."""
        if self is not base:
            self._base = base
        return self

    @property
    def shape(self):
        """The sizes of the axes; None where only the data tells one."""
        return self._spec().shape

    @property
    def dtype(self):
        return self._spec().dtype

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        if None in self.shape:
            raise TraceError("the size of a value that only the data tells", "np.size(x) is each element's")
        return math.prod(self.shape)

    def _spec(self):
        return self._trace.spec_of(self._node)


def stand_in(trace, node):
    """A Tensor."""
    return StandIn.whole(trace, node)


def find_trace(values):
    """The trace of the traced values in nested lists, tuples and dicts, or None. Of several, the one whose function uses another's."""
    trace = None
    for value in values:
        if isinstance(value, StandIn):
            found = value._trace
        else:
            if isinstance(value, dict):
                value = list(value.values())
            found = find_trace(value) if isinstance(value, (list, tuple)) else None
        if trace is None or found is not None and found.adopts(trace):
            trace = found
    return trace


class _Features(dict):
    """A part of an element that a traced function gets: it names what there is when asked for what is not."""

    def __missing__(self, key):
        hint = near(key, list(self)) if isinstance(key, str) else None
        raise FeatureError(f"the element has no feature {key!r}; {hint or 'it has ' + listed(map(repr, self))}")


def require_unchanged(tensor):
    """Refuses a value that an operator such as += has changed by another name, or through a view."""
    changed, way = tensor, []
    while changed is not None and changed._changed is None:
        way.append(changed)
        changed = changed._base
    # A subscript that gives a number copies it.
    if changed is None or any(not view.shape for view in way):
        return
    line, symbol = changed._changed
    raise TraceError(
        f"{symbol}= of a traced value that is used afterwards by another name, in its element, or as a view of it or what it is a view of: "
        "a traced value cannot be changed in place, and what else holds it would not see it",
        f"write x = x {symbol} y, which makes a new value, or change x.copy()",
        line=line,
    )
