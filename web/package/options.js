// Options: their names and values, refused by name.

/** Letters to add, leave out or change to make one word of another. */
function apart(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...a.toLowerCase()].entries()) {
    const next = [at + 1];
    [...b.toLowerCase()].forEach((other, to) => {
      next.push(Math.min(next[to] + 1, row[to + 1] + 1, row[to] + (letter === other ? 0 : 1)));
    });
    row = next;
  }
  return row[b.length];
}

/** `; did you mean "x"?` for the nearest of the known words, if one is near. */
export function near(word, known) {
  const [nearest] = [...known].sort((a, b) => apart(word, a) - apart(word, b));
  const close = nearest !== undefined && apart(word, nearest) <= Math.max(2, word.length / 3);
  return close ? `; did you mean "${nearest}"?` : "";
}

/** Refuses options that `of` does not have. */
export function check(of, options, known) {
  if (options === null || typeof options !== "object") {
    throw new TypeError(`${of}: found ${options === null ? "null" : typeof options}, wanted an object of options`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      const guess = near(name, known) || ".";
      throw new TypeError(`${of}: option "${name}" is unknown${guess} The options are ${known.join(", ")}.`);
    }
  }
}

/** Refuses a value that is not one of these. */
export function oneOf(name, value, known) {
  if (value !== undefined && !known.includes(value)) {
    const words = known.map((word) => `"${word}"`);
    const said = typeof value === "string" ? `"${value}"` : String(value);
    const guess = typeof value === "string" ? near(value, known) : "";
    throw new TypeError(`${name}: found ${said}, wanted ${words.slice(0, -1).join(", ")} or ${words.at(-1)}${guess}`);
  }
}

const LOAD = [
  "backend", "device", "worker", "onProgress", "signal", "precision", "dequantize", "dimensions", "externalData", "seed",
  "record", "threads", "wasm",
];

/** Checks the options of `load`. */
export function checkLoad(options) {
  check("load", options, LOAD);
  oneOf("backend", options.backend, ["auto", "webgpu", "cpu"]);
  oneOf("precision", options.precision, ["f32", "f16s", "f16"]);
  const { threads } = options;
  if (threads !== undefined && !(Number.isInteger(threads) && threads >= 1 && threads <= 64)) {
    throw new TypeError(`threads: found ${threads}, wanted a whole number from 1 to 64`);
  }
}
