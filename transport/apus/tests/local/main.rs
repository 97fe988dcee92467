//! The blocking endpoint over the shared-memory path: the suite of `tests/endpoint`, and tests of
//! this path alone.

#[path = "../endpoint/calls.rs"]
mod calls;
#[path = "../endpoint/concurrency.rs"]
mod concurrency;
#[path = "../endpoint/echo.rs"]
mod echo;
#[path = "../endpoint/empty_messages.rs"]
mod empty_messages;
#[path = "../endpoint/fixtures.rs"]
mod fixtures;
#[path = "../endpoint/limits.rs"]
mod limits;
#[path = "../endpoint/modes.rs"]
mod modes;
#[path = "../endpoint/overload.rs"]
mod overload;

mod names;
mod paths;
#[path = "../ports/mod.rs"]
mod ports;
mod process_death;
#[cfg(feature = "tokio")]
mod tasks;

use apus::{Endpoint, EndpointBuilder};
use echo::echo;
use fixtures::{ShutDown, assert_at_rest, bytes, echo_pair};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Two endpoints that are connected through shared memory in both directions.
fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let bind = || builder.clone().bind("127.0.0.1:0").unwrap();
    let (a, b) = (bind(), bind());
    connect(&a, &b);
    connect(&b, &a);
    (a, b)
}

/// Two connected endpoints; the length of a network's queue does not matter, since shared memory
/// does not drop.
fn roomy_pair(builder: &EndpointBuilder, _: usize) -> (Endpoint, Endpoint) {
    pair(builder)
}

/// Calls `server` until calls go through shared memory, or until one fails because the endpoint
/// does not serve.
fn connect(client: &Endpoint, server: &Endpoint) {
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
