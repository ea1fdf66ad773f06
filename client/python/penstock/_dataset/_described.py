"""What the daemon says of stages: the types of their elements."""

import numpy as np

from penstock import _control, _dtypes, _errors
from penstock._options import TensorSpec
from penstock._running import _daemon
from penstock._spec._stage import Spec


def validated(spec):
    try:
        return _daemon.with_private_daemon(lambda socket: _control.validate(socket, "check", spec.text))
    except _errors.Error as error:
        raise type(error)(spec.explain(str(error))) from None


def counted(spec):
    """How many elements there are; None, and why, where nobody knows before a pass."""
    try:
        return _daemon.with_private_daemon(lambda socket: _control.count(socket, spec.text))
    except _errors.Error as error:
        raise type(error)(spec.explain(str(error))) from None


def types_of(stages):
    """A TensorSpec for each tensor of the stages' elements, in order, and the rows of their batches."""
    pipeline, _ = validated(Spec(stages))
    return specs(pipeline), int(pipeline["batch_rows"])


def specs(pipeline):
    """A TensorSpec for each tensor, in order."""
    return [
        TensorSpec(
            (None if int(size) < 0 else int(size) for size in tensor["shape"]),
            _dtypes.from_control(tensor["dtype"]),
            tensor["name"],
            tensor["kind"][len("TENSOR_KIND_") :].lower(),
            None if tensor["kind"] != "TENSOR_KIND_RAGGED" else np.int32 if tensor.get("int32_row_splits") else np.int64,
        )
        for tensor in pipeline["element"]
    ]
