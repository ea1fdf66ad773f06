"""Makes image_png.json: small PNG files of every kind, and what TensorFlow decodes them to.

Run by hand, with TensorFlow, from any directory. The files are written here, since Pillow writes no interlaced ones,
no 16-bit colours and no grey of 2 bits.
"""

import json
import pathlib
import struct
import zlib

import numpy as np
import tensorflow as tf

RANDOM = np.random.default_rng(16)
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def fnv1a(data):
    """FNV-1a, 64 bits: the hash that the tests compute too."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def filtered(rows, step):
    """Each row with a filter of its own, in turn through all five."""
    out, above = b"", bytes(len(rows[0]))
    for number, row in enumerate(rows):
        kind, line = number % 5, bytearray()
        for i, value in enumerate(row):
            left = row[i - step] if i >= step else 0
            corner = above[i - step] if i >= step else 0
            estimate = left + above[i] - corner
            distances = [abs(estimate - left), abs(estimate - above[i]), abs(estimate - corner)]
            paeth = (left, above[i], corner)[distances.index(min(distances))]
            line.append((value - (0, left, above[i], (left + above[i]) // 2, paeth)[kind]) & 255)
        out += bytes([kind]) + bytes(line)
        above = row
    return out


def png(samples, colour, depth, interlaced=False, extra=b""):
    height, width, channels = samples.shape
    assert channels == CHANNELS[colour]
    data = b""
    for left, top, dx, dy in PASSES if interlaced else [(0, 0, 1, 1)]:
        part = samples[top::dy, left::dx]
        if part.size == 0:
            continue
        if depth == 16:
            rows = [row.astype(">u2").tobytes() for row in part]
        else:
            bits = [np.unpackbits(row.astype(np.uint8).reshape(-1, 1), axis=1)[:, 8 - depth:] for row in part]
            rows = [np.packbits(row.reshape(-1)).tobytes() for row in bits]
        data += filtered(rows, max(channels * depth // 8, 1))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    packed = zlib.compress(data)
    half = len(packed) // 2
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", packed[:half]) +
            chunk(b"IDAT", packed[half:]) + chunk(b"IEND"))


def files():
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for height, width in ((7, 11), (1, 1), (2, 3)):
                samples = RANDOM.integers(0, 2**depth, (height, width, CHANNELS[colour]))
                palette = RANDOM.integers(0, 256, (2**min(depth, 8), 3)).astype(np.uint8).tobytes()
                extras = {"": chunk(b"PLTE", palette) if colour == 3 else b""}
                if height == 7 and colour in (0, 2):
                    key = samples[3, 4].astype(">u2").tobytes()
                    extras["_transparent"] = chunk(b"tRNS", key)
                if height == 7 and colour == 3:
                    extras["_transparent"] = extras[""] + chunk(b"tRNS", bytes(range(0, 2**depth * 7 % 256, 7)))
                if height == 7 and colour in (2, 6):
                    extras["_gamma"] = chunk(b"gAMA", struct.pack(">I", 45455))
                    extras["_text"] = chunk(b"tEXt", b"Comment\0nothing") + chunk(b"zTXt", b"a\0\0" + zlib.compress(b"b" * 99))
                for name, extra in extras.items():
                    for interlaced in (False, True):
                        shown = f"colour{colour}_{depth}bit_{height}x{width}{name}{'_interlaced' * interlaced}"
                        yield shown, png(samples, colour, depth, interlaced, extra)


def decode(data, channels, dtype):
    """None where TensorFlow refuses."""
    try:
        image = tf.io.decode_png(data, channels=channels, dtype=dtype).numpy()
    except tf.errors.InvalidArgumentError:
        return None
    return {"shape": list(image.shape), "hash": f"{fnv1a(image.tobytes()):016x}"}


def results(data):
    return [{"channels": c, "dtype": d, "image": decode(data, c, d)} for c in (0, 1, 3, 4) for d in ("uint8", "uint16")]


def damaged(data):
    for size in (0, 1, 7, 8, 20, 33, 40, len(data) - 30, len(data) - 12, len(data) - 1):
        yield data[:size]
    for bit in sorted(RANDOM.choice(len(data) * 8, 60, replace=False)):
        copy = bytearray(data)
        copy[bit // 8] ^= 1 << bit % 8
        yield bytes(copy)


def main():
    lines = []
    for name, data in files():
        lines.append({"name": name, "bytes": data.hex(), "results": results(data)})
        if name in ("colour2_8bit_7x11", "colour3_4bit_7x11_transparent_interlaced"):
            for number, bad in enumerate(damaged(data)):
                result = [{"channels": 3, "dtype": "uint8", "image": decode(bad, 3, "uint8")}]
                lines.append({"name": f"{name}_damaged{number}", "bytes": bad.hex(), "results": result})
    path = pathlib.Path(__file__).with_name("image_png.json")
    body = ",\n".join(json.dumps(line) for line in lines)
    path.write_text(f'{{"tensorflow": "{tf.__version__}", "files": [\n{body}\n]}}\n')
    print(f"{path}: {len(lines)} files")


if __name__ == "__main__":
    main()
