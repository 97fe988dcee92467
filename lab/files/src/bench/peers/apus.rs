//! The product: `apus fs serve` and `apus fs mount` in separate processes.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use apus::PollMode;
use apus_fs::status::{self, ClientStatus};
use apus_measure::program;
use apus_testbed::error::{Doing, Error};

use super::{Peer, Site};
use crate::bench::interrupt::Interrupt;
use crate::bench::service::{Service, words};

/// Interval between queries whether a mount's changes are at the server.
const INTERVAL: Duration = Duration::from_micros(200);

/// A directory that is served, and mounted.
#[derive(Debug)]
pub(in crate::bench) struct Apus {
    program: PathBuf,
    client: Vec<OsString>,
    poll: String,
    address: String,
    folder: PathBuf,
    mount_point: PathBuf,
    interrupt: Interrupt,
    // Declared before the server: it is dropped first, and sends its changes.
    mount: Option<Service>,
    _server: Service,
}

impl Apus {
    /// Serves a new directory and mounts it.
    pub(in crate::bench) fn start(site: &Site<'_>, poll: PollMode) -> Result<Self, Error> {
        let program = program::beside("apus").ok_or_else(|| Error::Unavailable {
            problem: "apus, which serves and mounts, is neither beside this program nor in PATH; install the \
                      package apus, or build it in a checkout with `cargo install --path command/apus`"
                .into(),
            is_final: true,
        })?;
        let folder = site.workspace.directory(&format!("apus-{}", site.name))?;
        let (export, mount_point) = (folder.join("export"), folder.join("mount"));
        for directory in [&export, &mount_point] {
            std::fs::create_dir(directory).doing(|| format!("create {}", directory.display()))?;
        }
        let poll = poll.to_string();
        let listen = format!("{}:0", site.address);
        let mut serve = words(&site.server, [program.as_os_str(), "fs".as_ref(), "serve".as_ref()]);
        serve.extend([
            export.into(),
            "--listen".into(),
            listen.into(),
            "--poll".into(),
            poll.clone().into(),
        ]);
        if let Some(trusted) = &site.trusted {
            // All works run as root, on the client's side as well.
            serve.extend(["--trust".into(), trusted.into(), "--trust-root".into()]);
        }
        let mut server = Service::start("apus fs serve", &serve, &folder, site.interrupt)?;
        let line = server.first_line()?;
        let address = line.strip_prefix("listening on ");
        let address = address.ok_or_else(|| Error::Peer(format!("apus fs serve: {line}")))?;
        let mut peer = Self {
            program,
            client: site.client.clone(),
            poll,
            address: address.to_owned(),
            folder,
            mount_point,
            interrupt: site.interrupt.clone(),
            mount: None,
            _server: server,
        };
        peer.mount()?;
        Ok(peer)
    }

    fn mount(&mut self) -> Result<(), Error> {
        let program = self.program.as_os_str();
        let parts: [&OsStr; 7] = [
            program,
            "fs".as_ref(),
            "mount".as_ref(),
            self.address.as_ref(),
            self.mount_point.as_os_str(),
            "--poll".as_ref(),
            self.poll.as_ref(),
        ];
        let words = words(&self.client, parts);
        let mut mount = Service::start("apus fs mount", &words, &self.folder, &self.interrupt)?;
        let line = mount.first_line()?;
        if !line.starts_with("mounted ") {
            return Err(Error::Peer(format!("apus fs mount: {line}")));
        }
        self.mount = Some(mount);
        Ok(())
    }

    fn status(&self) -> Result<ClientStatus, Error> {
        let gone = || Error::Peer("apus fs mount: it says nothing about itself".to_owned());
        let mount = self.mount.as_ref().ok_or_else(gone)?;
        let status = status::of(mount.pid()).map_err(|error| Error::Peer(error.to_string()))?;
        status.mount.ok_or_else(gone)
    }
}

impl Peer for Apus {
    fn name(&self) -> &str {
        "apus"
    }

    fn root(&self) -> &Path {
        &self.mount_point
    }

    fn make_cold(&mut self) -> Result<(), Error> {
        if let Some(mount) = self.mount.take() {
            mount.stop();
        }
        self.mount()
    }

    fn settle(&mut self) -> Result<(), Error> {
        loop {
            let status = self.status()?;
            if status.batches_refused > 0 {
                return Err(Error::Peer("apus fs mount: the server refused changes".to_owned()));
            }
            if (status.waiting_batches, status.waiting_bytes, status.outstanding) == (0, 0, 0) {
                return Ok(());
            }
            self.interrupt.check()?;
            thread::sleep(INTERVAL);
        }
    }

    fn calls(&self) -> Result<Option<u64>, Error> {
        Ok(Some(self.status()?.calls))
    }
}
