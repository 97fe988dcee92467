//! How fast is a message of each size when nothing else is going on?

use super::{Idle, LOOK};
use crate::transport::{Client, Ended};
use apus_testbed::clock;
use apus_testbed::error::Error;

/// Times each size is tried at least, unless it is a long one.
const LEAST: u32 = 3;

/// A message is long if its best time is longer than this, in nanoseconds: the link decides how long it takes,
/// and no chance.
const LONG: u64 = 2_000_000;

/// Times that a long message is tried. The first one may still open windows.
const TRIES_OF_LONG: u32 = 2;

/// Between two long messages that are tried, the longer one is at least so many times longer; the time of those
/// between is interpolated. On a slow link, all sizes of a workload would take minutes.
const STEP: f64 = 1.5;

/// Times in a row that a short message is tried. Ours: the first one after a long message finds caches, and
/// cores that have slept, as the long one left them.
const IN_A_ROW: u32 = 4;

/// Sends one request after the other to the first peer, each size in turn, for about `duration`
/// nanoseconds. `sizes` increase. Gives each size with its least round trip time in nanoseconds.
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
            let is_long = known.is_some_and(|best| best > LONG);
            let between = long.is_some_and(|last: u32| f64::from(size) < f64::from(last) * STEP);
            let wanted = match round {
                0 => !between || at + 1 == best.len(),
                _ => known.is_some() && (!is_long || round < TRIES_OF_LONG),
            };
            if !wanted {
                continue;
            }
            let times = if round == 0 || is_long { 1 } else { IN_A_ROW };
            for _ in 0..times {
                let took = exchange(client, size, idle)?;
                let least = best[at].1.get_or_insert(took);
                *least = took.min(*least);
                long = (took > LONG).then_some(size).or(long);
            }
        }
        let any_short = best.iter().any(|(_, best)| best.is_some_and(|best| best <= LONG));
        let enough = if any_short { LEAST } else { TRIES_OF_LONG };
        if round + 1 >= enough && (!any_short || clock::now() - began >= duration) {
            break;
        }
    }
    Ok(interpolated(&best))
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
    ended.problem().map_or(Ok(took), |why| Err(Error::Peer(why)))
}

/// Every size with its time; what was not measured lies on the line between its neighbours. The first one and
/// the last one were measured.
fn interpolated(best: &[(u32, Option<u64>)]) -> Vec<(u32, u64)> {
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

    /// A server on a link of 1 kB per millisecond, which sleeps for as long as a message takes. Counts the
    /// requests of each size.
    struct Link(Vec<u32>);

    impl Client for Link {
        fn start(&mut self, _: u32, _: usize, size: u32) -> Result<(), Error> {
            self.0.push(size);
            let until = clock::now() + u64::from(size) * 1_000;
            while clock::now() < until {}
            Ok(())
        }

        fn poll(&mut self, _: Duration, ended: &mut Ended) -> Result<(), Error> {
            ended.completed.push(0);
            Ok(())
        }
    }

    #[test]
    fn of_long_messages_some_are_tried_and_the_others_lie_between() {
        let mut link = Link(Vec::new());
        let sizes = [10, 100, 3000, 3001, 3500, 4600, 5000];
        let best = unloaded(&mut link, &sizes, 0, Idle::Spin).unwrap();
        let tried = |size| link.0.iter().filter(|&&other| other == size).count() as u32;
        assert_eq!([3000, 3001, 3500, 4600, 5000].map(tried), [2, 0, 0, 2, 2]);
        assert_eq!(tried(10), 1 + 2 * IN_A_ROW);
        let times: Vec<u64> = best.iter().map(|&(_, time)| time).collect();
        assert!(times.is_sorted(), "{best:?}");
        assert_eq!(best.iter().map(|&(size, _)| size).collect::<Vec<_>>(), sizes);
    }

    #[test]
    fn what_lies_between_is_on_the_line() {
        let best = [(10, Some(100)), (20, None), (40, Some(400)), (50, Some(410))];
        assert_eq!(interpolated(&best), [(10, 100), (20, 200), (40, 400), (50, 410)]);
    }
}
