//! The owner of a mount: one thread between the kernel, the core and the server.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use apus::introspection::PublishedMetrics;
use apus_fs_core::client::{
    Client, ClientEffect, ClientMetrics, ClientSettings, ClientStatus, LostChanges, NotifyToken,
    OpToken, Operation, Reply,
};
use apus_fs_core::store::ClientId;
use apus_fs_core::wire::{Errno, Ino};
use apus_fuse::ReadError;
use bytes::Bytes;

use super::attributes::errno;
use super::error::MountFailure;
use super::kernel::{Kernel, NO_CALLER, OWN_OPERATION};
use super::lost_changes;
use super::network::Network;
use super::notifications::Notifications;
use super::settings::MountSettings;
use crate::Report;
use crate::bulk::BulkQueue;
use crate::clock::{boot_time as now, clock};
use crate::mailbox::Mailbox;
use crate::metrics;
use crate::poll::{Awaited, Idleness};
use crate::stations;
use crate::status::{Role, Status, StatusService};
use crate::time_slice;

/// Time for the message to the server that the mount has ended. Chosen by us: if it is lost, the
/// session ends with its term.
const FAREWELL: Duration = Duration::from_secs(1);

/// Time after which the mount reports why it has not ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time for the owner to answer a question about its state. Clients of [`crate::status`] wait
/// longer.
const STATUS_TIME: Duration = Duration::from_secs(2);

/// Warnings that are kept until the mount is usable. The last one is a part of the error if it
/// never is.
const MOST_WARNINGS: usize = 16;

/// Request of another thread to the owner.
#[derive(Debug)]
enum Letter {
    Stop,
    Notified(NotifyToken),
    Status(SyncSender<ClientStatus>),
    Metrics(SyncSender<ClientMetrics>),
    /// Lost changes were kept, or could not be; contains the line to report.
    Kept(String),
}

impl From<NotifyToken> for Letter {
    fn from(token: NotifyToken) -> Self {
        Self::Notified(token)
    }
}

/// Ends a [`Mounted`] from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Mailbox<Letter>>);

impl Stopper {
    /// Has the mount disappear from its path, and end when all changes are at the server.
    pub fn stop(&self) {
        self.0.send(Letter::Stop);
    }
}

/// A mounted directory of a server.
pub struct Mounted {
    path: PathBuf,
    client: Client,
    network: Network,
    /// `None` when the connection to the kernel has ended.
    kernel: Option<Kernel>,
    /// Replies of many bytes.
    bulk: BulkQueue<(OpToken, Result<Reply, Errno>)>,
    notifications: Option<Notifications>,
    mailbox: Arc<Mailbox<Letter>>,
    idleness: Idleness,
    report: Report,
    /// Warnings that the client collected before it was usable.
    warnings: Vec<String>,
    /// Reply to [`OWN_OPERATION`].
    own_reply: Option<Result<Reply, Errno>>,
    /// Whether the server has responded for the first time.
    is_greeted: bool,
    is_stopping: bool,
    lost_changes: PathBuf,
    /// Threads that write lost changes to the disk.
    writers: Vec<JoinHandle<()>>,
    _status: StatusService,
    _metrics: PublishedMetrics,
}

impl Mounted {
    /// Mounts, and waits until the server has responded. The calling thread has short time slices
    /// from then on (see `time_slice`).
    ///
    /// # Errors
    ///
    /// [`MountFailure`]; no mount is left then.
    pub fn new(settings: &MountSettings, report: Report) -> Result<Self, MountFailure> {
        let system = |operation| move |source| MountFailure::System { operation, source };
        // If the system refuses it, answers are merely later while other threads are busy.
        let _ = time_slice::shorten();
        let mailbox = Arc::new(Mailbox::new().map_err(system("create an event descriptor"))?);
        let network = Network::open(settings)?;
        stations::name_values();
        let kernel = Kernel::mount(settings)?;
        let path = kernel.path().unwrap_or(&settings.path).to_owned();
        let settings = &MountSettings { path, ..settings.clone() };
        let notifications = Notifications::start(&kernel.notifier(), mailbox.clone())
            .map_err(system("start a thread"))?;
        let mut id = [0; 16];
        getrandom::fill(&mut id)
            .map_err(std::io::Error::other)
            .map_err(system("draw a random number"))?;
        let client = ClientSettings {
            id: ClientId(id),
            name: name(settings),
            export: settings.export.clone().into(),
            read_only: settings.read_only,
            lost: settings.lost,
            kernel_drops_names: kernel.drops_names(),
        };
        let mut mounted = Self {
            path: settings.path.clone(),
            client: Client::new(client, &clock()),
            network,
            kernel: Some(kernel),
            bulk: BulkQueue::new(),
            notifications: Some(notifications),
            _status: status_service(settings, mailbox.clone()),
            _metrics: metrics::publish(mailbox.clone(), Letter::Metrics, metrics::mount_families),
            mailbox,
            idleness: Idleness::new(settings.poll),
            report,
            warnings: Vec::new(),
            own_reply: None,
            is_greeted: false,
            is_stopping: false,
            lost_changes: settings.lost_changes.clone(),
            writers: Vec::new(),
        };
        mounted.greet(settings.first_response)?;
        Ok(mounted)
    }

    /// Returns the mount point, as an absolute path without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a handle that ends the mount from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.mailbox.clone())
    }

    /// Serves until the file system is unmounted or stopped, and all changes are at the server
    /// (FSRUN-4).
    ///
    /// # Errors
    ///
    /// [`MountFailure`]: the kernel or the network fails. Changes that were not at the server are
    /// lost.
    pub fn run(mut self) -> Result<(), MountFailure> {
        while self.kernel.is_some() && !self.is_stopping {
            self.turn(None)?;
        }
        self.flush()?;
        self.leave()
    }

    /// Waits until the server has sent the attributes of the root.
    fn greet(&mut self, limit: Duration) -> Result<(), MountFailure> {
        let began = now();
        let deadline = began + limit;
        let root = Operation::GetAttributes { node: Ino::ROOT };
        self.client.submit(&clock(), OWN_OPERATION, NO_CALLER, root);
        let server = self.network.server();
        loop {
            match self.own_reply.take() {
                Some(Ok(_)) => {
                    self.is_greeted = true;
                    let report = &self.report;
                    self.warnings.drain(..).for_each(|warning| report(&warning));
                    return Ok(());
                }
                // `Lost::Error` may be shorter than the time that the first response has.
                Some(Err(Errno::TIMEDOUT)) => {
                    let (waited, warnings) = (now() - began, std::mem::take(&mut self.warnings));
                    return Err(MountFailure::Silent { server, waited, warnings });
                }
                Some(Err(error)) => {
                    let (source, warnings) = (errno(error), std::mem::take(&mut self.warnings));
                    return Err(MountFailure::Refused { server, source, warnings });
                }
                None if now() >= deadline || self.kernel.is_none() || self.is_stopping => {
                    let (waited, warnings) = (limit, std::mem::take(&mut self.warnings));
                    return Err(MountFailure::Silent { server, waited, warnings });
                }
                None => self.turn(Some(deadline))?,
            }
        }
    }

    /// Sends all changes to the server. Files that are still open are served meanwhile.
    fn flush(&mut self) -> Result<(), MountFailure> {
        if let Some(kernel) = &mut self.kernel {
            kernel.detach();
        }
        let impatient_at = now() + PATIENCE;
        let mut has_said_so = false;
        self.client.flush(&clock());
        while !self.client.is_clean() {
            if !has_said_so && now() >= impatient_at {
                has_said_so = true;
                let server = self.network.server();
                (self.report)(&format!(
                    "changes are not at {server} yet; the mount ends when they are, and another signal ends it at once"
                ));
            }
            self.turn((!has_said_so).then_some(impatient_at))?;
            self.client.flush(&clock());
        }
        while self.reply_bulk(&clock()) {}
        Ok(())
    }

    /// Ends the session with the server.
    fn leave(mut self) -> Result<(), MountFailure> {
        self.notifications = None;
        self.kernel = None;
        self.client.close(&clock());
        let deadline = now() + FAREWELL;
        self.carry_out();
        while self.network.outstanding() > 0 && now() < deadline {
            self.turn(Some(deadline))?;
        }
        for writer in std::mem::take(&mut self.writers) {
            // A panic of the thread has been reported already.
            let _ = writer.join();
        }
        self.read_letters();
        Ok(())
    }

    /// One round: serves the kernel and the network, and sleeps for at most `limit` if there was no
    /// work.
    fn turn(&mut self, limit: Option<Duration>) -> Result<(), MountFailure> {
        let network = |source| MountFailure::Network { source };
        let clock = clock();
        let mut worked = self.serve_kernel()?;
        // Send the calls of waiting programs before handing out messages that arrived for others.
        worked |= self.carry_out();
        worked |= self.reply_bulk(&clock);
        worked |= self.network.receive(&mut self.client, &clock).map_err(network)?;
        worked |= self.read_letters();
        if self.client.next_deadline().is_some_and(|deadline| deadline <= clock.now) {
            self.client.poll(&clock);
        }
        worked |= self.carry_out();
        if worked {
            self.idleness.end();
            return Ok(());
        }
        let is_calling = self.network.outstanding() > 0;
        let awaited = if is_calling { Awaited::Response } else { Awaited::Request };
        if !self.idleness.may_sleep(awaited) {
            return Ok(());
        }
        let deadlines = [self.client.next_deadline(), limit];
        let deadline = deadlines.into_iter().flatten().min();
        let timeout = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_sub(now()));
        let own = self.mailbox.as_fd();
        let mut companions = vec![own];
        companions.extend(self.kernel.as_ref().map(AsFd::as_fd));
        self.network.wait(&mut self.client, &companions, timeout).map_err(network)
    }

    /// Returns whether there was a request of the kernel.
    fn serve_kernel(&mut self) -> Result<bool, MountFailure> {
        let Some(kernel) = &mut self.kernel else { return Ok(false) };
        match kernel.serve(&mut self.client, &clock()) {
            Ok(worked) => Ok(worked),
            Err(ReadError::Unmounted | ReadError::Aborted) => {
                self.kernel = None;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether there was a letter.
    fn read_letters(&mut self) -> bool {
        let letters = self.mailbox.take();
        let any = !letters.is_empty();
        for letter in letters {
            match letter {
                Letter::Stop => self.is_stopping = true,
                Letter::Kept(line) => (self.report)(&line),
                Letter::Notified(token) => self.client.notified(&clock(), token),
                // The requesting thread may have given up.
                Letter::Status(sender) => drop(sender.try_send(self.client.status())),
                Letter::Metrics(sender) => drop(sender.try_send(self.client.metrics())),
            }
        }
        any
    }

    /// Sends one reply of many bytes. Returns whether there was any.
    fn reply_bulk(&mut self, clock: &apus_fs_core::client::Clock) -> bool {
        let Some((operation, result)) = self.bulk.pop() else { return false };
        self.reply(clock, operation, &result);
        true
    }

    /// Carries out the core's requests. Returns whether there were any.
    fn carry_out(&mut self) -> bool {
        let mut any = false;
        let clock = clock();
        loop {
            while let Some(effect) = self.client.take_effect() {
                any = true;
                self.carry_out_one(&clock, effect);
            }
            // A call that fails at once may cause further effects.
            if !self.network.send(&mut self.client, &clock) {
                return any;
            }
        }
    }

    fn carry_out_one(&mut self, clock: &apus_fs_core::client::Clock, effect: ClientEffect) {
        match effect {
            ClientEffect::Reply { operation, result } if operation == OWN_OPERATION => {
                self.own_reply = Some(result);
            }
            ClientEffect::Reply { operation, result } => {
                let bytes = bytes_of(&result);
                if let Some((operation, result)) = self.bulk.admit(bytes, (operation, result)) {
                    self.reply(clock, operation, &result);
                }
            }
            ClientEffect::Call { call, kind, header, payload } => {
                stations::call(call, kind);
                self.network.call(call, header, payload);
            }
            ClientEffect::Answer { callback, message } => self.network.answer(callback, message),
            ClientEffect::Invalidate { notification, items } => {
                let thread = self.notifications.as_ref();
                if !thread.is_some_and(|thread| thread.send(notification, items)) {
                    // A kernel that is not connected has an empty cache.
                    self.client.notified(clock, notification);
                }
            }
            ClientEffect::Warn(text) if !self.is_greeted && self.warnings.len() < MOST_WARNINGS => {
                self.warnings.push(text);
            }
            ClientEffect::Warn(text) => (self.report)(&text),
            ClientEffect::Lost(lost) => self.keep(lost),
        }
    }

    /// Keeps lost changes where a person finds them. In a thread, for the disk may be slow, or a
    /// directory of this very mount.
    fn keep(&mut self, lost: LostChanges) {
        let (folder, mount) = (self.lost_changes.clone(), self.path.clone());
        let mailbox = self.mailbox.clone();
        let keep = move || {
            let line = match lost_changes::keep(&folder, &mount, &lost) {
                Ok(kept) => format!("what was lost is kept in {}", kept.display()),
                Err(error) => {
                    format!("what was lost could not be kept in {}: {error}", folder.display())
                }
            };
            mailbox.send(Letter::Kept(line));
        };
        match std::thread::Builder::new().name("lost changes".to_owned()).spawn(keep) {
            Ok(thread) => self.writers.push(thread),
            Err(error) => (self.report)(&format!("what was lost is not kept: {error}")),
        }
    }

    fn reply(
        &mut self,
        clock: &apus_fs_core::client::Clock,
        operation: OpToken,
        result: &Result<Reply, Errno>,
    ) {
        if let Some(kernel) = &mut self.kernel {
            kernel.reply(&mut self.client, clock, operation, result);
        }
    }
}

/// Returns the bytes of a file in a reply.
fn bytes_of(result: &Result<Reply, Errno>) -> u64 {
    match result {
        Ok(Reply::Data(pieces)) => pieces.iter().map(|piece| piece.len() as u64).sum(),
        _ => 0,
    }
}

/// Host and path of the mount.
fn name(settings: &MountSettings) -> Bytes {
    let host = rustix::system::uname();
    let name = format!("{}:{}", host.nodename().to_string_lossy(), settings.path.display());
    let mut name = Bytes::from(name);
    name.truncate(apus_fs_core::wire::limits::MAX_CLIENT_NAME);
    name
}

fn status_service(settings: &MountSettings, mailbox: Arc<Mailbox<Letter>>) -> StatusService {
    let status = Status {
        role: Role::Mount,
        pid: std::process::id(),
        address: settings.server,
        path: settings.path.display().to_string(),
        read_only: settings.read_only,
        mount: None,
    };
    StatusService::asking(move || {
        let (sender, answer) = sync_channel(1);
        mailbox.send(Letter::Status(sender));
        let mount = answer.recv_timeout(STATUS_TIME).map_err(|error| error.to_string())?;
        Ok(Status { mount: Some(mount), ..status.clone() })
    })
}
