// The smallest networks there are, of 64 numbers or of as many as a run says, as ONNX files.

const bytes = (...parts) => parts.flat();
const varint = (value) => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]);
/** A field of protocol buffers: a number, a text or a message. */
const field = (number, value) => {
  if (typeof value === "number") {
    return bytes(varint(number * 8), varint(value));
  }
  const body = typeof value === "string" ? [...new TextEncoder().encode(value)] : value;
  return bytes(varint(number * 8 + 2), varint(body.length), body);
};

const FLOAT = 1;
const INT64 = 7;

/** A named tensor. Extents that are texts are names of open ones. */
function value(name, extents, type = FLOAT) {
  const dims = extents.flatMap((extent) => field(1, field(typeof extent === "string" ? 2 : 1, extent)));
  const tensor = bytes(field(1, type), field(2, dims));
  return bytes(field(1, name), field(2, field(1, tensor)));
}

/** A node, which has its output's name. */
const node = (inputs, output, operator) =>
  field(1, bytes(...inputs.map((input) => field(1, input)), field(2, output), field(3, output), field(4, operator)));

const file = (...parts) =>
  new Uint8Array(bytes(field(1, 8), field(7, bytes(...parts, field(2, "tiny"))), field(8, field(2, 13))));

const model = (...parts) => file(...parts, field(11, value("x", [1, 64])), field(12, value("y", [1, 64])));

/** `y = relu(x)`, or what another operator makes of x. */
export const tiny = (operator = "Relu") => model(node(["x"], "y", operator));

/** `y = relu(x)` of a square picture with this many channels, the channels last. */
export function picture(channels, side) {
  const dims = [1, side, side, channels];
  return file(node(["x"], "y", "Relu"), field(11, value("x", dims)), field(12, value("y", dims)));
}

/** `y = x + softmax(0)`, where the second term is the same at each run. */
export function folded() {
  const zeros = bytes(field(1, 1), field(1, 64), field(2, FLOAT), field(8, "c"), field(9, new Array(256).fill(0)));
  return model(node(["c"], "s", "Softmax"), node(["x", "s"], "y", "Add"), field(5, zeros));
}

/**
 * `y = relu(x)` of any rows and columns; `z`: y in another shape, which is an input of integers; `n`: where y is not 0.
 * Relu is another operator if one is named.
 */
export function open(operator = "Relu") {
  const ends = [
    field(11, value("x", ["rows", "columns"])),
    field(11, value("shape", [2], INT64)),
    field(12, value("y", ["rows", "columns"])),
    field(12, value("z", ["", ""])),
    field(12, value("n", [2, ""], INT64)),
  ];
  return file(node(["x"], "y", operator), node(["y", "shape"], "z", "Reshape"), node(["y"], "n", "NonZero"), ...ends);
}

/** `y = relu(x)` of rows of two. */
export const rows = () =>
  file(node(["x"], "y", "Relu"), field(11, value("x", ["rows", 2])), field(12, value("y", ["rows", 2])));

/** `y = x + w`, whose weights lie in the file `weights.bin`, and that file: 0, 1, 2 and so on. */
export function external(location = "weights.bin") {
  const pair = (key, value) => field(13, bytes(field(1, key), field(2, value)));
  const weights = bytes(field(1, 1), field(1, 64), field(2, FLOAT), field(8, "w"), pair("location", location), field(14, 1));
  const numbers = Float32Array.from({ length: 64 }, (_, i) => i);
  return [model(node(["x", "w"], "y", "Add"), field(5, weights)), new Uint8Array(numbers.buffer)];
}
