// The npm package as its users have it: packed, installed, imported by Node, compiled by TypeScript, and built into a page by Vite.
//
//   node package.mjs SITE FOLDER
//
// FOLDER is where it is installed, with Vite, React and TypeScript.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "../serve.mjs";
import { Chromium, SOFTWARE_GPU } from "./chromium.mjs";

const [site, folder] = process.argv.slice(2).map((path) => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));

function ensure(holds, message) {
  if (!holds) {
    throw new Error(message);
  }
}

const run = (program, ...given) => execFileSync(program, given, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

function packed() {
  mkdirSync(folder, { recursive: true });
  const [{ filename, files, size, unpackedSize }] = JSON.parse(run("npm", "pack", "--json", join(site, "diptych")));
  const names = files.map(({ path }) => path);
  for (const name of ["README.md", "package.json", "index.js", "index.d.ts", "service-worker.js", "worker.js", "licences/LICENSE-MIT", "licences/LICENSE-APACHE", "wasm/tflite_bg.wasm", "wasm/full_rest.wasm", "wasm/cpu_plain_bg.wasm", "wasm/threads_bg.wasm", "helper.js"]) {
    ensure(names.includes(name), `the package lacks ${name}: ${names.join(" ")}`);
  }
  console.log(`ok packed: ${names.length} files, ${size} bytes, ${unpackedSize} unpacked`);
  return filename;
}

/** The example of the package's README. */
function react() {
  const text = readFileSync(join(site, "diptych/README.md"), "utf8");
  const found = /```jsx\n([^]*?)```/.exec(text)?.[1];
  ensure(found, "README.md has no example of React");
  return found;
}

function install(archive) {
  const wanted = { name: "user", private: true, type: "module", dependencies: { "diptych-web": `file:${archive}`, react: "19.3.1", "react-dom": "19.3.1" }, devDependencies: { vite: "8.3.8", typescript: "5.9.3", "typescript-7": "npm:typescript@7.0.2", "@webgpu/types": "0.1.74" } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(wanted));
  run("npm", "install", "--silent", "--no-audit", "--no-fund", "--no-package-lock");
}

function inNode() {
  copyFileSync(join(here, "tiny.mjs"), join(folder, "tiny.mjs"));
  copyFileSync(join(site, "posenet_figures.tflite"), join(folder, "posenet_figures.tflite"));
  writeFileSync(
    join(folder, "node.mjs"),
    `import { Diptych } from "diptych-web";
     import { tiny } from "./tiny.mjs";
     const session = await Diptych.load(tiny());
     const { y } = await session.run({ x: new Float32Array(64).fill(3) });
     const posenet = await Diptych.load("posenet_figures.tflite");
     const worker = await Diptych.load(tiny(), { worker: true }).catch(({ message }) => message);
     console.log(JSON.stringify([session.info, y[63], posenet.outputs.length, worker]));`,
  );
  const [info, last, outputs, worker] = JSON.parse(run("node", "node.mjs"));
  ensure(info.backend === "cpu" && last === 3 && outputs === 4, JSON.stringify([info, last, outputs]));
  ensure(/there are no workers here/.test(worker), worker);
  console.log(`ok Node ${process.version} on the CPU: ${info.reason}`);
}

/** The types, where TypeScript knows nothing of WebGPU, where a package tells it, and where it knows WebGPU itself. */
function inTypeScript() {
  copyFileSync(join(here, "types.ts"), join(folder, "types.ts"));
  for (const [compiler, types] of [["typescript", []], ["typescript", ["@webgpu/types"]], ["typescript-7", []]]) {
    const options = { strict: true, noEmit: true, target: "es2022", module: "nodenext", lib: ["es2022", "dom"], types };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["types.ts"] }));
    try {
      run("node", `node_modules/${compiler}/bin/tsc`, "-p", ".");
    } catch (error) {
      throw new Error(`${compiler} ${types}: ${error.stdout}`);
    }
  }
  console.log("ok the types, by TypeScript 5.9 and 7.0");
}

async function inVite() {
  const files = {
    "index.html": '<!doctype html><div id="root"></div><script type="module" src="/main.jsx"></script>',
    "vite.config.js": 'export default { worker: { format: "es" }, optimizeDeps: { exclude: ["diptych-web"] } };',
    "classifier.jsx": react(),
    "main.jsx": `import { createRoot } from "react-dom/client";
      import { Classifier } from "./classifier.jsx";
      const labels = Array.from({ length: 100_000 }, (_, place) => "label " + place);
      createRoot(document.getElementById("root")).render(<Classifier model="/posenet_figures.tflite" labels={labels} />);`,
  };
  mkdirSync(join(folder, "public"), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text);
  }
  copyFileSync(join(site, "posenet_figures.tflite"), join(folder, "public/posenet_figures.tflite"));
  copyFileSync(join(here, "figure.png"), join(folder, "public/figure.png"));
  run("node", "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn");
  const server = await serve(join(folder, "dist"));
  const browser = new Chromium(SOFTWARE_GPU);
  try {
    const page = await browser.page(`http://127.0.0.1:${server.address().port}/`);
    await page.until("the network", () => Boolean(document.querySelector("input")), 120);
    await page.evaluate(async () => {
      const bytes = await (await fetch("/figure.png")).blob();
      const given = new DataTransfer();
      given.items.add(new File([bytes], "figure.png", { type: "image/png" }));
      const input = document.querySelector("input");
      input.files = given.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
    const found = await page.until("a label", () => document.querySelector("figcaption")?.textContent);
    ensure(/^label \d+$/.test(found), found);
    console.log(`ok React, built by Vite: ${found}`);
  } finally {
    await browser.close();
    server.close();
  }
}

install(packed());
inNode();
inTypeScript();
await inVite();
