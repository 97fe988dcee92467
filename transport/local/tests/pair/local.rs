//! Many pairs under one endpoint.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use apus_local::{
    Arrivals, ConnectError, Disconnected, Local, Lookup, Pair, PairEvent, PeerName, PollEvent,
    PollSet, ReceiveQuota, Rejection, RingSizes,
};
use bytes::Bytes;

use crate::peers::{LONG, name, small};

/// A server thread that echoes, and sleeps whenever it has no work.
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

    /// Stops the server; returns the reasons of its ended pairs.
    fn stop(mut self) -> Vec<Disconnected> {
        self.stop.store(true, Ordering::Release);
        // A connecting client wakes it.
        let client = Local::new(None, small()).unwrap();
        let _ = client.find(&self.name);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn echo(local: &Local, stop: &AtomicBool) -> Vec<Disconnected> {
    let mut poll_set = PollSet::default();
    let mut ends = Vec::new();
    loop {
        let records =
            local.receive(&mut poll_set, ReceiveQuota::default(), |pair, event| match event {
                PollEvent::Event(PairEvent::Request { id, payload }) => {
                    // A client that does not read its responses gets none.
                    let _ = pair.send(id, &[payload]);
                }
                PollEvent::Event(_) => {}
                PollEvent::Disconnected(why) => ends.push(why),
            });
        if records > 0 {
            continue;
        }
        if stop.load(Ordering::Acquire) {
            return ends;
        }
        if local.prepare_to_sleep(&mut poll_set) {
            assert!(
                local.poll_sockets(&mut poll_set, Some(LONG)).unwrap().ready > 0,
                "lost wake-up"
            );
        }
        local.finish_sleep(&poll_set);
    }
}

/// Calls a server, and waits for the response on the endpoint's descriptor.
fn call(local: &Local, poll_set: &mut PollSet, name: &PeerName, id: u64, payload: &Bytes) {
    let pair = loop {
        match local.connect(name, LONG) {
            Ok(pair) => break pair,
            // The server's queue of connecting clients may be full for a moment.
            Err(ConnectError::Busy) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    pair.send(id, std::slice::from_ref(payload)).unwrap();
    let mut answer = None;
    while answer.is_none() {
        if local.prepare_to_sleep(poll_set) {
            local.poll_sockets(poll_set, Some(LONG)).unwrap();
        }
        local.finish_sleep(poll_set);
        local.receive(poll_set, ReceiveQuota::default(), |_, event| answer = Some(event));
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
                let mut poll_set = PollSet::default();
                for round in 0..200 {
                    let len = if round % 20 == 0 { 30_000 } else { 30 };
                    let payload = Bytes::from(vec![client as u8; len]);
                    call(&local, &mut poll_set, &names[round as usize % 2], round, &payload);
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
fn a_name_is_bound_once_and_free_again_afterwards() {
    let name = name();
    let first = Local::new(Some(&name), small()).unwrap();
    let taken = Local::new(Some(&name), small());
    assert!(matches!(taken, Err(ConnectError::System { .. })), "{taken:?}");
    drop(first);
    Local::new(Some(&name), small()).unwrap();
    let absent = Local::new(None, small()).unwrap().connect(&crate::peers::name(), LONG);
    assert!(matches!(absent, Err(ConnectError::NotListening)));
}

#[test]
fn a_client_that_requests_too_large_rings_is_rejected() {
    let server = Echo::start(small());
    let mut config = small();
    config.sizes = RingSizes { short: 8 << 20, bulk: 4096 };
    let refused = Local::new(None, config).unwrap().connect(&server.name, LONG);
    assert!(matches!(refused, Err(ConnectError::Rejected(Rejection::Sizes))), "{refused:?}");
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
    assert!(matches!(refused, Err(ConnectError::Rejected(Rejection::TooMany))), "{refused:?}");
    server.stop();
}

#[test]
fn silent_clients_do_not_keep_others_out() {
    use std::os::linux::net::SocketAddrExt;
    let server = Echo::start(small());
    let text = server.name.to_string();
    let address =
        std::os::unix::net::SocketAddr::from_abstract_name(&text.as_bytes()[1..]).unwrap();
    let mut idlers = Vec::new();
    for _ in 0..300 {
        // The server empties its queue, which may be full for a moment.
        while let Err(error) = UnixStream::connect_addr(&address).map(|idler| idlers.push(idler)) {
            assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        }
    }
    let local = Local::new(None, small()).unwrap();
    let mut poll_set = PollSet::default();
    call(&local, &mut poll_set, &server.name, 1, &Bytes::from_static(b"still here"));
    server.stop();
}

#[test]
fn an_ended_pair_is_reported_once_and_replaced() {
    let server = Echo::start(small());
    let local = Local::new(None, small()).unwrap();
    let mut poll_set = PollSet::default();
    call(&local, &mut poll_set, &server.name, 1, &Bytes::from_static(b"one"));
    let pair = local.connect(&server.name, LONG).unwrap();
    server.local.pairs()[0].close();
    let mut ends = Vec::new();
    while ends.is_empty() {
        local.poll_sockets(&mut poll_set, Some(Duration::from_millis(10))).unwrap();
        local.receive(&mut poll_set, ReceiveQuota::default(), |_, event| ends.push(event));
    }
    local.receive(&mut poll_set, ReceiveQuota::default(), |_, event| ends.push(event));
    assert_eq!(ends, [PollEvent::Disconnected(Disconnected::PeerClosed)]);
    assert_eq!(pair.disconnected(), Some(Disconnected::PeerClosed));
    call(&local, &mut poll_set, &server.name, 2, &Bytes::from_static(b"two"));
    server.stop();
}

#[test]
fn only_one_thread_connects_at_a_time() {
    let name = name();
    let server = Local::new(Some(&name), small()).unwrap();
    let client = Local::new(None, small()).unwrap();
    let Ok(Lookup::Started(attempt)) = client.find(&name) else { panic!("a handshake starts") };
    assert!(matches!(client.find(&name), Ok(Lookup::Connecting)));
    let Ok(Lookup::Started(attempt)) = client.advance(attempt) else { panic!("no answer yet") };
    let mut poll_set = PollSet::default();
    while server.pairs().is_empty() {
        server.poll_sockets(&mut poll_set, Some(LONG)).unwrap();
    }
    assert!(matches!(client.advance(attempt), Ok(Lookup::Pair(_))));
    assert!(matches!(client.find(&name), Ok(Lookup::Pair(_))));
}

#[test]
fn closing_an_endpoint_ends_its_pairs() {
    let server = Echo::start(small());
    let client = Local::new(None, small()).unwrap();
    let pair = client.connect(&server.name, LONG).unwrap();
    client.close();
    assert_eq!(pair.disconnected(), Some(Disconnected::Closed));
    assert!(matches!(client.connect(&server.name, LONG), Err(ConnectError::Closed)));
    assert!(server.stop().iter().all(|end| *end == Disconnected::PeerClosed));
}

/// Connects a new client to a server that no other thread polls.
fn connected(server: &Local, name: &PeerName, poll_set: &mut PollSet) -> (Local, Arc<Pair>) {
    let client = Local::new(None, small()).unwrap();
    let Ok(Lookup::Started(attempt)) = client.find(name) else { panic!("a handshake starts") };
    let known = server.pairs().len();
    while server.pairs().len() == known {
        server.poll_sockets(poll_set, Some(LONG)).unwrap();
    }
    let Ok(Lookup::Pair(pair)) = client.advance(attempt) else { panic!("answered") };
    (client, pair)
}

/// Pairs are added and removed between the receipt of events and their use.
#[test]
fn events_belong_to_the_pairs_that_they_came_from() {
    let name = name();
    let server = Local::new(Some(&name), small()).unwrap();
    let mut poll_set = PollSet::default();
    let mut arrivals = Arrivals::default();
    let clients = [1, 2, 3].map(|_| connected(&server, &name, &mut poll_set));
    for (id, (_, pair)) in (0..).zip(&clients) {
        for copy in 0..=id {
            pair.send(10 * id + copy, &[]).unwrap();
        }
    }
    let ends = |pair: &Pair| {
        let ended = pair.disconnected().is_some();
        ended.then_some(pair.number())
    };
    clients[1].0.close();
    // The end is reported with the preceding events, or alone afterwards.
    let (mut got, mut ended) = (Vec::new(), Vec::new());
    while ended.is_empty() {
        server.poll_sockets(&mut poll_set, Some(Duration::ZERO)).unwrap();
        server.receive_into(&mut poll_set, ReceiveQuota::default(), &mut arrivals);
        let more = connected(&server, &name, &mut poll_set);
        more.1.send(99, &[]).unwrap();
        if !arrivals.is_empty() {
            let len = arrivals.len();
            let again = server.receive_into(&mut poll_set, ReceiveQuota::default(), &mut arrivals);
            assert_eq!((again, arrivals.len()), (0, len), "what has come is first");
        }
        arrivals.drain(|pair, event| match event {
            PollEvent::Event(PairEvent::Request { id, .. }) if id < 99 => {
                got.push((id / 10, id % 10, pair.number()));
            }
            PollEvent::Disconnected(_) => ended.extend(ends(pair)),
            PollEvent::Event(_) => {}
        });
        assert!(arrivals.is_empty());
    }
    got.sort_unstable();
    let ids: Vec<_> = got.iter().map(|(client, copy, _)| (*client, *copy)).collect();
    assert_eq!(ids, [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]);
    let number = |client| got.iter().filter(move |one| one.0 == client).map(|one| one.2);
    for client in 0..3 {
        assert!(number(client).all(|one| Some(one) == number(client).next()), "one pair: {got:?}");
    }
    assert_ne!(number(0).next(), number(2).next());
    assert_eq!(number(1).next(), ended.first().copied(), "the pair that was closed");
}

#[test]
fn long_messages_are_received_shortest_first_across_pairs() {
    let name = name();
    let server = Local::new(Some(&name), small()).unwrap();
    let mut poll_set = PollSet::default();
    let clients = [(); 3].map(|()| connected(&server, &name, &mut poll_set));
    let pairs = clients.each_ref().map(|(_, pair)| pair);
    for (pair, len) in pairs.iter().zip([60_000, 5_000, 20_000]) {
        pair.send(len as u64, &[Bytes::from(vec![7; len])]).unwrap();
    }
    let mut order = Vec::new();
    while order.len() < 3 {
        server.receive(&mut poll_set, ReceiveQuota { short: 1, chunks: 1 }, |_, event| {
            let PollEvent::Event(PairEvent::Request { id, .. }) = event else {
                panic!("{event:?}")
            };
            order.push(id);
        });
        // The senders write what had no room.
        for pair in &pairs {
            assert_eq!(crate::peers::all(pair).unwrap(), []);
        }
    }
    assert_eq!(order, [5_000, 20_000, 60_000]);
}

/// A descriptor that belongs to no pair wakes the same sleeper, and is reported by its number.
#[test]
fn a_companion_is_watched_together_with_the_pairs() {
    let local = Local::new(None, small()).unwrap();
    let (mut far, near) = UnixStream::pair().unwrap();
    local.watch(&near, 5).unwrap();
    let mut poll_set = PollSet::default();
    assert_eq!(local.poll_sockets(&mut poll_set, Some(Duration::ZERO)).unwrap().companions, 0);
    std::io::Write::write_all(&mut far, b"x").unwrap();
    let outcome = local.poll_sockets(&mut poll_set, Some(LONG)).unwrap();
    assert_eq!((outcome.ready, outcome.companions), (1, 1 << 5));
}
