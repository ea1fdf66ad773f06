"""Writes images/*.webp, still images of which parsing_cases.py makes files: whole, damaged, and frames of animations.

Run by hand, with a Python that has Pillow with libwebp:  python tests/golden/make_webp_images.py
"""

import pathlib

import numpy as np
from PIL import Image

IMAGES = pathlib.Path(__file__).parent / "images"


def picture(height, width, channels):
    """Waves with an edge, so that each kind of prediction has something to do."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [128 + 90 * np.sin(x / (3 + c) + y / (5 - c)) + 30 * (x > y + c) for c in range(3)]
    alpha = np.clip(x * 40 - y * 9, 0, 255)
    return np.stack([*planes, alpha][:channels], -1).clip(0, 255).astype(np.uint8)


def main():
    for name, channels, options in (
        ("lossy", 3, {"quality": 70}),
        ("lossless", 3, {"lossless": True}),
        ("lossy_alpha", 4, {"quality": 70}),
        ("lossless_alpha", 4, {"lossless": True, "exact": True}),
    ):
        Image.fromarray(picture(8, 9, channels)).save(IMAGES / f"{name}.webp", "WEBP", **options)
    large = Image.fromarray(picture(47, 61, 3))
    large.save(IMAGES / "lossy_large.webp", "WEBP", quality=85)
    large.save(IMAGES / "lossy_coarse.webp", "WEBP", quality=5, method=6)
    large.convert("RGBA").save(IMAGES / "lossless_large.webp", "WEBP", lossless=True)
    Image.fromarray(picture(47, 61, 4)).save(IMAGES / "lossy_alpha_large.webp", "WEBP", quality=60, alpha_quality=30)
    profile = bytes(range(128))
    Image.fromarray(picture(8, 9, 3)).save(IMAGES / "notes.webp", "WEBP", quality=70, exif=b"Exif\0\0II*\0", xmp=b"<x/>", icc_profile=profile)


if __name__ == "__main__":
    main()
