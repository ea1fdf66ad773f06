"""penstock.audio.decode_audio beside libsndfile's output (tests/golden/make_sound_goldens.py). Needs libsndfile."""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import penstock

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "sounds.json").read_text())
WAV = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "wav.json").read_text())
FILES = {case["name"]: base64.b64decode(case["file"]) for case in GOLDEN["cases"]}


def decoded(file, **options):
    (element,) = penstock.Dataset.from_tensors(file).map(lambda x: penstock.audio.decode_audio(x, **options))
    return element


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_sounds_are_those_of_libsndfile(case):
    audio, rate = decoded(FILES[case["name"]])
    want = np.frombuffer(base64.b64decode(case["audio"]), np.float32).reshape(case["shape"])
    assert audio.dtype == np.float32 and audio.shape[1] == want.shape[1]
    if case["guessed"]:  # and without the decoder's own delay
        want = want[529:]
    assert len(audio) >= len(want) if case["guessed"] else len(audio) == len(want)
    assert np.abs(audio[: len(want)] - want).max() <= case["tolerance"]
    assert rate == case["sample_rate"] and rate.dtype == np.int32


@pytest.mark.parametrize("case", [case for case in WAV["cases"] if case["desired_channels"] == -1], ids=lambda case: case["name"])
def test_wav_is_decode_wavs(case):
    file = bytes.fromhex(case["file"])
    audio, rate = decoded(file, desired_samples=case["desired_samples"])
    want = np.frombuffer(bytes.fromhex(case["audio"]), np.float32).reshape(case["shape"])
    assert audio.tobytes() == want.tobytes() and audio.shape == want.shape and rate == case["sample_rate"]


def test_a_file_without_a_count_has_the_sound_of_one_that_has_it():
    """The decoder alone gives as much as it guesses: 12,210 of 21,888 samples of such a file. What the encoder added is not taken away."""
    for name in ("mp3 constant", "mp3 varying"):
        counted, guessed = decoded(FILES[name])[0], decoded(FILES[f"{name} without a count"])[0]
        added = next(n for n in range(len(guessed) - len(counted)) if np.array_equal(guessed[n : n + 1000], counted[:1000]))
        assert added == 576 and np.array_equal(guessed[added : added + len(counted)], counted)


def test_sounds_of_one_length_are_batched(tmp_path):
    for name, file in FILES.items():
        (tmp_path / name.replace(" ", "-")).write_bytes(file)
    sounds = penstock.FilesDataset(str(tmp_path / "*")).map(
        lambda x: penstock.audio.decode_audio(x["bytes"], desired_channels=1, desired_samples=500).audio[:, 0])
    (batch,) = sounds.batch(len(FILES))
    assert batch.shape == (len(FILES), 500) and batch.dtype == np.float32
    flac = sorted(name.replace(" ", "-") for name in FILES).index("flac-16")
    assert np.array_equal(batch[flac], decoded(FILES["flac 16"])[0][:500, 0])


def test_damaged_files_are_left_out_or_named(tmp_path):
    for number, file in enumerate([FILES["flac 16"], FILES["flac 16"][:-100], FILES["mp3 mono"], FILES["vorbis"][:2000]]):
        (tmp_path / f"{number}").write_bytes(file)
    sounds = penstock.FilesDataset(str(tmp_path / "*")).map(lambda x: penstock.audio.decode_audio(x["bytes"]).audio)
    with pytest.raises(penstock.DataLossError, match="FLAC data is damaged: .*/1"):
        list(sounds)
    assert [len(sound) for sound in sounds.ignore_errors()] == [1000, 3000]


@pytest.mark.parametrize("options, message", [
    ({"desired_channels": 0}, "desired_channels: expected a constant of 1 to 1024, or -1"),
    ({"desired_channels": 1025}, "desired_channels: expected an integer constant of -1 to 1024, found 1025"),
    ({"desired_samples": 0}, "desired_samples: expected a constant of at least 1, or -1"),
])
def test_wrong_arguments(options, message):
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        decoded(b"x", **options)


@pytest.fixture
def old_sndfile(tmp_path):
    """The environment of a daemon whose libsndfile is of version 1.0.28."""
    library = tmp_path / "old_sndfile.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, pathlib.Path(__file__).parent / "old_sndfile.c"], check=True)
    return {**os.environ, "PENSTOCK_SNDFILE": str(library)}


@pytest.mark.parametrize("name, message", [
    ("mp3 constant", r"the daemon's libsndfile \(libsndfile-1.0.28\) cannot read MP3: install version 1.1 or later .* and start the daemon again"),
    ("mp3 mono", "cannot read MP3"),
    ("opus", r"the daemon's libsndfile \(libsndfile-1.0.28\) cannot read Opus: install version 1.0.29 or later"),
    ("vorbis", "a sound of 2 axes"),
    ("flac 16", "a sound of 2 axes"),
])
def test_an_old_library_is_told_from_damage(old_sndfile, tmp_path, name, message):
    (tmp_path / "sound").write_bytes(FILES[name])
    program = f"""
import penstock
try:
    (sound,) = penstock.FilesDataset({str(tmp_path / "sound")!r}).map(lambda x: penstock.functions.decode_audio(x["bytes"]))
    print("a sound of", sound.ndim, "axes")
except penstock.Error as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], env=old_sndfile, capture_output=True, text=True, check=True)
    assert re.search(message, done.stdout), done.stdout + done.stderr
    assert "damaged" not in done.stdout


@pytest.mark.parametrize("library, message", [
    ("/nowhere/libsndfile.so.1", "Debian's package is libsndfile1, and PENSTOCK_SNDFILE .* cannot open shared object file"),
    ("libm.so.6", "the library has no functions of libsndfile: libm.so.6"),
])
def test_without_the_library_the_pipeline_is_refused_with_the_remedy(library, message):
    program = """
import penstock
try:
    list(penstock.Dataset.from_tensors(b"x").map(penstock.functions.FUNCTION))
except penstock.InvalidArgumentError as error:
    print(error)
"""
    for function in ("decode_audio", "audio_sample_rate"):
        done = subprocess.run([sys.executable, "-c", program.replace("FUNCTION", function)], env={**os.environ, "PENSTOCK_SNDFILE": library},
                              capture_output=True, text=True, check=True)  # fmt: skip
        assert re.search(message, done.stdout), done.stdout + done.stderr
