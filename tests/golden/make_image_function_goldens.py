"""Makes image_functions.json: what TensorFlow makes of small images by the image functions of the expression language.

Run by hand, with TensorFlow, from any directory. A case's text means the same here, where the names are
TensorFlow's functions, and in an expression, where they are Penstock's.
"""

import json
import math
import pathlib

import numpy as np
import tensorflow as tf

RANDOM = np.random.default_rng(6)


def pixels(dtype, *shape):
    information = np.iinfo(dtype)
    return RANDOM.integers(information.min, information.max, shape, dtype, endpoint=True)


IMAGES = {
    "u8": pixels(np.uint8, 7, 5, 3),
    "wide": pixels(np.uint8, 4, 50, 3),
    "tall": pixels(np.uint8, 41, 6, 3),
    "grey": pixels(np.uint8, 6, 9, 1),
    "rgba": pixels(np.uint8, 5, 8, 4),
    "one": pixels(np.uint8, 1, 1, 3),
    "u16": pixels(np.uint16, 5, 6, 3),
    "i8": pixels(np.int8, 6, 4, 3),
    "i16": pixels(np.int16, 6, 5, 3),
    "u32": pixels(np.uint32, 2, 6, 2),
    "i32": pixels(np.int32, 3, 5, 2),
    "f": RANDOM.random((8, 7, 3), np.float32),
    "d": RANDOM.random((5, 4, 3)),
    "far": RANDOM.normal(0, 3, (6, 6, 3)).astype(np.float32),
    "flat": np.full((6, 5, 3), 77, np.uint8),
    "column": pixels(np.uint8, 200, 2, 3),
}
cases = []
# How far methods of resize may be from TensorFlow's results.
RESIZE = {"lanczos3": 2.5e-6, "lanczos5": 2.5e-6}


def case(text, tolerance=0):
    """tolerance: integers may be as far from TensorFlow's; floats by it times the greater of 1 and their size."""
    cases.append((text, tolerance))


def geometry():
    for image in ("u8", "grey", "wide", "f", "i16", "d"):
        for fraction in ("0.5", "0.1", "0.875", "0.333", "1", "1.0", "0.01"):
            case(f"central_crop({image}, {fraction})")
        for text in ("flip_left_right({})", "flip_up_down({})", "image_transpose({})", "rot90({})", "rot90({}, 2)",
                     "rot90({}, k=3)", "rot90({}, 4)", "rot90({}, k=-1)", "rot90({}, 7)"):
            case(text.format(image))
        for size in ("3, 3", "4, 5", "5, 4", "7, 5", "20, 20", "1, 60", "60, 1", "6, 9", "9, 6"):
            case(f"resize_with_crop_or_pad({image}, {size})")
    for image in ("rgba", "one", "u16", "i8", "i32"):
        case(f"resize_with_crop_or_pad({image}, 4, 9)"), case(f"rot90({image})"), case(f"flip_left_right({image})")
    case("crop_to_bounding_box(u8, 0, 0, 7, 5)"), case("crop_to_bounding_box(u8, 2, 1, 3, 4)")
    case("crop_to_bounding_box(wide, 3, 49, 1, 1)")
    case("crop_to_bounding_box(image=f, offset_height=1, offset_width=2, target_height=5, target_width=4)")
    case("pad_to_bounding_box(u8, 0, 0, 7, 5)"), case("pad_to_bounding_box(u8, 2, 1, 10, 7)")
    case("pad_to_bounding_box(f, 3, 0, 11, 40)"), case("pad_to_bounding_box(grey, 0, 5, 6, 14)")
    case("flip_up_down(rot90(central_crop(u8, 0.6)))"), case("float32(flip_left_right(wide)) * 2.0 + 1.0")
    case("float32(resize_with_crop_or_pad(tall, 50, 50)) / 255.0")


def colour():
    for image in ("u8", "wide", "f", "far", "u16", "i8", "i16", "one", "flat"):
        for delta in ("0.2", "-0.5", "0", "1", "0.03"):
            case(f"adjust_brightness({image}, {delta})")
            case(f"adjust_hue({image}, {delta})")
        for factor in ("0.5", "2", "0", "1", "1.3", "-0.4"):
            case(f"adjust_contrast({image}, {factor})"), case(f"adjust_saturation({image}, {factor})")
        for arguments in ("", ", 2", ", gamma=0.45", ", gamma=2.2, gain=1.5", ", 0.5", ", 0"):
            if image not in ("far", "i8", "i16"):  # a power of a negative number is no number
                case(f"adjust_gamma({image}{arguments})", 0 if image != "f" else 2.5e-7)
        case(f"rgb_to_grayscale({image})")
        case(f"per_image_standardization({image})", 5e-7)
        if image not in ("u8", "u16", "i8", "i16", "wide", "one", "flat"):
            case(f"hsv_to_rgb({image})")
            case(f"rgb_to_hsv({image})")
    case("rgb_to_hsv(float32(wide) / 255.0)"), case("rgb_to_hsv(float32(flat) / 255.0)")
    case("rgb_to_hsv(float32(tall))"), case("hsv_to_rgb(rgb_to_hsv(f))")
    for image in ("grey", "rgba"):
        case(f"adjust_brightness({image}, 0.1)"), case(f"adjust_contrast({image}, 1.7)")
        case(f"adjust_gamma({image}, 1.8)"), case(f"per_image_standardization({image})", 5e-7)
    for image in ("u8", "i8", "u16", "i16", "i32", "u32"):
        for dtype in ("uint8", "int8", "uint16", "int16", "int32", "uint32"):
            case(f'convert_image_dtype({image}, "{dtype}")')
            # TensorFlow has no clip of uint32.
            if "uint32" not in (dtype, f"uint{image[1:]}"):
                case(f'convert_image_dtype({image}, "{dtype}", saturate=True)')
        case(f'convert_image_dtype({image}, "float32")'), case(f'convert_image_dtype({image}, "float64")')
    for image in ("f", "d", "far"):
        for dtype in ("uint8", "int8", "uint16", "int16", "int32", "uint32"):
            if dtype == "uint32" and image == "far":
                continue
            case(f'convert_image_dtype({image}, "{dtype}", True)')
            if image != "far":
                case(f'convert_image_dtype({image}, "{dtype}")')
        case(f'convert_image_dtype({image}, "float32")'), case(f'convert_image_dtype({image}, dtype="float64")')
    for image in ("u8", "f", "wide", "far"):
        for layout in ("", ', "HWC"', ', layout="CHW"'):
            case(f"normalize({image}, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]{layout})")
            case(f"normalize({image}, 127.5, 3{layout})")
            case(f"normalize({image}, [1, 2, 3], 0.1{layout})")
    case('normalize(grey, [0.5], 255, "CHW")'), case('normalize(rgba, 1, [1, 2, 3, 4], "CHW")')


def resizes():
    methods = ("nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "bilinear")
    for image in ("u8", "wide", "tall", "rgba", "f"):
        for method in methods:
            for size in ("[4, 5]", "[9, 13]", "[7, 20]", "[30, 3]"):
                case(f'resize({image}, {size}, "{method}")', RESIZE.get(method, 0))
                case(f'resize({image}, {size}, method="{method}", antialias=True)', RESIZE.get(method, 0))
            case(f'resize({image}, [8, 8], "{method}", preserve_aspect_ratio=True)', RESIZE.get(method, 0))
            case(f'resize({image}, [17, 11], "{method}", True, True)', RESIZE.get(method, 0))
            # Of the wide one nothing would be left in a square of 12.
            size = "14, 30" if image == "wide" else "12, 12"
            case(f'resize_with_pad({image}, {size}, "{method}")', RESIZE.get(method, 0))
            case(f'resize_with_pad({image}, 11, 17, method="{method}", antialias=True)', RESIZE.get(method, 0))
    for image in ("grey", "one", "i16", "u16", "i8"):
        for method in methods:
            case(f'resize({image}, [5, 6], "{method}")', RESIZE.get(method, 0))
    for image in ("i32", "d"):
        case(f'resize({image}, [4, 7], "nearest")')
    for size in ("[1, 1]", "[1, 2]", "[2, 3]", "[3, 1]"):
        case(f'resize(column, {size}, "area")'), case(f'resize(float32(column) / 7.0, {size}, "area")')


def of_the_data():
    """Sizes and places that the text computes."""
    for image in ("u8", "grey", "wide", "f", "i16"):
        for method in ("bilinear", "nearest", "bicubic"):
            case(f'resize({image}, shape({image})[:2] * 2 // 3 + 1, "{method}")')
            case(f'resize({image}, shape({image})[:2] * 2 + 1, method="{method}", preserve_aspect_ratio=True)')
        case(f"resize_with_crop_or_pad({image}, shape({image})[1], shape({image})[0] + 2)")
        case(f"crop_to_bounding_box({image}, shape({image})[0] // 3, shape({image})[1] // 4, 2, shape({image})[1] // 2)")
        case(f"crop_to_bounding_box({image}, 1, shape({image})[1] - 2, shape({image})[0] - 1, 2)")
        case(f"pad_to_bounding_box({image}, shape({image})[0], 1, shape({image})[0] * 2, shape({image})[1] + 3)")
        case(f"{image}[shape({image})[0] // 3:, 1:shape({image})[1] - 2]")
        case(f"{image}[-shape({image})[0]:2, shape({image})[1] // 2, ::-1]")
        case(f"crop_to_bounding_box(resize({image}, shape({image})[:2] + 3), shape({image})[0] // 2, 2, 4, 3)")
        case(f"resize({image}, shape({image})[:2] + 3)[2:shape({image})[0], shape({image})[1] - 4:]")


def numbers():
    for image in ("u8", "i8", "i16", "i32", "u16", "grey"):
        for arguments in ("3", "200", "12, 5, -1", "100, dtype=\"float64\"", "40, on_value=7, off_value=2, dtype=\"uint8\"",
                          "40, 1, 0, \"int64\""):
            if image not in ("i32", "u16") or arguments[0] == "3":
                case(f"one_hot(int32({image}), {arguments})")
    case("one_hot(argmax(u8), 3)"), case("one_hot(int64(u8 % 12), 12)")
    for image in ("u8", "i8", "i16", "u16", "i32", "f", "d", "far", "flat", "tall"):
        for axis in ("", ", -1", ", axis=-2", ", axis=-3"):
            case(f"argmax({image}{axis})"), case(f"cumsum({image}{axis})")


def files():
    for quality in ("0", "10", "50", "75", "95", "100"):
        for image in ("u8", "wide", "grey", "one"):
            case(f"adjust_jpeg_quality({image}, {quality})")
        case(f"decode_jpeg(encode_jpeg(tall, quality={quality}), 3)")
        case(f"decode_jpeg(encode_jpeg(tall, {quality}, True, chroma_downsampling=False), 3)")
    case("decode_jpeg(encode_jpeg(wide, optimize_size=True), 3)"), case("decode_jpeg(encode_jpeg(grey), 1)")
    for image in ("u8", "wide", "grey", "rgba", "one"):
        for compression in ("", ", 0", ", compression=9"):
            case(f"decode_png(encode_png({image}{compression}))")
    case('decode_png(encode_png(u16), dtype="uint16")'), case("decode_png(encode_png(u16))")


def normalize(image, mean, std, layout="HWC"):
    """No function of tf.image: what its users write."""
    mean, std = tf.constant(mean, tf.float32), tf.constant(std, tf.float32)
    result = (tf.cast(image, tf.float32) - mean) / std
    return tf.transpose(result, [2, 0, 1]) if layout == "CHW" else result


def one_hot(indices, depth, on_value=1, off_value=0, dtype="float32"):
    return tf.one_hot(indices, depth, tf.constant(on_value, dtype), tf.constant(off_value, dtype), dtype=dtype)


def numpys(function):
    """NumPy's function, on tensors."""
    return lambda x, axis=-1: tf.constant(function(x.numpy(), axis=axis))


SCOPE = {name: getattr(tf.image, name) for name in dir(tf.image) if not name.startswith("_")}
SCOPE.update({name: getattr(tf.io, name) for name in ("encode_jpeg", "encode_png", "decode_jpeg", "decode_png")})
SCOPE["encode_jpeg"] = lambda image, quality=95, progressive=False, **options: tf.io.encode_jpeg(
    image, quality=quality, progressive=progressive, **options)
SCOPE["decode_png"] = lambda file, dtype="uint8": tf.io.decode_png(file, dtype=tf.as_dtype(dtype))
SCOPE.update(normalize=normalize, one_hot=one_hot, argmax=numpys(np.argmax), cumsum=numpys(np.cumsum),
             int32=lambda x: tf.cast(x, tf.int32), int64=lambda x: tf.cast(x, tf.int64),
             image_transpose=tf.image.transpose, float32=lambda x: tf.cast(x, tf.float32), shape=tf.shape)


def fnv1a(data):
    """FNV-1a, 64 bits: the hash that the tests compute too."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def encode(array, hashed=False):
    array = np.ascontiguousarray(array)
    data = array.tobytes()
    value = {"hash": f"{fnv1a(data):016x}"} if hashed else {"bytes": data.hex()}
    return {"dtype": array.dtype.name, "shape": list(array.shape), **value}


def main():
    geometry(), colour(), resizes(), of_the_data(), numbers(), files()
    lines = []
    for text, tolerance in cases:
        scope = {**SCOPE, **{name: tf.constant(image) for name, image in IMAGES.items()}}
        result = np.asarray(eval(text, {"__builtins__": {}}, scope))
        assert all(math.isfinite(v) for v in result.reshape(-1).tolist()), text
        lines.append(json.dumps({"text": text, "tolerance": tolerance, **encode(result, tolerance == 0)}))
    head = {"tensorflow": tf.__version__, "images": {name: encode(image) for name, image in IMAGES.items()}}
    path = pathlib.Path(__file__).with_name("image_functions.json")
    path.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
