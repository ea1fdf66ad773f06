"""Torch's side of `./dev bench ring`: prints batches a second.

    take_torch.py dataloader - SECONDS          a DataLoader whose one worker has its batch of 12 MiB ready
    take_torch.py read|write|copy SOCKET SECONDS   penstock.torch over a producer of ready batches
"""

import sys
import time

import torch


class Ready(torch.utils.data.IterableDataset):
    def __iter__(self):
        batch = torch.ones(3 << 20)
        while True:
            yield batch.clone()  # a tensor of its own each time, as a worker makes it


def main():
    what, socket, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if what == "dataloader":
        batches = ({"x": x} for x in torch.utils.data.DataLoader(Ready(), batch_size=None, num_workers=1))
    else:
        import penstock.torch

        batches = penstock.torch.loader("handover", socket=socket, copy=what == "copy")
    count = begin = 0
    for batch in batches:
        x = batch["x"].view(-1)
        if what == "write":
            x[0] = 7
        (x[0] + x[-1]).item()
        now = time.perf_counter()
        begin = begin or now
        count += 1
        if now - begin >= seconds:
            break
    print((count - 1) / (now - begin))


if __name__ == "__main__":
    main()
