"""The table of faults of files at addresses names tests that are there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
_TESTS = ROOT / "tests"
_ROW = re.compile(r"^\| (?P<fault>.+) \| `(?P<file>[^`]+)` \| `(?P<name>[^`]+)` \|$")


def rows():
    lines = (_TESTS / "remote" / "README.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| ") and not line.startswith(("| fault |", "|---"))]
    return [(line, _ROW.match(line)) for line in table]


def names_in(path):
    """Of pytest's functions, and of Catch's cases, whose texts may be cut into several."""
    text = path.read_text()
    if path.suffix == ".py":
        return set(re.findall(r"^def (test_\w+)\(", text, re.MULTILINE))
    cases = re.findall(r'^TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', text, re.MULTILINE)
    return {"".join(re.findall(r'"((?:[^"\\]|\\.)*)"', case)) for case in cases}


def test_each_fault_of_files_at_addresses_has_a_test_that_is_there():
    found = rows()
    assert len(found) > 40
    for line, row in found:
        assert row, line
        file = row["file"]
        path = _TESTS / file if "/" in file else _TESTS / "remote" / file
        assert path.is_file(), line
        assert row["name"] in names_in(path), line
