// Where a network runs, asked of the browser before any module is fetched.

const gpuOf = () => globalThis.navigator?.gpu;

function without() {
  if (typeof process !== "undefined" && process.versions?.node) {
    return "Node has no WebGPU";
  }
  return globalThis.isSecureContext === false
    ? "there is no WebGPU, because the page came neither by https: nor from localhost"
    : "this browser has no WebGPU";
}

/** `{ backend, reason }` for these options. An error if WebGPU was asked for and there is none. */
export async function chosen({ backend = "auto", device }) {
  if (device) {
    return { backend: "webgpu", reason: "the page's own device" };
  }
  if (backend === "cpu") {
    return { backend, reason: "the CPU was asked for" };
  }
  let refused;
  const adapter = await gpuOf()?.requestAdapter().catch((error) => ((refused = error.message), null));
  const lack = !gpuOf() ? without() : `the browser offers no GPU${refused ? ` (${refused})` : ""}`;
  if (backend === "webgpu") {
    if (!adapter) {
      throw new Error(`backend: found "webgpu", but ${lack}; "auto" runs on the CPU then`);
    }
    return { backend, reason: "WebGPU was asked for" };
  }
  if (!adapter) {
    return { backend: "cpu", reason: lack };
  }
  if (adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter) {
    return { backend: "cpu", reason: "the browser's GPU is software, which is slower than the CPU" };
  }
  return { backend: "webgpu", reason: "the browser's GPU" };
}
