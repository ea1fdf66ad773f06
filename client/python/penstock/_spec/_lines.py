"""Lines of the user's code: which one has called the package, and which one an exception has come through."""

import os
import re
import sys

import numpy as np

from penstock import _errors

# NumPy's functions written in Python call ours back.
_FOLDERS = tuple(os.path.dirname(os.path.abspath(file)) + os.sep for file in (_errors.__file__, np.__file__))


class Line:
    """A place in the user's code."""

    __slots__ = ("file", "number")

    def __init__(self, file, number):
        self.file = file
        self.number = number

    def __str__(self):
        return f"{self.file}:{self.number}"

    def text(self):
        """What stands there, or "" where it is not known."""
        import linecache

        return linecache.getline(self.file, self.number).strip()


# Whose code is not the user's, where it calls ours.
PACKAGES = re.compile(
    r"[\\/](?:tensorflow|keras|optree|torch|torchvision|torchaudio|albumentations|jax|jaxlib|PIL|pandas|scipy|skimage|cv2|librosa)[\\/]"
)


def is_users(file):
    return not file.startswith(_FOLDERS) and not PACKAGES.search(file)


def user_line():
    """The innermost line on the stack that is neither of this package and of NumPy, nor of well-known other ones."""
    frame = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return Line("<unknown>", 0)
    return Line(frame.f_code.co_filename, frame.f_lineno)


# Python's own modules.
STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep


def line_of_error(error):
    """The innermost such line that an exception has come through, which is none of Python's own modules; or None."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        is_standard = file.startswith((STANDARD, "<frozen ")) and not re.search(r"[\\/](?:site|dist)-packages[\\/]", file)
        if is_users(file) and not is_standard:
            found = Line(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
