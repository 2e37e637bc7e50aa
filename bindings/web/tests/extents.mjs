// Runs whose inputs decide the extents that a model leaves open, in a page or in Node.

import { open, rows, tiny } from "./tiny.mjs";

function same(found, wanted) {
  const plain = (one) =>
    ArrayBuffer.isView(one) ? Array.from(one, Number)
    : one?.constructor === Object ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
    : one;
  const text = (value) => JSON.stringify(value, (_, one) => plain(one));
  if (text(found) !== text(wanted)) {
    throw new Error(`found ${text(found)}, wanted ${text(wanted)}`);
  }
}

const refused = (run) => run.then(() => "nothing", (error) => error.message);

/** What is checked with each backend. Throws an error where something is not as it should be. */
export async function extents(Diptych, options) {
  const session = await Diptych.load(open(), options);
  const axes = [
    { axis: 0, name: "rows" },
    { axis: 1, name: "columns" },
  ];
  same(session.inputs, [
    { name: "x", dims: [1, 1], dtype: "f32", open: axes },
    { name: "shape", dims: [2], dtype: "i64", open: [] },
  ]);
  same([session.open, session.outputs.map(({ open }) => open.length)], [true, [2, 2, 1]]);
  same(await refused(session.tune?.({ budgetMs: 1 })).then((message) => message !== "nothing"), true);

  // Runs of other extents, of other values, and two that are begun at once.
  const run = (data, dims, shape) => session.run({ x: { data, dims }, shape }, { tensors: true });
  const wanted = (y, dims, shape, places) => ({
    y: { data: y, dims },
    z: { data: y, dims: shape },
    n: { data: places, dims: [2, places.length / 2] },
  });
  same(await run(new Float32Array([1, -1, 2, -2, 3, -3]), [2, 3], [3, 2]), wanted([1, 0, 2, 0, 3, 0], [2, 3], [3, 2], [0, 0, 1, 0, 2, 1]));
  same(session.inputs[0].dims, [2, 3]);
  same(await run([1, -1, 2, -2, 3, -3], [2, 3], [1, 6]), wanted([1, 0, 2, 0, 3, 0], [2, 3], [1, 6], [0, 0, 1, 0, 2, 1]));
  const [one, two] = await Promise.all([run([5], [1, 1], [1, 1]), run([-1, -2, 7], [3, 1], [-1, 3])]);
  same(one, wanted([5], [1, 1], [1, 1], [0, 0]));
  same(two, wanted([0, 0, 7], [3, 1], [1, 3], [2, 0]));
  // Arrays alone, as without open extents; nothing found.
  const plain = await session.run({ x: { data: [-4, -5], dims: [1, 2] }, shape: [2, 1] });
  same([plain.y, plain.n.length, plain.n.constructor.name], [[0, 0], 0, "BigInt64Array"]);

  same(await refused(session.run({ x: [1, 2], shape: [1, 2] })), 'input "x": found data without the extents rows, columns, wanted { data, dims }');
  same(await refused(run([1, 2], [3, 1], [1, 2])), 'input "x": found 2 values, wanted 3 (3x1)');
  same(/rowsxcolumns/.test(await refused(run([1, 2], [2], [1, 2]))), true);
  same(/Reshape/.test(await refused(run([1, 2], [1, 2], [3, 3]))), true);
  same(/wanted a whole number/.test(await refused(run([1, 2], [1, 2.5], [1, 2]))), true);
  same(await run([5], [1, 1], [1, 1]), one);
  await session.free();

  // Of one open extent the number of elements says what it is; what comes out can go in.
  const single = await Diptych.load(rows(), options);
  same([single.open, single.inputs[0].open], [true, [{ axis: 0, name: "rows" }]]);
  same(await single.run({ x: new Float32Array([1, -2, 3, -4]) }), { y: [1, 0, 3, 0] });
  const { y } = await single.run({ x: [1, -2, 3, -4, 5, -6] }, { tensors: true });
  same([y.dims, (await single.run({ x: y }, { tensors: true })).y], [[3, 2], y]);
  same(await refused(single.run({ x: [1, 2, 3] })), 'input "x": found 3 values, wanted 2 (1x2)');
  const { steps } = await single.profile({ x: y });
  same([steps.length > 0, single.steps.length], [true, steps.length]);
  await single.free();

  // Given extents are fixed, and a model without open ones is as it is.
  const fixed = await Diptych.load(rows(), { ...options, dimensions: { rows: 3 } });
  same([fixed.open, fixed.inputs[0].dims, fixed.inputs[0].open], [false, [3, 2], []]);
  same(await fixed.run({ x: y.data }, { tensors: true }), { y });
  await fixed.free();
  const whole = await Diptych.load(tiny(), options);
  same([whole.open, whole.steps.length], [false, 1]);
  await whole.free();
  return `${options.backend}${options.worker ? " in a worker" : ""}: ${steps.map(({ kernel }) => kernel).join(" ")}`;
}
