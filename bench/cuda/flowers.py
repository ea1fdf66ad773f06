"""Training loops over decoded photographs, and how long their device waits for data.

`resnet50` is torchvision's, as people train it (channels last, bfloat16, SGD), in CUDA graphs, so that the device waits for no launches. `small` is a few convolutions and a test of endurance: it
takes tens of thousands of photographs a second. Each by the ring's copy, from the ring on the device, by torch's pinned DataLoader,
which has nothing to decode here, and by DALI's GPU pipeline.

  of_resident   the rate, of that of the same loop over one batch that stays on the device
  waits_share   of the time, that in which the device is at no step: it waits, or copies a batch. What is left to make of a batch on the
                device (a cast, normalization, another layout) belongs to the step.
"""

import itertools
import os
import time

from daemon import tell

SPEC = """
name: "flowers"
stage {{ tfrecord {{ files: "{files}" }} }}
stage {{ shuffle {{ buffer_size: 1000 seed: 7 }} }}
stage {{ parse_example {{ feature {{ key: "image/encoded" bytes {{}} }} feature {{ key: "image/class/label" int64 {{}} }} }} }}
stage {{ map {{ out: "x = uint8(resize(decode_jpeg(feature(\\"image/encoded\\"), channels=3), [224, 224]))"
                out: "y = feature(\\"image/class/label\\")" }} }}
stage {{ batch {{ batch_size: 64 drop_remainder: true }} }}
stage {{ repeat {{}} }}
ring {{ {ring} }}
"""

EXPANDED = """device: {device}
  expand {{ feature: "x" normalize {{ scale: 127.5 mean: 1 channels_first: true }} dtype: "float16" }}"""
MODELS = ("resnet50", "small")


def passes(loader):
    """Batches without end: a loop over a loader is one epoch."""
    while True:
        yield from loader


class Training:
    """A model, and what its device is at."""

    def __init__(self, torch, device, name, seconds):
        self.torch = torch
        self.device = torch.device("cuda", device)
        self.name = name
        self.seconds = seconds
        torch.backends.cudnn.benchmark = True
        self.model = self._make().to(self.device, memory_format=torch.channels_last)
        self.forward, graphed = self.model, True
        try:
            sample = torch.zeros((64, 3, 224, 224), dtype=torch.float16, device=self.device).contiguous(memory_format=torch.channels_last)
            with self.computing():
                self.forward = torch.cuda.make_graphed_callables(self.model, (sample,))
        except RuntimeError as error:
            graphed = str(error)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        stays = torch.randint(0, 256, (64, 224, 224, 3), dtype=torch.uint8, device=self.device)
        self.resident = self.run(itertools.repeat(stays))["examples_per_s"]
        tell("flowers", model=name, side="one batch that stays", examples_per_s=self.resident, graphed=graphed)

    def _make(self):
        nn = self.torch.nn
        if self.name == "resnet50":
            import torchvision

            return torchvision.models.resnet50()
        layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 256, 3, 2, 1),
                  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)]
        return nn.Sequential(*layers)

    def tell(self, side, batches):
        found = self.run(batches)
        tell("flowers", model=self.name, side=side, **found, of_resident=round(found["examples_per_s"] / self.resident, 3))

    def computing(self):
        # Graphs must find the weights where they were captured, and not in autocast's cache.
        return self.torch.autocast("cuda", dtype=self.torch.bfloat16, cache_enabled=False)

    def step(self, images):
        torch = self.torch
        if images.dtype == torch.uint8:
            images = (images.half() / 127.5 - 1).permute(0, 3, 1, 2)
        with self.computing():
            loss = self.forward(images.contiguous(memory_format=torch.channels_last)).float().square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def run(self, batches):
        torch = self.torch
        marks, rows = [], 0
        iterator = iter(batches)
        for _ in range(5):
            self.step(next(iterator))
        torch.cuda.synchronize()
        start = time.perf_counter()
        while time.perf_counter() - start < self.seconds:
            images = next(iterator)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.step(images)
            end.record()
            rows += len(images)
            marks.append((begin, end))
            if len(marks) > 3:
                # As a loop does that looks at its loss now and then: the host is not ahead by more.
                marks[-3][1].synchronize()
        torch.cuda.synchronize()
        elapsed = time.perf_counter() - start
        busy = sum(begin.elapsed_time(end) for begin, end in marks) / 1e3
        between = marks[0][0].elapsed_time(marks[-1][1]) / 1e3
        return {"examples_per_s": round(rows / elapsed), "waits_share": round(max(0.0, 1 - busy / between), 4)}


def flowers(daemon, files, device, seconds):
    try:
        import torch
    except ImportError:
        tell("flowers", not_run="torch is not installed")
        return
    if not torch.cuda.is_available():
        tell("flowers", not_run="this torch has no CUDA")
        return
    for name in MODELS:
        try:
            training = Training(torch, device, name, seconds)
        except ImportError as error:
            tell("flowers", model=name, not_run=str(error))
            continue
        from_the_ring(daemon, training, files, device)
        from_the_device(daemon, training, files, device)
        from_torch(training)
        from_dali(training, files, device)


def from_the_ring(daemon, training, files, device):
    import penstock.torch

    daemon.create("flowers", SPEC.format(files=files, ring=""))
    loader = penstock.torch.loader("flowers", socket=daemon.socket, device=training.device)
    training.tell("ring, one copy", (batch["x"] for batch in passes(loader)))
    tell("flowers", side="ring, one copy", cuda=loader.stats()["cuda"])
    loader.close()
    daemon.delete("flowers")


def from_the_device(daemon, training, files, device):
    import penstock.torch

    try:
        daemon.create("flowers", SPEC.format(files=files, ring=EXPANDED.format(device=device)))
    except RuntimeError as error:
        tell("flowers", side="device ring, expanded", not_run=str(error))
        return
    loader = penstock.torch.loader("flowers", socket=daemon.socket, device=training.device, ring=True)
    training.tell("device ring, expanded", (batch["x"] for batch in passes(loader)))
    loader.close()
    daemon.delete("flowers")


def from_torch(training):
    torch = training.torch
    dataset = torch.utils.data.TensorDataset(torch.zeros((2048, 224, 224, 3), dtype=torch.uint8))
    pinned = torch.utils.data.DataLoader(dataset, batch_size=64, num_workers=os.cpu_count(), pin_memory=True, drop_last=True,
                                         persistent_workers=True)

    def epochs():
        while True:
            for (images,) in pinned:
                yield images.to(training.device, non_blocking=True)

    training.tell("torch DataLoader, pinned, nothing to decode", epochs())


def from_dali(training, files, device):
    try:
        from nvidia.dali import fn, pipeline_def, types
        from nvidia.dali import tfrecord as tfrecords
        from nvidia.dali.plugin.pytorch import DALIGenericIterator
    except ImportError as error:
        tell("flowers", side="DALI", not_run=f"nvidia-dali is not installed: {error}")
        return
    import glob

    paths = sorted(glob.glob(files))
    indices = [index_of(path) for path in paths]

    @pipeline_def(batch_size=64, num_threads=os.cpu_count(), device_id=device)
    def graph():
        features = {"image/encoded": tfrecords.FixedLenFeature((), tfrecords.string, "")}
        encoded = fn.readers.tfrecord(path=paths, index_path=indices, features=features, random_shuffle=True)["image/encoded"]
        images = fn.resize(fn.decoders.image(encoded, device="mixed"), size=[224, 224])
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT16, mean=127.5, std=127.5, output_layout="CHW")

    iterator = DALIGenericIterator([graph()], ["x"], auto_reset=True)

    def epochs():
        while True:
            for batch in iterator:
                yield batch[0]["x"]

    training.tell("DALI", epochs())


def index_of(path):
    """DALI's index of a TFRecord file: a line "offset size" a record."""
    index = f"{path}.dali"
    if not os.path.exists(index):
        with open(path, "rb") as records, open(index, "w") as lines:
            while header := records.read(12):
                size = 16 + int.from_bytes(header[:8], "little")
                lines.write(f"{records.tell() - 12} {size}\n")
                records.seek(size - 12, os.SEEK_CUR)
    return index
