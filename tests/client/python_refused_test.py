"""Arguments that have no effect, or none in this case: what is wrong with them is said all the same."""

import numpy as np
import penstock
import pytest

D = penstock.Dataset
PAIRS = D.from_tensor_slices(np.arange(6).reshape(3, 2))
EXPERIMENTAL = penstock.experimental


def one(x):
    # No dataset is made of each: its slices are those of all.
    return D.from_tensor_slices(x)


@pytest.mark.parametrize("value", [0, -7])
@pytest.mark.parametrize("use", [
    lambda n: PAIRS.interleave(one, cycle_length=n),
    lambda n: PAIRS.interleave(one, block_length=n),
    lambda n: PAIRS.interleave(one, num_parallel_calls=n),
    lambda n: PAIRS.map(lambda x: x, num_parallel_calls=n),
    lambda n: PAIRS.batch(2, num_parallel_calls=n),
    lambda n: PAIRS.window(2).interleave(lambda w: w.batch(2), cycle_length=1, block_length=n),
    lambda n: PAIRS.window(2).map(lambda w: w.batch(2), num_parallel_calls=n),
    lambda n: PAIRS.apply(EXPERIMENTAL.parallel_interleave(one, cycle_length=2, block_length=n)),
    lambda n: D.from_tensor_slices([b"x"]).parse_example({"x": penstock.io.VarLenFeature(np.int64)}, num_parallel_calls=n),
    lambda n: penstock.TFRecordDataset("x", num_parallel_reads=n),
    lambda n: penstock.TextLineDataset("x", num_parallel_reads=n),
    lambda n: PAIRS.apply(EXPERIMENTAL.parallel_interleave(one, 2, buffer_output_elements=n)),
    lambda n: PAIRS.apply(EXPERIMENTAL.map_and_batch(lambda x: x, 2, num_parallel_batches=n)),
    lambda n: PAIRS.apply(EXPERIMENTAL.map_and_batch(lambda x: x, 2, num_parallel_calls=n)),
    lambda n: PAIRS.sparse_batch(n, [None]),
    lambda n: PAIRS.apply(EXPERIMENTAL.dense_to_sparse_batch(n, [None])),
])  # fmt: skip
def test_numbers_of_what_takes_turns_are_at_least_one(use, value):
    with pytest.raises(ValueError, match=rf"is at least 1.*: {value}$"):
        use(value)


def test_sizes_of_buffers_are_at_least_zero():
    for make in (penstock.TFRecordDataset, penstock.TextLineDataset):
        assert make("x", buffer_size=0).spec_text() == make("x").spec_text()
        with pytest.raises(ValueError, match="buffer_size is at least 0: -7"):
            make("x", buffer_size=-7)
    with pytest.raises(ValueError, match="buffer_size is at least 0: -7"):
        penstock.FixedLengthRecordDataset("x", 4, buffer_size=-7)
    with pytest.raises(ValueError, match="buffer_size is at least 0: -7"):
        EXPERIMENTAL.CsvDataset("x", [np.int64], buffer_size=-7)


def test_what_one_dataset_alone_does_not_need_is_looked_at():
    with pytest.raises(TypeError, match="seed is an integer"):
        D.sample_from_datasets([PAIRS], seed="x")
    for weight in (np.inf, np.nan, -1):
        with pytest.raises(ValueError, match="weights are numbers from 0 on"):
            D.sample_from_datasets([PAIRS], weights=[weight])
    with pytest.raises(TypeError, match="seed is an integer"):
        D.list_files("x", shuffle=False, seed="x")
    with pytest.raises(ValueError, match="padded_shapes has another structure"):
        PAIRS.bucket_by_sequence_length(lambda x: np.shape(x)[0], [2], [1, 1], padded_shapes={"x": [None]}, no_padding=True)
    with pytest.raises(ValueError, match="on_damage skips; it is 'fail'"):
        penstock.TFRecordDataset("x", max_skipped=3)
    with pytest.raises(ValueError, match="prefetch_input_elements is at least 0: -7"):
        EXPERIMENTAL.parallel_interleave(one, 2, prefetch_input_elements=-7)
    with pytest.raises(ValueError, match="num_parallel_batches and num_parallel_calls are not given together"):
        EXPERIMENTAL.map_and_batch(lambda x: x, 2, num_parallel_batches=1, num_parallel_calls=1)
    with pytest.raises(TypeError, match="an argument of range is an integer"):
        D.range(3).flat_map(lambda n: D.range(0, n, 1.5))
    options = penstock.Options()
    options.threading.private_threadpool_size = -7
    with pytest.raises(ValueError, match="private_threadpool_size is an integer from 0.* on: -7"):
        next(iter(PAIRS.with_options(options)))


def test_columns_that_there_are_not_are_answered_with_those_that_there_are(tmp_path):
    (tmp_path / "a.csv").write_text("name,x\na,1\n")
    make = EXPERIMENTAL.make_csv_dataset
    with pytest.raises(ValueError, match=r"select_columns has \['nam'\], which are no columns; these are: 'name', 'x'"):
        make(str(tmp_path / "a.csv"), 1, select_columns=["nam"])
    with pytest.raises(ValueError, match=r"select_columns has \[2\], where columns are numbered from 0 to 1"):
        make(str(tmp_path / "a.csv"), 1, select_columns=[2])
    with pytest.raises(ValueError, match="label_name is one of the columns that are read, 'name', 'x'; not 'y'"):
        make(str(tmp_path / "a.csv"), 1, label_name="y")
    for argument in ("num_parallel_reads", "shuffle_buffer_size"):
        with pytest.raises(ValueError, match=f"{argument} is at least 1.*: 0"):
            make(str(tmp_path / "a.csv"), 1, shuffle=False, **{argument: 0})


@pytest.mark.parametrize("value, message", [
    (np.array([0, 1], object), r"an array of objects with the int 0 at \[0\]; array.astype\(np.int64\)"),
    (np.array([0.5], object), r"with the float 0.5 at \[0\]; array.astype\(np.float64\)"),
    (np.array([True], object), r"with the bool True at \[0\]; array.astype\(bool\)"),
    ([1, None], r"with the NoneType None at \[1\]; a tensor has no missing values"),
    (np.array([[b"a", b"b"], [b"c", None]], object), r"with the NoneType None among strings at \[1, 1\]"),
    (np.array(["a", np.nan], np.dtypes.StringDType(na_object=np.nan)), r"has a missing text at \[1\], nan"),
    ([{1}], r"with the set \{1\} at \[0\]; tensors hold numbers, flags and strings"),
])  # fmt: skip
def test_what_no_tensor_holds_is_named_with_its_place(value, message):
    with pytest.raises(TypeError, match=message):
        D.from_tensor_slices(value)


def test_arrays_that_tensorflow_takes_are_taken():
    # As TensorFlow 2.21 gives them.
    assert [x.tolist() for x in D.from_tensor_slices(np.matrix([[1, 2], [3, 4]]))] == [[1, 2], [3, 4]]
    words = np.array(["a", "longer than the others"], np.dtypes.StringDType())
    assert list(D.from_tensor_slices(words).as_numpy_iterator()) == [b"a", b"longer than the others"]
