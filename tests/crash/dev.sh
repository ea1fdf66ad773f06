# shellcheck shell=bash
# Random kills of daemons, trainers and Python workers. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev test crash [--kills N] [--pauses N] [--python N] [--seed S] [--campaign]
#: 300 random kills of daemons, trainers and all at once while pipelines are changed, 300 of the workers, daemons and trainers of Python functions, and
#: elements that end or hang their worker; --python does the latter two alone; --campaign notes it in tests/campaigns.jsonl

crash_program() {
  say "crash $*"
  if step "crash" with_python .venv/bin/python "tests/crash/$1" "${@:2}"; then
    passed=$((passed + 1))
  fi
}

test_crash() {
  local native=() python=() both=() is_python_alone=
  while [ $# -gt 0 ]; do
    case $1 in
      --kills | --pauses) native+=("$1" "${2:?a number belongs to $1}") && shift ;;
      --python) python+=(--kills "${2:?a number belongs to $1}") is_python_alone=1 && shift ;;
      --seed) both+=("$1" "${2:?a number belongs to $1}") && shift ;;
      --keep) native+=("$1") && python+=("$1") ;;
      *) both+=("$1") ;;
    esac
    shift
  done
  step "build" build release || return 0
  if [ -z "$is_python_alone" ]; then
    run_ctest release -R '[Kk]ill|[Cc]rash|[Dd]ead|[Hh]ostile|[Ff]orge'
    run_pytest tests -k 'kill or crash or dead or hostile or return or group or slow'
    crash_program crash_loop.py "${native[@]}" "${both[@]}"
  fi
  crash_program python_loop.py "${python[@]}" "${both[@]}"
  crash_program python_poison.py "${both[@]}"
}
