//! Client position: has its own addresses, and implements enough of the protocol to get sessions.
//!
//! It makes short calls, announces long messages that it does not send, keeps servers waiting for
//! acknowledgments, calls from many ports, and sends control packets of all kinds in its sessions,
//! as configured in [`abilities`](super::abilities).

use std::collections::{BTreeMap, VecDeque};

use apus_sim::message::HostId;
use apus_wire::{AckList, Body, Flags, Kind, Packet, Profile, Role};

use super::abilities::{ALIASES, CLAIMS, HOARDS_RESPONSES};
use super::contract::{Attacker, HostilePacket};
use super::forge::{About, SessionClaim, control, first_data, forge};
use super::public::Public;
use crate::address::alias;
use crate::generator::random::SeededRng;

/// Maximum number of responses that await acknowledgment.
const WAITING: usize = 4_096;
/// Length of the longest message that is announced, as a multiple of the longest payload of a
/// packet.
const LONG: u32 = 2_000;

/// An attacker that receives the packets sent to its addresses.
#[derive(Debug)]
pub(super) struct Client {
    public: Public,
    /// Sessions by own address and server.
    sessions: BTreeMap<(HostId, HostId), SessionClaim>,
    /// Responses that servers keep until they are acknowledged.
    responses: VecDeque<About>,
    next_id: u64,
}

impl Client {
    pub(super) const fn new(public: Public) -> Self {
        let responses = VecDeque::new();
        Self { public, sessions: BTreeMap::new(), responses, next_id: 2 }
    }

    /// Draws a call: an own address, a server, the next id or an earlier id.
    fn about(&mut self, rng: &mut SeededRng, is_new: bool) -> About {
        let from = alias(self.public.own, rng.within(0..ALIASES));
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
