//! The functions of `echo.cc`. All unsafe code of this program is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::NonNull;
use std::slice;

use compare_kit::{Error, answer};

#[repr(C)]
struct EchoServer([u8; 0]);

#[repr(C)]
struct EchoClient([u8; 0]);

unsafe extern "C" {
    safe fn echo_version() -> NonNull<c_char>;
    safe fn echo_listen(port: &mut c_int) -> Option<NonNull<EchoServer>>;
    fn echo_serve(server: NonNull<EchoServer>);
    fn echo_stop(server: NonNull<EchoServer>);
    fn echo_connect(address: *const c_char) -> NonNull<EchoClient>;
    fn echo_send(client: NonNull<EchoClient>, request: *const u8, length: usize);
    fn echo_receive(client: NonNull<EchoClient>, reply: *mut u8, capacity: usize) -> isize;
}

/// Called by a server for each request.
#[unsafe(no_mangle)]
unsafe extern "C" fn compare_answer(request: *const u8, length: usize, receipt: *mut u8) -> usize {
    // SAFETY: the caller has a string of this length.
    let request = unsafe { slice::from_raw_parts(request, length) };
    answer(request).map_or(0, |bytes| {
        // SAFETY: the caller has room for 16 bytes, and a receipt has 10.
        unsafe { receipt.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        bytes.len()
    })
}

/// Version of gRPC.
pub(crate) fn version() -> String {
    // SAFETY: the string is never freed, and ends with a zero.
    let version = unsafe { CStr::from_ptr(echo_version().as_ptr()) };
    version.to_string_lossy().into_owned()
}

/// A server, which lives until the process ends.
#[derive(Clone, Copy)]
pub(crate) struct Server(NonNull<EchoServer>);

// SAFETY: gRPC's servers and queues may be used by several threads at once.
unsafe impl Send for Server {}

impl Server {
    /// Listens on a free port, which is returned as well.
    pub(crate) fn listen() -> Result<(Self, u16), Error> {
        let mut port = 0;
        let server = echo_listen(&mut port).ok_or("gRPC cannot listen")?;
        Ok((Self(server), port.try_into()?))
    }

    /// Answers requests until [`Server::stop`] is called.
    pub(crate) fn serve(self) {
        // SAFETY: the server is never freed.
        unsafe { echo_serve(self.0) }
    }

    pub(crate) fn stop(self) {
        // SAFETY: the server is never freed.
        unsafe { echo_stop(self.0) }
    }
}

/// A client, which lives until the process ends.
pub(crate) struct Client(NonNull<EchoClient>);

impl Client {
    pub(crate) fn connect(address: &str) -> Result<Self, Error> {
        let address = CString::new(address)?;
        // SAFETY: the string ends with a zero and outlives the call.
        Ok(Self(unsafe { echo_connect(address.as_ptr()) }))
    }

    pub(crate) fn send(&mut self, request: &[u8]) {
        // SAFETY: the client is never freed, and the request is copied.
        unsafe { echo_send(self.0, request.as_ptr(), request.len()) }
    }

    /// Waits for the next reply, writes it into `reply`, and returns its length; `None` if its call has failed.
    pub(crate) fn receive(&mut self, reply: &mut [u8]) -> Option<usize> {
        // SAFETY: the client is never freed, and writes no more bytes than there is room for.
        let length = unsafe { echo_receive(self.0, reply.as_mut_ptr(), reply.len()) };
        length.try_into().ok()
    }
}
