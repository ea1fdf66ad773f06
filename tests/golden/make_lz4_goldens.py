"""Makes lz4_frames.json: LZ4 frames of many kinds, by liblz4.

Run by hand, with the package lz4, from any directory.

A case's frame holds one of the plain texts. Those are pieces one after another, each a text and how often it is repeated.
"""

import base64
import json
import pathlib
import random

import lz4.frame as lz4
from lz4 import library_version_string

DICE = random.Random(7)
NOISE = DICE.randbytes(300)
WORDS = " ".join(DICE.choice(["red", "green", "blue", "a longer word", "x"]) for _ in range(400)).encode()
PIECES = {
    "nothing": [],
    "a byte": [(b"a", 1)],
    "noise": [(NOISE, 1)],
    "one byte again and again": [(b"z", 5000)],
    **{f"a pattern of {n}": [(NOISE[:n], 1000 // n + 3)] for n in (2, 3, 5, 7, 8, 9, 15, 16, 17, 31)},
    "words": [(WORDS, 1)],
    # Lengths in one to three further bytes, of literals and of matches.
    "long literals": [(NOISE[:14], 1), (b"q", 20), (NOISE[:15], 1), (b"r", 20), (NOISE[:270], 1), (b"s", 18), (b"t", 19), (b"u", 274), (b"v", 530)],
    "several blocks": [(b"ab" * 20, 1600), (NOISE, 3), (WORDS, 30)],
}
OPTIONS = {
    "": {},
    "sums": {"content_checksum": True, "block_checksum": True},
    "blocks alone": {"block_linked": False, "store_size": False},
    "thorough": {"compression_level": 12, "content_checksum": True},
    "large blocks": {"block_size": lz4.BLOCKSIZE_MAX1MB, "block_linked": False, "content_checksum": True},
}


def main():
    cases = []
    for name, pieces in PIECES.items():
        plain = b"".join(text * times for text, times in pieces)
        for kind, options in OPTIONS.items():
            frame = lz4.compress(plain, **options)
            assert lz4.decompress(frame) == plain
            cases.append({"name": f"{name}, {kind}" if kind else name, "plain": name, "bytes": len(plain), "frame": base64.b64encode(frame).decode()})
    path = pathlib.Path(__file__).with_name("lz4_frames.json")
    plains = {name: [[base64.b64encode(text).decode(), times] for text, times in pieces] for name, pieces in PIECES.items()}
    head = {"lz4": library_version_string(), "plains": plains}
    path.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]}\n")
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
