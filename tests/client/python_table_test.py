"""docs/tf_data_table.md: it has TensorFlow's names, all of them, and what it calls the same is there."""

import importlib
import pathlib
import re

import pytest

import penstock

ROOT = pathlib.Path(__file__).parents[2]
STATUSES = ("same", "same with a note", "not meaningful here", "not built")
ROWS = [
    re.fullmatch(r"\| `([\w.]+)` \| (?:`([\w.]+)`|–) \| ([\w ]+) \| (.*?) ?\|", line).groups()
    for line in (ROOT / "docs/tf_data_table.md").read_text().splitlines()
    if line.startswith("| `")
]


def test_the_table_has_every_name_of_tensorflow_once():
    names = (ROOT / "tests/golden/tf_data_symbols.txt").read_text().split("\n")[1:-1]
    assert sorted(name for name, *_ in ROWS) == sorted(names)


@pytest.mark.parametrize("name, here, status, note", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_is_true(name, here, status, note):
    assert status in STATUSES
    # What is not just the same says why.
    assert status == "same" or note or status == "not built"
    if status not in ("same", "same with a note"):
        assert here is None
        return
    owner, found = "penstock", penstock
    for part in here.split(".")[1:]:
        owner = f"{owner}.{part}"
        if not hasattr(found, part):
            found = importlib.import_module(owner)
        else:
            found = getattr(found, part)
    assert found is not None


def test_an_unknown_name_would_be_found():
    with pytest.raises(AttributeError):
        penstock.Dataset.no_such_method
