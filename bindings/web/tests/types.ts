// Calls of the package as TypeScript's users write them, for package.mjs to compile.

import { Diptych, transform, type Session, type Tensor } from "diptych-web";
import "diptych-web/service-worker";

const yes: boolean = Math.random() > 0.5;
const session: Session = await Diptych.load("model.onnx", { seed: 3n, signal: AbortSignal.timeout(1000) });
const x = new Float32Array(4);
const plain: Record<string, Float32Array> = await session.run({ x });
const empty: Record<string, Float32Array> = await session.run({ x }, {});
const whole: Record<string, BigInt64Array> = await session.run<BigInt64Array>({ x }, { tensors: false, buffers: false });
const tensors: Record<string, Tensor<Float32Array>> = await session.run({ x }, { tensors: true });
const either: Float32Array | Tensor<Float32Array> | undefined = (await session.run({ x }, { tensors: yes })).y;
const device: GPUDevice | undefined = session.device;
const buffers: Record<string, GPUBuffer> = await session.run({ x: { data: [1, 2], dims: [2] } }, { buffers: true });
const again: Record<string, GPUBuffer> = await session.run(buffers, { buffers });
if (device) {
  await session.restore({ device });
}
const sizes: number[] = Object.values(again).map(({ size }) => size);
const [left, top]: [number, number] = transform([640, 480], [257, 257], "cover").back([3, 4]);
console.log(plain, empty, whole, tensors, either, sizes, left, top);

// @ts-expect-error an option that does not exist
await Diptych.load("model.onnx", { backnd: "cpu" });
// @ts-expect-error no device
await session.restore({ device: "the other one" });
// @ts-expect-error a number is not an input
await session.run({ x: 3 });
// @ts-expect-error outputs are no tensors unless asked for
const wrong: Record<string, Tensor> = await session.run({ x });
