//! Do many pairs get along under one endpoint?

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use apus_local::{
    ConnectError, Disconnected, Local, Lookup, PairEvent, PeerName, PollEvent, PollSet,
    ReceiveQuota, Rejection, RingSizes,
};
use bytes::Bytes;

use crate::peers::{LONG, name, small};

/// A server that echoes in a thread, sleeping whenever there is nothing to do.
struct Echo {
    local: Arc<Local>,
    name: PeerName,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<Vec<Disconnected>>>,
}

impl Echo {
    fn start(config: apus_local::LocalConfig) -> Self {
        let name = name();
        let local = Arc::new(Local::new(Some(&name), config).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (local, stop) = (local.clone(), stop.clone());
            thread::spawn(move || echo(&local, &stop))
        };
        Self { local, name, stop, thread: Some(thread) }
    }

    /// The reasons for which its pairs have ended.
    fn stop(mut self) -> Vec<Disconnected> {
        self.stop.store(true, Ordering::Release);
        let knock = Local::new(None, small()).unwrap();
        // A client that comes wakes it.
        let _ = knock.find(&self.name);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn echo(local: &Local, stop: &AtomicBool) -> Vec<Disconnected> {
    let mut sweep = PollSet::default();
    let mut ends = Vec::new();
    loop {
        let records =
            local.receive(&mut sweep, ReceiveQuota::default(), |pair, arrival| match arrival {
                PollEvent::Event(PairEvent::Request { id, payload }) => {
                    // A client that does not read its answers gets none.
                    let _ = pair.send(id, &[payload]);
                }
                PollEvent::Event(_) => {}
                PollEvent::Gone(gone) => ends.push(gone),
            });
        if records > 0 {
            continue;
        }
        if stop.load(Ordering::Acquire) {
            return ends;
        }
        if local.prepare_to_sleep(&mut sweep) {
            assert!(local.poll_sockets(&mut sweep, Some(LONG)).unwrap().ready > 0, "lost wake-up");
        }
        local.finish_sleep(&sweep);
    }
}

/// Calls a server, and waits for the answer on the endpoint's descriptor.
fn call(local: &Local, sweep: &mut PollSet, name: &PeerName, id: u64, payload: &Bytes) {
    let pair = loop {
        match local.connect(name, LONG) {
            Ok(pair) => break pair,
            // The server's queue of newcomers may be full for a moment.
            Err(ConnectError::Busy) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    pair.send(id, std::slice::from_ref(payload)).unwrap();
    let mut answer = None;
    while answer.is_none() {
        if local.prepare_to_sleep(sweep) {
            local.poll_sockets(sweep, Some(LONG)).unwrap();
        }
        local.finish_sleep(sweep);
        local.receive(sweep, ReceiveQuota::default(), |_, arrival| answer = Some(arrival));
    }
    assert_eq!(
        answer,
        Some(PollEvent::Event(PairEvent::Response { id, payload: payload.clone() }))
    );
}

#[test]
fn many_clients_and_servers() {
    let servers = [Echo::start(small()), Echo::start(small())];
    thread::scope(|scope| {
        for client in 0..8_u64 {
            let names = servers.each_ref().map(|server| server.name.clone());
            scope.spawn(move || {
                let local = Local::new(None, small()).unwrap();
                let mut sweep = PollSet::default();
                for round in 0..200 {
                    let len = if round % 20 == 0 { 30_000 } else { 30 };
                    let payload = Bytes::from(vec![client as u8; len]);
                    call(&local, &mut sweep, &names[round as usize % 2], round, &payload);
                }
                assert_eq!(local.pairs().len(), 2, "one pair for each server");
            });
        }
    });
    for server in servers {
        let pairs = server.local.clone();
        let ends = server.stop();
        assert!(ends.iter().all(|end| *end == Disconnected::PeerClosed), "{ends:?}");
        assert!(ends.len() + pairs.pairs().len() >= 8);
    }
}

#[test]
fn a_name_is_free_again_and_taken_only_once() {
    let name = name();
    let first = Local::new(Some(&name), small()).unwrap();
    let taken = Local::new(Some(&name), small());
    assert!(matches!(taken, Err(ConnectError::System { .. })), "{taken:?}");
    drop(first);
    Local::new(Some(&name), small()).unwrap();
    let nobody = Local::new(None, small()).unwrap().connect(&crate::peers::name(), LONG);
    assert!(matches!(nobody, Err(ConnectError::NobodyListens)));
}

#[test]
fn a_client_that_wants_too_much_is_told() {
    let server = Echo::start(small());
    let mut config = small();
    config.sizes = RingSizes { short: 8 << 20, bulk: 4096 };
    let refused = Local::new(None, config).unwrap().connect(&server.name, LONG);
    assert!(matches!(refused, Err(ConnectError::Refused(Rejection::Sizes))), "{refused:?}");
    server.stop();
}

#[test]
fn a_server_has_no_more_pairs_than_it_may_have() {
    let mut config = small();
    config.max_pairs = 2;
    let server = Echo::start(config);
    let clients: Vec<_> = (0..3).map(|_| Local::new(None, small()).unwrap()).collect();
    let connect = |client: &Local| client.connect(&server.name, LONG);
    assert!(connect(&clients[0]).is_ok() && connect(&clients[1]).is_ok());
    let refused = connect(&clients[2]);
    assert!(matches!(refused, Err(ConnectError::Refused(Rejection::TooMany))), "{refused:?}");
    server.stop();
}

#[test]
fn those_who_connect_and_say_nothing_keep_nobody_out() {
    use std::os::linux::net::SocketAddrExt;
    let server = Echo::start(small());
    let text = server.name.to_string();
    let address =
        std::os::unix::net::SocketAddr::from_abstract_name(&text.as_bytes()[1..]).unwrap();
    let mut idlers = Vec::new();
    for _ in 0..300 {
        // The server takes them out of the queue; it may be full for a moment.
        while let Err(error) = UnixStream::connect_addr(&address).map(|idler| idlers.push(idler)) {
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        }
    }
    let local = Local::new(None, small()).unwrap();
    let mut sweep = PollSet::default();
    call(&local, &mut sweep, &server.name, 1, &Bytes::from_static(b"still here"));
    server.stop();
}

#[test]
fn a_pair_that_has_ended_is_told_once_and_made_anew() {
    let server = Echo::start(small());
    let local = Local::new(None, small()).unwrap();
    let mut sweep = PollSet::default();
    call(&local, &mut sweep, &server.name, 1, &Bytes::from_static(b"one"));
    let pair = local.connect(&server.name, LONG).unwrap();
    server.local.pairs()[0].close();
    let mut ends = Vec::new();
    while ends.is_empty() {
        local.poll_sockets(&mut sweep, Some(Duration::from_millis(10))).unwrap();
        local.receive(&mut sweep, ReceiveQuota::default(), |_, arrival| ends.push(arrival));
    }
    local.receive(&mut sweep, ReceiveQuota::default(), |_, arrival| ends.push(arrival));
    assert_eq!(ends, [PollEvent::Gone(Disconnected::PeerClosed)]);
    assert_eq!(pair.disconnected(), Some(Disconnected::PeerClosed));
    call(&local, &mut sweep, &server.name, 2, &Bytes::from_static(b"two"));
    server.stop();
}

#[test]
fn nobody_connects_twice_at_a_time() {
    let name = name();
    let server = Local::new(Some(&name), small()).unwrap();
    let client = Local::new(None, small()).unwrap();
    let Ok(Lookup::Greeted(attempt)) = client.find(&name) else { panic!("greets") };
    assert!(matches!(client.find(&name), Ok(Lookup::Connecting)));
    let Ok(Lookup::Greeted(attempt)) = client.advance(attempt) else { panic!("no answer yet") };
    let mut sweep = PollSet::default();
    while server.pairs().is_empty() {
        server.poll_sockets(&mut sweep, Some(LONG)).unwrap();
    }
    assert!(matches!(client.advance(attempt), Ok(Lookup::Pair(_))));
    assert!(matches!(client.find(&name), Ok(Lookup::Pair(_))));
}

#[test]
fn an_endpoint_that_was_closed_ends_its_pairs() {
    let server = Echo::start(small());
    let client = Local::new(None, small()).unwrap();
    let pair = client.connect(&server.name, LONG).unwrap();
    client.close();
    assert_eq!(pair.disconnected(), Some(Disconnected::Closed));
    assert!(matches!(client.connect(&server.name, LONG), Err(ConnectError::Closed)));
    assert!(server.stop().iter().all(|end| *end == Disconnected::PeerClosed));
}

#[test]
fn long_messages_are_taken_shortest_first_across_pairs() {
    let name = name();
    let server = Local::new(Some(&name), small()).unwrap();
    let mut sweep = PollSet::default();
    let clients: Vec<_> = (0..3).map(|_| Local::new(None, small()).unwrap()).collect();
    let pairs: Vec<_> = clients
        .iter()
        .map(|client| {
            let Ok(Lookup::Greeted(attempt)) = client.find(&name) else { panic!("greets") };
            let known = server.pairs().len();
            while server.pairs().len() == known {
                server.poll_sockets(&mut sweep, Some(LONG)).unwrap();
            }
            let Ok(Lookup::Pair(pair)) = client.advance(attempt) else { panic!("answered") };
            pair
        })
        .collect();
    for (pair, len) in pairs.iter().zip([60_000, 5_000, 20_000]) {
        pair.send(len as u64, &[Bytes::from(vec![7; len])]).unwrap();
    }
    let mut order = Vec::new();
    while order.len() < 3 {
        server.receive(&mut sweep, ReceiveQuota { short: 1, chunks: 1 }, |_, arrival| {
            let PollEvent::Event(PairEvent::Request { id, .. }) = arrival else {
                panic!("{arrival:?}")
            };
            order.push(id);
        });
        // They send on what had no room.
        for pair in &pairs {
            assert_eq!(crate::peers::all(pair).unwrap(), []);
        }
    }
    assert_eq!(order, [5_000, 20_000, 60_000]);
}

/// What is not a pair's wakes the same sleeper, and is told apart.
#[test]
fn a_companion_is_watched_beside_the_pairs() {
    let local = Local::new(None, small()).unwrap();
    let (mut far, near) = UnixStream::pair().unwrap();
    local.watch(&near, 5).unwrap();
    let mut sweep = PollSet::default();
    assert_eq!(local.poll_sockets(&mut sweep, Some(Duration::ZERO)).unwrap().companions, 0);
    std::io::Write::write_all(&mut far, b"x").unwrap();
    let attended = local.poll_sockets(&mut sweep, Some(LONG)).unwrap();
    assert_eq!((attended.ready, attended.companions), (1, 1 << 5));
}
