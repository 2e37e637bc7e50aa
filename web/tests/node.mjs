// Runs of the package in Node, on the CPU, and calls that fail: what takes no browser.
//
//   node node.mjs SITE

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { serve } from "../serve.mjs";
import { calls } from "./calls.mjs";
import { extents } from "./extents.mjs";

const site = resolve(process.argv[2]);
const server = await serve(site);
const { Diptych } = await import(pathToFileURL(`${site}/diptych/index.js`));
console.log(await extents(Diptych, { backend: "cpu", wasm: `http://127.0.0.1:${server.address().port}/diptych/wasm/` }));
server.close();
console.log(await calls(site));
