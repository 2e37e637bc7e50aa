// Runs the kernels and graphs of a browser on Dawn in Node: jobs for processes of `worker.mjs`.
//
//   node main.mjs FOLDER conformance [WORDS]       the table, or what DIPTYCH_CONFORMANCE would ask for in these words
//   node main.mjs FOLDER graphs COUNT [SECONDS]    random graphs, from DIPTYCH_GRAPHS_SEED on
//
// FOLDER has what wasm-bindgen made. DIPTYCH_DAWN_WORKERS says how many processes run at a time. What fails of the graphs
// is written as tests to DIPTYCH_GRAPHS_OUT.

import { fork } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { swiftShader } from "./node.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [folder, what, ...rest] = process.argv.slice(2);
const workers = Number(process.env.DIPTYCH_DAWN_WORKERS ?? availableParallelism());

/** Failures that are no fault of the kernels: of which device, in which job, how they read, and why. */
const KNOWN = [
  {
    device: /SwiftShader/,
    kind: "edges",
    failure: /^(Sigmoid|Exp|ExpM1|Cosh|Elu|Asinh|Softplus) (?=[^]*wanted NaN)(?![^]*wanted (?!NaN))/,
    why: "SwiftShader's exp of NaN is another number, which WGSL allows",
  },
  {
    device: /SwiftShader/,
    kind: "edges",
    failure: /^Log (?=[^]*wanted )(?![^]*wanted (?!NaN|-inf))/,
    why: "SwiftShader's log of what is not above zero is a finite number, which WGSL allows",
  },
];

/** What a process makes of a job, and the last graph that it began. */
function work(job) {
  return new Promise((resolve) => {
    const child = fork(join(here, "worker.mjs"), { execArgv: ["--expose-gc"], stdio: ["ignore", "inherit", "pipe", "ipc"] });
    let [answer, graph, said] = [undefined, undefined, ""];
    child.stderr.on("data", (text) => (said = (said + text).slice(-20000)));
    child.on("message", (message) => {
      graph = message.graph ?? graph;
      if (message.graph === undefined) {
        answer = message;
      }
    });
    child.on("close", (code, signal) =>
      resolve({ ...(answer ?? { error: `the process ended (${signal ?? code}): ${said}` }), graph }),
    );
    child.send(job);
  });
}

/** Does jobs as long as there are any, several at a time. `next` gives one, `done` takes what came of it. */
async function all(next, done) {
  const lane = async () => {
    for (let job = next(); job !== undefined; job = next()) {
      const begin = performance.now();
      const outcome = await work({ folder, ...job });
      done(job, outcome, (performance.now() - begin) / 1000);
    }
  };
  await Promise.all(Array.from({ length: workers }, lane));
}

/** The device that Dawn takes. */
async function device() {
  let { done, error } = await work({ kind: "adapter" });
  const driver = swiftShader();
  if (!done && driver) {
    console.log(`Dawn takes none of the installed drivers: with ${driver}`);
    process.env.VK_DRIVER_FILES = process.env.VK_ICD_FILENAMES = driver;
    ({ done, error } = await work({ kind: "adapter" }));
  }
  if (!done) {
    console.error(`Dawn finds no Vulkan device that it takes, and there is no Chromium with SwiftShader. ${error ?? ""}`);
    process.exit(1);
  }
  console.log(`${done.name}, ${done.halves ? "with" : "without"} f16`);
  return done.name;
}

async function conformance(name, asked = "") {
  const { done: ops, error } = await work({ kind: "ops", folder });
  if (error) {
    throw new Error(error);
  }
  // The longest first.
  const slow = ["conv2d", "pointwise", "planted", "gemm"];
  const named = asked && ops.filter((op) => asked === op || asked.startsWith(`${op}_`)).sort((a, b) => b.length - a.length)[0];
  const jobs = (named ? [named] : ops).map((op) => ({ kind: "rows", op, asked }));
  jobs.push({ kind: "planted", asked }, ...(named ? [] : [{ kind: "edges", asked }]));
  const rank = ({ op, kind }) => (slow.includes(op ?? kind) ? slow.indexOf(op ?? kind) : slow.length);
  jobs.sort((a, b) => rank(a) - rank(b));
  const sum = { cases: 0, runs: 0, texts: [0, 0], met: 0, caught: 0, known: 0 };
  const failures = [];
  await all(
    () => jobs.shift(),
    (job, { done, error }, seconds) => {
      const of = job.op ?? job.kind;
      if (error) {
        failures.push(`${of}: ${error}`);
        console.log(`${of}: ${error}`);
        return;
      }
      const known = (failure) => KNOWN.find((row) => row.device.test(name) && row.kind === job.kind && row.failure.test(failure));
      const wrong = done.failures.filter((failure) => !known(failure));
      sum.known += done.failures.length - wrong.length;
      failures.push(...wrong, ...(done.missed ?? []).map((pair) => `no run met ${pair}`));
      sum.cases += done.cases ?? 0;
      sum.runs += done.runs ?? 0;
      sum.met += done.met?.length ?? 0;
      sum.caught += done.caught ?? 0;
      (done.texts ?? []).forEach((texts, at) => (sum.texts[at] += texts));
      const line = done.line ?? (done.caught === undefined ? of : `${done.caught} planted mistakes are caught`);
      console.log(`${line}, ${wrong.length} failures that are not known, ${seconds.toFixed(1)} s`);
      wrong.forEach((failure) => console.log(`  ${failure}`));
    },
  );
  for (const { device, why } of KNOWN.filter(({ device }) => device.test(name))) {
    console.log(`known of ${device.source}: ${why}`);
  }
  const [some, every] = sum.texts;
  console.log(
    `${name}: ${sum.cases} cases, ${sum.runs} runs of ${some} of ${every} texts, ${sum.met} kernels and tiles, ` +
      `${sum.caught} planted mistakes caught, ${sum.known} known failures, ${failures.length} failures`,
  );
  if (sum.caught === 0) {
    failures.push("no planted mistake was caught");
  }
  return failures;
}

/** Graphs for one process: what Dawn and a driver keep of their kernels is given back when it ends. */
const GRAPHS_OF_A_PROCESS = 60;

async function graphs(name, count, seconds = Infinity) {
  const from = Number(process.env.DIPTYCH_GRAPHS_SEED ?? 0);
  const out = process.env.DIPTYCH_GRAPHS_OUT ?? join(folder, "graphs");
  const end = performance.now() + 1000 * seconds;
  const left = () => Math.floor((end - performance.now()) / 1000);
  const [total, failures, pieces] = [{}, [], []];
  let planted = { kind: "planted graph" };
  const add = (into, what) => {
    for (const [key, value] of Object.entries(what)) {
      into[key] = typeof value === "number" ? (into[key] ?? 0) + value : add(into[key] ?? {}, value);
    }
    return into;
  };
  const fail = (graph, text) => {
    failures.push(text);
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, `graph_${graph}_dawn.txt`), text);
    console.log(text);
  };
  let first = from;
  await all(
    () => {
      if (planted) {
        const job = planted;
        planted = undefined;
        return job;
      }
      const piece = pieces.pop() ?? { first, count: Math.min(GRAPHS_OF_A_PROCESS, from + count - first) };
      if (piece.count <= 0 || left() <= 0) {
        return undefined;
      }
      first = Math.max(first, piece.first + piece.count);
      return { kind: "graphs", ...piece, seconds: Math.min(left(), 1e6) };
    },
    (job, { done, error, graph }) => {
      if (job.kind === "planted graph") {
        const wrong = error ? [`the planted fault: ${error}`] : done.failures;
        console.log(wrong.join("") || "the planted fault is found");
        failures.push(...wrong);
        return;
      }
      if (error) {
        // A panic ends the process: those after the graph are begun again.
        const at = graph ?? job.first;
        fail(at, `graph ${at}: ${error}`);
        pieces.push({ first: at + 1, count: job.first + job.count - at - 1 });
        add(total, { graphs: at - job.first + 1 });
        return;
      }
      if ((total.processes ?? 0) % 10 === 9) {
        console.log(`${total.graphs + done.graphs} graphs, ${failures.length} differences`);
      }
      done.failures.forEach((text) => fail(/^graph (\d+)/.exec(text)?.[1], text));
      add(total, { ...done, failures: 0, processes: 1, elements: { all: done.elements[0], bound: done.elements[1], sharp: done.elements[2] } });
    },
  );
  const list = (counts) => Object.entries(counts ?? {}).map(([key, value]) => `${key} ${Math.round(10 * value) / 10}`).join(", ");
  const { all: elements = 0, bound = 0, sharp = 0 } = total.elements ?? {};
  const part = (some) => `${((100 * some) / Math.max(elements, 1)).toFixed(2)} %`;
  console.log(
    `${name}: ${total.graphs ?? 0} graphs from ${from} on; differences: ${failures.length}; runs: ${list(total.runs)}; ` +
      `elements: ${elements}, with a bound ${part(bound)}, with a small one ${part(sharp)}; ops: ${list(total.ops)}; ` +
      `kernels: ${list(total.kernels)}; seconds of all processes: ${list(total.seconds)}`,
  );
  if (!elements) {
    failures.push("nothing was compared");
  }
  return failures;
}

const name = await device();
const failures = what === "graphs" ? await graphs(name, Number(rest[0]), rest[1] && Number(rest[1])) : await conformance(name, rest[0]);
process.exit(failures.length ? 1 : 0);
