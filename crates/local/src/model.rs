//! Do rings, wake-ups, closing and the registry hold what they promise, whatever the timing?
//!
//! loom runs every interleaving of a few threads over the real code, with memory of its own (`model_memory`).
//! Run with
//!
//! ```sh
//! RUSTFLAGS="--cfg apus_local_loom" cargo test --release -p apus-local --lib model
//! ```
//!
//! Which flaws they were seen to find stands in docs/mutations.md.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use loom::sync::atomic::AtomicBool;
use loom::thread;

use crate::error::{Gone, SendError};
use crate::inbox::Event;
use crate::layout::{Lane, Place, SLOT, Sizes, place, words};
use crate::limits::Limits;
use crate::link::Link;
use crate::memory::Memory;
use crate::record::{Head, Kind};
use crate::registry::{Found, NotAdded, Registry, Snapshot};
use crate::ring::{Consumer, Producer, PushError};
use crate::sync::Ordering;
use crate::wake::How;
use apus_wire::Role;

/// Every interleaving with at most so many preemptions.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// A ring of so many slots.
fn ring(slots: usize) -> (Producer, Consumer) {
    let place = Place { head: 0, data: SLOT, capacity: slots * SLOT };
    let data = (0..place.capacity).step_by(8).map(|offset| place.data + offset);
    let memory = Memory::new(data.chain([place.head]), []);
    (Producer::new(memory.clone(), place), Consumer::new(memory, place))
}

fn push(producer: &mut Producer, id: u64, words: usize) -> Result<(), PushError> {
    let payload = vec![id as u8; 8 * words];
    let mut slot = producer.reserve(payload.len())?;
    slot.put(&payload);
    slot.commit(&Head::part(Kind::Request, id, payload.len(), payload.len() as u32, 0));
    Ok(())
}

fn pop(consumer: &mut Consumer) -> Option<u64> {
    let record = consumer.peek().expect("R1, R4: nothing of ours is a violation")?;
    let mut bytes = BytesMut::new();
    consumer.copy(&record, &mut bytes);
    consumer.release(&record);
    let id = record.head.id;
    assert!(bytes.iter().all(|byte| u64::from(*byte) == id), "R1, R3: {id} holds {bytes:?}");
    Some(id)
}

/// Records of these many words of payload, one after the other through a ring of so many slots.
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

/// Records of one and of two slots, in turn.
#[test]
fn model_records_arrive_whole_and_in_order() {
    records_arrive_whole_and_in_order(4, &[1, 6, 1, 6]);
}

/// The fourth does not fit behind the third: the rest of the ring is padded, and at its begin there is still what
/// the first one has left.
#[test]
fn model_padding_comes_last() {
    records_arrive_whole_and_in_order(4, &[1, 1, 1, 6, 1]);
}

/// In a ring with room the lines behind a record are written ahead, and the 0 behind the next one is there already: also
/// where it lies beyond the ring's end.
#[test]
fn model_lines_are_written_ahead() {
    records_arrive_whole_and_in_order(8, &[6, 1, 6, 6, 1, 1]);
}

const SIZES: Sizes = Sizes { short: 4 * SLOT as u32, bulk: 4 * SLOT as u32 };

/// Both sides of a pair, whose messages of more than eight bytes are long.
fn links() -> (Arc<Link>, Arc<Link>) {
    let mut all = Vec::new();
    let mut halves = Vec::new();
    for role in [Role::Client, Role::Server] {
        let words = words(role);
        halves.extend([words.sleep, words.farewell]);
        for lane in [Lane::Short, Lane::Bulk] {
            let place = place(SIZES, role, lane);
            all.push(place.head);
            all.extend((0..place.capacity).step_by(8).map(|offset| place.data + offset));
        }
    }
    let memory = Memory::new(all, halves);
    let link =
        |number, role| Arc::new(Link::new(number, role, memory.clone(), SIZES, Limits::default()));
    (link(1, Role::Client), link(2, Role::Server))
}

fn send(link: &Link, id: u64, len: usize) -> Result<(), SendError> {
    let mut batch = link.batch()?;
    let sent = batch.send(id, &[Bytes::from(vec![id as u8; len])]);
    batch.finish()?;
    sent.map(|_| ())
}

/// The next event, slept for.
fn next(link: &Link) -> Result<Event, Gone> {
    loop {
        let mut got = Vec::new();
        let received = link.receive(1, 0, &mut got)?;
        assert!(!received.ring, "nobody sleeps on a socket");
        if got.is_empty() {
            let _ = link.receive(0, 1, &mut got)?;
        }
        if let Some(event) = got.pop() {
            return Ok(event);
        }
        assert!(!link.settle());
        if link.prepare_to_sleep(How::Futex) {
            link.doze(Duration::MAX);
            link.withdraw();
        }
    }
}

/// A receiver that sleeps whenever there is nothing is woken for each message: loom reports one that is not.
#[test]
fn model_no_wake_up_is_lost() {
    check(3, || {
        let (client, server) = links();
        let receiver = thread::spawn(move || {
            for id in 1..=2 {
                assert!(matches!(next(&server), Ok(Event::Request { id: got, .. }) if got == id));
            }
        });
        send(&client, 1, 8).unwrap();
        send(&client, 2, 8).unwrap();
        receiver.join().unwrap();
    });
}

/// Two threads receive at once: what one of them leaves the other finds, and is woken for, whatever it has seen without
/// a lock before.
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

/// A sender that sleeps until there is room is woken: for a short message that was refused, and for chunks.
#[test]
fn model_no_room_is_lost() {
    check(2, || {
        let (client, server) = links();
        let sender = thread::spawn(move || {
            let mut id = 1;
            // Three slots are free, so the fourth is refused.
            while id <= 4 {
                match send(&client, id, 8) {
                    Ok(()) => id += 1,
                    Err(SendError::Full) => assert_eq!(next(&client), Ok(Event::Room)),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        for id in 1..=4 {
            assert!(matches!(next(&server), Ok(Event::Request { id: got, .. }) if got == id));
        }
        // It tells of room before it would sleep.
        assert!(!server.settle());
        sender.join().unwrap();
    });
}

/// A message is accepted, and then the peer gets it, or it is refused, and then there is nothing of it.
#[test]
fn model_close_races_send() {
    check(3, || {
        let (client, server) = links();
        let closing = {
            let client = client.clone();
            thread::spawn(move || {
                assert_eq!(client.end(Gone::Closed), Gone::Closed);
                // The kernel says so when the socket is closed.
                server.hang_up();
                let got = matches!(next(&server), Ok(Event::Request { id: 1, .. }));
                assert_eq!(next(&server), Err(Gone::PeerClosed));
                got
            })
        };
        let sent = send(&client, 1, 8);
        assert_eq!(sent.is_ok(), closing.join().unwrap(), "{sent:?}");
        assert_eq!(send(&client, 2, 8), Err(SendError::Gone(Gone::Closed)));
    });
}

/// Closing a pair ends the sleep of a thread of the same process.
#[test]
fn model_close_wakes_who_sleeps_here() {
    check(3, || {
        let (client, _) = links();
        let sleeper = {
            let client = client.clone();
            thread::spawn(move || next(&client))
        };
        client.end(Gone::Closed);
        assert_eq!(sleeper.join().unwrap(), Err(Gone::Closed));
    });
}

/// What was sent before the end is received before the end is told, by a receiver that may be asleep (L2).
#[test]
fn model_the_end_comes_last() {
    check(2, || {
        let (client, server) = links();
        let receiver = {
            let server = server.clone();
            thread::spawn(move || {
                assert!(matches!(next(&server), Ok(Event::Request { id: 1, .. })));
                assert_eq!(next(&server), Err(Gone::PeerClosed));
            })
        };
        send(&client, 1, 8).unwrap();
        assert_eq!(client.end(Gone::Closed), Gone::Closed);
        server.hang_up();
        receiver.join().unwrap();
    });
}

/// Both ends close while one of them sleeps: nobody waits for ever, and each is told one reason.
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
                let gone = server.end(Gone::Closed);
                client.hang_up();
                gone
            })
        };
        let gone = client.end(Gone::Closed);
        assert_eq!(other.join().unwrap(), Gone::Closed);
        assert_eq!(sleeper.join().unwrap(), gone, "L1: both are told the same");
        assert_eq!(client.gone(), Some(gone));
    });
}

/// A pair as far as the registry is concerned.
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

/// A pair that was made while the registry closed is closed by one of the two (G1).
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
        let added = match registry.find(&1) {
            Found::Nothing(reservation) => registry.fulfil(&reservation, thing.clone()),
            Found::Closed => Err(NotAdded::Closed(thing.clone())),
            _ => panic!("nobody else connects"),
        };
        if let Err(NotAdded::Closed(thing) | NotAdded::Full(thing)) = added {
            thing.close();
        }
        closing.join().unwrap();
        assert!(!thing.open.load(Ordering::Acquire), "G1: lost between connecting and closing");
        assert!(matches!(registry.find(&1), Found::Closed));
    });
}

/// Two threads connect to the same peer: one pair is made, and both find it (G2). A reader sees it.
#[test]
fn model_connect_races_connect() {
    check(3, || {
        let registry = Arc::new(Registry::new(8));
        let connect = |registry: &Registry<u32, Thing>| match registry.find(&1) {
            Found::Nothing(reservation) => {
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
        assert_eq!(made, 1, "G2");
        registry.renew(&mut snapshot);
        assert_eq!(snapshot.pairs().len(), 1, "a list that is renewed is right");
    });
}
