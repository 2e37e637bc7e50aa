// What a session makes and destroys in a browser, what errors leave behind, and which numbers pictures become.

import { SOFTWARE_GPU } from "./chromium.mjs";
import { serve } from "../serve.mjs";

/** Adds the tests. */
export function lifetimes({ test, ensure, site }) {
  /** Each of these must be true. */
  const all = (found) => {
    for (const [what, holds] of Object.entries(found)) {
      ensure(holds === true, `${what}: ${JSON.stringify(found)}`);
    }
    return Object.keys(found).join(", ");
  };

  test("a session destroys its own devices and no others", SOFTWARE_GPU, async (open) => {
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const { tiny } = await import("./tiny.mjs");
      const made = [];
      const request = GPUAdapter.prototype.requestDevice;
      GPUAdapter.prototype.requestDevice = async function (...given) {
        made.push(await request.apply(this, given));
        return made.at(-1);
      };
      const settles = (promise) => Promise.race([promise.then(() => true), new Promise((resolve) => setTimeout(() => resolve(false), 500))]);
      const gone = (device) => settles(device.lost);
      const refused = (promise) => promise.then(() => "nothing", ({ message }) => message);
      const values = { x: new Float32Array(64).fill(3) };
      const told = {};
      await Diptych.probe({ backend: "webgpu" });
      told.probed = made.length === 1 && (await gone(made[0]));
      await refused(Diptych.load(tiny("NoSuchOperator"), { backend: "webgpu" }));
      told.refused = made.length > 1 && (await gone(made.at(-1)));

      const session = await Diptych.load(tiny(), { backend: "webgpu" });
      const first = { device: session.device, lost: session.lost };
      await session.restore();
      told.replaced = session.device !== first.device && (await gone(first.device));
      told.untold = !(await settles(first.lost));
      told.runs = (await session.run(values)).y[63] === 3;
      const losses = session.lost.then(() => session.restore());
      session.device.destroy();
      await losses;
      told.restored = (await session.run(values)).y[63] === 3;

      const device = await (await navigator.gpu.requestAdapter()).requestDevice();
      const second = session.device;
      await session.restore({ device });
      told.moved = session.device === device && (await gone(second)) && (await session.run(values)).y[63] === 3;
      const last = session.lost;
      await session.free();
      told.lent = !(await gone(device));
      device.destroy();
      told.silent = (await gone(device)) && !(await settles(last));
      told.ended = (await refused(session.restore())) === "the session was freed";
      const other = await Diptych.load(tiny(), { backend: "webgpu" });
      await other.free();
      told.freed = (await gone(made.at(-1))) && !(await settles(other.lost));
      return told;
    });
    return all(found);
  });

  test("a page's own properties stay where a device is lent", SOFTWARE_GPU, async (open) => {
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const { tiny } = await import("./tiny.mjs");
      const device = await (await navigator.gpu.requestAdapter()).requestDevice();
      Object.defineProperty(navigator, "gpu", { configurable: true, value: navigator.gpu });
      const createBuffer = (...given) => GPUDevice.prototype.createBuffer.apply(device, given);
      device.createBuffer = createBuffer;
      const session = await Diptych.load(tiny(), { device });
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      const buffer = device.createBuffer({ size: 256, usage });
      device.queue.writeBuffer(buffer, 0, new Float32Array(64).fill(3));
      const { y } = await session.run({ x: buffer });
      await session.free();
      return {
        navigator: Object.hasOwn(navigator, "gpu"),
        device: Object.hasOwn(device, "createBuffer") && device.createBuffer === createBuffer,
        again: (device.createBuffer = undefined) === undefined && device.createBuffer === undefined,
        runs: y[63] === 3,
      };
    });
    return all(found);
  });

  test("runs that fail leave no buffers and textures", SOFTWARE_GPU, async (open) => {
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const { picture } = await import("./tiny.mjs");
      const made = { buffers: new Set(), textures: new Set() };
      for (const [call, of, kind] of [["createBuffer", "buffers", GPUBuffer], ["createTexture", "textures", GPUTexture]]) {
        const [own, destroy] = [GPUDevice.prototype[call], kind.prototype.destroy];
        // Buffers of the output and those that it is read through: the module has others.
        GPUDevice.prototype[call] = function (given) {
          const one = own.call(this, given);
          if (kind === GPUTexture || given.label === "y" || given.usage & GPUBufferUsage.MAP_READ) {
            made[of].add(one);
          }
          return one;
        };
        kind.prototype.destroy = function () {
          made[of].delete(this);
          return destroy.call(this);
        };
      }
      const device = await (await navigator.gpu.requestAdapter()).requestDevice();
      const session = await Diptych.load(picture(3, 8), { device });
      const source = new OffscreenCanvas(8, 8);
      source.getContext("2d");
      const x = { source, mean: 0, deviation: 1 };
      const refused = (...given) => session.run(...given).then(() => "nothing", ({ message }) => message);
      const sizes = () => [made.buffers.size, made.textures.size].join();
      const buffer = device.createBuffer({ size: 4, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
      await session.run({ x });
      const before = sizes();
      const said = [];
      for (let run = 0; run < 3; run++) {
        said.push(await refused({ x, q: x }), await refused({ x: buffer }), await refused({ x: buffer }, { buffers: true }));
        said.push(await refused({ x }, { buffers: { yy: buffer } }));
      }
      await session.run({ x });
      const after = sizes();
      await session.free();
      return { said, before, after, freed: sizes() };
    });
    const says = [/"q" is unknown/, /4 bytes/, /4 bytes/, /output "yy" is unknown, the network has y; did you mean "y"\?/];
    found.said.forEach((one, place) => ensure(says[place % 4].test(one), one));
    // A run that fails gives up its buffers, and the next one makes them anew.
    ensure(found.before === "2,1" && found.after === "2,1", `buffers and textures: ${found.before} before, ${found.after} after`);
    ensure(found.freed === "0,0", `buffers and textures on the page's device: ${found.freed} when freed`);
    return `buffers and textures: ${found.before} before and after, ${found.freed} when freed`;
  });

  test("a picture of another origin spoils no other", SOFTWARE_GPU, async (open) => {
    const other = await serve(site);
    try {
      const page = await open("blank.html");
      const found = await page.evaluate(async (address) => {
        const { Diptych } = await import("./diptych/index.js");
        const { picture } = await import("./tiny.mjs");
        const images = [];
        for (const src of [`${address}/figure.png`, "figure.png"]) {
          images.push(Object.assign(new Image(), { src }));
          await images.at(-1).decode();
        }
        const told = {};
        for (const backend of ["cpu", "webgpu"]) {
          const session = await Diptych.load(picture(3, 8), { backend });
          const run = (source) => session.run({ x: { source, mean: 0, deviation: 1 } }).then(({ y }) => y.some((value) => value > 0), ({ message }) => message);
          told[`${backend} refuses`] = /^found a picture of another origin/.test(await run(images[0]));
          told[`${backend} goes on`] = await run(images[1]);
          await session.free();
        }
        return told;
      }, `http://127.0.0.1:${other.address().port}`);
      return all(found);
    } finally {
      other.close();
    }
  });

  test("alpha and ranges are the same for pictures of any size", SOFTWARE_GPU, async (open) => {
    const page = await open("blank.html");
    const found = await page.evaluate(async () => {
      const { Diptych } = await import("./diptych/index.js");
      const { picture } = await import("./tiny.mjs");
      const told = [];
      for (const [backend, channels] of [["cpu", 1], ["cpu", 3], ["cpu", 4], ["webgpu", 3], ["webgpu", 4]]) {
        const session = await Diptych.load(picture(channels, 8), { backend });
        for (const side of [8, 16]) {
          const source = new ImageData(side, side);
          source.data.forEach((_, at) => (source.data[at] = [250, 150, 50, 128][at % 4]));
          const { y } = await session.run({ x: { source, mean: 0, deviation: 1 } });
          told.push([backend, side, ...y.slice(27 * channels, 28 * channels)]);
        }
        const source = new OffscreenCanvas(8, 8);
        source.getContext("2d");
        const means = [];
        for (const mean of [[], [1, 2], [1], new Array(channels).fill(1)]) {
          means.push(await session.run({ x: { source, mean, deviation: 1 } }).then(() => "runs", ({ message }) => message));
        }
        told.push([backend, channels, means]);
        await session.free();
      }
      return told;
    });
    const wanted = { 1: [83], 3: [125.5, 75.3, 25.1], 4: [250, 150, 50, 128] };
    for (const [backend, side, ...values] of found) {
      if (Array.isArray(values[0])) {
        const [none, two, one, each] = values[0];
        ensure(/^mean of input "x": found 0 numbers, wanted one/.test(none) && /found 2 numbers, wanted one/.test(two), `${none}, ${two}`);
        ensure(one === "runs" && each === "runs", `${one}, ${each}`);
        continue;
      }
      const apart = Math.max(...wanted[values.length].map((value, channel) => Math.abs(value - values[channel])));
      ensure(apart <= 2.5, `${backend}, ${side} pixels: ${values}, wanted ${wanted[values.length]}`);
    }
    return found.filter(([, , value]) => !Array.isArray(value)).map((row) => row.join(" ")).join("; ");
  });

  test("the page leaves no error of what is over", SOFTWARE_GPU, async (open) => {
    const page = await open("?backend=webgpu");
    await page.until("frames", () => globalThis.page?.state.lane?.frames > 1, 240);
    const found = await page.evaluate(async () => {
      const at = (id) => document.getElementById(id);
      const { state, models } = globalThis.page;
      const { tiny } = await import("./tiny.mjs");
      const [good, bad] = [tiny(), tiny("NoSuchOperator")].map((bytes, place) => new File([bytes], `${place}.onnx`));
      const load = (file) => models.load(file).catch(() => {});
      const told = {};
      await load(bad);
      told.shown = !at("any-error").hidden;
      await load(good);
      told.hidden = at("any-error").hidden && at("outputs").children.length === 1;
      await Promise.all([load(bad), load(good)]);
      told.late = at("any-error").hidden;
      const running = models.run();
      await load(good);
      await running;
      told.run = at("any-error").hidden;
      at("beside").click();
      for (let wait = 0; wait < 600 && !state.beside?.frames; wait++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      told.beside = state.beside?.frames > 0;
      at("beside").click();
      await new Promise((resolve) => setTimeout(resolve, 1000));
      told.errors = state.errors.length === 0 && at("error").hidden;
      const pressed = () => ["film", "camera"].map((id) => at(id).getAttribute("aria-pressed")).join();
      const film = pressed();
      at("camera").click();
      for (let wait = 0; wait < 100 && state.source !== "camera"; wait++) {
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      told.pressed = film === "true,false" && pressed() === "false,true";
      return told;
    });
    return all(found);
  });
}
