import { joinSession } from "@github/copilot-sdk/extension";
import dgram from "node:dgram";
import net from "node:net";
import os from "node:os";

// A port on which hardly anything listens: to be refused by the machine means to have been let through.
const PORT = 61_999;
// What listens on all addresses is reached by those of the machine's interfaces, too. Those of a link would need its name.
function ownAddresses() {
  const all = Object.values(os.networkInterfaces()).flat().filter(({ address }) => !address.startsWith("fe80"));
  return all.flatMap(({ address, family }) => family === "IPv4" ? [address, `::ffff:${address}`] : [address]);
}

const hosts = [
  "127.0.0.1", "127.1", "127.0.1", "127.8.8.8", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "0.0.0.0", "0",
  ...ownAddresses(),
  "::1", "0:0:0:0:0:0:0:1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:0.0.0.0", "localhost", "LOCALHOST", "localhost.",
];

const refusal = (error) => error.cause ? refusal(error.cause) : `${error.code} ${error.message}`;
const isDenied = (text) => /has no net access|EPERM|Requires net access/.test(text);
// Notations that the library does not know reach nothing either.
const isUnknown = (text) => /ENOTFOUND|EAI_|EINVAL|Invalid URL|invalid|not resolve|lookup/i.test(text);

function connect(host) {
  return new Promise((resolve) => {
    try {
      const socket = net.connect(PORT, host, () => resolve("connected"));
      socket.on("error", (error) => resolve(refusal(error)));
    } catch (error) {
      resolve(refusal(error));
    }
  });
}

// A datagram's socket is bound to every address of the machine first; that this is denied, it throws where nobody can
// catch it.
let uncaught;
process.on("uncaughtException", (error) => uncaught?.(refusal(error)));

function send(host) {
  return new Promise((resolve) => {
    uncaught = resolve;
    const socket = dgram.createSocket(host.includes(":") ? "udp6" : "udp4");
    socket.on("error", (error) => resolve(refusal(error)));
    try {
      socket.send("x", PORT, host, (error) => resolve(error ? refusal(error) : "sent"));
    } catch (error) {
      resolve(refusal(error));
    }
  });
}

async function load(host) {
  const name = host.includes(":") ? `[${host}]` : host;
  try {
    await fetch(`http://${name}:${PORT}/`);
    return "loaded";
  } catch (error) {
    return refusal(error);
  }
}

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const reached = [];
      for (const host of hosts) {
        for (const [way, answer] of [["net", await connect(host)], ["udp", await send(host)], ["fetch", await load(host)]]) {
          if (!isDenied(answer) && !isUnknown(answer)) reached.push(`${host} by ${way}: ${answer}`);
        }
      }
      return `reached: ${reached.join("; ") || "nothing"}`;
    },
  }],
});
