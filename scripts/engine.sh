#!/usr/bin/env bash
# Prints the engine to build with: ENGINE if set, else v8 if its prebuilt library can be had, else quickjs.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

probe_seconds=5

# The address that the crate's build script would download from; see static_lib_url() there.
v8_url() {
  local base target profile=release
  base=${RUSTY_V8_MIRROR:-}
  if [ -z "$base" ]; then
    # The crate is not there before the first build, hence the default beside it.
    base=$(cat "$cargo_home"/registry/src/*/v8-"$v8_version"/build.rs 2>/dev/null | sed -n 's/.*default_base = "\(.*\)";.*/\1/p' | head -n 1) || base=''
    base=${base:-https://github.com/denoland/rusty_v8/releases/download}
  fi
  target=$(rust_target)
  case ${V8_FORCE_DEBUG:-} in true | 1 | yes) profile=debug ;; esac
  # deno_core switches the crate's feature simdutf on, and features are part of the name.
  printf '%s/v%s/librusty_v8_simdutf_%s_%s.a.gz\n' "$base" "$v8_version" "$profile" "$target"
}

answers() {
  if has curl; then
    curl --head --location --fail --silent --output /dev/null --max-time "$probe_seconds" "$1"
  elif has wget && has timeout; then
    timeout "$probe_seconds" wget --quiet --spider --tries=1 "$1"
  else
    return 1
  fi
}

v8_within_reach() {
  local url
  if [ -n "${RUSTY_V8_ARCHIVE:-}" ]; then return 0; fi
  # Then the build script downloads nothing.
  case ${V8_FROM_SOURCE:-} in true | 1 | yes) return 0 ;; esac
  url=$(v8_url)
  case $url in
    http:* | https:*) ;;
    *)
      [ -f "$url" ]
      return
      ;;
  esac
  # The second is cargo's cache as the build script reads it: the address with all but letters and digits replaced.
  v8_downloaded "$url" || [ -e "$cargo_home/.rusty_v8/${url//[^a-zA-Z0-9]/_}" ] || answers "$url"
}

remedy='set RUSTY_V8_ARCHIVE to a copy of it, or RUSTY_V8_MIRROR to a mirror of its releases, and run make again'
if has apt-get && [ "$(uname -sm)" = 'Linux x86_64' ]; then
  remedy="run 'make v8', which builds it once from source ($v8_duration), or $remedy"
fi

if [ "${ENGINE:-}" = quickjs ]; then
  echo quickjs
  exit
fi
need_cargo
settle_v8
if v8_within_reach; then
  echo v8
elif [ "${ENGINE:-}" = v8 ]; then
  # A slow line may still be fast enough for the build.
  say "V8's prebuilt archive cannot be reached, so the build may fail; $remedy"
  echo v8
else
  say "V8's prebuilt archive cannot be reached, so QuickJS is used instead; for V8 $remedy"
  echo quickjs
fi
