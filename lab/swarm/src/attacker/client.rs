//! Client position: has its own addresses, and implements enough of the protocol to get sessions.
//!
//! It makes short calls, announces long messages that it does not send, keeps servers waiting for
//! acknowledgments, calls from many ports, and sends control packets of all kinds in its sessions,
//! as configured in [`abilities`](super::abilities). In some runs it keeps messages alive that make
//! no progress ([`Kept`]). It is a server as well: it answers the calls that honest hosts make to it
//! with the first bytes of a response.

use std::collections::{BTreeMap, VecDeque};

use apus_sim::message::HostId;
use apus_wire::{AckList, Body, Features, Flags, Header, Kind, Packet, Profile, Role, UdpFields};

use super::abilities::{ALIASES, CLAIMS, HOARDS_RESPONSES};
use super::contract::{Attacker, HostilePacket};
use super::forge::{About, SessionClaim, control, first_data, forge};
use super::kept::Kept;
use super::public::Public;
use crate::address::alias;
use crate::generator::random::SeededRng;

/// Maximum number of responses that await acknowledgment.
const WAITING: usize = 4_096;
/// Length of the longest message that is announced, as a multiple of the longest payload of a
/// packet.
const LONG: u32 = 2_000;

/// The session that it offers to its clients: any number of 48 bits.
const SESSION: u64 = 0x00ab_cdef_0123;
/// Ports that it keeps messages alive from.
const KEEPING_ALIASES: u16 = 16;

/// An attacker that receives the packets sent to its addresses.
#[derive(Debug)]
pub(super) struct Client {
    public: Public,
    /// Sessions by own address and server.
    sessions: BTreeMap<(HostId, HostId), SessionClaim>,
    /// Responses that servers keep until they are acknowledged.
    responses: VecDeque<About>,
    /// Sessions to be offered to callers.
    offers: VecDeque<About>,
    /// Messages that it keeps alive.
    kept: Kept,
    next_id: u64,
}

impl Client {
    pub(super) fn new(public: Public) -> Self {
        Self {
            public,
            sessions: BTreeMap::new(),
            responses: VecDeque::new(),
            offers: VecDeque::new(),
            kept: Kept::default(),
            next_id: 2,
        }
    }

    /// Handles a packet of a host that calls the attacker: offers a session, and answers in it.
    fn serve(&mut self, from: HostId, to: HostId, header: &Header, fields: &UdpFields) {
        let session = UdpFields {
            flags: Flags::SESSION,
            incarnation: SESSION,
            low_water: UdpFields::LOW_WATER_UNKNOWN,
            features: Features::OURS,
        };
        let id = header.sender_id.client_id();
        let about = |fields| {
            let session = SessionClaim::Exactly(fields);
            About { from: to, to: from, sender: Role::Server, id, session }
        };
        if fields.flags.contains(Flags::SESSION) {
            self.kept.begin(about(session));
        } else {
            let flags = Flags::SESSION.with(Flags::CONFIRM);
            let low_water = UdpFields::claim(fields.incarnation);
            self.offers.push_back(about(UdpFields { flags, low_water, ..session }));
        }
    }

    /// Draws a call: an own address, a server, the next id or an earlier id.
    fn about(&mut self, rng: &mut SeededRng, is_new: bool) -> About {
        self.about_from(rng, is_new, ALIASES)
    }

    /// Draws a call from one of the first `aliases` addresses.
    fn about_from(&mut self, rng: &mut SeededRng, is_new: bool, aliases: u16) -> About {
        let from = alias(self.public.own, rng.within(0..aliases));
        let to = self.public.victim(rng);
        let session = *self.sessions.get(&(from, to)).unwrap_or(&SessionClaim::Absent);
        let back = if is_new { 0 } else { 2 * rng.scale(1, self.next_id / 2) };
        let id = self.next_id - back.min(self.next_id - 2);
        self.next_id += if is_new { 2 } else { 0 };
        About { from, to, sender: Role::Client, id, session }
    }
}

impl Attacker for Client {
    fn receive(&mut self, from: HostId, to: HostId, datagram: &[u8]) {
        for packet in Packet::all(Profile::Udp, datagram).filter_map(Result::ok) {
            let Some(fields) = packet.header.udp() else { continue };
            let session = SessionClaim::Of(*fields);
            match &packet.body {
                Body::Data(data, _) if packet.header.sender_id.sender() == Role::Client => {
                    if data.offset == 0 {
                        self.serve(from, to, &packet.header, fields);
                    }
                    continue;
                }
                Body::Resend(_) => {
                    self.kept.answer(from, to, packet.header.sender_id.client_id());
                    continue;
                }
                // The server offers a session, and keeps no state of the request.
                Body::NeedAck if fields.flags.contains(Flags::CONFIRM) => {
                    self.sessions.insert((to, from), session);
                    continue;
                }
                Body::NeedAck => {}
                Body::Data(data, _) if data.offset == 0 => {}
                _ => continue,
            }
            if !HOARDS_RESPONSES && self.responses.len() < WAITING {
                let id = packet.header.sender_id.client_id();
                let about = About { from: to, to: from, sender: Role::Client, id, session };
                self.responses.push_back(about);
            }
        }
    }

    fn next_packet(&mut self, rng: &mut SeededRng) -> Option<HostilePacket> {
        if let Some(about) = self.responses.pop_front() {
            return Some(control(rng, about, Flags::NONE, 0, Body::Ack(AckList::EMPTY)));
        }
        if let Some(about) = self.offers.pop_front() {
            return Some(control(rng, about, Flags::NONE, 0, Body::NeedAck));
        }
        let has_room = self.kept.has_room(rng);
        if has_room && rng.percent(20) {
            let about = self.about_from(rng, true, KEEPING_ALIASES);
            if matches!(about.session, SessionClaim::Absent) {
                // The server offers a session for it.
                return Some(first_data(rng, about, 1));
            }
            self.kept.begin(about);
        }
        if rng.percent(80)
            && let Some(packet) = self.kept.next_packet(rng)
        {
            return Some(packet);
        }
        match rng.within(0..100) {
            0..40 => {
                let (about, length) = (self.about(rng, true), rng.scale(1, 200) as u32);
                Some(first_data(rng, about, length))
            }
            40..60 if CLAIMS => {
                let longest =
                    self.public.config.max_message().min((LONG * self.public.packet_limit).into());
                // Short messages fill the room that long messages leave.
                let length = rng.one_of(&[longest as u32, 100_000, 10_000, 1_000]);
                let about = self.about(rng, true);
                Some(first_data(rng, about, length))
            }
            _ => {
                let about = self.about(rng, false);
                // DATA is sent above: here it would start more requests.
                let kind = rng.one_of(&Kind::ALL[1..]);
                Some(forge(rng, about, kind))
            }
        }
    }
}
