// A session in a worker: nothing of it runs on the page's thread, also where the CPU computes.

import { bytesOf } from "./bytes.js";
import { addressOf } from "./files.js";
import { check } from "./options.js";
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

export class RemoteSession {
  #worker;
  #calls = new Map();
  #count = 0;
  #tellLost;

  static async load(model, { worker: _, device, onProgress, signal, wasm, ...options } = {}) {
    if (device) {
      throw new Error("option device: a GPUDevice cannot go to a worker; leave out one of device and worker");
    }
    signal?.throwIfAborted();
    const session = new RemoteSession();
    if (model instanceof Response) {
      model = await bytesOf(model, { signal });
    }
    const files = Object.entries(options.externalData ?? {}).map(async ([name, source]) => [name, await movable(source)]);
    const given = {
      model: await movable(model),
      options: { ...options, externalData: Object.fromEntries(await Promise.all(files)), wasm: wasm && addressOf(wasm).href },
    };
    session.#start();
    session.lost = new Promise((resolve) => (session.#tellLost = resolve));
    const stop = () => session.#end(signal.reason);
    signal?.addEventListener("abort", stop);
    try {
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
    this.#worker.onerror = (event) => this.#fail(new Error(`the worker failed: ${event.message ?? "it did not start"}`));
  }

  #fail(error) {
    for (const { reject } of this.#calls.values()) {
      reject(error);
    }
    this.#calls.clear();
  }

  #ask(call, given = {}, transfer = [], onProgress) {
    if (!this.#worker) {
      return Promise.reject(new Error("the session was freed"));
    }
    const id = ++this.#count;
    const answer = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject, onProgress }));
    this.#worker.postMessage({ id, call, ...given }, transfer);
    return answer;
  }

  /** Inputs that can go to the worker: what the page shows becomes a bitmap. */
  async #movable(inputs) {
    const transfer = [];
    const moved = await Promise.all(
      Object.entries(inputs).map(async ([name, value]) => {
        const source = isPicture(value) ? value : value?.source;
        if (!isPicture(source) || source instanceof ImageData) {
          return [name, value];
        }
        const own = typeof VideoFrame !== "undefined" && source instanceof VideoFrame;
        const picture = own ? source.clone() : await createImageBitmap(source);
        transfer.push(picture);
        return [name, isPicture(value) ? picture : { ...value, source: picture }];
      }),
    );
    return [Object.fromEntries(moved), transfer];
  }

  async run(inputs, options = {}) {
    check("run", options, ["buffers", "tensors"]);
    const { buffers, tensors } = options;
    if (buffers) {
      throw new Error("option buffers: a GPUBuffer cannot leave a worker");
    }
    const [moved, transfer] = await this.#movable(inputs);
    return this.#ran("run", { inputs: moved, tensors }, transfer);
  }

  async profile(inputs) {
    const [moved, transfer] = await this.#movable(inputs);
    return this.#ran("profile", { inputs: moved }, transfer);
  }

  /** What a run gives. It may have decided extents. */
  async #ran(call, given, transfer) {
    const { result, session } = await this.#ask(call, given, transfer);
    Object.assign(this, session);
    return result;
  }

  async tune({ onProgress, signal: _, ...options } = {}) {
    check("tune", options, ["budgetMs", "stepMs"]);
    const { result, session } = await this.#ask("tune", { options }, [], onProgress);
    Object.assign(this, session);
    return result;
  }

  async restore() {
    this.lost = new Promise((resolve) => (this.#tellLost = resolve));
    Object.assign(this, await this.#ask("restore"));
  }

  /** Destroys the worker's device, as a browser may at any time: for tests of what happens then. */
  destroyDevice() {
    return this.#ask("destroy");
  }

  async free() {
    this.#end(new Error("the session was freed"));
  }

  #end(reason) {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#fail(reason);
  }
}
