"""penstock.audio beside TensorFlow's and libsndfile's output (tests/golden/make_wav_goldens.py)."""

import json
import pathlib

import numpy as np
import pytest

import penstock

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "wav.json").read_text())
CASES = GOLDEN["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['name']}, {case['desired_channels']}, {case['desired_samples']}")
def test_sounds_are_those_of_the_other_reader(case):
    file = bytes.fromhex(case["file"])
    options = {name: case[name] for name in ("desired_channels", "desired_samples")}
    dataset = penstock.Dataset.from_tensors(file).map(lambda x: penstock.audio.decode_wav(x, **options))
    (decoded,) = dataset
    audio, rate = decoded
    want = np.frombuffer(bytes.fromhex(case["audio"]), np.float32).reshape(case["shape"])
    assert audio.dtype == np.float32 and audio.shape == want.shape
    assert np.array_equal(audio.view(np.uint32), want.view(np.uint32))
    assert rate == case["sample_rate"] and rate.dtype == np.int32


def test_sounds_of_one_length_are_batched(tmp_path):
    for number, case in enumerate(CASES[:12]):
        (tmp_path / f"{number:02}.wav").write_bytes(bytes.fromhex(case["file"]))
    sounds = penstock.FilesDataset(str(tmp_path / "*.wav")).map(
        lambda x: penstock.audio.decode_wav(x["bytes"], desired_channels=1, desired_samples=16).audio[:, 0])
    (batch,) = sounds.batch(12)
    assert batch.shape == (12, 16) and batch.dtype == np.float32
    assert sounds.element_spec.shape == (16,)


def test_what_is_no_sound_is_an_error_with_its_place():
    dataset = penstock.Dataset.from_tensors(b"RIFF....WAVE").map(penstock.audio.decode_wav)
    with pytest.raises(penstock.DataLossError, match="WAV data is damaged: no samples"):
        list(dataset)


@pytest.mark.parametrize("options, message", [
    ({"desired_channels": 0}, "desired_channels: expected a constant of 1 to 1024, or -1"),
    ({"desired_channels": 1025}, "desired_channels: expected an integer constant of -1 to 1024, found 1025"),
    ({"desired_samples": 0}, "desired_samples: expected a constant of at least 1, or -1"),
])
def test_wrong_arguments(options, message):
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        list(penstock.Dataset.from_tensors(b"x").map(lambda x: penstock.audio.decode_wav(x, **options)))
