import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import python_arrows

PACKAGE = pathlib.Path(__file__).parents[2] / "client" / "python" / "penstock"


def test_the_package_keeps_its_arrows():
    complaints, unused = python_arrows.check(PACKAGE)
    assert complaints == []
    assert unused == set(), "arrows that no module needs any more"


def test_arrows_point_to_what_stands_before():
    rooms = list(python_arrows.ALLOWED)
    for place, room in enumerate(rooms):
        assert python_arrows.ALLOWED[room] <= set(rooms[:place]), room


@pytest.mark.parametrize("room", [room for room in python_arrows.ALLOWED if room.startswith("_")])
def test_each_package_says_what_lives_there(room):
    text = (PACKAGE / room / "__init__.py").read_text()
    assert text.startswith('"""')
    assert len(text.split('"""')[1].split()) > 20


def plant(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return python_arrows.check(root)[0]


BELOW = {"__init__.py": "", "_errors.py": "", "_spec/_lines.py": "from penstock import _errors\n"}


def test_arrows_that_point_down_are_fine(tmp_path):
    assert plant(tmp_path, {**BELOW, "_tracing/_trace.py": "import math\nfrom penstock._spec import _lines\nfrom penstock._spec._lines import Line\n"}) == []


@pytest.mark.parametrize("name, text, words", [
    ("_errors.py", "from penstock._spec import _lines\n", "ground may not know _spec"),
    ("_errors.py", "from penstock._spec._lines import Line\n", "a circle: penstock._errors, penstock._spec._lines"),
    ("_spec/_lines.py", "from penstock._tracing import _trace\n", "_spec may not know _tracing"),
    ("_spec/_lines.py", "def f():\n    from penstock._tracing import _trace\n", "_spec may not know _tracing"),
    ("_spec/_lines.py", "def f():\n    with g():\n        import penstock._tracing._trace\n", "_spec may not know _tracing"),
    ("_spec/_lines.py", "import penstock\n", "_spec may not know penstock"),
    ("_spec/_stage.py", "from penstock._spec._text import Text\n", "a circle: penstock._spec._stage, penstock._spec._text"),
    ("_spec/_stage.py", "class A:\n    def f(self):\n        from penstock._spec import _text\n", "a circle: penstock._spec._stage, penstock._spec._text"),
    ("_other/_new.py", "", "penstock._other._new is in no room: ALLOWED lacks _other"),
    ("_new.py", "from penstock._dataset import Dataset\n", "ground may not know _dataset"),
])  # fmt: skip
def test_other_arrows_are_found(tmp_path, name, text, words):
    files = {
        **BELOW,
        "_spec/_text.py": "from penstock._spec import _stage\n",
        "_spec/_stage.py": "",
        "_tracing/_trace.py": "",
        "_dataset/__init__.py": "class Dataset:\n    pass\n",
    }
    assert any(words in complaint for complaint in plant(tmp_path, {**files, name: text}))


def test_what_a_type_checker_reads_is_no_arrow(tmp_path):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from penstock._dataset import Dataset\n"
    assert plant(tmp_path, {**BELOW, "_dataset/__init__.py": "", "_spec/_lines.py": text}) == []
