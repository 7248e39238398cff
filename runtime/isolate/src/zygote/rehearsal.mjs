import { joinSession } from "tenon:extension";
import assert from "node:assert";
import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import childProcess from "node:child_process";
import console from "node:console";
import constants from "node:constants";
import crypto from "node:crypto";
import dgram from "node:dgram";
import diagnosticsChannel from "node:diagnostics_channel";
import dns from "node:dns";
import dnsPromises from "node:dns/promises";
import events from "node:events";
import fs from "node:fs";
import fsPromises from "node:fs/promises";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import module from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import querystring from "node:querystring";
import readline from "node:readline";
import readlinePromises from "node:readline/promises";
import sqlite from "node:sqlite";
import stream from "node:stream";
import streamPromises from "node:stream/promises";
import streamWeb from "node:stream/web";
import { StringDecoder } from "node:string_decoder";
import timers from "node:timers";
import timersPromises from "node:timers/promises";
import tls from "node:tls";
import tty from "node:tty";
import url from "node:url";
import util from "node:util";
import utilTypes from "node:util/types";
import v8 from "node:v8";
import vm from "node:vm";
import workerThreads from "node:worker_threads";
import zlib from "node:zlib";

// Functions are compiled when they are first called; these are what most extensions call first.
const file = url.fileURLToPath("file:///rehearsal/extension.mjs");
path.join(path.dirname(file), path.basename(file), path.relative("/a", path.resolve("/b")));
util.format("%s %o", "text", { a: [1, new Map([[1, 2]])] });
util.inspect(new Error("rehearsal"));
util.promisify(childProcess.execFile);
Buffer.from("text").toString("base64");
crypto.createHash("sha256").update("text").digest("hex");
new events.EventEmitter().once("x", () => {}).emit("x");
new StringDecoder("utf8").write(Buffer.from("text"));
querystring.stringify(querystring.parse("a=1&b=2"));
new URL("https://example.org/x?y=1").searchParams.get("y");
module.createRequire("file:///rehearsal/extension.mjs");
new AsyncLocalStorage().run(1, () => {});
structuredClone({ a: [1, "2"] });
new TextDecoder().decode(new TextEncoder().encode("text"));
new AbortController().abort();
stream.Readable.from(["a"]);
http.createServer(() => {});
assert.ok(true);
os.platform();
performance.now();
process.cwd?.name;

const modules = [
  console, constants, dgram, diagnosticsChannel, dns, dnsPromises, fs, fsPromises, http2, https, net, readline,
  readlinePromises, sqlite, streamPromises, streamWeb, timers, timersPromises, tls, tty, utilTypes, v8, vm, workerThreads, zlib,
];
for (const used of modules) {
  if (typeof used !== "object" && typeof used !== "function") throw new Error("a module is missing");
}

await joinSession({
  tools: [{ name: "rehearsal", description: "Rehearses.", parameters: { type: "object", properties: {} }, handler: () => "x" }],
  hooks: { onPreToolUse: () => {}, onSessionStart: () => {} },
}).catch(() => {});
