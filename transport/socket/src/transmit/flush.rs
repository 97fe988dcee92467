//! Sending staged packets.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use apus_driver::NetworkError;
use arrayvec::ArrayVec;
use rustix::io::Errno;

use super::{SocketTransmit, broken, refuse};
use crate::errors;
use crate::fallback::Call;
use crate::group::{Group, SendMode};
use crate::kernel::{self, OutgoingDatagram};
use crate::submit::{Obstacle, Submitted, submit};

/// Messages of one system call. Chosen by us: more have no measurable benefit, and they are on the
/// stack.
const MESSAGES: usize = 32;

impl SocketTransmit {
    /// Sends staged packets with one system call, and handles the obstacle if the system does not
    /// accept all.
    #[inline]
    pub(super) fn send_waiting(&mut self) -> io::Result<()> {
        if self.send_connected() || self.send_sprayed() {
            return Ok(());
        }
        self.update_class();
        let segments = self.options.segments;
        for group in self.staging.waiting().iter_mut().take_while(|group| group.flow.port == 0) {
            let merged = is_merged(group, segments).then_some(group.segment);
            let Group { flow, control, .. } = group;
            flow.control(control, merged, &mut self.class);
        }
        let result = self.submit_waiting();
        self.count_calls(&result);
        self.sent(result.sent);
        match result.obstacle {
            None => Ok(()),
            Some(Obstacle::Full) => {
                self.blocked = true;
                Ok(())
            }
            Some(Obstacle::Refused(error, cause)) => {
                self.handle_refusal(error, cause);
                Ok(())
            }
            Some(Obstacle::Broken(error)) if self.sends_one_by_one(error) => Ok(()),
            Some(Obstacle::Broken(error)) => Err(broken(error, self.staging.waiting()[0].flow.to)),
        }
    }

    /// Sends staged packets through their peer's socket if they fit in one send. Returns whether it
    /// did.
    #[inline]
    fn send_connected(&mut self) -> bool {
        let segments = self.options.segments;
        let [group] = self.staging.waiting() else { return false };
        if group.flow.port != 0 || !is_one_send(group, segments) {
            return false;
        }
        let merged = is_merged(group, segments).then_some(group.segment);
        let is_sent = self.connected.send(group, merged, &self.shared);
        if is_sent {
            self.sent(1);
        }
        is_sent
    }

    /// Makes one send of the first group if it uses a spray port. Returns `false` if it does not,
    /// or if the driver's own port must send it (SPRAY-1).
    #[inline]
    fn send_sprayed(&mut self) -> bool {
        let segments = self.options.segments;
        let Some(group) = self.staging.waiting().first_mut() else { return false };
        if group.flow.port == 0 {
            return false;
        }
        let counters = &self.shared.counters.transmit;
        let merged = is_merged(group, segments).then_some(group.segment);
        self.spray.control(&group.flow, &mut group.control, merged, counters);
        let piece = IoSlice::new(next_send(group, segments));
        let is_sent = self.spray.send(group.flow.port, message(group, &piece), counters);
        if is_sent {
            self.sent(1);
        } else {
            group.flow.port = 0;
        }
        is_sent
    }

    /// Submits staged packets of the driver's own port to the kernel, in up to [`MESSAGES`] sends.
    #[inline]
    fn submit_waiting(&mut self) -> Submitted {
        let Self { shared, options, staging, many, .. } = self;
        let fd = shared.as_fd();
        let call = |messages: &mut [OutgoingDatagram<'_>]| kernel::send(fd, messages);
        let segments = options.segments;
        match staging.waiting() {
            // One send, the usual case when the load is low.
            [group] if is_one_send(group, segments) => {
                let piece = IoSlice::new(group.unsent());
                submit(&mut [message(group, &piece)], many, call)
            }
            groups => {
                let groups = groups.iter().take_while(|group| group.flow.port == 0);
                let sends = groups.flat_map(|group| {
                    sends_of(group, segments).map(move |bytes| (group, IoSlice::new(bytes)))
                });
                // The arrays are filled in place: moving them would cost more than all the rest.
                let mut pieces = ArrayVec::<_, MESSAGES>::new();
                pieces.extend(sends.take(MESSAGES));
                let mut messages = ArrayVec::<_, MESSAGES>::new();
                messages.extend(pieces.iter().map(|(group, piece)| message(group, piece)));
                submit(&mut messages, many, call)
            }
        }
    }

    /// Records that the first `count` sends were accepted.
    #[inline]
    fn sent(&mut self, count: usize) {
        let counters = &self.shared.counters.transmit;
        // The segment size used for these sends, even if it changes below.
        let segments = self.options.segments;
        let mut left = count;
        for group in self.staging.waiting() {
            while left > 0 && !group.is_done() {
                if is_merged(group, segments) {
                    self.segmentation.note_success();
                }
                let bytes = next_send(group, segments).len();
                counters.packets_sent.add(group.packets_in(bytes) as u64);
                group.advance(bytes);
                left -= 1;
            }
            if group.is_done()
                && let SendMode::OneByOne { refused: false, cause } = group.mode
            {
                // The packets were accepted one by one, so segmentation was the problem.
                let is_refused = self.segmentation.note_failure(cause);
                if is_refused || errors::is_segmentation(cause) {
                    self.options.segments = 1;
                    self.shared.refused_calls.add(Call::Segment, cause);
                }
            }
        }
        counters.datagrams_sent.add(count as u64);
        self.staging.remove_done();
    }

    /// Handles the refusal of the first staged send: sends it in another way (TRANSMIT-2), or
    /// reports it.
    #[cold]
    fn handle_refusal(&mut self, error: Errno, cause: NetworkError) {
        if self.sends_one_by_one(error) {
            return;
        }
        let segments = self.options.segments;
        let group = &mut self.staging.waiting()[0];
        let send = next_send(group, segments);
        let (bytes, packets) = (send.len(), group.packets_in(send.len()));
        refuse(&self.shared, group.flow.to, cause, packets, &send[..bytes.min(group.segment)]);
        if let SendMode::OneByOne { refused, .. } = &mut group.mode {
            *refused = true;
        }
        group.advance(bytes);
        self.staging.remove_done();
    }

    /// Returns whether the first staged send, refused with `error`, is merged, and the cause may be
    /// segmentation: its packets are sent one by one then.
    #[cold]
    fn sends_one_by_one(&mut self, error: Errno) -> bool {
        let segments = self.options.segments;
        let group = &mut self.staging.waiting()[0];
        let is_cause = is_merged(group, segments) && errors::may_be_segmentation(error);
        if is_cause {
            group.mode = SendMode::OneByOne { refused: false, cause: error };
            self.shared.counters.transmit.segmentation_refused.add(1);
        }
        is_cause
    }
}

/// Returns whether the unsent packets of the group leave as one merged datagram.
#[inline]
fn is_merged(group: &Group, segments: usize) -> bool {
    segments > 1 && group.mode == SendMode::Merged && group.unsent().len() > group.segment
}

/// Returns whether all unsent packets of the group leave in one send.
#[inline]
fn is_one_send(group: &Group, segments: usize) -> bool {
    is_merged(group, segments) || group.unsent().len() <= group.segment
}

/// Returns the message that sends `piece` of the group.
#[inline]
fn message<'a>(group: &'a Group, piece: &'a IoSlice<'a>) -> OutgoingDatagram<'a> {
    OutgoingDatagram::new(&group.name, std::slice::from_ref(piece), group.control.as_bytes())
}

/// Returns the unsent packets of the group, cut into sends.
#[inline]
fn sends_of(group: &Group, segments: usize) -> impl Iterator<Item = &[u8]> {
    let unsent = group.unsent();
    let bytes = if is_merged(group, segments) { unsent.len() } else { group.segment };
    unsent.chunks(bytes)
}

/// Returns the first unsent send of the group; there must be one.
#[inline]
fn next_send(group: &Group, segments: usize) -> &[u8] {
    sends_of(group, segments).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::sync::Arc;

    use crate::carrier::Carrier;
    use crate::mtu::PacketLimit;
    use crate::receive::SocketReceive;
    use crate::shared::SharedSocket;
    use crate::testing::open;
    use crate::transmit::{MAX_COPIED, TransmitOptions};
    use apus_driver::{Burst, ReceiveHalf, TransmitHalf};

    fn sender() -> (SocketTransmit, Arc<SharedSocket>) {
        let (shared, _) = open();
        let options = TransmitOptions { segments: 64, priorities: true, chooses_source: false };
        (SocketTransmit::new(shared.clone(), PacketLimit::new(9000, Carrier::Udp), options), shared)
    }

    fn listener() -> (SocketReceive, SocketAddr) {
        let (shared, address) = open();
        (SocketReceive::new(shared, true), address)
    }

    fn send(transmit: &mut SocketTransmit, to: SocketAddr, packets: usize, len: usize) {
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
            coalesce: 0,
        };
        transmit.send(&burst).unwrap();
    }

    /// Returns the first bytes of the next `count` packets, sorted.
    fn arrived(receive: &mut SocketReceive, count: usize, len: usize) -> Vec<u8> {
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
    fn without_segmentation_packets_are_sent_one_by_one() {
        for len in [100, MAX_COPIED + 1] {
            let (mut transmit, shared) = sender();
            let (mut receive, to) = listener();
            // The system segments no datagrams without checksums (`udp_send_skb`).
            let fd = shared.as_fd();
            kernel::set_option(fd, libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
            let numbers: Vec<u8> = (0..10).collect();
            for round in 0..2 {
                send(&mut transmit, to, 10, len);
                transmit.flush().unwrap();
                assert_eq!(
                    arrived(&mut receive, 10, len),
                    numbers,
                    "{len} bytes, round {round}: TRANSMIT-2"
                );
                assert_eq!(transmit.options.segments, 1, "switched off after the first refusal");
            }
            let counters = &shared.counters;
            assert_eq!((counters.segmentation_refused(), counters.packets_refused()), (1, 0));
            assert_eq!((counters.datagrams_sent(), counters.packets_sent()), (20, 20));
        }
    }

    #[test]
    fn an_invalid_destination_does_not_switch_segmentation_off() {
        let (mut receive, to) = listener();
        let (mut transmit, shared) = sender();
        // Port 0 is an invalid argument, as is an unsupported segment size.
        let closed = SocketAddr::new(to.ip(), 0);
        for len in [100, MAX_COPIED + 1] {
            send(&mut transmit, closed, 3, len);
            send(&mut transmit, to, 2, len);
            transmit.flush().unwrap();
            assert_eq!(arrived(&mut receive, 2, len), [0, 1]);
            assert_eq!(transmit.options.segments, 64);
        }
        assert_eq!(shared.counters.packets_refused(), 6);
        let failures = shared.take_failures();
        assert_eq!(failures.len(), 6, "each by itself");
        assert!(failures.iter().all(|failure| {
            failure.peer == closed && failure.error == NetworkError::HostUnreachable
        }));
    }
}
