"""penstock.audio.decode_audio beside libsndfile's output (tests/golden/make_sound_goldens.py), and resample beside torchaudio's (make_resample_goldens.py).

Needs libsndfile.
"""

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
RESAMPLE = json.loads((pathlib.Path(__file__).parents[1] / "golden" / "resample.json").read_text())
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


def resampled(sound, *rates, **options):
    (element,) = penstock.Dataset.from_tensors(sound).map(lambda x: penstock.audio.resample(x, *rates, **options))
    return element


@pytest.mark.parametrize("case", RESAMPLE["cases"], ids=lambda case: case["name"])
def test_resampled_sounds_are_torchaudios(case):
    sound, want = (np.frombuffer(base64.b64decode(case[key]), np.float32).reshape(-1, case["channels"]) for key in ("sound", "want"))
    found = resampled(sound, case["rate_in"], case["rate_out"], **case["options"])
    assert found.dtype == np.float32 and found.shape == (case["samples"], case["channels"])
    inner = slice(case["skip"], len(want) - case["skip"])
    assert np.abs(found - want)[inner].max() <= case["tolerance"] * np.abs(want).max()
    if case["channels"] == 1:
        assert np.array_equal(resampled(sound[:, 0], case["rate_in"], case["rate_out"], **case["options"]), found[:, 0])


def test_each_file_has_its_own_rate():
    """The rate is of the data: of one file after another."""
    names = ["flac 16", "flac 8 mono", "vorbis mono", "flac 24 of 5"]
    def both(x):
        audio, rate = penstock.audio.decode_audio(x, desired_channels=1)
        same = penstock.audio.decode_audio(x, desired_channels=1, sample_rate=12000)
        return {"later": penstock.audio.resample(audio, rate, 12000), "at once": same.audio, "rate": same.sample_rate}
    for name, element in zip(names, penstock.Dataset.from_tensor_slices([FILES[name] for name in names]).map(both)):
        audio, rate = decoded(FILES[name], desired_channels=1)
        assert np.array_equal(element["later"], resampled(audio, int(rate), 12000))
        assert np.array_equal(element["at once"], element["later"]) and element["rate"] == 12000 and element["rate"].dtype == np.int32


@pytest.mark.parametrize("channels", [1, 2, 3, -1])
@pytest.mark.parametrize("samples", [1, 100, 362, 363, 400])
def test_samples_are_counted_at_the_other_rate(samples, channels):
    """1000 samples of 44,100 Hz are 363 of 16,000."""
    whole = decoded(FILES["flac 16"], desired_channels=channels, sample_rate=16000)[0]
    assert len(whole) == 363
    cut = decoded(FILES["flac 16"], desired_channels=channels, desired_samples=samples, sample_rate=16000)[0]
    assert np.array_equal(cut[:363], whole[:samples]) and len(cut) == samples and not cut[363:].any()


def test_rates_that_cannot_be_are_the_record_s_errors():
    sounds = penstock.Dataset.from_tensor_slices({"rate": np.array([8000, 0, 1048573, 4000], np.int64), "sound": np.ones((4, 8), np.float32)})
    sounds = sounds.map(lambda x: penstock.audio.resample(x["sound"], x["rate"], 8000))
    with pytest.raises(penstock.DataLossError, match="rate_in.* 0"):
        list(sounds)
    assert [len(sound) for sound in sounds.ignore_errors()] == [8, 16]
    wav = bytearray(bytes.fromhex(WAV["cases"][0]["file"]))
    wav[24:28] = (1048573).to_bytes(4, "little")
    with pytest.raises(penstock.DataLossError, match="decode_audio: from 1048573 to 999983 samples a second takes more than 4194304 coefficients"):
        decoded(bytes(wav), sample_rate=999983)


@pytest.mark.parametrize("sound, rates, options, message", [
    (np.zeros(9), (8, 4), {}, r"samples: expected float32 of shape \(samples,\) or \(samples, channels\), found float64 \(9,\)"),
    (np.zeros((1, 2, 3), np.float32), (8, 4), {}, "samples: expected float32 of shape"),
    (np.zeros(9, np.float32), (0, 4), {}, "rate_in: expected .* 1 to 1048576"),
    (np.zeros(9, np.float32), (4, 2**21), {}, "rate_out: expected .* 1 to 1048576"),
    (np.zeros(9, np.float32), (1048573, 999983), {}, "rate_in: .*takes more than 4194304 coefficients"),
    (np.zeros(9, np.float32), (8, 4), {"rolloff": 0}, "rolloff: expected a constant of 0.01 to 1"),
    (np.zeros(9, np.float32), (8, 4), {"lowpass_filter_width": 0}, "lowpass_filter_width: expected .* 1 to 1024"),
    (np.zeros(9, np.float32), (8, 4), {"beta": 101.0}, "beta: expected a constant of 0 to 100"),
    (np.zeros(9, np.float32), (8, 4), {"resampling_method": "linear"}, 'resampling_method: expected "sinc_interp_hann" or'),
    (np.zeros((300_000_000 // 4096, 1), np.float32), (1, 2**17), {}, "rate_out: expected fewer samples"),
])
def test_wrong_arguments_of_resample(sound, rates, options, message):
    with pytest.raises(penstock.InvalidArgumentError, match=message):
        resampled(sound, *rates, **options)


@pytest.mark.parametrize("options, message", [
    ({"desired_channels": 0}, "desired_channels: expected a constant of 1 to 1024, or -1"),
    ({"desired_channels": 1025}, "desired_channels: expected an integer constant of -1 to 1024, found 1025"),
    ({"desired_samples": 0}, "desired_samples: expected a constant of at least 1, or -1"),
    ({"sample_rate": 0}, "sample_rate: expected a constant of 1 to 1048576, or -1"),
    ({"sample_rate": 1048577}, "sample_rate: expected an integer constant of -1 to 1048576, found 1048577"),
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
