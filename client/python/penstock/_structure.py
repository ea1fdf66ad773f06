"""Elements are nests of dicts and tuples; here None stands for a tensor in one.

A tensor is known by its path, the keys on the way to it with slashes between: `image`, `0`, `1/x`; a
lone tensor is `value`. The daemon keeps a nest as JSON (ring/layout.h).
"""


def paths(structure, prefix=""):
    """The paths of all tensors, in order."""
    if structure is None:
        return [prefix or "value"]
    items = structure.items() if isinstance(structure, dict) else enumerate(structure)
    found = []
    for key, inner in items:
        found += paths(inner, f"{prefix}/{key}" if prefix else str(key))
    return found


def fill(structure, tensors, make_dict=dict):
    """The nest with its tensors, taken from an iterator in order, in the place of None."""
    if structure is None:
        return next(tensors)
    if isinstance(structure, dict):
        return make_dict((key, fill(inner, tensors, make_dict)) for key, inner in structure.items())
    return tuple(fill(inner, tensors, make_dict) for inner in structure)


def in_order(structure, found, values):
    """The tensors `values` of a nest of structure `found`, whose dicts may have another order of keys, in that of `structure`."""
    by_path = dict(zip(paths(found), values))
    return [by_path[path] for path in paths(structure)]


def flatten(nest, is_tensor, what):
    """The structure of a nest and its tensors in order.

    Raises:
      TypeError: something is neither a dict, a tuple nor, by `is_tensor`, a tensor; `what` says whose
        nest it is.
    """
    tensors = []
    structure = _flatten(nest, "", is_tensor, what, tensors)
    if not tensors:
        raise TypeError(f"{what} holds no tensor")
    return structure, tensors


# Not inside of flatten: a function that calls itself keeps what it sees until the next garbage collection, and with a traced
# tensor the dataset and its arrays.
def _flatten(node, path, is_tensor, what, tensors):
    if is_tensor(node):
        tensors.append(node)
        return None
    if isinstance(node, dict):
        for key in node:
            if not isinstance(key, str) or not key or "/" in key and isinstance(node[key], (dict, tuple)):
                raise TypeError(f"{what} has a key that is no name: {key!r}")
        return {key: _flatten(inner, f"{path}[{key!r}]", is_tensor, what, tensors) for key, inner in node.items()}
    if isinstance(node, tuple):
        return tuple(_flatten(inner, f"{path}[{i}]", is_tensor, what, tensors) for i, inner in enumerate(node))
    hint = ""
    if isinstance(node, list):
        hint = "; tuples keep tensors apart, np.stack joins them"
    elif node is None:
        hint = "; does the function lack a return?"
    raise TypeError(f"{what}{path} is of type {type(node).__name__}, not a tensor, a dict or a tuple{hint}")


def to_json(structure):
    import json

    return json.dumps(structure, separators=(",", ":"), ensure_ascii=False)


def from_json(text):
    """The nest that the daemon calls by `text`; arrays are tuples."""

    import json

    def convert(node):
        if isinstance(node, list):
            return tuple(convert(inner) for inner in node)
        if isinstance(node, dict):
            return {key: convert(inner) for key, inner in node.items()}
        return node

    return convert(json.loads(text))
