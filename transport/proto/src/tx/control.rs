//! Control packets that wait to leave.

use crate::limits::MAX_CONTROL_PACKETS;
use crate::peer::Address;
use apus_wire::{HeaderBuffer, Kind, MAX_HEADER_LEN, Packet};
use std::collections::VecDeque;

/// A control packet, written out.
#[derive(Clone, Debug)]
pub(crate) struct ControlPacket {
    pub(crate) to: Address,
    pub(crate) kind: Kind,
    bytes: HeaderBuffer,
    len: u8,
    /// Bytes of the datagram that it answers, if that holds several packets; else 0.
    shares: u16,
}

impl ControlPacket {
    /// The packet for `to`. If it answers one of several packets of a datagram, that has `shares`
    /// bytes; else 0.
    pub(crate) fn new(to: Address, packet: &Packet<'_>, shares: u16) -> Self {
        let mut bytes = [0; MAX_HEADER_LEN];
        let len = packet.emit_header(&mut bytes) as u8;
        Self { to, kind: packet.body.kind(), bytes, len, shares }
    }

    /// Bytes of the longest datagram that it may share with other answers, whatever is known of its
    /// receiver (WIRE-29): that has sent several packets in a datagram of this length.
    pub(crate) const fn longest_shared_datagram(&self) -> usize {
        self.shares as usize
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Control packets in the order of transmission.
///
/// Bounded (CAP-9): while the network accepts no packets, further ones are dropped. All of them can
/// be lost anyway; timers repeat the important ones.
#[derive(Debug, Default)]
pub(crate) struct ControlQueue {
    packets: VecDeque<ControlPacket>,
}

impl ControlQueue {
    /// Appends a packet; `false` if the queue is full.
    pub(crate) fn push(&mut self, packet: ControlPacket) -> bool {
        let room = self.packets.len() < MAX_CONTROL_PACKETS;
        if room {
            self.packets.push_back(packet);
        }
        room
    }

    pub(crate) fn pop(&mut self) -> Option<ControlPacket> {
        self.packets.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}
