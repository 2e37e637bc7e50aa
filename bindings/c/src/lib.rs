//! Diptych in C: `include/diptych.h` is written from this crate by cbindgen.
//!
//! Each function checks its pointers and lengths, does its work within [`guard`](errors::guard), which turns errors and
//! panics into a status, and says what it needs of its caller under "Safety".

#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![expect(non_camel_case_types, reason = "the names are C's")]

mod batch;
mod calls;
mod devices;
mod errors;
mod frames;
mod into;
mod names;
mod options;
mod pixels;
mod session;
mod tensors;
mod tickets;
mod typed;

pub use batch::{
    diptych_batch, diptych_batch_close, diptych_batch_input, diptych_batch_input_count,
    diptych_batch_open_bytes, diptych_batch_open_file, diptych_batch_options, diptych_batch_options_default,
    diptych_batch_output, diptych_batch_output_count, diptych_batch_submit, diptych_batch_try_submit,
};
pub use calls::{
    diptych_input_data, diptych_output_data, diptych_profile, diptych_progress_callback, diptych_run,
    diptych_step, diptych_step_callback, diptych_tune,
};
pub use devices::{
    diptych_device_info, diptych_devices, diptych_devices_count, diptych_devices_free, diptych_devices_get,
    diptych_devices_missing, diptych_devices_new,
};
pub use errors::{diptych_last_error, diptych_status};
pub use frames::{diptych_frame, diptych_frame_input};
pub use into::{
    diptych_flight, diptych_flight_free, diptych_flight_wait, diptych_flight_wait_into, diptych_result,
    diptych_run_into, diptych_submit,
};
pub use options::{
    diptych_options, diptych_options_caches, diptych_options_dequantize, diptych_options_device,
    diptych_options_dimension, diptych_options_f16, diptych_options_file, diptych_options_free,
    diptych_options_new, diptych_options_output, diptych_options_pixels, diptych_options_record,
    diptych_options_seed, diptych_options_threads, diptych_options_value,
};
pub use session::{
    DIPTYCH_MAX_RANK, diptych_close, diptych_device, diptych_dtype, diptych_input, diptych_input_axis,
    diptych_input_count, diptych_open_bytes, diptych_open_file, diptych_output, diptych_output_count,
    diptych_port, diptych_reset, diptych_session, diptych_truncate, diptych_version,
};
pub use tensors::{
    diptych_outputs, diptych_outputs_count, diptych_outputs_free, diptych_outputs_tensor,
    diptych_run_tensors, diptych_tensor,
};
pub use tickets::{diptych_ticket, diptych_ticket_free, diptych_ticket_wait, diptych_ticket_wait_into};
pub use typed::{diptych_input_bytes, diptych_output_bytes, diptych_profile_typed, diptych_run_typed};
