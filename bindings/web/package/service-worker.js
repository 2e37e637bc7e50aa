// The package for service workers, which import everything when they start.

import * as cpu from "./wasm/cpu.js";
import * as full from "./wasm/full.js";
import * as onnx from "./wasm/onnx.js";
import * as tflite from "./wasm/tflite.js";
import { provide } from "./modules.js";

provide({ cpu, full, onnx, tflite });

export { default, Diptych, transform } from "./index.js";
