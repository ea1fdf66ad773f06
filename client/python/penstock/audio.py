"""tf.audio's names, decode_audio and resample, on traced values (inside a function given to map)."""

from typing import Any, NamedTuple

from penstock._tracing import _language

__all__ = ["decode_audio", "decode_wav", "resample"]


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


def decode_audio(contents: Any, desired_channels: Any = -1, desired_samples: Any = -1, sample_rate: Any = -1, name: Any = None) -> DecodeWav:
    """The sound of a WAV, FLAC, OGG (Vorbis, Opus) or MP3 file, as soundfile.read gives it.

    The daemon loads libsndfile for it (Debian's package libsndfile1), and refuses the pipeline without it. A cut or damaged file is an error.

    Args:
      contents: a string scalar, the bytes of the file.
      desired_channels: those beyond it are left out, the last one fills up those that are missing; -1: the file's.
      desired_samples: longer sounds are cut, shorter ones filled up with zeros; -1: the file's.
      sample_rate: the sound is given at this rate, as resample gives it; -1: at the file's.
      name: ignored.

    Returns:
      DecodeWav(audio, sample_rate): the rate is that of `audio`.
    """
    del name
    keywords = {"desired_channels": desired_channels, "desired_samples": desired_samples, "sample_rate": sample_rate}
    audio = _language.call("decode_audio", (contents,), keywords, "penstock.audio.decode_audio")
    rate = _language.call("audio_sample_rate", (contents,), {}, "penstock.audio.decode_audio")
    return DecodeWav(audio, rate if sample_rate == -1 else rate * 0 + sample_rate)


def resample(
    input: Any, rate_in: Any, rate_out: Any, lowpass_filter_width: Any = 6, rolloff: Any = 0.99,
    resampling_method: Any = "sinc_interp_hann", beta: Any = None, name: Any = None,
) -> Any:
    """A sound at another sampling rate, as torchaudio.functional.resample gives it.

    Args:
      input: float32 of shape (samples,) or (samples, channels), as decode_audio and decode_wav give it.
      rate_in: its samples a second: an int, or an integer of the data, such as decode_audio's `sample_rate`.
      rate_out: those of the result, an int. Equal rates leave the sound as it is.
      lowpass_filter_width: zeros of the sinc on each side. More of them make a sharper filter, and take as much more time.
      rolloff: where the filter's band ends, in parts of the lower rate's half.
      resampling_method: "sinc_interp_hann" or "sinc_interp_kaiser", the window.
      beta: of Kaiser's window.
      name: ignored.

    Returns:
      ceil(samples * rate_out / rate_in) samples, float32.
    """
    del name
    keywords = {"lowpass_filter_width": lowpass_filter_width, "rolloff": rolloff, "resampling_method": resampling_method}
    if beta is not None:
        keywords["beta"] = beta
    return _language.call("resample_audio", (input, rate_in, rate_out), keywords, "penstock.audio.resample")


def __dir__():
    return sorted(__all__)
