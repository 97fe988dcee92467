//! Identities: certificates, known keys, and a shared secret.

use crate::certificates::{Ca, negotiator, write_secret};
use crate::network::{End, MILLIS, START, assert_connected, connect};
use apus_seal::IdentityKind;
use apus_seal::tls::{Credentials, TlsNegotiator, Trust};
use std::fmt::Write;
use std::sync::Arc;

#[test]
fn certificates_of_one_ca_admit_each_other_and_name_the_peer() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
    connect(&mut ends, START);
    assert_connected(&mut ends);
    let session = ends[0].session().unwrap();
    assert!(session >> 32 != 0 && session < 1 << 48, "a session of 48 bits");
    let identity = ends[1].handshakes.identity(ends[0].address, session).unwrap();
    assert_eq!(identity.spiffe_id(), Some("spiffe://test/a"));
    assert_eq!(identity.kind(), IdentityKind::Certificate);
    assert!(ends[1].handshakes.identity(ends[0].address, session ^ 1).is_none());
    assert_eq!(ends.iter().map(|end| end.handshakes.in_progress()).sum::<usize>(), 0);
}

#[test]
fn a_ticket_resumes_a_session_once_and_identifies_the_peer() {
    let ca = Ca::new();
    let (a, b) = (ca.negotiator("a"), ca.negotiator("b"));
    let mut ends = [End::new(1, a.clone()), End::new(2, b)];
    connect(&mut ends, START);
    let first = ends[0].session();
    // The client has lost its keys but not its tickets.
    ends[0] = End::new(1, a);
    connect(&mut ends, 100 * MILLIS);
    assert_connected(&mut ends);
    assert_ne!(ends[0].session(), first);
    assert_eq!(ends[0].handshakes.counters().handshakes_resumed.get(), 1);
    let session = ends[0].session().unwrap();
    let identity = ends[1].handshakes.identity(ends[0].address, session).unwrap();
    assert_eq!(identity.spiffe_id(), Some("spiffe://test/a"));
    let before = ends[1].handshakes.identity(ends[0].address, first.unwrap());
    assert!(before.is_some(), "requests of the session before are with the application");
}

#[test]
fn known_keys_admit_each_other_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut list = String::new();
    for name in ["a", "b"] {
        let key = rcgen::KeyPair::generate().unwrap();
        write_secret(&path(name), key.serialize_pem().as_bytes());
        std::fs::write(path("none"), "").unwrap();
        let own = Credentials::keys(&path(name), &path("none")).unwrap().fingerprint();
        let digits: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(list, "host-{name} {digits}").unwrap();
    }
    std::fs::write(path("known"), list).unwrap();
    let end = |port, name: &str| {
        End::new(port, negotiator(&Credentials::keys(&path(name), &path("known")).unwrap()))
    };
    let mut ends = [end(1, "a"), end(2, "b")];
    connect(&mut ends, START);
    assert_connected(&mut ends);
    let session = ends[0].session().unwrap();
    let identity = ends[0].handshakes.identity(ends[1].address, session).unwrap();
    assert_eq!(
        (identity.names(), identity.kind()),
        (&["host-b".to_owned()][..], IdentityKind::Key)
    );
}

#[test]
fn a_cluster_admits_those_that_know_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let end = |port, secret: &[u8]| {
        write_secret(&path, secret);
        End::new(port, negotiator(&Credentials::secret(&path).unwrap()))
    };
    let mut ends = [end(1, &[7; 32]), end(2, b"\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\n")];
    connect(&mut ends, START);
    assert_connected(&mut ends);
    ends = [end(1, &[7; 32]), end(2, &[8; 32])];
    connect(&mut ends, START);
    assert!(ends[0].keys.is_none() && ends[1].keys.is_none());
    write_secret(&path, &[7; 31]);
    let error = Credentials::secret(&path).unwrap_err().to_string();
    assert!(error.contains("31 bytes"), "{error}");
}

#[test]
fn a_peer_that_is_trusted_no_more_loses_its_keys_after_a_reload() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
    connect(&mut ends, START);
    assert_connected(&mut ends);
    let trust = |allow: &str| Trust { allow: vec![allow.to_owned()], admission: None };
    let with = |trust| Arc::new(TlsNegotiator::new(&ca.credentials("b"), trust, false).unwrap());
    assert_eq!(ends[1].handshakes.replace_negotiator(with(trust("spiffe://test/*"))), 0);
    assert_eq!(ends[1].handshakes.replace_negotiator(with(trust("spiffe://test/c"))), 1);
    ends[1].take_events();
    assert!(ends[1].keys.is_none());
    connect(&mut ends, 10_000 * MILLIS);
    assert!(ends[1].keys.is_none() && ends[0].keys.is_none(), "it is refused from now on");
}

/// The Debug output of types with keys contains none of them.
#[test]
fn debug_output_and_errors_show_no_key() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
    connect(&mut ends, START);
    let secret = std::fs::read_to_string(ca.path("a.key")).unwrap();
    let (sealer, opener) = ends[0].keys.as_ref().unwrap();
    let shown = format!(
        "{sealer:?} {opener:?} {:?} {:?} {:?}",
        ends[0].handshakes,
        ca.credentials("a"),
        ca.negotiator("c"),
    );
    assert!(shown.contains("PacketCipher(..)"));
    for line in secret.lines() {
        assert!(!shown.contains(line));
    }
    for forbidden in ["OkmBlock", "Secrets", "AeadKey", "iv:"] {
        assert!(!shown.contains(forbidden), "{forbidden} in {shown}");
    }
}

/// Found by attack: a recheck verified a server's certificate as a client's, and then for no
/// address.
#[test]
fn a_recheck_verifies_the_role_and_the_name_that_were_verified() {
    use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let ca = Ca::new();
    let local = std::net::Ipv4Addr::LOCALHOST;
    ca.issue("client", |params| params.extended_key_usages = vec![ClientAuth]);
    ca.issue("server", |params| {
        params.extended_key_usages = vec![ServerAuth];
        crate::certificates::name_address(params, local.into());
    });
    let strict = |name: &str| {
        Arc::new(TlsNegotiator::new(&ca.credentials(name), Trust::default(), true).unwrap())
    };
    let mut ends = [End::new(1, strict("client")), End::new(2, strict("server"))];
    connect(&mut ends, START);
    assert_connected(&mut ends);
    for (end, name) in ends.iter_mut().zip(["client", "server"]) {
        assert_eq!(end.handshakes.recheck(), 0, "a minute has passed at the {name}");
        assert_eq!(end.handshakes.replace_negotiator(strict(name)), 0, "the {name} reloads");
        end.take_events();
    }
    assert_connected(&mut ends);
    // A name that the certificate does not have is noticed, as at the handshake.
    let session = ends[0].session().unwrap();
    let identity = ends[0].handshakes.identity(ends[1].address, session).unwrap();
    let elsewhere = std::net::SocketAddr::from(([127, 0, 0, 2], 2));
    let negotiator: Arc<dyn apus_seal::Negotiator> = strict("client");
    assert!(negotiator.recheck(&identity, ends[1].address).is_ok());
    assert_eq!(
        negotiator.recheck(&identity, elsewhere),
        Err(apus_seal::Failure::NameMismatch),
        "the certificate is for another address"
    );
}
