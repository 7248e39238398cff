#!/usr/bin/env bash
# Installs what the build needs and the machine lacks: without an argument what every build needs,
# with an engine's name what that engine needs besides.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
  '')
    # First, because nothing else is of use without it.
    need_cargo
    # libclang-dev: libnghttp2's bindings are made at build time. cmake: the WebAssembly part of QuickJS,
    # and aws-lc where it cannot do without. curl: V8's archive. libffi brings its configure script along,
    # and aws-lc its assembly, so neither autotools nor perl is needed.
    needed=(build-essential pkg-config cmake libclang-dev git ca-certificates curl)
    ;;
  v8) exit ;;
  # Building V8 itself. clang-22 is the newest that Debian 12 and 13 have.
  make-v8) needed=(clang-22 lld-22 llvm-22 libclang-rt-22-dev ninja-build python3) ;;
  quickjs) needed=(libsimde-dev) ;;
  # No engine was chosen; why has been said.
  *) exit 1 ;;
esac

any() { [ -e "$1" ]; }

# Whether a package's contents are there, however they came: built by hand, under another package's
# name, or on a system without Debian packages.
present() {
  case $1 in
    build-essential) has cc && has c++ && has make ;;
    # The compiler's own headers come in a package of their own and are needed too.
    libclang-dev)
      [ -n "${LIBCLANG_PATH:-}" ] || any /Library/Developer/CommandLineTools/usr/lib/libclang.dylib ||
        { any /usr/lib*/llvm*/lib*/libclang.so* && any /usr/lib*/llvm*/lib*/clang/*/include/stddef.h; } ||
        { any /usr/lib*/libclang.so* && any /usr/lib*/clang/*/include/stddef.h; }
      ;;
    ca-certificates)
      [ -n "${SSL_CERT_FILE:-}" ] || any /etc/ssl/certs/ca-certificates.crt || any /etc/pki/tls/certs/ca-bundle.crt || any /etc/ssl/cert.pem
      ;;
    lld-22) has ld.lld-22 ;;
    llvm-22) has llvm-ar-22 ;;
    libclang-rt-22-dev) any /usr/lib/llvm-22/lib/clang/22/lib/linux/libclang_rt.builtins-x86_64.a ;;
    ninja-build) has ninja ;;
    libsimde-dev) any /usr/include/simde/wasm/simd128.h ;;
    *) has "$1" ;;
  esac
}

installed=''
if has dpkg-query; then
  # It fails when it does not know a package, which is an answer too.
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${needed[@]}" 2>/dev/null || true)
fi
missing=()
for package in "${needed[@]}"; do
  case $'\n'$installed$'\n' in *$'\n'"$package installed"$'\n'*) continue ;; esac
  present "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit; fi

if ! has apt-get; then
  if [ "${missing[*]}" = libsimde-dev ]; then
    say "the headers of simde are not in /usr/include, so the build will fetch them with git"
    exit
  fi
  die "the build needs what Debian calls ${needed[*]}; missing here: ${missing[*]}. Install that and run make again"
fi

by_hand="apt-get install ${missing[*]}"
become=()
if [ "$(id -u)" -ne 0 ]; then
  has sudo || die "Debian packages are missing and there is no sudo to install them with; as root run: $by_hand"
  become=(sudo)
  # Without a terminal a question for the password would never be answered.
  if [ ! -t 0 ]; then become+=(-n); fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  # dpkg insists on the sbin folders; a machine that has just started may hold the lock for its own updates.
  ${become[@]+"${become[@]}"} env DEBIAN_FRONTEND=noninteractive PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" \
    apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1 </dev/null
}

say "installing Debian packages: ${missing[*]}"
# Not fatal: one dead source among several leaves the others usable.
apt update || true
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  tail -n 15 "$log" >&2
  die "the packages could not be installed; as root run: $by_hand"
fi
