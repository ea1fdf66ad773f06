"""What the datasets that read files have in common."""

from penstock._dataset import _nested
from penstock._dataset._arguments import optional, turns
from penstock._dataset._paths import files_of
from penstock._spec import _textproto
from penstock._spec._stage import Nested, Stage


def compression(compression_type):
    """The field of that name."""
    if compression_type not in (None, "", "NONE", "GZIP", "ZLIB", "ZSTD"):
        raise ValueError(f"compression_type is None, GZIP, ZLIB or ZSTD: {compression_type!r}")
    return compression_type or None


def damage_policy(on_damage, max_skipped, max_skipped_fraction):
    """A DamagePolicy; None for the one that skips nothing."""
    if on_damage not in ("fail", "skip_record", "skip_shard"):
        raise ValueError(f"on_damage is fail, skip_record or skip_shard: {on_damage!r}")
    if on_damage == "fail":
        if max_skipped is not None or max_skipped_fraction is not None:
            raise ValueError("max_skipped and max_skipped_fraction are limits of what on_damage skips; it is 'fail', which skips nothing")
        return None
    return _textproto.Message(
        # Enum values stand without quotes.
        ("on_damage", _textproto.Bare(on_damage.upper())),
        ("max_skipped", optional(max_skipped, "max_skipped")),
        ("max_skipped_fraction", None if max_skipped_fraction is None else float(max_skipped_fraction)),
    )


def reading_stages(op, fields, filenames, num_parallel_reads, name):
    """The stages that read files: paths and globs, or a dataset of paths, whose files are then read in turns."""
    # AUTOTUNE: nothing in the order depends on the machine.
    cycle_length = turns(num_parallel_reads, "num_parallel_reads")
    if hasattr(filenames, "_stages"):
        inside = Nested([Stage(op, fields, name)])
        return [*_nested.as_paths(filenames._stages), Stage("interleave", [("input", [inside]), ("cycle_length", cycle_length)])]
    return [Stage(op, [("files", files_of(filenames)), *fields, ("cycle_length", cycle_length)], name)]
