//! Endpoints: opening, freeing, and what does not belong to one call.

use crate::address::Address;
use crate::boundary::{check_result, invalid, reference, run, run_plain, text, timeout};
use crate::error::ErrorC;
use apus_bindings::{Endpoint, EndpointOptions, Failure, Status};
use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Flag of `apus_endpoint_bind` and `apus_endpoint_client`: the endpoint has descriptors for an event loop. A thread of
/// its own then runs the protocol, and the options `poll` and `engine` have no effect. Without it, threads that wait poll
/// the network themselves, which is faster.
pub const APUS_DESCRIPTORS: u32 = 1;

/// Client and server at once: sends requests to any number of peers and serves theirs. Any number of threads may use it
/// at a time.
#[derive(Debug)]
pub struct EndpointC(pub(crate) Endpoint);

/// Opens an endpoint that serves requests at `address`, such as "0.0.0.0:4000". Port 0 selects a free port, which
/// `apus_endpoint_address` returns.
///
/// `options` are TOML text with the keys of docs/configuration.md, such as "poll = 'block'"; null means the defaults.
///
/// # Safety
///
/// `address` is a text with 0 at its end, `options` too or null, `endpoint` points to memory for a pointer, and `error`
/// is null or points to memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_bind(
    address: *const c_char,
    options: *const c_char,
    flags: u32,
    endpoint: *mut *mut EndpointC,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: the caller's promise.
        let address = unsafe { text(address, "address") }?;
        let address = address.ok_or_else(|| invalid("address", "is null"))?;
        // SAFETY: the caller's promise.
        unsafe { open(Some(address), options, flags, endpoint) }
    };
    // SAFETY: the caller's promise.
    unsafe { run(error, body) }
}

/// Opens an endpoint at a free port, which does not serve requests.
///
/// `options` are as in `apus_endpoint_bind`.
///
/// # Safety
///
/// `options` is null or a text with 0 at its end, `endpoint` points to memory for a pointer, and `error` is null or points
/// to memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_client(
    options: *const c_char,
    flags: u32,
    endpoint: *mut *mut EndpointC,
    error: *mut ErrorC,
) -> Status {
    // SAFETY: the caller's promise.
    let body = || unsafe { open(None, options, flags, endpoint) };
    // SAFETY: the caller's promise.
    unsafe { run(error, body) }
}

/// # Safety
///
/// `options` is null or a text with 0 at its end, and `result` is null or points to memory for a
/// pointer.
unsafe fn open(
    address: Option<&str>,
    options: *const c_char,
    flags: u32,
    result: *mut *mut EndpointC,
) -> Result<(), Failure> {
    check_result(result, "endpoint")?;
    if flags & !APUS_DESCRIPTORS != 0 {
        return Err(invalid("flags", "has a flag that this version does not know"));
    }
    // SAFETY: the caller's promise.
    let toml = unsafe { text(options, "options") }?.unwrap_or_default();
    let options = EndpointOptions::parse(toml, flags & APUS_DESCRIPTORS != 0)?;
    let endpoint = Box::new(EndpointC(Endpoint::open(address, options)?));
    // SAFETY: not null, so it points to memory for a pointer.
    unsafe { result.write(Box::into_raw(endpoint)) };
    Ok(())
}

/// Shuts an endpoint down and frees it. Outstanding calls end at their servers as cancelled; requests that were received
/// and not answered fail at their clients. Does nothing for null.
///
/// # Safety
///
/// `endpoint` is null or an endpoint that was not freed, and no other thread uses it. Requests and buffers outlive it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_free(endpoint: *mut EndpointC) {
    if !endpoint.is_null() {
        // SAFETY: it comes from `Box::into_raw` in `open`, and the caller gives it up.
        run_plain((), || drop(unsafe { Box::from_raw(endpoint) }));
    }
}

/// Writes the address of the endpoint's socket. The IP address is 0.0.0.0 or :: if it is bound to all addresses of the
/// host.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, and `address` null or memory for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_address(
    endpoint: *const EndpointC,
    address: *mut Address,
) -> Status {
    let body = || {
        // SAFETY: the caller's promise.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        check_result(address, "address")?;
        // SAFETY: not null, so it points to memory for an address.
        unsafe { address.write(Address::new(endpoint.0.handle().local_addr())) };
        Ok(())
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Shuts the endpoint down: outstanding calls fail, requests are refused, and every function that waits returns
/// `APUS_STATUS_CLOSED`. It must still be freed. Ends threads that wait, before `apus_endpoint_free`.
///
/// # Safety
///
/// `endpoint` is null or an endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_shutdown(endpoint: *const EndpointC) -> Status {
    let body = || {
        // SAFETY: the caller's promise.
        unsafe { reference(endpoint, "endpoint") }?.0.handle().shutdown();
        Ok(())
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Waits until the peers have acknowledged all messages, for example after the last reply and before the end of the
/// process. Returns `APUS_STATUS_DEADLINE_EXCEEDED` if they have not after `timeout_ns` nanoseconds (negative: no limit),
/// or the endpoint is closed before.
///
/// # Safety
///
/// `endpoint` is null or an endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_drain(
    endpoint: *const EndpointC,
    timeout_ns: i64,
) -> Status {
    let body = || {
        // SAFETY: the caller's promise.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        if endpoint.0.drain(timeout(timeout_ns).unwrap_or(Duration::MAX)) {
            return Ok(());
        }
        Err(Failure::new(Status::DeadlineExceeded, "not everything is acknowledged"))
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Returns the descriptor that is readable while `apus_recv_completions` would return something without waiting. It may
/// be readable when there is nothing; call `apus_recv_completions` with a timeout of 0 before you poll it again. It belongs
/// to the endpoint: poll it, and neither read from it nor close it.
///
/// Returns -1 if the endpoint was opened without `APUS_DESCRIPTORS`, or is null.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, and `error` null or memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_completion_descriptor(
    endpoint: *const EndpointC,
    error: *mut ErrorC,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { descriptor(endpoint, error, Endpoint::completion_descriptor) }
}

/// Returns the descriptor that is readable while `apus_recv_requests` would return something without waiting; see
/// `apus_endpoint_completion_descriptor`.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, and `error` null or memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_request_descriptor(
    endpoint: *const EndpointC,
    error: *mut ErrorC,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { descriptor(endpoint, error, Endpoint::request_descriptor) }
}

/// # Safety
///
/// `endpoint` is null or an endpoint, and `error` null or memory for an error.
unsafe fn descriptor(
    endpoint: *const EndpointC,
    error: *mut ErrorC,
    which: impl FnOnce(&Endpoint) -> Result<BorrowedFd<'_>, Failure>,
) -> c_int {
    let mut descriptor = -1;
    let body = || {
        // SAFETY: the caller's promise.
        descriptor = which(&unsafe { reference(endpoint, "endpoint") }?.0)?.as_raw_fd();
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { run(error, body) };
    descriptor
}
