//! One request to many servers: the first answers count, and the other calls are cancelled.
//!
//! ```sh
//! cargo run --example fan-out
//! ```
//!
//! Five replicas run in this process, and two of them are stuck. `first_answers` does not wait for
//! them.

use std::error::Error;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use apus::{Bytes, CallOptions, Endpoint};

/// Number of replicas, of stuck replicas, and of required answers.
const REPLICAS: usize = 5;
const STUCK: usize = 2;
const WANTED: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let replicas: Vec<Endpoint> =
        (0..REPLICAS).map(|_| Endpoint::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let addresses: Vec<SocketAddr> = replicas.iter().map(|replica| replica.local_addr()).collect();
    let client = Endpoint::client()?;
    let question = Bytes::from("who is there?");
    let answers = thread::scope(|scope| {
        for (name, replica) in replicas.iter().enumerate() {
            scope.spawn(move || if name < STUCK { hang(replica) } else { answer(replica, name) });
        }
        let answers = first_answers(&client, &addresses, &question, WANTED);
        replicas.iter().for_each(|replica| replica.shutdown());
        answers
    });
    for (position, answer) in answers? {
        println!("{}: {}", addresses[position], String::from_utf8_lossy(&answer));
    }
    Ok(())
}

/// Sends `question` to all `servers`, and returns the first `wanted` answers with the positions of
/// their servers; fewer if too many calls fail. The other calls are cancelled.
///
/// Any thread that uses `client` may receive the completions of its calls. Therefore, a thread that
/// fans out has a separate endpoint. With tokio, a `JoinSet` of `call` does the same: dropping it
/// cancels the remaining calls.
fn first_answers(
    client: &Endpoint,
    servers: &[SocketAddr],
    question: &Bytes,
    wanted: usize,
) -> Result<Vec<(usize, Bytes)>, Box<dyn Error>> {
    let options = CallOptions::new().timeout(Duration::from_secs(10));
    // The requests leave together when the cork is dropped.
    let cork = client.cork();
    let mut calls = Vec::new();
    for (position, server) in servers.iter().enumerate() {
        // Clones share the bytes of the question.
        let call = client.send_with(*server, question.clone(), position as u64, options)?;
        calls.push(Some(call));
    }
    drop(cork);

    let mut answers = Vec::new();
    for _ in servers {
        if answers.len() == wanted {
            break;
        }
        let completion = client.recv_completion()?;
        // The cookie is the position that was given to `send_with`.
        let position = completion.cookie as usize;
        calls[position] = None;
        match completion.result {
            Ok(answer) => answers.push((position, answer)),
            Err(error) => eprintln!("{}: {error}", servers[position]),
        }
    }
    for call in calls.into_iter().flatten() {
        // A call that has just ended cannot be cancelled: its completion is there.
        if !client.cancel(call) {
            client.recv_completion()?;
        }
    }
    Ok(answers)
}

/// Answers requests until the endpoint is shut down.
fn answer(replica: &Endpoint, name: usize) {
    while let Ok(request) = replica.recv_request() {
        let _ = request.reply(format!("replica {name}"));
    }
}

/// Receives a request, and never replies to it.
fn hang(replica: &Endpoint) {
    let _held = replica.recv_request();
    // Until the endpoint is shut down.
    let _ = replica.recv_request();
}
