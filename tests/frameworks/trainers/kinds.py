"""Each trainer as its user writes it, with its own way of saving and going on; train(folder, steps) trains until so many steps are done, from the newest checkpoint on.

Between the lines "what it takes" and "no more" stands all that Penstock asks of the user's code: at most five lines.
"""

import json
import os
import pathlib
import warnings

import rows
import torch
from rows import BATCH, SAVED_EVERY, STEPS_OF_EPOCH, Log, Model, Pairs, Rows

import penstock.torch

JOB = os.environ.get("TRAINERS_JOB")


def with_transformers(folder, steps):
    import transformers

    import penstock.huggingface

    def is_whole(path):
        try:
            return bool(json.loads((path / "trainer_state.json").read_text()))
        except (OSError, ValueError):
            return False

    # what it takes
    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return penstock.torch.DataLoader(self.train_dataset, self.args.train_batch_size, shuffle=True, num_workers=1, share=JOB)

    added = {"callbacks": [penstock.huggingface.KeepsPosition()]}
    # no more
    log = Log(folder)
    arguments = transformers.TrainingArguments(
        folder, ignore_data_skip=True, per_device_train_batch_size=BATCH, max_steps=steps, save_steps=SAVED_EVERY, report_to=[], use_cpu=True,
        remove_unused_columns=False, disable_tqdm=True, logging_strategy="no", seed=1,
    )  # fmt: skip
    trainer = Trainer(Model(log), arguments, train_dataset=Rows(), **added)
    begin = rows.newest(folder, is_whole)
    log.step = 0 if begin is None else int(begin.name.split("-")[1])
    trainer.train(resume_from_checkpoint=None if begin is None else str(begin))


def with_accelerate(folder, steps):
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True)
    torch.manual_seed(1)
    log = Log(folder)
    model = Model(log)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    # what it takes
    loader = penstock.torch.DataLoader(
        Rows(), BATCH, shuffle=True, num_workers=1, rank=accelerator.process_index, world_size=accelerator.num_processes, share=JOB
    )
    # no more
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    begin = rows.newest(folder, pathlib.Path.is_dir)
    if begin is not None:
        accelerator.load_state(str(begin))
        log.step = int(begin.name.split("-")[1])
    while log.step < steps:
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(model(**batch)["loss"])
            optimizer.step()
            if log.step % SAVED_EVERY == 0:
                rows.renamed_when_whole(folder, log.step, lambda path: accelerator.save_state(str(path)))
            if log.step == steps:
                return


def with_lightning(folder, steps):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model(Log(folder))

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    # what it takes
    loader = penstock.torch.DataLoader(Rows(), BATCH, shuffle=True, num_workers=1, generator=torch.Generator().manual_seed(1), share=JOB)
    # no more
    saves = lightning.pytorch.callbacks.ModelCheckpoint(folder, "checkpoint-{step}", every_n_train_steps=SAVED_EVERY, save_top_k=-1, auto_insert_metric_name=False)
    module = Module()
    begin = rows.newest(folder, _is_read)
    module.model.log.step = 0 if begin is None else int(begin.stem.split("-")[1])
    trainer = lightning.Trainer(
        accelerator="cpu", max_steps=steps, callbacks=[saves], logger=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
    )  # fmt: skip
    trainer.fit(module, loader, ckpt_path=begin, weights_only=False)


def _is_read(path):
    try:
        return bool(torch.load(path, weights_only=False))
    except Exception:  # the half of a file may be anything
        return False


def with_keras(folder, steps):
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    log = Log(folder)

    class Logged(keras.Sequential):
        def train_step(self, data):
            log.add(*data)
            return super().train_step(data)

    keras.utils.set_random_seed(1)
    model = Logged([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)

    def save(path):
        torch.save({"weights": model.get_weights(), **{name: part.state_dict() for name, part in added.items()}}, path)

    class Saves(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if log.step % SAVED_EVERY == 0:
                rows.renamed_when_whole(folder, log.step, save)
            if log.step == steps:
                model.stop_training = True

    begin = rows.newest(folder, _is_read)
    saved = None if begin is None else torch.load(begin, weights_only=False)
    if saved:
        model.set_weights(saved["weights"])
        log.step = int(begin.name.split("-")[1])
    # what it takes
    loader = penstock.torch.DataLoader(Pairs(), BATCH, shuffle=True, num_workers=1, rank=0, world_size=1, share=JOB)

    class Position(keras.callbacks.Callback):
        on_train_begin = lambda self, logs=None: saved and loader.load_state_dict(saved["loader"])  # noqa: E731
        on_epoch_begin = lambda self, epoch, logs=None: loader.set_epoch(epoch)  # noqa: E731

    added = {"loader": loader}
    # no more
    model.fit(loader, epochs=-(-steps // STEPS_OF_EPOCH), initial_epoch=log.step // STEPS_OF_EPOCH, callbacks=[Position(), Saves()], verbose=0)


def with_checkpoint(folder, steps):
    """torch.distributed.checkpoint, as TorchTitan's trainer calls it: whatever is Stateful is asked for its state, and given that of the checkpoint."""
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.stateful import Stateful

    torch.manual_seed(1)
    log = Log(folder)
    model = Model(log)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    # what it takes
    loader = penstock.torch.DataLoader(Rows(), BATCH, shuffle=True, num_workers=1, generator=torch.Generator().manual_seed(1), share=JOB)
    added = {"dataloader": loader}
    # no more
    assert isinstance(loader, Stateful)
    states = {"model": model.layer, **added}
    begin = rows.newest(folder, pathlib.Path.is_dir)
    if begin is not None:
        checkpoint.load(states, checkpoint_id=begin)
        log.step = int(begin.name.split("-")[1])
    while log.step < steps:
        for batch in loader:
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()
            if log.step % SAVED_EVERY == 0:
                rows.renamed_when_whole(folder, log.step, lambda path: checkpoint.save(states, checkpoint_id=path))
            if log.step == steps:
                return


KINDS = {
    "transformers": with_transformers,
    "accelerate": with_accelerate,
    "lightning": with_lightning,
    "keras": with_keras,
    "checkpoint": with_checkpoint,
}


def train(kind, folder, steps):
    warnings.simplefilter("ignore")
    KINDS[kind](str(folder), steps)
