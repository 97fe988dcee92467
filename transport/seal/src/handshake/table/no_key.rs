//! NO_KEY: reports packets that this end cannot open, and reacts to such reports (SEAL-13).

use super::Handshakes;
use super::rates::NO_KEY_INTERVAL;
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Time from an accepted NO_KEY to the HELLO: a packet that proves that both ends have the keys
/// arrives in that time (SEAL-17).
const DOUBT_WAIT: Duration = Duration::from_millis(1);

impl Handshakes {
    /// Reports a sealed packet that no keys of its sender open: asks the sender for a new
    /// handshake.
    pub fn without_key(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        to: Option<IpAddr>,
        packet: &[u8],
    ) {
        let Some(header) = SealedHeader::parse(packet) else { return };
        // A handshake that the peer seems to have started does not suppress NO_KEY: its HELLO may
        // be forged or old, and a peer in a handshake ignores NO_KEY. Neither does a handshake of
        // this end whose keys are in use here and do not open the packet.
        let is_busy = self.clients.get(&peer).is_some_and(|client| !client.is_complete);
        if is_busy || !self.no_keys.take(now, peer, self.local.limits.in_progress) {
            return;
        }
        self.send_no_key(peer, to, header.number, header.id);
    }

    /// Handles a NO_KEY for the packet `number`. It may be forged, so it ends no association; it
    /// starts a handshake.
    pub(super) fn handle_no_key(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        to: Option<IpAddr>,
        number: u64,
    ) {
        let Some(known) = self.peers.get_mut(peer) else { return };
        let is_recent = |at: Duration| now.saturating_sub(at) < 10 * NO_KEY_INTERVAL;
        if !known.phases.may_have_sealed(number) || known.no_key_accepted.is_some_and(is_recent) {
            return;
        }
        if self.clients.get(&peer).is_some_and(|client| !client.is_overdue()) {
            return;
        }
        known.no_key_accepted = Some(now);
        self.clients.remove(&peer);
        self.local.counters.no_keys_believed.add(1);
        let _ = self.start_client(now, DOUBT_WAIT, peer, to);
    }

    fn send_no_key(&mut self, peer: SocketAddr, to: Option<IpAddr>, number: u64, id: u64) {
        let mut packet = vec![0; HEADER_LEN];
        SealedHeader::emit(SealKind::NoKey, self.local.ports_to(peer), 0, id ^ 1, &mut packet);
        SealedHeader::seal(&mut packet, number, false);
        self.local.counters.no_keys_sent.add(1);
        self.output.send(peer, to, vec![packet]);
    }
}
