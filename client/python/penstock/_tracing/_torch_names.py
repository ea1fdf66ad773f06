"""What stands here for names of torch, torchvision's transforms and albumentations, for whoever writes them after `penstock.` or `penstock.image.`."""

_DRAWN = "np.where(penstock.functions.random_uniform() < p, {}, image)"

# By the names without their case and underscores: both libraries' classes, and torchvision's functions.
_IMAGES = {
    "autoaugment": "penstock.image.auto_augment(image)",
    "blur": "penstock.image.gaussian_blur(image, kernel_size)",
    "center_crop": "penstock.image.resize_with_crop_or_pad(image, height, width)",
    "coarse_dropout": "penstock.image.random_erasing(image) or random_cutout(image, mask_size)",
    "compose": "one function given to map, which calls one after the other",
    "convert_image_dtype": "penstock.image.convert_image_dtype(image, dtype)",
    "crop": "image[top:top + height, left:left + width], or penstock.image.crop_to_bounding_box",
    "cut_mix": "penstock.functions.cutmix(x, size) behind batch",
    "gauss_noise": "image + penstock.functions.random_normal(np.shape(image))",
    "gaussian_noise": "image + penstock.functions.random_normal(np.shape(image))",
    "grayscale": "penstock.image.rgb_to_grayscale(image)",
    "hflip": "penstock.image.flip_left_right(image)",
    "horizontal_flip": "penstock.image.random_flip_left_right(image)",
    "hue_saturation_value": "penstock.image.color_jitter(image, saturation=…, hue=…)",
    "image_compression": "penstock.image.random_jpeg_quality(image, least, most)",
    "invert": "255 - image",
    "jpeg": "penstock.image.random_jpeg_quality(image, least, most)",
    "mix_up": "penstock.functions.mixup(x) behind batch",
    "pad": "np.pad(image, pad_width)",
    "pad_if_needed": "penstock.image.resize_with_crop_or_pad(image, height, width)",
    "pil_to_tensor": "penstock.image.decode_image(contents), and np.moveaxis(image, -1, 0) for channels in front",
    "random_adjust_sharpness": _DRAWN.format("penstock.image.adjust_sharpness(image, factor)"),
    "random_apply": "np.where(penstock.functions.random_uniform() < p, changed, image)",
    "random_autocontrast": _DRAWN.format("penstock.image.autocontrast(image)"),
    "random_brightness_contrast": "penstock.image.color_jitter(image, brightness=…, contrast=…)",
    "random_choice": "np.select of penstock.functions.random_uniform()",
    "random_equalize": _DRAWN.format("penstock.image.equalize(image)"),
    "random_grayscale": _DRAWN.format("penstock.image.color_jitter(image, saturation=[0, 0])"),
    "random_horizontal_flip": "penstock.image.random_flip_left_right(image)",
    "random_invert": _DRAWN.format("255 - image"),
    "random_posterize": _DRAWN.format("penstock.image.posterize(image, bits)"),
    "random_rotate_90": "penstock.image.rot90(image, k)",
    "random_solarize": _DRAWN.format("penstock.image.solarize(image, threshold)"),
    "random_vertical_flip": "penstock.image.random_flip_up_down(image)",
    "resized_crop": "penstock.image.crop_and_resize, or resize of crop_to_bounding_box",
    "rgb_shift": "image + penstock.functions.random_uniform([3], -20, 20)",
    "shift_scale_rotate": "penstock.image.random_affine(image, degrees, translate, scale)",
    "smallest_max_size": "penstock.image.resize(image, sides * n // np.min(sides)), where sides is penstock.functions.shape(image)[:2]",
    "longest_max_size": "penstock.image.resize(image, [n, n], preserve_aspect_ratio=True)",
    "to_dtype": "image.astype(np.float32) / 255",
    "to_float": "image.astype(np.float32) / 255",
    "to_gray": "penstock.image.rgb_to_grayscale(image)",
    "to_pil_image": "nothing: images are arrays",
    "to_tensor": "image.astype(np.float32) / 255, and np.moveaxis(image, -1, 0) for channels in front",
    "to_tensor_v2": "np.moveaxis(image, -1, 0)",
    "vertical_flip": "penstock.image.random_flip_up_down(image)",
    "vflip": "penstock.image.flip_up_down(image)",
}
# What has the same name here, but for its spelling.
_SAME = (
    "adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation adjust_sharpness affine autocontrast color_jitter equalize gaussian_blur normalize posterize "
    "rand_augment random_affine random_crop random_erasing random_gamma random_resized_crop random_rotation resize rotate solarize trivial_augment_wide"
).split()
_PACKAGE = {
    "batch_sampler": "Dataset.batch, or bucket_by_sequence_length",
    "chain_dataset": "Dataset.concatenate",
    "concat_dataset": "Dataset.concatenate",
    "data_loader": "penstock.torch.DataLoader of a torch Dataset, or penstock.torch.loader of a penstock.Dataset",
    "default_collate": "Dataset.batch",
    "distributed_sampler": 'penstock.torch.loader(dataset, share="JOB", rank=…, world_size=…)',
    "from_numpy": "penstock.Dataset.from_tensor_slices",
    "image_folder": 'penstock.FilesDataset("photos/*/*.jpg", class_from_folder=True)',
    "iterable_dataset": "a reader, such as penstock.TFRecordDataset, or penstock.Dataset.from_generator",
    "random_sampler": "Dataset.shuffle(n), or global_shuffle() of TFRecord files",
    "random_split": "dataset.shuffle(n, reshuffle_each_iteration=False), then take and skip",
    "sequential_sampler": "nothing: that is a dataset's order",
    "stateful_data_loader": "penstock.torch.loader, whose state_dict() is exact",
    "subset": "Dataset.take and skip",
    "tensor_dataset": "penstock.Dataset.from_tensor_slices((x, y))",
    "transforms": "penstock.image, in a function given to map",
    "weighted_random_sampler": "Dataset.sample_from_datasets([a, b], weights)",
}


def _plain(name):
    return name.replace("_", "").lower()


_PLAIN_IMAGES = {_plain(name): instead for name, instead in _IMAGES.items()}
_PLAIN_IMAGES.update({_plain(name): f"penstock.image.{name}" for name in _SAME})
_PLAIN_PACKAGE = {_plain(name): instead for name, instead in _PACKAGE.items()}


def of_image(name):
    """What to write for a transform's name; None where that is not known. A name that there is, spelled as here, is none."""
    return None if name in _SAME else _PLAIN_IMAGES.get(_plain(name))


def of_package(name):
    """The same for a name behind `penstock.`, where loaders and samplers stand too."""
    return _PLAIN_PACKAGE.get(_plain(name)) or of_image(name)
