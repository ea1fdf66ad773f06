"""Makes docs/pictures/functions/NAME.png: what each function of images does to a small picture, the picture itself on its left.

    python docs/pictures/make_function_pictures.py [PENSTOCK]

PENSTOCK is the command, by default build/release/bin/penstock: one `penstock run` computes and encodes them all. Needs NumPy.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

FOLDER = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 64, 96
# What has another height than the picture stands alone.
BESIDE = {
    "adjust_brightness": "adjust_brightness(image, 0.3)",
    "adjust_contrast": "adjust_contrast(image, 2)",
    "adjust_gamma": "adjust_gamma(image, 2.5)",
    "adjust_hue": "adjust_hue(image, 0.3)",
    "adjust_jpeg_quality": "adjust_jpeg_quality(image, 5)",
    "adjust_saturation": "adjust_saturation(image, 0.3)",
    "adjust_sharpness": "adjust_sharpness(image, 8)",
    "affine": 'affine(image, [1, 0.4, -16, 0.1, 1.1, -8], "bilinear")',
    "auto_augment": "auto_augment(image, seed=5)",
    "autocontrast": "autocontrast(image, 2)",
    "color_jitter": "color_jitter(image, 0.4, 0.4, 0.8, 0.2, seed=3)",
    "color_map": "concat(CLASSES, CLASSES, CLASSES)".replace(
        "CLASSES", "color_map(uint8(image > 127) * uint8(255), COLORS, one_hot=False)[..., None] * uint8(36)"),
    "equalize": "equalize(image)",
    "gaussian_blur": "gaussian_blur(image, 9)",
    "convert_image_dtype": 'convert_image_dtype(convert_image_dtype(image, "float32") * 0.5, "uint8")',
    "flip_left_right": "flip_left_right(image)",
    "flip_up_down": "flip_up_down(image)",
    "hsv_to_rgb": "uint8(hsv_to_rgb(float32(image) / 255) * 255)",
    "normalize": "uint8(clip(normalize(image, [150, 128, 90], [60, 50, 40]) * 64 + 128, 0, 255))",
    "per_image_standardization": "uint8(clip(per_image_standardization(image) * 64 + 128, 0, 255))",
    "posterize": "posterize(image, 2)",
    "rand_augment": "rand_augment(image, 2, 15, seed=4)",
    "random_affine": 'random_affine(image, [-30, 30], [0.1, 0.1], [0.7, 1.2], [-20, 20], "bilinear", seed=2)',
    "random_brightness": "random_brightness(image, 0.5, seed=2)",
    "random_contrast": "random_contrast(image, 0.2, 3, seed=1)",
    "random_cutout": "random_cutout(image, [30, 40], seed=3)",
    "random_erasing": "random_erasing(image, 1.0, seed=4)",
    "random_flip_left_right": "random_flip_left_right(image, seed=7)",
    "random_flip_up_down": "random_flip_up_down(image, seed=3)",
    "random_gamma": "random_gamma(image, 0.3, 3, seed=1)",
    "random_gaussian_blur": "random_gaussian_blur(image, 9, seed=1)",
    "random_hue": "random_hue(image, 0.5, seed=1)",
    "random_jpeg_quality": "random_jpeg_quality(image, 1, 15, seed=1)",
    "random_rotation": 'random_rotation(image, [-45, 45], "bilinear", seed=2)',
    "random_saturation": "random_saturation(image, 0, 3, seed=5)",
    "random_resized_crop": "uint8(random_resized_crop(image, [64, 96], seed=6))",
    "resize": "uint8(resize(image, [64, 32]))",
    "resize_with_crop_or_pad": "resize_with_crop_or_pad(image, 64, 128)",
    "resize_with_pad": "uint8(resize_with_pad(image, 64, 64))",
    "rgb_to_grayscale": "concat(rgb_to_grayscale(image), rgb_to_grayscale(image), rgb_to_grayscale(image))",
    "rotate": 'rotate(image, 20, "bilinear")',
    "rgb_to_hsv": "uint8(rgb_to_hsv(float32(image) / 255) * 255)",
    "solarize": "solarize(image, 160)",
    "trivial_augment_wide": 'trivial_augment_wide(image, method="bilinear", seed=9)',
}
ALONE = {
    "central_crop": "central_crop(image, 0.5)",
    "crop_to_bounding_box": "crop_to_bounding_box(image, 10, 30, 40, 50)",
    "image_transpose": "image_transpose(image)",
    "pad": 'pad(image, [[16, 16], [24, 24], [0, 0]], mode="reflect")',
    "pad_to_bounding_box": "pad_to_bounding_box(image, 8, 24, 96, 128)",
    "random_crop": "random_crop(image, [40, 50, 3], seed=1)",
    "rot90": "rot90(image)",
}


def picture():
    """A house by a lake at noon: a ramp, edges, flat colours and a texture."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    image = np.empty((HEIGHT, WIDTH, 3))
    image[:] = np.stack([120 + y, 170 + y * 0.6, 235 - y * 0.2], -1)
    image[(x - 76) ** 2 + (y - 13) ** 2 < 60] = (255, 220, 90)
    image[y > 40] = (60, 120, 60)
    waves = y > 48
    image[waves] = np.stack([40 + 20 * np.sin(x / 2 + y), 90 + 25 * np.sin(x / 2 + y), 160 + 30 * np.sin(x / 2 + y)], -1)[waves]
    image[(x > 18) & (x < 44) & (y > 26) & (y < 46)] = (190, 90, 60)
    image[(y > 14) & (y <= 26) & (abs(x - 31) < (y - 13) * 1.35)] = (110, 40, 45)
    image[(x > 23) & (x < 29) & (y > 31) & (y < 37)] = (250, 240, 180)
    image[(x > 34) & (x < 40) & (y > 33) & (y < 46)] = (70, 45, 35)
    return image.astype(np.uint8)


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else FOLDER.parents[1] / "build/release/bin/penstock"
    texts = {name: f"concat(image, {text}, axis=-2)" for name, text in BESIDE.items()} | ALONE
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        np.save(scratch / "image.npy", picture()[None])
        outs = "\n".join(f"    out: 'png_{name} = encode_png({text}, 9)'" for name, text in texts.items())
        colors = "int_value: [0, 0, 0, 255, 255, 255, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 255, 0, 255, 0, 255] shape: [8, 3]"
        (scratch / "pictures.textproto").write_text(
            f'name: "pictures"\nstage {{ from_tensor_slices {{ tensor {{ name: "image" npy: "{scratch}/image.npy" }} }} }}\n'
            f'stage {{\n  map {{\n    constant {{ name: "COLORS" {colors} }}\n{outs}\n  }}\n}}\nstage {{ batch {{ batch_size: 1 }} }}\n')
        subprocess.run([command, "run", scratch / "pictures.textproto", "--steps", "1", "--out", scratch / "out"], check=True)
        (file,) = sorted((scratch / "out").glob("*.npz"))
        with np.load(file, allow_pickle=False) as arrays:
            for name in texts:
                (FOLDER / "functions" / f"{name}.png").write_bytes(arrays[f"png_{name}.bytes"].tobytes())
    print(f"{FOLDER / 'functions'}: {len(texts)} pictures")


if __name__ == "__main__":
    main()
