// What the functions and the data of a module refer to, as the linker says (its option --emit-relocs), for split.mjs.
//
//   node references.mjs strip LINKED STRIPPED
//       the module without what the linker says of it, which wasm-bindgen does not read
//   node references.mjs write LINKED MANGLED NAMED OUT
//       OUT becomes { symbols: [[address, size, [symbol...]]...], always: [symbol...], functions: { name: [[symbol...], [name...]] },
//       several: [name...] }: constants with the constants that they point to, constants that other data points to, functions with the
//       constants that they refer to and the functions that they call, and names that several functions have.
//       MANGLED and NAMED are what wasm-bindgen made with mangled and with readable names, functions in the same order
//
// The formats: https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md

import { readFileSync, writeFileSync } from "node:fs";
import { plain } from "./names.mjs";

/** Reads a module from its start. */
class Reader {
  constructor(bytes, at = 0) {
    Object.assign(this, { bytes, at });
  }

  byte() {
    return this.bytes[this.at++];
  }

  number() {
    let [value, factor, byte] = [0, 1, 128];
    while (byte >= 128) {
      byte = this.byte();
      value += (byte & 127) * factor;
      factor *= 128;
    }
    return value;
  }

  text() {
    const length = this.number();
    return this.bytes.toString("utf8", this.at, (this.at += length));
  }

  /** Calls `act` for each of as many things as a number says. */
  each(act) {
    for (let left = this.number(), index = 0; index < left; index += 1) {
      act(index);
    }
  }

  limits() {
    const flags = this.number();
    this.number();
    flags & 1 && this.number();
  }
}

/** The sections of a module: the kind, where each begins with its kind, where its contents do, and where it ends; its name. */
function sectionsOf(bytes) {
  const [found, reader] = [[], new Reader(bytes, 8)];
  while (reader.at < bytes.length) {
    const [from, id] = [reader.at, reader.byte()];
    const end = reader.number() + reader.at;
    const [start, name] = [reader.at, id === 0 ? reader.text() : undefined];
    found.push({ id, name, from, start, contents: reader.at, end });
    reader.at = end;
  }
  return found;
}

/** How many functions a module imports. */
function importsOf(bytes, section) {
  let count = 0;
  const reader = new Reader(bytes, section.start);
  reader.each(() => {
    reader.text();
    reader.text();
    const kind = reader.byte();
    count += kind === 0;
    if (kind === 0) {
      reader.number();
    } else if (kind === 1) {
      reader.byte();
      reader.limits();
    } else if (kind === 2) {
      reader.limits();
    } else {
      reader.at += 2;
    }
  });
  return count;
}

/** Names of a kind in a section `name`, by their numbers: 1 those of functions, 9 those of data. */
function namesOf(bytes, section, wanted) {
  const [found, reader] = [new Map(), new Reader(bytes, section.contents)];
  while (reader.at < section.end) {
    const kind = reader.byte();
    const end = reader.number() + reader.at;
    if (kind === wanted) {
      reader.each(() => found.set(reader.number(), reader.text()));
    }
    reader.at = end;
  }
  return found;
}

const DATA = 1;
const UNDEFINED = 0x10;
const NAMED = 0x40;

/** The linker's symbols: of data the segment, the place in it and the size. */
function symbolsOf(bytes, section) {
  const [found, reader] = [[], new Reader(bytes, section.contents)];
  reader.number();
  while (reader.at < section.end) {
    const kind = reader.byte();
    const end = reader.number() + reader.at;
    if (kind === 8) {
      reader.each(() => {
        const [of, flags] = [reader.byte(), reader.number()];
        if (of === DATA) {
          reader.text();
          const place = flags & UNDEFINED ? [] : [reader.number(), reader.number(), reader.number()];
          found.push({ of, segment: place[0], offset: place[1], size: place[2] });
        } else {
          const index = reader.number();
          found.push({ of, index });
          // A section has no name.
          of !== 3 && (flags & NAMED || !(flags & UNDEFINED)) && reader.text();
        }
      });
    }
    reader.at = end;
  }
  return found;
}

const WITH_ADDEND = new Set([3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 21, 22, 23, 25]);
const OF_MEMORY = new Set([3, 4, 5, 11, 14, 15, 16, 17, 23]);
const OF_CALLS = 0;

/** What a section refers to: the kind, where in its contents, and which symbol. */
function relocationsOf(bytes, section) {
  const [found, reader] = [[], new Reader(bytes, section.contents)];
  reader.number();
  reader.each(() => {
    const one = { kind: reader.byte(), at: reader.number(), symbol: reader.number() };
    WITH_ADDEND.has(one.kind) && reader.number();
    found.push(one);
  });
  return found;
}

/** The last of `starts`, which are in order, that is not after `at`. */
function lastBefore(starts, at) {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    starts[middle] <= at ? (low = middle + 1) : (high = middle);
  }
  return low - 1;
}

function strip(linked, stripped) {
  const bytes = readFileSync(linked);
  const kept = sectionsOf(bytes).filter(({ name = "" }) => name !== "linking" && !name.startsWith("reloc."));
  writeFileSync(stripped, Buffer.concat([bytes.subarray(0, 8), ...kept.map(({ from, end }) => bytes.subarray(from, end))]));
}

/** The readable name of each mangled one, as split.mjs compares them. */
function readable(mangled, named) {
  const [from, to] = [mangled, named].map((file) => {
    const bytes = readFileSync(file);
    return namesOf(bytes, sectionsOf(bytes).find(({ name }) => name === "name"), 1);
  });
  return new Map([...from].map(([index, name]) => [name, plain(`$${to.get(index)}`)]));
}

function write(linked, mangled, named, out) {
  const bytes = readFileSync(linked);
  const sections = sectionsOf(bytes);
  const one = (test) => sections.find(test);
  const imported = importsOf(bytes, one(({ id }) => id === 2));
  const names = one(({ name }) => name === "name");
  const [functionNames, segmentNames] = [namesOf(bytes, names, 1), namesOf(bytes, names, 9)];
  const symbols = symbolsOf(bytes, one(({ name }) => name === "linking"));

  // Where segments lie in memory, if the module itself puts them there, and in their section.
  const data = one(({ id }) => id === 11);
  const segments = [];
  const reader = new Reader(bytes, data.start);
  reader.each((index) => {
    const active = reader.number() === 0;
    const address = active ? (reader.byte(), reader.number()) : undefined;
    active && reader.byte();
    const length = reader.number();
    segments.push({ address, at: reader.at - data.start, constant: /^\.rodata/.test(segmentNames.get(index) ?? "") });
    reader.at += length;
  });

  // Constants: their numbers by those of their symbols, and in the order in which they lie in the section.
  const constants = [];
  const numbers = new Map();
  symbols.forEach(({ of, segment, offset, size }, symbol) => {
    const own = segments[segment];
    if (of === DATA && own?.constant && own.address !== undefined) {
      numbers.set(symbol, constants.length);
      constants.push({ address: own.address + offset, size, at: own.at + offset, to: new Set() });
    }
  });
  const inOrder = constants.map((_, number) => number).sort((a, b) => constants[a].at - constants[b].at);
  const starts = inOrder.map((number) => constants[number].at);
  const relocations = (of) => {
    const index = sections.indexOf(of);
    const found = sections.filter(({ name = "" }) => name.startsWith("reloc."));
    const own = found.find((section) => new Reader(bytes, section.contents).number() === index);
    return own ? relocationsOf(bytes, own) : [];
  };
  // A pointer that lies in no constant is in data that stays, and what it points to stays.
  const always = new Set();
  for (const { kind, at, symbol } of relocations(data)) {
    const to = numbers.get(symbol);
    if (OF_MEMORY.has(kind) && to !== undefined) {
      let [place, holders] = [lastBefore(starts, at), 0];
      // Constants may lie in others: texts that end alike are one.
      for (; place >= 0 && starts[place] > at - 65536; place -= 1) {
        const holder = constants[inOrder[place]];
        if (at < holder.at + holder.size) {
          holder.to.add(to);
          holders += 1;
        }
      }
      holders || always.add(to);
    }
  }

  const code = one(({ id }) => id === 10);
  const bodies = [];
  const body = new Reader(bytes, code.start);
  body.each(() => {
    const length = body.number();
    bodies.push(body.at - code.start);
    body.at += length;
  });
  const name = readable(mangled, named);
  const nameOf = (index) => name.get(functionNames.get(index)) ?? "";
  const [met, several] = [new Set(), new Set()];
  bodies.forEach((_, index) => {
    const own = nameOf(index + imported);
    (met.has(own) ? several : met).add(own);
  });
  const functions = new Map();
  for (const { kind, at, symbol } of relocations(code)) {
    const own = nameOf(lastBefore(bodies, at) + imported);
    const entry = functions.get(own) ?? functions.set(own, [new Set(), new Set()]).get(own);
    if (OF_MEMORY.has(kind) && numbers.has(symbol)) {
      entry[0].add(numbers.get(symbol));
    } else if (kind === OF_CALLS) {
      entry[1].add(nameOf(symbols[symbol].index));
    }
  }
  const told = {
    symbols: constants.map(({ address, size, to }) => [address, size, [...to]]),
    always: [...always],
    several: [...several],
    functions: Object.fromEntries([...functions].map(([name, entry]) => [name, entry.map((set) => [...set])])),
  };
  writeFileSync(out, JSON.stringify(told));
}

const [what, ...given] = process.argv.slice(2);
({ strip, write })[what]?.(...given);
