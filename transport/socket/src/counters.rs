//! Counters of a driver.
//!
//! Each half has its own counters, so that no cache line is written by two threads, and counts with
//! plain loads and stores: each counter has one writer, and a reader may see an old value.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a driver since it was opened; they stay valid after the driver was split.
#[derive(Debug, Default)]
pub struct SocketCounters {
    pub(crate) transmit: Transmitted,
    pub(crate) receive: Received,
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // Not fetch_add: its locked instruction would cost more than the rest of this code.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($part:ident $list:ident: $(#[$about:meta])* $type:ident { $($(#[doc = $doc:literal])* $name:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        #[repr(align(128))] // Two lines: processors fetch them in pairs.
        pub(crate) struct $type { $(pub(crate) $name: Count,)* }

        impl SocketCounters {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $name(&self) -> u64 {
                    self.$part.$name.get()
                }
            )*

            /// Name and documentation of each counter of this half.
            const $list: &[(&'static str, &[&'static str])] = &[$((stringify!($name), &[$($doc),*]),)*];
        }

        impl $type {
            /// Returns the name and value of each counter.
            fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), self.$name.get()),)*].into_iter()
            }
        }
    };
}

counters! {
    transmit TRANSMITTED:
    /// Written by the transmitting half.
    Transmitted {
        /// System calls that sent.
        send_calls,
        /// Datagrams passed to the system; a merged datagram counts once.
        datagrams_sent,
        /// Packets in these datagrams.
        packets_sent,
        /// Packets refused because of their destination, each with a report.
        packets_refused,
        /// Packets dropped because they were passed to the driver without room.
        packets_dropped,
        /// Merged datagrams refused by the system; their packets were sent one by one.
        segmentation_refused,
        /// Sends of several datagrams refused by the system; they were sent one by one.
        batches_refused,
        /// Changes of a socket's default traffic class.
        class_changes,
        /// Connected sockets opened for sends to frequent peers.
        peers_connected,
        /// System calls that sent through a connected socket.
        connected_sends,
        /// System calls that sent from a port other than the driver's (`spray_ports`).
        sprayed_sends,
    }
}

counters! {
    receive RECEIVED:
    /// Written by the receiving half.
    Received {
        /// System calls that received, including calls that found no datagram.
        receive_calls,
        /// Datagrams received; a merged datagram counts once.
        datagrams_received,
        /// Datagrams as sent, before the system merged them. Packets that share a datagram count
        /// once.
        packets_received,
        /// Datagrams discarded because they or their control messages were truncated, or because
        /// they were for another process.
        datagrams_cut,
        /// Datagrams that the system dropped because the socket's buffer was full. The system
        /// reports them with the next datagram that arrives.
        datagrams_overflowed,
        /// Reads of the error queue.
        error_reads,
        /// Receives of several datagrams refused by the system; they were received one by one.
        receive_batches_refused,
    }
}

impl SocketCounters {
    /// Returns the name of each counter and its documentation, line by line, in the order of
    /// [`apus_driver::DriverCounters::all`].
    pub fn metadata() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        Self::TRANSMITTED.iter().chain(Self::RECEIVED).copied()
    }
}

impl apus_driver::DriverCounters for SocketCounters {
    fn all(&self) -> Vec<(&'static str, u64)> {
        self.transmit.all().chain(self.receive.all()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_driver::DriverCounters as _;

    #[test]
    fn every_counter_has_documentation() {
        let counters = SocketCounters::default();
        counters.receive.datagrams_overflowed.add(3);
        let names: Vec<_> = counters.all().into_iter().map(|(name, _)| name).collect();
        let documented: Vec<_> = SocketCounters::metadata().map(|(name, _)| name).collect();
        assert_eq!(names, documented);
        assert!(SocketCounters::metadata().all(|(_, help)| !help.is_empty()));
        assert!(counters.all().contains(&("datagrams_overflowed", 3)));
    }
}
