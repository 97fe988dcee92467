//! The lives of RPCs: the context of handlers that may begin and end them.

mod ending;

pub(crate) use ending::{
    Ending, complete_client, end_server, fail_and_disown, fail_client, fail_client_with,
    refuse_live, remove_client,
};

use crate::config::Config;
use crate::event::Event;
use crate::inbound::Inbound;
use crate::observation::Observation;
use crate::peer::{Address, PeerId};
use crate::rpc::Tables;
use crate::time::Instant;
use crate::timer::Timers;
use crate::tx::{Outbound, Sender};

/// What a handler may touch that begins or ends RPCs: everything but the time and the configuration. A handler that
/// needs less takes less: a [`Sender`], or single tables.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// The time of the present call.
    pub(crate) now: Instant,
    pub(crate) config: &'a Config,
    pub(crate) tables: &'a mut Tables,
    pub(crate) inbound: &'a mut Inbound,
    pub(crate) outbound: &'a mut Outbound,
    pub(crate) timers: &'a mut Timers,
    pub(crate) observation: &'a mut Observation,
}

impl Context<'_> {
    /// The part of the context that sends control packets.
    #[inline]
    pub(crate) fn sender(&mut self) -> Sender<'_> {
        Sender {
            now: self.now,
            config: self.config,
            tables: self.tables,
            outbound: self.outbound,
            observation: self.observation,
        }
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
