// node:crypto: known answers for digests and derived keys, and ciphers that notice tampering.

import * as prefixed from "node:crypto";
import * as bare from "crypto";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function check() {
  same("crypto is node:crypto", bare === prefixed && bare.default === prefixed.default, true);
  const crypto = prefixed.default;
  const digest = hashes(crypto);
  randoms(crypto);
  ciphers(crypto);
  keys(crypto);
  same("webcrypto is the global", crypto.webcrypto === globalThis.crypto, true);

  // RFC 7914, section 12, without and with a callback.
  const expected = "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640";
  const options = { N: 1024, r: 8, p: 16 };
  same("scryptSync", crypto.scryptSync("password", "NaCl", 64, options).toString("hex"), expected);
  const derived = await new Promise((resolve, reject) => {
    crypto.scrypt("password", "NaCl", 64, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
  same("scrypt", derived.toString("hex"), expected);
  return digest;
}

function hashes(crypto) {
  const sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  const inPieces = crypto.createHash("sha256").update("a").update(Buffer.from("bc")).digest("hex");
  same("sha256 of abc", inPieces, sha);
  same("crypto.hash", crypto.hash("sha256", "abc"), sha);
  same("md5", crypto.createHash("md5").update("").digest("base64"), "1B2M2Y8AsgTpgAmY7PhCfg==");
  same("sha1", crypto.createHash("sha1").update("abc").digest("hex"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  same("sha512", crypto.createHash("sha512").update("abc").digest("hex").slice(0, 16), "ddaf35a193617aba");
  same("getHashes", crypto.getHashes().includes("sha256"), true);
  // RFC 4231, test case 2.
  const hmac = crypto.createHmac("sha256", "Jefe").update("what do ya want for nothing?").digest("hex");
  same("hmac", hmac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  // RFC 6070, test case 2.
  same("pbkdf2", crypto.pbkdf2Sync("password", "salt", 2, 20, "sha1").toString("hex"), "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957");
  // RFC 5869, test case 1.
  const info = Buffer.from("f0f1f2f3f4f5f6f7f8f9", "hex");
  const key = crypto.hkdfSync("sha256", Buffer.alloc(22, 0x0b), Buffer.from("000102030405060708090a0b0c", "hex"), info, 42);
  same("hkdf", Buffer.from(key).toString("hex").slice(0, 32), "3cb25f25faacd57a90434f64d0362f2a");
  return `sha256 ${inPieces.slice(0, 8)}`;
}

function randoms(crypto) {
  const [a, b] = [crypto.randomBytes(32), crypto.randomBytes(32)];
  same("two random values", [a.length, a.equals(b)], [32, false]);
  same("randomUUID", /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), true);
  const numbers = Array.from({ length: 200 }, () => crypto.randomInt(5, 8));
  same("randomInt", [...new Set(numbers)].sort(), [5, 6, 7]);
  same("timingSafeEqual", [crypto.timingSafeEqual(a, Buffer.from(a)), crypto.timingSafeEqual(a, b)], [true, false]);
}

function ciphers(crypto) {
  const [key, iv] = [crypto.randomBytes(32), crypto.randomBytes(12)];
  const cipher = crypto.createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from("header"));
  const secret = Buffer.concat([cipher.update("attack at dawn", "utf8"), cipher.final()]);
  const tag = cipher.getAuthTag();
  const open = (data) => {
    const decipher = crypto.createDecipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from("header")).setAuthTag(tag);
    return decipher.update(data, undefined, "utf8") + decipher.final("utf8");
  };
  same("what was encrypted", open(secret), "attack at dawn");
  secret[0] ^= 1;
  let tampered = "accepted";
  try {
    open(secret);
  } catch {
    tampered = "refused";
  }
  same("a tampered message", tampered, "refused");

  // NIST SP 800-38A, F.2.1, the first block.
  const nist = (text) => Buffer.from(text, "hex");
  const cbc = crypto.createCipheriv("aes-128-cbc", nist("2b7e151628aed2a6abf7158809cf4f3c"), nist("000102030405060708090a0b0c0d0e0f"));
  same("aes-128-cbc", cbc.update("6bc1bee22e409f96e93d7e117393172a", "hex", "hex"), "7649abac8119b246cee98e9b12e9197d");
}

function keys(crypto) {
  const { publicKey, privateKey } = crypto.generateKeyPairSync("ed25519");
  const signature = crypto.sign(null, Buffer.from("text"), privateKey);
  same("ed25519", [
    crypto.verify(null, Buffer.from("text"), publicKey, signature),
    crypto.verify(null, Buffer.from("other"), publicKey, signature),
  ], [true, false]);
  const pem = privateKey.export({ type: "pkcs8", format: "pem" });
  same("a key as PEM and back", crypto.createPrivateKey(pem).asymmetricKeyType, "ed25519");

  const ec = crypto.generateKeyPairSync("ec", { namedCurve: "P-256" });
  const ecSignature = crypto.createSign("sha256").update("text").sign(ec.privateKey);
  same("ecdsa", crypto.createVerify("sha256").update("text").verify(ec.publicKey, ecSignature), true);

  const rsa = crypto.generateKeyPairSync("rsa", { modulusLength: 2048 });
  const sealed = crypto.publicEncrypt(rsa.publicKey, Buffer.from("small"));
  same("rsa", crypto.privateDecrypt(rsa.privateKey, sealed).toString(), "small");

  const [alice, bob] = [crypto.createECDH("prime256v1"), crypto.createECDH("prime256v1")];
  const [a, b] = [alice.generateKeys(), bob.generateKeys()];
  same("ecdh", alice.computeSecret(b).equals(bob.computeSecret(a)), true);
}

await joinSession({ tools: [{ name: "check_crypto", description: "Checks node:crypto", handler: check }] });
