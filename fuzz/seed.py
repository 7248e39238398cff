#!/usr/bin/env python3
"""Makes the corpora that fuzzing starts from, of what the tests and the specs have in them.

usage: fuzz/seed.py FOLDER

FOLDER gets a folder for each target. What is there stays: a corpus grows from one run to the next.
"""

import hashlib
import json
import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What a test has in place of a value.
NAME = re.compile(r'(?<=[\[:,{ ])\s*&?[A-Za-z_][\w.:]*(?:\([^()]*\))?(?=\s*[,}\]])')
WORDS = ("true", "false", "null")


def sources(*patterns):
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.read_text(errors="replace")


def balanced(text, start, open_, close):
    """The text from a bracket to the one that closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == open_) - (text[at] == close)
        if depth == 0:
            return text[start : at + 1]
    return ""


def objects(text):
    """The objects in `json!(...)`, with names replaced by texts."""
    for found in re.finditer(r"json!\(\{", text):
        literal = balanced(text, found.end() - 1, "{", "}")
        literal = re.sub(r"//[^\n]*", "", literal)
        literal = NAME.sub(lambda it: it.group() if it.group().strip() in WORDS else ' "x"', literal)
        literal = re.sub(r",(\s*[}\]])", r"\1", literal)
        try:
            value = json.loads(literal, strict=False)
        except ValueError:
            continue
        yield value


def strings(text):
    """The texts in quotation marks."""
    for found in re.finditer(r'r#+"(.*?)"#|"((?:\\.|[^"\\])*)"', text, re.DOTALL):
        raw, plain = found.groups()
        if raw is not None:
            yield raw
            continue
        escapes = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", '"': '"', "\\": "\\"}
        plain = re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda it: chr(int(it.group(1), 16)), plain)
        plain = re.sub(r"\\x([0-9a-fA-F]{2})", lambda it: chr(int(it.group(1), 16)), plain)
        yield re.sub(r"\\(.)", lambda it: escapes.get(it.group(1), it.group(0)), plain)


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def frame(tag, body):
    return struct.pack("<IB", len(body) + 1, tag) + body


def wire():
    """Frames of each tag, and whole messages as JSON."""
    number = struct.pack("<Q", 7)
    calls = b"".join(frame(1, number + bytes([kind]) + b'{"a":1}') for kind in range(7))
    yield b"\0\2" + calls + frame(2, b"[1,2]") + frame(3, number + b'\1{"x":[null]}') + frame(3, number + b"\0no")
    for value in ({"type": "cancel", "call": 9, "reason": "why"}, {"type": "stop"}, {"type": "hold_start", "held": True}):
        yield b"\0\3" + frame(0, compact(value))
    request = number + struct.pack("<Q", 4) + b"join" + b'{"tools":[]}'
    yield b"\1\2" + frame(4, number + b"[]") + frame(5, b"") + frame(6, request)
    for end in ("stopped", "exited", "no_join", "terminated", "limit", "process_died", "setup", "script"):
        fields = {"code": 1, "joined": True, "deadline_ms": 1, "reason": "x", "limit": "cpu-ms", "allowed": "x", "stack": ""}
        fields |= {"how": "x", "with_zygote": False, "message": "x"}
        yield b"\1\5" + frame(0, compact({"type": "ended", "end": end, **fields}))
    access = {"allow": ["/w"], "deny": []}
    limits = dict.fromkeys(
        "heap_bytes buffer_bytes memory_bytes cpu_ms children log_lines_per_second result_chars start_deadline_ms stop_deadline_ms"
        .split(), 1)
    grant = dict.fromkeys(("read", "write", "net", "run"), access)
    outside = {"folder": "/e", "suspicion": {"who": "user:a", "since": [1, 2], "accepted": {"/x": "00"}}}
    spec = {"id": "user:a", "entry": "/e/a.mjs", "cwd": "/w", "env": {"A": "1"}, "grant": grant, "sandbox_required": False}
    yield b"\2\6" + frame(0, compact({**spec, "limits": limits, "outside": outside}))
    for order in ({"Start": {"process": 1}}, {"Kill": {"process": 1}}, {"Ping": {"request": 1}}):
        yield b"\3\2" + frame(0, compact(order))
    for report in ({"Started": {"process": 1, "pid": 2}}, {"Failed": {"process": 1, "why": "x"}}, {"Pong": {"request": 1, "pid": 2}}):
        yield b"\4\2" + frame(0, compact(report))
    yield from made(5, 6, 7)


def made(*kinds):
    """Bytes for what makes its own input of them."""
    for kind in kinds:
        for seed in range(12):
            yield bytes([kind]) + b"".join(hashlib.sha256(bytes([seed, part])).digest() for part in range(seed + 1))


def rpc():
    for text in sources("runtime/acp/src/rpc/*.rs", "runtime/acp/src/rpc/*/*.rs"):
        for line in strings(text):
            if line.startswith("{"):
                yield b"\xff" + line.encode(errors="replace")
    for text in sources("runtime/acp/src/**/*.rs", "tests/**/*.rs"):
        for value in objects(text):
            yield b"\xff" + compact({"jsonrpc": "2.0", "method": "session/update", "params": value})
            yield b"\x20" + compact({"jsonrpc": "2.0", "id": 7, "result": value}) + b"\n" + compact(value)


def vocabulary():
    for text in sources("runtime/acp/src/vocabulary/*.rs", "runtime/acp/src/vocabulary.rs", "runtime/acp/src/bridge/*.rs"):
        values = list(objects(text))
        for value in values:
            yield b"\0" + compact(value)
        for one, other in zip(values, values[1:]):
            yield b"\0" + compact(one) + b"\n" + compact(other)
    yield from made(1)


def mcp():
    for body in (
        {"jsonrpc": "2.0", "id": 7, "method": "server/discover"},
        {"id": 7, "method": "tools/call", "params": {"arguments": {"text": "server/discover"}}},
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
    ):
        yield b"\0" + compact(body)
    for text in sources("runtime/acp/src/endpoint/http.rs"):
        for line in strings(text):
            if ":" in line and " " not in line:
                yield b"\1" + line.encode(errors="replace")
                yield b"\2" + line.encode(errors="replace")
    yield from made(3, 4)


def config():
    for text in sources("runtime/host/src/config.rs", "runtime/acp/src/config.rs", "runtime/host/src/grants.rs", "docs/*.md"):
        for line in list(strings(text)) + re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
            if "=" in line or line.startswith("["):
                yield b"\0" + line.encode(errors="replace")
    for text in sources("tests/**/config.toml"):
        yield b"\0" + text.encode()
    record = {"source": "https://example.org/a", "path": "x", "reference": "v1", "commit": "0" * 40}
    yield b"\3" + compact({**record, "hash": "00", "installedAt": "2026-01-01T00:00:00Z"})
    for text in sources("runtime/host/src/install/source.rs"):
        for line in strings(text):
            if ":" in line or ".git" in line:
                yield b"\4" + line.encode(errors="replace")
    for text in sources("runtime/acp/src/command_line.rs", "runtime/acp/src/profiles.rs"):
        for line in strings(text):
            yield b"\5" + line.encode(errors="replace")


def terminal():
    for text in sources("runtime/cli/src/terminal/keys/decoder.rs"):
        for line in strings(text):
            yield b"\0\2" + line.encode("utf-8", errors="replace")
    yield b"\0\3\x1b[200~x\r\ny\x1b[201~a"
    for text in sources("runtime/console/src/sanitise.rs"):
        for line in strings(text):
            for kind in (3, 4, 5):
                yield bytes([kind, 3]) + line.encode(errors="replace")
    for text in sources("runtime/cli/src/terminal/markdown.rs", "runtime/cli/src/terminal/markdown/inline.rs", "docs/guide.md"):
        for line in strings(text) if text.startswith("//!") else text.split("\n\n"):
            for kind in (6, 14):
                yield bytes([kind, 4]) + line.encode(errors="replace")


def specifiers():
    found = set()
    for text in sources("tests/specs/**/*.mjs", "tests/hostile/**/*.mjs", "extensions/**/*.mjs", "js-sdk/src/**/*.js"):
        found.update(re.findall(r"""(?:from|import|import\(|require\()\s*["']([^"']+)["']""", text))
    found.update(("file:///w/a.mjs", "tenon:index", "TENON:index", "data:text/javascript,0", "../..%2f..%2fetc/passwd", "//host/x"))
    for specifier in sorted(found):
        for kind in range(10):
            yield bytes([kind]) + specifier.encode()
        yield b"\x09" + specifier.encode() + b"\nfile:///w/node_modules/a/b.js"


def hooks():
    for kind in range(8):
        yield from made(kind)


TARGETS = {
    "wire": wire,
    "rpc": rpc,
    "vocabulary": vocabulary,
    "mcp": mcp,
    "paths": lambda: made(*range(24)),
    "config": config,
    "hooks": hooks,
    "terminal": terminal,
    "specifiers": specifiers,
}


def main():
    folder = Path(sys.argv[1])
    for name, seeds in TARGETS.items():
        corpus = folder / name
        corpus.mkdir(parents=True, exist_ok=True)
        for seed in seeds():
            (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


if __name__ == "__main__":
    main()
