//! Another process has taken an endpoint's name for peers of this host.
//!
//! This program runs itself as the attacker, as another user, which needs root, and as the victim.

use crate::ports::free_address;
use apus::local::{LocalConfig, PeerPolicy};
use apus::{Endpoint, EndpointBuilder};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Environment variable with the task of a process, and the address.
const ROLE: &str = "APUS_TEST_NAME";

/// A user without files and processes.
const ATTACKER: u32 = 54_321;

fn name_of(address: SocketAddr) -> Name {
    Name::from_abstract_name(format!("apus-local/1/{address}")).unwrap()
}

fn command(role: &str, address: SocketAddr) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "names::the_other_process", "--nocapture", "--test-threads", "1"]);
    command.env(ROLE, format!("{role} {address}")).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Not a test: the entry point of the attacker and of the victim.
#[test]
fn the_other_process() {
    let Ok(text) = std::env::var(ROLE) else { return };
    let (role, address) = text.split_once(' ').unwrap();
    let address: SocketAddr = address.parse().unwrap();
    if role == "victim" {
        let endpoint = Endpoint::bind(address).unwrap();
        println!("taken: {}", endpoint.metrics().engine.local_names_taken);
        return;
    }
    let listener = UnixListener::bind_addr(&name_of(address)).unwrap();
    println!("has the name");
    std::io::stdout().flush().unwrap();
    let mut hello = Vec::new();
    // Ends when the client gives up.
    let _ = listener.accept().unwrap().0.read_to_end(&mut hello);
    println!("read {} bytes", hello.len());
}

/// Returns the next line that contains `text`.
fn line_with(lines: &mut impl Iterator<Item = std::io::Result<String>>, text: &str) -> String {
    lines.map(Result::unwrap).find(|line| line.contains(text)).expect("the process says it")
}

#[test]
fn a_name_that_is_taken_is_reported_at_the_start() {
    let address = free_address();
    let _squatter = UnixListener::bind_addr(&name_of(address)).unwrap();
    let output = command("victim", address).stdin(Stdio::null()).output().unwrap();
    let (said, warned) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("taken: 1"), "{said}{warned}");
    let expected = format!("apus: warning: another process has the name of {address}");
    let warnings: Vec<&str> = warned.lines().filter(|line| line.contains(&expected)).collect();
    assert_eq!(warnings.len(), 1, "{warned}");
}

/// Calls out of an endpoint whose name is taken go through shared memory all the same.
#[test]
fn an_endpoint_without_its_name_still_calls_through_shared_memory() {
    let address = free_address();
    let _squatter = UnixListener::bind_addr(&name_of(address)).unwrap();
    let client = Endpoint::bind(address).unwrap();
    assert!(client.has_local_path());
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    super::connect(&client, &server);
    assert!(client.metrics().engine.local_calls > 0);
}

/// The attacker's process, ended on drop.
struct Attacker(Child);

impl Drop for Attacker {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The attack: another user takes the name of a server that does not use it, and would get the
/// calls of clients that accept every user.
#[test]
fn a_user_that_does_not_own_the_udp_socket_gets_no_calls() {
    let server = EndpointBuilder::default().local(false).bind("127.0.0.1:0").unwrap();
    let address = server.local_addr();
    let mut attacker = match command("attacker", address).uid(ATTACKER).gid(ATTACKER).spawn() {
        Ok(child) => Attacker(child),
        Err(error) => {
            eprintln!("SKIPPED: cannot start a process of another user: {error}");
            return;
        }
    };
    let mut lines = BufReader::new(attacker.0.stdout.take().unwrap()).lines();
    line_with(&mut lines, "has the name");
    let mut config = LocalConfig::default();
    config.peer_policy = PeerPolicy::Anyone;
    let client = EndpointBuilder::default().local_config(config).client().unwrap();
    if !client.has_local_path() {
        eprintln!("SKIPPED: this kernel does not say who owns UDP sockets");
        return;
    }
    let serving = super::echo(server.clone());
    let reader = std::thread::spawn(move || line_with(&mut lines, "read "));
    while !reader.is_finished() {
        assert_eq!(client.call(address, "secret").unwrap(), "secret");
    }
    assert!(reader.join().unwrap().contains("read 0 bytes"), "not even a hello");
    assert_eq!(client.metrics().engine.local_calls, 0);
    assert!(client.metrics().engine.local_impostors > 0);
    server.shutdown();
    serving.join().unwrap();
}
