"""scan and reduce: functions of a state and an element."""

from penstock import _structure
from penstock._dataset._parts import Value
from penstock._dtypes import string
from penstock._options import TensorSpec
from penstock._spec import _arrays
from penstock._spec._lines import user_line
from penstock._tracing import _program, _refusals, _trace, _user_function


def _traced(dataset, initial_state, function, what):
    """The call of `function`: its trace, its result, and the state's structure and messages."""
    structure, values = _structure.flatten(
        initial_state, lambda value: not isinstance(value, (dict, tuple)), f"the initial_state of {what}"
    )
    trace = _trace.Trace(dataset)
    element = trace.tensors_of(dataset._structure)
    prefix = "state"
    while any(name.split("/")[0] == prefix for name in trace.features):
        prefix += "_"
    paths = [prefix if path == "value" and structure is None else f"{prefix}/{path}" for path in _structure.paths(structure)]
    messages = []
    for path, value in zip(paths, values):
        message, array = _arrays.tensor_values(path, value, f"the initial_state of {what}")
        messages.append(message)
        is_string = array.dtype.kind in "OSU"
        trace.states[path] = TensorSpec(array.shape, string if is_string else array.dtype, path, "string" if is_string else "dense")
    trace.features = [*trace.features, *paths]
    state = _structure.fill(structure, iter([_trace.stand_in(trace, _trace.Node(trace, "feature", path)) for path in paths]))
    with trace:
        result = _user_function.result_of(function, (state, element))
    return trace, result, structure, list(zip(paths, messages))


def _values_of(state, structure, what):
    found, values = _structure.flatten(state, _program._is_tensor, f"the new state of {what}")
    if found != structure:
        raise _refusals.TraceError(f"the function given to {what} returned a state of another structure", "it is that of initial_state")
    return _structure.in_order(structure, found, values)


def scan(dataset, initial_state, scan_func, name):
    line = user_line()
    trace, result, structure, states = _traced(dataset, initial_state, scan_func, "scan")
    if not isinstance(result, tuple) or len(result) != 2:
        raise _refusals.TraceError("the function given to scan returned no pair", "it returns (new_state, output)")
    new_state = _values_of(result[0], structure, "scan")
    stage, made = _program.state_stage("scan", trace, states, new_state, result[1], name, line)
    return dataset._like((*dataset._stages, stage), made, dataset._count)


def reduce(dataset, initial_state, reduce_func, name):
    line = user_line()
    trace, result, structure, states = _traced(dataset, initial_state, reduce_func, "reduce")
    new_state = _values_of(result, structure, "reduce")
    stage, _ = _program.state_stage("reduce", trace, states, new_state, None, name, line)
    # The state's tensors under their own names again.
    flat = {path: None for path, _ in states}
    reduced = dataset._like((*dataset._stages, stage), flat, 1)
    reduced = reduced.map(lambda element: _structure.fill(structure, iter(element.values())))
    if dataset._window is not None:
        return Value(reduced)
    (element,) = reduced
    return element
