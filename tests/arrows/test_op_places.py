"""An op stands at every place that it needs, and a test says which one it is not at: CONTRIBUTING.md, "Adding an op"."""

import collections
import pathlib
import re
import shutil

import pytest

ROOT = pathlib.Path(__file__).parents[2]

# Ops that the table of contracts cannot run, as contract_test.cc says.
WITHOUT_CONTRACT = {"save", "python", "from_generator"}


def fields_of(root):
    """Pairs of an op's name and the number of its field in Stage."""
    proto = (root / "proto/penstock/v1/ops.proto").read_text()
    stage = re.search(r"^message Stage \{(.*?)^\}", proto, re.DOTALL | re.MULTILINE)[1]
    return [(name, int(number)) for name, number in re.findall(r"^\s*\w+ (\w+) = (\d+);", stage[stage.index("oneof op") :], re.MULTILINE)]


def text_of(folder, suffix):
    return "\n".join(path.read_text() for path in sorted(folder.rglob(f"*{suffix}")))


def missing(root):
    """A line for each place at which an op is missing."""
    python = text_of(root / "client/python/penstock", ".py")
    # Texts that the formatter has cut are one again.
    contracts = re.sub(r'"\s*\n\s*"', "", text_of(root / "tests/ops", ".h"))
    docs = text_of(root / "docs", ".md")
    failing = (root / "tests/ops/failing_elements_test.cc").read_text()
    counts = (root / "tests/client/python_cardinality_test.py").read_text()
    fields = fields_of(root)
    numbers = collections.Counter(number for _, number in fields)
    found = []
    for name, number in fields:
        if numbers[number] > 1:
            found.append(f"{name}: another op has the number {number} in proto/penstock/v1/ops.proto, too; the next one is {max(numbers) + 1}")
        source = root / f"server/ops/{name}.cc"
        if not source.exists():
            found.append(f"{name}: there is no server/ops/{name}.cc")
        if f'"{name}"' not in python:
            found.append(f'{name}: no method of penstock.Dataset makes "{name}" (client/python/penstock/_dataset/)')
        if name not in WITHOUT_CONTRACT and not re.search(rf"\b{name} \{{", contracts):
            found.append(f"{name}: no pipeline of tests/ops/contract_pipelines.h has it")
        # As failing_elements_test.cc: what is a source has no elements before it, and ignore_errors is what the others are tried with.
        is_tried = f'"{name}"' in failing or source.exists() and re.search(r"OpPlace::kSource|\.reads_ignored\b", source.read_text())
        if not is_tried:
            found.append(f"{name}: tests/ops/failing_elements_test.cc does not say whether it counts elements that fail")
        if f'"{name}"' not in counts:
            found.append(f"{name}: no dataset of tests/client/python_cardinality_test.py has it, and OTHERS there does not name it")
        if not re.search(rf"\b{name}\b", docs):
            found.append(f"{name}: no page of docs/ names it; what is not in tf.data stands in docs/python.md")
    return found


def test_every_op_stands_everywhere():
    assert len(fields_of(ROOT)) > 40
    lines = missing(ROOT)
    assert not lines, "\n".join(["places at which an op is missing:", *lines])


@pytest.fixture
def tree(tmp_path):
    """A copy of the places, with an op that is at none of them but the first."""
    places = (("client/python/penstock", "**/*.py"), ("tests/ops", "*.h"), ("tests/ops", "failing_elements_test.cc"), ("tests/client", "python_cardinality_test.py"),
        ("docs", "**/*.md"), ("proto/penstock/v1", "ops.proto"), ("server/ops", "*.cc"))  # fmt: skip
    for folder, pattern in places:
        for path in (ROOT / folder).glob(pattern):
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    proto = tmp_path / "proto/penstock/v1/ops.proto"
    proto.write_text(proto.read_text().replace("    Take take = 5;\n", "    Take take = 5;\n    TakeNone take_none = 5;\n"))
    return tmp_path


def test_it_names_the_places_that_are_missing(tree):
    lines = [line for line in missing(tree) if line not in missing(ROOT)]
    assert [line.split(":")[0] for line in lines] == ["take"] + ["take_none"] * 7
    assert lines[0].startswith("take: another op has the number 5") and lines[0].endswith(f"the next one is {max(number for _, number in fields_of(ROOT)) + 1}")
    for line, place in zip(lines[2:], ("server/ops/take_none.cc", "_dataset/", "contract_pipelines.h", "failing_elements_test.cc", "python_cardinality_test.py", "docs/python.md")):
        assert place in line
