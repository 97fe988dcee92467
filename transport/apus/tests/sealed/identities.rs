//! Identities: accepted and refused peers.

use crate::keys::{Ca, Cluster, counter, serve};
use apus::security::{Failure, FoundBy, Plaintext, Security};
use apus::{BindError, CallError, Endpoint, FailureKind};
use std::sync::Arc;

#[test]
fn a_server_learns_the_identity_of_its_client() {
    let ca = Ca::new();
    let server = Arc::new(ca.builder("server").bind("127.0.0.1:0").unwrap());
    let thread = serve(&server);
    let client = ca.builder("shop").client().unwrap();
    assert_eq!(client.call(server.local_addr(), "!").unwrap(), "spiffe://test/shop!");
    // A long request, whose packets are not all there when the first is.
    let long = client.call(server.local_addr(), vec![b'-'; 300_000]).unwrap();
    assert!(long.starts_with(b"spiffe://test/shop-"));
    server.shutdown();
    thread.join().unwrap();
}

/// SEAL-12.
#[test]
fn a_refused_call_fails_soon_and_both_ends_know_why() {
    let ca = Ca::new();
    ca.issue("strict");
    let mut settings = ca.settings("strict");
    settings.allow = vec!["spiffe://test/billing".into()];
    let server = Endpoint::builder().security(Security::new(settings)).bind("127.0.0.1:0").unwrap();
    let client = ca.builder("shop").client().unwrap();
    let error = client.call(server.local_addr(), "hello").unwrap_err();
    let CallError::Failed(failed) = &error else { panic!("{error:?}") };
    assert_eq!(failed.kind, FailureKind::Untrusted, "{error}");
    let failure = client.handshake_failure(server.local_addr()).unwrap();
    assert_eq!((failure.cause, failure.found_by), (Failure::NotAllowed, FoundBy::Peer));
    assert!(counter(&server, "seal_failures_not_allowed") > 0);
    // A closure decides, too.
    let none = Security::new(ca.settings("strict")).admit(|_, _| false);
    let wary = Endpoint::builder().security(none).client().unwrap();
    let open = ca.builder("open").bind("127.0.0.1:0").unwrap();
    assert!(wary.call(open.local_addr(), "hello").is_err());
    let failure = wary.handshake_failure(open.local_addr()).unwrap();
    assert_eq!((failure.cause, failure.found_by), (Failure::NotAllowed, FoundBy::Us));
}

#[test]
fn an_endpoint_without_usable_keys_is_not_opened() {
    let ca = Ca::new();
    let open = |security| Endpoint::builder().security(security).bind("127.0.0.1:0");
    let missing = open(Security::new(ca.settings("nothing")));
    assert!(matches!(missing, Err(BindError::Security(_))));
    let mut settings = ca.settings("a");
    ca.issue("a");
    settings.ca = None;
    let error = open(Security::new(settings)).unwrap_err().to_string();
    assert!(error.contains("`ca`"), "{error}");
}

#[test]
fn memory_is_used_beside_sealed_packets_only_if_the_settings_say_so() {
    let cluster = Cluster::new(21);
    let mut settings = cluster.security().settings().clone();
    assert_eq!(settings.plaintext, Plaintext::Refuse);
    settings.plaintext = Plaintext::LocalOnly;
    let endpoint = Endpoint::builder().security(Security::new(settings)).bind("127.0.0.1:0");
    let endpoint = endpoint.unwrap();
    assert!(endpoint.is_sealed() && endpoint.has_local_path());
}
