// The page: a source of pictures, a network in a worker, and what it costs.

import { Diptych, transform } from "./diptych/index.js";
import * as charts from "./charts.js";
import { Film } from "./film.js";
import { Models, sorted } from "./models.js";
import { draw, heads, people } from "./pose.js";

const MODEL = "posenet_figures.tflite";
/** What the network learned its pictures as: numbers from -1 to 1. */
const RANGE = { mean: 127.5, deviation: 127.5 };

const at = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search);
const tuneMs = Number(asked.get("tune") ?? 20_000);

/** The numbers of the last second or so. */
class Mean {
  value = 0;
  add(value) {
    this.value = this.value ? this.value + 0.15 * (value - this.value) : value;
  }
}

/** A network, and the frames that it was given. */
class Lane {
  frames = 0;
  stages = { picture: new Mean(), network: new Mean(), people: new Mean(), drawing: new Mean() };
  rate = new Mean();
  poses = [];

  static async load(backend, onProgress) {
    const lane = new Lane();
    lane.session = await Diptych.load(asked.get("model") ?? MODEL, { backend, worker: true, onProgress });
    lane.input = lane.session.inputs[0];
    const watch = () =>
      lane.session.lost.then(async (reason) => {
        state.losses += 1;
        note(`The browser took the GPU away (${reason}). Everything is made anew.`);
        lane.restoring = lane.session.restore().then(() => void watch(), fail);
        await lane.restoring;
        lane.restoring = undefined;
        note("");
      });
    watch();
    return lane;
  }

  /** Finds the people in a picture that a canvas can draw. */
  async look(source, size) {
    await this.restoring;
    const start = performance.now();
    const picture = await createImageBitmap(source);
    const taken = performance.now();
    const outputs = await this.session.run({ [this.input.name]: { source: picture, ...RANGE } });
    const ran = performance.now();
    picture.close();
    this.poses = people(heads(this.session, outputs));
    const done = performance.now();
    this.stages.picture.add(taken - start);
    this.stages.network.add(ran - taken);
    this.stages.people.add(done - ran);
    if (this.last) {
      this.rate.add(done - this.last);
    }
    this.last = done;
    this.frames += 1;
    const [height, width] = this.input.dims.slice(-3, -1);
    return transform(size, [width, height]).back;
  }
}

const film = new Film();
const models = new Models(() => frame.canvas);
const state = { source: "film", lane: undefined, beside: undefined, losses: 0, longTasks: [], errors: [] };
// What scripts that drive the page ask.
globalThis.page = { state, models, takeAll, settled: undefined };

const note = (text) => (at("note").textContent = text);

function fail(error) {
  state.errors.push(error.message);
  at("error").hidden = false;
  at("error").textContent = error.message;
}

const clear = () => (at("error").hidden = true);

/** The present picture and its size; undefined while there is none. */
function present() {
  if (state.source === "film") {
    const canvas = film.frame(performance.now() / 1000);
    return [canvas, [canvas.width, canvas.height]];
  }
  if (state.source === "camera") {
    const video = state.video;
    return video?.readyState >= 2 ? [video, [video.videoWidth, video.videoHeight]] : undefined;
  }
  return state.picture && [state.picture, [state.picture.width, state.picture.height]];
}

const view = at("view").getContext("2d");
const frame = new OffscreenCanvas(1, 1).getContext("2d");

/** A copy of the picture, so that skeletons are drawn on the one that they were found in. */
function keep([source, [width, height]]) {
  if (frame.canvas.width !== width || frame.canvas.height !== height) {
    Object.assign(frame.canvas, { width, height });
    Object.assign(view.canvas, { width, height });
    view.canvas.parentElement.style.aspectRatio = `${width} / ${height}`;
  }
  frame.drawImage(source, 0, 0, width, height);
  return [frame.canvas, [width, height]];
}

const nextFrame = () => new Promise(requestAnimationFrame);

async function loop(lane) {
  for (;;) {
    await nextFrame();
    const found = present();
    if (!found || document.hidden) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      continue;
    }
    try {
      const [canvas, size] = keep(found);
      const back = await lane.look(canvas, size);
      const start = performance.now();
      view.drawImage(canvas, 0, 0);
      draw(view, lane.poses, back);
      lane.stages.drawing.add(performance.now() - start);
      lane.drawn = lane.poses.map(({ score, keypoints }) => ({
        score,
        keypoints: keypoints.map(({ x, y, score }) => ({ position: back([x, y]), score })),
      }));
      if (state.source === "picture") {
        clear();
        await still();
      }
    } catch (error) {
      if (error.name !== "DeviceLostError") {
        fail(error);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
  }
}

/** A still picture is looked at once a second, or when it changes. */
const still = () => new Promise((resolve) => {
  state.wake = resolve;
  setTimeout(resolve, 1000);
});

async function loopBeside(lane) {
  while (state.beside === lane) {
    const found = present();
    try {
      if (found) {
        await lane.look(found[0], found[1]);
      }
    } catch (error) {
      // One that was freed is not beside any more.
      if (state.beside === lane) {
        fail(error);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

function show() {
  const { lane, beside } = state;
  if (!lane?.frames) {
    return;
  }
  at("rate").textContent = lane.rate.value ? (1000 / lane.rate.value).toFixed(1) : "–";
  const { picture, network, people, drawing } = lane.stages;
  charts.bars(at("stages"), [
    ["picture", picture.value],
    ["network", network.value],
    ["people", people.value],
    ["drawing", drawing.value],
  ]);
  at("pair").hidden = !beside?.frames;
  if (beside?.frames) {
    charts.bars(at("pair"), [
      [lane.session.info.backend === "cpu" ? "CPU" : "WebGPU", network.value],
      [beside.session.info.backend === "cpu" ? "CPU (wasm)" : "WebGPU", beside.stages.network.value, "second"],
    ]);
  }
}

function describe({ info }) {
  const gpu = info.backend === "webgpu";
  at("device").textContent = gpu
    ? `WebGPU on ${info.device.name}${info.device.software ? ", software" : ""}`
    : `The CPU, by WebAssembly, on ${info.threads === 1 ? "one thread" : `${info.threads} threads`}`;
  if (!gpu) {
    const advice = "Chrome, Edge, Firefox and Safari of today have WebGPU where they trust the GPU's driver: chrome://gpu or about:support says more.";
    note(`The network runs on the CPU, more slowly than on a GPU (${info.reason}). ${advice}`);
    at("beside").disabled = true;
    at("tuned").textContent = "On the CPU there are no kernels to choose from.";
  }
  at("tune").disabled = !gpu;
  at("profile").disabled = false;
}

function choose(source) {
  state.source = source;
  state.wake?.();
  for (const id of ["film", "camera"]) {
    at(id).classList.toggle("chosen", id === source);
    at(id).setAttribute("aria-pressed", id === source);
  }
  if (source !== "camera") {
    state.video?.srcObject?.getTracks().forEach((track) => track.stop());
    state.video = undefined;
  }
}

async function take(file) {
  try {
    clear();
    state.picture = await createImageBitmap(file);
    choose("picture");
  } catch {
    fail(new Error(`${file.name}: found a file that this browser cannot show, wanted a picture`));
  }
}

/** What was dropped or chosen: a model, with its weights, or a picture. */
async function takeAll(list) {
  const { model, picture, weights } = sorted([...list]);
  if (picture) {
    await take(picture);
  }
  if (model) {
    document.getElementById("any-card").scrollIntoView({ behavior: "smooth" });
    await models.load(model, weights).catch(({ message }) => state.errors.push(message));
  } else if (!picture && weights.length) {
    fail(new Error(`${weights[0].name}: found neither a picture nor a model, wanted a .tflite or .onnx file`));
  }
}

/** Links to where the package says that its code and documents are. */
async function links() {
  const { homepage, repository } = await (await fetch("diptych/package.json")).json();
  for (const [text, href] of [["Code", repository?.url?.replace(/^git\+/, "")], ["Documents", homepage]]) {
    if (href) {
      at("links").append(Object.assign(document.createElement("a"), { textContent: text, href }));
    }
  }
}

async function camera() {
  clear();
  try {
    if (!navigator.mediaDevices) {
      throw new Error("the browser gives cameras to https: and localhost only");
    }
    const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480 } });
    const video = document.createElement("video");
    Object.assign(video, { srcObject: stream, muted: true, playsInline: true });
    await video.play();
    choose("camera");
    state.video = video;
  } catch (error) {
    fail(new Error(`No camera: ${error.message}`));
  }
}

async function tune() {
  const { lane } = state;
  const budgetMs = tuneMs;
  const points = [];
  at("tune").disabled = true;
  at("chart").hidden = false;
  try {
    const result = await lane.session.tune({
      budgetMs,
      onProgress: ({ totals: [untuned, tuned], elapsedMs, visited, problems, tried, candidates }) => {
        if (untuned > 0) {
          points.push({ seconds: elapsedMs / 1000, untuned, tuned });
          charts.tuning(at("chart"), points, budgetMs / 1000);
        }
        at("tuned").textContent = `${visited} of ${problems} problems, candidate ${tried} of ${candidates} …`;
      },
    });
    const [untuned, tuned] = result.totals;
    const kept = result.kept ? "kept in this browser" : "not kept: this window has no storage";
    at("tuned").textContent =
      `Kernels took ${charts.us(untuned)} and take ${charts.us(tuned)} (${(untuned / tuned).toFixed(2)} times); ` +
      `${result.changed.length} of ${lane.session.steps.length} steps have another kernel now, ${kept}.`;
    state.tuned = result;
  } catch (error) {
    fail(error);
  }
  at("tune").disabled = false;
}

async function profile() {
  const { lane } = state;
  at("profile").disabled = true;
  let source;
  try {
    source = await createImageBitmap(frame.canvas);
    const profile = await lane.session.profile({ [lane.input.name]: { source, ...RANGE } });
    at("nodes").hidden = false;
    charts.steps(at("nodes"), profile);
    state.profile = profile;
  } catch (error) {
    fail(error);
  }
  source?.close();
  at("profile").disabled = false;
}

async function beside({ target }) {
  if (!target.checked) {
    state.beside?.session.free();
    state.beside = undefined;
    return;
  }
  target.disabled = true;
  try {
    state.beside = await Lane.load("cpu");
    loopBeside(state.beside);
  } catch (error) {
    target.checked = false;
    fail(error);
  }
  target.disabled = false;
}

function listen() {
  at("film").onclick = () => (clear(), choose("film"));
  at("camera").onclick = camera;
  at("file").onchange = ({ target }) => target.files[0] && take(target.files[0]);
  at("model-file").onchange = ({ target }) => takeAll(target.files);
  at("again").onclick = () => models.run();
  at("copy").onclick = () => navigator.clipboard?.writeText(at("snippet").textContent);
  at("tune").onclick = tune;
  at("tune").textContent = `Tune for ${tuneMs / 1000} s`;
  at("profile").onclick = profile;
  at("beside").onchange = beside;
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      at("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop") {
        takeAll(event.dataTransfer.files);
      }
    });
  }
}

function watchTasks() {
  if (PerformanceObserver.supportedEntryTypes.includes("longtask")) {
    new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) {
        state.longTasks.push({ startTime, duration });
      }
    }).observe({ type: "longtask", buffered: true });
  }
}

async function start() {
  watchTasks();
  listen();
  links().catch(() => {});
  const began = performance.now();
  try {
    state.lane = await Lane.load(asked.get("backend") ?? "auto", ({ stage, done, total }) => {
      const share = total ? `${Math.round((100 * done) / total)} %` : "";
      at("loading").textContent = `${stage === "download" ? "Loading the network" : "Compiling its kernels"} ${share}`;
    });
    at("loading").textContent = "";
    describe(state.lane.session);
  } catch (error) {
    at("loading").textContent = "";
    fail(error);
    throw error;
  }
  state.loadedMs = performance.now() - began;
  loop(state.lane);
  setInterval(show, 200);
}

globalThis.page.settled = start();
