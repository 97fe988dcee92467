//! Counters of an endpoint.

use crate::boundary::{check_result, invalid, reference, run, text};
use crate::buffer::Buffer;
use crate::endpoint::EndpointC;
use crate::error::ErrorC;
use apus::Bytes;
use apus_bindings::Status;
use std::ffi::c_char;

/// Reads a counter or a gauge of an endpoint by its name in docs/metrics.md, such as "client_responses_done". A name that
/// there is not is `APUS_STATUS_INVALID_ARGUMENT`.
///
/// Each call reads all of them: use `apus_endpoint_metrics` for many.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, `name` null or a text with 0 at its end, `value` null or memory for a number, and
/// `error` null or memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_metric(
    endpoint: *const EndpointC,
    name: *const c_char,
    value: *mut u64,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: the caller's promise.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        check_result(value, "value")?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?.ok_or_else(|| invalid("name", "is null"))?;
        let metrics = endpoint.0.metrics();
        let found = metrics.get(name);
        let found =
            found.ok_or_else(|| invalid("name", "is no counter; docs/metrics.md has all"))?;
        // SAFETY: not null, so it points to memory for a number.
        unsafe { value.write(*found) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { run(error, body) }
}

/// Writes all counters and gauges of an endpoint as text, a line `NAME VALUE` for each, sorted by name. The text has no 0 at
/// its end; `apus_buffer_free` frees it.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, `lines` null or memory for a buffer, whose content is not freed, and `error` null or
/// memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_metrics(
    endpoint: *const EndpointC,
    lines: *mut Buffer,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: the caller's promise.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        check_result(lines, "lines")?;
        let metrics = endpoint.0.metrics();
        let all: String = metrics.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        // SAFETY: not null, so it points to memory for a buffer.
        unsafe { lines.write(Buffer::new(Bytes::from(all))) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { run(error, body) }
}
