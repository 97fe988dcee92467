//! The polling router: it takes packets when it has time for them.
//!
//! One loop receives, routes and sends, and [`apus::overload`](::apus::overload) decides how much
//! of each.

use std::thread;

use ::apus::overload::{Budget, CoreShare, Feedback, Instant, Quotas, Work};

use super::counters::Counters;
use super::forward::Forwarder;
use super::stage::{Signals, Stage};
use super::verdicts::ToFilter;
use crate::livelock::frame::Frame;
use crate::livelock::link::{Inlet, Outlet, link};
use crate::livelock::mode::{Policy, SentIn};
use crate::livelock::tap::{CHECK_INTERVAL, Tap};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// Length of the queue of packets to send: `IFQ_MAXLEN` of 4.4BSD.
const OUTPUT_QUEUE: usize = 50;

/// Starts the loop.
pub(super) fn start(
    input: Tap,
    forwarder: Forwarder,
    policy: Policy,
    signals: &Signals,
) -> Result<Stage, Error> {
    let priority = policy.priority;
    let polling = Polling::new(input, forwarder, policy);
    Stage::start("polling", priority, signals, move |stop| polling.run(stop))
}

struct Polling {
    input: Tap,
    forwarder: Forwarder,
    /// The queue of the outgoing interface; the loop has both ends.
    inlet: Inlet,
    outlet: Outlet,
    budget: Budget,
    quotas: Quotas,
    sent_in: SentIn,
    feedback: Option<Feedback>,
    share: Option<CoreShare>,
    received: Frame,
    to_send: Frame,
}

/// Why reception has paused.
enum Held {
    Not,
    /// The filter must catch up, until then at most.
    Feedback(Instant),
    /// The share is used up, until then.
    Share(Instant),
}

impl Polling {
    fn new(input: Tap, forwarder: Forwarder, policy: Policy) -> Self {
        let Policy { quotas, sent_in, feedback, share, .. } = policy;
        let (inlet, outlet) = link(OUTPUT_QUEUE);
        // Without a filter there is no queue to check.
        let feedback = feedback.filter(|_| forwarder.filter.is_some());
        let budget = Budget::new(quotas);
        let (received, to_send) = (Frame::empty(), Frame::empty());
        Self {
            input,
            forwarder,
            inlet,
            outlet,
            budget,
            quotas,
            sent_in,
            feedback,
            share,
            received,
            to_send,
        }
    }

    fn run(mut self, stop: &Stop) -> Result<Counters, Error> {
        while !stop.is_asked() {
            let begins = Instant::from_nanos(clock::now());
            self.budget.begin();
            let (received, held) = self.receive(begins, stop)?;
            let sent = self.transmit()?;
            if received + sent > 0 {
                if let Some(share) = &mut self.share {
                    let ends = Instant::from_nanos(clock::now());
                    // Only far shorter work preempts the loop, so elapsed time is time used.
                    share.charge(ends - begins, ends);
                }
                continue;
            }
            self.sleep(&held)?;
        }
        Ok(self.counters())
    }

    /// Takes packets in. Returns their number, and why there are no more.
    fn receive(&mut self, now: Instant, stop: &Stop) -> Result<(usize, Held), Error> {
        if let Some(until) = self.share.as_mut().and_then(|share| share.until(now)) {
            return Ok((0, Held::Share(until)));
        }
        let mut count = 0;
        // Without a quota, only an empty input or the end of the experiment ends the loop.
        while self.budget.left(Work::Receive) > 0 && !stop.is_asked() {
            if let Some(until) = self.stopped(now) {
                return Ok((count, Held::Feedback(until)));
            }
            if !self.input.take(&mut self.received)? {
                break;
            }
            count += 1;
            self.forwarder.counters.received += 1;
            if self.forwarder.handle(&mut self.received)? && !self.inlet.push(&mut self.received) {
                self.forwarder.counters.output_queue_full += 1;
            }
            if self.quotas.receive != Quotas::UNLIMITED {
                self.budget.spend(Work::Receive, 1);
            }
        }
        Ok((count, Held::Not))
    }

    /// Returns the time until which the filter's queue stops reception, if it does.
    fn stopped(&mut self, now: Instant) -> Option<Instant> {
        let (feedback, filter) = (self.feedback.as_mut()?, self.forwarder.filter.as_ref()?);
        if feedback.check(filter.inlet.len(), now) { None } else { feedback.until() }
    }

    /// Sends packets from the interface's queue. Returns their number.
    fn transmit(&mut self) -> Result<usize, Error> {
        let mut count = 0;
        while self.budget.left(Work::Transmit) > 0 && self.outlet.pop(&mut self.to_send) {
            self.forwarder.send(&self.to_send)?;
            count += 1;
            if self.quotas.transmit != Quotas::UNLIMITED {
                let amount = match self.sent_in {
                    SentIn::Packets => 1,
                    SentIn::Bytes => self.to_send.packet().len(),
                };
                self.budget.spend(Work::Transmit, amount);
            }
        }
        Ok(count)
    }

    /// Sleeps until there may be work.
    fn sleep(&self, held: &Held) -> Result<(), Error> {
        let until = |at: &Instant| (*at - Instant::from_nanos(clock::now())).min(CHECK_INTERVAL);
        match held {
            Held::Not => self.input.wait(CHECK_INTERVAL)?,
            Held::Share(at) => thread::park_timeout(until(at)),
            Held::Feedback(at) => {
                if self.forwarder.filter.as_ref().is_some_and(ToFilter::request_wakeup) {
                    thread::park_timeout(until(at));
                }
            }
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters {
            quota_exhaustions: self.budget.exhausted(Work::Receive)
                + self.budget.exhausted(Work::Transmit),
            feedback_stops: self.feedback.as_ref().map_or(0, Feedback::stops),
            feedback_timeouts: self.feedback.as_ref().map_or(0, Feedback::timeouts),
            inhibitions: self.share.as_ref().map_or(0, CoreShare::inhibitions),
            ..self.forwarder.counters
        }
    }
}
