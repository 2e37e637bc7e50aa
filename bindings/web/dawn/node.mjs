// Dawn in Node as a browser's WebGPU: what wgpu and wasm-bindgen look for in the global object.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { create, globals } from "webgpu";

/** Devices that were opened and not ended. */
const devices = new Set();

/** Ends them: Dawn keeps what belongs to a device until then. */
export function closeDevices() {
  devices.forEach((device) => device.destroy());
  devices.clear();
  globalThis.gc?.();
}

/** Gives this process a `navigator.gpu`: Dawn's, on Vulkan, with the toggles of DIPTYCH_DAWN_FEATURES, comma-separated. */
export function provideWebGpu(backend = "vulkan") {
  Object.assign(globalThis, globals);
  const toggles = process.env.DIPTYCH_DAWN_FEATURES;
  const gpu = create([`backend=${backend}`, ...(toggles ? [`enable-dawn-features=${toggles}`] : [])]);
  const { requestDevice } = globals.GPUAdapter.prototype;
  globals.GPUAdapter.prototype.requestDevice = async function (...given) {
    const device = await requestDevice.apply(this, given);
    devices.add(device);
    return device;
  };
  // wgpu takes the navigator of a window.
  globalThis.Window ??= class Window {};
  Object.defineProperty(globalThis, "navigator", { value: { gpu }, configurable: true });
  return gpu;
}

/** Where Chromium has SwiftShader, which runs where no driver does. */
export function swiftShader() {
  const found = (process.env.PATH ?? "").split(delimiter).map((path) => join(path, "chromium")).find(existsSync);
  const folders = [found && dirname(realpathSync(found)), "/usr/lib/chromium", "/usr/lib/chromium-browser"];
  return folders.filter(Boolean).map((path) => join(path, "vk_swiftshader_icd.json")).find(existsSync);
}

/** A module that wasm-bindgen made for the web, compiled. */
export async function load(folder, name) {
  const module = await import(pathToFileURL(join(folder, `${name}.js`)));
  module.initSync({ module: readFileSync(join(folder, `${name}_bg.wasm`)) });
  return module;
}
