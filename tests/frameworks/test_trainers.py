"""Trainers with their own packages: killed at random steps and begun again, their models see what they would have seen."""

import pathlib
import random
import re
import sys
import types

import penstock
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "trainers"))
import kills  # noqa: E402

import penstock.torch  # noqa: E402

PACKAGES = {"transformers": ["transformers", "accelerate"], "accelerate": ["accelerate"], "lightning": ["lightning"], "keras": ["keras"], "checkpoint": []}


@pytest.mark.parametrize("kind", kills.KINDS)
def test_killed_three_times(kind, tmp_path):
    for package in PACKAGES[kind]:
        pytest.importorskip(package)
    parts = kills.campaign(kind, kills.STEPS, 3, random.Random(kind), tmp_path)
    # Some were begun again in the midst of an epoch.
    assert len(parts) == 4 and any(int(part[0][0]) % 10 for part in parts if part)


def test_what_a_user_writes():
    """At most five lines for each trainer."""
    text = (pathlib.Path(kills.HERE) / "kinds.py").read_text()
    added = re.findall(r"# what it takes\n(.*?)\n    # no more", text, flags=re.DOTALL)
    assert len(added) == len(kills.KINDS)
    for lines in added:
        statements = [line for line in lines.splitlines() if line.strip() and line.strip() not in (")", "}")]
        assert len(statements) <= 5, lines


def test_a_state_always_has_the_same_keys():
    """What torch.distributed.checkpoint gives back is what the state of a fresh loader has keys for."""
    for loader in (penstock.torch.DataLoader(range(8), batch_size=2), penstock.torch.loader(penstock.Dataset.range(8).shuffle(8, seed=1).batch(2))):
        keys = set(loader.state_dict())
        for batch in loader:
            assert set(loader.state_dict()) == keys
        assert set(loader.state_dict()) == keys


def test_a_trainer_that_would_skip_by_itself_is_told():
    pytest.importorskip("transformers")
    import penstock.huggingface

    loader = penstock.torch.DataLoader(range(8), batch_size=2)
    for train_dataloader, skips, state, expected in (
        (range(8), True, None, "builtins.range: return a penstock.torch.DataLoader"),
        (loader, False, None, "ignore_data_skip=True"),
        (loader, True, {}, "made without KeepsPosition"),
    ):
        arguments, trainer = types.SimpleNamespace(ignore_data_skip=skips), types.SimpleNamespace(global_step=3, stateful_callbacks=state)
        with pytest.raises(penstock.FailedPreconditionError, match=expected):
            penstock.huggingface.KeepsPosition().on_train_begin(arguments, trainer, None, train_dataloader=train_dataloader)


def test_a_loader_of_a_rank_is_left_by_accelerate():
    accelerate = pytest.importorskip("accelerate")
    loader = penstock.torch.DataLoader(range(8), batch_size=2, rank=0, world_size=1)
    assert accelerate.Accelerator(cpu=True).prepare(loader) is loader
    # The others are taken apart, and go on with what they were made of.
    skipped = accelerate.skip_first_batches(penstock.torch.DataLoader(range(8), batch_size=2), 2)
    assert [batch.tolist() for batch in skipped] == [[4, 5], [6, 7]]


def test_accelerate_skips_the_first_batches_of_a_dataset():
    """It takes a loader apart by torch's names."""
    accelerate = pytest.importorskip("accelerate")
    loader = penstock.torch.loader(penstock.Dataset.range(8).batch(2))
    assert accelerate.Accelerator(cpu=True).prepare(loader) is loader
    assert [batch.tolist() for batch in accelerate.skip_first_batches(loader, 2)] == [[4, 5], [6, 7]]


def test_a_state_of_one_rank_is_good_for_each():
    """Trainers of several processes write that of one."""

    def loader(rank):
        return penstock.torch.DataLoader(range(20), batch_size=2, shuffle=True, rank=rank, world_size=2)

    whole = [[batch.tolist() for batch in loader(rank)] for rank in (0, 1)]
    assert sorted(sum(sum(whole, []), [])) == list(range(20))
    first = loader(0)
    batches = iter(first)
    next(batches), next(batches)
    for rank in (0, 1):
        other = loader(rank)
        other.load_state_dict(first.state_dict())
        assert [batch.tolist() for batch in other] == whole[rank][2:]
    shorter = penstock.torch.DataLoader(range(18), batch_size=2, shuffle=True, rank=0, world_size=2)
    shorter.load_state_dict(first.state_dict())
    with pytest.raises(penstock.FailedPreconditionError, match="other indices than before"):
        next(iter(shorter))
