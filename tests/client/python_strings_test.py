"""penstock.strings and strings in operators: results against TensorFlow's, of single texts and of batches of them, and texts that are
none (fault 21c)."""

import base64
import json
import pathlib
import sys

import numpy as np
import pytest

import penstock

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import string_cases  # noqa: E402

GOLDENS = json.loads((GOLDEN / "strings.json").read_text())
RESULTS, NUMBERS = GOLDENS["cases"], GOLDENS["numbers"]
S = penstock.strings


def texts(values):
    array = np.empty(len(values), object)
    array[:] = values
    return penstock.Dataset.from_tensor_slices(array)


def taken(dataset):
    return next(iter(dataset))


def same(found, expected):
    assert list(found.shape) == expected["shape"]
    if expected["dtype"] == "string":
        assert [value.hex() for value in found.ravel().tolist()] == expected["values"]
    else:
        assert found.dtype.name == expected["dtype"] and found.ravel().tolist() == expected["values"]


def cases():
    for group, values in ((string_cases.CASES, string_cases.TEXTS), (string_cases.CODED_CASES, string_cases.CODED)):
        for name, case in group.items():
            yield pytest.param(name, case, values, id=name)


@pytest.mark.parametrize("name, case, values", list(cases()))
def test_results_are_tensorflows(name, case, values):
    assert len(RESULTS[name]) == len(values)
    sound = []
    for value, expected in zip(values, RESULTS[name]):
        dataset = texts([value]).map(lambda x: case(penstock, x))
        if expected == "error":
            with pytest.raises(penstock.DataLossError):
                taken(dataset)
        else:
            same(np.asarray(taken(dataset)), expected)
            sound.append((value, expected))
    if name in BY_ROWS:
        return
    # The same of a batch, where all have one shape.
    shapes = {tuple(expected["shape"]) for _, expected in sound}
    for shape in shapes:
        of_shape = [(value, expected) for value, expected in sound if tuple(expected["shape"]) == shape]
        whole = texts([value for value, _ in of_shape]).batch(len(of_shape)).map(lambda x: case(penstock, x))
        for found, (_, expected) in zip(taken(whole), of_shape):
            same(np.asarray(found, None if expected["dtype"] != "string" else object), expected)


@pytest.mark.parametrize("dtype", string_cases.NUMBERS)
def test_numbers_are_written_as_tensorflow_writes_them(dtype):
    values = np.array(string_cases.NUMBERS[dtype], dtype)
    for form, expected in zip(string_cases.FORMATS, NUMBERS[dtype], strict=True):
        each = penstock.Dataset.from_tensor_slices(values)
        if expected == "error":
            with pytest.raises(penstock.InvalidArgumentError):
                taken(each.map(lambda x: S.as_string(x, **form)))
            continue
        assert [text.item().hex() for text in each.map(lambda x: S.as_string(x, **form))] == expected, form
        (batch,) = each.batch(len(values)).map(lambda x: S.as_string(x[:, None], **form))
        assert [text.hex() for text in batch[:, 0].tolist()] == expected, form


# What takes a place of an axis, or sets a string beside its parts, means another axis of a batch.
BY_ROWS = ("split and take", "equal, a string and its parts")


def test_labels_of_paths():
    paths = texts([b"/data/cat/1.jpg", b"/data/dog/2.jpg", b"/data/cow/3.jpg"])
    names = np.array(["cow", "cat", "dog"])

    def label(path):
        name = S.split(path, "/")[-2]
        return np.argmax(name == names), S.lookup(name, names), names != name

    found = [[part.tolist() for part in element] for element in paths.map(label)]
    assert found == [
        [1, 1, [True, False, True]],
        [2, 2, [True, True, False]],
        [0, 0, [False, True, True]],
    ]
    assert [int(n) for n in paths.map(lambda path: S.lookup(path, [b"/data/dog/2.jpg"], default=-7))] == [-7, 0, -7]
    with pytest.raises(penstock.DataLossError, match='expected one of the 1 words of the vocabulary, found "cat"'):
        taken(paths.map(lambda path: S.lookup(S.split(path, "/")[-2], ["dog"])))
    kept = paths.filter(lambda path: S.regex_full_match(path, r".*/c[^/]*/\d+\.jpg"))
    assert [bytes(path.item()) for path in kept] == [b"/data/cat/1.jpg", b"/data/cow/3.jpg"]


def test_characters_become_numbers_and_data_is_divided():
    lines = texts(["schön".encode(), b"no", b"", b"\xff"])
    numbers = lines.map(lambda line: S.lookup(S.unicode_split(line), list("schönno"[:5]), default=9))
    assert [line.tolist() for line in numbers] == [[0, 1, 2, 3, 4], [4, 9], [], [9]]
    names = texts([b"file-%d" % i for i in range(1000)])
    parts = [[path.item() for path in names.filter(lambda x: (S.to_hash_bucket_fast(x, 10) == 0) == held_out)] for held_out in (False, True)]
    assert not set(parts[0]) & set(parts[1]) and len(parts[0]) + len(parts[1]) == 1000 and 50 < len(parts[1]) < 150


def test_a_filter_by_a_text():
    words = texts([b"a", b"b", b"a", b""])
    assert [bytes(word.item()) for word in words.filter(lambda word: word != "a")] == [b"b", b""]
    assert [flag.tolist() for flag in words.batch(4).map(lambda word: (word == b"a") | (word == ""))] == [[True, False, True, True]]


def test_lines_of_a_file_are_parsed(tmp_path):
    (tmp_path / "lines").write_text("1 0:0.5 7:2\n-1 2:1.25 3:4\n")

    def parse(line):
        fields = S.split(line)
        return S.to_number(fields[0]), S.to_number(S.regex_replace(fields[1:], ".*:", ""))

    found = [(float(label), values.tolist()) for label, values in penstock.TextLineDataset(str(tmp_path / "lines")).map(parse)]
    assert found == [(1.0, [0.5, 2.0]), (-1.0, [1.25, 4.0])]


def test_images_in_json_are_base64():
    encoded = sorted((GOLDEN / "images").glob("*.jpg"))[0]
    text = base64.b64encode(encoded.read_bytes())
    assert b"+" in text or b"/" in text
    image = taken(texts([text]).map(lambda x: penstock.image.decode_jpeg(penstock.io.decode_base64(x), channels=3)))
    plain = taken(texts([encoded.read_bytes()]).map(lambda x: penstock.image.decode_jpeg(x, channels=3)))
    np.testing.assert_array_equal(image, plain)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: S.regex_full_match(x, "("), "expected a regular expression"),
        (lambda x: S.regex_replace(x, "a", r"\1"), "expected a text for the pattern's groups"),
        (lambda x: S.length(x, unit="WORD"), '"BYTE" or "UTF8_CHAR"'),
        (lambda x: S.lookup(x, ["a", "b", "a"]), "'a' stands twice"),
        (lambda x: S.lower(x, encoding="utf-8"), "only letters of ASCII"),
        (lambda x: x == b"\xff", "is no text in UTF-8"),
        (lambda x: S.unicode_decode(x, "UTF-16"), "texts are UTF-8 here"),
        (lambda x: S.unicode_decode(x, errors="fail"), '"strict", "replace" or "ignore"'),
        (lambda x: S.to_hash_bucket_fast(x, 0), "num_buckets"),
        (lambda x: x == 3, "string"),
        (lambda x: S.join([x, 3]), "b: expected a string"),
        (lambda x: x < 3, "y: expected a string"),
        (lambda x: S.to_hash_bucket_strong(x, 10, [1]), "two constant integers"),
        (lambda x: S.as_string(x, width=10**6), "width"),
        (lambda x: S.reduce_join(S.split(x), axis=1), "along the axis 1 of 1"),
        (lambda x: S.length(np.float32(3) + 1 + S.length(x)), "a string or a tensor of strings, found"),
    ],
)
def test_what_cannot_be_is_refused(function, message):
    with pytest.raises(penstock.Error, match=message):
        taken(texts([b"a"]).map(function))


def test_tensors_of_other_shapes_are_errors_of_their_record():
    both = texts([b"a,b,c|a,c,c", b"a,b,c|a,b"]).map(lambda x: S.split(S.split(x, "|")[0], ",") == S.split(S.split(x, "|")[1], ","))
    iterator = iter(both)
    assert next(iterator).tolist() == [True, False, True]
    with pytest.raises(penstock.DataLossError, match=r"shapes do not broadcast: \(3,\) and \(2,\)"):
        next(iterator)


def test_a_new_axis_of_a_string_makes_a_tensor_of_one():
    cities = ["Rome", "Paris", "", "New York"]
    names = np.array(["Berlin", "Paris", "Rome"])
    dataset = texts(cities)
    assert [row.tolist() for row in dataset.map(lambda x: x[None])] == [[city.encode()] for city in cities]
    assert taken(dataset.map(lambda x: x[None, ..., None]).batch(4)).tolist() == [[[city.encode()]] for city in cities]
    # Of rows behind a batch too.
    assert taken(dataset.batch(4).map(lambda x: x[..., None])).tolist() == [[city.encode()] for city in cities]
    one_hot = taken(dataset.batch(4).map(lambda x: (x[..., None] == names).astype(np.float32)))
    assert one_hot.tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert taken(dataset.map(lambda x: x[None] == names).batch(4)).tolist() == one_hot.astype(bool).tolist()


def test_a_tensor_of_strings_is_split_into_parts_of_one_number():
    dataset = texts(["a,b;c,dd", "e,f;,"]).map(lambda x: S.split(S.split(x, ";"), ","))
    assert [row.tolist() for row in dataset] == [[[b"a", b"b"], [b"c", b"dd"]], [[b"e", b"f"], [b"", b""]]]
    letters = texts(["ab", "cd"]).batch(2).map(lambda x: S.unicode_split(x, "UTF-8"))
    assert taken(letters).tolist() == [[b"a", b"b"], [b"c", b"d"]]
    with pytest.raises(penstock.DataLossError, match="expected results of one shape"):
        taken(texts(["a,b;c"]).map(lambda x: S.split(S.split(x, ";"), ",")))


def test_a_line_end_may_be_a_word():
    letters = sorted(set("two\nlines\r\n"))
    numbers = texts(list("two\nlines")).map(lambda x: S.lookup(x, letters)).batch(9)
    assert "".join(letters[i] for i in taken(numbers)) == "two\nlines"
    flags = texts(["\n", "x"]).map(lambda x: x == np.array(["x", "\n"]))
    assert [row.tolist() for row in flags] == [[False, True], [True, False]]


def test_calls_whose_texts_hold_quotation_marks_stay_apart():
    words = penstock.Dataset.from_tensor_slices([b"apple", b'p" "q'])
    pairs = words.map(lambda x: (S.regex_replace(x, "p", 'q" "r'), S.regex_replace(x, 'p" "q', "r")))
    assert [[text.item() for text in pair] for pair in pairs] == [[b'aq" "rq" "rle', b"apple"], [b'q" "r" "q', b"r"]]
