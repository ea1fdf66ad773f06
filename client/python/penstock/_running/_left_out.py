"""What a pass leaves out where the data is wrong (ignore_errors, on_damage): which stages may, and the warning of it."""

import warnings

from penstock._spec._lines import user_line
from penstock._spec._stage import Nested, Trait


def may_leave_out(stages):
    """Whether one of them, or of those inside, may leave elements out."""
    for stage in stages:
        if stage.is_(Trait.LEAVES_OUT) or any(field == "damage" and value is not None for field, value in stage.fields):
            return True
        for _, value in stage.fields:
            for inner in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(inner, Nested) and may_leave_out(inner.stages):
                    return True
    return False


def tell(dataset, skipped):
    """Notes what was left out (_control.Skipped) with the dataset, and warns of it once for each dataset."""
    dataset._skipped = skipped
    if not skipped.count or dataset._told_of_skipped:
        return
    dataset._told_of_skipped = True
    count, places = skipped
    first = "".join(f", first of all: {place['reason']} ({_where(place)})" for place in places[:1])
    line = user_line()
    warnings.warn_explicit(
        f"what was left out (ignore_errors, on_damage): {count} element{'' if count == 1 else 's'}{first}. skipped() of the dataset, the iterator or the "
        "loader lists them",
        RuntimeWarning,
        line.file,
        line.number,
    )


def _where(place):
    """A place that was skipped, in words. Arrays have no file."""
    return f"{place['file']}, offset {place['offset']}" if place["file"] else f"number {place['offset']} of its source"
