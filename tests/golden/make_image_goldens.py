"""Makes images/*.jpg, image_decode.inc and image_resize.inc: what TensorFlow makes of small JPEG images.

Run by hand, with TensorFlow and Pillow, from any directory. The JPEG files are synthetic and drawn from a fixed seed; they
are made again only if the folder is empty, since another Pillow writes other bytes.
"""

import pathlib

import numpy as np
import tensorflow as tf
from PIL import Image

HERE = pathlib.Path(__file__).parent
IMAGES = HERE / "images"


def fnv1a(data: bytes) -> int:
    """FNV-1a, 64 bits: the hash that the tests compute too."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def scene(height, width, channels, seed):
    """Smooth colours, hard edges and some noise, as uint8."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    out = np.zeros((height, width, channels))
    for c in range(channels):
        phase = random.uniform(0, 6, 4)
        out[..., c] = (128 + 50 * np.sin(x / 9 + phase[0]) + 50 * np.cos(y / 7 + phase[1])
                       + 20 * np.sin((x + y) / 3 + phase[2]))
    for _ in range(5):
        top, left = random.integers(0, height), random.integers(0, width)
        out[top:top + height // 4, left:left + width // 4] = random.uniform(0, 255, channels)
    out += random.normal(0, 6, out.shape)
    return np.clip(np.round(out), 0, 255).astype(np.uint8)


def make_images():
    IMAGES.mkdir(exist_ok=True)
    if any(IMAGES.iterdir()):
        return

    def save(name, array, mode, **options):
        array = array[..., 0] if array.shape[-1] == 1 else array
        Image.fromarray(array, mode).save(IMAGES / name, "JPEG", **options)

    save("rgb_420.jpg", scene(48, 64, 3, 1), "RGB", quality=90, subsampling=2)
    save("rgb_420_odd.jpg", scene(33, 47, 3, 2), "RGB", quality=90, subsampling=2)
    save("rgb_422.jpg", scene(40, 50, 3, 3), "RGB", quality=75, subsampling=1)
    save("rgb_444.jpg", scene(37, 29, 3, 4), "RGB", quality=95, subsampling=0)
    save("rgb_progressive.jpg", scene(48, 64, 3, 5), "RGB", quality=85, progressive=True)
    save("rgb_restarts.jpg", scene(48, 64, 3, 6), "RGB", quality=85, restart_marker_blocks=2)
    exif = Image.Exif()
    exif[0x0112] = 6
    save("rgb_exif_rotated.jpg", scene(24, 40, 3, 7), "RGB", quality=85, exif=exif)
    save("rgb_tiny.jpg", scene(1, 2, 3, 8), "RGB", quality=85)
    save("grey.jpg", scene(31, 45, 1, 9), "L", quality=85)
    save("cmyk.jpg", scene(24, 40, 4, 10), "CMYK", quality=85)
    # The same without the Adobe marker: its inks are not inverted.
    data = (IMAGES / "cmyk.jpg").read_bytes()
    start = data.index(b"\xff\xee")
    size = int.from_bytes(data[start + 2:start + 4], "big")
    (IMAGES / "cmyk_plain.jpg").write_bytes(data[:start] + data[start + 2 + size:])
    # Wide enough for the resize of the flowers pipeline to shrink it.
    save("rgb_photo.jpg", scene(150, 200, 3, 11), "RGB", quality=70, subsampling=2)


def decode(data, channels=0, ratio=1, fancy=True, dct=""):
    """None where TensorFlow refuses."""
    try:
        return tf.io.decode_jpeg(data, channels=channels, ratio=ratio, fancy_upscaling=fancy,
                                 dct_method=dct).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def decode_rows():
    def row(name, size, flip, channels, ratio, fancy, accurate, image):
        shape = (0, 0, 0) if image is None else image.shape
        value = 0 if image is None else fnv1a(image.tobytes())
        flags = ", ".join(str(flag).lower() for flag in (fancy, accurate))
        return (f'{{"{name}", {size}, {flip}, {channels}, {ratio}, {flags}, '
                f'{{{shape[0]}, {shape[1]}, {shape[2]}}}, 0x{value:016x}}},')

    for path in sorted(IMAGES.iterdir()):
        data = path.read_bytes()
        for channels in (0, 1, 3):
            for ratio in (1, 2, 4, 8):
                for fancy in (True, False):
                    for accurate in (False, True):
                        if ratio > 1 and accurate:
                            continue  # the reduced transforms exist in one form only
                        image = decode(data, channels, ratio, fancy,
                                       "INTEGER_ACCURATE" if accurate else "")
                        yield row(path.name, len(data), -1, channels, ratio, fancy, accurate, image)
        assert np.array_equal(decode(data), decode(data, dct="INTEGER_FAST")), path
    # Damage: the file cut to so many bytes, or one bit of it flipped.
    random = np.random.default_rng(12)
    for name in ("rgb_420.jpg", "rgb_progressive.jpg", "rgb_restarts.jpg"):
        data = (IMAGES / name).read_bytes()
        sizes = [0, 1, 2, 3, 4, 20, 100, len(data) // 2, len(data) - 100]
        sizes += [len(data) - i for i in range(1, 8)]
        for size in sizes:
            image = decode(data[:size], 3)
            yield row(name, size, -1, 3, 1, True, False, image)
        for flip in sorted(random.choice(np.arange(24, len(data) * 8), 40, replace=False)):
            damaged = bytearray(data)
            damaged[flip // 8] ^= 1 << flip % 8
            yield row(name, len(data), flip, 3, 1, True, False, decode(bytes(damaged), 3))


def resize_rows():
    sizes = [(192, 192), (24, 32), (48, 64), (1, 1), (5, 7), (100, 3), (47, 65), (13, 11), (16, 6),
             (64, 200)]
    for name in ("rgb_420.jpg", "rgb_420_odd.jpg", "rgb_tiny.jpg", "grey.jpg", "rgb_photo.jpg"):
        pixels = decode((IMAGES / name).read_bytes())
        for is_float in (False, True):
            image = pixels.astype(np.float32) / np.float32(255) if is_float else pixels
            for height, width in sizes:
                out = tf.image.resize(image, [height, width]).numpy()
                assert out.dtype == np.float32
                yield (f'{{"{name}", {str(is_float).lower()}, {height}, {width}, '
                       f'0x{fnv1a(out.tobytes()):016x}}},')


def write(name, rows):
    with open(HERE / name, "w", encoding="ascii") as out:
        out.write(f"// Written by make_image_goldens.py with TensorFlow {tf.__version__}.\n")
        for row in rows:
            out.write(row + "\n")


if __name__ == "__main__":
    make_images()
    write("image_decode.inc", decode_rows())
    write("image_resize.inc", resize_rows())
