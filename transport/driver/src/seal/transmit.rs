//! The transmitting half: seals packets while it copies them, and sends the packets of handshakes.

use super::handle::{Change, NewSession, SealHandle, canonical};
use crate::{Burst, BurstPacket, Session, TransmitHalf};
use apus_process::Owner;
use apus_seal::{Datagram, Failure, SealCounters, Sealer, TAG_LEN};
use apus_wire::{Flags, HEADER_LEN, Header, Kind, SealedHeader};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of datagrams that are open for further packets.
const WAITING: usize = 4;

/// Maximum number of refused packets waiting to be reported.
const MAX_REPORTS: usize = 64;

/// Maximum number of packets in one datagram (WIRE-29).
const MAX_PACKETS: usize = 64;

/// The transmitting half of a sealed driver.
pub(super) struct SealedTransmit {
    inner: Box<dyn TransmitHalf>,
    handle: Arc<SealHandle>,
    counters: Arc<SealCounters>,
    keys: HashMap<SocketAddr, Sealer>,
    /// The process that may seal: in a child of a fork every packet number would be used twice.
    owner: Owner,
    /// Traffic class of packets of handshakes.
    traffic_class: u8,
    /// Datagrams that packets may be added to until the next flush, oldest first.
    waiting: Vec<Waiting>,
    /// Headers and contents of the burst being sealed.
    headers: Vec<u8>,
    contents: Vec<u8>,
}

/// Packets that share a datagram, not sealed yet (SEAL-6).
struct Waiting {
    to: SocketAddr,
    from: Option<IpAddr>,
    traffic_class: u8,
    packets: usize,
    bytes: Vec<u8>,
}

impl SealedTransmit {
    pub(super) fn new(
        inner: Box<dyn TransmitHalf>,
        handle: Arc<SealHandle>,
        traffic_class: u8,
    ) -> Self {
        let counters = handle.counters().clone();
        Self {
            inner,
            handle,
            counters,
            keys: HashMap::new(),
            owner: Owner::current(),
            traffic_class,
            waiting: Vec::new(),
            headers: Vec::new(),
            contents: Vec::new(),
        }
    }

    /// Applies the results of handshakes, and sends their packets.
    #[cold]
    fn take_changes(&mut self) -> io::Result<()> {
        let (changes, known, outbox) = self.handle.change(|_, state| {
            let changes = std::mem::take(&mut state.sealers);
            (changes, std::mem::take(&mut state.known), std::mem::take(&mut state.outbox))
        });
        for (peer, change) in changes {
            let before = match change {
                Change::Set(sealer) => self.keys.insert(peer, sealer),
                Change::Remove(session) => match self.keys.get(&peer) {
                    Some(known) if known.session() == session => self.keys.remove(&peer),
                    _ => None,
                },
            };
            if let Some(before) = before {
                self.counters.rekeys.add(before.rekeys());
            }
        }
        for (mut ready, session) in known {
            let sealer = self.keys.get_mut(&ready.to).filter(|keys| keys.session() == session);
            let Some(sealer) = sealer else { continue };
            if let Ok(tag) = sealer.seal(&mut ready.packet, &mut []) {
                ready.packet.extend(tag);
                self.send_handshake(&ready)?;
            }
        }
        outbox.iter().try_for_each(|datagram| self.send_handshake(datagram))
    }

    /// Sends a packet of a handshake, at the level of control packets.
    fn send_handshake(&mut self, datagram: &Datagram) -> io::Result<()> {
        let burst = Burst::single(datagram.to, &datagram.packet);
        let (from, traffic_class) = (datagram.from, self.traffic_class);
        self.inner.send(&Burst { from, traffic_class, ..burst })
    }

    /// Seals and sends a burst, one datagram per packet.
    fn send_sealed(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        let Some(sealer) = self.keys.get_mut(&canonical(burst.to)) else { return Ok(()) };
        self.headers.clear();
        self.contents.clear();
        let packets = burst.packets();
        for packet in burst.each() {
            let BurstPacket { header, payload } = packet;
            let (begin, at) = (self.headers.len(), self.contents.len());
            let Some((head, rest)) = header.split_at_checked(HEADER_LEN) else { return Ok(()) };
            self.headers.extend_from_slice(head);
            self.contents.extend_from_slice(rest);
            payload.for_each(|piece| self.contents.extend_from_slice(piece));
            match sealer.seal(&mut self.headers[begin..], &mut self.contents[at..]) {
                Ok(tag) => self.contents.extend_from_slice(&tag),
                Err(_) => {
                    let to = canonical(burst.to);
                    self.handle.change(|_, state| state.handshakes.forget(to));
                    return Ok(());
                }
            }
        }
        self.counters.packets_sealed.add(packets as u64);
        let segment = burst.header_len - HEADER_LEN + burst.segment.min(burst.payload_len());
        self.inner.send(&Burst {
            headers: &self.headers,
            header_len: HEADER_LEN,
            payload: &[&self.contents],
            segment: segment + TAG_LEN,
            coalesce: 0,
            ..*burst
        })
    }

    /// Adds a burst of one packet to an open datagram, or opens a new one.
    fn share(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        let len = burst.longest_packet();
        let is_same = |waiting: &Waiting| {
            waiting.to == burst.to
                && waiting.traffic_class == burst.traffic_class
                && waiting.from == burst.from
        };
        if let Some(at) = self.waiting.iter().rposition(is_same) {
            let waiting = &mut self.waiting[at];
            if waiting.bytes.len() + len <= burst.coalesce && waiting.packets < MAX_PACKETS {
                waiting.packets += 1;
                append(&mut waiting.bytes, burst);
                return Ok(());
            }
            self.send_waiting(at)?;
        }
        if self.waiting.len() == WAITING {
            self.send_waiting(0)?;
        }
        let mut bytes = Vec::with_capacity(burst.coalesce.min(2048));
        append(&mut bytes, burst);
        let Burst { to, from, traffic_class, .. } = *burst;
        self.waiting.push(Waiting { to, from, traffic_class, packets: 1, bytes });
        Ok(())
    }

    fn send_waiting(&mut self, at: usize) -> io::Result<()> {
        let Waiting { to, from, traffic_class, bytes, .. } = self.waiting.remove(at);
        self.send_sealed(&Burst { from, traffic_class, ..Burst::single(to, &bytes) })
    }

    /// Drops a packet without keys, without a session, or with another session than the keys, and
    /// starts a handshake or reports the session.
    #[cold]
    fn refuse(&mut self, burst: &Burst<'_>) {
        let to = canonical(burst.to);
        self.counters.unsent.add(burst.packets() as u64);
        let header = burst.headers;
        let offers = Header::peek_kind(header) == Some(Kind::NeedAck)
            && header[13] & Flags::CONFIRM.bits() != 0;
        let known = self.keys.get(&to).map(Sealer::session);
        self.handle.change(|now, state| match known {
            // The protocol lost the session: only a new handshake gives both ends another one.
            Some(_) if offers => state.handshakes.forget(to),
            Some(session) if SealedHeader::session(header).is_none() => {
                let again = NewSession { peer: to, number: session, server_life: None };
                state.sessions.push_back(again);
            }
            // A packet of an earlier session.
            Some(_) => {}
            None => {
                // No handshake starts within a second of a failure. After a timeout the packet is
                // not reported, since the peer may still start up.
                if let Err(error) = state.handshakes.want(now, to, burst.from)
                    && error.cause != Failure::Timeout
                    && state.refused.len() < MAX_REPORTS
                    && let Some(beginning) = header.first_chunk()
                {
                    state.refused.push_back((burst.to, *beginning));
                }
            }
        });
    }
}

fn append(bytes: &mut Vec<u8>, burst: &Burst<'_>) {
    bytes.extend_from_slice(burst.headers);
    burst.payload.iter().for_each(|piece| bytes.extend_from_slice(piece));
}

impl TransmitHalf for SealedTransmit {
    fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
        debug_assert!(burst.is_consistent(), "{burst:?}");
        self.owner.check().map_err(io::Error::other)?;
        if self.handle.is_for_transmit() {
            self.take_changes()?;
        }
        let session = self.keys.get(&canonical(burst.to)).map(Sealer::session);
        if session.is_none() || session != SealedHeader::session(burst.headers) {
            self.refuse(burst);
            return Ok(());
        }
        if burst.coalesce > 0 && burst.packets() == 1 {
            return self.share(burst);
        }
        self.send_sealed(burst)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.owner.check().map_err(io::Error::other)?;
        if self.handle.is_for_transmit() {
            self.take_changes()?;
        }
        while !self.waiting.is_empty() {
            self.send_waiting(0)?;
        }
        self.inner.flush()
    }

    fn has_room(&self) -> bool {
        self.inner.has_room()
    }

    fn has_pending(&self) -> bool {
        !self.waiting.is_empty() || self.handle.is_for_transmit() || self.inner.has_pending()
    }

    fn packet_limit(&mut self, to: SocketAddr) -> usize {
        self.inner.packet_limit(to).saturating_sub(TAG_LEN)
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.handle.next_timeout()
    }

    fn handle_timeout(&mut self) {
        if let Some(now) = self.handle.handle_timeout() {
            self.keys.values_mut().for_each(|sealer| sealer.rekey_if_old(now));
        }
    }

    fn poll_session(&mut self) -> Option<Session> {
        self.handle.take_session()
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::SealClock;
    use super::*;
    use apus_seal::Limits;
    use apus_seal::stub::{StubNegotiator, StubPolicy};
    use std::net::Ipv4Addr;
    use std::sync::Mutex;

    const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7);

    /// The traffic class of control packets.
    const CONTROL: u8 = 7 << 5;

    /// Traffic classes and bytes of packets.
    type Sent = Arc<Mutex<Vec<(u8, Vec<u8>)>>>;

    /// Stores the sent packets.
    struct Recorder(Sent);

    impl TransmitHalf for Recorder {
        fn send(&mut self, burst: &Burst<'_>) -> io::Result<()> {
            let packets = burst.each().map(|packet| (burst.traffic_class, packet.to_vec()));
            self.0.lock().unwrap().extend(packets);
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn has_room(&self) -> bool {
            true
        }

        fn has_pending(&self) -> bool {
            false
        }

        fn packet_limit(&mut self, _to: SocketAddr) -> usize {
            1_500
        }
    }

    fn stub(seed: u64) -> Arc<StubNegotiator> {
        Arc::new(StubNegotiator::new(StubPolicy { name: 1, trust: 2, limit: 1 << 30 }, seed))
    }

    /// SEAL-8.
    #[test]
    fn handshakes_travel_at_the_level_of_control_packets() {
        let handle = Arc::new(SealHandle::new(stub(1), 9, Limits::default(), SealClock::system()));
        let sent = Sent::default();
        let mut half = SealedTransmit::new(Box::new(Recorder(sent.clone())), handle, CONTROL);
        let mut packet = vec![0; HEADER_LEN];
        (packet[11], packet[12], packet[13]) = (Kind::Data as u8, 0x53, 0x10);
        half.send(&Burst::single(PEER, &packet)).unwrap();
        half.flush().unwrap();
        let sent = std::mem::take(&mut *sent.lock().unwrap());
        assert!(!sent.is_empty() && sent.iter().all(|(class, _)| *class == CONTROL), "PRIO-5");
    }
}
