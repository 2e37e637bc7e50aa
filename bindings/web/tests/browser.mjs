// Drives the page and the package in headless Chromium, on SwiftShader's WebGPU and on the CPU.
//
//   node browser.mjs SITE [FILTER]

import { copyFileSync, readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { lifetimes } from "./lifetimes.mjs";
import { arrivals } from "./arrival.mjs";
import { Chromium, NO_GPU, SOFTWARE_GPU } from "./chromium.mjs";
import { threads } from "./threads.mjs";
import { ISOLATED, serve } from "../serve.mjs";

const [site, filter = ""] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const wanted = JSON.parse(readFileSync(join(here, "figure.json"), "utf8"));
for (const name of ["figure.png", "tiny.mjs", "extents.mjs", "blank.html"]) {
  copyFileSync(join(here, name), join(site, name));
}

const tests = [];
const test = (name, flags, act) => tests.push({ name, flags, act });

function ensure(holds, message) {
  if (!holds) {
    throw new Error(message);
  }
}

/** Waits until the page has loaded its network and looked at some frames. */
const ready = (page, frames = 3) =>
  page.until(
    `${frames} frames`,
    `() => (globalThis.page?.state.errors.length ? true : globalThis.page?.state.lane?.frames >= ${frames})`,
    240,
  );

/** The people that the page finds in the test's picture. */
async function peopleInFigure(page) {
  await ready(page);
  await page.evaluate(async () => {
    const response = await fetch("figure.png");
    globalThis.page.state.picture = await createImageBitmap(await response.blob());
    globalThis.page.state.source = "picture";
    globalThis.page.state.lane.drawn = undefined;
  });
  await page.until("the picture", () => globalThis.page.state.lane.drawn !== undefined);
  // The frame under way may still be one of the film.
  await page.evaluate(() => (globalThis.page.state.lane.drawn = undefined));
  await page.until("the picture again", () => globalThis.page.state.lane.drawn !== undefined);
  return page.evaluate(() => globalThis.page.state.lane.drawn);
}

/** Compares with what the CPU backend finds on the host: `posenet --multi --json --backend cpu`. */
function compare(found) {
  ensure(found.length === wanted.length, `found ${found.length} people, wanted ${wanted.length}`);
  let furthest = 0;
  found.forEach((person, number) => {
    ensure(Math.abs(person.score - wanted[number].score) < 2e-3, `person ${number} scores ${person.score}, wanted ${wanted[number].score}`);
    person.keypoints.forEach(({ position: [x, y] }, part) => {
      const to = wanted[number].keypoints[part];
      furthest = Math.max(furthest, Math.hypot(x - to.x, y - to.y));
    });
  });
  ensure(furthest < 0.5, `a part lies ${furthest.toFixed(2)} pixels from where the host's CPU finds it`);
  return `${found.length} people, the furthest part ${furthest.toFixed(4)} pixels off`;
}

// A software GPU is passed over unless it is asked for: the CPU is faster.
const WEBGPU = "?backend=webgpu";

for (const [what, flags, query, backend] of [["WebGPU", SOFTWARE_GPU, WEBGPU, "webgpu"], ["the CPU", NO_GPU, "", "cpu"]]) {
  test(`the page finds the people on ${what}`, flags, async (open) => {
    const page = await open(query);
    const found = await peopleInFigure(page);
    const used = await page.evaluate(() => globalThis.page.state.lane.session.info.backend);
    ensure(used === backend, `runs on ${used}, wanted ${backend}`);
    return compare(found);
  });
}

test("without WebGPU a sentence says so", NO_GPU, async (open) => {
  const page = await open("");
  await ready(page);
  const told = (page) => page.evaluate(() => ["note", "device"].map((id) => document.getElementById(id).textContent));
  const [note, device] = await told(page);
  ensure(/CPU.*no (?:WebGPU|GPU).*one thread.*must send.*chrome:\/\/gpu/.test(note), `the page says ${note}`);
  ensure(note.split("(").length === 2 && note.split(")").length === 2, `more than one pair of brackets: ${note}`);
  ensure(/on one thread$/.test(device), `the page says ${device}`);
  // As `scripts/web serve` serves it.
  const isolated = await open("", undefined, true);
  await ready(isolated);
  const [threadsNote, threadsDevice] = await told(isolated);
  const processors = await isolated.evaluate(() => navigator.hardwareConcurrency);
  const threads = processors > 1 ? `${Math.min(processors, 8)} threads` : "one thread";
  ensure(threadsDevice.endsWith(`on ${threads}`), `the page says ${threadsDevice} with ${processors} processors`);
  ensure(processors === 1 || !/thread/.test(threadsNote), `the page says ${threadsNote}`);
  return note;
});

test("errors are shown", SOFTWARE_GPU, async (open) => {
  const rows = [];
  for (const [query, says] of [
    ["?model=missing.tflite", /404/],
    ["?model=style.css", /model/],
    ["?backend=metal", /"metal".*wanted/],
  ]) {
    const page = await open(query);
    await page.until("an error", () => document.getElementById("error")?.hidden === false);
    const shown = await page.evaluate(() => document.getElementById("error").textContent);
    ensure(says.test(shown), `${query}: the page says ${shown}`);
    rows.push(`${query}: ${shown}`);
    await page.close();
  }
  return rows.join("\n    ");
});

test("the package's errors are JavaScript's", SOFTWARE_GPU, async (open) => {
  const page = await open("");
  await ready(page);
  const found = await page.evaluate(async () => {
    const { Diptych } = await import("./diptych/index.js");
    const session = await Diptych.load("posenet_figures.tflite", { backend: "cpu" });
    const [input] = session.inputs;
    const tries = {
      unknown: () => session.run({ nothing: new Float32Array(1) }),
      length: () => session.run({ [input.name]: new Float32Array(7) }),
      type: () => session.run({ [input.name]: "text" }),
      missing: () => session.run({}),
      bytes: () => Diptych.load(new Uint8Array([1, 2, 3, 4])),
      precision: () => Diptych.load("posenet_figures.tflite", { precision: "f8" }),
      freed: async () => {
        await session.free();
        await session.run({});
      },
    };
    const said = {};
    for (const [name, act] of Object.entries(tries)) {
      said[name] = await act().then(() => "nothing", (error) => (error instanceof Error ? error.message : `no Error: ${error}`));
    }
    return said;
  });
  for (const [name, says] of Object.entries({
    unknown: /"nothing" is unknown/,
    length: /found 7 values, wanted 198147/,
    type: /wanted a Float32Array/,
    missing: /found nothing, wanted|nothing/,
    bytes: /model/,
    precision: /"f8", wanted/,
    freed: /freed/,
  })) {
    ensure(says.test(found[name]), `${name}: ${found[name]}`);
  }
  return Object.values(found).join("\n    ");
});

test("pictures of every kind give the same people", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const { Diptych } = await import("./diptych/index.js");
    const session = await Diptych.load("posenet_figures.tflite", { backend: "webgpu" });
    const name = session.inputs[0].name;
    const image = new Image();
    image.src = "figure.png";
    await image.decode();
    const bitmap = await createImageBitmap(image);
    const [canvas, offscreen] = [document.createElement("canvas"), new OffscreenCanvas(257, 257)];
    Object.assign(canvas, { width: 257, height: 257 });
    const contexts = [canvas, offscreen].map((canvas) => canvas.getContext("2d"));
    contexts.forEach((context) => context.drawImage(image, 0, 0));
    const data = contexts[1].getImageData(0, 0, 257, 257);
    const values = Float32Array.from({ length: 257 * 257 * 3 }, (_, i) => (data.data[4 * Math.floor(i / 3) + (i % 3)] - 127.5) / 127.5);
    const frame = new VideoFrame(canvas, { timestamp: 0 });
    const kinds = { image, bitmap, canvas, offscreen, data, frame, array: [...values], source: { source: data, mean: [127.5, 127.5, 127.5] } };
    const ranged = (value) => (Array.isArray(value) ? value : { mean: 127.5, deviation: 127.5, ...(value.source ? value : { source: value }) });
    const wanted = Object.values(await session.run({ [name]: values }));
    const apart = {};
    for (const [kind, value] of Object.entries(kinds)) {
      const outputs = Object.values(await session.run({ [name]: ranged(value) }));
      apart[kind] = Math.max(...outputs.map((output, place) => output.reduce((most, v, i) => Math.max(most, Math.abs(v - wanted[place][i])), 0)));
    }
    frame.close();
    await session.free();
    return apart;
  });
  for (const [kind, apart] of Object.entries(found)) {
    // A frame of a video may have been through YUV, and the kernel of pictures rounds otherwise than the numbers here.
    const most = { frame: 0.5, array: 0 }[kind] ?? 1e-3;
    ensure(apart <= most, `${kind} is ${apart} from the numbers`);
  }
  return JSON.stringify(found);
});

test("a page downloads the module that it needs", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const { Diptych } = await import("./diptych/index.js");
    const { folded, tiny } = await import("./tiny.mjs");
    const modules = () =>
      performance
        .getEntriesByType("resource")
        .map(({ name }) => /(\w+?)(?:_bg)?\.wasm$/.exec(name)?.[1])
        .filter(Boolean)
        .join(" ");
    const loaded = async (model, options) => {
      const session = await Diptych.load(model, options);
      const { backend } = session.info;
      const run = session.inputs[0].name === "x" ? await session.run({ x: new Float32Array(64).fill(3) }) : {};
      await session.free();
      return { backend, modules: modules(), y: run.y?.[63] };
    };
    return [
      await loaded("posenet_figures.tflite", { backend: "webgpu" }),
      await loaded(tiny(), { backend: "webgpu" }),
      // Few models have it: it lies in the second file.
      await loaded(tiny("Hardmax"), { backend: "webgpu" }),
      // The CPU computes what is the same at each run.
      await loaded(folded(), { backend: "webgpu" }),
      await loaded(tiny(), { backend: "cpu" }),
    ];
  });
  const wanted = [
    { backend: "webgpu", modules: "tflite" },
    { backend: "webgpu", modules: "tflite onnx", y: 3 },
    { backend: "webgpu", modules: "tflite onnx onnx_rest", y: 0 },
    { backend: "webgpu", modules: "tflite onnx onnx_rest full", y: 3 + 1 / 64 },
    { backend: "cpu", modules: "tflite onnx onnx_rest full cpu", y: 3 },
  ];
  ensure(JSON.stringify(found) === JSON.stringify(wanted), JSON.stringify(found));
  return found.map(({ modules }) => modules).join("; ");
});

test("each run decides the extents that a model leaves open", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const { extents } = await import("./extents.mjs");
    const { Diptych } = await import("./diptych/index.js");
    const told = [];
    for (const options of [{ backend: "webgpu" }, { backend: "webgpu", worker: true }, { backend: "cpu" }]) {
      told.push(await extents(Diptych, options));
    }
    return told;
  });
  return found.join("; ");
});

test("the page's own device and buffers", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const { Diptych } = await import("./diptych/index.js");
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const session = await Diptych.load("posenet_figures.tflite", { device });
    const [input] = session.inputs;
    const values = Float32Array.from({ length: 257 * 257 * 3 }, (_, i) => Math.sin(i));
    const wanted = await session.run({ [input.name]: values });
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = device.createBuffer({ size: values.byteLength, usage });
    device.queue.writeBuffer(buffer, 0, values);
    const read = await session.run({ [input.name]: buffer });
    const kept = await session.run({ [input.name]: buffer }, { buffers: true });
    const equal = (a, b) => a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
    const same = session.outputs.every(({ name }) => equal(wanted[name], read[name]));
    const [first] = session.outputs;
    const staging = device.createBuffer({ size: kept[first.name].size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(kept[first.name], 0, staging, 0, staging.size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const inBuffer = equal(wanted[first.name], new Float32Array(staging.getMappedRange()));
    const own = session.device === device && Object.getOwnPropertyNames(device).length === 0;
    const small = device.createBuffer({ size: 16, usage });
    const refused = await session.run({ [input.name]: small }).then(() => "nothing", (error) => error.message);
    await session.free();
    const alive = await Promise.race([device.lost.then(() => false), new Promise((resolve) => setTimeout(() => resolve(true), 300))]);
    const browsers = navigator.gpu === Object.getOwnPropertyDescriptor(Navigator.prototype, "gpu").get.call(navigator);
    return { same, inBuffer, own, refused, alive, browsers };
  });
  for (const what of ["same", "inBuffer", "own", "alive", "browsers"]) {
    ensure(found[what] === true, `${what}: ${JSON.stringify(found)}`);
  }
  ensure(/16 bytes/.test(found.refused), found.refused);
  return found.refused;
});

test("a thousand runs with flat memory and no new GPU objects", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const made = {};
    for (const call of ["createBuffer", "createBindGroup", "createComputePipeline", "createShaderModule"]) {
      const own = GPUDevice.prototype[call];
      made[call] = 0;
      GPUDevice.prototype[call] = function (...given) {
        made[call] += 1;
        return own.apply(this, given);
      };
    }
    const { Diptych } = await import("./diptych/index.js");
    const { default: init } = await import("./diptych/wasm/onnx.js");
    const { tiny } = await import("./tiny.mjs");
    const session = await Diptych.load(tiny(), { backend: "webgpu" });
    const exports = await init();
    const values = Float32Array.from({ length: 64 }, (_, i) => i - 32);
    const state = () => {
      globalThis.gc();
      return { heap: performance.memory.usedJSHeapSize, wasm: exports.memory.buffer.byteLength, made: { ...made } };
    };
    const states = [];
    for (let run = 0; run <= 1100; run++) {
      if (run === 100 || run === 1100) {
        states.push(state());
      }
      const { y } = await session.run({ x: values });
      if (y.some((value, i) => value !== Math.max(values[i], 0))) {
        throw new Error(`run ${run} gave ${y}`);
      }
    }
    return states;
  });
  const [before, after] = found;
  ensure(JSON.stringify(before.made) === JSON.stringify(after.made), `GPU objects: ${JSON.stringify([before.made, after.made])}`);
  ensure(after.wasm === before.wasm, `WebAssembly's memory grew from ${before.wasm} to ${after.wasm} bytes`);
  ensure(after.heap - before.heap < 1e6, `the heap grew from ${before.heap} to ${after.heap} bytes`);
  return `heap ${before.heap} to ${after.heap} bytes, WebAssembly ${after.wasm} bytes, made ${JSON.stringify(after.made)}`;
});

for (const [what, flags, query] of [["WebGPU", SOFTWARE_GPU, WEBGPU], ["the CPU", NO_GPU, ""]]) {
  test(`a minute of frames on ${what} without long tasks`, flags, async (open) => {
    const page = await open(query);
    await ready(page);
    const measure = async () => {
      const longTasks = [...globalThis.page.state.longTasks];
      // What the first collection finds is freed by another thread, a little later where the machine has much to do.
      for (let collection = 0; collection < 2; collection++) {
        globalThis.gc();
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const { lane, errors } = globalThis.page.state;
      return { now: performance.now(), frames: lane.frames, heap: performance.memory.usedJSHeapSize, longTasks, errors };
    };
    const before = await page.evaluate(measure);
    // The collection of the measurement itself is a task.
    const seconds = Number(process.env.DIPTYCH_SECONDS ?? 60);
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    const after = await page.evaluate(measure);
    ensure(!after.errors.length, after.errors.join("; "));
    const long = after.longTasks.filter(({ startTime }) => startTime > before.now + 200);
    const longest = Math.max(0, ...long.map(({ duration }) => duration));
    ensure(after.frames > before.frames, "no frames");
    ensure(after.heap - before.heap < 4e6, `the heap grew from ${before.heap} to ${after.heap} bytes`);
    // By the clock: on a machine with more to do than cores, a task waits for its turn in between.
    const limit = 50 * Math.max(1, loadavg()[0] / cpus().length);
    const seen = `${after.frames - before.frames} frames, ${long.length} tasks over 50 ms, the longest ${longest} ms`;
    ensure(longest <= limit, `${seen}, wanted at most ${limit.toFixed(0)} ms`);
    const loading = after.longTasks.filter(({ startTime }) => startTime <= before.now).map(({ duration }) => duration);
    return `${seen} (at most ${limit.toFixed(0)}), heap ${before.heap} to ${after.heap} bytes, while loading ${loading.length} (${loading})`;
  });
}

test("a lost device is made anew", SOFTWARE_GPU, async (open) => {
  const page = await open(WEBGPU);
  await ready(page);
  for (let loss = 1; loss <= 3; loss++) {
    const frames = await page.evaluate(async () => {
      await globalThis.page.state.lane.session.destroyDevice();
      return globalThis.page.state.lane.frames;
    });
    await page.until("the loss", `() => globalThis.page.state.losses === ${loss}`);
    await page.until("frames after it", `() => globalThis.page.state.lane.frames > ${frames} + 3`, 120);
  }
  const errors = await page.evaluate(() => globalThis.page.state.errors);
  ensure(!errors.length, errors.join("; "));
  return compare(await peopleInFigure(page));
});

test("calls after a loss fail with its name", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const { Diptych } = await import("./diptych/index.js");
    const { tiny } = await import("./tiny.mjs");
    const session = await Diptych.load(tiny(), { backend: "webgpu" });
    const values = new Float32Array(64).fill(2);
    const before = await session.run({ x: values });
    const running = session.run({ x: values }).then(() => "in time", (error) => error.name);
    session.device.destroy();
    const during = await running;
    const reason = await session.lost;
    const after = await session.run({ x: values }).then(() => "nothing", (error) => `${error.name}: ${error.message}`);
    await session.restore();
    const again = await session.run({ x: values });
    return { during, reason, after, same: before.y.every((value, i) => Object.is(value, again.y[i])) };
  });
  ensure(/^(in time|DeviceLostError)$/.test(found.during), found.during);
  ensure(/^DeviceLostError: the device was lost/.test(found.after), found.after);
  ensure(found.same, "other outputs after the loss");
  return JSON.stringify(found);
});

test("kernels are tuned in the page, and the verdicts kept", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const { Diptych } = await import("./diptych/index.js");
    const session = await Diptych.load("posenet_figures.tflite", { backend: "webgpu", worker: true });
    const [input] = session.inputs;
    const values = Float32Array.from({ length: 257 * 257 * 3 }, (_, i) => Math.sin(i));
    const before = Object.values(await session.run({ [input.name]: values }));
    const told = [];
    let ran = 0;
    const tuning = session.tune({ budgetMs: 15_000, onProgress: (progress) => told.push(progress.visited) });
    for (let more = true; more; ran++) {
      await session.run({ [input.name]: values });
      more = await Promise.race([tuning.then(() => false), new Promise((resolve) => setTimeout(() => resolve(true), 100))]);
    }
    const result = await tuning;
    const after = Object.values(await session.run({ [input.name]: values }));
    const apart = Math.max(...after.map((output, place) => output.reduce((most, v, i) => Math.max(most, Math.abs(v - before[place][i])), 0)));
    await session.free();
    const again = await Diptych.load("posenet_figures.tflite", { backend: "webgpu", worker: true });
    const sources = again.steps.map(({ source }) => source);
    const profile = await again.profile({ [input.name]: values });
    await again.free();
    return { result, told: told.length, ran, apart, sources, clock: profile.clock, us: profile.us, steps: profile.steps.length };
  });
  const { result, sources } = found;
  ensure(result.verdicts.length > 0, "no verdicts");
  ensure(result.kept, "the record was not kept");
  ensure(found.told > 2 && found.ran > 1, `told ${found.told} times, ran ${found.ran} times meanwhile`);
  ensure(found.apart < 1e-2, `outputs are ${found.apart} from the untuned ones`);
  const recorded = sources.filter((source) => !/rule|table|default/.test(source));
  ensure(recorded.length > 0, `no step is by the record: ${sources.join(", ")}`);
  ensure(found.steps > 10 && found.us > 0, `a profile of ${found.steps} steps, ${found.us} us`);
  return `${result.verdicts.length} verdicts (${result.clock}), ${result.changed.length} steps changed, ${recorded.length} of ${sources.length} steps by the record when loaded again ("${recorded[0]}"), ${found.ran} runs meanwhile; profile by ${found.clock}: ${found.us.toFixed(0)} us`;
});

test("tuning in a worker ends when it is told to", SOFTWARE_GPU, async (open) => {
  const page = await open("blank.html");
  const found = await page.evaluate(async () => {
    const { Diptych } = await import("./diptych/index.js");
    const session = await Diptych.load("posenet_figures.tflite", { backend: "webgpu", worker: true, record: false });
    const budgetMs = 120_000;
    const start = performance.now();
    const stopped = [AbortSignal.abort(), new AbortController()];
    const [before, during] = stopped.map((one) => one.signal ?? one);
    const first = await session.tune({ budgetMs, signal: before });
    const onProgress = ({ visited }) => visited > first.verdicts.length && stopped[1].abort();
    const second = await session.tune({ budgetMs, onProgress, signal: during });
    const ms = performance.now() - start;
    const [input] = session.inputs;
    const outputs = await session.run({ [input.name]: new Float32Array(input.dims.reduce((a, b) => a * b, 1)) });
    await session.free();
    return { ms, finished: [first.finished, second.finished], outputs: Object.keys(outputs).length };
  });
  ensure(found.ms < 100_000 && !found.finished.some(Boolean) && found.outputs > 1, JSON.stringify(found));
  return `${Math.round(found.ms)} ms`;
});

test("the camera's frames are looked at", SOFTWARE_GPU, async (open) => {
  const page = await open("");
  await ready(page);
  await page.evaluate(() => document.getElementById("camera").click());
  await page.until("the camera", () => globalThis.page.state.source === "camera" && globalThis.page.state.video);
  const frames = await page.evaluate(() => globalThis.page.state.lane.frames);
  await page.until("frames of it", `() => globalThis.page.state.lane.frames > ${frames} + 3`);
  const errors = await page.evaluate(() => globalThis.page.state.errors);
  ensure(!errors.length, errors.join("; "));
  return "the browser's test picture";
});

lifetimes({ test, ensure, site });

const fetched = [];
arrivals({ test, ensure, site, fetched });
threads({ test, ensure, fetched });

const told = (path) => fetched.push(path);
const servers = [await serve(site, 0, { told }), await serve(site, 0, { told, headers: ISOLATED })];
const [address, isolatedAddress] = servers.map((server) => `http://localhost:${server.address().port}/`);
let failed = 0;
const chosen = tests.filter(({ name }) => name.includes(filter));
for (const { name, flags, act } of chosen) {
  const browser = new Chromium(flags);
  const start = Date.now();
  let pages = [];
  try {
    const said = await act(async (query, size, isolated = false) => {
      const page = await browser.page((isolated ? isolatedAddress : address) + query, size);
      pages.push(page);
      return page;
    });
    console.log(`ok ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)\n    ${said}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.message}\n    the page says: ${pages.map((page) => page.said.join(" | ")).join("; ") || "nothing"}`);
  }
  await browser.close();
}
servers.forEach((server) => server.close());
console.log(`${chosen.length - failed} of ${chosen.length} tests passed`);
process.exit(failed || !chosen.length ? 1 : 0);
