//! The blocking endpoint through memory that two endpoints of this host share: the same suite as over a network in
//! memory, and what only this way can show.

#[path = "../endpoint/calls.rs"]
mod calls;
#[path = "../endpoint/limits.rs"]
mod limits;
#[path = "../endpoint/many.rs"]
mod many;
#[path = "../endpoint/modes.rs"]
mod modes;
#[path = "../endpoint/overload.rs"]
mod overload;

mod killed;
#[cfg(feature = "tokio")]
mod tasks;
mod ways;

use apus::{Builder, Endpoint};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Two endpoints, each of which has found the other in memory.
fn pair(builder: &Builder) -> (Endpoint, Endpoint) {
    let bind = || builder.clone().bind("127.0.0.1:0").unwrap();
    let (a, b) = (bind(), bind());
    acquaint(&a, &b);
    acquaint(&b, &a);
    (a, b)
}

/// The same: memory loses nothing.
fn roomy_pair(builder: &Builder, _: usize) -> (Endpoint, Endpoint) {
    pair(builder)
}

/// Calls `server` until the calls go through memory, or it turns out not to serve.
fn acquaint(client: &Endpoint, server: &Endpoint) {
    let to = server.local_addr();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let request = server.recv_request_timeout(Duration::from_millis(1));
                if let Ok(Some(request)) = request {
                    request.reply("here").unwrap();
                }
            }
        });
        while client.metrics().engine.local_calls == 0 && client.call(to, "are you there?").is_ok()
        {
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A server that answers each request with the same bytes, until its endpoint is shut down.
fn echo(server: Endpoint) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut served = 0;
        while let Ok(request) = server.recv_request() {
            served += 1;
            let payload = request.payload().clone();
            // The client may have gone.
            let _ = request.reply(payload);
        }
        served
    })
}

/// A client, and the address of an echo server.
fn echo_pair(builder: &Builder) -> (Endpoint, SocketAddr, EchoServer) {
    let (client, server) = pair(builder);
    let address = server.local_addr();
    let thread = echo(server.clone());
    (client, address, EchoServer { endpoint: server, thread: Some(thread) })
}

/// Ends with the test.
struct EchoServer {
    endpoint: Endpoint,
    thread: Option<JoinHandle<u64>>,
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.endpoint.shutdown();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Shuts endpoints down when a test ends, also by a failed assertion: the threads that serve them then
/// end too.
struct ShutDown<'a>(&'a [&'a Endpoint]);

impl Drop for ShutDown<'_> {
    fn drop(&mut self) {
        for endpoint in self.0 {
            endpoint.shutdown();
        }
    }
}

/// Bytes that differ from offset to offset and from seed to seed.
fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251 + seed * 7) as u8).collect()
}

/// Waits until nothing lives at either end but what `Metrics::live` may hold at rest: peers.
fn assert_at_rest(endpoints: &[&Endpoint]) {
    for endpoint in endpoints {
        assert!(endpoint.drain(Duration::from_secs(60)), "everything is acknowledged");
        let live = endpoint.metrics().protocol.live;
        let rest = [
            live.client_rpcs,
            live.server_rpcs,
            live.send_bytes,
            live.receive_bytes,
            live.unconfirmed_bytes,
            live.grantable,
            live.incoming_bytes,
            live.sendable,
            live.timers,
            live.control_packets,
        ];
        assert_eq!(rest, [0; 10], "{live:?}");
        assert_eq!(endpoint.metrics().engine.spurious_wakeups, 0, "E3");
    }
}
