//! How do packets leave?
//!
//! A small packet is copied into [`Staging`] and waits for `flush`; a large one leaves at once, straight
//! from the engine's slices, after everything that waited. What the system does not take now is kept
//! in staging too, and the next `flush` tries again.
//!
//! # Invariants
//!
//! - **T1** `blocked` is set if and only if the last attempt to send ended because the system was
//!   full; then staging is not empty.
//! - **T2** A group that the system refuses as a whole is sent packet by packet, and only what is
//!   then refused again is reported.

mod gather;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use apus_driver::{Burst, Packet, Transmit, Trouble};
use arrayvec::ArrayVec;
use rustix::io::Errno;

use crate::address::{self, Family};
use crate::class::{self, UsualClass};
use crate::errors;
use crate::kernel::{self, Outgoing};
use crate::mtu::PacketLimit;
use crate::shared::{Refusal, Shared};
use crate::staging::{Flow, Group, Manner, Staging};
use crate::submit::{Obstacle, Submitted, submit};

/// Longest packet that is copied; longer ones are gathered from the engine's slices.
///
/// Source: docs/perf-log.md 2026-11-20. With 1472-byte packets copies win by a quarter, with 8972-byte
/// ones gathering by a twentieth or, with other memory, a third; at 4000 bytes they are equal.
const COPIED: usize = 4000;

/// Messages of one system call. Ours: more saves nothing measurable, and they lie on the stack.
const MESSAGES: usize = 32;

/// What a driver is allowed to do, decided when it was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// Packets of one send; 1 without segmentation offload.
    pub(crate) segments: usize,
    /// Whether packets carry their traffic class.
    pub(crate) priorities: bool,
    /// Whether the socket listens on all addresses, so that sends may name theirs.
    pub(crate) chooses_source: bool,
}

impl Abilities {
    /// Traffic class byte of the burst's packets, without the ECN bits.
    #[inline]
    fn class(self, burst: &Burst<'_>) -> u8 {
        if self.priorities { burst.traffic_class & !0b11 } else { 0 }
    }
}

/// The half that sends.
#[derive(Debug)]
pub(crate) struct UdpTransmit {
    shared: Arc<Shared>,
    staging: Staging,
    class: UsualClass,
    limit: PacketLimit,
    abilities: Abilities,
    /// The system takes nothing (invariant T1).
    blocked: bool,
}

impl UdpTransmit {
    pub(crate) fn new(shared: Arc<Shared>, limit: PacketLimit, abilities: Abilities) -> Self {
        let staging = Staging::new(shared.family);
        Self { shared, staging, class: UsualClass::new(), limit, abilities, blocked: false }
    }

    fn flow(&self, burst: &Burst<'_>) -> Flow {
        let from = if self.abilities.chooses_source { burst.from } else { None };
        Flow { to: burst.to, from, class: self.abilities.class(burst) }
    }

    /// The usual case, at the least cost: a burst of one small packet that goes where the last one
    /// went. `false`: it is another case, and nothing was done.
    #[inline(always)]
    fn stage_like_last(&mut self, burst: &Burst<'_>, len: usize) -> bool {
        if self.blocked || burst.headers.len() != burst.header_len {
            return false;
        }
        let abilities = self.abilities;
        // Compared in place: a flow made for this would be copied twice.
        let place = self.staging.place_like_last(len, |flow| {
            flow.to == burst.to
                && flow.class == abilities.class(burst)
                && (!abilities.chooses_source || flow.from == burst.from)
        });
        let Some(place) = place else { return false };
        let (header, mut rest) = place.split_at_mut(burst.header_len);
        header.copy_from_slice(burst.headers);
        for slice in burst.payload {
            let (here, behind) = rest.split_at_mut(slice.len());
            here.copy_from_slice(slice);
            rest = behind;
        }
        true
    }

    /// Every other case. Not inlined: its large frame would burden the usual one.
    #[inline(never)]
    fn send_otherwise(&mut self, burst: &Burst<'_>, longest: usize) -> io::Result<()> {
        if self.blocked {
            self.shared.counters.transmit.packets_dropped.add(burst.packets() as u64);
            return Ok(());
        }
        let flow = self.flow(burst);
        if let Some(trouble) = self.hindrance(&flow, longest) {
            let beginning = burst.each().next().map(Packet::to_vec).unwrap_or_default();
            refuse(&self.shared, burst.to, trouble, burst.packets(), &beginning);
            return Ok(());
        }
        if longest <= COPIED {
            self.stage(&flow, burst.each())
        } else {
            self.gather(&flow, burst.each())
        }
    }

    /// What keeps every packet of a burst from being sent, if anything does.
    #[inline]
    fn hindrance(&self, flow: &Flow, longest: usize) -> Option<Trouble> {
        let to = address::canonical(flow.to);
        if longest > self.limit.most(to) {
            Some(Trouble::TooBig)
        } else if self.shared.family == Family::V4 && to.is_ipv6() {
            Some(Trouble::HostUnreachable)
        } else {
            None
        }
    }

    /// Copies packets of one burst. Flushes if there is no room for one; if the system is full,
    /// makes room instead.
    #[inline]
    fn stage<'a>(
        &mut self,
        flow: &Flow,
        packets: impl Iterator<Item = Packet<'a>>,
    ) -> io::Result<()> {
        let mut last = false;
        for packet in packets {
            let len = packet.len();
            loop {
                if let Some(place) = self.staging.place(flow, len, last) {
                    packet.copy_to(place);
                    break;
                }
                self.make_room()?;
            }
            last = true;
        }
        Ok(())
    }

    #[cold]
    fn make_room(&mut self) -> io::Result<()> {
        if !self.blocked {
            self.flush()?;
        }
        if self.blocked {
            self.staging.grow();
        }
        Ok(())
    }

    /// Sends what waits, as far as one system call takes it, and deals with what it does not take.
    #[inline]
    fn send_waiting(&mut self) -> io::Result<()> {
        self.reconsider_class();
        let segments = self.abilities.segments;
        for group in self.staging.waiting() {
            let merged = is_merged(group, segments).then_some(group.segment);
            let Group { flow, control, .. } = group;
            flow.control(control, merged, &mut self.class);
        }
        let result = self.submit_waiting();
        self.count_calls(result.calls, result.look_at_errors);
        self.sent(result.sent);
        match result.obstacle {
            None => Ok(()),
            Some(Obstacle::Full) => {
                self.blocked = true;
                Ok(())
            }
            Some(Obstacle::Refused(error, trouble)) => {
                self.give_up(error, trouble);
                Ok(())
            }
            Some(Obstacle::Broken(error)) => Err(broken(error, self.staging.waiting()[0].flow.to)),
        }
    }

    /// Hands what waits to the kernel, [`MESSAGES`] sends at most.
    #[inline]
    fn submit_waiting(&mut self) -> Submitted {
        let fd = self.shared.as_fd();
        let call = |messages: &mut [Outgoing<'_>]| kernel::send(fd, messages);
        let segments = self.abilities.segments;
        match self.staging.waiting() {
            // One send, as most often when the load is low.
            [group] if is_one_send(group, segments) => {
                let piece = IoSlice::new(group.unsent());
                submit(&mut [message(group, &piece)], call)
            }
            groups => {
                let sends = groups.iter().flat_map(|group| {
                    sends_of(group, segments).map(move |bytes| (group, IoSlice::new(bytes)))
                });
                // The arrays are filled in place: moving them would cost more than the rest.
                let mut pieces = ArrayVec::<_, MESSAGES>::new();
                pieces.extend(sends.take(MESSAGES));
                let mut messages = ArrayVec::<_, MESSAGES>::new();
                messages.extend(pieces.iter().map(|(group, piece)| message(group, piece)));
                submit(&mut messages, call)
            }
        }
    }

    /// The first `count` sends were taken.
    #[inline]
    fn sent(&mut self, count: usize) {
        let counters = &self.shared.counters.transmit;
        let mut left = count;
        for group in self.staging.waiting() {
            while left > 0 && !group.is_done() {
                let bytes = next_send(group, self.abilities.segments).len();
                counters.packets_sent.add(group.packets_in(bytes) as u64);
                group.advance(bytes);
                left -= 1;
            }
            if group.is_done() && group.manner == (Manner::OneByOne { refused: false }) {
                // One by one they are all right, so segmentation is not: do without it from now on.
                self.abilities.segments = 1;
            }
        }
        counters.datagrams_sent.add(count as u64);
        self.staging.remove_done();
    }

    /// The first send that waits is refused: sends it in another way (invariant T2), or reports it.
    #[cold]
    fn give_up(&mut self, error: Errno, trouble: Trouble) {
        let segments = self.abilities.segments;
        let group = &mut self.staging.waiting()[0];
        if is_merged(group, segments) && errors::blames_segmentation(error) {
            group.manner = Manner::OneByOne { refused: false };
            self.shared.counters.transmit.segmentation_refused.add(1);
            return;
        }
        let send = next_send(group, segments);
        let (bytes, packets) = (send.len(), group.packets_in(send.len()));
        refuse(&self.shared, group.flow.to, trouble, packets, &send[..bytes.min(group.segment)]);
        if let Manner::OneByOne { refused } = &mut group.manner {
            *refused = true;
        }
        group.advance(bytes);
        self.staging.remove_done();
    }

    #[inline]
    fn reconsider_class(&mut self) {
        let Self { shared, class, .. } = self;
        if class.reconsider(|class| class::set(shared.as_fd(), shared.family, class)) {
            shared.counters.transmit.class_changes.add(1);
        }
    }

    #[inline]
    fn count_calls(&self, calls: u64, look_at_errors: bool) {
        self.shared.counters.transmit.send_calls.add(calls);
        if look_at_errors {
            self.shared.raise();
        }
    }
}

impl Transmit for UdpTransmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        let longest = burst.longest_packet();
        if self.stage_like_last(burst, longest) {
            return Ok(());
        }
        self.send_otherwise(burst, longest)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.blocked = false;
        while !self.staging.is_empty() && !self.blocked {
            self.send_waiting()?;
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        !self.blocked
    }

    fn has_pending(&self) -> bool {
        !self.staging.is_empty()
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.limit.on_path(to)
    }
}

/// Whether what is unsent of the group leaves as one merged datagram.
#[inline]
fn is_merged(group: &Group, segments: usize) -> bool {
    segments > 1 && group.manner == Manner::Merged && group.unsent().len() > group.segment
}

/// Whether all that is unsent leaves in one send.
#[inline]
fn is_one_send(group: &Group, segments: usize) -> bool {
    is_merged(group, segments) || group.unsent().len() <= group.segment
}

/// A send of packets of the group.
#[inline]
fn message<'a>(group: &'a Group, piece: &'a IoSlice<'a>) -> Outgoing<'a> {
    Outgoing::new(&group.name, std::slice::from_ref(piece), group.control.as_bytes())
}

/// What is unsent of the group, cut into sends.
#[inline]
fn sends_of(group: &Group, segments: usize) -> impl Iterator<Item = &[u8]> {
    let unsent = group.unsent();
    let at_once = if is_merged(group, segments) { unsent.len() } else { group.segment };
    unsent.chunks(at_once)
}

/// The first of these; the group has one.
#[inline]
fn next_send(group: &Group, segments: usize) -> &[u8] {
    sends_of(group, segments).next().unwrap_or_default()
}

/// Tells the engine, by way of the other half, that packets to `peer` were not sent.
#[cold]
fn refuse(shared: &Shared, peer: SocketAddr, trouble: Trouble, packets: usize, beginning: &[u8]) {
    shared.counters.transmit.packets_refused.add(packets as u64);
    let beginning = beginning.iter().copied().take(crate::shared::BEGINNING).collect();
    shared.refuse(Refusal { peer: address::canonical(peer), trouble, beginning });
}

/// The socket itself does not work any more.
#[cold]
fn broken(error: Errno, to: SocketAddr) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("send to {to}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UdpConfig;
    use crate::receive::UdpReceive;
    use crate::socket;
    use apus_driver::Receive;

    const LIMIT: usize = 9000;

    /// A driver on the loopback device that believes in segmentation although its socket is made to
    /// refuse it: the system merges no datagrams without checksums (`udp_send_skb`).
    fn refusing() -> (UdpTransmit, Arc<Shared>) {
        let opened = socket::open(&UdpConfig::bound_to("127.0.0.1:0".parse().unwrap())).unwrap();
        kernel::set_option(opened.socket.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        let shared = Arc::new(Shared::new(opened.socket, opened.family));
        let abilities = Abilities { segments: 64, priorities: true, chooses_source: false };
        let transmit = UdpTransmit::new(shared.clone(), PacketLimit::new(LIMIT), abilities);
        (transmit, shared)
    }

    fn listener() -> (UdpReceive, SocketAddr) {
        let opened = socket::open(&UdpConfig::bound_to("127.0.0.1:0".parse().unwrap())).unwrap();
        let shared = Arc::new(Shared::new(opened.socket, opened.family));
        (UdpReceive::new(shared, opened.features.merging), opened.local)
    }

    fn send(transmit: &mut UdpTransmit, to: SocketAddr, packets: usize, len: usize) {
        let headers: Vec<u8> = (0..packets).map(|number| u8::try_from(number).unwrap()).collect();
        let payload = vec![0; packets * (len - 1)];
        let burst = Burst {
            to,
            from: None,
            traffic_class: 0,
            headers: &headers,
            header_len: 1,
            payload: &[&payload],
            segment: len - 1,
        };
        transmit.send(&burst).unwrap();
    }

    /// First bytes of the next `count` packets, sorted.
    fn arrived(receive: &mut UdpReceive, count: usize, len: usize) -> Vec<u8> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            receive.wait();
            receive.receive(64).unwrap();
            receive.drain(&mut |arrival| {
                assert_eq!(arrival.packet.len(), len);
                numbers.push(arrival.packet[0]);
            });
        }
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn a_system_that_refuses_segmentation_gets_packets_one_by_one() {
        for len in [100, COPIED + 1] {
            let (mut transmit, shared) = refusing();
            let (mut receive, to) = listener();
            let numbers: Vec<u8> = (0..10).collect();
            for round in 0..2 {
                send(&mut transmit, to, 10, len);
                transmit.flush().unwrap();
                assert_eq!(
                    arrived(&mut receive, 10, len),
                    numbers,
                    "{len} bytes, round {round}: T2"
                );
                assert_eq!(transmit.abilities.segments, 1, "once is enough");
            }
            let counters = &shared.counters;
            assert_eq!((counters.segmentation_refused(), counters.packets_refused()), (1, 0));
            assert_eq!((counters.datagrams_sent(), counters.packets_sent()), (20, 20));
        }
    }

    #[test]
    fn a_bad_destination_is_not_taken_for_bad_segmentation() {
        let (mut receive, to) = listener();
        let shared = {
            let config = UdpConfig::bound_to("127.0.0.1:0".parse().unwrap());
            let opened = socket::open(&config).unwrap();
            Arc::new(Shared::new(opened.socket, opened.family))
        };
        let abilities = Abilities { segments: 64, priorities: true, chooses_source: false };
        let mut transmit = UdpTransmit::new(shared.clone(), PacketLimit::new(LIMIT), abilities);
        // Port 0 is an invalid argument, as is bad segmentation.
        let nobody = SocketAddr::new(to.ip(), 0);
        for len in [100, COPIED + 1] {
            send(&mut transmit, nobody, 3, len);
            send(&mut transmit, to, 2, len);
            transmit.flush().unwrap();
            assert_eq!(arrived(&mut receive, 2, len), [0, 1]);
            assert_eq!(transmit.abilities.segments, 64);
        }
        assert_eq!(shared.counters.packets_refused(), 6);
        let refusals = shared.take_refusals();
        assert_eq!(refusals.len(), 6, "each by itself");
        assert!(refusals.iter().all(|refusal| {
            refusal.peer == nobody && refusal.trouble == Trouble::HostUnreachable
        }));
    }
}
