"""Datasets inside of flat_map and interleave: those that Python makes of known elements, and what is said of those that nobody makes."""

import re

import numpy as np
import penstock
import pytest

D = penstock.Dataset
F = penstock.functions


def flat(dataset):
    return list(dataset.as_numpy_iterator())


@pytest.fixture
def files(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    return [str(tmp_path / name) for name in "ab"]


def lines_and_label(path, label):
    return penstock.TextLineDataset(path).map(lambda line: (line, label))


# As TensorFlow 2.21 gives them.
IN_TURNS = [(b"a1", 7), (b"b1", 8), (b"a2", 7), (b"b2", 8)]
ONE_BY_ONE = [(b"a1", 7), (b"a2", 7), (b"b1", 8), (b"b2", 8)]


def test_a_reader_of_one_part_of_known_elements(files):
    pairs = D.from_tensor_slices((files, [7, 8]))
    assert flat(pairs.interleave(lines_and_label)) == flat(pairs.interleave(lines_and_label, cycle_length=2)) == IN_TURNS
    assert flat(pairs.flat_map(lines_and_label)) == flat(pairs.interleave(lines_and_label, cycle_length=1, block_length=3)) == ONE_BY_ONE
    dicts = D.from_tensor_slices({"path": files, "label": ["c", "d"]})
    found = dicts.interleave(lambda e: penstock.TextLineDataset(e["path"]).map(lambda line: {"line": line, "label": e["label"]}))
    assert [(e["line"], e["label"]) for e in flat(found)] == [(b"a1", b"c"), (b"b1", b"d"), (b"a2", b"c"), (b"b2", b"d")]
    with pytest.raises(penstock.TraceError, match="turns among 2 datasets of known elements, cycle_length=16 and block_length=2; give cycle_length=2 or more"):
        pairs.interleave(lines_and_label, block_length=2)
    three = D.from_tensor_slices(([*files, files[0]], [7, 8, 9]))
    with pytest.raises(penstock.TraceError, match="turns among 3 datasets of known elements, cycle_length=2"):
        three.interleave(lines_and_label, cycle_length=2)


def test_of_other_elements_it_is_said_what_to_write(files):
    message = "a reader of a path that is one part of the element, '0'; elements of from_tensor_slices, at most 64"
    with pytest.raises(penstock.TraceError, match=message):
        D.from_tensor_slices((files, [7, 8])).shuffle(2).interleave(lines_and_label)
    with pytest.raises(penstock.TraceError, match=message):
        D.from_tensor_slices((files * 33, [7] * 66)).interleave(lines_and_label)
    with pytest.raises(penstock.TraceError, match="a reader of a path that is computed; .*compute the paths in Python"):
        D.from_tensor_slices(files).interleave(lambda path: penstock.TextLineDataset(penstock.strings.join([path, ""])))


def test_so_it_is_of_paths_out_of_a_manifest(files, tmp_path):
    (tmp_path / "manifest").write_text("\n".join(files) + "\n")
    manifest = penstock.TextLineDataset(tmp_path / "manifest")
    message = r"a reader of paths that are elements of text_line; .*TFRecordDataset\(\[line.strip\(\) for line in open\(\"manifest.txt\"\)\]\)"
    for use in (lambda d: d.interleave(penstock.TextLineDataset), penstock.TextLineDataset, lambda d: d.flat_map(penstock.TFRecordDataset)):
        with pytest.raises(penstock.TraceError, match=message):
            use(manifest)
    with pytest.raises(penstock.TraceError, match=r"elements of from_tensor_slices \| filter;"):
        D.from_tensor_slices(files).filter(lambda path: path != "").interleave(penstock.TextLineDataset)
    # What the message says.
    assert flat(penstock.TextLineDataset([line.strip() for line in open(tmp_path / "manifest")])) == [b"a1", b"a2", b"b1", b"b2"]
    assert flat(manifest.map(penstock.io.read_file)) == [b"a1\na2\n", b"b1\nb2\n"]


@pytest.mark.parametrize("function, wanted", [
    (lambda x: D.from_tensors(x).concatenate(D.from_tensors(x * 10)), [0, 0, 1, 10]),
    (lambda x: D.from_tensors(x).concatenate(D.from_tensors(x * 10)).map(lambda y: y + 1), [1, 1, 2, 11]),
    (lambda x: D.from_tensors(x).concatenate(D.from_tensors(x * 10)).concatenate(D.from_tensors(x + 5)), [0, 0, 5, 1, 10, 6]),
    (lambda x: D.from_tensors(x).concatenate(D.range(2)), [0, 0, 1, 1, 0, 1]),
    (lambda x: D.range(x + 1).reduce(np.int64(0), lambda state, y: state + y + 1), [1, 3]),
    (lambda x: D.from_tensors(D.range(x + 1).reduce(np.int64(0), lambda state, y: state + y + 1)), [1, 3]),
])  # fmt: skip
def test_datasets_of_one_element_are_joined(function, wanted):
    assert flat(D.range(2).flat_map(function)) == wanted
    assert sorted(flat(D.range(2).interleave(function, cycle_length=2))) == sorted(wanted)


def test_so_are_their_nests():
    found = D.range(2).flat_map(lambda x: D.from_tensors({"a": x, "b": (x, "w")}).concatenate(D.from_tensors({"b": (x + 1, "v"), "a": x * 7})))
    assert flat(found) == [{"a": 0, "b": (0, b"w")}, {"a": 0, "b": (1, b"v")}, {"a": 1, "b": (1, b"w")}, {"a": 7, "b": (2, b"v")}]


@pytest.mark.parametrize("function, message", [
    (lambda x: D.choose_from_datasets([D.from_tensors(x), D.from_tensors(x * 10)], D.range(2)), r"choose_from_datasets of several .*np.where"),
    (lambda x: D.sample_from_datasets([D.from_tensors(x), D.from_tensors(x * 10)]), r"sample_from_datasets of several .*np.where"),
    (lambda x: D.from_tensor_slices(np.stack([x, x])).concatenate(D.from_tensors(x)), r"has several elements; .*from_tensor_slices\(np.concatenate"),
    (lambda x: D.from_tensors(F.arange(x)).concatenate(D.from_tensors(F.arange(x + 1))), r"of the shapes \(None,\); .*ensure_shape"),
    (lambda x: D.from_tensors((x, D.range(x).reduce(np.int64(0), lambda s, y: s))), r"the result of reduce .* beside others; .*Dataset.zip"),
    (lambda x: D.from_tensors(x).repeat(x), r"count is a traced value; it is a constant; in a flat_map, Dataset.range\(n\).map\(lambda _: x\)"),
    (lambda x: D.range(9).take(x), r"enumerate\(\).take_while\(lambda i, x: i < n\)"),
    (lambda x: D.range(9).skip(x), r"enumerate\(\).filter\(lambda i, x: i >= n\)"),
])  # fmt: skip
def test_what_nobody_makes_is_said_with_what_to_write(function, message):
    with pytest.raises(penstock.TraceError) as error:
        D.range(3).flat_map(function)
    # The line behind it is the case's own, which holds the message too.
    said = str(error.value).split("\n")[0]
    assert "python_nested_test.py:" in said and re.search(message, said), said


def test_what_the_messages_say_works():
    assert flat(D.range(4).flat_map(lambda n: D.range(n).map(lambda _: n))) == [1, 2, 2, 3, 3, 3]
    counted = D.range(4).flat_map(lambda n: D.range(9).enumerate().take_while(lambda i, x: i < n).map(lambda i, x: x))
    assert flat(counted) == [0, 0, 1, 0, 1, 2]
    assert flat(D.range(2).flat_map(lambda n: D.range(2).enumerate().filter(lambda i, x: i >= n).map(lambda i, x: x))) == [0, 1, 1]
    zipped = D.range(3).flat_map(lambda n: D.zip(D.from_tensors(n), D.from_tensors(D.range(n).reduce(np.int64(0), lambda s, y: s + y))))
    assert flat(zipped) == [(0, 0), (1, 0), (2, 1)]


def test_texts_are_constants_of_an_element():
    assert flat(D.range(2).map(lambda x: (x, "word", b"\xc3\xa9"))) == [(0, b"word", "é".encode()), (1, b"word", "é".encode())]
    assert flat(D.range(1).map(lambda x: "w" * 5000)) == [b"w" * 5000]
    with pytest.raises(penstock.TraceError, match="filter is of type str"):
        D.range(1).filter(lambda x: "word")
