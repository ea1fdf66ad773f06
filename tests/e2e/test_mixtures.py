"""A mixture of packed sources, as a language model is trained on: its weights are shares of tokens, and change while it runs."""

import json
import re

import pytest

from programs import eventually

SOURCE = """
  input { stage { json_lines { files: "FOLDER/NAME-*.jsonl" } }
    stage { shuffle { global: true seed: 1 } }
    stage { decode_json { feature { name: "text" dtype: "string" } } }
    stage { map { out: "tokens = tokenize(text, 'FOLDER/tokenizer.json')" } }
    stage { pack { sequence_length: 16 window: 40 } }
    stage { name: "NAME" repeat { PASSES } } }"""
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "pages": 1, "code": 2, "sums": 3}, "unk_token": "[UNK]"},
}  # fmt: skip
NAMES = ("pages", "code", "sums")


@pytest.fixture
def mixture(tmp_path):
    """A spec of sequences of three sources, whose tokens say which; the third one is gone through twice."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    for name in NAMES:
        for part in range(2):
            lines = [json.dumps({"text": " ".join([name] * (3 + (7 * n + part) % 23))}) for n in range(60)]
            (tmp_path / f"{name}-{part}.jsonl").write_text("\n".join(lines) + "\n")
    inputs = "".join(SOURCE.replace("FOLDER", str(tmp_path)).replace("NAME", name).replace("PASSES", "count: 2" if name == "sums" else "") for name in NAMES)
    path = tmp_path / "p.textproto"
    path.write_text(f'name: "p"\nstage {{ name: "mix" sample_from_datasets {{ seed: 3 weight: 0.6 weight: 0.3 weight: 0.1{inputs} }} }}\nstage {{ batch {{ batch_size: 4 }} }}\n')
    return path


def ok(result):
    assert result.code == 0, result
    return result.out


def lines(remote, *words):
    return ok(remote("run", *words)).splitlines()


def test_a_cursor_goes_on_in_the_middle_of_all_sources(remote, mixture, tmp_path):
    whole = lines(remote, mixture, "--steps", "300")
    for step in (1, 150, 299):
        cursor = tmp_path / f"cursor-{step}"
        assert lines(remote, mixture, "--steps", str(step), "--cursor-out", cursor) == whole[:step]
        assert cursor.stat().st_size < 200
        assert lines(remote, mixture, "--steps", str(300 - step), "--resume", cursor) == whole[step:]
    # The same with an index of tokens for each source, by which a cursor seeks.
    ok(remote("index", "--tokens", mixture))
    assert "cursor: seek" in ok(remote("validate", mixture, "--explain"))
    assert lines(remote, mixture, "--steps", "150", "--resume", tmp_path / "cursor-150") == whole[150:]


def test_weights_change_at_a_named_step_and_a_history_makes_the_same_again(remote, mixture, tmp_path):
    whole = lines(remote, mixture, "--steps", "300")
    ok(remote("create", mixture))
    assert "from step 120 on" in ok(remote("update", "p", "--set", "mix.weight=0.1,0.1,0.8", "--at-step", "120"))
    history = tmp_path / "history"
    history.write_text(ok(remote("history", "p")))
    assert "0.8" in history.read_text()
    changed = lines(remote, mixture, "--name", "again", "--steps", "300", "--history", history, "--cursor-out", tmp_path / "end")
    assert changed[:120] == whole[:120] and changed[120:] != whole[120:]
    cut = lines(remote, mixture, "--name", "again", "--steps", "200", "--history", history, "--cursor-out", tmp_path / "middle")
    assert cut + lines(remote, mixture, "--name", "again", "--steps", "100", "--history", history, "--resume", tmp_path / "middle") == changed


def test_stats_tell_what_was_drawn(remote, mixture):
    spec = mixture.with_name("q.textproto")
    spec.write_text(mixture.read_text().replace('name: "p"', 'name: "q" ring { slots: 64 }'))
    ok(remote("create", spec))

    def drawn():
        head, *rows = ok(remote("stats", "q", "--interval", "0")).split("mix DRAWS")[1].splitlines()
        if "TOKENS" not in head:
            return {}  # none of them has packed anything yet
        assert re.fullmatch(r" +ELEMENTS +SHARE +TOKENS +SHARE +WEIGHT  \(with what is read ahead\)", head)
        found = (re.fullmatch(r"(\w+) +(\d+) +([0-9.]+) % +(\d+) +([0-9.]+) % +([0-9.]+) %", row) for row in rows[:3])
        return {one[1]: (int(one[2]), float(one[3]), int(one[4]), float(one[5]), float(one[6])) for one in found}

    eventually(lambda: sum(count for count, *_ in drawn().values()) >= 64 * 4)
    found = drawn()
    assert [found[name][4] for name in NAMES] == [60, 30, 10]
    elements, tokens = (sum(found[name][i] for name in NAMES) for i in (0, 2))
    for name in NAMES:
        count, share, own, tokens_share, weight = found[name]
        assert abs(share - 100 * count / elements) <= 0.051 and abs(tokens_share - 100 * own / tokens) <= 0.051
        # A sequence has 16 tokens, some of them padding.
        assert 10 * count < own <= 16 * (count + 40)
        assert abs(share - weight) < 12  # 256 draws
