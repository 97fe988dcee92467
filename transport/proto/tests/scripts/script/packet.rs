//! A packet of a peer, as the script writes it.

use super::content::bytes_of;
use super::words::{address, key_value};
use super::{OUR_PORT, Script, THEIR_SESSION};
use apus_proto::{Datagram, Kind, Profile};
use apus_wire::{
    Ack, AckList, Body, Cutoffs, Data, Dialect, EVERYTHING, Features, Flags, Grant, Header,
    HeaderBuffer, KernelFields, MAX_HEADER_LEN, Packet, Resend, Role, SenderId, UdpFields, Waiting,
};

impl Script {
    /// A packet from a peer: kind, RPC, then by kind
    ///
    /// - `DATA s1 0..100/1000`, `unsched=500` (default: all), `marked` (by a switch), `retransmit`,
    ///   `ack=c3`, `cutoffs=1`, `length=…` to lie
    /// - `GRANT c1 5000 level=3`, `RESEND c1 0..100` or `everything`, `brief` (without a level),
    ///   `CUTOFFS c1 VERSION`, `room=5000`, `longest=1500` (that starts unscheduled)
    /// - `ACK s1 s2 …`, `NEED_ACK c1`, `BUSY c1`, `RPC_UNKNOWN c1`, `FREEZE c1`
    ///
    /// and, in the udp profile, `+CONFIRM`, `+FINISHED`, `+REFUSED=2`, `session=5` (a wrong one),
    /// `inc=5` (a client without a session), `low=3` (low-water distance), `claim=3`, `first` (the
    /// session that was offered first), `old` (a version without features), `dport=9`. Packets with
    /// `&` between them share a datagram.
    ///
    /// A client's DATA answers the challenge that it was sent, unless `low` shows that the server
    /// has the session; NEED_ACK with CONFIRM offers a session for the call's latest claim.
    pub(super) fn receive(&mut self, peer: &str, words: &[&str]) {
        let from = address(peer);
        if words[0] == "raw" {
            let hex = words[1..].concat();
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
                .collect();
            self.transport.handle_datagram(self.now, Datagram::new(from, &bytes));
            return;
        }
        let packets = words.split(|&word| word == "&");
        let datagram: Vec<u8> = packets.flat_map(|words| self.packet(peer, words)).collect();
        let is_marked = words.contains(&"marked");
        self.transport.handle_datagram(self.now, Datagram { from, bytes: &datagram, is_marked });
    }

    fn packet(&mut self, peer: &str, words: &[&str]) -> Vec<u8> {
        let peer_char = peer.chars().next().unwrap();
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == words[0]).unwrap();
        let sender_id = self.sender_id(peer, words[1]);
        let mut fields = self.fields(peer_char, sender_id, kind);
        let mut data = Data {
            message_length: 0,
            incoming: u32::MAX,
            ack: None,
            cutoff_version: 1,
            retransmit: false,
            offset: 0,
            offset_in_sequence: false,
            is_stripped: false,
            waiting: Waiting::UNSAID,
            response_limit: Waiting::UNSAID,
        };
        let mut acks = AckList::EMPTY;
        let (mut range, mut level, mut version) = (None, 0, None);
        let (mut sequence, mut dport, mut brief, mut longest) = (0, OUR_PORT, false, 0);
        for word in &words[2..] {
            match key_value(word) {
                ("unsched", n) => data.incoming = n.parse().unwrap(),
                ("wait", n) => data.waiting = Waiting::of_bytes(n.parse().unwrap()),
                ("limit", n) => data.response_limit = Waiting::of_bytes(n.parse().unwrap()),
                // Of the datagram.
                ("marked", _) => {}
                ("retransmit", _) => data.retransmit = true,
                ("brief", _) => brief = true,
                ("ack", rpc) => {
                    let client_id = self.sender_id(peer, rpc).client_id();
                    data.ack = Some(Ack { client_id, server_port: OUR_PORT });
                }
                ("cutoffs", n) => data.cutoff_version = n.parse().unwrap(),
                ("level", n) => level = n.parse().unwrap(),
                ("everything", _) => range = Some((0, EVERYTHING)),
                ("+CONFIRM", _) => fields.flags = fields.flags.with(Flags::CONFIRM),
                ("+FINISHED", _) => fields.flags = fields.flags.with(Flags::FINISHED),
                ("+REFUSED", n) => {
                    fields.flags = fields.flags.with(Flags::REFUSED);
                    sequence = n.parse().unwrap();
                }
                ("room", n) => sequence = n.parse().unwrap(),
                ("longest", n) => longest = n.parse().unwrap(),
                ("session", n) => {
                    let flags = match kind {
                        Kind::Data => Flags::SESSION,
                        _ => fields.flags.with(Flags::SESSION),
                    };
                    fields = UdpFields { flags, incarnation: n.parse().unwrap(), ..fields };
                }
                ("inc", n) => {
                    let flags = Flags::NONE;
                    fields = UdpFields { flags, incarnation: n.parse().unwrap(), ..fields };
                }
                ("old", _) => {
                    fields.features = Features::NONE;
                    fields.low_water = UdpFields::LOW_WATER_UNKNOWN;
                }
                ("low", n) => {
                    let flags = Flags::from_bits(fields.flags.bits() & !Flags::CONFIRM.bits());
                    fields = UdpFields { flags, low_water: n.parse().unwrap(), ..fields };
                }
                ("first", _) => {
                    let (session, claim) = self.sessions[&peer_char][0];
                    fields = UdpFields { incarnation: session, low_water: claim, ..fields };
                }
                ("claim", n) => fields.low_water = n.parse().unwrap(),
                ("dport", n) => dport = n.parse().unwrap(),
                (rpc, _) if kind == Kind::Ack => {
                    let client_id = self.sender_id(peer, rpc).client_id();
                    acks.push(Ack { client_id, server_port: OUR_PORT }).unwrap();
                }
                (text, _) if text.contains("..") => {
                    let (span, length) = text.split_once('/').unwrap_or((text, "0"));
                    let (start, end) = span.split_once("..").unwrap();
                    let (start, end) = (start.parse::<u32>().unwrap(), end.parse::<u32>().unwrap());
                    range = Some((start, end - start));
                    data.message_length = length.parse().unwrap();
                }
                (text, _) => version = Some(text.parse::<u32>().unwrap()),
            }
        }
        let (start, length) = range.unwrap_or((0, 0));
        data.offset = start;
        data.incoming = data.incoming.min(data.message_length);
        let payload = if kind == Kind::Data { bytes_of(start, length) } else { Vec::new() };
        let body = match kind {
            Kind::Data => Body::Data(data, &payload),
            Kind::Grant => Body::Grant(Grant { offset: version.unwrap(), priority: level }),
            Kind::Resend => Body::Resend(Resend { offset: start, length, priority: 7, brief }),
            Kind::RpcUnknown => Body::RpcUnknown,
            Kind::Busy => Body::Busy,
            Kind::Cutoffs => {
                let unscheduled = [longest, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];
                Body::Cutoffs(Cutoffs { unscheduled, version: version.unwrap() as u16 })
            }
            Kind::Freeze => Body::Freeze,
            Kind::NeedAck => Body::NeedAck,
            Kind::Ack => Body::Ack(acks),
        };
        let dialect = match self.profile {
            Profile::Udp => Dialect::Udp(fields),
            Profile::Kernel => Dialect::Kernel(KernelFields::OURS),
        };
        let sport = address(peer).port();
        let mut header = Header::new(kind, sport, dport, sender_id, dialect);
        header.sequence = if kind == Kind::Data { start } else { sequence };
        let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
        let len = Packet { header, body }.emit_header(&mut buffer);
        [&buffer[..len], &payload].concat()
    }

    /// The header fields of a peer that follows the protocol.
    fn fields(&mut self, peer: char, id: SenderId, kind: Kind) -> UdpFields {
        let features = Features::OURS;
        let server = id.sender() == Role::Server;
        if server {
            let flags = Flags::SESSION;
            let claim = self.claims.get(&peer).filter(|_| kind == Kind::NeedAck);
            let low_water = claim.copied().unwrap_or(UdpFields::LOW_WATER_UNKNOWN);
            return UdpFields { flags, incarnation: THEIR_SESSION, low_water, features };
        }
        let low_water = UdpFields::LOW_WATER_UNKNOWN;
        match self.sessions.get(&peer).and_then(|offers| offers.last()) {
            Some((session, claim)) if kind == Kind::Data => {
                let flags = Flags::SESSION.with(Flags::CONFIRM);
                UdpFields { flags, incarnation: *session, low_water: *claim, features }
            }
            Some((session, _)) if kind != Kind::Freeze => {
                UdpFields { flags: Flags::SESSION, incarnation: *session, low_water, features }
            }
            _ => {
                let incarnation = u64::from(u32::from(peer));
                UdpFields { flags: Flags::NONE, incarnation, low_water, features }
            }
        }
    }

    /// `c1`: our call, the peer is its server. `s1`: a call of the peer.
    fn sender_id(&self, peer: &str, rpc: &str) -> SenderId {
        let number: u64 = rpc[1..].parse().unwrap();
        if rpc.starts_with('c') {
            let id =
                self.calls.get(number as usize - 1).map_or(5_000 + 2 * number, |(_, id, _)| *id);
            SenderId::new(id, Role::Server)
        } else {
            let base = match peer {
                "P" => 10_000,
                "Q" => 20_000,
                _ => 30_000,
            };
            SenderId::new(base + 2 * number, Role::Client)
        }
    }
}
