// Imported only while the startup snapshot is made: whatever is evaluated here starts for free.
//
// Static imports alone, never a lazy loader: a module that is loaded lazily during a snapshot loses
// its source text, and functions compiled later would read a neighbour's. Files that node's own code
// loads lazily are therefore named here too. `node:crypto` makes an object that a snapshot cannot hold.

import { core, internals } from "ext:core/mod.js";

import "ext:tenon/platform.js";
import "node:path";
import "node:events";
import "node:util";
import "node:url";
import "node:buffer";
import "node:string_decoder";
import "node:querystring";
import "node:assert";
import "node:stream";
import "node:stream/promises";
import "node:os";
import "node:timers";
import "node:net";
import "node:http";
import "node:_http_client";
import "node:_http_server";
import "node:_http_outgoing";
import "node:child_process";
import "node:zlib";
import "node:fs";
import "node:fs/promises";
import "node:process";
import "ext:deno_node/internal/fs/utils.mjs";
import "ext:deno_node/internal/fs/promises.ts";
import "ext:deno_node/internal/fs/streams.mjs";
import "ext:deno_node/internal/fs/stat_utils.ts";
import "ext:deno_node/_fs/_fs_dir.ts";
import "ext:deno_node/_fs/_fs_exists.ts";
import "ext:deno_node/_fs/_fs_read.ts";
import "ext:deno_node/internal/streams/fast-utf8-stream.js";

// Scripts, unlike modules, may be loaded by name: these are what node's process module and
// `node:crypto` load when they are first used.
for (const script of [
  "internal/cli_table.ts",
  "internal/console/constructor.mjs",
  "internal/constants.ts",
  "internal/readline/callbacks.mjs",
  "internal/readline/utils.mjs",
  "internal/crypto/_randomBytes.ts",
  "internal/crypto/_randomFill.mjs",
  "internal/crypto/_randomInt.ts",
  "internal/crypto/certificate.ts",
  "internal/crypto/util.ts",
  "internal/crypto/hash.ts",
  "internal/crypto/random.ts",
  "internal/crypto/keys.ts",
  "internal/crypto/cipher.ts",
  "internal/crypto/diffiehellman.ts",
  "internal/crypto/hkdf.ts",
  "internal/crypto/keygen.ts",
  "internal/crypto/pbkdf2.ts",
  "internal/crypto/scrypt.ts",
  "internal/crypto/sig.ts",
  "internal/crypto/x509.ts",
]) {
  core.loadExtScript(`ext:deno_node/${script}`);
}

internals.tenonBaked = true;
