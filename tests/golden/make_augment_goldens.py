"""Makes image_augment.json: what Pillow and torchvision make of small images by the functions that augment them.

Run by hand, with torchvision and Pillow, from any directory. A case's text means the same here and in an expression. The steps are those of
RandAugment, TrivialAugment and AutoAugment: each operation in each strength and direction, with the hash of what becomes of the image.
"""

import json
import math
import pathlib

import numpy as np
import PIL.Image
import PIL.ImageEnhance
import PIL.ImageOps
import torch
import torchvision
import torchvision.transforms as transforms
from torchvision.transforms import functional
from torchvision.transforms.autoaugment import _apply_op

RANDOM = np.random.default_rng(16)
METHODS = {"nearest": PIL.Image.Resampling.NEAREST, "bilinear": PIL.Image.Resampling.BILINEAR,
           "bicubic": PIL.Image.Resampling.BICUBIC}


def photo(height, width, channels, low=0, high=255):
    """Something smooth with noise on it, so that values occur about as often as in a photograph."""
    y, x, c = np.mgrid[:height, :width, :channels]
    wave = np.sin(x / 5 + c) + np.cos(y / 7 - c / 2) + RANDOM.normal(0, 0.3, y.shape)
    return np.clip(low + (wave + 2) / 4 * (high - low), 0, 255).astype(np.uint8)


IMAGES = {
    "u8": photo(23, 31, 3),
    "grey": photo(20, 17, 1),
    "dim": photo(19, 24, 3, 60, 130),
    "square": photo(16, 16, 3),
    "few": RANDOM.choice(np.array([0, 9, 200, 255], np.uint8), (9, 11, 3)),
    "flat": np.full((6, 5, 3), 77, np.uint8),
    "thin": photo(2, 9, 3),
    "long": photo(40, 2, 1),
    "one": photo(1, 1, 3),
    "f": RANDOM.normal(0, 3, (14, 18, 1)).astype(np.float32),
}
# Those of the steps: large enough that translations differ, and sides differ.
STEP_IMAGES = {"u8": photo(37, 50, 3), "grey": photo(33, 29, 1)}


def to_pillow(array):
    return PIL.Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)


def from_pillow(image):
    array = np.array(image)
    return array[..., None] if array.ndim == 2 else array


def of_pillow(function):
    return lambda image, *arguments, **options: from_pillow(function(to_pillow(image), *arguments, **options))


def filled(image, fill):
    return fill if image.mode in ("L", "F") else (fill,) * 3


def affine(image, matrix, method="nearest", fill=0):
    return image.transform(image.size, PIL.Image.Transform.AFFINE, matrix, METHODS[method], fillcolor=filled(image, fill))


def rotate(image, angle, method="nearest", fill=0):
    return image.rotate(angle, METHODS[method], fillcolor=filled(image, fill))


SCOPE = {name: of_pillow(function) for name, function in {
    "equalize": PIL.ImageOps.equalize, "autocontrast": PIL.ImageOps.autocontrast, "posterize": PIL.ImageOps.posterize,
    "solarize": PIL.ImageOps.solarize, "affine": affine, "rotate": rotate,
    "adjust_sharpness": lambda image, factor: PIL.ImageEnhance.Sharpness(image).enhance(factor)}.items()}


def gaussian_blur(image, kernel_size, sigma=None):
    tensor = torch.from_numpy(image.transpose(2, 0, 1).copy())
    return functional.gaussian_blur(tensor, [kernel_size] * 2, None if sigma is None else [sigma] * 2).numpy().transpose(1, 2, 0)


SCOPE["gaussian_blur"] = gaussian_blur


def texts():
    """Pairs of a text and how far its result may be from what is given here."""
    for image in ("u8", "grey", "dim", "square", "few", "flat", "thin", "long", "one"):
        yield f"equalize({image})", 0
        for cutoff in ("", ", 1", ", 2.5", ", cutoff=20", ", 50"):
            yield f"autocontrast({image}{cutoff})", 0
        for bits in (1, 2, 4, 7, 8):
            yield f"posterize({image}, {bits})", 0
        for threshold in ("", ", 0", ", 76.5", ", 256", ", threshold=200"):
            yield f"solarize({image}{threshold})", 0
        for factor in ("0", "0.3", "1", "1.9", "-1.5", "7"):
            yield f"adjust_sharpness({image}, {factor})", 0
    for image in ("u8", "grey", "square", "thin", "long", "one", "f"):
        for method in METHODS:
            for angle in ("0", "30", "-7.5", "90", "180", "270", "-450.25", "123456.7"):
                yield f'rotate({image}, {angle}, "{method}", 7)', 0
            for matrix in ("[1, 0, 0, 0, 1, 0]", "[1, 0, 3, 0, 1, -2]", "[0.7, 0, 1.3, 0, 1.9, -2.6]", "[1, 0.3, -2, 0.1, 1, 0.5]",
                           "[-1, 0, 12.5, 0, -0.5, 9]", "[0.11, -0.93, 8, 1.2, 0.4, -3]", "[1, 0.001, 40000, 0.3, 1, 0]",
                           "[90000, 1, -40000, 2, 70000, -50000]", "[0, 0, 2.5, 0, 0, 1.5]"):
                yield f'affine({image}, {matrix}, "{method}")', 0
    yield "rotate(u8, 10)", 0
    yield "affine(u8, [1, 0.5, 0, 0, 1, 0], fill=255)", 0
    for image in ("u8", "grey", "square", "f"):
        for arguments in ("1", "3", "5, 1.1", "9, 0.1", "kernel_size=23, sigma=2.0"):
            # A value that is all but halfway between two integers may go either way.
            yield f"gaussian_blur({image}, {arguments})", 1 if image != "f" else 2e-6


def jitters():
    """What torchvision makes of Pillow's images by each operation of ColorJitter, by the factor or the turn; and every colour's hue turned."""
    operations = {"brightness": functional.adjust_brightness, "contrast": functional.adjust_contrast,
                  "saturation": functional.adjust_saturation, "hue": functional.adjust_hue}
    images = {"u8": IMAGES["u8"], "grey": IMAGES["grey"], "few": IMAGES["few"], "one": IMAGES["one"]}
    for name, array in images.items():
        for op, function in operations.items():
            for value in (0, 0.25, 0.9, 1, 1.7, 3) if op != "hue" else (-0.5, -0.3, -0.01, 0.001, 0.1, 0.499, 0.5):
                made = from_pillow(function(to_pillow(array), value))
                yield {"image": name, "op": op, "value": value, "hash": fnv1a(made.tobytes())}
    colours = np.stack(np.meshgrid(*[np.arange(0, 256, step, dtype=np.uint8) for step in (2, 3, 5)], indexing="ij"), -1).reshape(128, -1, 3)
    yield {"image": "colours", "op": "hue", "value": 0.15, "hash": fnv1a(from_pillow(functional.adjust_hue(to_pillow(colours), 0.15)).tobytes())}


def fnv1a(data):
    """FNV-1a, 64 bits: the hash that the tests compute too."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def encode(array, hashed=False):
    array = np.ascontiguousarray(array)
    data = array.tobytes()
    return {"dtype": array.dtype.name, "shape": list(array.shape), **({"hash": fnv1a(data)} if hashed else {"bytes": data.hex()})}


def steps(transform, num_bins, space):
    """What each operation makes of the images: hashes by strength, each with the other direction behind it where there are two."""
    for name, array in STEP_IMAGES.items():
        image = to_pillow(array)
        operations = transform._augmentation_space(num_bins, image.size[::-1]) if space != "trivial" else \
            transform._augmentation_space(num_bins)
        for op, (magnitudes, signed) in operations.items():
            for method in ("nearest", "bilinear"):
                made = [_apply_op(image, op, sign * magnitude, transforms.InterpolationMode(method), None)
                        for magnitude in np.atleast_1d(magnitudes.double().numpy()).tolist() for sign in ((1, -1) if signed else (1,))]
                yield {"space": space, "bins": num_bins, "op": op, "image": name, "method": method,
                       "hashes": [fnv1a(from_pillow(image).tobytes()) for image in made]}


def movements():
    """Degrees, translation, scale, shears, height and width, and the matrix that torchvision makes of them."""
    drawn = [[0, 0, 0, 1, 0, 0, 5, 8], [90, 0, 0, 1, 0, 0, 6, 6], [-30, 3, -2, 0.5, 12, -7, 40, 31]]
    drawn += [[*RANDOM.uniform(-360, 360, 1), *RANDOM.integers(-20, 21, 2).astype(float), RANDOM.uniform(0.1, 4),
               *RANDOM.uniform(-80, 80, 2), *RANDOM.integers(1, 500, 2).astype(float)] for _ in range(40)]
    for degrees, right, down, scale, shear_x, shear_y, height, width in drawn:
        matrix = functional._get_inverse_affine_matrix([width * 0.5, height * 0.5], degrees, [right, down], scale, [shear_x, shear_y])
        yield {"movement": [degrees, right, down, scale, shear_x, shear_y, height, width], "matrix": matrix}


def policies():
    """How often an image meets each operation of each strength."""
    for policy in transforms.AutoAugmentPolicy:
        pairs = transforms.AutoAugment(policy).policies
        shares = {}
        for pair in pairs:
            for op, probability, number in pair:
                key = f"{op} {0 if number is None else number}"
                shares[key] = shares.get(key, 0) + probability / len(pairs)
        yield policy.value, shares


def main():
    cases = []
    for text, tolerance in texts():
        result = eval(text, {"__builtins__": {}}, {**SCOPE, **IMAGES})
        assert all(math.isfinite(v) for v in result.reshape(-1).tolist()), text
        cases.append(json.dumps({"text": text, "tolerance": tolerance, **encode(result, tolerance == 0)}))
    made = [*steps(transforms.RandAugment(), 31, "rand"), *steps(transforms.RandAugment(), 10, "rand"),
            *steps(transforms.TrivialAugmentWide(), 31, "trivial")]
    # AutoAugment has one operation that the others have not.
    made += [{"space": "rand", "bins": 10, "op": "Invert", "image": name, "method": "nearest",
              "hashes": [fnv1a(from_pillow(PIL.ImageOps.invert(to_pillow(array))).tobytes())]} for name, array in STEP_IMAGES.items()]
    lines = [json.dumps(step) for step in made]
    head = {"pillow": PIL.__version__, "torchvision": torchvision.__version__,
            "images": {name: encode(image) for name, image in IMAGES.items()},
            "step_images": {name: encode(image) for name, image in STEP_IMAGES.items()}, "policies": dict(policies()), "movements": list(movements()), "jitters": list(jitters())}
    path = pathlib.Path(__file__).with_name("image_augment.json")
    path.write_text(json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(cases) + '\n], "steps": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{path}: {len(cases)} cases, {len(lines)} steps")


if __name__ == "__main__":
    main()
