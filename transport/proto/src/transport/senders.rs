//! Introspection: peers with arriving messages, and their credit.

use super::Transport;
use crate::peer::{Address, Peer, PeerId};
use crate::rpc::Rpc;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The peers with messages that are arriving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Senders {
    /// Number of all of them.
    pub count: usize,
    /// The first senders, by bytes in flight.
    pub first: Vec<SenderInfo>,
}

/// The credit of one peer: sums over its incomplete incoming messages, and the marks of its
/// packets. Messages of one packet never count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SenderInfo {
    /// Its address.
    pub peer: Address,
    /// Number of these messages.
    pub messages: u32,
    /// Bytes that may be in flight: for an active message its window (GRANT-4, GRANT-15) or its
    /// missing bytes, if those are fewer, and for any other one its outstanding grants. 0 for
    /// messages whose sender is silent (GRANT-10).
    pub credit: u64,
    /// Bytes that may be sent and have not arrived: the part of the credit in use. More than the
    /// credit if that has shrunk after the bytes were granted.
    pub credit_used: u64,
    /// Bytes waiting at it, as the newest packet of each message reports (WIRE-34). `None` if not
    /// reported, or if `informed_incoming` is 0.
    pub reported_backlog: Option<u64>,
    /// Packets of the peer, of any message, that switches have marked (ECN) since the endpoint
    /// first saw it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub marks: u64,
}

impl SenderInfo {
    const fn new(peer: &Peer) -> Self {
        let (peer, marks) = (peer.address, peer.marks);
        Self { peer, messages: 0, credit: 0, credit_used: 0, reported_backlog: None, marks }
    }

    /// Adds an incoming message with `outstanding` granted bytes that have not arrived.
    fn add(&mut self, rpc: &Rpc, credit: u32, outstanding: u32) {
        self.messages += 1;
        self.credit += u64::from(credit);
        self.credit_used += u64::from(outstanding);
        if let Some(waiting) = rpc.grant.at_sender {
            *self.reported_backlog.get_or_insert(0) += waiting.term();
        }
    }

    /// Returns the sort key of senders: the most bytes in flight first, and among equals the
    /// largest backlog.
    #[must_use]
    pub fn order(&self) -> impl Ord + use<> {
        (Reverse(self.credit_used), Reverse(self.reported_backlog), self.peer)
    }
}

impl Transport {
    /// Returns the peers with arriving messages: the first `most`, by bytes in flight, and the
    /// number of all. Reads every live RPC once.
    #[must_use]
    pub fn senders(&self, most: usize) -> Senders {
        let rpcs = &self.protocol.tables.rpcs;
        let mut by_peer: BTreeMap<PeerId, SenderInfo> = BTreeMap::new();
        let credits: BTreeMap<_, _> = self.inbound.granter.credits(rpcs).into_iter().collect();
        for (name, rpc) in rpcs.iter() {
            if let Some(message) = &rpc.incoming {
                let peer = &self.protocol.tables.peers[rpc.peer];
                let outstanding = if rpc.grant.silent { 0 } else { message.outstanding() };
                let credit = credits.get(&name).copied().unwrap_or(outstanding);
                let sender = by_peer.entry(rpc.peer).or_insert_with(|| SenderInfo::new(peer));
                sender.add(rpc, credit, outstanding);
            }
        }
        let count = by_peer.len();
        let mut first: Vec<SenderInfo> = by_peer.into_values().collect();
        first.sort_unstable_by_key(SenderInfo::order);
        first.truncate(most);
        Senders { count, first }
    }
}
