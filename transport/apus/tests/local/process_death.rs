//! Calls through shared memory to a server whose process is killed. This program runs itself as the
//! server.

use apus::{CallError, CallOptions, Endpoint, Execution, FailureKind, ReplyError};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Environment variable that is set in the server's process.
const SERVER: &str = "APUS_TEST_SERVER";

/// The server's process, killed on drop.
struct ServerProcess {
    child: Child,
    address: SocketAddr,
}

impl ServerProcess {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_death::the_server", "--nocapture", "--test-threads", "1"])
            .env(SERVER, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            // Output of the test harness precedes it, possibly in the same line.
            if let Some((_, address)) = line.split_once("listening on ") {
                break address.parse().unwrap();
            }
        };
        Self { child, address }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Fails if it was killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not a test: the server's process. It responds to `warm up` and keeps other requests without a
/// response.
#[test]
fn the_server() {
    if std::env::var_os(SERVER).is_none() {
        return;
    }
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    println!("listening on {}", server.local_addr());
    let mut unanswered = Vec::new();
    while let Ok(request) = server.recv_request() {
        if request.payload() == "warm up" {
            request.reply("warm").unwrap();
        } else {
            unanswered.push(request);
        }
    }
}

/// Environment variable with the address that the client's process calls.
const CLIENT_OF: &str = "APUS_TEST_CLIENT_OF";

/// Not a test: the client's process. It calls through shared memory, and waits for an answer.
#[test]
fn the_client() {
    let Ok(server) = std::env::var(CLIENT_OF) else { return };
    let server = server.parse().unwrap();
    let client = Endpoint::client().unwrap();
    warm_up(&client, server);
    client.call(server, "take this").unwrap();
}

/// RPC-20.
#[test]
fn the_server_knows_at_once_that_a_client_was_killed() {
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    let mut client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_death::the_client", "--nocapture", "--test-threads", "1"])
        .env(CLIENT_OF, server.local_addr().to_string())
        .spawn()
        .unwrap();
    let request = loop {
        let request = server.recv_request().unwrap();
        if request.payload() == "take this" {
            break request;
        }
        request.reply("warm").unwrap();
    };
    let (waits, process) = (request.watch_client(), request.watch_process().unwrap());
    assert!(!waits.is_gone() && !process.is_gone());
    client.kill().unwrap();
    client.wait().unwrap();
    while !(waits.is_gone() && process.is_gone()) {
        assert!(server.recv_request_timeout(Duration::from_millis(1)).unwrap().is_none());
    }
    assert!(request.watch_client().is_gone(), "a later watch knows");
    assert!(matches!(request.reply("too late"), Err(ReplyError::ClientGone)));
}

fn warm_up(client: &Endpoint, to: SocketAddr) {
    while client.metrics().engine.local_calls == 0 {
        client.call(to, "warm up").unwrap();
    }
}

#[test]
fn a_call_that_the_server_received_fails_with_unknown_execution() {
    let mut server = ServerProcess::start();
    let client = Endpoint::client().unwrap();
    warm_up(&client, server.address);
    let before = client.metrics().engine.local_calls;
    client.send(server.address, "take this", 1).unwrap();
    assert_eq!(client.metrics().engine.local_calls, before + 1);
    // The server has read the first request when it has answered the second.
    client.call(server.address, "warm up").unwrap();
    server.kill();
    let error = client.recv_completion().unwrap().result.unwrap_err();
    assert_eq!((error.kind, error.execution), (FailureKind::PeerEnded, Execution::Unknown));
    assert_eq!(client.metrics().engine.local_pairs_ended, 1);
    // The port is closed, as the network reports.
    let CallError::Failed(error) = client.call(server.address, "hello?").unwrap_err() else {
        panic!("it was accepted")
    };
    assert_eq!(error.kind, FailureKind::PortClosed, "{error}");
}

/// An idempotent call is repeated over the network, where the port is closed.
#[test]
fn an_idempotent_call_tries_the_network() {
    let mut server = ServerProcess::start();
    let client = Endpoint::client().unwrap();
    warm_up(&client, server.address);
    let options = CallOptions::new().idempotent(true);
    client.send_with(server.address, "take this", 1, options).unwrap();
    client.call(server.address, "warm up").unwrap();
    server.kill();
    let error = client.recv_completion().unwrap().result.unwrap_err();
    assert_ne!(error.kind, FailureKind::PeerEnded, "{error}");
    assert_eq!(client.metrics().engine.local_fallbacks, 1);
}
