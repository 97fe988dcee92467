//! The store: batches, commits, crashes and faults.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use apus_fs_core::Store;
use apus_fs_core::store::{AppliedBatch, ClientBatch, ClientId, DirectoryPart, StoreError};
use apus_fs_core::wire::{
    Attributes, Data, Errno, FailedBatch, Handle, Ino, Name, NewNode, Record, SeekTarget,
};
use apus_fs_core::wire::{SpaceStatus, Time};
use bytes::Bytes;

use super::node::Body;
use super::tree::{Touched, Tree};

/// First number that is allocated.
const FIRST_INO: u64 = 1 << 20;

/// The bit that numbers of found nodes have.
const FOUND: u64 = 1 << 63;

/// By how much the counter of changes jumps at a crash: more than any run makes.
const VERSION_JUMP: u64 = 1 << 40;

/// A store in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryStore {
    tree: Tree,
    applied: BTreeMap<ClientId, u64>,
    failures: BTreeMap<ClientId, FailedBatch>,
    fenced: BTreeSet<ClientId>,
    returns_from: u64,
    last_changers: BTreeMap<Ino, ClientId>,
    appended: Vec<ClientBatch>,
    next_ino: u64,
    next_found: u64,
    secret: [u8; 16],
    /// Records that are applied before one fails.
    records_until_full: Option<u64>,
    commit_fails: bool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new([7; 16])
    }
}

impl MemoryStore {
    /// Returns an empty store.
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            tree: Tree::new(),
            applied: BTreeMap::new(),
            failures: BTreeMap::new(),
            fenced: BTreeSet::new(),
            returns_from: 0,
            last_changers: BTreeMap::new(),
            appended: Vec::new(),
            next_ino: FIRST_INO,
            next_found: FOUND + 1,
            secret,
            records_until_full: None,
            commit_fails: false,
        }
    }

    /// Crashes and starts again: committed batches are kept, and the first `kept` of those that
    /// were appended and not committed.
    pub fn crash(&mut self, kept: usize) {
        let mut appended = std::mem::take(&mut self.appended);
        appended.truncate(kept);
        for batch in appended {
            self.apply(&batch);
        }
        self.commit_fails = false;
        self.tree.changes += VERSION_JUMP;
    }

    /// Returns the number of batches that are appended and not committed.
    pub fn appended(&self) -> usize {
        self.appended.len()
    }

    /// Makes one record fail with `ENOSPC`, once: the record after the next `records`.
    pub fn fail_record_after(&mut self, records: u64) {
        self.records_until_full = Some(records);
    }

    /// Makes all commits fail until the next [`crash`](Self::crash).
    pub fn fail_commits(&mut self) {
        self.commit_fails = true;
    }

    /// Puts a node into a directory as if it had existed before the export, and returns its number.
    ///
    /// # Errors
    ///
    /// The errors of a record that creates a node.
    pub fn plant(
        &mut self,
        directory: Ino,
        name: &Name,
        node: NewNode,
        contents: &Bytes,
    ) -> Result<Ino, Errno> {
        let ino = Ino(self.next_found);
        let mut touched = Touched::default();
        let create = Record::Create {
            parent: Some((Handle::created(directory), name.clone())),
            ino,
            node,
            mode: 0o755,
            uid: 0,
            gid: 0,
            time: Time::default(),
        };
        self.tree.apply(&create, contents, &mut touched)?;
        self.next_found += 1;
        if !contents.is_empty() {
            let write = Record::Write {
                file: Handle::created(ino),
                offset: 0,
                data: Data { start: 0, length: contents.len() as u32 },
                time: Time::default(),
            };
            self.tree.apply(&write, contents, &mut touched)?;
        }
        Ok(ino)
    }

    fn apply(&mut self, batch: &ClientBatch) -> AppliedBatch {
        let mut touched = Touched::default();
        let mut failed = None;
        for (index, record) in batch.records.iter().enumerate() {
            if let Err(errno) = self.apply_record(record, &batch.payload, &mut touched) {
                failed = Some((index as u32, errno));
                break;
            }
        }
        self.applied.insert(batch.client, batch.number);
        if let Some((record, error)) = failed {
            let failed = FailedBatch { number: batch.number, record, error };
            self.failures.insert(batch.client, failed);
        }
        self.last_changers.extend(touched.changed.iter().map(|ino| (*ino, batch.client)));
        let changed = touched.changed.into_iter();
        AppliedBatch {
            client: batch.client,
            number: batch.number,
            failed,
            changed: changed
                .filter_map(|ino| Some((ino, self.tree.attributes(ino).ok()?)))
                .collect(),
            orphaned: touched.orphaned,
        }
    }

    fn apply_record(
        &mut self,
        record: &Record,
        payload: &Bytes,
        touched: &mut Touched,
    ) -> Result<(), Errno> {
        if let Some(records) = self.records_until_full {
            self.records_until_full = records.checked_sub(1);
            if records == 0 {
                return Err(Errno::NOSPC);
            }
        }
        if let Record::Create { ino, .. } = record
            && !(FIRST_INO..self.next_ino).contains(&ino.0)
        {
            return Err(Errno::INVAL);
        }
        self.tree.apply(record, payload, touched)
    }

    /// Returns the number that the client's next batch must have.
    fn next_number(&self, client: ClientId) -> u64 {
        let appended = self.appended.iter().filter(|batch| batch.client == client).count();
        self.applied(client) + appended as u64 + 1
    }
}

impl Store for MemoryStore {
    fn attributes(&mut self, node: Ino) -> Result<Attributes, Errno> {
        self.tree.attributes(node)
    }

    fn look_up(&mut self, directory: Ino, name: &Name) -> Result<Option<(Ino, Attributes)>, Errno> {
        match self.tree.entry(directory, name)? {
            Some(ino) => Ok(Some((ino, self.tree.attributes(ino)?))),
            None => Ok(None),
        }
    }

    fn list(
        &mut self,
        directory: Ino,
        after: Option<&Name>,
        most: usize,
    ) -> Result<DirectoryPart, Errno> {
        let names = &self.tree.get(directory)?.directory()?.entries;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = names.range((from, Bound::Unbounded));
        let mut entries = Vec::new();
        for (name, ino) in rest.by_ref().take(most) {
            entries.push((name.clone(), *ino, self.tree.attributes(*ino)?));
        }
        Ok(DirectoryPart { entries, is_complete: rest.next().is_none() })
    }

    fn target(&mut self, link: Ino) -> Result<Bytes, Errno> {
        match &self.tree.get(link)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            Body::File(_) | Body::Directory(_) | Body::Special { .. } => Err(Errno::INVAL),
        }
    }

    fn read(&mut self, file: Ino, offset: u64, length: u32) -> Result<Bytes, Errno> {
        Ok(self.tree.get(file)?.contents()?.read(offset, length.into()))
    }

    fn seek(&mut self, file: Ino, offset: u64, target: SeekTarget) -> Result<u64, Errno> {
        self.tree.get(file)?.contents()?.seek(offset, target)
    }

    fn xattr(&mut self, node: Ino, name: &[u8]) -> Result<Bytes, Errno> {
        self.tree.get(node)?.xattrs.get(name).cloned().ok_or(Errno::NODATA)
    }

    fn xattrs(&mut self, node: Ino) -> Result<Vec<Bytes>, Errno> {
        Ok(self.tree.get(node)?.xattrs.keys().cloned().collect())
    }

    fn space(&mut self) -> Result<SpaceStatus, Errno> {
        const BLOCKS: u64 = 1 << 20;
        let free = BLOCKS - self.tree.nodes.len() as u64;
        Ok(SpaceStatus {
            block_size: 4096,
            blocks: BLOCKS,
            free,
            available: free,
            nodes: BLOCKS,
            free_nodes: free,
        })
    }

    fn append(&mut self, batch: ClientBatch) {
        if batch.number == self.next_number(batch.client) {
            self.appended.push(batch);
        }
    }

    fn commit(&mut self) -> Result<Vec<AppliedBatch>, StoreError> {
        if self.commit_fails {
            return Err(StoreError {
                operation: "fdatasync",
                path: "log".to_owned(),
                source: std::io::Error::other("planted fault"),
            });
        }
        let appended = std::mem::take(&mut self.appended);
        Ok(appended.iter().map(|batch| self.apply(batch)).collect())
    }

    fn applied(&self, client: ClientId) -> u64 {
        self.applied.get(&client).copied().unwrap_or(0)
    }

    fn last_failure(&self, client: ClientId) -> Option<FailedBatch> {
        self.failures.get(&client).copied()
    }

    fn forget_client(&mut self, client: ClientId) {
        self.applied.remove(&client);
        self.failures.remove(&client);
        self.fenced.remove(&client);
        self.appended.retain(|batch| batch.client != client);
    }

    fn set_fenced(&mut self, client: ClientId, is_fenced: bool) -> Result<(), StoreError> {
        if is_fenced {
            self.fenced.insert(client);
        } else {
            self.fenced.remove(&client);
        }
        Ok(())
    }

    fn is_fenced(&self, client: ClientId) -> bool {
        self.fenced.contains(&client)
    }

    fn set_returns_from(&mut self, first: u64) -> Result<(), StoreError> {
        self.returns_from = first;
        Ok(())
    }

    fn returns_from(&self) -> u64 {
        self.returns_from
    }

    fn reserve_inos(&mut self, count: u64) -> Result<u64, StoreError> {
        let first = self.next_ino;
        self.next_ino = first.checked_add(count).filter(|next| *next < FOUND).ok_or_else(|| {
            let source = std::io::Error::other("no numbers are left");
            StoreError { operation: "reserve numbers", path: "log".to_owned(), source }
        })?;
        Ok(first)
    }

    fn last_changer(&self, node: Ino) -> Option<ClientId> {
        self.last_changers.get(&node).copied()
    }

    fn orphans(&self) -> Vec<Ino> {
        self.tree.orphans.iter().copied().collect()
    }

    fn drop_orphan(&mut self, node: Ino) {
        if self.tree.orphans.remove(&node) {
            self.tree.nodes.remove(&node);
            self.tree.gone.insert(node);
            self.last_changers.remove(&node);
        }
    }

    fn secret(&self) -> [u8; 16] {
        self.secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(store: &mut MemoryStore, number: u64, text: &str) -> Option<(u32, Errno)> {
        let record = Record::Create {
            parent: Some((Handle::created(Ino::ROOT), Name::new(text.to_owned()).unwrap())),
            ino: Ino(FIRST_INO + number),
            node: NewNode::Directory,
            mode: 0o755,
            uid: 0,
            gid: 0,
            time: Time::default(),
        };
        let client = ClientId([1; 16]);
        let payload = Bytes::new();
        store.append(ClientBatch { client, number, records: vec![record], payload });
        store.commit().unwrap().remove(0).failed
    }

    #[test]
    fn one_record_fails_and_directories_are_counted() {
        let mut store = MemoryStore::default();
        store.reserve_inos(100).unwrap();
        store.fail_record_after(1);
        assert_eq!(create(&mut store, 1, "a"), None);
        assert_eq!(create(&mut store, 2, "b"), Some((0, Errno::NOSPC)));
        assert_eq!(create(&mut store, 3, "b"), None);
        // As on ext4: one link for each directory in it.
        assert_eq!(store.attributes(Ino::ROOT).unwrap().links, 4);
    }

    #[test]
    fn commits_fail_until_a_crash() {
        let mut store = MemoryStore::default();
        store.fail_commits();
        assert!(store.commit().is_err());
        store.crash(0);
        assert!(store.commit().is_ok());
    }
}
