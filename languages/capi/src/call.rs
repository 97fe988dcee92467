//! Calls: call, send, cancel.

use crate::address::Address;
use crate::boundary::{bytes, check_result, invalid, reference, run, run_plain};
use crate::buffer::Buffer;
use crate::endpoint::EndpointC;
use crate::error::ErrorC;
use apus::{Bytes, CallId};
use apus_bindings::{Failure, Status};
use std::ffi::c_void;
use std::num::NonZeroU64;
use std::time::Duration;

/// Flag of a call: executing the request twice is harmless, so the call survives a restart of the
/// server.
pub const APUS_IDEMPOTENT: u32 = 1;
/// Flag of a call: if a limit is reached, the call fails at once with `APUS_STATUS_NO_ROOM` instead
/// of waiting.
pub const APUS_NO_WAIT: u32 = 2;

/// Options of a call. Zeros select the defaults.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct CallOptions {
    /// Nanoseconds after which the call fails. 0: the endpoint's `call_timeout_msecs`, a minute by
    /// default; negative: no limit.
    pub timeout_ns: i64,
    /// `APUS_IDEMPOTENT`, `APUS_NO_WAIT`, both or 0.
    pub flags: u32,
}

impl CallOptions {
    /// # Safety
    ///
    /// `options` is null or points to options.
    unsafe fn read(options: *const Self) -> Result<apus::CallOptions, Failure> {
        // SAFETY: promised by the caller.
        let Some(Self { timeout_ns, flags }) = unsafe { options.as_ref() }.copied() else {
            return Ok(apus::CallOptions::new());
        };
        if flags & !(APUS_IDEMPOTENT | APUS_NO_WAIT) != 0 {
            return Err(invalid("options", "has a flag that this version does not know"));
        }
        let options = apus::CallOptions::new()
            .idempotent(flags & APUS_IDEMPOTENT != 0)
            .no_wait(flags & APUS_NO_WAIT != 0);
        Ok(match timeout_ns {
            0 => options,
            limit => options.timeout(limit.try_into().map_or(Duration::MAX, Duration::from_nanos)),
        })
    }
}

/// Sends a request and waits for the response. Signals do not end the wait: `options` limits it.
///
/// Copies the `length` bytes at `request`. Writes `response` only if the call succeeds; free it
/// with `apus_buffer_free`.
///
/// # Safety
///
/// Each pointer is null or points to a value of its type, `request` to `length` bytes. The previous
/// content of `response` is overwritten, not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_call(
    endpoint: *const EndpointC,
    to: *const Address,
    request: *const c_void,
    length: usize,
    options: *const CallOptions,
    response: *mut Buffer,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        // SAFETY: promised by the caller.
        let to = unsafe { reference(to, "to") }?.socket_addr()?;
        // SAFETY: promised by the caller.
        let request = Bytes::copy_from_slice(unsafe { bytes(request, length, "request") }?);
        // SAFETY: promised by the caller.
        let options = unsafe { CallOptions::read(options) }?;
        check_result(response, "response")?;
        let bytes = endpoint.0.call(to, request.into(), options, None)?;
        // SAFETY: not null, so it points to memory for a buffer.
        unsafe { response.write(Buffer::new(bytes)) };
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

/// Sends a request and returns without waiting for the response: `apus_recv_completions` returns
/// the outcome later, together with `cookie`.
///
/// Copies the `length` bytes at `request`. Writes the number of the call, for `apus_cancel`, to
/// `call` unless that is null. Waits for room if a limit is reached, unless `APUS_NO_WAIT` is set.
/// A thread that both sends and receives completions sets it, and receives completions when there
/// is no room.
///
/// # Safety
///
/// Each pointer is null or points to a value of its type, `request` to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_send(
    endpoint: *const EndpointC,
    to: *const Address,
    request: *const c_void,
    length: usize,
    options: *const CallOptions,
    cookie: u64,
    call: *mut u64,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        // SAFETY: promised by the caller.
        let to = unsafe { reference(to, "to") }?.socket_addr()?;
        // SAFETY: promised by the caller.
        let request = Bytes::copy_from_slice(unsafe { bytes(request, length, "request") }?);
        // SAFETY: promised by the caller.
        let options = unsafe { CallOptions::read(options) }?;
        let id = endpoint.0.send(to, request.into(), cookie, options, None)?;
        if !call.is_null() {
            // SAFETY: not null, so it points to memory for a number.
            unsafe { call.write(id.to_bits().get()) };
        }
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

/// Cancels a sent call. Its completion will not be received; the server may have executed the
/// request.
///
/// Returns false if the call has already ended, in which case its completion is received as usual,
/// or if there is no such call.
///
/// # Safety
///
/// `endpoint` is null or an endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_cancel(endpoint: *const EndpointC, call: u64) -> bool {
    run_plain(false, || {
        // SAFETY: promised by the caller.
        let endpoint = unsafe { endpoint.as_ref() };
        match (endpoint, NonZeroU64::new(call)) {
            (Some(endpoint), Some(call)) => endpoint.0.handle().cancel(CallId::from_bits(call)),
            _ => false,
        }
    })
}
