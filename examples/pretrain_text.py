"""Trains a small language model in plain torch on packed sequences of JSON lines: pages are tokenised and packed in the daemon.

    python examples/pretrain_text.py --data "pages-*.jsonl" --tokenizer tokenizer.json

Each line has a `text`. Attention stays within a page (`segment_ids`), and so do positions; padding does not count in the loss.
"""

import argparse
import itertools

import torch

import penstock
import penstock.torch


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.taken, self.given = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))

    def forward(self, x, mask):
        rows, length, width = x.shape
        q, k, v = self.taken(self.first(x)).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.given(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.inner(self.second(x))


class Model(torch.nn.Module):
    def __init__(self, vocabulary, length, width=64, layers=2, heads=4):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(length, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.out = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens, segments, positions):
        same = segments[:, :, None] == segments[:, None, :]
        mask = (same & torch.ones(same.shape[1:], dtype=torch.bool).tril())[:, None]
        x = self.tokens(tokens) + self.places(positions)
        for block in self.blocks:
            x = block(x, mask)
        return self.out(x)


def sequences(files, tokenizer, length, end_id, batch):
    pages = penstock.Dataset.json_lines(files, {"text": penstock.string}).shuffle(1_000, seed=1)
    tokens = pages.map(lambda page: {"tokens": penstock.functions.tokenize(page["text"], tokenizer, dtype="int64")})
    packed = tokens.pack(length, "tokens", end_id=end_id, segment_ids=True, positions=True)
    return packed.batch(batch, drop_remainder=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a glob of JSON lines")
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("--vocabulary", type=int, default=32_768)
    parser.add_argument("--end-id", type=int, default=0, help="the token behind each page")
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    model = Model(arguments.vocabulary, arguments.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = penstock.torch.loader(sequences(arguments.data, arguments.tokenizer, arguments.length, arguments.end_id, arguments.batch))
    losses = []
    # Each loop over a loader is an epoch.
    for batch in itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), arguments.steps):
        tokens, segments = batch["tokens"], batch["segment_ids"]
        logits = model(tokens, segments, batch["positions"])[:, :-1]
        # The last token of a page does not foretell the first one of the next.
        counts = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0)
        loss = torch.nn.functional.cross_entropy(logits[counts], tokens[:, 1:][counts])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    tenth = max(1, len(losses) // 10)
    first, last = sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth
    print(f"{len(losses)} steps of {tokens.numel()} tokens, loss {first:.4f} -> {last:.4f}")


if __name__ == "__main__":
    main()
