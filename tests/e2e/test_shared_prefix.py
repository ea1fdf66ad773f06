"""Pipelines that begin with the same work: each photograph is decoded once, and each pipeline has the bytes that it has alone."""

import json
import os
import pathlib
import signal

import pytest

import tfrecord_files
from programs import Daemon, Penstock, children, eventually
from strangers import STRANGER, Stranger

penstock = pytest.importorskip("penstock")

IMAGES = pathlib.Path(__file__).parents[1] / "golden" / "images"
RECORDS = 800
# Rows whose cost is measured are computed by whoever has them: a block of each worker at the most, beyond the first ones.
MEASURED = 64 + 6 * 64

BEGIN = """
stage { tfrecord { files: "photos.tfrecord" } }
stage { shuffle { buffer_size: 100 seed: 5 } }
stage { parse_example { feature { key: "image" bytes {} } feature { key: "n" int64 {} } } }
stage { map {
  constant { name: "K" value: 1 }
  out: "image = uint8(resize(decode_jpeg(image, channels=3), [96, 96]) * K)" out: "n = n" } }
"""
TRAIN = "stage { map { out: \"x = float32(random_flip_left_right(image, seed=3)) / 255\" out: \"n = n\" } } stage { batch { batch_size: 32 } }"
OTHER = "stage { map { out: \"x = image[8:72, 8:72]\" out: \"n = n\" } } stage { batch { batch_size: 20 } }"
RING = "ring {{ slots: {slots} }} workers: {workers}"


@pytest.fixture
def photos(tmp_path):
    names = ["rgb_photo.jpg", "rgb_444.jpg", "rgb_progressive.jpg"]
    images = [(IMAGES / name).read_bytes() for name in names]
    tfrecord_files.write(tmp_path / "photos.tfrecord",
                         [tfrecord_files.example(image=images[n % len(images)], n=n) for n in range(RECORDS)])
    (tmp_path / "config.textproto").write_text("shared_prefix { min_element_us: 0 }\n")
    return tmp_path


def write_spec(folder, name, rest, workers=1, slots=3, more=""):
    path = folder / f"{name}.textproto"
    path.write_text(f'name: "{name}"\n{BEGIN}{rest}{more}\n{RING.format(slots=slots, workers=workers)}\n')
    return path


def start(folder, *options):
    daemon = Daemon(folder / "penstock.sock", "--config", str(folder / "config.textproto"), *options)
    assert daemon.is_ready
    return daemon, Penstock(folder, daemon.socket)


def attach(daemon, name, **options):
    return penstock.attach(name, socket=daemon.socket, timeout=60, **options)


def bytes_of(batch):
    return {name: array.tobytes() for name, array in batch.items()}


def alone(folder, spec):
    """The batches of a pipeline in a daemon where nothing is shared."""
    (folder / "off.textproto").write_text("shared_prefix { max_bytes: 0 }\n")
    daemon = Daemon(folder / "alone.sock", "--config", str(folder / "off.textproto"), keeps_state=False)
    try:
        assert daemon.is_ready
        assert Penstock(folder, daemon.socket)("create", spec).code == 0
        return [bytes_of(batch) for batch in attach(daemon, spec.stem)]
    finally:
        daemon.stop()


def shared(command, name):
    """What `top` tells of the work that the pipeline has in common with others."""
    told = command("top", name, "--count", "1", "--json")
    assert told.code == 0, told
    return json.loads(told.out)["shared_prefix"]


def turns(*loaders):
    """The batches of each, taken by turns."""
    taken = [[] for _ in loaders]
    left = dict(enumerate(loaders))
    while left:
        for i, loader in list(left.items()):
            batch = next(loader, None)
            if batch is None:
                del left[i]
            else:
                taken[i].append(bytes_of(batch))
    return taken


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_name_of_a_pipeline_that_somebody_may_not_see_is_not_told(photos, place):
    with open(place / "config.textproto", "a") as config:
        config.write(f'access_rule {{ uids: {STRANGER} pipelines: "train" rights: RIGHT_READ }}\n')
    daemon, command = start(photos)
    try:
        os.chmod(daemon.socket, 0o666)
        for name, rest in (("train", TRAIN), ("other", OTHER)):
            assert command("create", write_spec(photos, name, rest)).code == 0
        turns(attach(daemon, "train"), attach(daemon, "other"))
        assert shared(command, "train")[0]["with"] == ["other"]
        stranger = Stranger(photos, daemon.socket)
        assert shared(stranger, "train")[0]["with"] == ["(another)"]
        told = stranger("stats", "train", "--json")
        assert told.code == 0 and "(another)" in told.out and "other" not in told.out.replace("(another)", "")
    finally:
        daemon.stop()


@pytest.mark.parametrize("workers", [1, 3])
def test_two_pipelines_decode_each_photograph_once(photos, workers):
    train = write_spec(photos, "train", TRAIN, workers)
    other = write_spec(photos, "other", OTHER, workers)
    daemon, command = start(photos)
    try:
        for spec in (train, other):
            assert command("create", spec).code == 0
        of_train, of_other = turns(attach(daemon, "train"), attach(daemon, "other"))
        assert of_train == alone(photos, train)
        assert of_other == alone(photos, other)
        (a,), (b,) = shared(command, "train"), shared(command, "other")
        assert (a["stage"], a["with"], a["state"]) == ("map", ["other"], "sharing")
        assert (b["stage"], b["with"], b["state"]) == ("map", ["train"], "sharing")
        assert int(a["misses"]) + int(b["misses"]) <= RECORDS + MEASURED
        assert int(a["hits"]) + int(b["hits"]) >= RECORDS - MEASURED
        # The two orders are the same, and each comes by every photograph.
        told = command("stats", "train", "--interval", "0.1").out
        assert "the work up to map is done together with other (sharing)" in told
        assert "is done together with train" in command("top", "other", "--count", "1").out
    finally:
        daemon.stop()


def test_it_is_told_as_an_event_that_names_nobody(photos):
    daemon, command = start(photos)
    try:
        for name, rest in (("train", TRAIN), ("other", OTHER)):
            assert command("create", write_spec(photos, name, rest, more="stage { repeat {} }")).code == 0
        # Rows are measured first, beyond those that lie ready in the rings.
        for name in ("train", "other"):
            loader = attach(daemon, name)
            for _ in range(10):
                next(loader)
        text = "the work up to stage map is shared with 1 other pipeline"
        for name in ("train", "other"):
            eventually(lambda: text in command("events", name).out)
        assert command("delete", "other").code == 0
        eventually(lambda: "nothing is shared with other pipelines any more" in command("events", "train").out)
        assert shared(command, "train")[0]["state"] == "alone"
    finally:
        daemon.stop()


@pytest.mark.parametrize("end", ["delete", "pause", "update"])
def test_what_becomes_of_one_never_touches_the_other(photos, end):
    train = write_spec(photos, "train", TRAIN)
    daemon, command = start(photos)
    try:
        for spec in (train, write_spec(photos, "other", OTHER)):
            assert command("create", spec).code == 0
        of_train, of_other = attach(daemon, "train"), attach(daemon, "other")
        taken = []
        for _ in range(6):
            taken.append(bytes_of(next(of_train)))
            next(of_other)
        if end == "update":
            # Another map from here on: the two have only the parsing in common.
            assert command("update", "other", "--set", "map.K=0.5").code == 0
        else:
            assert command(end, "other").code == 0
        taken += [bytes_of(batch) for batch in of_train]
        assert taken == alone(photos, train)
        assert ": 0 changes" in command("history", "train").out
    finally:
        daemon.stop()


def test_fault_48_a_killed_daemon_comes_back_and_shares_again(photos):
    specs = [write_spec(photos, "train", TRAIN), write_spec(photos, "other", OTHER)]
    supervised, command = start(photos, "--supervise", "--log-level", "error")
    try:
        for spec in specs:
            assert command("create", spec).code == 0
        loaders = [attach(supervised, "train"), attach(supervised, "other")]
        taken = [[bytes_of(next(loader)) for _ in range(5)] for loader in loaders]
        (before,) = children(supervised.pid)
        os.kill(before, signal.SIGKILL)
        eventually(lambda: children(supervised.pid) not in ([], [before]))
        for of_one, rest in zip(taken, turns(*loaders)):
            of_one += rest
        assert taken == [alone(photos, spec) for spec in specs]
        assert shared(command, "train")[0]["with"] == ["other"]
    finally:
        supervised.stop()


def test_a_window_of_a_few_photographs_and_a_config_that_shares_nothing(photos):
    specs = [write_spec(photos, "train", TRAIN, 3), write_spec(photos, "other", OTHER, 3)]
    expected = [alone(photos, spec) for spec in specs]
    for bytes_max in (200_000, 0):
        (photos / "config.textproto").write_text(f"shared_prefix {{ max_bytes: {bytes_max} min_element_us: 0 }}\n")
        daemon, command = start(photos)
        try:
            for spec in specs:
                assert command("create", spec).code == 0
            assert turns(attach(daemon, "train"), attach(daemon, "other")) == expected
            found = shared(command, "train")
            if bytes_max == 0:
                assert found == []
            else:
                assert int(found[0]["bytes"]) <= bytes_max
            for name in ("train", "other"):  # the next daemon would have them from the state folder
                assert command("delete", name).code == 0
        finally:
            daemon.stop()
