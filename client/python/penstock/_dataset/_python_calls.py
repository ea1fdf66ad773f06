"""Python functions inside of traced ones, as conditions, and such as yield elements.

A traced function that calls one is cut there (_tracing/_cut.py).
"""

import functools

import numpy as np

from penstock import _dtypes, _errors, _structure
from penstock._dataset._chain import ASK
from penstock._dataset._python import Declared, Learned, Lazily, fields_of, output_of, stage_of
from penstock._options import TensorSpec
from penstock._running._iterator import DatasetIterator
from penstock._spec import _textproto
from penstock._spec._lines import user_line
from penstock._spec._stage import Stage
from penstock._tracing import _program
from penstock._tracing._constants import to_node
from penstock._tracing._cut import Copies, in_front_of, in_parts
from penstock._tracing._expressions import map_stage
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import Node, StandIn, find_trace, stand_in

# Elements that a function is asked for until it yields something of which its outputs are learned.
_MAXASKED = 1000


# --- calls --------------------------------------------------------------------------------------


class Call:
    """A call of a Python function by a traced one.

    Attributes:
      inputs: the Nodes of those arguments that are no constants.
      results: the Nodes of its outputs, of kind "made".
    """

    def __init__(self, trace, inputs, types, shown, fields, of_draws, line):
        trace.has_calls = True
        self.inputs = inputs
        self.results = [Node(trace, "made", (self, i), inputs) for i in range(len(types))]
        self._trace = trace
        self._dtypes = [dtype for _, dtype in types]
        self._shapes = [shape for shape, _ in types]
        self._shown, self._fields, self._of_draws, self._line = shown, fields, of_draws, line

    def declare(self, i, shape):
        """The shape of a result, where nothing is known of it."""
        if self._shapes[i] is None:
            self._shapes[i] = shape

    def is_declared(self, i):
        return self._shapes[i] is not None

    def spec_of(self, i):
        if self._shapes[i] is None:
            self._learn()
        return TensorSpec(self._shapes[i], self._dtypes[i])

    def _learn(self):
        """Learns from the first element how many axes the results have; their sizes are open, as in TensorFlow."""
        trace = self._trace
        # Of what is parsed inside of the function it stands in front, or behind.
        is_stale = trace.stale(self.results[0])
        in_front = [] if is_stale else _program.prefix_stages(trace, self._line)
        stages = in_front_of(self.inputs, trace.before[1] if is_stale else trace.features, self._line)
        names = [f"v{i}" for i in range(len(self.inputs))]

        def describing():
            told = _textproto.Message(("name", "value"), ("dtype", "string"))
            fields = [(field, value) for field, value in self._fields if field != "workers"]
            fields += [("input", names), ("workers", 1), ("describes", True), ("output", told), ("structure", "null")]
            return stage_of("python", fields, None, self._line)

        dataset = trace.dataset._like((*trace.dataset._stages, *in_front, *stages), None)
        found = Learned(dataset, describing, self._shown)._description["outputs"]
        if len(found) != len(self._shapes):
            raise _errors.InvalidArgumentError(f"{self._shown} returned {len(found)} values, and its Tout has {len(self._shapes)} types")
        for i, output in enumerate(found):
            self.declare(i, tuple([None] * len(output["shape"])))

    def stage(self, inputs, kept, results):
        """The stage, of features of these names."""
        returns = _structure.to_json((None,) * len(results))
        outputs = Lazily(lambda: [output_of(name, self.spec_of(i)) for i, name in enumerate(results)])
        fields = [*self._fields, *self._of_draws, ("input", inputs), ("keep", kept or None), ("returns", returns), ("output", outputs)]
        return stage_of("python", fields, None, self._line)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None, **options):
    """Calls a Python function of NumPy arrays inside of a function that is traced (Dataset.map, filter, take_while), as tf.numpy_function.

    It runs in worker processes, as that of Dataset.map(…, python=True) does; what stands around it stays native. A call whose results nobody uses is
    not made. Without `func` it is a decorator.

    Args:
      func: any function. It gets NumPy's numbers, arrays, and bytes for strings, and returns an array, or a list of them.
      inp: a list of traced tensors and constants, at least one traced.
      Tout: a type, or a list of them; or penstock.TensorSpecs, whose shapes are known then. Else the first element tells how many axes a result has, and
        set_shape, or penstock.functions.ensure_shape, what sizes.
      stateful: either; a call may be made more than once, and results are not kept.
      name: of the operation; has no effect.
      **options: version, timeout_ms, workers, max_rows_per_worker, threads, seed and seeds, as of Dataset.map.

    Returns:
      A traced tensor, or a list of them where Tout is a list.

    Raises:
      TraceError: nothing in `inp` is traced.
      TypeError: the function cannot be pickled; says what of it cannot.
    """
    if func is None:
        return _decorator(numpy_function, inp, Tout=Tout, stateful=stateful, name=name, **options)
    return _called("penstock.numpy_function", func, inp, Tout, [], options)


def py_function(func=None, inp=None, Tout=None, name=None, **options):
    """As penstock.numpy_function, for functions that are written for tf.py_function: arguments are NumPy arrays that have a method numpy(), and numbers that
    are returned become those of Tout, as far as NumPy's rule "same_kind" goes. Tensors of TensorFlow may be returned."""
    if func is None:
        return _decorator(py_function, inp, Tout=Tout, name=name, **options)
    return _called("penstock.py_function", func, inp, Tout, [("casts", True), ("tensors", True)], options)


def _decorator(way, inp, **arguments):
    if inp is not None:
        raise TypeError(f"{way.__name__} without func is a decorator, and takes no inp")

    def decorate(function):
        @functools.wraps(function)
        def called(*inp):
            return way(function, list(inp), **arguments)

        return called

    return decorate


def _called(op, function, inp, wanted, more, options):
    is_list = isinstance(wanted, (list, tuple))
    types = [_type_of(op, value) for value in (wanted if is_list else [wanted])]
    if not types:
        raise TraceError(
            f"{op} of a function without a result (Tout=[])", "what has no result is not called here: let it return a number, and use that"
        )
    if not isinstance(inp, (list, tuple)):
        inp = [inp]
    trace = find_trace(list(inp))
    if trace is None:
        raise TraceError(f"{op} is called without a traced value", "it works inside a function given to map; a function of constants can be called itself")
    constants = {place: constant(op, value) for place, value in enumerate(inp) if find_trace([value]) is None}
    nodes = [to_node(trace, value, f"{op}: inp") for place, value in enumerate(inp) if place not in constants]
    shown, fields, of_draws = fields_of(op, function, constants, **options)
    made = Call(trace, nodes, types, shown, [*fields, ("lists", True), *more], of_draws, user_line())
    results = [stand_in(trace, node) for node in made.results]
    return results if is_list else results[0]


def _type_of(op, value):
    """The shape, or None, and the type that stands in Tout."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, (np.dtype, np.generic, type)):
        spec = TensorSpec(value.shape, value.dtype)
        return spec.shape, spec.dtype
    try:
        return None, _dtypes.as_dtype(value)
    except TypeError as error:
        raise TypeError(f"{op}: Tout is a type, a penstock.TensorSpec, or a list of them: {error}") from None


def constant(op, value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    if array.dtype == object and not all(isinstance(item, (str, bytes)) for item in array.flat):
        raise TypeError(f"{op}: inp holds a {type(value).__name__}, which is no tensor; what is none goes into func, by functools.partial")
    if array.dtype.kind in "OSU":
        texts = np.empty(array.shape, object)
        texts.reshape(-1)[:] = [item.encode() if isinstance(item, str) else item for item in array.reshape(-1).tolist()]
        return texts
    return array[()]


# --- conditions ---------------------------------------------------------------------------------


def _fresh(paths, name):
    while name in paths:
        name += "_"
    return name


def _restored(dataset, stages, op, flag, name, line):
    """The elements that meet a condition which is a feature beside theirs."""
    paths = _structure.paths(dataset._structure)
    numbers = Copies()
    back = map_stage(
        [Node(numbers, "feature", path) for path in paths], paths, dataset._structure, [*paths, flag], None, line
    )  # fmt: skip
    return dataset._like((*dataset._stages, *stages, Stage(op, [("predicate", flag)], name, line), back), dataset._known_structure)


def where_by_call(dataset, op, trace, condition, name, line):
    """filter or take_while by a traced condition that Python functions are called for."""
    if trace.parse_stage is not None:
        raise TraceError(f"a parse inside of the function given to {op}", "parse in a map before it")
    paths = list(trace.features)
    flag = _fresh(paths, "holds")
    element = [Node(trace, "feature", path) for path in paths]
    stages, nodes, features = in_parts([*element, condition._node], paths, line)
    both = map_stage(nodes, [*paths, flag], dict.fromkeys([*paths, flag]), features, None, line)
    return _restored(dataset, [*stages, both], op, flag, name, line)


def filter_by_python(dataset, function, name, options):
    """The elements for which any Python function is true."""
    _, fields, of_draws = fields_of("filter", function, **options)
    paths = _structure.paths(dataset._structure)
    flag, line = _fresh(paths, "holds"), user_line()
    output = output_of(flag, TensorSpec((), np.bool_))
    stage = stage_of("python", [*fields, *of_draws, ("keep", paths), ("returns", "null"), ("output", output)], None, line)
    return _restored(dataset, [stage], "filter", flag, name, line)


# --- functions that yield -----------------------------------------------------------------------


class _LearnedOfEach(Learned):
    """What the elements are that the function yields: the first of them tells."""

    def _first(self):
        asked = self._dataset.take(_MAXASKED)
        with DatasetIterator(asked._like((*asked._stages, self._stage_of()), None), first_pass=True) as elements:
            for element in elements:
                text = np.asarray(element).item()
                if text != b"null":
                    return text
        raise _errors.InvalidArgumentError(
            f"{self._name} yields nothing for the first {_MAXASKED} elements, of which what it yields could be learned: declare it (output=…)"
        )


def flat_map_by_python(dataset, function, output, name, options):
    """The elements that any Python function yields for each element."""
    shown, fields, of_draws = fields_of("flat_map", function, **options)
    fields = [*fields, ("yields", True)]
    line = user_line()

    def describing():
        told = _textproto.Message(("name", "value"), ("dtype", "string"))
        few = [(field, value) for field, value in fields if field != "workers"]
        return stage_of("python", [*few, ("workers", 1), ("describes", True), ("output", told), ("structure", "null")], None, line)

    known = _LearnedOfEach(dataset, describing, shown) if output is None else Declared(output, shown)
    specs = {} if output is None else known.specs
    packed = {path: spec for path, spec in specs.items() if None in spec.shape}
    for path, spec in packed.items():
        if spec.dtype is _dtypes.string:
            raise TypeError(f"output {path} is an array of strings whose number differs from element to element: yield them one by one, or joined to one")

    def outputs():
        return [_of_all(message, packed) for message in known.outputs()]

    stage = stage_of(
        "python",
        [*fields, *of_draws, ("output", Lazily(outputs)), ("structure", Lazily(lambda: _structure.to_json(known.structure)))],
        None, line,
    )  # fmt: skip
    structure = ASK if output is None else known.structure
    elements = dataset._like((*dataset._stages, stage, Stage("unbatch", [], name, line)), structure)
    if not packed:
        return elements

    def unpack(*parts):
        element = parts if isinstance(structure, tuple) else parts[0]
        _, tensors = _structure.flatten(element, lambda value: isinstance(value, StandIn), "an element")
        return _structure.fill(structure, iter([_unpacked(tensor, packed.get(path)) for path, tensor in zip(specs, tensors)]))

    return elements.map(unpack)


def _of_all(message, packed):
    """An output with the axis that counts what is yielded."""
    fields = dict(message.fields)
    spec = packed.get(fields["name"])
    if spec is not None:
        sizes = [-1 if size is None else size for size in spec.shape]
        return _textproto.Message(("name", fields["name"]), ("dtype", "string"), ("shape", [-1]), ("packed", fields["dtype"]), ("packed_shape", sizes))
    return _textproto.Message(("name", fields["name"]), ("dtype", fields["dtype"]), ("shape", [-1, *(fields["shape"] or [])]))


def _unpacked(text, spec):
    """The numbers in a string of sizes and numbers; what is not packed as it is."""
    if spec is None:
        return text
    head = 8 * len(spec.shape)
    sizes = call("decode_raw", (call("substr", (text, 0, head), {}), np.int64), {})
    stored = np.dtype(np.uint8) if spec.dtype == np.bool_ else np.dtype(spec.dtype)
    data = call("decode_raw", (call("substr", (text, head, (1 << 31) - 1), {}), stored), {})
    if spec.dtype == np.bool_:
        data = data != 0
    return np.reshape(data, [sizes[axis] if size is None else size for axis, size in enumerate(spec.shape)])
