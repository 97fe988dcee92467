//! How is the next transmission chosen and made up?

use super::send_queue::Choice;
use super::transmit::{Transmit, write_headers};
use crate::grant::{Decision, Level};
use crate::limits::MAX_BURST_PACKETS;
use crate::message::{Cut, MessageOut};
use crate::priority::{oldest_level, scheduled_level};
use crate::probe::{Piece, ProbeKind};
use crate::rpc::RpcKey;
use crate::time::Instant;
use crate::transport::Transport;
use apus_wire::{Body, Data, Grant, Kind, Packet};

/// A burst of DATA packets that has been decided on.
struct Burst {
    rpc: RpcKey,
    cut: Cut,
    retransmit: bool,
}

impl Transport {
    /// The next packets to send, and as many calls as there are answers: `None` means that nothing may
    /// leave now. Ask only when the driver has room; what is given counts as sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        self.advance(now);
        self.send_grants();
        if let Some(packet) = self.outbox.control.pop() {
            let priority = self.highest_priority();
            self.metrics.count_sent(packet.kind, 1);
            let traffic_class = self.traffic_class(priority);
            let headers = &mut self.outbox.headers;
            headers.clear();
            headers.extend_from_slice(packet.bytes());
            let (to, header_len) = (packet.to, headers.len());
            return Some(Transmit { to, priority, traffic_class, headers, header_len, data: None });
        }
        let burst =
            self.next_resend().or_else(|| self.next_short()).or_else(|| self.next_long())?;
        Some(self.make_up(burst))
    }

    /// Turns the granter's decisions into GRANT packets (row G-6).
    fn send_grants(&mut self) {
        if !self.granter.is_due() {
            return;
        }
        let mut decisions: smallvec::SmallVec<[Decision; 8]> = smallvec::SmallVec::new();
        self.granter.run(&mut self.rpcs, &mut self.metrics.scheduling, |decision| {
            decisions.push(decision);
        });
        for Decision { rpc, offset, level } in decisions {
            let levels = self.cutoffs.scheduled_levels();
            let priority = match level {
                Level::Oldest => oldest_level(levels).min(self.highest_priority()),
                Level::Scheduled { rank, active } => scheduled_level(rank, active, levels),
            };
            self.send_control(rpc, Body::Grant(Grant { offset, priority }));
        }
    }

    /// Packets that a peer has asked for again. Long ones respect the pacer like any others.
    fn next_resend(&mut self) -> Option<Burst> {
        let now = self.now();
        while let Some(rpc) = self.outbox.resends.front().copied() {
            let Some(entry) = self.rpcs.get_mut(rpc) else {
                self.outbox.resends.pop_front();
                continue;
            };
            let segment = self.peers[entry.peer].segment;
            let cut = match &mut entry.outgoing {
                Some(message) => {
                    let short = u64::from(message.length()) < self.config.defer_min_bytes();
                    let room = if short { Some(u32::MAX) } else { self.outbox.pacer.room(now) };
                    let bytes = room?.min(self.config.burst_bytes() as u32);
                    message.set_segment(segment);
                    message.next_resend(bytes, MAX_BURST_PACKETS as u32)
                }
                None => None,
            };
            match cut {
                Some(cut) => return Some(Burst { rpc, cut, retransmit: true }),
                None => {
                    entry.resend_queued = false;
                    self.outbox.resends.pop_front();
                }
            }
        }
        None
    }

    /// A message that is too short to be held back (row Q-5).
    fn next_short(&mut self) -> Option<Burst> {
        let rpc = self.outbox.messages.pop_short(&mut self.rpcs)?;
        let cut = self.cut(rpc, u32::MAX)?;
        self.outbox.messages.update(&mut self.rpcs, rpc);
        Some(Burst { rpc, cut, retransmit: false })
    }

    /// The message that SRPT order, or the oldest message's share, puts first.
    fn next_long(&mut self) -> Option<Burst> {
        let choice: Choice = self.outbox.messages.choose()?;
        let room = self.outbox.pacer.room(self.now());
        let throttled = room.is_none();
        let was_throttled = std::mem::replace(&mut self.outbox.throttled, throttled);
        self.metrics.scheduling.throttled += u64::from(throttled && !was_throttled);
        let rpc = choice.rpc;
        if throttled && !was_throttled {
            let wait = self.outbox.pacer.next_room() - self.now();
            self.note(rpc, ProbeKind::Throttled { wait });
        }
        let cut = self.cut(rpc, room?.min(choice.most))?;
        self.outbox.messages.sent(choice, cut.bytes());
        if choice.oldest {
            self.metrics.scheduling.pacer_fifo_bytes += u64::from(cut.bytes());
        }
        self.outbox.messages.update(&mut self.rpcs, rpc);
        Some(Burst { rpc, cut, retransmit: false })
    }

    /// Cuts the next burst off a message.
    fn cut(&mut self, rpc: RpcKey, room: u32) -> Option<Cut> {
        let entry = &mut self.rpcs[rpc];
        let segment = self.peers[entry.peer].segment;
        let message = entry.outgoing.as_mut()?;
        message.set_segment(segment);
        let bytes = room.min(self.config.burst_bytes() as u32);
        message.next_cut(bytes, MAX_BURST_PACKETS as u32)
    }

    /// Makes a burst up into headers and payload, and counts it as sent.
    fn make_up(&mut self, burst: Burst) -> Transmit<'_> {
        let Burst { rpc, cut, retransmit } = burst;
        let now = self.now();
        let highest = self.highest_priority();
        let entry = &mut self.rpcs[rpc];
        let peer = &mut self.peers[entry.peer];
        let to = peer.address;
        let ack = peer.acks.take_one();
        let cutoffs = peer.cutoffs;

        let mut data = Data {
            message_length: 0,
            incoming: 0,
            ack,
            cutoff_version: cutoffs.version,
            retransmit,
            offset: cut.range.start,
            offset_in_sequence: false,
        };
        let mut priority = highest;
        if let Some(message) = &mut entry.outgoing {
            note_sent(message, now, retransmit);
            data.message_length = message.length();
            // Row P-5: a retransmission announces what was asked for.
            let asked = if retransmit { cut.range.end } else { 0 };
            data.incoming = message.unscheduled().max(asked);
            priority = if retransmit {
                message.resend_priority
            } else if cut.range.start < message.unscheduled() {
                cutoffs.level(message.length(), highest)
            } else {
                message.scheduled_priority
            }
            .min(highest);
        }
        self.note_burst(rpc, &cut, priority, retransmit);
        let entry = &self.rpcs[rpc];
        let body = Body::Data(data, &[]);
        let mut header = self.identity.header(&self.peers, entry, &body);
        header.sequence = data.offset;
        let packet = Packet { header, body };
        let header_len = write_headers(&mut self.outbox.headers, &packet, &cut);

        self.count_data(&cut, priority, header_len, retransmit);
        let traffic_class = self.traffic_class(priority);
        let payload = match &self.rpcs[rpc].outgoing {
            Some(message) => message.payload(),
            None => unreachable!("a burst is cut off an outgoing message"),
        };
        let headers = &self.outbox.headers;
        Transmit { to, priority, traffic_class, headers, header_len, data: Some((payload, cut)) }
    }

    /// Notes a burst, and that it uses a grant.
    #[inline]
    fn note_burst(&mut self, rpc: RpcKey, cut: &Cut, priority: u8, retransmit: bool) {
        let entry = &self.rpcs[rpc];
        let wanted = self.notes.are_wanted_of(entry.id) || (retransmit && self.notes.are_wanted());
        if !wanted {
            return;
        }
        let (offset, length, packets) = (cut.range.start, cut.bytes(), cut.packets());
        let unscheduled = entry.outgoing.as_ref().map_or(0, MessageOut::unscheduled);
        self.note(
            rpc,
            ProbeKind::DataSent(Piece { offset, length, packets, priority, retransmit }),
        );
        if !retransmit && offset >= unscheduled {
            self.note(rpc, ProbeKind::GrantUsed { offset: cut.range.end, priority });
        }
    }

    fn count_data(&mut self, cut: &Cut, priority: u8, header_len: usize, retransmit: bool) {
        let packets = u64::from(cut.packets());
        let bytes = u64::from(cut.bytes());
        let with_headers = bytes + packets * header_len as u64;
        let now = self.now();
        self.outbox.pacer.sent(now, packets, with_headers);
        self.metrics.count_sent(Kind::Data, packets);
        self.metrics.priority_packets[usize::from(priority)] += packets;
        self.metrics.priority_bytes[usize::from(priority)] += with_headers;
        if retransmit {
            self.metrics.recovery.resent_packets += packets;
            self.metrics.recovery.resent_bytes += bytes;
        }
    }

    /// The traffic class byte for a level (row P-25).
    fn traffic_class(&self, level: u8) -> u8 {
        self.config.priority_map()[usize::from(level)] << 5
    }

    /// Until when the pacer holds messages back; `None` if it does not.
    pub(crate) fn throttled_until(&self) -> Option<Instant> {
        let waiting = self.outbox.messages.has_long() || !self.outbox.resends.is_empty();
        let throttled = waiting && self.outbox.pacer.room(self.now()).is_none();
        throttled.then(|| self.outbox.pacer.next_room())
    }
}

fn note_sent(message: &mut MessageOut, now: Instant, retransmit: bool) {
    if message.first_sent == Instant::ZERO {
        message.first_sent = now;
    }
    message.last_sent = now;
    message.resent |= retransmit;
}
