//! STORE-1 to STORE-3: batches survive crashes, and are applied once.

use apus_fs_core::Store;
use apus_fs_core::store::{ClientBatch, ClientId};
use apus_fs_core::wire::{Errno, FailedBatch, Ino, NewNode};
use bytes::Bytes;

use crate::export::{Export, name};
use crate::world::World;

/// STORE-1: committed batches survive a crash.
pub(crate) fn committed_batches_survive<W: World>() {
    let mut export = Export::<W>::new();
    let directory = export.directory(Ino::ROOT, "d");
    let file = export.file(directory, "f");
    export.write(file, 3, b"contents").unwrap();
    export.world.crash(0);
    assert_eq!(export.find(Ino::ROOT, "d"), Some(directory));
    assert_eq!(export.find(directory, "f"), Some(file));
    assert_eq!(export.contents(file), b"\0\0\0contents");
    let client = export.client;
    assert_eq!(export.store().applied(client), 3);
}

/// STORE-2: a prefix of the appended batches survives, and `applied` reports which.
pub(crate) fn appended_batches_survive_as_a_prefix<W: World>() {
    for kept in 0..=4 {
        let mut export = Export::<W>::new();
        let clients = [ClientId([1; 16]), ClientId([2; 16])];
        for index in 0..4 {
            let (record, _) =
                export.create_record(Some((Ino::ROOT, &format!("f{index}"))), NewNode::File);
            let client = clients[index % 2];
            let number = index as u64 / 2 + 1;
            let payload = Bytes::new();
            export.store().append(ClientBatch { client, number, records: vec![record], payload });
        }
        export.world.crash(kept);
        for (which, client) in clients.into_iter().enumerate() {
            let applied = export.store().applied(client) as usize;
            for index in 0..2 {
                let is_there = export.find(Ino::ROOT, &format!("f{}", index * 2 + which)).is_some();
                assert_eq!(is_there, index < applied, "{applied} batches of {which} of {kept}");
            }
        }
    }
}

/// STORE-3: a batch that is sent again has no effect, before and after a crash.
pub(crate) fn batches_are_applied_once<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let moved = crate::export::rename((Ino::ROOT, "f"), (Ino::ROOT, "g"), file, None, false);
    let (again, other) = export.create_record(Some((Ino::ROOT, "f")), NewNode::File);
    let batch = export.batch(vec![moved, again], b"");
    export.store().append(batch.clone());
    export.store().commit().unwrap();
    export.unlink(Ino::ROOT, "f", other).unwrap();
    let client = export.client;
    for _ in 0..2 {
        export.store().append(batch.clone());
        export.store().commit().unwrap();
        assert_eq!(export.store().applied(client), 3);
        assert_eq!(export.find(Ino::ROOT, "f"), None);
        assert_eq!(export.find(Ino::ROOT, "g"), Some(file));
        export.world.crash(0);
    }
}

/// STORE-2, STORE-3: a batch that a crash has lost is applied when it is sent again.
pub(crate) fn lost_batches_can_be_sent_again<W: World>() {
    for kept in 0..2 {
        let mut export = Export::<W>::new();
        let (record, file) = export.create_record(Some((Ino::ROOT, "f")), NewNode::File);
        let batch = export.batch(vec![record], b"");
        export.store().append(batch.clone());
        export.world.crash(kept);
        export.store().append(batch);
        export.store().commit().unwrap();
        assert_eq!(export.find(Ino::ROOT, "f"), Some(file));
        let client = export.client;
        assert_eq!(export.store().applied(client), 1);
    }
}

/// A client that will not return leaves no number of batches behind.
pub(crate) fn clients_are_forgotten<W: World>() {
    let mut export = Export::<W>::new();
    export.file(Ino::ROOT, "f");
    let client = export.client;
    export.store().forget_client(client);
    assert_eq!(export.store().applied(client), 0);
    export.file(Ino::ROOT, "g");
    assert_eq!(export.store().applied(client), 1);
}

/// STORE-2: records before the failed one are applied, later records are not, and the batch counts
/// as applied.
pub(crate) fn a_failed_record_ends_its_batch<W: World>() {
    let mut export = Export::<W>::new();
    let (first, file) = export.create_record(Some((Ino::ROOT, "f")), NewNode::File);
    let (second, _) = export.create_record(Some((Ino::ROOT, "f")), NewNode::File);
    let (third, _) = export.create_record(Some((Ino::ROOT, "g")), NewNode::File);
    let applied = export.apply(vec![first, second, third], b"");
    assert_eq!(applied.failed, Some((1, Errno::EXIST)));
    assert_eq!((applied.client, applied.number), (export.client, 1));
    for _ in 0..2 {
        export.world.crash(0);
        let client = export.client;
        let failed = FailedBatch { number: 1, record: 1, error: Errno::EXIST };
        assert_eq!(export.store().last_failure(client), Some(failed));
    }
    assert_eq!(export.find(Ino::ROOT, "f"), Some(file));
    assert_eq!(export.store().look_up(Ino::ROOT, &name("g")), Ok(None));
    let client = export.client;
    assert_eq!(export.store().applied(client), 1);
}
