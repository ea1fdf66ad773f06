"""mypy and pyright over a user's code, as they find the package where it is installed: `./dev test types`."""

import json
import os
import pathlib
import subprocess
import sys

import penstock
import pytest

PROGRAMS = pathlib.Path(sys.executable).parent
PACKAGES = pathlib.Path(penstock.__file__).resolve().parents[1]

GOOD = """\
import numpy as np
import penstock
import penstock.io
from penstock.image import central_crop, grayscale_to_rgb, random_flip_left_right
from penstock.torch import loader


def augment(x: dict[str, penstock.Tensor]) -> tuple[penstock.Tensor, penstock.Tensor]:
    image = penstock.image.decode_jpeg(x["bytes"], channels=3)
    image = penstock.image.resize(image, [224, 224], method=penstock.image.ResizeMethod.AREA)
    image = penstock.functions.normalize(random_flip_left_right(image), 0.5, 0.5)
    text = penstock.strings.lower(penstock.io.decode_base64(x["path"]))
    return grayscale_to_rgb(central_crop(image, 0.5)), penstock.io.decode_raw(text, np.int64)


dataset = penstock.FilesDataset("photos/*.jpg", class_from_folder=True).shuffle(100, seed=1).map(augment).batch(8)
length: int = len(dataset)
sentence: str = str(dataset.stats()["sentence"])
dataset.profile("trace.json", seconds=2).wait()
features = {"x": penstock.io.FixedLenFeature([3], penstock.float32)}
rows = penstock.TFRecordDataset("a.tfrecord").parse_example(features)
batches = penstock.torch.loader(rows)
keras = penstock.tensorflow.dataset(rows, label="x")
arrays = penstock.jax.loader(rows)
with penstock.attach("flowers", timeout=3.0) as served:
    socket: str = served.socket
try:
    next(iter(rows))
except penstock.DataLossError as error:
    print(error.code, error)
loader(rows)
"""

# Each line beside the name that must be complained of.
WRONG = [
    ("penstock.image.reszie", "reszie"),
    ("penstock.functions.tanhh", "tanhh"),
    ("penstock.io.decode_jpg", "decode_jpg"),
    ("penstock.strings.lowr", "lowr"),
    ("penstock.TFRecordDatset", "TFRecordDatset"),
    ("penstock.tensorflow.datset", "datset"),
    ("penstock.torch.loadr", "loadr"),
    ("penstock.Dataset.range(3).shufle(2)", "shufle"),
    ('penstock.image.resize(penstock.Dataset, [2, 2], methd="area")', "methd"),
    ('penstock.attach("x", timout=3)', "timout"),
]


def mypy(path):
    done = subprocess.run([PROGRAMS / "mypy", "--strict", "--no-error-summary", "--cache-dir", path.parent / "cache", path], capture_output=True, text=True, env=environment())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [line.split(":", 2) for line in done.stdout.splitlines() if ": error:" in line]
    return [(int(number), text) for file, number, text in found if file.endswith(path.name)]


def pyright(path):
    (path.parent / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(PACKAGES)], "reportMissingImports": "warning"}))
    done = subprocess.run([PROGRAMS / "basedpyright", "--outputjson", "--project", path.parent, path], capture_output=True, text=True, env=environment())
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [(one["range"]["start"]["line"] + 1, one["message"]) for one in found if one["severity"] == "error" and one["file"].endswith(path.name)]


def environment():
    return {**os.environ, "MYPYPATH": "", "PYTHONPATH": str(PACKAGES)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The checkers take what is installed for installed: the package, linked to where pip puts it."""
    import sysconfig

    link = pathlib.Path(sysconfig.get_path("purelib")) / "penstock"
    if link.is_symlink():
        link.unlink()
    link.symlink_to(PACKAGES / "penstock")
    yield tmp_path_factory.mktemp("checked")
    link.unlink()


@pytest.mark.parametrize("check", [mypy, pyright])
def test_good_code_is_found_good(site, check):
    path = site / "good.py"
    path.write_text(GOOD)
    assert check(path) == []


@pytest.mark.parametrize("check", [mypy, pyright])
def test_what_is_misspelt_is_found(site, check):
    path = site / "wrong.py"
    path.write_text("import penstock\n\n" + "".join(f"{line}\n" for line, _ in WRONG))
    found = check(path)
    for number, (line, name) in enumerate(WRONG, 3):
        assert any(at == number and name in text for at, text in found), (line, found)
