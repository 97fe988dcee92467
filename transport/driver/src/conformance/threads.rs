//! Threads: the halves are independent, and neither waits for the other.

use std::thread;

use super::Fixture;
use super::host::{Host, assert_same, pattern};
use crate::Burst;

/// Each of two hosts sends on one thread and receives on another.
pub fn halves_work_on_two_threads(fixture: &dyn Fixture) {
    const PACKETS: usize = 40;
    let (mut left, right) = (Host::open(fixture), Host::open(fixture));
    let Host { address, mut transmit, mut receive, .. } = right;
    thread::scope(|scope| {
        let to = left.address;
        scope.spawn(move || {
            for salt in 0..PACKETS {
                let packet = pattern(90, salt);
                transmit.send(&Burst::single(to, &packet)).unwrap();
                transmit.flush().unwrap();
            }
        });
        // Another thread uses the receiving half of the same driver at the same time.
        scope.spawn(move || {
            for _ in 0..100 {
                receive.receive(10).unwrap();
                receive.reports(&mut |report| panic!("no packet failed: {report:?}"));
            }
        });
        let sent: Vec<_> = (0..PACKETS).map(|salt| pattern(90, salt)).collect();
        let got = left.collect(PACKETS);
        assert_same(&sent, &got);
        assert!(got.iter().all(|packet| packet.from.port() == address.port()));
    });
}
