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

/// Sends one request after the other to the first peer, each size in turn, for about `duration`
/// nanoseconds. Gives each size with its least round trip time in nanoseconds.
pub(crate) fn unloaded(
    client: &mut dyn Client,
    sizes: &[u32],
    duration: u64,
    idle: Idle,
) -> Result<Vec<(u32, u64)>, Error> {
    let mut best: Vec<(u32, u64)> = sizes.iter().map(|&size| (size, u64::MAX)).collect();
    let mut ended = Ended::default();
    let began = clock::now();
    let mut round = 0;
    let is_short = |best: &[(u32, u64)]| best.iter().any(|&(_, best)| best <= LONG);
    while round < LEAST || clock::now() - began < duration && is_short(&best) {
        for (size, best) in &mut best {
            if round >= LEAST && *best > LONG {
                continue;
            }
            let sent = clock::now();
            client.start(0, 0, *size)?;
            while ended.is_empty() {
                client.poll(idle.wait(|| LOOK), &mut ended)?;
                if ended.is_empty() {
                    idle.pause();
                }
            }
            *best = (*best).min(clock::now() - sent);
            if let Some(why) = ended.why.take() {
                return Err(Error::Peer(why));
            }
            ended.completed.clear();
        }
        round += 1;
    }
    Ok(best)
}
