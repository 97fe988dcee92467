//! SEAL-18: what a server states about its life.

use crate::certificates::Ca;
use crate::network::{End, MILLIS, connect};
use apus_seal::stub::{StubNegotiator, StubPolicy};
use apus_seal::{Negotiator, ServerLife};
use std::sync::Arc;
use std::time::Duration;

/// A server states its age, and a client notices whether it is another life than before.
fn check(client: Arc<dyn Negotiator>, server: impl Fn() -> Arc<dyn Negotiator>) {
    let mut ends = [End::new(1, client), End::new(2, server())];
    let last = |ends: &[End; 2]| *ends[0].lives.last().unwrap();
    connect(&mut ends, 100 * MILLIS);
    let stated = |asked: Duration, is_other| Some(ServerLife { age: asked, asked, is_other });
    assert_eq!(last(&ends), stated(100 * MILLIS, false), "there was none before");
    assert_eq!(ends[1].lives, [None], "a client's age is not current");
    // The same life, which does not prove that it has the keys.
    ends[1].keys = None;
    connect(&mut ends, 300 * MILLIS);
    assert_eq!(last(&ends), stated(300 * MILLIS, false));
    // Another one.
    ends[1] = End::new(2, server());
    connect(&mut ends, 500 * MILLIS);
    assert_eq!(last(&ends), stated(500 * MILLIS, true));
    assert_eq!(ends[0].lives.len(), 3);
}

#[test]
fn a_restarted_server_is_another_life() {
    let policy = StubPolicy { name: 1, trust: 2, limit: 1 << 20 };
    let seeds = std::cell::Cell::new(7);
    let server = || -> Arc<dyn Negotiator> {
        seeds.set(seeds.get() + 1);
        Arc::new(StubNegotiator::new(policy, seeds.get()))
    };
    check(Arc::new(StubNegotiator::new(policy, 1)), server);
    let ca = Ca::new();
    check(ca.negotiator("client"), || ca.negotiator("server"));
}
