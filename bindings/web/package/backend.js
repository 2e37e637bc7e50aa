// Where a network runs, asked of the browser before any module is fetched.

import { obstacle, wanted } from "./threads.js";

const gpuOf = () => globalThis.navigator?.gpu;

function without() {
  if (typeof process !== "undefined" && process.versions?.node) {
    return "Node has no WebGPU";
  }
  return globalThis.isSecureContext === false
    ? "there is no WebGPU, because the page came neither by https: nor from localhost"
    : "this browser has no WebGPU";
}

/** On the CPU, for this reason: on several threads where there may be some. */
export function onCpu(reason, options) {
  const lack = obstacle(options);
  return lack === undefined
    ? { backend: "cpu", reason, threads: wanted(options) }
    : { backend: "cpu", reason: `${reason}; it computes on one thread, ${lack}`, threads: 1 };
}

/** `{ backend, reason, threads }` for these options. An error if WebGPU was asked for and there is none. */
export async function chosen(options) {
  const { backend = "auto", device } = options;
  if (device) {
    return { backend: "webgpu", reason: "the page's own device" };
  }
  if (backend === "cpu") {
    return onCpu("the CPU was asked for", options);
  }
  let refused;
  const adapter = await gpuOf()?.requestAdapter().catch((error) => ((refused = error.message), null));
  const lack = !gpuOf() ? without() : `the browser offers no GPU${refused ? `: ${refused}` : ""}`;
  if (backend === "webgpu") {
    if (!adapter) {
      throw new Error(`backend: found "webgpu", but ${lack}; "auto" runs on the CPU then`);
    }
    return { backend, reason: "WebGPU was asked for" };
  }
  if (!adapter) {
    return onCpu(lack, options);
  }
  if (adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter) {
    return onCpu("the browser's GPU is software, which is slower than the CPU", options);
  }
  return { backend: "webgpu", reason: "the browser's GPU" };
}
