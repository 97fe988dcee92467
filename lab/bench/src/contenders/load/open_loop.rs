//! Open loop: requests start when they are due.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::idle::Idle;
use super::in_flight::{InFlight, Request};
use crate::contenders::transport::{Client, Completions, Start};
use apus_report::stats::Latencies;
use apus_testbed::error::Error;

/// An open-loop load. Times are in nanoseconds since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLoop {
    /// Requests due before this time are warm-up and do not count.
    pub warm: u64,
    /// No request is due from this time on.
    pub ends: u64,
    /// How long to wait for replies after `ends`.
    pub grace: u64,
    /// Maximum outstanding requests. Further requests wait, as do requests that the transport
    /// cannot accept yet; their latency includes the wait.
    pub limit: u32,
    /// Behaviour when no work is pending.
    pub idle: Idle,
    /// Peer that is killed during the load: its requests are counted in [`LoadCounts::aside`]
    /// instead.
    pub aside: Option<usize>,
}

/// Maximum number of requests started together. Chosen by us: the number of packets per datagram.
const MAX_STARTS: usize = 64;

/// Result of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadCounts {
    /// Requests after the warm-up that were due.
    pub due: u64,
    /// Requests of these that were completed.
    pub completed: u64,
    /// Requests of these that the server refused.
    pub refused: u64,
    /// Requests of these that failed for another reason.
    pub failed: u64,
    /// Requests of these that were completed before the load ended: the rate the client sustained.
    pub in_time: u64,
    /// Delays between due time and start of requests, in nanoseconds.
    pub late: Latencies,
    /// Reason for the first failure, if any.
    pub why: Option<String>,
    /// Requests to the peer set aside, excluded from the counts above.
    pub aside: AsideCounts,
}

/// Requests after the warm-up to the peer of [`OpenLoop::aside`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsideCounts {
    /// Requests due.
    pub due: u64,
    /// Of these, requests completed.
    pub completed: u64,
}

impl AsideCounts {
    /// Adds the counts of another client.
    pub const fn add(&mut self, other: Self) {
        self.due += other.due;
        self.completed += other.completed;
    }
}

impl LoadCounts {
    /// Returns why not all requests were completed, as far as the transport reports it.
    pub fn problem(&self) -> Option<String> {
        self.why.clone().or_else(|| (self.refused > 0).then(|| Completions::REFUSED.to_owned()))
    }
}

/// Applies the load to `client`.
///
/// `requests` yields requests in due order and must be infinite; `clock` returns the time since the
/// start of the load; `completed` is called with each counted request and its latency.
///
/// # Errors
///
/// The transport fails.
pub fn open_loop(
    client: &mut dyn Client,
    load: OpenLoop,
    mut requests: impl Iterator<Item = Request>,
    mut clock: impl FnMut() -> u64,
    mut completed: impl FnMut(Request, u64),
) -> Result<LoadCounts, Error> {
    let mut counts = LoadCounts::default();
    let mut in_flight = InFlight::new(load.limit);
    let mut waiting: VecDeque<Request> = VecDeque::new();
    let mut next = requests.next().filter(|next| next.due < load.ends);
    let mut ended = Completions::default();
    let (mut starts, mut started) = (Vec::new(), Vec::new());
    let is_aside = |request: Request| load.aside == Some(request.peer);
    loop {
        let now = clock();
        while let Some(request) = next.filter(|next| next.due <= now) {
            waiting.push_back(request);
            let due = if is_aside(request) { &mut counts.aside.due } else { &mut counts.due };
            *due += u64::from(request.due >= load.warm);
            next = requests.next().filter(|next| next.due < load.ends);
        }
        while !in_flight.is_full()
            && starts.len() < MAX_STARTS
            && let Some(request) = waiting.pop_front()
        {
            let Request { size, peer, due } = request;
            starts.push(Start { id: in_flight.begin(request), peer, size });
            started.push(due);
        }
        let begun = client.start_all(&starts)?;
        for refused in starts.drain(begun..).rev() {
            waiting.push_front(in_flight.end(refused.id));
        }
        starts.clear();
        for due in started.drain(..).take(begun).filter(|due| *due >= load.warm) {
            counts.late.record(clock().saturating_sub(due));
        }
        // Checked before the client waits for replies: no more can arrive.
        if next.is_none() && waiting.is_empty() && in_flight.is_empty() {
            break;
        }
        let over = load.ends + load.grace;
        let until = next.map_or(over, |next| next.due);
        let wait = load.idle.wait(|| Duration::from_nanos(until.saturating_sub(clock())));
        client.poll(wait, &mut ended)?;
        if ended.is_empty() {
            if now >= over {
                break;
            }
            load.idle.pause();
            continue;
        }
        let now = clock();
        let mut failed = false;
        for (ids, count) in
            [(&mut ended.refused, &mut counts.refused), (&mut ended.failed, &mut counts.failed)]
        {
            for id in ids.drain(..) {
                let request = in_flight.end(id);
                if !is_aside(request) {
                    failed = true;
                    *count += u64::from(request.due >= load.warm);
                }
            }
        }
        let why = ended.why.take().filter(|_| failed);
        counts.why = counts.why.or(why);
        for id in ended.completed.drain(..) {
            let request = in_flight.end(id);
            if request.due < load.warm {
                continue;
            }
            if is_aside(request) {
                counts.aside.completed += 1;
            } else {
                completed(request, now - request.due);
                counts.completed += 1;
                counts.in_time += u64::from(now <= load.ends);
            }
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A server that handles requests sequentially, each in `service` nanoseconds, starting at
    /// `stalled`. Each reading of the clock advances it by 1 ns.
    struct Fake {
        time: Rc<Cell<u64>>,
        service: u64,
        free_at: u64,
        /// Maximum outstanding requests.
        room: usize,
        requests: VecDeque<(u32, u64)>,
    }

    impl Client for Fake {
        fn start(&mut self, id: u32, _: usize, _: u32) -> Result<(), Error> {
            self.free_at = self.free_at.max(self.time.get()) + self.service;
            self.requests.push_back((id, self.free_at));
            Ok(())
        }

        fn start_all(&mut self, starts: &[Start]) -> Result<usize, Error> {
            let begun = starts.len().min(self.room - self.requests.len());
            for &Start { id, peer, size } in &starts[..begun] {
                self.start(id, peer, size)?;
            }
            Ok(begun)
        }

        fn poll(&mut self, _: Duration, ended: &mut Completions) -> Result<(), Error> {
            let now = self.time.get();
            let count = self.requests.iter().take_while(|&&(_, at)| at <= now).count();
            ended.completed.extend(self.requests.drain(..count).map(|(id, _)| id));
            Ok(())
        }
    }

    /// Returns the latencies of requests due at 100, 200, … 1000.
    fn latencies(
        service: u64,
        stalled: u64,
        change: impl FnOnce(&mut OpenLoop),
    ) -> (Vec<u64>, LoadCounts) {
        latencies_with_room(100, service, stalled, change)
    }

    fn latencies_with_room(
        room: usize,
        service: u64,
        stalled: u64,
        change: impl FnOnce(&mut OpenLoop),
    ) -> (Vec<u64>, LoadCounts) {
        let time = Rc::new(Cell::new(0));
        let requests = VecDeque::new();
        let mut fake = Fake { time: Rc::clone(&time), service, free_at: stalled, room, requests };
        let mut load = OpenLoop {
            warm: 0,
            ends: 1001,
            grace: 100_000,
            limit: 100,
            idle: Idle::Spin,
            aside: None,
        };
        change(&mut load);
        let clock = || {
            time.set(time.get() + 1);
            time.get()
        };
        let due = (1..).map(|n| Request { size: 1, peer: 0, due: n * 100 });
        let mut seen = Vec::new();
        let counts =
            open_loop(&mut fake, load, due, clock, |_, latency| seen.push(latency / 10 * 10));
        (seen, counts.unwrap())
    }

    #[test]
    fn a_fast_server_is_measured_without_delay() {
        let (seen, counts) = latencies(10, 0, |_| ());
        assert_eq!(seen, [10; 10]);
        assert_eq!((counts.due, counts.completed, counts.in_time), (10, 10, 9));
    }

    /// A client must not sleep through the grace period without an outstanding request.
    #[test]
    fn a_load_ends_with_its_last_reply() {
        #[derive(Default)]
        struct Prompt {
            outstanding: Option<u32>,
        }
        impl Client for Prompt {
            fn start(&mut self, id: u32, _: usize, _: u32) -> Result<(), Error> {
                self.outstanding = Some(id);
                Ok(())
            }

            fn poll(&mut self, _: Duration, ended: &mut Completions) -> Result<(), Error> {
                ended.completed.push(self.outstanding.take().expect("a reply to wait for"));
                Ok(())
            }
        }
        let load = OpenLoop {
            warm: 0,
            ends: 1,
            grace: 1_000_000,
            limit: 1,
            idle: Idle::Wait,
            aside: None,
        };
        let requests = [0, 2].map(|due| Request { size: 1, peer: 0, due });
        let mut time = 0;
        let clock = || {
            time += 1_000;
            time
        };
        let client = &mut Prompt::default();
        let counts = open_loop(client, load, requests.into_iter(), clock, |_, _| ()).unwrap();
        assert_eq!((counts.due, counts.completed), (1, 1));
    }

    #[test]
    fn a_stall_delays_every_request_that_was_due_meanwhile() {
        // LOAD-1: the server stalls until 500. A generator that measured from sending to reply, or
        // paused during the stall, would record one slow request.
        let (seen, _) = latencies(10, 500, |_| ());
        assert_eq!(seen, [410, 320, 230, 140, 50, 10, 10, 10, 10, 10]);
    }

    #[test]
    fn waiting_for_a_free_slot_is_part_of_the_latency() {
        let (seen, _) = latencies(10, 500, |load| load.limit = 1);
        assert_eq!(seen, [410, 320, 230, 140, 50, 10, 10, 10, 10, 10]);
    }

    #[test]
    fn waiting_for_room_in_the_transport_is_part_of_the_latency_and_keeps_the_order() {
        let (seen, counts) = latencies_with_room(1, 10, 500, |_| ());
        assert_eq!(seen, [410, 320, 230, 140, 50, 10, 10, 10, 10, 10]);
        assert_eq!((counts.due, counts.completed), (10, 10));
    }

    #[test]
    fn warm_up_does_not_count() {
        let (seen, counts) = latencies(10, 0, |load| load.warm = 600);
        assert_eq!((seen.len(), counts.due), (5, 5));
    }

    /// Completes, refuses and fails requests, cyclically.
    struct Unreliable {
        count: usize,
        ended: Completions,
    }

    impl Client for Unreliable {
        fn start(&mut self, id: u32, _: usize, _: u32) -> Result<(), Error> {
            let Completions { completed, refused, failed, why } = &mut self.ended;
            [completed, refused, failed][self.count % 3].push(id);
            *why = (self.count % 3 == 2).then(|| "gone".to_owned());
            self.count += 1;
            Ok(())
        }

        fn poll(&mut self, _: Duration, ended: &mut Completions) -> Result<(), Error> {
            let Completions { completed, refused, failed, why } = std::mem::take(&mut self.ended);
            ended.completed.extend(completed);
            ended.refused.extend(refused);
            ended.failed.extend(failed);
            ended.why = ended.why.take().or(why);
            Ok(())
        }
    }

    #[test]
    fn refused_and_failed_requests_are_counted_separately_and_free_their_slots() {
        let counts = |ends| {
            let mut time = 0;
            let clock = || {
                time += 1;
                time
            };
            let load =
                OpenLoop { warm: 150, ends, grace: 1000, limit: 1, idle: Idle::Spin, aside: None };
            let due = (1..).map(|n| Request { size: 1, peer: 0, due: n * 100 });
            let mut client = Unreliable { count: 0, ended: Completions::default() };
            open_loop(&mut client, load, due, clock, |_, _| ()).unwrap()
        };
        let all = counts(901);
        // The first request is part of the warm-up.
        assert_eq!((all.due, all.completed, all.refused, all.failed), (8, 2, 3, 3));
        assert_eq!(all.problem().unwrap(), "gone");
        let two = counts(201);
        assert_eq!((two.due, two.refused, two.failed, &two.why), (1, 1, 0, &None));
        assert_eq!(two.problem().unwrap(), Completions::REFUSED);
    }

    #[test]
    fn a_peer_that_does_not_count_is_in_no_figure_but_its_own() {
        let mut time = 0;
        let clock = || {
            time += 1;
            time
        };
        let load = OpenLoop {
            warm: 150,
            ends: 901,
            grace: 1000,
            limit: 1,
            idle: Idle::Spin,
            aside: Some(0),
        };
        let mut client = Unreliable { count: 0, ended: Completions::default() };
        // The requests due at 300, 600 and 900 are for the peer; they fail.
        let due = (1..).map(|n| Request { size: 1, peer: n % 3, due: n as u64 * 100 });
        let mut seen = Vec::new();
        let counts = open_loop(&mut client, load, due, clock, |request, _| seen.push(request.due));
        let counts = counts.unwrap();
        assert_eq!((counts.due, counts.completed, counts.refused, counts.failed), (5, 2, 3, 0));
        assert_eq!(counts.aside, AsideCounts { due: 3, completed: 0 });
        assert_eq!(seen, [400, 700]);
        assert_eq!(counts.problem().unwrap(), Completions::REFUSED, "not `gone`");
    }

    #[test]
    fn replies_after_the_grace_time_do_not_count() {
        let (seen, counts) = latencies(400, 0, |load| load.grace = 300);
        assert_eq!(seen.len(), 3, "at 500, 900 and 1300");
        assert_eq!((counts.due, counts.completed, counts.in_time), (10, 3, 2));
    }
}
