"""What stands for TensorFlow's functions of tensors, and tf.image's functions that are made of NumPy's: against TensorFlow's results."""

import importlib
import json
import pathlib
import re
import sys

import numpy as np
import pytest

import penstock
from penstock._numpy import _dispatch
from penstock._tracing import _names
from penstock._registry import FUNCTIONS

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import tensor_cases  # noqa: E402

GOLDENS = json.loads((GOLDEN / "tensors.json").read_text())["cases"]
NAMES = list(tensor_cases.INPUTS)


ROOT = pathlib.Path(__file__).parents[2]


def written(name, **values):
    """What the page says for tf.NAME, "… where a is …, b is …; …", of values by their names there."""
    text, *where = re.split(r",(?: where)? (\w) is ", _names.INSTEAD[name].partition(";")[0].removesuffix(", a constant"))
    values["np"] = np
    for letter, value in zip(where[::2], where[1::2]):
        values[letter] = eval(value, values)
    return eval(text, values)


def traced(text):
    """The expression as a function of a dict."""
    return lambda x: eval(text, {"np": np, "penstock": penstock, "written": written, **x})


@pytest.mark.parametrize("theirs, ours, tolerance", tensor_cases.CASES, ids=[case[0] for case in tensor_cases.CASES])
def test_results_are_tensorflows(theirs, ours, tolerance):
    (found,) = penstock.Dataset.from_tensors(tensor_cases.INPUTS).map(traced(ours))
    golden = GOLDENS[theirs]
    expected = np.frombuffer(bytes.fromhex(golden["bytes"]), golden["dtype"]).reshape(golden["shape"])
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if tolerance:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


def test_the_page_says_what_errors_say():
    page = (ROOT / "docs/tf_functions_table.md").read_text()
    rows = re.findall(r"^\| `tf\.([\w.]+)` \| (.*) \|$", page, flags=re.MULTILINE)
    assert [(name, instead.replace("\\|", "|")) for name, instead in rows] == sorted(_names.INSTEAD.items())


def test_what_the_page_says_can_be_traced():
    """Each of NumPy's names on the page is one that a traced value takes."""
    taken = {"np.arange", "np.inf", "np.tri", "np.eye", "np.full", "np.ones", "np.zeros", "np.hanning", "np.pi", "np.asarray", "np.float32", "np.uint8"}  # constants and types
    for instead in _names.INSTEAD.values():
        for name in set(re.findall(r"np\.[\w.]*\w", instead)) - taken:
            ufunc, _, method = name.removeprefix("np.").rpartition(".")
            if method == "accumulate":
                assert ufunc in _dispatch._ACCUMULATED, name
                continue
            function = eval(name, {"np": np})
            assert function.__name__ in (*_dispatch._SPECIAL, *FUNCTIONS, *_dispatch._SYNONYMS) or name.removeprefix("np.") in _dispatch._SPECIAL, name


def test_the_error_of_a_function_of_tensorflow_names_what_to_write(tmp_path, monkeypatch):
    """A package that does with a value what TensorFlow does with it."""
    package = tmp_path / "tensorflow"
    package.mkdir()
    (package / "__init__.py").write_text("import numpy as np\n\ndef cast(x, dtype):\n    return np.asarray(x)\n\nreduce_mean = nothing = cast\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    tf = importlib.import_module("tensorflow")
    monkeypatch.delitem(sys.modules, "tensorflow")
    numbers = penstock.Dataset.range(2)
    with pytest.raises(penstock.TraceError, match=r"python_tensors_test.py:\d+: TensorFlow's functions of a traced value; NumPy's work on it: x.astype\(np.float32\) for tf.cast\n"):
        numbers.map(lambda x: tf.cast(x, 0))
    with pytest.raises(penstock.TraceError, match=r"np.mean\(x, axis\) for tf.reduce_mean"):
        numbers.map(lambda x: tf.reduce_mean(x, 0) + 1)
    with pytest.raises(penstock.TraceError, match="python_tensors_test.py.*the conversion of a traced value to an array"):
        numbers.map(lambda x: tf.nothing(x, 0))
    for module, name, hint in ((penstock.functions, "reduce_mean", r"np.mean\(x, axis\)"), (penstock.functions, "gather", "np.take"), (penstock.functions, "tensr", "did you mean"),
                               (penstock.image, "stateless_random_crop", r"penstock.image.random_crop\(image, …, seed=n\)")):  # fmt: skip
        with pytest.raises(AttributeError, match=f"has no function '{name}'; .*{hint}" if hint[0] != "d" else f"has no function '{name}'"):
            getattr(module, name)


class Column:
    """Another package's array."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3, dtype=np.int16)


def test_other_packages_arrays_are_constants():
    found = list(penstock.Dataset.range(2).map(lambda i: (i + Column(), np.where(i > 0, Column(), 0))))
    for i, (sums, chosen) in enumerate(found):
        np.testing.assert_array_equal(sums, i + np.arange(3))
        np.testing.assert_array_equal(chosen, np.arange(3) * (i > 0))


IMAGE = np.zeros((5, 4, 3), np.uint8)
REFUSED = [
    (lambda x: penstock.image.rgb_to_yuv(x), "penstock.image.rgb_to_yuv of uint8; penstock.image.convert_image_dtype"),
    (lambda x: penstock.image.total_variation(x), "penstock.image.total_variation of uint8; penstock.image.convert_image_dtype"),
    (lambda x: penstock.image.grayscale_to_rgb(x), "penstock.image.grayscale_to_rgb of 3 channels; channels=1"),
    (lambda x: penstock.image.sobel_edges(x[0]), r"penstock.image.sobel_edges of shape \(4, 3\)"),
    (lambda x: penstock.image.extract_patches(x, [1, 6, 6, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), "windows of 6 in an image of 5"),
    (lambda x: penstock.image.extract_patches(x, [2, 2, 2], 1, 1, "VALID"), r"extract_patches: sizes=\[2, 2, 2\]"),
    (lambda x: penstock.image.extract_patches(x, 2, 1, 1, "FULL"), "with padding='FULL'"),
    (lambda x: penstock.image.extract_patches(x[: x[0, 0, 0].astype(int) + 3], 2, 1, 1, "SAME"), "its size is known"),
    (lambda x: penstock.image.crop_and_resize(x, [0.0, 0, 1, 1], None, [2, 2]), r"boxes of shape \(4,\)"),
    (lambda x: penstock.image.crop_and_resize(x, [[0.0, 0, 1, 1]], None, [2, 2], "area"), "with method='area'"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused(case):
    function, message = REFUSED[case]
    with pytest.raises(penstock.TraceError, match=message):
        list(penstock.Dataset.from_tensors(IMAGE).map(function))


def test_images_whose_size_only_the_data_tells_and_batches_of_them():
    """The same values as of images of known size, which the goldens hold."""
    rgb, grey, boxes = (tensor_cases.INPUTS[name] for name in ("rgb", "grey", "boxes"))
    rows = {"rgb": np.stack([rgb, 1 - rgb]), "grey": np.stack([grey, 255 - grey]), "boxes": np.stack([boxes, boxes[::-1]])}
    functions = [
        lambda x: penstock.image.rgb_to_yuv(x["rgb"]),
        lambda x: penstock.image.sobel_edges(x["rgb"]),
        lambda x: penstock.image.total_variation(x["rgb"]),
        lambda x: penstock.image.image_gradients(x["rgb"])[1],
        lambda x: penstock.image.grayscale_to_rgb(x["grey"]),
        lambda x: penstock.image.extract_patches(x["rgb"], 2, 2, 1, "SAME"),
        lambda x: penstock.image.crop_and_resize(x["rgb"], x["boxes"], None, [3, 4]),
    ]
    dataset = penstock.Dataset.from_tensor_slices(rows)
    (known,) = dataset.map(lambda x: tuple(function(x) for function in functions)).batch(2)

    def unsized(image):
        # As many as there are, which no constant says.
        none = np.sum(image * 0).astype(np.int64)
        return image[: image.shape[0] + none, : image.shape[1] + none]

    some = [*functions[:3], functions[6]]
    (found,) = dataset.map(lambda x: {**x, "rgb": unsized(x["rgb"])}).map(lambda x: tuple(function(x) for function in some)).batch(2)
    for ours, theirs in zip(found, [*known[:3], known[6]], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    (found,) = dataset.batch(2).map(lambda x: tuple(function(x) for function in functions[:6]))
    for ours, theirs in zip(found, known, strict=False):
        np.testing.assert_array_equal(ours, theirs)


def test_boxes_of_traced_coordinates():
    """In lists, as tf.image's take them."""
    image = tensor_cases.INPUTS["rgb"]
    resize = penstock.image.crop_and_resize
    dataset = penstock.Dataset.from_tensors((image, np.array([0.1, 0.2, 0.7, 0.9], np.float32), np.int64(0)))
    (found,) = dataset.map(
        lambda x, box, number: (
            resize(x, [[box[0], box[1], box[2], box[3]], [0, 0, 1, 1]], None, [3, 4]),
            resize(x, [box, [0, 0, 1, 1]], None, [3, 4]),
            resize(x[None], [box], [number], [3, 4]),
        )
    )
    (expected,) = dataset.map(lambda x, box, number: resize(x, np.array([[0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1]], np.float32), None, [3, 4]))
    for ours, theirs in zip(found, (expected, expected, expected[:1])):
        np.testing.assert_array_equal(ours, theirs)
