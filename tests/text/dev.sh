# shellcheck shell=bash
# Tokenizers beside the libraries. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test text [--mb N] [--kinds A,B] [--libraries A,B] [--campaign]
#: compares the ids of 100 MB of text, of every code point and of long runs (--kinds documents, "code points", runs) with those of tokenizers, tiktoken and sentencepiece
#: (--libraries); vocabularies of 32,768 tokens, trained once; --campaign notes it in tests/campaigns.jsonl

text_python_packages=(tokenizers==0.23.3 tiktoken==0.14.0 sentencepiece==0.2.3)

test_text() {
  deps >&2
  make_venv build/text-venv "${text_python_packages[@]}"
  step "build tokenize_documents" build release tokenize_documents || return 0
  if step "compare with the libraries" build/text-venv/bin/python tests/text/compare.py "$@"; then passed=$((passed + 1)); fi
}
