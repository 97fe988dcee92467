//! The functions of `side.c`. All unsafe code of this program is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null};
use std::slice;

use compare_kit::{Error, MAX_LENGTH, Wait};

#[repr(C)]
struct RawSide([u8; 0]);

unsafe extern "C" {
    safe fn ucp_get_version_string() -> NonNull<c_char>;
    fn side_listen(
        transports: *const c_char,
        capacity: usize,
        port: u16,
    ) -> Option<NonNull<RawSide>>;
    fn side_connect(
        transports: *const c_char,
        capacity: usize,
        port: u16,
    ) -> Option<NonNull<RawSide>>;
    fn side_send(side: NonNull<RawSide>, message: *const c_void, length: usize) -> c_int;
    fn side_receive(
        side: NonNull<RawSide>,
        is_spinning: c_int,
        message: &mut *const c_void,
    ) -> isize;
}

/// What `side_receive` returns if no message has arrived.
const NOTHING: isize = -1;

/// Version of UCX.
pub(crate) fn version() -> String {
    // SAFETY: the string is a constant of the library.
    let version = unsafe { CStr::from_ptr(ucp_get_version_string().as_ptr()) };
    version.to_string_lossy().into_owned()
}

/// One side of a connection, which lives until the process ends.
pub(crate) struct Side(NonNull<RawSide>);

impl Side {
    pub(crate) fn listen(transports: &CStr, port: u16) -> Result<Self, Error> {
        // SAFETY: the string ends with a zero.
        let side = unsafe { side_listen(transports.as_ptr(), MAX_LENGTH, port) };
        Ok(Self(side.ok_or("UCX cannot listen")?))
    }

    pub(crate) fn connect(transports: &CStr, port: u16) -> Result<Self, Error> {
        // SAFETY: the string ends with a zero.
        let side = unsafe { side_connect(transports.as_ptr(), MAX_LENGTH, port) };
        Ok(Self(side.ok_or("UCX cannot connect")?))
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        // SAFETY: the message is copied.
        let status = unsafe { side_send(self.0, message.as_ptr().cast(), message.len()) };
        if status == 0 { Ok(()) } else { Err("UCX cannot send".into()) }
    }

    /// Waits for a message for a while.
    pub(crate) fn receive(&mut self, wait: Wait) -> Result<Option<Vec<u8>>, Error> {
        let mut message = null();
        // SAFETY: this side is borrowed exclusively.
        let length = unsafe { side_receive(self.0, c_int::from(wait == Wait::Spin), &mut message) };
        if length == NOTHING {
            return Ok(None);
        }
        let length = length.try_into().map_err(|_| "UCX cannot receive")?;
        // SAFETY: that many bytes are there, and stay as they are until the next call.
        let message = unsafe { slice::from_raw_parts(message.cast::<u8>(), length) };
        Ok(Some(message.to_vec()))
    }
}
