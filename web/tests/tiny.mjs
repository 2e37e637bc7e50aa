// The smallest network there is: `y = relu(x)` of 64 numbers, as an ONNX file.

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

export function tiny() {
  const node = bytes(field(1, "x"), field(2, "y"), field(3, "relu"), field(4, "Relu"));
  const graph = bytes(field(1, node), field(2, "tiny"), field(11, value("x", [1, 64])), field(12, value("y", [1, 64])));
  const model = bytes(field(1, 8), field(7, graph), field(8, field(2, 13)));
  return new Uint8Array(model);
}
