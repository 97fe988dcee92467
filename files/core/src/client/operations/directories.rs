//! Reading directories.

use crate::wire::{Errno, Ino, LeaseKind, NodeKind};
use bytes::Bytes;

use super::{DEPTH, Turn};
use crate::client::operation::{DirectoryEntry, Reply};
use crate::client::{Attempt, Client, DirectoryHandle};

impl Client {
    pub(super) fn open_directory(&mut self, ino: Ino) -> Attempt<Reply> {
        if !self.node(ino)?.is_directory() {
            return Err(Errno::NOTDIR.into());
        }
        self.last_handle += 1;
        self.directories.insert(self.last_handle, DirectoryHandle::default());
        Ok(Reply::Opened { handle: self.last_handle, keep_cache: false })
    }

    /// Reads names from those that the directory had when it was opened, or rewound.
    pub(super) fn read_directory(
        &mut self,
        turn: &Turn,
        ino: Ino,
        handle: u64,
        offset: u64,
        (most, with_attributes): (usize, bool),
    ) -> Attempt<Reply> {
        let known = self.directories.get(&handle).is_some_and(|open| open.names.is_some());
        if !known || offset == 0 {
            self.directory(turn, ino)?;
            let node = self.node(ino)?;
            if !node.names().complete {
                return Err(self.ask_names(turn, ino, DEPTH));
            }
            let above = node.parent.unwrap_or(ino);
            let dots = [(Bytes::from_static(b"."), ino), (Bytes::from_static(b".."), above)];
            let names = node.names().known.iter();
            let names =
                names.map(|(name, child)| (Bytes::copy_from_slice(name.as_bytes()), *child));
            let names = dots.into_iter().chain(names).collect();
            let open = self.directories.get_mut(&handle).ok_or(Errno::STALE)?;
            open.names = Some(names);
        }
        let names = self.directories.get(&handle).and_then(|open| open.names.as_ref());
        let names = names.ok_or(Errno::STALE)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(names.len());
        let part: Vec<_> = names[from..].iter().take(most).cloned().collect();
        let mut entries = Vec::with_capacity(part.len());
        for (index, (name, child)) in part.into_iter().enumerate() {
            let next = (from + index + 1) as u64;
            let dot = from + index < 2;
            let usable = self.nodes.get(&child).filter(|node| node.permits(LeaseKind::Shared));
            let kind = match self.nodes.get(&child) {
                Some(node) => node.attributes.kind,
                None if dot => NodeKind::Directory,
                None => NodeKind::File,
            };
            let entry = match usable {
                Some(_) if with_attributes && !dot => Some(self.entry(turn, Some(ino), child)?),
                _ => None,
            };
            entries.push(DirectoryEntry { name, node: child, kind, next, entry });
        }
        Ok(Reply::Entries(entries))
    }
}
