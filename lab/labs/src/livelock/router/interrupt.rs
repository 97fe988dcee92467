//! The interrupt-driven router: input interrupts everything else.
//!
//! As in 4.2BSD, the driver takes each packet from the card as soon as it arrives, at the highest priority,
//! and puts it into a queue of fixed length, behind which IP works at a lower one. While packets arrive faster
//! than the driver can take them, no other stage gets the core: the queue is full, and all work is wasted.
//!
//! There are no artificial delays.

use std::thread::{self, Thread};

use super::counters::Counters;
use super::forward::Forwarder;
use super::{Life, Part};
use crate::livelock::CHECK_INTERVAL;
use crate::livelock::frame::Frame;
use crate::livelock::link::{Inlet, Outlet, link};
use crate::livelock::mode::{HARDWARE, SOFTWARE};
use crate::livelock::priority::Priority;
use crate::livelock::tap::Tap;
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// Packets that wait for IP at most: `IFQ_MAXLEN` of 4.4BSD.
const IP_QUEUE: usize = 50;

/// Starts both stages.
pub(super) fn start(input: Tap, forwarder: Forwarder, life: &Life) -> Result<Vec<Part>, Error> {
    input.set_patience(CHECK_INTERVAL)?;
    let (inlet, outlet) = link(IP_QUEUE);
    let ip = Part::start("ip", Priority::RealTime(SOFTWARE), life, move |stop| {
        route(outlet, forwarder, stop)
    })?;
    let next = ip.thread.thread().clone();
    let driver = Part::start("input", Priority::RealTime(HARDWARE), life, move |stop| {
        receive(&input, inlet, &next, stop)
    })?;
    Ok(vec![ip, driver])
}

/// Returns the driver: takes packets one by one, as each of them interrupts.
fn receive(input: &Tap, mut inlet: Inlet, next: &Thread, stop: &Stop) -> Result<Counters, Error> {
    let mut counters = Counters::default();
    let mut frame = Frame::empty();
    while !stop.is_asked() {
        if !input.wait_and_take(&mut frame)? {
            continue;
        }
        counters.received += 1;
        if inlet.push(&mut frame) {
            // It runs when this stage sleeps, and not before.
            next.unpark();
        } else {
            counters.ip_queue_full += 1;
        }
    }
    Ok(counters)
}

/// Returns the IP layer: forwards what is in the queue, and sends it, or asks the filter.
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
