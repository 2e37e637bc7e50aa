// Pictures as a network's input, resized by a 2D canvas: read from there as numbers, or copied to a texture.

import { check, near } from "./options.js";

const known = (name) => globalThis[name];

const KINDS = [
  "HTMLVideoElement",
  "HTMLImageElement",
  "HTMLCanvasElement",
  "OffscreenCanvas",
  "ImageBitmap",
  "VideoFrame",
  "ImageData",
];

/** Whether it is something that a canvas can draw. */
export function isPicture(value) {
  return KINDS.some((kind) => known(kind) && value instanceof known(kind));
}

/** Width and height in pixels. */
export function sizeOf(source) {
  const width = source.videoWidth ?? source.displayWidth ?? source.naturalWidth ?? source.width;
  const height = source.videoHeight ?? source.displayHeight ?? source.naturalHeight ?? source.height;
  return [width, height];
}

/**
 * Where a picture of `from` pixels lies in an input of `to` pixels, and the way back.
 * `fill` stretches it, `letterbox` shows all of it with bars, `cover` fills the input and cuts what is beyond.
 */
export function transform(from, to, fit = "fill") {
  const ratios = [to[0] / from[0], to[1] / from[1]];
  let scale = ratios;
  if (fit === "letterbox") {
    scale = [Math.min(...ratios), Math.min(...ratios)];
  } else if (fit === "cover") {
    scale = [Math.max(...ratios), Math.max(...ratios)];
  } else if (fit !== "fill") {
    throw new Error(`fit: found "${fit}", wanted "fill", "letterbox" or "cover"${near(String(fit), ["fill", "letterbox", "cover"])}`);
  }
  const size = [from[0] * scale[0], from[1] * scale[1]];
  const offset = [(to[0] - size[0]) / 2, (to[1] - size[1]) / 2];
  return {
    offset,
    size,
    /** A position of the input, counted from pixel centres, as one of the picture. */
    back: ([x, y]) => [(x + 0.5 - offset[0]) / scale[0] - 0.5, (y + 0.5 - offset[1]) / scale[1] - 0.5],
  };
}

/** Height, width, channels and order of an input that takes a picture. */
export function pictureShape({ name, dims }) {
  const extents = dims.length === 4 && dims[0] === 1 ? dims.slice(1) : dims;
  if (extents.length === 3 && [1, 3, 4].includes(extents[2])) {
    return { height: extents[0], width: extents[1], channels: extents[2], planar: false };
  }
  if (extents.length === 3 && [1, 3, 4].includes(extents[0])) {
    return { height: extents[1], width: extents[2], channels: extents[0], planar: true };
  }
  throw new Error(`input "${name}": found a picture, wanted ${dims.join("x")} numbers`);
}

/** The extents of an input for a picture: those that the model leaves open are the picture's own, and 1 for a batch. */
export function pictureDims({ dims, open }, source) {
  if (!open.length || dims.length < 3) {
    return dims;
  }
  const isOpen = (place) => open.some(({ axis }) => axis === place);
  const first = dims.length - 3;
  const [width, height] = sizeOf(source);
  const planar = isOpen(dims.length - 1) && !isOpen(first);
  const own = planar ? [dims[first], height, width] : [height, width, dims.at(-1)];
  return dims.map((extent, axis) => (isOpen(axis) ? (own[axis - first] ?? 1) : extent));
}

/** One canvas that is read, on the CPU, and one that is copied to a texture, on the GPU where the browser has it there. */
const canvases = {};

function context(width, height, willReadFrequently) {
  canvases[willReadFrequently] ??= new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently });
  const drawing = canvases[willReadFrequently];
  if (drawing.canvas.width !== width || drawing.canvas.height !== height) {
    drawing.canvas.width = width;
    drawing.canvas.height = height;
  }
  return drawing;
}

/** A picture drawn at this size. What is around it and behind it is black, or transparent where alpha is an input's channel. */
function drawn(source, width, height, fit, willReadFrequently, channels) {
  const [w, h] = sizeOf(source);
  if (!(w > 0 && h > 0)) {
    throw new Error("found a picture without pixels: wait until it has loaded");
  }
  if (source instanceof ImageData) {
    const whole = new OffscreenCanvas(w, h);
    whole.getContext("2d").putImageData(source, 0, 0);
    source = whole;
  }
  const { offset, size } = transform([w, h], [width, height], fit);
  const drawing = context(width, height, willReadFrequently);
  drawing.clearRect(0, 0, width, height);
  if (channels !== 4) {
    drawing.fillStyle = "#000";
    drawing.fillRect(0, 0, width, height);
  }
  // Smoothing over all pixels that fall together when a picture shrinks.
  drawing.imageSmoothingEnabled = true;
  drawing.imageSmoothingQuality = "high";
  drawing.drawImage(source, offset[0], offset[1], size[0], size[1]);
  return drawing;
}

/** What `act` reads from the canvas of this kind. It is given up after an error: a picture of another origin taints it for good. */
function taken(willReadFrequently, act) {
  try {
    return act();
  } catch (error) {
    delete canvases[willReadFrequently];
    if (error.name === "SecurityError") {
      throw new Error("found a picture of another origin, wanted one that its server shares with this page (crossorigin=\"anonymous\")", { cause: error });
    }
    throw error;
  }
}

function isOpaque(bytes) {
  for (let alpha = 3; alpha < bytes.length; alpha += 4) {
    if (bytes[alpha] !== 255) {
      return false;
    }
  }
  return true;
}

/** Whether a picture's bytes are what a canvas of this size would give of it. */
const isPlain = (source, width, height, channels) =>
  source instanceof ImageData &&
  source.width === width &&
  source.height === height &&
  source.data instanceof Uint8ClampedArray &&
  (channels === 4 || isOpaque(source.data));

/** The pixels of a picture at this size, RGBA. */
function read(source, width, height, fit, channels) {
  if (isPlain(source, width, height, channels)) {
    return source.data;
  }
  return taken(true, () => drawn(source, width, height, fit, true, channels).getImageData(0, 0, width, height)).data;
}

/** Whether an input's numbers need not be whole. */
const isFloat = ({ dtype }) => dtype === "f32" || dtype === "f16";

/**
 * Mean and deviation of a picture's bytes: those of the call, else of the model's metadata. An input of bytes, or of larger
 * integers, else takes them as they are.
 */
function scaling(given, normalisation, port, channels) {
  check(`picture of input "${port.name}"`, given, ["source", "fit", "mean", "deviation"]);
  const known = (index) => {
    if (normalisation?.length) {
      return normalisation.map((pair) => pair[index]);
    }
    if (!isFloat(port) && port.dtype !== "i8") {
      return [0, 1][index];
    }
    throw new Error(
      `input "${port.name}": the file does not say which numbers a picture's bytes become, wanted mean and deviation with the ` +
        "picture: { source, mean: 127.5, deviation: 127.5 } gives -1 to 1, { source, mean: 0, deviation: 255 } 0 to 1, " +
        "{ source, mean: 0, deviation: 1 } 0 to 255; the model's own page says which it was trained with",
    );
  };
  const { mean = known(0), deviation = known(1) } = given;
  for (const [name, value] of Object.entries({ mean, deviation })) {
    const wanted = name === "mean" ? "numbers" : "numbers other than 0";
    if (!([value].flat().every((one) => Number.isFinite(one) && (name === "mean" || one !== 0)))) {
      throw new TypeError(`${name} of input "${port.name}": found ${JSON.stringify(value)}, wanted ${wanted}`);
    }
    if (Array.isArray(given[name]) && ![1, channels].includes(value.length)) {
      const each = channels === 1 ? "one" : `one or ${channels}, which are its channels`;
      throw new TypeError(`${name} of input "${port.name}": found ${value.length} numbers, wanted ${each}`);
    }
  }
  return [mean, deviation];
}

/** The elements of each channel, one number or one for each. */
const each = (value, channel) => (Array.isArray(value) ? value[Math.min(channel, value.length - 1)] : value);

/**
 * A picture as the numbers of an input: `(v - mean) / deviation` of bytes. Both are those of the call, else those of
 * the model's metadata. For an input of integers the nearest, and the bytes unless said otherwise.
 */
export function pixels({ source, fit = "fill", ...given }, port, normalisation) {
  const { height, width, channels, planar } = pictureShape(port);
  const [mean, deviation] = scaling(given, normalisation, port, channels);
  const bytes = read(source, width, height, fit, channels);
  const count = width * height;
  const values = new Float32Array(count * channels);
  for (let channel = 0; channel < channels; channel++) {
    const [m, d] = [each(mean, channel), each(deviation, channel)];
    const [start, step] = planar ? [channel * count, 1] : [channel, channels];
    if (channels === 1) {
      for (let i = 0; i < count; i++) {
        const grey = 0.299 * bytes[4 * i] + 0.587 * bytes[4 * i + 1] + 0.114 * bytes[4 * i + 2];
        values[i] = (grey - m) / d;
      }
    } else {
      for (let i = 0, to = start, from = channel; i < count; i++, to += step, from += 4) {
        values[to] = (bytes[from] - m) / d;
      }
    }
  }
  return isFloat(port) ? values : values.map(Math.round);
}

/** Whether a picture can reach this input by a texture: what lies behind a canvas' alpha is not all there, and the kernel's
 * numbers are not whole. */
export const showable = (port) => isFloat(port) && pictureShape(port).channels !== 4;

/**
 * The same on the GPU: the picture as a texture of the input's size, and what becomes of its bytes there. Takes one of
 * `idle`, whose textures nothing uses that is not submitted yet, or a new one.
 */
export function shown({ source, fit = "fill", ...given }, port, normalisation, device, idle) {
  const { height, width, channels } = pictureShape(port);
  const [mean, deviation] = scaling(given, normalisation, port, channels).map((value) => Float32Array.from([0, 1, 2], (c) => each(value, c)));
  const found = idle.findIndex((texture) => texture.width === width && texture.height === height);
  const usage = GPUTextureUsage.TEXTURE_BINDING | GPUTextureUsage.COPY_DST | GPUTextureUsage.RENDER_ATTACHMENT;
  const texture =
    found < 0 ? device.createTexture({ size: [width, height], format: "rgba8unorm", usage }) : idle.splice(found, 1)[0];
  try {
    taken(false, () => {
      const { canvas } = drawn(source, width, height, fit, false, channels);
      device.queue.copyExternalImageToTexture({ source: canvas }, { texture }, [width, height]);
    });
  } catch (error) {
    idle.push(texture);
    throw error;
  }
  return { texture, mean, deviation, gray: channels === 1 };
}
