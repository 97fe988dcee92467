//! The functions of `side.c`. All unsafe code of this program is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::SocketAddr;
use std::ptr::NonNull;
use std::slice;
use std::time::Duration;

use compare_kit::{Error, Wait};

#[repr(C)]
struct RawSide([u8; 0]);

#[repr(C)]
struct RawEndpoint([u8; 0]);

#[repr(C)]
struct RawMessage {
    next: *mut RawMessage,
    side: *mut RawSide,
    from: NonNull<RawEndpoint>,
    length: usize,
    call: u64,
    bytes: [u8; 0],
}

/// `struct sockaddr_in`.
#[repr(C)]
struct RawAddress {
    family: u16,
    port: u16,
    ip: [u8; 4],
    zero: [u8; 8],
}

const AF_INET: u16 = 2;

unsafe extern "C" {
    safe fn ucp_get_version_string() -> NonNull<c_char>;
    fn side_open(transports: *const c_char) -> Option<NonNull<RawSide>>;
    fn side_listen(side: NonNull<RawSide>, at: &RawAddress) -> c_int;
    fn side_connect(side: NonNull<RawSide>, at: &RawAddress) -> Option<NonNull<RawEndpoint>>;
    fn side_receive(
        side: NonNull<RawSide>,
        is_spinning: c_int,
        micros: u32,
    ) -> Option<NonNull<RawMessage>>;
    fn endpoint_send(
        endpoint: NonNull<RawEndpoint>,
        call: u64,
        bytes: *const u8,
        length: usize,
    ) -> c_int;
    fn free(memory: NonNull<c_void>);
}

/// Version of UCX.
pub(crate) fn version() -> String {
    // SAFETY: the string is a constant of the library.
    let version = unsafe { CStr::from_ptr(ucp_get_version_string().as_ptr()) };
    version.to_string_lossy().into_owned()
}

/// Maximum sleep of a non-polling side.
const CYCLE: Duration = Duration::from_millis(50);

/// A worker; it exists until the process exits.
pub(crate) struct Side(NonNull<RawSide>);

impl Side {
    pub(crate) fn open(transports: &CStr) -> Result<Self, Error> {
        // SAFETY: the string ends with a zero.
        Ok(Self(unsafe { side_open(transports.as_ptr()) }.ok_or("UCX cannot be opened")?))
    }

    /// Accepts connections of clients.
    pub(crate) fn listen(&mut self, address: SocketAddr) -> Result<(), Error> {
        // SAFETY: the side is never freed.
        let status = unsafe { side_listen(self.0, &raw_address(address)?) };
        if status == 0 { Ok(()) } else { Err("UCX cannot listen".into()) }
    }

    pub(crate) fn connect(&mut self, server: SocketAddr) -> Result<Endpoint, Error> {
        // SAFETY: the side is never freed.
        let endpoint = unsafe { side_connect(self.0, &raw_address(server)?) };
        Ok(Endpoint(endpoint.ok_or("UCX cannot connect")?))
    }

    /// Returns the next message. Waits for up to `time`, or for a while without a limit.
    pub(crate) fn receive(&mut self, wait: Wait, time: Option<Duration>) -> Option<Message> {
        let micros = time.unwrap_or(CYCLE).min(CYCLE).as_micros() as u32;
        let is_spinning = c_int::from(wait == Wait::Spin);
        // SAFETY: the side is never freed, and borrowed exclusively.
        unsafe { side_receive(self.0, is_spinning, micros) }.map(Message)
    }
}

fn raw_address(address: SocketAddr) -> Result<RawAddress, Error> {
    let SocketAddr::V4(address) = address else { return Err("UCX is used with IPv4".into()) };
    let (port, ip) = (address.port().to_be(), address.ip().octets());
    Ok(RawAddress { family: AF_INET, port, ip, zero: [0; 8] })
}

/// One end of a connection; it exists until the process exits.
pub(crate) struct Endpoint(NonNull<RawEndpoint>);

impl Endpoint {
    pub(crate) fn send(&mut self, call: u64, message: &[u8]) -> Result<(), Error> {
        // SAFETY: the endpoint is never freed, and the message is copied.
        let status = unsafe { endpoint_send(self.0, call, message.as_ptr(), message.len()) };
        if status == 0 { Ok(()) } else { Err("UCX cannot send".into()) }
    }
}

/// A message that has arrived.
pub(crate) struct Message(NonNull<RawMessage>);

impl Message {
    const fn raw(&self) -> &RawMessage {
        // SAFETY: the memory is freed together with this message.
        unsafe { self.0.as_ref() }
    }

    /// Returns the call that the message belongs to.
    pub(crate) const fn call(&self) -> u64 {
        self.raw().call
    }

    /// Returns the way to the side that has sent it.
    pub(crate) const fn from(&self) -> Endpoint {
        Endpoint(self.raw().from)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes are behind the head, and freed with it.
        unsafe {
            slice::from_raw_parts((&raw const (*self.0.as_ptr()).bytes).cast(), self.raw().length)
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: the message was allocated by malloc, and is not used any more.
        unsafe { free(self.0.cast()) }
    }
}
