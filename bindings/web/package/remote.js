// A session in a worker: nothing of it runs on the page's thread, also where the CPU computes.

import { bytesOf } from "./bytes.js";
import { addressOf } from "./files.js";
import { check, checkInputs } from "./options.js";
import { isPicture } from "./pictures.js";
import { begun } from "./workers.js";

/** A worker with this package's script. */
function started() {
  if (typeof Worker === "undefined") {
    throw new Error("option worker: there are no workers here; leave it out");
  }
  return begun(() => new Worker(new URL("./worker.js", import.meta.url), { type: "module" }), "./worker.js");
}

/** A source of bytes as a worker can have it: addresses in full, because a worker's are relative to its own. */
async function movable(source) {
  if (typeof source === "string" || source instanceof URL) {
    return addressOf(source).href;
  }
  return source instanceof Response ? source.blob() : source;
}

/**
 * A value that goes to a worker as it is now: a part of a larger buffer by itself, because all of its buffer would go with it, and
 * a copy of ImageData, which the page may change while other pictures are made ready.
 */
function copied(value) {
  if (value instanceof ImageData) {
    return structuredClone(value);
  }
  if (ArrayBuffer.isView(value) && value.byteLength < value.buffer.byteLength) {
    return value.slice?.() ?? value;
  }
  if (value?.source instanceof ImageData) {
    return { ...value, source: copied(value.source) };
  }
  return value?.dims ? { ...value, data: copied(value.data) } : value;
}

export class RemoteSession {
  #worker;
  #calls = new Map();
  #count = 0;
  #tellLost;
  /** Why there is no worker any more. */
  #ended;

  static async load(model, { worker: _, device, onProgress, signal, wasm, ...options } = {}) {
    if (device) {
      throw new Error("option device: a GPUDevice cannot go to a worker; leave out one of device and worker");
    }
    signal?.throwIfAborted();
    const session = new RemoteSession();
    // A Response does not go to a worker, only its bytes do; files beside it are found by its address.
    const address = model instanceof Response ? model.url : undefined;
    if (model instanceof Response) {
      model = await bytesOf(model, { signal });
    }
    const files = Object.entries(options.externalData ?? {}).map(async ([name, source]) => [name, await movable(source)]);
    const given = {
      model: await movable(model),
      address,
      options: { ...options, externalData: Object.fromEntries(await Promise.all(files)), wasm: wasm && addressOf(wasm).href },
    };
    session.#start();
    session.lost = new Promise((resolve) => (session.#tellLost = resolve));
    const stop = () => session.#end(signal.reason);
    signal?.addEventListener("abort", stop);
    try {
      signal?.throwIfAborted();
      Object.assign(session, await session.#ask("load", given, [], onProgress));
    } catch (error) {
      session.free();
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
    return session;
  }

  #start() {
    this.#worker = started();
    this.#worker.onmessage = ({ data: { id, result, error, progress, lost } }) => {
      if (lost !== undefined) {
        return this.#tellLost(lost);
      }
      const call = this.#calls.get(id);
      if (progress) {
        return call?.onProgress?.(progress);
      }
      this.#calls.delete(id);
      if (error) {
        call?.reject(Object.assign(new Error(error.message), { name: error.name }));
      } else {
        call?.resolve(result);
      }
    };
    this.#worker.onerror = (event) => this.#end(new Error(`the worker failed: ${event.message ?? "it did not start"}`));
  }

  #ask(call, given = {}, transfer = [], onProgress) {
    if (!this.#worker) {
      return Promise.reject(this.#ended);
    }
    const id = ++this.#count;
    const answer = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject, onProgress }));
    try {
      this.#worker.postMessage({ id, call, ...given }, transfer);
    } catch (error) {
      this.#calls.delete(id);
      transfer.forEach((picture) => picture.close());
      return Promise.reject(error);
    }
    return answer;
  }

  /** Inputs that can go to the worker: what the page shows becomes a bitmap. */
  async #movable(inputs) {
    const transfer = [];
    const moved = await Promise.all(
      Object.entries(inputs).map(async ([name, value]) => {
        const source = isPicture(value) ? value : value?.source;
        if (!isPicture(source) || source instanceof ImageData) {
          return [name, copied(value)];
        }
        const frame = typeof VideoFrame !== "undefined" && source instanceof VideoFrame;
        const picture = frame ? source.clone() : await createImageBitmap(source);
        transfer.push(picture);
        return [name, isPicture(value) ? picture : { ...value, source: picture }];
      }),
    );
    return [Object.fromEntries(moved), transfer];
  }

  async run(inputs, options = {}) {
    check("run", options, ["buffers", "tensors"]);
    checkInputs("run", inputs);
    const { buffers, tensors } = options;
    if (buffers) {
      throw new Error("option buffers: a GPUBuffer cannot leave a worker");
    }
    const [moved, transfer] = await this.#movable(inputs);
    return this.#ran("run", { inputs: moved, tensors }, transfer);
  }

  async profile(inputs) {
    checkInputs("profile", inputs);
    const [moved, transfer] = await this.#movable(inputs);
    return this.#ran("profile", { inputs: moved }, transfer);
  }

  /** What a run gives. It may have decided extents. */
  async #ran(call, given, transfer) {
    const { result, session } = await this.#ask(call, given, transfer);
    Object.assign(this, session);
    return result;
  }

  async tune(options = {}) {
    check("tune", options, ["budgetMs", "stepMs", "onProgress", "signal"]);
    const { onProgress, signal, ...given } = options;
    const stop = () => this.#ask("stop").catch(() => {});
    const tuned = this.#ask("tune", { options: given }, [], onProgress);
    if (signal?.aborted) {
      stop();
    }
    signal?.addEventListener("abort", stop);
    try {
      const { result, session } = await tuned;
      Object.assign(this, session);
      return result;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  async restore(options = {}) {
    check("restore", options, ["device"]);
    if (options.device) {
      throw new Error("option device: a GPUDevice cannot go to a worker");
    }
    Object.assign(this, await this.#ask("restore"));
    this.lost = new Promise((resolve) => (this.#tellLost = resolve));
  }

  /** Destroys the worker's device, as a browser may at any time: for tests of what happens then. */
  destroyDevice() {
    return this.#ask("destroy");
  }

  async free() {
    this.#end(new Error("the session was freed"));
  }

  /** Ends the worker, and all calls with this error: those of now, and those to come. */
  #end(reason) {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#ended = reason;
    for (const { reject } of this.#calls.values()) {
      reject(reason);
    }
    this.#calls.clear();
  }
}
