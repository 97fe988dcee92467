//! The packets of floods.

use std::net::SocketAddrV4;

use apus_wire::{
    AckList, Body, Cutoffs, Data, Flags, Grant, PRIORITIES, Resend, Role, SealKind, SealedHeader,
    SenderId, UdpFields,
};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use super::attack::{Attack, SHORT};
use super::packet::{no_session, write_header};

/// Payload bytes of packets with a payload: as in an honest request.
const PAYLOAD: usize = SHORT as usize;

/// The knowledge of an attacker, and its random numbers.
pub(super) struct Forgery {
    pub(super) server: SocketAddrV4,
    client: SocketAddrV4,
    sealed: bool,
    random: SmallRng,
    packet: Vec<u8>,
}

impl Forgery {
    pub(super) fn new(
        (server, client): (SocketAddrV4, SocketAddrV4),
        sealed: bool,
        seed: u64,
    ) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        Self { server, client, sealed, random, packet: Vec::new() }
    }

    /// Returns the next packet of a flood, and its forged source address.
    ///
    /// # Panics
    ///
    /// If the attack is not a flood.
    pub(super) fn next(&mut self, attack: Attack) -> (SocketAddrV4, &[u8]) {
        let from = match attack {
            Attack::Malformed => {
                self.packet.clear();
                self.packet.resize(apus_wire::DATA_HEADER_LEN + PAYLOAD, 0xff);
                self.client
            }
            Attack::Forged => {
                self.forge();
                self.client
            }
            Attack::Unknown => {
                let from = self.unknown_address();
                self.introduce(from);
                from
            }
            Attack::Claims | Attack::Announcements | Attack::Grants | Attack::Responses => {
                unreachable!("few packets are no flood")
            }
        };
        (from, &self.packet)
    }

    /// Makes a packet in the name of the honest client, in a random session.
    fn forge(&mut self) {
        let client = self.client;
        let session = self.random.random::<u64>() >> 16;
        let fields = UdpFields { flags: Flags::SESSION, incarnation: session, ..no_session(0) };
        // Packets of servers and of clients are equally likely.
        let sender = if self.random.random() { Role::Client } else { Role::Server };
        match self.random.random_range(0..=CONTROL.len()) {
            0 => self.write_data(client, fields),
            control => self.write(client, sender, fields, CONTROL[control - 1]),
        }
        if self.sealed {
            self.fill(PAYLOAD);
            // A fresh number: the window drops a used one before the tag is computed.
            let number = 1 << 40 | self.random.random::<u64>() >> 32;
            SealedHeader::seal(&mut self.packet, number, false);
        }
    }

    /// Makes the first packet of a client at `from`.
    fn introduce(&mut self, from: SocketAddrV4) {
        if self.sealed {
            self.packet.clear();
            self.packet.resize(apus_wire::HEADER_LEN, 0);
            let (ports, id) = ((from.port(), self.server.port()), self.random.random());
            SealedHeader::emit(SealKind::Hello, ports, 0, id, &mut self.packet);
            self.fill(HELLO);
        } else {
            let fields = no_session(self.random.random::<u32>().into());
            self.write_data(from, fields);
        }
    }

    fn write_data(&mut self, from: SocketAddrV4, fields: UdpFields) {
        let data = Data::first(PAYLOAD as u32, PAYLOAD as u32);
        self.write(from, Role::Client, fields, Body::Data(data, &[0; PAYLOAD]));
        self.fill(PAYLOAD);
    }

    /// Writes a header.
    fn write(&mut self, from: SocketAddrV4, sender: Role, fields: UdpFields, body: Body<'_>) {
        let id = SenderId::new(self.random.random::<u64>() & !1, sender);
        let ports = (from.port(), self.server.port());
        write_header(&mut self.packet, ports, id, fields, body);
    }

    /// Adds random bytes.
    fn fill(&mut self, bytes: usize) {
        let length = self.packet.len();
        self.packet.resize(length + bytes, 0);
        self.random.fill_bytes(&mut self.packet[length..]);
    }

    /// Returns the address of an unknown client: a loopback address, so that no packet leaves the
    /// host, outside 127.0.0.0/16 of server and client.
    fn unknown_address(&mut self) -> SocketAddrV4 {
        let [a, b, c]: [u8; 3] = self.random.random();
        SocketAddrV4::new([127, a | 1, b, c].into(), self.random.random_range(1_024..=u16::MAX))
    }
}

/// Random bytes after the header of the first packet of a handshake. Source: SEAL-9, a server drops
/// shorter packets.
const HELLO: usize = 1_200;

/// The bodies of control packets.
const CONTROL: [Body<'static>; 8] = [
    Body::Grant(Grant { offset: u32::MAX / 2, priority: 0 }),
    Body::Resend(Resend::everything(7)),
    Body::RpcUnknown,
    Body::Busy,
    Body::Cutoffs(Cutoffs { unscheduled: [u32::MAX; PRIORITIES], version: 0xbeef }),
    Body::Freeze,
    Body::NeedAck,
    Body::Ack(AckList::EMPTY),
];

#[cfg(test)]
mod tests {
    use super::*;
    use apus_wire::{Packet, Profile};
    use std::collections::BTreeSet;

    fn forgery(sealed: bool) -> Forgery {
        let address = |port| SocketAddrV4::new([127, 0, 0, 1].into(), port);
        Forgery::new((address(4_000), address(5_000)), sealed, 7)
    }

    #[test]
    fn malformed_datagrams_are_no_packets() {
        let (from, packet) = (5_000, forgery(false).next(Attack::Malformed).1.to_vec());
        assert_eq!(forgery(false).next(Attack::Malformed).0.port(), from);
        assert!(Packet::parse(Profile::Udp, &packet).is_err());
        assert!(!apus_wire::is_sealed(&packet));
    }

    #[test]
    fn forged_packets_are_of_all_types_and_in_sessions() {
        let mut forgery = forgery(false);
        let mut kinds = BTreeSet::new();
        for _ in 0..1_000 {
            let (from, packet) = forgery.next(Attack::Forged);
            assert_eq!(from.port(), 5_000, "in the name of the client");
            let packet = Packet::parse(Profile::Udp, packet).unwrap();
            assert!(packet.header.udp().unwrap().flags.contains(Flags::SESSION));
            kinds.insert(format!("{:?}", packet.body.kind()));
        }
        assert_eq!(kinds.len(), 1 + CONTROL.len(), "{kinds:?}");
    }

    #[test]
    fn unknown_clients_have_distinct_addresses_and_no_session() {
        let mut forgery = forgery(false);
        let mut from = BTreeSet::new();
        for _ in 0..100 {
            let (client, packet) = forgery.next(Attack::Unknown);
            from.insert(client);
            assert!(client.ip().is_loopback());
            let packet = Packet::parse(Profile::Udp, packet).unwrap();
            assert!(!packet.header.udp().unwrap().flags.contains(Flags::SESSION));
        }
        assert_eq!(from.len(), 100);
    }

    #[test]
    fn against_sealed_endpoints_packets_are_sealed() {
        let mut forgery = forgery(true);
        for _ in 0..100 {
            let header = SealedHeader::parse(forgery.next(Attack::Forged).1).unwrap();
            assert_eq!(header.kind, None);
            let header = SealedHeader::parse(forgery.next(Attack::Unknown).1).unwrap();
            assert_eq!(header.kind, Some(SealKind::Hello));
        }
    }
}
