//! Delivery of every message once and in order, whatever the faults of the network.

use apus_sim::dctcp::Config;
use apus_sim::{HostId, Outcome};
use apus_workload::time::{MICROSECOND, MILLISECOND};
use proptest::prelude::*;

use super::wire::{Fate, LEFT, RIGHT, Wire};

#[derive(Clone, Debug)]
struct Submission {
    from: HostId,
    bytes: u32,
    /// Nanoseconds until the next step.
    pause: u64,
}

fn submission() -> impl Strategy<Value = Submission> {
    let bytes = prop_oneof![4 => 4u32..200, 3 => 200u32..5_000, 1 => 5_000u32..200_000];
    let pause = prop_oneof![5 => 0..20 * MICROSECOND, 1 => 0..30 * MILLISECOND];
    (LEFT..=RIGHT, bytes, pause).prop_map(|(from, bytes, pause)| Submission { from, bytes, pause })
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        4 => Just(Fate::Marked),
        1 => (0..100 * MICROSECOND).prop_map(Fate::Late),
        1 => (0..MILLISECOND).prop_map(Fate::Twice),
    ]
}

/// Returns the reported messages of one direction, in order.
fn told(wire: &Wire, at: HostId, pick: fn(&Outcome) -> Option<u32>) -> Vec<u32> {
    let own = wire.told.iter().filter(|(_, host, _)| *host == at);
    own.filter_map(|(_, _, outcome)| pick(outcome)).collect()
}

const fn delivered(outcome: &Outcome) -> Option<u32> {
    match outcome {
        Outcome::Delivered(number) => Some(*number),
        _ => None,
    }
}

const fn done(outcome: &Outcome) -> Option<u32> {
    match outcome {
        Outcome::Done(number) => Some(*number),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The model of a connection is two lists. After the faults the network is sound; otherwise
    /// delivery could not be guaranteed.
    #[test]
    fn messages_arrive_once_and_in_order(
        submissions in prop::collection::vec(submission(), 1..40),
        fates in prop::collection::vec(fate(), 0..600),
    ) {
        let mut fates = fates.into_iter();
        let mut wire =
            Wire::new(Config::default(), move |_, _| fates.next().unwrap_or(Fate::Arrives));
        let mut expected = [Vec::new(), Vec::new()];
        for submission in &submissions {
            let number = wire.submit(submission.from, submission.bytes);
            expected[submission.from as usize].push(number);
            wire.run_until(wire.now + submission.pause);
        }
        wire.run();
        for from in [LEFT, RIGHT] {
            let sent = &expected[from as usize];
            prop_assert_eq!(&told(&wire, 1 - from, delivered), sent, "delivered");
            prop_assert_eq!(&told(&wire, from, done), sent, "done");
            for number in sent {
                prop_assert!(wire.done(*number) > wire.delivered(*number));
            }
            if !sent.is_empty() {
                prop_assert_eq!(wire.info(from).unacknowledged, 0);
            }
        }
    }
}
