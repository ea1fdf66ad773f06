"""penstock.tensorflow with TensorFlow and Keras themselves."""

import os
import pathlib
import subprocess
import warnings

import numpy as np
import penstock
import pytest
import tensorflow as tf
from ranks import results_of_ranks

import penstock.tensorflow


def numbers():
    dataset = penstock.Dataset.range(100).shuffle(100, seed=5)
    return dataset.map(lambda value: {"n": value, "x": value.astype(np.float32) * np.array([1, 2, 3], np.float32)}).batch(8)


def test_batches_are_those_of_numpy():
    expected = list(numbers())
    dataset = penstock.tensorflow.dataset(numbers())
    assert dataset.element_spec == {"n": tf.TensorSpec([None], tf.int64), "x": tf.TensorSpec([None, 3], tf.float32)}
    found = list(dataset.as_numpy_iterator())
    assert len(found) == 13
    for theirs, ours in zip(found, expected):
        assert (theirs["x"] == ours["x"]).all() and (theirs["n"] == ours["n"]).all()


def test_strings_ragged_tensors_tuples_and_lone_tensors():
    strings = penstock.Dataset.from_tensor_slices((np.array([b"a", b"bc"], object), np.array([1, 2], np.uint8))).batch(2)
    ((text, number),) = penstock.tensorflow.dataset(strings)
    assert text.numpy().tolist() == [b"a", b"bc"] and number.numpy().tolist() == [1, 2]
    ragged = penstock.Dataset.range(4).map(lambda n: np.arange(6)[:3] + n).batch(2).map(lambda x: x * 2)
    assert [x.numpy().tolist() for x in penstock.tensorflow.dataset(ragged)][1] == [[4, 6, 8], [6, 8, 10]]


def test_axes_of_one_size_behind_ragged_ones(tmp_path):
    """They are of the values, and no rows of their own."""
    path = str(tmp_path / "ragged.tfrecord")
    with penstock.io.TFRecordWriter(path) as writer:
        for count in (1, 3):
            writer.write(penstock.io.serialize_example({"x": list(range(2 * count))}))
    feature = penstock.io.RaggedFeature(penstock.int64, partitions=[penstock.io.RaggedFeature.UniformRowLength(2)])
    dataset = penstock.TFRecordDataset(path).batch(2).parse_example({"x": feature})
    spec = dataset.element_spec["x"]
    (found,) = penstock.tensorflow.dataset(dataset)
    assert found["x"].ragged_rank == max(axis for axis, size in enumerate(spec.shape) if size is None)
    assert found["x"].to_list() == [[[0, 1]], [[0, 1], [2, 3], [4, 5]]]


def test_what_follows_is_tf_data():
    dataset = penstock.tensorflow.dataset(numbers()).unbatch().filter(lambda x: x["n"] % 2 == 0).batch(5)
    assert sorted(n for batch in dataset for n in batch["n"].numpy()) == list(range(0, 100, 2))


def test_a_pipeline_gives_as_many_steps_as_asked_for(served):
    dataset = penstock.tensorflow.dataset("numbers", steps=13, socket=served(0))
    epochs = [[n for batch in dataset for n in batch["n"].numpy()] for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(100))] * 2
    assert epochs[0] != epochs[1]


PADDED = """name: "padded"
stage { range { stop: 12 } }
stage { map { out: "n = value" out: "x = arange(value % 5)" } }
stage { padded_batch { batch_size: 3 } }
"""


def test_a_pipeline_of_padded_batches_has_open_axes(served, tmp_path):
    socket = served(0)
    (tmp_path / "padded").write_text(PADDED)
    subprocess.run([pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstock", "--socket", socket, "create", tmp_path / "padded"], check=True)
    dataset = penstock.tensorflow.dataset("padded", socket=socket)
    assert dataset.element_spec["x"].shape.as_list() == [None, None]
    assert [batch["x"].shape.as_list() for batch in dataset] == [[3, 2], [3, 4], [3, 3], [3, 4]]


def test_a_pipeline_that_has_ended_has_no_types(served):
    socket = served(1)
    assert len(list(penstock.tensorflow.dataset("numbers", socket=socket))) == 13
    with pytest.raises(penstock.OutOfRangeError, match="the pipeline has ended"):
        penstock.tensorflow.dataset("numbers", socket=socket)


def test_keras_fits():
    data = numbers().map(lambda x: (x["x"] / 100, x["n"].astype(np.float32) / 100))
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05), loss="mse")
    with warnings.catch_warnings():
        # It knows how long an epoch is, and so that none was cut short.
        warnings.filterwarnings("error", message="Your input ran out of data")
        history = model.fit(penstock.tensorflow.dataset(data), epochs=20, verbose=0).history["loss"]
    assert history[-1] < history[0] / 10 and history[-1] < 0.01


def test_keras_knows_how_long_an_epoch_over_files_is(tmp_path):
    for i in range(5):
        (tmp_path / f"{i}").write_bytes(b"x")
    files = penstock.FilesDataset(tmp_path / "*").map(lambda x: x["bytes"])
    assert penstock.tensorflow.dataset(files.batch(2)).cardinality() == 3
    assert penstock.tensorflow.dataset(penstock.TextLineDataset(tmp_path / "0")).cardinality() == tf.data.UNKNOWN_CARDINALITY


def labelled():
    return numbers().map(lambda x: {"x": x["x"] / 100, "n": x["n"].astype(np.float32) / 100, "i": x["n"]})


def test_a_label_makes_pairs():
    lone = penstock.tensorflow.dataset(numbers(), label="n")
    assert lone.element_spec == (tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None], tf.int64)) and lone.cardinality() == 13
    expected = list(numbers())
    for (x, y), batch in zip(lone.as_numpy_iterator(), expected):
        assert (x == batch["x"]).all() and (y == batch["n"]).all()
    x, y = penstock.tensorflow.dataset(labelled(), label="n").element_spec
    assert sorted(x) == ["i", "x"] and y == tf.TensorSpec([None], tf.float32)
    x, y = penstock.tensorflow.dataset(labelled(), label=["n", "i"]).element_spec
    assert x.shape == [None, 3] and sorted(y) == ["i", "n"]
    for label in ("y", [], ["x", "n", "i"]):
        with pytest.raises(ValueError, match="label is one of the features, 'x', 'n', 'i', beside which others are left"):
            penstock.tensorflow.dataset(labelled(), label=label)
    with pytest.raises(TypeError, match="label='n' names a feature of elements that are dicts; these are tuples"):
        penstock.tensorflow.dataset(numbers().map(lambda x: (x["x"], x["n"])), label="n")


@pytest.mark.parametrize("kind", ["dataset", "pipeline", "share"])
def test_keras_fits_elements_that_are_dicts(kind, served, tmp_path):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05), loss="mse")
    data = numbers().map(lambda x: {"x": x["x"] / 100, "n": x["n"].astype(np.float32) / 100})
    if kind == "pipeline":
        made = penstock.tensorflow.dataset("numbers", steps=13, label="n", socket=served(0)).map(lambda x, y: (x / 100, tf.cast(y, tf.float32) / 100))
    else:
        made = penstock.tensorflow.dataset(data, label="n", **({"share": "fits"} if kind == "share" else {}))
    history = model.fit(made, epochs=20, verbose=0).history["loss"]
    assert history[-1] < history[0] / 10 and history[-1] < 0.01


@pytest.mark.parametrize(("dataset", "steps", "cardinality"), [
    (numbers(), None, 13), (numbers(), 5, 5), (numbers().repeat(), None, tf.data.INFINITE_CARDINALITY), (numbers().repeat(), 20, 20),
    (penstock.Dataset.range(9).filter(lambda n: n > 3).batch(2), None, tf.data.UNKNOWN_CARDINALITY),
])
def test_what_is_known_of_an_epochs_length(dataset, steps, cardinality):
    found = penstock.tensorflow.dataset(dataset, steps=steps)
    assert found.cardinality() == cardinality
    if cardinality >= 0:
        assert sum(1 for _ in found) == cardinality


def test_options_are_for_pipelines():
    with pytest.raises(TypeError, match="socket"):
        penstock.tensorflow.dataset(numbers(), socket="s")


def take_together(rank, share, results):
    dataset = penstock.tensorflow.dataset(numbers(), share=share, rank=rank, world_size=2)
    rows = [[batch["n"].numpy().tolist() for batch in dataset] for _ in range(2)]
    results.put((rank, rows, str(dataset.element_spec["x"].shape)))


def test_two_ranks_of_a_dataset_share_a_daemon(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (_, left, shape), (_, right, _) = results_of_ranks(take_together, "job")
    assert shape == "(None, 3)"
    epochs = [[n for part in (left, right) for rows in part[epoch] for n in rows] for epoch in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(100)) and epochs[0] != epochs[1]


def test_steps_of_a_shared_daemon_go_on_over_the_end_of_a_pass(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    dataset = penstock.tensorflow.dataset(numbers(), share="steps", steps=20)
    iterations = [[batch["n"].numpy().tolist() for batch in dataset] for _ in range(2)]
    assert [len(batches) for batches in iterations] == [20, 20]
    rows = [n for batches in iterations for batch in batches for n in batch]
    assert all(sorted(rows[first : first + 100]) == list(range(100)) for first in (0, 100, 200))
    with pytest.raises(TypeError, match="share is of a Dataset"):
        penstock.tensorflow.dataset("numbers", share="steps")
