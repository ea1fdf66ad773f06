"""Makes resample.json: sounds at other rates, by torchaudio in float64 and by libsoxr.

Run by hand, with torchaudio, soxr and numpy, from any directory.

A case's `tolerance` is in parts of its loudest value. libsoxr's filter is another one, and is what librosa.resample uses: cases of it have tones that both filters leave alone, and
leave out what is near to the ends.
"""

import base64
import json
import pathlib

import numpy as np
import soxr
import torch
import torchaudio

RANDOM = np.random.default_rng(11)
KAISER = {"lowpass_filter_width": 64, "rolloff": 0.9475937167399596, "resampling_method": "sinc_interp_kaiser", "beta": 14.769656459379492}
EXACT = 1e-6


def noise(samples, channels=1):
    return RANDOM.uniform(-1, 1, (samples, channels)).astype(np.float32)


def tones(samples, rate, highest):
    """Tones up to `highest` of a second, that swell and fade."""
    times = np.arange(samples)[:, None] / rate
    values = sum(np.sin(2 * np.pi * tone * times + tone) for tone in np.linspace(highest / 7, highest, 5)) / 5
    return (values * np.sin(np.pi * np.arange(samples)[:, None] / samples) ** 2).astype(np.float32)


def packed(values):
    return base64.b64encode(np.ascontiguousarray(values, np.float32).tobytes()).decode()


def by_torchaudio(name, sound, rate_in, rate_out, **options):
    """By float64, in which the filter is computed then."""
    wide = torchaudio.functional.resample(torch.from_numpy(sound.T.astype(np.float64)), rate_in, rate_out, **options).numpy().T
    narrow = torchaudio.functional.resample(torch.from_numpy(sound.T.copy()), rate_in, rate_out, **options).numpy().T
    peak = np.abs(wide).max() if wide.size else 1
    print(f"{name}: float32 differs by {np.abs(wide - narrow).max() / peak:.1e}")
    return {"name": name, "rate_in": rate_in, "rate_out": rate_out, "options": options, "channels": sound.shape[1], "sound": packed(sound), "want": packed(wide),
            "samples": len(wide), "skip": 0, "tolerance": EXACT}  # fmt: skip


def by_soxr(name, sound, rate_in, rate_out, tolerance, **options):
    wanted = soxr.resample(sound.astype(np.float64), rate_in, rate_out, quality="HQ")
    count = -(-len(sound) * rate_out // rate_in)
    wanted = np.pad(wanted, ((0, max(0, count - len(wanted))), (0, 0)))[:count]
    return {"name": f"{name}, by libsoxr", "rate_in": rate_in, "rate_out": rate_out, "options": options, "channels": 1, "sound": packed(sound), "want": packed(wanted),
            "samples": count, "skip": count // 8, "tolerance": tolerance}  # fmt: skip


def main():
    cases = [by_torchaudio(f"{a} to {b}", noise(count, channels), a, b) for a, b, count, channels in (
        (44100, 16000, 700, 2), (48000, 16000, 500, 1), (16000, 48000, 150, 1), (22050, 44100, 120, 3), (8000, 16000, 90, 1), (44100, 48000, 400, 1), (48000, 44100, 600, 2),
        (96000, 8000, 1000, 1), (11025, 16000, 200, 1), (32000, 22050, 333, 1), (4411, 4409, 300, 1), (192000, 1000, 2000, 1), (1000, 192000, 5, 1), (7, 5, 1, 1), (5, 7, 2, 1),
        (3, 1000, 3, 1), (16000, 16000, 50, 2))]  # fmt: skip
    cases.append(by_torchaudio("a long one", noise(9000), 44100, 16000))
    cases.append(by_torchaudio("a sharper filter", noise(900), 44100, 16000, lowpass_filter_width=32, rolloff=0.9))
    cases.append(by_torchaudio("Kaiser's window", noise(900), 48000, 44100, **KAISER))
    cases.append(by_torchaudio("another beta", noise(400), 8000, 11025, resampling_method="sinc_interp_kaiser", beta=6.5))
    cases.append(by_torchaudio("a wide band", noise(200), 16000, 24000, lowpass_filter_width=1, rolloff=1.0))
    cases.append(by_soxr("tones", tones(2000, 44100, 4000), 44100, 16000, 1e-2))
    cases.append(by_soxr("tones, a sharper filter", tones(2000, 44100, 6000), 44100, 16000, 1e-3, **KAISER))
    cases.append(by_soxr("tones upwards, a sharper filter", tones(1000, 16000, 6000), 16000, 48000, 1e-3, **KAISER))
    path = pathlib.Path(__file__).with_name("resample.json")
    head = {"torchaudio": torchaudio.__version__, "soxr": soxr.__libsoxr_version__}
    path.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
