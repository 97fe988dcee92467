//! The smallest service: it returns each request unchanged.
//!
//! ```sh
//! cargo run --example echo -- serve 127.0.0.1:4000
//! cargo run --example echo -- call 127.0.0.1:4000 hello
//! ```

use std::env;
use std::error::Error;
use std::net::ToSocketAddrs;
use std::process::ExitCode;
use std::time::Instant;

use apus::Endpoint;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["serve", address] => serve(address),
        ["call", server, message] => call(server, message),
        _ => Err("usage: echo serve ADDRESS | echo call SERVER MESSAGE".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves requests until the process ends.
fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let endpoint = Endpoint::bind(address)?;
    println!("listening on {}", endpoint.local_addr());
    loop {
        let mut request = endpoint.recv_request()?;
        let client = request.peer_addr();
        // The reply is the memory of the request, without a copy.
        let message = request.take_payload();
        if let Err(error) = request.reply(message) {
            // The client has ended or does not wait any more. That is no fault of the service.
            eprintln!("{client}: {error}");
        }
    }
}

/// Sends one request, and prints the reply and how long it took.
fn call(server: &str, message: &str) -> Result<(), Box<dyn Error>> {
    // A call needs an address: a name is resolved once, and not in each call.
    let address = server.to_socket_addrs()?.next().ok_or("the name has no address")?;
    let endpoint = Endpoint::client()?;
    let began = Instant::now();
    let reply = endpoint.call(address, message.to_owned())?;
    let took = began.elapsed();
    println!("{} after {took:?}", String::from_utf8_lossy(&reply));
    Ok(())
}
