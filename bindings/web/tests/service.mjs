// A service worker that runs the smallest network.

import { Diptych } from "./diptych/service-worker.js";
import { tiny } from "./tiny.mjs";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("message", ({ data: backend, ports: [port] }) => {
  const run = async () => {
    const session = await Diptych.load(tiny(), { backend });
    const { y } = await session.run({ x: new Float32Array(64).fill(3) });
    return `${session.info.backend} ${y[63]}`;
  };
  run().then((text) => port.postMessage(text), ({ message }) => port.postMessage(message));
});
