// Names of functions as `rare.txt` has them.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The crates of the library: a function's digest stays what it is when the function goes from one to another. */
const CRATES = /\bdiptych_(base|emit|kernels|device|graph|import)\b/g;

/** A name without what tells one build from another. */
export function plain(name) {
  const bare = name.slice(1).replace(/^"|"$/g, "");
  const text = bare.replace(/\\([0-9a-f]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
  return text.replace(/\[[0-9a-f]{8,16}\]/g, "").replace(/::h[0-9a-f]{16}$/, "").replace(CRATES, "diptych");
}

/** A plain name as `rare.txt` has it: names are long. */
export const digest = (name) => createHash("sha256").update(name).digest("hex").slice(0, 10);

/** The digests of the functions that are rare in a module. */
export function rareIn(module) {
  const lines = readFileSync(new URL("rare.txt", import.meta.url), "utf8").trim().split("\n");
  const named = lines.map((line) => line.split(" "));
  return new Set(named.filter(([, ...modules]) => !modules.length || modules.includes(module)).map(([digest]) => digest));
}
