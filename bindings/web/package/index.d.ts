/**
 * A model: its URL, its bytes, or something that holds them. TensorFlow Lite or ONNX, as the contents say. In Node a path will do,
 * too.
 */
export type ModelSource = string | URL | Response | Blob | ArrayBuffer | ArrayBufferView;

/** What a canvas can draw, and pixels. */
export type Picture =
  | HTMLVideoElement
  | HTMLImageElement
  | HTMLCanvasElement
  | OffscreenCanvas
  | ImageBitmap
  | VideoFrame
  | ImageData;

/** How a picture becomes the size of the input: stretched, whole with bars, or filling it with parts cut off. */
export type Fit = "fill" | "letterbox" | "cover";

/** A picture and how it is taken: each element is `(byte - mean) / deviation`. */
export interface PictureInput {
  source: Picture;
  /**
   * Of all channels or of each: 127.5 and 127.5 give -1 to 1, 0 and 255 give 0 to 1. An array has one number, or one for each channel
   * of the input. Without them those of the model's metadata.
   * Where a file has none, a picture for an input of floats or i8 is refused without them; other integers are the bytes.
   */
  mean?: number | number[];
  deviation?: number | number[];
  /** `fill` unless said otherwise. */
  fit?: Fit;
}

/**
 * The value of an input. A picture is resized by a 2D canvas. On WebGPU a texture takes it from there and a kernel makes
 * the numbers of it, unless the input has four channels, the CPU computes a part of the network, or the model leaves
 * extents open: then the canvas is read, as on the CPU. Height and width that are open are the picture's. What is transparent
 * shows black, unless the input has four channels, of which the last is alpha. A picture may change or be closed as soon as the
 * call has returned. An array must not change until its run has ended. A `GPUBuffer`
 * of the session's device holds a word of 32 bits for each element, in the order of the input's dimensions: f32, but i32 for
 * `i64` and `i32`, and u32 for `u32`. With usage `STORAGE` it is bound as it is,
 * else it is copied on the device and needs `COPY_SRC`.
 */
export type InputValue = Values | Tensor<Values> | Picture | PictureInput | GPUBuffer;

/** Elements, or numbers and truths in a list. */
export type Values = Elements | number[] | bigint[] | boolean[];

/**
 * Elements with their extents, the last one varying fastest. An extent that the model leaves open may be any, 0 too if the
 * network can do with it. An input whose model leaves at most one extent open needs no `dims`.
 */
export interface Tensor<Data = Elements> {
  data: Data;
  dims: number[];
}

/**
 * Elements of an input or an output. Outputs have the array of their type; inputs take any whose numbers are all of the
 * input's type, and an error names the first that is not.
 */
export type Elements =
  | Float32Array
  | BigInt64Array
  | Int32Array
  | Int16Array
  | Int8Array
  | Uint32Array
  | Uint16Array
  | Uint8Array
  | Uint8ClampedArray;

/**
 * The type of elements, and the array of an output: `Float32Array` for `f32` and `f16`, `BigInt64Array` for `i64` (of
 * which a GPU has 32 bits and refuses more), `Uint8Array` with 0 and 1 for `bool`, and those of their names for the others.
 */
export type DType = "f32" | "f16" | "i64" | "i32" | "i16" | "i8" | "u32" | "u16" | "u8" | "bool";

export type Inputs = Record<string, InputValue>;

export interface Port {
  name: string;
  /** Where each run decides an extent, that of the last run; 1 before the first one. */
  dims: number[];
  dtype: DType;
  /** The axes whose extents each run decides, with their names in the file, or else as in `image.1`. */
  open: { axis: number; name: string }[];
}

export interface Info {
  backend: "webgpu" | "cpu";
  /** The GPU, as far as the browser tells. */
  device: { name: string; software: boolean; halves: boolean; timestamps: boolean } | null;
  /** Why it is this one; on the CPU also why it has one thread. */
  reason: string;
  /** Threads of the CPU; undefined on WebGPU. */
  threads?: number;
}

export interface Step {
  name: string;
  op: string;
  kernel: string;
  workGroup: [number, number, number];
  /** Where the kernel came from: by hand, by rule, or which row of the record. */
  source: string;
  flops: number;
}

/** A step of a profile. */
export interface TimedStep extends Step {
  /** Its time in microseconds. */
  us: number;
}

export interface Profile {
  /** What measured the times. */
  clock: string;
  /** The sum of all steps. */
  us: number;
  steps: TimedStep[];
}

export type LoadProgress =
  | { stage: "download"; done: number; total?: number }
  | { stage: "build"; done: number; total: number };

/** What `load` may be given. An option that is not one of these is refused. */
export interface LoadOptions {
  /** `auto` (the default) takes WebGPU, else the CPU, and `info.reason` says why. */
  backend?: "auto" | "webgpu" | "cpu";
  /** The page's own device. What it lacks of features and limits is not used. */
  device?: GPUDevice;
  /**
   * Threads of the CPU at most, from 1 to 64: as many as there are processors, up to 8, unless set. There is one where the page is
   * not cross-origin isolated, where the browser has no relaxed SIMD, and in Node.
   */
  threads?: number;
  /** In a worker, so that nothing runs on the calling thread; without `device` and `GPUBuffer`s. */
  worker?: boolean;
  onProgress?: (progress: LoadProgress) => void;
  /** Ends the download, and the preparation between two kernels. `load` then fails with the signal's reason. */
  signal?: AbortSignal;
  /**
   * Files that an ONNX model keeps weights in, by the names that it has for them. Those that are not here are fetched from the
   * model's folder, if the model is given as a URL.
   */
  externalData?: Record<string, ModelSource>;
  /** Storage and arithmetic: f32 (the default), halves in memory, or halves throughout. */
  precision?: "f32" | "f16s" | "f16";
  /**
   * Whether operators of quantised networks are computed with floats that are rounded to what the file's integers stand for, and
   * not with these; floats beside weights of integers are not rounded at each run then.
   */
  dequantize?: boolean;
  /** Fixes extents that the model leaves open, by name. Each run decides the others. */
  dimensions?: Record<string, number>;
  /** The seed of the random numbers that the model draws, 0 unless said otherwise: they are the same on every device. */
  seed?: number | bigint;
  /** Whether the tuner's record is kept in IndexedDB and asked; true unless said otherwise. */
  record?: boolean;
  /** The folder of the `.wasm` files, if not the package's own. */
  wasm?: string | URL;
}

export interface Verdict {
  op: string;
  problem: string;
  nodes: string[];
  /** What an untuned session runs, and what to run. */
  default: string;
  choice: string | null;
  defaultUs: number | null;
  us: number | null;
  speedUp: number;
  tried: number;
  cutShort: boolean;
  ms: number;
}

export interface TuneProgress {
  /** Problems that are over, that have a verdict, and that there are. */
  done: number;
  visited: number;
  problems: number;
  /** Candidates tried of the present problem, and all of them. */
  tried: number;
  candidates: number;
  finished: boolean;
  elapsedMs: number;
  clock: string;
  /** Verdicts since the last call. */
  verdicts: Verdict[];
  /** Microseconds of all nodes, untuned and as tuned so far. */
  totals: [number, number];
}

export interface TuneOptions {
  /** Milliseconds in all; 5000 unless said otherwise. */
  budgetMs?: number;
  /** Milliseconds at a time, between which runs have their turn. */
  stepMs?: number;
  onProgress?: (progress: TuneProgress) => void;
  /** Ends the tuning early; what was found is kept. */
  signal?: AbortSignal;
}

export interface TuneResult {
  /** Steps that have another kernel now. */
  changed: string[];
  verdicts: Verdict[];
  totals: [number, number];
  clock: string;
  /** Whether the record was kept in IndexedDB. */
  kept: boolean;
  finished: boolean;
}

export interface Session {
  readonly info: Info;
  /** The inputs that a run needs. */
  readonly inputs: Port[];
  /** Those that it may be given as well, because the file has a value for them. */
  readonly optionalInputs: Port[];
  readonly outputs: Port[];
  /** Those for the extents of the last run; none before it, if the model leaves extents open. */
  readonly steps: Step[];
  /** Whether each run decides extents. The first run of new ones prepares for them; the 32 last used are kept ready. */
  readonly open: boolean;
  /** Bytes of values and of constants. */
  readonly memory: { values: number; constants: number };
  /** What the file says: the model's name, normalisation of inputs, labels of outputs. */
  readonly model: { name: string; normalisation: [number, number][][]; labels: string[][] };
  /** The device it runs on; undefined on the CPU and in a worker. */
  readonly device?: GPUDevice;
  /** Settles with the reason when the device is lost. Calls then fail with a `DeviceLostError` until `restore`. */
  readonly lost: Promise<string>;

  /** Runs the network: outputs by name, each the array of its port's `dtype`. Calls made meanwhile wait their turn. */
  run<Output extends Elements = Float32Array>(
    inputs: Inputs,
    options?: { tensors?: false; buffers?: false },
  ): Promise<Record<string, Output>>;
  /** The same with each output's extents in this run. What comes out can go in again. */
  run<Output extends Elements = Float32Array>(
    inputs: Inputs,
    options: { tensors: true; buffers?: false },
  ): Promise<Record<string, Tensor<Output>>>;
  /** One of the two, as `tensors` says when the program runs. */
  run<Output extends Elements = Float32Array>(
    inputs: Inputs,
    options: { tensors?: boolean; buffers?: false },
  ): Promise<Record<string, Output> | Record<string, Tensor<Output>>>;
  /**
   * The same with outputs as buffers on the session's device: those given by name, or new ones, which are the page's. With
   * buffers on either side, extents that the model leaves open are those of the last run.
   */
  run(inputs: Inputs, options: { buffers: true | Record<string, GPUBuffer> }): Promise<Record<string, GPUBuffer>>;
  /** The time of each step of one run. */
  profile(inputs: Inputs): Promise<Profile>;
  /**
   * Times kernels on the user's own GPU and takes the best, for the extents of the last run. Runs may go on meanwhile. The first call downloads the module
   * that has the tuner, and holds the model a second time until it is over.
   */
  tune(options?: TuneOptions): Promise<TuneResult>;
  /**
   * Makes everything anew after the device was lost, on a device of the session's own if none is given. None can be given to a worker.
   * A call that fails with a `StoppedError` leaves a network that cannot be used; it is made anew too.
   */
  restore(options?: { device?: GPUDevice }): Promise<void>;
  /**
   * Ends the session once the calls before it have ended, and destroys its device. In a worker it ends at once, and these calls fail.
   * The page's own device stays: what the session had on it is freed when the browser collects it, or when the page destroys the
   * device.
   */
  free(): Promise<void>;
}

export declare const Diptych: {
  load(model: ModelSource, options?: LoadOptions): Promise<Session>;
  /** What `load` would run on, without a model. */
  probe(options?: Pick<LoadOptions, "backend" | "device" | "wasm">): Promise<Info>;
};

export default Diptych;

/**
 * Where a picture of `from` (width, height) lies in an input of `to`, and how a position of the input, counted from
 * pixel centres, is one of the picture.
 */
export declare function transform(
  from: [number, number],
  to: [number, number],
  fit?: Fit,
): { offset: [number, number]; size: [number, number]; back(position: [number, number]): [number, number] };

// Not all versions of TypeScript know WebGPU. Where one does, or `@webgpu/types` is installed, its declarations are merged with these.
declare global {
  interface GPUDevice {
    readonly queue: GPUQueue;
  }
  interface GPUQueue {}
  interface GPUBuffer {
    readonly size: number;
    readonly usage: number;
  }
}
