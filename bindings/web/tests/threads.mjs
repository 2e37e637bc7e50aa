// The CPU's threads, and what a page without them loads and is told.

import { NO_GPU } from "./chromium.mjs";

/**
 * Adds the tests. `fetched` are the paths that the servers were asked for, in order. `open` takes `isolated` for a page that is
 * cross-origin isolated.
 */
export function threads({ test, ensure, fetched }) {
  const modules = () => fetched.map((path) => /(\w+)\.wasm$/.exec(path)?.[1].replace("_bg", "")).filter(Boolean).join(" ");
  const begun = () => (fetched.length = 0);

  /** What a page finds with these options: its outputs, as text, and what the session says. */
  const ran = (page, options, stub = "") =>
    page.evaluate(
      async (options, stub) => {
        new Function(stub)();
        const { Diptych } = await import("./diptych/index.js");
        const session = await Diptych.load("posenet_figures.tflite", { backend: "cpu", ...options });
        const [{ name, dims }] = session.inputs;
        const count = dims.reduce((product, extent) => product * extent, 1);
        const input = { [name]: Float32Array.from({ length: count }, (_, at) => Math.sin(at)) };
        let outputs;
        // Helpers come when they are ready.
        for (let run = 0; run < 20; run += 1) {
          const found = JSON.stringify(Object.values(await session.run(input)).map((values) => [...values]));
          if (outputs !== undefined && outputs !== found) {
            throw new Error(`run ${run} has other outputs than the first`);
          }
          outputs = found;
        }
        const { info } = session;
        await session.free();
        return { outputs, info };
      },
      options,
      stub,
    );

  test("the CPU has threads where the page is isolated", NO_GPU, async (open) => {
    const page = await open("blank.html", undefined, true);
    begun();
    const alone = await ran(page, { threads: 1 });
    ensure(alone.info.threads === 1 && /one thread, as asked for/.test(alone.info.reason), JSON.stringify(alone.info));
    ensure(modules() === "cpu", `fetched ${modules()}, wanted cpu`);
    begun();
    const three = await ran(page, { threads: 3 });
    ensure(three.info.threads === 3 && !/thread/.test(three.info.reason), JSON.stringify(three.info));
    ensure(/^threads( threads_rest)?$/.test(modules()), `fetched ${modules()}, wanted threads`);
    ensure(fetched.filter((path) => path.endsWith("/helper.js")).length > 0, "no helper was begun");
    const two = await ran(page, { threads: 2, worker: true });
    ensure(two.info.threads === 2, JSON.stringify(two.info));
    ensure(alone.outputs === three.outputs && alone.outputs === two.outputs, "outputs differ with the number of threads");
    return `${three.info.reason}; the same outputs on 1, 2 and 3 threads`;
  });

  test("a page that is not isolated is told why the CPU has one thread", NO_GPU, async (open) => {
    const page = await open("blank.html");
    begun();
    const { info } = await ran(page, {});
    ensure(info.threads === 1 && /one thread, because the page is not cross-origin isolated/.test(info.reason), JSON.stringify(info));
    ensure(modules() === "cpu", `fetched ${modules()}, wanted cpu`);
    return info.reason;
  });

  test("a browser without relaxed SIMD has a module of its own", NO_GPU, async (open) => {
    const page = await open("blank.html", undefined, true);
    const relaxed = await ran(page, { threads: 1 });
    const other = await open("blank.html", undefined, true);
    begun();
    const plain = await ran(other, {}, "WebAssembly.validate = () => false;");
    ensure(modules() === "cpu_plain", `fetched ${modules()}, wanted cpu_plain`);
    ensure(/no relaxed SIMD/.test(plain.info.reason), plain.info.reason);
    const [a, b] = [relaxed.outputs, plain.outputs].map((outputs) => JSON.parse(outputs).flat());
    const apart = Math.max(...a.map((value, at) => Math.abs(value - b[at])));
    ensure(a.length === b.length && apart < 1e-3, `outputs are ${apart} from the relaxed ones`);
    return `outputs are ${apart.toExponential(1)} apart; ${plain.info.reason}`;
  });
}
