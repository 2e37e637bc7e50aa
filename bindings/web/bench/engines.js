// A network by each engine, on WebGPU or on the CPU: from the model's address to a function that runs it on typed arrays.

const values = (dims) => new Float32Array(dims.reduce((product, extent) => product * extent, 1)).fill(0.5);

/** Threads of the CPU, where the page may have some: one for each processor. */
const threads = globalThis.crossOriginIsolated ? Math.min(navigator.hardwareConcurrency, 8) : 1;

const ENGINES = {
  diptych: async (model, backend) => {
    const { Diptych } = await import("diptych-web");
    const session = await Diptych.load(model, { backend, threads, record: false });
    const inputs = Object.fromEntries(session.inputs.map(({ name, dims }) => [name, { data: values(dims), dims }]));
    return async () => Object.values(await session.run(inputs));
  },
  "onnxruntime-web": async (model, backend) => {
    // Each has the file that its users would load.
    const { env, InferenceSession, Tensor } = await import(backend === "cpu" ? "onnxruntime-web/wasm" : "onnxruntime-web");
    env.wasm.wasmPaths = new URL("peers/onnxruntime-web/dist/", document.baseURI).href;
    env.wasm.numThreads = threads;
    const session = await InferenceSession.create(model, { executionProviders: [backend === "cpu" ? "wasm" : "webgpu"] });
    const feeds = Object.fromEntries(
      session.inputMetadata.map(({ name, shape }) => [name, new Tensor("float32", values(shape), shape)]),
    );
    return async () => {
      const results = await session.run(feeds);
      return session.outputNames.map((name) => results[name].data);
    };
  },
  "@litertjs/core": async (model, backend) => {
    const { loadAndCompile, loadLiteRt, Tensor } = await import("@litertjs/core");
    await loadLiteRt(new URL("peers/@litertjs/core/wasm/", document.baseURI).href, { threads: threads > 1 });
    const accelerator = backend === "cpu" ? "wasm" : "webgpu";
    const compiled = await loadAndCompile(model, { accelerator, cpuOptions: { numThreads: threads } });
    const given = compiled.getInputDetails().map(({ shape }) => [values([...shape]), [...shape]]);
    return async () => {
      const inputs = given.map(([array, shape]) => new Tensor(array, shape));
      const results = await compiled.run(inputs);
      const outputs = [];
      for (const result of results) {
        const read = await result.moveTo("wasm");
        outputs.push(read.toTypedArray().slice());
        read.delete();
      }
      inputs.forEach((input) => input.delete());
      return outputs;
    };
  },
};

/** Times in ms: to the first result, from before the engine is loaded, and of `runs` runs after it. */
globalThis.measure = async (engine, model, backend, few, runs) => {
  const begin = performance.now();
  const run = await ENGINES[engine](model, backend);
  const outputs = await run();
  const first = performance.now() - begin;
  const times = [];
  for (let count = -few; count < runs; count += 1) {
    const begin = performance.now();
    await run();
    if (count >= 0) {
      times.push(performance.now() - begin);
    }
  }
  const isolated = globalThis.crossOriginIsolated;
  return { first, times, isolated, outputs: outputs.map((output) => [output.length, ...output.slice(0, 4)]) };
};
