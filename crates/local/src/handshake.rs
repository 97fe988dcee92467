//! How do two processes come to share memory?
//!
//! ```text
//! client                                   server
//! connect ──────────────────────────────▶ accept
//! looks at the server's credentials       looks at the client's
//! makes, seals and maps the memory
//! greeting: version, sizes, identity,
//!           the memory's descriptor ─────▶ checks all of it, maps
//!                         answer, identity ◀── accepted, or why not
//! pair                                     pair
//! ```
//!
//! Nobody waits in here: both sides are objects that are advanced when their descriptor is readable. The client
//! pays for the memory, so a server spends nothing on greetings that it refuses.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::config::LocalConfig;
use crate::credentials::Credentials;
use crate::error::{ConnectError, Rejection};
use crate::hello::{self, Answer, Greeting};
use crate::name::PeerName;
use crate::pair::{Pair, Peer};
use crate::segment::Segment;
use crate::socket;
use apus_wire::Role;

/// A client that waits for the server's answer.
#[derive(Debug)]
pub struct Connecting {
    socket: OwnedFd,
    segment: Segment,
    config: LocalConfig,
    peer: Credentials,
}

impl Connecting {
    /// Greets whoever listens under `name`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: nobody does, or not somebody who is trusted.
    pub fn start(name: &PeerName, config: &LocalConfig) -> Result<Self, ConnectError> {
        let socket = socket::connect(name)?;
        let peer = Credentials::of_peer(&socket)
            .map_err(ConnectError::system("ask who a local peer is"))?;
        if !config.trust.allows(peer.uid) {
            return Err(ConnectError::ForeignUser { uid: peer.uid });
        }
        let sizes = config.sizes;
        let segment = Segment::create(sizes).map_err(ConnectError::system("make shared memory"))?;
        let greeting = Greeting { sizes, identity: config.identity }.emit();
        socket::say(socket.as_fd(), &greeting, Some(segment.as_fd()))
            .map_err(ConnectError::system("greet a local peer"))?;
        Ok(Self { socket, segment, config: config.clone(), peer })
    }

    /// The pair, if the server has answered. To be called when the descriptor is readable; not again after it
    /// gave a pair or an error.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: the server refused, or made no sense.
    pub fn advance(&mut self) -> Result<Option<Pair>, ConnectError> {
        let mut bytes = [0; hello::LEN];
        let (len, _) = match socket::hear(self.socket.as_fd(), &mut bytes) {
            Ok(Some(heard)) => heard,
            Ok(None) => return Ok(None),
            // It closed the connection with our greeting unread.
            Err(_) => return Err(ConnectError::Garbled),
        };
        let answer = Answer::parse(&bytes[..len]).ok_or(ConnectError::Garbled)?;
        answer.verdict.map_err(ConnectError::Refused)?;
        let memory = self
            .segment
            .map()
            .map_err(|source| ConnectError::System { action: "map shared memory", source })?;
        let socket = self
            .socket
            .try_clone()
            .map_err(|source| ConnectError::System { action: "keep a unix socket", source })?;
        let peer = Peer { credentials: self.peer, identity: answer.identity };
        let LocalConfig { sizes, limits, .. } = self.config;
        Ok(Some(Pair::new(Role::Client, memory, sizes, limits, socket, peer)))
    }

    /// Waits for the pair, at most `time`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: the server refused, or did not answer in time.
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
            socket::wait(&self.socket, left)
                .map_err(ConnectError::system("wait for a local peer"))?;
        }
    }
}

impl AsFd for Connecting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A name under which clients find this endpoint.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    config: LocalConfig,
}

impl Listener {
    /// Listens under `name`. The name is free again when the listener is dropped, or its process ends.
    ///
    /// # Errors
    ///
    /// [`ConnectError::System`]: somebody else has the name, say.
    pub fn bind(name: &PeerName, config: &LocalConfig) -> Result<Self, ConnectError> {
        Ok(Self { socket: socket::listen(name)?, config: config.clone() })
    }

    /// The next client, if one waits. A client that is not trusted is told so, and left.
    ///
    /// # Errors
    ///
    /// The system's, such as too many open files.
    pub fn accept(&self) -> Result<Option<Accepting>, ConnectError> {
        let socket = socket::accept(self.socket.as_fd())
            .map_err(ConnectError::system("accept a local peer"))?;
        let Some(socket) = socket else { return Ok(None) };
        let peer = Credentials::of_peer(&socket)
            .map_err(ConnectError::system("ask who a local peer is"))?;
        let mut accepting =
            Accepting { socket, config: self.config.clone(), peer, verdict: Ok(()) };
        if !self.config.trust.allows(peer.uid) {
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

/// A client that has connected and not greeted yet.
#[derive(Debug)]
pub struct Accepting {
    socket: OwnedFd,
    config: LocalConfig,
    peer: Credentials,
    verdict: Result<(), Rejection>,
}

impl Accepting {
    /// The pair, if the client has greeted. To be called when the descriptor is readable; not again after it
    /// gave a pair or an error.
    ///
    /// # Errors
    ///
    /// [`Rejection`]: the client was told so, if it still listened.
    pub fn advance(&mut self) -> Result<Option<Pair>, Rejection> {
        self.verdict?;
        let mut bytes = [0; hello::LEN];
        let (len, file) = match socket::hear(self.socket.as_fd(), &mut bytes) {
            Ok(Some(heard)) => heard,
            Ok(None) => return Ok(None),
            Err(_) => return Err(Rejection::Garbled),
        };
        match self.take(&bytes[..len], file) {
            Ok(pair) => Ok(Some(pair)),
            Err(rejection) => {
                self.reject(rejection);
                Err(rejection)
            }
        }
    }

    /// The pair that a greeting asks for.
    fn take(&self, bytes: &[u8], file: Option<OwnedFd>) -> Result<Pair, Rejection> {
        let Greeting { sizes, identity } = Greeting::parse(bytes)?;
        let most = self.config.max_sizes;
        if sizes.short > most.short || sizes.bulk > most.bulk {
            return Err(Rejection::Sizes);
        }
        let segment = Segment::adopt(file.ok_or(Rejection::Garbled)?, sizes)?;
        let memory = segment.map().map_err(|_| Rejection::Memory)?;
        let socket = self.socket.try_clone().map_err(|_| Rejection::TooMany)?;
        let peer = Peer { credentials: self.peer, identity };
        let pair = Pair::new(Role::Server, memory, sizes, self.config.limits, socket, peer);
        self.answer(Ok(())).map_err(|_| Rejection::Garbled)?;
        Ok(pair)
    }

    /// Tells the client that it is not taken.
    pub(crate) fn reject(&mut self, rejection: Rejection) {
        self.verdict = Err(rejection);
        // It may have gone already.
        let _ = self.answer(self.verdict);
    }

    fn answer(&self, verdict: Result<(), Rejection>) -> Result<(), rustix::io::Errno> {
        let answer = Answer { verdict, identity: self.config.identity }.emit();
        socket::say(self.socket.as_fd(), &answer, None)
    }
}

impl AsFd for Accepting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
