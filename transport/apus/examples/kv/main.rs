//! A key-value store: a server with several threads, and a client.
//!
//! ```sh
//! cargo run --example kv -- serve 127.0.0.1:4000
//! cargo run --example kv -- 127.0.0.1:4000 put planet saturn
//! cargo run --example kv -- 127.0.0.1:4000 get planet
//! ```
//!
//! `kv-tokio` is the same program for tokio: compare the two.

mod store;

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use apus::{CallOptions, Endpoint};
use store::Store;

/// Threads that serve requests.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &arguments[..] {
        ["serve", address] => serve(address),
        [server, command @ ..] => call(server, command),
        [] => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kv: {error}");
            ExitCode::FAILURE
        }
    }
}

const USAGE: &str = "usage: kv serve ADDRESS | kv SERVER (get KEY | put KEY VALUE | delete KEY)";

/// Serves requests until the process ends.
fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::bind(address)?;
    println!("listening on {}", endpoint.local_addr());
    let store = Store::default();
    // All threads share the endpoint. The thread that has waited for the shortest time gets the
    // next request, since its caches are warm.
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| receive(&endpoint, &store));
        }
    });
    Ok(())
}

/// Executes requests until the endpoint is closed.
fn receive(endpoint: &Endpoint, store: &Store) {
    while let Ok(request) = endpoint.recv_request() {
        let client = request.peer_addr();
        // A request that is dropped fails at its client at once.
        let Some(reply) = store.execute(request.payload()) else { continue };
        if let Err(error) = request.reply(reply) {
            eprintln!("{client}: {error}");
        }
    }
}

/// Sends the request that `command` means, and prints the value if there is one.
fn call(server: &str, command: &[&str]) -> Result<(), Box<dyn Error>> {
    let server: SocketAddr = server.parse()?;
    let request = store::request(command).ok_or(USAGE)?;
    let endpoint = Endpoint::client()?;
    // Each of the three operations may be repeated: a call then survives a restart of the server.
    let options = CallOptions::new().timeout(Duration::from_secs(5)).idempotent(true);
    let reply = endpoint.call_with(server, request, options)?;
    if let ["get", key] = command {
        let value = store::value(&reply).ok_or_else(|| format!("no value for {key}"))?;
        println!("{}", String::from_utf8_lossy(&value));
    }
    Ok(())
}
