//! Entries of a directory, packed as READDIR and READDIRPLUS return them.

use super::attributes::Entry;
use super::error::EncodeError;
use super::layout::output;
use super::layout::structure::Plain;
use super::name::MAX_NAME;

/// Entries are aligned to this many bytes.
const ALIGNMENT: usize = 8;

/// The reply to a READDIR, filled entry by entry up to the room that the request has.
#[derive(Debug)]
pub struct Directory {
    bytes: Vec<u8>,
    room: usize,
}

impl Directory {
    /// Starts a reply to a request with this `size`.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self { bytes: Vec::new(), room: size as usize }
    }

    /// Adds an entry to the reply to a READDIR.
    ///
    /// `kind` is the type, as the upper bits of a mode have it. A later request continues after
    /// this entry with [`Readdir::offset`](super::Readdir::offset) `next`, which must not be 0. The
    /// names `.` and `..` are allowed.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Full`]: the entry belongs into the next reply. [`EncodeError::Name`].
    pub fn push(
        &mut self,
        inode: u64,
        next: u64,
        mode: u32,
        name: &[u8],
    ) -> Result<(), EncodeError> {
        self.push_with_head(None, inode, next, mode, name)
    }

    /// Adds an entry to the reply to a READDIRPLUS.
    ///
    /// The entry gives the kernel a reference to its node, except for `.` and `..`, and for node 0,
    /// which means that the attributes are not known.
    ///
    /// # Errors
    ///
    /// [`EncodeError::Full`]: the entry belongs into the next reply. [`EncodeError::Name`].
    pub fn push_plus(&mut self, entry: &Entry, next: u64, name: &[u8]) -> Result<(), EncodeError> {
        let (inode, mode) = (entry.attributes.inode, entry.attributes.mode);
        self.push_with_head(Some(&entry.to_wire()), inode, next, mode, name)
    }

    /// Returns the packed entries, for [`Reply::Data`](super::Reply::Data).
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn push_with_head(
        &mut self,
        head: Option<&output::Entry>,
        inode: u64,
        next: u64,
        mode: u32,
        name: &[u8],
    ) -> Result<(), EncodeError> {
        // The kernel takes `.` and `..` here; on any other invalid name it refuses the whole reply.
        let valid = (1..=MAX_NAME).contains(&name.len())
            && !name.iter().any(|byte| matches!(byte, b'/' | 0));
        if !valid {
            return Err(EncodeError::Name);
        }
        let head_length = if head.is_some() { size_of::<output::Entry>() } else { 0 };
        let length = head_length + size_of::<output::Dirent>() + name.len();
        let padded = length.next_multiple_of(ALIGNMENT);
        if self.bytes.len() + padded > self.room {
            return Err(EncodeError::Full);
        }
        let kind = (mode >> 12) & 15; // `DT_*` are the types of a mode.
        let dirent = output::Dirent { ino: inode, off: next, namelen: name.len() as u32, kind };
        if let Some(head) = head {
            self.push_structure(head);
        }
        self.push_structure(&dirent);
        self.bytes.extend_from_slice(name);
        self.bytes.resize(self.bytes.len() + padded - length, 0);
        Ok(())
    }

    fn push_structure<T: Plain>(&mut self, structure: &T) {
        let start = self.bytes.len();
        self.bytes.resize(start + size_of::<T>(), 0);
        structure.write(&mut self.bytes[start..]);
    }
}
