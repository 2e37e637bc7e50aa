// A session on this thread: the page's, or a worker's.

import { chosen, onCpu } from "./backend.js";
import { readable, readBack, target } from "./buffers.js";
import { bytesOf, formatOf } from "./bytes.js";
import { externalOf } from "./external.js";
import { arranged, isBuffer } from "./inputs.js";
import { nextTask, stopOf } from "./tasks.js";
import { fileFor, firstOf, moduleOf } from "./modules.js";
import { check, checkInputs, checkLoad, near } from "./options.js";
import { isPicture } from "./pictures.js";
import { readRecord, writeRecord } from "./store.js";
import { provide } from "./threads.js";

/** How long a call may go on after its device was lost. */
const GIVE_UP_MS = 500;
/** How much later than a call that it makes fail a loss is told. */
const TELL_MS = 50;

/** What a call of a module gives, or an error if the module stops before it ends. */
const settled = ({ rest }, promise) => (rest ? rest.settled(promise) : promise);

/** An engine of a module on the backend that was chosen. */
async function engineOf(module, { device }, { backend, threads }) {
  if (threads > 1) {
    provide(module, threads);
  }
  return settled(module, device ? module.Engine.adopt(device) : module.Engine.open(backend));
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
    const [info, device] = [infoOf(engine, way), engine.device()];
    engine.free();
    if (!options.device) {
      device?.destroy();
    }
    return info;
  });
}

/** What a model is called in errors: its address, if it has one. */
const nameOfModel = (model) =>
  typeof model === "string" || model instanceof URL ? `model ${model}` : model?.name ? `model ${model.name}` : "model";

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
  /** The error of a module that stopped in the midst of a call: the network cannot be used any more. */
  #stopped;
  /** Textures of pictures, and buffers of outputs with those that they are read through: nothing uses them. */
  #idle = { textures: [], outputs: [] };
  #queue = Promise.resolve();
  /** Ends the call that is under way with an error. */
  #giveUp = () => {};
  #key;

  /** `address` is the model's where its bytes are given, for the files beside it. */
  static async load(model, options = {}, address = model) {
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
    session.#files = format === "onnx" ? await externalOf(address, bytes, given, { signal, onProgress: download }) : [];
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
    let network;
    try {
      const made = module.Network.build(engine, this.#bytes, this.#files, this.#settings(), stored.text, told, stopped);
      network = await settled(module, made.finally(() => end()));
      signal?.throwIfAborted();
    } catch (error) {
      // A module that stopped would stop again in the task that waits for this.
      end(error?.name !== "StoppedError");
      release(network, engine);
      if (!options.device) {
        device?.destroy();
      }
      throw error;
    }
    this.#module = module;
    this.#engine = engine;
    this.#network = network;
    this.#key = stored.key;
    this.#lostReason = this.#stopped = undefined;
    this.#discard();
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
      if (!this.#network || this.device !== device) {
        // It was freed, or made anew on another device: this one was not taken away.
        return new Promise(() => {});
      }
      this.#lostReason = reason;
      // What waits for a lost device is told soon, as a rule.
      setTimeout(() => this.device === device && this.#giveUp(lostError(reason)), GIVE_UP_MS);
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
        return settled(this.#module, act(this.#network));
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
      if (this.#stopped) {
        throw this.#stopped;
      }
      try {
        return await new Promise((resolve, reject) => {
          this.#giveUp = reject;
          settled(this.#module, act(this.#network)).then(resolve, reject);
        });
      } catch (error) {
        if (error?.name === "StoppedError") {
          this.#stopped = error;
        }
        // The loss is told a little later than the call that it makes fail.
        await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, TELL_MS))]);
        throw this.#lostReason === undefined ? error : lostError(this.#lostReason);
      }
    });
    this.#queue = done.catch(() => {});
    return done;
  }

  async run(inputs, options = {}) {
    check("run", options, ["buffers", "tensors"]);
    checkInputs("run", inputs);
    const { buffers, tensors } = options;
    const onDevice = (value) => isBuffer(value) || (this.#shows && (isPicture(value) || isPicture(value?.source)));
    if (buffers || Object.values(inputs).some(onDevice)) {
      // As they are now: another run may decide other extents meanwhile.
      const ports = this.outputs;
      const outputs = await this.#runOnDevice(inputs, buffers, ports);
      const tensor = ({ name, dims }) => [name, { data: outputs[name], dims }];
      return tensors && !buffers ? Object.fromEntries(ports.map(tensor)) : outputs;
    }
    const given = arranged(inputs, this);
    const [outputs, ports] = await this.#planned((network) => network.run(...given));
    const tensor = (data, dims) => (tensors ? { data, dims } : data);
    return Object.fromEntries(ports.map(({ name, dims }, place) => [name, tensor(outputs[place], dims)]));
  }

  async #runOnDevice(inputs, buffers, ports) {
    const device = this.device;
    if (!device) {
      throw new Error("found a GPUBuffer, wanted typed arrays: the network runs on the CPU");
    }
    const own = buffers === undefined || buffers === true ? {} : buffers;
    const known = ports.map(({ name }) => name);
    const unknown = Object.keys(own).find((name) => !known.includes(name));
    if (unknown !== undefined) {
      throw new Error(`option buffers: output "${unknown}" is unknown, the network has ${known.join(", ")}${near(unknown, known)}`);
    }
    const idle = this.#idle;
    const textures = [];
    const made = [];
    try {
      const [names, values, extents] = arranged(inputs, this, { idle: idle.textures, used: textures });
      const kept = buffers ? undefined : (idle.outputs.pop() ?? ports.map((port) => readable(device, port)));
      made.push(...(kept ?? []).flatMap(({ source, staging }) => [source, staging]));
      const create = (port) => {
        made.push(target(device, port));
        return made.at(-1);
      };
      const targets = ports.map((port, place) => kept?.[place].source ?? own[port.name] ?? create(port));
      const read = await this.#next(async (network) => {
        await network.run_on_device(names, values, extents, targets);
        // What is done with them from now on is done after this run.
        idle.textures.push(...textures.splice(0));
        return kept && readBack(device, kept);
      });
      if (kept) {
        idle.outputs.push(kept);
      }
      return Object.fromEntries(known.map((name, place) => [name, (read ?? targets)[place]]));
    } catch (error) {
      idle.textures.push(...textures.splice(0));
      made.forEach((buffer) => buffer.destroy());
      throw error;
    }
  }

  /** Destroys what pictures and outputs left for other runs. */
  #discard() {
    this.#idle.textures.forEach((texture) => texture.destroy());
    this.#idle.outputs.flat().forEach(({ source, staging }) => (source.destroy(), staging.destroy()));
    this.#idle = { textures: [], outputs: [] };
  }

  async profile(inputs) {
    checkInputs("profile", inputs);
    const given = arranged(inputs, this);
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
    const engine = own ? this.#engine : await settled(module, module.Engine.adopt(this.device));
    let tuning, progress, record;
    try {
      tuning = await this.#next(async (network) =>
        module.Tuning.begin(engine, this.#bytes, this.#files, this.#settings(this.#dimensions()), network.record(), budgetMs),
      );
      do {
        progress = JSON.parse(await this.#next(() => settled(module, tuning.step(stepMs, verdicts.length))));
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
  restore(options = {}) {
    const done = this.#queue.then(async () => {
      check("restore", options, ["device"]);
      if (!this.#network) {
        throw new Error("the session was freed");
      }
      const [engine, network, old] = [this.#engine, this.#network, this.#options.device ? undefined : this.device];
      const now = { ...this.#options, device: options.device };
      checkLoad(now);
      await this.#build(now);
      this.#options = now;
      release(network, engine);
      old?.destroy();
    });
    this.#queue = done.catch(() => {});
    return done;
  }

  free() {
    this.#queue = this.#queue.then(() => {
      release(this.#network, this.#engine);
      this.#network = this.#engine = undefined;
      this.#discard();
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

/** What the browser tells of a GPU: as a rule vendor and architecture. */
function nameOf({ adapterInfo = {} }) {
  const { vendor, architecture, device, description } = adapterInfo;
  return [vendor, architecture, device, description].filter(Boolean).join(" ");
}
