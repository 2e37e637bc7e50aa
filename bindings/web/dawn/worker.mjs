// One job in a process of its own: `main.mjs` sends it, and is sent what came of it.

import { closeDevices, load, provideWebGpu } from "./node.mjs";

const JOBS = {
  /** The adapter that there is, or null. */
  adapter: async () => {
    const adapter = await globalThis.navigator.gpu.requestAdapter();
    return adapter && { name: adapter.info.description || adapter.info.device, halves: adapter.features.has("shader-f16") };
  },
  ops: async ({ folder }) => (await load(folder, "conformance")).ops(),
  rows: async ({ folder, asked, op }) => {
    const module = await load(folder, "conformance");
    module.ask(asked);
    return JSON.parse(await module.rows(op, closeDevices));
  },
  edges: async ({ folder, asked }) => {
    const module = await load(folder, "conformance");
    module.ask(asked);
    return { failures: await module.edges(closeDevices) };
  },
  planted: async ({ folder, asked }) => {
    const module = await load(folder, "conformance");
    module.ask(asked);
    return JSON.parse(await module.planted(closeDevices));
  },
  "planted graph": async ({ folder }) => {
    const wrong = await (await load(folder, "graphs")).planted(closeDevices);
    return { failures: wrong === undefined ? [] : [`the planted fault: ${wrong}`] };
  },
  graphs: async ({ folder, first, count, seconds }) => {
    const module = await load(folder, "graphs");
    const tell = (graph) => process.send({ graph });
    return JSON.parse(await module.graphs(first, count, seconds, closeDevices, tell));
  },
};

process.once("message", async (job) => {
  let answer;
  try {
    provideWebGpu();
    answer = { done: await JOBS[job.kind](job) };
  } catch (error) {
    answer = { error: error?.stack ?? String(error) };
  }
  process.send(answer, () => process.exit(0));
});
