"""Images in a torch DataLoader with Pillow, two worker processes: what most training scripts do, batches as float32 tensors.

Records are found ahead, by their lengths alone; no checksum is verified.
"""

import argparse
import io
import random

import numpy as np
import torch
from PIL import Image

import window
from example_records import places, single_values, varint

WORKERS = 2
MEAN, STD = np.array([123.675, 116.28, 103.53], np.float32), np.array([58.395, 57.12, 57.375], np.float32)
COLOURS = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128], [128, 0, 128], [0, 128, 128], [128, 128, 128],
                    [64, 0, 0], [192, 0, 0], [64, 128, 0], [192, 128, 0]], np.int32)


def flowers(example):
    image = Image.open(io.BytesIO(example["image/encoded"])).convert("RGB").resize((192, 192), Image.BILINEAR)
    return np.asarray(image, np.float32) / 127.5 - 1, varint(example["image/class/label"], 0)[0]


def imagenet(example):
    image = Image.open(io.BytesIO(example["image/encoded"])).convert("RGB")
    width, height = image.size
    for _ in range(10):
        area, ratio = random.uniform(0.08, 1) * width * height, random.uniform(3 / 4, 4 / 3)
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if w <= width and h <= height:
            break
    else:
        w, h = width, height
    left, top = random.randint(0, width - w), random.randint(0, height - h)
    image = image.resize((224, 224), Image.BILINEAR, (left, top, left + w, top + h))
    if random.random() < 0.5:
        image = image.transpose(Image.FLIP_LEFT_RIGHT)
    return (np.asarray(image, np.float32) - MEAN) / STD, varint(example["image/class/label"], 0)[0]


def segmentation(example):
    def cut(contents):
        image = Image.open(io.BytesIO(contents)).convert("RGB")
        left, top = (image.width - 512) // 2, (image.height - 512) // 2
        return np.asarray(image.crop((left, top, left + 512, top + 512)))

    label = cut(example["label"])
    classes = np.stack([(label == colour).all(-1) for colour in COLOURS], -1)
    return cut(example["image"]).astype(np.float32) / 255, classes.astype(np.float32)


CASES = {"flowers": (flowers, 40), "imagenet": (imagenet, 64), "segmentation": (segmentation, 3)}


class Records(torch.utils.data.Dataset):
    def __init__(self, pattern, transform):
        self.transform = transform
        self.places = places(pattern)

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        path, offset, length = self.places[index]
        with open(path, "rb") as shard:
            shard.seek(offset)
            return self.transform(single_values(shard.read(length)))


def endless(loader):
    while True:
        for batch in loader:
            yield [tensor.numpy() for tensor in batch]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    transform, batch = CASES[arguments.case]
    loader = torch.utils.data.DataLoader(Records(arguments.files, transform), batch_size=batch, shuffle=True, num_workers=WORKERS,
                                         persistent_workers=True)
    batches = endless(loader)
    first = next(batches)
    workers = [worker.pid for worker in loader._iterator._workers]

    def cpu_seconds():
        return window.own_cpu_seconds() + sum(map(window.process_cpu_seconds, workers))

    def all_batches():
        yield first
        yield from batches

    window.measure(all_batches(), window.touch_ends, arguments.seconds, cpu_seconds)


if __name__ == "__main__":
    main()
