"""Warnings that Python functions are not those that a position was saved with, though their versions are."""

from __future__ import annotations

import contextlib
import warnings

from penstock import _control, _errors
from penstock._running import _cursors
from penstock._spec._stage import Spec

# Of a Fingerprint (proto/penstock/v1/cursor.proto).
_CODE = 11


def _warn(whose, since, stacklevel):
    warnings.warn(
        f"the code of {whose} has changed since this {since} was saved: elements may be others from here on; "
        "give map(…, python=True) another version= where that matters",
        RuntimeWarning,
        stacklevel=stacklevel + 1,
    )


def of_state(dataset, codes, stacklevel):
    """Says so of a dataset and the codes of a state of it; None: the state has none."""
    if codes is None:
        return
    now = Spec(dataset._stages).codes
    changed = [stage for stage, (then, is_now) in enumerate(zip(codes, now)) if then != is_now]
    if changed and len(codes) == len(now):
        _warn("a Python function" if len(changed) == 1 else "Python functions", "state", stacklevel + 1)


def of_cursor(socket, pipeline, cursor, stacklevel):
    """Says so of a pipeline that has gone to a cursor. It asks the daemon, if the cursor is one of Python functions."""
    try:
        code = int.from_bytes(_cursors.fingerprint(_cursors.fields(cursor)).get(_CODE, b""), "little")
    except (IndexError, TypeError):
        return  # of a release that we do not know
    if code == 0:
        return
    now = 0
    with contextlib.suppress(_errors.Error):  # the daemon has gone, or is of another release
        now = int(_control.stats(socket, pipeline).get("python_code", 0))
    if now not in (0, code):
        _warn(f"Python functions of pipeline {pipeline}", "cursor", stacklevel + 1)
