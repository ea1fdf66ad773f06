# shellcheck shell=bash
# Random kills of daemons and trainers. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test crash [--kills N] [--pauses N] [--seed S] [--campaign]
#: 300 random kills of daemons, trainers and all at once while pipelines are changed; --campaign notes it in tests/campaigns.jsonl

test_crash() {
  step "build" build release || return 0
  run_ctest release -R '[Kk]ill|[Cc]rash|[Dd]ead|[Hh]ostile|[Ff]orge'
  run_pytest tests -k 'kill or crash or dead or hostile or return or group or slow'
  say "crash loop $*"
  if step "crash loop" with_python env PENSTOCK_BIN="$root/build/release/bin" .venv/bin/python tests/crash/crash_loop.py "$@"; then
    passed=$((passed + 1))
  fi
}
