// Weights that an ONNX model keeps in files beside it.

import { bytesOf } from "./bytes.js";
import { addressOf } from "./files.js";

/** The fields of a message of Protocol Buffers: their numbers with their bytes, those that are not bytes left out. */
function* fields(bytes) {
  let at = 0;
  const number = () => {
    let [value, scale] = [0, 1];
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined) {
        throw new RangeError("the message ends too early");
      }
      value += (byte & 127) * scale;
      scale *= 128;
      if (byte < 128) {
        return value;
      }
    }
  };
  while (at < bytes.length) {
    const key = number();
    const type = key % 8;
    if (type === 0) {
      number();
    } else if (type === 1 || type === 5) {
      at += type === 1 ? 8 : 4;
    } else if (type === 2) {
      const length = number();
      yield [Math.floor(key / 8), bytes.subarray(at, at + length)];
      at += length;
    } else {
      return;
    }
  }
}

const only = function* (bytes, wanted) {
  for (const [number, value] of fields(bytes)) {
    if (number === wanted) {
      yield value;
    }
  }
};

const text = (bytes) => new TextDecoder().decode(bytes);

/** Where a tensor keeps its elements, if in another file. */
function* locationsOfTensor(tensor) {
  for (const pair of only(tensor, 13)) {
    const [key, value] = [1, 2].map((number) => text(only(pair, number).next().value ?? new Uint8Array()));
    if (key === "location") {
      yield value;
    }
  }
}

/** Those of the initialisers of a graph, of its nodes' tensors and of the graphs in these. */
function* locationsOfGraph(graph) {
  for (const [number, value] of fields(graph)) {
    if (number === 5) {
      yield* locationsOfTensor(value);
    } else if (number === 1) {
      for (const attribute of only(value, 5)) {
        for (const [kind, own] of fields(attribute)) {
          if (kind === 5) {
            yield* locationsOfTensor(own);
          } else if (kind === 6) {
            yield* locationsOfGraph(own);
          }
        }
      }
    }
  }
}

/** The files beside it that an ONNX model names. A model that cannot be read names none: its reader says why. */
export function locationsOf(model) {
  const found = new Set();
  try {
    for (const graph of only(model, 7)) {
      for (const location of locationsOfGraph(graph)) {
        found.add(location);
      }
    }
  } catch {
    return [];
  }
  return [...found];
}

/** Where a file beside the model is, if the model has an address. */
function beside(location, model) {
  const own = model instanceof Response ? model.url : model;
  if (!(typeof own === "string" || own instanceof URL) || own === "") {
    return undefined;
  }
  const full = addressOf(own);
  // There is nothing beside an address such as blob: or data:.
  if (["blob:", "data:"].includes(full.protocol)) {
    return undefined;
  }
  const base = new URL(".", full);
  const address = new URL(location.split("/").map(encodeURIComponent).join("/"), base);
  return address.href.startsWith(base.href) ? address : undefined;
}

/** The bytes of all files that a model names: those that are given, and those that lie beside it. */
export async function externalOf(model, bytes, given = {}, { signal, onProgress }) {
  const locations = locationsOf(bytes);
  for (const name of Object.keys(given)) {
    if (!locations.includes(name)) {
      const has = locations.length ? `the model names ${locations.map((name) => `"${name}"`).join(", ")}` : "the model names none";
      throw new Error(`externalData: found "${name}", but ${has}`);
    }
  }
  const files = locations.map((location) => [location, Object.hasOwn(given, location) ? given[location] : beside(location, model)]);
  for (const [location, source] of files) {
    if (source === undefined) {
      const how = `externalData: { ${JSON.stringify(location)}: its URL or bytes }`;
      throw new Error(`model: it keeps weights in the file "${location}", wanted ${how}`);
    }
  }
  return Promise.all(
    files.map(async ([location, source]) => [location, await bytesOf(source, { what: `externalData "${location}"`, signal, onProgress })]),
  );
}
