//! The next transmission: chosen, cut and written.

use super::output::Output;
use super::send_queue::Choice;
use super::spray::{mark, may_spray};
use super::transmit::{Transmit, write_headers};
use crate::budget::ReceiveRoom;
use crate::config::Config;
use crate::grant::{Decision, Level};
use crate::inbound::Inbound;
use crate::limits::MAX_BURST_PACKETS;
use crate::message::{Cut, MessageOut};
use crate::peer::Address;
use crate::priority::{oldest_level, scheduled_level};
use crate::probe::{Notes, Piece, ProbeKind};
use crate::protocol::Protocol;
use crate::rpc::RpcKey;
use apus_wire::{Body, Data, Grant, Kind, Packet, Profile, Role, SenderId, Waiting};

/// The ECN bits of a packet that switches may mark: ECT(0) of RFC 3168, section 5 (GRANT-19).
const ECN_CAPABLE: u8 = 0b10;

/// The next transmission.
enum Next {
    /// All of a short message that may leave, which is usually one packet.
    Short(RpcKey),
    /// These packets of a message, and whether they are sent again.
    Packets(RpcKey, Cut, bool),
}

/// Scheduler of the next transmission, with the state that it may change.
#[derive(Debug)]
pub(crate) struct Filler<'a> {
    pub(crate) protocol: &'a mut Protocol,
    pub(crate) inbound: &'a mut Inbound,
    pub(crate) output: &'a mut Output,
}

impl<'a> Filler<'a> {
    /// The next packets to send; `None` if none may leave now. Returned packets count as sent.
    #[inline]
    pub(crate) fn next(mut self) -> Option<Transmit<'a>> {
        if self.inbound.granter.is_due() || self.inbound.budget.receive.has_freed_room() {
            self.send_grants();
        }
        if let Some(packet) = self.output.outbound.control.pop() {
            let priority = self.protocol.config.highest_priority();
            self.output.observation.metrics.count_sent(packet.kind, 1);
            let traffic_class = traffic_class(&self.protocol.config, priority);
            let headers = &mut self.output.outbound.headers;
            headers.clear();
            headers.extend_from_slice(packet.bytes());
            let (to, header_len) = (packet.to, headers.len());
            let peers = &mut self.protocol.tables.peers;
            let coalesce = peers.find(&to).map_or(0, |peer| peers[peer].longest_shared_datagram());
            let coalesce = coalesce.max(packet.longest_shared_datagram());
            return Some(Transmit {
                to,
                priority,
                traffic_class,
                headers,
                header_len,
                coalesce,
                data: None,
            });
        }
        match self.choose()? {
            Next::Short(rpc) => self.make_up_short(rpc),
            Next::Packets(rpc, cut, retransmit) => self.make_up_packets(rpc, cut, retransmit),
        }
    }

    /// Turns the granter's decisions into GRANT packets (HM `homa_grant.c` `homa_grant_check_rpc`).
    // Once per batch of packets; inlined, it would take registers from every packet.
    #[inline(never)]
    fn send_grants(&mut self) {
        let mut decisions: smallvec::SmallVec<[Decision; 8]> = smallvec::SmallVec::new();
        let Self { protocol, inbound, output } = self;
        let mut room = ReceiveRoom {
            config: &protocol.config,
            peers: &mut protocol.tables.peers,
            budget: &mut inbound.budget.receive,
        };
        inbound.granter.run(
            protocol.now,
            &mut protocol.tables.rpcs,
            &mut room,
            &mut output.observation.metrics.scheduling,
            |decision| {
                decisions.push(decision);
            },
        );
        for Decision { rpc, offset, level } in decisions {
            let levels = inbound.cutoffs.scheduled_levels();
            let priority = match level {
                Level::Oldest => oldest_level(levels).min(protocol.config.highest_priority()),
                Level::Scheduled { rank, active } => scheduled_level(rank, active, levels),
            };
            output.control(protocol, rpc, Body::Grant(Grant { offset, priority }));
        }
    }

    /// The next DATA: short messages, then the others and retransmissions, the fewest bytes left
    /// first (SEND-1).
    ///
    /// Rationale: if retransmissions went first, a peer that takes queues for losses would have
    /// them fill the queues.
    fn choose(&mut self) -> Option<Next> {
        match self.output.outbound.resends.first() {
            None => self.next_short().or_else(|| self.next_long()),
            Some((left, _)) if self.output.outbound.messages.goes_before(left) => {
                self.next_short().or_else(|| self.next_long()).or_else(|| self.next_resend())
            }
            Some(_) => {
                self.next_resend().or_else(|| self.next_short()).or_else(|| self.next_long())
            }
        }
    }

    /// Retransmissions that a peer has requested. Those of long messages respect the pacer.
    // Rare; inlined, it would take registers from every packet.
    #[inline(never)]
    fn next_resend(&mut self) -> Option<Next> {
        let now = self.protocol.now;
        while let Some((_, rpc)) = self.output.outbound.resends.first() {
            let Some(entry) = self.protocol.tables.rpcs.get_mut(rpc) else {
                self.output.outbound.resends.remove(rpc);
                continue;
            };
            let segment = self.protocol.tables.peers[entry.peer].size.segment();
            let cut = match &mut entry.outgoing {
                Some(message) => {
                    let short =
                        u64::from(message.length()) < self.protocol.config.defer_min_bytes();
                    let room =
                        if short { Some(u32::MAX) } else { self.output.outbound.pacer.room(now) };
                    let bytes = room?.min(self.protocol.config.burst_bytes() as u32);
                    message.set_segment(segment);
                    let cut = message.next_resend(bytes, MAX_BURST_PACKETS as u32);
                    cut.map(|cut| (cut, message.left()))
                }
                None => None,
            };
            match cut {
                Some((cut, left)) => {
                    self.output.outbound.resends.put(rpc, left);
                    return Some(Next::Packets(rpc, cut, true));
                }
                None => self.output.outbound.resends.remove(rpc),
            }
        }
        None
    }

    /// A message that is too short to be held back (HM `homa_qdisc.c` `homa_qdisc_enqueue`).
    fn next_short(&mut self) -> Option<Next> {
        let rpc = self.output.outbound.messages.pop_short(&mut self.protocol.tables.rpcs)?;
        Some(Next::Short(rpc))
    }

    /// The message that SRPT order, or the oldest message's share, puts first.
    // Not needed by short messages, whose path stays short.
    #[inline(never)]
    fn next_long(&mut self) -> Option<Next> {
        let choice: Choice = self.output.outbound.messages.choose(&self.protocol.tables.rpcs)?;
        let room = self.output.outbound.pacer.room(self.protocol.now);
        let throttled = room.is_none();
        let was_throttled = std::mem::replace(&mut self.output.outbound.throttled, throttled);
        self.output.observation.metrics.scheduling.throttled +=
            u64::from(throttled && !was_throttled);
        let rpc = choice.rpc;
        if throttled {
            let entry = &self.protocol.tables.rpcs[rpc];
            let waiting = entry.outgoing.as_ref().map_or(0, MessageOut::waiting);
            let segment = self.protocol.tables.peers[entry.peer].size.segment();
            self.output.outbound.pacer.reserve(self.protocol.now, waiting, segment);
        }
        if throttled && !was_throttled {
            let wait = self.output.outbound.pacer.next_room() - self.protocol.now;
            self.output.observation.note(&self.protocol.tables, rpc, ProbeKind::Throttled { wait });
        }
        let entry = &mut self.protocol.tables.rpcs[rpc];
        let segment = self.protocol.tables.peers[entry.peer].size.segment();
        let room = room?.min(choice.most);
        let cut = next_cut(entry.outgoing.as_mut()?, segment, room, &self.protocol.config)?;
        self.output.outbound.messages.sent(choice, cut.bytes());
        if choice.oldest {
            self.output.observation.metrics.scheduling.pacer_fifo_bytes += u64::from(cut.bytes());
        }
        self.output.outbound.messages.update(&mut self.protocol.tables.rpcs, rpc);
        Some(Next::Packets(rpc, cut, false))
    }

    /// Makes a short message up. A message of a single packet has separate code: there, everything
    /// that depends on the number of packets, on earlier transmissions and on losses is constant.
    #[inline(always)]
    fn make_up_short(self, rpc: RpcKey) -> Option<Transmit<'a>> {
        let entry = &mut self.protocol.tables.rpcs[rpc];
        let segment = self.protocol.tables.peers[entry.peer].size.segment();
        let message = entry.outgoing.as_mut()?;
        if let Some(length) = message.send_whole(segment) {
            return self.make_up(rpc, Cut { range: 0..length, segment }, false);
        }
        let cut = next_cut(message, segment, u32::MAX, &self.protocol.config)?;
        self.output.outbound.messages.update(&mut self.protocol.tables.rpcs, rpc);
        self.make_up_packets(rpc, cut, false)
    }

    // The general copy of `make_up`; the other one is for messages of one packet.
    #[inline(never)]
    fn make_up_packets(self, rpc: RpcKey, cut: Cut, retransmit: bool) -> Option<Transmit<'a>> {
        self.make_up(rpc, cut, retransmit)
    }

    /// Makes packets up into headers and payload, and counts them as sent.
    #[inline(always)]
    fn make_up(self, rpc: RpcKey, cut: Cut, retransmit: bool) -> Option<Transmit<'a>> {
        let Self { protocol, output, .. } = self;
        let Protocol { now, config, tables, .. } = protocol;
        let Output { outbound, observation } = output;
        let now = *now;
        let calls = tables.rpcs.count(Role::Client) as u64;
        let entry = tables.rpcs.get_mut(rpc)?;
        let peer = &mut tables.peers[entry.peer];
        let highest = config.highest_priority();
        let of_client = if entry.role() == Role::Client { calls } else { 0 };
        let to = peer.address;
        let identity = &outbound.identity;
        // A peer that has not shown the session could forge acks, so none are attached for it.
        let may_ack = identity.profile == Profile::Kernel || entry.session().is_some();
        let ack = if may_ack { peer.acks.take_one() } else { None };
        let mut header = identity.header(&peer.calls, entry, Kind::Data);
        header.sequence = cut.range.start;

        let message = entry.outgoing.as_mut()?;
        message.note_sent(&cut, now, retransmit);
        let (length, unscheduled) = (message.length(), message.unscheduled());
        let is_last = cut.packets() == 1 && cut.range.end == length;
        let is_granted = !retransmit && cut.range.start >= unscheduled;
        // After a loss the rest takes the path known to be open: a filter may drop packets from
        // other ports.
        let is_sprayable = is_granted && message.is_sprayable && !message.resent;
        // A path may drop long datagrams, so bytes that were lost leave in one of their own.
        let mut coalesce = if is_last && !retransmit { peer.longest_shared_datagram() } else { 0 };
        // HM `homa_outgoing.c` `homa_resend_data`: a retransmission announces the requested
        // range.
        let asked = if retransmit { cut.range.end } else { 0 };
        // Retransmitted bytes were lost, so the receiver needs a grant window large enough to make
        // a RESEND worthwhile (WIRE-34).
        let waiting = if config.informs() && !retransmit {
            let in_interface = outbound.pacer.waiting(now);
            Waiting::of_bytes(message.waiting().saturating_add(in_interface))
        } else {
            Waiting::UNSAID
        };
        let priority = if retransmit {
            message.resend_priority()
        } else if is_granted {
            message.scheduled_priority
        } else {
            peer.cutoffs.level(length, highest)
        }
        .min(highest);
        let data = Data {
            message_length: length,
            incoming: message.announced().max(asked),
            ack,
            cutoff_version: peer.cutoffs.version,
            retransmit,
            offset: cut.range.start,
            offset_in_sequence: false,
            is_stripped: false,
            waiting,
            response_limit: outbound.incast.response_limit(of_client),
        };
        let packet = Packet { header, body: Body::Data(data, &[]) };
        let header_len = write_headers(&mut outbound.headers, &packet, &cut);
        // SEND-15
        if is_sprayable && may_spray(config, peer, entry) {
            mark(&mut outbound.headers[..header_len * cut.packets() as usize], header_len);
            coalesce = 0;
        }
        if entry.selected || retransmit {
            let burst = Piece {
                offset: cut.range.start,
                length: cut.bytes(),
                packets: cut.packets(),
                priority,
                retransmit,
            };
            note_burst(&mut observation.notes, entry.sender_id(), to, burst, unscheduled);
        }
        let (packets, bytes) = (u64::from(cut.packets()), u64::from(cut.bytes()));
        let with_headers = bytes + packets * header_len as u64;
        outbound.pacer.sent(now, packets, with_headers);
        let metrics = &mut observation.metrics;
        metrics.count_sent(Kind::Data, packets);
        metrics.priority_packets[usize::from(priority)] += packets;
        metrics.priority_bytes[usize::from(priority)] += with_headers;
        if retransmit {
            metrics.recovery.resent_packets += packets;
            metrics.recovery.resent_bytes += bytes;
        }
        let may_be_marked = is_granted && config.marked_incoming() > 0;
        let ecn = if may_be_marked { ECN_CAPABLE } else { 0 };
        let traffic_class = traffic_class(config, priority) | ecn;
        let headers = &outbound.headers[..header_len * cut.packets() as usize];
        let data = entry.outgoing.as_ref().map(|message| (message.payload(), cut));
        Some(Transmit { to, priority, traffic_class, headers, header_len, coalesce, data })
    }
}

/// Notes a burst and its use of a grant.
#[cold]
fn note_burst(notes: &mut Notes, rpc: SenderId, to: Address, burst: Piece, unscheduled: u32) {
    notes.add(Some(rpc), to, ProbeKind::DataSent(burst));
    if !burst.retransmit && burst.offset >= unscheduled {
        let (offset, priority) = (burst.offset + burst.length, burst.priority);
        notes.add(Some(rpc), to, ProbeKind::GrantUsed { offset, priority });
    }
}

/// The traffic class byte for a level (HM `homa_outgoing.c` `__homa_xmit_data`).
fn traffic_class(config: &Config, level: u8) -> u8 {
    config.priority_map()[usize::from(level)] << 5
}

/// Cuts the next burst off a message, which is sent in packets of `segment` bytes.
fn next_cut(message: &mut MessageOut, segment: u32, room: u32, config: &Config) -> Option<Cut> {
    message.set_segment(segment);
    message.next_cut(room.min(config.burst_bytes() as u32), MAX_BURST_PACKETS as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Config, Instant, Neighbours, Transport};

    /// WIRE-34, SEND-13: DATA states how many bytes of its message have not left, and how many wait
    /// in the interface before it beyond a quarter of its bound, here 100,000 bytes.
    #[test]
    fn data_says_what_waits_for_its_turn_and_in_the_interface() {
        let config = Config::builder().informed_incoming(18_000).unsched_bytes(60_000);
        let config = config.link_mbps(8_000).max_link_usage(100).max_nic_est_backlog_usecs(100);
        let mut transport = Transport::new(config.burst_bytes(4_000).build().unwrap(), 1, 1);
        let now = Instant::from_nanos(1_000_000);
        let (to, payload) = (([10, 0, 0, 2], 2).into(), vec![0; 60_000].into());
        let call = Call { to, payload, cookie: 0, deadline: None, idempotent: false };
        transport.call(now, call).unwrap();
        let (mut left, mut in_interface) = (60_000, 0_u32);
        while left > 0 {
            let burst = transport.poll_transmit(now).unwrap();
            left -= burst.payload_len() as u32;
            let said = Waiting::of_bytes(left + in_interface.saturating_sub(25_000));
            assert_eq!(burst.headers()[49], said.byte(), "{left} left, {in_interface} before it");
            // Preamble, Ethernet, IP and UDP: 66 bytes.
            in_interface +=
                (burst.payload_len() + burst.packets() * (burst.header_len() + 66)) as u32;
        }
        assert!(in_interface > 60_000);
    }

    /// SEND-14.
    #[test]
    fn a_message_that_is_held_back_reserves_a_piece_of_the_link() {
        let config = Config::builder().unsched_bytes(60_000).link_mbps(8_000).max_link_usage(100);
        let config = config.max_nic_est_backlog_usecs(10).build().unwrap();
        let mut transport = Transport::new(config, 1, 1);
        let now = Instant::from_nanos(1_000_000);
        let link_idle_at = now.plus(1_000_000);
        transport.observe_neighbours(&Neighbours {
            sharers: 2,
            incoming: 0,
            active: &[],
            link_idle_at,
        });
        let (to, payload) = (([10, 0, 0, 2], 2).into(), vec![0; 60_000].into());
        let call = Call { to, payload, cookie: 0, deadline: None, idempotent: false };
        transport.call(now, call).unwrap();
        let mut sent = 0;
        while let Some(burst) = transport.poll_transmit(now) {
            // A byte takes a nanosecond; preamble, Ethernet, IP and UDP are 66 bytes.
            sent += (burst.payload_len() + burst.packets() * (burst.header_len() + 66)) as u64;
        }
        assert!((1..60_000).contains(&sent), "its part of the link: {sent}");
        let piece = transport.publish().link_nanos - sent;
        assert!((1..=5_000).contains(&piece), "{piece}");
        assert!(transport.poll_transmit(now).is_none());
        assert_eq!(transport.publish().link_nanos, 0, "one piece");
    }

    /// PRIO-15, WIRE-35.
    #[test]
    fn a_request_says_its_share_of_what_responses_may_send_at_once() {
        let config = Config::builder().incast_unsched_bytes(6_400).build().unwrap();
        let mut transport = Transport::new(config, 1, 1);
        let now = Instant::from_nanos(1_000_000);
        for cookie in 0..5 {
            let (to, payload) = (([10, 0, 0, 2], 2).into(), vec![0; 100].into());
            let call = Call { to, payload, cookie, deadline: None, idempotent: false };
            transport.call(now, call).unwrap();
            let burst = transport.poll_transmit(now).unwrap();
            let said = Waiting::of_bytes(6_400 / (cookie as u32 + 1));
            assert_eq!(burst.headers()[50], said.byte(), "{cookie} calls before it");
        }
    }
}
