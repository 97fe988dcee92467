//! Transmission of packets by the module.

use std::net::IpAddr;

use apus_wire::{
    Body, Cutoffs, Data, Dialect, Header, HeaderBuffer, KernelFields, MAX_HEADER_LEN,
    Packet as Written, SenderId,
};
use bytes::Bytes;

use super::rpc::RpcName;
use super::{CUTOFF_VERSION, CUTOFFS, HIGHEST, Module};
use apus_workload::time::Nanos;

/// An outgoing packet without IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Destination.
    pub to: IpAddr,
    /// Priority level, 0 to 7.
    pub priority: u8,
    /// Header and payload.
    pub bytes: Bytes,
    /// Length of the header.
    pub header_len: usize,
}

/// A control packet that waits.
#[derive(Clone, Debug)]
pub(super) struct Control {
    to: IpAddr,
    bytes: Bytes,
}

/// Writes the header of a packet.
fn write(ports: (u16, u16), id: SenderId, body: Body<'_>) -> Vec<u8> {
    let dialect = Dialect::Kernel(KernelFields::OURS);
    let mut header = Header::new(body.kind(), ports.0, ports.1, id, dialect);
    if let Body::Data(data, _) = &body {
        header.sequence = data.offset;
    }
    let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
    let len = Written { header, body }.emit_header(&mut buffer);
    buffer[..len].to_vec()
}

impl Module {
    /// Returns the next packet; `None` if none may leave now.
    pub fn transmit(&mut self, now: Nanos) -> Option<Packet> {
        self.now = now;
        if let Some(Control { to, bytes }) = self.control.pop_front() {
            let header_len = bytes.len();
            return Some(Packet { to, priority: HIGHEST, bytes, header_len });
        }
        self.next_resend().or_else(|| self.next_segment())
    }

    /// Queues a control packet about a live RPC.
    pub(super) fn say(&mut self, name: RpcName, body: Body<'_>) {
        let Some(rpc) = self.rpcs.get(&name) else { return };
        let ports = (rpc.our_port, rpc.peer_port);
        self.answer(name.peer, ports, name.sender_id(), body);
    }

    /// Queues a control packet to `to` with sender id `id`.
    pub(super) fn answer(&mut self, to: IpAddr, ports: (u16, u16), id: SenderId, body: Body<'_>) {
        let bytes = write(ports, id, body).into();
        self.control.push_back(Control { to, bytes });
    }

    /// Sends the cutoffs to a host, at most once per tick (row P-16).
    pub(super) fn announce(&mut self, to: IpAddr, ports: (u16, u16), id: SenderId) {
        let tick = self.now / apus_workload::time::MILLISECOND;
        let peer = self.peers.entry(to).or_default();
        if peer.told != Some(tick) {
            peer.told = Some(tick);
            let cutoffs = Cutoffs { unscheduled: CUTOFFS, version: CUTOFF_VERSION };
            self.answer(to, ports, id, Body::Cutoffs(cutoffs));
        }
    }

    /// Adds an RPC to the retransmission queue, if it has segments to retransmit.
    pub(super) fn queue_resend(&mut self, name: RpcName) {
        let Some(rpc) = self.rpcs.get_mut(&name) else { return };
        if rpc.out.as_ref().is_some_and(super::outgoing::Outgoing::has_resends) && !rpc.again {
            rpc.again = true;
            self.resends.push_back(name);
        }
    }

    fn next_resend(&mut self) -> Option<Packet> {
        while let Some(name) = self.resends.front().copied() {
            let next = self.rpcs.get_mut(&name).and_then(|rpc| {
                let next = rpc.out.as_mut()?.next_resend();
                rpc.again = next.is_some();
                next
            });
            match next {
                Some((range, again, ack)) => {
                    let incoming = again.incoming;
                    return self.data(name, range, again.level, |data| Data {
                        incoming,
                        ack,
                        retransmit: true,
                        offset_in_sequence: false,
                        ..data
                    });
                }
                None => drop(self.resends.pop_front()),
            }
        }
        None
    }

    /// Returns the next segment of the message with the fewest bytes left.
    fn next_segment(&mut self) -> Option<Packet> {
        let (_, _, name) = self.sendable.first().copied()?;
        let peer = self.peers.entry(name.peer).or_default();
        let out = self.rpcs.get_mut(&name)?.out.as_mut()?;
        let scheduled = out.sent >= out.unscheduled;
        let (range, ack) = out.next(|| peer.take_one());
        let level = if scheduled { out.level } else { peer.level(out.length()) };
        self.update(name);
        self.data(name, range, level, |data| Data { ack, ..data })
    }

    /// Returns a DATA packet with these bytes; `change` adapts the fields of a first transmission.
    fn data(
        &self,
        name: RpcName,
        range: std::ops::Range<u32>,
        priority: u8,
        change: impl FnOnce(Data) -> Data,
    ) -> Option<Packet> {
        let rpc = self.rpcs.get(&name)?;
        let out = rpc.out.as_ref()?;
        let data = change(Data {
            message_length: out.length(),
            incoming: out.unscheduled,
            ack: None,
            cutoff_version: self.peers.get(&name.peer).map_or(0, |peer| peer.cutoff_version),
            retransmit: false,
            offset: range.start,
            offset_in_sequence: true,
        });
        let ports = (rpc.our_port, rpc.peer_port);
        let header = write(ports, name.sender_id(), Body::Data(data, &[]));
        let header_len = header.len();
        let bytes = [&header, &out.bytes(&range)[..]].concat().into();
        Some(Packet { to: name.peer, priority, bytes, header_len })
    }
}
