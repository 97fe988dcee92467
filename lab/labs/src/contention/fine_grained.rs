//! The pair of apus: a worker writes and reads without a shared lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apus::Bytes;
use apus_local::{Connecting, Listener, LocalConfig, Pair, PairEvent, PeerName, ReceiveQuota};

use super::exchange::Exchange;
use apus_testbed::error::Error;

/// Both sides of a pair.
pub(super) struct FineGrained {
    client: Pair,
    server: Pair,
    message: [Bytes; 1],
    id: u64,
    events: Vec<PairEvent>,
}

/// Longest time for the two sides to connect. Both are in this process, so it takes microseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl FineGrained {
    /// Returns a new pair.
    pub(super) fn connect() -> Result<Self, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name =
            PeerName::new(&format!("apus-lab lab contention/{}/{number}", std::process::id()));
        let failed = |error| Error::endpoint("make a pair".to_owned(), error);
        let config = LocalConfig::default();
        let listener = Listener::bind(&name, &config).map_err(failed)?;
        let connecting = Connecting::start(&name, &config).map_err(failed)?;
        let missing = || Error::Peer("the client of a pair did not connect".to_owned());
        let mut accepting = listener.accept().map_err(failed)?.ok_or_else(missing)?;
        let server = accepting
            .advance()
            .map_err(|error| Error::endpoint("make a pair".to_owned(), error))?
            .ok_or_else(missing)?;
        let client = connecting.finish(CONNECT_TIMEOUT).map_err(failed)?;
        let message = [Bytes::from_static(b"x")];
        Ok(Self { client, server, message, id: 0, events: Vec::new() })
    }

    /// Writes the byte.
    #[inline]
    pub(super) fn send(&mut self) -> Result<(), Error> {
        self.id += 1;
        match self.client.send(self.id, &self.message) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::endpoint("send over a pair".to_owned(), error)),
        }
    }

    /// Reads the byte. The caller must then [check](Self::check) it.
    #[inline]
    pub(super) fn receive(&mut self) -> Result<(), Error> {
        match self.server.receive(ReceiveQuota::default(), &mut self.events) {
            Ok(_) => Ok(()),
            Err(gone) => Err(Error::endpoint("receive from a pair".to_owned(), gone)),
        }
    }

    /// Checks that exactly the written byte was read.
    #[inline]
    pub(super) fn check(&mut self) -> Result<(), Error> {
        let arrived = matches!(self.events[..], [PairEvent::Request { id, .. }] if id == self.id);
        self.events.clear();
        if arrived { Ok(()) } else { Err(Error::Peer("a pair returned another byte".to_owned())) }
    }
}

impl Exchange for FineGrained {
    #[inline]
    fn operate(&mut self) -> Result<(), Error> {
        self.send()?;
        self.receive()?;
        self.check()
    }
}
