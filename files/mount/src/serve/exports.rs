//! Exports: directories that one endpoint serves, each with its own name and server.
//!
//! ```text
//!   request ── Hello: by the name ─────────────────────┐
//!           └─ others: by the session's highest byte ──┴──> one export ── trusted? ──> its server
//! ```

use std::net::SocketAddr;

use apus_fs_core::server::{EXPORT_SHIFT, Server};
use apus_fs_core::wire::Failure;
use apus_fs_core::wire::frame::Addressee;

use super::error::ServeError;
use crate::trust::Trust;

/// A served directory.
#[derive(Debug)]
pub struct Export<S> {
    /// Name for mounting; empty for the only export of a server without names.
    pub name: String,
    /// The directory, for people.
    pub directory: String,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Peers that are served.
    pub trust: Trust,
    /// Its server. [`ServerSettings::export`](apus_fs_core::server::ServerSettings::export) is its
    /// place among the exports.
    pub server: Server<S>,
}

/// Why a request is not served.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Failure reported to the sender.
    pub(super) failure: Failure,
    /// The export that refuses a peer for the first time.
    pub(super) export: Option<String>,
}

/// All exports of an endpoint.
#[derive(Debug)]
pub(super) struct Exports<S>(Vec<Export<S>>);

impl<S> Exports<S> {
    /// Takes exports in the order of their numbers.
    pub(super) fn new(exports: Vec<Export<S>>) -> Result<Self, ServeError> {
        for (number, export) in exports.iter().enumerate() {
            if number > usize::from(u8::MAX) {
                return Err(ServeError::TooManyExports);
            }
            if exports[..number].iter().any(|other| other.name == export.name) {
                return Err(ServeError::SameName { name: export.name.clone() });
            }
        }
        Ok(Self(exports))
    }

    /// Finds the export for a request, if it trusts the peer (FSRUN-1, FSRUN-6).
    pub(super) fn find(
        &mut self,
        peer: SocketAddr,
        message: &[u8],
    ) -> Result<&mut Export<S>, Refusal> {
        let failure = match self.number_of(message) {
            Ok(number) => {
                let export = &mut self.0[number];
                let judgement = export.trust.judge(peer);
                if judgement.is_trusted {
                    return Ok(&mut self.0[number]);
                }
                let export = judgement.is_new.then(|| export.name.clone());
                return Err(Refusal { failure: Failure::NotTrusted, export });
            }
            Err(failure) => failure,
        };
        // Only peers that an export trusts may find out which exports exist.
        let is_trusted = self.0.iter_mut().any(|export| export.trust.judge(peer).is_trusted);
        let failure = if is_trusted { failure } else { Failure::NotTrusted };
        Err(Refusal { failure, export: None })
    }

    fn number_of(&self, message: &[u8]) -> Result<usize, Failure> {
        match Addressee::of(message).ok_or(Failure::Malformed)? {
            Addressee::Export(name) => {
                let found = self.0.iter().position(|export| export.name.as_bytes() == name);
                found.ok_or(Failure::NoSuchExport)
            }
            Addressee::Session(session) => {
                let number = (session >> EXPORT_SHIFT) as usize;
                if number < self.0.len() { Ok(number) } else { Err(Failure::SessionEnded) }
            }
        }
    }

    pub(super) fn get_mut(&mut self, number: u8) -> Option<&mut Export<S>> {
        self.0.get_mut(usize::from(number))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Export<S>> {
        self.0.iter()
    }

    /// Returns the exports with their numbers.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u8, &mut Export<S>)> {
        (0..=u8::MAX).zip(&mut self.0)
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Export<S>> {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use apus_fs_core::server::ServerSettings;
    use apus_fs_core::wire::{Hello, Request, SessionRequest, WireVersion, frame};
    use apus_fs_store::memory::MemoryStore;
    use bytes::Bytes;

    use super::*;

    fn export(number: u8, name: &str, trusted: &[&str]) -> Export<MemoryStore> {
        let networks = trusted.iter().map(|network| network.parse().unwrap()).collect();
        let settings = ServerSettings { export: number, ..ServerSettings::default() };
        Export {
            name: name.to_owned(),
            directory: format!("/srv/{name}"),
            read_only: false,
            trust: Trust::new(networks),
            server: Server::new(MemoryStore::default(), settings, Duration::ZERO).unwrap(),
        }
    }

    fn exports() -> Exports<MemoryStore> {
        Exports::new(vec![export(0, "music", &["192.0.2.0/24"]), export(1, "films", &[])]).unwrap()
    }

    fn hello(name: &str) -> Bytes {
        frame::encode(&Request::Hello(Hello {
            oldest: WireVersion::OLDEST,
            newest: WireVersion::CURRENT,
            client: [1; 16],
            name: Bytes::new(),
            session: None,
            ranges: Vec::new(),
            read_only: false,
            export: Bytes::copy_from_slice(name.as_bytes()),
            greeting: 0,
        }))
    }

    fn found(peer: &str, message: &[u8]) -> Result<String, Failure> {
        let mut exports = exports();
        let found = exports.find(peer.parse().unwrap(), message);
        found.map(|export| export.name.clone()).map_err(|refusal| refusal.failure)
    }

    /// FSRUN-6.
    #[test]
    fn requests_reach_the_export_that_they_name() {
        let renew =
            |session| frame::encode(&Request::Of { session, request: SessionRequest::Renew });
        for (number, name) in [(0, "music"), (1, "films")] {
            assert_eq!(found("127.0.0.1:9", &hello(name)).as_deref(), Ok(name));
            let session = number << EXPORT_SHIFT | 77;
            assert_eq!(found("127.0.0.1:9", &renew(session)).as_deref(), Ok(name));
        }
        assert_eq!(found("127.0.0.1:9", &hello("")), Err(Failure::NoSuchExport));
        assert_eq!(found("127.0.0.1:9", &renew(u64::MAX)), Err(Failure::SessionEnded));
        assert_eq!(found("127.0.0.1:9", b"?"), Err(Failure::Malformed));
    }

    /// FSRUN-1: a peer that no export trusts cannot find out which names exist.
    #[test]
    fn a_peer_is_trusted_by_each_export_alone() {
        assert_eq!(found("192.0.2.9:9", &hello("music")).as_deref(), Ok("music"));
        assert_eq!(found("192.0.2.9:9", &hello("films")), Err(Failure::NotTrusted));
        assert_eq!(found("192.0.2.9:9", &hello("books")), Err(Failure::NoSuchExport));
        for message in [hello("music"), hello("books"), Bytes::from_static(b"?")] {
            assert_eq!(found("198.51.100.9:9", &message), Err(Failure::NotTrusted));
        }
    }

    #[test]
    fn names_differ() {
        let same = Exports::new(vec![export(0, "music", &[]), export(1, "music", &[])]);
        assert!(matches!(same, Err(ServeError::SameName { name }) if name == "music"));
    }
}
