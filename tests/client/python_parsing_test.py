"""penstock.io's features and sparse_batch: results against tf.data's, of single Examples and of batches."""

import json
import pathlib
import sys
import types

import numpy as np
import pytest

import penstock

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import parsing_cases  # noqa: E402

RESULTS = json.loads((GOLDEN / "parsing.json").read_text())["cases"]


@pytest.fixture(scope="module")
def namespace(tmp_path_factory):
    """What parsing_cases.py takes."""
    folder = tmp_path_factory.mktemp("cases")
    parsing_cases.write_files(folder)
    names = {name: getattr(penstock, name) for name in penstock.__all__}
    names.update({name: getattr(np, name) for name in parsing_cases.DTYPES if name != "string"})
    return types.SimpleNamespace(
        **names,
        np=np,
        folder=str(folder),
        make_csv_dataset=penstock.experimental.make_csv_dataset,
        make_batched_features_dataset=penstock.experimental.make_batched_features_dataset,
        required=lambda dtype: dtype,
        to_number=penstock.io.string_to_number,
        parse_tensor=lambda x, dtype, shape: penstock.io.parse_tensor(x, dtype, shape=shape),
    )


def same_values(found, expected, where):
    assert list(found.shape) == expected["shape"], where
    if expected["dtype"] == "string":
        assert [value.hex() for value in found.ravel().tolist()] == expected["values"], where
    else:
        assert found.dtype.name == expected["dtype"], where
        np.testing.assert_array_equal(found.ravel(), expected["values"], where)


def compare(found, expected, where):
    if "dict" in expected:
        assert type(found) is dict and set(found) == set(expected["dict"]), where
        for key, value in expected["dict"].items():
            compare(found[key], value, f"{where}[{key!r}]")
    elif "tuple" in expected:
        assert type(found) is tuple and len(found) == len(expected["tuple"]), where
        for i, value in enumerate(expected["tuple"]):
            compare(found[i], value, f"{where}[{i}]")
    elif "sparse" in expected:
        assert type(found) is penstock.SparseTensor, where
        assert found.indices.dtype == found.dense_shape.dtype == np.int64, where
        sparse = expected["sparse"]
        assert found.indices.tolist() == sparse["indices"], where
        assert found.dense_shape.tolist() == sparse["dense_shape"], where
        same_values(found.values, sparse["values"], where)
    elif "ragged" in expected:
        assert type(found) is penstock.RaggedTensor, where
        assert [splits.tolist() for splits in found.nested_row_splits] == expected["ragged"]["splits"], where
        assert {splits.dtype.name for splits in found.nested_row_splits} == {expected["ragged"]["dtype"]}, where
        same_values(found.flat_values, expected["ragged"]["values"], where)
    else:
        same_values(np.asarray(found), expected, where)


def fits(spec, found):
    """Whether an element is what element_spec says."""
    if isinstance(spec, tuple):
        assert len(spec) == len(found)
        for part, own in zip(spec, found):
            fits(part, own)
        return
    if isinstance(spec, dict):
        assert list(spec) == list(found)
        for key in spec:
            fits(spec[key], found[key])
        return
    kinds = {penstock.SparseTensor: "sparse", penstock.RaggedTensor: "ragged"}
    found = found if type(found) in kinds else np.asarray(found)
    kind = kinds.get(type(found), "string" if found.dtype == object else "dense")
    assert spec.kind == kind
    assert spec.row_splits_dtype == (found.row_splits.dtype if kind == "ragged" else None)
    assert len(spec.shape) == len(found.shape)
    assert all(size in (None, own) for size, own in zip(spec.shape, found.shape) if own is not None)


# What TensorFlow calls an invalid argument is here one of the spec (InvalidArgumentError) or of the data (DataLossError).
ERRORS = (penstock.DataLossError, penstock.InvalidArgumentError, ValueError)


@pytest.mark.parametrize("name", parsing_cases.CASES)
@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_what_is_parsed_is_what_tf_data_makes(namespace, name):
    expected = RESULTS[name]
    if isinstance(expected, dict):
        assert expected["error"] in ("InvalidArgumentError", "DataLossError", "ValueError")
        with pytest.raises(ERRORS):
            list(parsing_cases.CASES[name](namespace))
        return
    dataset = parsing_cases.CASES[name](namespace)
    found = list(dataset)
    assert len(found) == len(expected)
    for i, (element, wanted) in enumerate(zip(found, expected)):
        compare(element, wanted, f"{name}, element {i}")
    fits(dataset.element_spec, found[0])
