//! Handshakes that fail or nearly fail: both ends report the cause.

use crate::certificates::{Ca, begin_later, expire, name_address, negotiator};
use crate::network::{End, MILLIS, START, assert_connected, connect, run, run_bent};
use apus_seal::tls::{Credentials, CredentialsError, TlsNegotiator, Trust};
use apus_seal::{Datagram, Failure, FoundBy, HandshakeError, Negotiator};
use apus_wire::{SealKind, SealedHeader};
use std::sync::Arc;

/// Runs a handshake of `client` with `server`. Returns the client's error, and the causes that the
/// server counted.
fn fails(
    client: Arc<dyn Negotiator>,
    server: Arc<dyn Negotiator>,
) -> (Option<HandshakeError>, Vec<Failure>) {
    let mut ends = [End::new(1, client), End::new(2, server)];
    connect(&mut ends, START);
    assert!(ends[0].keys.is_none() && ends[1].keys.is_none());
    let known = ends[0].handshakes.failure(ends[1].address);
    let counters = ends[1].handshakes.counters();
    let counted = Failure::ALL.iter().copied().filter(|cause| counters.failures(*cause) > 0);
    (known, counted.collect())
}

fn by_us(cause: Failure) -> Option<HandshakeError> {
    Some(HandshakeError { cause, found_by: FoundBy::Us })
}

fn by_peer(cause: Failure) -> Option<HandshakeError> {
    Some(HandshakeError { cause, found_by: FoundBy::Peer })
}

#[test]
fn both_ends_learn_whose_certificate_is_wrong_and_why() {
    let (ca, other) = (Ca::new(), Ca::new());
    let good = || ca.negotiator("good");
    for (cause, change) in
        [(Failure::Expired, expire as fn(&mut _)), (Failure::NotYetValid, begin_later)]
    {
        ca.issue("bad", change);
        let bad = || negotiator(&ca.credentials("bad"));
        assert_eq!(fails(good(), bad()), (by_us(cause), vec![cause]));
        assert_eq!(fails(bad(), good()), (by_peer(cause), vec![cause]));
    }
    let unknown = Failure::UnknownCa;
    other.issue("good", |_| {});
    let (own, key) = (other.path("good.pem"), other.path("good.key"));
    let foreign = Credentials::certificates(&own, &key, &ca.path("ca.pem"), None).unwrap();
    assert_eq!(fails(good(), negotiator(&foreign)), (by_us(unknown), vec![unknown]));
    assert_eq!(fails(negotiator(&foreign), good()), (by_peer(unknown), vec![unknown]));
    let error = by_us(unknown).unwrap().to_string();
    assert!(error.contains("CA"), "{error}");
}

#[test]
fn a_genuine_identity_that_is_not_allowed_is_refused_by_name_or_by_closure() {
    let ca = Ca::new();
    ca.issue("strict", |_| {});
    let strict =
        |trust| Arc::new(TlsNegotiator::new(&ca.credentials("strict"), trust, false).unwrap());
    let list = Trust { allow: vec!["spiffe://test/billing/*".into()], admission: None };
    let not_allowed = Failure::NotAllowed;
    let client = || ca.negotiator("shop");
    assert_eq!(fails(client(), strict(list)), (by_peer(not_allowed), vec![not_allowed]));
    let never = Trust { allow: Vec::new(), admission: Some(Arc::new(|_, _| false)) };
    assert_eq!(fails(strict(never.clone()), client()), (by_us(not_allowed), vec![not_allowed]));
}

#[test]
fn an_address_must_be_in_the_certificate_if_that_is_demanded() {
    let ca = Ca::new();
    ca.issue("client", |_| {});
    let client =
        || Arc::new(TlsNegotiator::new(&ca.credentials("client"), Trust::default(), true).unwrap());
    let mismatch = Failure::NameMismatch;
    let (known, counted) = fails(client(), ca.negotiator("server"));
    assert_eq!((known, counted), (by_us(mismatch), vec![mismatch]));
    ca.issue("server", |params| name_address(params, [127, 0, 0, 1].into()));
    let server = negotiator(&ca.credentials("server"));
    let mut ends = [End::new(1, client()), End::new(2, server)];
    connect(&mut ends, START);
    assert_connected(&mut ends);
}

/// SEAL-10.
#[test]
fn a_silent_server_is_given_up_and_asked_again_later() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
    let peer = ends[1].address;
    ends[0].handshakes.want(START, peer, None).unwrap();
    let mut sent = 0;
    let now = run_bent(&mut ends, START, 10_000 * MILLIS, |_, _| {
        sent += 1;
        Vec::new()
    });
    assert_eq!(sent, 9);
    let timeout = HandshakeError { cause: Failure::Timeout, found_by: FoundBy::Us };
    assert_eq!(ends[0].handshakes.want(now, peer, None), Err(timeout));
    connect(&mut ends, now + 2_000 * MILLIS);
    assert_connected(&mut ends);
}

#[test]
fn lost_packets_are_sent_again_whichever_they_are() {
    let ca = Ca::new();
    for lost in 0..5 {
        let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
        let peer = ends[1].address;
        ends[0].handshakes.want(START, peer, None).unwrap();
        let mut count = 0;
        run_bent(&mut ends, START, 300 * MILLIS, |_, datagram| {
            count += 1;
            if count == lost + 1 { Vec::new() } else { vec![datagram] }
        });
        assert!(count > lost);
        assert_connected(&mut ends);
        assert_eq!(ends[0].handshakes.in_progress(), 0, "READY has come");
    }
}

#[test]
fn changed_repeated_and_reordered_packets_do_no_harm() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
    let peer = ends[1].address;
    ends[0].handshakes.want(START, peer, None).unwrap();
    let mut count = 0;
    run_bent(&mut ends, START, 2_000 * MILLIS, |_, datagram| {
        count += 1;
        let mut changed = datagram.clone();
        let at = 28 + count * 7 % (changed.packet.len() - 28).max(1);
        if changed.packet[11] == 0x21 {
            changed.packet[at] ^= 4;
        }
        vec![changed, datagram.clone(), datagram]
    });
    assert_connected(&mut ends);
}

/// HANDSHAKE-3, SEAL-15.
#[test]
fn two_handshakes_that_meet_lead_to_one_association() {
    for _ in 0..8 {
        let ca = Ca::new();
        let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
        let (one, other) = (ends[0].address, ends[1].address);
        ends[0].handshakes.want(START, other, None).unwrap();
        ends[1].handshakes.want(START, one, None).unwrap();
        run(&mut ends, START, 3_000 * MILLIS);
        assert_connected(&mut ends);
        let counters = ends.iter().map(|end| end.handshakes.counters().handshakes_as_client.get());
        assert_eq!(counters.sum::<u64>(), 1);
    }
}

/// HANDSHAKE-4, SEAL-16.
#[test]
fn a_finish_that_comes_after_a_later_handshake_changes_nothing() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("first")), End::new(2, ca.negotiator("second"))];
    let [first, second] = [ends[0].address, ends[1].address];
    let mut held: Vec<Datagram> = Vec::new();
    let mut hold = |_, datagram: Datagram| {
        let header = SealedHeader::parse(&datagram.packet).unwrap();
        let is_of_first = header.kind == Some(SealKind::Finish) && datagram.to == second;
        let id = |held: &Datagram| SealedHeader::parse(&held.packet).unwrap().id;
        if is_of_first && held.first().is_none_or(|held| id(held) == header.id) {
            held.push(datagram);
            return Vec::new();
        }
        vec![datagram]
    };
    ends[0].handshakes.want(START, second, None).unwrap();
    run_bent(&mut ends, START, 5 * MILLIS, &mut hold);
    assert!(ends[0].session().is_some() && ends[1].session().is_none(), "its FINISH is held");
    ends[1].handshakes.want(10 * MILLIS, first, None).unwrap();
    // The first end answers after it has repeated FINISH three times.
    run_bent(&mut ends, 10 * MILLIS, 400 * MILLIS, &mut hold);
    assert_connected(&mut ends);
    let session = ends[0].session();
    for datagram in held {
        ends[1].receive(410 * MILLIS, first, datagram.packet);
    }
    run(&mut ends, 410 * MILLIS, 450 * MILLIS);
    assert_eq!(ends[1].session(), session, "the keys of the later handshake");
    assert_connected(&mut ends);
}

/// HANDSHAKE-3, SEAL-15: a server that has packets to send while the client's FINISH is in flight
/// uses the client's keys when it arrives. A second handshake would end the session that the client
/// has used for calls in the meantime: calls failed as if their server had been restarted.
#[test]
fn a_handshake_that_only_the_client_knows_complete_is_not_replaced() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("first")), End::new(2, ca.negotiator("second"))];
    let [first, second] = [ends[0].address, ends[1].address];
    let late = |now, datagram: Datagram| {
        let kind = SealedHeader::parse(&datagram.packet).unwrap().kind;
        let is_lost = kind == Some(SealKind::Finish) && datagram.to == second && now < 30 * MILLIS;
        if is_lost { vec![] } else { vec![datagram] }
    };
    ends[0].handshakes.want(START, second, None).unwrap();
    run_bent(&mut ends, START, 5 * MILLIS, late);
    let session = ends[0].session();
    assert!(session.is_some() && ends[1].session().is_none(), "its FINISH is lost");
    ends[1].handshakes.want(10 * MILLIS, first, None).unwrap();
    run_bent(&mut ends, 10 * MILLIS, 2_000 * MILLIS, late);
    assert_eq!(ends[0].session(), session);
    assert_connected(&mut ends);
    assert_eq!(ends[1].handshakes.counters().handshakes_as_client.get(), 0);
}

/// SEAL-13: the server has no key for packets that overtake FINISH, nor for packets after a FINISH
/// that is lost.
#[test]
fn a_missing_key_is_believed_once_a_finish_was_sent_in_vain() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("first")), End::new(2, ca.negotiator("second"))];
    let [first, second] = [ends[0].address, ends[1].address];
    let is_finish = |datagram: &Datagram| {
        let kind = SealedHeader::parse(&datagram.packet).unwrap().kind;
        kind == Some(SealKind::Finish) && datagram.to == second
    };
    let lose = |_, datagram: Datagram| if is_finish(&datagram) { vec![] } else { vec![datagram] };
    ends[0].handshakes.want(START, second, None).unwrap();
    run_bent(&mut ends, START, 5 * MILLIS, lose);
    let session = ends[0].session();
    assert!(session.is_some() && ends[1].session().is_none(), "its FINISH is lost");
    for (at, begun) in [(5, 1), (300, 2)] {
        run_bent(&mut ends, (at - 1) * MILLIS, at * MILLIS, lose);
        let packet = ends[0].seal(b"a request");
        ends[1].receive(at * MILLIS, first, packet);
        run_bent(&mut ends, at * MILLIS, (at + 2) * MILLIS, |now, datagram| {
            if at == 5 { lose(now, datagram) } else { vec![datagram] }
        });
        assert_eq!(ends[0].handshakes.counters().handshakes_begun.get(), begun);
        if at == 5 {
            run_bent(&mut ends, at * MILLIS, 290 * MILLIS, lose);
        }
    }
    assert_connected(&mut ends);
    assert_ne!(ends[0].session(), session);
}

/// SEAL-13: a restarted server asks for a new handshake.
#[test]
fn a_peer_that_has_lost_its_keys_asks_for_new_ones() {
    let ca = Ca::new();
    let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, ca.negotiator("b"))];
    connect(&mut ends, START);
    let before = ends[0].session();
    ends[1] = End::new(2, ca.negotiator("b"));
    let (packet, from) = (ends[0].seal(b"a request"), ends[0].address);
    ends[1].receive(10 * MILLIS, from, packet.clone());
    run(&mut ends, 10 * MILLIS, 20 * MILLIS);
    assert_connected(&mut ends);
    assert_ne!(ends[0].session(), before);
    assert_eq!(ends[1].open(&packet), None, "a packet of the earlier life");
}

#[test]
fn keys_that_others_may_read_are_refused() {
    let ca = Ca::new();
    ca.issue("a", |_| {});
    let key = ca.path("a.key");
    let mode =
        |mode| std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(mode));
    mode(0o640).unwrap();
    let read = Credentials::certificates(&ca.path("a.pem"), &key, &ca.path("ca.pem"), None);
    assert!(matches!(read, Err(CredentialsError::Exposed { mode: 0o640, .. })));
    mode(0o400).unwrap();
    ca.credentials("a");
    // The key of another certificate.
    ca.issue("b", |_| {});
    let read = Credentials::certificates(&ca.path("b.pem"), &key, &ca.path("ca.pem"), None);
    assert!(matches!(read, Err(CredentialsError::Unusable { .. })), "{read:?}");
}
