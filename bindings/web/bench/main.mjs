// The package beside other engines of web pages, in headless Chromium, in turns.
//
//   node main.mjs SITE PEERS ROUNDS RUNS MODEL...
//
// SITE is what `scripts/web build` made, PEERS a node_modules folder that has them. Each measurement has a browser of its
// own, so that nothing is known of a kernel before. Prints a line of JSON for each model and engine: medians of the rounds,
// in ms, and what the engine's scripts and WebAssembly weigh as they
// were sent, in kB: by brotli where the browser takes it.
//
// BACKEND is webgpu (the default) or cpu. With ISOLATED=1 the page is cross-origin isolated, so that engines may use threads.

import { copyFileSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ISOLATED, serve } from "../serve.mjs";
import { Chromium, SOFTWARE_GPU } from "../tests/chromium.mjs";

const [site, peers, rounds, runs, ...models] = process.argv.slice(2);
const FEW = 3;

/** Which formats an engine reads. */
const READS = { diptych: [".tflite", ".onnx"], "onnxruntime-web": [".onnx"], "@litertjs/core": [".tflite"] };

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "diptych-bench-"));
for (const name of ["index.html", "engines.js"]) {
  copyFileSync(join(here, name), join(folder, name));
}
cpSync(join(site, "diptych"), join(folder, "diptych"), { recursive: true });
symlinkSync(resolve(peers), join(folder, "peers"));
models.forEach((model) => copyFileSync(model, join(folder, basename(model))));
const backend = process.env.BACKEND ?? "webgpu";
let sent = 0;
const server = await serve(folder, 0, {
  headers: process.env.ISOLATED ? ISOLATED : {},
  told: (path, bytes) => (sent += /\.(m?js|wasm)$/.test(path) && path !== "/engines.js" ? bytes : 0),
});

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

async function measured(engine, model) {
  sent = 0;
  const flags = process.env.DIPTYCH_BENCH_GPU ? ["--enable-unsafe-webgpu", "--enable-features=Vulkan"] : SOFTWARE_GPU;
  const chromium = new Chromium(flags);
  try {
    const page = await chromium.page(`http://127.0.0.1:${server.address().port}/index.html`);
    await page.until("the page", () => typeof globalThis.measure === "function");
    const act = (...given) => globalThis.measure(...given);
    const found = await page.evaluate(act, engine, basename(model), backend, FEW, Number(runs));
    return { ...found, kB: Math.round(sent / 100) / 10 };
  } finally {
    await chromium.close();
  }
}

try {
  for (const model of models) {
    const rows = Object.keys(READS).filter((engine) => READS[engine].includes(extname(model))).map((engine) => ({ engine, first: [], steady: [] }));
    for (let round = 0; round < Number(rounds); round += 1) {
      for (const row of rows) {
        try {
          const { first, times, outputs, kB, isolated } = await measured(row.engine, model);
          Object.assign(row, { kB, isolated });
          row.first.push(first);
          row.steady.push(median(times));
          row.outputs = outputs;
        } catch (error) {
          row.error = error.message.slice(0, 500);
        }
      }
    }
    for (const { engine, first, steady, outputs, kB, isolated, error } of rows) {
      const of = (times) => (times.length ? { ms: Math.round(median(times) * 10) / 10, rounds: times.map((ms) => Math.round(ms * 10) / 10) } : undefined);
      console.log(JSON.stringify({ model: basename(model), engine, backend, isolated, kB, first: of(first), steady: of(steady), outputs, error }));
    }
  }
} finally {
  server.close();
  rmSync(folder, { recursive: true });
}
process.exit(0);
