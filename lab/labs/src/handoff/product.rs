//! The receive path of apus.

use std::panic::resume_unwind;
use std::thread;

use apus::{Bytes, Engine, PollMode};

use super::socket::Counts;
use apus_measure::exchange::{Path, builder, open, server};
use apus_testbed::error::Error;

/// Sends requests of 64 bytes, one after another, to an endpoint with `receivers` receivers and a
/// dedicated engine, or with one receiver that polls the network itself. Returns the counters of
/// the endpoint.
pub(super) fn trial(
    receivers: Option<usize>,
    messages: u64,
    poll: PollMode,
) -> Result<Counts, Error> {
    let engine = receivers.map_or(Engine::Waiters, |_| Engine::Dedicated { cpu: None });
    let settings = || builder(Path::Udp).poll_mode(poll);
    let (server, client) = (open(settings().engine(engine))?, open(settings())?);
    let to = server.local_addr();
    thread::scope(|scope| {
        let receive = |_| scope.spawn(|| server::echo(&server));
        let threads: Vec<_> = (0..receivers.unwrap_or(1)).map(receive).collect();
        let request = Bytes::from_static(&[0; 64]);
        let called = (0..messages).try_for_each(|_| match client.call(to, request.clone()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::endpoint(format!("call {to}"), error)),
        });
        let engine = server.metrics().engine;
        // Wakes waiting receivers, even if calls have failed.
        server.shutdown();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        }
        called?;
        Ok(Counts {
            messages: engine.messages,
            handoffs: engine.handoffs,
            spurious: engine.spurious_wakeups,
            keeper_turns: engine.keeper_turns,
        })
    })
}
