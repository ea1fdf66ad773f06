"""Paths of files as datasets are given them: made absolute, globs or not, or an element of the dataset around."""

import os

from penstock import _errors
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import StandIn

# Elements of an array that a function is called with one by one.
MAX_ELEMENTS = 64
MAX_BYTES = 1 << 20


class PartAsPath(TraceError):
    """A reader is given a path that is a part of the element, beside others."""

    def __init__(self, part):
        super().__init__(
            f"a reader of a path that is one part of the element, {part!r}",
            f"elements of from_tensor_slices, at most {MAX_ELEMENTS}, which it stands directly behind, may have such parts; of others: "
            "interleave over the paths alone, and one dataset for each label, joined by concatenate or choose_from_datasets; or "
            "map(lambda path, y: (penstock.io.read_file(path), y)), where a file is one element",
        )


# In tf.data an array of paths or a dataset of them may be given too.
_PATHS = "a path, a glob, or a list of them"


def files_of(filenames):
    """The paths and globs of an argument of tf.data's readers, made absolute."""
    if isinstance(filenames, StandIn):
        # The path that a function given to interleave or flat_map gets.
        if filenames._node.kind != "feature":
            raise TraceError(
                "a reader of a path that is computed",
                "the reader inside takes the path as it comes: compute the paths in Python, for from_tensor_slices; "
                "penstock.io.read_file(path) in a map reads a whole file whose path is computed",
            )
        if filenames._node.value != "value":
            raise PartAsPath(filenames._node.value)
        return None
    single = isinstance(filenames, (str, bytes, os.PathLike))
    names = [os.fsdecode(name) for name in ([filenames] if single else filenames)]
    if not names:
        raise ValueError(f"filenames are {_PATHS}; the list is empty")
    # The daemon's folder is another one than ours.
    names = [name if "://" in name else os.path.abspath(name) for name in names]
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise _errors.InvalidArgumentError(
                f"the path {os.fsencode(name)!r} is no text in UTF-8, as the paths in a spec are: rename the file, or take a glob that matches it"
            ) from None
    return names


def without_globs(path):
    """The glob that matches this path alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else f"\\{letter}" if letter in "{}" else letter for letter in path)
