//! Files, directories and links in memory.

use apus_fuse::Errno;
use apus_fuse::codec::{Attributes, Entry, ROOT, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

/// Content of a node, by kind.
pub(crate) enum Content {
    File(Vec<u8>),
    /// Names by cookies, which grow and remain: where a READDIR continues.
    Directory {
        by_name: HashMap<Vec<u8>, (u64, u64)>,
        by_cookie: BTreeMap<u64, (Vec<u8>, u64)>,
    },
    Link(Vec<u8>),
    Special,
}

impl Content {
    pub(crate) fn directory() -> Self {
        Self::Directory { by_name: HashMap::new(), by_cookie: BTreeMap::new() }
    }
}

/// A node.
pub(crate) struct Node {
    pub(crate) attributes: Attributes,
    pub(crate) content: Content,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// References that the kernel has.
    references: u64,
}

/// All nodes.
pub(crate) struct Nodes {
    nodes: HashMap<u64, Node>,
    next: u64,
    cookie: u64,
    /// Validity period of names and attributes.
    pub(crate) timeout: Duration,
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}

impl Default for Nodes {
    fn default() -> Self {
        let mut nodes =
            Self { nodes: HashMap::new(), next: ROOT, cookie: 0, timeout: Duration::MAX };
        let root = nodes.create(0o40_755, 0, 0, Content::directory());
        nodes.change(root, |node| node.attributes.links = 2);
        nodes
    }
}

impl Nodes {
    pub(crate) fn create(&mut self, mode: u32, uid: u32, gid: u32, content: Content) -> u64 {
        let (node, time) = (self.next, now());
        self.next += 1;
        let size = match &content {
            Content::Link(target) => target.len() as u64,
            _ => 0,
        };
        let attributes = Attributes {
            inode: node,
            size,
            atime: time,
            mtime: time,
            ctime: time,
            mode,
            uid,
            gid,
            block_size: 4096,
            ..Attributes::default()
        };
        let xattrs = BTreeMap::new();
        self.nodes.insert(node, Node { attributes, content, xattrs, references: 0 });
        node
    }

    pub(crate) fn get(&self, node: u64) -> Result<&Node, Errno> {
        self.nodes.get(&node).ok_or(Errno::STALE)
    }

    pub(crate) fn get_mut(&mut self, node: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno::STALE)
    }

    pub(crate) fn change(&mut self, node: u64, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(&node) {
            change(node);
            node.attributes.ctime = now();
        }
    }

    /// The reply to a lookup or creation; the kernel gets a reference.
    pub(crate) fn entry(&mut self, node: u64) -> Result<Entry, Errno> {
        let timeout = self.timeout;
        let found = self.get_mut(node)?;
        found.references += 1;
        Ok(Entry {
            node,
            generation: 0,
            entry_timeout: timeout,
            attributes_timeout: timeout,
            attributes: found.attributes,
        })
    }

    pub(crate) fn forget(&mut self, node: u64, count: u64) {
        if let Some(found) = self.nodes.get_mut(&node) {
            found.references = found.references.saturating_sub(count);
        }
        self.collect(node);
    }

    pub(crate) fn child(&self, parent: u64, name: &[u8]) -> Result<u64, Errno> {
        match &self.get(parent)?.content {
            Content::Directory { by_name, .. } => {
                by_name.get(name).map(|(node, _)| *node).ok_or(Errno::NOENT)
            }
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Adds a name; it must not exist.
    pub(crate) fn link(&mut self, parent: u64, name: &[u8], node: u64) -> Result<(), Errno> {
        if name.len() > 255 {
            return Err(Errno::NAMETOOLONG);
        }
        self.cookie += 1;
        let cookie = self.cookie;
        let Content::Directory { by_name, by_cookie } = &mut self.get_mut(parent)?.content else {
            return Err(Errno::NOTDIR);
        };
        if by_name.contains_key(name) {
            return Err(Errno::EXIST);
        }
        by_name.insert(name.to_vec(), (node, cookie));
        by_cookie.insert(cookie, (name.to_vec(), node));
        let is_directory = matches!(self.get(node)?.content, Content::Directory { .. });
        self.change(node, |node| node.attributes.links += if is_directory { 2 } else { 1 });
        self.change(parent, |parent| {
            parent.attributes.links += u32::from(is_directory);
            parent.attributes.mtime = now();
        });
        Ok(())
    }

    /// Removes a name; returns its node.
    pub(crate) fn unlink(&mut self, parent: u64, name: &[u8]) -> Result<u64, Errno> {
        let Content::Directory { by_name, by_cookie } = &mut self.get_mut(parent)?.content else {
            return Err(Errno::NOTDIR);
        };
        let (node, cookie) = by_name.remove(name).ok_or(Errno::NOENT)?;
        by_cookie.remove(&cookie);
        let is_directory = matches!(self.get(node)?.content, Content::Directory { .. });
        self.change(node, |node| node.attributes.links -= if is_directory { 2 } else { 1 });
        self.change(parent, |parent| {
            parent.attributes.links -= u32::from(is_directory);
            parent.attributes.mtime = now();
        });
        self.collect(node);
        Ok(node)
    }

    pub(crate) fn is_empty_directory(&self, node: u64) -> Result<bool, Errno> {
        match &self.get(node)?.content {
            Content::Directory { by_name, .. } => Ok(by_name.is_empty()),
            _ => Err(Errno::NOTDIR),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Drops a node that has neither name nor references.
    fn collect(&mut self, node: u64) {
        let gone = |found: &Node| found.attributes.links == 0 && found.references == 0;
        if node != ROOT && self.nodes.get(&node).is_some_and(gone) {
            self.nodes.remove(&node);
        }
    }
}
