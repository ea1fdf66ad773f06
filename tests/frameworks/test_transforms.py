"""What albumentations and torchvision's transforms draw belongs to the element: not to the process, nor to what it has had before."""

import random

import numpy as np
import penstock
import pytest
import torch

from penstock.torch import DataLoader

IMAGES = 24


def image(index):
    return np.random.Generator(np.random.PCG64(int(index))).integers(0, 255, (24, 24, 3)).astype(np.uint8)


class Transformed(torch.utils.data.Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return IMAGES

    def __getitem__(self, index):
        return self.transform(image(index))


def albumentations_transform():
    import albumentations as A

    compose = A.Compose([A.RandomCrop(16, 16), A.HorizontalFlip(), A.OneOf([A.RandomBrightnessContrast(p=1), A.GaussNoise(p=1)], p=0.9)])
    return lambda image: compose(image=image)["image"]


def lone_albumentations():
    import albumentations as A

    crop, noise = A.RandomCrop(16, 16), A.Compose([A.GaussNoise(p=1)], seed=137)
    return lambda image: noise(image=crop(image=crop(image=np.pad(image, ((4, 4), (4, 4), (0, 0))))["image"])["image"])["image"]


def made_in_the_worker():
    def transform(image):
        import albumentations as A

        return A.Compose([A.RandomCrop(16, 16), A.HorizontalFlip()])(image=image)["image"]

    return transform


def torchvision_transform():
    from torchvision.transforms import v2

    crop = v2.Compose([v2.RandomCrop(16), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomErasing(p=0.9)])
    return lambda image: crop(torch.from_numpy(image).permute(2, 0, 1)).permute(1, 2, 0).numpy()


TRANSFORMS = {
    "albumentations": albumentations_transform, "albumentations alone": lone_albumentations, "albumentations made in the worker": made_in_the_worker,
    "torchvision": torchvision_transform,
}  # fmt: skip


@pytest.fixture(params=TRANSFORMS)
def transform(request):
    pytest.importorskip(request.param.split()[0])
    return TRANSFORMS[request.param]()


def check_drawn(images):
    """Whether there is anything to be compared."""
    assert len(images) == IMAGES and len({np.asarray(image).tobytes() for image in images}) == IMAGES


def test_functions_draw_the_same_for_any_number_of_workers(transform):
    def images(workers, **options):
        dataset = penstock.Dataset.range(IMAGES).map(lambda index: transform(image(index)), python=True, workers=workers, seed=5, **options)
        return dataset.batch(2)

    whole = list(images(1))
    check_drawn([image for batch in whole for image in batch])
    assert np.array_equal(np.stack(list(images(2))), np.stack(whole))
    # Behind a resume, whose workers have had nothing in front.
    iterator = iter(images(2))
    for _ in range(5):
        next(iterator)
    other = iter(images(1))
    other.load_state_dict(iterator.state_dict())
    assert np.array_equal(np.stack(list(other)), np.stack(whole[5:]))
    # Another seed draws otherwise.
    assert not np.array_equal(np.stack(list(penstock.Dataset.range(IMAGES).map(lambda index: transform(image(index)), python=True, seed=6).batch(2))), np.stack(whole))


def test_loaders_draw_the_same_for_any_number_of_workers(transform):
    def loader(workers):
        return DataLoader(Transformed(transform), batch_size=3, shuffle=True, num_workers=workers, generator=torch.Generator().manual_seed(1))

    whole = list(loader(1))
    check_drawn([image for batch in whole for image in batch.numpy()])
    assert torch.equal(torch.stack(list(loader(2))), torch.stack(whole))
    first = loader(2)
    batches = iter(first)
    for _ in range(3):
        next(batches)
    other = loader(1)
    other.load_state_dict(first.state_dict())
    assert torch.equal(torch.stack(list(other)), torch.stack(whole[3:]))


def test_rng_of_a_loaders_batch():
    """penstock.rng() in the dataset of a DataLoader."""

    class Drawing(torch.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, index):
            return penstock.rng().random()

    def loader(workers):
        return DataLoader(Drawing(), batch_size=2, num_workers=workers, generator=torch.Generator().manual_seed(1))

    whole = torch.stack(list(loader(1)))
    assert len(set(whole.reshape(-1).tolist())) == 12
    assert torch.equal(torch.stack(list(loader(2))), whole)
    first = loader(1)
    next(iter(first))
    other = loader(2)
    other.load_state_dict(first.state_dict())
    assert torch.equal(torch.stack(list(other)), whole[1:])


def test_draws_of_albumentations_are_uniform():
    """Seeding in front of each call takes nothing from them: of many elements about half are flipped, whatever the elements in front."""
    A = pytest.importorskip("albumentations")
    flip = A.Compose([A.HorizontalFlip(p=0.5)])
    row = np.arange(2, dtype=np.uint8).reshape(1, 2, 1)
    flips = np.stack(list(penstock.Dataset.range(2000).map(lambda index: flip(image=row)["image"][0, 0, 0], python=True, seed=random.Random(3).getrandbits(30)).batch(100)))
    # Five deviations of a fair coin.
    assert abs(int(flips.sum()) - 1000) < 112
