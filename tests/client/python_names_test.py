"""What editors and people see of the package: names that complete, signatures, words for errors, and what stands for other packages' names."""

import inspect
import subprocess
import sys

import numpy as np
import penstock
import pytest
from penstock._tracing import _torch_names

MODULES = [penstock, penstock.audio, penstock.experimental, penstock.functions, penstock.image, penstock.io, penstock.strings]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_name_that_completes_is_there(module):
    names = dir(module)
    assert names == sorted(set(names)) and not [name for name in names if name.startswith("_") and name != "__version__"]
    # Those of a framework come with it.
    lazy = {"jax", "ray", "tensorflow", "torch"} if module is penstock else set()
    for name in names:
        if name not in lazy:
            getattr(module, name)


def test_names_that_are_looked_up_complete():
    assert len(dir(penstock.image)) > 70 and len(dir(penstock.functions)) > 200
    assert {"decode_jpeg", "resize", "random_flip_left_right", "transpose", "crop_and_resize"} <= set(dir(penstock.image))
    assert {"decode_raw", "decode_png", "encode_jpeg", "parse_tensor"} <= set(dir(penstock.io))
    assert {"cuda", "jax", "ray", "tensorflow", "torch"} <= set(dir(penstock))


def test_frameworks_are_named_without_being_imported():
    code = "import sys, penstock; dir(penstock); assert not {'torch', 'jax', 'ray', 'tensorflow', 'penstock.torch'} & set(sys.modules); print(penstock.cuda.__name__)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "penstock.cuda\n"


def test_functions_have_signatures():
    resize = penstock.image.resize
    assert str(inspect.signature(resize)).startswith("(image, size, method='bilinear', preserve_aspect_ratio=False, ")
    assert resize.__module__ == "penstock.image" and resize.__name__ == "resize" and resize is penstock.image.resize
    assert penstock.image.transpose.__name__ == "transpose"
    assert str(inspect.signature(penstock.functions.tanh)) == "(x)"
    assert "On traced values" in inspect.getdoc(resize)


def test_errors_say_what_they_are():
    kinds = {kind for kind in vars(penstock).values() if isinstance(kind, type) and issubclass(kind, penstock.Error)}
    assert len(kinds) > 16
    for kind in kinds:
        assert (vars(kind)["__doc__"] or "").strip().endswith("."), kind


@pytest.mark.parametrize(
    "name, instead",
    [
        ("RandomHorizontalFlip", "penstock.image.random_flip_left_right"),
        ("RandomResizedCrop", "penstock.image.random_resized_crop"),
        ("ToTensor", "astype"),
        ("hflip", "flip_left_right"),
        ("HorizontalFlip", "random_flip_left_right"),
        ("CoarseDropout", "random_erasing"),
        ("Compose", "one function given to map"),
        ("ColorJitter", "penstock.image.color_jitter"),
        ("reszie", "did you mean resize"),
    ],
)
def test_names_of_torchvision_and_albumentations_are_known(name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(penstock.image, name)


@pytest.mark.parametrize("name, instead", [("DataLoader", "penstock.torch.DataLoader"), ("DistributedSampler", "share="), ("transforms", "penstock.image"), ("Normalize", "penstock.image.normalize")])
def test_names_of_torch_are_known(name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(penstock, name)


def test_what_stands_for_them_is_there():
    """Each name of this package that an advice has."""
    import re

    for advice in [*_torch_names._PLAIN_IMAGES.values(), *_torch_names._PLAIN_PACKAGE.values()]:
        for module, name in re.findall(r"penstock\.(image|functions)\.(\w+)", advice):
            assert hasattr(getattr(penstock, module), name), advice
        for name in re.findall(r"Dataset\.(\w+)", advice):
            assert hasattr(penstock.Dataset, name), advice


def test_datasets_and_loaders_show_themselves():
    dataset = penstock.Dataset.from_tensor_slices({"x": np.arange(6), "<b>": np.zeros((6, 2), np.float32)}).batch(2, drop_remainder=True)
    iterator = iter(dataset)
    assert repr(iterator) == f"<DatasetIterator of {dataset!r}, not started>"
    next(iterator)
    assert repr(iterator).endswith(", at step 0>")
    iterator.close()
    assert repr(iterator).endswith(", closed>")
    html = dataset._repr_html_()
    assert "<td>batch</td>" in html and f"{__file__}:" in html and "<td>int64</td><td>(2,)</td>" in html and "&lt;b&gt;" in html and "<b>" not in html


def test_a_dataset_that_is_wrong_shows_its_error():
    html = penstock.TFRecordDataset("/nowhere/*.tfrecord")._repr_html_()
    assert "<td>tfrecord</td>" in html and "NotFoundError: " in html
