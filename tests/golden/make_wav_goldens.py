"""Makes wav.json: what TensorFlow and libsndfile make of small WAV files.

Run by hand, with TensorFlow and soundfile, from any directory. PCM of 16 bits is TensorFlow's affair; what it does not read is libsndfile's.
"""

import io
import json
import pathlib
import struct
import wave

import numpy as np
import soundfile
import tensorflow as tf

RANDOM = np.random.default_rng(3)


def pcm(channels, samples, width, rate=16000):
    """A file of Python's own writer: any bytes are samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels), writer.setsampwidth(width), writer.setframerate(rate)
        writer.writeframes(RANDOM.bytes(channels * samples * width))
    return file.getvalue()


def sndfile(channels, samples, subtype, format="WAV", rate=44100):
    file = io.BytesIO()
    soundfile.write(file, RANDOM.normal(0, 0.3, (samples, channels)), rate, format=format, subtype=subtype)
    return file.getvalue()


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def with_chunks(file, before=b"", behind=b""):
    """`file` with chunks before its samples and behind them."""
    at = file.index(b"data")
    body = file[12:at] + before + file[at:] + behind
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def files():
    """Names, files, and who reads them."""
    extremes = pcm(1, 4, 2)
    yield "extremes", extremes[:-8] + struct.pack("<4h", -32768, 32767, 0, -1), "tensorflow"
    for channels, samples in ((1, 1), (1, 37), (2, 20), (6, 5), (2, 0)):
        yield f"pcm16 {channels} {samples}", pcm(channels, samples, 2), "tensorflow"
    yield "chunks", with_chunks(pcm(2, 9, 2, 8000), chunk(b"LIST", b"INFOabcd"), chunk(b"id3 ", b"xyz1")), "tensorflow"
    # Odd ones are followed by a byte, which TensorFlow does not pass over.
    yield "odd chunks", with_chunks(pcm(1, 9, 2, 8000), chunk(b"LIST", b"abc"), chunk(b"id3 ", b"x")), "libsndfile"
    for width in (1, 3, 4):
        for channels in (1, 2):
            yield f"pcm{8 * width} {channels}", pcm(channels, 23, width), "libsndfile"
    for subtype in ("FLOAT", "DOUBLE"):
        yield subtype, sndfile(2, 19, subtype), "libsndfile"
    for subtype in ("PCM_16", "PCM_24", "FLOAT"):
        yield f"extensible {subtype}", sndfile(3, 11, subtype, "WAVEX"), "libsndfile"


def main():
    cases = []
    for name, file, reader in files():
        options = [(-1, -1), (1, -1), (2, 12), (-1, 30), (7, 3)] if reader == "tensorflow" else [(-1, -1)]
        for channels, samples in options:
            if reader == "tensorflow":
                audio, rate = tf.audio.decode_wav(file, channels, samples)
                audio, rate = audio.numpy(), int(rate)
            else:
                audio, rate = soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)
            cases.append({"name": name, "reader": reader, "file": file.hex(), "desired_channels": channels, "desired_samples": samples,
                          "shape": list(audio.shape), "audio": np.ascontiguousarray(audio).tobytes().hex(), "sample_rate": rate})
    path = pathlib.Path(__file__).with_name("wav.json")
    head = {"tensorflow": tf.__version__, "libsndfile": soundfile.__libsndfile_version__}
    path.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
