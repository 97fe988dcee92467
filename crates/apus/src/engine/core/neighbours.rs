//! What this transport tells the others that share the host's link, and what it learns from them: the other shards of its
//! endpoint, and the transports of its host group (docs/adr/0055).

use super::root::Core;
use crate::engine::siblings::Sibling;
use apus_neighbours::HostPlace;

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
        // The page of the host has the shards as well.
        match (&*host, sibling) {
            (Some(host), sibling) if host.is_shared() || sibling.is_none() => {
                host.exchange_lengths(now, network.transport_mut());
            }
            (_, Some(sibling)) => sibling.exchange_lengths(now, network.transport_mut()),
            _ => {}
        }
    }

    /// Returns the number of transports of the host group that share the link, this one included; 0 without a place in a
    /// group.
    pub(crate) fn link_sharers(&self) -> usize {
        self.host.as_ref().filter(|host| host.is_shared()).map_or(0, HostPlace::sharers)
    }

    /// Learns what the others do. The page of the host has the shards as well; their own board serves while there is no page.
    pub(in crate::engine) fn observe_neighbours<S>(&mut self, sibling: Option<&Sibling<S>>) {
        let Self { network, host, time, .. } = self;
        match (host, sibling) {
            (Some(host), sibling) if host.is_shared() || sibling.is_none() => {
                host.read(time.now(), |neighbours| network.observe_neighbours(neighbours));
            }
            (_, Some(sibling)) => {
                sibling.neighbours(|neighbours| network.observe_neighbours(neighbours));
            }
            _ => {}
        }
    }
}
