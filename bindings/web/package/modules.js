// The WebAssembly files. A page loads the one that its model and backend need.

import { addressOf, checkAnswer, responseOf } from "./files.js";
import { isRelaxed } from "./threads.js";

const FILES = {
  /** TensorFlow Lite on WebGPU. */
  tflite: () => import("./wasm/tflite.js"),
  /** ONNX on WebGPU. */
  onnx: () => import("./wasm/onnx.js"),
  /** Both on WebGPU, models that need the CPU for a part of them, and the tuner. */
  full: () => import("./wasm/full.js"),
  /** Both on the CPU. */
  cpu: () => import("./wasm/cpu.js"),
  /** The same on several threads. */
  threads: () => import("./wasm/threads.js"),
};

/** Takes these modules' scripts where nothing can be imported later: in service workers. */
export function provide(scripts) {
  for (const [file, script] of Object.entries(scripts)) {
    FILES[file] = async () => script;
  }
}

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
  const module = await FILES[file]().catch((error) => {
    const inServiceWorker = typeof ServiceWorkerGlobalScope !== "undefined" && globalThis instanceof ServiceWorkerGlobalScope;
    throw inServiceWorker ? new Error('import "diptych-web/service-worker": a service worker imports everything when it starts') : error;
  });
  const at = (name) => new URL(name, folder(wasm));
  const isPlain = module.plain && !isRelaxed();
  const stem = isPlain ? `${file}_plain` : file;
  if (wasm !== undefined) {
    module.rest?.at(at(`${stem}_rest.wasm`));
  } else if (isPlain) {
    module.rest?.at(module.plainRest);
  }
  const main = wasm !== undefined ? at(`${stem}_bg.wasm`) : isPlain ? module.plain : module.main;
  const [response] = await Promise.all([responseOf(main), module.rest?.soon()]);
  await module.default({ module_or_path: checkAnswer("file", response) });
  return module;
}

function folder(wasm) {
  const { href } = addressOf(wasm);
  return href.endsWith("/") ? href : `${href}/`;
}

/** The file for a model of this format where it is to run; the smallest without a format. */
export const fileFor = ({ backend, threads }, format = "tflite") =>
  backend !== "cpu" ? format : threads > 1 ? "threads" : "cpu";

/**
 * What `act` makes of a module, or of the one that has everything, if the first lacks what the model needs: then the error
 * says so by its name. Any other error ends it.
 */
export async function firstOf(file, wasm, act) {
  try {
    return await act(await moduleOf(file, wasm));
  } catch (error) {
    if (error?.name !== "SmallModuleError") {
      throw error;
    }
    return act(await moduleOf("full", wasm));
  }
}
