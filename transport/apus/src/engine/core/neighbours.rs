//! What this transport tells the others that share the host's link, and what it learns from them: the other shards of its
//! endpoint, and the transports of its host group (docs/networks.md).

use super::root::Core;
use crate::engine::siblings::Sibling;
use apus_hostgroup::HostPlace;

/// Where a transport learns what the others do.
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
    /// Publishes what the transport does with the link, if others share it.
    pub(in crate::engine) fn publish_link_use<S>(&mut self, sibling: Option<&Sibling<S>>) {
        let Self { network, host, time, .. } = self;
        if host.is_none() && sibling.is_none() {
            return;
        }
        let (now, published) = (time.now(), network.publish());
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

    /// Returns the number of transports of the host group that share the link, this one included; 0 without a place in a
    /// group.
    pub(crate) fn link_sharers(&self) -> usize {
        self.host.as_ref().filter(|host| host.is_shared()).map_or(0, HostPlace::sharers)
    }

    /// Learns what the others do.
    pub(in crate::engine) fn observe_neighbours<S>(&mut self, sibling: Option<&Sibling<S>>) {
        let Self { network, host, time, .. } = self;
        match Source::of(host, sibling) {
            Some(Source::Page(host)) => {
                host.read(time.now(), |neighbours| network.observe_neighbours(neighbours));
            }
            Some(Source::Board(sibling)) => {
                sibling.neighbours(|neighbours| network.observe_neighbours(neighbours));
            }
            None => {}
        }
    }
}
