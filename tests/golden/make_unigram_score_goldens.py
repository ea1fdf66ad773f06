"""Scores that `tokenizers` does not read as the nearest double: writes tokenizers/scores.json, a Unigram of them, and tokenizers/score_cases.json.

Ways through a word that differ in the order of their tokens alone are equally good but for rounding, so that each bit of a score decides.
"""

import json
import pathlib
import random

import tokenizers
from tokenizers import Tokenizer

OUT = pathlib.Path(__file__).parent / "tokenizers"


def number(draw, form):
    """A score from -12 to -2, in one of the forms that JSON has for it."""
    digits = "".join(draw.choice("0123456789") for _ in range(form["digits"]))
    whole = draw.randint(2, 11)
    return form["text"].format(whole=whole, digits=digits)


FORMS = [{"digits": 15, "text": "-{whole}.{digits}"}, {"digits": 16, "text": "-{whole}.{digits}"}, {"digits": 17, "text": "-{whole}.{digits}"},
         {"digits": 24, "text": "-{whole}.{digits}"}, {"digits": 16, "text": "-0.{whole:02}{digits}e2"}, {"digits": 16, "text": "-{whole}{digits}E-16"},
         {"digits": 22, "text": "-{whole}{digits}e-22"}, {"digits": 22, "text": "-{whole}{digits}.25e-22"}, {"digits": 14, "text": "-{whole}.{digits}e+0"}]


def main():
    draw = random.Random(11)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ['["<unk>",-20.0]']
    for i, letter in enumerate(letters):
        vocabulary += [f'["{letter * n}",{number(draw, FORMS[(i + n) % len(FORMS)])}]' for n in range(1, 7)]
    model = f'{{"type":"Unigram","unk_id":0,"vocab":[{",".join(vocabulary)}],"byte_fallback":false}}'
    (OUT / "scores.json").write_text(f'{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,"model":{model}}}\n')
    tokenizer = Tokenizer.from_file(str(OUT / "scores.json"))
    texts = [letter * n for letter in letters for n in range(7, 60)]
    cases = {"texts": texts, "ids": [tokenizer.encode(text).ids for text in texts], "library": tokenizers.__version__}
    (OUT / "score_cases.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
