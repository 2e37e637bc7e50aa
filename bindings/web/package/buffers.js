// Values as arrays, and outputs as buffers of a device.

/** The numbers or truths of a list as a typed array. Integers are exact, and an array says itself whether they fit. */
export function typed(list, { name, dtype }) {
  const isFloat = dtype === "f32" || dtype === "f16";
  const types = isFloat ? ["number", "boolean"] : ["number", "boolean", "bigint"];
  const wrong = list.findIndex((one) => !types.includes(typeof one));
  if (wrong >= 0) {
    const wanted = isFloat ? "numbers" : "whole numbers";
    throw new TypeError(`input "${name}": found ${typeof list[wrong]} at element ${wrong}, wanted ${wanted} (${dtype})`);
  }
  if (isFloat) {
    return Float32Array.from(list);
  }
  try {
    return BigInt64Array.from(list, BigInt);
  } catch (error) {
    throw new Error(`input "${name}": wanted whole numbers (${dtype}): ${error.message}`);
  }
}

/** Arrays for elements that a device keeps as floats of 32 bits, because these hold all of them. */
const NARROW = { i16: Int16Array, i8: Int8Array, u16: Uint16Array, u8: Uint8Array, bool: Uint8Array };

/** The elements of a port in the words of a device's buffer, as the array of its type. */
export function elements(words, { dtype }) {
  switch (dtype) {
    case "i64":
      return BigInt64Array.from(new Int32Array(words), BigInt);
    case "i32":
      return new Int32Array(words).slice();
    case "u32":
      return new Uint32Array(words).slice();
    default:
      return NARROW[dtype] ? NARROW[dtype].from(new Float32Array(words)) : new Float32Array(words).slice();
  }
}

const bytesOfPort = ({ dims }) => 4 * dims.reduce((a, b) => a * b, 1);

/** A buffer for an output: a word of 32 bits for each element. */
export function target(device, port) {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  return device.createBuffer({ label: port.name, size: bytesOfPort(port), usage });
}

/** The same, with one that it is read through. */
export function readable(device, port) {
  const usage = GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ;
  return { port, source: target(device, port), staging: device.createBuffer({ size: bytesOfPort(port), usage }) };
}

export async function readBack(device, outputs) {
  const encoder = device.createCommandEncoder();
  for (const { source, staging } of outputs) {
    encoder.copyBufferToBuffer(source, 0, staging, 0, source.size);
  }
  device.queue.submit([encoder.finish()]);
  await Promise.all(outputs.map(({ staging }) => staging.mapAsync(GPUMapMode.READ)));
  return outputs.map(({ port, staging }) => {
    const values = elements(staging.getMappedRange(), port);
    staging.unmap();
    return values;
  });
}
