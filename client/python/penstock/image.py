"""tf.image's functions, and those of tf.io that decode images, on traced values.

What there is stands in docs/functions.md; `image_NAME` there is `NAME` here.
"""

from typing import TYPE_CHECKING

from penstock._registry import IMAGE as _LOOKED_UP
from penstock._tracing import _names
from penstock._tracing._functions import lookup as _lookup
from penstock._tracing._functions import names as _dir
from penstock._numpy._images import (
    crop_and_resize,
    extract_patches,
    grayscale_to_rgb,
    image_gradients,
    rgb_to_yiq,
    rgb_to_yuv,
    sobel_edges,
    total_variation,
    yiq_to_rgb,
    yuv_to_rgb,
)
from penstock.io import decode_and_crop_jpeg

__all__ = [
    "ResizeMethod",
    "crop_and_resize",
    "decode_and_crop_jpeg",
    "extract_patches",
    "grayscale_to_rgb",
    "image_gradients",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "sobel_edges",
    "total_variation",
    "yiq_to_rgb",
    "yuv_to_rgb",
]


class ResizeMethod:
    """Names of `resize`'s methods, as in tf.image."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


if TYPE_CHECKING:
    from penstock._image_names import *  # noqa: F403
else:

    def __getattr__(name):
        return _lookup(name, "penstock.image", ("image_", ""), instead=_names.instead_of(f"image.{name}"))


def __dir__():
    return _dir(__all__, _LOOKED_UP)
