//! Unloaded round trip time of each message size.

use super::idle::{Idle, POLL_TIMEOUT};
use crate::contenders::transport::{Client, Completions};
use apus_testbed::clock;
use apus_testbed::error::Error;

/// Minimum exchanges of each size, except for long messages.
const MIN_EXCHANGES: u32 = 3;

/// A message is long if its best time in nanoseconds exceeds this: the link then determines the
/// time, and chance has little influence.
const LONG_TIME: u64 = 2_000_000;

/// Exchanges of a long message. The first exchange may still open windows.
const LONG_EXCHANGES: u32 = 2;

/// Ratio between consecutive measured sizes of long messages; the times of the sizes in between are
/// interpolated. On a slow link, all sizes of a workload would take minutes.
const MIN_RATIO: f64 = 1.5;

/// Consecutive exchanges of a short message. Chosen by us: after a long message, the first exchange
/// runs with cold caches and on cores that have slept.
const CONSECUTIVE: u32 = 4;

/// Sends one request after another to the first peer, each size in turn, for about `duration`
/// nanoseconds. `sizes` increase. Returns each size with its minimum round trip time in
/// nanoseconds.
pub fn unloaded(
    client: &mut dyn Client,
    sizes: &[u32],
    duration: u64,
    idle: Idle,
) -> Result<Vec<(u32, u64)>, Error> {
    let mut best: Vec<(u32, Option<u64>)> = sizes.iter().map(|&size| (size, None)).collect();
    let began = clock::now();
    for round in 0.. {
        let mut long = None;
        for at in 0..best.len() {
            let (size, known) = best[at];
            let is_long = known.is_some_and(|best| best > LONG_TIME);
            let between =
                long.is_some_and(|last: u32| f64::from(size) < f64::from(last) * MIN_RATIO);
            let wanted = match round {
                0 => !between || at + 1 == best.len(),
                _ => known.is_some() && (!is_long || round < LONG_EXCHANGES),
            };
            if !wanted {
                continue;
            }
            let times = if round == 0 || is_long { 1 } else { CONSECUTIVE };
            for _ in 0..times {
                let took = exchange(client, size, idle)?;
                let least = best[at].1.get_or_insert(took);
                *least = took.min(*least);
                long = (took > LONG_TIME).then_some(size).or(long);
            }
        }
        let any_short = best.iter().any(|(_, best)| best.is_some_and(|best| best <= LONG_TIME));
        let enough = if any_short { MIN_EXCHANGES } else { LONG_EXCHANGES };
        if round + 1 >= enough && (!any_short || clock::now() - began >= duration) {
            break;
        }
    }
    Ok(interpolate(&best))
}

/// Returns the duration of one request in nanoseconds.
fn exchange(client: &mut dyn Client, size: u32, idle: Idle) -> Result<u64, Error> {
    let mut ended = Completions::default();
    let sent = clock::now();
    client.start(0, 0, size)?;
    while ended.is_empty() {
        client.poll(idle.wait(|| POLL_TIMEOUT), &mut ended)?;
        if ended.is_empty() {
            idle.pause();
        }
    }
    let took = clock::now() - sent;
    ended.problem().map_or(Ok(took), |why| Err(Error::Peer(why)))
}

/// Returns every size with its time. Missing times are interpolated; the first and the last time
/// must be present.
fn interpolate(best: &[(u32, Option<u64>)]) -> Vec<(u32, u64)> {
    let known: Vec<(u32, u64)> =
        best.iter().filter_map(|&(size, time)| Some((size, time?))).collect();
    let time = |size: u32| {
        let above = known.partition_point(|&(other, _)| other < size);
        let (right, after) = known[above];
        if right == size {
            return after;
        }
        let (left, before) = known[above - 1];
        let share = f64::from(size - left) / f64::from(right - left);
        (before as f64 + share * (after as f64 - before as f64)).round() as u64
    };
    best.iter().map(|&(size, _)| (size, time(size))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A server on a link of 1 kB per millisecond, which spins while a message is in transit.
    /// Records the size of each request.
    struct Link(Vec<u32>);

    impl Client for Link {
        fn start(&mut self, _: u32, _: usize, size: u32) -> Result<(), Error> {
            self.0.push(size);
            let until = clock::now() + u64::from(size) * 1_000;
            while clock::now() < until {}
            Ok(())
        }

        fn poll(&mut self, _: Duration, ended: &mut Completions) -> Result<(), Error> {
            ended.completed.push(0);
            Ok(())
        }
    }

    #[test]
    fn some_long_messages_are_measured_and_the_others_interpolated() {
        let mut link = Link(Vec::new());
        let sizes = [10, 100, 3000, 3001, 3500, 4600, 5000];
        let best = unloaded(&mut link, &sizes, 0, Idle::Spin).unwrap();
        let tried = |size| link.0.iter().filter(|&&other| other == size).count() as u32;
        assert_eq!([3000, 3001, 3500, 4600, 5000].map(tried), [2, 0, 0, 2, 2]);
        assert_eq!(tried(10), 1 + 2 * CONSECUTIVE);
        // A busy machine delays any of the exchanges, so that the measured times need not ascend.
        let (one, other) = (best[2].1, best[5].1);
        let between = one.min(other)..=one.max(other);
        assert!([best[3].1, best[4].1].iter().all(|time| between.contains(time)), "{best:?}");
        assert_eq!(best.iter().map(|&(size, _)| size).collect::<Vec<_>>(), sizes);
    }

    #[test]
    fn interpolation_is_linear() {
        let best = [(10, Some(100)), (20, None), (40, Some(400)), (50, Some(410))];
        assert_eq!(interpolate(&best), [(10, 100), (20, 200), (40, 400), (50, 410)]);
    }
}
