"""What cannot be part of a native pipeline: errors that name the line and say what to write instead."""

from penstock import _errors
from penstock._spec._lines import user_line


class TraceError(_errors.InvalidArgumentError, TypeError):
    """A function given to map does something that cannot be part of a native pipeline."""

    # By which tracebacks and pickles name it.
    __module__ = "penstock"

    def __init__(self, what, instead, line=None):
        line = line or user_line()
        text = line.text()
        super().__init__(f"{line}: {what}; {instead}" + (f"\n  {text}" if text else ""))

    def name_other_way(self, text):
        """Adds what else can be done, once."""
        if text not in self.args[0]:
            self.args = (f"{self.args[0]}\n  {text}", *self.args[1:])

    def __reduce__(self):
        # The text is made already, of a line that another process may not have.
        return _error_again, (type(self), *self.args)


def _error_again(kind, *args):
    return kind.__new__(kind, *args)


class TraceAttributeError(TraceError, AttributeError):
    """The same, of an attribute."""


class Captured(TraceError):
    """A function uses a value of another one's call: of one of these traces."""

    def __init__(self, *traces, what="a value of another function's call is used here", instead="pass it through the element"):
        super().__init__(what, instead)
        self.traces = traces

    def __reduce__(self):
        # Without the calls, which are over wherever it comes to.
        return _error_again, (TraceError, *self.args)


OUTSIDE = "do it after the loop, in the trainer, or before the data is written (penstock write)"


class FeatureError(KeyError):
    """KeyError, whose message is shown as it is."""

    def __str__(self):
        return self.args[0]


def listed(names):
    """The names with commas between them; of more than 16 the first ones, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - 16} more" if len(names) > 16 else ""
    return ", ".join(names[:16]) + more


def near(name, known):
    import difflib

    matches = difflib.get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(matches)}?" if matches else None
