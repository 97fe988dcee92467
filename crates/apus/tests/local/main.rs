//! The blocking endpoint through memory that two endpoints of this host share: the same suite as over a network in
//! memory, and what only this way can show.

#[path = "../endpoint/calls.rs"]
mod calls;
#[path = "../endpoint/echo.rs"]
mod echo;
#[path = "../endpoint/limits.rs"]
mod limits;
#[path = "../endpoint/many.rs"]
mod many;
#[path = "../endpoint/modes.rs"]
mod modes;
#[path = "../endpoint/overload.rs"]
mod overload;
#[path = "../endpoint/partners.rs"]
mod partners;

mod killed;
#[cfg(feature = "tokio")]
mod tasks;
mod ways;

use apus::{Endpoint, EndpointBuilder};
use echo::echo;
use partners::{ShutDown, assert_at_rest, bytes, echo_pair};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Two endpoints, each of which has found the other in memory.
fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let bind = || builder.clone().bind("127.0.0.1:0").unwrap();
    let (a, b) = (bind(), bind());
    acquaint(&a, &b);
    acquaint(&b, &a);
    (a, b)
}

/// The same: memory loses nothing.
fn roomy_pair(builder: &EndpointBuilder, _: usize) -> (Endpoint, Endpoint) {
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
