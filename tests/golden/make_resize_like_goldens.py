"""Makes resize_like.json: what Pillow and OpenCV make of small images by their methods of resizing.

Run by hand, with Pillow and opencv-python-headless, from any directory.
"""

import json
import pathlib

import cv2
import numpy as np
import PIL
from PIL import Image

RANDOM = np.random.default_rng(12)
PILLOW = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
          "area": Image.Resampling.BOX, "lanczos3": Image.Resampling.LANCZOS}
OPENCV = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC, "area": cv2.INTER_AREA}
SIZES = [(4, 5), (9, 13), (7, 20), (30, 3), (14, 10), (21, 30), (7, 30)]
IMAGES = {
    "u8": RANDOM.integers(0, 256, (14, 20, 3), np.uint8),
    "grey": RANDOM.integers(0, 256, (13, 9, 1), np.uint8),
    "f": RANDOM.random((14, 20, 1), np.float32),
}


def by_pillow(image, size, method):
    height, width = size
    squeezed = image[..., 0] if image.shape[2] == 1 else image
    picture = Image.fromarray(squeezed)
    if method != "nearest":
        # The columns first, as Pillow up to 12 does always and later releases unless the rows promise less work.
        picture = picture.resize((width, picture.height), PILLOW[method])
    return np.asarray(picture.resize((width, height), PILLOW[method])).reshape(height, width, -1)


def by_opencv(image, size, method):
    height, width = size
    return cv2.resize(image, (width, height), interpolation=OPENCV[method]).reshape(height, width, -1)


def main():
    cases = []
    for name, image in IMAGES.items():
        for size in SIZES:
            for like, methods, resize in (("pil", PILLOW, by_pillow), ("cv2", OPENCV, by_opencv)):
                for method in methods:
                    result = resize(image, size, method)
                    assert result.dtype == image.dtype
                    cases.append({"like": like, "method": method, "image": name, "size": size,
                                  "bytes": np.ascontiguousarray(result).tobytes().hex()})
    head = {"pillow": PIL.__version__, "opencv": cv2.__version__, "images": {
        name: {"dtype": image.dtype.name, "shape": image.shape, "bytes": image.tobytes().hex()} for name, image in IMAGES.items()}}
    path = pathlib.Path(__file__).with_name("resize_like.json")
    path.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n")
    print(f"{path}: {len(cases)} cases, Pillow {PIL.__version__}, OpenCV {cv2.__version__}")


if __name__ == "__main__":
    main()
