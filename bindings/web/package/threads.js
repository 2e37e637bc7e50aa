// Threads of the CPU: web workers that share a module's memory.

import { begun } from "./workers.js";

/** The most threads that a network has without being told. */
const ENOUGH = 8;

/** Relaxed SIMD: a function with an instruction of it. */
const RELAXED = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15, 253, 128, 2, 11];

/** Whether the browser multiplies and adds at once, where the machine can. */
export const isRelaxed = () => WebAssembly.validate(new Uint8Array(RELAXED));

/** Why a network on the CPU has one thread here; undefined where it may have more. */
export function obstacle({ threads } = {}) {
  if (threads === 1) {
    return "as asked for";
  }
  if (typeof Worker === "undefined") {
    return "because there are no web workers here";
  }
  if (!globalThis.crossOriginIsolated) {
    return "because the page is not cross-origin isolated: its server must send Cross-Origin-Opener-Policy: same-origin and " +
      "Cross-Origin-Embedder-Policy: require-corp";
  }
  if (!isRelaxed()) {
    return "because the browser has no relaxed SIMD";
  }
  return wanted({ threads }) > 1 ? undefined : "because the machine has one processor";
}

/** How many threads a network has. */
export const wanted = ({ threads } = {}) => threads ?? Math.min(navigator.hardwareConcurrency ?? 1, ENOUGH);

/** Helpers that were begun. */
let helpers = 0;

/** Sees to it that a module has so many threads, its caller's included. Nobody waits for them: they help when they are there. */
export function provide(module, threads) {
  const memory = module.shared_memory();
  for (; helpers < threads - 1; helpers += 1) {
    const helper = begun(() => new Worker(new URL("./helper.js", import.meta.url), { type: "module" }), "./helper.js");
    helper.onerror = ({ message }) => console.warn(`diptych: a thread of the CPU did not start: ${message ?? "no reason was given"}`);
    helper.postMessage({ module: module.compiled_module(), memory });
  }
  module.set_threads(helpers + 1);
}
