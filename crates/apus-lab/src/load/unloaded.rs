//! How fast is a message of each size when nothing else is going on?

use super::{Idle, LOOK};
use crate::clock;
use crate::error::Error;
use crate::transport::{Client, Ended};

/// Times each size is tried at least, however long that takes.
const LEAST: u32 = 3;

/// Sizes whose best time is longer than this, in nanoseconds, are not tried more often: the link decides how
/// long they take, and no chance.
const LONG: u64 = 2_000_000;

/// Times in a row that another size is tried. Ours: the first one after a long message finds caches, and cores
/// that have slept, as the long one left them.
const IN_A_ROW: u32 = 4;

/// Sends one request after the other to the first peer, each size in turn, for about `duration`
/// nanoseconds. Gives each size with its least round trip time in nanoseconds.
pub(crate) fn unloaded(
    client: &mut dyn Client,
    sizes: &[u32],
    duration: u64,
    idle: Idle,
) -> Result<Vec<(u32, u64)>, Error> {
    let mut best: Vec<(u32, u64)> = sizes.iter().map(|&size| (size, u64::MAX)).collect();
    let began = clock::now();
    let mut round = 0;
    let is_short = |best: &[(u32, u64)]| best.iter().any(|&(_, best)| best <= LONG);
    while round < LEAST || clock::now() - began < duration && is_short(&best) {
        for (size, best) in &mut best {
            if round >= LEAST && *best > LONG {
                continue;
            }
            // Nothing is known of a size that was never tried.
            let times = if round == 0 || *best > LONG { 1 } else { IN_A_ROW };
            for _ in 0..times {
                *best = (*best).min(exchange(client, *size, idle)?);
            }
        }
        round += 1;
    }
    Ok(best)
}

/// Nanoseconds that one request takes.
fn exchange(client: &mut dyn Client, size: u32, idle: Idle) -> Result<u64, Error> {
    let mut ended = Ended::default();
    let sent = clock::now();
    client.start(0, 0, size)?;
    while ended.is_empty() {
        client.poll(idle.wait(|| LOOK), &mut ended)?;
        if ended.is_empty() {
            idle.pause();
        }
    }
    let took = clock::now() - sent;
    ended.why.map_or(Ok(took), |why| Err(Error::Peer(why)))
}
