//! Handshakes against rustls as an independent QUIC-TLS peer.

use crate::certificates::Ca;
use apus_seal::{KeyChange, KeyPair, Life, Negotiator};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::quic::{
    ClientConnection, Connection, KeyChange as TlsKeyChange, ServerConnection, Version,
};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;
use std::time::Duration;

/// The life that our end states.
const LIFE: Life = Life { id: 5, age: Duration::from_micros(7) };

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(ca: &Ca) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca.path("ca.pem")).unwrap()).unwrap();
    Arc::new(roots)
}

fn own(ca: &Ca, name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = vec![CertificateDer::from_pem_file(ca.path(&format!("{name}.pem"))).unwrap()];
    (chain, PrivateKeyDer::from_pem_file(ca.path(&format!("{name}.key"))).unwrap())
}

/// Seals with one end's key and opens with the other's, in both directions.
fn agree(ours: &KeyPair, theirs: &rustls::quic::Keys) {
    let mut payload = *b"from us to them";
    let tag = ours.local.seal(5, b"header", &mut payload).unwrap();
    let mut sealed = [&payload[..], &tag].concat();
    let opened = theirs.remote.packet.decrypt_in_place(5, b"header", &mut sealed).unwrap();
    assert_eq!(opened, b"from us to them");
    let mut payload = *b"back";
    let tag = theirs.local.packet.encrypt_in_place(9, b"header", &mut payload).unwrap();
    let mut sealed = [&payload[..], tag.as_ref()].concat();
    assert_eq!(ours.remote.open(9, b"header", &mut sealed), Some(4));
    assert_eq!(&sealed[..4], b"back");
}

/// Runs our end against `theirs`, which reads and writes bytes. Returns the final keys of both.
macro_rules! negotiate {
    ($ours:ident, $theirs:ident) => {{
        let (mut our_keys, mut their_keys) = (None, None);
        for _ in 0..8 {
            loop {
                let mut bytes = Vec::new();
                let change = $ours.write(&mut bytes);
                let is_quiet = bytes.is_empty() && change.is_none();
                $theirs.read_hs(&bytes).unwrap();
                if let Some(KeyChange::Application(keys, _)) = change {
                    our_keys = Some(keys);
                }
                if is_quiet {
                    break;
                }
            }
            loop {
                let mut bytes = Vec::new();
                let change = $theirs.write_hs(&mut bytes);
                let is_quiet = bytes.is_empty() && change.is_none();
                $ours.read(&bytes).unwrap();
                if let Some(TlsKeyChange::OneRtt { keys, .. }) = change {
                    their_keys = Some(keys);
                }
                if is_quiet {
                    break;
                }
            }
        }
        assert!($ours.is_complete() && !$theirs.is_handshaking());
        (our_keys.unwrap(), their_keys.unwrap())
    }};
}

/// Returns the session that a plain peer exports, six bytes.
fn exported(export: impl Fn(&mut [u8]) -> Result<(), rustls::Error>) -> u64 {
    let mut session = [0; 8];
    export(&mut session[2..]).unwrap();
    u64::from_be_bytes(session)
}

#[test]
fn a_plain_server_completes_our_handshake() {
    let ca = Ca::new();
    let ours = ca.negotiator("ours");
    ca.issue("theirs", |_| {});
    let (chain, key) = own(&ca, "theirs");
    let client =
        rustls::server::WebPkiClientVerifier::builder_with_provider(roots(&ca), provider());
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(client.build().unwrap());
    let mut config = config.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"apus/2".to_vec()];
    let theirs = ServerConnection::new(Arc::new(config), Version::V1, Vec::new()).unwrap();
    let mut theirs = Connection::from(theirs);
    let mut ours = ours.connect("127.0.0.1:7".parse().unwrap(), LIFE).unwrap();
    let (our_keys, their_keys) = negotiate!(ours, theirs);
    agree(&our_keys, &their_keys);
    assert_eq!(ours.identity().unwrap().spiffe_id(), Some("spiffe://test/theirs"));
    assert_eq!(ours.peer_life(), None, "SEAL-18: an earlier version states none");
    let label = b"EXPORTER-apus-session";
    let session = exported(|out| theirs.export_keying_material(out, label, None).map(drop));
    assert_eq!(ours.session().unwrap(), session);
}

#[test]
fn a_plain_client_completes_our_handshake() {
    let ca = Ca::new();
    ca.issue("ours", |params| {
        params.subject_alt_names.push(rcgen::SanType::DnsName("ours.test".try_into().unwrap()));
    });
    let ours = crate::certificates::negotiator(&ca.credentials("ours"));
    ca.issue("theirs", |_| {});
    let (chain, key) = own(&ca, "theirs");
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots(&ca));
    let mut config = config.with_client_auth_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"apus/2".to_vec()];
    let name = ServerName::try_from("ours.test").unwrap();
    let mut theirs =
        ClientConnection::new(Arc::new(config), Version::V1, name, Vec::new()).unwrap();
    let mut ours = ours.accept("127.0.0.1:7".parse().unwrap(), LIFE).unwrap();
    let (our_keys, their_keys) = negotiate!(ours, theirs);
    agree(&our_keys, &their_keys);
    assert_eq!(ours.identity().unwrap().spiffe_id(), Some("spiffe://test/theirs"));
    // SEAL-18.
    let stated = [5_u64.to_be_bytes(), 7_u64.to_be_bytes()].concat();
    assert_eq!(theirs.quic_transport_parameters(), Some(&stated[..]));
    assert_eq!(ours.peer_life(), None, "an earlier version states none");
}
