"""torch's side of the case step_time: a training loop over flowers, fed in one of two ways.

    step_torch.py penstock SOCKET SECONDS       penstock.torch.loader over a running daemon's pipeline
    step_torch.py DataLoader FILES SECONDS      torch's DataLoader with as many workers as processors
"""

import os
import sys

import torch

from step_window import StepWindow

BATCH = 40


def batches(way, source):
    if way == "penstock":
        import penstock.torch

        loader = penstock.torch.loader("flowers", socket=source)
        while True:  # a turn of the loop is a pass
            for batch in loader:
                yield batch["image"], batch["label"]

    from flowers_photos import Photos

    loader = torch.utils.data.DataLoader(Photos(source), BATCH, shuffle=True, num_workers=os.cpu_count(), drop_last=True,
                                         persistent_workers=True)
    while True:
        yield from loader


def main():
    way, source, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 8, stride=8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                torch.nn.Linear(16, 1000))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    window = StepWindow(seconds)
    for image, label in batches(way, source):
        loss = torch.nn.functional.cross_entropy(model(image.permute(0, 3, 1, 2)), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if window.step_done():
            window.show(loss.item())
            sys.stdout.flush()
            os._exit(0)


if __name__ == "__main__":
    main()
