// The smallest networks there are, of 64 numbers, as ONNX files.

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

/** A named tensor of floats. */
function value(name, extents) {
  const dims = extents.flatMap((extent) => field(1, field(1, extent)));
  const tensor = bytes(field(1, FLOAT), field(2, dims));
  return bytes(field(1, name), field(2, field(1, tensor)));
}

/** A node, which has its output's name. */
const node = (inputs, output, operator) =>
  field(1, bytes(...inputs.map((input) => field(1, input)), field(2, output), field(3, output), field(4, operator)));

function model(...parts) {
  const graph = bytes(...parts, field(2, "tiny"), field(11, value("x", [1, 64])), field(12, value("y", [1, 64])));
  return new Uint8Array(bytes(field(1, 8), field(7, graph), field(8, field(2, 13))));
}

/** `y = relu(x)`, or what another operator makes of x. */
export const tiny = (operator = "Relu") => model(node(["x"], "y", operator));

/** `y = x + softmax(0)`, where the second term is the same at each run. */
export function folded() {
  const zeros = bytes(field(1, 1), field(1, 64), field(2, FLOAT), field(8, "c"), field(9, new Array(256).fill(0)));
  return model(node(["c"], "s", "Softmax"), node(["x", "s"], "y", "Add"), field(5, zeros));
}
