//! Peers with keys: the identity behind each session, and when keys are removed.

use super::host::Host;
use super::output::{Established, Output, SealEvent, ServerLife};
use crate::association::Phases;
use crate::counters::SealCounters;
use crate::identity::Identity;
use crate::negotiation::{Life, Negotiator};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Interval between two sweeps. Idle peers are removed after one to two of them (30 to 60 minutes).
const SWEEP_INTERVAL: Duration = Duration::from_secs(1_800);

/// Time from the start of a handshake for which packets of the previous association may still be in
/// flight (SEAL-16).
const LATE: Duration = Duration::from_millis(200);

/// Hosts that can have as many peers as one host may have. Chosen by us: an eighth of 65,536 peers
/// is more processes than a host runs.
const HOSTS: usize = 8;

/// A peer with keys.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) session: u64,
    identity: Arc<Identity>,
    pub(super) phases: Arc<Phases>,
    /// When the handshake that led to the keys started at this end.
    began: Duration,
    /// The number of the peer's life, if it has stated it.
    life: Option<u64>,
    /// The previous session; the application may still hold its requests.
    before: Option<(u64, Arc<Identity>)>,
    /// Whether no packet was opened between the last two sweeps.
    is_idle: bool,
    /// When a NO_KEY of the peer last led to a handshake.
    pub(super) no_key_accepted: Option<Duration>,
}

/// The life that a peer has stated in a handshake, if it has.
#[derive(Clone, Copy, Debug)]
pub(super) enum PeerLife {
    /// As server, after the handshake had started here.
    OfServer(Option<Life>),
    /// As client, when it started the handshake, which may be long ago.
    OfClient(Option<Life>),
}

impl PeerLife {
    fn id(self) -> Option<u64> {
        let (Self::OfServer(life) | Self::OfClient(life)) = self;
        life.map(|life| life.id)
    }
}

/// All peers with keys.
#[derive(Debug)]
pub(super) struct Peers {
    by_address: BTreeMap<SocketAddr, Peer>,
    /// Number of peers of each host.
    by_host: BTreeMap<Host, usize>,
    /// When idle peers were last removed.
    swept: Duration,
}

impl Peers {
    pub(super) const fn new(now: Duration) -> Self {
        Self { by_address: BTreeMap::new(), by_host: BTreeMap::new(), swept: now }
    }

    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// Returns whether `peer` may have keys: it has some, or there are fewer than `limit` peers,
    /// and fewer than an eighth of that of its host. One host cannot keep others out.
    pub(super) fn has_room_for(&self, peer: SocketAddr, limit: usize) -> bool {
        let of_host = self.by_host.get(&Host::of(peer.ip())).copied().unwrap_or(0);
        self.by_address.contains_key(&peer)
            || (self.by_address.len() < limit && of_host < (limit / HOSTS).max(1))
    }

    pub(super) fn get(&self, peer: SocketAddr) -> Option<&Peer> {
        self.by_address.get(&peer)
    }

    pub(super) fn get_mut(&mut self, peer: SocketAddr) -> Option<&mut Peer> {
        self.by_address.get_mut(&peer)
    }

    /// Returns the identity behind `session`, if that is the peer's present or previous session.
    pub(super) fn identity(&self, peer: SocketAddr, session: u64) -> Option<Arc<Identity>> {
        let peer = self.by_address.get(&peer)?;
        if peer.session == session {
            return Some(peer.identity.clone());
        }
        let (_, identity) = peer.before.as_ref().filter(|(before, _)| *before == session)?;
        Some(identity.clone())
    }

    pub(super) fn identities(&self) -> impl Iterator<Item = (SocketAddr, &Arc<Identity>)> {
        self.by_address.iter().map(|(address, peer)| (*address, &peer.identity))
    }

    /// Returns whether the peer has keys and has used them since a handshake with it started
    /// (HANDSHAKE-5). Clears that mark.
    pub(super) fn take_heard(&self, peer: SocketAddr) -> bool {
        self.by_address.get(&peer).is_some_and(|known| known.phases.take_heard())
    }

    /// Returns whether the peer's keys are so new that packets of the previous association may
    /// still be in flight.
    pub(super) fn is_new(&self, now: Duration, peer: SocketAddr) -> bool {
        let known = self.by_address.get(&peer);
        known.is_some_and(|known| now.saturating_sub(known.began) < LATE)
    }

    /// Returns whether the keys of `peer` come from a handshake that started after `began`.
    pub(super) fn is_newer(&self, peer: SocketAddr, began: Duration) -> bool {
        self.by_address.get(&peer).is_some_and(|known| known.began > began)
    }

    /// Replaces the peer's keys with those of a handshake that started at this end at `began`.
    pub(super) fn establish(
        &mut self,
        began: Duration,
        life: PeerLife,
        identity: Identity,
        mut established: Established,
        output: &mut Output,
    ) {
        let Established { peer, sealer, server_life, .. } = &mut established;
        let peer = *peer;
        let known = self.remove(peer);
        if let PeerLife::OfServer(Some(Life { id, age })) = life {
            let earlier = known.as_ref().and_then(|known| known.life);
            let is_other = earlier.is_some_and(|earlier| earlier != id);
            *server_life = Some(ServerLife { age, asked: began, is_other });
        }
        let before = known.map(|known| (known.session, known.identity));
        let entry = Peer {
            session: sealer.session(),
            identity: Arc::new(identity),
            phases: sealer.phases().clone(),
            began,
            life: life.id(),
            before,
            is_idle: false,
            no_key_accepted: None,
        };
        self.by_address.insert(peer, entry);
        *self.by_host.entry(Host::of(peer.ip())).or_default() += 1;
        output.events.push_back(SealEvent::Established(Box::new(established)));
    }

    fn remove(&mut self, peer: SocketAddr) -> Option<Peer> {
        let known = self.by_address.remove(&peer)?;
        count_down(&mut self.by_host, peer);
        Some(known)
    }

    /// Removes the peer's keys, if it has any.
    pub(super) fn forget(&mut self, peer: SocketAddr, output: &mut Output) {
        if let Some(known) = self.remove(peer) {
            output.report_removed(peer, known.session);
        }
    }

    /// Removes the peers that `negotiator` no longer admits. Returns their number.
    pub(super) fn recheck(
        &mut self,
        negotiator: &dyn Negotiator,
        counters: &SealCounters,
        output: &mut Output,
    ) -> usize {
        let before = self.by_address.len();
        let by_host = &mut self.by_host;
        self.by_address.retain(|address, peer| {
            let is_admitted = negotiator.recheck(&peer.identity, *address).is_ok();
            if !is_admitted {
                count_down(by_host, *address);
                output.report_removed(*address, peer.session);
                counters.peers_revoked.add(1);
            }
            is_admitted
        });
        before - self.by_address.len()
    }

    /// Returns when idle peers are next removed, if there are peers.
    pub(super) fn next_sweep(&self) -> Option<Duration> {
        (!self.by_address.is_empty()).then_some(self.swept + SWEEP_INTERVAL)
    }

    /// Removes the peers from which no packet was opened since the sweep before the last one.
    /// Returns whether a sweep was due.
    pub(super) fn sweep(&mut self, now: Duration, output: &mut Output) -> bool {
        if now.saturating_sub(self.swept) < SWEEP_INTERVAL {
            return false;
        }
        self.swept = now;
        let by_host = &mut self.by_host;
        self.by_address.retain(|address, peer| {
            let was_idle = std::mem::replace(&mut peer.is_idle, !peer.phases.take_used());
            let keeps = !(was_idle && peer.is_idle);
            if !keeps {
                count_down(by_host, *address);
                output.report_removed(*address, peer.session);
            }
            keeps
        });
        true
    }
}

/// Counts a peer less for its host.
fn count_down(by_host: &mut BTreeMap<Host, usize>, peer: SocketAddr) {
    let host = Host::of(peer.ip());
    if let Some(count) = by_host.get_mut(&host) {
        *count -= 1;
        if *count == 0 {
            by_host.remove(&host);
        }
    }
}
