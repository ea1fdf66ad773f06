"""What a worker says of errors: the user's own frames alone."""

import os

from penstock import _row

_HERE = os.path.dirname(os.path.abspath(__file__))
_MAX_FRAMES = 12


class Refused(Exception):
    """A result that is none; its text is the row's error."""


def _frames(error):
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if os.path.dirname(frame.filename) != _HERE]
    return "".join(traceback.format_list(frames[-_MAX_FRAMES:]))


def row_error(name, error):
    """The text of a row's failure; `name` is the function's."""
    if isinstance(error, Refused):
        return f"the Python function {name} returned {error}"
    if isinstance(error, _row.BadData):
        return f"{name}: {error}"
    try:
        text = str(error)
    except Exception:
        text = "an error that cannot be shown"
    return f"the Python function {name} raised {type(error).__name__}: {text}\n{_frames(error)}".rstrip()


def load_error(error):
    """Why a function cannot be loaded."""
    hint = ""
    if isinstance(error, ModuleNotFoundError):
        hint = "; workers have the sys.path of the process that made the dataset"
        if error.name == "cloudpickle":
            hint = '; the function travels by it, and workers do not find it: pip install "penstock[python]"'
    elif isinstance(error, AttributeError) and "__main__" in str(error):
        hint = '; functions of __main__ travel by cloudpickle: pip install "penstock[python]"'
    return f"{type(error).__name__}: {error}{hint}\n{_frames(error)}".rstrip()
