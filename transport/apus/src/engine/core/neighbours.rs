//! Exchange with the transports that share the host's link: the other shards of the endpoint, and
//! the transports of its host group (docs/networks.md).

use super::root::Core;
use crate::engine::handoff::Sibling;
use apus_hostgroup::HostPlace;

/// Source of values about other transports.
enum Source<'a, S> {
    /// The page of the host, which has the shards as well.
    Page(&'a mut HostPlace),
    /// The board of the shards, while there is no page.
    Board(&'a Sibling<S>),
}

impl<'a, S> Source<'a, S> {
    fn of(host: &'a mut Option<HostPlace>, sibling: Option<&'a Sibling<S>>) -> Option<Self> {
        match host {
            Some(host) if host.is_shared() || sibling.is_none() => Some(Self::Page(host)),
            _ => sibling.map(Self::Board),
        }
    }
}

impl Core {
    /// Publishes the transport's link use, if others share the link.
    pub(in crate::engine) fn publish_link_use<S>(&mut self, sibling: Option<&Sibling<S>>) {
        let Self { network, host, time, .. } = self;
        if host.is_none() && sibling.is_none() {
            return;
        }
        let (now, published) = (time.now(), network.transport_mut().publish());
        if let Some(sibling) = sibling {
            sibling.publish_link_use(now, &published);
        }
        if let Some(host) = &mut *host {
            host.publish(now, &published);
        }
        match Source::of(host, sibling) {
            Some(Source::Page(host)) => host.exchange_lengths(now, network.transport_mut()),
            Some(Source::Board(sibling)) => sibling.exchange_lengths(now, network.transport_mut()),
            None => {}
        }
    }

    /// Returns the number of transports of the host group that share the link, this one included; 0
    /// without a place in a group.
    pub(crate) fn link_sharers(&self) -> usize {
        self.host.as_ref().filter(|host| host.is_shared()).map_or(0, HostPlace::sharers)
    }

    /// Reads the link use of the others.
    pub(in crate::engine) fn observe_neighbours<S>(&mut self, sibling: Option<&Sibling<S>>) {
        let Self { network, host, time, .. } = self;
        match Source::of(host, sibling) {
            Some(Source::Page(host)) => {
                host.read(time.now(), |neighbours| {
                    network.transport_mut().observe_neighbours(neighbours);
                });
            }
            Some(Source::Board(sibling)) => {
                sibling.neighbours(|neighbours| {
                    network.transport_mut().observe_neighbours(neighbours);
                });
            }
            None => {}
        }
    }
}
