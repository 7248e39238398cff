#!/usr/bin/env python3
"""Stands in for V8's tools/cluster_files.py, which the crate leaves out.

V8 can compile several of its files as one ("cluster"), so that the headers, most of the work, are read
once for all of them. Its GN files (gni/cluster_build.gni) say which files get along and leave the rest
alone; this makes clusters of the ones they name. GN calls it twice with the same files: at first for the
clusters' names, and during the build to write them.
"""

import argparse
import os

# Files that mean something else by a name than others that they would be compiled with.
ALONE = (
    "src/ast/prettyprinter.cc",  # RegExp.
    "src/codegen/code-stub-assembler.cc",  # Specialises templates that others have used by then.
    "src/compiler/backend/instruction-selector.cc",  # All names of Turboshaft.
    "src/compiler/backend/x64/instruction-selector-x64.cc",  # The same.
    "src/extensions/gc-extension.cc",  # GCType.
    "src/regexp/experimental/experimental-compiler.cc",  # Label.
)


def kind(file, options):
    """Files of one kind can be compiled as one."""
    if any(f"/{heavy}/" in file for heavy in options.small_cluster_dirs):
        return "heavy"
    if file.endswith("-tsa.cc"):
        return "tsa"  # They use another assembler than the rest.
    return file if file.endswith(ALONE) else "plain"


def clusters(options):
    """[(name, files)], in an order that depends on nothing but the files'."""
    kinds = {}
    for file in options.files:
        kinds.setdefault(kind(file, options), []).append(file)
    groups = []
    for name, files in kinds.items():
        size = options.small_cluster_size if name == "heavy" else options.cluster_size
        count = -(-len(files) // size)
        groups += [files[n * len(files) // count:(n + 1) * len(files) // count] for n in range(count)]
    return [(f"{options.prefix}-cluster-{number}.cc", files) for number, files in enumerate(groups)]


def text(files, options):
    paths = (options.include_prefix + file.removeprefix(options.strip_prefix) for file in files)
    # Linux's <sys/mman.h>, which some of the files include, has a macro of that name, and V8 a constant.
    return "".join(f'#include "{path}"\n#undef MAP_TYPE\n' for path in paths)


def write(path, new):
    """Leaves a file that is right as it is: its cluster need not be compiled again."""
    try:
        with open(path) as file:
            if file.read() == new:
                return
    except FileNotFoundError:
        pass
    with open(path, "w") as file:
        file.write(new)


def parse(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--compute-filenames", action="store_true")
    parser.add_argument("--generate", action="store_true")
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--cluster-size", type=int, required=True)
    parser.add_argument("--small-cluster-size", type=int, required=True)
    parser.add_argument("--small-cluster-dirs", action="append", default=[])
    parser.add_argument("--output-dir")
    parser.add_argument("--strip-prefix", default="")
    parser.add_argument("--include-prefix", default="")
    parser.add_argument("files", nargs="*")
    return parser.parse_args(arguments)


def main():
    options = parse()
    for name, files in clusters(options):
        if options.compute_filenames:
            print(name)
        if options.generate:
            os.makedirs(options.output_dir, exist_ok=True)
            write(os.path.join(options.output_dir, name), text(files, options))


if __name__ == "__main__":
    main()
