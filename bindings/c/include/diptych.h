/* Diptych: neural networks on any GPU that speaks Vulkan or OpenCL, or on the CPU.
 *
 * Written by cbindgen from bindings/c/src (scripts/c header); do not edit.
 *
 * Errors: a call that can fail returns a diptych_status, and diptych_last_error() has the message. No call ends the
 * process, and no panic leaves the library.
 *
 * Threads: a session may be used by several threads, whose calls take turns. Options belong to one thread at a time.
 * diptych_last_error() is that of the thread that asks. A session does not survive fork().
 *
 * Memory: what a function gives is the library's, and lives as long as its comment says. What a function is given is
 * read or written before the function returns, and not kept. Pointers must be valid for what they are said to point
 * to; NULL and wrong lengths are errors. Text is UTF-8 that ends with a zero byte.
 */

#ifndef DIPTYCH_H
#define DIPTYCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The most axes that a tensor has.
#define DIPTYCH_MAX_RANK 6

// How a call ended. More may be added.
typedef enum diptych_status {
  // Success.
  DIPTYCH_STATUS_OK = 0,
  // A pointer is NULL, or a name, length or option does not fit.
  DIPTYCH_STATUS_INPUT = 1,
  // A file cannot be read or written.
  DIPTYCH_STATUS_FILE = 2,
  // A model's file is not valid.
  DIPTYCH_STATUS_MODEL = 3,
  // What was asked for is not offered.
  DIPTYCH_STATUS_UNSUPPORTED = 4,
  // There is no such device.
  DIPTYCH_STATUS_NO_DEVICE = 5,
  // A driver failed, or does not compile a kernel.
  DIPTYCH_STATUS_DRIVER = 6,
  // The device is gone. The session is of no more use: close it, and open another.
  DIPTYCH_STATUS_DEVICE_LOST = 7,
  // A callback ended the call.
  DIPTYCH_STATUS_STOPPED = 8,
  // A bug of the library's, to be reported.
  DIPTYCH_STATUS_INTERNAL = 9,
  // The device or its driver has no memory left.
  DIPTYCH_STATUS_OUT_OF_MEMORY = 10,
  // The device did not come to an end within DIPTYCH_TIME_LIMIT seconds. It may still be at work.
  DIPTYCH_STATUS_TIMED_OUT = 11,
} diptych_status;

// The type of an element. More may be added.
typedef enum diptych_dtype {
  // A float of 32 bits: float.
  DIPTYCH_DTYPE_F32 = 0,
  // A float of 16 bits, IEEE 754 binary16.
  DIPTYCH_DTYPE_F16 = 1,
  // int64_t. On a GPU inputs that do not fit 32 bits are refused; the CPU has all 64.
  DIPTYCH_DTYPE_I64 = 2,
  // int32_t.
  DIPTYCH_DTYPE_I32 = 3,
  // int16_t.
  DIPTYCH_DTYPE_I16 = 4,
  // int8_t.
  DIPTYCH_DTYPE_I8 = 5,
  // uint32_t.
  DIPTYCH_DTYPE_U32 = 6,
  // uint16_t.
  DIPTYCH_DTYPE_U16 = 7,
  // uint8_t.
  DIPTYCH_DTYPE_U8 = 8,
  // A byte: 0 is false, anything else true. Outputs have 0 and 1.
  DIPTYCH_DTYPE_BOOL = 9,
} diptych_dtype;

// A network that serves requests. Made by diptych_batch_open_file, closed by diptych_batch_close.
typedef struct diptych_batch diptych_batch;

// The devices of this machine. Made by diptych_devices_new, freed by diptych_devices_free.
typedef struct diptych_devices diptych_devices;

// A run that was started. Made by diptych_submit; freed by the functions that wait for it, or by diptych_flight_free.
typedef struct diptych_flight diptych_flight;

// How a session is opened. Made by diptych_options_new, freed by diptych_options_free.
typedef struct diptych_options diptych_options;

// The outputs of a run or of a request. Made by diptych_run_tensors, diptych_flight_wait and diptych_ticket_wait, freed by
// diptych_outputs_free. They may outlive their session.
typedef struct diptych_outputs diptych_outputs;

// A network that is ready to run, on a device.
typedef struct diptych_session diptych_session;

// A request that was handed in. Made by diptych_batch_submit; freed by the functions that wait for it, or by
// diptych_ticket_free.
typedef struct diptych_ticket diptych_ticket;

// How requests become runs. diptych_batch_options_default has the defaults.
typedef struct diptych_batch_options {
  // Requests of one run at most, 1 to 1024; 8 by default.
  size_t max_batch;
  // Seconds that a request waits for others at most, while no two runs are under way; 0.001 by default. With 0, batches are
  // what came while the device was busy.
  double max_delay;
  // Requests at most that have been taken and whose run has not begun; 32 by default.
  size_t max_waiting;
  // The batch sizes that are made ready; NULL for every size from 1 to `max_batch`, which is always one.
  const size_t *sizes;
  // How many sizes there are.
  size_t size_count;
  // The named extent that counts requests; NULL for the one that is the outermost of every input.
  const char *dimension;
} diptych_batch_options;

// An input or an output of a session or of a batch. The last axis is the fastest. An extent that each run decides
// (diptych_input_axis) is that of the last run, and 1 before the first one.
typedef struct diptych_port {
  // Its name, which lives as long as the session or the batch.
  const char *name;
  // How many axes it has.
  size_t rank;
  // Their extents; 1 beyond the rank.
  size_t extents[DIPTYCH_MAX_RANK];
  // How many elements it has.
  size_t elements;
  // Their type.
  enum diptych_dtype dtype;
  // How many bytes they have in this type, as diptych_run_typed takes and gives them.
  size_t bytes;
} diptych_port;

// Elements with their type and extents. The last axis is the fastest.
typedef struct diptych_tensor {
  // Points to the first element; without elements it may be NULL. An input's may be at any address; where that is a
  // multiple of four, floats are not copied. An output's is one for its type.
  const void *elements;
  // The number of bytes: that of an element of the type times all extents.
  size_t bytes;
  // The type of the elements, a diptych_dtype. An input takes other types than its own, if each number is one of its own.
  int32_t dtype;
  // How many axes it has, at most DIPTYCH_MAX_RANK.
  size_t rank;
  // Their extents; those beyond the rank are not read, and 1 of an output. With an extent of 0 there are no elements.
  size_t extents[DIPTYCH_MAX_RANK];
} diptych_tensor;

// The elements of an input, as floats. For an input of integers they must be whole numbers; diptych_run_typed takes
// integers as they are.
typedef struct diptych_input_data {
  // Points to the first element.
  const float *elements;
  // The number of elements: the port's, of the last run's extents where the file leaves them open.
  size_t length;
} diptych_input_data;

// Memory for the elements of an output, as floats. Integers of more than 24 bits are rounded; diptych_run_typed gives
// them as they are.
typedef struct diptych_output_data {
  // Points to the first element.
  float *elements;
  // The number of elements: the port's.
  size_t length;
} diptych_output_data;

// A step of a run: a node of the network, several that run as one, or a change of layout.
typedef struct diptych_step {
  // The node's name.
  const char *name;
  // The kernel's label.
  const char *kernel;
  // Its time on the device.
  double microseconds;
  // Its floating-point operations.
  uint64_t flops;
} diptych_step;

// Called with each step of a profile. The step is valid until the callback returns, which must neither throw nor jump out.
typedef void (*diptych_step_callback)(const struct diptych_step *step, void *user);

// Called several times a second with the number of problems that are done and of all problems. Returning false ends
// the search. It must neither throw nor jump out.
typedef bool (*diptych_progress_callback)(size_t done, size_t problems, void *user);

// A device of one API. A GPU is listed once for each API that reaches it. Texts live as long as the list.
typedef struct diptych_device_info {
  // The text by which diptych_options_device means this device: the backend with the PCI address, or with the number if
  // the driver reports no address.
  const char *id;
  // "wgpu", "opencl" or "cpu".
  const char *backend;
  // Its name.
  const char *name;
  // "Vulkan", "OpenCL" and others.
  const char *api;
  // The driver and its version; empty for the CPU.
  const char *driver;
  // Where it sits on the PCI bus, as in "0000:41:00.0"; NULL if its driver does not say so.
  const char *pci;
  // An identifier that the device has on every API of its driver; NULL if its driver does not say so.
  const char *uuid;
  // Whether it is a driver that runs kernels on the CPU, or the CPU itself.
  bool software;
  // Whether it computes in halves.
  bool halves;
} diptych_device_info;

// How bytes are a frame, and what a network sees of it. A frame of zeros is a start: set the format, the size and the deviation;
// for the other fields 0 is the common case.
typedef struct diptych_frame {
  // "NV12", "NV21", "I420", "YUYV", "UYVY", "Gray8", "RGB8", "BGR8", "RGBA8" or "BGRA8". Planes follow each other.
  const char *format;
  // Pixels of a row.
  uint32_t width;
  // Rows.
  uint32_t height;
  // Bytes from one row of the first plane to the next; 0 if rows follow each other.
  uint32_t stride;
  // The matrix: 0 for BT.601, 1 for BT.709, 2 for BT.2020.
  uint32_t matrix;
  // Whether 0 is black and 255 white; else 16 and 235.
  bool full_range;
  // Where chroma lies: 0 in the centre of its pixels, 1 at the left, 2 at the top left.
  uint32_t siting;
  // How it is fitted to the network's input: 0 stretches it, 1 shows all of it with borders, 2 covers the input.
  uint32_t fit;
  // Colours from 0 to 1 become (colour - mean) / deviation, each of red, green and blue by its own.
  float mean[3];
  // 1 leaves the scale as it is; 0 is an error.
  float deviation[3];
} diptych_frame;

// An output that is wanted, and the caller's memory for it.
typedef struct diptych_result {
  // The output's name, given by the caller.
  const char *name;
  // Memory for its elements, of its port's type, given by the caller. Any address will do.
  void *elements;
  // How many bytes there is room for, given by the caller.
  size_t capacity;
  // How many bytes were written, of `capacity`.
  size_t bytes;
  // The type of its elements, a diptych_dtype.
  int32_t dtype;
  // How many axes it has in this run.
  size_t rank;
  // Their extents; 1 beyond the rank.
  size_t extents[DIPTYCH_MAX_RANK];
} diptych_result;

// The elements of an input, of its port's type.
typedef struct diptych_input_bytes {
  // Points to the first element. Any address will do; where it is a multiple of four, floats are not copied.
  const void *elements;
  // The number of bytes: the port's.
  size_t bytes;
} diptych_input_bytes;

// Memory for the elements of an output, of its port's type.
typedef struct diptych_output_bytes {
  // Points to the first element. Any address will do.
  void *elements;
  // The number of bytes: the port's.
  size_t bytes;
} diptych_output_bytes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The defaults: up to 8 requests of a run, which wait for each other 1 ms, and 32 that wait for a run.
struct diptych_batch_options diptych_batch_options_default(void);

// Opens a file for requests of many threads: those of about the same time become one run, whose results are split again. Its
// devices are `device_count` texts as diptych_options_device takes them, or that of the options if there are none; requests
// wait in one queue, and each device takes its share. `options` may be NULL, and so may `how`. Extents that the file leaves
// open are fixed by diptych_options_dimension; an outermost one that is not is 1 for a request. The batch is the caller's,
// who closes it; on failure it is NULL.
//
// # Safety
// `path` is text, `options` are NULL, or those of diptych_options_new and not freed, `devices` is NULL or points to so
// many texts, `how` is NULL or points to options, and `batch` points to a pointer that nothing else uses.
enum diptych_status diptych_batch_open_file(const char *path,
                                            const struct diptych_options *options,
                                            const char *const *devices,
                                            size_t device_count,
                                            const struct diptych_batch_options *how,
                                            struct diptych_batch **batch);

// diptych_batch_open_file of a file that is in memory. The bytes may be freed afterwards.
//
// # Safety
// `bytes` points to `length` bytes, and the others are as those of diptych_batch_open_file.
enum diptych_status diptych_batch_open_bytes(const uint8_t *bytes,
                                             size_t length,
                                             const struct diptych_options *options,
                                             const char *const *devices,
                                             size_t device_count,
                                             const struct diptych_batch_options *how,
                                             struct diptych_batch **batch);

// Answers what was handed in, and frees a batch. NULL is allowed.
//
// # Safety
// `batch` is NULL, or of an open function, in no call of another thread's, and not used again.
void diptych_batch_close(struct diptych_batch *batch);

// How many inputs a request has; 0 if the batch is NULL.
//
// # Safety
// `batch` is NULL, or of an open function and not closed.
size_t diptych_batch_input_count(const struct diptych_batch *batch);

// How many outputs a request has; 0 if the batch is NULL.
//
// # Safety
// `batch` is NULL, or of an open function and not closed.
size_t diptych_batch_output_count(const struct diptych_batch *batch);

// An input of one request, by its number.
//
// # Safety
// `batch` is of an open function and not closed, and `input` points to a port that nothing else uses.
enum diptych_status diptych_batch_input(const struct diptych_batch *batch, size_t index, struct diptych_port *input);

// An output of one request, by its number.
//
// # Safety
// `batch` is of an open function and not closed, and `output` points to a port that nothing else uses.
enum diptych_status diptych_batch_output(const struct diptych_batch *batch, size_t index, struct diptych_port *output);

// Hands in a request: tensors in the order of the batch's inputs, which are copied. Waits until it is taken: at once where
// fewer than `max_waiting` wait. Any thread may call it. The ticket is the caller's, who waits for it or frees it; on failure
// it is NULL.
//
// # Safety
// `batch` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes as
// they say, which no other thread writes. `ticket` points to a pointer that nothing else uses.
enum diptych_status diptych_batch_submit(const struct diptych_batch *batch,
                                         const struct diptych_tensor *inputs,
                                         size_t input_count,
                                         struct diptych_ticket **ticket);

// diptych_batch_submit if there is room: otherwise the ticket is NULL, and that is no failure.
//
// # Safety
// `batch` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes as
// they say, which no other thread writes. `ticket` points to a pointer that nothing else uses.
enum diptych_status diptych_batch_try_submit(const struct diptych_batch *batch,
                                             const struct diptych_tensor *inputs,
                                             size_t input_count,
                                             struct diptych_ticket **ticket);

// Runs the network: reads the inputs and writes the outputs where they lie, each in the order of the session's ports.
// Outputs must not overlap with anything. After a failure their contents are unspecified.
//
// # Safety
// `session` is of an open function and not closed; `inputs` points to `input_count` inputs and `outputs` to `output_count`
// outputs, all of which point to so many floats as they say, which no other thread writes, nor reads if they are an
// output's. Outputs overlap with nothing else.
enum diptych_status diptych_run(struct diptych_session *session,
                                const struct diptych_input_data *inputs,
                                size_t input_count,
                                const struct diptych_output_data *outputs,
                                size_t output_count);

// Runs the network once, and tells `callback` the time of each step on the device's clock, in order.
//
// # Safety
// `session` is of an open function and not closed; `inputs` points to `input_count` inputs, which point to so many floats
// as they say, which no other thread writes. `callback` may be called with `user`.
enum diptych_status diptych_profile(struct diptych_session *session,
                                    const struct diptych_input_data *inputs,
                                    size_t input_count,
                                    diptych_step_callback callback,
                                    void *user);

// Times kernels on this device for so many seconds, and takes the faster ones. Each candidate's result is checked
// before it is timed. What is found goes to the record, also if `callback`, which may be NULL, ends the search. Where the
// file leaves extents open, the search is for those of the last run.
//
// # Safety
// `session` is of an open function and not closed. `callback` is NULL, or may be called with `user`.
enum diptych_status diptych_tune(struct diptych_session *session,
                                 double seconds,
                                 diptych_progress_callback callback,
                                 void *user);

// Lists the devices of every backend, and at last the CPU, which is always there. The list is the caller's, who frees it; on
// failure it is NULL.
//
// # Safety
// `devices` points to a pointer that nothing else uses.
enum diptych_status diptych_devices_new(struct diptych_devices **devices);

// How many devices there are; 0 if the list is NULL.
//
// # Safety
// `devices` is NULL, or of diptych_devices_new and not freed.
size_t diptych_devices_count(const struct diptych_devices *devices);

// A device, by its number in the list.
//
// # Safety
// `devices` is of diptych_devices_new and not freed, and `device` points to a diptych_device_info that nothing else uses.
enum diptych_status diptych_devices_get(const struct diptych_devices *devices,
                                        size_t index,
                                        struct diptych_device_info *device);

// Why a backend has no devices, such as "opencl"; NULL if it has some, or there is no such backend. Lives as long as the
// list.
//
// # Safety
// `devices` is NULL, or of diptych_devices_new and not freed, and `backend` is NULL or text.
const char *diptych_devices_missing(const struct diptych_devices *devices,
                                    const char *backend);

// Frees a list of devices. NULL is allowed.
//
// # Safety
// `devices` is NULL, or of diptych_devices_new, and neither it nor its texts are used again.
void diptych_devices_free(struct diptych_devices *devices);

// What went wrong in the last call of this thread that failed; empty if none did. Lives until the next call of this
// thread that fails.
const char *diptych_last_error(void);

// Makes an input of 1 x height x width x 3 floats of a frame, on the CPU: `elements` points to 3 * width * height
// floats, for diptych_run.
//
// # Safety
// `frame` points to a frame whose format is text, `data` to `bytes` bytes that no other thread writes, and `elements` to
// `length` floats that nothing else uses.
enum diptych_status diptych_frame_input(const struct diptych_frame *frame,
                                        const uint8_t *data,
                                        size_t bytes,
                                        uint32_t width,
                                        uint32_t height,
                                        float *elements,
                                        size_t length);

// Runs the network as diptych_run_tensors does, and writes outputs of the caller's choice to the caller's memory. Those
// without a result are not copied; what is not computed is said by diptych_options_output. A result without room is an error
// that says how many bytes it wants, and then nothing is written; where the file fixes the output's extents, nothing is run
// either.
//
// # Safety
// `session` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes
// as they say, which no other thread writes; `results` points to `result_count` results, which have names and point to so
// many bytes as they say, which no other thread uses.
enum diptych_status diptych_run_into(struct diptych_session *session,
                                     const struct diptych_tensor *inputs,
                                     size_t input_count,
                                     struct diptych_result *results,
                                     size_t result_count);

// Starts a run on tensors in the order of the session's inputs, as diptych_run_tensors has them. They are read before this
// returns. Runs take place in the order in which they were submitted; with two or three under way, uploads, runs and
// downloads overlap. The flight is the caller's, who waits for it or frees it; on failure it is NULL.
//
// # Safety
// `session` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes
// as they say, which no other thread writes. `flight` points to a pointer that nothing else uses.
enum diptych_status diptych_submit(struct diptych_session *session,
                                   const struct diptych_tensor *inputs,
                                   size_t input_count,
                                   struct diptych_flight **flight);

// Waits for a run, and frees its flight, also on failure. The outputs are the caller's, who frees them; on failure they are
// NULL.
//
// # Safety
// `flight` is of diptych_submit, and not used again. `outputs` points to a pointer that nothing else uses.
enum diptych_status diptych_flight_wait(struct diptych_flight *flight,
                                        struct diptych_outputs **outputs);

// Waits for a run, and frees its flight, also on failure. Outputs of the caller's choice are written to the caller's memory, as
// diptych_run_into does it.
//
// # Safety
// `flight` is of diptych_submit, and not used again. `results` points to `result_count` results, which have names and point
// to so many bytes as they say, which no other thread uses.
enum diptych_status diptych_flight_wait_into(struct diptych_flight *flight,
                                             struct diptych_result *results,
                                             size_t result_count);

// Frees a flight whose outputs nobody wants. The run ends all the same. NULL is allowed.
//
// # Safety
// `flight` is NULL, or of diptych_submit, and not used again.
void diptych_flight_free(struct diptych_flight *flight);

// New options with their defaults: any device, f32, no record of the tuner's. The caller frees them.
struct diptych_options *diptych_options_new(void);

// The device: "auto" (a GPU, else the CPU), "gpu" (a GPU of any API, never the CPU), "cpu", "wgpu", "opencl"; one of several by
// its number, PCI address, UUID or a part of its name, as in "wgpu:1", "opencl:0000:41:00.0" or "H200". "fastest" is the GPU or
// the CPU that runs the network in the least time: opening the session measures it, or finds it in the record. "auto" unless it
// is set.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread, and `device` is text.
enum diptych_status diptych_options_device(struct diptych_options *options,
                                           const char *device);

// Whether halves are stored, and computed in where the device does that. The CPU computes in f32.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread.
enum diptych_status diptych_options_f16(struct diptych_options *options, bool f16);

// Whether operators of quantised networks are computed with floats that are rounded to what the file's integers stand for, and
// not with these; floats beside weights of integers are not rounded at each run then. false unless it is set.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread.
enum diptych_status diptych_options_dequantize(struct diptych_options *options,
                                               bool dequantize);

// The seed of the random numbers that the model draws; 0 unless it is set. Sessions of one seed draw the same numbers, run
// for run, on every device.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread.
enum diptych_status diptych_options_seed(struct diptych_options *options,
                                         uint64_t seed);

// The folder of the tuner's record, which sessions ask and diptych_tune writes.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread, and `folder` is text.
enum diptych_status diptych_options_record(struct diptych_options *options, const char *folder);

// Fixes an extent that the model's file leaves open, such as "batch" (diptych_input_axis). Unless it is fixed, each run
// of diptych_run_tensors decides it.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread, and `name` is text.
enum diptych_status diptych_options_dimension(struct diptych_options *options, const char *name, size_t extent);

// Places for the keys and values that a decoder keeps from run to run (past_key_values and present). They stay on the
// device, and are no inputs and outputs of the session. A run of diptych_run_tensors has one token or several; masks and
// positions are those of all tokens so far. diptych_truncate goes back to the first ones, diptych_reset empties them.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread.
enum diptych_status diptych_options_caches(struct diptych_options *options,
                                           size_t places);

// The most threads that read the file, prepare the session and compute on the CPU, the caller's included; 0, the default, means
// one for each processor. To compute, the number is rounded down to a power of two.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread.
enum diptych_status diptych_options_threads(struct diptych_options *options,
                                            size_t threads);

// Chooses an output, by name; several calls choose several. Without a call the session has all outputs of the file. What
// no chosen output needs is not computed. Outputs keep the order of the file.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread, and `name` is text.
enum diptych_status diptych_options_output(struct diptych_options *options,
                                           const char *name);

// An input that is known beforehand, and is no input of the session: a file that computes shapes or branches from an input
// wants it. The tensor is copied.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread, `name` is text, and `value` points to
// a tensor, which points to so many bytes as it says.
enum diptych_status diptych_options_value(struct diptych_options *options,
                                          const char *name,
                                          const struct diptych_tensor *value);

// A file that holds weights of an ONNX model, by the name that the model has for it: for a model in memory. One that is opened
// by its path reads those beside it that are not given here. The bytes are copied, and may be freed afterwards.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread, `name` is text, and `bytes` points to
// `length` bytes.
enum diptych_status diptych_options_file(struct diptych_options *options,
                                         const char *name,
                                         const uint8_t *bytes,
                                         size_t length);

// What numbers a picture's bytes are: `(byte - mean) / deviation`, both in the units of bytes, 0 to 255. It is for tensors of
// DIPTYCH_DTYPE_U8 that diptych_run_tensors, diptych_run_into, diptych_submit and batches give an input of floats with three
// axes or more; for all such inputs if `input` is NULL. There is one mean and deviation for all channels, or one for each.
// Without this they are the metadata's of the file; where it has none, bytes are refused. Means 0 and deviations 255 are
// numbers from 0 to 1, means and deviations of 127.5 from -1 to 1.
//
// # Safety
// `options` are those of diptych_options_new, not freed and used by no other thread, `input` is NULL or text, and `means`
// and `deviations` point to `channels` numbers each.
enum diptych_status diptych_options_pixels(struct diptych_options *options,
                                           const char *input,
                                           const float *means,
                                           const float *deviations,
                                           size_t channels);

// Frees options. NULL is allowed.
//
// # Safety
// `options` are NULL, or those of diptych_options_new, and not used again.
void diptych_options_free(struct diptych_options *options);

// The library's version. Valid for ever.
const char *diptych_version(void);

// Opens a TensorFlow Lite or ONNX file; its contents say which it is. `options` may be NULL. Where the file leaves
// extents of inputs open, each run of diptych_run_tensors decides them. The session is the caller's, who closes it; on
// failure it is NULL.
//
// # Safety
// `path` is text, `options` are NULL, or those of diptych_options_new and not freed, and `session` points to a pointer
// that nothing else uses.
enum diptych_status diptych_open_file(const char *path,
                                      const struct diptych_options *options,
                                      struct diptych_session **session);

// Opens a TensorFlow Lite or ONNX file that is in memory. The bytes may be freed afterwards. `options` may be NULL.
// The session is the caller's, who closes it; on failure it is NULL.
//
// # Safety
// `bytes` points to `length` bytes, `options` are NULL, or those of diptych_options_new and not freed, and `session`
// points to a pointer that nothing else uses.
enum diptych_status diptych_open_bytes(const uint8_t *bytes,
                                       size_t length,
                                       const struct diptych_options *options,
                                       struct diptych_session **session);

// Closes a session and frees it. NULL is allowed.
//
// # Safety
// `session` is NULL, or of an open function, in no call of another thread's, and not used again.
void diptych_close(struct diptych_session *session);

// Sets what one run leaves to the next back to what it is in the first run: states, and the keys and values of
// diptych_options_caches.
//
// # Safety
// `session` is of an open function and not closed.
enum diptych_status diptych_reset(struct diptych_session *session);

// Goes back to the first `places` of the keys and values of diptych_options_caches: a run behind this call gives what it
// would have given without the runs that filled the others. More than are filled are refused.
//
// # Safety
// `session` is of an open function and not closed.
enum diptych_status diptych_truncate(struct diptych_session *session,
                                     size_t places);

// The device that a session runs on, and why it is this one. Lives as long as the session; NULL if that is NULL.
//
// # Safety
// `session` is NULL, or of an open function and not closed.
const char *diptych_device(const struct diptych_session *session);

// How many inputs a session has; 0 if it is NULL.
//
// # Safety
// `session` is NULL, or of an open function and not closed.
size_t diptych_input_count(const struct diptych_session *session);

// How many outputs a session has; 0 if it is NULL.
//
// # Safety
// `session` is NULL, or of an open function and not closed.
size_t diptych_output_count(const struct diptych_session *session);

// An input, by its number.
//
// # Safety
// `session` is of an open function and not closed, and `input` points to a port that nothing else uses.
enum diptych_status diptych_input(const struct diptych_session *session, size_t index, struct diptych_port *input);

// The name of an axis of an input whose extent each run decides, as diptych_options_dimension takes it; NULL if the
// extent is fixed. Lives as long as the session.
//
// # Safety
// `session` is of an open function and not closed, and `name` points to a pointer that nothing else uses.
enum diptych_status diptych_input_axis(const struct diptych_session *session,
                                       size_t index,
                                       size_t axis,
                                       const char **name);

// An output, by its number.
//
// # Safety
// `session` is of an open function and not closed, and `output` points to a port that nothing else uses.
enum diptych_status diptych_output(const struct diptych_session *session, size_t index, struct diptych_port *output);

// Runs the network on tensors in the order of the session's inputs. Where the file leaves extents open they may have
// any: the first run with certain extents prepares for them, which takes as long as opening a session, and those that
// were used last are kept ready. The outputs are the caller's, who frees them; on failure they are NULL.
//
// # Safety
// `session` is of an open function and not closed; `inputs` points to `input_count` tensors, which point to so many bytes
// as they say, which no other thread writes. `outputs` points to a pointer that nothing else uses.
enum diptych_status diptych_run_tensors(struct diptych_session *session,
                                        const struct diptych_tensor *inputs,
                                        size_t input_count,
                                        struct diptych_outputs **outputs);

// How many outputs there are: as many as the session or the batch has; 0 if they are NULL.
//
// # Safety
// `outputs` are NULL, or of a function that makes them and not freed.
size_t diptych_outputs_count(const struct diptych_outputs *outputs);

// An output, by its number, with its extents in that run. Its elements live until the outputs are freed.
//
// # Safety
// `outputs` are of a function that makes them and not freed, and `tensor` points to a tensor that nothing else uses.
enum diptych_status diptych_outputs_tensor(const struct diptych_outputs *outputs,
                                           size_t index,
                                           struct diptych_tensor *tensor);

// Frees outputs. NULL is allowed.
//
// # Safety
// `outputs` are NULL, or of a function that makes them, and neither they nor their elements are used again.
void diptych_outputs_free(struct diptych_outputs *outputs);

// Waits for a request, and frees its ticket, also on failure. The outputs are the caller's, who frees them; on failure they
// are NULL.
//
// # Safety
// `ticket` is of a function that hands in, and not used again. `outputs` points to a pointer that nothing else uses.
enum diptych_status diptych_ticket_wait(struct diptych_ticket *ticket,
                                        struct diptych_outputs **outputs);

// Waits for a request, and frees its ticket, also on failure. Outputs of the caller's choice are written to the caller's
// memory, as diptych_run_into does it.
//
// # Safety
// `ticket` is of a function that hands in, and not used again. `results` points to `result_count` results, which have names
// and point to so many bytes as they say, which no other thread uses.
enum diptych_status diptych_ticket_wait_into(struct diptych_ticket *ticket,
                                             struct diptych_result *results,
                                             size_t result_count);

// Frees a ticket: withdraws the request, unless its run has begun. NULL is allowed.
//
// # Safety
// `ticket` is NULL, or of a function that hands in, and not used again.
void diptych_ticket_free(struct diptych_ticket *ticket);

// Runs the network as diptych_run does, on inputs and outputs of the types of their ports: int64 as int64_t, and so on.
// Outputs must not overlap with anything. After a failure their contents are unspecified.
//
// # Safety
// `session` is of an open function and not closed; `inputs` points to `input_count` inputs and `outputs` to `output_count`
// outputs, all of which point to so many bytes as they say, which no other thread writes, nor reads if they are an
// output's. Outputs overlap with nothing else.
enum diptych_status diptych_run_typed(struct diptych_session *session,
                                      const struct diptych_input_bytes *inputs,
                                      size_t input_count,
                                      const struct diptych_output_bytes *outputs,
                                      size_t output_count);

// Profiles the network as diptych_profile does, on inputs of the types of their ports.
//
// # Safety
// `session` is of an open function and not closed; `inputs` points to `input_count` inputs, which point to so many bytes
// as they say, which no other thread writes. `callback` may be called with `user`.
enum diptych_status diptych_profile_typed(struct diptych_session *session,
                                          const struct diptych_input_bytes *inputs,
                                          size_t input_count,
                                          diptych_step_callback callback,
                                          void *user);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DIPTYCH_H */
