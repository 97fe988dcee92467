//! Endpoints: opening, freeing, and operations on the whole endpoint.

use crate::address::Address;
use crate::boundary::{check_result, invalid, reference, run, run_plain, text, timeout};
use crate::error::ErrorC;
use apus_bindings::{Endpoint, EndpointOptions, Failure, Patience, Status};
use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Flag of `apus_endpoint_bind` and `apus_endpoint_client`: the endpoint has descriptors for an
/// event loop. A separate thread then runs the protocol, and the options `poll` and `engine` have
/// no effect. Without the flag, waiting threads poll the network themselves, which is faster.
pub const APUS_DESCRIPTORS: u32 = 1;

/// Client and server in one: sends requests to any number of peers and serves theirs. Any number of
/// threads may use it at the same time.
#[derive(Debug)]
pub struct EndpointC(pub(crate) Endpoint);

/// Opens an endpoint that serves requests at `address`, such as "0.0.0.0:4000". Port 0 selects a
/// free port, which `apus_endpoint_address` returns.
///
/// `options` is TOML text with the keys of docs/configuration.md, such as "poll = 'block'"; null
/// selects the defaults.
///
/// # Safety
///
/// `address` is a 0-terminated text, `options` is null or such a text, `endpoint` points to memory
/// for a pointer, and `error` is null or points to memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_bind(
    address: *const c_char,
    options: *const c_char,
    flags: u32,
    endpoint: *mut *mut EndpointC,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        let address = unsafe { text(address, "address") }?;
        let address = address.ok_or_else(|| invalid("address", "is null"))?;
        // SAFETY: promised by the caller.
        unsafe { open(Some(address), options, flags, endpoint) }
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

/// Opens an endpoint at a free port, which does not serve requests.
///
/// `options` is as in `apus_endpoint_bind`.
///
/// # Safety
///
/// `options` is null or a 0-terminated text, `endpoint` points to memory for a pointer, and `error`
/// is null or points to memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_client(
    options: *const c_char,
    flags: u32,
    endpoint: *mut *mut EndpointC,
    error: *mut ErrorC,
) -> Status {
    // SAFETY: promised by the caller.
    let body = || unsafe { open(None, options, flags, endpoint) };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

/// # Safety
///
/// `options` is null or a 0-terminated text, and `result` is null or points to memory for a
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
    // SAFETY: promised by the caller.
    let toml = unsafe { text(options, "options") }?.unwrap_or_default();
    let options = EndpointOptions::parse(toml, flags & APUS_DESCRIPTORS != 0)?;
    let endpoint = Box::new(EndpointC(Endpoint::open(address, options)?));
    // SAFETY: not null, so it points to memory for a pointer.
    unsafe { result.write(Box::into_raw(endpoint)) };
    Ok(())
}

/// Shuts an endpoint down and frees it. Outstanding calls end at their servers as cancelled;
/// received requests without a reply fail at their clients. Does nothing for null.
///
/// # Safety
///
/// `endpoint` is null or an endpoint that was not freed, and no other thread uses it. Requests and
/// buffers may outlive it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_free(endpoint: *mut EndpointC) {
    if !endpoint.is_null() {
        // SAFETY: the pointer stems from `Box::into_raw` in `open`, and the caller gives up
        // ownership.
        run_plain((), || drop(unsafe { Box::from_raw(endpoint) }));
    }
}

/// Writes the address of the endpoint's socket. The IP address is 0.0.0.0 or :: if it is bound to
/// all addresses of the host.
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
        // SAFETY: promised by the caller.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        check_result(address, "address")?;
        // SAFETY: not null, so it points to memory for an address.
        unsafe { address.write(Address::new(endpoint.0.handle().local_addr())) };
        Ok(())
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Shuts the endpoint down: outstanding calls fail, requests are refused, and every waiting
/// function returns `APUS_STATUS_CLOSED`. The endpoint must still be freed. Use it to end waiting
/// threads before `apus_endpoint_free`.
///
/// # Safety
///
/// `endpoint` is null or an endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_shutdown(endpoint: *const EndpointC) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        unsafe { reference(endpoint, "endpoint") }?.0.handle().shutdown();
        Ok(())
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Waits until the peers have acknowledged all messages, for example after the last reply and
/// before the process ends. Returns `APUS_STATUS_DEADLINE_EXCEEDED` if they have not after
/// `timeout_ns` nanoseconds (negative: no limit), or if the endpoint is closed first.
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
        // SAFETY: promised by the caller.
        let endpoint = unsafe { reference(endpoint, "endpoint") }?;
        if endpoint.0.drain(Patience::up_to(timeout(timeout_ns))) {
            return Ok(());
        }
        Err(Failure::new(Status::DeadlineExceeded, "not everything is acknowledged"))
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Returns the descriptor that is readable while `apus_recv_completions` would return completions
/// without waiting. It may also be readable without completions; call `apus_recv_completions` with
/// a timeout of 0 before polling it again. It belongs to the endpoint: only poll it, do not read
/// from it or close it.
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
    // SAFETY: promised by the caller.
    unsafe { descriptor(endpoint, error, Endpoint::completion_descriptor) }
}

/// Returns the descriptor that is readable while `apus_recv_requests` would return requests without
/// waiting; see `apus_endpoint_completion_descriptor`.
///
/// # Safety
///
/// `endpoint` is null or an endpoint, and `error` null or memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_endpoint_request_descriptor(
    endpoint: *const EndpointC,
    error: *mut ErrorC,
) -> c_int {
    // SAFETY: promised by the caller.
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
        // SAFETY: promised by the caller.
        descriptor = which(&unsafe { reference(endpoint, "endpoint") }?.0)?.as_raw_fd();
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) };
    descriptor
}
