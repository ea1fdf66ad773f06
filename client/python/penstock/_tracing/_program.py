"""From a traced graph to the stages that compute it."""

import numpy as np

from penstock import _structure
from penstock._spec._stage import Stage
from penstock._tracing._constants import is_identifier, quoted, to_node
from penstock._tracing._cut import in_parts
from penstock._tracing._expressions import Writer, map_stage
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import Node, StandIn


def _is_tensor(value):
    return isinstance(value, (StandIn, bool, int, float, str, bytes, np.generic, np.ndarray))


def _as_value(trace, value):
    """The node of what a function has returned: a text is a tensor there, of which the language makes one by a choice."""
    node = to_node(trace, value)
    if not isinstance(value, (str, bytes)):
        return node
    return Node(trace, "call", "where", [Node(trace, "text", "True"), node, node])


def prefix_stages(trace, line):
    """The stages in front of the map itself: those that parse."""
    if trace.parse_stage is None:
        return []
    node, features = trace.before
    stages, (node,), features = in_parts([node], features, line)
    if not (node.kind == "feature" and features == ["value"]):
        stages.append(map_stage([node], ["value"], None, features, None, line))
    return stages + [trace.parse_stage]


def type_stages(trace, node, line):
    """Stages whose element is one value, to ask for its type."""
    stale = trace.parse_stage is not None and node.number <= trace.before[0].number
    stages, nodes, features = in_parts([node], trace.before[1] if stale else trace.features, line)
    return ([] if stale else prefix_stages(trace, line)) + [*stages, map_stage(nodes, ["value"], None, features, None, line)]


def build(trace, result, structure_before, name, line):
    """The stages for what a function has returned, and the structure of their elements."""
    if isinstance(result, list):
        # As tf.data takes it: decode_csv, for one, gives a list of tensors.
        result = tuple(result)
    try:
        structure, values = _structure.flatten(result, _is_tensor, "the result of the function given to map")
    except TypeError as error:
        raise TraceError(str(error), "see docs/python.md") from None
    nodes = [_as_value(trace, value) for value in values]
    names = _structure.paths(structure)
    if trace.parse_stage is not None:
        _refuse_stale(trace, nodes)
    before = structure_before if trace.parse_stage is None else trace.parsed_structure
    is_identity = (
        structure == before
        and list(names) == list(trace.features)
        and all(node.kind == "feature" and node.value == out for node, out in zip(nodes, names))
    )
    stages = prefix_stages(trace, line)
    if not is_identity:
        before, nodes, features = in_parts(nodes, trace.features, line)
        stages += [*before, map_stage(nodes, names, structure, features, name, line)]
    return stages, structure


def condition_stage(op, trace, result, name, line, field="predicate", what="bool", more=()):
    """A stage of an op that takes a condition or another lone value, for what a function has returned.

    Args:
      field: of the op's message, that holds the expression.
      more: further fields.
    """
    if trace.parse_stage is not None:
        raise TraceError(f"a parse inside of the function given to {op}", "parse in a map before it")
    if result is None:
        raise TraceError(
            f"the function given to {op} returned None",
            f"it returns one {what}; a size in x.shape that only the data tells is None, and np.shape(x)[0] is each element's",
        )
    if not _is_tensor(result) or isinstance(result, (str, bytes)):
        raise TraceError(
            f"the result of the function given to {op} is of type {type(result).__name__}", f"it returns one {what}"
        )
    node = to_node(trace, result)
    writer = Writer([node], trace.features)
    fields = [
        ("constant", writer.constants),
        ("let", writer.all_seeded(writer.lets)),
        (field, writer.seeded(writer.text(node))),
        *more,
    ]
    return Stage(op, fields, name, line)


def expression(trace, value):
    """The text of a value that needs neither constants nor intermediate values."""
    writer = Writer([to_node(trace, value)], trace.features)
    if writer.constants or writer.lets:
        raise TraceError("an expression with arrays or parts that are used twice", "a simpler one works")
    return writer.seeded(writer.text(to_node(trace, value)))


def state_stage(op, trace, states, state, result, name, line):
    """A stage of scan or reduce.

    Args:
      states: pairs of the name of a tensor of the state and its TensorValues message.
      state: the new state's values, in that order.
      result: what the stage's elements are made of: a nest of values, or None for the state itself, whose structure it has then.
    """
    if trace.parse_stage is not None:
        raise TraceError(f"a parse inside of the function given to {op}", "parse in a map before it")
    nodes = [_as_value(trace, value) for value in state]
    structure, values = None, []
    if result is not None:
        structure, values = _structure.flatten(result, _is_tensor, f"the output of the function given to {op}")
    outs = [_as_value(trace, value) for value in values]
    writer = Writer(nodes + outs, trace.features)
    fields = [
        ("constant", writer.constants),
        ("let", writer.all_seeded(writer.lets)),
        ("initial_state", [message for _, message in states]),
        ("state", writer.all_seeded(f"{quoted(path)} = {writer.text(node)}" for (path, _), node in zip(states, nodes))),
    ]
    if result is not None:
        names = [out if is_identifier(out) else quoted(out) for out in _structure.paths(structure)]
        fields.append(("out", writer.all_seeded(f"{out} = {writer.text(node)}" for out, node in zip(names, outs))))
        fields.append(("structure", _structure.to_json(structure)))
    return Stage(op, fields, name, line), structure


def _refuse_stale(trace, nodes):
    waiting, seen = list(nodes), set()
    while waiting:
        node = waiting.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        if node.kind in ("feature", "made") and trace.stale(node if node.kind == "feature" else node.value[0].results[0]):
            shown = f"the feature {node.value!r}" if node.kind == "feature" else "the result of a Python function"
            raise TraceError(
                f"{shown} is used beside what was parsed from the element",
                "only the parsed features are there afterwards",
            )
        waiting.extend(node.inputs)
