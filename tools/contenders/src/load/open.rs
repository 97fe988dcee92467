//! What happens when requests come no matter what?

use std::collections::VecDeque;
use std::time::Duration;

use super::Idle;
use super::flight::{Flight, Request};
use crate::transport::{Client, Ended};
use apus_report::stats::Latencies;
use apus_testbed::error::Error;

/// An open-loop load. Times are in nanoseconds since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLoop {
    /// Requests that are due before this do not count.
    pub warm: u64,
    /// No request is due from this time on.
    pub ends: u64,
    /// How long after that replies are waited for.
    pub grace: u64,
    /// Requests under way at most; others that are due wait, and their time runs.
    pub limit: u32,
    /// What to do when there is nothing to do.
    pub idle: Idle,
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests that count and were due.
    pub due: u64,
    /// Those that were completed.
    pub completed: u64,
    /// Those that the server refused.
    pub refused: u64,
    /// Those that will never be completed for another reason: the transport said so.
    pub failed: u64,
    /// Those that were completed before the load ended: what the client kept up with.
    pub in_time: u64,
    /// How long after it was due each request was begun, in nanoseconds.
    pub late: Latencies,
    /// What the transport said of the first request that failed, if any did.
    pub why: Option<String>,
}

impl Tally {
    /// Why not all that were due were completed, as far as the transport said so.
    pub fn problem(&self) -> Option<String> {
        self.why.clone().or_else(|| (self.refused > 0).then(|| Ended::REFUSED.to_owned()))
    }
}

/// Puts `client` under load.
///
/// `requests` are the requests in the order in which they are due, without an end; `clock` tells the
/// time since the load began; `completed` is told each request that counts, and its latency.
pub fn open_loop(
    client: &mut dyn Client,
    load: OpenLoop,
    mut requests: impl Iterator<Item = Request>,
    mut clock: impl FnMut() -> u64,
    mut completed: impl FnMut(Request, u64),
) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let mut flight = Flight::new(load.limit);
    let mut waiting: VecDeque<Request> = VecDeque::new();
    let mut next = requests.next().filter(|next| next.due < load.ends);
    let mut ended = Ended::default();
    loop {
        let now = clock();
        while let Some(request) = next.filter(|next| next.due <= now) {
            waiting.push_back(request);
            tally.due += u64::from(request.due >= load.warm);
            next = requests.next().filter(|next| next.due < load.ends);
        }
        while !flight.is_full()
            && let Some(request) = waiting.pop_front()
        {
            let id = flight.begin(request);
            client.start(id, request.peer, request.size)?;
            if request.due >= load.warm {
                tally.late.record(clock().saturating_sub(request.due));
            }
        }
        let over = load.ends + load.grace;
        let until = next.map_or(over, |next| next.due);
        let wait = load.idle.wait(|| Duration::from_nanos(until.saturating_sub(clock())));
        client.poll(wait, &mut ended)?;
        if ended.is_empty() {
            let is_over = next.is_none() && waiting.is_empty() && flight.is_empty();
            if is_over || now >= over {
                break;
            }
            load.idle.pause();
            continue;
        }
        let now = clock();
        for (ids, count) in
            [(&mut ended.refused, &mut tally.refused), (&mut ended.failed, &mut tally.failed)]
        {
            for id in ids.drain(..) {
                let request = flight.end(id);
                *count += u64::from(request.due >= load.warm);
            }
        }
        for id in ended.completed.drain(..) {
            let request = flight.end(id);
            if request.due >= load.warm {
                completed(request, now - request.due);
                tally.completed += 1;
                tally.in_time += u64::from(now <= load.ends);
            }
        }
    }
    tally.why = ended.why;
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A server that handles one request after the other, each in `service` nanoseconds, and nothing
    /// at all until `stalled`. Time advances by 1 ns whenever it is looked at.
    struct Fake {
        time: Rc<Cell<u64>>,
        service: u64,
        free_at: u64,
        requests: VecDeque<(u32, u64)>,
    }

    impl Client for Fake {
        fn start(&mut self, id: u32, _: usize, _: u32) -> Result<(), Error> {
            self.free_at = self.free_at.max(self.time.get()) + self.service;
            self.requests.push_back((id, self.free_at));
            Ok(())
        }

        fn poll(&mut self, _: Duration, ended: &mut Ended) -> Result<(), Error> {
            let now = self.time.get();
            let count = self.requests.iter().take_while(|&&(_, at)| at <= now).count();
            ended.completed.extend(self.requests.drain(..count).map(|(id, _)| id));
            Ok(())
        }
    }

    /// The latencies of requests that are due at 100, 200, … 1000.
    fn latencies(
        service: u64,
        stalled: u64,
        change: impl FnOnce(&mut OpenLoop),
    ) -> (Vec<u64>, Tally) {
        let time = Rc::new(Cell::new(0));
        let requests = VecDeque::new();
        let mut fake = Fake { time: Rc::clone(&time), service, free_at: stalled, requests };
        let mut load =
            OpenLoop { warm: 0, ends: 1001, grace: 100_000, limit: 100, idle: Idle::Spin };
        change(&mut load);
        let clock = || {
            time.set(time.get() + 1);
            time.get()
        };
        let due = (1..).map(|n| Request { size: 1, peer: 0, due: n * 100 });
        let mut seen = Vec::new();
        let tally =
            open_loop(&mut fake, load, due, clock, |_, latency| seen.push(latency / 10 * 10));
        (seen, tally.unwrap())
    }

    #[test]
    fn a_fast_server_is_measured_as_it_is() {
        let (seen, tally) = latencies(10, 0, |_| ());
        assert_eq!(seen, [10; 10]);
        assert_eq!((tally.due, tally.completed, tally.in_time), (10, 10, 9));
    }

    #[test]
    fn a_stall_is_felt_by_every_request_that_was_due_meanwhile() {
        // G1: nothing is served before 500. Who only measured from sending to reply, or sent nothing
        // during the stall, would see one slow request.
        let (seen, _) = latencies(10, 500, |_| ());
        assert_eq!(seen, [410, 320, 230, 140, 50, 10, 10, 10, 10, 10]);
    }

    #[test]
    fn waiting_for_a_free_place_belongs_to_the_latency() {
        let (seen, _) = latencies(10, 500, |load| load.limit = 1);
        assert_eq!(seen, [410, 320, 230, 140, 50, 10, 10, 10, 10, 10]);
    }

    #[test]
    fn warm_up_does_not_count() {
        let (seen, tally) = latencies(10, 0, |load| load.warm = 600);
        assert_eq!((seen.len(), tally.due), (5, 5));
    }

    /// Completes, refuses and fails requests in turn.
    struct Fickle {
        count: usize,
        ended: Ended,
    }

    impl Client for Fickle {
        fn start(&mut self, id: u32, _: usize, _: u32) -> Result<(), Error> {
            let Ended { completed, refused, failed, why } = &mut self.ended;
            [completed, refused, failed][self.count % 3].push(id);
            *why = (self.count % 3 == 2).then(|| "gone".to_owned());
            self.count += 1;
            Ok(())
        }

        fn poll(&mut self, _: Duration, ended: &mut Ended) -> Result<(), Error> {
            let Ended { completed, refused, failed, why } = std::mem::take(&mut self.ended);
            ended.completed.extend(completed);
            ended.refused.extend(refused);
            ended.failed.extend(failed);
            ended.why = ended.why.take().or(why);
            Ok(())
        }
    }

    #[test]
    fn refused_and_failed_requests_are_counted_apart_and_make_room() {
        let tally = |ends| {
            let mut time = 0;
            let clock = || {
                time += 1;
                time
            };
            let load = OpenLoop { warm: 150, ends, grace: 1000, limit: 1, idle: Idle::Spin };
            let due = (1..).map(|n| Request { size: 1, peer: 0, due: n * 100 });
            let mut client = Fickle { count: 0, ended: Ended::default() };
            open_loop(&mut client, load, due, clock, |_, _| ()).unwrap()
        };
        let all = tally(901);
        // The first one is part of the warm-up.
        assert_eq!((all.due, all.completed, all.refused, all.failed), (8, 2, 3, 3));
        assert_eq!(all.problem().unwrap(), "gone");
        let two = tally(201);
        assert_eq!((two.due, two.refused, two.failed, &two.why), (1, 1, 0, &None));
        assert_eq!(two.problem().unwrap(), Ended::REFUSED);
    }

    #[test]
    fn what_is_not_answered_in_time_is_given_up() {
        let (seen, tally) = latencies(400, 0, |load| load.grace = 300);
        assert_eq!(seen.len(), 3, "at 500, 900 and 1300");
        assert_eq!((tally.due, tally.completed, tally.in_time), (10, 3, 2));
    }
}
