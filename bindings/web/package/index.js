// The package's door: loads a model here, or in a worker.

import { LocalSession, probe } from "./session.js";
import { check, checkLoad } from "./options.js";
import { RemoteSession } from "./remote.js";
import { transform } from "./pictures.js";

export { transform };

export const Diptych = {
  /** Loads a TensorFlow Lite or ONNX model: a URL, its bytes or a Response. See index.d.ts. */
  async load(model, options = {}) {
    checkLoad(options);
    if (options.worker) {
      return RemoteSession.load(model, options);
    }
    return LocalSession.load(model, options);
  },

  /** What `load` would run on, without a model. */
  async probe(options = {}) {
    check("probe", options, ["backend", "device", "wasm"]);
    checkLoad(options);
    return probe(options);
  },
};

export default Diptych;
