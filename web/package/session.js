// A session on this thread: the page's, or a worker's.

import { chosen, onCpu } from "./backend.js";
import { readable, readBack, target, typed } from "./buffers.js";
import { bytesOf, formatOf } from "./bytes.js";
import { externalOf } from "./external.js";
import { fileFor, firstOf, moduleOf } from "./modules.js";
import { check, near } from "./options.js";
import { isPicture, pictureDims, pixels, showable, shown } from "./pictures.js";
import { readRecord, writeRecord } from "./store.js";
import { provide } from "./threads.js";

/** How long a call may go on after its device was lost. */
const GIVE_UP_MS = 500;
/** How much later than a call that it makes fail a loss is told. */
const TELL_MS = 50;

/** An engine of a module on the backend that was chosen. */
async function engineOf(module, { device }, { backend, threads }) {
  if (threads > 1) {
    provide(module, threads);
  }
  return device ? module.Engine.adopt(device) : module.Engine.open(backend);
}

/** What the engine says, and why it is this one. */
function infoOf(engine, { reason, threads }) {
  const info = { ...JSON.parse(engine.info()), reason, threads };
  if (info.device) {
    info.device.name = nameOf(engine.device()) || info.device.name;
  }
  return info;
}

/**
 * What `act` makes of a module for this format and of an engine on the backend that the options choose. Where the browser's GPU
 * gives no device, the options leave it open, and so it is the CPU.
 */
async function opened(options, format, act) {
  const way = await chosen(options);
  const mayPass = !options.device && (options.backend ?? "auto") === "auto" && way.backend === "webgpu";
  let refused;
  try {
    return await firstOf(fileFor(way, format), options.wasm, async (module) => {
      const engine = await engineOf(module, options, way).catch((error) => {
        refused = error;
        throw error;
      });
      return act(module, engine, way);
    });
  } catch (error) {
    if (!(mayPass && error === refused)) {
      throw error;
    }
    const cpu = onCpu(`the browser's GPU gives no device (${error.message})`, options);
    const module = await moduleOf(fileFor(cpu), options.wasm);
    return act(module, await engineOf(module, options, cpu), cpu);
  }
}

/** What a session would run on. */
export function probe(options) {
  return opened(options, undefined, async (_, engine, way) => {
    const info = infoOf(engine, way);
    engine.free();
    return info;
  });
}

/** What a model is called in errors: its address, if it has one. */
const nameOfModel = (model) =>
  typeof model === "string" || model instanceof URL ? `model ${model}` : model?.name ? `model ${model.name}` : "model";

/** A promise that fails when a signal says so, and a function that ends it. */
function stopOf(signal) {
  let stop, end;
  const stopped = new Promise((resolve, reject) => {
    end = resolve;
    stop = () => reject(signal.reason);
    signal?.addEventListener("abort", stop);
  });
  stopped.catch(() => {});
  return [stopped, () => (signal?.removeEventListener("abort", stop), end())];
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
  #module;
  #engine;
  #network;
  #bytes;
  #format;
  /** Files that it keeps weights in: names and bytes. */
  #files = [];
  #options;
  #lostReason;
  /** Textures of pictures, and buffers of outputs with those that they are read through: nothing uses them. */
  #idle = { textures: [], outputs: [] };
  #queue = Promise.resolve();
  /** Ends the call that is under way with an error. */
  #giveUp = () => {};
  #key;

  static async load(model, options = {}) {
    const { onProgress = () => {}, signal } = options;
    signal?.throwIfAborted();
    const download = (done, total) => onProgress({ stage: "download", done, total });
    // The module is on its way while the rest of the model is.
    const way = chosen(options);
    way.catch(() => {});
    const begun = (first) => way.then((way) => moduleOf(fileFor(way, formatOf(first)), options.wasm)).catch(() => {});
    const bytes = await bytesOf(model, { signal, onProgress: download, onBegun: begun });
    await way;
    const format = formatOf(bytes, nameOfModel(model));
    const given = options.externalData;
    if (format !== "onnx" && given && Object.keys(given).length) {
      throw new Error("externalData: found a TensorFlow Lite file, which has its weights in itself");
    }
    const session = new LocalSession();
    session.#files = format === "onnx" ? await externalOf(model, bytes, given, { signal, onProgress: download }) : [];
    session.#bytes = bytes;
    session.#format = format;
    session.#options = options;
    await session.#build(options, signal);
    return session;
  }

  #build(options, signal) {
    signal?.throwIfAborted();
    return opened(options, this.#format, (module, engine, way) => this.#buildBy(module, engine, way, options, signal));
  }

  async #buildBy(module, engine, way, options, signal) {
    const onProgress = options.onProgress ?? (() => {});
    const info = infoOf(engine, way);
    const device = engine.device();
    const keep = options.record !== false && info.backend === "webgpu";
    const stored = keep ? await readRecord(info.device.name, this.#bytes) : { key: undefined, text: "" };
    const told = (text) => onProgress({ stage: "build", ...buildProgress(JSON.parse(text)) });
    const [stopped, end] = stopOf(signal);
    const made = module.Network.build(engine, this.#bytes, this.#files, this.#settings(), stored.text, told, stopped);
    const network = await made.finally(end).catch((error) => {
      release(engine);
      throw error;
    });
    this.#module = module;
    this.#engine = engine;
    this.#network = network;
    this.#key = stored.key;
    this.#lostReason = undefined;
    this.#idle = { textures: [], outputs: [] };
    /** The backend, the device, and why it is this one. */
    this.info = info;
    /** The GPUDevice it runs on; undefined on the CPU. */
    this.device = device;
    this.outputs = undefined;
    this.#describe();
    /** Whether each run decides extents: what is described is then as in the last run. */
    this.open = !this.steps.length || [...this.inputs, ...this.outputs].some(({ open }) => open.length);
    this.optionalInputs = JSON.parse(network.optional());
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

  #settings(dimensions = this.#options.dimensions) {
    const { precision, dequantize, seed } = this.#options;
    // Numbers are read by the module's second file.
    const threads = this.#options.threads > 1 ? this.#options.threads : undefined;
    return JSON.stringify({ precision, dimensions, dequantize: Boolean(dequantize), seed: String(BigInt(seed ?? 0)), threads });
  }

  /** All extents that the model leaves open, by name: those of the options, and those of the last run. */
  #dimensions() {
    const ran = this.steps.length ? this.inputs : [];
    const extents = ran.flatMap(({ dims, open }) => open.map(({ axis, name }) => [name, dims[axis]]));
    return { ...this.#options.dimensions, ...Object.fromEntries(extents) };
  }

  /** Whether pictures reach the network by textures: a network that needs the CPU reads numbers. */
  get #shows() {
    return this.device && !this.open && !this.steps.some(({ kernel }) => kernel.startsWith("cpu_"));
  }

  #describe() {
    const { inputs, outputs, steps, memory, model } = JSON.parse(this.#network.describe());
    // After a run the outputs have its extents, and nothing says any more which of them it decided.
    outputs.forEach((port, place) => (port.open = this.outputs?.[place].open ?? port.open));
    Object.assign(this, { inputs, outputs, steps, memory, model });
  }

  /**
   * What `act` makes of the network. Extents that are new may need what its module lacks: then another one is made of the
   * module that has everything, on the same device.
   */
  #planned(act) {
    return this.#next(async (network) => {
      const done = await act(network).catch(async (error) => {
        if (error?.name !== "SmallModuleError") {
          throw error;
        }
        const engine = this.#engine;
        const options = { ...this.#options, device: this.device };
        const module = await moduleOf("full", options.wasm);
        await this.#buildBy(module, await engineOf(module, options, {}), { reason: this.info.reason }, options);
        release(network, engine);
        return act(this.#network);
      });
      if (this.open) {
        this.#describe();
      }
      // As they are now: another run may decide others.
      return [done, this.outputs];
    });
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

  /**
   * Names and values of inputs, and the extents that are known of them: pictures as numbers, or as textures on the device;
   * buffers as they are.
   */
  #arrange(inputs, onDevice = false) {
    const names = Object.keys(inputs);
    const extents = names.map(() => undefined);
    const values = names.map((name, index) => {
      const value = inputs[name];
      const port = [...this.inputs, ...this.optionalInputs].find((input) => input.name === name);
      if (!port) {
        const known = this.inputs.map((input) => input.name).join(", ");
        throw new Error(`input "${name}" is unknown, the network has ${known}${near(name, this.inputs.map(({ name }) => name))}`);
      }
      const place = this.inputs.indexOf(port);
      if (isPicture(value) || isPicture(value?.source)) {
        const picture = isPicture(value) ? { source: value } : value;
        const normalisation = this.model.normalisation[place];
        if (onDevice && showable(port)) {
          return shown(picture, port, normalisation, this.device, this.#idle.textures);
        }
        const dims = pictureDims(port, picture.source);
        extents[index] = dims;
        return pixels(picture, { ...port, dims }, normalisation);
      }
      const data = isTensor(value) ? value.data : value;
      extents[index] = data === value ? undefined : [...value.dims];
      return Array.isArray(data) ? typed(data, port) : data;
    });
    return [names, values, extents];
  }

  async run(inputs, options = {}) {
    check("run", options, ["buffers", "tensors"]);
    const { buffers, tensors } = options;
    const onDevice = (value) => isBuffer(value) || (this.#shows && (isPicture(value) || isPicture(value?.source)));
    if (buffers || Object.values(inputs).some(onDevice)) {
      const outputs = await this.#runOnDevice(inputs, buffers);
      const tensor = ({ name, dims }) => [name, { data: outputs[name], dims }];
      return tensors && !buffers ? Object.fromEntries(this.outputs.map(tensor)) : outputs;
    }
    const given = this.#arrange(inputs);
    const [outputs, ports] = await this.#planned((network) => network.run(...given));
    const tensor = (data, dims) => (tensors ? { data, dims } : data);
    return Object.fromEntries(ports.map(({ name, dims }, place) => [name, tensor(outputs[place], dims)]));
  }

  async #runOnDevice(inputs, buffers) {
    const device = this.device;
    if (!device) {
      throw new Error("found a GPUBuffer, wanted typed arrays: the network runs on the CPU");
    }
    const [names, values, extents] = this.#arrange(inputs, true);
    const own = buffers === undefined || buffers === true ? {} : buffers;
    const idle = this.#idle;
    const kept = buffers ? undefined : (idle.outputs.pop() ?? this.outputs.map((port) => readable(device, port)));
    const targets = this.outputs.map((port, place) => kept?.[place].source ?? own[port.name] ?? target(device, port));
    const read = await this.#next(async (network) => {
      await network.run_on_device(names, values, extents, targets);
      // What is done with them from now on is done after this run.
      idle.textures.push(...values.map(({ texture }) => texture).filter(Boolean));
      return kept && readBack(device, kept);
    });
    if (kept) {
      idle.outputs.push(kept);
    }
    return Object.fromEntries(this.outputs.map(({ name }, place) => [name, (read ?? targets)[place]]));
  }

  async profile(inputs) {
    const given = this.#arrange(inputs);
    const [profile] = await this.#planned((network) => network.profile(...given));
    return JSON.parse(profile);
  }

  async tune(options = {}) {
    check("tune", options, ["budgetMs", "stepMs", "onProgress", "signal"]);
    if (!this.device) {
      throw new Error("tune: the network runs on the CPU, which has one kernel for each step; wanted WebGPU");
    }
    const { budgetMs = 5000, stepMs = 20, onProgress = () => {}, signal } = options;
    const module = await moduleOf("full", this.#options.wasm);
    // The tuner lies in the module's second file.
    await module.rest?.ahead();
    const start = performance.now();
    const verdicts = [];
    // The tuner may be another module's than the network, on the same device.
    const own = module === this.#module;
    const engine = own ? this.#engine : await module.Engine.adopt(this.device);
    let tuning, progress, record;
    try {
      tuning = await this.#next(async (network) =>
        module.Tuning.begin(engine, this.#bytes, this.#files, this.#settings(this.#dimensions()), network.record(), budgetMs),
      );
      do {
        progress = JSON.parse(await this.#next(() => tuning.step(stepMs, verdicts.length)));
        verdicts.push(...progress.verdicts);
        progress.elapsedMs = performance.now() - start;
        onProgress(progress);
        await nextTask();
      } while (!progress.finished && !signal?.aborted && progress.elapsedMs < budgetMs);
      record = await this.#next(async () => tuning.end());
    } finally {
      release(tuning, own ? undefined : engine);
    }
    const changed = await this.#next((network) => network.refresh(record));
    this.#describe();
    const kept = await this.#next(() => writeRecord(this.#key, record));
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

/** Whether it is numbers with their extents. */
const isTensor = (value) => Array.isArray(value?.dims) && value.data !== undefined;

const isBuffer = (value) => typeof GPUBuffer !== "undefined" && value instanceof GPUBuffer;

/** What the browser tells of a GPU: as a rule vendor and architecture. */
function nameOf({ adapterInfo = {} }) {
  const { vendor, architecture, device, description } = adapterInfo;
  return [vendor, architecture, device, description].filter(Boolean).join(" ");
}
