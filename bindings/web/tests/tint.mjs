// Compiles every text that a browser can be given with Tint, Chromium's compiler, in Dawn for Node.
//
//   node tint.mjs FOLDER
//
// Dawn's backend without a device has every feature: a text is read, checked and resolved there. What a device's own
// compiler does with it afterwards is tested in Chromium.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { create, globals } from "webgpu";

Object.assign(globalThis, globals);

/** Texts that Tint is known to refuse, by the beginning of their names, and why. */
const REFUSED = [];

/** Texts for one device: Dawn ends the process after some thousand pipelines of one. */
const BATCH = 500;

/** The backend has the least work-group storage that WebGPU promises, and devices more: no fault of a text. */
const STORAGE = /total use of workgroup storage/;

const gpu = create(["backend=null"]);

async function open() {
  const adapter = await gpu.requestAdapter();
  if (!adapter) {
    throw new Error("Dawn found no adapter");
  }
  return adapter.requestDevice({ requiredFeatures: ["shader-f16"] });
}

/** Why Tint refuses a text, or undefined. */
async function refusal(device, code) {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code });
  const entryPoint = /@compute[^]*?fn\s+(\w+)/.exec(code)?.[1];
  device.createComputePipeline({ layout: "auto", compute: { module, entryPoint } });
  const error = await device.popErrorScope();
  const { messages } = await module.getCompilationInfo();
  const first = messages.find(({ type }) => type === "error");
  if (first) {
    return `${first.message} (${code.split("\n")[first.lineNum - 1]?.trim()})`;
  }
  return error && !STORAGE.test(error.message) ? error.message : undefined;
}

const folder = process.argv[2];
const names = readdirSync(folder).filter((name) => name.endsWith(".wgsl"));
if (names.length < 500) {
  throw new Error(`found ${names.length} texts in ${folder}, wanted at least 500`);
}
const reasons = new Map();
let [refused, known] = [0, 0];
for (let start = 0; start < names.length; start += BATCH) {
  const device = await open();
  for (const name of names.slice(start, start + BATCH)) {
    const reason = await refusal(device, readFileSync(join(folder, name), "utf8"));
    if (reason === undefined) {
      continue;
    }
    if (REFUSED.some(([begin]) => name.startsWith(begin))) {
      known += 1;
      continue;
    }
    refused += 1;
    reasons.set(reason, [...(reasons.get(reason) ?? []), name]);
  }
  device.destroy();
}
for (const [reason, of] of reasons) {
  console.log(`${of.length} texts, ${of[0]} first: ${reason}`);
}
for (const [begin, why] of REFUSED) {
  console.log(`known: ${begin}: ${why}`);
}
const taken = names.length - refused - known;
console.log(`${names.length} texts: Tint takes ${taken}, refuses ${refused}, and ${known} as known`);
process.exit(refused ? 1 : 0);
