"""Stand-ins as text: people may see them, and data may not hold them."""

import sys

import numpy as np

from penstock._spec._lines import STANDARD, Line, is_users
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import calls

# Packages whose code shows values to people: debuggers, tests, logs.
_SHOWING = set(
    "IPython _pydev_bundle _pydevd_bundle _pytest bdb cmd code debugpy icecream inspect logging loguru pdb pluggy pprint ptpython pydevd pytest reprlib rich "
    "traceback unittest".split()
)


def refuse_text():
    """Refuses that a stand-in becomes text (str, repr, an f-string, %) in the user's code, where that would get into the data, once for all elements.
    Debuggers, logs and print may show it."""
    if not getattr(calls, "depth", 0):
        return
    frame = sys._getframe(2)
    module = frame.f_globals.get("__name__", "").partition(".")[0]
    if module in _SHOWING or not is_users(frame.f_code.co_filename):
        return
    callee = _callee(frame)
    if callee is print or getattr(callee, "__module__", None) and callee.__module__.startswith("numpy"):
        # NumPy writes it into an error's message.
        return
    raise TraceError(
        "a traced value as text (str, repr, an f-string, format, %), which would be its description, once for all elements",
        'penstock.strings.as_string(x) is the text of each element\'s number, x + "_" + y and penstock.strings.join put texts together; print, logging and '
        "breakpoint() show the stand-in",
        line=_line_outside_of_python(frame),
    )


def _line_outside_of_python(frame):
    """The innermost line on the stack that is none of Python's own modules: string.Template is one."""
    while frame.f_back is not None and frame.f_code.co_filename.startswith(STANDARD):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


# Names by which code makes texts.
_MAKES_TEXT = {"ascii", "format", "format_map", "join", "repr", "str"}


def _callee(frame):
    """The function that a frame calls now; None where it calls none, or nobody knows which."""
    import ast
    import builtins
    import dis
    import itertools
    import linecache

    code = frame.f_code
    if not dis.opname[code.co_code[frame.f_lasti]].startswith("CALL"):
        return None
    positions = code.co_positions() if hasattr(code, "co_positions") else ()
    line, end_line, column, end = next(itertools.islice(positions, frame.f_lasti // 2, None), (None,) * 4)
    if None in (line, end_line, column, end) or not linecache.getline(code.co_filename, line):
        # Python 3.10 does not tell where in its source it is, and some code has none.
        names = {*code.co_names}
        return None if names & _MAKES_TEXT else print if "print" in names else np.ndarray if names & {"np", "numpy"} else None
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(line, end_line + 1)]
    lines[-1] = lines[-1][:end]
    try:
        called = ast.parse(b"(" + b"".join(lines)[column:] + b")", mode="eval").body
    except SyntaxError:
        return None
    names, called = [], getattr(called, "func", None)
    while isinstance(called, ast.Attribute):
        names.append(called.attr)
        called = called.value
    if not isinstance(called, ast.Name):
        return None
    found = {**vars(builtins), **frame.f_globals, **frame.f_locals}.get(called.id)
    for name in reversed(names):
        found = getattr(found, name, None)
    return found
