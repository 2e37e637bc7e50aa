// Writes which functions few models need (../rare.txt): those of a module that none of these models calls in it, from its bytes to
// results and their profile, on WebGPU, there also on SwiftShader, and on the CPU, and no page in Chromium. `scripts/web rare`
// builds SITE for it, whose modules count what is called.
//
//   node rare.mjs SITE MODEL...

import { fork } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, extname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { ISOLATED, serve } from "../serve.mjs";
import { digest } from "../names.mjs";
import { Chromium, SOFTWARE_GPU } from "../tests/chromium.mjs";
import { provideWebGpu, swiftShader } from "./node.mjs";

/** Lines of a function's text below which it stays: calling it from the other file takes as many bytes. */
const FEW_LINES = 6;

/** The modules. Models are run in Node, which has no web workers, but for `threads`: that one runs them in a page. */
const MODULES = ["tflite", "onnx", "full", "cpu", "threads"];

/** What pages do, with pictures and when a device is lost. */
const PAGES = /^(?!.*fmt::Debug).*(diptych_web|picture|lost)/i;

/** What was called of each module, as numbers. */
const numbersOf = (called) => Object.fromEntries(Object.entries(called).map(([name, numbers]) => [name, [...numbers]]));

/** What is tried for extents that a model leaves open, but for the outermost, and for whole numbers: ids, a rate. */
const TRIES = [64, 320, 512].flatMap((extent) => [1, 16000].map((whole) => ({ extent, whole })));

/** Values for inputs of a model. */
function values(inputs, { extent, whole }) {
  const opened = inputs.flatMap(({ open }) => open);
  const batches = new Set(opened.filter(({ axis }) => axis === 0).map(({ name }) => name));
  return inputs.map(({ name, dims, dtype, open }) => {
    const extents = [...dims];
    open.forEach(({ axis, name }) => (extents[axis] = batches.has(name) ? 1 : extent));
    const one = dtype === "f32" || dtype === "f16" ? 0.5 : whole;
    return [name, { data: new Array(extents.reduce((a, b) => a * b, 1)).fill(one), dims: extents }];
  });
}

/** What a model calls, in a process of its own: some functions are called once in each. */
async function use(site, backend, model, number) {
  if (backend !== "cpu") {
    // The null device computes nothing, and any machine has it. Tests run on SwiftShader, for which other kernels are chosen.
    provideWebGpu(backend === "software" ? "vulkan" : "null");
  }
  // Browsers have relaxed SIMD, Node 20 only if it is told.
  setFlagsFromString("--experimental-wasm-relaxed-simd");
  const server = await serve(resolve(site));
  const { Diptych } = await import(pathToFileURL(resolve(site, "diptych/index.js")));
  const wasm = `http://127.0.0.1:${server.address().port}/diptych/wasm/`;
  const options = { backend: backend === "cpu" ? "cpu" : "webgpu", record: false, wasm };
  const session = await Diptych.load(new Uint8Array(readFileSync(model)), options);
  const inputs = Object.fromEntries(values(session.inputs, TRIES[number]));
  await session.run(inputs);
  if (backend === "software") {
    return numbersOf(globalThis.calledFunctions);
  }
  await session.run(inputs);
  await session.profile(inputs).catch((error) => console.error(`${basename(model)}: no profile: ${error.message}`));
  await session.restore();
  await session.free();
  return numbersOf(globalThis.calledFunctions);
}

/**
 * What a page calls of each module: with pictures, buffers of its own, a device that is lost; on the CPU; of a model a part of
 * which the CPU computes.
 */
async function inPage(site, models) {
  models.forEach((model) => copyFileSync(model, join(site, basename(model))));
  for (const name of ["blank.html", "figure.png", "tiny.mjs"]) {
    copyFileSync(fileURLToPath(new URL(`../tests/${name}`, import.meta.url)), join(site, name));
  }
  const server = await serve(resolve(site), 0, { headers: ISOLATED });
  const browser = new Chromium(SOFTWARE_GPU);
  try {
    const page = await browser.page(`http://127.0.0.1:${server.address().port}/blank.html`);
    return await page.evaluate(async (names, tries, text) => {
      const { Diptych } = await import("./diptych/index.js");
      const values = new Function(`return ${text}`)();
      const { folded, tiny } = await import("./tiny.mjs");
      const picture = await createImageBitmap(await (await fetch("figure.png")).blob());
      for (const model of ["posenet_figures.tflite", tiny(), folded()]) {
        const session = await Diptych.load(model, { backend: "webgpu" });
        const [{ name: input, dims }] = session.inputs;
        const numbers = { [input]: new Float32Array(dims.reduce((a, b) => a * b, 1)) };
        await session.run(numbers);
        await session.run(model === "posenet_figures.tflite" ? { [input]: { source: picture, mean: 127.5, deviation: 127.5 } } : numbers);
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
      }
      for (const model of ["posenet_figures.tflite", tiny()]) {
        const session = await Diptych.load(model, { backend: "cpu", threads: 1 });
        const [{ name: input, dims }] = session.inputs;
        const numbers = { [input]: new Float32Array(dims.reduce((a, b) => a * b, 1)) };
        await session.run(model === "posenet_figures.tflite" ? { [input]: { source: picture, mean: 127.5, deviation: 127.5 } } : numbers);
        await session.profile(numbers);
        await session.free();
      }
      for (const threads of [1, 2, 3]) {
        const session = await Diptych.load("posenet_figures.tflite", { backend: "cpu", threads });
        const [{ name: input, dims }] = session.inputs;
        const numbers = { [input]: new Float32Array(dims.reduce((a, b) => a * b, 1)) };
        // Helpers take parts, and fewer are tried.
        for (const end = performance.now() + 2000; performance.now() < end; ) {
          await session.run(numbers);
        }
        await session.free();
      }
      for (const name of names) {
        for (const one of tries) {
          try {
            const session = await Diptych.load(name, { backend: "cpu", threads: 2 });
            const inputs = Object.fromEntries(values(session.inputs, one));
            await session.run(inputs);
            await session.run(inputs);
            await session.free();
            break;
          } catch {
            // Other values may do, or none: Node says which models do not run.
          }
        }
      }
      // What helpers told.
      await new Promise((resolve) => setTimeout(resolve, 1000));
      const numbersOf = ([name, numbers]) => [name, [...numbers]];
      return Object.fromEntries(Object.entries(globalThis.calledFunctions).map(numbersOf));
    }, models.map((model) => basename(model)), TRIES, values.toString());
  } finally {
    await browser.close();
    server.close();
  }
}

function called(site, backend, model, number) {
  return new Promise((done) => {
    const given = ["--one", site, backend, model, String(number)];
    const driver = backend === "software" ? { VK_DRIVER_FILES: swiftShader(), VK_ICD_FILENAMES: swiftShader() } : {};
    const env = { ...process.env, ...driver };
    const child = fork(fileURLToPath(import.meta.url), given, { env, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    let answer = { error: "the process ended" };
    child.on("message", (message) => (answer = message));
    child.on("close", () => done(answer));
  });
}

/** Has each model run on each backend; `note` is told what it called. How many models of each format ran. */
async function perModel(site, models, note) {
  const ran = {};
  const left = [...models];
  const lane = async () => {
    for (let model = left.shift(); model !== undefined; model = left.shift()) {
      let runs = false;
      for (const backend of ["webgpu", "software", "cpu"]) {
        let answer = {};
        for (let number = 0; number < TRIES.length && !answer.called; number += 1) {
          answer = await called(site, backend, model, number);
        }
        // A model that does not run says nothing.
        console.error(`${basename(model)}, ${backend}: ${answer.called ? "runs" : `left out: ${answer.error.slice(0, 100)}`}`);
        note(answer.called ?? {});
        runs ||= answer.called !== undefined;
      }
      ran[extname(model)] = (ran[extname(model)] ?? 0) + runs;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  return ran;
}

async function all(site, models) {
  const functions = Object.fromEntries(
    MODULES.map((name) => [name, JSON.parse(readFileSync(join(site, "diptych/wasm", `${name}_functions.json`), "utf8"))]),
  );
  const kept = Object.fromEntries(MODULES.map((name) => [name, new Set()]));
  const note = (called) => {
    for (const [module, numbers] of Object.entries(called)) {
      numbers.forEach((number) => kept[module].add(functions[module][number][0]));
    }
  };
  note(await inPage(site, models));
  for (const [format, count] of Object.entries(await perModel(site, models, note))) {
    console.error(`${count} models of ${format}`);
  }
  kept.cpu.forEach((name) => kept.threads.add(name));
  const having = new Map();
  const rare = new Map();
  for (const module of MODULES) {
    for (const [name, lines] of new Map(functions[module])) {
      const add = (to) => to.set(name, [...(to.get(name) ?? []), module]);
      add(having);
      // Names of the compiler's own that are numbers mean another function in each build.
      if (!kept[module].has(name) && !/^\d*$/.test(name) && !PAGES.test(name) && lines >= FEW_LINES) {
        add(rare);
      }
    }
  }
  const line = ([name, modules]) => [digest(name), ...(modules.length < having.get(name).length ? modules : [])].join(" ");
  const list = [...rare].map(line).sort();
  writeFileSync(fileURLToPath(new URL("../rare.txt", import.meta.url)), list.map((line) => `${line}\n`).join(""));
  for (const module of MODULES) {
    console.error(`${module}: ${[...rare.values()].filter((modules) => modules.includes(module)).length} functions are rare`);
  }
}

const [site, ...models] = process.argv.slice(2);
if (site === "--one") {
  const answer = await use(...models).then(
    (called) => ({ called }),
    (error) => ({ error: error.message }),
  );
  process.send(answer, () => process.exit(0));
} else {
  await all(site, models);
}
