# Not a cross-compiler: a toolchain file is the one setting of CMake that a build script of a crate lets
# through from the environment. The WebAssembly part of the QuickJS back end would clone simde from the
# network at build time; this makes it take the headers of Debian's libsimde-dev instead.
set(FETCHCONTENT_SOURCE_DIR_SIMDE /usr/include CACHE PATH "")
