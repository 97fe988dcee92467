//! Transmission of packets by the module.

use std::net::IpAddr;

use apus_wire::{Body, Cutoffs, Data, SenderId, Waiting};

use super::module::Module;
use super::outgoing::Outgoing;
use super::packet::{Control, ModulePacket, write};
use super::parameters::{CUTOFF_VERSION, CUTOFFS, HIGHEST};
use super::rpc::ModuleRpcKey;
use apus_workload::time::Nanos;

impl Module {
    /// Returns the next packet; `None` if no packet may leave now.
    pub fn transmit(&mut self, now: Nanos) -> Option<ModulePacket> {
        self.now = now;
        if let Some(Control { to, bytes }) = self.control.pop_front() {
            let header_len = bytes.len();
            return Some(ModulePacket { to, priority: HIGHEST, bytes, header_len });
        }
        self.next_resend().or_else(|| self.next_segment())
    }

    /// Queues a control packet about a live RPC.
    pub(super) fn send_control(&mut self, key: ModuleRpcKey, body: Body<'_>) {
        let Some(rpc) = self.rpcs.get(&key) else { return };
        let ports = (rpc.our_port, rpc.peer_port);
        self.send_to(key.peer, ports, key.sender_id(), body);
    }

    /// Queues a control packet to `to` with sender id `id`.
    pub(super) fn send_to(&mut self, to: IpAddr, ports: (u16, u16), id: SenderId, body: Body<'_>) {
        let bytes = write(ports, id, body).into();
        self.control.push_back(Control { to, bytes });
    }

    /// Sends the cutoffs to a host, at most once per tick (HM `homa_incoming.c` `homa_data_pkt`).
    pub(super) fn send_cutoffs(&mut self, to: IpAddr, ports: (u16, u16), id: SenderId) {
        let tick = self.now / apus_workload::time::MILLISECOND;
        let peer = self.peers.entry(to).or_default();
        if peer.cutoffs_tick != Some(tick) {
            peer.cutoffs_tick = Some(tick);
            let cutoffs = Cutoffs { unscheduled: CUTOFFS, version: CUTOFF_VERSION };
            self.send_to(to, ports, id, Body::Cutoffs(cutoffs));
        }
    }

    /// Adds an RPC to the retransmission queue, if it has segments to retransmit.
    pub(super) fn queue_resend(&mut self, key: ModuleRpcKey) {
        let Some(rpc) = self.rpcs.get_mut(&key) else { return };
        if rpc.out.as_ref().is_some_and(Outgoing::has_resends) && !rpc.in_resend_queue {
            rpc.in_resend_queue = true;
            self.resends.push_back(key);
        }
    }

    fn next_resend(&mut self) -> Option<ModulePacket> {
        while let Some(key) = self.resends.front().copied() {
            let next = self.rpcs.get_mut(&key).and_then(|rpc| {
                let next = rpc.out.as_mut()?.next_resend();
                rpc.in_resend_queue = next.is_some();
                next
            });
            match next {
                Some((range, again, ack)) => {
                    let incoming = again.incoming;
                    return self.data(key, range, again.level, |data| Data {
                        incoming,
                        ack,
                        retransmit: true,
                        offset_in_sequence: false,
                        is_stripped: false,
                        waiting: Waiting::UNSAID,
                        response_limit: Waiting::UNSAID,
                        ..data
                    });
                }
                None => drop(self.resends.pop_front()),
            }
        }
        None
    }

    /// Returns the next segment of the message with the fewest bytes left.
    fn next_segment(&mut self) -> Option<ModulePacket> {
        let (_, _, key) = self.sendable.first().copied()?;
        let peer = self.peers.entry(key.peer).or_default();
        let out = self.rpcs.get_mut(&key)?.out.as_mut()?;
        let scheduled = out.sent >= out.unscheduled;
        let (range, ack) = out.next(|| peer.take_one());
        let level = if scheduled { out.level } else { peer.level(out.length()) };
        self.update(key);
        self.data(key, range, level, |data| Data { ack, ..data })
    }

    /// Returns a DATA packet with these bytes; `change` adapts the fields of a first transmission.
    fn data(
        &self,
        key: ModuleRpcKey,
        range: std::ops::Range<u32>,
        priority: u8,
        change: impl FnOnce(Data) -> Data,
    ) -> Option<ModulePacket> {
        let rpc = self.rpcs.get(&key)?;
        let out = rpc.out.as_ref()?;
        let data = change(Data {
            message_length: out.length(),
            incoming: out.unscheduled,
            ack: None,
            cutoff_version: self.peers.get(&key.peer).map_or(0, |peer| peer.cutoff_version),
            retransmit: false,
            offset: range.start,
            offset_in_sequence: true,
            is_stripped: false,
            waiting: Waiting::UNSAID,
            response_limit: Waiting::UNSAID,
        });
        let ports = (rpc.our_port, rpc.peer_port);
        let header = write(ports, key.sender_id(), Body::Data(data, &[]));
        let header_len = header.len();
        let bytes = [&header, &out.bytes(&range)[..]].concat().into();
        Some(ModulePacket { to: key.peer, priority, bytes, header_len })
    }
}
