//! A host whose transport is SIRD.

use std::collections::VecDeque;

use super::config::Config;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::segment::{Kind, Segment};
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// Level of credit, requests, responses and unscheduled data. Source: the paper's default.
const HIGH: u8 = 7;
/// Level of scheduled data.
const LOW: u8 = 0;

/// A host whose transport is SIRD.
#[derive(Debug)]
pub struct SirdHost {
    id: HostId,
    config: Config,
    outgoing: Outgoing,
    incoming: Incoming,
    outcomes: VecDeque<Outcome>,
}

impl SirdHost {
    /// Returns a host without any history.
    #[must_use]
    pub fn new(id: HostId, config: Config) -> Self {
        let (outgoing, incoming) = (Outgoing::new(), Incoming::new());
        Self { id, config, outgoing, incoming, outcomes: VecDeque::new() }
    }

    /// Returns the bytes on links that this host expects: credited or unscheduled, and not
    /// received.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.incoming.in_flight()
    }

    /// Returns the credit limit of a sender, in bytes on links; `None` before its first packet.
    #[must_use]
    pub fn sender_limit(&self, from: HostId) -> Option<u64> {
        self.incoming.sender_limit(from)
    }

    /// Returns the bytes on links that this host may send without further credit.
    #[must_use]
    pub const fn unused_credit(&self) -> u64 {
        self.outgoing.unused_credit()
    }
}

impl Host for SirdHost {
    type Body = Segment;

    fn submit(&mut self, _: Nanos, message: &Message) {
        self.outgoing.submit(&self.config, message);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Segment) {
        match body.kind {
            Kind::Credit => return self.outgoing.on_credit(&self.config, body),
            Kind::Response => return self.outcomes.push_back(Outcome::Done(body.message)),
            Kind::Request | Kind::Data => {}
        }
        let complete = self.incoming.receive(&self.config, packet.from, body, packet.marked);
        self.outcomes.extend(complete);
        self.incoming.give_credit(&self.config, now);
    }

    fn transmit(&mut self, _: Nanos, packet: &mut Packet, body: &mut Segment) -> bool {
        let control = self.incoming.next().or_else(|| self.outgoing.next_request());
        let control = control.map(|(to, segment)| (to, segment, true));
        let Some((to, segment, is_first)) =
            control.or_else(|| self.outgoing.next_data(&self.config))
        else {
            return false;
        };
        *body = segment;
        // Control packets have the minimum frame length, which favours SIRD; responses are as long
        // as apus responses to one-way messages.
        let (payload, wire_bytes) = match segment.kind {
            Kind::Data => (segment.bytes, self.config.packets.wire_bytes(segment.bytes) as u32),
            Kind::Request | Kind::Credit => (0, self.config.packets.minimum),
            Kind::Response => (0, self.config.packets.wire_bytes(1) as u32),
        };
        *packet = Packet {
            from: self.id,
            to,
            wire_bytes,
            payload,
            priority: if is_first { HIGH } else { LOW },
            ecn_capable: payload > 0,
            ..Packet::default()
        };
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.incoming.timer()
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.incoming.give_credit(&self.config, now);
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn withholds(&self) -> bool {
        self.incoming.withholds()
    }

    fn id(&self) -> HostId {
        self.id
    }
}
