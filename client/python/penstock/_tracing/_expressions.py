"""The expressions of a stage: a traced graph as text."""

import os
import re

import numpy as np

from penstock import _structure
from penstock._registry import FUNCTIONS, PARAMETERS
from penstock._spec import _textproto
from penstock._spec._stage import Seed, SeededText, Stage
from penstock._tracing._constants import is_identifier, quoted
from penstock._tracing._language import SYMBOLS
from penstock._tracing._refusals import TraceError

# Deeper texts are cut by a `let`; the daemon refuses them from 200 levels on.
_MAX_DEPTH = 40
_PREFIXES = {"negative": "-", "invert": "~"}
# What stands in a text where a seed belongs, which no text of the user's holds.
_SEED_MARK = os.urandom(16).hex()


class Writer:
    """Writes the expressions of one map."""

    def __init__(self, outputs, features):
        self.constants = []
        self.lets = []
        self._taken = {*features, *FUNCTIONS}
        self._features = {
            name: name if is_identifier(name) and name not in FUNCTIONS else f"feature({quoted(name)})" for name in features
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
        known = PARAMETERS.get(node.value, [])
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
        if node.value in SYMBOLS and len(inputs) == 2 and not node.keywords:
            return f"({inputs[0]} {SYMBOLS[node.value]} {inputs[1]})", depth
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
    from penstock._spec import _arrays

    return _arrays.constant_strings(array)


def _constant_values(array, is_int):
    """The field with an array's values, or with the file that has them."""
    from penstock._spec import _arrays

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


def map_stage(nodes, names, structure, features, name, line, op="map"):
    """A stage of map, of the Nodes that it gives and their names."""
    writer = Writer(nodes, features)
    outs = [
        f"{out if is_identifier(out) else quoted(out)} = {writer.text(node)}" for out, node in zip(names, nodes)
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
