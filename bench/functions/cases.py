"""Functions of images and of arrays, each a dataset that reads the same in tf.data and in Penstock (bench/effects/take.py).

Every element is an image of 224 x 224 x 3 float32 values between 0 and 1 that the function is called with; `image` is the one without
a call, whose cost is in all the others.
"""

import numpy

BATCH = 16
IMAGE = numpy.random.default_rng(0).random((224, 224, 3)).astype(numpy.float32)
STEP_SECONDS = {}

FUNCTIONS = {
    "image": lambda t, x: x,
    "normalise": lambda t, x: (x - t.np.array([0.485, 0.456, 0.406], t.np.float32)) / t.np.array([0.229, 0.224, 0.225], t.np.float32),
    "power": lambda t, x: x ** t.np.float32(2.2),
    "sum_last_axis": lambda t, x: t.np.sum(x, axis=-1),
    "mean_last_axis": lambda t, x: t.np.mean(x, axis=-1),
    "max_last_axis": lambda t, x: t.np.max(x, axis=-1),
    "mean_of_channels": lambda t, x: t.np.mean(t.np.reshape(x, (-1, 3)), axis=0),
    "max": lambda t, x: t.np.max(x),
    "cumsum": lambda t, x: t.np.cumsum(t.np.reshape(x, (-1,)), axis=0),
    "argmax": lambda t, x: t.np.argmax(x, axis=-1),
    "sort": lambda t, x: t.np.sort(t.np.reshape(x, (-1,))),
    "planes": lambda t, x: t.np.transpose(x, (2, 0, 1)),
    "per_image_standardization": lambda t, x: t.image.per_image_standardization(x),
    "adjust_brightness": lambda t, x: t.image.adjust_brightness(x, 0.1),
    "adjust_contrast": lambda t, x: t.image.adjust_contrast(x, 1.1),
    "adjust_gamma": lambda t, x: t.image.adjust_gamma(x, 2.2),
    "adjust_hue": lambda t, x: t.image.adjust_hue(x, 0.1),
    "adjust_saturation": lambda t, x: t.image.adjust_saturation(x, 1.1),
    "rgb_to_hsv": lambda t, x: t.image.rgb_to_hsv(x),
    "rgb_to_grayscale": lambda t, x: t.image.rgb_to_grayscale(x),
    "convert_image_dtype": lambda t, x: t.image.convert_image_dtype(x, t.uint8, saturate=True),
    "flip_left_right": lambda t, x: t.image.flip_left_right(x),
    "rot90": lambda t, x: t.image.rot90(x),
    "central_crop": lambda t, x: t.image.central_crop(x, 0.5),
    "resize_with_crop_or_pad": lambda t, x: t.image.resize_with_crop_or_pad(x, 256, 200),
    "resize_bilinear": lambda t, x: t.image.resize(x, [160, 160]),
    "resize_nearest": lambda t, x: t.image.resize(x, [160, 160], method="nearest"),
    "resize_bicubic": lambda t, x: t.image.resize(x, [160, 160], method="bicubic"),
    "resize_area": lambda t, x: t.image.resize(x, [160, 160], method="area"),
    "resize_lanczos3": lambda t, x: t.image.resize(x, [160, 160], method="lanczos3"),
    "resize_antialiased": lambda t, x: t.image.resize(x, [160, 160], antialias=True),
}


def _case(function):
    def dataset(t, tuned, folder):
        def call(number):
            return function(t, IMAGE + number.astype(t.np.float32) * t.np.float32(0))

        options = {"num_parallel_calls": t.AUTOTUNE} if tuned else {}
        batches = t.Dataset.range(1 << 40).map(call, **options).batch(BATCH)
        return batches.prefetch(t.AUTOTUNE) if tuned else batches

    return dataset


CASES = {name: _case(function) for name, function in FUNCTIONS.items()}
