"""What users import, copy and build runs with the oldest Python that pyproject.toml promises: by vermin's tables of the language and its library."""

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("vermin")

_TREE = pathlib.Path(__file__).parents[2]
_OLDEST = re.search(r'^requires-python = ">=(\d\.\d+)"', (_TREE / "pyproject.toml").read_text(), re.MULTILINE).group(1)

_NEWER = {
    "tomllib": "import tomllib\n",
    "typing.Self": "from typing import Self\n",
    "typing.override": "from typing import override\n",
    "except*": "try:\n    pass\nexcept* ValueError:\n    pass\n",
    "ExceptionGroup": "ExceptionGroup('a', [ValueError()])\n",
    "itertools.batched": "import itertools\nitertools.batched([1], 1)\n",
    "enum.StrEnum": "import enum\nclass A(enum.StrEnum):\n    X = 'x'\n",
    "asyncio.TaskGroup": "import asyncio\nasyncio.TaskGroup()\n",
}


def violations(*paths):
    """What needs a newer Python, a line each; exit code 0 if there is none."""
    done = subprocess.run([sys.executable, "-c", "import vermin; vermin.main()", "--quiet", "--violations", f"--target={_OLDEST}-", "--eval-annotations",
                           "--feature", "union-types", "--no-tips", *map(str, paths)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_the_client_and_the_examples():
    code, text = violations(_TREE / "client/python", _TREE / "examples")
    assert code == 0, text


@pytest.mark.parametrize("name", sorted(_NEWER))
def test_what_is_newer_is_found(tmp_path, name):
    (tmp_path / "newer.py").write_text(_NEWER[name])
    code, text = violations(tmp_path)
    assert code != 0 and name in text, text
