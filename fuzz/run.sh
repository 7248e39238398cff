#!/usr/bin/env bash
# run.sh SECONDS [TARGET...]: fuzzes the targets one after the other, all of them if none is named, each for so long.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

duration=$1
shift
case $duration in '' | *[!0-9]*) die "SECONDS=$duration: give a number of seconds" ;; esac
need_cargo
has c++ || die 'libFuzzer is C++: install a compiler for it, on Debian the package build-essential'
has python3 || die 'the seeds are made with python3'

# With the other programs of this clone, because only this one needs it.
tools="$CARGO_TARGET_DIR/fuzz/tools"
PATH=$tools/bin:$PATH
if ! cargo fuzz --version >/dev/null 2>&1; then
  say 'installing cargo-fuzz into the target folder'
  nice cargo install --locked --root "$tools" cargo-fuzz
fi

known=$(sed -n '/^\[\[bin\]\]/{n;s/name = "\(.*\)"/\1/p;}' fuzz/Cargo.toml)
if [ $# -eq 0 ]; then
  # shellcheck disable=SC2086 # names without blanks
  set -- $known
fi
for target in "$@"; do
  grep -qx "$target" <<<"$known" || die "TARGET=$target: the targets are $(echo $known)"
done

# The code is safe Rust: an address sanitizer would find nothing in it, needs a nightly compiler and halves the speed.
build=(cargo fuzz build --sanitizer none)
if [ $# -eq 1 ]; then build+=("$1"); fi
# cargo-fuzz does not ask for the lock file as it is.
(cd fuzz && cargo metadata --locked --format-version 1 >/dev/null)
nice "${build[@]}"

corpora="$CARGO_TARGET_DIR/fuzz/corpus"
python3 -B fuzz/seed.py "$corpora"
failed=()
for target in "$@"; do
  found="$CARGO_TARGET_DIR/fuzz/found/$target"
  mkdir -p "$found"
  say "fuzzing $target for $duration s"
  # A dictionary helps where words matter; a text longer than this finds nothing that a shorter one does not.
  dictionary=()
  if [ -f "fuzz/words/$target" ]; then dictionary=("-dict=fuzz/words/$target"); fi
  nice -n 15 "$CARGO_TARGET_DIR/$(rust_target)/release/$target" "$corpora/$target" "-artifact_prefix=$found/" \
    "-max_total_time=$duration" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=1024 -print_final_stats=1 \
    ${dictionary[@]+"${dictionary[@]}"} || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
  die "found something in: ${failed[*]}; the inputs are in $CARGO_TARGET_DIR/fuzz/found, and a target with the name of one runs it"
fi
