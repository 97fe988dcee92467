//! The negotiation of this crate, implemented with TLS 1.3.

use super::credentials::Credentials;
use super::keys::{TlsSchedule, pair};
use super::provider::{describe_certificate, fingerprint_of, hmac, provider};
use super::trust::Trust;
use super::verifier::{CertificateVerifier, KeyVerifier, cause_of, name_of};
use crate::failure::Failure;
use crate::identity::{Identity, IdentityKind, PeerRole};
use crate::negotiation::{KeyChange, Life, Negotiation, Negotiator};
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::quic::{
    ClientConnection, Connection, KeyChange as TlsKeyChange, ServerConnection, Version,
};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ServerSessionMemoryCache};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, HandshakeKind, KeyLog, KeyLogFile, ServerConfig, version::TLS13};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The application protocol of the handshake (RFC 7301). Handshakes for other protocols are
/// refused.
const PROTOCOL: &[u8] = b"apus/2";

/// Label of the exporter that sessions are derived from (RFC 8446 section 7.5).
const SESSION_LABEL: &[u8] = b"EXPORTER-apus-session";

/// Number of clients whose tickets a server stores. Chosen by us: the size of a large cluster; each
/// takes about a kilobyte.
const TICKETS: usize = 4_096;

static LOGS_KEYS: AtomicBool = AtomicBool::new(false);

/// Makes all later handshakes of the process append their secrets to the file named by the variable
/// `SSLKEYLOGFILE`, so that captured packets can be decrypted. For diagnosis only: the file
/// suffices to read and forge all packets.
pub fn log_keys() {
    LOGS_KEYS.store(true, Ordering::Relaxed);
}

/// How peers are verified.
#[derive(Debug)]
enum Verifier {
    Certificates(Arc<CertificateVerifier>),
    Keys(Arc<KeyVerifier>),
}

/// Configuration shared by all handshakes of an endpoint.
#[derive(Debug)]
struct Verification {
    verifier: Verifier,
    /// Kind of identity that the verifier accepts.
    kind: IdentityKind,
    trust: Trust,
}

impl Verification {
    /// Returns the identity in the verified `chain` of a peer.
    fn identify(
        &self,
        chain: &[Vec<u8>],
        role: PeerRole,
        peer: SocketAddr,
    ) -> Result<Identity, Failure> {
        let own = chain.first().ok_or(Failure::NoCertificate)?;
        let fingerprint = fingerprint_of(own);
        let identity = match &self.verifier {
            Verifier::Certificates(_) => {
                let names = describe_certificate(own).ok_or(Failure::BadCertificate)?;
                Identity::new(self.kind, names, fingerprint, chain.to_vec())
            }
            Verifier::Keys(keys) => {
                let name = keys.name_of(&fingerprint).ok_or(Failure::UnknownKey)?;
                Identity::new(self.kind, vec![name.to_owned()], fingerprint, Vec::new())
            }
        };
        let identity = identity.verified_as(role);
        self.trust.check(&identity, peer)?;
        Ok(identity)
    }
}

/// Creates handshakes of TLS 1.3.
#[derive(Debug)]
pub struct TlsNegotiator {
    provider: Arc<CryptoProvider>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    verification: Arc<Verification>,
}

impl TlsNegotiator {
    /// Creates a negotiator with the identity and trust anchors of `credentials`; it admits the
    /// peers that `trust` admits. With `names_address`, a server's certificate must contain the
    /// called IP address.
    ///
    /// # Errors
    ///
    /// [`Failure::Internal`]: the library rejects the configuration.
    pub fn new(
        credentials: &Credentials,
        trust: Trust,
        names_address: bool,
    ) -> Result<Self, Failure> {
        let provider = provider();
        let (verifier, own, kind) = match credentials {
            Credentials::Certificates { own, roots, revoked } => {
                let verifier = CertificateVerifier::new(roots, revoked, names_address, &provider)?;
                (Verifier::Certificates(Arc::new(verifier)), own, IdentityKind::Certificate)
            }
            Credentials::Keys { own, known, is_secret } => {
                let algorithms = provider.signature_verification_algorithms;
                let verifier = KeyVerifier::new(known.clone(), algorithms);
                let kind = if *is_secret { IdentityKind::Secret } else { IdentityKind::Key };
                (Verifier::Keys(Arc::new(verifier)), own, kind)
            }
        };
        let client = Arc::new(client_config(&provider, &verifier, own)?);
        let server = Arc::new(server_config(&provider, &verifier, own)?);
        let verification = Arc::new(Verification { verifier, kind, trust });
        Ok(Self { provider, client, server, verification })
    }

    fn begin(&self, peer: SocketAddr, connection: Connection) -> Box<dyn Negotiation> {
        Box::new(TlsNegotiation { connection, peer, verification: self.verification.clone() })
    }
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    verifier: &Verifier,
    own: &Arc<CertifiedKey>,
) -> Result<ClientConfig, Failure> {
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(|_| Failure::Internal)?;
    let (verifier, shown): (Arc<dyn ServerCertVerifier>, _) = match verifier {
        Verifier::Certificates(verifier) => (verifier.clone(), shown_by_client(own, false)),
        Verifier::Keys(verifier) => (verifier.clone(), shown_by_client(own, true)),
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = builder.with_client_cert_resolver(shown);
    config.resumption = Resumption::in_memory_sessions(TICKETS);
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.key_log = key_log();
    Ok(config)
}

fn shown_by_client(
    own: &Arc<CertifiedKey>,
    is_raw: bool,
) -> Arc<dyn rustls::client::ResolvesClientCert> {
    if is_raw {
        Arc::new(rustls::client::AlwaysResolvesClientRawPublicKeys::new(own.clone()))
    } else {
        Arc::new(SingleCertAndKey::from(own.clone()))
    }
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    verifier: &Verifier,
    own: &Arc<CertifiedKey>,
) -> Result<ServerConfig, Failure> {
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(|_| Failure::Internal)?;
    let verifies: Arc<dyn ClientCertVerifier> = match verifier {
        Verifier::Certificates(verifier) => verifier.as_client_verifier(),
        Verifier::Keys(verifier) => verifier.clone(),
    };
    let builder = builder.with_client_cert_verifier(verifies);
    let shown: Arc<dyn rustls::server::ResolvesServerCert> = match verifier {
        Verifier::Certificates(_) => Arc::new(SingleCertAndKey::from(own.clone())),
        Verifier::Keys(_) => Arc::new(AlwaysResolvesServerRawPublicKeys::new(own.clone())),
    };
    let mut config = builder.with_cert_resolver(shown);
    // Sessions are stored in memory, not in the ticket: none can be resumed after a reload.
    config.session_storage = ServerSessionMemoryCache::new(TICKETS);
    config.send_tls13_tickets = 1;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.key_log = key_log();
    Ok(config)
}

fn key_log() -> Arc<dyn KeyLog> {
    if LOGS_KEYS.load(Ordering::Relaxed) {
        Arc::new(KeyLogFile::new())
    } else {
        Arc::new(rustls::NoKeyLog)
    }
}

impl Negotiator for TlsNegotiator {
    fn connect(&self, peer: SocketAddr, life: Life) -> Result<Box<dyn Negotiation>, Failure> {
        let name = name_of(peer.ip());
        // In the ClientHello, which the transcript authenticates.
        let stated = life.to_bytes().to_vec();
        let connection = ClientConnection::new(self.client.clone(), Version::V1, name, stated);
        let connection = connection.map_err(|_| Failure::Internal)?;
        Ok(self.begin(peer, connection.into()))
    }

    fn accept(&self, peer: SocketAddr, life: Life) -> Result<Box<dyn Negotiation>, Failure> {
        // In EncryptedExtensions, which the server's Finished authenticates.
        let stated = life.to_bytes().to_vec();
        let connection = ServerConnection::new(self.server.clone(), Version::V1, stated);
        let connection = connection.map_err(|_| Failure::Internal)?;
        Ok(self.begin(peer, connection.into()))
    }

    fn is_hello(&self, piece: &[u8]) -> bool {
        is_client_hello(piece)
    }

    fn fill_random(&self, out: &mut [u8]) {
        // Without random numbers no handshake succeeds either; these bytes are then unique but not
        // secret.
        drop(self.provider.secure_random.fill(out));
    }

    fn mac(&self, key: &[u8; 32], message: &[u8]) -> [u8; 32] {
        hmac(&self.provider, key, message)
    }

    fn recheck(&self, identity: &Identity, peer: SocketAddr) -> Result<(), Failure> {
        match &self.verification.verifier {
            Verifier::Certificates(verifier) => {
                verifier.recheck(identity.chain(), identity.role(), peer.ip())?;
            }
            Verifier::Keys(verifier) => {
                verifier.name_of(identity.fingerprint()).ok_or(Failure::UnknownKey)?;
            }
        }
        self.verification.trust.check(identity, peer)
    }
}

/// Returns whether `piece` starts like a ClientHello (RFC 8446 section 4.1.2): the type, a length
/// that a handshake may have, and the version that all of them state.
fn is_client_hello(piece: &[u8]) -> bool {
    let [1, high, middle, low, 3, 3, ..] = *piece else { return false };
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    (LEAST_HELLO..=LONGEST_HELLO).contains(&length)
}

/// Bytes of the shortest ClientHello: version, random, and the lengths of four lists.
const LEAST_HELLO: usize = 2 + 32 + 1 + 2 + 1 + 2;

/// Bytes of the longest ClientHello: all that a handshake carries before its keys.
const LONGEST_HELLO: usize = 32 * 1024;

/// One end of a handshake of TLS 1.3.
struct TlsNegotiation {
    connection: Connection,
    peer: SocketAddr,
    verification: Arc<Verification>,
}

impl Negotiation for TlsNegotiation {
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let result = self.connection.read_hs(bytes);
        result.map_err(|error| cause_of(&error))
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        match self.connection.write_hs(out)? {
            TlsKeyChange::Handshake { keys } => Some(KeyChange::Handshake(pair(keys))),
            TlsKeyChange::OneRtt { keys, next } => {
                Some(KeyChange::Application(pair(keys), Box::new(TlsSchedule(next))))
            }
        }
    }

    fn is_complete(&self) -> bool {
        !self.connection.is_handshaking()
    }

    fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    fn session(&self) -> Result<u64, Failure> {
        let mut session = [0; 8];
        let exported =
            self.connection.export_keying_material(&mut session[2..], SESSION_LABEL, None);
        exported.map_err(|_| Failure::Internal)?;
        let session = u64::from_be_bytes(session);
        // A small value would be taken for a session of an older version (WIRE-33).
        Ok(if session >> 32 == 0 { session | 1 << 47 } else { session })
    }

    fn peer_life(&self) -> Option<Life> {
        self.connection.quic_transport_parameters().and_then(Life::parse)
    }

    fn identity(&self) -> Result<Identity, Failure> {
        let chain = self.connection.peer_certificates().ok_or(Failure::NoCertificate)?;
        let chain: Vec<Vec<u8>> = chain.iter().map(|der| der.to_vec()).collect();
        let role = match &self.connection {
            Connection::Client(_) => PeerRole::Server,
            Connection::Server(_) => PeerRole::Client,
        };
        if let (true, Verifier::Certificates(verifier)) =
            (self.is_resumed(), &self.verification.verifier)
        {
            // The chain was verified when the ticket was issued, and may have expired since.
            verifier.recheck(&chain, role, self.peer.ip())?;
        }
        self.verification.identify(&chain, role, self.peer)
    }
}
