//! How many requests can a client complete?

use super::flight::{Flight, Request};
use super::{Idle, LOOK};
use crate::transport::{Client, Ended};
use apus_testbed::clock;
use apus_testbed::error::Error;

/// Keeps `limit` requests under way for `warm` and then `measure` nanoseconds, and gives the number
/// of requests per second that were completed in the latter. All of them go to the first peer.
pub fn closed_loop(
    client: &mut dyn Client,
    limit: u32,
    mut sizes: impl Iterator<Item = u32>,
    (warm, measure): (u64, u64),
    idle: Idle,
) -> Result<f64, Error> {
    let mut flight = Flight::new(limit);
    let mut ended = Ended::default();
    let began = clock::now();
    let mut counted_from = None;
    let mut completed = 0u64;
    loop {
        while !flight.is_full() {
            let size = sizes.next().expect("sizes without an end");
            client.start(flight.begin(Request { size, peer: 0, due: 0 }), 0, size)?;
        }
        client.poll(idle.wait(|| LOOK), &mut ended)?;
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
            flight.end(id);
        }
        if let Some(from) = counted_from
            && now >= warm + measure
            && completed > 0
        {
            return Ok(completed as f64 / (now - from) as f64 * 1e9);
        }
    }
}
