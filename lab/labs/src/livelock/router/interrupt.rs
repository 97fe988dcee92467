//! The interrupt-driven router: input preempts everything else.
//!
//! As in 4.2BSD, the driver takes each packet from the card as soon as it arrives, at the highest
//! priority, and puts it into a queue of fixed length; IP works behind the queue at a lower
//! priority. While packets arrive faster than the driver can take them, no other stage gets the
//! core: the queue is full, and all work is wasted.
//!
//! There are no artificial delays.

use std::thread::{self, Thread};

use super::counters::Counters;
use super::forward::Forwarder;
use super::stage::{Signals, Stage};
use crate::livelock::frame::Frame;
use crate::livelock::link::{Inlet, Outlet, link};
use crate::livelock::mode::{HARDWARE, SOFTWARE};
use crate::livelock::priority::Priority;
use crate::livelock::tap::{CHECK_INTERVAL, Tap};
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// Length of the queue of packets for IP: `IFQ_MAXLEN` of 4.4BSD.
const IP_QUEUE: usize = 50;

/// Starts both stages.
pub(super) fn start(
    input: Tap,
    forwarder: Forwarder,
    signals: &Signals,
) -> Result<Vec<Stage>, Error> {
    input.set_timeout(CHECK_INTERVAL)?;
    let (inlet, outlet) = link(IP_QUEUE);
    let ip = Stage::start("ip", Priority::RealTime(SOFTWARE), signals, move |stop| {
        route(outlet, forwarder, stop)
    })?;
    let next = ip.thread.thread().clone();
    let driver = Stage::start("input", Priority::RealTime(HARDWARE), signals, move |stop| {
        receive(&input, inlet, &next, stop)
    })?;
    Ok(vec![ip, driver])
}

/// Runs the driver: takes packets one by one, since each of them interrupts.
fn receive(input: &Tap, mut inlet: Inlet, next: &Thread, stop: &Stop) -> Result<Counters, Error> {
    let mut counters = Counters::default();
    let mut frame = Frame::empty();
    while !stop.is_asked() {
        if !input.wait_and_take(&mut frame)? {
            continue;
        }
        counters.received += 1;
        if inlet.push(&mut frame) {
            // IP runs when this stage sleeps, not before.
            next.unpark();
        } else {
            counters.ip_queue_full += 1;
        }
    }
    Ok(counters)
}

/// Runs the IP layer: routes packets from the queue, then sends them or passes them to the filter.
fn route(mut outlet: Outlet, mut forwarder: Forwarder, stop: &Stop) -> Result<Counters, Error> {
    let mut frame = Frame::empty();
    while !stop.is_asked() {
        if !outlet.pop(&mut frame) {
            thread::park_timeout(CHECK_INTERVAL);
            continue;
        }
        if forwarder.handle(&mut frame)? {
            forwarder.send(&frame)?;
        }
    }
    Ok(forwarder.counters)
}
