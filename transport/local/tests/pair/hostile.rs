//! A hostile peer harms only its own pair.

use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use apus_local::{
    ConnectError, Connecting, Disconnected, Listener, Local, Pair, PairEvent, PollEvent, PollSet,
    ReceiveQuota, Rejection, SendError, Violation,
};
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rustix::fs::SealFlags;

use crate::peer::{Hostile, LEN, RING, SEALS, VERSION, address, config, hello, memory, send};
use crate::peers::{LONG, name};

/// Writes random bytes into the whole memory until `stop`, sometimes in the form of records.
fn scribble(mut hostile: Hostile, seed: u64, stop: &AtomicBool) {
    let mut random = Pcg64::seed_from_u64(seed);
    while !stop.load(Ordering::Relaxed) {
        match random.random_range(0..4) {
            0 => {
                let bytes: Vec<u8> =
                    (0..random.random_range(1..200)).map(|_| random.random()).collect();
                hostile.write(random.random_range(0..LEN), &bytes);
            }
            1 => hostile.head(random.random_range(0..2), random.random_range(0..100) * 64),
            _ => {
                let len = random.random_range(0..600);
                let third = u64::from(len) | u64::from(random.random_range(0..2_u32)) << 32;
                let (lane, kind) = (random.random_range(0..2), random.random_range(1..7));
                hostile.record(lane, kind, random.random_range(0..8), len, third);
            }
        }
    }
}

#[test]
fn a_client_that_scribbles_harms_no_other_client() {
    let name = name();
    let server = Arc::new(Local::new(Some(&name), config()).unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let violated = Arc::new(AtomicBool::new(false));
    let serving = {
        let (server, stop, violated) = (server.clone(), stop.clone(), violated.clone());
        thread::spawn(move || {
            let mut poll_set = PollSet::default();
            let mut ends = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                server.poll_sockets(&mut poll_set, Some(Duration::ZERO)).unwrap();
                server.receive(&mut poll_set, ReceiveQuota::default(), |pair, event| match event {
                    PollEvent::Event(PairEvent::Request { id, payload }) => {
                        let _ = pair.send(id, &[payload]);
                    }
                    PollEvent::Event(_) => {}
                    PollEvent::Disconnected(why) => {
                        violated
                            .fetch_or(matches!(why, Disconnected::Violation(_)), Ordering::Relaxed);
                        ends.push(why);
                    }
                });
            }
            ends
        })
    };
    thread::scope(|scope| {
        for seed in 0..3 {
            let (name, stop) = (&name, &stop);
            scope.spawn(move || {
                // It connects again whenever its pair was ended.
                while !stop.load(Ordering::Relaxed) {
                    let hostile = Hostile::connect(name);
                    let ended = AtomicBool::new(false);
                    thread::scope(|inner| {
                        let mut socket = hostile.socket.try_clone().unwrap();
                        inner.spawn(|| scribble(hostile, seed, &ended));
                        // Reads the reply and then signals, until the server closes the socket.
                        let mut bytes = [0; 64];
                        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                        while socket.read(&mut bytes).is_ok_and(|len| len > 0) {}
                        ended.store(true, Ordering::Relaxed);
                    });
                }
            });
        }
        let honest = Local::new(None, config()).unwrap();
        let pair = honest.connect(&name, LONG).unwrap();
        // On a loaded machine the calls may be faster than the first violation.
        let began = Instant::now();
        for id in 0.. {
            if id >= 1_000 && (violated.load(Ordering::Relaxed) || began.elapsed() > LONG) {
                break;
            }
            let payload = Bytes::from(vec![id as u8; if id % 50 == 0 { 10_000 } else { 50 }]);
            pair.send(id, std::slice::from_ref(&payload)).unwrap();
            assert_eq!(crate::peers::next(&pair).unwrap(), PairEvent::Response { id, payload });
        }
        stop.store(true, Ordering::Relaxed);
    });
    let ends = serving.join().unwrap();
    assert!(ends.iter().any(|end| matches!(end, Disconnected::Violation(_))), "{ends:?}");
}

#[test]
fn a_server_that_scribbles_ends_only_its_own_calls() {
    for seed in 0..20 {
        let (hostile, client) = Hostile::server(&name());
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let stop = &stop;
            let socket = hostile.socket.try_clone().unwrap();
            scope.spawn(move || scribble(hostile, seed, stop));
            let mut ended = None;
            for id in 0..2_000 {
                let sent = client.send(id, &[Bytes::from(vec![7; 100])]);
                assert!(matches!(sent, Ok(_) | Err(SendError::Full | SendError::Disconnected(_))));
                if let Err(gone) = client.receive(ReceiveQuota::default(), &mut Vec::new()) {
                    ended = Some(gone);
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(ended.is_none_or(|gone| matches!(
                gone,
                Disconnected::Violation(_) | Disconnected::Accused
            )));
            drop(socket);
        });
    }
}

/// Returns the verdict of the server's reply: 0, or the number of a rejection.
fn verdict(socket: &mut UnixStream) -> u32 {
    let mut answer = [0; 32];
    socket.read_exact(&mut answer).unwrap();
    u32::from_le_bytes(answer[12..16].try_into().unwrap())
}

/// Receives and asserts that there are no events.
fn receive_nothing(pair: &Pair) -> Result<usize, Disconnected> {
    let mut events = Vec::new();
    let received = pair.receive(ReceiveQuota::ALL, &mut events);
    assert_eq!(events, []);
    received
}

#[test]
fn a_peer_learns_that_it_broke_the_protocol() {
    let (mut hostile, server) = Hostile::client(&name());
    hostile.record(0, 9, 1, 10, 10);
    let gone = Disconnected::Violation(Violation::Kind);
    assert_eq!(receive_nothing(&server), Err(gone));
    let mut close = [0; 4];
    std::os::unix::fs::FileExt::read_exact_at(&hostile.file, &mut close, 132).unwrap();
    assert_eq!(u32::from_le_bytes(close), 2);
    assert_eq!(verdict(&mut hostile.socket), 0, "it was accepted before");
    assert_eq!(hostile.socket.read(&mut [0; 8]).unwrap(), 0, "closed");
}

#[test]
fn parts_that_do_not_fit_are_a_violation() {
    // A first part, followed by another total, a gap, a repetition, and a part that is too long.
    let second = [101 | 50 << 32, 100 | 60 << 32, 100, 100 | 90 << 32];
    for third in second {
        let (mut hostile, server) = Hostile::client(&name());
        hostile.record(1, 2, 1, 50, 100);
        assert_eq!(receive_nothing(&server), Ok(1));
        hostile.record(1, 2, 1, 50, third);
        let received = receive_nothing(&server);
        assert_eq!(received, Err(Disconnected::Violation(Violation::Part)), "{third:x}");
    }
}

/// Only an empty message has a record without bytes.
#[test]
fn a_part_without_bytes_is_a_violation() {
    for third in [100, 100 | 50 << 32, 1 << 32] {
        let (mut hostile, server) = Hostile::client(&name());
        hostile.record(0, 2, 1, 0, third);
        let received = receive_nothing(&server);
        assert_eq!(received, Err(Disconnected::Violation(Violation::Part)), "{third:x}");
    }
    let (mut hostile, server) = Hostile::client(&name());
    hostile.record(1, 2, 1, 0, 0);
    let mut events = Vec::new();
    assert_eq!(server.receive(ReceiveQuota::ALL, &mut events), Ok(1));
    assert_eq!(events, [PairEvent::Request { id: 1, payload: Bytes::new() }]);
}

#[test]
fn partial_messages_are_bounded_in_bytes() {
    let (mut hostile, server) = Hostile::client(&name());
    let mut refused = 0;
    // Each message announces a megabyte; four may be incomplete at a time.
    for id in 0..100 {
        hostile.record(1, 2, id, 8, 1 << 20);
        receive_nothing(&server).unwrap();
        let mut word = [0; 8];
        // The server's short ring has a refusal in each slot.
        let at = 12288 + (refused % 64) * 64;
        std::os::unix::fs::FileExt::read_exact_at(&hostile.file, &mut word, at).unwrap();
        refused += u64::from(word[4] == 5);
        hostile.head(0, refused * 64);
    }
    assert_eq!(refused, 96);
}

#[test]
fn unread_control_records_are_bounded() {
    let (mut hostile, server) = Hostile::client(&name());
    let mut received = 0;
    // These requests are declined, and the client never makes room for the refusals.
    for id in 0..20_000 {
        hostile.record(1, 2, id, 8, 2 << 20);
        match receive_nothing(&server) {
            Ok(0) => break,
            Ok(records) => received += records,
            Err(gone) => panic!("{gone}"),
        }
    }
    assert!((4_000..5_000).contains(&received), "then reception stops: {received}");
}

#[test]
fn malformed_hellos_are_rejected() {
    let name = name();
    let listener = Listener::bind(&name, &config()).unwrap();
    let sound = || memory(SEALS, LEN);
    let cases = [
        ("garbage", [7; 32].to_vec(), vec![sound()], Rejection::Malformed),
        ("short", hello(VERSION, RING, RING)[..31].to_vec(), vec![sound()], Rejection::Malformed),
        (
            "version before",
            hello(VERSION - 1, RING, RING).to_vec(),
            vec![sound()],
            Rejection::Version,
        ),
        (
            "later version",
            hello(VERSION + 1, RING, RING).to_vec(),
            vec![sound()],
            Rejection::Version,
        ),
        ("no power of two", hello(VERSION, 5000, RING).to_vec(), vec![sound()], Rejection::Sizes),
        ("too large", hello(VERSION, 8 << 20, RING).to_vec(), vec![sound()], Rejection::Sizes),
        ("no file", hello(VERSION, RING, RING).to_vec(), vec![], Rejection::Malformed),
        (
            "two files",
            hello(VERSION, RING, RING).to_vec(),
            vec![sound(), sound()],
            Rejection::Malformed,
        ),
        (
            "five",
            hello(VERSION, RING, RING).to_vec(),
            (0..5).map(|_| sound()).collect(),
            Rejection::Malformed,
        ),
        ("length", hello(VERSION, RING, 2 * RING).to_vec(), vec![sound()], Rejection::Memory),
        (
            "seals",
            hello(VERSION, RING, RING).to_vec(),
            vec![memory(SealFlags::GROW, LEN)],
            Rejection::Memory,
        ),
    ];
    for (what, bytes, files, rejection) in cases {
        let mut socket = UnixStream::connect_addr(&address(&name)).unwrap();
        send(&socket, &bytes, &files);
        let rejected = listener.accept().unwrap().unwrap().advance().unwrap_err();
        assert_eq!(rejected, rejection, "{what}");
        assert_eq!(verdict(&mut socket), rejection as u32, "{what}");
    }
    let gone = UnixStream::connect_addr(&address(&name)).unwrap();
    drop(gone);
    assert_eq!(listener.accept().unwrap().unwrap().advance().unwrap_err(), Rejection::Malformed);
}

#[test]
fn malformed_replies_are_errors() {
    let name = name();
    let listener = UnixListener::bind_addr(&address(&name)).unwrap();
    for answer in
        [vec![], vec![0; 32], hello(VERSION - 1, 0, 0).to_vec(), hello(VERSION, 99, 0).to_vec()]
    {
        let mut client = Connecting::start(&name, &config()).unwrap();
        let socket = listener.accept().unwrap().0;
        if !answer.is_empty() {
            send(&socket, &answer, &[]);
        }
        drop(socket);
        let error = client.advance().unwrap_err();
        assert!(matches!(error, ConnectError::Malformed | ConnectError::Rejected(_)), "{error}");
    }
    // A server that sends no reply.
    let client = Connecting::start(&name, &config()).unwrap();
    let error = client.finish(Duration::from_millis(1)).unwrap_err();
    assert!(matches!(error, ConnectError::TimedOut));
}
