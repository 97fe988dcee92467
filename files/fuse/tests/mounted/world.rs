//! A mounted file system, its thread, and the end of both.

use crate::server::MemoryServer;
use apus_fuse::{
    Mount, MountError, MountMethod, MountOptions, ReadError, RequestBuffer, Session,
    SessionSettings, Unmount,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) session: Arc<Session>,
    pub(crate) server: Arc<Mutex<MemoryServer>>,
    mount: Option<Mount>,
    thread: Option<JoinHandle<ReadError>>,
    folder: TempDir,
}

impl World {
    /// Mounts; prints the reason and returns `None` if that is not possible here.
    pub(crate) fn new() -> Option<Self> {
        Self::with(&MountOptions::default(), MemoryServer::default(), SessionSettings::default())
    }

    pub(crate) fn with(
        options: &MountOptions,
        server: MemoryServer,
        settings: SessionSettings,
    ) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let (mount, device) = match Mount::new(folder.path(), options) {
            Ok(mounted) => mounted,
            Err(
                error @ (MountError::NoDevice { .. }
                | MountError::NotPermitted { .. }
                | MountError::NoHelper { .. }
                | MountError::HelperRefused { .. }),
            ) => {
                eprintln!("SKIPPED: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let session = Arc::new(Session::new(device, settings).unwrap());
        let server = Arc::new(Mutex::new(server));
        let thread = {
            let (session, server) = (Arc::clone(&session), Arc::clone(&server));
            std::thread::spawn(move || {
                let mut buffer = RequestBuffer::new(&settings);
                loop {
                    let step = server.lock().unwrap().step(&session, &mut buffer);
                    match step {
                        Ok(true) => {}
                        Ok(false) => drop(session.wait(None)),
                        Err(error) => return error,
                    }
                }
            })
        };
        Some(Self { session, server, mount: Some(mount), thread: Some(thread), folder })
    }

    /// A path in the mount.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until `condition` holds; the harness's watchdog ends a wait that does not end.
    pub(crate) fn until(&self, mut condition: impl FnMut(&Session, &MemoryServer) -> bool) {
        while !condition(&self.session, &self.server.lock().unwrap()) {
            std::thread::yield_now();
        }
    }

    /// Unmounts, and returns how the session ended.
    pub(crate) fn unmount(mut self, how: Unmount) -> ReadError {
        self.mount.take().unwrap().unmount(how).unwrap_or_else(|(_, error)| panic!("{error}"));
        self.thread.take().unwrap().join().unwrap()
    }

    /// Takes the mount out; the thread then ends when the mount does.
    pub(crate) fn take_mount(&mut self) -> Mount {
        self.thread = None;
        self.mount.take().unwrap()
    }

    pub(crate) fn mount(&self) -> &Mount {
        self.mount.as_ref().unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.mount.take());
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            assert_eq!(thread.join().unwrap(), ReadError::Unmounted);
        }
    }
}

/// Options with a method.
pub(crate) fn by(method: MountMethod) -> MountOptions {
    let mut options = MountOptions::default();
    options.method = method;
    options
}

/// A server whose names and attributes are never cached.
pub(crate) fn uncached() -> MemoryServer {
    let mut server = MemoryServer::default();
    server.nodes.timeout = Duration::ZERO;
    server
}
