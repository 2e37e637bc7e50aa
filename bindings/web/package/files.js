// Files by their addresses: fetched, or read where this is Node.

/** Node's file system; undefined in browsers. */
const system = () => globalThis.process?.getBuiltinModule?.("node:fs");

/** An address as a URL: relative to the page, or in Node to the working folder. */
export function addressOf(address) {
  if (address instanceof URL) {
    return address;
  }
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  if (base !== undefined) {
    return new URL(address, base);
  }
  const path = globalThis.process?.getBuiltinModule?.("node:path");
  const url = globalThis.process?.getBuiltinModule?.("node:url");
  return /^[a-z][a-z+.-]+:/i.test(address) || !url ? new URL(address) : url.pathToFileURL(path.resolve(address));
}

/** A Response of what lies at an address. */
export async function responseOf(address, signal) {
  const url = addressOf(address);
  if (url.protocol !== "file:" || !system()) {
    return fetch(url, { signal });
  }
  const bytes = await system().promises.readFile(url, { signal });
  const type = url.pathname.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(bytes, { headers: { "content-type": type, "content-length": String(bytes.length) } });
}

/** Whether a file can be read while a function waits for it. */
export const canReadAtOnce = (url) => typeof XMLHttpRequest !== "undefined" || (url.protocol === "file:" && Boolean(system()));

/** Its bytes, at once. */
export function readAtOnce(url) {
  if (typeof XMLHttpRequest === "undefined") {
    return system().readFileSync(url);
  }
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  // A page may not ask for bytes here, but a text of this charset has them.
  request.overrideMimeType("text/plain; charset=x-user-defined");
  request.send();
  if (request.status !== 200) {
    throw new Error(`${url}: ${request.status} ${request.statusText}`);
  }
  return Uint8Array.from(request.responseText, (character) => character.charCodeAt(0) & 0xff);
}

/** Refuses an answer that is no file: an error of the server, or a page in its place. */
export function checkAnswer(what, response) {
  const { ok, status, statusText, url } = response;
  if (!ok) {
    throw new Error(`${what} ${url}: the server says ${status} ${statusText}`.trim());
  }
  if (/^text\/html\b/.test(response.headers.get("content-type") ?? "")) {
    const why = "as servers do that have no such file and show their start page instead";
    throw new Error(`${what} ${url}: found a page of HTML, wanted a file; the server gave it with status ${status}, ${why}`);
  }
  return response;
}
