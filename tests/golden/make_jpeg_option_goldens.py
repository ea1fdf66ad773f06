"""Makes jpeg_options.json: what TensorFlow makes of cut JPEG files and of windows of them, and Pillow of turned ones.

Run by hand, with TensorFlow and Pillow, from any directory.
"""

import io
import json
import pathlib

import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps

RANDOM = np.random.default_rng(11)
ORIENTATION = 0x0112


def picture(height, width, channels=3):
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(x / (3 + c) + c) * np.cos(y / (4 - c)) for c in range(channels)]
    noise = RANDOM.normal(0, 6, (height, width, channels))
    return np.clip(np.stack(waves, -1) + noise, 0, 255).astype(np.uint8)


def jpeg(pixels, orientation=None, **options):
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    exif = Image.Exif()
    if orientation is not None:
        exif[ORIENTATION] = orientation
    file = io.BytesIO()
    image.save(file, "JPEG", exif=exif, **options)
    return file.getvalue()


cases = []


def case(kind, file, pixels=None, **arguments):
    entry = {"kind": kind, **arguments, "file": file.hex()}
    if pixels is None:
        entry["fails"] = True
    else:
        entry["shape"] = list(pixels.shape)
        entry["pixels"] = np.ascontiguousarray(pixels).tobytes().hex()
    cases.append(entry)


def recovered():
    for options in ({"subsampling": 2}, {"subsampling": 0}, {"progressive": True}, {"subsampling": 2, "restart_marker_rows": 1}):
        file = jpeg(picture(33, 30), quality=80, **options)
        lengths = [int(len(file) * part) for part in (0.02, 0.3, 0.5, 0.62, 0.75, 0.9)]
        # Not without its last byte: then TensorFlow refuses to recover what it decodes without that option.
        for length in (*lengths, len(file) - 3, len(file) - 2, len(file)):
            cut = file[:length]
            try:
                pixels = tf.io.decode_jpeg(cut, channels=3, try_recover_truncated=True).numpy()
            except tf.errors.InvalidArgumentError:
                pixels = None
            # Behind a cut TensorFlow goes on decoding zeros; here it is grey.
            case("recover", cut, pixels, whole=length >= len(file) - 2)


def cropped():
    for file in (jpeg(picture(33, 30), quality=85), jpeg(picture(24, 40), subsampling=0), jpeg(picture(20, 20, 1))):
        channels = int(tf.io.decode_jpeg(file).shape[-1])
        for window in ([0, 0, 20, 20], [3, 5, 1, 1], [0, 1, 19, 7], [4, 0, 16, 20], [17, 11, 3, 9]):
            # decode_and_crop_jpeg differs from the whole's pixels at its edges where chroma is subsampled.
            y, x, height, width = window
            case("crop", file, tf.io.decode_jpeg(file, channels=channels).numpy()[y : y + height, x : x + width], window=window)
        case("crop", file, window=[30, 0, 10, 10]), case("crop", file, window=[0, 10, 1, 40])


def turned():
    for orientation in (None, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9):
        for subsampling in (0, 2):
            file = jpeg(picture(9, 21), orientation, quality=90, subsampling=subsampling)
            upright = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
            case("upright", file, np.asarray(upright))


def main():
    recovered(), cropped(), turned()
    path = pathlib.Path(__file__).with_name("jpeg_options.json")
    path.write_text('{"cases": [\n' + ",\n".join(json.dumps(entry) for entry in cases) + "\n]}\n")
    print(f"{path}: {len(cases)} cases, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
