//! Taps: the views that positions have of the network.
//!
//! The observer of a run feeds them. Each tap keeps the information available at its position; the
//! rest of a packet is dropped here.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use apus_sim::message::HostId;
use apus_wire::{Flags, Packet, Profile, Role};
use bytes::Bytes;

use crate::attack::{Attack, Position};

/// Maximum number of ids kept: the ids of the latest packets.
const IDS: usize = 256;
/// Maximum number of datagrams kept.
const DATAGRAMS: usize = 4_096;

/// The ends of an RPC and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RpcName {
    pub(crate) client: HostId,
    pub(crate) server: HostId,
    pub(crate) id: u64,
}

/// The ids of RPCs whose clients have sent packets in a session, the latest last. Until a call is
/// in a session, its id is the only secret that a server's packet must show.
pub(crate) type Ids = Rc<RefCell<VecDeque<RpcName>>>;

/// A datagram on a link.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) bytes: Bytes,
}

/// Datagrams to and from one host, the latest last.
pub(crate) type Link = Rc<RefCell<VecDeque<Seen>>>;

/// The taps of a run.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    position: Option<(Position, HostId)>,
    ids: Ids,
    link: Link,
}

impl Taps {
    pub(crate) fn new(attack: Option<&Attack>) -> Self {
        let position = attack.map(|attack| (attack.position, attack.target));
        Self { position, ..Self::default() }
    }

    pub(super) fn ids(&self) -> Ids {
        Rc::clone(&self.ids)
    }

    pub(super) fn link(&self) -> Link {
        Rc::clone(&self.link)
    }

    /// Records a datagram between two honest hosts.
    pub(crate) fn datagram(&self, from: HostId, to: HostId, bytes: &Bytes) {
        match self.position {
            Some((Position::Informed, _)) => {
                let mut ids = self.ids.borrow_mut();
                for packet in Packet::all(Profile::Udp, bytes).filter_map(Result::ok) {
                    let sender = packet.header.sender_id;
                    let has_session =
                        packet.header.udp().is_some_and(|f| f.flags.contains(Flags::SESSION));
                    if has_session && sender.sender() == Role::Client {
                        let id = sender.client_id();
                        push(&mut ids, IDS, RpcName { client: from, server: to, id });
                    }
                }
            }
            Some((Position::OnLink, target)) if target == from || target == to => {
                let seen = Seen { from, to, bytes: bytes.clone() };
                push(&mut self.link.borrow_mut(), DATAGRAMS, seen);
            }
            _ => {}
        }
    }
}

/// Adds an entry, and removes the oldest entry beyond the limit.
fn push<T>(queue: &mut VecDeque<T>, most: usize, entry: T) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(entry);
}
