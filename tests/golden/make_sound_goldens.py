"""Makes sounds.json: small FLAC, OGG and MP3 files, and what libsndfile makes of them.

Run by hand, with soundfile, from any directory. Files differ from run to run: OGG has random numbers in it.
"""

import base64
import io
import json
import pathlib

import numpy as np
import soundfile

RANDOM = np.random.default_rng(5)
MP3 = {"format": "MP3", "subtype": "MPEG_LAYER_III"}


def sound(samples, channels):
    """A few tones that change, a silence, and noise."""
    steps = np.cumsum(RANDOM.uniform(0.02, 0.4, (samples, channels)), axis=0)
    values = 0.5 * np.sin(steps) + RANDOM.normal(0, 0.02, (samples, channels))
    values[samples // 3 : samples // 2] = 0
    return values


def written(samples, channels, rate, **options):
    file = io.BytesIO()
    soundfile.write(file, sound(samples, channels), rate, **options)
    return file.getvalue()


def id3(data):
    """An ID3v2 tag of these bytes."""
    return b"ID3\x04\0\0" + bytes(len(data) >> shift & 127 for shift in (21, 14, 7, 0)) + data


def without_length(flac):
    """The number of samples is the low 36 bits of the eight bytes at 18."""
    return flac[:21] + bytes([flac[21] & 0xF0]) + bytes(4) + flac[26:]


def with_block(flac):
    """A block of an application behind the first one."""
    return flac[:42] + b"\x02\0\0\x08test" + bytes(4) + flac[42:]


def without_xing(mp3):
    """Without its first frame, which has the number of frames."""
    next_frame = mp3.index(mp3[:2], 4)
    assert b"Xing" in mp3[:next_frame] or b"Info" in mp3[:next_frame]
    return mp3[next_frame:]


def files():
    """Names, files, how far values may differ where other releases of the decoders make them, and maybe another file with the same sound."""
    flac = written(1000, 2, 44100, format="FLAC", subtype="PCM_16")
    yield "flac 16", flac, 0
    yield "flac 8 mono", written(700, 1, 8000, format="FLAC", subtype="PCM_S8"), 0
    yield "flac 24 of 5", written(400, 5, 96000, format="FLAC", subtype="PCM_24"), 0
    yield "flac one sample", written(1, 1, 16000, format="FLAC", subtype="PCM_16"), 0
    yield "flac tagged", id3(b"x" * 300) + with_block(flac), 0
    # soundfile cannot read it.
    yield "flac of unknown length", without_length(flac), 0, flac
    yield "vorbis", written(1500, 2, 44100, format="OGG", subtype="VORBIS"), 1e-5
    yield "vorbis mono", written(2000, 1, 16000, format="OGG", subtype="VORBIS"), 1e-5
    yield "opus", written(1700, 2, 48000, format="OGG", subtype="OPUS"), 1e-4
    yield "opus mono", written(900, 1, 16000, format="OGG", subtype="OPUS"), 1e-4
    constant = written(4000, 2, 44100, **MP3, bitrate_mode="CONSTANT", compression_level=0.5)
    varying = written(4000, 2, 44100, **MP3, bitrate_mode="VARIABLE", compression_level=0.4)
    yield "mp3 constant", constant, 1e-5
    yield "mp3 varying", varying, 1e-5
    yield "mp3 mono", written(3000, 1, 48000, **MP3, bitrate_mode="VARIABLE", compression_level=0.2), 1e-5
    yield "mp3 of MPEG 2", written(2000, 1, 22050, **MP3), 1e-5
    yield "mp3 of MPEG 2.5", written(1500, 2, 11025, **MP3), 1e-5
    yield "mp3 tagged", id3(b"x" * 40) + constant + b"TAG" + bytes(125), 1e-5
    # libsndfile guesses their length by the first frame's, and gives no more than that.
    yield "mp3 constant without a count", without_xing(constant), 1e-5
    yield "mp3 varying without a count", without_xing(varying), 1e-5


def main():
    cases = []
    for name, file, tolerance, *like in files():
        with soundfile.SoundFile(io.BytesIO(like[0] if like else file)) as opened:
            audio, rate = opened.read(frames=1_000_000, dtype="float32", always_2d=True), opened.samplerate
        cases.append({"name": name, "file": base64.b64encode(file).decode(), "shape": list(audio.shape), "sample_rate": rate, "tolerance": tolerance,
                      "guessed": "without a count" in name, "audio": base64.b64encode(np.ascontiguousarray(audio).tobytes()).decode()})  # fmt: skip
    path = pathlib.Path(__file__).with_name("sounds.json")
    head = {"libsndfile": soundfile.__libsndfile_version__}
    path.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
