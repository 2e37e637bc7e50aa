// Serves a folder: static files, compressed, as a web server would.
//
//   node serve.mjs FOLDER [PORT]
//
// Pages are cross-origin isolated, so that the CPU has threads in them.

import { createReadStream, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { extname, join, normalize } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/plain; charset=utf-8",
  ".mjs": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".ts": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
};

/** What makes a page cross-origin isolated. */
export const ISOLATED = {
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-opener-policy": "same-origin",
};

const ENCODINGS = {
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes) => gzipSync(bytes, { level: 9 }),
};

/** What was compressed, until the file changes. */
const compressed = new Map();

function encoded(path, changed, encoding) {
  const key = `${encoding} ${path}`;
  if (compressed.get(key)?.changed !== changed) {
    compressed.set(key, { changed, bytes: ENCODINGS[encoding](readFileSync(path)) });
  }
  return compressed.get(key).bytes;
}

/**
 * A server of `folder` on this machine; port 0 takes any that is free. `headers` are sent with each file. `told` is called with
 * the path that is asked for and the bytes that are sent.
 */
export function serve(folder, port = 0, { headers = {}, told = () => {} } = {}) {
  const server = createServer(({ url, headers: asking }, response) => {
    const asked = normalize(decodeURIComponent(new URL(url, "http://localhost").pathname));
    const path = join(folder, asked.endsWith("/") ? `${asked}index.html` : asked);
    try {
      const file = statSync(path);
      if (!file.isFile()) {
        throw new Error("a folder");
      }
      const type = TYPES[extname(path)];
      const all = { ...headers, "content-type": type ?? "application/octet-stream", "cache-control": "no-cache" };
      const accepted = (asking["accept-encoding"] ?? "").split(",").map((word) => word.trim().split(";")[0]);
      const encoding = type && type !== "image/png" && Object.keys(ENCODINGS).find((name) => accepted.includes(name));
      if (encoding) {
        const bytes = encoded(path, file.mtimeMs, encoding);
        const way = { "content-encoding": encoding, "content-length": bytes.length, vary: "accept-encoding" };
        told(asked, bytes.length);
        response.writeHead(200, { ...all, ...way }).end(bytes);
        return;
      }
      told(asked, file.size);
      response.writeHead(200, { ...all, "content-length": file.size });
      createReadStream(path).pipe(response);
    } catch {
      response.writeHead(404, { ...headers, "content-type": "text/plain" }).end("not found");
    }
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, port = "8080"] = process.argv.slice(2);
  const server = await serve(folder, Number(port), { headers: ISOLATED });
  console.log(`http://localhost:${server.address().port}/`);
}
