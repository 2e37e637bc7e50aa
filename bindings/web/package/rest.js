// The second file of a module that the build divides in two: functions that few models need. It is loaded when one of them
// is first called, and at once, because WebAssembly does not wait.

import { canReadAtOnce, checkAnswer, readAtOnce, responseOf } from "./files.js";

export class Rest {
  #url;
  #bytes;
  #imports;
  #main;
  #exports;
  /** What rejects the promises that wait for the module: a trap, or a second file that does not come, settles none of them. */
  #waiting = new Set();

  constructor(url) {
    this.#url = url;
  }

  /** A task that the module queues. If it throws, all calls that wait for the module fail with a `StoppedError`. */
  task(run) {
    return () => {
      try {
        run();
      } catch (error) {
        if (!this.#waiting.size) {
          throw error;
        }
        const stopped = new Error(`the network stopped: ${error.message}`, { cause: error });
        stopped.name = "StoppedError";
        this.#waiting.forEach((reject) => reject(stopped));
        this.#waiting.clear();
      }
    };
  }

  /** What a call of the module gives, or an error if the module stops before it ends. */
  settled(promise) {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      promise.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  /** Says where the file is, if not beside the other one. */
  at(url) {
    this.#url = url;
  }

  /** Fetches it already, unless it is there. */
  async ahead() {
    if (this.#bytes || this.#exports) {
      return;
    }
    this.#bytes = await checkAnswer("file", await responseOf(this.#url)).arrayBuffer();
  }

  /** Fetches it already where it could not be read when it is needed. */
  async soon() {
    if (!canReadAtOnce(this.#url)) {
      await this.ahead();
    }
  }

  /** Imports of the first file: its own, and each function of the second. */
  with(imports) {
    this.#imports = imports;
    const of = (name) => (...given) => this.#loaded()[name](...given);
    return { ...imports, rest: new Proxy({}, { get: (_, name) => of(name) }) };
  }

  /** Tells it whose memory it shares. */
  of(instance) {
    this.#main = instance.exports;
    return instance;
  }

  #loaded() {
    if (!this.#exports) {
      const module = new WebAssembly.Module(this.#bytes ?? readAtOnce(this.#url));
      this.#exports = new WebAssembly.Instance(module, { ...this.#imports, main: this.#main }).exports;
      this.#bytes = undefined;
    }
    return this.#exports;
  }
}
