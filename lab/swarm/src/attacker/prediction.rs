//! Predictions: the ids and sessions of an endpoint whose secret did not matter.
//!
//! The program is public. An attacker runs it with its own secret, in place of a client and of its
//! server: ids and sessions that did not depend on the secret would equal its victims'.

use apus_proto::{Call, Datagram, Instant, Transport};
use apus_sim::host::PORT;
use apus_sim::message::HostId;
use apus_wire::{Packet, Profile, UdpFields};
use bytes::Bytes;

use super::public::Public;
use crate::address::address;
use crate::generator::random::SeededRng;

/// Number of sessions predicted for a server: the number of its earlier sessions is unknown.
const SESSIONS: u64 = 8;
/// Number of later calls whose ids are guessed.
const LATER_CALLS: u64 = 256;

/// Predicted random choices of a client and its server.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    pub(super) client: HostId,
    pub(super) server: HostId,
    first_id: u64,
    sessions: Vec<UdpFields>,
}

impl Prediction {
    /// Predicts for two honest hosts.
    pub(super) fn new(public: &Public, client: HostId, server: HostId) -> Option<Self> {
        let endpoint = |seed| Transport::new(public.config.clone(), PORT, seed);
        let now = Instant::from_nanos(1_000);
        let mut calling = endpoint(0);
        let payload = Bytes::from_static(b"?").into();
        let call =
            Call { to: address(server), payload, cookie: 0, deadline: None, idempotent: false };
        calling.call(now, call).ok()?;
        let request = take_packet(&mut calling, now)?;
        let first_id = Packet::parse(Profile::Udp, &request).ok()?.header.sender_id.client_id();
        let mut serving = endpoint(1);
        let mut sessions = Vec::new();
        for number in 0..SESSIONS {
            let from = if number == 0 { client } else { (client + number as u32) % public.hosts };
            serving.handle_datagram(now, Datagram::new(address(from), &request));
            if let Some(question) = take_packet(&mut serving, now)
                && let Ok(packet) = Packet::parse(Profile::Udp, &question)
            {
                sessions.extend(packet.header.udp());
            }
        }
        Some(Self { client, server, first_id, sessions })
    }

    /// Draws the id of one of the client's calls.
    pub(super) fn id(&self, rng: &mut SeededRng) -> u64 {
        self.first_id.wrapping_add(2 * rng.scale(0, LATER_CALLS))
    }

    /// Draws the session of the pair.
    pub(super) fn session(&self, rng: &mut SeededRng) -> Option<UdpFields> {
        (!self.sessions.is_empty()).then(|| rng.one_of(&self.sessions))
    }
}

/// Returns the first outgoing packet.
fn take_packet(transport: &mut Transport, now: Instant) -> Option<Vec<u8>> {
    let transmit = transport.poll_transmit(now)?;
    let header = transmit.headers().get(..transmit.header_len())?;
    let payload: Vec<&[u8]> = transmit.payload().collect();
    Some([header, &payload.concat()].concat())
}
