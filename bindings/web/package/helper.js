// A thread of the CPU: a web worker that helps with runs of another thread, whose memory it shares.

import start, { help } from "./wasm/threads.js";

onmessage = async ({ data: { module, memory } }) => {
  await start({ module_or_path: module, memory });
  help();
};
