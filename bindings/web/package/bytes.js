// The bytes of a model.

import { checkAnswer, responseOf } from "./files.js";

/** How many bytes tell the format. */
const FIRST = 8;

/** What ONNX files begin with: the number of one of the fields of their outermost message, with its type. */
const ONNX = new Set([0x08, 0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72, 0xa2, 0xca]);

/** `tflite` or `onnx`. An error that says what it is instead, as far as that can be told. */
export function formatOf(bytes, from = "model") {
  const text = String.fromCharCode(...bytes.subarray(0, 64));
  if (text.slice(4, 8) === "TFL3") {
    return "tflite";
  }
  if (/^\s*</.test(text)) {
    const [line] = text.trim().split("\n");
    throw new Error(`${from}: found a page of HTML or XML ("${line.slice(0, 40)}"), wanted a TensorFlow Lite or ONNX file`);
  }
  if (text.startsWith("version https://git-lfs")) {
    throw new Error(`${from}: found Git LFS's note of where the file is, wanted the file itself`);
  }
  if (text.startsWith("PK")) {
    throw new Error(`${from}: found a ZIP archive, wanted the TensorFlow Lite or ONNX file in it`);
  }
  if (bytes.length >= FIRST && ONNX.has(bytes[0])) {
    return "onnx";
  }
  const begin = [...bytes.subarray(0, FIRST)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const found = bytes.length ? `${bytes.length} bytes that begin with ${begin}` : "no bytes";
  throw new Error(`${from}: found ${found}, wanted a TensorFlow Lite or ONNX file`);
}

/** Of a URL, a Response, a Blob, an ArrayBuffer or a view of one. `onBegun` is given the first ones as they arrive. */
export async function bytesOf(model, { what = "model", signal, onProgress = () => {}, onBegun = () => {} } = {}) {
  if (model instanceof ArrayBuffer) {
    return new Uint8Array(model);
  }
  if (ArrayBuffer.isView(model)) {
    return new Uint8Array(model.buffer, model.byteOffset, model.byteLength);
  }
  if (typeof Blob !== "undefined" && model instanceof Blob) {
    return new Uint8Array(await model.arrayBuffer());
  }
  if (typeof model !== "string" && !(model instanceof URL) && !(model instanceof Response)) {
    throw new Error(`${what}: found ${typeof model}, wanted a URL, a Response, a Blob or bytes`);
  }
  const response = checkAnswer(what, model instanceof Response ? model : await responseOf(model, signal));
  if (!response.body) {
    return new Uint8Array(await response.arrayBuffer());
  }
  // With an encoding the length is that of what is sent, not of what arrives.
  const encoded = response.headers.get("content-encoding");
  const total = encoded ? 0 : Number(response.headers.get("content-length") ?? 0);
  const chunks = [];
  let done = 0;
  const reader = response.body.getReader();
  // A stream that gives nothing for long ends at once, too.
  const stop = () => reader.cancel(signal.reason).catch(() => {});
  signal?.addEventListener("abort", stop);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      chunks.push(next.value);
      if (done === 0 && next.value.length >= FIRST) {
        onBegun(next.value);
      }
      done += next.value.length;
      onProgress(done, total || undefined);
    }
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  signal?.throwIfAborted();
  const bytes = new Uint8Array(done);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
