//! Hostile writes into shared memory do no harm.
//!
//! The input encodes steps of a hostile peer and of its victim.

use std::sync::atomic::{AtomicU32, Ordering};

use apus_local::{Pair, PairEvent, PeerName, ReceiveQuota, Role, SendError};
use apus_wire::Refusal;
use bytes::Bytes;

use crate::peer::{Hostile, LEN};

/// Maximum number of steps of one input: longer inputs find no more.
const MAX_STEPS: usize = 400;

/// The unread bytes of an input; zeros after its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn number(&mut self, bytes: usize) -> u64 {
        let mut number = [0; 8];
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        number[..taken.len()].copy_from_slice(taken);
        self.0 = rest;
        u64::from_le_bytes(number)
    }
}

/// Asserts that there is no panic, no end without a reason, no event after the end, and no more
/// messages than records.
pub(crate) fn run(bytes: &[u8]) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = PeerName::new(&format!("scribble/{}/{next}", std::process::id()));
    let mut input = Input(bytes);
    let (mut hostile, victim) =
        if input.number(1) % 2 == 0 { Hostile::client(&name) } else { Hostile::server(&name) };
    let mut gone = None;
    for step in 0..MAX_STEPS {
        if input.0.is_empty() {
            break;
        }
        match input.number(1) % 10 {
            0 => {
                let (at, len) = (input.number(2) as usize, input.number(1) as usize);
                let bytes: Vec<u8> = (0..len).map(|_| input.number(1) as u8).collect();
                hostile.write(at, &bytes);
            }
            1..4 => {
                let (lane, kind) = (input.number(1) as usize % 2, input.number(1) as u8 % 8);
                let (id, len) = (input.number(1), input.number(2) as u32);
                // Totals and offsets that fit together from time to time.
                let total = input.number(3);
                let offset = input.number(2);
                hostile.record(lane, kind, id, len % 2200, total | offset << 32);
            }
            4 => hostile.head(input.number(1) as usize % 2, input.number(2) * 64),
            5 => hostile.head(input.number(1) as usize % 2, input.number(8)),
            6 => {
                let len = input.number(2) as usize;
                let sent = victim.send(step as u64, &[Bytes::from(vec![7; len])]);
                assert!(
                    matches!(sent, Ok(_) | Err(SendError::Full | SendError::Disconnected(_))),
                    "{sent:?}"
                );
            }
            7 => withdraw(&victim, input.number(1)),
            8 => {
                // Holes read as zeros.
                hostile.write(input.number(2) as usize, &vec![0; LEN / 8]);
            }
            _ => {
                if !victim.prepare_to_sleep() {
                    receive(&victim, &mut gone);
                }
                victim.finish_sleep();
            }
        }
        receive(&victim, &mut gone);
    }
    // The victim notices the end of the hostile peer, whatever was written.
    drop(hostile.socket);
    victim.handle_signal();
    for _ in 0..10_000 {
        if gone.is_some() {
            break;
        }
        receive(&victim, &mut gone);
    }
    assert!(gone.is_some(), "the pair ends");
    assert!(victim.wait(None, None) && victim.is_drained());
    assert!(matches!(victim.send(1, &[Bytes::from_static(b"x")]), Err(SendError::Disconnected(_))));
}

fn withdraw(victim: &Pair, id: u64) {
    // `receive` reports an end.
    let _ = match victim.role() {
        Role::Client => victim.cancel(id),
        Role::Server => victim.refuse(id, Refusal::Overloaded),
    };
}

fn receive(victim: &Pair, gone: &mut Option<apus_local::Disconnected>) {
    let mut events = Vec::new();
    let received = victim.receive(ReceiveQuota::default(), &mut events);
    for event in &events {
        let fits = match (event, victim.role()) {
            (PairEvent::Request { payload, .. }, Role::Server)
            | (PairEvent::Response { payload, .. }, Role::Client) => payload.len() <= 1 << 20,
            (PairEvent::Cancelled { .. }, Role::Server) => true,
            (PairEvent::Refused { .. } | PairEvent::Declined { .. }, Role::Client) => true,
            (PairEvent::Freeze | PairEvent::Room, _) => true,
            _ => false,
        };
        assert!(fits, "{event:?}");
    }
    match received {
        Ok(records) => {
            assert!(gone.is_none(), "something after the end");
            assert!(
                events.len() <= records + 2,
                "a record has one event at most, and room is another"
            );
        }
        Err(why) => {
            assert!(gone.is_none_or(|before| before == why), "one reason: {gone:?}, {why:?}");
            assert_eq!(victim.disconnected(), Some(why));
            *gone = Some(why);
        }
    }
}
