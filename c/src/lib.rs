//! Diptych in C: `include/diptych.h` is written from this crate by cbindgen.
//!
//! Each function checks its pointers and lengths, does its work within [`guard`](errors::guard), which turns errors and
//! panics into a status, and says what it needs of its caller under "Safety".

#![warn(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![expect(non_camel_case_types, reason = "the names are C's")]

mod calls;
mod errors;
mod frames;
mod options;
mod pointers;
mod session;
mod tensors;
mod typed;

pub use calls::{
    diptych_input_data, diptych_output_data, diptych_profile, diptych_progress_callback, diptych_run,
    diptych_step, diptych_step_callback, diptych_tune,
};
pub use errors::{diptych_last_error, diptych_status};
pub use frames::{diptych_frame, diptych_frame_input};
pub use options::{
    diptych_options, diptych_options_caches, diptych_options_dequantize, diptych_options_device,
    diptych_options_dimension, diptych_options_f16, diptych_options_free, diptych_options_new,
    diptych_options_record, diptych_options_seed,
};
pub use session::{
    DIPTYCH_MAX_RANK, diptych_close, diptych_device, diptych_dtype, diptych_input, diptych_input_axis,
    diptych_input_count, diptych_open_bytes, diptych_open_file, diptych_output, diptych_output_count,
    diptych_port, diptych_reset, diptych_session, diptych_version,
};
pub use tensors::{
    diptych_outputs, diptych_outputs_count, diptych_outputs_free, diptych_outputs_tensor,
    diptych_run_tensors, diptych_tensor,
};
pub use typed::{diptych_input_bytes, diptych_output_bytes, diptych_profile_typed, diptych_run_typed};
