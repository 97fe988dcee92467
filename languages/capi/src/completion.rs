//! Completions of sent calls.

use crate::boundary::{check_result, reference, run, timeout};
use crate::buffer::Buffer;
use crate::endpoint::EndpointC;
use crate::error::ErrorC;
use apus::Completion;
use apus_bindings::{Failure, Patience, Status};

/// The outcome of a call sent with `apus_send`.
#[derive(Debug)]
#[repr(C)]
pub struct CompletionC {
    /// The cookie passed to `apus_send`.
    pub cookie: u64,
    /// The response, to be freed with `apus_buffer_free`; empty if the call failed.
    pub response: Buffer,
    /// The error of a failed call; its status is `APUS_STATUS_OK` if the call succeeded.
    pub error: ErrorC,
}

impl From<Completion> for CompletionC {
    fn from(Completion { cookie, result, .. }: Completion) -> Self {
        match result {
            Ok(bytes) => Self { cookie, response: Buffer::new(bytes), error: ErrorC::NONE },
            Err(failed) => {
                let error = ErrorC::new(&Failure::from(failed));
                Self { cookie, response: Buffer::EMPTY, error }
            }
        }
    }
}

/// Maximum number of completions moved by one call, which bounds the intermediate memory.
const LARGEST_BATCH: usize = 256;

/// Waits until any sent call has ended, and writes up to `capacity` completions. Writes their
/// number to `count`.
///
/// Waits up to `timeout_ns` nanoseconds: 0 does not wait, negative means no limit. If no call has
/// ended by then, succeeds with a `count` of 0. Writes at most 256 completions.
///
/// Returns `APUS_STATUS_CLOSED` or `APUS_STATUS_DRIVER_FAILED` when the endpoint is closed and all
/// completions have been received.
///
/// # Safety
///
/// Each pointer is null or points to a value of its type, `completions` to memory for `capacity` of
/// them. Their previous content is overwritten, not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_recv_completions(
    endpoint: *const EndpointC,
    completions: *mut CompletionC,
    capacity: usize,
    timeout_ns: i64,
    count: *mut usize,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        check_result(count, "count")?;
        if capacity > 0 {
            check_result(completions, "completions")?;
        }
        let limit = capacity.min(LARGEST_BATCH);
        let mut received = Vec::with_capacity(limit.min(16));
        let patience = Patience::up_to(timeout(timeout_ns));
        let number = endpoint.0.recv_completions(&mut received, limit, patience)?;
        for (index, completion) in received.into_iter().enumerate() {
            // SAFETY: `completions` has room for `capacity`, and there are at most that many.
            let place = unsafe { completions.add(index) };
            // SAFETY: as above.
            unsafe { place.write(completion.into()) };
        }
        // SAFETY: not null, so it points to memory for a number.
        unsafe { count.write(number) };
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}
