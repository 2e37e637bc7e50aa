// Divides a module in two: what most models need, and the rest, which is loaded when one of its functions is first called
// (package/rest.js).
//
//   node split.mjs divide FOLDER NAME FEATURES...
//       NAME_bg.wasm, as wasm-bindgen and wasm-opt made it with the names of its functions, becomes that and NAME_rest.wasm.
//       Constants to which rare functions alone refer, by NAME_references.json (references.mjs), are in the latter
//       With PLAIN=1 in the environment they also become NAME_plain_bg.wasm and NAME_plain_rest.wasm, without relaxed SIMD.
//   node split.mjs count FOLDER NAME FEATURES...
//       NAME_bg.wasm tells which of its functions are called: globalThis.calledFunctions[NAME]
//
// FEATURES are what browsers have, as Binaryen's tools are told.
//
// Functions are rare that `rare.txt` lists, by digests of their names, with the modules in which they are rare if they are not in
// each; `scripts/web rare` writes it. What it does not list is not rare.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { digest, plain, rareIn } from "./names.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [what, folder, name, ...features] = process.argv.slice(2);

function binaryen(tool, ...words) {
  const given = [join(here, "node_modules/binaryen/bin", tool), ...features, ...words];
  execFileSync(process.execPath, given, { stdio: ["ignore", "inherit", "inherit"] });
}

const NAME = String.raw`\$(?:"(?:[^"\\]|\\.)*"|[^\s()]+)`;

/** The parts of a module's text, each from its line to the next one's. */
function parts(text) {
  const lines = text.split("\n");
  const found = [];
  for (const line of lines.slice(1, lines.lastIndexOf(")"))) {
    if (line.startsWith(" (")) {
      found.push(line);
    } else {
      found[found.length - 1] += `\n${line}`;
    }
  }
  return found.map((text) => ({ text, kind: /^ \((\w+)/.exec(text)[1], name: new RegExp(`^ \\(\\w+ (${NAME})`).exec(text)?.[1] }));
}

/** What a function's text calls or refers to. */
function references(text) {
  const found = text.matchAll(new RegExp(`\\((?:return_call|call|ref\\.func) (${NAME})`, "g"));
  return new Set([...found].map((match) => match[1]));
}

/** A function's parameters and results. */
function signature({ text }) {
  const [line] = text.split("\n", 1);
  const types = line.match(/\((?:param|result) [^()]*\)/g) ?? [];
  return types.map((type) => type.replace(/\$\S+ /, "")).join(" ");
}

function read(folder, name) {
  const wasm = join(folder, `${name}_bg.wasm`);
  const text = join(folder, `${name}.wat`);
  binaryen("wasm-dis", wasm, "-o", text);
  const found = parts(readFileSync(text, "utf8"));
  rmSync(text);
  return found;
}

/** What makes a module small; names go. */
const SMALL = ["-Oz", "--low-memory-unused", "--strip-debug", "--strip-producers"];

/**
 * A text without relaxed SIMD, in which everything gives what relaxed SIMD gives on some machine: multiplications and additions one
 * after the other, and of two numbers one of which is NaN the first.
 */
function plainly(text) {
  const found = text
    .replace(/\(f32x4\.relaxed_madd(?=\s)/g, "(call $relaxed_madd")
    .replace(/\((f32x4|f64x2)\.relaxed_(min|max)(?=\s)/g, "($1.p$2");
  const other = /\(\w+x\d+\.relaxed_\w+/.exec(found);
  if (other) {
    throw new Error(`found ${other[0].slice(1)}, wanted no instruction of relaxed SIMD but madd, min and max`);
  }
  return found;
}

/** What it calls then, which wasm-opt puts in its place. */
const MADD = ` (func $relaxed_madd (param v128 v128 v128) (result v128)
  (f32x4.add (f32x4.mul (local.get 0) (local.get 1)) (local.get 2)))`;

function write(folder, file, forms, passes) {
  writeText(folder, file, forms, passes);
  if (process.env.PLAIN) {
    const plain = [...forms.map(plainly), MADD];
    writeText(folder, file.replace(/_(?=\w+$)/, "_plain_"), plain, ["--inlining-optimizing", "--always-inline-max-function-size=20", ...passes]);
  }
}

function writeText(folder, file, forms, passes) {
  const text = join(folder, `${file}.wat`);
  const wasm = join(folder, `${file}.wasm`);
  writeFileSync(text, `(module\n${forms.join("\n")}\n)\n`);
  binaryen("wasm-as", "-g", text, "-o", wasm);
  rmSync(text);
  if (passes) {
    binaryen("wasm-opt", ...passes, wasm, "-o", wasm);
  }
}

/** Changes what wasm-bindgen wrote, which must have each of these texts, and puts `head` before it. */
function change(folder, name, head, changes) {
  const file = join(folder, `${name}.js`);
  let text = head + readFileSync(file, "utf8");
  for (const [from, to] of changes) {
    const changed = text.replaceAll(from, to);
    if (changed === text) {
      throw new Error(`${file}: found no "${from}"; wasm-bindgen writes otherwise now`);
    }
    text = changed;
  }
  writeFileSync(file, text);
}

const short = (number) => number.toString(36);

/** Short names for what JavaScript gives a module: wasm-bindgen's have digits that compress to half their length. */
function shorten(imports) {
  const changes = [];
  imports.forEach((form, at) => {
    form.text = form.text.replace(/" "(\w+)"/, (_, long) => {
      changes.push([`\n        ${long}: `, `\n        _${short(at)}: `]);
      return `" "_${short(at)}"`;
    });
  });
  return changes;
}

/** Bytes as a text of WebAssembly has them, and back. */
const escaped = (bytes) => [...bytes].map((byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");
const ESCAPES = { t: 9, n: 10, r: 13, '"': 34, "'": 39, "\\": 92 };
const unescaped = (text) =>
  Buffer.from(
    text.replace(/\\([0-9a-f]{2}|.)/g, (_, code) => String.fromCharCode(code.length === 2 ? parseInt(code, 16) : ESCAPES[code])),
    "latin1",
  );

/**
 * The constants that no function of `kept` refers to, by what the linker said, as references.mjs writes it. A function that is no
 * longer there was taken into those that called it, and so may be one of several of a name.
 */
function constantsOfOthers({ symbols, always, functions, several }, kept, all) {
  const there = new Set(all.map(({ name }) => plain(name)));
  several.forEach((name) => there.delete(name));
  const keep = new Set();
  const left = [...always];
  const seen = new Set();
  const add = (name) => {
    if (seen.has(name)) {
      return;
    }
    seen.add(name);
    // Functions of one name have numbers after it.
    const [constants, calls] = functions[name] ?? functions[name.replace(/_\d+$/, "")] ?? [[], []];
    left.push(...constants);
    calls.filter((called) => !there.has(called)).forEach(add);
  };
  add("");
  kept.forEach((form) => add(plain(form.name)));
  // What was taken over from a function, or given to one by all who call it, is in its text: an address within a constant.
  const inOrder = symbols.map((_, number) => number).sort((a, b) => symbols[a][0] - symbols[b][0]);
  const addresses = Uint32Array.from(inOrder, (number) => symbols[number][0]);
  const [least, most] = [addresses[0], Math.max(...symbols.map(([address, size]) => address + size))];
  const longest = Math.max(...symbols.map(([, size]) => size));
  for (const { text } of kept) {
    for (const [, digits] of text.matchAll(/(?:i32\.const |offset=)(\d+)/g)) {
      const address = Number(digits);
      if (address < least || address > most) {
        continue;
      }
      let [low, high] = [0, addresses.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        addresses[middle] <= address ? (low = middle + 1) : (high = middle);
      }
      for (let place = low - 1; place >= 0 && addresses[place] + longest > address; place -= 1) {
        const [start, size] = symbols[inOrder[place]];
        start + size > address && left.push(inOrder[place]);
      }
    }
  }
  while (left.length) {
    const number = left.pop();
    if (!keep.has(number)) {
      keep.add(number);
      left.push(...symbols[number][2]);
    }
  }
  const [mine, others] = [[], []];
  symbols.forEach((symbol, number) => (keep.has(number) ? mine : others).push(symbol));
  return { mine, others };
}

/** The constants of a module, those of rare functions apart: parts of its text for both files. */
function constantsApart(data, told, kept, all) {
  const read = ({ text }) => /^ \(data \S+ \(i32\.const (\d+)\) "(.*)"\)$/s.exec(text);
  const segments = data.map(read);
  if (!told?.symbols.length || segments.some((found) => !found)) {
    return [data.map(({ text }) => text), []];
  }
  const { mine, others } = constantsOfOthers(told, kept, all);
  const parts = segments.map(([, start, text]) => ({ start: Number(start), bytes: unescaped(text) }));
  const [first, end] = [Math.min(...parts.map(({ start }) => start)), Math.max(...parts.map(({ start, bytes }) => start + bytes.length))];
  const moved = new Uint8Array(end - first);
  others.forEach(([address, size]) => moved.fill(1, Math.max(address - first, 0), Math.max(address + size - first, 0)));
  mine.forEach(([address, size]) => moved.fill(0, Math.max(address - first, 0), Math.max(address + size - first, 0)));
  const rest = [];
  for (const { start, bytes } of parts) {
    let run;
    for (let place = 0; place <= bytes.length; place += 1) {
      const goes = place < bytes.length && moved[start + place - first] === 1;
      if (goes && run === undefined) {
        run = place;
      } else if (!goes && run !== undefined) {
        const own = bytes.subarray(run, place);
        own.some((byte) => byte !== 0) && rest.push(` (data (i32.const ${start + run}) "${escaped(own)}")`);
        own.fill(0);
        run = undefined;
      }
    }
  }
  // Without names: wasm-opt gives others, of which two may be alike.
  return [parts.map(({ start, bytes }) => ` (data (i32.const ${start}) "${escaped(bytes)}")`), rest];
}

function divide(folder, name) {
  const forms = read(folder, name);
  const of = (kind) => forms.filter((form) => form.kind === kind);
  const shortened = shorten(of("import"));
  const listed = rareIn(name);
  const exported = new Set(of("export").map(({ text }) => new RegExp(`\\(func (${NAME})\\)`).exec(text)?.[1]));
  // Vectors do not go through JavaScript, by way of which the rest is called.
  const isRare = (form) => listed.has(digest(plain(form.name))) && !exported.has(form.name) && !signature(form).includes("v128");
  const functions = of("func");
  const rare = functions.filter(isRare);
  const kept = functions.filter((form) => !rare.includes(form));
  const rareNames = new Map(rare.map((form) => [form.name, form]));
  const keptNames = new Map(kept.map((form) => [form.name, form]));

  const wantedOf = (from) => new Set(from.flatMap((form) => [...references(form.text)]));
  const table = of("elem").flatMap(({ text }) => text.match(new RegExp(NAME, "g")));
  const fromKept = [...new Set([...wantedOf(kept), ...table])].filter((name) => rareNames.has(name));
  const fromRare = [...wantedOf(rare)].filter((name) => keptNames.has(name));
  const linker = join(folder, `${name}_references.json`);
  const told = existsSync(linker) ? JSON.parse(readFileSync(linker, "utf8")) : undefined;
  const [constants, constantsOfRest] = constantsApart(of("data"), told, kept, functions);
  const globals = of("global");
  const type = ({ text }) => /\(mut \w+\)|(?<= )\w+(?= \()/.exec(text)[0];
  const limits = ({ text }) => text.trim().replace(/^\(\w+ \S+ |\)$/g, "");

  write(
    folder,
    `${name}_bg`,
    [
      ...of("type").concat(of("rec"), of("import")).map(({ text }) => text),
      ...fromKept.map((name, at) => ` (import "rest" "${short(at)}" (func ${name} ${signature(rareNames.get(name))}))`),
      ...globals.map(({ text }) => text),
      ...of("memory").map(({ text }) => text),
      ...constants,
      ...["table", "elem", "start", "export"].flatMap(of).map(({ text }) => text),
      ...globals.map(({ name }, at) => ` (export "g${at}" (global ${name}))`),
      ...of("table").map(({ name }, at) => ` (export "t${at}" (table ${name}))`),
      ...fromRare.map((name, at) => ` (export "${short(at)}_" (func ${name}))`),
      ...kept.map(({ text }) => text),
    ],
    SMALL,
  );
  write(
    folder,
    `${name}_rest`,
    [
      ...of("type").concat(of("rec"), of("import")).map(({ text }) => text),
      ...of("memory").map((form) => ` (import "main" "memory" (memory ${form.name} ${limits(form)}))`),
      ...constantsOfRest,
      ...of("table").map((form, at) => ` (import "main" "t${at}" (table ${form.name} ${limits(form)}))`),
      ...globals.map((form, at) => ` (import "main" "g${at}" (global ${form.name} ${type(form)}))`),
      ...fromRare.map((name, at) => ` (import "main" "${short(at)}_" (func ${name} ${signature(keptNames.get(name))}))`),
      ...fromKept.map((name, at) => ` (export "${short(at)}" (func ${name}))`),
      ...rare.map(({ text }) => text),
    ],
    SMALL,
  );
  const head = [
    'import { Rest } from "../rest.js";',
    `export const main = new URL("${name}_bg.wasm", import.meta.url);`,
    `export const rest = new Rest(new URL("${name}_rest.wasm", import.meta.url));`,
    ...(process.env.PLAIN
      ? [
          `export const plain = new URL("${name}_plain_bg.wasm", import.meta.url);`,
          `export const plainRest = new URL("${name}_plain_rest.wasm", import.meta.url);`,
        ]
      : []),
    "",
  ].join("\n");
  change(folder, name, head, [
    ["queueMicrotask(arg0);", "queueMicrotask(rest.task(arg0));"],
    ...shortened,
    [`module_or_path = new URL('${name}_bg.wasm', import.meta.url);`, "module_or_path = main;"],
    // A module whose memory is shared is given the memory, and the size of a stack.
    [/const imports = __wbg_get_imports\((memory)?\);/g, "const imports = rest.with(__wbg_get_imports($1));"],
    [/return __wbg_finalize_init\(instance, module(.*)\);/g, "return __wbg_finalize_init(rest.of(instance), module$1);"],
  ]);
  console.log(`${name}: ${rare.length} of ${functions.length} functions are in the rest`);
}

function count(folder, name) {
  const forms = read(folder, name);
  const names = [];
  const counted = forms.map(({ kind, name, text }) => {
    if (kind !== "func") {
      return text;
    }
    const lines = text.split("\n");
    const body = lines.findIndex((line, at) => at > 0 && !line.startsWith("  (local "));
    lines.splice(body, 0, `  (call $called (i32.const ${names.push(name) - 1}))`);
    return lines.join("\n");
  });
  const first = forms.findIndex(({ kind }) => kind === "import");
  counted.splice(first, 0, ' (import "count" "called" (func $called (param i32)))');
  write(folder, `${name}_bg`, counted);
  const sizes = forms.filter(({ kind }) => kind === "func").map(({ text }) => text.split("\n").length);
  writeFileSync(join(folder, `${name}_functions.json`), JSON.stringify(names.map((name, at) => [plain(name), sizes[at]])));
  // A helper of the module `threads` stays in one function: what it calls is told to the page.
  const head = `export const main = new URL("${name}_bg.wasm", import.meta.url);
const numbers = ((globalThis.calledFunctions ??= {}).${name} ??= new Set());
const helpers = new BroadcastChannel("called functions of ${name}");
helpers.onmessage = ({ data }) => numbers.add(data);
helpers.unref?.();
const note = (number) => {
  if (!numbers.has(number)) {
    numbers.add(number);
    typeof WorkerGlobalScope === "function" && helpers.postMessage(number);
  }
};
`;
  const called = "{ called: note }";
  change(folder, name, head, [
    [/const imports = __wbg_get_imports\((memory)?\);/g, `const imports = { ...__wbg_get_imports($1), count: ${called} };`],
  ]);
}

({ divide, count })[what]?.(folder, name);
