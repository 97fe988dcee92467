//! The peer programs, and their descriptions.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use apus_testbed::error::{Doing, Error, require};
use compare_kit::Description;
use serde::Deserialize;

/// All programs, in row order: apus, unencrypted peers, encrypting peers, peers of one host.
const PEERS: [&str; 24] = [
    "apus",
    "apus-sealed",
    "apus-local",
    "udp",
    "tcp",
    "tokio",
    "tarpc",
    "tonic",
    "grpc-cpp",
    "zeromq",
    "nng",
    "aeron",
    "ucx",
    "enet",
    "tokio-rustls",
    "quinn",
    "quinn-datagrams",
    "s2n-quic",
    "unix",
    "zeromq-ipc",
    "nng-ipc",
    "aeron-ipc",
    "ucx-shm",
    "iceoryx2",
];

/// Number of programs that always take part: the first entries of `PEERS`.
const OURS: usize = 3;

/// A program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) about: Description,
    /// Version of the peer's package, or of apus.
    pub(crate) version: Option<String>,
}

impl Program {
    /// Returns whether it is an apus program.
    pub(crate) fn is_apus(&self) -> bool {
        is_apus(&self.about)
    }

    /// Returns whether it is the apus program compared with `other`, the program of another peer.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.is_apus() && !other.is_apus() && self.about.class == other.about.class
    }
}

fn is_apus(about: &Description) -> bool {
    PEERS[..OURS].contains(&&about.name[..])
}

/// Returns the programs of apus and of the peers in `only`, or of all peers. Missing programs are
/// reported on standard error.
pub(crate) fn find(only: &[String]) -> Result<Vec<Program>, Error> {
    let known = |name: &String| PEERS.contains(&&name[..]);
    let problem = format!("the peers are {}; try tcp,quinn", PEERS[OURS..].join(", "));
    require(only.iter().all(known), "only", &problem)?;
    let this = env::current_exe().doing(|| "find this program's file".to_owned())?;
    let folder = this.parent().unwrap_or(Path::new("."));
    let versions = versions();
    let mut programs = Vec::new();
    for (place, name) in PEERS.into_iter().enumerate() {
        if place >= OURS && !only.is_empty() && !only.iter().any(|it| it == name) {
            continue;
        }
        let path = folder.join(format!("compare-{name}"));
        if path.exists() {
            programs.push(describe(path, &versions)?);
        } else {
            eprintln!("skipped: {name}: there is no {}; lab/compare/run builds it", path.display());
        }
    }
    Ok(programs)
}

/// Queries a program for its description.
fn describe(path: PathBuf, versions: &BTreeMap<String, String>) -> Result<Program, Error> {
    let said = Command::new(&path).arg("describe").output();
    let said = said.doing(|| format!("run {}", path.display()))?;
    let about: Description = serde_json::from_slice(&said.stdout)
        .map_err(|error| Error::Peer(format!("{} describe: {error}", path.display())))?;
    let version = match &about.package {
        Some(package) => versions.get(package).cloned(),
        None => is_apus(&about).then(|| env!("CARGO_PKG_VERSION").to_owned()),
    };
    Ok(Program { path, about, version })
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// Returns the versions of the lock file that this program was built with.
fn versions() -> BTreeMap<String, String> {
    let lock: Lock = toml::from_str(include_str!("../../Cargo.lock")).expect("cargo wrote it");
    lock.package.into_iter().map(|package| (package.name, package.version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_has_the_peers() {
        let versions = versions();
        for package in ["tarpc", "tonic", "tokio", "quinn"] {
            assert!(versions.contains_key(package), "{package}");
        }
    }

    #[test]
    fn a_peer_that_does_not_exist_is_refused() {
        let error = find(&["smoke-signals".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("only: ") && error.contains("quinn"), "{error}");
    }
}
