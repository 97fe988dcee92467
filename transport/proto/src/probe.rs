//! Probes: notes on events of single RPCs.
//!
//! Counters state how often an event happened, notes state for which RPC. An engine that records
//! time traces, a simulator or a test enables them with [`crate::Transport::set_probe_filter`] and
//! fetches them with [`crate::Transport::poll_probe`] after each other call, so that their times
//! are known. Disabled by default; the cost is then one comparison per packet.
//!
//! Notes change no behaviour: packets, events and counters are the same (CORE-1). Selected RPCs
//! also become exemplars of the duration histograms ([`crate::Exemplars`]).

use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use crate::limits::MAX_NOTES;
use crate::peer::Address;
use crate::rpc::RpcKey;
use apus_wire::{Body, Flags, Kind, Packet, SenderId};
use std::collections::VecDeque;
use std::time::Duration;

/// The filter for notes.
///
/// Rare events are noted for all RPCs: retransmissions and requests for them, gaps, refusals,
/// restarts, failures, dropped packets, and messages that the pacer holds back. Other events are
/// noted for *selected* RPCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeFilter {
    /// An RPC is selected if the product of half its id and this number, modulo 2^64, is less than
    /// `below`. Both ends use the same id, and select the same RPCs if they use the same numbers.
    pub multiplier: u64,
    /// See `multiplier`; 0 selects none.
    pub below: u64,
    /// A call whose response takes longer than this to arrive completely is noted as
    /// [slow](ProbeKind::Slow).
    pub slow: Duration,
}

impl ProbeFilter {
    /// Rare events only, and no slow calls.
    pub const RARE: Self = Self { multiplier: 1, below: 0, slow: Duration::MAX };

    /// Everything but slow calls.
    pub const ALL: Self = Self { below: u64::MAX, ..Self::RARE };

    /// Returns whether the RPC with this id is selected.
    #[inline]
    #[must_use]
    pub const fn selects(&self, id: u64) -> bool {
        (id >> 1).wrapping_mul(self.multiplier) < self.below
    }
}

/// A note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeEvent {
    /// The RPC, with its id as this endpoint writes it; `None` if the packet could not be parsed.
    pub rpc: Option<SenderId>,
    /// The other end.
    pub peer: Address,
    /// The event.
    pub what: ProbeKind,
}

/// The kinds of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeKind {
    /// A burst of DATA packets is made up, and leaves when its driver sends it.
    DataSent(Piece),
    /// A DATA packet has arrived. Its use, and the level at which it was sent, are not known yet.
    DataReceived(Piece),
    /// The whole message has arrived: a response at the client, a request at the server.
    Complete {
        /// The name of the RPC in events.
        rpc: RpcKey,
        /// Length of the message in bytes.
        length: u32,
    },
    /// The peer may send its message up to `offset`.
    GrantSent {
        /// Just past the last byte.
        offset: u32,
        /// The level at which it must send.
        priority: u8,
    },
    /// This endpoint may send its message up to `offset`.
    GrantReceived {
        /// Just past the last byte.
        offset: u32,
        /// The level at which this endpoint must send.
        priority: u8,
    },
    /// Bytes that a grant allowed leave for the first time.
    GrantUsed {
        /// Just past the last of them.
        offset: u32,
        /// The level at which they leave.
        priority: u8,
    },
    /// Bytes are requested again. A length of 2^32 - 1 requests all that the peer has sent.
    ResendSent {
        /// The first byte.
        offset: u32,
        /// Number of bytes.
        length: u32,
        /// The level at which they must be sent.
        priority: u8,
    },
    /// The peer requests bytes again.
    ResendReceived {
        /// The first byte.
        offset: u32,
        /// Number of bytes.
        length: u32,
        /// The level at which they must leave.
        priority: u8,
    },
    /// A control packet of another kind is to leave.
    Sent {
        /// Its kind.
        kind: Kind,
        /// Its flags (udp profile).
        flags: Flags,
    },
    /// A control packet of another kind has arrived.
    Received {
        /// Its kind.
        kind: Kind,
        /// Its flags (udp profile).
        flags: Flags,
    },
    /// The message is next, and the pacer makes it wait.
    Throttled {
        /// Time until room exists.
        wait: Duration,
    },
    /// A packet has arrived ahead of others, which are lost or late.
    Gap {
        /// The first byte that is missing before it.
        offset: u32,
        /// Number of bytes missing there.
        length: u32,
    },
    /// The request is sent again from its start, since the server does not have it.
    Restart,
    /// The server has been restarted, or has forgotten this client. The call continues in the
    /// server's new life, or fails.
    PeerRestart,
    /// The packet is not used.
    Dropped(DropReason),
    /// The call fails.
    Failed(FailureKind),
    /// The call has taken longer than [`ProbeFilter::slow`].
    Slow {
        /// Time since it was made.
        took: Duration,
    },
}

/// A piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first byte.
    pub offset: u32,
    /// Number of bytes.
    pub length: u32,
    /// Number of packets.
    pub packets: u32,
    /// The level at which they leave; 0 for incoming packets.
    pub priority: u8,
    /// Whether they were sent before.
    pub retransmit: bool,
}

/// Notes waiting to be fetched.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Whether notes are enabled.
    pub(crate) wanted: bool,
    /// [`ProbeFilter::multiplier`].
    multiplier: u64,
    /// [`ProbeFilter::below`]; 0 if notes are disabled.
    below: u64,
    /// Nanoseconds after which a call is noted as slow; `None` if calls are not.
    slow_nanos: Option<u64>,
    queue: VecDeque<ProbeEvent>,
}

impl Notes {
    /// Whether notes are enabled and the RPC with this id is selected.
    #[inline]
    pub(crate) const fn are_wanted_of(&self, id: u64) -> bool {
        (id >> 1).wrapping_mul(self.multiplier) < self.below
    }

    /// Whether this packet is to be noted, if notes are enabled. Checked for all packets; the note
    /// is made afterwards.
    #[inline]
    fn are_wanted_of_packet(&self, packet: &Packet<'_>) -> bool {
        self.are_wanted_of(packet.header.sender_id.client_id()) || is_rare(&packet.body)
    }

    /// Adds a note. If earlier ones are not fetched, further ones are lost (CAP-17).
    #[cold]
    pub(crate) fn add(&mut self, rpc: Option<SenderId>, peer: Address, what: ProbeKind) {
        if self.wanted && self.queue.len() < MAX_NOTES {
            self.queue.push_back(ProbeEvent { rpc, peer, what });
        }
    }

    /// Notes a received packet.
    #[inline]
    pub(crate) fn arrival(&mut self, from: &Address, packet: &Packet<'_>) {
        if self.are_wanted_of_packet(packet) {
            self.add_arrival(*from, packet);
        }
    }

    /// Notes that a received packet is dropped.
    #[cold]
    pub(crate) fn dropped(&mut self, from: Address, packet: &Packet<'_>, reason: DropReason) {
        self.add(Some(as_we_write_it(packet)), from, ProbeKind::Dropped(reason));
    }

    /// Notes a control packet that is about to leave.
    #[inline]
    pub(crate) fn departure(&mut self, to: Address, packet: &Packet<'_>) {
        if self.are_wanted_of_packet(packet) {
            self.add_departure(to, packet);
        }
    }

    /// Replaces the filter; without one, notes that wait are dropped.
    pub(crate) fn set_filter(&mut self, filter: Option<ProbeFilter>) {
        self.wanted = filter.is_some();
        let ProbeFilter { multiplier, below, slow } = filter.unwrap_or(ProbeFilter::RARE);
        (self.multiplier, self.below) = (multiplier, below);
        self.slow_nanos = u64::try_from(slow.as_nanos()).ok();
        if !self.wanted {
            self.queue.clear();
        }
    }

    /// The earliest note that waits.
    #[inline]
    pub(crate) fn poll(&mut self) -> Option<ProbeEvent> {
        self.queue.pop_front()
    }

    /// Whether a call that took `nanos` is slow.
    #[inline]
    pub(crate) fn is_slow(&self, nanos: u64) -> bool {
        self.slow_nanos.is_some_and(|slow| nanos > slow)
    }

    #[cold]
    fn add_arrival(&mut self, from: Address, packet: &Packet<'_>) {
        // A FREEZE is noted when it is found to be from a peer.
        if packet.body.kind() != Kind::Freeze {
            self.add(Some(as_we_write_it(packet)), from, arrival(packet));
        }
    }

    #[cold]
    fn add_departure(&mut self, to: Address, packet: &Packet<'_>) {
        self.add(Some(packet.header.sender_id), to, departure(packet));
    }
}

/// Whether packets like this are noted of all RPCs.
const fn is_rare(body: &Body<'_>) -> bool {
    match body {
        Body::Data(data, _) => data.retransmit,
        Body::Resend(_) | Body::RpcUnknown | Body::Freeze => true,
        _ => false,
    }
}

/// The id of a received packet, as this endpoint writes it.
fn as_we_write_it(packet: &Packet<'_>) -> SenderId {
    let id = packet.header.sender_id;
    SenderId::new(id.client_id(), id.sender().peer())
}

fn flags(packet: &Packet<'_>) -> Flags {
    packet.header.udp().map_or(Flags::NONE, |fields| fields.flags)
}

fn arrival(packet: &Packet<'_>) -> ProbeKind {
    match &packet.body {
        Body::Data(data, payload) => ProbeKind::DataReceived(Piece {
            offset: data.offset,
            length: payload.len() as u32,
            packets: 1,
            priority: 0,
            retransmit: data.retransmit,
        }),
        Body::Grant(grant) => {
            ProbeKind::GrantReceived { offset: grant.offset, priority: grant.priority }
        }
        Body::Resend(resend) => ProbeKind::ResendReceived {
            offset: resend.offset,
            length: resend.length,
            priority: resend.priority,
        },
        body => ProbeKind::Received { kind: body.kind(), flags: flags(packet) },
    }
}

fn departure(packet: &Packet<'_>) -> ProbeKind {
    match &packet.body {
        Body::Grant(grant) => {
            ProbeKind::GrantSent { offset: grant.offset, priority: grant.priority }
        }
        Body::Resend(resend) => ProbeKind::ResendSent {
            offset: resend.offset,
            length: resend.length,
            priority: resend.priority,
        },
        body => ProbeKind::Sent { kind: body.kind(), flags: flags(packet) },
    }
}
