//! Random histories that crash before any of their changes, also while an earlier crash is repaired.

mod directory_support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use apus_fs_core::Store;
use apus_fs_core::store::ClientBatch;
use apus_fs_store::{Crashed, DirectoryStore, FailPoint};
use apus_fs_wire::{AllocateMode, Data, Ino, Name, NewNode, NodeKind, Record, SetAttributes, Time};
use bytes::Bytes;
use directory_support::*;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % end as u64) as usize
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

/// Files that are there before the first server is.
const FOUND: [(&str, NodeKind); 6] = [
    ("a", NodeKind::Directory),
    ("a/b", NodeKind::Directory),
    ("a/c", NodeKind::File),
    ("b", NodeKind::File),
    ("a/b/a", NodeKind::File),
    ("c", NodeKind::Symlink),
];

/// Number of a node in the history: root, then the nodes that are found, then those that are created.
type Symbol = u64;

fn set_up(directory: &Path) {
    for (path, kind) in FOUND {
        let path = directory.join(path);
        match kind {
            NodeKind::Directory => std::fs::create_dir(&path).unwrap(),
            NodeKind::Symlink => std::os::unix::fs::symlink("/etc", &path).unwrap(),
            _ => std::fs::write(&path, format!("{} was here", path.display())).unwrap(),
        }
    }
    // Paths differ between runs.
    for (path, _) in FOUND.iter().filter(|(_, kind)| *kind == NodeKind::File) {
        std::fs::write(directory.join(path), format!("{path} was here")).unwrap();
    }
}

/// Numbers of nodes in one run.
struct Numbers(Vec<Ino>);

impl Numbers {
    fn of(store: &mut DirectoryStore) -> Self {
        let mut inos = vec![Ino::ROOT];
        for (path, _) in FOUND {
            let mut at = Ino::ROOT;
            for component in path.split('/') {
                at = look_up(store, at, component).expect("it is found");
            }
            inos.push(at);
        }
        Self(inos)
    }

    fn ino(&self, symbol: Symbol) -> Ino {
        let found = self.0.get(symbol as usize);
        found.copied().unwrap_or(Ino(FIRST + symbol))
    }

    fn symbol(&self, ino: Ino) -> Symbol {
        let found = self.0.iter().position(|other| *other == ino);
        found.map_or_else(|| ino.0.wrapping_sub(FIRST), |symbol| symbol as Symbol)
    }

    /// Translates a record from symbols to numbers.
    fn translate(&self, record: &Record) -> Record {
        let mut record = record.clone();
        let to = |handle: &mut apus_fs_wire::Handle| handle.ino = self.ino(handle.ino.0);
        match &mut record {
            Record::Create { parent, ino, .. } => {
                *ino = self.ino(ino.0);
                parent.iter_mut().for_each(|(parent, _)| to(parent));
            }
            Record::Link { node, parent, .. }
            | Record::Unlink { node, parent, .. }
            | Record::RemoveDirectory { node, parent, .. } => {
                to(node);
                to(parent);
            }
            Record::Rename { from, to: new, node, replaced, .. } => {
                to(&mut from.0);
                to(&mut new.0);
                to(node);
                replaced.iter_mut().for_each(to);
            }
            Record::Write { file, .. } | Record::Allocate { file, .. } => to(file),
            Record::CopyRange { from, to: target, .. } => {
                to(from);
                to(target);
            }
            Record::SetAttributes { node, .. }
            | Record::SetXattr { node, .. }
            | Record::RemoveXattr { node, .. }
            | Record::Close { node } => to(node),
        }
        record
    }
}

/// A batch in symbols.
#[derive(Clone)]
struct Batch {
    client: u8,
    number: u64,
    records: Vec<Record>,
    payload: Bytes,
}

/// What a history makes records from: names and kinds, as they are believed to be.
struct Belief {
    names: BTreeMap<(Symbol, Name), Symbol>,
    kinds: BTreeMap<Symbol, NodeKind>,
    next: Symbol,
}

impl Belief {
    fn nodes(&self, wanted: impl Fn(NodeKind) -> bool) -> Vec<Symbol> {
        let nodes = self.kinds.iter().filter(|(_, kind)| wanted(**kind));
        nodes.map(|(symbol, _)| *symbol).collect()
    }

    fn record(&mut self, random: &mut Random, payload: &mut Vec<u8>) -> Record {
        let letters = ["a", "b", "c", "d", "e"];
        let directories = self.nodes(|kind| kind == NodeKind::Directory);
        let all: Vec<_> = self.names.iter().map(|(key, node)| (key.clone(), *node)).collect();
        let place = (random.pick(&directories), name(random.pick(&letters)));
        let files = self.nodes(|kind| kind == NodeKind::File);
        let symbol = |symbol| handle(Ino(symbol));
        let choice = random.below(20);
        match choice {
            0..=4 => {
                let node = match random.below(8) {
                    0..=3 => NewNode::File,
                    4 | 5 => NewNode::Directory,
                    6 => NewNode::Symlink { target: Bytes::from_static(b"../../../etc") },
                    _ => NewNode::Special { kind: NodeKind::Fifo, device: 0 },
                };
                let ino = self.next;
                self.next += 1;
                let is_nameless = node == NewNode::File && random.below(6) == 0;
                let kind = match &node {
                    NewNode::File => NodeKind::File,
                    NewNode::Directory => NodeKind::Directory,
                    NewNode::Symlink { .. } => NodeKind::Symlink,
                    NewNode::Special { kind, .. } => *kind,
                };
                self.kinds.insert(ino, kind);
                if !is_nameless {
                    self.names.entry(place.clone()).or_insert(ino);
                }
                Record::Create {
                    parent: (!is_nameless).then_some((symbol(place.0), place.1)),
                    ino: Ino(ino),
                    node,
                    mode: 0o600 + random.below(64) as u16,
                    uid: 0,
                    gid: 0,
                    time: Time { seconds: random.below(1000) as i64, nanoseconds: 7 },
                }
            }
            5 if !all.is_empty() => {
                let others = self.nodes(|kind| kind != NodeKind::Directory);
                let node = random.pick(&others);
                self.names.entry(place.clone()).or_insert(node);
                Record::Link { node: symbol(node), parent: symbol(place.0), name: place.1 }
            }
            6 | 7 if !all.is_empty() => {
                let ((parent, child), node) = random.pick(&all);
                self.names.remove(&(parent, child.clone()));
                let (parent, node) = (symbol(parent), symbol(node));
                if self.kinds.get(&node.ino.0) == Some(&NodeKind::Directory) {
                    Record::RemoveDirectory { parent, name: child, node }
                } else {
                    Record::Unlink { parent, name: child, node }
                }
            }
            8..=10 if !all.is_empty() => {
                let ((parent, child), node) = random.pick(&all);
                let to = if random.below(2) == 0 { random.pick(&all).0 } else { place };
                let replaced = self.names.get(&to).copied();
                let exchange = replaced.is_some() && random.below(3) == 0;
                self.names.remove(&(parent, child.clone()));
                self.names.insert(to.clone(), node);
                if let (true, Some(replaced)) = (exchange, replaced) {
                    self.names.insert((parent, child.clone()), replaced);
                }
                Record::Rename {
                    from: (symbol(parent), child),
                    to: (symbol(to.0), to.1),
                    node: symbol(node),
                    replaced: replaced.map(symbol),
                    exchange,
                }
            }
            11..=13 if !files.is_empty() => {
                let (start, length) = (payload.len() as u32, random.below(40) as u32);
                payload.extend((0..length).map(|_| b'A' + random.below(26) as u8));
                Record::Write {
                    file: symbol(random.pick(&files)),
                    offset: random.below(60) as u64,
                    data: Data { start, length },
                    time: Time { seconds: random.below(1000) as i64, nanoseconds: 9 },
                }
            }
            14 if !files.is_empty() => Record::Allocate {
                file: symbol(random.pick(&files)),
                mode: random.pick(&[
                    AllocateMode::Extend,
                    AllocateMode::PunchHole,
                    AllocateMode::Zero,
                    AllocateMode::ZeroKeepSize,
                ]),
                offset: random.below(50) as u64,
                length: random.below(50) as u64,
            },
            15 if !files.is_empty() => Record::CopyRange {
                from: symbol(random.pick(&files)),
                from_offset: random.below(20) as u64,
                to: symbol(random.pick(&files)),
                to_offset: random.below(50) as u64,
                length: random.below(50) as u64,
            },
            16 => Record::SetXattr {
                node: symbol(random.pick(&self.nodes(|_| true))),
                name: Bytes::from(format!("user.{}", random.pick(&letters))),
                value: Bytes::from(format!("{}", random.below(100))),
            },
            17 => Record::RemoveXattr {
                node: symbol(random.pick(&self.nodes(|_| true))),
                name: Bytes::from(format!("user.{}", random.pick(&letters))),
            },
            18 => Record::Close { node: symbol(random.pick(&self.nodes(|_| true))) },
            _ => {
                let node = random.pick(&self.nodes(|kind| kind != NodeKind::Symlink));
                let is_file = self.kinds[&node] == NodeKind::File;
                let set = SetAttributes {
                    mode: (random.below(2) == 0).then(|| 0o700 + random.below(64) as u16),
                    size: (is_file && random.below(2) == 0).then(|| random.below(60) as u64),
                    mtime: Some(Time { seconds: random.below(1000) as i64, nanoseconds: 11 }),
                    ..SetAttributes::default()
                };
                Record::SetAttributes { node: symbol(node), set }
            }
        }
    }
}

/// A history, and the state after each batch.
struct History {
    batches: Vec<Batch>,
    states: Vec<State>,
    /// The state after a batch of which a copy was the last thing that was done.
    failures: usize,
}

fn label(numbers: &Numbers, ino: Ino) -> String {
    numbers.symbol(ino).to_string()
}

impl History {
    /// Makes a history by applying it batch by batch.
    fn make(seed: u64) -> Self {
        let mut random = Random(seed);
        let directory = temporary();
        set_up(directory.path());
        let mut store = open(directory.path());
        let numbers = Numbers::of(&mut store);
        let symbol = |ino| label(&numbers, ino);
        let mut this =
            Self { batches: Vec::new(), states: vec![state(&mut store, &symbol)], failures: 0 };
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
            let applied = this.append_and_commit(&mut store, &numbers, &[batch.clone()]);
            this.failures += applied;
            this.batches.push(batch);
            this.states.push(state(&mut store, &symbol));
        }
        this
    }

    fn append_and_commit(
        &self,
        store: &mut DirectoryStore,
        numbers: &Numbers,
        batches: &[Batch],
    ) -> usize {
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
        applied.iter().filter(|applied| applied.failed.is_some()).count()
    }

    /// Runs the history until it crashes, and returns how many batches were confirmed, and how many were sent.
    fn run(
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

    /// Compares a store with the state after the batches that it says were applied.
    fn check(
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
        // A batch that copies is logged in parts: its first records may be there (STORE-2). The next check is exact again.
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

fn believe(store: &mut DirectoryStore, numbers: &Numbers, next: Symbol) -> Belief {
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

/// Opens a store that may crash while it opens.
fn try_open(directory: &Path, fail_point: FailPoint) -> Option<DirectoryStore> {
    let opened = catch_unwind(|| DirectoryStore::open(directory, options(fail_point)));
    match opened {
        Ok(store) => Some(store.expect("it opens")),
        Err(cause) => {
            assert!(cause.is::<Crashed>(), "{:?}", cause.downcast_ref::<String>());
            None
        }
    }
}

fn seeds() -> u64 {
    std::env::var("APUS_FS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// STORE-1, STORE-2, STORE-4: whatever change a crash precedes, the store opens with a prefix that has all that was confirmed.
#[test]
fn after_a_crash_at_any_change_there_is_a_prefix() {
    let first = std::env::var("APUS_FS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut outcomes = [0; 2];
    for seed in first..first + seeds() {
        let history = History::make(seed);
        // Shown if the test fails.
        for batch in &history.batches {
            println!("client {} batch {}", batch.client, batch.number);
            batch.records.iter().for_each(|record| println!("    {record:?}"));
        }
        outcomes[usize::from(history.failures > 0)] += 1;
        let group = 1 + (seed % 3) as usize;
        for changes in 0.. {
            let what = format!("seed {seed}, crash before change {changes}");
            let directory = temporary();
            set_up(directory.path());
            let mut numbers = Numbers(Vec::new());
            // Opening a directory for the first time changes nothing in it.
            let mut store = try_open(directory.path(), FailPoint::after(changes)).expect("empty");
            numbers.0 = Numbers::of(&mut store).0;
            let result = history.run(&mut store, &numbers, group);
            let (confirmed, sent) = result.err().unwrap_or((8, 8));
            drop(store);
            let mut random = Random(seed ^ (changes << 32));
            let mut store = loop {
                let limit = 1 << random.below(8);
                let fail_point = match random.below(3) {
                    0 => FailPoint::default(),
                    _ => FailPoint::after(random.below(limit) as u64),
                };
                if let Some(store) = try_open(directory.path(), fail_point) {
                    break store;
                }
            };
            let applied = history.check(&mut store, &numbers, confirmed, sent, &what);
            // The client sends again what was not confirmed.
            drop(store);
            let mut store = open(directory.path());
            for batch in &history.batches[applied..] {
                history.append_and_commit(&mut store, &numbers, std::slice::from_ref(batch));
            }
            history.check(&mut store, &numbers, 8, 8, &format!("{what}, resumed"));
            store.close().unwrap();
            history.check(&mut open(directory.path()), &numbers, 8, 8, &format!("{what}, closed"));
            if result.is_ok() {
                break;
            }
        }
    }
    assert!(outcomes[0] + outcomes[1] > 0);
}
