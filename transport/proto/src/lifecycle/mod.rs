//! The lives of RPCs: the context of handlers that may begin and end them.

mod ending;

pub(crate) use ending::{
    Ending, complete_client, end_server, fail_and_disown, fail_client, fail_client_with,
    refuse_live, remove_client,
};

use crate::config::Config;
use crate::drop_reason::DropReason;
use crate::event::Event;
use crate::inbound::Inbound;
use crate::observation::Observation;
use crate::peer::{Address, PeerId};
use crate::rpc::{RpcKey, Tables};
use crate::time::Instant;
use crate::timer::Timers;
use crate::tx::{Outbound, Sender};

/// The state of an endpoint: what a handler may touch that begins or ends RPCs. A handler that needs less takes less: a
/// [`Sender`], or single tables.
#[derive(Debug)]
pub(crate) struct Context {
    /// The latest time that was given; it never decreases.
    pub(crate) now: Instant,
    pub(crate) config: Config,
    pub(crate) tables: Tables,
    pub(crate) inbound: Inbound,
    pub(crate) outbound: Outbound,
    pub(crate) timers: Timers,
    pub(crate) observation: Observation,
}

impl Context {
    /// The part of it that sends control packets.
    #[inline]
    pub(crate) fn sender(&mut self) -> Sender<'_> {
        Sender {
            now: self.now,
            config: &self.config,
            tables: &mut self.tables,
            outbound: &mut self.outbound,
            observation: &mut self.observation,
        }
    }

    /// Nanoseconds for which nothing has come for `rpc`, as far as what has arrived was read.
    pub(crate) fn silence(&self, rpc: RpcKey) -> u64 {
        self.timers.arrears.read_up_to(self.now).since(self.tables.rpcs[rpc].heard)
    }

    /// The silence after which DATA of `rpc` counts as lost (TIME-3), in nanoseconds. It doubles with each BUSY, and is
    /// short if the system has dropped packets since the peer was heard (TIME-14).
    pub(crate) fn rto(&self, rpc: RpcKey) -> u64 {
        let entry = &self.tables.rpcs[rpc];
        let rtt = &self.tables.peers[entry.peer].rtt;
        let interval = self.timers.resend_interval;
        if self.timers.arrears.overflowed_since(entry.heard) {
            return interval.in_flight(&self.config, 0).estimate(rtt);
        }
        let (least, most) = (interval.least(self.config.resend_usecs()), interval.most());
        let rto = rtt.rto(least, most);
        rto.saturating_mul(1 << entry.put_off.min(16)).min(most.max(least))
    }

    /// The peer at `address`, an unknown client, made if there is room for it and among those of its host.
    pub(crate) fn peer_for_client(&mut self, address: Address) -> Result<PeerId, DropReason> {
        if !self.tables.peers.make_room_in_host(address, self.now) {
            return Err(DropReason::HostPeers);
        }
        self.peer_for(address).ok_or(DropReason::TooManyPeers)
    }

    /// The peer at `address`, made if necessary; `None` if there are too many.
    pub(crate) fn peer_for(&mut self, address: Address) -> Option<PeerId> {
        let (peer, new) = self.tables.peers.find_or_insert(address, self.now)?;
        if new {
            self.observation.events.push_back(Event::NewPeer(address));
        }
        Some(peer)
    }
}
