//! Calls, replies and drops of blocking endpoints.

use crate::echo;
use crate::process::{Child, End};
use apus::{CallError, CallOptions, Closed, Endpoint, EndpointBuilder, OutgoingCall, ReplyError};
use std::sync::Arc;
use std::time::Duration;

/// Forks of each check.
const FORKS: usize = 12;

/// Asserts that an operation was refused because of the fork.
fn is_forked<T>(result: &Result<T, Closed>) -> bool {
    matches!(result, Err(Closed::Forked(_)))
}

fn call_is_forked<T>(result: &Result<T, CallError>) -> bool {
    matches!(result, Err(CallError::Closed(Closed::Forked(_))))
}

pub(crate) fn every_operation_is_refused_in_a_child() {
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    let client = Endpoint::client().unwrap();
    let to = server.local_addr();
    for cookie in 0..3 {
        client.send(to, "kept", cookie).unwrap();
    }
    let mut kept: Vec<_> = (0..3).map(|_| server.recv_request().unwrap()).collect();
    kept.remove(0).reply("answered").unwrap();
    let early = client.recv_completion().unwrap();
    let pending = client.send(to, "pending", 7).unwrap();
    let cork = client.cork();
    let mut held = (Some(client.clone()), Some(server.clone()), Some(cork), Some(kept));
    let child = Child::fork(End::Exit, || {
        let (Some(client), Some(server), Some(cork), Some(mut kept)) =
            (held.0.take(), held.1.take(), held.2.take(), held.3.take())
        else {
            unreachable!("the parent has them")
        };
        let error = client.call(to, "x").unwrap_err();
        let parent = std::os::unix::process::parent_id();
        assert!(error.to_string().contains(&format!("opened by process {parent}")), "{error}");
        assert!(call_is_forked(&Err::<(), _>(error)));
        let options = CallOptions::new().timeout(Duration::from_secs(9));
        assert!(call_is_forked(&client.call_with(to, "x", options)));
        assert!(call_is_forked(&client.send(to, "x", 9)));
        let mut calls = vec![OutgoingCall { to, request: "x".into(), cookie: 9 }];
        assert!(call_is_forked(&client.send_many(&mut calls, options)) && calls.len() == 1);
        assert!(is_forked(&client.recv_completion()));
        assert!(is_forked(&client.recv_completion_timeout(Duration::ZERO)));
        assert!(is_forked(&client.try_recv_completion()));
        assert!(is_forked(&client.recv_completions(&mut Vec::new(), 8)));
        assert!(is_forked(&server.recv_request()));
        assert!(is_forked(&server.try_recv_request()));
        assert!(is_forked(&server.recv_requests(&mut Vec::new(), 8)));
        assert!(is_forked(&server.recv_arrival(&[], Duration::ZERO)));
        assert!(is_forked(&server.check_process()));
        assert!(!client.cancel(pending) && !client.drain(Duration::from_secs(9)));
        assert!(client.info().is_empty() && client.shard_metrics().is_empty());
        assert_eq!(client.metrics().engine.local_calls, 0);
        assert_eq!(client.freeze_peers(), 0);
        drop(client.cork());
        drop(cork);
        let replied = kept.remove(0).reply("from the child");
        assert!(matches!(replied, Err(ReplyError::Closed(Closed::Forked(_)))));
        let mut replies = vec![(kept.remove(0), "from the child".into())];
        let replied = server.reply_many(&mut replies);
        assert!(matches!(replied, Err(ReplyError::Closed(Closed::Forked(_)))));
        assert!(replies.is_empty() && early.result.unwrap() == "answered");
        client.shutdown();
        server.shutdown();
        assert_eq!(server.local_addr(), to);
        drop((client, server));
        serve_and_call("from an endpoint of the child");
    });
    child.join();
    drop(held.2.take());
    let kept = held.3.take().unwrap();
    for request in kept {
        request.reply("from the parent").unwrap();
    }
    server.recv_request().unwrap().reply("from the parent").unwrap();
    for _ in 0..3 {
        assert_eq!(client.recv_completion().unwrap().result.unwrap(), "from the parent");
    }
}

/// Opens endpoints in this process, and calls one with the other.
fn serve_and_call(text: &'static str) {
    let server = Arc::new(Endpoint::bind("127.0.0.1:0").unwrap());
    let thread = echo(&server);
    let client = Endpoint::client().unwrap();
    assert_eq!(client.call(server.local_addr(), text).unwrap(), text);
    server.shutdown();
    thread.join().unwrap();
}

/// Children call, free and exit while the parent calls.
pub(crate) fn the_parents_calls_are_its_own(builder: &EndpointBuilder) {
    let server = Arc::new(builder.clone().bind("127.0.0.1:0").unwrap());
    let client = builder.clone().client().unwrap();
    let thread = echo(&server);
    let to = server.local_addr();
    let call = |text: String| assert_eq!(client.call(to, text.clone()).unwrap(), text);
    call("before".to_owned());
    for fork in 0..FORKS {
        let end = if fork % 2 == 0 { End::Exit } else { End::Abandon };
        let mut held = (Some(client.clone()), Some(server.clone()));
        let child = Child::fork(end, || {
            let (client, server) = (held.0.take().unwrap(), held.1.take().unwrap());
            for _ in 0..3 {
                assert!(call_is_forked(&client.call(to, format!("child {fork}"))));
            }
            match fork % 3 {
                0 => drop((client, server)),
                1 => {
                    client.shutdown();
                    server.shutdown();
                }
                _ => std::mem::forget((client, server)),
            }
        });
        for n in 0..20 {
            call(format!("parent {fork}.{n}"));
        }
        child.join();
        call(format!("parent {fork} after its child"));
    }
    server.shutdown();
    thread.join().unwrap();
}

/// A forked server, as of a program that forks workers after it has bound.
pub(crate) fn a_child_of_a_server_answers_nothing(builder: &EndpointBuilder) {
    let server = Arc::new(builder.clone().bind("127.0.0.1:0").unwrap());
    let workers: Vec<_> = (0..3)
        .map(|_| {
            Child::fork(End::Exit, || {
                assert!(is_forked(&server.recv_request()));
                assert!(is_forked(&server.recv_request_timeout(Duration::from_secs(9))));
            })
        })
        .collect();
    let thread = echo(&server);
    let client = builder.clone().client().unwrap();
    for n in 0..100 {
        let text = n.to_string();
        assert_eq!(client.call(server.local_addr(), text.clone()).unwrap(), text);
    }
    workers.into_iter().for_each(Child::join);
    assert_eq!(client.call(server.local_addr(), "after").unwrap(), "after");
    server.shutdown();
    thread.join().unwrap();
}

/// Returns the open descriptors, and whether exec(2) closes them.
fn descriptors() -> Vec<(i32, bool)> {
    let folder = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let numbers: Vec<i32> = numbers.collect();
    let flags = |fd| {
        // SAFETY: The call has no memory of this program as an argument.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        (flags >= 0).then_some((fd, flags & libc::FD_CLOEXEC != 0))
    };
    numbers.into_iter().filter_map(flags).collect()
}

/// Of the descriptors of the parent's endpoints, a child has none, and a program that it executes
/// would have none either.
pub(crate) fn a_child_inherits_no_descriptor(builder: &EndpointBuilder) {
    let before = descriptors();
    let server = Arc::new(builder.clone().bind("127.0.0.1:0").unwrap());
    let client = builder.clone().client().unwrap();
    let thread = echo(&server);
    for _ in 0..300 {
        client.call(server.local_addr(), "x").unwrap();
    }
    let known = |fd: &i32| before.iter().any(|(other, _)| other == fd);
    let new: Vec<_> = descriptors().into_iter().filter(|(fd, _)| !known(fd)).collect();
    assert!(new.len() > 4, "{new:?}");
    assert!(new.iter().all(|(_, closed)| *closed), "exec keeps one of {new:?}");
    let child = Child::fork(End::Abandon, || {
        let kept: Vec<_> = descriptors().into_iter().filter(|(fd, _)| !known(fd)).collect();
        // The files of shared memory are no connection to anything.
        let is_memory = |fd: i32| {
            std::fs::read_link(format!("/proc/self/fd/{fd}"))
                .is_ok_and(|link| link.to_string_lossy().contains("/memfd:"))
        };
        let kept: Vec<_> = kept.into_iter().filter(|(fd, _)| !is_memory(*fd)).collect();
        assert!(kept.is_empty(), "{kept:?}");
    });
    child.join();
    assert_eq!(client.call(server.local_addr(), "after").unwrap(), "after");
    server.shutdown();
    thread.join().unwrap();
}
