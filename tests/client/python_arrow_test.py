"""penstock.ArrowDataset, over files that pyarrow wrote and what it reads of them (tests/golden/make_arrow_goldens.py)."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import penstock

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
FILES = GOLDEN / "arrow"
CASES = {case["name"]: case for case in json.loads((GOLDEN / "arrow.json").read_text())["cases"]}


def plain(value):
    """A tensor as the goldens have it: strings are hexadecimal digits."""
    if hasattr(value, "to_list"):
        return plain(value.to_list())
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return bytes(value).hex() if isinstance(value, (bytes, bytearray, memoryview)) else value


def rows_of(dataset):
    return [{name: plain(value) for name, value in element.items()} for element in dataset]


def dataset_of(case):
    features = case.get("features")
    if features is not None:
        features = {
            name: penstock.ArrowFeature(
                feature.get("column"), feature.get("dtype"), feature.get("shape"), feature.get("default"),
                allow_missing=feature.get("allow_missing", False), is_null=feature.get("is_null", False),
            )
            for name, feature in features.items()
        }
    return penstock.ArrowDataset(FILES / case["file"], features)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "rows" in case])
def test_rows_are_what_pyarrow_reads(name):
    case = CASES[name]
    dataset = dataset_of(case)
    assert rows_of(dataset) == case["rows"]
    assert len(dataset) == len(case["rows"])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "error" in case])
def test_what_is_refused_says_why(name):
    case = CASES[name]
    with pytest.raises((penstock.InvalidArgumentError, penstock.DataLossError)) as error:
        rows_of(dataset_of(case))
    assert case["error"] in str(error.value) and case["file"] in str(error.value)


def numbers(dataset, key="int64"):
    return [int(element[key]) for element in dataset]


FIRST = [-(1 << 63), (1 << 63) - 1, *range(1, 9)]


def test_rows_of_several_files_in_any_order():
    files = [FILES / "numbers.arrow", FILES / "numbers_stream.arrow"]
    dataset = penstock.ArrowDataset(files, ["int64", "bool"])
    assert len(dataset) == 20 and numbers(dataset) == FIRST * 2
    shuffled = dataset.global_shuffle(seed=3)
    assert sorted(numbers(shuffled)) == sorted(FIRST * 2) and numbers(shuffled) != FIRST * 2
    assert len(shuffled) == 20
    assert numbers(dataset.shard(3, 1)) == (FIRST * 2)[1::3]
    assert numbers(dataset.skip(13)) == (FIRST * 2)[13:]


def test_rows_by_their_numbers(tmp_path):
    files = [FILES / "numbers.arrow", FILES / "numbers_stream.arrow"]
    dataset = penstock.ArrowDataset(files, ["int64"], rows=[19, 0, 3, 3, 12])
    assert len(dataset) == 5
    assert numbers(dataset) == [(FIRST * 2)[i] for i in (19, 0, 3, 3, 12)]
    # A column of numbers, as an index mapping is.
    dataset = penstock.ArrowDataset(FILES / "numbers_zstd.arrow", ["x"], rows=FILES / "rows.arrow")
    assert numbers(dataset, "x") == [5, 299, 0, 7, 7]
    with pytest.raises(penstock.InvalidArgumentError, match="expected one column of int64 or uint64"):
        len(penstock.ArrowDataset(files, ["int64"], rows=FILES / "numbers_lz4.arrow"))
    with pytest.raises(penstock.InvalidArgumentError, match="rows.row: expected numbers of 20 rows, found 20"):
        numbers(penstock.ArrowDataset(files, ["int64"], rows=[20]))
    with pytest.raises(penstock.DataLossError, match=r"expected less than 10, found 299 \(.*rows\.arrow, row 1\)"):
        numbers(penstock.ArrowDataset(FILES / "numbers.arrow", ["int64"], rows=FILES / "rows.arrow"))


def test_batches_of_lists():
    batch = next(iter(penstock.ArrowDataset(FILES / "lists.arrow", ["ints", "fixed", "words"]).ragged_batch(3)))
    assert batch["ints"].to_list() == [[1, 2], [], [3]]
    np.testing.assert_array_equal(batch["fixed"], [[i, i + 0.5, i + 1] for i in range(3)])
    padded = next(iter(penstock.ArrowDataset(FILES / "lists.arrow", ["ints"]).padded_batch(5)))
    np.testing.assert_array_equal(padded["ints"], [[1, 2, 0], [0, 0, 0], [3, 0, 0], [4, 5, 6], [7, 0, 0]])


def test_functions_see_the_types():
    dataset = penstock.ArrowDataset(FILES / "numbers.arrow")
    assert dataset.element_spec["float32"].dtype == np.float32 and dataset.element_spec["bool"].dtype == np.bool_
    doubled = dataset.map(lambda row: {"x": row["int16"] * 2})
    assert numbers(doubled.skip(2), "x") == [2 * i for i in range(1, 9)]


def test_a_row_that_a_later_stage_fails_on_is_named(tmp_path):
    dataset = penstock.ArrowDataset(FILES / "texts.arrow", ["utf8"]).map(lambda row: penstock.strings.to_number(row["utf8"], penstock.int32))
    with pytest.raises(penstock.DataLossError, match=r"texts\.arrow, row 0 of the file, row 0 of record batch 0\)"):
        list(dataset)


def test_a_cut_stream(tmp_path):
    whole = (FILES / "numbers_stream.arrow").read_bytes()
    path = tmp_path / "cut.arrows"
    path.write_bytes(whole[:-200])
    with pytest.raises(penstock.DataLossError, match=r"the file is cut inside of .*cut\.arrows, offset \d+"):
        numbers(penstock.ArrowDataset(path, ["int64"]))
    assert numbers(penstock.ArrowDataset(path, ["int64"], on_damage="skip_record")) == FIRST[:9]
    with pytest.raises(penstock.DataLossError, match="expected at most 0"):
        numbers(penstock.ArrowDataset(path, ["int64"], on_damage="skip_record", max_skipped=0))
    # A file that is none at all.
    shutil.copy(FILES / "numbers.arrow", tmp_path / "good.arrow")
    (tmp_path / "bad.arrow").write_bytes(b"nothing")
    both = [tmp_path / "bad.arrow", tmp_path / "good.arrow"]
    assert numbers(penstock.ArrowDataset(both, ["int64"], on_damage="skip_shard")) == FIRST
    with pytest.raises(penstock.DataLossError, match=r"expected an Arrow IPC file or stream, found something else.*bad\.arrow"):
        numbers(penstock.ArrowDataset(both, ["int64"]))


def test_a_file_that_changes_is_an_error(tmp_path):
    path = tmp_path / "a.arrow"
    shutil.copy(FILES / "numbers.arrow", path)
    iterator = iter(penstock.ArrowDataset(path, ["int64"]).repeat().batch(5))
    next(iterator)
    dataset = penstock.ArrowDataset(path, ["int64"])
    assert len(dataset) == 10
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(penstock.Error, match=r"a\.arrow"):
        numbers(dataset)


@pytest.mark.parametrize("features, error", [
    ({"x": "no"}, r'feature "x": there is no "no"; there are: .*int8'),
    ({"x": penstock.ArrowFeature("int8", penstock.int16)}, "dtype: expected int8"),
    ({"x": penstock.ArrowFeature("int8", shape=[2])}, "expected a size for each of the column's 0 lists"),
    ({"x": penstock.ArrowFeature("int8", default_value=300)}, "default_value: expected a value of int8, found 300"),
    ({"x": penstock.ArrowFeature("int8", default_value="a")}, "default_value: expected one value of int8"),
    ({"x": penstock.ArrowFeature("int8", allow_missing=True)}, "allow_missing: is for lists of any size"),
    ({"x": "int8.y"}, r'"int8" is of type int8 and has no field "y"'),
])
def test_mistakes_are_told_before_anything_runs(features, error):
    with pytest.raises(penstock.InvalidArgumentError, match=error):
        len(penstock.ArrowDataset(FILES / "numbers.arrow", features))


def test_files_of_other_types_are_refused():
    files = [FILES / "nulls.arrow", FILES / "lists_nulls.arrow"]
    with pytest.raises(penstock.InvalidArgumentError, match=r'feature "f": the column is of another type than in the first file: .*lists_nulls\.arrow'):
        len(penstock.ArrowDataset(files, ["f"]))
    with pytest.raises(penstock.InvalidArgumentError, match=r'there is no "i"'):
        len(penstock.ArrowDataset(files, ["i"]))
