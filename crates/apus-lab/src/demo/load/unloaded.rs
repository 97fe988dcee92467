//! How fast is a message of each size when nothing else is going on?

use super::Idle;
use crate::clock;
use crate::demo::contender::Client;
use crate::error::Error;

/// Times each size is tried at least, however long that takes.
const LEAST: u32 = 10;

/// Sends one request after the other, each size in turn, for about `duration` nanoseconds. Gives each
/// size with its least round trip time in nanoseconds.
pub(crate) fn unloaded(
    client: &mut dyn Client,
    sizes: &[u32],
    duration: u64,
    idle: Idle,
) -> Result<Vec<(u32, u64)>, Error> {
    let mut best: Vec<(u32, u64)> = sizes.iter().map(|&size| (size, u64::MAX)).collect();
    let mut done = Vec::new();
    let began = clock::now();
    let mut round = 0;
    while round < LEAST || clock::now() - began < duration {
        for (size, best) in &mut best {
            let sent = clock::now();
            client.start(0, *size)?;
            while done.is_empty() {
                client.poll(&mut done)?;
                if done.is_empty() {
                    idle.pause();
                }
            }
            done.clear();
            *best = (*best).min(clock::now() - sent);
        }
        round += 1;
    }
    Ok(best)
}
