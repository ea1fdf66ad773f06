"""Pipelines without end that give nothing: they say why, and can be held, let go on and deleted."""

import pytest

from programs import eventually

COUNT = "stage { counter {} }"
BARREN = {
    "filter": (COUNT + 'stage { filter { predicate: "value < 0" } }', "filter"),
    "unique": ("stage { range { stop: 2 } } stage { repeat {} } stage { unique {} } stage { skip { count: 2 } }", "unique"),
    "rejection_resample": (
        COUNT + 'stage { rejection_resample { class_func: "value * 0" target_dist: 0 target_dist: 1 initial_dist: 1 initial_dist: 1 seed: 1 } }',
        "rejection_resample",
    ),
    "flat_map": (COUNT + "stage { flat_map { input { stage { range { stop: 0 } } } } }", "flat_map"),
    "interleave": (COUNT + "stage { interleave { cycle_length: 3 input { stage { range { stop: 5 } } stage { skip { count: 5 } } } } }", "interleave"),
    "window": (COUNT + "stage { window { size: 3 input { stage { window_part {} } stage { skip { count: 5 } } } } }", "window"),
}  # fmt: skip


@pytest.mark.parametrize("name", BARREN)
def test_what_gives_nothing(name, daemon, remote):
    stages, barren = BARREN[name]
    spec = remote.folder / f"{name}.textproto"
    spec.write_text(f'name: "{name}" {stages} stage {{ batch {{ batch_size: 4 }} }}')
    assert remote("create", spec).code == 0
    eventually(lambda: f"stage {barren} gave no element in the last" in remote("explain", name).out)
    assert remote("pause", name).code == 0
    assert remote("resume", name).code == 0
    assert remote("update", name, "--workers", "1").code == 0
    assert remote("delete", name).code == 0
