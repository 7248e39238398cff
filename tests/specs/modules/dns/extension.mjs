// node:dns: looks up localhost, and asks a name server that this extension runs itself.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import * as prefixed from "node:dns";
import dnsPromises from "node:dns/promises";
import { once } from "node:events";
import * as bare from "dns";
import { joinSession } from "@github/copilot-sdk/extension";

// Answers every question for an A record of spec.test with 192.0.2.7, and all else with "no such name".
function answer(query) {
  const end = query.indexOf(0, 12) + 5;
  const question = query.subarray(12, end);
  const known = question.toString("latin1").toLowerCase().startsWith("\x04spec\x04test\x00\x00\x01");
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(known ? 0x8180 : 0x8183, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(known ? 1 : 0, 6);
  const record = Buffer.from("c00c000100010000003c0004c0000207", "hex");
  return Buffer.concat(known ? [header, question, record] : [header, question]);
}

async function check() {
  assert.equal(bare, prefixed);
  const dns = prefixed.default;
  assert.equal(dns.promises.lookup, dnsPromises.lookup);

  const [address, family] = await new Promise((resolve, reject) => {
    dns.lookup("localhost", (error, address, family) => (error ? reject(error) : resolve([address, family])));
  });
  assert.ok(["127.0.0.1 4", "::1 6"].includes(`${address} ${family}`), `${address} ${family}`);
  const four = await dnsPromises.lookup("localhost", { family: 4 });
  assert.deepEqual(four, { address: "127.0.0.1", family: 4 });
  const all = await dnsPromises.lookup("localhost", { all: true });
  assert.ok(all.some((one) => one.address === "127.0.0.1" && one.family === 4), JSON.stringify(all));
  assert.deepEqual(await dnsPromises.lookup("::1"), { address: "::1", family: 6 });

  const server = createSocket("udp4");
  server.on("message", (query, from) => server.send(answer(query), from.port, from.address));
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const resolver = new dnsPromises.Resolver();
    const self = `127.0.0.1:${server.address().port}`;
    resolver.setServers([self]);
    assert.deepEqual(resolver.getServers(), [self]);
    assert.deepEqual(await resolver.resolve4("spec.test"), ["192.0.2.7"]);
    assert.deepEqual(await resolver.resolve4("spec.test", { ttl: true }), [{ address: "192.0.2.7", ttl: 60 }]);
    await assert.rejects(resolver.resolve4("other.test"), { code: dns.NOTFOUND, syscall: "queryA", hostname: "other.test" });
  } finally {
    server.close();
  }
  assert.ok(Array.isArray(dns.getServers()));
  return `localhost is ${four.address}`;
}

await joinSession({ tools: [{ name: "check_dns", description: "Checks node:dns", handler: check }] });
