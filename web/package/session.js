// A session on this thread: the page's, or a worker's.

import init, { Engine, Network } from "./wasm/diptych_web.js";
import { bytesOf } from "./bytes.js";
import { isPicture, pixels } from "./pictures.js";
import { readRecord, writeRecord } from "./store.js";

/** How long a call may go on after its device was lost. */
const GIVE_UP_MS = 500;
/** How much later than a call that it makes fail a loss is told. */
const TELL_MS = 50;

let ready;

/** Compiles the WebAssembly once. `wasm` says where it is, if not beside this file. */
function start(wasm) {
  ready ??= init(wasm === undefined ? undefined : { module_or_path: wasm }).catch((error) => {
    ready = undefined;
    throw error;
  });
  return ready;
}

export async function open({ backend = "auto", device, wasm } = {}) {
  await start(wasm);
  return device ? Engine.adopt(device) : Engine.open(backend);
}

const nextTask = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });

function lostError(reason) {
  const error = new Error(`the device was lost: ${reason || "no reason was given"}`);
  error.name = "DeviceLostError";
  return error;
}

export class LocalSession {
  #engine;
  #network;
  #bytes;
  #options;
  #lostReason;
  #queue = Promise.resolve();
  /** Ends the call that is under way with an error. */
  #giveUp = () => {};
  #key;

  static async load(model, options = {}) {
    const onProgress = options.onProgress ?? (() => {});
    const bytes = await bytesOf(model, (done, total) => onProgress({ stage: "download", done, total }));
    const session = new LocalSession();
    session.#bytes = bytes;
    session.#options = options;
    await session.#build(options);
    return session;
  }

  async #build(options) {
    const onProgress = options.onProgress ?? (() => {});
    const engine = await open(options);
    const info = JSON.parse(engine.info());
    const device = engine.device();
    if (info.device) {
      info.device.name = nameOf(device) || info.device.name;
    }
    const keep = options.record !== false && info.backend === "webgpu";
    const stored = keep ? await readRecord(info.device.name, this.#bytes) : { key: undefined, text: "" };
    const settings = JSON.stringify({ precision: options.precision, dimensions: options.dimensions });
    const network = await Network.build(engine, this.#bytes, settings, stored.text, (text) =>
      onProgress({ stage: "build", ...buildProgress(JSON.parse(text)) }),
    ).catch((error) => {
      engine.free();
      throw error;
    });
    this.#engine = engine;
    this.#network = network;
    this.#key = stored.key;
    this.#lostReason = undefined;
    /** The backend, the device, and why it is this one. */
    this.info = info;
    /** The GPUDevice it runs on; undefined on the CPU. */
    this.device = device;
    this.#describe();
    const lost = device?.lost.then((lost) => {
      const reason = lost.message || lost.reason;
      if (this.device === device) {
        this.#lostReason = reason;
        // What waits for a lost device is told soon, as a rule.
        setTimeout(() => this.device === device && this.#giveUp(lostError(reason)), GIVE_UP_MS);
      }
      return reason;
    });
    /** Settles with the reason when the device is lost; never on the CPU. */
    this.lost = lost ?? new Promise(() => {});
  }

  #describe() {
    const { inputs, outputs, steps, memory, model } = JSON.parse(this.#network.describe());
    Object.assign(this, { inputs, outputs, steps, memory, model });
  }

  /** One thing at a time: the network has one set of buffers. */
  #next(act) {
    const done = this.#queue.then(async () => {
      if (!this.#network) {
        throw new Error("the session was freed");
      }
      if (this.#lostReason !== undefined) {
        throw lostError(this.#lostReason);
      }
      try {
        return await new Promise((resolve, reject) => {
          this.#giveUp = reject;
          act(this.#network).then(resolve, reject);
        });
      } catch (error) {
        // The loss is told a little later than the call that it makes fail.
        await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, TELL_MS))]);
        throw this.#lostReason === undefined ? error : lostError(this.#lostReason);
      }
    });
    this.#queue = done.catch(() => {});
    return done;
  }

  /** Names and values of inputs: pictures as numbers, buffers as they are. */
  #arrange(inputs) {
    const names = Object.keys(inputs);
    const values = names.map((name) => {
      const value = inputs[name];
      const port = this.inputs.find((input) => input.name === name);
      if (!port) {
        const known = this.inputs.map((input) => input.name).join(", ");
        throw new Error(`input "${name}" is unknown, the network has ${known}`);
      }
      const place = this.inputs.indexOf(port);
      if (isPicture(value) || isPicture(value?.source)) {
        return pixels(isPicture(value) ? { source: value } : value, port, this.model.normalisation[place]);
      }
      return Array.isArray(value) ? Float32Array.from(value) : value;
    });
    return [names, values];
  }

  async run(inputs, { buffers } = {}) {
    const onDevice = Object.values(inputs).some(isBuffer);
    if (buffers || onDevice) {
      return this.#runOnDevice(inputs, buffers);
    }
    const [names, values] = this.#arrange(inputs);
    const outputs = await this.#next((network) => network.run(names, values));
    return Object.fromEntries(this.outputs.map(({ name }, place) => [name, outputs[place]]));
  }

  async #runOnDevice(inputs, buffers) {
    const device = this.device;
    if (!device) {
      throw new Error("found a GPUBuffer, wanted typed arrays: the network runs on the CPU");
    }
    const [names, values] = this.#arrange(inputs);
    const own = buffers === undefined || buffers === true ? {} : buffers;
    const targets = this.outputs.map(({ name, dims }) => {
      const size = 4 * dims.reduce((a, b) => a * b, 1);
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      return own[name] ?? device.createBuffer({ label: name, size, usage });
    });
    await this.#next((network) => network.run_on_device(names, values, targets));
    const found = this.outputs.map(({ name }, place) => [name, targets[place]]);
    if (buffers) {
      return Object.fromEntries(found);
    }
    const read = await Promise.all(targets.map((target) => readBack(device, target)));
    targets.forEach((target) => target.destroy());
    return Object.fromEntries(found.map(([name], place) => [name, read[place]]));
  }

  async profile(inputs) {
    const [names, values] = this.#arrange(inputs);
    return JSON.parse(await this.#next((network) => network.profile(names, values)));
  }

  async tune({ budgetMs = 5000, stepMs = 20, onProgress = () => {}, signal } = {}) {
    const start = performance.now();
    const verdicts = [];
    await this.#next(async (network) => network.tune(budgetMs));
    let progress;
    do {
      progress = JSON.parse(await this.#next((network) => network.tune_step(stepMs, verdicts.length)));
      verdicts.push(...progress.verdicts);
      progress.elapsedMs = performance.now() - start;
      onProgress(progress);
      await nextTask();
    } while (!progress.finished && !signal?.aborted && progress.elapsedMs < budgetMs);
    const changed = await this.#next((network) => network.tuned());
    this.#describe();
    const kept = await this.#next((network) => writeRecord(this.#key, network.record()));
    return { changed, verdicts, totals: progress.totals, clock: progress.clock, kept, finished: progress.finished };
  }

  /** Makes everything anew after the device was lost, on another device if one is given. */
  async restore({ device } = {}) {
    await this.#queue;
    const [engine, network] = [this.#engine, this.#network];
    await this.#build({ ...this.#options, device: device ?? undefined });
    release(network, engine);
  }

  free() {
    this.#queue = this.#queue.then(() => {
      release(this.#network, this.#engine);
      this.#network = this.#engine = undefined;
      // The page's own device is the page's to destroy.
      if (!this.#options.device) {
        this.device?.destroy();
      }
    });
    return this.#queue;
  }
}

/** Kernels and constants as one: the kernels take nearly all of the time. */
const buildProgress = ({ compiled, kernels, uploaded, bytes }) => ({
  done: compiled + (bytes ? uploaded / bytes : 0),
  total: kernels + (bytes ? 1 : 0),
});

function release(...owned) {
  for (const one of owned) {
    try {
      one?.free();
    } catch {
      // A call that did not end with its device still has it.
    }
  }
}

const isBuffer = (value) => typeof GPUBuffer !== "undefined" && value instanceof GPUBuffer;

/** What the browser tells of a GPU: as a rule vendor and architecture. */
function nameOf({ adapterInfo = {} }) {
  const { vendor, architecture, device, description } = adapterInfo;
  return [vendor, architecture, device, description].filter(Boolean).join(" ");
}

async function readBack(device, source) {
  const usage = GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ;
  const staging = device.createBuffer({ size: source.size, usage });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(source, 0, staging, 0, source.size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const values = new Float32Array(staging.getMappedRange()).slice();
  staging.destroy();
  return values;
}
