"""The position of a loop as one text, so that every state has the same keys.

A checkpoint that is read into the state of a fresh loader, as torch.distributed.checkpoint does, gives back what that has keys for and nothing else. The text
is Python's notation of dicts, lists, numbers, texts and bytes; reading it runs nothing. A sampler's or an iterable's own state may be more than that, and
is a pickle then, which runs as any pickle in a checkpoint does.
"""

import ast
import pickle

from penstock import _errors


def written(position):
    """The text of a dict of what has a notation."""
    return repr(position)


def read(text):
    """The dict of a text.

    Raises:
      InvalidArgumentError: it is no such text.
    """
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise _errors.InvalidArgumentError(f"the position in the state cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise _errors.InvalidArgumentError(f"the position in the state is a {type(found).__name__}, not a dict")
    return found


def packed(state):
    """A state of somebody else's as what has a notation: ("plain", itself) or ("pickle", bytes)."""
    try:
        if ast.literal_eval(repr(state)) == state:
            return "plain", state
    except Exception:  # whatever comparing its parts raises: they have no notation
        pass
    return "pickle", pickle.dumps(state, 5)


def unpacked(packed_state):
    kind, content = packed_state
    return pickle.loads(content) if kind == "pickle" else content
