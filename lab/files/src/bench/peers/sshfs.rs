//! sshfs, with a server of OpenSSH that serves this measurement alone.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use apus_fuse::Unmount;
use apus_testbed::error::{Doing, Error};

use super::{Peer, Site};
use crate::bench::interrupt::Interrupt;
use crate::bench::program;
use crate::bench::service::{Service, words};

/// Programs that it takes, and the Debian package of each.
const PROGRAMS: [(&str, &str); 4] = [
    ("sshfs", "sshfs"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("ssh-keygen", "openssh-client"),
];

/// A directory that is served by sshd, and mounted.
#[derive(Debug)]
pub(in crate::bench) struct Sshfs {
    words: Vec<OsString>,
    folder: PathBuf,
    mount_point: PathBuf,
    interrupt: Interrupt,
    mount: Option<Service>,
    _server: Service,
}

impl Sshfs {
    /// Returns the missing program, and how to install it.
    pub(in crate::bench) fn missing() -> Option<String> {
        let missing: Vec<_> = PROGRAMS
            .iter()
            .filter(|(name, _)| apus_measure::program::find(name).is_none())
            .collect();
        let (names, mut packages): (Vec<_>, Vec<_>) = missing.into_iter().copied().unzip();
        packages.dedup();
        (!names.is_empty()).then(|| {
            format!(
                "sshfs is not measured: {} not installed; `apt install {}` gets it",
                names.join(", "),
                packages.join(" ")
            )
        })
    }

    /// Serves a new directory and mounts it.
    pub(in crate::bench) fn start(site: &Site<'_>) -> Result<Self, Error> {
        let folder = site.workspace.directory(&format!("sshfs-{}", site.name))?;
        let (export, mount_point) = (folder.join("export"), folder.join("mount"));
        for directory in [&export, &mount_point] {
            fs::create_dir(directory).doing(|| format!("create {}", directory.display()))?;
        }
        for key in ["host", "user"] {
            let file = folder.join(key).display().to_string();
            program::run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &file], &folder)?;
        }
        // Privilege separation needs it, and a machine that never ran sshd as a service lacks it.
        let _ = fs::create_dir_all("/run/sshd");
        let address = SocketAddr::new(site.address, free_port()?);
        let server = Self::serve(site, &folder, address)?;
        let option = |option: &str| [OsString::from("-o"), option.into()];
        let key = format!("IdentityFile={}", folder.join("user").display());
        let remote = format!("{}:{}", site.address, export.display());
        let sshfs = apus_measure::program::find("sshfs").unwrap_or_default();
        let mut mount = words(&site.client, [sshfs.as_os_str(), "-f".as_ref(), "-p".as_ref()]);
        mount.push(address.port().to_string().into());
        mount.extend(option(&key));
        mount.extend(option("StrictHostKeyChecking=no"));
        mount.extend(option("UserKnownHostsFile=/dev/null"));
        mount.extend([remote.into(), mount_point.clone().into()]);
        let mut peer = Self {
            words: mount,
            folder,
            mount_point,
            interrupt: site.interrupt.clone(),
            mount: None,
            _server: server,
        };
        peer.mount()?;
        Ok(peer)
    }

    fn serve(site: &Site<'_>, folder: &Path, address: SocketAddr) -> Result<Service, Error> {
        let sshd = apus_measure::program::find("sshd").unwrap_or_default();
        let own: [&OsStr; 5] =
            [sshd.as_os_str(), "-D".as_ref(), "-e".as_ref(), "-f".as_ref(), "/dev/null".as_ref()];
        let mut serve = words(&site.server, own);
        for setting in [
            format!("ListenAddress={address}"),
            format!("HostKey={}", folder.join("host").display()),
            format!("AuthorizedKeysFile={}", folder.join("user.pub").display()),
            "StrictModes=no".to_owned(),
            "UsePAM=no".to_owned(),
            "PidFile=none".to_owned(),
            "PermitRootLogin=yes".to_owned(),
            "Subsystem=sftp internal-sftp".to_owned(),
        ] {
            serve.extend(["-o".into(), setting.into()]);
        }
        let mut server = Service::start("sshd", &serve, folder, site.interrupt)?;
        if site.server.is_empty() {
            server.wait_until(|| TcpStream::connect(address).is_ok())?;
        } else {
            // This process is not in the server's network: the line in the log shows that it
            // listens.
            let log = folder.join("sshd.log");
            let listens = || fs::read_to_string(&log).is_ok_and(|it| it.contains("listening"));
            server.wait_until(listens)?;
        }
        Ok(server)
    }

    fn mount(&mut self) -> Result<(), Error> {
        let before = device(&self.mount_point);
        let mut mount = Service::start("sshfs", &self.words, &self.folder, &self.interrupt)?;
        let mount_point = &self.mount_point;
        mount.wait_until(|| device(mount_point) != before)?;
        self.mount = Some(mount);
        Ok(())
    }
}

impl Peer for Sshfs {
    fn name(&self) -> &str {
        "sshfs"
    }

    fn root(&self) -> &Path {
        &self.mount_point
    }

    fn make_cold(&mut self) -> Result<(), Error> {
        if let Some(mount) = self.mount.take() {
            apus_fuse::unmount(&self.mount_point, Unmount::IfUnused)
                .map_err(|error| Error::Peer(error.to_string()))?;
            mount.stop();
        }
        self.mount()
    }

    /// Has no effect: sshfs writes when a file is closed at the latest, and changes names at once.
    fn settle(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Returns the device of the file system at a path.
fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|found| found.dev())
}

/// Returns a port that was free a moment ago: sshd cannot choose one.
fn free_port() -> Result<u16, Error> {
    let doing = || "find a free port".to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").doing(doing)?;
    Ok(listener.local_addr().doing(doing)?.port())
}
