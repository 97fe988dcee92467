//! A side is woken when it has something to do, and only then.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use apus_local::{Disconnected, Pair, PairEvent, SendError};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::peers::{LONG, next, pair, small};

const ROUNDS: u64 = 3_000;

/// Answers until the client closes the pair.
fn serve(server: &Arc<Pair>) -> Disconnected {
    loop {
        match next(server) {
            Ok(PairEvent::Request { id, payload }) => match server.send(id, &[payload]) {
                Ok(_) | Err(SendError::Disconnected(_)) => {}
                Err(error) => panic!("{error}"),
            },
            Ok(event) => panic!("{event:?}"),
            Err(gone) => return gone,
        }
    }
}

#[test]
fn two_threads_that_sleep_after_each_message_wake_each_other() {
    let (client, server) = pair(&small());
    let (client, server) = (Arc::new(client), Arc::new(server));
    let serving = thread::spawn(move || serve(&server));
    for id in 0..ROUNDS {
        // Every tenth message is long, so that both sides also wait for room.
        let payload = Bytes::from(vec![id as u8; if id % 10 == 0 { 20_000 } else { 20 }]);
        client.send(id, std::slice::from_ref(&payload)).unwrap();
        assert_eq!(next(&client).unwrap(), PairEvent::Response { id, payload });
    }
    drop(client);
    assert_eq!(serving.join().unwrap(), Disconnected::PeerClosed);
}

#[test]
fn a_sender_that_sleeps_until_there_is_room_is_woken() {
    let (client, server) = pair(&small());
    let (client, server) = (Arc::new(client), Arc::new(server));
    let receiving = thread::spawn(move || {
        let mut got = 0;
        while got < ROUNDS {
            match next(&server).unwrap() {
                PairEvent::Request { id, .. } => assert_eq!(id, got),
                event => panic!("{event:?}"),
            }
            got += 1;
        }
        server
    });
    for id in 0..ROUNDS {
        loop {
            match client.send(id, &[Bytes::from(vec![7; 100])]) {
                Ok(_) => break,
                Err(SendError::Full) => assert_eq!(next(&client).unwrap(), PairEvent::Room),
                Err(error) => panic!("{error}"),
            }
        }
    }
    receiving.join().unwrap();
}

/// Sleeps in the kernel until the pair's socket is readable; returns whether it is.
fn sleep_on_socket(pair: &Pair, time: Duration) -> bool {
    let fd = pair.as_fd();
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: 0 };
    poll(&mut fds, Some(&time)).unwrap() > 0
}

#[test]
fn a_side_that_sleeps_on_the_socket_is_woken() {
    let (client, server) = pair(&small());
    let serving = thread::spawn(move || serve(&Arc::new(server)));
    for id in 0..ROUNDS {
        let payload = Bytes::from_static(b"hello");
        client.send(id, std::slice::from_ref(&payload)).unwrap();
        let mut answer = Vec::new();
        while answer.is_empty() {
            if client.prepare_to_sleep() {
                assert!(sleep_on_socket(&client, LONG), "lost wake-up");
                client.handle_signal();
            }
            client.finish_sleep();
            client.receive(Default::default(), &mut answer).unwrap();
        }
        assert_eq!(answer, [PairEvent::Response { id, payload }]);
    }
    drop(client);
    assert_eq!(serving.join().unwrap(), Disconnected::PeerClosed);
}

#[test]
fn a_side_that_does_not_sleep_is_not_signalled() {
    let (client, server) = pair(&small());
    for id in 0..100 {
        client.send(id, &[Bytes::from_static(b"x")]).unwrap();
        crate::peers::all(&server).unwrap();
        server.send(id, &[Bytes::from_static(b"y")]).unwrap();
        crate::peers::all(&client).unwrap();
    }
    assert!(!sleep_on_socket(&client, Duration::ZERO));
    assert!(!sleep_on_socket(&server, Duration::ZERO));
    // A side that sleeps is signalled once, whatever is sent.
    assert!(server.prepare_to_sleep());
    for id in 0..10 {
        client.send(id, &[Bytes::from_static(b"x")]).unwrap();
    }
    let mut bytes = [0; 64];
    let flags = rustix::net::RecvFlags::DONTWAIT;
    assert_eq!(rustix::net::recv(&server, &mut bytes, flags).unwrap().0, 1);
}

#[test]
fn a_wait_ends_at_its_deadline_and_when_the_pair_is_closed() {
    let (client, _server) = pair(&small());
    let client = Arc::new(client);
    assert!(!client.wait(Some(Duration::ZERO), Some(Instant::now())));
    assert!(!client.wait(None, Some(Instant::now())), "also while it spins");
    let waiting = {
        let client = client.clone();
        thread::spawn(move || client.wait(Some(Duration::ZERO), None))
    };
    client.close();
    assert!(waiting.join().unwrap());
}
