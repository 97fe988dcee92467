//! Handshake: two processes agree on shared memory over a unix socket.
//!
//! ```text
//! client                                   server
//! connect ──────────────────────────────▶ accept
//! checks the server's credentials          checks the client's
//! and that it owns the UDP socket
//! creates, seals and maps the memory
//! hello: version, sizes, identity,
//!        the memory's descriptor ────────▶ checks all of it, maps
//!                                     ◀── accepted, with the server's identity,
//!                                         or the reason for a rejection
//! pair                                     pair
//! ```
//!
//! A side sends its identity only after it has accepted the other side's credentials.
//!
//! No call waits, except [`Connecting::finish`]: both sides are objects that the caller advances
//! when their descriptor is readable. The client pays for the memory, so a rejected hello costs a
//! server no memory.

pub(crate) mod hello;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::config::LocalConfig;
use crate::error::{ConnectError, Rejection};
use crate::memory::segment::Segment;
use crate::pair::side::{Pair, Peer};
use crate::socket::credentials::Credentials;
use crate::socket::peer_name::PeerName;
use crate::socket::stream;
use crate::socket::udp_owner::udp_owner;
use apus_process::Descriptor;
use apus_wire::Role;
use hello::{Hello, HelloReply};
use rustix::io::Errno;

/// A client that waits for the server's reply.
#[derive(Debug)]
pub struct Connecting {
    socket: Descriptor,
    segment: Segment,
    config: LocalConfig,
    peer: Credentials,
}

impl Connecting {
    /// Connects to the server under `name` and sends the hello.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if no process listens there, or the policy excludes the process.
    pub fn start(name: &PeerName, config: &LocalConfig) -> Result<Self, ConnectError> {
        Self::start_with(name, None, config)
    }

    /// Connects to the server under `name` and sends the hello, if the server's user owns the UDP
    /// socket at `udp`, where one is given.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if no process listens there, the policy excludes the process, or its user
    /// does not own the socket.
    pub(crate) fn start_with(
        name: &PeerName,
        udp: Option<SocketAddr>,
        config: &LocalConfig,
    ) -> Result<Self, ConnectError> {
        let socket = stream::connect(name)?;
        let peer = Credentials::of_peer(&socket)
            .map_err(ConnectError::system("read the credentials of a local peer"))?;
        if !config.peer_policy.allows(peer.uid) {
            return Err(ConnectError::ForeignUser { uid: peer.uid });
        }
        if udp.is_some_and(|udp| udp_owner(udp) != Some(peer.uid)) {
            return Err(ConnectError::NotOwner { uid: peer.uid });
        }
        let sizes = config.sizes;
        let segment =
            Segment::create(sizes).map_err(ConnectError::system("create shared memory"))?;
        let hello = Hello { sizes, identity: config.identity }.emit();
        match stream::send_hello(socket.as_fd(), &hello, Some(segment.as_fd())) {
            // The server has rejected this side and disconnected.
            Err(Errno::PIPE) => return Err(reason_of_rejection(&socket)),
            sent => sent.map_err(ConnectError::system("send a hello to a local peer"))?,
        }
        Ok(Self { socket, segment, config: config.clone(), peer })
    }

    /// Returns the pair if the server has accepted. Call it when the descriptor is readable, and
    /// not again after it returned a pair or an error.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the server rejected the client, or its reply is malformed.
    pub fn advance(&mut self) -> Result<Option<Pair>, ConnectError> {
        let mut bytes = [0; hello::LEN];
        let (len, _) = match stream::recv_hello(self.socket.as_fd(), &mut bytes) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(None),
            // The server closed the connection with the hello unread.
            Err(_) => return Err(ConnectError::Malformed),
        };
        let reply = HelloReply::parse(&bytes[..len]).ok_or(ConnectError::Malformed)?;
        let identity = reply.verdict.map_err(ConnectError::Rejected)?;
        let memory = self
            .segment
            .map()
            .map_err(|source| ConnectError::System { action: "map shared memory", source })?;
        let socket = self
            .socket
            .try_clone()
            .map_err(|source| ConnectError::System { action: "duplicate a unix socket", source })?;
        let peer = Peer { credentials: self.peer, identity };
        let LocalConfig { sizes, limits, .. } = self.config;
        Ok(Some(Pair::new(Role::Client, memory, sizes, limits, socket, peer)))
    }

    /// Waits for the pair for up to `time`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the server rejected the client or did not reply in time.
    pub fn finish(mut self, time: Duration) -> Result<Pair, ConnectError> {
        let deadline = Instant::now().checked_add(time);
        loop {
            if let Some(pair) = self.advance()? {
                return Ok(pair);
            }
            let left = deadline.map_or(time, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(ConnectError::TimedOut);
            }
            stream::wait(&self.socket, left)
                .map_err(ConnectError::system("wait for a local peer"))?;
        }
    }
}

/// Reads why a server has disconnected without waiting for the hello.
fn reason_of_rejection(socket: &Descriptor) -> ConnectError {
    let mut bytes = [0; hello::LEN];
    let reply = stream::recv_hello(socket.as_fd(), &mut bytes).ok().flatten();
    match reply.and_then(|(len, _)| HelloReply::parse(&bytes[..len])) {
        Some(HelloReply { verdict: Err(reason) }) => ConnectError::Rejected(reason),
        _ => ConnectError::Malformed,
    }
}

impl AsFd for Connecting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A listening socket under a name.
#[derive(Debug)]
pub struct Listener {
    socket: Descriptor,
    config: LocalConfig,
}

impl Listener {
    /// Listens under `name`. The name is free again when the listener is dropped or its process
    /// ends.
    ///
    /// # Errors
    ///
    /// [`ConnectError::System`], for example if the name is in use.
    pub fn bind(name: &PeerName, config: &LocalConfig) -> Result<Self, ConnectError> {
        Ok(Self { socket: stream::listen(name)?, config: config.clone() })
    }

    /// Returns the next client that has connected, if any. A client that the policy excludes
    /// receives a rejection.
    ///
    /// # Errors
    ///
    /// [`ConnectError::System`], for example if too many files are open.
    pub fn accept(&self) -> Result<Option<Accepting>, ConnectError> {
        let socket = stream::accept(self.socket.as_fd())
            .map_err(ConnectError::system("accept a local peer"))?;
        let Some(socket) = socket else { return Ok(None) };
        let peer = Credentials::of_peer(&socket)
            .map_err(ConnectError::system("read the credentials of a local peer"))?;
        let mut accepting =
            Accepting { socket, config: self.config.clone(), peer, verdict: Ok(()) };
        if !self.config.peer_policy.allows(peer.uid) {
            accepting.reject(Rejection::User);
        }
        Ok(Some(accepting))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A client that has connected and whose hello has not arrived yet.
#[derive(Debug)]
pub struct Accepting {
    socket: Descriptor,
    config: LocalConfig,
    peer: Credentials,
    verdict: Result<(), Rejection>,
}

impl Accepting {
    /// Returns the pair if the client's hello has arrived. Call it when the descriptor is readable,
    /// and not again after it returned a pair or an error.
    ///
    /// # Errors
    ///
    /// [`Rejection`], which was also sent to the client.
    pub fn advance(&mut self) -> Result<Option<Pair>, Rejection> {
        self.verdict?;
        let mut bytes = [0; hello::LEN];
        let (len, file) = match stream::recv_hello(self.socket.as_fd(), &mut bytes) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(None),
            Err(_) => return Err(Rejection::Malformed),
        };
        match self.accept(&bytes[..len], file) {
            Ok(pair) => Ok(Some(pair)),
            Err(rejection) => {
                self.reject(rejection);
                Err(rejection)
            }
        }
    }

    /// Returns whether the client was rejected when it connected.
    pub(crate) const fn is_rejected(&self) -> bool {
        self.verdict.is_err()
    }

    /// Returns the effective user id of the client.
    pub(crate) const fn uid(&self) -> u32 {
        self.peer.uid
    }

    /// Creates the pair that a hello requests.
    fn accept(&self, bytes: &[u8], file: Option<OwnedFd>) -> Result<Pair, Rejection> {
        let Hello { sizes, identity } = Hello::parse(bytes)?;
        let most = self.config.max_sizes;
        if sizes.short > most.short || sizes.bulk > most.bulk {
            return Err(Rejection::Sizes);
        }
        let segment = Segment::adopt(file.ok_or(Rejection::Malformed)?, sizes)?;
        let memory = segment.map().map_err(|_| Rejection::Memory)?;
        let socket = self.socket.try_clone().map_err(|_| Rejection::TooMany)?;
        let peer = Peer { credentials: self.peer, identity };
        let pair = Pair::new(Role::Server, memory, sizes, self.config.limits, socket, peer);
        self.reply(Ok(self.config.identity)).map_err(|_| Rejection::Malformed)?;
        Ok(pair)
    }

    /// Sends a rejection to the client.
    pub(crate) fn reject(&mut self, rejection: Rejection) {
        self.verdict = Err(rejection);
        // The client may have disconnected already.
        let _ = self.reply(Err(rejection));
    }

    fn reply(&self, verdict: Result<u64, Rejection>) -> Result<(), Errno> {
        let reply = HelloReply { verdict }.emit();
        stream::send_hello(self.socket.as_fd(), &reply, None)
    }
}

impl AsFd for Accepting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
