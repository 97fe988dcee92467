//! Random records, in symbols instead of numbers: each run of a history finds nodes with other
//! numbers.

use std::collections::BTreeMap;
use std::path::Path;

use apus_fs_core::wire::{
    AllocateMode, Data, Ino, Name, NewNode, NodeKind, Record, SetAttributes, Time,
};
use apus_fs_store::DirectoryStore;
use bytes::Bytes;

use crate::support::{FIRST, handle, look_up, name};

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % end as u64) as usize
    }

    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}

/// Files that exist before the first server starts.
pub(crate) const FOUND: [(&str, NodeKind); 6] = [
    ("a", NodeKind::Directory),
    ("a/b", NodeKind::Directory),
    ("a/c", NodeKind::File),
    ("b", NodeKind::File),
    ("a/b/a", NodeKind::File),
    ("c", NodeKind::Symlink),
];

/// Number of a node in the history: root, then the nodes that are found, then those that are
/// created.
pub(crate) type Symbol = u64;

pub(crate) fn set_up(directory: &Path) {
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
pub(crate) struct Numbers(pub(crate) Vec<Ino>);

impl Numbers {
    pub(crate) fn of(store: &mut DirectoryStore) -> Self {
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

    pub(crate) fn ino(&self, symbol: Symbol) -> Ino {
        let found = self.0.get(symbol as usize);
        found.copied().unwrap_or(Ino(FIRST + symbol))
    }

    pub(crate) fn symbol(&self, ino: Ino) -> Symbol {
        let found = self.0.iter().position(|other| *other == ino);
        found.map_or_else(|| ino.0.wrapping_sub(FIRST), |symbol| symbol as Symbol)
    }

    /// Translates a record from symbols to numbers.
    pub(crate) fn translate(&self, record: &Record) -> Record {
        let mut record = record.clone();
        let to = |handle: &mut apus_fs_core::wire::Handle| handle.ino = self.ino(handle.ino.0);
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
pub(crate) struct Batch {
    pub(crate) client: u8,
    pub(crate) number: u64,
    pub(crate) records: Vec<Record>,
    pub(crate) payload: Bytes,
}

/// Source of a history's records: names and kinds as they are expected to be.
pub(crate) struct Belief {
    pub(crate) names: BTreeMap<(Symbol, Name), Symbol>,
    pub(crate) kinds: BTreeMap<Symbol, NodeKind>,
    pub(crate) next: Symbol,
}

impl Belief {
    pub(crate) fn nodes(&self, wanted: impl Fn(NodeKind) -> bool) -> Vec<Symbol> {
        let nodes = self.kinds.iter().filter(|(_, kind)| wanted(**kind));
        nodes.map(|(symbol, _)| *symbol).collect()
    }

    pub(crate) fn record(&mut self, random: &mut Random, payload: &mut Vec<u8>) -> Record {
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
                    // An ordinary user's server needs the owner's permissions.
                    mode: 0o700 + random.below(64) as u16,
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
