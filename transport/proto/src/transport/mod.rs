//! The endpoint: its state, grouped by owner, and the calls that its user makes.
//!
//! Each file of this folder is one family of calls: `commands` of the application, `outputs` of
//! packets, events and timers, `housekeeping` for reports of the engine, `info` and `senders` for
//! introspection. The protocol itself is in the handlers of `rx`, `tx` and `expiry`. They borrow
//! the groups of state that they may change (`Protocol`, `Inbound`, `Output`); none of them has
//! access to this struct.

mod commands;
mod housekeeping;
mod info;
mod outputs;
mod senders;

pub use commands::Call;
pub use housekeeping::{StatedLife, Unreachable};
pub use info::{MessageProgress, RpcInfo, RpcState};
pub use senders::{SenderInfo, Senders};

use crate::config::Config;
use crate::datagram::Datagram;
use crate::inbound::Inbound;
use crate::observation::Observation;
use crate::peer::{Address, Peers, first_id, peer_address};
use crate::probe::ProbeKind;
use crate::protocol::Protocol;
use crate::rpc::{Rpcs, Tables};
use crate::rx;
use crate::secret::{Purpose, Secret};
use crate::time::Instant;
use crate::timer::Timers;
use crate::tx::{Identity, Outbound, Output};
use apus_wire::Packet;

/// The Homa protocol of one endpoint, client and server at once, as a state machine without IO.
///
/// See the crate's head for the order of calls. All calls that take the present time require that
/// it never decreases.
#[derive(Debug)]
pub struct Transport {
    protocol: Protocol,
    inbound: Inbound,
    output: Output,
    /// Next id of a call in the kernel profile, where ids are unique per host.
    next_kernel_id: u64,
}

/// Rate assumed for a link whose rate is not known: the kernel's `link_mbps`.
const ASSUMED_LINK_MBPS: u64 = 25_000;

impl Transport {
    /// Returns a transport for the endpoint with Homa port `port`.
    ///
    /// `seed` determines all random numbers: the endpoint's incarnation, its first RPC ids, session
    /// numbers and hash seeds. Peers must not be able to guess it, and no two lives of an endpoint
    /// may share it: take all 128 bits from the operating system. No number that a peer receives
    /// reveals any other (AMO-9).
    #[must_use]
    pub fn new(config: Config, port: u16, seed: u128) -> Self {
        let secret = Secret::new(seed);
        let incarnation = secret.number(Purpose::Incarnation) as u32;
        let hash_seed = secret.number(Purpose::Hash);
        let identity = Identity { profile: config.profile(), port, incarnation, born: None };
        let configured = config.link_mbps();
        let link_mbps = if configured > 0 { configured } else { ASSUMED_LINK_MBPS };
        let protocol = Protocol {
            now: Instant::ZERO,
            tables: Tables::new(Rpcs::new(hash_seed), Peers::new(&config, hash_seed, secret)),
            timers: Timers::new(&config, link_mbps),
            config,
        };
        let config = &protocol.config;
        Self {
            inbound: Inbound::new(config, link_mbps, hash_seed),
            output: Output {
                outbound: Outbound::new(config, identity, link_mbps),
                observation: Observation::default(),
            },
            protocol,
            next_kernel_id: first_id(secret.number(Purpose::FirstKernelId)),
        }
    }

    /// Handles the packets of a datagram. Returns their number, at least 1.
    ///
    /// Cannot fail: each packet is used, or counted as dropped with a [`crate::DropReason`]; see
    /// [`Transport::metrics`].
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) -> usize {
        self.advance(now);
        let mut count = 0;
        let Self { protocol, inbound, output, .. } = self;
        let profile = output.outbound.identity.profile;
        let mut packets = Packet::all(profile, datagram.bytes);
        while let Some(bytes) = packets.next_bytes() {
            count += 1;
            if bytes.len() < datagram.bytes.len() {
                output.outbound.answered = datagram.bytes.len() as u16;
            }
            // The result is borrowed: moving this 144-byte `Packet` costs a store-forwarding stall
            // (lab/log, 2026-11-21).
            match &Packet::parse(profile, bytes) {
                Ok(packet) => rx::receive(protocol, inbound, output, &datagram, packet),
                Err(error) => {
                    let reason = (*error).into();
                    output.observation.metrics.count_drop(reason);
                    output.observation.notes.add(None, datagram.from, ProbeKind::Dropped(reason));
                    break;
                }
            }
        }
        output.outbound.answered = 0;
        if datagram.is_marked {
            self.count_marks(datagram.from, count as u64);
        }
        count
    }

    /// Counts `packets` from `peer` that a switch has marked, if the peer is known.
    #[cold]
    fn count_marks(&mut self, peer: Address, packets: u64) {
        let address = peer_address(self.output.outbound.identity.profile, peer);
        if let Some(peer) = self.protocol.tables.peers.find(&address) {
            self.protocol.tables.peers[peer].marks += packets;
        }
    }

    /// Advances the clock to `now` and integrates the number of waiting messages.
    fn advance(&mut self, now: Instant) {
        debug_assert!(
            now >= self.protocol.now,
            "time goes backwards: {:?} after {now:?}",
            self.protocol.now
        );
        let waiting = self.inbound.granter.waiting() as u64;
        if waiting > 0 {
            let nanos = now.since(self.protocol.now).saturating_mul(waiting);
            let integral = &mut self.output.observation.metrics.scheduling.grantable_integral_nanos;
            *integral = integral.saturating_add(nanos);
        }
        self.protocol.now = self.protocol.now.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Transport {
        /// The queue of messages, for its tests.
        pub(crate) const fn send_queue(&self) -> &crate::tx::SendQueue {
            &self.output.outbound.messages
        }
    }

    /// GRANT-19: only scheduled packets may be marked, and only if marks are used.
    #[test]
    fn scheduled_packets_may_be_marked_if_marks_are_heeded() {
        let capable = |marked_incoming: u64| {
            let config = Config::builder().marked_incoming(marked_incoming).unsched_bytes(3_000);
            let config = config.unsched_bytes_min(3_000).unsched_bytes_max(3_000);
            let mut transport = Transport::new(config.build().unwrap(), 1, 1);
            let now = Instant::from_nanos(1_000_000);
            let (to, payload) = (([10, 0, 0, 2], 2).into(), vec![0; 60_000].into());
            let call = Call { to, payload, cookie: 0, deadline: None, idempotent: false };
            let rpc = transport.call(now, call).unwrap();
            let first = transport.poll_transmit(now).unwrap().traffic_class() & 0b11;
            while transport.poll_transmit(now).is_some() {}
            let message = transport.protocol.tables.rpcs[rpc].outgoing.as_mut().unwrap();
            message.grant(9_000);
            transport.output.outbound.messages.update(&mut transport.protocol.tables.rpcs, rpc);
            let granted = transport.poll_transmit(now).unwrap().traffic_class() & 0b11;
            (first, granted)
        };
        assert_eq!(capable(1_500), (0, 0b10));
        assert_eq!(capable(0), (0, 0));
    }
}
