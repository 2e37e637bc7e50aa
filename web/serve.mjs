// Serves a folder: static files, as any web server would.
//
//   node serve.mjs FOLDER [PORT]

import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".png": "image/png",
  ".wasm": "application/wasm",
};

/** A server of `folder` on this machine; port 0 takes any that is free. */
export function serve(folder, port = 0) {
  const server = createServer(({ url }, response) => {
    const asked = normalize(decodeURIComponent(new URL(url, "http://localhost").pathname));
    const path = join(folder, asked.endsWith("/") ? `${asked}index.html` : asked);
    try {
      const { size } = statSync(path);
      response.writeHead(200, {
        "content-type": TYPES[extname(path)] ?? "application/octet-stream",
        "content-length": size,
        "cache-control": "no-cache",
      });
      createReadStream(path).pipe(response);
    } catch {
      response.writeHead(404, { "content-type": "text/plain" }).end("not found");
    }
  });
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, port = "8080"] = process.argv.slice(2);
  const server = await serve(folder, Number(port));
  console.log(`http://localhost:${server.address().port}/`);
}
