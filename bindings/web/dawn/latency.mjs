// The latency of the package on Dawn in Node, beside the command line's on wgpu, in turns.
//
//   node latency.mjs SITE DIPTYCH ROUNDS MODEL...
//
// SITE is what `scripts/web build` made, DIPTYCH the program. A line of JSON for each model: medians of the rounds' medians
// in ms, from a call of `run` with typed arrays to its outputs in typed arrays, and the time from the model's bytes to the
// first result.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { serve } from "../serve.mjs";
import { provideWebGpu } from "./node.mjs";

const [site, program, rounds, ...models] = process.argv.slice(2);
const RUNS = 200;
const FEW = 20;

provideWebGpu();
const server = await serve(resolve(site));
const { Diptych } = await import(pathToFileURL(resolve(site, "diptych/index.js")));
const options = { backend: "webgpu", record: false, wasm: `http://127.0.0.1:${server.address().port}/diptych/wasm/` };
await Diptych.probe(options);

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** The median of runs on Dawn. */
async function onDawn(session, inputs) {
  const times = [];
  for (let run = -FEW; run < RUNS; run += 1) {
    const begin = performance.now();
    await session.run(inputs);
    if (run >= 0) {
      times.push(performance.now() - begin);
    }
  }
  return median(times);
}

/** The same by the program. */
function onWgpu(model) {
  const given = ["run", model, "--backend", "wgpu", "--runs", `${FEW + RUNS}`, "--json"];
  const said = execFileSync(program, given, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return median(JSON.parse(said).times_ms.slice(FEW));
}

for (const model of models) {
  const bytes = new Uint8Array(readFileSync(model));
  const begin = performance.now();
  const session = await Diptych.load(bytes, options);
  const inputs = Object.fromEntries(
    session.inputs.map(({ name, dims }) => {
      const data = new Float32Array(dims.reduce((a, b) => a * b, 1)).fill(0.5);
      return [name, { data, dims }];
    }),
  );
  await session.run(inputs);
  const first = performance.now() - begin;
  const [dawn, wgpu] = [[], []];
  for (let round = 0; round < Number(rounds); round += 1) {
    dawn.push(await onDawn(session, inputs));
    wgpu.push(onWgpu(model));
  }
  const row = {
    model: basename(model),
    device: session.info.device.name,
    first: Number(first.toFixed(1)),
    dawn: Number(median(dawn).toFixed(3)),
    wgpu: Number(median(wgpu).toFixed(3)),
    dawnRounds: dawn.map((ms) => Number(ms.toFixed(3))),
    wgpuRounds: wgpu.map((ms) => Number(ms.toFixed(3))),
  };
  console.log(JSON.stringify({ ...row, ratio: Number((row.dawn / row.wgpu).toFixed(2)) }));
  await session.free();
}
server.close();
process.exit(0);
