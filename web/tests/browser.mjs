// Drives the page and the package in headless Chromium, on SwiftShader's WebGPU and on the CPU.
//
//   node browser.mjs SITE [FILTER]

import { copyFileSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Chromium, NO_GPU, SOFTWARE_GPU } from "./chromium.mjs";
import { serve } from "../serve.mjs";

const [site, filter = ""] = process.argv.slice(2);
const here = dirname(import.meta.filename);
const wanted = JSON.parse(readFileSync(join(here, "figure.json"), "utf8"));
copyFileSync(join(here, "figure.png"), join(site, "figure.png"));

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

const errorsOf = (page) => page.evaluate(() => [...globalThis.page.state.errors, document.getElementById("error").textContent]);

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

for (const [what, flags, backend] of [["WebGPU", SOFTWARE_GPU, "webgpu"], ["the CPU", NO_GPU, "cpu"]]) {
  test(`the page finds the people on ${what}`, flags, async (open) => {
    const page = await open("");
    const found = await peopleInFigure(page);
    const used = await page.evaluate(() => globalThis.page.state.lane.session.info.backend);
    ensure(used === backend, `runs on ${used}, wanted ${backend}`);
    return compare(found);
  });
}

test("without WebGPU a sentence says so", NO_GPU, async (open) => {
  const page = await open("");
  await ready(page);
  const note = await page.evaluate(() => document.getElementById("note").textContent);
  ensure(/no WebGPU here.*CPU/.test(note), `the page says ${note}`);
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
    await page.until("an error", () => !document.getElementById("error").hidden);
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

const server = await serve(site);
const address = `http://localhost:${server.address().port}/`;
let failed = 0;
const chosen = tests.filter(({ name }) => name.includes(filter));
for (const { name, flags, act } of chosen) {
  const browser = new Chromium(flags);
  const start = Date.now();
  let pages = [];
  try {
    const said = await act(async (query, size) => {
      const page = await browser.page(address + query, size);
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
server.close();
console.log(`${chosen.length - failed} of ${chosen.length} tests passed`);
process.exit(failed || !chosen.length ? 1 : 0);
