#!/usr/bin/env python3
"""Prints the module graph of each crate, and fails if modules depend on each other in a cycle.

usage: scripts/modules.py [CRATE ...] [--quiet]

Modules are compared level by level: the modules of a crate with each other, then the children of each module with each
other. What a child uses counts for its parent. A module and its own children may use each other, because a child is a part
of its parent. Code for tests does not count. Exits with 1 if there is a cycle, and names a use for each step of it.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"

TOKEN = re.compile(
    r"""
    //[^\n]*                                  # comments
    | /\*.*?\*/
    | r(\#+)".*?"\1                           # raw strings
    | r"[^"]*"
    | "(?:\\.|[^"\\])*"                       # strings
    | '(?:\\.[^']*|[^'\\])'                   # characters, but not lifetimes
    """,
    re.VERBOSE | re.DOTALL,
)
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*")
PATH = re.compile(r"\b(crate|super|self)((?:\s*::\s*(?:[A-Za-z_]\w*))+)?\s*(::\s*\{)?")


def blank(text):
    """The same number of lines and characters, without what is in it."""
    return re.sub(r"[^\n]", " ", text)


def without_tests(source):
    """Source without comments, strings and items for tests."""
    source = TOKEN.sub(lambda found: blank(found.group()), source)
    while found := TEST_ITEM.search(source):
        end = item_end(source, found.end())
        source = source[: found.start()] + blank(source[found.start() : end]) + source[end:]
    return source


def item_end(source, start):
    """Where the item that begins at `start` ends: at its semicolon, or with its braces."""
    depth = 0
    for at in range(start, len(source)):
        char = source[at]
        if char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
            if depth == 0 and char == "}":
                return at + 1
        elif char == ";" and depth == 0:
            return at + 1
    return len(source)


def leaves(tree):
    """The paths of `a::{b, c::{d, e}}`, each as a list of names."""
    depth, start, parts = 0, 0, []
    for at, char in enumerate(tree):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(tree[start:at])
            start = at + 1
    parts.append(tree[start:])
    for part in (part.strip() for part in parts):
        if not part:
            continue
        head, brace, rest = part.partition("{")
        names = [name.strip().split(" ")[0] for name in head.split("::") if name.strip()]
        if brace:
            for leaf in leaves(rest[: rest.rindex("}")]):
                yield names + leaf
        else:
            yield names


def uses(source, module):
    """What a module names: pairs of an absolute path and a line."""
    for found in PATH.finditer(source):
        base, tail, brace = found.groups()
        names = [name.strip() for name in (tail or "").split("::") if name.strip()]
        line = source.count("\n", 0, found.start()) + 1
        if brace:
            end = item_end(source, found.end() - 1)
            paths = [names + leaf for leaf in leaves(source[found.end() : end - 1])]
        else:
            paths = [names]
        for path in paths:
            at = [] if base == "crate" else list(module)
            path = list(path)
            if base == "super":
                at = at[:-1]
            while path and path[0] in ("super", "self"):
                if path.pop(0) == "super":
                    at = at[:-1]
            yield tuple(at + path), line


def read_crate(folder):
    """Path and source by module."""
    src = folder / "src"
    modules = {}
    for path in sorted(src.rglob("*.rs")):
        names = path.relative_to(src).with_suffix("").parts
        if names[-1] == "tests" or "tests" in names:
            continue
        if names in (("lib",), ("main",)):
            names = ()
        modules.setdefault(names, []).append((path, without_tests(path.read_text())))
    return modules


def graph(modules):
    """For each level, the uses between its modules: level -> from -> to -> a place where it is used."""
    levels = defaultdict(lambda: defaultdict(dict))
    for module, files in modules.items():
        for path, source in files:
            for target, line in uses(source, module):
                while target not in modules:
                    target = target[:-1]
                common = 0
                while common < min(len(module), len(target)) and module[common] == target[common]:
                    common += 1
                if common < len(module) and common < len(target):
                    level = module[:common]
                    place = f"{path.relative_to(RUNTIME.parent)}:{line}"
                    levels[level][module[common]].setdefault(target[common], place)
    return levels


def cycles(edges):
    """A shortest cycle for each group of modules that depend on each other."""
    found, seen = [], set()
    for start in sorted(edges):
        if start in seen:
            continue
        before, queue = {start: None}, [start]
        for at in queue:
            for following in sorted(edges.get(at, {})):
                if following == start:
                    cycle = [at]
                    while before[cycle[0]] is not None:
                        cycle.insert(0, before[cycle[0]])
                    found.append(cycle)
                    seen.update(cycle)
                    queue.clear()
                    break
                if following not in before:
                    before[following] = at
                    queue.append(following)
            if start in seen:
                break
    return found


def main(arguments):
    quiet = "--quiet" in arguments
    names = [name for name in arguments if not name.startswith("--")]
    folders = [RUNTIME / name for name in names] or sorted(path.parent for path in RUNTIME.glob("*/Cargo.toml"))
    total = 0
    for folder in folders:
        if not (folder / "src").is_dir():
            sys.exit(f"modules.py: there is no crate {folder.name} in {RUNTIME.name}/")
        modules = read_crate(folder)
        levels = graph(modules)
        if not quiet:
            print(f"{folder.name} ({len(modules)} modules)")
        for level in sorted(levels):
            edges = levels[level]
            if not quiet:
                print(f"  {'::'.join(level) or folder.name + ' itself'}")
                width = max(len(name) for name in edges)
                for name in sorted(edges):
                    print(f"    {name:{width}}  -> {', '.join(sorted(edges[name]))}")
            for cycle in cycles(edges):
                total += 1
                where = "::".join((folder.name, *level))
                print(f"cycle in {where}: {' -> '.join([*cycle, cycle[0]])}", file=sys.stderr)
                for name, following in zip(cycle, [*cycle[1:], cycle[0]]):
                    print(f"  {name} uses {following}: {edges[name][following]}", file=sys.stderr)
    if total:
        sys.exit(f"modules.py: {total} cycle{'s' if total > 1 else ''}")


if __name__ == "__main__":
    main(sys.argv[1:])
