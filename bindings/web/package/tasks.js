// Signals and tasks of an event loop.

/** A promise that fails when a signal says so, and a function that ends it; with `false` it stays as it is for good. */
export function stopOf(signal) {
  let stop, end;
  const stopped = new Promise((resolve, reject) => {
    end = resolve;
    stop = () => reject(signal.reason);
    signal?.addEventListener("abort", stop);
    // An event that was before now does not come again.
    if (signal?.aborted) {
      stop();
    }
  });
  stopped.catch(() => {});
  const ended = (settles = true) => {
    signal?.removeEventListener("abort", stop);
    if (settles) {
      end();
    }
  };
  return [stopped, ended];
}

export const nextTask = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
