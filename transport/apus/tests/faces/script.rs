//! One program, compiled for the blocking and for the async endpoint, with the same results.

use apus::{CallOptions, Config, EndpointHandle, OutgoingCall, PollMode};
use apus_driver::loopback::LoopbackNetwork;
use std::error::Error;
use std::thread;
use std::time::Duration;

/// Observations of the program.
type Transcript = Result<Vec<String>, Box<dyn Error>>;

/// The program, with the type of the endpoint, the suffix of a method that waits, and the macros
/// that start a thread or a task and wait for its end.
macro_rules! script {
    ($endpoint:ty, [$($wait:tt)*], $spawn:ident, $join:ident) => {{
        type Endpoint = $endpoint;
        let patience = Duration::from_secs(60);
        let mut seen = Vec::new();

        // Opening.
        let server = Endpoint::bind("127.0.0.1:0")$($wait)*?;
        let client = Endpoint::client()$($wait)*?;
        let config = Config::builder().max_message(1_000_000).build()?;
        let builder = Endpoint::builder().config(config).poll_mode(PollMode::Block).local(false);
        let other = builder.clone().bind(("127.0.0.1", 0))$($wait)*?;
        let silent = builder.client()$($wait)*?;
        let network = LoopbackNetwork::new();
        let driver = Box::new(network.host());
        let alone = Endpoint::builder().with_driver(driver)$($wait)*?;
        let refused = Endpoint::bind("no address")$($wait)*.unwrap_err();
        seen.push(format!("{}", refused.to_string().starts_with("resolve")));
        let to = server.local_addr();

        // Both roles in one thread or task.
        let call = client.send(to, "first", 1)$($wait)*?;
        let request = server.recv_request()$($wait)*?;
        seen.push(format!("{:?} {}", request.payload(), request.peer_addr().port() != 0));
        request.reply("one")$($wait)*?;
        let completion = client.recv_completion()$($wait)*?;
        seen.push(format!("{} {:?} {}", completion.cookie, completion.result, client.cancel(call)));

        // With options and limits of time.
        client.send_with(to, "second", 2, CallOptions::new().timeout(patience))$($wait)*?;
        let request = server.recv_request_timeout(patience)$($wait)*?;
        let mut request = request.ok_or("no request")?;
        let payload = request.take_payload();
        request.reply(payload)$($wait)*?;
        let completion = client.recv_completion_timeout(patience)$($wait)*?;
        seen.push(format!("{:?}", completion.ok_or("no completion")?.result));
        let nothing = server.recv_request_timeout(Duration::ZERO)$($wait)*?;
        seen.push(format!("{}", nothing.is_none()));
        let nothing = client.recv_completion_timeout(Duration::ZERO)$($wait)*?;
        seen.push(format!("{}", nothing.is_none()));

        // Many at a time, corked; and without waiting.
        let cork = client.cork();
        for cookie in 3..6 {
            client.send(to, "third", cookie)$($wait)*?;
        }
        drop(cork);
        let (mut requests, mut completions) = (Vec::new(), Vec::new());
        while requests.len() < 3 {
            server.recv_requests(&mut requests, 3)$($wait)*?;
        }
        seen.push(format!("{}", server.try_recv_request()?.is_none()));
        for request in requests {
            request.reply("three")$($wait)*?;
        }
        while completions.len() < 3 {
            client.recv_completions(&mut completions, 3)$($wait)*?;
        }
        let mut cookies: Vec<u64> = completions.iter().map(|completion| completion.cookie).collect();
        cookies.sort_unstable();
        let (result, left) = (&completions[0].result, client.try_recv_completion()?);
        seen.push(format!("{cookies:?} {result:?} {}", left.is_none()));

        // Many calls and replies at once.
        let call = |cookie| OutgoingCall { to, request: "together".into(), cookie };
        let mut calls: Vec<_> = (6..9).map(call).collect();
        client.send_many(&mut calls, CallOptions::new())$($wait)*?;
        let mut replies = Vec::new();
        while replies.len() < 3 {
            let request = server.recv_request()$($wait)*?;
            replies.push((request, "all".into()));
        }
        server.reply_many(&mut replies)$($wait)*?;
        let mut results = Vec::new();
        while results.len() < 3 {
            results.push(client.recv_completion()$($wait)*?.result?);
        }
        seen.push(format!("{} {} {results:?}", calls.len(), replies.len()));

        // Calls that wait for their response.
        let echo = {
            let server = server.clone();
            $spawn!({
                while let Ok(request) = server.recv_request()$($wait)* {
                    let payload = request.payload().clone();
                    let _ = request.reply(payload)$($wait)*;
                }
            })
        };
        seen.push(format!("{:?}", client.call(to, "fourth")$($wait)*?));
        let options = CallOptions::new().idempotent(true);
        seen.push(format!("{:?}", client.call_with(to, vec![7; 3], options)$($wait)*?));
        let error = client.call_with(other.local_addr(), "x", CallOptions::new().timeout(Duration::ZERO))$($wait)*;
        let error = error.unwrap_err();
        seen.push(format!("{}", error.to_string().starts_with("deadline exceeded")));

        // The end.
        seen.push(format!("{}", client.drain(patience)$($wait)*));
        let handle: &EndpointHandle = &server;
        handle.shutdown();
        $join!(echo);
        seen.push(format!("{}", server.recv_request()$($wait)*.unwrap_err()));
        drop((silent, alone));
        Ok(seen)
    }};
}

macro_rules! spawn_thread {
    ($body:block) => {
        thread::spawn(move || $body)
    };
}

macro_rules! join_thread {
    ($thread:ident) => {
        $thread.join().unwrap()
    };
}

macro_rules! spawn_task {
    ($body:block) => {
        tokio::spawn(async move { $body })
    };
}

macro_rules! join_task {
    ($task:ident) => {
        $task.await?
    };
}

fn blocking() -> Transcript {
    script!(apus::Endpoint, [], spawn_thread, join_thread)
}

async fn asynchronous() -> Transcript {
    script!(apus::tokio::Endpoint, [.await], spawn_task, join_task)
}

#[test]
fn one_program_runs_with_both() {
    let blocking = blocking().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(blocking, runtime.block_on(asynchronous()).unwrap());
    let expected = [
        "true",
        r#"b"first" true"#,
        r#"1 Ok(b"one") false"#,
        r#"Ok(b"second")"#,
        "true",
        "true",
        "true",
        r#"[3, 4, 5] Ok(b"three") true"#,
        r#"0 0 [b"all", b"all", b"all"]"#,
        r#"b"fourth""#,
        r#"b"\x07\x07\x07""#,
        "true",
        "true",
        "the endpoint was shut down",
    ];
    assert_eq!(blocking, expected);
}
