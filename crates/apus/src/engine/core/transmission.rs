//! What leaves, and when?
//!
//! Kept here: E4 in [`engine`](crate::engine). [`Core::after_command`] sends or holds back,
//! [`Core::transmit_held_back`] makes up for it.

use super::Core;
use crate::engine::cpu::CpuPart;
use crate::error::Closed;
use crate::overload::Work;
use apus_driver::Burst;
use apus_proto::Address;
use apus_trace::clock::ticks;
use apus_trace::{Event, recorder};
use smallvec::SmallVec;
use std::io;

/// Messages that are held back at most: half of what one send carries, so that the peer is busy earlier.
const MAX_HELD_BACK: u32 = 32;

impl Core {
    /// After a command: what it brought about at once, and its packets, unless a cork holds them.
    pub(crate) fn after_command(&mut self) {
        self.deliver();
        if self.corks == 0 { self.transmit() } else { self.hold_back() }
    }

    /// The same after a reply. While too many requests wait for a thread of the application, it leaves at the next
    /// look at the network, together with others (B3).
    pub(crate) fn after_reply(&mut self) {
        if self.role.is_free() && self.backlog.holds_replies(self.requests.len()) {
            self.metrics.held_replies += 1;
            self.deliver();
            self.hold_back();
        } else {
            self.after_command();
        }
    }

    /// A call was let go: there is room for another one, and perhaps nothing is left to be acknowledged.
    pub(crate) fn after_cancel(&mut self) {
        self.after_command();
        self.call_ended();
        if self.is_drained() {
            // The thread with the turn may wait for that, and is on no list.
            self.check_now = true;
            self.notify_drained();
        }
    }

    fn hold_back(&mut self) {
        self.held_back += 1;
        if self.held_back >= MAX_HELD_BACK {
            self.transmit_held_back();
        }
    }

    /// Sends what was held back.
    pub(crate) fn transmit_held_back(&mut self) {
        self.flush_local();
        if self.held_back > 0 {
            self.read_clock();
            self.transmit();
        }
    }

    /// Sends what may leave. If the driver is broken, the endpoint is closed.
    pub(crate) fn transmit(&mut self) {
        self.transmit_within(usize::MAX);
    }

    /// The same, but not much more than the pass may; what is left waits for the next one.
    pub(in crate::engine) fn transmit_in_pass(&mut self) {
        self.transmit_within(self.budget.left(Work::Transmit));
        if self.more_to_send {
            self.spend(Work::Transmit, usize::MAX);
        }
    }

    /// The same with so many bytes of payload.
    fn transmit_within(&mut self, quota: usize) {
        self.held_back = 0;
        let began = self.cpu.begin(CpuPart::Send);
        let sent = self.try_transmit(quota);
        self.cpu.end(CpuPart::Send, began);
        if let Err(error) = sent {
            self.close(Closed::Driver(error.into()));
        }
    }

    pub(super) fn try_transmit(&mut self, mut quota: usize) -> io::Result<()> {
        let now = self.time;
        if self.tracer.take_freezes_peers() {
            self.ask_peers_to_freeze();
        }
        let (mut began, mut packets) = (0, 0);
        if !self.transmit.has_room() {
            self.transmit.flush()?;
        }
        self.more_to_send = false;
        while self.transmit.has_room() {
            if quota == 0 {
                self.more_to_send = true;
                break;
            }
            // Looked at where it is: it is moved at no time.
            let next = self.transport.poll_transmit(now);
            let Some(transmit) = &next else { break };
            quota = quota.saturating_sub(transmit.payload_len());
            if packets == 0 {
                began = recorder::stamp();
            }
            packets += transmit.packets();
            let mut payload = SmallVec::<[&[u8]; 4]>::new();
            payload.extend(transmit.payload());
            self.transmit.send(&Burst {
                to: transmit.to(),
                from: self.paths.local(transmit.to()),
                traffic_class: transmit.traffic_class(),
                headers: transmit.headers(),
                header_len: transmit.header_len(),
                payload: &payload,
                segment: transmit.segment(),
            })?;
            drop(payload);
            self.tracer.fetch(&mut self.transport);
        }
        self.tracer.fetch(&mut self.transport);
        self.flush(began, packets)
    }

    /// Gives to the kernel what the driver holds back, and records when: `began` is when the driver got the first of so
    /// many packets, 0 if nothing is recorded. What it has sent on the way, for lack of room, is said to have left now.
    fn flush(&mut self, began: u64, packets: usize) -> io::Result<()> {
        if self.tracer.has_leaving() {
            self.tracer.left(recorder::stamp());
        }
        if self.transmit.has_pending() {
            self.transmit.flush()?;
        }
        if packets > 0 && began > 0 {
            let now = ticks();
            let took = now.saturating_sub(began);
            recorder::record_at(now, Event::Send, packets as u32, took);
        }
        Ok(())
    }

    /// Asks the driver how long packets to `peer` may be.
    pub(super) fn renew_packet_limit(&mut self, peer: Address) {
        let limit = self.transmit.packet_limit(peer);
        self.transport.set_packet_limit(peer, limit);
    }
}
