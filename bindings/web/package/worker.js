// The worker's side of a session: runs what remote.js asks for.

import { LocalSession } from "./session.js";

let session;
/** Ends the tuning that is under way. */
let tuning;

const plain = () => {
  const { info, inputs, optionalInputs, outputs, steps, memory, model, open } = session;
  return { info, inputs, optionalInputs, outputs, steps, memory, model, open };
};

/** A run's result, and the session as it was in it. */
const ran = (result) => ({ result, session: session.open ? plain() : undefined });

/** Pictures that came here are this side's to close. */
function close(inputs) {
  for (const value of Object.values(inputs)) {
    (value?.source ?? value)?.close?.();
  }
}

function watch() {
  session.lost.then((reason) => postMessage({ lost: reason }));
}

const calls = {
  async load(id, { model, address, options }) {
    const onProgress = (progress) => postMessage({ id, progress });
    session = await LocalSession.load(model, { ...options, onProgress }, address);
    watch();
    return [plain()];
  },
  async run(_, { inputs, tensors }) {
    const outputs = await session.run(inputs, { tensors }).finally(() => close(inputs));
    return [ran(outputs), Object.values(outputs).map((values) => (values.data ?? values).buffer)];
  },
  async profile(_, { inputs }) {
    return [ran(await session.profile(inputs).finally(() => close(inputs)))];
  },
  async tune(id, { options }) {
    const onProgress = (progress) => postMessage({ id, progress });
    tuning = new AbortController();
    const result = await session.tune({ ...options, onProgress, signal: tuning.signal });
    return [{ result, session: plain() }];
  },
  async stop() {
    tuning?.abort();
    return [];
  },
  async restore() {
    await session.restore();
    watch();
    return [plain()];
  },
  async destroy() {
    session.device?.destroy();
    return [];
  },
};

onmessage = async ({ data: { id, call, ...given } }) => {
  try {
    const [result, transfer = []] = await calls[call](id, given);
    postMessage({ id, result }, transfer);
  } catch (error) {
    postMessage({ id, error: { name: error.name, message: error.message } });
  }
};
