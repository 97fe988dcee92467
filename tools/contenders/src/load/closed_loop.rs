//! Closed loop: a fixed number of requests is always outstanding.

use super::idle::{Idle, POLL_TIMEOUT};
use super::in_flight::{InFlight, Request};
use crate::transport::{Client, Completions};
use apus_testbed::clock;
use apus_testbed::error::Error;

/// Keeps `limit` requests outstanding for `warm` and then `measure` nanoseconds. Returns the number
/// of requests per second completed in the latter. All requests go to the first peer.
pub fn closed_loop(
    client: &mut dyn Client,
    limit: u32,
    mut sizes: impl Iterator<Item = u32>,
    (warm, measure): (u64, u64),
    idle: Idle,
) -> Result<f64, Error> {
    let mut in_flight = InFlight::new(limit);
    let mut ended = Completions::default();
    let began = clock::now();
    let mut counted_from = None;
    let mut completed = 0u64;
    loop {
        while !in_flight.is_full() {
            let size = sizes.next().expect("sizes without an end");
            client.start(in_flight.begin(Request { size, peer: 0, due: 0 }), 0, size)?;
        }
        client.poll(idle.wait(|| POLL_TIMEOUT), &mut ended)?;
        if let Some(why) = ended.problem() {
            return Err(Error::Peer(why));
        }
        let done = &mut ended.completed;
        if done.is_empty() {
            idle.pause();
            continue;
        }
        let now = clock::now() - began;
        match counted_from {
            None if now >= warm => counted_from = Some(now),
            None => {}
            Some(_) => completed += done.len() as u64,
        }
        for id in done.drain(..) {
            in_flight.end(id);
        }
        if let Some(from) = counted_from
            && now >= warm + measure
            && completed > 0
        {
            return Ok(completed as f64 / (now - from) as f64 * 1e9);
        }
    }
}
