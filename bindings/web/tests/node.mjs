// Runs of the package in Node, on the CPU, and calls that fail: what takes no browser.
//
//   node node.mjs SITE

import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { serve } from "../serve.mjs";
import { calls } from "./calls.mjs";
import { extents } from "./extents.mjs";

const site = resolve(process.argv[2]);
const server = await serve(site);
const { Diptych } = await import(pathToFileURL(`${site}/diptych/index.js`));
console.log(await extents(Diptych, { backend: "cpu", wasm: `http://127.0.0.1:${server.address().port}/diptych/wasm/` }));
server.close();
console.log(await calls(site));

// What `scripts/web serve` runs sends the headers without which the CPU has one thread.
const serving = spawn(process.execPath, [fileURLToPath(new URL("../serve.mjs", import.meta.url)), site, "0"]);
try {
  const [line] = await once(serving.stdout.setEncoding("utf8"), "data");
  for (const path of ["", "diptych/helper.js", "no-such-file"]) {
    const { headers } = await fetch(`${line.trim()}${path}`);
    const sent = ["cross-origin-opener-policy", "cross-origin-embedder-policy"].map((name) => headers.get(name)).join(" ");
    if (sent !== "same-origin require-corp") {
      throw new Error(`scripts/web serve sends ${sent} with "${path}", wanted same-origin require-corp`);
    }
  }
  console.log("what scripts/web serve sends makes pages cross-origin isolated");
} finally {
  serving.kill();
}
