//! A store in memory that never crashes: files, directories and their names.

use std::collections::{BTreeMap, BTreeSet};

use apus_fs_core::Store;
use apus_fs_core::store::{AppliedBatch, ClientBatch, ClientId, DirectoryPart, StoreError};
use apus_fs_core::wire::{
    Attributes, Errno, FailedBatch, Ino, Name, NewNode, NodeKind, Record, SeekTarget, SpaceStatus,
    Time, Version,
};
use bytes::Bytes;

struct Node {
    attributes: Attributes,
    contents: Vec<u8>,
    names: BTreeMap<Name, Ino>,
}

/// The store.
pub(crate) struct SmallStore {
    nodes: BTreeMap<Ino, Node>,
    orphans: BTreeSet<Ino>,
    applied: BTreeMap<ClientId, u64>,
    failures: BTreeMap<ClientId, FailedBatch>,
    fenced: BTreeSet<ClientId>,
    returns_from: u64,
    appended: Vec<ClientBatch>,
    next_ino: u64,
    changes: u64,
    /// Number of commits.
    pub(crate) commits: u64,
    /// Whether the next commit fails.
    pub(crate) is_broken: bool,
}

fn attributes(kind: NodeKind) -> Attributes {
    let zero = Time::default();
    Attributes {
        has_xattrs: false,
        kind,
        mode: 0o755,
        links: 1,
        uid: 0,
        gid: 0,
        device: 0,
        size: 0,
        blocks: 0,
        atime: zero,
        mtime: zero,
        ctime: zero,
        btime: None,
        version: Version::default(),
    }
}

impl SmallStore {
    pub(crate) fn new() -> Self {
        let root = Node {
            attributes: attributes(NodeKind::Directory),
            contents: Vec::new(),
            names: BTreeMap::new(),
        };
        Self {
            nodes: BTreeMap::from([(Ino::ROOT, root)]),
            orphans: BTreeSet::new(),
            applied: BTreeMap::new(),
            failures: BTreeMap::new(),
            fenced: BTreeSet::new(),
            returns_from: 0,
            appended: Vec::new(),
            next_ino: 1 << 20,
            changes: 0,
            commits: 0,
            is_broken: false,
        }
    }

    pub(crate) fn version(&self, ino: Ino) -> Option<Version> {
        self.nodes.get(&ino).map(|node| node.attributes.version)
    }

    pub(crate) fn crash(&mut self) {
        self.appended.clear();
    }

    fn node(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&ino).ok_or(Errno::STALE)
    }

    fn touch(&mut self, ino: Ino, is_data: bool, changed: &mut BTreeSet<Ino>) {
        self.changes += 1;
        let changes = self.changes;
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.attributes.version.change = changes;
            if is_data {
                node.attributes.version.data = changes;
            }
            changed.insert(ino);
        }
    }

    fn add_name(&mut self, parent: Ino, name: &Name, ino: Ino) -> Result<(), Errno> {
        let parent = self.node(parent)?;
        if parent.names.contains_key(name) {
            return Err(Errno::EXIST);
        }
        parent.names.insert(name.clone(), ino);
        Ok(())
    }

    fn remove_name(&mut self, parent: Ino, name: &Name, ino: Ino) -> Result<(), Errno> {
        let parent = self.node(parent)?;
        if parent.names.get(name) != Some(&ino) {
            return Err(Errno::NOENT);
        }
        parent.names.remove(name);
        Ok(())
    }

    fn lose_name(&mut self, ino: Ino, orphaned: &mut Vec<Ino>) -> Result<(), Errno> {
        let node = self.node(ino)?;
        node.attributes.links -= 1;
        if node.attributes.links == 0 {
            if node.attributes.kind == NodeKind::Directory {
                self.nodes.remove(&ino);
            } else {
                self.orphans.insert(ino);
                orphaned.push(ino);
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        record: &Record,
        payload: &[u8],
        changed: &mut BTreeSet<Ino>,
        orphaned: &mut Vec<Ino>,
    ) -> Result<(), Errno> {
        match record {
            Record::Create { parent, ino, node, mode, uid, gid, .. } => {
                if let Some((parent, name)) = parent {
                    self.add_name(parent.ino, name, *ino)?;
                    self.touch(parent.ino, true, changed);
                } else {
                    self.orphans.insert(*ino);
                }
                let (kind, contents) = match node {
                    NewNode::File => (NodeKind::File, Vec::new()),
                    NewNode::Directory => (NodeKind::Directory, Vec::new()),
                    NewNode::Symlink { target } => (NodeKind::Symlink, target.to_vec()),
                    NewNode::Special { kind, .. } => (*kind, Vec::new()),
                };
                let mut attributes = attributes(kind);
                (attributes.mode, attributes.uid, attributes.gid) = (*mode, *uid, *gid);
                attributes.links = u32::from(parent.is_some());
                attributes.size = contents.len() as u64;
                self.nodes.insert(*ino, Node { attributes, contents, names: BTreeMap::new() });
                self.touch(*ino, true, changed);
            }
            Record::Link { node, parent, name } => {
                self.node(node.ino)?;
                self.add_name(parent.ino, name, node.ino)?;
                self.orphans.remove(&node.ino);
                self.node(node.ino)?.attributes.links += 1;
                self.touch(parent.ino, true, changed);
                self.touch(node.ino, false, changed);
            }
            Record::Unlink { parent, name, node }
            | Record::RemoveDirectory { parent, name, node } => {
                self.remove_name(parent.ino, name, node.ino)?;
                self.touch(parent.ino, true, changed);
                self.touch(node.ino, false, changed);
                self.lose_name(node.ino, orphaned)?;
            }
            Record::Rename { from, to, node, replaced, exchange } => {
                self.remove_name(from.0.ino, &from.1, node.ino)?;
                if let Some(replaced) = replaced {
                    self.remove_name(to.0.ino, &to.1, replaced.ino)?;
                    self.touch(replaced.ino, false, changed);
                    if *exchange {
                        self.add_name(from.0.ino, &from.1, replaced.ino)?;
                    } else {
                        self.lose_name(replaced.ino, orphaned)?;
                    }
                }
                self.add_name(to.0.ino, &to.1, node.ino)?;
                for ino in [from.0.ino, to.0.ino, node.ino] {
                    self.touch(ino, false, changed);
                }
            }
            Record::Write { file, offset, data, .. } => {
                let bytes = &payload[data.start as usize..][..data.length as usize];
                let node = self.node(file.ino)?;
                let end = *offset as usize + bytes.len();
                if end > 1 << 20 {
                    return Err(Errno::FBIG);
                }
                if node.contents.len() < end {
                    node.contents.resize(end, 0);
                }
                node.contents[*offset as usize..end].copy_from_slice(bytes);
                node.attributes.size = node.contents.len() as u64;
                self.touch(file.ino, true, changed);
            }
            Record::SetAttributes { node, set } => {
                let attributes = &mut self.node(node.ino)?.attributes;
                attributes.mode = set.mode.unwrap_or(attributes.mode);
                attributes.uid = set.uid.unwrap_or(attributes.uid);
                attributes.gid = set.gid.unwrap_or(attributes.gid);
                self.touch(node.ino, false, changed);
            }
            Record::Close { .. } => {}
            Record::Allocate { .. }
            | Record::CopyRange { .. }
            | Record::SetXattr { .. }
            | Record::RemoveXattr { .. } => return Err(Errno::OPNOTSUPP),
        }
        Ok(())
    }
}

impl Store for SmallStore {
    fn attributes(&mut self, node: Ino) -> Result<Attributes, Errno> {
        self.node(node).map(|node| node.attributes)
    }

    fn look_up(&mut self, directory: Ino, name: &Name) -> Result<Option<(Ino, Attributes)>, Errno> {
        let found = self.node(directory)?.names.get(name).copied();
        found.map(|ino| Ok((ino, self.attributes(ino)?))).transpose()
    }

    fn list(
        &mut self,
        directory: Ino,
        after: Option<&Name>,
        most: usize,
    ) -> Result<DirectoryPart, Errno> {
        let names = self.node(directory)?.names.clone();
        let mut rest = names.into_iter().filter(|(name, _)| after.is_none_or(|after| name > after));
        let mut entries = Vec::new();
        for (name, ino) in rest.by_ref().take(most) {
            entries.push((name, ino, self.attributes(ino)?));
        }
        Ok(DirectoryPart { entries, is_complete: rest.next().is_none() })
    }

    fn target(&mut self, link: Ino) -> Result<Bytes, Errno> {
        self.node(link).map(|node| node.contents.clone().into())
    }

    fn read(&mut self, file: Ino, offset: u64, length: u32) -> Result<Bytes, Errno> {
        let contents = &self.node(file)?.contents;
        let start = contents.len().min(offset as usize);
        let end = contents.len().min(start.saturating_add(length as usize));
        Ok(Bytes::copy_from_slice(&contents[start..end]))
    }

    fn seek(&mut self, file: Ino, offset: u64, target: SeekTarget) -> Result<u64, Errno> {
        let length = self.node(file)?.contents.len() as u64;
        match target {
            _ if offset >= length => Err(Errno(6)),
            SeekTarget::Data => Ok(offset),
            SeekTarget::Hole => Ok(length),
        }
    }

    fn xattr(&mut self, node: Ino, _: &[u8]) -> Result<Bytes, Errno> {
        self.node(node).and(Err(Errno(61)))
    }

    fn xattrs(&mut self, node: Ino) -> Result<Vec<Bytes>, Errno> {
        self.node(node).map(|_| Vec::new())
    }

    fn space(&mut self) -> Result<SpaceStatus, Errno> {
        Ok(SpaceStatus::default())
    }

    fn set_returns_from(&mut self, first: u64) -> Result<(), StoreError> {
        self.returns_from = first;
        Ok(())
    }

    fn returns_from(&self) -> u64 {
        self.returns_from
    }

    fn append(&mut self, batch: ClientBatch) {
        let appended = self.appended.iter().filter(|other| other.client == batch.client).count();
        assert_eq!(batch.number, self.applied(batch.client) + 1 + appended as u64, "FSSERVE-8");
        self.appended.push(batch);
    }

    fn commit(&mut self) -> Result<Vec<AppliedBatch>, StoreError> {
        if self.is_broken {
            let source = std::io::Error::other("no space left");
            return Err(StoreError { operation: "write", path: "log".to_owned(), source });
        }
        self.commits += 1;
        let mut all = Vec::new();
        for batch in std::mem::take(&mut self.appended) {
            let ClientBatch { client, number, records, payload } = batch;
            let (mut changed, mut orphaned) = (BTreeSet::new(), Vec::new());
            let mut failed = None;
            for (at, record) in records.iter().enumerate() {
                if let Err(errno) = self.apply(record, &payload, &mut changed, &mut orphaned) {
                    failed = Some((at as u32, errno));
                    break;
                }
            }
            self.applied.insert(client, number);
            if let Some((record, error)) = failed {
                self.failures.insert(client, FailedBatch { number, record, error });
            }
            let changed = changed.into_iter();
            let changed = changed.filter_map(|ino| Some((ino, self.nodes.get(&ino)?.attributes)));
            let changed = changed.collect();
            all.push(AppliedBatch { client, number, failed, changed, orphaned });
        }
        Ok(all)
    }

    fn applied(&self, client: ClientId) -> u64 {
        self.applied.get(&client).copied().unwrap_or_default()
    }

    fn last_failure(&self, client: ClientId) -> Option<FailedBatch> {
        self.failures.get(&client).copied()
    }

    fn forget_client(&mut self, client: ClientId) {
        self.applied.remove(&client);
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

    fn reserve_inos(&mut self, count: u64) -> Result<u64, StoreError> {
        self.next_ino += count;
        Ok(self.next_ino - count)
    }

    fn orphans(&self) -> Vec<Ino> {
        self.orphans.iter().copied().collect()
    }

    fn drop_orphan(&mut self, node: Ino) {
        assert!(self.orphans.remove(&node), "FSSERVE-10: {node} has a name, or is gone");
        self.nodes.remove(&node);
    }

    fn secret(&self) -> [u8; 16] {
        [42; 16]
    }
}
