//! Socket buffer: packets that have arrived and wait for the processor.

use std::collections::VecDeque;

use crate::packet::Packet;

/// Packets in order of arrival, bounded by their bytes on the wire.
#[derive(Debug)]
pub(super) struct SocketBuffer<B> {
    packets: VecDeque<(Packet, B)>,
    bytes: u64,
    limit: u64,
    /// Packets that were dropped for lack of room.
    pub(super) overflows: u64,
    /// Packets with payload among them.
    pub(super) dropped_data: u64,
}

impl<B> SocketBuffer<B> {
    pub(super) const fn new(limit: u64) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, limit, overflows: 0, dropped_data: 0 }
    }

    /// Appends a packet, or drops it for lack of room (PROCESSOR-2).
    pub(super) fn push(&mut self, packet: &Packet, body: &B)
    where
        B: Clone,
    {
        let bytes = self.bytes + u64::from(packet.wire_bytes);
        if bytes > self.limit {
            self.overflows += 1;
            self.dropped_data += u64::from(packet.payload > 0);
            return;
        }
        self.bytes = bytes;
        self.packets.push_back((*packet, body.clone()));
    }

    /// Removes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<(Packet, B)> {
        let (packet, body) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some((packet, body))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Drops all packets, without counting them.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(wire_bytes: u32, payload: u32) -> Packet {
        Packet { wire_bytes, payload, ..Packet::default() }
    }

    #[test]
    fn packets_beyond_the_limit_are_dropped_and_counted() {
        let mut socket = SocketBuffer::new(250);
        socket.push(&packet(100, 50), &'a');
        socket.push(&packet(100, 50), &'b');
        socket.push(&packet(100, 50), &'c');
        socket.push(&packet(84, 0), &'d');
        socket.push(&packet(50, 0), &'e');
        assert_eq!((socket.overflows, socket.dropped_data), (2, 1));
        assert_eq!(socket.pop().map(|(_, body)| body), Some('a'));
        socket.push(&packet(100, 50), &'f');
        let left: String = std::iter::from_fn(|| socket.pop()).map(|(_, body)| body).collect();
        assert_eq!(left, "bef");
        assert!(socket.is_empty());
    }
}
