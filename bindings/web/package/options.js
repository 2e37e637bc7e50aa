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

/** `; did you mean "x"?` for the nearest of the known words, if it differs in one letter, or in two of a longer word. */
export function near(word, known) {
  const [nearest] = [...known].sort((a, b) => apart(word, a) - apart(word, b));
  const letters = nearest === undefined ? Infinity : apart(word, nearest);
  const close = letters <= Math.min(2, Math.ceil(word.length / 3)) && letters < word.length;
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

/** Refuses inputs that are no object of them. */
export function checkInputs(of, inputs) {
  if (inputs === null || typeof inputs !== "object") {
    throw new TypeError(`${of}: found ${inputs === null ? "null" : typeof inputs}, wanted an object with a value for each input`);
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
  const { signal } = options;
  const seed = options.seed ?? 0;
  if (!((typeof seed === "bigint" || Number.isSafeInteger(seed)) && seed >= 0 && seed < 2n ** 64n)) {
    const said = typeof seed === "string" ? `"${seed}"` : String(seed);
    throw new TypeError(`seed: found ${said}, wanted a whole number from 0 to ${2n ** 64n - 1n}, beyond 2^53 as a bigint`);
  }
  if (signal !== undefined && signal !== null && typeof signal.addEventListener !== "function") {
    throw new TypeError(`signal: found ${typeof signal}, wanted an AbortSignal`);
  }
  if (options.device && options.backend === "cpu") {
    throw new TypeError('device: found a GPUDevice with backend "cpu"; leave out one of them');
  }
  oneOf("backend", options.backend, ["auto", "webgpu", "cpu"]);
  oneOf("precision", options.precision, ["f32", "f16s", "f16"]);
  const { threads } = options;
  if (threads !== undefined && !(Number.isInteger(threads) && threads >= 1 && threads <= 64)) {
    throw new TypeError(`threads: found ${threads}, wanted a whole number from 1 to 64`);
  }
}
