//! One end of a TLS connection, spinning or sleeping on its socket.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use apus::PollMode;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig,
    ServerConnection,
};

use crate::contenders::baseline::stream::frames::{Frames, Inbox};
use crate::contenders::baseline::waiter::Waiter;
use crate::contenders::keys::ThrowAwayKeys;
use apus_measure::process::wake_on_stop;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// Maximum bytes received per call: several records of 16 KiB.
const RECEIVE: usize = 256 << 10;

/// Bytes encrypted before each send, so that encryption and sending can overlap.
const SEND: usize = 64 << 10;

/// One end of a connection after the handshake.
pub(super) struct Session<'a> {
    connection: Connection,
    stream: OwnedFd,
    waiter: Waiter<'a>,
    inbox: Inbox,
    /// Received bytes that are not decrypted yet.
    arrived: Vec<u8>,
    pending: std::ops::Range<usize>,
}

/// Sends to a socket.
struct Outgoing<'a>(&'a OwnedFd);

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(self.0, bytes, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                sent => return Ok(sent?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The library and suite that sealed packets have.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = apus::security::crypto_provider();
    let provider_mut = Arc::make_mut(&mut provider);
    let is_it = |suite: CipherSuite| suite == CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider_mut.cipher_suites.retain(|suite| is_it(suite.suite()));
    provider
}

fn tls(error: rustls::Error) -> Error {
    Error::endpoint("use TLS".to_owned(), error)
}

impl<'a> Session<'a> {
    pub(super) fn accept(
        stream: OwnedFd,
        keys: &ThrowAwayKeys,
        poll: PollMode,
        stop: &'a Stop,
    ) -> Result<Self, Error> {
        let key = PrivateKeyDer::from_pem_file(keys.key())
            .map_err(|error| io::Error::other(error.to_string()))
            .doing(|| "read the key".to_owned())?;
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&TLS13]).map_err(tls)?;
        let config = builder.with_no_client_auth().with_single_cert(vec![certificate(keys)?], key);
        let connection = ServerConnection::new(Arc::new(config.map_err(tls)?)).map_err(tls)?;
        Self::shake_hands(connection.into(), stream, poll, stop)
    }

    pub(super) fn connect(
        stream: OwnedFd,
        keys: &ThrowAwayKeys,
        poll: PollMode,
        stop: &'a Stop,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(keys)?).map_err(tls)?;
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&TLS13]).map_err(tls)?;
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).map_err(tls)?;
        Self::shake_hands(connection.into(), stream, poll, stop)
    }

    fn shake_hands(
        connection: Connection,
        stream: OwnedFd,
        poll: PollMode,
        stop: &'a Stop,
    ) -> Result<Self, Error> {
        wake_on_stop(&stream, stop)?;
        let mut session = Self {
            connection,
            stream,
            waiter: Waiter::new(poll, stop),
            inbox: Inbox::default(),
            arrived: vec![0; RECEIVE],
            pending: 0..0,
        };
        session.connection.set_buffer_limit(None);
        while session.connection.is_handshaking() {
            session.flush()?;
            if session.connection.is_handshaking() && !session.read_some()? {
                break;
            }
        }
        session.flush()?;
        Ok(session)
    }

    /// Encrypts and sends `bytes`.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for part in bytes.chunks(SEND) {
            let written = self.connection.writer().write_all(part);
            written.doing(|| "encrypt messages".to_owned())?;
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Outgoing(&self.stream)) {
                Ok(_) => {}
                Err(error) if is_end(&error) => return Ok(()),
                Err(error) => return Err(error).doing(|| "send messages".to_owned()),
            }
        }
        Ok(())
    }

    /// Receives and decrypts until frames are available. Returns `None` at the end.
    pub(super) fn receive(&mut self) -> Result<Option<Frames<'_>>, Error> {
        loop {
            let mut reader = self.connection.reader();
            match reader.read(self.inbox.room()) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    self.inbox.received(count);
                    return Ok(Some(self.inbox.take()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).doing(|| "decrypt messages".to_owned()),
            }
            if !self.read_some()? {
                return Ok(None);
            }
        }
    }

    /// Reads available bytes; waits if the socket is empty. Returns `false` at the end.
    fn read_some(&mut self) -> Result<bool, Error> {
        if self.pending.is_empty() {
            let (stream, arrived) = (&self.stream, &mut self.arrived);
            let received = self
                .waiter
                .receive(|flags: RecvFlags| Ok(recv(stream, &mut arrived[..], flags)?.0));
            match received {
                Ok(None | Some(0)) | Err(Errno::CONNRESET) => return Ok(false),
                Ok(Some(count)) => self.pending = 0..count,
                Err(error) => return Err(error).doing(|| "receive messages".to_owned()),
            }
        }
        let mut bytes = &self.arrived[self.pending.clone()];
        let read = self.connection.read_tls(&mut bytes).doing(|| "read records".to_owned())?;
        self.pending.start += read;
        self.connection.process_new_packets().map_err(tls)?;
        Ok(true)
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Reads the self-signed throw-away certificate.
fn certificate(keys: &ThrowAwayKeys) -> Result<CertificateDer<'static>, Error> {
    CertificateDer::from_pem_file(keys.certificate())
        .map_err(|error| io::Error::other(error.to_string()))
        .doing(|| "read the certificate".to_owned())
}
