//! A client of a store under test: numbers its batches, and makes records of POSIX terms.

use apus_fs_core::Store;
use apus_fs_core::store::{AppliedBatch, ClientBatch, ClientId};
use apus_fs_core::wire::{Data, Errno, Handle, Ino, Name, NewNode, Record, SetAttributes, Time};
use bytes::Bytes;

use crate::world::World;

/// An export and its only client.
pub(crate) struct Export<W> {
    pub(crate) world: W,
    pub(crate) client: ClientId,
    next_ino: u64,
}

/// Returns a name.
pub(crate) fn name(text: &str) -> Name {
    Name::new(text.to_owned()).expect("tests use good names")
}

/// Returns the handle of a node. Stores use only its number.
pub(crate) fn handle(ino: Ino) -> Handle {
    Handle::created(ino)
}

/// Returns a time that no clock shows.
pub(crate) fn time(seconds: i64) -> Time {
    Time { seconds, nanoseconds: 123_456_789 }
}

impl<W: World> Export<W> {
    pub(crate) fn new() -> Self {
        let mut world = W::new();
        let next_ino = world.store().reserve_inos(1 << 16).expect("a new store has numbers");
        Self { world, client: ClientId([1; 16]), next_ino }
    }

    pub(crate) fn store(&mut self) -> &mut W::Store {
        self.world.store()
    }

    /// Returns the batch that is next in turn.
    pub(crate) fn batch(&mut self, records: Vec<Record>, payload: &[u8]) -> ClientBatch {
        let client = self.client;
        let number = self.store().applied(client) + 1;
        ClientBatch { client, number, records, payload: Bytes::copy_from_slice(payload) }
    }

    /// Applies a batch.
    pub(crate) fn apply(&mut self, records: Vec<Record>, payload: &[u8]) -> AppliedBatch {
        let batch = self.batch(records, payload);
        self.store().append(batch);
        let mut applied = self.store().commit().expect("the log can be written");
        assert_eq!(applied.len(), 1, "one batch was appended");
        applied.remove(0)
    }

    /// Applies a batch of one record.
    pub(crate) fn one(&mut self, record: Record) -> Result<(), Errno> {
        self.apply(vec![record], b"").failed.map_or(Ok(()), |(_, errno)| Err(errno))
    }

    /// Returns a number for a new node.
    pub(crate) fn ino(&mut self) -> Ino {
        self.next_ino += 1;
        Ino(self.next_ino - 1)
    }

    /// Returns a record that creates a node, and the node's number.
    pub(crate) fn create_record(
        &mut self,
        at: Option<(Ino, &str)>,
        node: NewNode,
    ) -> (Record, Ino) {
        let ino = self.ino();
        let parent = at.map(|(directory, text)| (handle(directory), name(text)));
        let (uid, gid) = W::owner();
        let mode = 0o750;
        (Record::Create { parent, ino, node, mode, uid, gid, time: time(1_000_000) }, ino)
    }

    pub(crate) fn try_create(&mut self, at: (Ino, &str), node: NewNode) -> Result<Ino, Errno> {
        let (record, ino) = self.create_record(Some(at), node);
        self.one(record).map(|()| ino)
    }

    pub(crate) fn file(&mut self, directory: Ino, text: &str) -> Ino {
        self.try_create((directory, text), NewNode::File).expect("the name is free")
    }

    pub(crate) fn directory(&mut self, directory: Ino, text: &str) -> Ino {
        self.try_create((directory, text), NewNode::Directory).expect("the name is free")
    }

    pub(crate) fn write(&mut self, file: Ino, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let data = Data { start: 0, length: bytes.len() as u32 };
        let record = Record::Write { file: handle(file), offset, data, time: time(2_000_000) };
        self.apply(vec![record], bytes).failed.map_or(Ok(()), |(_, errno)| Err(errno))
    }

    pub(crate) fn set(&mut self, node: Ino, set: SetAttributes) -> Result<(), Errno> {
        self.one(Record::SetAttributes { node: handle(node), set })
    }

    pub(crate) fn truncate(&mut self, file: Ino, size: u64) -> Result<(), Errno> {
        self.set(file, SetAttributes { size: Some(size), ..SetAttributes::default() })
    }

    pub(crate) fn unlink(&mut self, directory: Ino, text: &str, node: Ino) -> Result<(), Errno> {
        self.one(unlink(directory, text, node))
    }

    pub(crate) fn remove_directory(
        &mut self,
        directory: Ino,
        text: &str,
        node: Ino,
    ) -> Result<(), Errno> {
        let (parent, node) = (handle(directory), handle(node));
        self.one(Record::RemoveDirectory { parent, name: name(text), node })
    }

    pub(crate) fn link(&mut self, node: Ino, directory: Ino, text: &str) -> Result<(), Errno> {
        self.one(Record::Link { node: handle(node), parent: handle(directory), name: name(text) })
    }

    pub(crate) fn rename(
        &mut self,
        from: (Ino, &str),
        to: (Ino, &str),
        node: Ino,
        replaced: Option<Ino>,
    ) -> Result<(), Errno> {
        self.one(rename(from, to, node, replaced, false))
    }

    pub(crate) fn exchange(
        &mut self,
        from: (Ino, &str),
        to: (Ino, &str),
        node: Ino,
        replaced: Option<Ino>,
    ) -> Result<(), Errno> {
        self.one(rename(from, to, node, replaced, true))
    }

    /// Returns the node that a name leads to.
    pub(crate) fn find(&mut self, directory: Ino, text: &str) -> Option<Ino> {
        let found = self.store().look_up(directory, &name(text)).expect("it is a directory");
        found.map(|(ino, _)| ino)
    }

    /// Returns the whole contents of a file.
    pub(crate) fn contents(&mut self, file: Ino) -> Vec<u8> {
        let size = self.store().attributes(file).expect("it is a file").size;
        self.store().read(file, 0, size as u32 + 1).expect("it is a file").to_vec()
    }

    pub(crate) fn links(&mut self, node: Ino) -> u32 {
        self.store().attributes(node).expect("it is a node").links
    }
}

pub(crate) fn unlink(directory: Ino, text: &str, node: Ino) -> Record {
    Record::Unlink { parent: handle(directory), name: name(text), node: handle(node) }
}

pub(crate) fn rename(
    from: (Ino, &str),
    to: (Ino, &str),
    node: Ino,
    replaced: Option<Ino>,
    exchange: bool,
) -> Record {
    Record::Rename {
        from: (handle(from.0), name(from.1)),
        to: (handle(to.0), name(to.1)),
        node: handle(node),
        replaced: replaced.map(handle),
        exchange,
    }
}
