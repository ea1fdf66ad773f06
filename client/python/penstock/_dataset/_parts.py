"""The window or the element of a call around, as the first stage of what is made of it: window_part."""

from penstock._spec._stage import Nested, Trait
from penstock._tracing import _showing


class Value:
    """What a function makes of one window: the only element of a dataset."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __repr__(self):
        _showing.refuse_text()
        return f"<value of {self.dataset!r}>"

    __str__ = __repr__

    def __format__(self, spec):
        _showing.refuse_text()
        return format(repr(self), spec)


def _is_part(stage):
    return stage.op == "window_part"


def parts_inside(stages):
    """All window_part stages, but not those of windows and elements inside."""
    found = []
    for stage in stages:
        if _is_part(stage):
            found.append(stage)
        elif not stage.is_(Trait.NESTS_ELEMENTS):
            for _, value in stage.fields:
                for nested in value if isinstance(value, (list, tuple)) else [value]:
                    if isinstance(nested, Nested):
                        found += parts_inside(nested.stages)
    return found


def uses_parts(stages):
    return any(stage.fields for stage in parts_inside(stages))


def simplified(stages):
    """Without window_part where the elements of a window are used as they are."""
    parts = parts_inside(stages)
    is_input = len(stages) > 1 and stages[1].is_(Trait.TAKES_FRONT)
    if len(parts) == 1 and not parts[0].fields and _is_part(stages[0]) and len(stages) > 1 and not is_input:
        return tuple(stages[1:])
    return tuple(stages)
