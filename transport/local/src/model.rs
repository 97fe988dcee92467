//! Loom models of rings, wake-ups, closing and the registry.
//!
//! Loom runs every interleaving of a few threads over the real code, on modelled memory
//! (`memory::model`).
//!
//! ```sh
//! RUSTFLAGS="--cfg apus_local_loom" cargo test --release -p apus-local --lib model
//! ```
//!
//! lab/mutations.csv lists the planted bugs that these models found.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use loom::sync::atomic::AtomicBool;
use loom::thread;

use crate::endpoint::registry::{AddError, Found, Registry, Snapshot};
use crate::error::{Disconnected, SendError};
use crate::memory::Memory;
use crate::memory::layout::{Lane, RingLayout, RingSizes, SLOT, ring_layout, side_words};
use crate::pair::inbox::PairEvent;
use crate::pair::limits::LocalLimits;
use crate::pair::link::Link;
use crate::pair::sleep::SleepMode;
use crate::ring::record::{Head, RecordKind};
use crate::ring::{Consumer, Producer, PushError};
use crate::sync::Ordering;
use apus_wire::Role;

/// Runs every interleaving with up to `preemptions` preemptions.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Returns a ring of `slots` slots.
fn ring(slots: usize) -> (Producer, Consumer) {
    let ring = RingLayout { head: 0, data: SLOT, capacity: slots * SLOT };
    let data = (0..ring.capacity).step_by(8).map(|offset| ring.data + offset);
    let memory = Memory::new(data.chain([ring.head]), []);
    (Producer::new(memory.clone(), ring), Consumer::new(memory, ring))
}

fn push(producer: &mut Producer, id: u64, words: usize) -> Result<(), PushError> {
    let payload = vec![id as u8; 8 * words];
    let mut slot = producer.reserve(payload.len())?;
    slot.put(&payload);
    slot.commit(&Head::part(RecordKind::Request, id, payload.len(), payload.len() as u32, 0));
    Ok(())
}

fn pop(consumer: &mut Consumer) -> Option<u64> {
    let record = consumer.peek().expect("RING-1, RING-4: no record is a violation")?;
    let mut bytes = BytesMut::new();
    consumer.copy(&record, &mut bytes);
    consumer.release(&record);
    let id = record.head.id;
    assert!(bytes.iter().all(|byte| u64::from(*byte) == id), "RING-1, RING-3: {id} has {bytes:?}");
    Some(id)
}

/// Sends records with `sizes` words of payload through a ring of `slots` slots.
fn records_arrive_whole_and_in_order(slots: usize, sizes: &'static [usize]) {
    check(3, move || {
        let (mut producer, mut consumer) = ring(slots);
        let writer = thread::spawn(move || {
            for (id, words) in (1..).zip(sizes) {
                while push(&mut producer, id, *words) == Err(PushError::Full) {
                    thread::yield_now();
                }
            }
        });
        for id in 1..=sizes.len() as u64 {
            let got = loop {
                match pop(&mut consumer) {
                    Some(got) => break got,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(got, id);
        }
        writer.join().unwrap();
        assert_eq!(pop(&mut consumer), None);
    });
}

/// Records of one and of two slots alternate.
#[test]
fn model_records_arrive_whole_and_in_order() {
    records_arrive_whole_and_in_order(4, &[1, 6, 1, 6]);
}

/// The fourth record does not fit behind the third: the rest of the ring is padded, while the start
/// of the ring still holds bytes of the first record.
#[test]
fn model_padding_comes_last() {
    records_arrive_whole_and_in_order(4, &[1, 1, 1, 6, 1]);
}

/// In a ring with room, the lines behind a record are written ahead, and the 0 behind the next
/// record is among them, also where it wraps around.
#[test]
fn model_lines_are_written_ahead() {
    records_arrive_whole_and_in_order(8, &[6, 1, 6, 6, 1, 1]);
}

const SIZES: RingSizes = RingSizes { short: 4 * SLOT as u32, bulk: 4 * SLOT as u32 };

/// Returns both sides of a pair that treats messages of more than eight bytes as long.
fn links() -> (Arc<Link>, Arc<Link>) {
    let mut all = Vec::new();
    let mut halves = Vec::new();
    for role in [Role::Client, Role::Server] {
        let words = side_words(role);
        halves.extend([words.sleep, words.close]);
        for lane in [Lane::Short, Lane::Bulk] {
            let ring = ring_layout(SIZES, role, lane);
            all.push(ring.head);
            all.extend((0..ring.capacity).step_by(8).map(|offset| ring.data + offset));
        }
    }
    let memory = Memory::new(all, halves);
    let link = |number, role| {
        Arc::new(Link::new(number, role, memory.clone(), SIZES, LocalLimits::default()))
    };
    (link(1, Role::Client), link(2, Role::Server))
}

fn send(link: &Link, id: u64, len: usize) -> Result<(), SendError> {
    let mut batch = link.batch()?;
    let sent = batch.send(id, &[Bytes::from(vec![id as u8; len])]);
    batch.finish()?;
    sent.map(|_| ())
}

/// Returns the next event, sleeping until there is one.
fn next(link: &Link) -> Result<PairEvent, Disconnected> {
    loop {
        let mut got = Vec::new();
        let received = link.receive(1, 0, &mut got)?;
        assert!(!received.signal, "no side sleeps on a socket");
        if got.is_empty() {
            let _ = link.receive(0, 1, &mut got)?;
        }
        if let Some(event) = got.pop() {
            return Ok(event);
        }
        assert!(!link.report_room());
        if link.prepare_to_sleep(SleepMode::Futex) {
            link.sleep(Duration::MAX);
            link.finish_sleep();
        }
    }
}

/// A receiver that sleeps whenever the rings are empty is woken for each message: loom reports a
/// deadlock otherwise.
#[test]
fn model_no_wake_up_is_lost() {
    check(3, || {
        let (client, server) = links();
        let receiver = thread::spawn(move || {
            for id in 1..=2 {
                let got = next(&server);
                assert!(matches!(got, Ok(PairEvent::Request { id: got, .. }) if got == id));
            }
        });
        send(&client, 1, 8).unwrap();
        send(&client, 2, 8).unwrap();
        receiver.join().unwrap();
    });
}

/// Two threads receive at once: records that one of them leaves are found by the other, or wake it,
/// whatever it has peeked before.
#[test]
fn model_two_receive() {
    check(3, || {
        let (client, server) = links();
        send(&client, 1, 8).unwrap();
        let other = {
            let server = server.clone();
            thread::spawn(move || {
                let mut got = Vec::new();
                let _ = server.receive(1, 0, &mut got).unwrap();
                got.len()
            })
        };
        let sender = thread::spawn(move || send(&client, 2, 8).unwrap());
        let mut got = Vec::new();
        let _ = server.receive(1, 0, &mut got).unwrap();
        let mut left = 2 - got.len() - other.join().unwrap();
        while left > 0 {
            next(&server).unwrap();
            left -= 1;
        }
        sender.join().unwrap();
    });
}

/// A sender that sleeps until there is room is woken: for a short message that was refused, and for
/// chunks.
#[test]
fn model_no_room_is_lost() {
    check(2, || {
        let (client, server) = links();
        let sender = thread::spawn(move || {
            let mut id = 1;
            // Three slots are free, so the fourth message is refused.
            while id <= 4 {
                match send(&client, id, 8) {
                    Ok(()) => id += 1,
                    Err(SendError::Full) => assert_eq!(next(&client), Ok(PairEvent::Room)),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        for id in 1..=4 {
            let got = next(&server);
            assert!(matches!(got, Ok(PairEvent::Request { id: got, .. }) if got == id));
        }
        // It has reported the room before its last sleep.
        assert!(!server.report_room());
        sender.join().unwrap();
    });
}

/// A message is either accepted, and then the peer receives it, or refused, and then no part of it
/// exists.
#[test]
fn model_close_races_send() {
    check(3, || {
        let (client, server) = links();
        let closing = {
            let client = client.clone();
            thread::spawn(move || {
                assert_eq!(client.end(Disconnected::Closed), Disconnected::Closed);
                // The kernel reports this when the socket is closed.
                server.hang_up();
                let got = matches!(next(&server), Ok(PairEvent::Request { id: 1, .. }));
                assert_eq!(next(&server), Err(Disconnected::PeerClosed));
                got
            })
        };
        let sent = send(&client, 1, 8);
        assert_eq!(sent.is_ok(), closing.join().unwrap(), "{sent:?}");
        let refused = Err(SendError::Disconnected(Disconnected::Closed));
        assert_eq!(send(&client, 2, 8), refused);
    });
}

/// Closing a pair wakes a thread of the same process that sleeps on it.
#[test]
fn model_close_wakes_who_sleeps_here() {
    check(3, || {
        let (client, _) = links();
        let sleeper = {
            let client = client.clone();
            thread::spawn(move || next(&client))
        };
        client.end(Disconnected::Closed);
        assert_eq!(sleeper.join().unwrap(), Err(Disconnected::Closed));
    });
}

/// Messages sent before the end are received before the end is reported, by a receiver that may
/// sleep (LINK-2).
#[test]
fn model_the_end_comes_last() {
    check(2, || {
        let (client, server) = links();
        let receiver = {
            let server = server.clone();
            thread::spawn(move || {
                assert!(matches!(next(&server), Ok(PairEvent::Request { id: 1, .. })));
                assert_eq!(next(&server), Err(Disconnected::PeerClosed));
            })
        };
        send(&client, 1, 8).unwrap();
        assert_eq!(client.end(Disconnected::Closed), Disconnected::Closed);
        server.hang_up();
        receiver.join().unwrap();
    });
}

/// Both sides close while one of them sleeps: no thread waits forever, and each caller receives the
/// same reason.
#[test]
fn model_both_ends_close_at_once() {
    check(2, || {
        let (client, server) = links();
        let sleeper = {
            let client = client.clone();
            thread::spawn(move || next(&client).unwrap_err())
        };
        let other = {
            let client = client.clone();
            thread::spawn(move || {
                let why = server.end(Disconnected::Closed);
                client.hang_up();
                why
            })
        };
        let why = client.end(Disconnected::Closed);
        assert_eq!(other.join().unwrap(), Disconnected::Closed);
        assert_eq!(sleeper.join().unwrap(), why, "LINK-1: both receive the same reason");
        assert_eq!(client.disconnected(), Some(why));
    });
}

/// Takes the place of a pair in the registry.
#[derive(Debug)]
struct Thing {
    open: AtomicBool,
}

impl Thing {
    fn new() -> Arc<Self> {
        Arc::new(Self { open: AtomicBool::new(true) })
    }

    fn close(&self) {
        self.open.store(false, Ordering::Release);
    }
}

/// A pair created while the registry closes is closed by one of the two threads (REGISTRY-1).
#[test]
fn model_connect_races_close() {
    check(3, || {
        let registry = Arc::new(Registry::new(8));
        let closing = {
            let registry = registry.clone();
            thread::spawn(move || {
                registry.close().iter().for_each(|thing: &Arc<Thing>| thing.close())
            })
        };
        let thing = Thing::new();
        let added = match registry.find_or_reserve(&1) {
            Found::Reserved(reservation) => registry.fulfil(&reservation, thing.clone()),
            Found::Closed => Err(AddError::Closed(thing.clone())),
            _ => panic!("no other thread connects"),
        };
        if let Err(AddError::Closed(thing) | AddError::Full(thing)) = added {
            thing.close();
        }
        closing.join().unwrap();
        let open = thing.open.load(Ordering::Acquire);
        assert!(!open, "REGISTRY-1: lost between connecting and closing");
        assert!(matches!(registry.find_or_reserve(&1), Found::Closed));
    });
}

/// Two threads connect to the same peer: one pair is made, and both find it (REGISTRY-2). A reader
/// sees it.
#[test]
fn model_connect_races_connect() {
    check(3, || {
        let registry = Arc::new(Registry::new(8));
        let connect = |registry: &Registry<u32, Thing>| match registry.find_or_reserve(&1) {
            Found::Reserved(reservation) => {
                registry.fulfil(&reservation, Thing::new()).unwrap();
                1
            }
            Found::Connecting | Found::Pair(_) => 0,
            _ => panic!("neither closed nor full"),
        };
        let other = {
            let registry = registry.clone();
            thread::spawn(move || connect(&registry))
        };
        let mut snapshot = Snapshot::default();
        registry.renew(&mut snapshot);
        let made = connect(&registry) + other.join().unwrap();
        assert_eq!(made, 1, "REGISTRY-2");
        registry.renew(&mut snapshot);
        assert_eq!(snapshot.pairs().len(), 1, "a renewed list is complete");
    });
}
