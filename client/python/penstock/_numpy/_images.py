"""tf.image's functions that are made of NumPy's: changes of colours by matrices, edges, patches, boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Tuple

import numpy as np

from penstock._numpy._axes import to_integer
from penstock._tracing import _constants, _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError

if TYPE_CHECKING:
    from penstock._numpy._tensor import Tensor

# The rows are red, green, blue, or luma and the two differences (tf.image's matrices).
_RGB_TO_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
_YUV_TO_RGB = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]
_RGB_TO_YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
_YIQ_TO_RGB = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]


def _require_image(image, shown):
    if not isinstance(image, _trace.StandIn):
        raise TraceError(f"{shown} is called without a traced value", "it works inside a function given to map")
    if image.ndim not in (3, 4):
        raise TraceError(f"{shown} of shape {image.shape}", "an image is (height, width, channels), a batch of them has one axis more")


def _by_matrix(images, matrix, name):
    _require_image(images, f"penstock.image.{name}")
    if images.dtype.kind != "f":
        raise TraceError(f"penstock.image.{name} of {images.dtype}", "penstock.image.convert_image_dtype(image, np.float32) before it")
    return images @ np.array(matrix, images.dtype)


def rgb_to_yuv(images: Any, name: Any = None) -> Tensor:
    """Colours of floats as luma and its differences to blue and red, as tf.image.rgb_to_yuv, within 1e-6 of its values."""
    return _by_matrix(images, _RGB_TO_YUV, "rgb_to_yuv")


def yuv_to_rgb(images: Any, name: Any = None) -> Tensor:
    """The opposite of rgb_to_yuv, as tf.image.yuv_to_rgb."""
    return _by_matrix(images, _YUV_TO_RGB, "yuv_to_rgb")


def rgb_to_yiq(images: Any, name: Any = None) -> Tensor:
    """Colours of floats as luma and the two axes of NTSC, as tf.image.rgb_to_yiq, within 1e-6 of its values."""
    return _by_matrix(images, _RGB_TO_YIQ, "rgb_to_yiq")


def yiq_to_rgb(images: Any, name: Any = None) -> Tensor:
    """The opposite of rgb_to_yiq, as tf.image.yiq_to_rgb."""
    return _by_matrix(images, _YIQ_TO_RGB, "yiq_to_rgb")


def grayscale_to_rgb(images: Any, name: Any = None) -> Tensor:
    """An image of one channel with that channel three times, as tf.image.grayscale_to_rgb."""
    shown = "penstock.image.grayscale_to_rgb"
    _require_image(images, shown)
    if images.shape[-1] != 1:
        raise TraceError(f"{shown} of {images.shape[-1] or 'an unknown number of'} channels", "channels=1 of the decoder, or penstock.functions.ensure_shape")
    return images[..., [0, 0, 0]]


def sobel_edges(image: Any) -> Tensor:
    """Edges along both axes by Sobel's masks: (..., height, width, channels, 2), of which the first is down and the second to the right.

    As tf.image.sobel_edges; float32 of integers. Where sums are not exact, within rounding of its values.
    """
    _require_image(image, "penstock.image.sobel_edges")
    image = image if image.dtype.kind == "f" else image.astype(np.float32)
    around = [(0, 0)] * (image.ndim - 3) + [(1, 1), (1, 1), (0, 0)]
    x = np.pad(image, around, mode="reflect")
    left, middle, right = x[..., :-2, :], x[..., 1:-1, :], x[..., 2:, :]
    across, beside = left + middle * 2 + right, right - left
    down = across[..., 2:, :, :] - across[..., :-2, :, :]
    along = beside[..., :-2, :, :] + beside[..., 1:-1, :, :] * 2 + beside[..., 2:, :, :]
    return np.stack([down, along], axis=-1)


def image_gradients(image: Any) -> Tuple[Tensor, Tensor]:
    """The differences to the pixel below and to the one at the right, zeros at the ends, as tf.image.image_gradients gives them: a pair."""
    _require_image(image, "penstock.image.image_gradients")
    below = image[..., 1:, :, :] - image[..., :-1, :, :]
    right = image[..., 1:, :] - image[..., :-1, :]
    before = [(0, 0)] * (image.ndim - 3)
    return np.pad(below, [*before, (0, 1), (0, 0), (0, 0)]), np.pad(right, [*before, (0, 0), (0, 1), (0, 0)])


def total_variation(images: Any, name: Any = None) -> Tensor:
    """The sum of all differences between neighbours, as tf.image.total_variation, of each image by itself."""
    shown = "penstock.image.total_variation"
    _require_image(images, shown)
    if images.dtype.kind == "u":
        # Differences would wrap.
        raise TraceError(f"{shown} of {images.dtype}", "penstock.image.convert_image_dtype(image, np.float32) before it")
    below = np.abs(images[..., 1:, :, :] - images[..., :-1, :, :])
    right = np.abs(images[..., 1:, :] - images[..., :-1, :])
    return np.sum(below, axis=(-3, -2, -1)) + np.sum(right, axis=(-3, -2, -1))


def _of_both_axes(values, what):
    """Two integers, of tf.image's four or as two, or one for both."""
    values = values if isinstance(values, (tuple, list, np.ndarray)) else [values] * 2
    values = [to_integer(value, f"penstock.image.extract_patches: {what}") for value in values]
    if len(values) == 4 and values[0] == values[3] == 1:
        values = values[1:3]
    if len(values) != 2 or min(values) < 1:
        raise TraceError(f"penstock.image.extract_patches: {what}={values}", "[1, height, width, 1], as of tf.image")
    return values


def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: Any, name: Any = None) -> Tensor:
    """Windows of an image of known size, each as one list: (..., rows, columns, height * width * channels), as tf.image.extract_patches.

    Args:
      sizes, strides, rates: [1, height, width, 1], how large windows are, how far apart, and how far apart their pixels.
      padding: "VALID", windows within the image, or "SAME", zeros around it.
    """
    shown = "penstock.image.extract_patches"
    _require_image(images, shown)
    if padding not in ("VALID", "SAME"):
        raise TraceError(f"{shown} with padding={padding!r}", 'it is "VALID" or "SAME"')
    if None in images.shape[-3:]:
        raise TraceError(f"{shown} of an image of shape {images.shape}", "resize, crop or pad before it: its size is known")
    both = zip(images.shape[-3:-1], *(_of_both_axes(values, what) for values, what in ((sizes, "sizes"), (strides, "strides"), (rates, "rates"))))
    around, places = [(0, 0)] * (images.ndim - 3), []
    for size, window, stride, rate in both:
        reach = (window - 1) * rate + 1
        count = -(-size // stride) if padding == "SAME" else (size - reach) // stride + 1
        if count < 1:
            raise TraceError(f"{shown} of windows of {reach} in an image of {size}", 'smaller ones, or padding="SAME"')
        missing = max((count - 1) * stride + reach - size, 0) if padding == "SAME" else 0
        around.append((missing // 2, missing - missing // 2))
        places.append(np.arange(count)[:, None] * stride + np.arange(window) * rate)
    x = images if not np.any(around) else np.pad(images, [*around, (0, 0)])
    # (..., rows, height, columns, width, channels)
    x = x[..., places[0], :, :][..., places[1], :]
    order = [*range(x.ndim - 5), x.ndim - 5, x.ndim - 3, x.ndim - 4, x.ndim - 2, x.ndim - 1]
    x = np.transpose(x, order)
    outer = [-1 if size is None else size for size in x.shape[:-3]]
    return np.reshape(x, [*outer, places[0].shape[1] * places[1].shape[1] * images.shape[-1]])


def crop_and_resize(image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: Any = "bilinear", extrapolation_value: Any = 0.0, name: Any = None) -> Tensor:
    """Parts of images, resized to one size: float32 of shape (boxes, height, width, channels), as tf.image.crop_and_resize gives them.

    Args:
      image: (images, height, width, channels), or one image.
      boxes: (boxes, 4) float32: y1, x1, y2, x2, in parts of the image, whose corners are 0 and 1. What lies outside has the
        extrapolation_value; y1 > y2 turns a part upside down.
      box_indices: of which image each box is, (boxes,); None for one image.
      crop_size: [height, width], constants.
      method: "bilinear", or "nearest".
    """
    shown = "penstock.image.crop_and_resize"
    if method not in ("bilinear", "nearest"):
        raise TraceError(f"{shown} with method={method!r}", 'it is "bilinear" or "nearest"')
    image, boxes = (x if isinstance(x, _trace.StandIn) else _constants.packed(x) for x in (image, boxes))
    boxes = boxes.astype(np.float32)
    if image.ndim not in (3, 4) or boxes.ndim != 2 or boxes.shape[1] != 4 or image.shape[-1] is None:
        raise TraceError(f"{shown} of an image of shape {image.shape} and boxes of shape {boxes.shape}", "(height, width, channels) and (boxes, 4)")
    sizes = [to_integer(size, f"{shown} to the size") for size in crop_size]
    height, width = np.shape(image)[-3], np.shape(image)[-2]
    lines, is_inside = [], None
    for axis, (size, whole) in enumerate(zip(sizes, (height, width))):
        last = (whole - 1).astype(np.float32) if isinstance(whole, _trace.StandIn) else np.float32(whole - 1)
        first, end = boxes[:, axis, None], boxes[:, axis + 2, None]
        if size > 1:
            step = (end - first) * last / np.float32(size - 1)
            line = first * last + np.arange(size, dtype=np.float32) * step
        else:
            line = (0.5 * (first + end).astype(np.float64) * last.astype(np.float64)).astype(np.float32)
        within = (line >= 0) & (line <= last)
        within = within[:, :, None, None] if axis == 0 else within[:, None, :, None]
        is_inside = within if is_inside is None else is_inside & within
        lines.append((line, whole))
    table = np.reshape(image, [-1, image.shape[-1]])
    start = 0
    if image.ndim == 4 and box_indices is not None:
        numbers = box_indices if isinstance(box_indices, _trace.StandIn) else _constants.packed(box_indices)
        start = (numbers.astype(np.int64) * (height * width))[:, None, None]

    def pixels(y, x):
        places = start + y.astype(np.int64)[:, :, None] * width + x.astype(np.int64)[:, None, :]
        # What is outside of the image is not chosen below.
        return call("take", (table, places), {"axis": -2, "mode": "clip"}, shown).astype(np.float32)

    (y, _), (x, _) = lines
    if method == "nearest":
        # Halves are rounded away from zero.
        found = pixels(*(np.trunc(line + np.copysign(np.float32(0.5), line)) for line in (y, x)))
    else:
        top, bottom, left, right = np.floor(y), np.ceil(y), np.floor(x), np.ceil(x)
        part_y, part_x = (y - top)[:, :, None, None], (x - left)[:, None, :, None]
        above, below = pixels(top, left), pixels(bottom, left)
        above = above + (pixels(top, right) - above) * part_x
        below = below + (pixels(bottom, right) - below) * part_x
        found = above + (below - above) * part_y
    return np.where(is_inside, found, np.float32(extrapolation_value))
