//! Support for the tests of the directory store: records by symbols instead of numbers, and whole
//! states to compare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use apus_fs_core::Store;
use apus_fs_core::store::{AppliedBatch, ClientBatch, ClientId};
use apus_fs_core::wire::{Data, Handle, Ino, Name, NewNode, NodeKind, Record, Time};
use apus_fs_store::{DirectoryOptions, DirectoryStore, FailPoint};
use bytes::Bytes;

/// The first number that the tests' clients give to nodes.
pub(crate) const FIRST: u64 = 1 << 20;

/// Returns a directory in memory if the machine has one, because crash tests open and close
/// thousands of stores. `APUS_FS_DIRECTORY` overrides the place.
pub(crate) fn temporary() -> tempfile::TempDir {
    let wanted = std::env::var_os("APUS_FS_DIRECTORY").map_or("/dev/shm".into(), PathBuf::from);
    if wanted.is_dir() { tempfile::tempdir_in(wanted) } else { tempfile::tempdir() }
        .expect("a temporary directory")
}

pub(crate) fn open(directory: &Path) -> DirectoryStore {
    DirectoryStore::open(directory, DirectoryOptions::default()).expect("it opens")
}

pub(crate) fn options(fail_point: FailPoint, replays_all: bool) -> DirectoryOptions {
    DirectoryOptions { fail_point, replays_all, ..DirectoryOptions::default() }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text.to_owned()).expect("a name")
}

pub(crate) fn handle(ino: Ino) -> Handle {
    Handle::created(ino)
}

pub(crate) fn at(seconds: i64) -> Time {
    Time { seconds, nanoseconds: 5 }
}

pub(crate) fn client(number: u8) -> ClientId {
    ClientId([number; 16])
}

pub(crate) fn create(parent: Ino, child: &str, ino: Ino, node: NewNode) -> Record {
    let mode = if node == NewNode::Directory { 0o755 } else { 0o644 };
    let parent = Some((handle(parent), name(child)));
    Record::Create { parent, ino, node, mode, uid: 0, gid: 0, time: at(100) }
}

pub(crate) fn create_file(parent: Ino, child: &str, ino: Ino) -> Record {
    create(parent, child, ino, NewNode::File)
}

pub(crate) fn write(file: Ino, offset: u64, start: u32, length: u32) -> Record {
    Record::Write { file: handle(file), offset, data: Data { start, length }, time: at(200) }
}

pub(crate) fn unlink(parent: Ino, child: &str, node: Ino) -> Record {
    Record::Unlink { parent: handle(parent), name: name(child), node: handle(node) }
}

pub(crate) fn rename(
    from: (Ino, &str),
    to: (Ino, &str),
    node: Ino,
    replaced: Option<Ino>,
) -> Record {
    Record::Rename {
        from: (handle(from.0), name(from.1)),
        to: (handle(to.0), name(to.1)),
        node: handle(node),
        replaced: replaced.map(handle),
        exchange: false,
    }
}

/// Commits one batch, and returns its result.
pub(crate) fn commit(
    store: &mut DirectoryStore,
    of: ClientId,
    records: Vec<Record>,
    payload: impl Into<Bytes>,
) -> AppliedBatch {
    let number = store.applied(of) + 1;
    store.append(ClientBatch { client: of, number, records, payload: payload.into() });
    let mut applied = store.commit().expect("the log is written");
    assert_eq!(applied.len(), 1);
    applied.remove(0)
}

/// Commits one batch, and expects all of it to apply.
pub(crate) fn commit_all(store: &mut DirectoryStore, records: Vec<Record>, payload: &'static [u8]) {
    let applied = commit(store, client(1), records, payload);
    assert_eq!(applied.failed, None);
}

pub(crate) fn look_up(store: &mut DirectoryStore, directory: Ino, child: &str) -> Option<Ino> {
    store.look_up(directory, &name(child)).expect("it is a directory").map(|found| found.0)
}

/// Observable state of a node. Times of the server's clock are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) node: String,
    pub(crate) kind: NodeKind,
    pub(crate) mode: u16,
    pub(crate) links: u32,
    pub(crate) size: u64,
    pub(crate) contents: Bytes,
    pub(crate) xattrs: Vec<(Bytes, Bytes)>,
    pub(crate) mtime: Option<Time>,
}

/// All that can be seen of a store: nodes by path, and those without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VisibleState(pub(crate) BTreeMap<String, Seen>);

/// Returns all that can be seen; `symbol` names nodes.
pub(crate) fn state(store: &mut DirectoryStore, symbol: &dyn Fn(Ino) -> String) -> VisibleState {
    let mut state = VisibleState::default();
    let mut open = vec![(PathBuf::from("/"), Ino::ROOT)];
    while let Some((path, directory)) = open.pop() {
        let part = store.list(directory, None, usize::MAX).expect("it can be listed");
        assert!(part.is_complete);
        for (child, ino, attributes) in part.entries {
            let path = path.join(child.to_string());
            if attributes.kind == NodeKind::Directory {
                open.push((path.clone(), ino));
            }
            state.0.insert(path.display().to_string(), seen(store, ino, symbol));
        }
    }
    state.0.insert("/".to_owned(), seen(store, Ino::ROOT, symbol));
    for orphan in store.orphans() {
        state.0.insert(format!("orphan {}", symbol(orphan)), seen(store, orphan, symbol));
    }
    state
}

fn seen(store: &mut DirectoryStore, ino: Ino, symbol: &dyn Fn(Ino) -> String) -> Seen {
    let attributes = store.attributes(ino).expect("it is there");
    let contents = match attributes.kind {
        NodeKind::File => store.read(ino, 0, u32::MAX).expect("it can be read"),
        NodeKind::Symlink => store.target(ino).expect("it has a target"),
        _ => Bytes::new(),
    };
    let is_directory = attributes.kind == NodeKind::Directory;
    let mut xattrs = Vec::new();
    for attribute in store.xattrs(ino).expect("they can be listed") {
        if attribute.starts_with(b"user.") {
            let value = store.xattr(ino, &attribute).expect("it has a value");
            xattrs.push((attribute, value));
        }
    }
    xattrs.sort();
    Seen {
        node: symbol(ino),
        kind: attributes.kind,
        mode: attributes.mode,
        links: if is_directory { 0 } else { attributes.links },
        size: if is_directory { 0 } else { attributes.size },
        contents,
        xattrs,
        mtime: (!is_directory && attributes.mtime.seconds < 1_000_000).then_some(attributes.mtime),
    }
}
