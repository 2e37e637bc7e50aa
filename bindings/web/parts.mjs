// What a module is made of: the code of each crate, and of each module of diptych, in kB before compression; in the first
// file, and in the one that few models need. Then the whole, and what each costs when compressed, as its share.
//
//   node parts.mjs FOLDER NAME
//
// FOLDER/NAME_bg.wasm has the names of its functions, as `scripts/web build` leaves it in target/web/modules/NAME.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { digest, plain, rareIn } from "./names.mjs";

const [folder, name] = process.argv.slice(2);
const bytes = readFileSync(join(folder, `${name}_bg.wasm`));
const rare = rareIn(name);

let at = 8;
function number() {
  let [value, shift] = [0, 0];
  for (;;) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    shift += 7;
    if (byte < 128) {
      return value;
    }
  }
}
const text = () => {
  const length = number();
  return bytes.toString("utf8", at, (at += length));
};

let [imported, data] = [0, 0];
const bodies = [];
const names = new Map();
while (at < bytes.length) {
  const id = bytes[at++];
  const end = number() + at;
  if (id === 2) {
    for (let left = number(); left > 0; left -= 1) {
      text();
      text();
      const kind = bytes[at++];
      imported += kind === 0;
      if (kind === 2 || kind === 1) {
        at += kind === 1 ? 1 : 0;
        const limits = number();
        number();
        limits & 1 && number();
      } else if (kind === 0) {
        number();
      } else {
        at += 2;
      }
    }
  } else if (id === 10) {
    for (let left = number(); left > 0; left -= 1) {
      const length = number();
      bodies.push([at, length]);
      at += length;
    }
  } else if (id === 11) {
    data = end - at;
  } else if (id === 0 && text() === "name") {
    while (at < end) {
      const kind = bytes[at++];
      const last = number() + at;
      if (kind === 1) {
        for (let left = number(); left > 0; left -= 1) {
          names.set(number(), text());
        }
      }
      at = last;
    }
  }
  at = end;
}

/** The crate of a function; of diptych the module, and of `ops` whether it is a plan for a GPU or computes on the CPU. */
function partOf(name) {
  const path = /([a-z_0-9]+)(?:\[[0-9a-f]+\])?::([a-z_0-9]+)?(?:::([a-z_0-9]+))?(?:::([a-z_0-9]+))?/.exec(name);
  if (!path) {
    return "unnamed";
  }
  const [, crate, module, inner, file] = path;
  if (crate !== "diptych") {
    return crate;
  }
  const own = module === "ops" ? (/^(cpu|rows|windows)$/.test(file) ? "ops, on the CPU" : "ops") : module === "model" ? `model::${inner}` : module;
  return `diptych::${own}`;
}

const sums = new Map();
bodies.forEach(([, length], index) => {
  const name = plain(`$${names.get(index + imported) ?? ""}`);
  const part = partOf(name);
  const sum = sums.get(part) ?? sums.set(part, [0, 0]).get(part);
  sum[rare.has(digest(name)) ? 1 : 0] += length;
});
const code = bodies.reduce((sum, [, length]) => sum + length, 0);
const packed = gzipSync(bytes.subarray(0, bodies.at(-1)[0] + bodies.at(-1)[1] + data), { level: 9 }).length;
const kB = (count) => (count / 1000).toFixed(0).padStart(7);
console.log(`${"part".padEnd(34)}  first   rest  compressed, in the first`);
for (const [part, [first, rest]] of [...sums].sort(([, a], [, b]) => b[0] - a[0])) {
  console.log(`${part.padEnd(34)}${kB(first)}${kB(rest)}${kB((first * packed) / (code + data))}`);
}
console.log(`${"data: texts, tables".padEnd(34)}${kB(data)}      0${kB((data * packed) / (code + data))}`);
