//! Tests of rings: records of all sizes arrive unchanged, and invalid bytes are detected.

use bytes::BytesMut;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::record::{Head, RecordKind};
use super::{Consumer, Producer, PushError};
use crate::error::Violation;
use crate::memory::Memory;
use crate::memory::layout::{Lane, RingLayout, RingSizes, SLOT, ring_layout};
use crate::memory::segment::Segment;
use crate::sync::Ordering;
use apus_wire::Role;

const SIZES: RingSizes = RingSizes { short: 4096, bulk: 4096 };

fn ring() -> (Memory, RingLayout, Producer, Consumer) {
    let memory = Segment::create(SIZES).unwrap().map().unwrap();
    let layout = ring_layout(SIZES, Role::Client, Lane::Short);
    let producer = Producer::new(memory.clone(), layout);
    let consumer = Consumer::new(memory.clone(), layout);
    (memory, layout, producer, consumer)
}

fn push(producer: &mut Producer, id: u64, bytes: &[u8]) -> Result<u64, PushError> {
    let mut slot = producer.reserve(bytes.len())?;
    slot.put(bytes);
    Ok(slot.commit(&Head::part(RecordKind::Request, id, bytes.len(), bytes.len() as u32, 0)))
}

fn pop(consumer: &mut Consumer) -> Result<Option<(u64, Vec<u8>)>, Violation> {
    let Some(record) = consumer.peek()? else { return Ok(None) };
    let mut bytes = BytesMut::new();
    consumer.copy(&record, &mut bytes);
    consumer.release(&record);
    Ok(Some((record.head.id, bytes.to_vec())))
}

#[test]
fn any_sizes_in_any_order_arrive_as_they_were() {
    let (_, _, mut producer, mut consumer) = ring();
    let mut random = Pcg64::seed_from_u64(1);
    let longest = producer.max_payload();
    let mut waiting = std::collections::VecDeque::new();
    let mut full = 0;
    for id in 0..20_000_u64 {
        let len =
            if id % 3 == 0 { longest - random.random_range(0..100) } else { id as usize % 300 };
        let bytes: Vec<u8> = (0..len).map(|i| (i as u64 + id) as u8).collect();
        while push(&mut producer, id, &bytes) == Err(PushError::Full) {
            full += 1;
            let (popped, want) = (pop(&mut consumer).unwrap(), waiting.pop_front());
            assert!(popped.is_some(), "RING-5: an empty ring has room");
            assert_eq!(popped, want);
        }
        waiting.push_back((id, bytes));
        if random.random_range(0..3) == 0 {
            assert_eq!(pop(&mut consumer).unwrap(), waiting.pop_front());
        }
    }
    for want in waiting {
        assert_eq!(pop(&mut consumer).unwrap(), Some(want));
    }
    assert_eq!(pop(&mut consumer).unwrap(), None);
    assert!(full > 1_000, "the ring was full many times: {full}");
}

#[test]
fn a_record_without_commit_is_not_visible() {
    let (_, _, mut producer, mut consumer) = ring();
    for round in 0..200 {
        producer.reserve(100).unwrap().put(&[0xff; 100]);
        assert!(!consumer.is_ready());
        assert_eq!(pop(&mut consumer).unwrap(), None);
        push(&mut producer, round, b"here").unwrap();
        assert!(consumer.is_ready());
        assert_eq!(pop(&mut consumer).unwrap(), Some((round, b"here".to_vec())));
    }
}

/// Bytes left over from the previous round do not look like a record, wherever the next one will
/// start.
#[test]
fn behind_the_last_record_there_is_nothing() {
    let (_, _, mut producer, mut consumer) = ring();
    let mut random = Pcg64::seed_from_u64(2);
    for id in 0..20_000 {
        let records = random.random_range(1..4);
        let bytes = vec![0xff; random.random_range(0..400)];
        for _ in 0..records {
            push(&mut producer, id, &bytes).unwrap();
        }
        for _ in 0..records {
            assert_eq!(pop(&mut consumer).unwrap(), Some((id, bytes.clone())));
        }
        assert_eq!(pop(&mut consumer), Ok(None));
    }
}

#[test]
fn the_writer_learns_what_was_read() {
    let (_, _, mut producer, mut consumer) = ring();
    let first = push(&mut producer, 1, b"first").unwrap();
    let second = push(&mut producer, 2, b"second").unwrap();
    assert_eq!(producer.is_read(first), Ok(false));
    pop(&mut consumer).unwrap();
    assert_eq!((producer.is_read(first), producer.is_read(second)), (Ok(true), Ok(false)));
}

#[test]
fn an_impossible_read_position_is_a_violation() {
    for head in [1, SLOT as u64 * 1_000, u64::MAX, u64::MAX - 63] {
        let (memory, layout, mut producer, _) = ring();
        let end = push(&mut producer, 1, &[7; 500]).unwrap();
        memory.word(layout.head).store(head, Ordering::Relaxed);
        assert_eq!(producer.is_read(end), Err(Violation::Head), "{head}");
        let pushed = (0..100).find_map(|id| push(&mut producer, id, &[7; 500]).err());
        assert_eq!(pushed, Some(PushError::Broken(Violation::Head)), "{head}");
    }
}

#[test]
fn a_read_position_that_goes_back_is_a_violation() {
    let (memory, layout, mut producer, mut consumer) = ring();
    let end = push(&mut producer, 1, &[7; 500]).unwrap();
    pop(&mut consumer).unwrap();
    assert_eq!(producer.is_read(end), Ok(true));
    memory.word(layout.head).store(0, Ordering::Relaxed);
    let next = push(&mut producer, 1, &[7; 500]).unwrap();
    assert_eq!(producer.is_read(next), Err(Violation::Head));
}

#[test]
fn an_invalid_first_word_is_a_violation() {
    use super::record::first;
    let cases = [
        (1, Violation::Mark),
        (first(RecordKind::Request, 4096), Violation::Length),
        (first(RecordKind::Request, 2048), Violation::Length),
        (first(RecordKind::Request, u32::MAX), Violation::Length),
        (first(RecordKind::Pad, 0), Violation::Length),
        (first(RecordKind::Refusal, 0) ^ 2 << 32, Violation::Kind),
    ];
    for (word, violation) in cases {
        let (memory, layout, _, mut consumer) = ring();
        memory.word(layout.data).store(word, Ordering::Relaxed);
        assert_eq!(pop(&mut consumer), Err(violation), "{word:x}");
        assert_eq!(pop(&mut consumer), Err(violation), "the violation persists");
    }
}

#[test]
fn a_record_that_would_cross_the_end_is_a_violation() {
    use super::record::first;
    let (memory, layout, mut producer, mut consumer) = ring();
    // Four records of 960 bytes leave 256.
    for id in 0..4 {
        push(&mut producer, id, &[7; 900]).unwrap();
        pop(&mut consumer).unwrap();
    }
    let rest = layout.data + 4 * 960;
    memory.word(rest).store(first(RecordKind::Request, 300), Ordering::Relaxed);
    assert_eq!(pop(&mut consumer), Err(Violation::Length));
    // Padding with no record behind it.
    memory.word(layout.data).store(0, Ordering::Relaxed);
    memory.word(rest).store(first(RecordKind::Pad, 0), Ordering::Relaxed);
    assert_eq!(pop(&mut consumer), Err(Violation::Length));
}
