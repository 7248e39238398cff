# shellcheck shell=bash
# What the other scripts share: where things are, and which cargo is used. Sourced, never run.
# Kept to what bash 3.2 knows, which is what macOS has.

set -euo pipefail
unset CDPATH
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

# make's own variables would reach the makefiles that some crates run (libffi's, for one), and an
# outer job server would confuse cargo's.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

say() { printf 'tenon: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }
absolute() { case $1 in /*) printf '%s\n' "$1" ;; *) printf '%s\n' "$root/$1" ;; esac; }

# An empty environment has neither. What bash then takes for PATH is not passed on and may contain the
# current folder; ~ it takes from the password file.
case $(declare -p PATH 2>/dev/null) in
  'declare -x'*) ;;
  *) export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ;;
esac
[ -n "${HOME:-}" ] || HOME=$(unset HOME && echo ~)
export HOME

cargo_home=$(absolute "${CARGO_HOME:-$HOME/.cargo}")

# Outside the clone: a second clone or a fresh one finds nine hundred crates already built.
CARGO_TARGET_DIR=$(absolute "${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/tenon/target}")
export CARGO_TARGET_DIR

# Incremental files cost a build server time and space and are never read there.
if [ "${CI:-}" = true ]; then export CARGO_INCREMENTAL=0; fi

# Finds a cargo that is new enough, or says in one line what to do.
need_cargo() {
  local wanted in_path candidate version seen=''
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  in_path=$(command -v cargo || true)
  for candidate in "$in_path" "$cargo_home/bin/cargo"; do
    if [ ! -x "$candidate" ]; then continue; fi
    version=$("$candidate" --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p') || version=''
    if [ -n "$version" ] && at_least "$version" "$wanted"; then
      # rustc and rustdoc must be those of the same toolchain.
      if [ "$candidate" != "$in_path" ]; then PATH=$(dirname "$candidate"):$PATH; fi
      has rustc || die "rustc is missing beside $candidate: install Rust $wanted or newer with rustup (https://rustup.rs)"
      return
    fi
    seen="${seen:+$seen, }$candidate ${version:-does not run}"
  done
  if [ -n "$seen" ]; then
    die "cargo is too old or has no toolchain ($seen): Tenon needs Rust $wanted or newer; run 'rustup update stable', or install it from https://rustup.rs"
  fi
  die "cargo is missing: Tenon needs Rust $wanted or newer; install it from https://rustup.rs or, where your distribution's is new enough (Debian 12's is not), as its package 'cargo', then run make again"
}

at_least() {
  local have_major have_minor want_major want_minor rest
  # shellcheck disable=SC2034 # rest only swallows the patch level
  IFS=. read -r have_major have_minor rest <<<"$1.0"
  # shellcheck disable=SC2034
  IFS=. read -r want_major want_minor rest <<<"$2.0"
  [ "$have_major" -gt "$want_major" ] || { [ "$have_major" -eq "$want_major" ] && [ "$have_minor" -ge "$want_minor" ]; }
}

v8_version=$(sed -n '/^name = "v8"$/{n;s/version = "\(.*\)"/\1/p;}' Cargo.lock)
v8_built="$CARGO_TARGET_DIR/debug/gn_out/obj/librusty_v8"
# Version and RUSTY_V8_ARCHIVE of the last V8 build. Cargo builds everything above V8 again when that
# variable changes, so a later run that does not set it takes it from here.
v8_record="$CARGO_TARGET_DIR/v8/archive"

# Usual, on two cores; see scripts/v8/README.md.
v8_duration='about 40 minutes'

rust_target() { rustc -vV | sed -n 's/^host: //p'; }

# v8_own TARGET: the library that `make v8` builds.
v8_own() { absolute "${XDG_CACHE_HOME:-$HOME/.cache}/tenon/v8/librusty_v8-$v8_version-$1.a.gz"; }

# Puts RUSTY_V8_ARCHIVE and RUSTY_V8_MIRROR into the form in which V8's build script understands them.
settle_v8() {
  # To the build script, set but empty is set.
  [ -n "${RUSTY_V8_ARCHIVE:-}" ] || unset RUSTY_V8_ARCHIVE
  [ -n "${RUSTY_V8_MIRROR:-}" ] || unset RUSTY_V8_MIRROR

  local version archive
  if [ -z "${RUSTY_V8_ARCHIVE:-}${RUSTY_V8_MIRROR:-}" ]; then
    if { read -r version && read -r archive; } 2>/dev/null <"$v8_record" && [ "$version" = "$v8_version" ] &&
      { [ -f "$archive" ] || v8_downloaded "$archive"; }; then
      RUSTY_V8_ARCHIVE=$archive
    else
      archive=$(v8_own "$(rust_target)")
      if [ -f "$archive" ]; then RUSTY_V8_ARCHIVE=$archive; fi
    fi
  fi

  # A relative path would be looked up in the crate's own folder.
  case ${RUSTY_V8_ARCHIVE:-} in
    '' | http:* | https:*) ;;
    *)
      [ -f "$RUSTY_V8_ARCHIVE" ] || die "RUSTY_V8_ARCHIVE=$RUSTY_V8_ARCHIVE: there is no such file"
      RUSTY_V8_ARCHIVE=$(absolute "$RUSTY_V8_ARCHIVE")
      ;;
  esac
  case ${RUSTY_V8_MIRROR:-} in
    '' | http:* | https:*) ;;
    *) RUSTY_V8_MIRROR=$(absolute "$RUSTY_V8_MIRROR") ;;
  esac
  if [ -n "${RUSTY_V8_ARCHIVE:-}" ]; then export RUSTY_V8_ARCHIVE; fi
  if [ -n "${RUSTY_V8_MIRROR:-}" ]; then export RUSTY_V8_MIRROR; fi
}

# Whether the build script finds the library of this URL unpacked in the target folder.
v8_downloaded() { [ -f "$v8_built.a" ] && [ "$(cat "$v8_built.sum" 2>/dev/null)" = "$1" ]; }
