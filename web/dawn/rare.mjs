// Writes which functions few models need (../rare.txt): those that none of these models calls, from its bytes to results
// and their profile, and no page in Chromium. `scripts/web rare` builds SITE for it, whose modules count what is called.
//
//   node rare.mjs SITE MODEL...

import { fork } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { serve } from "../serve.mjs";
import { digest } from "../split.mjs";
import { Chromium, SOFTWARE_GPU } from "../tests/chromium.mjs";
import { provideWebGpu } from "./node.mjs";

/** Lines of a function's text below which it stays: the list would be long, and little gained. */
const FEW_LINES = 12;

/** What pages do, with pictures and when a device is lost. */
const PAGES = /^(?!.*fmt::Debug).*(diptych_web|picture|lost)/i;

/** What a model calls, in a process of its own: some functions are called once in each. */
async function use(site, model) {
  // It computes nothing, and any machine has it.
  provideWebGpu("null");
  const server = await serve(resolve(site));
  const { Diptych } = await import(pathToFileURL(resolve(site, "diptych/index.js")));
  const wasm = `http://127.0.0.1:${server.address().port}/diptych/wasm/`;
  const session = await Diptych.load(new Uint8Array(readFileSync(model)), { backend: "webgpu", record: false, wasm });
  const whole = (dims) => dims.reduce((a, b) => a * b, 1);
  const inputs = Object.fromEntries(
    session.inputs.map(({ name, dims }) => [name, { data: new Float32Array(whole(dims)).fill(0.5), dims }]),
  );
  await session.run(inputs);
  await session.run(inputs);
  await session.profile(inputs).catch((error) => console.error(`${basename(model)}: no profile: ${error.message}`));
  await session.restore();
  await session.free();
  return [...globalThis.calledFunctions];
}

/** What a page calls, of the two modules: with pictures, buffers of its own, a device that is lost. */
async function inPage(site) {
  for (const name of ["blank.html", "figure.png", "tiny.mjs"]) {
    copyFileSync(fileURLToPath(new URL(`../tests/${name}`, import.meta.url)), join(site, name));
  }
  const server = await serve(resolve(site));
  const browser = new Chromium(SOFTWARE_GPU);
  try {
    const page = await browser.page(`http://127.0.0.1:${server.address().port}/blank.html`);
    return await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const { tiny } = await import("./tiny.mjs");
      const picture = await createImageBitmap(await (await fetch("figure.png")).blob());
      const called = {};
      for (const [name, model] of [["tflite", "posenet_figures.tflite"], ["onnx", tiny()]]) {
        globalThis.calledFunctions = new Set();
        const session = await Diptych.load(model, { backend: "webgpu" });
        const [{ name: input, dims }] = session.inputs;
        const numbers = { [input]: new Float32Array(dims.reduce((a, b) => a * b, 1)) };
        await session.run(numbers);
        await session.run(name === "tflite" ? { [input]: picture } : numbers);
        await session.profile(numbers).catch(() => {});
        const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
        const buffer = session.device.createBuffer({ size: 4 * numbers[input].length, usage });
        await session.run({ [input]: buffer });
        session.device.destroy();
        await session.lost;
        await session.run(numbers).catch(() => {});
        await session.restore();
        await session.run(numbers);
        await session.free();
        called[name] = [...globalThis.calledFunctions];
      }
      return called;
    });
  } finally {
    await browser.close();
    server.close();
  }
}

function called(site, model) {
  return new Promise((done) => {
    const child = fork(fileURLToPath(import.meta.url), ["--one", site, model], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    let answer = { error: "the process ended" };
    child.on("message", (message) => (answer = message));
    child.on("close", () => done(answer));
  });
}

async function all(site, models) {
  const formats = { tflite: { models: 0, called: new Set() }, onnx: { models: 0, called: new Set() } };
  const left = [...models];
  const lane = async () => {
    for (let model = left.shift(); model !== undefined; model = left.shift()) {
      const { numbers, error } = await called(site, model);
      // A model that such a module does not run says nothing of it.
      console.error(`${basename(model)}: ${numbers ? `${numbers.length} functions` : `left out: ${error.slice(0, 100)}`}`);
      const format = formats[model.endsWith(".onnx") ? "onnx" : "tflite"];
      format.models += numbers ? 1 : 0;
      numbers?.forEach((number) => format.called.add(number));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  for (const [name, numbers] of Object.entries(await inPage(site))) {
    console.error(`a page: ${numbers.length} functions of ${name}`);
    numbers.forEach((number) => formats[name].called.add(number));
  }

  const [kept, rare] = [new Set(), new Set()];
  for (const [name, { models, called }] of Object.entries(formats)) {
    const functions = JSON.parse(readFileSync(join(site, "diptych/wasm", `${name}_functions.json`), "utf8"));
    functions.forEach(([name, lines], number) => {
      // Names of the compiler's own that are numbers mean another function in each build.
      if (called.has(number) || /^\d*$/.test(name) || PAGES.test(name)) {
        kept.add(name);
      } else if (lines >= FEW_LINES) {
        rare.add(name);
      }
    });
    console.error(`${name}: ${models} models`);
  }
  const list = [...rare].filter((name) => !kept.has(name)).map(digest).sort();
  writeFileSync(fileURLToPath(new URL("../rare.txt", import.meta.url)), list.map((digest) => `${digest}\n`).join(""));
  console.error(`${list.length} functions are rare`);
}

const [site, ...models] = process.argv.slice(2);
if (site === "--one") {
  const answer = await use(...models).then(
    (numbers) => ({ numbers }),
    (error) => ({ error: error.message }),
  );
  process.send(answer, () => process.exit(0));
} else {
  await all(site, models);
}
