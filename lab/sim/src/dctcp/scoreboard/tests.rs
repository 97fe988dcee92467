//! Counts and repairs of the scoreboard.

use super::*;
use proptest::prelude::*;

/// Returns ten segments of ten bytes, the n-th sent at n.
fn board() -> Scoreboard {
    let mut board = Scoreboard::default();
    for number in 0..10 {
        board.push(number * 10..number * 10 + 10, number);
    }
    board
}

#[test]
fn a_repaired_segment_is_in_flight_again() {
    let mut board = board();
    let mut newly_acked = NewlyAcked::default();
    board.sack(&(30..60), &mut newly_acked, |_| {});
    assert_eq!((newly_acked.delivered, board.in_flight()), (3, 7));
    board.lose(1);
    board.lose(0);
    board.lose(3);
    assert_eq!((board.lost(), board.in_flight()), (2, 5), "an arrived segment is not lost");
    assert_eq!(board.repair(20), Some(0..10), "the lowest comes first");
    assert_eq!(board.repair(21), Some(10..20));
    assert_eq!(board.repair(22), None);
    assert_eq!(board.in_flight(), 7);
    board.lose(1);
    assert_eq!(board.repair(23), Some(10..20), "a lost retransmission");
    assert!(board.is_sound());
}

#[test]
fn an_ack_counts_each_segment_once() {
    let mut board = board();
    let mut newly_acked = NewlyAcked::default();
    board.sack(&(30..60), &mut newly_acked, |_| {});
    board.sack(&(30..70), &mut newly_acked, |_| {});
    assert_eq!(newly_acked.delivered, 4);
    assert_eq!(newly_acked.measure(), Some(3));
    let mut newly_acked = NewlyAcked::default();
    board.lose(0);
    let mut seen = Vec::new();
    board.acknowledge(65, &mut newly_acked, |segment| seen.push(segment.start));
    assert_eq!(seen, [0, 10, 20]);
    assert_eq!((newly_acked.delivered, board.len(), board.sacked(), board.lost()), (3, 4, 1, 0));
    assert_eq!(newly_acked.measure(), Some(0));
    assert_eq!(newly_acked.lowest_once, Some(10));
    assert!(board.is_sound());
}

/// Karn's algorithm.
#[test]
fn a_segment_sent_twice_does_not_measure_the_round_trip_time() {
    let mut board = board();
    board.lose(0);
    board.repair(50);
    let mut newly_acked = NewlyAcked::default();
    board.acknowledge(30, &mut newly_acked, |_| {});
    assert_eq!(newly_acked.measure(), None);
    assert_eq!(newly_acked.delivered, 3);
}
#[derive(Clone, Debug)]
enum Step {
    Push,
    /// Everything before this segment.
    Acknowledge(u64),
    /// From this segment on, this number of segments.
    Sack(u64, u64),
    Lose(usize),
    Repair,
    ClearLosses,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Push),
        2 => (0u64..60).prop_map(Step::Acknowledge),
        3 => (0u64..60, 1u64..6).prop_map(|(first, count)| Step::Sack(first, count)),
        3 => (0usize..20).prop_map(Step::Lose),
        4 => Just(Step::Repair),
        1 => Just(Step::ClearLosses),
    ]
}

proptest! {
    /// After any sequence of steps, the counts match the flags, each segment arrives once, and lost
    /// segments are repaired in ascending order.
    #[test]
    fn counts_match_the_flags(steps in proptest::collection::vec(step(), 0..150)) {
        let mut board = Scoreboard::default();
        let (mut una, mut next, mut arrived) = (0, 0, 0);
        for (now, step) in (0..).zip(steps) {
            let mut newly_acked = NewlyAcked::default();
            match step {
                Step::Push => {
                    board.push(next * 10..next * 10 + 10, now);
                    next += 1;
                }
                Step::Acknowledge(upto) if upto <= next => {
                    board.acknowledge(upto * 10, &mut newly_acked, |_| {});
                    una = una.max(upto);
                }
                Step::Sack(first, count) if first >= una && first + count <= next => {
                    board.sack(&(first * 10..(first + count) * 10), &mut newly_acked, |_| {});
                }
                Step::Lose(index) if index < board.len() as usize => board.lose(index),
                Step::Repair => {
                    let waits = |index: &usize| board.waits_for_repair(*index);
                    let lowest = (0..board.len() as usize).find(waits);
                    let lowest = lowest.map(|index| board.get(index).unwrap().start);
                    prop_assert_eq!(board.repair(now).map(|range| range.start), lowest);
                }
                Step::ClearLosses => board.clear_losses(),
                _ => {}
            }
            arrived += u64::from(newly_acked.delivered);
            prop_assert!(board.is_sound(), "SCOREBOARD-2, SCOREBOARD-3");
            prop_assert_eq!(u64::from(board.len()), next - una);
            prop_assert_eq!(arrived, una + u64::from(board.sacked()));
        }
    }
}
