"""From a traced graph to the stages that compute it."""

import os
import re

import numpy as np

from penstock import _structure, _textproto
from penstock._registry import FUNCTIONS
from penstock._stage import Seed, SeededText, Stage
from penstock._trace import _SYMBOLS, Node, Tensor, TraceError, _quoted, is_identifier, parameters, to_node

# Deeper texts are cut by a `let`; the daemon refuses them from 200 levels on.
_MAX_DEPTH = 40
_PREFIXES = {"negative": "-", "invert": "~"}
# What stands in a text where a seed belongs, which no text of the user's holds.
_SEED_MARK = os.urandom(16).hex()


class _Writer:
    """Writes the expressions of one map."""

    def __init__(self, outputs, features):
        self.constants = []
        self.lets = []
        self._taken = {*features, *FUNCTIONS}
        self._features = {
            name: name if is_identifier(name) and name not in FUNCTIONS else f"feature({_quoted(name)})" for name in features
        }
        self._texts = {}
        self._depths = {}
        self._arrays = {}
        self._seeds = []
        for node, is_shared in self._needed(outputs):
            text, depth = self._write(node)
            if node.kind in ("call", "subscript") and (is_shared or depth > _MAX_DEPTH):
                name = self._new_name("t")
                self.lets.append(f"{name} = {_bare(text)}")
                text, depth = name, 0
            self._texts[node.number], self._depths[node.number] = text, depth

    def text(self, node):
        return _bare(self._texts[node.number])

    def seeded(self, text):
        """A text of this writer as a field of a stage holds it."""
        texts = re.split(f"{_SEED_MARK}(\\d+) ", text)
        if len(texts) == 1:
            return text
        return SeededText(self._seeds[int(part)] if i % 2 else part for i, part in enumerate(texts))

    def all_seeded(self, texts):
        return [self.seeded(text) for text in texts]

    def _seed_argument(self, node, is_first):
        """A seed where the call draws and was given none, so that all passes and their cursors know it."""
        known = parameters(node.value) if node.value in FUNCTIONS else []
        if ("seed", None) not in known[len(node.inputs) :] or any(key == "seed" for key, _ in node.keywords):
            return ""
        self._seeds.append(("seed=" if is_first else ", seed=", Seed(None)))
        return f"{_SEED_MARK}{len(self._seeds) - 1} "

    def _needed(self, outputs):
        """Pairs of a node and whether several use it, inputs first."""
        uses = {}
        nodes = {}
        waiting = list(outputs)
        while waiting:
            node = waiting.pop()
            uses[node.number] = uses.get(node.number, 0) + 1
            if node.number not in nodes:
                nodes[node.number] = node
                waiting.extend(node.inputs)
        return [(nodes[number], uses[number] > 1) for number in sorted(nodes)]

    def _new_name(self, prefix):
        number = len(self.lets) + len(self.constants) + 1
        while f"{prefix}{number}" in self._taken:
            number += 1
        self._taken.add(f"{prefix}{number}")
        return f"{prefix}{number}"

    def _write(self, node):
        inputs = [self._texts[input.number] for input in node.inputs]
        depth = 1 + max((self._depths[input.number] for input in node.inputs), default=0)
        if node.kind == "feature":
            return self._features[node.value], 0
        if node.kind == "made":
            raise TraceError(
                "a Python function (penstock.numpy_function, py_function) inside of a function that is given to another method than map, filter and take_while",
                "call it in a map in front",
            )
        if node.kind == "text":
            return (f"({node.value})" if node.value.startswith("-") else node.value), 0
        if node.kind == "array":
            return self._constant(node.value), 0
        if node.kind == "subscript":
            return f"{inputs[0]}[{node.value.format(*inputs)}]", depth
        if node.value in _SYMBOLS and len(inputs) == 2 and not node.keywords:
            return f"({inputs[0]} {_SYMBOLS[node.value]} {inputs[1]})", depth
        if node.value in _PREFIXES and len(inputs) == 1:
            return f"({_PREFIXES[node.value]}{inputs[0]})", depth
        texts = [_bare(text) for text in inputs]
        named = [text for _, text in node.keywords].count(None)
        arguments, others = texts[: len(texts) - named], iter(texts[len(texts) - named :])
        arguments += [f"{key}={next(others) if text is None else text}" for key, text in node.keywords]
        return f"{node.value}({', '.join(arguments)}{self._seed_argument(node, not arguments)})", depth

    def _constant(self, array):
        is_string = isinstance(array, np.ndarray) and array.dtype == object
        values = tuple(array.ravel().tolist()) if is_string else np.asarray(array).tobytes()
        content = (getattr(array, "dtype", None), np.shape(array), values)
        known = self._arrays.get(content)
        if known is not None:
            return known
        name = self._arrays[content] = self._new_name("c")
        # A Python number that is not finite has no type of its own.
        has_dtype = isinstance(array, (np.ndarray, np.generic)) and not is_string
        dtype = array.dtype.name if has_dtype else None
        is_int = has_dtype and array.dtype.kind in "iub"
        values = _constant_strings(array) if is_string else _constant_values(np.asarray(array), is_int)
        self.constants.append(
            _textproto.Message(("name", name), values, ("dtype", dtype), ("shape", list(np.shape(array)) or None))
        )
        return name


def _constant_strings(array):
    from penstock import _arrays

    return _arrays.constant_strings(array)


def _constant_values(array, is_int):
    """The field with an array's values, or with the file that has them."""
    from penstock import _arrays

    if array.nbytes > _arrays.MAX_INLINE_BYTES or is_int and int(array.max()) >= 1 << 63:
        return "npy", _arrays.MemoryArray(array)
    values = array.ravel().tolist()
    return ("int_value", [int(value) for value in values]) if is_int else ("value", values)


def _bare(text):
    """Without the parentheses around the whole of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


def _map_stage(nodes, names, structure, features, name, line, op="map"):
    writer = _Writer(nodes, features)
    outs = [
        f"{out if is_identifier(out) else _quoted(out)} = {writer.text(node)}" for out, node in zip(names, nodes)
    ]
    is_flat_dict = isinstance(structure, dict) and all(
        inner is None and _structure.key_text(key) == key for key, inner in structure.items()
    )
    fields = [
        ("constant", writer.constants),
        ("let", writer.all_seeded(writer.lets)),
        ("out", writer.all_seeded(outs)),
        ("structure", None if is_flat_dict else _structure.to_json(structure)),
    ]
    return Stage(op, fields, name, line)


def _is_tensor(value):
    return isinstance(value, (Tensor, bool, int, float, str, bytes, np.generic, np.ndarray))


def _as_value(trace, value):
    """The node of what a function has returned: a text is a tensor there, of which the language makes one by a choice."""
    node = to_node(trace, value)
    if not isinstance(value, (str, bytes)):
        return node
    return Node(trace, "call", "where", [Node(trace, "text", "True"), node, node])


def _in_parts(nodes, features, line):
    from penstock import _python_calls

    return _python_calls.in_parts(nodes, features, line)


def prefix_stages(trace, line):
    """The stages in front of the map itself: those that parse."""
    if trace.parse_stage is None:
        return []
    node, features = trace.before
    stages, (node,), features = _in_parts([node], features, line)
    if not (node.kind == "feature" and features == ["value"]):
        stages.append(_map_stage([node], ["value"], None, features, None, line))
    return stages + [trace.parse_stage]


def type_stages(trace, node, line):
    """Stages whose element is one value, to ask for its type."""
    stale = trace.parse_stage is not None and node.number <= trace.before[0].number
    stages, nodes, features = _in_parts([node], trace.before[1] if stale else trace.features, line)
    return ([] if stale else prefix_stages(trace, line)) + [*stages, _map_stage(nodes, ["value"], None, features, None, line)]


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
        before, nodes, features = _in_parts(nodes, trace.features, line)
        stages += [*before, _map_stage(nodes, names, structure, features, name, line)]
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
    writer = _Writer([node], trace.features)
    fields = [
        ("constant", writer.constants),
        ("let", writer.all_seeded(writer.lets)),
        (field, writer.seeded(writer.text(node))),
        *more,
    ]
    return Stage(op, fields, name, line)


def expression(trace, value):
    """The text of a value that needs neither constants nor intermediate values."""
    writer = _Writer([to_node(trace, value)], trace.features)
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
    writer = _Writer(nodes + outs, trace.features)
    fields = [
        ("constant", writer.constants),
        ("let", writer.all_seeded(writer.lets)),
        ("initial_state", [message for _, message in states]),
        ("state", writer.all_seeded(f"{_quoted(path)} = {writer.text(node)}" for (path, _), node in zip(states, nodes))),
    ]
    if result is not None:
        names = [out if is_identifier(out) else _quoted(out) for out in _structure.paths(structure)]
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
