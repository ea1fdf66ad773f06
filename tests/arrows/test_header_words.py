"""What the headers of the modules that all stand on say of themselves."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
HEADERS = sorted(path.relative_to(ROOT).as_posix() for top in ("base", "io") for path in (ROOT / top).rglob("*.h"))


def says_threads(text):
    """Whether the comment at its head says which threads may come."""
    head = text.partition("#pragma once")[0]
    return re.search(r"^// Threads: +\S", head, re.MULTILINE) is not None


def test_it_finds_a_header_that_does_not():
    assert says_threads("// Files.\n//\n// Threads:  one thread.\n#pragma once\n")
    for text in ("// Files.\n#pragma once\n", "// Files.\n#pragma once\n// Threads:  any.\nclass A;\n", "// A thread safe one.\n#pragma once\n"):
        assert not says_threads(text), text


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_says_which_threads_may_come(header):
    assert says_threads((ROOT / header).read_text()), 'a line "// Threads:  …" in front of #pragma once'


def test_there_are_headers():
    assert len(HEADERS) > 100
