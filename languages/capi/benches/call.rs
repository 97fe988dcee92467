//! A call through the C interface, compared with the same call in Rust.
//!
//! `cargo bench -p apus-capi` prints the ratio of the medians, over shared memory and over UDP. The
//! functions are called as from a C program: with the C calling convention and not inlined. Rounds
//! of both alternate, so that disturbances affect both, and one server answers both.

use apus::{Bytes, Endpoint, PollMode};
use apus_capi::{Address, Buffer, CallOptions, EndpointC, ErrorC, Status};
use std::ffi::{CString, c_void};
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Instant;

/// Number of rounds for each of the two.
const ROUNDS: usize = 200;
/// Calls in a round.
const CALLS: usize = 200;
/// The request: 100 bytes.
const REQUEST: [u8; 100] = [7; 100];

/// `apus_call`.
type Call = unsafe extern "C" fn(
    *const EndpointC,
    *const Address,
    *const c_void,
    usize,
    *const CallOptions,
    *mut Buffer,
    *mut ErrorC,
) -> Status;

/// An endpoint of the C interface.
struct Client(*mut EndpointC);

impl Client {
    fn open(options: &str) -> Self {
        let options = CString::new(options).unwrap();
        let (mut endpoint, error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the pointers are to a text and to memory for a pointer.
        let status = unsafe {
            apus_capi::apus_endpoint_client(options.as_ptr(), 0, &raw mut endpoint, error)
        };
        assert_eq!(status, Status::Ok);
        Self(endpoint)
    }

    fn call(&self, to: &Address) -> usize {
        let call: Call = black_box(apus_capi::apus_call);
        let mut response =
            Buffer { data: std::ptr::null(), length: 0, owner: [std::ptr::null_mut(); 4] };
        let request = REQUEST.as_ptr().cast::<c_void>();
        let (options, error) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the endpoint is open, and all pointers are null or point to values of their type.
        let status =
            unsafe { call(self.0, to, request, REQUEST.len(), options, &raw mut response, error) };
        assert_eq!(status, Status::Ok);
        let length = response.length;
        // SAFETY: the buffer was written by the call.
        unsafe { apus_capi::apus_buffer_free(&raw mut response) };
        length
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the endpoint is no longer used.
        unsafe { apus_capi::apus_endpoint_free(self.0) };
    }
}

fn address(of: SocketAddr) -> Address {
    let text = CString::new(of.to_string()).unwrap();
    let mut address = Address { ip: [0; 16], scope_id: 0, port: 0, version: 0 };
    // SAFETY: the pointers are to a text and to memory for an address.
    let status = unsafe {
        apus_capi::apus_address_parse(text.as_ptr(), &raw mut address, std::ptr::null_mut())
    };
    assert_eq!(status, Status::Ok);
    address
}

/// Appends the times of a round, in nanoseconds.
fn round(times: &mut Vec<u64>, mut call: impl FnMut() -> usize) {
    for _ in 0..CALLS {
        let start = Instant::now();
        assert_eq!(call(), REQUEST.len());
        times.push(start.elapsed().as_nanos() as u64);
    }
}

fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times[times.len() / 2]
}

fn measure(name: &str, local: bool, poll: &str) {
    let mode: PollMode = poll.parse().unwrap();
    let server = Endpoint::builder().poll_mode(mode).local(local).bind("127.0.0.1:0").unwrap();
    let to = server.local_addr();
    let serving = server.clone();
    let thread = std::thread::spawn(move || {
        while let Ok(mut request) = serving.recv_request() {
            let payload = request.take_payload();
            request.reply(payload).unwrap();
        }
    });
    let rust = Endpoint::builder().poll_mode(mode).local(local).client().unwrap();
    let c = Client::open(&format!("local = {local}\npoll = '{poll}'"));
    let c_to = address(to);
    let (mut in_rust, mut in_c) = (Vec::new(), Vec::new());
    for warm in [true, false] {
        for _ in 0..if warm { 5 } else { ROUNDS } {
            round(&mut in_rust, || rust.call(to, Bytes::copy_from_slice(&REQUEST)).unwrap().len());
            round(&mut in_c, || c.call(&c_to));
        }
        if warm {
            in_rust.clear();
            in_c.clear();
        }
    }
    let (in_rust, in_c) = (median(&mut in_rust), median(&mut in_c));
    let ratio = in_c as f64 / in_rust as f64;
    println!("{name:24} {poll:10} Rust {in_rust:6} ns, C {in_c:6} ns: {ratio:.3}");
    server.shutdown();
    thread.join().unwrap();
}

fn main() {
    // `cargo test` runs benchmarks as tests, and passes an argument for that.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    for poll in ["spin", "block"] {
        measure("shared memory, 100 B", true, poll);
        measure("UDP, 100 B", false, poll);
    }
}
