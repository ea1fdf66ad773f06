"""The cut of a traced function that calls Python functions.

What does not depend on a call is computed natively in front of it, and what its results go into behind it:

    lambda x, y: (numpy_function(f, [x + 1], float32) * 2, y)

    map: v0 = x + 1, v1 = y    python: f of v0, keeps v1, gives r0    map: 0 = r0 * 2, 1 = v1

A result of a call is a Node of kind "made". Its value is the call and the number of the result; of the call, this module takes:

  inputs: the Nodes of its arguments.
  results: the Nodes of its results.
  stage(inputs, kept, results): the stage that makes it, of features of these names.
"""

from penstock._registry import PARAMETERS
from penstock._tracing._expressions import map_stage
from penstock._tracing._trace import Node, StandIn


def has_calls(trace, value):
    """Whether a value that a traced function returns, or what it is made of, comes from a Python function."""
    return isinstance(value, StandIn) and value._trace is trace and bool(_calls_of([value._node]))


def depends_on_call(node):
    """Whether a value is made of what a Python function gives."""
    return bool(_calls_of([node]))


def in_parts(nodes, features, line):
    """The stages in front of the last part of a map, and that part's nodes and names of features.

    Args:
      nodes: what the whole of it gives.
      features: of the element.
    """
    calls = _calls_of(nodes)
    if not calls:
        return [], nodes, features
    stages, copies = [], Copies()
    for i, call in enumerate(calls):
        later = [*nodes, *(node for behind in calls[i + 1 :] for node in behind.inputs)]
        kept = _known(later, set(calls[:i]))
        mapped, names = _map(copies, [*call.inputs, *kept], features, line)
        results = [f"r{i}" for i in range(len(call.results))]
        stages += [mapped, call.stage([names[node.number] for node in call.inputs], [names[node.number] for node in kept], results)]
        features = [*(names[node.number] for node in kept), *results]
        copies = Copies({**{node.number: names[node.number] for node in kept}, **{node.number: name for node, name in zip(call.results, results)}})
    return stages, copies.of(nodes), features


def in_front_of(inputs, features, line):
    """The stages that compute a call's arguments, v0, v1 and so on."""
    stages, nodes, features = in_parts(inputs, features, line)
    names = [f"v{i}" for i in range(len(nodes))]
    return [*stages, map_stage(nodes, names, dict.fromkeys(names), features, None, line)]


def _map(copies, nodes, features, line):
    """A map of these nodes, and its names of them by number."""
    nodes = list({node.number: node for node in nodes}.values())
    names = {node.number: f"v{i}" for i, node in enumerate(nodes)}
    return map_stage(copies.of(nodes), list(names.values()), dict.fromkeys(names.values()), features, None, line), names


def _reached(nodes):
    """All nodes that these are made of, and themselves, inputs first."""
    found, waiting = {}, list(nodes)
    while waiting:
        node = waiting.pop()
        if node.number not in found:
            found[node.number] = node
            waiting.extend(node.inputs)
    return [found[number] for number in sorted(found)]


def _calls_of(nodes):
    """The calls that these nodes depend on, in their order."""
    return list(dict.fromkeys(node.value[0] for node in _reached(nodes) if node.kind == "made"))


def _known(nodes, done):
    """What of these nodes, and of what they are made of, can be computed when those calls are done: as little as there is of it. Constants are none of it."""
    constant, known = {}, {}
    for node in _reached(nodes):
        constant[node.number] = node.kind in ("text", "array") or (
            node.kind in ("call", "subscript") and all(constant[inner.number] for inner in node.inputs) and not _draws(node)
        )
        known[node.number] = (node.kind != "made" or node.value[0] in done) and all(known[inner.number] for inner in node.inputs)
    found, seen, waiting = {}, set(), list(nodes)
    while waiting:
        node = waiting.pop()
        if node.number in seen or constant[node.number]:
            continue
        seen.add(node.number)
        if known[node.number]:
            found[node.number] = node
        elif node.kind != "made":
            waiting.extend(node.inputs)
    return [found[number] for number in sorted(found)]


def _draws(node):
    return node.kind == "call" and ("seed", None) in PARAMETERS.get(node.value, [])


class Copies:
    """Nodes over other features.

    Args:
      features: names of those that are features there, by number.
    """

    def __init__(self, features=None):
        self.num_nodes = 0  # as of a Trace
        self._features = features or {}

    def of(self, nodes):
        needed, waiting = {}, list(nodes)
        while waiting:
            node = waiting.pop()
            if node.number not in needed:
                needed[node.number] = node
                if node.number not in self._features:
                    waiting.extend(node.inputs)
        copies = {}
        for number in sorted(needed):
            node = needed[number]
            if number in self._features:
                copies[number] = Node(self, "feature", self._features[number])
            else:
                copies[number] = Node(self, node.kind, node.value, [copies[inner.number] for inner in node.inputs], node.keywords)
        return [copies[node.number] for node in nodes]
