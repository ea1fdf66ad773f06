"""What docker/Dockerfile copies into its build holds all that is built there (.dockerignore lets folders in by name)."""

import pathlib
import re

_TREE = pathlib.Path(__file__).parents[2]
_SOURCES = (".h", ".cc", ".hpp", ".in", ".txt", ".cu")


def folders_let_in():
    lines = (_TREE / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    return {line[1:] for line in lines[1:] if line.startswith("!") and (_TREE / line[1:]).is_dir()}


def test_what_is_included_is_let_in():
    let_in = folders_let_in()
    assert {"server", "ring"} <= let_in
    missing = set()
    for folder in let_in:
        for path in (_TREE / folder).rglob("*"):
            if path.suffix not in _SOURCES or not path.is_file():
                continue
            for top in re.findall(r'#include "(\w+)/', path.read_text()):
                if (_TREE / top).is_dir() and top not in let_in:
                    missing.add((top, str(path.relative_to(_TREE))))
    assert not missing


def test_what_cmake_goes_into_is_let_in():
    folders = re.search(r"foreach\(folder ([\w ]+)\)", (_TREE / "CMakeLists.txt").read_text())[1].split()
    assert set(folders) - folders_let_in() == {"tests", "bench"}
