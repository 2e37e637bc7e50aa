// Any model on the page: dropped, chosen, or given by its address.

import { Diptych } from "./diptych/index.js";
import { show } from "./shapes.js";

const at = (id) => document.getElementById(id);

/** What a picture's bytes become, by the names of the list. */
const RANGES = {
  "-1..1": { mean: 127.5, deviation: 127.5 },
  "0..1": { mean: 0, deviation: 255 },
  "0..255": { mean: 0, deviation: 1 },
  imagenet: { mean: [123.675, 116.28, 103.53], deviation: [58.395, 57.12, 57.375] },
};

const isModel = ({ name }) => /\.(tflite|onnx)$/i.test(name);

/** Files that are dropped or chosen: a model with the files of its weights, and a picture. */
export function sorted(files) {
  const [model] = files.filter(isModel);
  const pictures = files.filter(({ type }) => type.startsWith("image/"));
  const weights = files.filter((file) => file !== model && !pictures.includes(file));
  return { model, picture: pictures[0], weights };
}

const isPictureLike = ({ dims, open }) => dims.length === 4 && (open.length > 0 || [1, 3, 4].some((channels) => dims[1] === channels || dims[3] === channels));

export class Models {
  session;
  picture;
  /** Counts the models, so that what is late of an earlier one is left. */
  #turn = 0;

  constructor(picture) {
    this.picture = picture;
    at("range").onchange = () => this.run();
  }

  async load(model, weights = []) {
    const turn = ++this.#turn;
    at("outputs").replaceChildren();
    at("any-error").hidden = true;
    const say = (text) => turn === this.#turn && (at("any-note").textContent = text);
    await this.session?.free();
    this.session = undefined;
    const name = model.name ?? String(model);
    say(`Loading ${name} …`);
    const externalData = Object.fromEntries(weights.map((file) => [file.name, file]));
    try {
      const onProgress = ({ stage, done, total }) =>
        stage === "build" && say(`Compiling the kernels of ${name}: ${Math.round((100 * done) / total)} %`);
      const began = performance.now();
      const backend = new URLSearchParams(location.search).get("backend") ?? "auto";
      const session = await Diptych.load(model, { backend, worker: true, onProgress, externalData });
      if (turn !== this.#turn) {
        return await session.free();
      }
      this.session = session;
      this.loadedMs = performance.now() - began;
      this.name = name;
      await this.run();
    } catch (error) {
      if (turn !== this.#turn) {
        return;
      }
      say("");
      at("any-error").hidden = false;
      at("any-error").textContent = error.message;
      throw error;
    }
  }

  /** The values of all inputs: the picture where one fits, else zeros. */
  #inputs() {
    const { session } = this;
    const given = [];
    const inputs = session.inputs.map((port, place) => {
      if (isPictureLike(port)) {
        const known = session.model.normalisation[place]?.length > 0 || !["f32", "f16", "i8"].includes(port.dtype);
        at("range").parentElement.hidden = known;
        given.push(`${port.name} is the picture${known ? ", scaled as the file says" : ""}`);
        return [port.name, { source: this.picture(), ...(known ? {} : RANGES[at("range").value]) }];
      }
      const count = port.dims.reduce((a, b) => a * b, 1);
      given.push(`${port.name} (${port.dims.join("×")}) is zeros`);
      return [port.name, { data: new Array(count).fill(0), dims: port.dims }];
    });
    return [Object.fromEntries(inputs), given];
  }

  async run() {
    const { session } = this;
    if (!session) {
      return;
    }
    at("any-error").hidden = true;
    at("range").parentElement.hidden = !session.inputs.some(isPictureLike);
    let picture;
    try {
      const [inputs, given] = this.#inputs();
      const source = Object.values(inputs).find((value) => value.source)?.source;
      picture = source && (await createImageBitmap(source));
      await session.run(inputs, { tensors: true });
      const began = performance.now();
      const outputs = await session.run(inputs, { tensors: true });
      const took = performance.now() - began;
      if (session !== this.session) {
        return;
      }
      const port = session.inputs.find(isPictureLike);
      const width = port && (port.dims[1] <= 4 ? port.dims[3] : port.dims[2]);
      show(at("outputs"), outputs, session.model.labels, picture, width);
      const where = session.info.backend === "webgpu" ? session.info.device.name || "WebGPU" : "the CPU";
      at("any-note").textContent =
        `${this.name}: ready in ${(this.loadedMs / 1000).toFixed(1)} s, a run takes ${took.toFixed(1)} ms on ${where}; ${given.join(", ")}.`;
    } catch (error) {
      if (session !== this.session) {
        return;
      }
      at("any-note").textContent = `${this.name} is loaded, and does not run:`;
      at("any-error").hidden = false;
      at("any-error").textContent = error.message;
    } finally {
      picture?.close();
    }
  }
}
