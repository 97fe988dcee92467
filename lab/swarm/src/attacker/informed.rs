//! Informed position: off-path, with access to the ids of RPCs.
//!
//! Security must not rest on ids alone: they are in logs and traces. Packets about live RPCs must
//! still be rejected, because they show no session, or a wrong one.

use apus_sim::message::HostId;
use apus_wire::{Kind, Role};

use super::contract::{Attacker, HostilePacket};
use super::forge::{About, SessionClaim, forge};
use super::public::Public;
use super::taps::{Ids, RpcName};
use crate::generator::random::SeededRng;

/// An attacker with a list of ids.
#[derive(Debug)]
pub(super) struct Informed {
    public: Public,
    ids: Ids,
}

impl Informed {
    pub(super) const fn new(public: Public, ids: Ids) -> Self {
        Self { public, ids }
    }

    /// Draws a known RPC, usually a recent one.
    fn rpc(&self, rng: &mut SeededRng) -> Option<RpcName> {
        let ids = self.ids.borrow();
        let back = rng.scale(1, ids.len().max(1) as u64) as usize;
        ids.get(ids.len().checked_sub(back)?).copied()
    }
}

impl Attacker for Informed {
    fn next_packet(&mut self, rng: &mut SeededRng) -> Option<HostilePacket> {
        let RpcName { client, server, id } = self.rpc(rng)?;
        let honest = |host: HostId| host < self.public.hosts;
        if !honest(client) || !honest(server) {
            return None;
        }
        let sender = if rng.percent(50) { Role::Client } else { Role::Server };
        let (from, to) = if sender == Role::Client { (client, server) } else { (server, client) };
        let session = SessionClaim::unknown(rng);
        let kind = rng.one_of(&Kind::ALL);
        Some(forge(rng, About { from, to, sender, id, session }, kind))
    }
}
