"""Sounds beside libsndfile: a part of `./dev bench formats`.

audio_flac, audio_mp3   sounds of two seconds, 44,100 samples a second of two channels, one after another: decode_audio and batches of 4 whole sounds; beside soundfile's read() of the same bytes
                        in memory (peer `soundfile`, libsndfile's bare loop), and the same in a DataLoader of torch with two workers (peer `torch`)

--peer-python has soundfile with the system's libsndfile or its own, and torch. Rows are sounds.
"""

import pathlib
import subprocess
import sys
import tempfile

import sides

CASES = ("audio_flac", "audio_mp3")
SOUNDS = 64
SAMPLES = 88_200

# In a Python that has the package.
WRITE = """
import io, sys, numpy as np, soundfile
folder, kind, sounds, samples = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
dice = np.random.default_rng(1)
for number in range(sounds):
    steps = np.cumsum(dice.uniform(0.01, 0.3, (samples, 2)), axis=0)
    values = 0.4 * np.sin(steps) + 0.2 * np.sin(steps * 0.37) + dice.normal(0, 0.01, (samples, 2))
    subtype = {"flac": "PCM_16", "mp3": "MPEG_LAYER_III"}[kind]
    soundfile.write(f"{folder}/{number:03}.{kind}", values, 44100, format=kind.upper(), subtype=subtype)
"""


def main():
    arguments = sides.arguments_of(__doc__.splitlines()[0], CASES)
    seconds, turns = (1, 1) if arguments.quick else (3, arguments.turns)
    for case in arguments.cases.split(","):
        kind = case.removeprefix("audio_")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run([arguments.peer_python, "-c", WRITE, name, kind, str(SOUNDS), str(SAMPLES)], check=True, stdout=sys.stderr)
            stages = [f'files {{ files: "{folder}/*.{kind}" }}', f"map {{ out: 'x = decode_audio(bytes, 2, {SAMPLES})' }}", "batch { batch_size: 4 drop_remainder: true }", "repeat {}"]
            ours = sides.engine(folder, case, stages, seconds)
            for peer in ("soundfile", "torch"):
                theirs = [arguments.peer_python, sides.HERE / "side_audio.py", peer, folder / f"*.{kind}", seconds]
                sides.compare(case, peer, ours, theirs, turns, samples=SAMPLES)


if __name__ == "__main__":
    main()
