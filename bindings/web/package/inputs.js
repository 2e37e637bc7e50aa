// Inputs of a run as a module takes them.

import { typed } from "./buffers.js";
import { near } from "./options.js";
import { isPicture, pictureDims, pixels, showable, shown } from "./pictures.js";

/** Whether it is numbers with their extents. */
const isTensor = (value) => Array.isArray(value?.dims) && value.data !== undefined;

/** The extents of an input's tensor, which must be whole numbers. */
function checkedDims(name, dims) {
  const place = dims.findIndex((extent) => !(Number.isInteger(extent) && extent >= 0 && extent < 2 ** 32 - 1));
  if (place >= 0) {
    const wrong = dims[place];
    const said = typeof wrong === "number" ? wrong : `of type ${typeof wrong}`;
    throw new Error(`input "${name}": found the extent ${said}, wanted a whole number`);
  }
  return [...dims];
}

export const isBuffer = (value) => typeof GPUBuffer !== "undefined" && value instanceof GPUBuffer;

/**
 * Names and values of a session's inputs, and the extents that are known of them: buffers as they are, and pictures as numbers; or
 * with `onDevice` as textures of the device, new ones or of `onDevice.idle`, which are added to `onDevice.used`.
 */
export function arranged(inputs, session, onDevice = undefined) {
  const names = Object.keys(inputs);
  const extents = names.map(() => undefined);
  const values = names.map((name, index) => {
    const value = inputs[name];
    const port = [...session.inputs, ...session.optionalInputs].find((input) => input.name === name);
    if (!port) {
      const known = session.inputs.map((input) => input.name).join(", ");
      throw new Error(`input "${name}" is unknown, the network has ${known}${near(name, session.inputs.map(({ name }) => name))}`);
    }
    const place = session.inputs.indexOf(port);
    if (isPicture(value) || isPicture(value?.source)) {
      const picture = isPicture(value) ? { source: value } : value;
      const normalisation = session.model.normalisation[place];
      if (onDevice && showable(port)) {
        const made = shown(picture, port, normalisation, session.device, onDevice.idle);
        onDevice.used.push(made.texture);
        return made;
      }
      const dims = pictureDims(port, picture.source);
      extents[index] = dims;
      return pixels(picture, { ...port, dims }, normalisation);
    }
    const data = isTensor(value) ? value.data : value;
    extents[index] = data === value ? undefined : checkedDims(name, value.dims);
    return Array.isArray(data) ? typed(data, port) : data;
  });
  return [names, values, extents];
}
