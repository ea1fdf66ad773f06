"""tf.audio's names and decode_audio, on traced values (inside a function given to map)."""

from typing import Any, NamedTuple

from penstock._tracing import _language

__all__ = ["decode_audio", "decode_wav"]


class DecodeWav(NamedTuple):
    """What decode_wav and decode_audio give: `audio`, float32 of shape (samples, channels), and `sample_rate`, int32."""

    audio: Any
    sample_rate: Any


def decode_wav(contents: Any, desired_channels: Any = -1, desired_samples: Any = -1, name: Any = None) -> DecodeWav:
    """The sound of a WAV file, as tf.audio.decode_wav gives it; of more encodings than PCM of 16 bits.

    Args:
      contents: a string scalar, the bytes of the file.
      desired_channels: those beyond it are left out, the last one fills up those that are missing; -1: the file's.
      desired_samples: longer sounds are cut, shorter ones filled up with zeros; -1: the file's.
      name: ignored.

    Returns:
      DecodeWav(audio, sample_rate).
    """
    del name
    keywords = {"desired_channels": desired_channels, "desired_samples": desired_samples}
    audio = _language.call("decode_wav", (contents,), keywords, "penstock.audio.decode_wav")
    return DecodeWav(audio, _language.call("wav_sample_rate", (contents,), {}, "penstock.audio.decode_wav"))


def decode_audio(contents: Any, desired_channels: Any = -1, desired_samples: Any = -1, name: Any = None) -> DecodeWav:
    """The sound of a WAV, FLAC, OGG (Vorbis, Opus) or MP3 file, as soundfile.read gives it.

    The daemon loads libsndfile for it (Debian's package libsndfile1), and refuses the pipeline without it. A cut or damaged file is an error.

    Args:
      contents: a string scalar, the bytes of the file.
      desired_channels: those beyond it are left out, the last one fills up those that are missing; -1: the file's.
      desired_samples: longer sounds are cut, shorter ones filled up with zeros; -1: the file's.
      name: ignored.

    Returns:
      DecodeWav(audio, sample_rate).
    """
    del name
    keywords = {"desired_channels": desired_channels, "desired_samples": desired_samples}
    audio = _language.call("decode_audio", (contents,), keywords, "penstock.audio.decode_audio")
    return DecodeWav(audio, _language.call("audio_sample_rate", (contents,), {}, "penstock.audio.decode_audio"))


def __dir__():
    return sorted(__all__)
