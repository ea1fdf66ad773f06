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
    "config/pipelines/flowers_augmented.textproto": {"image": ("float32", "(?, 192, 192, 3)"), "label": ("int64", "(?,)")},
    "config/pipelines/folders.textproto": {"image": ("float32", "(?, 160, 160, 3)"), "label": ("int64", "(?,)")},
    "config/pipelines/imagenet.textproto": {"image": ("float32", "(?, 224, 224, 3)"), "label": ("int64", "(?,)")},
    "config/pipelines/segmentation.textproto": {"image": ("float32", "(?, 512, 512, 3)"), "label": ("float32", "(?, 512, 512, 12)")},
    "config/pipelines/segmentation_records.textproto": {"image": ("float32", "(?, 512, 512, 3)"),
                                                        "label": ("float32", "(?, 512, 512, 12)")},
    "config/pipelines/segmentation_uint8.textproto": {"image": ("uint8", "(?, 512, 512, 3)"), "label": ("uint8", "(?, 512, 512)")},
    "examples/raw.textproto": {"d": ("uint8", "(?, 194)"), "s": ("int64", "(?,)")},
}


def validate(spec, files, folder):
    stages = ["files=", "files_2="] if reads_pairs(spec) else [""]
    options = [word for stage in stages for word in ("--files", stage + files)]
    return subprocess.run([PENSTOCK, "validate", ROOT / spec, *options], cwd=folder, capture_output=True, text=True)


def reads_pairs(spec):
    return "input {" in (ROOT / spec).read_text()


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
    source = "files" if "folders" in spec or reads_pairs(spec) else "tfrecord"
    assert f"NOT_FOUND: stage {source}" in done.stderr
    assert pattern in done.stderr
