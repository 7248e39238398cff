#!/usr/bin/env bash
# `make v8`: builds the static library that the crate `v8` links, from the sources in that crate.
# README.md in this folder explains each step.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here="$root/scripts/v8"

llvm=22
gn_suite=trixie
# Asked for before it starts; with room to spare.
disk_gb=2
job_mb=2500

need_cargo
target=$(rust_target)
case $target in
  x86_64-unknown-linux-gnu) ;;
  *) die "make v8 builds for x86_64-unknown-linux-gnu, and this is $target; set RUSTY_V8_ARCHIVE to a V8 library for it" ;;
esac
has apt-get || die 'make v8 takes its compiler from Debian packages, and there is no apt-get here'

archive=$(v8_own "$target")
if [ -f "$archive" ]; then
  say "V8 $v8_version is there already: $archive (delete it to build it again)"
  exit
fi

work="$(dirname "$archive")/build-$v8_version-$target"
log="$work.log"
mkdir -p "$work"

# Compilers inherit it, so it is free when the last one of an earlier run has ended.
exec 9>"$work/lock"
if ! flock --nonblock 9; then
  say "waiting for the end of another make v8, or of the compilers that a killed one left behind"
  flock --wait 600 9 || die "another make v8 is at work in $work"
fi

finish() {
  local code=$1
  if [ "$code" -eq 0 ]; then return; fi
  if [ "$code" -gt 128 ]; then
    say "interrupted; make v8 goes on from here"
    return
  fi
  echo >&2
  tail -n 30 "$log" | cut -c -300 >&2
  say "make v8 failed in the step '$step'; its log is $log. Once the cause is gone, make v8 goes on from there"
}

# step NAME COMMAND...: runs it, and what it prints goes to the log.
step() {
  step=$1
  shift
  say "$step"
  printf '\n===== %s, %s\n' "$step" "$(date)" >>"$log"
  "$@" >>"$log" 2>&1
}

check_space() {
  local have_gb have_mb cores
  # What is there already of an interrupted build need not be free.
  have_gb=$((($(df -Pk "$work" | awk 'END { print $4 }') + $(du -sk "$work" | cut -f 1)) / 1024 / 1024))
  [ "$have_gb" -ge "$disk_gb" ] || die "building V8 needs $disk_gb GB of disk, and $work has $have_gb GB; set XDG_CACHE_HOME to a larger place"
  have_mb=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024))
  cores=$(nproc)
  case ${JOBS:-} in *[!0-9]*) die "JOBS=$JOBS is not a number" ;; esac
  if [ -z "${JOBS:-}" ]; then
    JOBS=$((have_mb / job_mb < cores ? have_mb / job_mb : cores))
    if [ "$JOBS" -ge 1 ] && [ "$JOBS" -lt "$cores" ]; then say "$have_mb MB of memory are free, enough for JOBS=$JOBS at a time"; fi
  fi
  if [ "$JOBS" -lt 1 ] || [ "$have_mb" -lt $((JOBS * job_mb)) ]; then
    die "building V8 needs $job_mb MB of free memory for each job, and there are $have_mb MB; free some, or set JOBS to less"
  fi
}

# Prints the folder that the sources of a crate are in, having fetched them.
crate() {
  local manifest="$work/fetch-$1/Cargo.toml"
  mkdir -p "$(dirname "$manifest")"
  printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "none.rs"\n[dependencies]\n%s = "=%s"\n[workspace]\n' "$1" "$2" >"$manifest"
  cargo metadata --format-version 1 --manifest-path "$manifest" |
    python3 -c 'import json, os, sys
print(*(os.path.dirname(p["manifest_path"]) for p in json.load(sys.stdin)["packages"] if p["name"] == sys.argv[1]))' "$1"
}

# compile FOLDER TARGET: the percentage goes to the terminal; compile.py writes to the log itself.
compile() { nice -n "${NICE:-10}" python3 "$here/compile.py" "$1" "$2" "$JOBS" "$log" 2>&3; }

# GN expects Chromium's layout of the compiler.
arrange_compiler() {
  local runtime="lib/clang/$llvm/lib"
  mkdir -p "$work/llvm/$runtime/x86_64-unknown-linux-gnu"
  ln -sfn "/usr/lib/llvm-$llvm/bin" "$work/llvm/bin"
  ln -sfn "/usr/lib/llvm-$llvm/$runtime/linux/libclang_rt.builtins-x86_64.a" "$work/llvm/$runtime/x86_64-unknown-linux-gnu/libclang_rt.builtins.a"
}

# Debian's package gn of this release may be too old, and a newer one's may want a newer libc. So: the
# source of a newer release, from wherever this machine gets its own packages.
fetch_gn() {
  local apt="$work/apt" site
  if [ -f "$work/gn/build/gen.py" ]; then return; fi
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
  site=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian main Debian //p' | head -n 1)
  [ -n "$site" ] || die 'apt has no source of Debian packages; is this Debian, and has apt-get update been run?'
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $gn_suite main" >"$apt/sources.list"
  private=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/parts" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=)
  apt-get "${private[@]}" update
  # The tarball is checked against Debian's signed list.
  (cd "$apt" && rm -f generate-ninja_* && apt-get "${private[@]}" --download-only --tar-only source generate-ninja)
  rm -rf "$work/gn.partial"
  mkdir "$work/gn.partial"
  tar -xf "$apt"/generate-ninja_*.orig.tar.* -C "$work/gn.partial" --strip-components=1
  mv "$work/gn.partial" "$work/gn"
}

# gn's files are small, and most of the work is in the headers that they share. So these are compiled once.
precompile_headers() (
  headers=(gn/target gn/deps_iterator gn/filesystem_utils gn/functions gn/scheduler gn/substitution_writer)
  cd "$work/gn/out"
  if [ -f shared.h.pch ]; then return; fi
  printf '#include "%s.h"\n' "${headers[@]}" >shared.h
  # As ninja would compile any of the files.
  sh -c "$(ninja -t commands src/gn/target.o | sed 's/-MMD -MF [^ ]*//; s/-include shared.h//; s/ -c .*/ -x c++-header shared.h -o shared.h.partial/')"
  mv shared.h.partial shared.h.pch
)

build_gn() {
  if [ -x "$work/gn/out/gn" ]; then return; fi
  mkdir -p "$work/gn/out"
  # It would ask git, and the tarball has no history. The number is what V8's files ask for at least.
  printf '#define LAST_COMMIT_POSITION_NUM 2400\n#define LAST_COMMIT_POSITION "2400"\n' >"$work/gn/out/last_commit_position.h"
  # It runs for seconds, so it need not be fast.
  sed -i "s/'-O3'/'-O0'/" "$work/gn/build/gen.py"
  CXX="clang++-$llvm" CXXFLAGS='-include shared.h' AR="llvm-ar-$llvm" LDFLAGS=-fuse-ld=lld \
    python3 "$work/gn/build/gen.py" --no-last-commit-position --allow-warnings
  precompile_headers
  compile "$work/gn/out" gn
}

# edit FILE EXPRESSION...: sed, and an error when an expression changes nothing, as it may with another version.
edit() {
  local file="$work/source.partial/$1" expression
  shift
  for expression; do
    sed -i.before -e "$expression" "$file"
    if cmp -s "$file" "$file.before"; then
      echo "$file has nothing for '$expression'"
      return 1
    fi
    rm "$file.before"
  done
}

prepare_source() {
  local sources icu icu_version part
  if [ -d "$work/source" ]; then return; fi
  sources=$(crate v8 "$v8_version")
  icu_version=$(sed -n 's/.*"major_version": "\([0-9]*\)".*/\1/p' "$sources/third_party/icu/version.json")
  icu=$(crate deno_core_icudata "0.$icu_version.0")
  rm -rf "$work/source.partial"
  cp -R "$sources" "$work/source.partial"
  mkdir -p "$work/source.partial/third_party/icu/common"
  cp "$icu/src/icudtl.dat" "$work/source.partial/third_party/icu/common/"

  # What this gn does not know yet. All of it is about C++ modules and Rust, and neither is used.
  edit build/toolchain/gcc_toolchain.gni 's/{{module_deps_no_self}}//' 's/{{module_deps}}//' 's/{{cc_module_name}}/module/' \
    '/^ *inputs = rustc_wrapper_inputs$/d' '/^ *inputs =$/,+1d'
  edit build/config/compiler/BUILD.gn '/^ *c_additional_outputs =$/,+1d'
  # What this clang does not know yet.
  edit build/config/compiler/BUILD.gn '/"-fdiagnostics-show-inlining-chain"/d' '/"-fno-lifetime-dse"/d'
  edit build/config/sanitizers/sanitizers.gni '/"-fsanitize-ignore-for-ubsan-feature=/d'
  # Nobody here reads V8's warnings, and looking for some of them takes long.
  edit build/config/compiler/BUILD.gn 's/"-Wall"/"-w"/'
  # What only mksnapshot uses, which runs once and leaves its result in the library, need not be fast.
  for part in torque_generated_initializers v8_initializers; do
    edit v8/BUILD.gn "/^v8_cluster_source_set(\"$part\")/,/^}/s|configs = \[ \":internal_config\" \]|configs = [ \":internal_config\", \"//build/config/compiler:no_optimize\" ]|"
  done
  cp "$here/cluster_files.py" "$work/source.partial/v8/tools/"
  edit v8/gni/cluster_build.gni 's/^small_cluster_size = 5$/small_cluster_size = 12/'

  mkdir "$work/source.partial/out"
  # As the crate's build script would set them for us, then what is different here.
  cat >"$work/source.partial/out/args.gn" <<ARGS
is_debug = false
use_custom_libcxx = true
v8_enable_sandbox = false
v8_enable_pointer_compression = false
v8_enable_v8_checks = false
rusty_v8_enable_simdutf = true
v8_monolithic_for_shared_library = true

clang_base_path = "$work/llvm"
clang_version = "$llvm"
treat_warnings_as_errors = false
symbol_level = 0
use_glib = false
v8_enable_cluster_build = true
cluster_size = 60
# Temporal is Rust, and Chromium's Rust is not in the crate.
enable_rust = false
enable_rust_cxx = false
v8_enable_temporal_support = false
ARGS
  mv "$work/source.partial" "$work/source"
}

generate() {
  if [ -f "$work/generated" ]; then return; fi
  "$work/gn/out/gn" gen "$work/source/out" --root="$work/source" --script-executable="$(python3 -c 'import sys; print(sys.executable)')"
  touch "$work/generated"
}

pack() {
  gzip --stdout "$work/source/out/obj/librusty_v8.a" >"$archive.partial"
  mv "$archive.partial" "$archive"
}

check_space
"$root/scripts/setup.sh"
"$root/scripts/setup.sh" make-v8
exec 3>&2
trap 'finish $?' EXIT
say "building V8 $v8_version in $work, $JOBS jobs at a time; it takes $v8_duration"
step 'the compiler' arrange_compiler
step "gn's sources" fetch_gn
step 'compiling gn' build_gn
step "V8's sources" prepare_source
step 'the build files' generate
step 'compiling V8' compile "$work/source/out" rusty_v8
step 'the archive' pack
rm -rf "$work"
say "V8 is built: $archive; make build takes it from there"
