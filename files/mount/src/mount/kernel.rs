//! The kernel's side of a mount: reads requests, hands them to the core, sends its replies.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use apus_fs_core::client::{Caller, Client, Clock, OpToken, Operation, Reply};
use apus_fs_core::wire::{Errno as WireErrno, Ino};
use apus_fuse::codec::{self, InitFlags, Request};
use apus_fuse::{
    Errno, Mount, MountOptions, Notifier, ReadError, ReadOutcome, RequestBuffer, Session,
    SessionSettings, Unmount,
};

use super::attributes::errno;
use super::error::MountFailure;
use super::kernel_read_ahead;
use super::operations::{Task, task};
use super::replies::{self, Shape};
use super::settings::MountSettings;
use crate::stations;

/// Requests read before the network is polled. Chosen by us: more than one thread has outstanding,
/// and 64 times 10 µs are short compared with a call.
const BURST: usize = 64;

/// First version of the protocol in which the kernel can be made to look up all names again.
const DROPS_NAMES: u32 = 44;

/// Operations of this process itself have odd numbers: the numbers of the kernel's requests are
/// even (`FUSE_REQ_ID_STEP`).
pub(super) const OWN_OPERATION: OpToken = OpToken(1);

/// The caller of requests that the kernel makes on its own behalf.
pub(super) const NO_CALLER: Caller = Caller { uid: 0, gid: 0 };

/// A mounted directory, and the requests of the kernel that are unanswered.
pub(super) struct Kernel {
    // Dropped first: the connection ends after the mount.
    mount: Option<Mount>,
    session: Session,
    buffer: RequestBuffer,
    shapes: HashMap<OpToken, Shape>,
}

impl Kernel {
    /// Mounts, and negotiates the protocol with the kernel.
    ///
    /// # Errors
    ///
    /// The mount is refused, or the kernel is too old.
    pub(super) fn mount(settings: &MountSettings) -> Result<Self, MountFailure> {
        let mut options = MountOptions::default();
        options.read_only = settings.read_only;
        options.allow_other = settings.allow_other;
        options.fs_name.clone_from(&settings.source);
        let (mount, device) = Mount::new(&settings.path, &options)?;
        let mut wanted = SessionSettings::default();
        // See `notifications`: pages that the kernel has not dropped yet are not used after a
        // change.
        wanted.flags.remove(InitFlags::EXPLICIT_INVAL_DATA);
        wanted.flags.insert(InitFlags::AUTO_INVAL_DATA);
        // Files that are open for writing bypass the kernel's cache, and can be mapped all the
        // same.
        wanted.flags.insert(InitFlags::DIRECT_IO_ALLOW_MMAP);
        let session =
            Session::new(device, wanted).map_err(|source| MountFailure::Session { source })?;
        let mut buffer = RequestBuffer::new(&wanted);
        while session.negotiated().is_none() {
            // The first request is INIT, and the kernel sends no other before its reply.
            if matches!(session.try_read(&mut buffer)?, ReadOutcome::Idle) {
                session.wait(None).map_err(ReadError::System)?;
            }
        }
        kernel_read_ahead::raise(mount.path());
        let shapes = HashMap::new();
        Ok(Self { mount: Some(mount), session, buffer, shapes })
    }

    /// Returns the mount point, as an absolute path without symbolic links.
    pub(super) fn path(&self) -> Option<&Path> {
        self.mount.as_ref().map(Mount::path)
    }

    /// Returns whether the kernel can be made to look up all names again.
    pub(super) fn drops_names(&self) -> bool {
        self.session.negotiated().is_some_and(|agreed| agreed.minor >= DROPS_NAMES)
    }

    /// Returns a sender of notifications.
    pub(super) fn notifier(&self) -> Notifier {
        self.session.notifier()
    }

    /// Hands a burst of requests to the core. Returns whether there was any.
    ///
    /// # Errors
    ///
    /// [`ReadError`]: the connection has ended.
    pub(super) fn serve(&mut self, client: &mut Client, clock: &Clock) -> Result<bool, ReadError> {
        let Self { session, buffer, shapes, .. } = self;
        for count in 0..BURST {
            match session.try_read(buffer)? {
                ReadOutcome::Idle => return Ok(count > 0),
                ReadOutcome::Handled => {}
                ReadOutcome::Request(request) => {
                    let unique = request.header.unique;
                    // A reply after the end of the connection is not an error of the mount.
                    match begin(client, clock, shapes, &request) {
                        Begun::Later => {}
                        Begun::Answered(Ok(())) => {
                            let _ = session.reply(unique, &codec::Reply::Empty);
                        }
                        Begun::Answered(Err(error)) => {
                            let _ = session.fail(unique, error);
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// Sends the core's reply to a request.
    pub(super) fn reply(
        &mut self,
        client: &mut Client,
        clock: &Clock,
        operation: OpToken,
        result: &Result<Reply, WireErrno>,
    ) {
        stations::reply(operation, result.as_ref().map_or_else(|error| error.0.into(), |_| 0));
        let Some(shape) = self.shapes.remove(&operation) else {
            let nodes = result.as_ref().map(replies::references).unwrap_or_default();
            return forget(client, clock, nodes);
        };
        match result {
            Ok(reply) => {
                let untaken = replies::send(&self.session, operation.0, shape, reply);
                forget(client, clock, untaken);
            }
            // A request that was interrupted by the end of the connection needs no reply.
            Err(error) => {
                let _ = self.session.fail(operation.0, errno(*error));
            }
        }
    }

    /// Removes the mount from its path. Files that are open stay so while this side serves them.
    pub(super) fn detach(&mut self) {
        let Some(mount) = self.mount.take() else { return };
        // If the mount is already gone, no action is needed; any other failure is left to the
        // administrator.
        let _ = mount.unmount(Unmount::Lazy);
    }
}

impl Drop for Kernel {
    /// Answers all unanswered requests (FSRUN-2): a notification that waits for a reply would keep
    /// the process from ending.
    fn drop(&mut self) {
        self.detach();
        self.session.fail_all(Errno::NOTCONN);
    }
}

impl AsFd for Kernel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }
}

/// Outcome of starting a request.
enum Begun {
    /// The reply follows later, or never.
    Later,
    /// This is the reply.
    Answered(Result<(), Errno>),
}

/// Hands a request to the core.
fn begin(
    client: &mut Client,
    clock: &Clock,
    shapes: &mut HashMap<OpToken, Shape>,
    request: &Request<'_>,
) -> Begun {
    let header = &request.header;
    let token = OpToken(header.unique);
    match task(header.node, &request.operation) {
        Ok(Task::Submit(operation, shape)) => {
            // It alone has no reply.
            if !matches!(operation, Operation::Forget { .. }) {
                shapes.insert(token, shape);
            }
            let caller = Caller { uid: header.uid, gid: header.gid };
            stations::operation(token, operation.kind());
            client.submit(clock, token, caller, operation);
            Begun::Later
        }
        Ok(Task::Forget(list)) => {
            for (node, count) in list.iter() {
                let operation = Operation::Forget { node: Ino(node), count };
                client.submit(clock, token, NO_CALLER, operation);
            }
            Begun::Later
        }
        Ok(Task::Interrupt(unique)) => {
            client.interrupt(clock, OpToken(unique));
            Begun::Later
        }
        Ok(Task::Done) => Begun::Answered(Ok(())),
        Err(error) => Begun::Answered(Err(error)),
    }
}

/// Gives references back (FSRUN-3).
fn forget(client: &mut Client, clock: &Clock, nodes: Vec<Ino>) {
    for node in nodes {
        let operation = Operation::Forget { node, count: 1 };
        client.submit(clock, OWN_OPERATION, NO_CALLER, operation);
    }
}
