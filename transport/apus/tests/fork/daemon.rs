//! Processes that end before their children.

use crate::process::{Child, End, Line};
use apus::{Closed, Endpoint, FailureKind};
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A program that binds, forks twice and goes on in the grandchild. There the endpoint is refused,
/// and its address is free as soon as the first process has ended.
pub(crate) fn a_daemon_binds_the_address_of_its_origin() {
    let line = Line::new();
    let origin = Child::fork(End::Exit, || {
        let server = Endpoint::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr();
        let (alive, mut ended) = UnixStream::pair().unwrap();
        let mut held = (Some(server), Some(alive));
        let between = Child::fork(End::Abandon, || {
            let _daemon = Child::fork(End::Abandon, || {
                drop(held.1.take());
                // Readable when the first process, which has the other end, has ended.
                let _ = ended.read(&mut [0]);
                let server = held.0.take().unwrap();
                assert!(matches!(server.recv_request(), Err(Closed::Forked(_))));
                drop(server);
                let server = Endpoint::bind(address).unwrap();
                assert!(server.has_local_path());
                line.send(&address.to_string());
                server.recv_request().unwrap().reply("from the daemon").unwrap();
                server.drain(Duration::from_secs(9));
            });
        });
        between.join();
    });
    origin.join();
    let address: SocketAddr = line.receive().parse().unwrap();
    let client = Endpoint::client().unwrap();
    assert_eq!(client.call(address, "x").unwrap(), "from the daemon");
}

/// The socket of a pair reports the end of a process only if no child has it open.
pub(crate) fn the_end_of_a_server_is_noticed_although_its_child_lives() {
    let line = Line::new();
    let (mut wait, release) = UnixStream::pair().unwrap();
    let mut release = Some(release);
    let server = Child::fork(End::Abandon, || {
        drop(release.take());
        let server = Endpoint::bind("127.0.0.1:0").unwrap();
        let mut kept = Vec::new();
        line.send(&server.local_addr().to_string());
        loop {
            let request = server.recv_request().unwrap();
            if request.payload() == "warm up" {
                request.reply("warm").unwrap();
                continue;
            }
            kept.push(request);
            let _survivor = Child::fork(End::Abandon, || {
                line.send("the child lives");
                // Until the test has ended.
                let _ = wait.read(&mut [0]);
            });
        }
    });
    let address: SocketAddr = line.receive().parse().unwrap();
    let client = Endpoint::client().unwrap();
    while client.metrics().engine.local_calls == 0 {
        client.call(address, "warm up").unwrap();
    }
    client.send(address, "kept", 7).unwrap();
    assert_eq!(line.receive(), "the child lives");
    server.kill();
    let result = client.recv_completion().unwrap().result;
    let ended = matches!(&result, Err(error) if error.kind == FailureKind::PeerEnded);
    assert!(ended, "{result:?}");
    drop(release);
}
