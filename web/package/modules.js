// The WebAssembly files. A page loads the one that its model and backend need.

import { canRead } from "./rest.js";

const FILES = {
  /** TensorFlow Lite on WebGPU. */
  tflite: () => import("./wasm/tflite.js"),
  /** ONNX on WebGPU. */
  onnx: () => import("./wasm/onnx.js"),
  /** Both, the CPU, models that need it for a part of them, and the tuner. */
  full: () => import("./wasm/full.js"),
};

const loaded = {};

/** Compiles a file once. `wasm` says in which folder it is, if not where the package has it. */
export function moduleOf(file, wasm) {
  loaded[file] ??= start(file, wasm).catch((error) => {
    delete loaded[file];
    throw error;
  });
  return loaded[file];
}

async function start(file, wasm) {
  const module = await FILES[file]();
  const at = (name) => new URL(name, folder(wasm));
  if (module.rest && wasm !== undefined) {
    module.rest.at(at(`${file}_rest.wasm`));
  }
  if (module.rest && !canRead()) {
    await module.rest.ahead();
  }
  await module.default(wasm === undefined ? undefined : { module_or_path: at(`${file}_bg.wasm`) });
  return module;
}

function folder(wasm) {
  const { href } = new URL(wasm, globalThis.document?.baseURI);
  return href.endsWith("/") ? href : `${href}/`;
}

/** The files to try, one after the other, for a model that begins with these bytes; the smallest without any. */
export function filesFor({ backend = "auto", device }, bytes) {
  if (backend === "cpu" || !(device || globalThis.navigator?.gpu)) {
    return ["full"];
  }
  const small = bytes === undefined ? "tflite" : formatOf(bytes);
  return small ? [small, "full"] : ["full"];
}

/** TensorFlow Lite has its name in the file, ONNX begins with the number of its version as a rule. */
function formatOf(bytes) {
  const name = String.fromCharCode(...bytes.subarray(4, 8));
  return name === "TFL3" ? "tflite" : bytes[0] === 8 ? "onnx" : undefined;
}

/** What `act` makes of the first module that can; the last one's error is the one that counts. */
export async function firstOf(files, wasm, act) {
  for (const file of files) {
    try {
      return await act(await moduleOf(file, wasm));
    } catch (error) {
      if (error?.name !== "SmallModuleError" || file === files.at(-1)) {
        throw error;
      }
    }
  }
}
