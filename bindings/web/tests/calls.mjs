// Calls that are refused, that end early, and that a module leaves without an end: in Node, on the CPU, or with a worker that is
// only pretended.

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { external, open, picture, tiny } from "./tiny.mjs";

function ensure(holds, message) {
  if (!holds) {
    throw new Error(message);
  }
}

/** What a promise gives, or an error if it gives nothing for long. */
function soon(what, promise, seconds = 60) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what}: no end within ${seconds} s`)), 1000 * seconds)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The error of a call; one of this test if there is none. */
const errorOf = (what, act) =>
  soon(what, new Promise((resolve) => resolve(act()))).then(
    () => Promise.reject(new Error(`${what}: no error`)),
    (error) => error,
  );

async function refused(Diptych) {
  const load = (options, model = tiny()) => Diptych.load(model, { backend: "cpu", ...options });
  const session = await load();
  const opened = await load({}, open());
  const square = await load({}, picture(3, 4));
  const own = { x: new Float32Array(64) };
  const wanted = {
    "a seed with a fraction": [() => load({ seed: 1.5 }), /^seed: found 1.5, wanted a whole number/],
    "a seed of letters": [() => load({ seed: "abc" }), /^seed: found "abc", wanted a whole number/],
    "a seed below zero": [() => load({ seed: -1 }), /^seed: found -1, wanted/],
    "a seed of 65 bits": [() => load({ seed: 2n ** 64n }), /^seed: found 18446744073709551616, wanted/],
    "a controller as signal": [() => load({ signal: new AbortController() }), /^signal: found object, wanted an AbortSignal/],
    "a device for the CPU": [() => load({ device: {} }), /device: found a GPUDevice with backend "cpu"/],
    "no inputs": [() => session.run(), /^run: found undefined, wanted an object with a value for each input/],
    "no inputs of a profile": [() => session.profile(null), /^profile: found null, wanted/],
    "letters in a list": [() => session.run({ x: new Array(64).fill("a") }), /input "x": found string at element 0, wanted numbers \(f32\)/],
    "holes in a list": [() => session.run({ x: new Array(64) }), /input "x": found undefined at element 0, wanted numbers/],
    "bigints for floats": [() => session.run({ x: [...new Array(63).fill(0), 1n] }), /input "x": found bigint at element 63, wanted numbers/],
    "texts for integers": [() => opened.run({ x: { data: [1, 2], dims: [1, 2] }, shape: ["2", "1"] }), /input "shape": found string at element 0, wanted whole numbers \(i64\)/],
    "a part of a row": [() => opened.run({ x: { data: [1, 2], dims: [1.5, 2] }, shape: [2, 1] }), /input "x": found the extent 1.5, wanted a whole number/],
    "an extent of letters": [() => opened.run({ x: { data: [1, 2], dims: ["1", 2] }, shape: [2, 1] }), /input "x": found the extent of type string, wanted a whole number/],
    "a letter that is near all": [() => session.run(own, { x: 1 }), /option "x" is unknown\. The options/],
    "a word that is near none": [() => session.run(own, { sensible: 1 }), /option "sensible" is unknown\. The options/],
    "a word that is near one": [() => session.run(own, { tensor: 1 }), /did you mean "tensors"\?/],
    "a buffer on the CPU": [() => session.run(own, { buffers: true }), /the network runs on the CPU/],
    "weights of a name that all objects have": [() => load({}, external("constructor")[0]), /keeps weights in the file "constructor", wanted externalData/],
    "weights beside no address": [
      () => load({}, `data:application/octet-stream;base64,${Buffer.from(external()[0]).toString("base64")}`),
      /keeps weights in the file "weights.bin", wanted externalData/,
    ],
    "options of restore": [() => session.restore({ divice: 1 }), /restore: option "divice" is unknown; did you mean "device"\?/],
  };
  for (const [what, [act, says]] of Object.entries(wanted)) {
    const { message } = await errorOf(what, act);
    ensure(says.test(message), `${what}: ${message}`);
  }
  const { y } = await session.run({ x: new Array(64).fill(true) });
  ensure(y[63] === 1, `truths as floats give ${y[63]}`);
  ensure(square.inputs[0].dims.join() === "1,4,4,3", "no picture");
  await session.restore();
  ensure((await session.run(own)).y[0] === 0, "no run after restore");
  await session.free();
  const { message } = await errorOf("restore after free", () => session.restore());
  ensure(/the session was freed/.test(message), message);
  return Object.keys(wanted).length;
}

/** A module whose second file does not come, and a task that stops. */
async function stopped(site) {
  const folder = mkdtempSync(join(tmpdir(), "diptych-"));
  try {
    cpSync(join(site, "diptych"), folder, { recursive: true, filter: (path) => !path.endsWith("_rest.wasm") });
    const { Diptych } = await import(pathToFileURL(join(folder, "index.js")));
    const values = { x: new Float32Array(64).fill(3) };
    let session;
    const error = await errorOf("a second file that does not come", async () => {
      session = await Diptych.load(tiny("Hardmax"), { backend: "cpu" });
      await session.run(values);
    });
    ensure(error.name === "StoppedError" && /^the network stopped: .*_rest\.wasm/.test(error.message), `${error.name}: ${error.message}`);
    if (session) {
      const again = await errorOf("a call after that", () => session.run(values));
      ensure(again === error, again.message);
      await soon("free after that", session.free());
    }
    const other = await Diptych.load(tiny(), { backend: "cpu" });
    const { y } = await soon("another network of the module", other.run(values));
    ensure(y[63] === 3, `another network of the module gives ${y[63]}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
  const { Rest } = await import(pathToFileURL(join(site, "diptych/rest.js")));
  const rest = new Rest(new URL("file:///nothing"));
  const pending = errorOf("a trap", () => rest.settled(new Promise(() => {})));
  const trap = new WebAssembly.RuntimeError("unreachable");
  const task = rest.task(() => {
    throw trap;
  });
  await new Promise((resolve) => setTimeout(resolve));
  task();
  const { name, cause } = await pending;
  ensure(name === "StoppedError" && cause === trap, name);
  const unheard = await errorOf("a trap that no call waits for", async () => task());
  ensure(unheard === trap, unheard.message);
}

/** A download that stands still is stopped. */
async function stalled(Diptych) {
  const stop = new AbortController();
  let cancelled;
  const body = new ReadableStream({
    start: (stream) => stream.enqueue(tiny().slice(0, 20)),
    cancel: (reason) => (cancelled = reason),
  });
  const error = errorOf("a download that stands still", () => Diptych.load(new Response(body), { backend: "cpu", signal: stop.signal }));
  setTimeout(() => stop.abort(), 50);
  ensure((await error).name === "AbortError", (await error).message);
  ensure(cancelled === stop.signal.reason, "the stream was not cancelled");
}

/** A worker that answers `load`, and anything else only if it is told to. */
class Pretended {
  static all = [];
  sent = [];
  ended = false;
  constructor() {
    Pretended.all.push(this);
  }
  postMessage(message) {
    if (this.refuses) {
      throw new DOMException("no copy can be made", "DataCloneError");
    }
    this.sent.push(message);
    if (message.call === "load") {
      queueMicrotask(() => this.onmessage({ data: { id: message.id, result: { inputs: [], outputs: [] } } }));
    }
  }
  terminate() {
    this.ended = true;
  }
}

async function remote(Diptych) {
  globalThis.Worker = Pretended;
  globalThis.ImageData = class {};
  const stop = new AbortController();
  const early = errorOf("an abort in the same task", () => {
    const loading = Diptych.load("model.onnx", { worker: true, signal: stop.signal });
    stop.abort();
    return loading;
  });
  ensure((await early).name === "AbortError" && Pretended.all.every(({ ended }) => ended), (await early).message);

  const session = await Diptych.load("model.onnx", { worker: true });
  const worker = Pretended.all.at(-1);
  const whole = new Float32Array(1000);
  const ran = errorOf("a run of a worker that fails", () =>
    session.run({ a: whole.subarray(1, 3), b: { data: whole.subarray(5), dims: [995] }, c: whole }),
  );
  await new Promise((resolve) => setTimeout(resolve));
  const { a, b, c } = worker.sent.at(-1).inputs;
  const sizes = [a, b.data, c].map(({ buffer }) => buffer.byteLength);
  ensure(sizes.join() === "8,3980,4000", `buffers of ${sizes} bytes go to the worker`);
  worker.refuses = true;
  const unsent = await errorOf("an input that cannot go", () => session.run({ a: whole }));
  ensure(unsent.name === "DataCloneError", unsent.message);
  const asked = await errorOf("an option of tune", () => session.tune({ onprogress: () => {} }));
  ensure(/did you mean "onProgress"\? The options are budgetMs, stepMs, onProgress, signal/.test(asked.message), asked.message);
  const moved = await errorOf("a device for a worker", () => session.restore({ device: {} }));
  ensure(/a GPUDevice cannot go to a worker/.test(moved.message), moved.message);
  worker.onerror({ message: "out of memory" });
  for (const error of [await ran, await errorOf("a run after that", () => session.run({}))]) {
    ensure(/the worker failed: out of memory/.test(error.message), error.message);
  }
  ensure(worker.ended, "the worker that failed goes on");
  await session.free();
  ensure(/freed/.test((await errorOf("a run after free", () => session.run({}))).message), "no word of free");
  delete globalThis.Worker;
  delete globalThis.ImageData;
}

/** The worker's side closes what came to it. */
async function inWorker(site) {
  const answers = [];
  let next;
  globalThis.onmessage = null;
  globalThis.postMessage = (message) => (answers.push(message), next?.());
  await import(pathToFileURL(join(site, "diptych/worker.js")));
  const ask = async (given) => {
    const answer = new Promise((resolve) => (next = resolve));
    globalThis.onmessage({ data: { id: 1, ...given } });
    await soon(given.call, answer);
    ensure(!answers.at(-1).error, answers.at(-1).error?.message);
  };
  await ask({ call: "load", model: tiny(), options: { backend: "cpu" } });
  let closed = 0;
  const x = { data: new Float32Array(64), dims: [1, 64], close: () => (closed += 1) };
  await ask({ call: "run", inputs: { x } });
  await ask({ call: "profile", inputs: { x } });
  ensure(closed === 2, `pictures of ${closed} of 2 calls were closed`);
  delete globalThis.onmessage;
  delete globalThis.postMessage;
}

async function onPage(site) {
  const { largest } = await import(pathToFileURL(join(site, "shapes.js")));
  const numbers = Float32Array.from({ length: 1e6 }, (_, at) => (at * 7919) % 1000003);
  const found = largest(numbers, 10);
  const wanted = [...numbers.keys()].sort((a, b) => numbers[b] - numbers[a] || a - b).slice(0, 10);
  ensure(found.join() === wanted.join(), `the largest are at ${found}, wanted ${wanted}`);
  ensure(largest([NaN, 1, NaN, 3, 2], 3).join() === "3,4,1", "a number that is none is among the largest");
  ensure(largest(BigInt64Array.of(1n, 5n, 5n), 2).join() === "1,2", "equal ones are not in their order");
}

/** What is checked. Throws an error where something is not as it should be. */
export async function calls(site) {
  const { Diptych } = await import(pathToFileURL(`${site}/diptych/index.js`));
  const count = await refused(Diptych);
  await stopped(site);
  await stalled(Diptych);
  await remote(Diptych);
  await inWorker(site);
  await onPage(site);
  return `${count} calls are refused by name; a module that stops, a download that stands still and a worker that fails end their calls`;
}
