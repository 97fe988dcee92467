//! Off-path position: sends from any source address, and sees no packets.

use apus_wire::{Kind, Role};

use super::contract::{Attacker, HostilePacket};
use super::forge::{About, SessionClaim, first_data, forge};
use super::prediction::Prediction;
use super::public::Public;
use crate::generator::random::SeededRng;

/// Number of host pairs with predicted ids and sessions.
const PREDICTIONS: usize = 4;

/// An attacker with public information only.
#[derive(Debug)]
pub(super) struct OffPath {
    public: Public,
    predictions: Vec<Prediction>,
}

impl OffPath {
    pub(super) const fn new(public: Public) -> Self {
        Self { public, predictions: Vec::new() }
    }

    /// Draws the RPC of a packet: a predicted RPC, or one with an arbitrary id.
    fn about(&mut self, rng: &mut SeededRng) -> About {
        if self.predictions.len() < PREDICTIONS {
            let (client, server) = self.public.pair(rng);
            self.predictions.extend(Prediction::new(&self.public, client, server));
        }
        let (client, server, id, session) = match &self.predictions[..] {
            predictions @ [_, ..] if rng.percent(60) => {
                let prediction = &predictions[rng.within(0..predictions.len())];
                let session = prediction.session(rng).map(SessionClaim::Of);
                (prediction.client, prediction.server, prediction.id(rng), session)
            }
            _ => {
                let (client, server) = self.public.pair(rng);
                (client, server, rng.scale(2, u64::MAX) & !1, None)
            }
        };
        let session = session.unwrap_or_else(|| SessionClaim::unknown(rng));
        let sender = if rng.percent(50) { Role::Client } else { Role::Server };
        let (from, to) = if sender == Role::Client { (client, server) } else { (server, client) };
        About { from, to, sender, id, session }
    }

    /// Forges a request from an address that does not exist, or the first request of an honest
    /// host.
    fn first_contact(&self, rng: &mut SeededRng) -> HostilePacket {
        let to = self.public.victim(rng);
        let other = (to + rng.within(1..self.public.hosts)) % self.public.hosts;
        let from = if rng.percent(80) { self.public.unknown_address(rng) } else { other };
        let (id, session) = (rng.scale(2, u64::MAX) & !1, SessionClaim::Absent);
        let length = rng.scale(1, 100_000) as u32;
        first_data(rng, About { from, to, sender: Role::Client, id, session }, length)
    }
}

impl Attacker for OffPath {
    fn next_packet(&mut self, rng: &mut SeededRng) -> Option<HostilePacket> {
        if rng.percent(40) {
            return Some(self.first_contact(rng));
        }
        let about = self.about(rng);
        let kind = rng.one_of(&Kind::ALL);
        Some(forge(rng, about, kind))
    }
}
