#!/usr/bin/env bash
# task.sh TASK [ENGINE [ARGUMENT...]]: the steps behind the Makefile's targets.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

task=$1
engine=${2:-}
shift $(($# < 2 ? $# : 2))

if [ "$task" = engine ]; then
  [ "$engine" != none ] && echo "$engine"
  exit
fi
need_cargo
if [ "$task" = fmt ]; then exec cargo fmt --all; fi

features=()
case $engine in
  v8) settle_v8 ;;
  quickjs)
    features=(--no-default-features --features quickjs)
    # The back end's build script does not watch this variable, so the clone's path in it makes nothing
    # build again.
    if [ -z "${CMAKE_TOOLCHAIN_FILE:-}" ] && [ -d /usr/include/simde ]; then
      export CMAKE_TOOLCHAIN_FILE="$root/scripts/quickjs-toolchain.cmake"
    fi
    ;;
  # No engine was chosen; why has been said.
  *) exit 1 ;;
esac
# The same for every task, or cargo would build the crates once per task.
selection=(--locked --workspace ${features[@]+"${features[@]}"})

export TENON_ENGINE=$engine
export TENON_BIN="$CARGO_TARGET_DIR/$engine/tenon"

# keep FILE NAME: the next build with the other engine replaces cargo's own copy.
keep() {
  mkdir -p "$(dirname "$2")"
  ln -f "$1" "$2" 2>/dev/null || cp -f "$1" "$2"
}

# The same program for both engines, which measures the one that it is told.
bench() { exec "$CARGO_TARGET_DIR/debug/tenon-bench" "$@" --tenon "$TENON_BIN"; }

case $task in
  build)
    nice cargo build "${selection[@]}" --bins
    built="$CARGO_TARGET_DIR/debug/tenon"
    [ -x "$built" ] || die "cargo built no $built; is a target triple set in cargo's configuration?"
    keep "$built" "$TENON_BIN"
    if [ "$engine" = v8 ] && [ -n "${RUSTY_V8_ARCHIVE:-}" ]; then
      printf '%s\n' "$v8_version" "$RUSTY_V8_ARCHIVE" >"$v8_record"
    elif [ "$engine" = v8 ]; then
      rm -f "$v8_record"
    fi
    printf '%s\n' "$TENON_BIN"
    ;;

  test | test-stress)
    # Spelt out to leave examples and documentation tests out: each would link the engine again. The lints check
    # that examples compile.
    selection+=(--lib --bins --tests)
    if cargo nextest --version >/dev/null 2>&1; then
      run=(cargo nextest run)
    else
      [ "$task" = test ] || die "make test-stress needs cargo-nextest: run 'cargo install cargo-nextest'"
      run=(cargo test --no-fail-fast)
    fi
    # Most tests wait for something most of the time, so there are more of them at once than processors.
    export NEXTEST_TEST_THREADS="${NEXTEST_TEST_THREADS:-$((4 * $(getconf _NPROCESSORS_ONLN)))}"
    # Only compiling is nice: tests have deadlines.
    nice "${run[@]}" "${selection[@]}" --no-run
    if [ "$task" = test ]; then exec "${run[@]}" "${selection[@]}" "$@"; fi
    has python3 || die 'make test-stress needs python3'
    # nextest would put its report into the clone.
    store="$CARGO_TARGET_DIR/nextest"
    mkdir -p "$store/stress"
    { printf '[store]\ndir = "%s"\n\n' "$store" && cat .config/nextest.toml; } >"$store/stress.toml"
    exec python3 -B scripts/stress.py "${RUNS:-10}" "${LOAD:-10}" "$store/stress/junit.xml" \
      "${run[@]}" --config-file "$store/stress.toml" --profile stress "${selection[@]}" "$@"
    ;;

  lint)
    for tool in fmt clippy; do
      cargo "$tool" --version >/dev/null 2>&1 || die "cargo $tool is missing: run 'rustup component add rustfmt clippy'"
    done
    cargo fmt --all --check
    nice cargo clippy "${selection[@]}" --all-targets -- -D warnings
    RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" nice cargo doc "${selection[@]}" --no-deps
    ;;

  demo) exec "$TENON_BIN" demo "$@" ;;
  bench)
    # Everything is saved as a page; the answer to one question (ARGS='reload --soak 1000') is not.
    case ${1:-} in '' | -*) set -- --save "$(absolute "${OUT:-$CARGO_TARGET_DIR/bench}")" "$@" ;; esac
    case $1 in
      -* | start)
        # It has the engine in it, so nothing but this builds it.
        nice cargo build "${selection[@]}" --example tenon-in-process
        keep "$CARGO_TARGET_DIR/debug/examples/tenon-in-process" "$(dirname "$TENON_BIN")/tenon-in-process"
        set -- "$@" --in-process
        ;;
    esac
    bench "$@"
    ;;
  soak) bench soak --seconds "${DURATION:-600}" "$@" ;;

  install)
    folder="${DESTDIR:-}$(absolute "${PREFIX:-$HOME/.local}")/bin"
    mkdir -p "$folder"
    install -m 755 "$TENON_BIN" "$folder/tenon"
    say "installed $folder/tenon"
    case :$PATH: in *":$folder:"*) ;; *) say "$folder is not in PATH" ;; esac
    ;;

  *) die "task.sh: no task '$task'" ;;
esac
