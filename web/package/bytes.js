// The bytes of a model.

/** How many bytes tell the format. */
const FIRST = 8;

/** Of a URL, a Response, a Blob, an ArrayBuffer or a view of one. `onBegun` is given the first ones as they arrive. */
export async function bytesOf(model, onProgress, onBegun) {
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
    throw new Error(`model: found ${typeof model}, wanted a URL, a Response, a Blob or bytes`);
  }
  const response = model instanceof Response ? model : await fetch(model);
  if (!response.ok) {
    throw new Error(`model ${response.url}: the server says ${response.status} ${response.statusText}`.trim());
  }
  if (!response.body) {
    return new Uint8Array(await response.arrayBuffer());
  }
  // With an encoding the length is that of what is sent, not of what arrives.
  const encoded = response.headers.get("content-encoding");
  const total = encoded ? 0 : Number(response.headers.get("content-length") ?? 0);
  const chunks = [];
  let done = 0;
  const reader = response.body.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    chunks.push(next.value);
    if (done === 0 && next.value.length >= FIRST) {
      onBegun(next.value);
    }
    done += next.value.length;
    onProgress(done, total || undefined);
  }
  const bytes = new Uint8Array(done);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}
