"""Pipelines in which values decide: what the command tells of them."""

import pathlib
import re

import numpy
import pytest

import tfrecord_files
from programs import eventually

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"

SOURCE = """
name: "{name}"
stage {{ tfrecord {{ files: "{name}.tfrecord" }} }}
stage {{ parse_example {{ feature {{ key: "n" int64 {{}} }} }} }}
"""


@pytest.fixture
def mixed(tmp_path):
    """Writes 40 records, of which every tenth is no Example, and a spec; returns the spec's path."""

    def make(stages, name="mixed"):
        tfrecord_files.write(tmp_path / f"{name}.tfrecord",
                             [b"\xff" if n % 10 == 3 else tfrecord_files.example(n=n) for n in range(40)])
        spec = tmp_path / f"{name}.textproto"
        spec.write_text(SOURCE.format(name=name) + stages)
        return spec

    return make


def numbers(folder):
    rows = []
    for path in sorted(folder.iterdir()):
        with numpy.load(path) as arrays:
            rows.extend(arrays["n"].reshape(-1).tolist())
    return rows


def test_elements_that_fail_are_left_out_and_listed(remote, mixed):
    spec = mixed("stage { ignore_errors {} } stage { batch { batch_size: 4 } }")
    assert remote("create", spec).code == 0
    # The first steps wait in the ring; those records have been looked at.
    eventually(lambda: len(remote("skipped", "mixed").out.splitlines()) >= 1)
    listed = remote("skipped", "mixed")
    lines = listed.out.splitlines()
    size = len(tfrecord_files.framed(tfrecord_files.example(n=0)))
    assert re.search(rf"mixed\.tfrecord: offset {3 * size}, 1 bytes: stage parse_example: .* \(epoch 0\)", lines[0]), listed


def test_what_is_left_is_what_was_sound(penstock_command, mixed, tmp_path):
    result = penstock_command("run", mixed("stage { ignore_errors {} } stage { filter { predicate: \"n % 2 == 0\" } } stage { batch { batch_size: 4 } }"),
                              "--out", "out")
    assert result.code == 0, result
    assert numbers(tmp_path / "out") == [n for n in range(40) if n % 10 != 3 and n % 2 == 0]


PHOTOS = """
name: "photos"
stage {{ tfrecord {{ files: "{file}" }} }}
stage {{ parse_example {{ feature {{ key: "jpeg" bytes {{}} }} feature {{ key: "n" int64 {{}} }} }} }}
stage {{ map {{ out: "image = {image}" out: "n = n" }} }}
stage {{ ignore_errors {{}} }}
stage {{ batch {{ batch_size: 4 }} }}
"""


@pytest.mark.parametrize("image", ["resize(decode_jpeg(jpeg, channels=3), [40, 60])", "resize(decode_jpeg(jpeg, channels=3), [40, 60]) / 255 - 1"])
def test_images_that_are_cut_when_half_of_them_is_written_leave_nothing(penstock_command, tmp_path, image):
    photo = (GOLDEN / "images/rgb_photo.jpg").read_bytes()
    sound = {n: tfrecord_files.example(jpeg=photo, n=n) for n in range(12) if n % 3 != 1}
    cut = {n: tfrecord_files.example(jpeg=photo[:len(photo) * (n + 1) // 14], n=n) for n in range(12) if n % 3 == 1}
    tfrecord_files.write(tmp_path / "all.tfrecord", [record for _, record in sorted({**sound, **cut}.items())])
    tfrecord_files.write(tmp_path / "sound.tfrecord", list(sound.values()))
    images = []
    for name in ("all", "sound"):
        (tmp_path / f"{name}.textproto").write_text(PHOTOS.format(file=f"{name}.tfrecord", image=image))
        result = penstock_command("run", f"{name}.textproto", "--out", name)
        assert result.code == 0, result
        assert numbers(tmp_path / name) == list(sound)
        images.append([numpy.load(path)["image"] for path in sorted((tmp_path / name).iterdir())])
    assert all(numpy.array_equal(*pair) for pair in zip(*images, strict=True))


def test_too_many_failures_end_the_stream(penstock_command, mixed):
    result = penstock_command("run", mixed("stage { ignore_errors { max_skipped: 2 } } stage { batch { batch_size: 4 } }"))
    assert result.code == 1, result
    assert "stage ignore_errors: too many damaged places: 3 > 2 (max_skipped)" in result.err


def test_validate_tells_what_a_resume_costs(penstock_command, mixed, tmp_path):
    seeks = penstock_command("validate", mixed("stage { filter { predicate: \"n > 3\" } } stage { batch { batch_size: 4 } }"))
    assert "cursor: seek" in seeks.out, seeks
    replays = penstock_command(
        "validate", mixed("stage { filter { predicate: \"n > 3\" } } stage { shuffle { buffer_size: 8 seed: 1 } } stage { batch { batch_size: 4 } }"))
    size = (tmp_path / "mixed.tfrecord").stat().st_size
    assert re.search(rf"cursor: replay data: .* at most {size} bytes of files", replays.out), replays


@pytest.mark.parametrize("stage, message", [
    ('filter { predicate: "n + 1" }', "stage filter: predicate: expected bool (), found int64 (); a comparison, such as x != 0, makes a flag"),
    ('batch { batch_size: 2 } } stage { filter { predicate: "n > 1" }', "expected bool (), found bool (?,); all or any make one flag of several"),
    ('filter { predicate: "m > 1" }', 'did you mean "n"'),
    ("filter {}", "predicate: expected an expression, found none"),
    ("unbatch {}", 'expected dense features with at least one axis, found "n" int64 ()'),
    ("interleave { input { stage { tfrecord {} } } }", "found none; only inside of interleave or flat_map over paths"),
    ("ignore_errors { max_skipped_fraction: 2 }", "max_skipped_fraction: expected 0 to 1, found 2"),
])
def test_what_is_refused(penstock_command, mixed, stage, message):
    result = penstock_command("validate", mixed(f"stage {{ {stage} }} stage {{ batch {{ batch_size: 4 }} }}"))
    assert result.code == 1, result
    assert message in result.err, result


def test_a_global_shuffle_has_its_index_before_its_pipeline(remote, mixed, tmp_path):
    spec = mixed("")
    spec.write_text('name: "mixed" stage { tfrecord { files: "mixed.tfrecord" } } stage { shuffle { global: true seed: 1 } }')
    validated = remote("validate", spec)
    assert validated.code == 0, validated
    assert not (tmp_path / ".mixed.tfrecord.penstock-index").exists()
    # Nothing of the pipeline itself is needed for it: the name is taken.
    assert remote("create", mixed("", name="other"), "--name", "taken").code == 0
    spec = mixed("")
    spec.write_text('name: "taken" stage { tfrecord { files: "mixed.tfrecord" } } stage { shuffle { global: true seed: 1 } }')
    assert remote("create", spec).code == 1
    assert (tmp_path / ".mixed.tfrecord.penstock-index").exists()
