// crypto, the global: random values, digests, ciphers, signatures and derived keys.

import assert from "node:assert/strict";
import { createHmac, verify, createPublicKey } from "node:crypto";
import { joinSession } from "@github/copilot-sdk/extension";

const { subtle } = crypto;
const bytes = (text) => new TextEncoder().encode(text);
const hex = (buffer) => Buffer.from(buffer).toString("hex");

async function check() {
  const random = crypto.getRandomValues(new Uint8Array(32));
  assert.notEqual(hex(random), hex(crypto.getRandomValues(new Uint8Array(32))));
  assert.throws(() => crypto.getRandomValues(new Uint8Array(65537)), { name: "QuotaExceededError" });
  assert.match(crypto.randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);

  const digest = hex(await subtle.digest("SHA-256", bytes("abc")));
  assert.equal(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");

  const key = await subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const algorithm = { name: "AES-GCM", iv: crypto.getRandomValues(new Uint8Array(12)), additionalData: bytes("head") };
  const sealed = new Uint8Array(await subtle.encrypt(algorithm, key, bytes("secret")));
  assert.equal(sealed.length, 6 + 16);
  assert.equal(new TextDecoder().decode(await subtle.decrypt(algorithm, key, sealed)), "secret");
  sealed[0] ^= 1;
  await assert.rejects(subtle.decrypt(algorithm, key, sealed), { name: "OperationError" });
  await assert.rejects(subtle.exportKey("raw", key), { name: "InvalidAccessError" });

  // What one half of the platform makes, the other understands.
  const hmac = await subtle.importKey("raw", bytes("Jefe"), { name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
  const mac = await subtle.sign("HMAC", hmac, bytes("text"));
  assert.equal(hex(mac), createHmac("sha256", "Jefe").update("text").digest("hex"));
  assert.equal(await subtle.verify("HMAC", hmac, mac, bytes("texts")), false);
  assert.equal((await subtle.exportKey("jwk", hmac)).k, "SmVmZQ");

  const pair = await subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const signature = await subtle.sign({ name: "ECDSA", hash: "SHA-256" }, pair.privateKey, bytes("text"));
  assert.equal(await subtle.verify({ name: "ECDSA", hash: "SHA-256" }, pair.publicKey, signature, bytes("text")), true);
  assert.equal(await subtle.verify({ name: "ECDSA", hash: "SHA-256" }, pair.publicKey, signature, bytes("other")), false);
  const spki = createPublicKey({ key: Buffer.from(await subtle.exportKey("spki", pair.publicKey)), format: "der", type: "spki" });
  assert.equal(verify("sha256", bytes("text"), { key: spki, dsaEncoding: "ieee-p1363" }, new Uint8Array(signature)), true);

  const ed = await subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  assert.equal(await subtle.verify("Ed25519", ed.publicKey, await subtle.sign("Ed25519", ed.privateKey, random), random), true);
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const [a, b] = await Promise.all([1, 2].map(() => subtle.generateKey(curve, false, ["deriveBits"])));
  const secrets = await Promise.all([[a, b], [b, a]].map(([mine, other]) => {
    return subtle.deriveBits({ name: "ECDH", public: other.publicKey }, mine.privateKey, 256);
  }));
  assert.equal(hex(secrets[0]), hex(secrets[1]));

  // RFC 6070, test case 2.
  const password = await subtle.importKey("raw", bytes("password"), "PBKDF2", false, ["deriveBits"]);
  const derived = await subtle.deriveBits({ name: "PBKDF2", hash: "SHA-1", salt: bytes("salt"), iterations: 2 }, password, 160);
  assert.equal(hex(derived), "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957");
  return `SHA-256 ${digest.slice(0, 8)}, PBKDF2 ${hex(derived).slice(0, 8)}`;
}

await joinSession({ tools: [{ name: "check_webcrypto", description: "Checks the global crypto", handler: check }] });
