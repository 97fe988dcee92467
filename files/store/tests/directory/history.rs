//! Random histories of two clients, and the states that they lead to.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use apus_fs_core::Store;
use apus_fs_core::store::ClientBatch;
use apus_fs_core::wire::{Ino, NodeKind, Record};
use apus_fs_store::{Crashed, DirectoryStore};

use super::records::{Batch, Belief, Numbers, Random, Symbol, set_up};
use crate::support::{VisibleState, client, open, state, temporary};

/// A history, and the state after each batch.
pub(crate) struct History {
    pub(crate) batches: Vec<Batch>,
    pub(crate) states: Vec<VisibleState>,
}

pub(crate) fn label(numbers: &Numbers, ino: Ino) -> String {
    numbers.symbol(ino).to_string()
}

impl History {
    /// Prints the history, to be shown if the test fails.
    pub(crate) fn show(&self) {
        for batch in &self.batches {
            println!("client {} batch {}", batch.client, batch.number);
            batch.records.iter().for_each(|record| println!("    {record:?}"));
        }
    }

    /// Makes a history by applying it batch by batch.
    pub(crate) fn make(seed: u64) -> Self {
        let mut random = Random(seed);
        let directory = temporary();
        set_up(directory.path());
        let mut store = open(directory.path());
        let numbers = Numbers::of(&mut store);
        let symbol = |ino| label(&numbers, ino);
        let mut this = Self { batches: Vec::new(), states: vec![state(&mut store, &symbol)] };
        let mut sent = [0; 2];
        let mut next = numbers.0.len() as Symbol;
        for _ in 0..8 {
            let mut belief = believe(&mut store, &numbers, next);
            let (mut records, mut payload) = (Vec::new(), Vec::new());
            for _ in 0..=random.below(6) {
                records.push(belief.record(&mut random, &mut payload));
            }
            next = belief.next;
            let client = random.below(2);
            sent[client] += 1;
            let batch = Batch {
                client: client as u8,
                number: sent[client],
                records,
                payload: payload.into(),
            };
            this.append_and_commit(&mut store, &numbers, std::slice::from_ref(&batch));
            this.batches.push(batch);
            this.states.push(state(&mut store, &symbol));
        }
        this
    }

    pub(crate) fn append_and_commit(
        &self,
        store: &mut DirectoryStore,
        numbers: &Numbers,
        batches: &[Batch],
    ) {
        for batch in batches {
            store.append(ClientBatch {
                client: client(batch.client),
                number: batch.number,
                records: batch.records.iter().map(|record| numbers.translate(record)).collect(),
                payload: batch.payload.clone(),
            });
        }
        let applied = store.commit().expect("the log is written");
        assert_eq!(applied.len(), batches.len());
    }

    /// Runs the history until it crashes, and returns how many batches were confirmed, and how many
    /// were sent.
    pub(crate) fn run(
        &self,
        store: &mut DirectoryStore,
        numbers: &Numbers,
        group: usize,
    ) -> Result<(), (usize, usize)> {
        let mut confirmed = 0;
        for batches in self.batches.chunks(group) {
            let sent = confirmed + batches.len();
            let result = catch_unwind(AssertUnwindSafe(|| {
                self.append_and_commit(store, numbers, batches);
            }));
            if let Err(cause) = result {
                assert!(cause.is::<Crashed>(), "{:?}", cause.downcast_ref::<String>());
                return Err((confirmed, sent));
            }
            confirmed = sent;
        }
        Ok(())
    }

    /// Compares a store with the state after the batches that it reports as applied.
    pub(crate) fn check(
        &self,
        store: &mut DirectoryStore,
        numbers: &Numbers,
        confirmed: usize,
        sent: usize,
        what: &str,
    ) -> usize {
        let applied = (store.applied(client(0)) + store.applied(client(1))) as usize;
        assert!((confirmed..=sent).contains(&applied), "{what}: {confirmed} {applied} {sent}");
        let is = state(store, &|ino| label(numbers, ino));
        // A batch that copies is logged in parts: its first records may be there (STORE-2). The
        // next check is exact again.
        let splits = |record: &Record| {
            matches!(record, Record::CopyRange { .. } | Record::RemoveXattr { .. })
        };
        if self.batches.get(applied).is_some_and(|batch| batch.records.iter().any(splits)) {
            return applied;
        }
        let must_be = &self.states[applied];
        for (path, seen) in &must_be.0 {
            assert_eq!(is.0.get(path), Some(seen), "{what}, after batch {applied}: {path}");
        }
        for path in is.0.keys() {
            assert!(must_be.0.contains_key(path), "{what}, after batch {applied}: {path} remains");
        }
        applied
    }
}

pub(crate) fn believe(store: &mut DirectoryStore, numbers: &Numbers, next: Symbol) -> Belief {
    let mut belief = Belief { names: BTreeMap::new(), kinds: BTreeMap::new(), next };
    let mut open = vec![Ino::ROOT];
    belief.kinds.insert(0, NodeKind::Directory);
    while let Some(directory) = open.pop() {
        for (child, ino, attributes) in store.list(directory, None, usize::MAX).unwrap().entries {
            belief.names.insert((numbers.symbol(directory), child), numbers.symbol(ino));
            belief.kinds.insert(numbers.symbol(ino), attributes.kind);
            if attributes.kind == NodeKind::Directory {
                open.push(ino);
            }
        }
    }
    for orphan in store.orphans() {
        let kind = store.attributes(orphan).unwrap().kind;
        belief.kinds.insert(numbers.symbol(orphan), kind);
    }
    belief
}
