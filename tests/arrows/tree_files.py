"""The files of the tree, without git, which a machine that only tests need not have."""

import os
import pathlib

ROOT = pathlib.Path(__file__).parents[2]


def tree_files(*suffixes):
    """Yields the paths, relative to the root and in order, of the files with one of these suffixes. What is built and hidden folders are left out."""
    for folder, folders, files in os.walk(ROOT):
        at = pathlib.Path(folder).relative_to(ROOT)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__" and (at.parts or name != "build"))
        yield from ((at / name).as_posix() for name in sorted(files) if name.endswith(suffixes))
