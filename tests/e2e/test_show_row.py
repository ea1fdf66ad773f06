"""`penstock run SPEC --step S --row R`: one element again, with what its random functions drew."""

import re

import numpy as np

SPEC = """
stage { range { stop: 90 } }
stage { map {
  let: "image = reshape(uint8(value + [%s]), [4, 5, 3])"
  out: "cut = random_crop(image, [2, 3], seed=4)"
  out: "u = random_uniform(seed=5)"
  out: "n = value" } }
stage { shuffle { buffer_size: 30 seed: 3 } }
stage { repeat { count: 2 } }
stage { batch { batch_size: 7 } }
""" % ", ".join(str(i) for i in range(60))


def shown(result):
    assert result.code == 0, result
    draws, features = {}, {}
    for line in result.out.splitlines():
        if drew := re.fullmatch(r"drew map, (\w+), column \d+: (\w+)  (.*)", line):
            numbers = dict(item.split(" ") for item in drew[3].split(", "))
            draws[drew[1], drew[2]] = {name: float(value) for name, value in numbers.items()}
        else:
            name, rest = line.split(" ", 1)
            features[name] = rest
    return draws, features


def test_a_row_is_that_of_the_batch(penstock_command, tmp_path):
    (tmp_path / "spec").write_text(SPEC)
    assert penstock_command("run", "spec", "--out", "out").code == 0
    for step, row in [(0, 0), (3, 6), (17, 2), (25, 4)]:
        with np.load(tmp_path / "out" / f"step-{step:06}.npz") as batch:
            cut, u, n = batch["cut"][row], batch["u"][row], batch["n"][row]
        draws, features = shown(penstock_command("run", "spec", "--step", step, "--row", row))
        assert features["n"] == f"int64 ()  {n}"
        window = draws["cut", "random_crop"]
        top, left = int(window["top"]), int(window["left"])
        image = (n + np.arange(60)).reshape(4, 5, 3).clip(0, 255).astype(np.uint8)
        np.testing.assert_array_equal(cut, image[top : top + 2, left : left + 3])
        assert np.float32(draws["u", "random_uniform"]["value"]) == u
        assert features["cut"].startswith("uint8 (2, 3, 3)  " + " ".join(str(x) for x in cut.reshape(-1)[:8]))


def test_a_row_that_is_not_there_is_refused(penstock_command, tmp_path):
    (tmp_path / "spec").write_text(SPEC)
    for step, row, message in [(26, 0, "the stream has only 26 steps"), (25, 5, "step 25 has 5 rows")]:
        result = penstock_command("run", "spec", "--step", step, "--row", row)
        assert result.code != 0
        assert message in result.err


def test_a_row_whose_work_fails_says_why(penstock_command, tmp_path):
    (tmp_path / "hurt.png").write_bytes(b"no image")
    (tmp_path / "spec").write_text(
        'stage { files { files: "hurt.png" } } stage { map { out: "x = decode_png(bytes)" } } stage { batch { batch_size: 1 } }')
    result = penstock_command("run", "spec", "--step", 0)
    assert result.code != 0
    assert "stage map" in result.err and "hurt.png" in result.err


def test_a_seed_that_is_missing_is_written_into_the_spec(remote, tmp_path):
    (tmp_path / "spec").write_text(SPEC.replace(", seed=4", "").replace("seed=5", ""))
    assert remote("create", "spec", "--name", "drawn").code == 0
    text = remote("get", "drawn").out
    assert re.search(r"random_crop\(image, \[2, 3\], seed=\d+\)", text), text
    assert re.search(r"random_uniform\(seed=\d+\)", text), text
