// The second file of a module that the build divides in two: functions that few models need. It is loaded when one of them
// is first called, and at once, because WebAssembly does not wait.

export class Rest {
  #url;
  #bytes;
  #imports;
  #main;
  #exports;

  constructor(url) {
    this.#url = url;
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
    const response = await fetch(this.#url);
    if (!response.ok) {
      throw new Error(`${this.#url}: ${response.status} ${response.statusText}`);
    }
    this.#bytes = await response.arrayBuffer();
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
      const module = new WebAssembly.Module(this.#bytes ?? read(this.#url));
      this.#exports = new WebAssembly.Instance(module, { ...this.#imports, main: this.#main }).exports;
      this.#bytes = undefined;
    }
    return this.#exports;
  }
}

/** Whether a file can be read while a function waits for it. */
export const canRead = () => typeof XMLHttpRequest !== "undefined";

function read(url) {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  // A page may not ask for bytes here, but a text of this charset has them.
  request.overrideMimeType("text/plain; charset=x-user-defined");
  request.send();
  if (request.status !== 200) {
    throw new Error(`${url}: ${request.status} ${request.statusText}`);
  }
  return Uint8Array.from(request.responseText, (character) => character.charCodeAt(0) & 0xff);
}
