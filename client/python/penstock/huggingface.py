"""Hugging Face's Trainer goes on with the very next batch.

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return penstock.torch.DataLoader(self.train_dataset, self.args.train_batch_size, shuffle=True, num_workers=8)

    trainer = Trainer(model, TrainingArguments(folder, ignore_data_skip=True), train_dataset=dataset, callbacks=[KeepsPosition()])
    trainer.train(resume_from_checkpoint=True)

Needs the package transformers; importing penstock does not. Accelerate's own loops need nothing of this: see docs/python.md.
"""

from __future__ import annotations

import json
from typing import Any, Dict

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from penstock import _errors

__all__ = ["KeepsPosition"]


class KeepsPosition(TrainerCallback, ExportableState):
    """Keeps the position of the training loader in each checkpoint (trainer_state.json), and goes there when training is resumed.

    It is for a loader that has state_dict() and load_state_dict(), as penstock.torch.DataLoader and penstock.torch.loader() have, from get_train_dataloader() of a
    Trainer. TrainingArguments(ignore_data_skip=True) belongs to it: else the Trainer makes a loader of its own for the rest of the epoch, and all batches
    in front again.

    Raises:
      FailedPreconditionError: when training begins: the loader has no state, ignore_data_skip is not set, or the checkpoint was made without this callback.
    """

    def __init__(self):
        self._loader = None

    def on_train_begin(self, args, state, control, train_dataloader=None, **others):
        if not hasattr(train_dataloader, "state_dict") or not hasattr(train_dataloader, "load_state_dict"):
            kind = type(train_dataloader)
            raise _errors.FailedPreconditionError(
                f"KeepsPosition is for a loader that has a state, and this is a {kind.__module__}.{kind.__qualname__}: return a penstock.torch.DataLoader from "
                "get_train_dataloader() of the Trainer, as it is, not prepared by Accelerate"
            )
        if not args.ignore_data_skip:
            raise _errors.FailedPreconditionError(
                "the loader goes to its position itself: TrainingArguments(ignore_data_skip=True). Without it the Trainer makes another loader for the rest of an epoch"
            )
        self._loader = train_dataloader
        if state.global_step == 0:
            return
        saved = (state.stateful_callbacks or {}).get(type(self).__name__, {})
        position = saved.get("attributes", {}).get("position")
        if position is None:
            raise _errors.FailedPreconditionError("the checkpoint has no position of a loader: it was made without KeepsPosition")
        train_dataloader.load_state_dict(position)

    def state(self) -> Dict[str, Any]:
        """What the Trainer writes into a checkpoint."""
        if self._loader is None:
            return {"args": {}, "attributes": {}}
        return {"args": {}, "attributes": {"position": json.loads(json.dumps(self._loader.state_dict(), default=bytes.hex))}}
