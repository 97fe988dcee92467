//! Inbox of a loopback host: its queued packets and reports.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::{Ecn, NetworkError};

/// A packet on the loopback network.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) from: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: Vec<u8>,
}

/// A queued report.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) peer: SocketAddr,
    pub(super) error: NetworkError,
    pub(super) packet: Vec<u8>,
}

/// Packets and reports for one host, with a descriptor that is readable while there are any.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Maximum number of packets, and of reports (LOOPBACK-2).
    capacity: usize,
    queues: Mutex<Queues>,
    /// Above zero exactly while packets or reports are queued (LOOPBACK-1). Changed only under the
    /// lock of `queues`.
    signal: OwnedFd,
}

#[derive(Debug, Default)]
struct Queues {
    packets: VecDeque<Packet>,
    reports: VecDeque<Report>,
}

impl Queues {
    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.reports.is_empty()
    }
}

impl Inbox {
    pub(super) fn new(capacity: usize) -> Self {
        let signal = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .expect("the process has a file descriptor left");
        Self { capacity, queues: Mutex::default(), signal }
    }

    /// Adds a packet; returns whether there was room.
    pub(super) fn put(&self, packet: Packet) -> bool {
        self.change(|queues| {
            let room = queues.packets.len() < self.capacity;
            if room {
                queues.packets.push_back(packet);
            }
            room
        })
    }

    /// Adds a report; drops it if there is no room.
    pub(super) fn put_report(&self, report: Report) {
        self.change(|queues| {
            if queues.reports.len() < self.capacity {
                queues.reports.push_back(report);
            }
        });
    }

    /// Moves up to `limit` packets to `packets`.
    pub(super) fn take(&self, limit: usize, packets: &mut VecDeque<Packet>) {
        self.change(|queues| {
            let count = limit.min(queues.packets.len());
            packets.extend(queues.packets.drain(..count));
        });
    }

    pub(super) fn take_reports(&self) -> VecDeque<Report> {
        self.change(|queues| std::mem::take(&mut queues.reports))
    }

    /// Applies `change` and maintains LOOPBACK-1.
    fn change<R>(&self, change: impl FnOnce(&mut Queues) -> R) -> R {
        let mut queues = self.lock();
        let was_empty = queues.is_empty();
        let result = change(&mut queues);
        match (was_empty, queues.is_empty()) {
            (true, false) => self.raise(),
            (false, true) => self.lower(),
            (true, true) | (false, false) => {}
        }
        result
    }

    fn raise(&self) {
        rustix::io::write(&self.signal, &1_u64.to_ne_bytes())
            .expect("LOOPBACK-1: the count was zero");
    }

    fn lower(&self) {
        rustix::io::read(&self.signal, &mut [0; 8]).expect("LOOPBACK-1: the count was above zero");
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }
}
