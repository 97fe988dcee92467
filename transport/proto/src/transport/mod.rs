//! The endpoint: its state, grouped by owner, and the calls that its user makes.
//!
//! Each file of this folder is one family of calls: `commands` of the application, `outputs` of packets, events and
//! timers, `housekeeping` what the engine says about the system, `info` and `senders` introspection. The protocol itself is in the
//! handlers of `rx`, `tx` and `expiry`: they borrow the state ([`Context`](crate::lifecycle::Context)), or the groups of it
//! that they may touch, and none of them sees this struct.

mod commands;
mod housekeeping;
mod info;
mod outputs;
mod senders;

pub use commands::Call;
pub use housekeeping::Unreachable;
pub use info::{MessageProgress, RpcInfo, RpcState};
pub use senders::{SenderInfo, Senders};

use crate::config::Config;
use crate::inbound::Inbound;
use crate::lifecycle::Context;
use crate::observation::Observation;
use crate::peer::{Address, Peers, first_id, peer_address};
use crate::probe::ProbeKind;
use crate::rpc::{Rpcs, Tables};
use crate::rx;
use crate::secret::{Purpose, Secret};
use crate::time::Instant;
use crate::timer::Timers;
use crate::tx::{Identity, Outbound};
use apus_wire::Packet;

/// The Homa protocol of one endpoint, client and server at once, as a state machine without IO.
///
/// See the crate's head for the order of calls. All calls that take the present time require that it never decreases.
#[derive(Debug)]
pub struct Transport {
    core: Context,
    /// Next id of a call in the kernel profile, where ids are unique per host.
    next_kernel_id: u64,
}

/// Rate assumed for a link whose rate is not known: the kernel's `link_mbps`.
const ASSUMED_LINK_MBPS: u64 = 25_000;

impl Transport {
    /// Returns a transport for the endpoint with Homa port `port`.
    ///
    /// `seed` decides everything that is drawn at random: the endpoint's incarnation, its first RPC ids, session numbers and
    /// hash seeds. Peers must not be able to guess it, and no two lives of an endpoint may have the same: take all 128 bits
    /// from the operating system. Nothing that a peer learns reveals anything else (AMO-9).
    #[must_use]
    pub fn new(config: Config, port: u16, seed: u128) -> Self {
        let secret = Secret::new(seed);
        let incarnation = secret.number(Purpose::Incarnation) as u32;
        let hash_seed = secret.number(Purpose::Hash);
        let identity = Identity { profile: config.profile(), port, incarnation };
        let configured = config.link_mbps();
        let link_mbps = if configured > 0 { configured } else { ASSUMED_LINK_MBPS };
        let core = Context {
            now: Instant::ZERO,
            tables: Tables::new(Rpcs::new(hash_seed), Peers::new(&config, hash_seed, secret)),
            inbound: Inbound::new(&config, link_mbps),
            outbound: Outbound::new(&config, identity, link_mbps),
            timers: Timers::new(&config, link_mbps),
            observation: Observation::default(),
            config,
        };
        Self { core, next_kernel_id: first_id(secret.number(Purpose::FirstKernelId)) }
    }

    /// Handles the packets of a datagram from `from`, given without IP and UDP headers. Returns their number, at least 1.
    ///
    /// Cannot fail: each packet is used, or counted as dropped with a [`crate::DropReason`]; see [`Transport::metrics`].
    pub fn handle_datagram(&mut self, now: Instant, from: Address, datagram: &[u8]) -> usize {
        self.advance(now);
        let mut count = 0;
        let profile = self.core.outbound.identity.profile;
        let cx = &mut self.core;
        let mut packets = Packet::all(profile, datagram);
        while let Some(bytes) = packets.next_bytes() {
            count += 1;
            // The result is borrowed: moving this 144-byte `Packet` costs a store-forwarding stall
            // (lab/log, 2026-11-21).
            match &Packet::parse(profile, bytes) {
                Ok(packet) => rx::receive(cx, &from, packet),
                Err(error) => {
                    let reason = (*error).into();
                    cx.observation.metrics.count_drop(reason);
                    cx.observation.notes.add(None, from, ProbeKind::Dropped(reason));
                    break;
                }
            }
        }
        count
    }

    /// Handles a datagram as [`Transport::handle_datagram`] does. A switch has marked it: congestion experienced, RFC 3168
    /// (GRANT-18).
    pub fn handle_marked_datagram(
        &mut self,
        now: Instant,
        from: Address,
        datagram: &[u8],
    ) -> usize {
        self.core.inbound.granter.set_packet_mark(true);
        let count = self.handle_datagram(now, from, datagram);
        self.core.inbound.granter.set_packet_mark(false);
        let address = peer_address(self.core.outbound.identity.profile, from);
        if let Some(peer) = self.core.tables.peers.find(&address) {
            self.core.tables.peers[peer].marks += count as u64;
        }
        count
    }

    /// Notes the time of a call.
    fn advance(&mut self, now: Instant) {
        debug_assert!(
            now >= self.core.now,
            "time goes backwards: {:?} after {now:?}",
            self.core.now
        );
        let waiting = self.core.inbound.granter.waiting() as u64;
        if waiting > 0 {
            let nanos = now.since(self.core.now).saturating_mul(waiting);
            let integral = &mut self.core.observation.metrics.scheduling.grantable_integral_nanos;
            *integral = integral.saturating_add(nanos);
        }
        self.core.now = self.core.now.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Transport {
        /// The queue of messages, for its tests.
        pub(crate) const fn send_queue(&self) -> &crate::tx::SendQueue {
            &self.core.outbound.messages
        }
    }

    /// GRANT-19: only what leaves by a GRANT may be marked, and only if marks are heeded.
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
            let message = transport.core.tables.rpcs[rpc].outgoing.as_mut().unwrap();
            message.grant(9_000);
            transport.core.outbound.messages.update(&mut transport.core.tables.rpcs, rpc);
            let granted = transport.poll_transmit(now).unwrap().traffic_class() & 0b11;
            (first, granted)
        };
        assert_eq!(capable(1_500), (0, 0b10));
        assert_eq!(capable(0), (0, 0));
    }
}
