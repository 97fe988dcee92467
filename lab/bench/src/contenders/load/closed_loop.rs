//! Closed loop: a fixed number of requests is always outstanding.

use std::ops::ControlFlow;

use super::idle::{Idle, POLL_TIMEOUT};
use super::in_flight::{InFlight, Request};
use crate::contenders::transport::{Client, Completions, Start};
use apus_testbed::clock;
use apus_testbed::error::Error;

/// Keeps `limit` requests outstanding for `warm` and then `measure` nanoseconds. Returns the number
/// of requests per second completed in the latter. All requests are for the first peer.
///
/// # Errors
///
/// The transport fails, or a request has no reply.
pub fn closed_loop(
    client: &mut dyn Client,
    limit: u32,
    sizes: impl Iterator<Item = u32>,
    (warm, measure): (u64, u64),
    idle: Idle,
) -> Result<f64, Error> {
    let mut counted_from = None;
    let mut completed = 0u64;
    let mut until = 0;
    keep_outstanding(client, limit, sizes, idle, clock::now, |now, count| {
        match counted_from {
            None if now >= warm => counted_from = Some(now),
            None => {}
            Some(_) => completed += count,
        }
        until = now;
        let over = now >= warm + measure && completed > 0;
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let elapsed = until - counted_from.expect("completions are counted from an instant");
    Ok(completed as f64 / elapsed as f64 * 1e9)
}

/// Keeps `limit` requests outstanding for `warm` nanoseconds and then for a `count` of intervals,
/// each of `length` nanoseconds. Returns the number of requests completed in each interval. All
/// requests are for the first peer.
///
/// # Errors
///
/// The transport fails, or a request has no reply.
pub fn closed_loop_by_interval(
    client: &mut dyn Client,
    limit: u32,
    sizes: impl Iterator<Item = u32>,
    warm: u64,
    (count, length): (u32, u64),
    idle: Idle,
) -> Result<Vec<u64>, Error> {
    count_by_interval(client, limit, sizes, (warm, count, length), idle, clock::now)
}

/// Counts the requests of [`closed_loop_by_interval`] by the times that `now` returns.
fn count_by_interval(
    client: &mut dyn Client,
    limit: u32,
    sizes: impl Iterator<Item = u32>,
    (warm, count, length): (u64, u32, u64),
    idle: Idle,
    now: impl FnMut() -> u64,
) -> Result<Vec<u64>, Error> {
    let mut completed = vec![0; count as usize];
    keep_outstanding(client, limit, sizes, idle, now, |now, more| {
        let Some(counted) = now.checked_sub(warm) else { return ControlFlow::Continue(()) };
        match completed.get_mut((counted / length) as usize) {
            Some(completed) => {
                *completed += more;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    })?;
    Ok(completed)
}

/// Keeps `limit` requests outstanding until `completed` breaks. It is called with the nanoseconds
/// since the start, by `now`, and the number of requests just completed, at least 1.
fn keep_outstanding(
    client: &mut dyn Client,
    limit: u32,
    mut sizes: impl Iterator<Item = u32>,
    idle: Idle,
    mut now: impl FnMut() -> u64,
    mut completed: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut in_flight = InFlight::new(limit);
    let mut ended = Completions::default();
    let (mut starts, mut put_off) = (Vec::new(), Vec::new());
    let began = now();
    loop {
        while !in_flight.is_full() {
            let size = put_off.pop().or_else(|| sizes.next()).expect("sizes without an end");
            let id = in_flight.begin(Request { size, peer: 0, due: 0 });
            starts.push(Start { id, peer: 0, size });
        }
        let begun = client.start_all(&starts)?;
        for refused in starts.drain(begun..) {
            put_off.push(in_flight.end(refused.id).size);
        }
        starts.clear();
        client.poll(idle.wait(|| POLL_TIMEOUT), &mut ended)?;
        if let Some(why) = ended.problem() {
            return Err(Error::Peer(why));
        }
        let done = &mut ended.completed;
        if done.is_empty() {
            idle.pause();
            continue;
        }
        let count = done.len() as u64;
        for id in done.drain(..) {
            in_flight.end(id);
        }
        if completed(now() - began, count).is_break() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Completes every request at the next poll.
    #[derive(Default)]
    struct Immediate {
        outstanding: Vec<u32>,
        most: usize,
    }

    impl Client for Immediate {
        fn start(&mut self, id: u32, _: usize, _: u32) -> Result<(), Error> {
            self.outstanding.push(id);
            self.most = self.most.max(self.outstanding.len());
            Ok(())
        }

        fn poll(&mut self, _: Duration, ended: &mut Completions) -> Result<(), Error> {
            ended.completed.append(&mut self.outstanding);
            Ok(())
        }
    }

    #[test]
    fn as_many_as_the_limit_are_outstanding() {
        let mut client = Immediate::default();
        let sizes = std::iter::repeat(1);
        let rate = closed_loop(&mut client, 7, sizes, (100_000, 1_000_000), Idle::Spin).unwrap();
        assert!(client.most == 7 && rate > 0.0, "{rate}");
    }

    #[test]
    fn each_interval_has_its_count() {
        let mut started = 0u64;
        let sizes = std::iter::repeat_with(|| {
            started += 1;
            1
        });
        // Each reading is 100 us after the one before.
        let mut clock = 0;
        let now = || {
            clock += 100_000;
            clock
        };
        let intervals = (1_000_000, 3, 1_000_000);
        let client = &mut Immediate::default();
        let counts = count_by_interval(client, 7, sizes, intervals, Idle::Spin, now).unwrap();
        assert_eq!(counts, [70; 3]);
        assert_eq!(counts.len(), 3);
        let counted: u64 = counts.iter().sum();
        // Requests of the warm-up are in no interval.
        assert!(counted > 0 && counted < started, "{counted} of {started}");
    }
}
