//! The functions of `echo.cc`. All unsafe code of this program is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::net::SocketAddr;
use std::ptr::{NonNull, null};
use std::slice;
use std::time::Duration;

use compare_kit::{Error, answer};

#[repr(C)]
struct EchoServer([u8; 0]);

#[repr(C)]
struct EchoClient([u8; 0]);

unsafe extern "C" {
    safe fn echo_version() -> NonNull<c_char>;
    fn echo_listen(address: *const c_char, port: &mut c_int) -> Option<NonNull<EchoServer>>;
    fn echo_serve(server: NonNull<EchoServer>);
    fn echo_stop(server: NonNull<EchoServer>);
    safe fn echo_client() -> NonNull<EchoClient>;
    fn echo_connect(client: NonNull<EchoClient>, address: *const c_char);
    fn echo_send(
        client: NonNull<EchoClient>,
        server: usize,
        call: u64,
        request: *const u8,
        length: usize,
    );
    fn echo_receive(
        client: NonNull<EchoClient>,
        micros: i64,
        call: &mut u64,
        reply: &mut *const u8,
    ) -> isize;
}

/// Called by a server for each request.
#[unsafe(no_mangle)]
unsafe extern "C" fn compare_answer(request: *const u8, length: usize, receipt: *mut u8) -> usize {
    // SAFETY: the caller has a string of this length.
    let request = unsafe { slice::from_raw_parts(request, length) };
    answer(request).map_or(0, |bytes| {
        // SAFETY: the caller provides 16 bytes, and a receipt has 10.
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

/// A server; it exists until the process exits.
#[derive(Clone, Copy)]
pub(crate) struct Server(NonNull<EchoServer>);

// SAFETY: gRPC's servers and queues may be used by several threads concurrently.
unsafe impl Send for Server {}

impl Server {
    /// Listens at an address. Its port is returned as well.
    pub(crate) fn listen(address: SocketAddr) -> Result<(Self, u16), Error> {
        let (address, mut port) = (CString::new(address.to_string())?, 0);
        // SAFETY: the string ends with a zero, and outlives the call.
        let server = unsafe { echo_listen(address.as_ptr(), &mut port) };
        let server = server.ok_or("gRPC cannot listen")?;
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

/// A client; it exists until the process exits.
pub(crate) struct Client(NonNull<EchoClient>);

/// Return value of `echo_receive` without a reply.
const NOTHING: isize = -2;

impl Client {
    pub(crate) fn new() -> Self {
        Self(echo_client())
    }

    /// Adds a server.
    pub(crate) fn connect(&mut self, address: SocketAddr) -> Result<(), Error> {
        let address = CString::new(address.to_string())?;
        // SAFETY: the client is never freed, the string ends with a zero, and outlives the call.
        unsafe { echo_connect(self.0, address.as_ptr()) };
        Ok(())
    }

    /// Calls the server with this number.
    pub(crate) fn send(&mut self, server: usize, call: u64, request: &[u8]) {
        // SAFETY: the client is never freed and has the server, and the request is copied.
        unsafe { echo_send(self.0, server, call, request.as_ptr(), request.len()) }
    }

    /// Waits for the next reply, for up to `wait` if given. Returns its call and its content.
    pub(crate) fn receive(
        &mut self,
        wait: Option<Duration>,
    ) -> Result<Option<(u64, &[u8])>, Error> {
        let micros = wait.map_or(-1, |wait| wait.as_micros() as i64);
        let (mut call, mut reply) = (0, null());
        // SAFETY: the client is never freed, and borrowed exclusively.
        let length = match unsafe { echo_receive(self.0, micros, &mut call, &mut reply) } {
            NOTHING => return Ok(None),
            length => length.try_into().map_err(|_| "a call has failed")?,
        };
        // SAFETY: the reply is valid until the next call, and that needs the client mutably.
        Ok(Some((call, unsafe { slice::from_raw_parts(reply, length) })))
    }
}
