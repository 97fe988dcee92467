//! Requests at a server, and replies.

use crate::address::Address;
use crate::boundary::{bytes, check_result, invalid, reference, run, run_plain, timeout};
use crate::endpoint::EndpointC;
use crate::error::ErrorC;
use apus::Bytes;
use apus_bindings::{Patience, Request, Status};
use std::ffi::c_void;

/// A received request, to be answered once with `apus_reply`. One thread at a time may use it; it
/// may be passed to another thread.
#[derive(Debug)]
pub struct RequestC(Request);

/// Maximum number of requests moved by one call; the rest stay with the endpoint, which bounds
/// them.
const LARGEST_BATCH: usize = 256;

/// Waits for requests from any client, and writes up to `capacity` of them. Writes their number to
/// `count`.
///
/// Waits up to `timeout_ns` nanoseconds: 0 does not wait, negative means no limit. If no request
/// has arrived by then, succeeds with a `count` of 0. Writes at most 256 requests.
///
/// Answer each request with `apus_reply` or free it with `apus_request_free`, even after its
/// endpoint is freed.
///
/// # Safety
///
/// Each pointer is null or points to a value of its type, `requests` to memory for `capacity`
/// pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_recv_requests(
    endpoint: *const EndpointC,
    requests: *mut *mut RequestC,
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
            check_result(requests, "requests")?;
        }
        let limit = capacity.min(LARGEST_BATCH);
        let mut received = Vec::with_capacity(limit.min(16));
        let patience = Patience::up_to(timeout(timeout_ns));
        let number = endpoint.0.recv_requests(&mut received, limit, patience)?;
        for (index, request) in received.into_iter().enumerate() {
            let request = Box::into_raw(Box::new(RequestC(request)));
            // SAFETY: `requests` has room for `capacity`, and there are at most that many.
            let place = unsafe { requests.add(index) };
            // SAFETY: as above.
            unsafe { place.write(request) };
        }
        // SAFETY: not null, so it points to memory for a number.
        unsafe { count.write(number) };
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

/// Returns the client's message, and writes its length in bytes. The pointer is valid until the
/// request is answered or freed, and never null for a request. For a null `request` it is null,
/// with a length of 0.
///
/// # Safety
///
/// `request` is null or a request, and `length` null or memory for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_request_payload(
    request: *const RequestC,
    length: *mut usize,
) -> *const u8 {
    // SAFETY: promised by the caller.
    let payload = unsafe { request.as_ref() }.map(|request| request.0.payload());
    if !length.is_null() {
        // SAFETY: not null, so it points to memory for a number.
        unsafe { length.write(payload.map_or(0, Bytes::len)) };
    }
    payload.map_or(std::ptr::null(), |payload| payload.as_ptr())
}

/// Writes the client's address.
///
/// # Safety
///
/// `request` is null or a request, and `address` null or memory for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_request_address(
    request: *const RequestC,
    address: *mut Address,
) -> Status {
    let body = || {
        // SAFETY: promised by the caller.
        let request = unsafe { reference(request, "request") }?;
        check_result(address, "address")?;
        // SAFETY: not null, so it points to memory for an address.
        unsafe { address.write(Address::new(request.0.peer_addr())) };
        Ok(())
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

/// Sends the response, which may be empty. Waits for room if a limit is reached.
///
/// Takes the request, which must not be used afterwards, even if the function fails: if the
/// response cannot be sent, for example because it is longer than `max_message`, the client gets an
/// error that states this. Copies the `length` bytes at
/// `response`, which may be the bytes of the request.
///
/// # Safety
///
/// `request` is null or a request that was neither answered nor freed, `response` points to
/// `length` bytes, and `error` is null or points to memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_reply(
    request: *mut RequestC,
    response: *const c_void,
    length: usize,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        if request.is_null() {
            return Err(invalid("request", "is null"));
        }
        // SAFETY: the pointer stems from `Box::into_raw` in `apus_recv_requests`, and the caller
        // gives up ownership.
        let mut request = unsafe { Box::from_raw(request) };
        // SAFETY: promised by the caller. The request, which may own the bytes, is still alive.
        let response = Bytes::copy_from_slice(unsafe { bytes(response, length, "response") }?);
        request.0.reply(response.into(), None)
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

/// Frees a request without a reply; its client gets an error that states this. Does nothing for
/// null.
///
/// # Safety
///
/// `request` is null or a request that was neither answered nor freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_request_free(request: *mut RequestC) {
    if !request.is_null() {
        // SAFETY: the pointer stems from `Box::into_raw` in `apus_recv_requests`, and the caller
        // gives up ownership.
        run_plain((), || drop(unsafe { Box::from_raw(request) }));
    }
}
