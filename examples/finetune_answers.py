"""Fine-tunes a small GPT-2 of HF transformers on prompts and answers, of which only the answers count in the loss.

    python examples/finetune_answers.py --data "chats-*.jsonl" --tokenizer tokenizer.json

Each line has a `prompt` and an `answer`. They are tokenised and packed in the daemon; documents stay whole (best fit).
"""

import argparse
import itertools

import torch
import transformers

import penstock
import penstock.torch


def sequences(files, tokenizer, length, end_id, batch):
    def document(row):
        prompt, answer = (penstock.functions.tokenize(row[name], tokenizer, dtype="int64") for name in ("prompt", "answer"))
        return {"tokens": penstock.functions.concat(prompt, answer), "answer": penstock.functions.shape(prompt)[0]}

    rows = penstock.Dataset.json_lines(files, {"prompt": penstock.string, "answer": penstock.string})
    packed = rows.map(document).pack(length, "tokens", "best_fit", end_id=end_id, segment_ids=True, positions=True, loss_mask=True,
                                     answer_begin="answer")  # fmt: skip
    # Best fit sorts by length.
    return packed.shuffle(1_000, seed=1).batch(batch, drop_remainder=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a glob of JSON lines")
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("--vocabulary", type=int, default=32_768)
    parser.add_argument("--end-id", type=int, default=0, help="the token behind each answer")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=arguments.vocabulary, n_positions=arguments.length, n_embd=64, n_layer=2, n_head=4,
                                     bos_token_id=arguments.end_id, eos_token_id=arguments.end_id)  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    model.set_attn_implementation("eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = penstock.torch.loader(sequences(arguments.data, arguments.tokenizer, arguments.length, arguments.end_id, arguments.batch))
    losses, counted = [], 0
    # Each loop over a loader is an epoch.
    for batch in itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), arguments.steps):
        tokens, segments = batch["tokens"], batch["segment_ids"]
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        mask = (segments[:, :, None] == segments[:, None, :]) & causal
        # transformers adds it to the scores.
        seen = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)[:, None]
        logits = model(input_ids=tokens, attention_mask=seen, position_ids=batch["positions"].long()).logits
        # A token counts where it is of an answer, and of the same document as the one that foretells it.
        counts = batch["loss_mask"][:, 1:] & (segments[:, 1:] == segments[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits[:, :-1][counts], tokens[:, 1:][counts])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        counted += int(counts.sum())
    tenth = max(1, len(losses) // 10)
    first, last = sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth
    print(f"{len(losses)} steps, {counted} tokens of answers, loss {first:.4f} -> {last:.4f}")


if __name__ == "__main__":
    main()
