"""Elements are nests of dicts and tuples; here None stands for a tensor in one.

A tensor is known by its path, the keys on the way to it with slashes between: `image`, `0`, `1/x`; a
lone tensor is `value`. The daemon keeps a nest as JSON (ring/layout.h). Keys that are no names, which TensorFlow takes too, stand there and in
paths behind a `#` as Python writes them: `#3`, `#(1, 'a')`, `#''`.
"""


def key_text(key):
    """A dict's key as a name."""
    return key if isinstance(key, str) and key and key_of(key) == key else f"#{key!r}"


def key_of(text):
    """The key that a name stands for."""
    if not text.startswith("#"):
        return text
    import ast

    try:
        key = ast.literal_eval(text[1:])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return key if _is_key(key) and f"#{key!r}" == text else text


def _is_key(key):
    return type(key) in (str, bytes, int, float, bool, type(None)) or type(key) is tuple and all(map(_is_key, key))


def paths(structure, prefix=""):
    """The paths of all tensors, in order."""
    if structure is None:
        return [prefix or "value"]
    items = map_keys(structure).items() if isinstance(structure, dict) else enumerate(structure)
    found = []
    for key, inner in items:
        found += paths(inner, f"{prefix}/{key}" if prefix else str(key))
    return found


def map_keys(node):
    """A dict with its keys as names."""
    return {key_text(key): inner for key, inner in node.items()}


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
            if not _is_key(key):
                raise TypeError(f"{what} has a key of type {type(key).__name__}, {key!r}; keys are texts, numbers, None, or tuples of these")
            if "/" in key_text(key) and isinstance(node[key], (dict, tuple)):
                raise TypeError(f"{what} has a slash in a key that more keys follow, {key!r}; paths have slashes between the keys")
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

    def convert(node):
        if isinstance(node, dict):
            return {key: convert(inner) for key, inner in map_keys(node).items()}
        return None if node is None else [convert(inner) for inner in node]

    return json.dumps(convert(structure), separators=(",", ":"), ensure_ascii=False)


def from_json(text):
    """The nest that the daemon calls by `text`; arrays are tuples."""

    def convert(node):
        if isinstance(node, list):
            return tuple(convert(inner) for inner in node)
        if isinstance(node, dict):
            return {key: convert(inner) for key, inner in node.items()}
        return node

    return convert(nodes_from_json(text))


def nodes_from_json(text):
    """The same as JSON has it, with lists, but for the keys, which are an element's."""
    import json

    return json.loads(text, object_pairs_hook=lambda pairs: {key_of(key): inner for key, inner in pairs})
