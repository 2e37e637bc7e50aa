// A headless Chromium, driven by its debugging protocol through a pipe.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless=new",
  "--remote-debugging-pipe",
  "--no-first-run",
  "--disable-background-timer-throttling",
  "--disable-renderer-backgrounding",
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
  "--js-flags=--expose-gc",
  "--enable-precise-memory-info",
];

/** WebGPU without a GPU: SwiftShader, which Chromium brings. */
export const SOFTWARE_GPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"];
export const NO_GPU = ["--disable-features=WebGPU", "--disable-gpu", "--disable-blink-features=WebGPU"];

export class Chromium {
  #process;
  #profile = mkdtempSync(join(tmpdir(), "chromium-"));
  #calls = new Map();
  #listeners = [];
  #count = 0;
  #rest = "";

  constructor(flags) {
    // Its sandbox cannot be used by root.
    const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const all = [...FLAGS, ...sandbox, ...flags, `--user-data-dir=${this.#profile}`, "about:blank"];
    this.#process = spawn(process.env.CHROMIUM ?? "chromium", all, {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    this.#process.on("exit", (code) => {
      for (const { reject } of this.#calls.values()) {
        reject(new Error(`Chromium ended (${code})`));
      }
      this.#calls.clear();
    });
    this.#process.on("error", (error) => {
      console.error(`Chromium does not start: ${error.message}`);
      process.exit(1);
    });
    this.#process.stdio[4].setEncoding("utf8").on("data", (text) => this.#read(text));
  }

  #read(text) {
    const messages = (this.#rest + text).split("\0");
    this.#rest = messages.pop();
    for (const message of messages.map((text) => JSON.parse(text))) {
      const call = this.#calls.get(message.id);
      this.#calls.delete(message.id);
      if (message.error) {
        call?.reject(new Error(message.error.message));
      } else if (call) {
        call.resolve(message.result);
      } else {
        this.#listeners.forEach((listen) => listen(message));
      }
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#count;
    const answer = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return answer;
  }

  /** A page at an address, of this size. */
  async page(url, { width = 1280, height = 900 } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const send = (method, params) => this.send(method, params, sessionId);
    const said = [];
    this.#listeners.push(({ sessionId: of, method, params }) => {
      if (of !== sessionId) {
        return;
      }
      if (method === "Runtime.exceptionThrown") {
        const { exception, text } = params.exceptionDetails;
        said.push(exception?.description ?? text);
      } else if (method === "Runtime.consoleAPICalled") {
        said.push(params.args.map((argument) => argument.value ?? argument.description).join(" "));
      }
    });
    await send("Runtime.enable");
    await send("Page.enable");
    await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await send("Page.navigate", { url });
    return {
      said,
      send,
      /** What a function of the page's gives, with these arguments. */
      async evaluate(act, ...given) {
        const expression = `(${act})(...${JSON.stringify(given)})`;
        const asked = { expression, awaitPromise: true, returnByValue: true };
        const { result, exceptionDetails } = await send("Runtime.evaluate", asked);
        if (exceptionDetails) {
          throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        }
        return result.value;
      },
      async until(what, act, seconds = 60) {
        const end = Date.now() + 1000 * seconds;
        for (;;) {
          const found = await this.evaluate(act).catch((error) => {
            if (!/context|navigat/i.test(error.message)) {
              throw error;
            }
          });
          if (found) {
            return found;
          }
          if (Date.now() > end) {
            throw new Error(`${what}: not within ${seconds} s; the page says: ${said.join(" | ") || "nothing"}`);
          }
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      },
      async screenshot() {
        return Buffer.from((await send("Page.captureScreenshot", { format: "png" })).data, "base64");
      },
      close: () => this.send("Target.closeTarget", { targetId }),
    };
  }

  async close() {
    const ended = new Promise((resolve) => this.#process.on("exit", resolve));
    await this.send("Browser.close").catch(() => {});
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 5000))]);
    this.#process.kill();
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
