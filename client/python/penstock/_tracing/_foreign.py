"""Other packages in a traced function: their objects and their errors, and what stands for them here."""

import re

from penstock._spec import _lines
from penstock._tracing import _names
from penstock._tracing._refusals import TraceError

# Of whom functions given to map are often objects, and what stands in their place.
FRAMEWORKS = {
    "keras": "docs/migrating.md says what stands for Keras' layers; of the others batches are made in the trainer",
    "tensorflow": "docs/tf_functions_table.md says what stands for TensorFlow's functions",
    "torchvision": "docs/migrating.md says what stands for torchvision's transforms",
    "torch": "docs/migrating.md says what stands for a Dataset's transforms",
    "albumentations": "docs/migrating.md says what stands for torchvision's transforms, and for those that are alike",
}


def refuse_objects(function):
    """Objects that are called like functions, of packages that compute in Python: what they leave alone would be left as it is, unseen."""
    kind = type(function)
    package = kind.__module__.partition(".")[0]
    instead = FRAMEWORKS.get("keras" if package == "tf_keras" else package)
    if instead is not None:
        raise TraceError(f"a {kind.__module__}.{kind.__qualname__} in the place of a function, which Python would run for each element", instead)


# What packages say of an argument's class.
_NAMES_STAND_IN = re.compile(r"\b(?:not|got|type) \(?Tensor\b|'Tensor'|\bTensor found\b")


def foreign_error(error):
    """What an exception of the user's function, which is no TraceError, says of traced values; None where it says nothing of them."""
    text = str(error)
    line = _lines.line_of_error(error)
    if isinstance(error, AttributeError) and text.startswith("'tuple' object has no attribute") or (
        isinstance(error, TypeError) and re.match(r"unsupported operand type.*'tuple'|can only concatenate tuple", text)
    ):
        instead = "np.shape(x) and x.shape are tuples where the sizes are known, as NumPy's; penstock.functions.shape(x) is a tensor"
    elif isinstance(error, TypeError) and "'NoneType'" in text:
        text = f"{text}: in x.shape a size that only the data tells is None"
        instead = "np.shape(x)[0] is each element's, and penstock.functions.arange(n) counts to it"
    elif "'<traced " in text and "integer" in text:
        text = "a traced value as a size of an array"
        instead = "a constant's sizes are known while tracing; np.pad(x, (0, n)) puts as many zeros after x as the data tells"
    elif "<traced " in text or "(got Tensor)" in text or isinstance(error, TypeError) and _NAMES_STAND_IN.search(text):
        instead = "it is a stand-in for each element's tensor, which NumPy's functions and penstock's take, and other packages' do not"
    elif not error.__traceback__ or not _ends_in_package(error):
        return None
    else:
        instead = "other packages' functions do not take traced values: NumPy's and penstock's do; see docs/python.md"
    if line is not None and (known := instead_in(line)):
        instead = known
    return TraceError(text, instead, line=line)


def _ends_in_package(error):
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return _lines.PACKAGES.search(traceback.tb_frame.f_code.co_filename) is not None


def instead_in(line):
    """What to write for what a line of code calls of TensorFlow, as a text; or None."""
    known = _names.instead_in(line.text())
    return "NumPy's work on it: " + "; ".join(f"{instead} for tf.{name}" for name, instead in known) if known else None
