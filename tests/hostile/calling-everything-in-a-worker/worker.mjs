import fs from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { walk } from "./walk.mjs";

// What the walk makes of the modules must not change how it says where it is.
const { openSync, writeSync, closeSync } = fs;
const tell = parentPort.postMessage.bind(parentPort);

process.on("unhandledRejection", () => undefined);
process.on("uncaughtException", () => undefined);

const place = openSync("place", "a+");
const begin = (index, path) => writeSync(place, `${index} ${path}\n`);
const total = await walk({ ...workerData, begin });
closeSync(place);
tell({ total });
