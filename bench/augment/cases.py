"""Functions that augment images, each as Penstock's function and as torchvision's of a Pillow image.

Every image is of 224 x 224 x 3 bytes, as smooth as a photograph is; that of `recipe` is a JPEG file of 500 x 375, which is decoded, cropped,
augmented and normalised as torchvision's training of ImageNet does it.
"""

import pathlib

import numpy

BATCH = 16
STEP_SECONDS = {}

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def picture(height, width):
    y, x, c = numpy.mgrid[:height, :width, :3]
    noise = numpy.random.default_rng(0).normal(0, 0.2, x.shape)
    return numpy.clip((numpy.sin(x / 15 + c) + numpy.cos(y / 17) + noise + 2) / 4 * 255, 0, 255).astype(numpy.uint8)


IMAGE = picture(224, 224)

PENSTOCK = {
    "image": lambda f, x: x,
    "rotate_nearest": lambda f, x: f.rotate(x, 17.5),
    "rotate_bilinear": lambda f, x: f.rotate(x, 17.5, method="bilinear"),
    "rotate_bicubic": lambda f, x: f.rotate(x, 17.5, method="bicubic"),
    "translate": lambda f, x: f.affine(x, [1, 0, 17, 0, 1, 0]),
    "equalize": lambda f, x: f.equalize(x),
    "autocontrast": lambda f, x: f.autocontrast(x),
    "posterize": lambda f, x: f.posterize(x, 4),
    "solarize": lambda f, x: f.solarize(x, 128),
    "adjust_sharpness": lambda f, x: f.adjust_sharpness(x, 1.9),
    "gaussian_blur": lambda f, x: f.gaussian_blur(x, 23, sigma=1.5),
    "rand_augment": lambda f, x: f.rand_augment(x, seed=1),
    "rand_augment_bilinear": lambda f, x: f.rand_augment(x, method="bilinear", seed=1),
    "trivial_augment_wide": lambda f, x: f.trivial_augment_wide(x, seed=1),
    "auto_augment": lambda f, x: f.auto_augment(x, seed=1),
}


def torchvision_recipe(folder):
    import io

    import PIL.Image
    import torch
    import torchvision.transforms as transforms

    torch.set_num_threads(1)
    file = (pathlib.Path(folder) / "photo.jpg").read_bytes()
    recipe = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.TrivialAugmentWide(), transforms.ToTensor(),
        transforms.Normalize(MEAN, STD), transforms.RandomErasing(0.1)])
    return lambda _: recipe(PIL.Image.open(io.BytesIO(file)).convert("RGB"))


def penstock_recipe(t, tuned, folder):
    file = (pathlib.Path(folder) / "photo.jpg").read_bytes()
    mean, std = t.np.array(MEAN, t.np.float32), t.np.array(STD, t.np.float32)

    def call(number, file):
        image = t.image.random_resized_crop(t.image.decode_jpeg(file, channels=3), [224, 224], like="pil")
        image = t.image.trivial_augment_wide(t.image.random_flip_left_right(image))
        return t.image.random_erasing((image / t.np.float32(255) - mean) / std, probability=0.1)

    files = t.Dataset.from_tensors(file).repeat()
    return t.Dataset.zip((t.Dataset.range(1 << 40), files)).map(call).batch(BATCH)


def torchvision_functions():
    import torch
    import torchvision.transforms as transforms
    from torchvision.transforms import functional

    torch.set_num_threads(1)
    bilinear, bicubic = transforms.InterpolationMode.BILINEAR, transforms.InterpolationMode.BICUBIC
    return {
        "rotate_nearest": lambda x: functional.rotate(x, 17.5),
        "rotate_bilinear": lambda x: functional.rotate(x, 17.5, bilinear),
        "rotate_bicubic": lambda x: functional.rotate(x, 17.5, bicubic),
        "translate": lambda x: functional.affine(x, 0, [-17, 0], 1, [0, 0]),
        "equalize": functional.equalize,
        "autocontrast": functional.autocontrast,
        "posterize": lambda x: functional.posterize(x, 4),
        "solarize": lambda x: functional.solarize(x, 128),
        "adjust_sharpness": lambda x: functional.adjust_sharpness(x, 1.9),
        "gaussian_blur": lambda x: functional.gaussian_blur(x, [23, 23], [1.5, 1.5]),
        "rand_augment": transforms.RandAugment(),
        "rand_augment_bilinear": transforms.RandAugment(interpolation=bilinear),
        "trivial_augment_wide": transforms.TrivialAugmentWide(),
        "auto_augment": transforms.AutoAugment(),
    }


def _case(function):
    def dataset(t, tuned, folder):
        def call(number):
            return function(t.functions, IMAGE + number.astype(t.np.uint8) * t.np.uint8(0))

        return t.Dataset.range(1 << 40).map(call).batch(BATCH)

    return dataset


CASES = {name: _case(function) for name, function in PENSTOCK.items()} | {"recipe": penstock_recipe}
