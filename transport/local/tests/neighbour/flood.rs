//! Connections of other users do not push honest clients out.
//!
//! The tests print how long honest clients take to connect, alone and during the flood. That is a
//! measurement and no promise: `APUS_FLOOD_CLIENTS` sets the number of clients.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apus_local::{ConnectError, Local, PeerName, PeerPolicy, PollSet, ReceiveQuota};

use crate::child::{ATTACKER, Other, config, name, report};

/// Connections that the attacker holds at a time: more than a server keeps.
const HELD: usize = 200;

/// The attacker: connects repeatedly, holds the connections, and sends nothing.
pub(crate) fn connect_again_and_again(name: &PeerName) {
    let text = name.to_string();
    let address = SocketAddr::from_abstract_name(&text.as_bytes()[1..]).unwrap();
    static STOP: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        crate::child::wait_for_end();
        STOP.store(true, Ordering::Relaxed);
    });
    let mut held = std::collections::VecDeque::new();
    let mut connections = 0;
    while !STOP.load(Ordering::Relaxed) {
        // Fails while the server's queue is full.
        if let Ok(socket) = UnixStream::connect_addr(&address) {
            connections += 1;
            held.push_back(socket);
            if connections == HELD {
                report("flooding");
            }
        }
        if held.len() > HELD {
            held.pop_front();
        }
    }
}

/// Runs a server with this policy, and `honest` during a flood of connections of another user.
fn beside_a_flood(policy: PeerPolicy, honest: impl Fn(&str, &PeerName)) {
    let name = name();
    let mut config = config();
    config.peer_policy = policy;
    let local = Local::new(Some(&PeerName::new(&name)), config).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut poll_set = PollSet::default();
            while !over.load(Ordering::Acquire) {
                local.poll_sockets(&mut poll_set, Some(Duration::from_millis(10))).unwrap();
                // Removes the pairs of clients that have disconnected, as an endpoint does in each
                // pass: otherwise their sockets are ready in every poll.
                local.receive(&mut poll_set, ReceiveQuota::default(), |_, _| {});
            }
        });
        // Also if the honest clients panic.
        let _end = End(&over);
        honest("alone", &PeerName::new(&name));
        if let Some(mut attacker) = Other::start("flood", &name, ATTACKER, &[]) {
            assert_eq!(attacker.next().as_deref(), Some("flooding"));
            honest("beside a flood", &PeerName::new(&name));
        }
    });
}

/// Ends the server's thread on drop.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Number of clients, unless the environment sets another one.
const CLIENTS: usize = 40;

/// Connects clients, one after the other, and prints how long they took. None may be displaced.
fn connect_clients(situation: &str, name: &PeerName) {
    let clients = std::env::var("APUS_FLOOD_CLIENTS").ok().map_or(CLIENTS, |n| n.parse().unwrap());
    let mut busy = 0;
    let connect = |_| {
        let client = Local::new(None, config()).unwrap();
        let start = Instant::now();
        loop {
            match client.connect(name, Duration::from_secs(60)) {
                Ok(_) => return start.elapsed(),
                // The kernel's queue is full for a moment: an endpoint tries again later.
                Err(ConnectError::Busy) => {
                    busy += 1;
                    std::thread::yield_now();
                }
                Err(error) => panic!("an honest client was displaced: {error}"),
            }
        }
    };
    let mut times: Vec<Duration> = (0..clients).map(connect).collect();
    times.sort_unstable();
    let (median, p99) = (times[clients / 2], times[clients * 99 / 100]);
    eprintln!(
        "{situation}: {clients} clients, median {median:?}, p99 {p99:?}, {busy} attempts met a full queue"
    );
}

#[test]
fn refused_users_do_not_displace_honest_clients() {
    beside_a_flood(PeerPolicy::SameUser, connect_clients);
}

#[test]
fn a_user_that_is_allowed_does_not_displace_clients_of_others() {
    beside_a_flood(PeerPolicy::Anyone, connect_clients);
}
