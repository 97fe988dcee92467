//! What a batch costs. Run with `cargo test --release -p apus-fs-store --test directory_cost -- --ignored --nocapture`.

mod directory_support;

use std::time::Instant;

use apus_fs_core::Store;
use apus_fs_core::store::ClientBatch;
use apus_fs_wire::{Ino, NewNode};
use bytes::Bytes;
use directory_support::*;

/// Prints the time of a batch that creates and writes a file of 1 KiB: one batch per commit, and 100 files per batch.
#[test]
#[ignore = "a measurement"]
fn cost_of_creating_and_writing() {
    for (per_batch, batches) in [(1, 20_000), (100, 500)] {
        let directory = temporary();
        let mut store = open(directory.path());
        let parent = Ino(FIRST);
        commit_all(&mut store, vec![create(Ino::ROOT, "d", parent, NewNode::Directory)], b"");
        let payload = Bytes::from(vec![b'x'; 1024]);
        let mut ino = FIRST;
        let begin = Instant::now();
        for number in 2..batches + 2 {
            let mut records = Vec::new();
            for _ in 0..per_batch {
                ino += 1;
                records.push(create_file(parent, &ino.to_string(), Ino(ino)));
                records.push(write(Ino(ino), 0, 0, 1024));
            }
            let payload = payload.clone();
            store.append(ClientBatch { client: client(1), number, records, payload });
            assert_eq!(store.commit().unwrap()[0].failed, None);
        }
        let files = u32::try_from(per_batch * batches).unwrap();
        println!("{per_batch} files per batch: {:?} per file", begin.elapsed() / files);
    }
}
