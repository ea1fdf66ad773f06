"""The table of faults in docs/reliability.md: each test that it points to is there, and says which fault it provokes."""

import pathlib
import re

import pytest

_TREE = pathlib.Path(__file__).parents[2]
_TESTS = _TREE / "tests"
# Not built; the table says so.
_WITHOUT_TEST = {"66"}
# "fault 5", "Fault 21a:", "faults 1 and 2", "faults 35, 36 and 61", "faults 11 to 19", test_fault_5_…, test_faults_3_4_and_6_….
_NAMED = re.compile(r"(?<![a-z])faults?[ _](\d+[a-d]?(?:(?:, | and | to |_and_|_to_|_)\d+[a-d]?)*)(?![\da-z])", re.IGNORECASE)


def rows():
    """The numbers of each row of the table, and where it is shown."""
    text = (_TREE / "docs/reliability.md").read_text().split("\n## Faults\n", 1)[1].split("\n## ", 1)[0]
    numbers = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("|") or len(cells) < 3 or cells[0] in ("#", "---"):
            continue
        if cells[0]:
            numbers = cells[0].split(", ")
        places = [place for place in re.findall(r"`([^`]+)`", cells[3])] if len(cells) > 3 else []
        yield numbers, ["e2e/test_faults.py" if place == "e2e" else place for place in places]


def named(text):
    """The numbers of the faults that a test's source names."""
    found = set()
    for match in _NAMED.finditer(text):
        parts = re.split(r"(, | and | to |_and_|_to_|_)", match.group(1))
        found.add(parts[0])
        for link, number in zip(parts[1::2], parts[2::2]):
            if link.strip(" _") == "to":
                found |= {str(between) for between in range(int(parts[0]), int(number) + 1)}
            found.add(number)
    return found


_ROWS = list(rows())


def test_the_table_is_read():
    numbers = [int(re.sub(r"\D", "", number)) for row, _ in _ROWS for number in row]
    assert set(numbers) == set(range(1, 70))
    assert {number for row, places in _ROWS if not places for number in row} <= _WITHOUT_TEST


@pytest.mark.parametrize("text, numbers", [
    ("fault 5: a record", {"5"}), ("def test_fault_48_killed", {"48"}), ("Faults 35, 36 and 61.", {"35", "36", "61"}),
    ("faults 11 to 13 of", {"11", "12", "13"}), ("test_faults_1_and_2_bits", {"1", "2"}), ("test_faults_3_4_6_and_17_x", {"3", "4", "6", "17"}),
    ("fault 21a: gif", {"21a"}), ("fault 21c", {"21c"}), ("a fault of 2^62", set()), ("default 5", set()),
])
def test_numbers_are_found_as_tests_write_them(text, numbers):
    assert named(text) == numbers


@pytest.mark.parametrize("number, place", sorted({(number, place) for row, places in _ROWS for number in row for place in places}))
def test_a_row_points_to_tests_that_name_its_fault(number, place):
    path = _TESTS / place
    assert path.exists(), f"docs/reliability.md, fault {number}: no tests/{place}"
    files = sorted(path.rglob("*.cc")) + sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert number in set().union(*(named(file.read_text()) for file in files)), f"tests/{place} does not say that it provokes fault {number}"


def cases():
    """Of the table of Python functions, file and name of each test."""
    text = (_TREE / "docs/reliability.md").read_text().split("\n## What a Python function may do\n", 1)[1].split("\n## ", 1)[0]
    for line in text.splitlines():
        cells = line.strip().strip("|").split(" | ")
        if line.startswith("|") and len(cells) == 3 and cells[2].strip() != "test":
            for shown in cells[2].split("; "):
                place, _, name = shown.strip().partition(": ")
                yield place.strip("`"), name.strip("`")


_CASES = sorted(set(cases()))


def test_each_case_of_a_python_function_has_a_test():
    assert len(_CASES) > 30
    for place, name in _CASES:
        # Long names of C++ go on in the next line.
        text = re.sub(r'"\s+"', "", (_TESTS / place).read_text())
        assert (f'TEST_CASE("{name}"' if place.endswith(".cc") else f"def {name}(") in re.sub(r"TEST_CASE\(\s+", "TEST_CASE(", text), f"no {name} in tests/{place}"


def test_no_test_names_a_fault_without_a_row():
    known = {number for row, _ in _ROWS for number in row}
    for path in [*_TESTS.rglob("*.py"), *_TESTS.rglob("*_test.cc"), *_TESTS.rglob("*_fuzz.cc")]:
        if path.name != pathlib.Path(__file__).name:
            assert named(path.read_text()) <= known, path
