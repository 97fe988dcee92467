//! Restarts, rotation, and the move from clear to sealed.

use crate::keys::{Ca, Cluster, counter, serve};
use crate::ports::free_address;
use apus::security::Security;
use apus::{CallError, Config, Endpoint, FailureKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// SEAL-11, SEAL-13, AMO-3.
#[test]
fn a_restarted_server_is_called_again_with_new_keys() {
    let cluster = Cluster::new(31);
    let first = Arc::new(cluster.builder().bind(free_address()).unwrap());
    let address = first.local_addr();
    let thread = serve(&first);
    let client = cluster.builder().client().unwrap();
    assert_eq!(client.call(address, "one").unwrap(), "one");
    first.shutdown();
    thread.join().unwrap();
    drop(first);
    let second = Arc::new(cluster.builder().bind(address).unwrap());
    let thread = serve(&second);
    // The first call may find out that the server was restarted.
    let call = || client.call(address, "two");
    let reply = call().or_else(|error| match error {
        CallError::Failed(failed) if failed.kind == FailureKind::PeerRestarted => call(),
        error => Err(error),
    });
    assert_eq!(reply.unwrap(), "two");
    assert_eq!(counter(&second, "seal_handshakes_as_server"), 1);
    second.shutdown();
    thread.join().unwrap();
}

/// Certificates are rotated while calls continue, and a removed peer loses its session.
#[test]
fn files_are_read_again_when_they_change() {
    let ca = Ca::new();
    ca.issue("server");
    let other = Ca::new();
    std::fs::write(ca.path("peers.pem"), std::fs::read(ca.path("ca.pem")).unwrap()).unwrap();
    let mut settings = ca.settings("server");
    settings.ca = Some(ca.path("peers.pem"));
    let server = Endpoint::builder().security(Security::new(settings)).bind("127.0.0.1:0").unwrap();
    let server = Arc::new(server);
    let thread = serve(&server);
    // A client that gives up a silent server soon, which is one of the ends that are right below.
    let client = ca.builder("client").config(Config::default()).client().unwrap();
    assert_eq!(client.call(server.local_addr(), "!").unwrap(), "spiffe://test/client!");
    ca.issue("server");
    // A CA that has issued none of these: a peer with the old certificates is refused, and its
    // session ends.
    crate::keys::write_secret(&ca.path("peers.pem"), &std::fs::read(other.path("ca.pem")).unwrap());
    let watchdog = Instant::now() + Duration::from_secs(60);
    while counter(&server, "seal_peers_revoked") == 0 {
        assert!(Instant::now() < watchdog, "the files are not read");
        std::thread::yield_now();
    }
    let error = client.call(server.local_addr(), "!").unwrap_err();
    assert!(
        matches!(&error, CallError::Failed(failed)
        if [FailureKind::Untrusted, FailureKind::PeerRestarted].contains(&failed.kind)
            || matches!(failed.kind, FailureKind::PeerSilent { .. })),
        "{error:?}"
    );
    server.shutdown();
    thread.join().unwrap();
}

/// A service moves from clear to sealed on two ports: both kinds of clients are served during the
/// move.
#[test]
fn a_service_has_a_clear_and_a_sealed_port_while_it_moves() {
    let cluster = Cluster::new(33);
    let clear = Arc::new(Endpoint::builder().local(false).bind("127.0.0.1:0").unwrap());
    let sealed = Arc::new(cluster.builder().bind("127.0.0.1:0").unwrap());
    let threads = [serve(&clear), serve(&sealed)];
    let old = Endpoint::builder().local(false).client().unwrap();
    let new = cluster.builder().client().unwrap();
    assert_eq!(old.call(clear.local_addr(), "old").unwrap(), "old");
    assert_eq!(new.call(sealed.local_addr(), "new").unwrap(), "new");
    clear.shutdown();
    assert_eq!(new.call(sealed.local_addr(), "new").unwrap(), "new");
    sealed.shutdown();
    for thread in threads {
        thread.join().unwrap();
    }
}
