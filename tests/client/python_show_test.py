"""What batches, loaders and iterators show of themselves."""

import numpy as np
import pytest

import penstock


def test_a_batch_in_lines():
    shown = penstock.show(
        {
            "image": np.arange(12, dtype=np.uint8).reshape(2, 3, 2),
            "label": (np.array([1.5, np.nan, -2.0]), np.array([True, False, True])),
            "text": np.array([b"abc", b"d"], object),
            "empty": np.zeros((0, 4)),
            "one": np.float32(0.25),
        }
    )
    assert repr(shown).splitlines() == [
        "image    uint8    (2, 3, 2)  0 to 11, mean 5.5",
        "label/0  float64  (3,)       -2 to 1.5, mean -0.25, 1 not finite",
        "label/1  bool     (3,)       2 of 3 true",
        "text     string   (2,)       b'abc' and 1 more",
        "empty    float64  (0, 4)     no values",
        "one      float32  ()         0.25",
    ]
    html = shown._repr_html_()
    assert "<td>label/0</td><td>float64</td><td>(3,)</td>" in html and "b&#x27;abc&#x27;" in html


def test_ragged_sparse_and_plain_values():
    ragged = penstock.RaggedTensor(np.arange(5), np.array([0, 2, 2, 5]))
    sparse = penstock.SparseTensor(np.array([[0, 1], [2, 0]]), np.array([3.0, 5.0]), np.array([3, 4]))
    assert [tuple(one) for one in penstock.show((ragged, sparse, b"x" * 100, 7, "<b>")).tensors] == [
        ("0", "ragged int64", (3, None), "0 to 4, mean 2"),
        ("1", "sparse float64", (3, 4), "2 values, 3 to 5, mean 4"),
        ("2", "bytes", (), "b'" + 37 * "x" + "…"),
        ("3", "int", (), "7"),
        ("4", "str", (), "'<b>'"),
    ]
    assert "&lt;b&gt;" in penstock.show("<b>")._repr_html_()
    assert repr(penstock.show({})) == ""


def test_only_the_first_values_of_a_large_tensor_are_looked_at():
    values = np.zeros((1 << 20) + 1)
    values[-1] = 9
    assert penstock.show(values).tensors[0].values == "0 to 0, mean 0, of the first 1048576"


def test_what_numpy_cannot_read_has_a_type_and_a_shape():
    class OnADevice:
        dtype = "float32"
        shape = (2, 3)

        def __array__(self, dtype=None, copy=None):
            raise TypeError("it is on a device")

    assert tuple(penstock.show(OnADevice()).tensors[0]) == ("value", "float32", (2, 3), "")


def test_elements_and_iterators_of_a_dataset():
    dataset = penstock.Dataset.from_tensor_slices({"x": np.arange(6), "<b>": np.zeros((6, 2), np.float32)}).batch(2)
    iterator = iter(dataset)
    assert "not started" in iterator._repr_html_()
    assert [one.name for one in penstock.show(next(iterator)).tensors] == ["x", "<b>"]
    html = iterator._repr_html_()
    assert "at step 0" in html and "<td>batches</td><td>1</td>" in html and "<td>range" not in html and "<b>" not in html
    iterator.close()
    assert "closed" in iterator._repr_html_()


def test_a_loader_in_a_notebook(start):
    with start().attach() as loader:
        next(loader)
        html = loader._repr_html_()
        assert "&lt;penstock.Loader of pipeline counted, at step 0" in html and "<td>batches</td><td>1</td>" in html


@pytest.mark.parametrize("element", [[], (), None])
def test_nothing_is_shown_as_nothing(element):
    assert len(penstock.show(element).tensors) == (1 if element is None else 0)


def test_names_tell_a_terminal_nothing():
    shown = penstock.show({"a\x1b[31m\nb": np.zeros(2), "plain": 1})
    assert "\x1b" not in repr(shown) and len(repr(shown).splitlines()) == 2 and repr(shown).startswith("a\\x1b[31m\\nb  float64")
