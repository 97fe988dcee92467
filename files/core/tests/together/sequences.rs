//! Files that are read in sequence: bytes are requested ahead of the reader, and are never older
//! than permitted.

use apus_fs_core::client::{Operation, Reply};
use apus_fs_core::wire::{Errno, Ino, Response};

use crate::world::{World, write};

const PIECE: u32 = 128 << 10;
const SIZE: u64 = 8 << 20;

/// Bytes from `offset` to `end`: each block has its own.
fn contents(offset: u64, end: u64) -> Vec<u8> {
    let blocks = offset / 4_096..end.div_ceil(4_096);
    let bytes: Vec<u8> = blocks.flat_map(|block| [(block % 251) as u8; 4_096]).collect();
    let start = (offset % 4_096) as usize;
    bytes[start..start + (end - offset) as usize].to_vec()
}

/// A file that client 1 has written, and client 0 has never read.
fn file(world: &mut World) -> Ino {
    let file = world.create(1, Ino::ROOT, "file");
    for offset in (0..SIZE).step_by(1 << 20) {
        world.write(1, file, offset, &contents(offset, offset + (1 << 20)));
    }
    world.sync(1, file);
    world.close(1, file);
    assert_eq!(world.look_up(0, Ino::ROOT, "file"), Some(file));
    let open =
        Operation::Open { node: file, truncate: false, writable: false, kill_privileges: false };
    assert!(world.run(0, open).is_ok());
    file
}

fn read(node: Ino, offset: u64, size: u32) -> Operation {
    Operation::Read { node, offset, size }
}

fn data(result: Result<Reply, Errno>) -> Vec<u8> {
    match result {
        Ok(Reply::Data(pieces)) => pieces.concat(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(world: &mut World, file: Ino, offset: u64, size: u32) {
    let found = data(world.run(0, read(file, offset, size)));
    let end = SIZE.min(offset + u64::from(size));
    assert!(found == contents(offset, end), "{offset}");
}

/// FSAHEAD-1.
#[test]
fn a_file_that_is_read_in_sequence_takes_few_calls_and_little_memory() {
    let mut world = World::new(2);
    let file = file(&mut world);
    let before = world.requests[0];
    for offset in (0..SIZE).step_by(PIECE as usize) {
        check(&mut world, file, offset, PIECE);
        assert!(world.clients[0].status().cached_bytes <= 6 << 20);
    }
    assert_eq!(world.requests[0] - before, 21);
    world.close(0, file);
    assert_eq!(world.clients[0].status().cached_bytes, 0);
}

/// FSAHEAD-1: a reader waits for the first of several calls.
#[test]
fn a_reader_in_sequence_has_several_calls_under_way() {
    let mut world = World::new(2);
    let file = file(&mut world);
    for offset in (0..1 << 20).step_by(PIECE as usize) {
        check(&mut world, file, offset, PIECE);
    }
    world.hold_back(0, |response| matches!(response, Response::ReadDone(_)));
    let mut offset = 1 << 20;
    let waiting = loop {
        let token = world.begin(0, read(file, offset, PIECE));
        offset += u64::from(PIECE);
        match world.ended(0, token) {
            Some(result) => assert_eq!(data(result).len(), PIECE as usize),
            None => break token,
        }
    };
    let under_way = world.clients[0].status().outstanding;
    assert!(under_way >= 4, "{under_way} calls");
    world.release();
    assert!(data(world.wait(0, waiting)) == contents(offset - u64::from(PIECE), offset));
}

/// FSAHEAD-2.
#[test]
fn reads_in_random_order_take_one_call_each() {
    let mut world = World::new(2);
    let file = file(&mut world);
    let before = world.requests[0];
    for index in 0..500_u64 {
        // 501 is prime to the number of blocks, and no block follows the one before it.
        check(&mut world, file, index * 501 % (SIZE / 4_096) * 4_096, 4_096);
    }
    assert_eq!(world.requests[0] - before, 500);
    assert_eq!(world.clients[0].status().read_ahead, 0);
}

/// An abandoned sequence is not read ahead, and the next read drops its requested bytes.
#[test]
fn a_sequence_that_is_left_costs_no_memory() {
    let mut world = World::new(2);
    let file = file(&mut world);
    for offset in (0..1 << 20).step_by(PIECE as usize) {
        check(&mut world, file, offset, PIECE);
    }
    check(&mut world, file, 7 << 20, 4_096);
    assert_eq!(world.clients[0].status().cached_bytes, 4_096);
}

/// FSCLIENT-2, FSAHEAD-3: another client's write into the window is visible to the reader.
#[test]
fn bytes_that_were_read_ahead_go_with_the_lease() {
    let mut world = World::new(2);
    let file = file(&mut world);
    check(&mut world, file, 0, PIECE);
    check(&mut world, file, PIECE.into(), PIECE);
    assert!(world.clients[0].status().cached_bytes > 2 * u64::from(PIECE));
    let next = 2 * u64::from(PIECE);
    world.write(1, file, next, b"written since");
    let found = data(world.run(0, read(file, next, PIECE)));
    assert!(found.starts_with(b"written since"));
    check(&mut world, file, next + u64::from(PIECE), PIECE);
}

/// FSCLIENT-5, FSAHEAD-3: the server has read before the other client's write, and its response
/// arrives after it.
#[test]
fn what_arrives_after_a_recall_is_not_used() {
    let mut world = World::new(2);
    let file = file(&mut world);
    check(&mut world, file, 0, PIECE);
    world.hold_back(0, |response| matches!(response, Response::ReadDone(_)));
    let second = world.begin(0, read(file, PIECE.into(), PIECE));
    assert!(world.ended(0, second).is_none());
    let next = 2 * u64::from(PIECE);
    world.write(1, file, next, b"written since");
    world.sync(1, file);
    assert!(matches!(
        world.run(0, Operation::GetAttributes { node: file }),
        Ok(Reply::Attributes(..))
    ));
    world.release();
    assert!(world.wait(0, second).is_ok());
    let found = data(world.run(0, read(file, next, PIECE)));
    assert!(found.starts_with(b"written since"));
}

/// The client's own changes are visible: those in its log, and those at the server.
#[test]
fn a_reader_sees_what_its_own_client_writes() {
    let mut world = World::new(2);
    let file = file(&mut world);
    check(&mut world, file, 0, PIECE);
    check(&mut world, file, PIECE.into(), PIECE);
    let (next, piece) = (2 * u64::from(PIECE), u64::from(PIECE));
    world.write(0, file, next, b"own");
    assert!(data(world.run(0, read(file, next, PIECE))).starts_with(b"own"));
    world.flush(0);
    assert!(data(world.run(0, read(file, next, PIECE))).starts_with(b"own"));
    check(&mut world, file, next + piece, PIECE);
    let end = next + 2 * piece;
    let token = world.begin_unsettled(0, write(file, end, b"more", false));
    assert_eq!(world.wait(0, token), Ok(Reply::Written(4)));
    assert!(data(world.run(0, read(file, end, PIECE))).starts_with(b"more"));
}

/// A copy into a file with reads in flight: the bytes that the server read earlier are not the
/// file's afterwards.
#[test]
fn a_copy_into_bytes_that_are_under_way_is_seen() {
    let mut world = World::new(2);
    let file = file(&mut world);
    let source = world.create(0, Ino::ROOT, "source");
    world.write(0, source, 0, b"copied");
    let small = world.create(0, Ino::ROOT, "small");
    world.write(0, small, 0, b"before");
    for node in [source, small] {
        world.sync(0, node);
    }
    for target in [file, small] {
        world.hold_back(0, |response| matches!(response, Response::ReadDone(_)));
        let reading = world.begin(0, read(target, 0, 6));
        let copy = Operation::CopyRange {
            from: source,
            from_offset: 0,
            to: target,
            to_offset: 0,
            length: 6,
        };
        assert_eq!(world.run(0, copy), Ok(Reply::Copied(6)));
        world.release();
        assert!(world.wait(0, reading).is_ok());
        assert_eq!(data(world.run(0, read(target, 0, 6))), b"copied");
    }
}
