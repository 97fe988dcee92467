//! One thread that receives requests and completions, and sleeps on another descriptor as well.

use crate::fixtures::patient;
use apus::{Arrival, Endpoint, PollMode};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

fn endpoint(local: bool) -> Endpoint {
    patient().local(local).poll_mode(PollMode::Block).bind("127.0.0.1:0").unwrap()
}

/// The next message, however often the wait ends without one.
fn next(endpoint: &Endpoint, companion: &UnixStream) -> Arrival {
    loop {
        let arrived = endpoint.recv_arrival(&[companion.as_fd()], Duration::MAX).unwrap();
        if let Some(arrival) = arrived {
            return arrival;
        }
    }
}

#[test]
fn both_kinds_of_messages_arrive_in_one_sleeping_thread() {
    for local in [false, true] {
        let (one, other) = (endpoint(local), endpoint(local));
        let (quiet, _open) = UnixStream::pair().unwrap();
        let (there, here) = (other.local_addr(), one.local_addr());
        let peer = thread::spawn(move || {
            let request = other.recv_request().unwrap();
            assert_eq!(other.call(here, "call back").unwrap(), "called back");
            request.reply("answer").unwrap();
        });
        one.send(there, "question", 7).unwrap();
        let Arrival::Request(request) = next(&one, &quiet) else { panic!("a request first") };
        assert_eq!(request.payload(), "call back");
        request.reply("called back").unwrap();
        let Arrival::Completion(completion) = next(&one, &quiet) else { panic!("the completion") };
        assert_eq!((completion.cookie, &*completion.result.unwrap()), (7, &b"answer"[..]));
        peer.join().unwrap();
    }
}

#[test]
fn a_readable_companion_ends_the_sleep() {
    for local in [false, true] {
        let endpoint = endpoint(local);
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let writer = thread::spawn(move || there.write_all(b"x").unwrap());
        while endpoint.recv_arrival(&[here.as_fd()], Duration::MAX).unwrap().is_some() {}
        here.read_exact(&mut [0]).unwrap();
        writer.join().unwrap();
    }
}

#[test]
fn a_wait_of_no_time_polls_once_and_a_closed_endpoint_says_so() {
    let endpoint = endpoint(true);
    assert!(endpoint.recv_arrival(&[], Duration::ZERO).unwrap().is_none());
    endpoint.shutdown();
    assert!(endpoint.recv_arrival(&[], Duration::MAX).is_err());
}
