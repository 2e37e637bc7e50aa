// What a visitor's browser fetches, and what it is told where something is missing.

import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serve } from "../serve.mjs";
import { NO_GPU, SOFTWARE_GPU } from "./chromium.mjs";
import { external } from "./tiny.mjs";

/** Networks of others, if they are there: TensorFlow Lite and ONNX. */
function others() {
  const folder = process.env.DIPTYCH_SHARED && join(process.env.DIPTYCH_SHARED, "models");
  const of = (folder) => readdirSync(folder).filter((name) => /\.(tflite|onnx)$/.test(name)).map((name) => join(folder, name));
  return folder ? [...of(folder), ...of(join(folder, "onnx"))] : [];
}

/** Adds the tests. `fetched` are the paths that the server was asked for, in order. */
export function arrivals({ test, ensure, site, fetched }) {
  const modules = () => fetched.map((path) => /(\w+)\.wasm$/.exec(path)?.[1].replace("_bg", "")).filter(Boolean).join(" ");
  const begun = () => (fetched.length = 0);

  for (const [what, flags, stub] of [
    ["without WebGPU", NO_GPU, ""],
    ["without an adapter", SOFTWARE_GPU, "navigator.gpu.requestAdapter = async () => null;"],
  ]) {
    test(`${what} one module is fetched`, flags, async (open) => {
      const page = await open("blank.html");
      begun();
      const info = await page.evaluate(async (stub) => {
        new Function(stub)();
        const { Diptych } = await import("./diptych/index.js");
        const session = await Diptych.load("posenet_figures.tflite");
        return session.info;
      }, stub);
      ensure(info.backend === "cpu", JSON.stringify(info));
      ensure(modules() === "cpu", `fetched ${modules()}, wanted cpu alone`);
      ensure(!/opencl|feature|wgpu/.test(info.reason), `a visitor reads "${info.reason}"`);
      begun();
      const refused = await page.evaluate(async () => {
        const { Diptych } = await import("./diptych/index.js");
        return Diptych.load("posenet_figures.tflite", { backend: "webgpu" }).then(() => "nothing", ({ message }) => message);
      });
      ensure(/found "webgpu", but/.test(refused) && modules() === "", `${refused}, fetched ${modules()}`);
      return `${info.reason}; ${refused}`;
    });
  }

  test("errors while loading fetch nothing more", SOFTWARE_GPU, async (open) => {
    const [model, weights] = external();
    writeFileSync(join(site, "external.onnx"), model);
    writeFileSync(join(site, "weights.bin"), weights);
    writeFileSync(join(site, "page.tflite"), "<!doctype html><title>Start</title>");
    const page = await open("blank.html");
    const wanted = [
      ["missing.tflite", {}, /404/, ""],
      ["page.tflite", {}, /page\.tflite: found a page of HTML/, ""],
      ["blank.html", {}, /found a page of HTML, wanted a file/, ""],
      ["figure.png", {}, /found \d+ bytes that begin with 89 50 4e 47/, ""],
      ["posenet_figures.tflite", { backnd: "cpu" }, /option "backnd" is unknown; did you mean "backend"\?/, ""],
      ["posenet_figures.tflite", { backend: "webgp" }, /found "webgp", wanted .* did you mean "webgpu"\?/, ""],
      ["posenet_figures.tflite", { precision: "f8" }, /found "f8", wanted/, ""],
      ["external.onnx", { externalData: { "other.bin": "weights.bin" } }, /found "other.bin", but the model names "weights.bin"/, "onnx"],
      ["posenet_figures.tflite", { backend: "webgpu", dimensions: { rows: 3 } }, /rows/, "tflite tflite_rest"],
    ];
    const rows = [];
    for (const [model, options, says, files] of wanted) {
      begun();
      const found = await page.evaluate(
        async (model, options) => {
          const { Diptych } = await import("./diptych/index.js");
          return Diptych.load(model, { backend: "webgpu", ...options }).then(() => "nothing", ({ message }) => message);
        },
        model,
        options,
      );
      // What was begun may come late.
      await new Promise((resolve) => setTimeout(resolve, 1000));
      ensure(says.test(found), `${model} ${JSON.stringify(options)}: ${found}`);
      ensure(files.startsWith(modules()), `${model}: fetched ${modules()}, wanted ${files || "nothing"}`);
      rows.push(found);
    }
    return rows.join("\n    ");
  });

  test("loading is stopped by a signal", SOFTWARE_GPU, async (open) => {
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const told = {};
      for (const worker of [false, true]) {
        const load = (signal, onProgress) =>
          Diptych.load("posenet_figures.tflite", { backend: "webgpu", worker, signal, onProgress }).then(() => "loaded", ({ name }) => name);
        const before = await load(AbortSignal.abort());
        const stop = new AbortController();
        let kernels = 0;
        const during = await load(stop.signal, ({ stage, done }) => {
          if (stage === "build" && done > 2) {
            kernels = done;
            stop.abort();
          }
        });
        told[worker] = [before, during, kernels > 0, await load(new AbortController().signal)];
        // In the task of the call, as React's StrictMode does.
        const task = new AbortController();
        const early = load(task.signal);
        task.abort();
        told[worker].push(await early);
        // A download that stands still.
        const still = new AbortController();
        let cancelled = false;
        const body = new ReadableStream({ cancel: () => (cancelled = true) });
        const stalled = Diptych.load(new Response(body), { backend: "webgpu", worker, signal: still.signal }).then(() => "loaded", ({ name }) => name);
        setTimeout(() => still.abort(), 100);
        told[worker].push(await stalled, cancelled);
      }
      // Between the download and the preparation, where the tuner's record is read.
      const stop = new AbortController();
      indexedDB.open = (...given) => (stop.abort(), IDBFactory.prototype.open.apply(indexedDB, given));
      told.between = await Diptych.load("posenet_figures.tflite", { backend: "webgpu", signal: stop.signal }).then(() => "loaded", ({ name }) => name);
      return told;
    });
    const wanted = ["AbortError", "AbortError", true, "loaded", "AbortError", "AbortError", true];
    ensure(JSON.stringify(found) === JSON.stringify({ false: wanted, true: wanted, between: "AbortError" }), JSON.stringify(found));
    return "before, in the task of the call, while nothing arrives, and while kernels are compiled, here and in a worker";
  });

  test("weights in files beside an ONNX model", SOFTWARE_GPU, async (open) => {
    const [model, weights] = external();
    writeFileSync(join(site, "external.onnx"), model);
    writeFileSync(join(site, "weights.bin"), weights);
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const bytes = new Uint8Array(await (await fetch("external.onnx")).arrayBuffer());
      const weights = new Float32Array(64).fill(7);
      const told = [];
      for (const [model, options] of [
        ["external.onnx", { backend: "webgpu" }],
        ["external.onnx", { backend: "cpu", worker: true }],
        [bytes, { backend: "webgpu", externalData: { "weights.bin": weights } }],
        [bytes, { backend: "cpu", worker: true, externalData: { "weights.bin": "weights.bin" } }],
        [await fetch("external.onnx"), { backend: "cpu", worker: true }],
        [bytes, { backend: "webgpu" }],
      ]) {
        const run = async () => {
          const session = await Diptych.load(model, options);
          const { y } = await session.run({ x: new Float32Array(64).fill(1) });
          await session.free();
          return [y[0], y[63]].join(" ");
        };
        told.push(await run().catch(({ message }) => message));
      }
      return told;
    });
    const [last, ...rows] = [found.pop(), ...found];
    ensure(rows.join() === "1 64,1 64,8 8,1 64,1 64", JSON.stringify(found));
    ensure(/keeps weights in the file "weights.bin", wanted externalData/.test(last), last);
    return last;
  });

  test("a picture's range is given or known", SOFTWARE_GPU, async (open) => {
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const session = await Diptych.load("posenet_figures.tflite", { backend: "webgpu" });
      session.model.normalisation = [];
      const source = new OffscreenCanvas(8, 8);
      source.getContext("2d");
      const [{ name }] = session.inputs;
      const told = [];
      for (const picture of [source, { source, means: 1 }, { source, mean: 0, deviation: 0 }, { source, mean: 0, deviation: 255, fit: "fit" }, { source, mean: 0, deviation: 255 }]) {
        told.push(await session.run({ [name]: picture }).then(() => "runs", ({ message }) => message));
      }
      return told;
    });
    const says = [/wanted mean and deviation with the picture/, /"means" is unknown; did you mean "mean"\?/, /found 0, wanted numbers other than 0/, /found "fit", wanted/, /^runs$/];
    says.forEach((one, place) => ensure(one.test(found[place]), found[place]));
    return found[0];
  });

  test("a worker of another origin's package", SOFTWARE_GPU, async (open) => {
    const other = await serve(site, 0, { headers: { "access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin" } });
    try {
      const page = await open("blank.html");
      const found = await page.evaluate(async (address) => {
        const { Diptych } = await import(`${address}/diptych/index.js`);
        const { tiny } = await import("./tiny.mjs");
        const session = await Diptych.load(tiny(), { backend: "webgpu", worker: true });
        const { y } = await session.run({ x: new Float32Array(64).fill(3) });
        return [y[63], session.info.backend];
      }, `http://127.0.0.1:${other.address().port}`);
      ensure(found.join() === "3,webgpu", found.join());
      return found.join(" on ");
    } finally {
      other.close();
    }
  });

  test("a service worker runs a network", SOFTWARE_GPU, async (open) => {
    copyFileSync(new URL("service.mjs", import.meta.url), join(site, "service.mjs"));
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.register("service.mjs", { type: "module" });
      await navigator.serviceWorker.ready;
      const ask = (backend) =>
        new Promise((resolve) => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = ({ data }) => resolve(data);
          registration.active.postMessage(backend, [port2]);
        });
      return [await ask("cpu"), await ask("webgpu")];
    });
    ensure(found[0] === "cpu 3", found.join(" AND "));
    ensure(/^webgpu 3$|this browser has no WebGPU|no GPU/.test(found[1]), found[1]);
    return found.join("; ");
  });

  test("ordinary networks need one file on a software GPU", SOFTWARE_GPU, async (open) => {
    mkdirSync(join(site, "others"), { recursive: true });
    const models = ["posenet_figures.tflite"];
    for (const path of others()) {
      copyFileSync(path, join(site, "others", path.split("/").pop()));
      models.push(`others/${path.split("/").pop()}`);
    }
    const page = await open("blank.html");
    const rows = [];
    for (const model of models) {
      begun();
      const said = await page.evaluate(async (model) => {
        const { Diptych } = await import("./diptych/index.js");
        try {
          const session = await Diptych.load(model, { backend: "webgpu", record: false });
          // What a model leaves open: one image, pixels of a picture, or samples of a sound. Whole numbers are a rate.
          const opened = session.inputs.flatMap(({ open }) => open);
          const batches = new Set(opened.filter(({ axis }) => axis === 0).map(({ name }) => name));
          const inputs = session.inputs.map(({ name, dims, dtype, open }) => {
            const extents = [...dims];
            open.forEach(({ axis, name }) => (extents[axis] = batches.has(name) ? 1 : dims.length === 4 ? 320 : 512));
            const one = dtype === "f32" || dtype === "f16" ? 0 : 16000;
            return [name, { data: new Array(extents.reduce((a, b) => a * b, 1)).fill(one), dims: extents }];
          });
          await session.run(Object.fromEntries(inputs));
          await session.free();
          return "ran";
        } catch (error) {
          return error.message.slice(0, 120);
        }
      }, model);
      const late = modules().split(" ").filter((name) => /_rest|full/.test(name));
      rows.push([model, said, late.join(" ")]);
    }
    const late = rows.filter(([, , late]) => late);
    const told = rows.map((row) => row.join(": ")).join("\n    ");
    ensure(!late.length, `a second file is fetched by\n    ${late.map((row) => row.join(": ")).join("\n    ")}\n    of\n    ${told}`);
    return told;
  });
}
