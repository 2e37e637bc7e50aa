//! Requests that were handed in.

use crate::calls::names;
use crate::errors::{Failure, diptych_status, guard, wrong};
use crate::into::{Found, diptych_result, fill, places};
use crate::tensors::diptych_outputs;
use diptych::{Port, Ticket};
use diptych_pointers::out;
use std::sync::Arc;

/// A request that was handed in. Made by diptych_batch_submit; freed by the functions that wait for it, or by
/// diptych_ticket_free.
pub struct diptych_ticket {
    pub(crate) ticket: Ticket,
    pub(crate) outputs: Arc<[Port]>,
}

/// Waits for a request, and frees its ticket, also on failure. The outputs are the caller's, who frees them; on failure they
/// are NULL.
///
/// # Safety
/// `ticket` is of a function that hands in, and not used again. `outputs` points to a pointer that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_ticket_wait(
    ticket: *mut diptych_ticket,
    outputs: *mut *mut diptych_outputs,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `ticket` is of a function that hands in and not used again; `own` refuses NULL.
        let own = unsafe { own(ticket) }?;
        // SAFETY: the caller promises that `outputs` points to a pointer that nothing else uses; `out` refuses NULL.
        let outputs = unsafe { out("outputs", outputs) }?;
        outputs.write(std::ptr::null_mut());
        outputs.write(diptych_outputs::made(own.ticket.wait()?));
        Ok(())
    })
}

/// Waits for a request, and frees its ticket, also on failure. Outputs of the caller's choice are written to the caller's
/// memory, as diptych_run_into does it.
///
/// # Safety
/// `ticket` is of a function that hands in, and not used again. `results` points to `result_count` results, which have names
/// and point to so many bytes as they say, which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_ticket_wait_into(
    ticket: *mut diptych_ticket,
    results: *mut diptych_result,
    result_count: usize,
) -> diptych_status {
    guard(|| {
        // SAFETY: the caller promises that `ticket` is of a function that hands in and not used again; `own` refuses NULL.
        let own = unsafe { own(ticket) }?;
        // SAFETY: the caller promises that `results` points to `result_count` results with names; `places` refuses NULL
        // unless there are none.
        let places = unsafe { places(names(&own.outputs), results, result_count) }?;
        let found = Found::Tensors(own.ticket.wait()?);
        // SAFETY: the caller promises that the results point to so many bytes as they say, which no other thread uses;
        // `places` has one for each of the `result_count` results.
        unsafe { fill(&found, &own.outputs, &places, results) }
    })
}

/// The ticket, which is freed.
///
/// # Safety
/// It is NULL, or of a function that hands in and not used again.
unsafe fn own(ticket: *mut diptych_ticket) -> Result<diptych_ticket, Failure> {
    if ticket.is_null() {
        return Err(wrong("ticket", "NULL", "a pointer"));
    }
    // SAFETY: it comes from `Box::into_raw`, and is freed once.
    Ok(*unsafe { Box::from_raw(ticket) })
}

/// Frees a ticket: withdraws the request, unless its run has begun. NULL is allowed.
///
/// # Safety
/// `ticket` is NULL, or of a function that hands in, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn diptych_ticket_free(ticket: *mut diptych_ticket) {
    guard(|| {
        if !ticket.is_null() {
            // SAFETY: the caller promises that `ticket` is of a function that hands in and not used again; it is not NULL
            // (checked above).
            drop(unsafe { own(ticket) }?);
        }
        Ok(())
    });
}
