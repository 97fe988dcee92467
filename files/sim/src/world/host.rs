//! A client's machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use apus_fs_core::client::{Client, ClientSettings, Lost, OpToken};
use apus_fs_core::store::ClientId;
use bytes::Bytes;

use super::application::{Application, Planted, Role};
use super::clock::LocalClock;
use super::event::Event;
use super::kernel::Kernel;
use crate::history::{Moment, MountId};

/// Returns the identity of the client of a mount.
pub(super) fn client_id(mount: MountId) -> ClientId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&mount.0.to_le_bytes());
    ClientId(id)
}

/// A machine with a client, or a machine that is down.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) client: Option<Client>,
    pub(super) kernel: Kernel,
    pub(super) mount: MountId,
    pub(super) address: SocketAddr,
    pub(super) clock: LocalClock,
    pub(super) applications: Vec<Application>,
    pub(super) waiting: BTreeMap<OpToken, usize>,
    pub(super) paused_until: Option<Duration>,
    /// Events of a paused machine.
    pub(super) held: Vec<Event>,
    pub(super) cut_until: Duration,
    pub(super) wake_at: Option<Duration>,
    /// When the server last handled a request, and the moment of it.
    pub(super) heard: (Duration, Moment),
    /// Locks that the client has reported as lost.
    pub(super) locks_lost: u64,
    /// The session may have ended since that moment.
    pub(super) suspect: Option<Moment>,
    /// Operations that were interrupted.
    pub(super) interrupted: BTreeSet<OpToken>,
    /// The last batch known to have failed at the server.
    pub(super) failed: u64,
    /// A change was made since the client last had all its changes at the server.
    pub(super) is_dirty: bool,
}

impl Host {
    /// Returns a machine that is down.
    pub(super) fn new(clock: LocalClock) -> Self {
        Self {
            client: None,
            kernel: Kernel::default(),
            mount: MountId(0),
            address: SocketAddr::from(([10, 0, 0, 1], 0)),
            clock,
            applications: Vec::new(),
            waiting: BTreeMap::new(),
            paused_until: None,
            held: Vec::new(),
            cut_until: Duration::ZERO,
            wake_at: None,
            heard: (Duration::ZERO, Moment(0)),
            locks_lost: 0,
            suspect: None,
            interrupted: BTreeSet::new(),
            failed: 0,
            is_dirty: false,
        }
    }

    /// Mounts. `threads` is the number of sharers; `None`: the machine only reads.
    pub(super) fn mount(
        &mut self,
        mount: MountId,
        threads: Option<usize>,
        planted: Planted,
        is_harsh: bool,
        now: Duration,
    ) {
        let settings = ClientSettings {
            id: client_id(mount),
            name: Bytes::from(mount.to_string()),
            export: Bytes::new(),
            read_only: false,
            lost: Lost::Wait,
            kernel_drops_names: true,
        };
        self.mount = mount;
        self.address = SocketAddr::from(([10, 0, 0, 1], mount.0 as u16));
        self.client = Some(Client::new(settings, &self.clock.read(now)));
        let sharers = std::iter::repeat_n(Role::Sharer, threads.unwrap_or(0));
        let roles = threads.map(|_| Role::Owner).into_iter().chain(sharers).chain([Role::Reader]);
        self.applications =
            (0..).zip(roles).map(|role| Application::new(mount, role, planted, is_harsh)).collect();
        self.kernel = Kernel::default();
        self.waiting.clear();
        self.held.clear();
        self.paused_until = None;
        self.wake_at = None;
        self.suspect = None;
        self.locks_lost = 0;
        self.interrupted.clear();
        self.failed = 0;
        self.is_dirty = false;
    }

    /// Returns whether all applications have ended, and everything is at the server.
    pub(super) fn is_done(&self) -> bool {
        let applications = self.applications.iter();
        match &self.client {
            Some(client) => client.is_clean() && applications.into_iter().all(|one| one.is_done),
            None => true,
        }
    }
}
