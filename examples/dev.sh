# shellcheck shell=bash
# The demo. Read by ./dev; its functions are those of ./dev, and it starts in the root of the tree.
#: ./dev demo [SECONDS]
#: a trainer on real data, from nothing

# Of one processor, to compile what the demo needs, where two processors are the threads of one core. Others take less.
demo_minutes=35

demo() {
  local seconds=${1-10} processors
  precompile=ON
  processors=$(nproc)
  cat <<'TEXT'
This demo installs what is missing, builds penstockd, writes positions of well-known chess games into TFRecord
files, starts the daemon, and trains a logistic regression (who stands better?) on the batches that come out of
its shared memory. Nothing is left running.
TEXT
  if [ -x build/release/bin/penstockd ]; then
    echo "It takes half a minute, and more where sources have changed since the last build."
  else
    echo "The first time it compiles: at most some $(((demo_minutes + processors - 1) / processors)) minutes on the $processors processors here. The next times take half a minute."
  fi
  # How far it is, and for how many seconds already.
  local -x NINJA_STATUS='[%f of %t, %e s] '
  deps
  build release penstock penstock-samples penstockd penstock_python penstock_python_files
  local bin=build/release/bin
  if ! compgen -G 'samples/chess/*.tfrecord' >/dev/null; then
    say "making sample data in samples/chess"
    $bin/penstock make-sample chess --records 200000 --out samples/chess
  fi
  mkdir -p build/demo
  local socket=build/demo/penstock.sock daemon status=0
  say "starting penstockd and the trainer"
  # The daemon writes a byte to descriptor 3 when it accepts connections, and closes it when it ends before.
  rm -f build/demo/ready
  mkfifo build/demo/ready
  $bin/penstockd --socket $socket --state-dir none --ready-fd 3 3>build/demo/ready 2>build/demo/penstockd.log &
  daemon=$!
  # shellcheck disable=SC2064  # the number is needed now
  trap "stop $daemon; exit 130" INT TERM
  [ "$(head -c 1 build/demo/ready | wc -c)" = 1 ] &&
    $bin/penstock --socket $socket create config/pipelines/chess_float32.textproto &&
    train_and_watch "$seconds" || status=1
  trap - INT TERM
  stop $daemon
  [ $status = 0 ] || die "the demo failed; the daemon's log is build/demo/penstockd.log"
}

# Trains, and meanwhile asks the daemon where the time goes.
train_and_watch() {
  local seconds=$1 socket=build/demo/penstock.sock watch
  build/release/bin/penstock --socket $socket stats chess_float32 --interval "$((seconds > 3 ? seconds - 2 : 1))" >build/demo/stats 2>&1 &
  watch=$!
  with_python .venv/bin/python examples/train_logistic.py --socket $socket --daemon-pid "$daemon" --seconds "$seconds" || return 1
  wait $watch
  echo
  echo "penstock stats, asked meanwhile:"
  cat build/demo/stats
}

stop() {
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}
