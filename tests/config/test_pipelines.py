"""Every spec of the project passes `penstock validate` and promises what its comment says."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK_BIN", ROOT / "build/release/bin")).resolve() / "penstock"

CHESS = {"board": "(512, 8, 8, 24)", "flags": "(512, 10)", "score": "(512,)"}
ELEMENTS = {
    "config/pipelines/chess.textproto": {name: ("float64", shape) for name, shape in CHESS.items()},
    "config/pipelines/chess_float32.textproto": {name: ("float32", shape) for name, shape in CHESS.items()},
    "config/pipelines/flowers.textproto": {"image": ("float32", "(?, 192, 192, 3)"), "label": ("int64", "(?,)")},
    "config/pipelines/folders.textproto": {"image": ("float32", "(?, 160, 160, 3)"), "label": ("int64", "(?,)")},
    "examples/raw.textproto": {"d": ("uint8", "(?, 194)"), "s": ("int64", "(?,)")},
}


def validate(spec, files, folder):
    return subprocess.run([PENSTOCK, "validate", ROOT / spec, "--files", files], cwd=folder, capture_output=True, text=True)


def test_no_spec_is_forgotten():
    specs = {path.relative_to(ROOT).as_posix() for folder in ("config/pipelines", "examples") for path in (ROOT / folder).glob("*.textproto")}
    assert specs == set(ELEMENTS)


@pytest.mark.parametrize("spec", ELEMENTS)
def test_a_spec_promises_its_element(spec, tmp_path):
    # Validating opens the files and reads no record: any will do.
    subprocess.run([PENSTOCK, "make-sample", "chess", "--records", "8", "--out", tmp_path], check=True)
    done = validate(spec, "*.tfrecord", tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines() if not line.startswith("cursor: ")]
    assert {name: (dtype, shape) for name, dtype, shape in lines} == ELEMENTS[spec]


@pytest.mark.parametrize("spec", ELEMENTS)
@pytest.mark.parametrize("pattern", ["*.tfrecord", "no/such/folder/*.tfrecord"])
def test_files_that_are_not_there_are_named(spec, pattern, tmp_path):
    done = validate(spec, pattern, tmp_path)
    assert done.returncode == 1
    source = "files" if "folders" in spec else "tfrecord"
    assert f"NOT_FOUND: stage {source}" in done.stderr
    assert pattern in done.stderr
