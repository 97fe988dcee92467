//! A key-value store with tokio: a server with a task for each request, and a client.
//!
//! ```sh
//! cargo run --example kv-tokio -- serve 127.0.0.1:4000
//! cargo run --example kv-tokio -- 127.0.0.1:4000 put planet saturn
//! cargo run --example kv-tokio -- 127.0.0.1:4000 get planet
//! ```
//!
//! `kv` is the same program with threads: compare the two. Each understands the other.

#[path = "../kv/store.rs"]
mod store;

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use apus::CallOptions;
use apus::tokio::{Endpoint, Request};
use store::Store;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &arguments[..] {
        ["serve", address] => serve(address).await,
        [server, command @ ..] => call(server, command).await,
        [] => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kv-tokio: {error}");
            ExitCode::FAILURE
        }
    }
}

const USAGE: &str =
    "usage: kv-tokio serve ADDRESS | kv-tokio SERVER (get KEY | put KEY VALUE | delete KEY)";

/// Serves requests until the process ends.
async fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::bind(address).await?;
    println!("listening on {}", endpoint.local_addr());
    let store = Arc::new(Store::default());
    loop {
        let request = endpoint.recv_request().await?;
        tokio::spawn(respond(request, store.clone()));
    }
}

/// Executes a request.
async fn respond(request: Request, store: Arc<Store>) {
    let client = request.peer_addr();
    // A request that is dropped fails at its client at once.
    let Some(reply) = store.execute(request.payload()) else { return };
    if let Err(error) = request.reply(reply).await {
        eprintln!("{client}: {error}");
    }
}

/// Sends the request that `command` means, and prints the value if there is one.
async fn call(server: &str, command: &[&str]) -> Result<(), Box<dyn Error>> {
    let server: SocketAddr = server.parse()?;
    let request = store::request(command).ok_or(USAGE)?;
    let endpoint = Endpoint::client().await?;
    // Each of the three operations may be repeated: a call then survives a restart of the server.
    let options = CallOptions::new().timeout(Duration::from_secs(5)).idempotent(true);
    let reply = endpoint.call_with(server, request, options).await?;
    if let ["get", key] = command {
        let value = store::value(&reply).ok_or_else(|| format!("no value for {key}"))?;
        println!("{}", String::from_utf8_lossy(&value));
    }
    Ok(())
}
