//! Cost of a batch in the directory store: one batch per commit, and many files per batch. The
//! directory is created in the temporary folder, or in the folder named by the first argument.
//!
//! `cargo run --release -p apus-fs-store --example batch_cost -- /var/tmp`

use std::error::Error;
use std::time::Instant;

use apus_fs_core::Store;
use apus_fs_core::store::{ClientBatch, ClientId};
use apus_fs_core::wire::{Data, Handle, Ino, Name, NewNode, Record, Time};
use apus_fs_store::{DirectoryOptions, DirectoryStore};
use bytes::Bytes;

const TIME: Time = Time { seconds: 100, nanoseconds: 0 };
const FILE_BYTES: u32 = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| std::env::temp_dir().into());
    for (files_per_batch, batches) in [(1, 20_000), (100, 500)] {
        let directory = tempfile::tempdir_in(&folder)?;
        let mut store = DirectoryStore::open(directory.path(), DirectoryOptions::default())?;
        let begin = Instant::now();
        for number in 1..=batches {
            store.append(batch(number, files_per_batch)?);
            for applied in store.commit()? {
                if let Some((record, errno)) = applied.failed {
                    return Err(format!("record {record} of batch {number}: {errno:?}").into());
                }
            }
        }
        let files = u32::try_from(files_per_batch * batches)?;
        println!("{files_per_batch} files per batch: {:?} per file", begin.elapsed() / files);
    }
    Ok(())
}

/// A batch that creates files and writes them.
fn batch(number: u64, files: u64) -> Result<ClientBatch, Box<dyn Error>> {
    let mut records = Vec::new();
    for file in 0..files {
        let ino = Ino((1 << 20) + number * files + file);
        let name = Name::new(ino.0.to_string()).map_err(|_| "a name")?;
        records.push(Record::Create {
            parent: Some((Handle::created(Ino::ROOT), name)),
            ino,
            node: NewNode::File,
            mode: 0o644,
            uid: 0,
            gid: 0,
            time: TIME,
        });
        let data = Data { start: 0, length: FILE_BYTES };
        records.push(Record::Write { file: Handle::created(ino), offset: 0, data, time: TIME });
    }
    let payload = Bytes::from(vec![b'x'; FILE_BYTES as usize]);
    Ok(ClientBatch { client: ClientId([1; 16]), number, records, payload })
}
