//! Counters of an endpoint.

use crate::boundary::{check_result, invalid, reference, run, text};
use crate::buffer::Buffer;
use crate::endpoint::EndpointC;
use crate::error::ErrorC;
use apus::Bytes;
use apus_bindings::Status;
use std::ffi::c_char;

/// Reads a counter or a gauge of an endpoint by its name in docs/metrics.md, such as
/// "client_responses_done". Returns `APUS_STATUS_INVALID_ARGUMENT` for an unknown name.
///
/// Each call reads all counters: use `apus_endpoint_metrics` for several.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, `name` null or a 0-terminated text, `value` null or memory
/// for a number, and `error` null or memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_metric(
    endpoint: *const EndpointC,
    name: *const c_char,
    value: *mut u64,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        check_result(value, "value")?;
        // SAFETY: promised by the caller.
        let name = unsafe { text(name, "name") }?.ok_or_else(|| invalid("name", "is null"))?;
        let metrics = endpoint.0.metrics();
        let found = metrics.get(name);
        let found =
            found.ok_or_else(|| invalid("name", "is no counter; docs/metrics.md has all"))?;
        // SAFETY: not null, so it points to memory for a number.
        unsafe { value.write(*found) };
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

/// Writes all counters and gauges of an endpoint as text, one line `NAME VALUE` each, sorted by
/// name. The text is not 0-terminated; free it with `apus_buffer_free`.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, `lines` null or memory for a buffer, whose previous content
/// is not freed, and `error` null or memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_metrics(
    endpoint: *const EndpointC,
    lines: *mut Buffer,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        check_result(lines, "lines")?;
        let metrics = endpoint.0.metrics();
        let all: String = metrics.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        // SAFETY: not null, so it points to memory for a buffer.
        unsafe { lines.write(Buffer::new(Bytes::from(all))) };
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}
